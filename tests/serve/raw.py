"""Raw HTTP requests, without the client."""

import http.client
import json
import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.limits import TIMEOUT

from bayescontrol.serve import Limits, Server

JSON = {"Content-Type": "application/json"}


class Raw(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """The last part of a problem's type."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        assert self.json["detail"]
        assert self.json["next"]
        return str(self.json["type"]).rpartition(":")[2]


def ask(
    url: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Raw:
    """Send one request on a new connection; a body other than bytes is sent as JSON."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
    raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    sent = (JSON if body is not None else {}) | (headers or {})
    try:
        connection.request(method, path, raw, sent)
        response = connection.getresponse()
        result = {name.lower(): value for name, value in response.getheaders()}
        return Raw(response.status, result, response.read())
    finally:
        connection.close()


def number(id: str) -> int:
    """The number of a decision in its log, from its id over HTTP."""
    return int(id.rpartition("-")[2])


def connected(url: str, timeout: float = TIMEOUT) -> socket.socket:
    """A connection on which nothing has been sent."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=timeout)


def read_until_closed(url: str, sent: bytes) -> bytes:
    """Send, and return everything received until the server closes the connection."""
    with connected(url) as connection:
        connection.sendall(sent)
        return rest(connection)


def rest(connection: socket.socket) -> bytes:
    """Return everything received until the connection is closed."""
    got = b""
    while piece := connection.recv(65536):
        got += piece
    return got


def head(path: str = "/v1/agents", method: str = "POST", **fields: object) -> bytes:
    """The head of a request with a JSON body, up to the empty line."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def memory(**settings: Any) -> Server:
    """A server of a store in memory, on any free port, with time to compile kernels."""
    settings.setdefault("limits", Limits(deadline=60.0))
    return Server("sqlite:///:memory:", port=0, **settings)

"""Connections that are kept and used again, on Python's own HTTP.

    a free connection, else a new one; given back when its answer has been read

A kept connection may have been closed by the server meanwhile: then the first write or read on it
fails, and the request is sent once more on a new one.
"""

import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from bayescontrol.errors import BayesControlError


class InvalidAddress(BayesControlError, ValueError):
    """A server has no such address.

    >>> issubclass(InvalidAddress, ValueError)
    True
    """


class Reply(NamedTuple):
    """An answer, read to its end.

    >>> Reply(503, b"", {"retry-after": "2"}).retry_after
    2.0
    """

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def retry_after(self) -> float:
        """How many seconds to wait; 0 if it does not say."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdigit() else 0.0


class Connections:
    """The connections to one server.

    >>> Connections("ftp://127.0.0.1")
    Traceback (most recent call last):
    bayescontrol.serve.wire.InvalidAddress: url='ftp://127.0.0.1': write http://host:port or https://host
    """

    def __init__(self, url: str) -> None:
        wrong = InvalidAddress(f"url={url!r}: write http://host:port or https://host")
        if not isinstance(url, str):
            raise wrong
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise wrong
        secure = parts.scheme == "https"
        self._make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._host, self._port = parts.hostname, port
        self._base = parts.path.rstrip("/")
        self._free: list[http.client.HTTPConnection] = []
        self._guard = threading.Lock()

    def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> Reply:
        """The answer to one request."""
        connection, response = self._asked(method, path, body, headers, timeout)
        try:
            read = response.read()
        except BaseException:
            connection.close()
            raise
        reply = Reply(response.status, read, _lower(response))
        if response.will_close:
            connection.close()
        else:
            with self._guard:
                self._free.append(connection)
        return reply

    def lines(
        self,
        path: str,
        headers: Mapping[str, str],
        timeout: float,
        error: Callable[[Reply], Exception],
    ) -> Iterator[bytes]:
        """The lines of an answer as they come; `error` of it if it is none."""
        connection, response = self._asked("GET", path, None, headers, timeout)
        try:
            if response.status != 200:
                raise error(Reply(response.status, response.read(), _lower(response)))
            for line in response:
                yield line.rstrip(b"\n")
        finally:
            connection.close()

    def _asked(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        with self._guard:
            kept = self._free.pop() if self._free else None
        if kept is not None:
            try:
                return kept, self._ask(kept, method, path, body, headers, timeout)
            except (ConnectionError, http.client.HTTPException):
                kept.close()  # closed by the other side while it was idle
        connection = self._make(self._host, self._port, timeout=timeout)
        try:
            return connection, self._ask(connection, method, path, body, headers, timeout)
        except BaseException:
            connection.close()
            raise

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
    ) -> http.client.HTTPResponse:
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            connection.request(method, self._base + path, body, dict(headers))
            return connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close those that are free."""
        with self._guard:
            free, self._free = self._free, []
        for connection in free:
            connection.close()


def _lower(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}

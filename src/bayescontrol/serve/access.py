"""Who may send requests, and how many: bearer tokens and limits; and a log of the requests.

    Authorization: Bearer t      allowed iff SHA-256(t) = SHA-256(t_i) for some i
    role of t_i                  "read" may only read, "write" may do everything

Tokens come from a file or the environment, never from the command line, which every user of a
machine can read. All digests are compared, each in constant time, so that the time of an answer
reveals nothing about a token.

The access log has a line of JSON for each request:

    {"time": "2026-11-19T02:00:00.123Z", "id": "5f1c…-17", "token": "shop", "address": "10.0.0.7",
     "method": "POST", "route": "/v1/agents/{name}/act", "path": "/v1/agents/checkout/act",
     "status": 200, "bytes": 312, "seconds": 0.0042, "agent": "checkout"}

The path has no query, because a query may contain a situation. Bodies and tokens are never logged.
"""

import dataclasses
import hashlib
import hmac
import logging
import math
import os
import re
import stat
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from bayescontrol._support.files import os_errors_as
from bayescontrol.durable.stores.log import PRIVATE
from bayescontrol.errors import BayesControlError, Unwritable
from bayescontrol.serve.http_errors import Refused

MAX_PORT: Final = 65_535
#: The environment variable that holds a token.
VARIABLE: Final = "BAYESCONTROL_TOKEN"
#: What a token may allow.
ROLES: Final = ("read", "write")
_VALID_NAME: Final = r"[A-Za-z0-9._-]{1,64}"
#: The least number of characters of a token.
_MIN_LENGTH: Final = 16
#: Maximum number of callers whose rate is remembered.
_MAX_CALLERS: Final = 10_000
#: The part of a quota that one caller may use, at least 1.
_SHARE: Final = 0.75
#: The command that prints a new token, for messages.
_GENERATE: Final = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'

_logger = logging.getLogger("bayescontrol.serve")
#: The path that stands for standard output.
STDOUT: Final = Path("-")
#: Maximum lines that wait for a slow disk; others are lost.
_MAX_WAITING: Final = 100_000
#: Maximum characters of a path in a line.
_MAX_PATH: Final = 1_000
_AGENT: Final = "/v1/agents/{name"


class InvalidToken(BayesControlError, ValueError):
    """A token is too short to be secret, or cannot be sent in a header."""


class PublicFile(BayesControlError, ValueError):
    """Other users of the machine can read a file with secrets."""


class PublicBind(BayesControlError, ValueError):
    """Other machines could reach the server, which needs no token."""


@dataclass(frozen=True)
class Token:
    """A token with the name that logs and metrics show, and its role.

    The role "read" allows GET only, "write" everything.

    >>> Token("dashboard", "read", "a-token-that-is-long-enough")
    Token(name='dashboard', role='read')
    """

    name: str
    role: str
    secret: str = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(_VALID_NAME, self.name):
            raise InvalidToken("the name of a token has 1 to 64 letters, digits, '.', '_' and '-'")
        if self.role not in ROLES:
            raise InvalidToken("the role of a token must be read or write")
        require_sendable(self.secret)
        if len(self.secret) < _MIN_LENGTH:
            raise InvalidToken(
                f"a token of {len(self.secret)} characters can be guessed: use at least "
                f"{_MIN_LENGTH}; generate one with {_GENERATE}"
            )


class Caller(NamedTuple):
    """Who sent a valid token."""

    name: str
    role: str


class Tokens:
    """The digests of the valid tokens. Without tokens, every request is allowed.

    A token that is a string has the role "write" and a number for a name.

    >>> tokens = Tokens(["a-token-that-is-long-enough"])
    >>> tokens.caller(b"Bearer a-token-that-is-long-enough")
    Caller(name='token-1', role='write')
    >>> tokens.caller(b"Bearer guess"), tokens.caller(None)
    (None, None)
    """

    def __init__(self, tokens: Iterable[str | Token] = ()) -> None:
        if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable):
            # The value is not shown: it may be a secret.
            raise InvalidToken(f"tokens is a {type(tokens).__name__}: give a list of strings")
        self._callers = _by_digest(
            token if isinstance(token, Token) else Token(f"token-{number}", "write", token)
            for number, token in enumerate(tokens, 1)
        )
        #: The file of the tokens, those that are not in it, and what is wrong with the file.
        self.file: Path | None = None
        self._others: list[Token] = []
        self._problem = ""

    def __bool__(self) -> bool:
        """Whether a token is needed."""
        return bool(self._callers)

    def caller(self, authorization: bytes | None) -> Caller | None:
        """Return whose token the header has if it is valid, else None."""
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        sent, caller = hashlib.sha256(token.strip()).digest(), None
        for digest, known in self._callers.items():
            if hmac.compare_digest(digest, sent):
                caller = known  # no early exit: the time must not depend on the token
        return caller

    @classmethod
    def found(
        cls, file: Path | None = None, environment: Mapping[str, str] = os.environ
    ) -> "Tokens":
        """Read tokens from a file, see `_read_tokens`, and from the environment.

        >>> bool(Tokens.found(None, {"BAYESCONTROL_TOKEN": "a-token-that-is-long-enough"}))
        True
        """
        secret = environment.get(VARIABLE, "").strip()
        others = [Token("environment", "write", secret)] if secret else []
        if file is None:
            return cls(others)
        tokens = cls(others + _read_tokens(file))
        tokens.file, tokens._others = file, others
        return tokens

    def refresh(self) -> None:
        """Read the file again. If it is invalid, log that once and change nothing."""
        if self.file is None:
            return
        callers, problem = self._callers, ""
        try:
            callers = _by_digest(self._others + _read_tokens(self.file))
        except (InvalidToken, PublicFile, OSError) as error:
            problem = str(error)
        if problem not in ("", self._problem):
            _logger.error("the tokens stay as they were: %s", problem)
        if callers != self._callers:
            _logger.info("the tokens were read again: %d are valid", len(callers))
        self._callers, self._problem = callers, problem


def _by_digest(tokens: Iterable[Token]) -> dict[bytes, Caller]:
    """Return the callers by the digests of their tokens."""
    found: dict[bytes, Caller] = {}
    for token in tokens:
        caller = Caller(token.name, token.role)
        if found.setdefault(hashlib.sha256(token.secret.encode()).digest(), caller) != caller:
            raise InvalidToken(f"token {token.name} has another name or role too: list it once")
    return found


def require_sendable(token: object) -> None:
    """Raise `InvalidToken`, without showing the token, if it cannot be sent in a header.

    >>> require_sendable("two words")
    Traceback (most recent call last):
    bayescontrol.serve.access.InvalidToken: a token must be a string of visible ASCII characters ...
    """
    if not isinstance(token, str) or not re.fullmatch(r"[!-~]*", token):
        raise InvalidToken(
            "a token must be a string of visible ASCII characters without spaces, because it is "
            f"sent in a header: generate one with {_GENERATE}"
        )


def _read_tokens(file: Path) -> list[Token]:
    """Return the tokens of a file with lines `NAME ROLE TOKEN`, empty lines and # comments."""
    try:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidToken(f"cannot read tokens from {file}: {error}") from None
    require_private(file)
    tokens = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        try:
            name, role, secret = words
            tokens.append(Token(name, role, secret))
        except ValueError as error:  # also `InvalidToken`
            # Without three words the line is not shown: any of them may be a token.
            why = f": {error}" if isinstance(error, InvalidToken) else ""
            raise InvalidToken(
                f"{file}, line {number} is invalid{why}; write NAME ROLE TOKEN, where ROLE is "
                "read or write"
            ) from None
    if not tokens:
        raise InvalidToken(f"{file} contains no token: write lines NAME ROLE TOKEN ({_GENERATE})")
    return tokens


def require_private(file: Path) -> None:
    """Raise `PublicFile` if others may read or write a file with secrets that belongs to us.

    A file of another owner, such as a secret in a container, cannot be changed by this user.
    """
    if os.name == "posix":
        found = file.stat()
        is_public = found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        if is_public and found.st_uid == os.geteuid():
            raise PublicFile(f"other users can read {file}: run chmod 600 {file}")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name, not an address
        return host == "localhost"


def require_safe(host: str, tokens: Tokens) -> None:
    """Raise `PublicBind` if other machines can reach the address and no token is needed.

    >>> require_safe("0.0.0.0", Tokens())
    Traceback (most recent call last):
    bayescontrol.serve.access.PublicBind: other machines can reach --host 0.0.0.0: ...
    """
    if not tokens and not is_loopback(host):
        raise PublicBind(
            f"other machines can reach --host {host}: give --token-file FILE or set {VARIABLE} "
            f"(generate a token with {_GENERATE}), or use --host 127.0.0.1"
        )


# -- limits ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    >>> Limits(concurrency=0)
    Traceback (most recent call last):
    ValueError: concurrency=0 is invalid: it must be positive and finite
    """

    #: Bytes of a body.
    body: int = 1_048_576
    #: JSON values of a body.
    values: int = 50_000
    #: Bytes of a request's head, including the request line.
    head: int = 65_536
    #: Bytes of the path and query in the request line.
    line: int = 32_768
    #: Header fields of a request.
    headers: int = 100
    #: Requests a second from one caller (a token or an address); None means unlimited.
    rate: float | None = None
    #: Requests a second without a valid token from one address, where a token is needed.
    failures: float = 10.0
    #: Requests in progress.
    concurrency: int = 256
    #: Seconds for a request, from its first byte to the start of its answer.
    deadline: float = 10.0
    #: Open connections.
    connections: int = 512
    #: Seconds that a connection may stay open without a request.
    idle: float = 30.0
    #: Pages that listen to the event stream.
    streams: int = 32
    #: Agents in the store; no more can be created over HTTP.
    agents: int = 1_000
    #: Seconds to finish pending requests when the server stops.
    grace: float = 10.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(
                    f"{field.name}={value!r} is invalid: it must be positive and finite"
                )


class RateLimiter:
    """A token bucket for each caller: `rate` requests a second, and `burst` of them at once.

    The default burst is one second's worth.

    >>> clock = iter([0.0, 0.0, 0.0, 0.5]).__next__
    >>> limiter = RateLimiter(2.0, clock)
    >>> limiter.take("me"), limiter.take("me")
    (None, None)
    >>> limiter.take("me")
    Traceback (most recent call last):
    bayescontrol.serve.http_errors.Refused: more than 2 requests a second
    >>> limiter.take("me")
    """

    def __init__(
        self, rate: float, clock: Callable[[], float] = time.monotonic, burst: float | None = None
    ) -> None:
        self._rate, self._clock = rate, clock
        self._burst = max(rate, 1.0) if burst is None else burst
        #: By caller: the requests left in its bucket, and when that was computed.
        self._left: dict[object, tuple[float, float]] = {}

    def take(self, caller: object) -> None:
        """Take one request from the caller's bucket; raise `Refused` if less than one is left."""
        now = self._clock()
        left, last_time = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - last_time) * self._rate)
        allowed = left >= 1.0
        self._left[caller] = (left - 1.0 if allowed else left, now)
        if len(self._left) > _MAX_CALLERS:  # the bucket used longest ago is most likely full
            del self._left[next(iter(self._left))]
        if not allowed:
            why = f"more than {self._rate:g} requests a second"
            wait = max(math.ceil((1.0 - left) / self._rate), 1)
            raise Refused("too-many-requests", why, {"Retry-After": str(wait)})


class Quota:
    """An amount that all callers share; one of them may use three quarters of it.

    >>> quota = Quota(4, "requests in progress")
    >>> quota.add("me", 3), quota.used
    (None, 3)
    >>> quota.add("me", 1)
    Traceback (most recent call last):
    bayescontrol.serve.http_errors.Refused: this caller has reached its limit of 3 requests ...
    >>> quota.add("me", -3), quota.used
    (None, 0)
    """

    def __init__(self, limit: int, what: str) -> None:
        self._limit, self._what = limit, what
        self._share = max(math.floor(_SHARE * limit), 1)
        self.used = 0
        self._by_caller: Counter[object] = Counter()

    def add(self, caller: object, amount: int) -> None:
        """Add to the amount that the caller uses; if that is too much, raise and add nothing."""
        total, used = self.used + amount, self._by_caller[caller] + amount
        is_full = total > self._limit
        if amount > 0 and (is_full or used > self._share):
            who, limit = ("the server", self._limit) if is_full else ("this caller", self._share)
            text = f"{who} has reached its limit of {limit} {self._what}: try again later"
            raise Refused("overloaded", text)
        self.used = total
        self._by_caller[caller] = used
        if not used:
            del self._by_caller[caller]


# -- the access log --------------------------------------------------------------------------------


class AccessLog:
    """A file, or standard output for the path "-", to which lines are appended.

    `add` does not wait for the disk. `write` appends the lines that wait; called regularly, it
    opens the file every time, so that another program may rename it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = AccessLog(Path(folder) / "access.log")
    ...     log.add({"method": "GET", "path": "/docs", "status": 200}, 0.001)
    ...     log.write()
    ...     msgspec.json.decode((Path(folder) / "access.log").read_bytes())["path"]
    '/docs'
    """

    #: Seconds between two writes.
    PERIOD: Final = 0.1

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: deque[bytes] = deque()
        #: Lines that could not be written.
        self.lost = 0
        self._failed = False  # whether the last write failed
        with os_errors_as(Unwritable, f"cannot write {path}", "choose another --access-log"):
            self._append(b"")

    def _append(self, lines: bytes) -> None:
        """Append to the file."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.dup(1) if self._path == STDOUT else os.open(self._path, flags, PRIVATE)
        with open(file, "wb") as stream:
            stream.write(lines)

    def add(self, scope: MutableMapping[str, Any], seconds: float) -> None:
        """Add the line of a request, which took this long."""
        if len(self._waiting) >= _MAX_WAITING:
            self.lost += 1
            return
        path, route = scope["path"], scope.get("path_template")
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {
            "time": now, "id": scope.get("request_id"), "token": scope.get("token"),
            "address": (scope.get("client") or (None,))[0], "method": scope["method"],
            "route": route, "path": path[:_MAX_PATH], "status": scope.get("status"),
            "bytes": scope.get("sent", 0), "seconds": round(seconds, 6),
            "agent": path.split("/")[3] if str(route).startswith(_AGENT) else None,
        }  # fmt: skip
        self._waiting.append(msgspec.json.encode(line) + b"\n")

    def write(self) -> None:
        """Append the lines that wait; if that fails, they are lost, which is logged once."""
        lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not lines:
            return
        try:
            self._append(b"".join(lines))
            self._failed = False
        except OSError as error:
            self.lost += len(lines)
            if not self._failed:
                self._failed = True
                _logger.error("cannot write the access log %s: %s", self._path, error)  # noqa: TRY400 - the disk may be full

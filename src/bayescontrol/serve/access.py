"""Who may send requests, and how many: bearer tokens and limits.

    Authorization: Bearer t      allowed iff SHA-256(t) = SHA-256(t_i) for some i

Tokens come from a file or the environment, never from the command line, which every user of a
machine can read. All digests are compared, each in constant time, so that the time of an answer
reveals nothing about a token.
"""

import hashlib
import hmac
import math
import os
import re
import stat
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from bayescontrol.errors import BayesControlError
from bayescontrol.serve.http_errors import Refused

#: The environment variable that holds a token.
VARIABLE: Final = "BAYESCONTROL_TOKEN"
#: The least number of characters of a token.
_MIN_LENGTH: Final = 16
#: Maximum number of callers whose rate is remembered.
_MAX_CALLERS: Final = 10_000
#: The part of a quota that one caller may use, at least 1.
_SHARE: Final = 0.75
#: The command that prints a new token, for messages.
_GENERATE: Final = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'


class InvalidToken(BayesControlError, ValueError):
    """A token is too short to be secret, or cannot be sent in a header."""


class PublicBind(BayesControlError, ValueError):
    """Other machines could reach the server, which needs no token."""


class Tokens:
    """The digests of the valid tokens. Without tokens, every request is allowed.

    >>> tokens = Tokens(["a-token-that-is-long-enough"])
    >>> tokens.caller(b"Bearer a-token-that-is-long-enough") is not None
    True
    >>> tokens.caller(b"Bearer guess"), tokens.caller(None)
    (None, None)
    """

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable):
            # The value is not shown: it may be a secret.
            raise InvalidToken(f"tokens is a {type(tokens).__name__}: give a list of strings")
        valid = {_require_long(token).encode() for token in tokens}
        self._digests = tuple(hashlib.sha256(token).digest() for token in valid)

    def __bool__(self) -> bool:
        """Whether a token is needed."""
        return bool(self._digests)

    def caller(self, authorization: bytes | None) -> bytes | None:
        """Return the digest of the token in the header if it is valid, else None."""
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        sent, caller = hashlib.sha256(token.strip()).digest(), None
        for digest in self._digests:
            if hmac.compare_digest(digest, sent):
                caller = digest  # no early exit: the time must not depend on the token
        return caller

    @classmethod
    def found(
        cls, file: Path | None = None, environment: Mapping[str, str] = os.environ
    ) -> "Tokens":
        """Read tokens from a file, one per line, and from the environment.

        >>> bool(Tokens.found(None, {"BAYESCONTROL_TOKEN": "a-token-that-is-long-enough"}))
        True
        """
        tokens = [] if file is None else _read_tokens(file)
        if VARIABLE in environment:
            tokens.append(environment[VARIABLE].strip())
        return cls(tokens)


def _require_long(token: str) -> str:
    """Return the token; raise `InvalidToken` if it is too short or cannot be sent in a header."""
    require_sendable(token)
    if len(token) < _MIN_LENGTH:
        raise InvalidToken(
            f"a token of {len(token)} characters can be guessed: use at least {_MIN_LENGTH}; "
            f"generate one with {_GENERATE}"
        )
    return token


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


def _read_tokens(file: Path) -> list[str]:
    """Return the lines of the file that are neither empty nor comments."""
    try:
        mode = file.stat().st_mode
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidToken(f"cannot read tokens from {file}: {error}") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        warnings.warn(f"other users can read {file}: chmod 600 {file}", stacklevel=3)
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise InvalidToken(f"{file} contains no token: write one per line ({_GENERATE})")
    return tokens


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
        for field in fields(self):
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

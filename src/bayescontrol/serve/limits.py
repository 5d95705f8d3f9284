"""How much at once: bodies, requests a second, requests under way, time.

    413  the body is larger than `body` bytes
    429  a caller's bucket is empty: `rate` tokens a second flow in, up to one second's worth;
         without a valid token `failures` a second, and never more than `rate`
    503  `concurrency` requests are under way, or the answer took longer than `deadline` seconds
    408  the client took longer than `deadline` seconds to send its request

The limits of a connection and of a request's head are enforced by `serve.protocol`.
Who is turned away is told when to come back; nothing is queued that cannot be served.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from bayescontrol.serve.problems import Refused

_CALLERS: Final = 10_000


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    >>> Limits(concurrency=0)
    Traceback (most recent call last):
    ValueError: concurrency=0: it must be positive
    """

    #: Bytes of a body.
    body: int = 1_048_576
    #: Bytes of a request's head, the request line included.
    head: int = 65_536
    #: Bytes of the path and query in the request line.
    line: int = 32_768
    #: Header fields of a request.
    headers: int = 100
    #: Requests a second from one caller (a token, or an address); None: as many as can be served.
    rate: float | None = None
    #: Requests a second without a valid token, from one address, where a token is needed.
    failures: float = 10.0
    #: Requests under way.
    concurrency: int = 256
    #: Seconds for a request, from its first byte to the beginning of its answer.
    deadline: float = 10.0
    #: Connections that are open.
    connections: int = 512
    #: Seconds that a connection may stay open without a request.
    idle: float = 30.0
    #: Pages that listen to the stream of events.
    streams: int = 32
    #: Agents in the store, beyond which none is made over HTTP.
    agents: int = 1_000
    #: Seconds for what is under way when the server is stopped.
    grace: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{field.name}={value!r}: it must be positive")


class Buckets:
    """A bucket of tokens for each caller: the rate on the long run, `burst` of them at once.

    Without a `burst` it is a second's worth.

    >>> clock = iter([0.0, 0.0, 0.0, 0.5]).__next__
    >>> buckets = Buckets(2.0, clock)
    >>> buckets.take("me"), buckets.take("me")
    (None, None)
    >>> buckets.take("me")
    Traceback (most recent call last):
    bayescontrol.serve.problems.Refused: more than 2 requests a second
    >>> buckets.take("me")
    """

    def __init__(
        self,
        rate: float,
        clock: Callable[[], float] = time.monotonic,
        burst: float | None = None,
    ) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(rate, 1.0) if burst is None else burst
        self._left: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def take(self, caller: object) -> None:
        """One token of the caller's; `Refused` if there is none, with the time until there is."""
        now = self._clock()
        left, then = self._left.get(caller, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        taken = left >= 1.0
        self._left[caller] = (left - 1.0 if taken else left, now)
        self._left.move_to_end(caller)
        if len(self._left) > _CALLERS:  # who was here longest ago has a full bucket, most likely
            self._left.popitem(last=False)
        if not taken:
            wait = math.ceil((1.0 - left) / self._rate)
            raise Refused(
                "too-many-requests",
                f"more than {self._rate:g} requests a second",
                {"Retry-After": str(max(wait, 1))},
            )

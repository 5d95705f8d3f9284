"""Group commit: who comes while the disk is busy goes together with the next.

    one caller leads: it takes all that waits, has it written at once, and hands on
    the others sleep until theirs is durable; each who wakes wakes the next

Who has just been served often comes again at once. So the leader waits for those, as long as they
keep coming: else the callers fall into two groups, which take turns, and half of each flush is
given away. With one thread it costs nothing. Callers at the same time have no order among
themselves, so the leader may choose one.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from time import perf_counter
from typing import Any, Final, Generic, TypeVar

from bayescontrol.errors import StoreFailed

R = TypeVar("R", bound="Request")

#: Seconds between two comers, at most.
_PAUSE: Final = 2e-4
#: Seconds in which all must have come, or this share of what the last write took.
_WAIT, _SHARE = 1e-3, 0.25
#: Turns without waiting, after one that waited for more than came.
_RESERVE: Final = 16


class Request:
    """Something to be done durably: it ends with a result or an error.

    >>> request = Request()
    >>> request.result = 3
    >>> request.answer()
    3
    """

    __slots__ = ("_gone", "_party", "_wake", "error", "refused", "result")

    _wake: threading.Lock
    #: Whether its caller was interrupted, and need not be woken.
    _gone: bool
    #: Of one who was woken since it is done: those who are still to be woken.
    _party: "deque[Any] | None"

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        #: Whether the error is the agent's word on the value that came with the request.
        self.refused = False

    def answer(self) -> Any:
        """The result, or the error raised."""
        if self.error is not None:
            raise self.error
        return self.result

    def prepare(self) -> None:
        """Be ready to sleep."""
        self._gone, self._party = False, None
        self._wake = threading.Lock()
        self._wake.acquire()

    def sleep(self) -> None:
        """Until woken."""
        self._wake.acquire()


class Committer(Generic[R]):
    """`submit` returns when `write` has dealt with the request, alone or with others.

    `write(requests)` sets the result or the error of each; what it raises is the error of all.

    >>> def write(requests):
    ...     for request in requests:
    ...         request.result = len(requests)
    >>> Committer(write).submit(Request())
    1
    """

    def __init__(self, write: Callable[[list[R]], None], most: int = 1024) -> None:
        self._write, self._most = write, most
        self._guard = threading.Lock()
        self._waiting: list[R] = []
        # Who leads, or was woken to; what it writes, and whether that has been dealt with.
        self._leader: R | None = None
        self._batch: list[R] = []
        self._dealt = True
        # While the leader waits for others: what wakes it. They are complete with so many.
        self._complete: threading.Lock | None = None
        self._expected = 0
        self._longest = _WAIT
        self._reserve = 0

    def submit(self, request: R) -> Any:
        """The request's result, when it is durable; its error, if it has one."""
        request.prepare()
        try:
            with self._guard:
                leads = self._leader is None
                if leads:
                    self._leader = request
                else:
                    self._waiting.append(request)
                    if self._complete is not None and len(self._waiting) >= self._expected:
                        self._complete.release()
                        self._complete = None
            if leads or self._slept(request):
                self._lead(request)
        except BaseException:  # interrupted, wherever that was: nobody may wait for it
            while not request._gone or self._leader is request or request._party:
                with suppress(KeyboardInterrupt):  # another: it must be left all the same
                    self._leave(request)
            raise
        return request.answer()

    def _leave(self, request: R) -> None:
        with self._guard:
            if request in self._waiting:
                self._waiting.remove(request)
            leads = self._leader is request
            if leads and not self._dealt:
                for one in self._batch:
                    one.error = one.error or _interrupted()
            if leads:
                request._party = deque(self._batch[1:])
            request._gone = True
        if leads:
            self._hand_on(len(self._batch))
        if request._party:
            self._wake_one(request._party)
        request._party = None

    # -- who sleeps ------------------------------------------------------------------------------

    def _slept(self, request: R) -> bool:
        """Whether the request is to lead, and not done already."""
        request.sleep()
        if self._leader is not request:
            if request._party:
                self._wake_one(request._party)
            return False
        with self._guard:
            self._waiting.remove(request)
        return True

    def _wake_one(self, party: deque[R]) -> None:
        """The first of them, who wakes the next: all at once would only queue for the processor."""
        with self._guard:
            while party:
                request = party[0]
                if not request._gone and request._party is None:
                    request._party = party
                    request._wake.release()
                    party.popleft()
                    return
                party.popleft()

    # -- who leads -------------------------------------------------------------------------------

    def _lead(self, mine: R) -> None:
        if len(self._waiting) < self._expected:
            self._gather()
        with self._guard:
            batch = [mine, *self._waiting[: self._most - 1]]
            self._batch, self._dealt = batch, False
            del self._waiting[: self._most - 1]
        began = perf_counter()
        try:
            self._write(batch)
        except Exception as error:  # whoever waits must hear of it, each in its own words
            for request in batch:
                if request.error is None:
                    request.error = own(error)
        self._dealt = True
        self._longest = max(_WAIT, _SHARE * (perf_counter() - began))
        party = mine._party = deque(batch[1:])
        self._hand_on(len(batch))
        self._wake_one(party)

    def _gather(self) -> None:
        """Wait for those who were served last, as long as they keep coming."""
        with self._guard:
            came = len(self._waiting)
            if came >= self._expected:
                return
            complete = self._complete = threading.Lock()
            complete.acquire()
        end = perf_counter() + self._longest
        while not complete.acquire(timeout=_PAUSE):
            with self._guard:
                before, came = came, len(self._waiting)
                if came > before and perf_counter() < end:
                    continue
                self._complete, self._reserve = None, _RESERVE
                return

    def _hand_on(self, served: int = 0) -> None:
        """The next leads, if there is one; it may expect so many to come again."""
        with self._guard:
            self._complete = None
            self._expected = 0
            if self._reserve:
                self._reserve -= 1
            else:
                self._expected = min(served + len(self._waiting), self._most) - 1
            heir = self._waiting[0] if self._waiting else None
            self._leader, self._batch = heir, []
            if heir is not None:
                heir._wake.release()  # no function of ours, which an interrupt could keep out


def own(error: Exception) -> Exception:
    """The same for another thread: a raised error grows with every frame that it passes.

    >>> one = ValueError("no room")
    >>> own(one), own(one) is one, own(one).__cause__ is one
    (ValueError('no room'), False, True)
    """
    try:
        twin = copy(error)
    except Exception:
        return error
    twin.__cause__ = error.__cause__ or error
    return twin


def _interrupted() -> StoreFailed:
    return StoreFailed(
        "who wrote was interrupted; whether this was written is unknown: ask again under the same "
        "key"
    )

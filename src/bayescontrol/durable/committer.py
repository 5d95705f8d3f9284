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
from time import perf_counter
from typing import Any, Final, Generic, TypeVar

__all__ = ["Committer", "Request"]

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

    __slots__ = ("_gone", "_party", "_wake", "error", "result")

    _wake: threading.Lock
    #: Whether its caller was interrupted, and need not be woken.
    _gone: bool
    #: Of one who was woken since it is done: those who are still to be woken.
    _party: "deque[Any] | None"

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None

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

    def wake(self) -> None:
        """Done, or to lead."""
        self._wake.release()


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
        self._led = False
        self._heir: R | None = None
        # While the leader waits for others: what wakes it. They are complete with so many.
        self._complete: threading.Lock | None = None
        self._expected = 0
        self._longest = _WAIT
        self._reserve = 0

    def submit(self, request: R) -> Any:
        """The request's result, when it is durable; its error, if it has one."""
        with self._guard:
            leads = not self._led
            self._led = True
            if not leads:
                request.prepare()
                self._waiting.append(request)
                if self._complete is not None and len(self._waiting) >= self._expected:
                    self._complete.release()
                    self._complete = None
        if leads or self._slept(request):
            self._lead(request)
        return request.answer()

    # -- who sleeps ------------------------------------------------------------------------------

    def _slept(self, request: R) -> bool:
        """Whether the request is to lead, and not done already."""
        try:
            request.sleep()
        except BaseException:  # interrupted: it may have been written, and must not be waited for
            with self._guard:
                request._gone = True
                if request in self._waiting:
                    self._waiting.remove(request)
                heirless = self._heir is request
            if heirless:
                self._hand_on()
            raise
        finally:
            if request._party:
                self._wake_one(request._party)
        if self._heir is not request:
            return False
        with self._guard:
            self._heir = None
            self._waiting.remove(request)
        return True

    def _wake_one(self, party: deque[R]) -> None:
        """The first of them, who wakes the next: all at once would only queue for the processor."""
        with self._guard:
            while party:
                request = party.popleft()
                if not request._gone:
                    request._party = party
                    request.wake()
                    return

    # -- who leads -------------------------------------------------------------------------------

    def _lead(self, mine: R) -> None:
        if len(self._waiting) < self._expected:
            try:
                self._gather()
            except BaseException:  # interrupted: nothing of it was written
                self._hand_on()
                raise
        with self._guard:
            batch = [mine, *self._waiting[: self._most - 1]]
            del self._waiting[: self._most - 1]
        began = perf_counter()
        try:
            self._write(batch)
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            for request in batch:
                if request.error is None:
                    request.error = error
        finally:
            self._longest = max(_WAIT, _SHARE * (perf_counter() - began))
            self._hand_on(len(batch))
            if len(batch) > 1:
                self._wake_one(deque(batch[1:]))

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
            self._heir = self._waiting[0] if self._waiting else None
            self._led = self._heir is not None
            self._expected = 0
            if self._reserve:
                self._reserve -= 1
            else:
                self._expected = min(served + len(self._waiting), self._most) - 1
            if self._heir is not None:
                self._heir.wake()

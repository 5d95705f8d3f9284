"""Group commit: requests that arrive while the disk is busy are written together.

    one caller leads: it writes all waiting requests at once and appoints the next leader
    the others sleep until theirs is durable; each one that wakes wakes the next

Callers often send their next request at once. So the leader waits for those of the last batch,
as long as they keep coming: otherwise the callers would split into two groups that take turns, and
each flush would serve half of them. A single thread never waits. Requests that arrive at the same
time have no order among themselves, so the leader may choose one.
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

#: The longest gap between two arrivals that the leader waits for, in seconds.
_PAUSE: Final = 2e-4
#: The longest wait for a whole batch, in seconds, or as a share of the time of the last write.
_WAIT, _SHARE = 1e-3, 0.25
#: The number of batches without waiting, after a wait for callers that did not come.
_RESERVE: Final = 16


class Request:
    """Something to be written; it ends with a result or an error."""

    __slots__ = ("_followers", "_gone", "_wake", "error", "refused", "result")

    _wake: threading.Lock
    #: Whether its caller was interrupted, and need not be woken.
    _gone: bool
    #: Set when its caller is woken after the write: the requests still to be woken.
    _followers: "deque[Any] | None"

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        #: Whether the agent rejected the value that came with the request.
        self.refused = False

    def answer(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result

    def prepare(self) -> None:
        """Get ready to sleep."""
        self._gone, self._followers = False, None
        self._wake = threading.Lock()
        self._wake.acquire()

    def sleep(self) -> None:
        """Sleep until woken."""
        self._wake.acquire()


class Committer(Generic[R]):
    """Collects the requests of many threads into batches.

    `submit` returns when `write` has handled the request, alone or with others. `write(requests)`
    sets the result or the error of each; an exception that it raises is the error of all.

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
        # The request whose caller leads; the batch that it writes, and whether that is finished.
        self._leader: R | None = None
        self._batch: list[R] = []
        self._finished = True
        # While the leader waits for others: the lock that wakes it when `_expected` are waiting.
        self._complete: threading.Lock | None = None
        self._expected = 0
        self._longest = _WAIT
        self._reserve = 0

    def submit(self, request: R) -> Any:
        """Return the request's result when it is durable, or raise its error."""
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
        except BaseException:  # interrupted somewhere: nobody may wait for this request
            while not request._gone or self._leader is request or request._followers:
                with suppress(KeyboardInterrupt):  # a second interrupt must not stop the clean-up
                    self._leave(request)
            raise
        return request.answer()

    def _leave(self, request: R) -> None:
        with self._guard:
            if request in self._waiting:
                self._waiting.remove(request)
            leads = self._leader is request
            if leads and not self._finished:
                for one in self._batch:
                    one.error = one.error or _interrupted()
            if leads:
                request._followers = deque(self._batch[1:])
            request._gone = True
        if leads:
            self._hand_on(len(self._batch))
        if request._followers:
            self._wake_one(request._followers)
        request._followers = None

    # -- followers -------------------------------------------------------------------------------

    def _slept(self, request: R) -> bool:
        """Sleep; return whether this caller must now lead, because its request is not written."""
        request.sleep()
        if self._leader is not request:
            if request._followers:
                self._wake_one(request._followers)
            return False
        with self._guard:
            self._waiting.remove(request)
        return True

    def _wake_one(self, followers: deque[R]) -> None:
        """Wake the first one, which wakes the next: all at once would compete for the processor."""
        with self._guard:
            while followers:
                request = followers[0]
                if not request._gone and request._followers is None:
                    request._followers = followers
                    request._wake.release()
                    followers.popleft()
                    return
                followers.popleft()

    # -- the leader ------------------------------------------------------------------------------

    def _lead(self, mine: R) -> None:
        if len(self._waiting) < self._expected:
            self._gather()
        with self._guard:
            batch = [mine, *self._waiting[: self._most - 1]]
            self._batch, self._finished = batch, False
            del self._waiting[: self._most - 1]
        began = perf_counter()
        try:
            self._write(batch)
        except Exception as error:  # every waiting caller gets its own copy
            for request in batch:
                if request.error is None:
                    request.error = copy_error(error)
        self._finished = True
        self._longest = max(_WAIT, _SHARE * (perf_counter() - began))
        followers = mine._followers = deque(batch[1:])
        self._hand_on(len(batch))
        self._wake_one(followers)

    def _gather(self) -> None:
        """Wait for the callers of the last batch, as long as they keep coming."""
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
        """Appoint the next leader, which expects the callers just served to come again."""
        with self._guard:
            self._complete = None
            self._expected = 0
            if self._reserve:
                self._reserve -= 1
            else:
                self._expected = min(served + len(self._waiting), self._most) - 1
            successor = self._waiting[0] if self._waiting else None
            self._leader, self._batch = successor, []
            if successor is not None:
                successor._wake.release()  # no Python call here, which an interrupt could prevent


def copy_error(error: Exception) -> Exception:
    """Copy an error for another thread: a raised error collects the frames that it passes."""
    try:
        twin = copy(error)
    except Exception:
        return error
    twin.__cause__ = error.__cause__ or error
    return twin


def _interrupted() -> StoreFailed:
    return StoreFailed(
        "The writer was interrupted; this request may or may not be stored. Retry with the same key"
    )

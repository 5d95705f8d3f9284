"""Group commit: requests that arrive while the disk is busy are written together.

    one caller leads: it writes all waiting requests at once and appoints the next leader
    the others sleep until their request is durable; each caller that wakes up wakes the next

Callers often send their next request immediately. So the leader waits for the callers of the last
batch, as long as requests keep arriving: otherwise the callers would split into two groups that
take turns, and each flush would serve half of them. A single thread never waits. Requests that
arrive at the same time have no order among themselves, so `write` may choose one.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from time import perf_counter
from typing import Any, Final, Generic, TypeVar

from bayescontrol.errors import StoreFailed

R = TypeVar("R", bound="Request")

#: The longest gap between two arrivals that the leader waits for, in seconds.
_PAUSE: Final = 2e-4
#: The longest wait for a whole batch: this many seconds, or, if that is longer, this share of the
#: duration of the last write.
_WAIT, _SHARE_OF_WRITE = 1e-3, 0.25
#: After a wait for callers that did not come: write this many batches without waiting.
_BATCHES_WITHOUT_WAIT: Final = 16


class Request:
    """Something to be written. `write` sets either `result` or `error`."""

    __slots__ = ("_abandoned", "_followers", "_wake", "error", "rejected_by_agent", "result")

    _wake: threading.Lock
    #: Whether the caller was interrupted and no longer waits for this request.
    _abandoned: bool
    #: The requests of the batch that are still to be woken; set when this caller must wake the
    #: first of them.
    _followers: "deque[Any] | None"

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        #: Whether the agent rejected the value that came with the request.
        self.rejected_by_agent = False

    def answer(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result

    def prepare(self) -> None:
        """Get ready to sleep."""
        self._abandoned, self._followers = False, None
        self._wake = threading.Lock()
        self._wake.acquire()

    def sleep(self) -> None:
        """Sleep until woken."""
        self._wake.acquire()


class Committer(Generic[R]):
    """Collects the requests of many threads into batches.

    `submit` returns when `write` has handled the request, alone or with others. `write(requests)`
    sets the result or the error of each request; if `write` raises an exception, that is the error
    of all requests. A batch has at most `max_batch_size` requests.

    >>> def write(requests):
    ...     for request in requests:
    ...         request.result = len(requests)
    >>> Committer(write).submit(Request())
    1
    """

    def __init__(self, write: Callable[[list[R]], None], max_batch_size: int = 1024) -> None:
        self._write, self._max_batch_size = write, max_batch_size
        self._guard = threading.Lock()
        self._waiting: list[R] = []
        # The request whose caller leads, the batch that this caller writes, and whether the write
        # is finished.
        self._leader: R | None = None
        self._batch: list[R] = []
        self._finished = True
        # While the leader waits for requests: the lock that wakes it when `_expected` of them wait.
        self._batch_complete: threading.Lock | None = None
        self._expected = 0
        # The longest wait for `_expected` requests, in seconds.
        self._max_wait = _WAIT
        # The number of next batches for which the leader does not wait.
        self._batches_without_wait = 0

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
                    if self._batch_complete is not None and len(self._waiting) >= self._expected:
                        self._batch_complete.release()
                        self._batch_complete = None
            if leads or self._must_lead_after_sleep(request):
                self._lead(request)
        except BaseException:
            # Interrupted: clean up completely, so that no other caller waits for this one for ever.
            while not self._has_left(request):
                with suppress(KeyboardInterrupt):  # a second interrupt: try again
                    self._leave(request)
            raise
        return request.answer()

    def _has_left(self, request: R) -> bool:
        """Whether `_leave` is complete: withdrawn, not the leader, with no followers to wake."""
        return request._abandoned and self._leader is not request and not request._followers

    def _leave(self, request: R) -> None:
        """Withdraw an interrupted request, pass on the lead, and wake the followers of its caller.

        If this is interrupted too, `submit` calls it again.
        """
        with self._guard:
            if request in self._waiting:
                self._waiting.remove(request)
            leads = self._leader is request
            if leads and not self._finished:
                for member in self._batch:
                    member.error = member.error or StoreFailed(
                        "The writer was interrupted; this request may or may not be stored. Retry "
                        "with the same key"
                    )
            if leads:
                request._followers = deque(self._batch[1:])
            request._abandoned = True
        if leads:
            self._hand_on(len(self._batch))
        if request._followers:
            self._wake_first(request._followers)
        request._followers = None

    # -- followers -------------------------------------------------------------------------------

    def _must_lead_after_sleep(self, request: R) -> bool:
        """Sleep; return True if the request is not written yet and its caller must now lead."""
        request.sleep()
        if self._leader is not request:
            if request._followers:
                self._wake_first(request._followers)
            return False
        with self._guard:
            self._waiting.remove(request)
        return True

    def _wake_first(self, followers: deque[R]) -> None:
        """Wake the first caller, which wakes the next. All at once would compete for the CPU."""
        with self._guard:
            while followers:
                request = followers[0]
                if not request._abandoned and request._followers is None:
                    request._followers = followers
                    request._wake.release()
                    followers.popleft()
                    return
                followers.popleft()

    # -- the leader ------------------------------------------------------------------------------

    def _lead(self, mine: R) -> None:
        """Write `mine` and the waiting requests, appoint the next leader, and wake the callers."""
        if len(self._waiting) < self._expected:
            self._gather()
        with self._guard:
            batch = [mine, *self._waiting[: self._max_batch_size - 1]]
            self._batch, self._finished = batch, False
            del self._waiting[: self._max_batch_size - 1]
        began = perf_counter()
        try:
            self._write(batch)
        except Exception as error:
            fail_all(batch, error)
        self._finished = True
        self._max_wait = max(_WAIT, _SHARE_OF_WRITE * (perf_counter() - began))
        followers = mine._followers = deque(batch[1:])
        self._hand_on(len(batch))
        self._wake_first(followers)

    def _gather(self) -> None:
        """Wait until `_expected` requests wait, as long as they keep arriving."""
        with self._guard:
            arrived = len(self._waiting)
            if arrived >= self._expected:
                return
            batch_complete = self._batch_complete = threading.Lock()
            batch_complete.acquire()  # `submit` releases it
        end = perf_counter() + self._max_wait
        while not batch_complete.acquire(timeout=_PAUSE):
            with self._guard:
                arrived_before, arrived = arrived, len(self._waiting)
                if arrived > arrived_before and perf_counter() < end:
                    continue
                self._batch_complete, self._batches_without_wait = None, _BATCHES_WITHOUT_WAIT
                return

    def _hand_on(self, served: int) -> None:
        """Appoint the next leader, which expects the `served` callers to send a request again."""
        with self._guard:
            self._batch_complete = None
            self._expected = 0
            if self._batches_without_wait:
                self._batches_without_wait -= 1
            else:
                self._expected = min(served + len(self._waiting), self._max_batch_size) - 1
            successor = self._waiting[0] if self._waiting else None
            self._leader, self._batch = successor, []
            if successor is not None:
                successor._wake.release()  # no Python call here, which an interrupt could prevent


def fail_all(requests: Iterable[Request], error: Exception) -> None:
    """Set the error of the requests that have none; every caller gets its own copy."""
    for request in requests:
        request.error = request.error or copy_error(error)


def copy_error(error: Exception) -> Exception:
    """Copy an error for another thread: a raised error collects the frames that it passes.

    Return the error itself if it cannot be copied.
    """
    try:
        duplicate = copy(error)
    except Exception:
        return error
    duplicate.__cause__ = error.__cause__ or error
    return duplicate

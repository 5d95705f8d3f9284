"""Group commit: who comes while the disk is busy goes together with the next.

    one caller leads: it takes all that waits, has it written at once, and hands on
    the others sleep until theirs is durable

With one thread it costs nothing; with many a flush of the disk serves all of them. Callers at the
same time have no order among themselves, so the leader may choose one.
"""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Committer", "Request"]

R = TypeVar("R", bound="Request")


class Request:
    """Something to be done durably: it ends with a result or an error.

    >>> request = Request()
    >>> request.result = 3
    >>> request.answer()
    3
    """

    __slots__ = ("_wake", "error", "result")

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._wake: threading.Lock | None = None

    def answer(self) -> Any:
        """The result, or the error raised."""
        if self.error is not None:
            raise self.error
        return self.result

    def sleep(self) -> None:
        """Until woken."""
        assert self._wake is not None
        self._wake.acquire()

    def prepare(self) -> None:
        """Be ready to sleep."""
        self._wake = threading.Lock()
        self._wake.acquire()

    def wake(self) -> None:
        """Done, or to lead."""
        if self._wake is not None:
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

    def submit(self, request: R) -> Any:
        """The request's result, when it is durable; its error, if it has one."""
        with self._guard:
            leads = not self._led
            self._led = True
            if not leads:
                request.prepare()
                self._waiting.append(request)
        if not leads:
            leads = self._slept(request)
        if leads:
            self._lead(request)
        return request.answer()

    def _slept(self, request: R) -> bool:
        """Whether the request is to lead, and not done already."""
        try:
            request.sleep()
        except BaseException:  # interrupted: it may have been written, and must not be waited for
            with self._guard:
                if request in self._waiting:
                    self._waiting.remove(request)
                heir = self._next() if self._heir is request else None
            if heir is not None:
                heir.wake()
            raise
        with self._guard:
            if self._heir is not request:
                return False
            self._heir = None
            self._waiting.remove(request)
            return True

    def _next(self) -> R | None:
        """Who leads now; the guard is held."""
        self._heir = self._waiting[0] if self._waiting else None
        self._led = self._heir is not None
        return self._heir

    def _lead(self, mine: R) -> None:
        with self._guard:
            batch = [mine, *self._waiting[: self._most - 1]]
            del self._waiting[: self._most - 1]
        try:
            self._write(batch)
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            for request in batch:
                if request.error is None:
                    request.error = error
        finally:
            # The next leader first: it can compute while the others wake.
            with self._guard:
                heir = self._next()
            if heir is not None:
                heir.wake()
            for request in batch[1:]:
                request.wake()

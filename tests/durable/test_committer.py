"""Group commit: everyone is answered once, with what was written, and nobody waits for ever.

Who comes when is decided by events: each thread is held until the others are where they should be.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from bayescontrol.durable import committer as module
from bayescontrol.durable.committer import Committer, Request

#: Seconds after which a test is given up; nothing is measured by it.
HANGS = 60


class Number(Request):
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value


def until(happened: Callable[[], bool]) -> None:
    given_up = time.monotonic() + HANGS
    while not happened():
        assert time.monotonic() < given_up
        time.sleep(0.0005)


def started(works: list[Callable[[], Any]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def all_end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(timeout=HANGS)
        assert not thread.is_alive()


def queued(committer: Committer[Any], requests: list[Request]) -> list[threading.Thread]:
    """A thread for each request, which come in this order; an interrupt is the end of its own.

    The first leads, and its write must last until all the others wait.
    """

    def work(request: Request) -> None:
        with suppress(KeyboardInterrupt):
            committer.submit(request)

    def waits(i: int) -> bool:
        return committer._leader is not None and len(committer._waiting) == i

    threads: list[threading.Thread] = []
    for i, request in enumerate(requests):
        threads += started([partial(work, request)])
        until(partial(waits, i))
    return threads


def test_many_threads_are_each_answered_once_and_one_writes_at_a_time() -> None:
    inside = threading.Lock()
    observed: list[int] = []
    answers: list[tuple[int, int]] = []

    def write(requests: list[Number]) -> None:
        assert inside.acquire(blocking=False)
        for request in requests:
            observed.append(request.value)
            request.result = -request.value
        time.sleep(0.0002)  # others come meanwhile
        inside.release()

    committer = Committer(write)

    def work(i: int) -> None:
        for value in range(20 * i, 20 * i + 20):
            answer = committer.submit(Number(value))
            answers.append((value, answer))

    all_end(started([partial(work, i) for i in range(16)]))
    assert sorted(answers) == [(value, -value) for value in range(320)]
    assert sorted(observed) == list(range(320))


@pytest.mark.parametrize(
    ("most", "sizes"), [(1024, [1, 19]), (20, [1, 19]), (4, [1, 4, 4, 4, 4, 3]), (1, [1] * 20)]
)
def test_requests_during_a_write_join_the_next_batch_up_to_its_limit(
    most: int, sizes: list[int]
) -> None:
    go = threading.Event()
    batches: list[list[int]] = []

    def write(requests: list[Number]) -> None:
        go.wait(HANGS)
        batches.append([request.value for request in requests])

    threads = queued(Committer(write, max_batch_size=most), [Number(value) for value in range(20)])
    go.set()
    all_end(threads)
    assert list(map(len, batches)) == sizes
    assert [value for batch in batches for value in batch] == list(range(20))


def test_a_request_error_is_private_and_a_write_error_reaches_everybody() -> None:
    def write(requests: list[Number]) -> None:
        for request in requests:
            if request.value == 1:
                request.error = KeyError("mine")
            request.result = "done"
        if any(request.value == 2 for request in requests):
            raise OSError("everybody's")

    committer = Committer(write)
    with pytest.raises(KeyError, match="mine"):
        committer.submit(Number(1))
    with pytest.raises(OSError, match="everybody's"):
        committer.submit(Number(2))
    assert committer.submit(Number(3)) == "done"


def test_the_batch_waits_for_a_caller_that_returns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting, the callers fall into two groups, and a batch is half of them."""
    monkeypatch.setattr(module, "_PAUSE", HANGS)  # the leader waits until all have come
    callers, rounds = 8, 10
    go = threading.Event()
    sizes: list[int] = []

    def write(requests: list[Request]) -> None:
        go.wait(HANGS)
        sizes.append(len(requests))

    committer: Committer[Request] = Committer(write)

    def again() -> None:
        for _ in range(rounds - 1):
            committer.submit(Request())

    def first() -> None:
        committer.submit(Request())
        until(lambda: committer._batch_complete is not None)  # the next leader waits, for this one
        committer.submit(Request())
        again()

    def other() -> None:
        committer.submit(Request())
        again()

    threads = started([first])
    until(lambda: committer._leader is not None)
    threads += started([other] * (callers - 1))
    until(lambda: len(committer._waiting) == callers - 1)
    go.set()
    all_end(threads)
    assert sizes == [1] + rounds * [callers]


def test_the_batch_does_not_wait_for_callers_that_left() -> None:
    committer: Committer[Request] = Committer(lambda requests: None)
    waits = 0
    gather = committer._gather

    def counted() -> None:
        nonlocal waits
        waits += 1
        gather()

    committer._gather = counted  # type: ignore[method-assign]
    for _ in range(170):
        committer.submit(Request())
        if (
            committer._batches_without_wait == 0
        ):  # as if another had been served, who never comes again
            committer._expected = 1
    assert 8 <= waits <= 11


def test_a_waiter_that_is_interrupted_when_it_should_lead_does_not_stop_the_others() -> None:
    go = threading.Event()

    class Interrupted(Request):
        __slots__ = ()

        def sleep(self) -> None:
            until(lambda: committer._leader is self)
            raise KeyboardInterrupt

    def write(batch: list[Request]) -> None:
        go.wait(HANGS)
        for request in batch:
            request.result = "written"

    committer: Committer[Request] = Committer(write)
    requests = [Request(), Interrupted(), Request()]
    threads = queued(committer, requests)
    go.set()
    all_end(threads)
    assert [request.result for request in requests] == ["written", None, "written"]
    assert committer.submit(Request()) == "written"


def test_a_caller_interrupted_during_its_write_does_not_block_the_others() -> None:
    go, now = threading.Event(), threading.Event()

    class Interrupted(Request):
        __slots__ = ()

        def sleep(self) -> None:
            now.wait(HANGS)
            raise KeyboardInterrupt

    requests = [Request(), Request(), Interrupted(), Interrupted(), Request(), Request()]
    threads: list[threading.Thread] = []

    def write(batch: list[Request]) -> None:
        go.wait(HANGS)
        if len(batch) > 1:
            now.set()
            all_end(threads[2:4])
        for request in batch:
            request.result = "written"

    threads += queued(Committer(write), requests)
    go.set()
    all_end(threads)
    assert [request.result for request in requests] == ["written"] * 6


def test_a_caller_interrupted_on_waking_still_wakes_the_next() -> None:
    go = threading.Event()

    class Interrupted(Request):
        __slots__ = ()

        def sleep(self) -> None:
            super().sleep()
            raise KeyboardInterrupt

    def write(batch: list[Request]) -> None:
        go.wait(HANGS)

    requests = [Request(), Request(), Interrupted(), Interrupted(), Request(), Request()]
    threads = queued(Committer(write), requests)
    go.set()
    all_end(threads)


def test_a_leader_that_is_interrupted_while_it_waits_hands_on() -> None:
    committer: Committer[Number] = Committer(lambda requests: None)
    other = Number(2)

    def interrupted() -> None:
        other.prepare()
        committer._waiting.append(other)
        raise KeyboardInterrupt

    committer._expected = 2
    gather, committer._gather = committer._gather, interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        committer.submit(Number(1))
    committer._gather = gather  # type: ignore[method-assign]
    assert committer._leader is other
    assert committer._must_lead_after_sleep(other)
    committer._lead(other)
    committer.submit(Number(3))

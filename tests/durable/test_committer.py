"""Group commit: every request is answered exactly once, and no caller waits forever.

Events fix the order of arrival: each thread is held until the others have reached their place.
"""

import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from tests.durable.concurrency import join, run_together, start, wait_until
from tests.limits import TIMEOUT

from bayescontrol.durable.stores import committer as module
from bayescontrol.durable.stores.committer import Committer, Request


class Number(Request):
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value


def start_in_order(committer: Committer[Any], requests: list[Request]) -> list[threading.Thread]:
    """Submit each request in a thread, in this order; an interrupt ends only its own thread.

    The first request leads. Its write must last until all the others wait.
    """

    def work(request: Request) -> None:
        with suppress(KeyboardInterrupt):
            committer.submit(request)

    def waits(i: int) -> bool:
        return committer._leader is not None and len(committer._waiting) == i

    threads: list[threading.Thread] = []
    for i, request in enumerate(requests):
        threads += start(partial(work, request))
        wait_until(partial(waits, i))
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
        time.sleep(0.0002)  # others arrive meanwhile
        inside.release()

    committer = Committer(write)

    def work(i: int) -> None:
        for value in range(20 * i, 20 * i + 20):
            answer = committer.submit(Number(value))
            answers.append((value, answer))

    run_together(*(partial(work, i) for i in range(16)))
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
        go.wait(TIMEOUT)
        batches.append([request.value for request in requests])

    threads = start_in_order(
        Committer(write, max_batch_size=most), [Number(value) for value in range(20)]
    )
    go.set()
    join(threads)
    assert list(map(len, batches)) == sizes
    assert [value for batch in batches for value in batch] == list(range(20))


def test_a_request_error_reaches_its_caller_and_a_write_error_all_callers() -> None:
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
    monkeypatch.setattr(module, "_PAUSE", TIMEOUT)  # the leader waits until all have arrived
    callers, rounds = 8, 10
    go = threading.Event()
    sizes: list[int] = []

    def write(requests: list[Request]) -> None:
        go.wait(TIMEOUT)
        sizes.append(len(requests))

    committer: Committer[Request] = Committer(write)

    def again() -> None:
        for _ in range(rounds - 1):
            committer.submit(Request())

    def first() -> None:
        committer.submit(Request())
        # Wait until the next leader waits for this caller.
        wait_until(lambda: committer._batch_complete is not None)
        committer.submit(Request())
        again()

    def other() -> None:
        committer.submit(Request())
        again()

    threads = start(first)
    wait_until(lambda: committer._leader is not None)
    threads += start(*[other] * (callers - 1))
    wait_until(lambda: len(committer._waiting) == callers - 1)
    go.set()
    join(threads)
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
        if committer._batches_without_wait == 0:  # as if a caller were served and never returned
            committer._expected = 1
    assert 8 <= waits <= 11


@pytest.mark.parametrize("moment", ["when it should lead", "during its write", "on waking"])
def test_an_interrupted_caller_does_not_block_the_others(moment: str) -> None:
    go, writing = threading.Event(), threading.Event()

    class Interrupted(Request):
        __slots__ = ()

        def sleep(self) -> None:
            if moment == "when it should lead":
                wait_until(lambda: committer._leader is self)
            elif moment == "during its write":
                writing.wait(TIMEOUT)
            else:
                super().sleep()
            raise KeyboardInterrupt

    def write(batch: list[Request]) -> None:
        go.wait(TIMEOUT)
        if moment == "during its write" and len(batch) > 1:
            writing.set()
            join(threads[2:4])
        for request in batch:
            request.result = "written"

    threads: list[threading.Thread] = []
    committer: Committer[Request] = Committer(write)
    others = [Request(), Request(), Request()]
    if moment == "when it should lead":
        requests = [others[0], Interrupted(), *others[1:]]
    else:
        requests = [*others[:2], Interrupted(), Interrupted(), others[2]]
    threads += start_in_order(committer, requests)
    go.set()
    join(threads)
    assert [request.result for request in others] == ["written"] * 3
    assert committer.submit(Request()) == "written"


def test_a_leader_interrupted_while_it_waits_hands_over_to_the_next() -> None:
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

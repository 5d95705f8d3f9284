"""Group commit: everyone is answered once, with what was written, and nobody waits for ever."""

import threading
import time
from contextlib import suppress

import pytest

from bayescontrol.durable.committer import Committer, Request


class Number(Request):
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value


def test_many_threads_are_served_in_few_writes() -> None:
    batches: list[int] = []
    seen: list[int] = []

    def write(requests: list[Number]) -> None:
        batches.append(len(requests))
        time.sleep(0.002)
        for request in requests:
            seen.append(request.value)
            request.result = -request.value

    committer = Committer(write)
    answers: list[tuple[int, int]] = []

    def work(i: int) -> None:
        for k in range(20):
            value = 100 * i + k
            answers.append((value, committer.submit(Number(value))))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert len(answers) == 320
    assert all(answer == -value for value, answer in answers)
    assert sorted(seen) == sorted(value for value, _ in answers)
    assert len(batches) < 320 / 3


def test_one_writes_at_a_time() -> None:
    inside = threading.Lock()

    def write(requests: list[Request]) -> None:
        assert inside.acquire(blocking=False)
        time.sleep(0.0002)
        inside.release()

    committer = Committer(write)

    def work() -> None:
        for _ in range(30):
            committer.submit(Request())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()


def test_a_batch_has_its_limit() -> None:
    sizes: list[int] = []

    def write(requests: list[Request]) -> None:
        sizes.append(len(requests))
        time.sleep(0.005)

    committer = Committer(write, most=4)
    threads = [threading.Thread(target=lambda: committer.submit(Request())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert max(sizes) <= 4
    assert sum(sizes) == 20


def test_the_error_of_a_request_is_its_own_and_that_of_the_write_is_everybodys() -> None:
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


def test_a_waiter_that_is_interrupted_does_not_stop_the_others() -> None:
    started, go = threading.Event(), threading.Event()

    def write(requests: list[Request]) -> None:
        started.set()
        go.wait(10)

    class Interrupted(Request):
        __slots__ = ()

        def sleep(self) -> None:
            go.set()
            time.sleep(0.05)  # long enough to be chosen to lead
            raise KeyboardInterrupt

    committer = Committer(write)
    leader = threading.Thread(target=lambda: committer.submit(Request()))
    leader.start()
    started.wait(10)

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt):
            committer.submit(Interrupted())

    waiter = threading.Thread(target=interrupted)
    later = threading.Thread(target=lambda: committer.submit(Request()))
    waiter.start()
    later.start()
    for thread in (leader, waiter, later):
        thread.join(timeout=10)
        assert not thread.is_alive()
    committer.submit(Request())


def test_who_comes_again_at_once_is_waited_for() -> None:
    """Without waiting, the callers fall into two groups, and a batch is half of them."""
    sizes: list[int] = []

    def write(requests: list[Request]) -> None:
        sizes.append(len(requests))
        time.sleep(0.002)

    committer = Committer(write)

    def work() -> None:
        for _ in range(40):
            committer.submit(Request())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert sum(sizes) == 320
    assert sorted(sizes)[len(sizes) // 2] >= 7


def test_who_does_not_come_again_is_not_waited_for_every_time() -> None:
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
        if committer._reserve == 0:  # as if another had been served, who never comes again
            committer._expected = 1
    assert 8 <= waits <= 11


def _all_end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


def _queued(committer: Committer[Request], requests: list[Request]) -> list[threading.Thread]:
    """A thread for each request, which come in this order; an interrupt is the end of its own."""

    def work(request: Request) -> None:
        with suppress(KeyboardInterrupt):
            committer.submit(request)

    threads = []
    for i, request in enumerate(requests):
        thread = threading.Thread(target=work, args=(request,), daemon=True)
        thread.start()
        threads.append(thread)
        while i and len(committer._waiting) < i:
            time.sleep(0.0005)
    return threads


def test_who_is_interrupted_while_it_is_written_is_not_missed_by_those_behind() -> None:
    go, now = threading.Event(), threading.Event()

    class Interrupted(Request):
        __slots__ = ()

        def sleep(self) -> None:
            now.wait(10)
            raise KeyboardInterrupt

    requests = [Request(), Request(), Interrupted(), Interrupted(), Request(), Request()]
    threads: list[threading.Thread] = []

    def write(batch: list[Request]) -> None:
        go.wait(10)
        if len(batch) > 1:
            now.set()
            _all_end(threads[2:4])
        for request in batch:
            request.result = "written"

    threads += _queued(Committer(write), requests)
    go.set()
    _all_end(threads)
    assert [request.result for request in requests] == ["written"] * 6


def test_who_is_interrupted_when_it_wakes_still_wakes_the_next() -> None:
    go = threading.Event()

    class Interrupted(Request):
        __slots__ = ()

        def sleep(self) -> None:
            super().sleep()
            raise KeyboardInterrupt

    def write(batch: list[Request]) -> None:
        go.wait(10)

    requests = [Request(), Request(), Interrupted(), Interrupted(), Request(), Request()]
    threads = _queued(Committer(write), requests)
    go.set()
    _all_end(threads)


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
    assert committer._heir is other
    assert committer._slept(other)
    committer._lead(other)
    committer.submit(Number(3))

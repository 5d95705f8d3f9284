"""Group commit: everyone is answered once, with what was written, and nobody waits for ever."""

import threading
import time

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

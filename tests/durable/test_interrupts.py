"""Ctrl-C at any moment: no other thread hangs, and the agent stays usable."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.durable.agents import same_state
from tests.durable.concurrency import catch, join, run_together, start, wait_until
from tests.limits import TIMEOUT

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent, replay
from bayescontrol.durable.stores import committer
from bayescontrol.durable.stores.committer import Committer, Request
from bayescontrol.durable.stores.sqlite_file import SqliteFile
from bayescontrol.errors import StoreFailed

MODEL = BernoulliBandit(["red", "blue"])
FUNCTIONS = (
    *("submit", "prepare", "_must_lead_after_sleep", "sleep"),
    *("_wake_first", "_lead", "_gather", "_hand_on"),
)


class Interrupt:
    """A trace function that raises KeyboardInterrupt at the start of the nth call of a function."""

    def __init__(self, function: str, nth: int) -> None:
        self._function, self._left = function, nth

    def __call__(self, frame: Any, event: str, arg: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename == committer.__file__:
            self._left -= code.co_name == self._function
            if self._left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("role", ["leader", "heir", "follower"])
def test_an_interrupt_at_the_start_of_any_function_leaves_no_thread_waiting(
    role: str, function: str, nth: int
) -> None:
    writing, go = threading.Event(), threading.Event()

    def write(batch: list[Request]) -> None:
        writing.set()
        go.wait(TIMEOUT)

    shared = Committer(write)
    threads: list[threading.Thread] = []

    def submit(count: int) -> None:
        threads.extend(start(*[lambda: shared.submit(Request())] * count))

    def late() -> None:
        writing.wait(TIMEOUT)
        submit(3)
        time.sleep(0.02)
        go.set()

    before = {"leader": 0, "heir": 1, "follower": 2}[role]
    if before:
        submit(1)
        writing.wait(TIMEOUT)
        submit(before - 1)
    helper = start(late)
    traced = sys.gettrace()
    sys.settrace(Interrupt(function, nth))
    try:
        shared.submit(Request())
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(traced)
    writing.set()  # if the interrupt came before anyone wrote
    go.set()
    join(helper)
    submit(1)
    join(threads)


def test_callers_behind_an_interrupted_leader_get_an_unknown_outcome_error() -> None:
    entered = threading.Event()

    def write(batch: list[Request]) -> None:
        if len(batch) == 1:
            entered.set()
            wait_until(lambda: len(shared._waiting) == 2)
        else:
            raise KeyboardInterrupt

    shared = Committer(write)
    result: list[BaseException | None] = []

    def ask() -> None:
        result.append(catch(lambda: shared.submit(Request())))

    threads = start(ask)
    entered.wait(TIMEOUT)
    join(threads + start(ask, ask))
    kinds = sorted(type(error).__name__ for error in result)
    assert kinds == ["KeyboardInterrupt", "NoneType", "StoreFailed"]


def test_an_agent_interrupted_after_a_commit_continues_from_its_log(tmp_path: Path) -> None:
    with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", "shop", MODEL, seed=1) as agent:
        file = agent._log._file  # type: ignore[attr-defined]
        inner = file.write

        def interrupted(function: Any) -> None:
            inner(function)
            raise KeyboardInterrupt

        file.write = interrupted
        with pytest.raises(KeyboardInterrupt):
            agent.act(key="visit-1")
        file.write = inner
        assert agent.act(key="visit-1").id == "2"
        assert agent.observe("2", 1)
        assert agent.head == 3
        assert same_state(agent, replay(agent.log()).state)


def test_an_agent_survives_real_interrupts(tmp_path: Path) -> None:
    stop, is_asking, hits = threading.Event(), False, 0

    def disturb() -> None:
        while not stop.wait(0.003):
            os.kill(os.getpid(), signal.SIGINT)

    def interrupt(signum: int, frame: object) -> None:
        if is_asking:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupt)
    disturber = threading.Thread(target=disturb)
    with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", "shop", MODEL, seed=1) as agent:
        for _ in range(3):  # load the kernels: an interrupt would abort their compilation
            agent.observe(agent.act(), 1)
            replay(agent.log())
        disturber.start()
        for _ in range(400):
            try:
                is_asking = True
                agent.act()
                is_asking = False
            except KeyboardInterrupt:
                is_asking = False
                hits += 1
        stop.set()
        disturber.join()
        signal.signal(signal.SIGINT, previous)
        assert hits > 3
        agent.posterior()  # the last may have been interrupted after its commit
        before = agent.head
        assert agent.act().id == str(before + 1)
        assert replay(agent.log()).events == before + 1


def test_an_interrupt_at_the_start_of_a_transaction_leaves_none_open(tmp_path: Path) -> None:
    file = SqliteFile(str(tmp_path / "shop.db"))
    db = file._db

    class Interrupted:
        def __getattr__(self, name: str) -> Any:
            return getattr(db, name)

        def execute(self, query: str, *values: Any) -> Any:
            result = db.execute(query, *values)  # type: ignore[union-attr]
            if query.startswith("BEGIN"):
                raise KeyboardInterrupt
            return result

    file._db = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        file.write(lambda _: None)
    file._db = db
    file.write(lambda _: None)
    file.close()


def test_each_waiting_caller_gets_a_separate_error(tmp_path: Path) -> None:
    broken = StoreFailed("broken")

    def write(batch: list[Request]) -> None:
        if len(batch) == 1:
            wait_until(lambda: len(shared._waiting) == 8)
        raise broken

    shared = Committer(write)
    result: list[BaseException | None] = []
    run_together(*[lambda: result.append(catch(lambda: shared.submit(Request())))] * 9)
    assert len({id(error) for error in result}) == 9
    assert {str(error) for error in result} == {"broken"}

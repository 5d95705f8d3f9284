"""Batches in which a request closes the agent, a write fails or a value is rejected."""

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.durable.agents import same_state
from tests.durable.concurrency import catch, join, start, wait_until
from tests.limits import TIMEOUT

from bayescontrol import BernoulliBandit
from bayescontrol.durable import DurableAgent, open_agent, replay
from bayescontrol.durable.driver import Driver
from bayescontrol.durable.requests import Act, Observe
from bayescontrol.errors import BadEvidence, ConflictingFeedback, DiskFull

MODEL = BernoulliBandit(["red", "blue"])


@pytest.mark.parametrize("error", [DiskFull("no room"), ConflictingFeedback("of another")])
def test_closing_in_a_failing_batch_still_closes(tmp_path: Path, error: Exception) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    agent = open_agent(url, "shop", MODEL, seed=1)
    busy, go, append = threading.Event(), threading.Event(), agent._log.append

    def first_then_fail(rows: Any) -> None:
        if busy.is_set():
            raise error
        busy.set()
        go.wait(TIMEOUT)
        append(rows)

    agent._log.append = first_then_fail  # type: ignore[method-assign]
    result: list[type] = []

    def act() -> None:
        result.append(type(catch(agent.act)))

    threads = start(act)
    assert busy.wait(TIMEOUT)
    for i, work in enumerate((act, agent.close), 1):
        threads += start(work)
        wait_until(lambda i=i: len(agent._committer._waiting) == i)  # type: ignore[misc]
    go.set()
    join(threads)
    assert type(error) in result
    with open_agent(url, "shop") as again:
        assert again.head == 2


def test_requests_of_a_batch_that_cannot_be_written_get_errors_and_no_results() -> None:
    with open_agent("sqlite:///:memory:", "shop", MODEL, seed=1) as agent:
        d, append = agent.act(), agent._log.append
        agent._log.append = _raises(DiskFull("no room"))  # type: ignore[method-assign]
        requests = [Act(None, None), Observe(d, 1), Act(None, "visit-81")]
        agent.handle(requests)
        assert [type(r.error) for r in requests] == [DiskFull] * 3
        assert [r.result for r in requests] == [None] * 3
        agent._log.append = append  # type: ignore[method-assign]
        assert agent.observe(d, 1)


def test_a_failed_snapshot_does_not_fail_the_decision(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with open_agent(url, "shop", MODEL, seed=1, snapshot_every=2) as agent:
        agent._log.save_snapshot = _raises(MemoryError("no memory"))  # type: ignore[method-assign]
        assert [agent.act().id for _ in range(4)] == ["2", "3", "4", "5"]
        agent._log.save_snapshot = lambda *_: None  # type: ignore[method-assign]


def _raises(error: Exception) -> Any:
    def raising(*_: object) -> None:
        raise error

    return raising


def test_rejected_values_do_not_affect_the_rest_of_the_batch() -> None:
    def open_with_decisions() -> DurableAgent:
        agent = open_agent("sqlite:///:memory:", "shop", MODEL, seed=1)
        for _ in range(40):
            agent.act()
        return agent

    with open_with_decisions() as agent, open_with_decisions() as twin:
        good = [Observe(str(n), n % 2) for n in range(2, 22)]
        bad = [Observe(str(n), 0.5) for n in range(22, 42)]
        mixed = [one for pair in zip(bad, good, strict=True) for one in pair]
        agent.handle([*mixed, Act(None, None)])
        twin.handle([Act(None, None), *(Observe(str(n), n % 2) for n in range(2, 22))])
        assert all(type(one.error) is BadEvidence and one.rejected_by_agent for one in bad)
        assert [one.result for one in good] == [True] * 20
        assert same_state(agent, twin)
        assert replay(agent.log()).events == agent.head == twin.head


def test_rejected_values_cost_a_linear_number_of_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies, copy = [0], Driver.copy

    def counted(self: Driver) -> Driver:
        copies[0] += 1
        return copy(self)

    with open_agent("sqlite:///:memory:", "shop", MODEL, seed=1) as agent:
        for _ in range(100):
            agent.act()
        monkeypatch.setattr(Driver, "copy", counted)
        requests = [Observe(str(n), 0.5 if n % 2 else 1) for n in range(2, 102)]
        agent.handle(requests)
        assert sum(one.error is not None for one in requests) == 50
        assert copies[0] <= 102


def test_probabilities_of_concurrent_acts_are_those_of_acts_one_after_the_other() -> None:
    """In a changing world time goes on at every decision, also within a batch."""
    problem = MODEL.changing(hazards=[0.3])
    with (
        open_agent("sqlite:///:memory:", "shop", problem, seed=1) as agent,
        open_agent("sqlite:///:memory:", "shop", problem, seed=1) as twin,
    ):
        for each in (agent, twin):
            for _ in range(10):
                d = each.act()
                each.observe(d, int(d.action == "red"))
        acts = [Act(None, None) for _ in range(5)]
        agent.handle(acts)
        together = [act.result.probabilities for act in acts]
        assert together == [twin.act().probabilities for _ in range(5)]
        assert len({p["red"] for p in together}) == 5

"""Amendments of several processes: what one appends while another folds the log again.

Two agents with a store each stand for two processes. `between` appends events of one at the moment
at which the other has read the head of the log.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.durable.agents import same_state

from bayescontrol import BernoulliBandit
from bayescontrol.durable import (
    Configuration,
    DurableAgent,
    Observe,
    Observed,
    Withdraw,
    open_agent,
    replay,
)
from bayescontrol.durable.decisions import Decisions
from bayescontrol.errors import BadEvidence

SHOP = BernoulliBandit(["red", "blue"])


@pytest.fixture
def two(url: str) -> Iterator[tuple[DurableAgent, DurableAgent]]:
    with open_agent(url, "shop", SHOP, seed=1) as one, open_agent(url, "shop") as other:
        yield one, other


@contextmanager
def between(agent: DurableAgent, happens: Callable[[], object]) -> Iterator[None]:
    """Let something happen once, after the next time the agent reads the head of its log."""
    head, log = agent._log.head, agent._log

    def head_then() -> int:
        log.head = head  # type: ignore[method-assign]
        found = head()
        happens()
        return found

    log.head = head_then  # type: ignore[method-assign]
    yield
    log.head = head  # type: ignore[method-assign]


@pytest.mark.parametrize("window", [None, 0.0])
def test_events_that_come_while_the_log_is_folded_again_are_noted(
    two: tuple[DurableAgent, DurableAgent], window: float | None
) -> None:
    one, other = two
    if window is not None:
        one.configure(Configuration(window=3_600.0, default=0))
    first, second = one.act(), one.act()
    assert one.observe(first, 1)
    assert other.withdraw(first)
    with between(one, lambda: other.observe(second, 1)):
        one.posterior()
    if window is not None:  # the window is over at once
        one.configure(Configuration(window=window, default=0))
        assert one.settle() == 0
    assert one.observe(second, 1) is False
    assert one.withdraw(second) is True
    assert same_state(one, replay(one.log()).state)
    assert same_state(other, one.state())


def test_a_later_amendment_of_another_process_is_no_damage(
    two: tuple[DurableAgent, DurableAgent],
) -> None:
    one, other = two
    decisions = [one.act() for _ in range(3)]
    for d in decisions:
        one.observe(d, 1)

    def amend_more() -> None:  # more events than the turn of `one` has
        other.withdraw(decisions[1])
        other.withdraw(decisions[2])

    batch: list[Any] = [Withdraw(decisions[0].id), Observe(one.act(), 7)]  # each one alone
    with between(one, amend_more):
        one.handle(batch)
    assert (batch[0].result, type(batch[1].error)) == (True, BadEvidence)
    assert not any(one.explain(d).answered for d in decisions)
    assert same_state(one, replay(one.log()).state)
    assert same_state(other, one.state())


def test_a_default_that_two_processes_find_due_is_recorded_once(
    two: tuple[DurableAgent, DurableAgent],
) -> None:
    one, other = two
    d = one.act()
    one.configure(Configuration(window=0.0, default=0))
    late = one.act()
    with between(one, other.settle):
        assert one.observe(d, 1) is True  # its batch has the same default
    found = [(e.n, e.default) for e in one.log() if isinstance(e, Observed)]
    assert sorted(found) == [(int(d.id), False), (int(late.id), True)]
    answer = Decisions(one._log).find_answer(int(late.id))
    assert answer is not None
    assert answer.is_default

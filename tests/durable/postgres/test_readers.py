"""Concurrent readers, writers and processes of one agent: every event is learned once."""

from functools import partial
from typing import Any

from tests.durable.agents import same_state
from tests.durable.concurrency import run_together

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Act, DurableAgent, Observe, open_agent, open_store, replay
from bayescontrol.mdp import GibbsMDP

MODEL = BernoulliBandit(["red", "blue"])


def after_next_commit(agent: DurableAgent, do: Any) -> None:
    """Call `do` once, when the next append is committed and before the agent learns it."""
    append = agent._log.append

    def appended(rows: Any) -> None:
        agent._log.append = append  # type: ignore[method-assign]
        append(rows)
        do()

    agent._log.append = appended  # type: ignore[method-assign]


def require_equals_replay(agent: DurableAgent) -> None:
    assert same_state(agent, replay(agent.log()).state)


def test_events_read_between_a_commit_and_its_update_are_not_learned_twice(url: str) -> None:
    with open_agent(url, "shop", MODEL, seed=1) as agent, open_agent(url, "shop", MODEL) as other:
        d = agent.act()

        def meanwhile() -> None:
            other.observe(d, 1)
            run_together(agent.posterior)

        after_next_commit(agent, meanwhile)
        agent.act()
        require_equals_replay(agent)
        agent.act()
        require_equals_replay(agent)
        require_equals_replay(other)


def before_each_head(agent: DurableAgent, do: Any) -> None:
    """Call `do` whenever the agent asks the store for the head of the log."""
    head = agent._log.head

    def called_head() -> int:
        do()
        return head()

    agent._log.head = called_head  # type: ignore[method-assign]


def test_one_query_reads_a_consistent_state(url: str) -> None:
    with open_agent(url, "shop", MODEL, seed=1) as writer, open_agent(url, "shop", MODEL) as reader:
        before_each_head(reader, lambda: writer.observe(writer.act(), 1))

        def read(rule: Any) -> tuple[int, int, int, int]:
            before, posterior = reader.head, reader.posterior()
            counts = sum(row["count"] for row in posterior.values())
            return before, rule.belief.count, counts, reader.head

        for _ in range(3):
            before, count, counts, after = reader.ask(read)
            assert before == after == 1 + 2 * count == 1 + 2 * counts


def test_errors_of_an_attempt_that_lost_its_race_are_discarded(url: str) -> None:
    model = GibbsMDP(2, start=0)
    with open_agent(url, "robot", model, seed=1) as agent, open_agent(url, "robot", model) as other:
        d = agent.act()
        append = agent._log.append

        def lost(rows: Any) -> None:
            agent._log.append = append  # type: ignore[method-assign]
            other.observe(d, (1.0, 1))
            append(rows)

        agent._log.append = lost  # type: ignore[method-assign]
        act, answer = Act(None, None), Observe(d.id, (1.0, 1))
        agent.handle([act, answer])
        # An observation is due in the first attempt, but not after the other process has sent it.
        assert act.error is None
        assert act.result.id == "4"
        assert answer.result is False


def test_readers_and_queues_of_many_agents_do_not_wait_for_each_other(url: str) -> None:
    store = open_store(url)
    agents = [open_agent(store, f"shop {i}", MODEL, seed=i) for i in range(8)]

    def act(agent: DurableAgent) -> None:
        for _ in range(10):
            agent._log._queued_turns = 32  # type: ignore[attr-defined]  # as under contention
            agent.act()

    def read(agent: DurableAgent) -> None:
        for _ in range(30):
            agent.posterior()

    run_together(*(partial(work, agent) for agent in agents for work in (act, read)))
    for agent in agents:
        assert agent.head == 11
        agent.close()
    store.close()

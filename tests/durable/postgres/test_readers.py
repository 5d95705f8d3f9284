"""Readers beside a writer, and other processes beside both: every event is learnt once."""

import threading
from typing import Any

from bayescontrol import BernoulliBandit
from bayescontrol.durable import (
    Act,
    DurableAgent,
    Observe,
    open_agent,
    open_store,
    replay,
)
from bayescontrol.mdp import GibbsMDP

MODEL = BernoulliBandit(["red", "blue"])
#: No thread needs so long; it guards against hanging.
GUARD = 60.0


def after_its_commit(agent: DurableAgent, do: Any) -> None:
    """Once, when the next append is on disk and before it is believed."""
    append = agent._log.append

    def appended(rows: Any) -> None:
        agent._log.append = append  # type: ignore[method-assign]
        append(rows)
        do()

    agent._log.append = appended  # type: ignore[method-assign]


def require_the_fold_of_its_log(agent: DurableAgent) -> None:
    state, again = agent.state(), replay(agent.log()).state
    assert all(again[name].tobytes() == state[name].tobytes() for name in state)


def test_events_read_between_a_commit_and_its_update_are_not_learnt_twice(url: str) -> None:
    with open_agent(url, "shop", MODEL, seed=1) as agent, open_agent(url, "shop", MODEL) as other:
        d = agent.act()

        def meanwhile() -> None:
            other.observe(d, 1)
            reader = threading.Thread(target=agent.posterior)
            reader.start()
            reader.join(GUARD)

        after_its_commit(agent, meanwhile)
        agent.act()
        require_the_fold_of_its_log(agent)
        agent.act()
        require_the_fold_of_its_log(agent)
        require_the_fold_of_its_log(other)


def before_each_look(agent: DurableAgent, do: Any) -> None:
    """Whenever it asks the store how far the log is."""
    head = agent._log.head

    def looked() -> int:
        do()
        return head()

    agent._log.head = looked  # type: ignore[method-assign]


def test_all_that_one_question_reads_is_of_one_event(url: str) -> None:
    with open_agent(url, "shop", MODEL, seed=1) as writer, open_agent(url, "shop", MODEL) as reader:
        before_each_look(reader, lambda: writer.observe(writer.act(), 1))

        def told(rule: Any) -> tuple[int, int, int, int]:
            before, posterior = reader.head, reader.posterior()
            counts = sum(row["count"] for row in posterior.values())
            return before, rule.belief.count, counts, reader.head

        for _ in range(3):
            before, count, counts, after = reader.ask(told)
            assert before == after == 1 + 2 * count == 1 + 2 * counts


def test_an_error_of_an_attempt_that_lost_its_race_is_forgotten(url: str) -> None:
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
        # Alone, the act comes first and an answer is due; after the other's answer it is not.
        assert act.error is None
        assert act.result.id == "4"
        assert answer.result is False


def test_readers_and_queues_of_many_agents_do_not_wait_for_each_other(url: str) -> None:
    store = open_store(url)
    agents = [open_agent(store, f"shop {i}", MODEL, seed=i) for i in range(8)]

    def act(agent: DurableAgent) -> None:
        for _ in range(10):
            agent._log._queued_turns = 32  # type: ignore[attr-defined]  # as a crowd makes it
            agent.act()

    def read(agent: DurableAgent) -> None:
        for _ in range(30):
            agent.posterior()

    threads = [
        threading.Thread(target=work, args=(agent,), daemon=True)
        for agent in agents
        for work in (act, read)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD)
    assert not any(thread.is_alive() for thread in threads)
    for agent in agents:
        assert agent.head == 11
        agent.close()
    store.close()

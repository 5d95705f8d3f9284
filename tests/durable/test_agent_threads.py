"""Many threads share one agent: no operation is lost or duplicated."""

import threading
from pathlib import Path

from tests.durable.agents import SHOP, same_state, url

from bayescontrol.durable import open_agent, replay
from bayescontrol.errors import BadEvidence, ConflictingFeedback
from bayescontrol.seeding import Stream


def test_many_threads_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    threads, each = 16, 25
    with open_agent(url(tmp_path), "shop", SHOP, seed=4) as agent:
        answers: list[tuple[str, int]] = []

        def work(i: int) -> None:
            rng = Stream(i)
            for k in range(each):
                d = agent.act(key=f"{i}-{k}")
                o = rng.integers(2)
                assert agent.observe(d.id, o)
                answers.append((d.id, o))
                agent.posterior()
                agent.probabilities()

        workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(answers) == threads * each
        assert agent.head == 1 + 2 * threads * each
        for n, o in answers:
            assert agent.observe(n, o) is False
        assert same_state(agent, replay(agent.log()).state)


def test_invalid_requests_of_one_thread_do_not_affect_the_others(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=4) as agent:
        first = agent.act()
        agent.observe(first, 1)
        wrong: list[str] = []

        def work(i: int) -> None:
            for _ in range(15):
                d = agent.act()
                try:
                    agent.observe(d, 7 if i % 2 else 1)
                except BadEvidence:
                    wrong.append("bad")
                try:
                    agent.observe(first, 0)
                except ConflictingFeedback:
                    wrong.append("conflict")

        workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert (wrong.count("bad"), wrong.count("conflict")) == (4 * 15, 8 * 15)
        assert agent.head == 3 + 8 * 15 + 4 * 15
        assert same_state(agent, replay(agent.log()).state)

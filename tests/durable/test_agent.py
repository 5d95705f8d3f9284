"""Seeds, the fields of a decision, agents that share a file, and closed agents."""

from pathlib import Path
from typing import Any

import pytest
from tests.durable.agents import SHOP, url

from bayescontrol import GaussianBandit
from bayescontrol.durable import open_agent, open_store
from bayescontrol.errors import StoreBusy, StoreFailed


def test_the_same_seed_gives_the_same_decisions(tmp_path: Path) -> None:
    actions = []
    for _ in range(2):
        with open_agent("sqlite:///:memory:", "shop", SHOP, seed=9) as agent:
            actions.append([agent.act().action for _ in range(20)])
    assert actions[0] == actions[1]
    assert len(set(actions[0])) == 2


def test_without_a_seed_every_agent_gets_a_separate_one() -> None:
    seeds = set()
    for _ in range(4):
        with open_agent("sqlite:///:memory:", "shop", SHOP) as agent:
            seeds.add(agent.seed)
    assert len(seeds) == 4


def test_a_decision_reports_its_evidence_and_its_probability(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=1) as agent:
        d = agent.act()
        assert (d.id, d.basis, d.situation) == ("2", 1, None)
        assert d.probabilities == {"red": 0.5, "blue": 0.5}
        assert d.probability == 0.5
        agent.observe(d.id, 1)
        e = agent.act()
        assert (e.id, e.basis) == ("4", 3)
        assert e.probabilities is not None
        assert e.probabilities[d.action] == pytest.approx(2 / 3)
        assert e.probability == e.probabilities[e.action]


def test_two_agents_of_one_process_share_a_file(tmp_path: Path) -> None:
    with (
        open_agent(url(tmp_path), "shop", SHOP) as one,
        open_agent(url(tmp_path), "search", GaussianBandit(2)) as two,
    ):
        one.act()
        two.act()
        with pytest.raises(StoreBusy, match=r"'shop'.*open in this process"):
            open_agent(url(tmp_path), "shop", SHOP)
    store = open_store(url(tmp_path))
    assert store.names() == ["search", "shop"]
    with open_agent(store, "shop") as one:
        assert one.head == 2
    assert store.names() == ["search", "shop"]
    store.close()


def test_a_closed_agent_raises_on_every_call(tmp_path: Path) -> None:
    agent = open_agent(url(tmp_path), "shop", SHOP)
    d = agent.act()
    agent.close()
    agent.close()
    for use in (
        agent.act,
        agent.posterior,
        agent.probabilities,
        agent.state,
        agent.snapshot,
        lambda: agent.observe(d, 1),
        lambda: agent.explain(d),
        lambda: list(agent.log()),
    ):
        with pytest.raises(StoreFailed, match="closed"):
            use()


@pytest.mark.parametrize(
    "options", [{"seed": -1}, {"seed": 1.5}, {"seed": 2**128}, {"snapshot_every": 0}]
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        open_agent("sqlite:///:memory:", "shop", SHOP, **options)

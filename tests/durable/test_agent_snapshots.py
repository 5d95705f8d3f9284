"""Snapshots are a cache: taken along the way, passed over if they are damaged."""

import warnings
from pathlib import Path

import apsw
import pytest
from tests.durable.agents import SHOP, live, same_state, url

from bayescontrol.durable import DamagedSnapshot, open_agent


def damage_snapshots(tmp_path: Path, how: str) -> None:
    db = apsw.Connection(str(tmp_path / "shop.db"))
    db.execute(f"UPDATE snapshots SET {how}")
    db.close()


@pytest.mark.parametrize(
    "how",
    [
        "state = zeroblob(length(state))",
        "state = substr(state, 1, length(state) - 1)",
        "state = x''",
        "checksum = x'00'",
        "seq = seq - 2",
        "seq = seq + 1000",
    ],
)
def test_a_damaged_snapshot_is_passed_over_with_a_warning(tmp_path: Path, how: str) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=5) as agent:
        live(agent, 20, "bernoulli")
        before = agent.state()
    damage_snapshots(tmp_path, how)
    with pytest.warns(DamagedSnapshot, match="passed over.*folded instead"):
        agent = open_agent(url(tmp_path), "shop", SHOP)
    assert same_state(agent, before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent.close()


def test_snapshots_are_taken_along_the_way(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=5, snapshot_every=10) as agent:
        live(agent, 30, "bernoulli")
        assert len(agent._log.snapshots()) == 2
        assert agent._log.snapshots()[0].seq > agent.head - 12

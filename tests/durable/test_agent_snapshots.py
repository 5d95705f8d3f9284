"""Snapshots are a cache: taken periodically, skipped if they are damaged."""

import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.durable.agents import MODELS, SHOP, live, run_sql, same_state, url

from bayescontrol.durable import DamagedSnapshot, open_agent
from bayescontrol.durable.events import Decided
from bayescontrol.durable.stores.log import MAX_OLDER, Row, snapshots_to_delete
from bayescontrol.durable.stores.sqlite import SqliteLog
from bayescontrol.seeding import Stream


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
def test_a_damaged_snapshot_is_skipped_with_a_warning(tmp_path: Path, how: str) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=5) as agent:
        live(agent, 20, "bernoulli")
        before = agent.state()
    run_sql(tmp_path, f"UPDATE snapshots SET {how}")
    with pytest.warns(DamagedSnapshot, match="skipped.*folded instead"):
        agent = open_agent(url(tmp_path), "shop", SHOP)
    assert same_state(agent, before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent.close()


def test_snapshots_are_taken_periodically(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=5, snapshot_every=10) as agent:
        live(agent, 30, "bernoulli")
        assert next(agent._log.snapshots()).seq > agent.head - 12


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the events that are folded from now on; lookups of a single row do not count."""
    seqs: list[int] = []
    read = SqliteLog.read

    def counted(log: SqliteLog, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        for row in read(log, start, stop):
            if start != stop:
                seqs.append(row.seq)
            yield row

    monkeypatch.setattr(SqliteLog, "read", counted)
    return seqs


def test_explaining_a_decision_folds_few_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=5, snapshot_every=40) as agent:
        live(agent, 300, "bernoulli")
        ids = [event.seq for event in agent.log() if isinstance(event, Decided)]
        read = rows_read(monkeypatch)
        for n in ids:
            read.clear()
            agent.explain(str(n))
            assert len(read) <= 40


@pytest.mark.parametrize("case", MODELS)
def test_a_decision_is_explained_as_logged_with_and_without_snapshots(
    tmp_path: Path, case: str
) -> None:
    model = MODELS[case][0]
    with open_agent(url(tmp_path), "shop", model, seed=5, snapshot_every=25) as agent:
        live(agent, 60, case)
        decided = [event for event in agent.log() if isinstance(event, Decided)]
        with_snapshots = [agent.explain(str(event.seq)) for event in decided]
    for event, why in zip(decided, with_snapshots, strict=True):
        assert np.all(why.decision.action == event.a)
        assert why.mode is not None
        p = None if why.probabilities is None else why.probabilities[event.a]
        assert why.decision.probability == p == event.p
    assert run_sql(tmp_path, "SELECT count(*) FROM snapshots") >= 4
    run_sql(tmp_path, "DELETE FROM snapshots")
    with open_agent(url(tmp_path), "shop", model) as agent:
        for one in with_snapshots:
            two = agent.explain(one.decision.id)
            assert repr(one) == repr(two)  # every bit of every number
            assert one.probabilities == two.probabilities


@pytest.mark.parametrize("size", [100, 3_000_000])
def test_old_snapshots_are_few_and_evenly_spaced(size: int) -> None:
    every, most = 10, MAX_OLDER if size == 100 else 2**26 // size
    saved: set[int] = set()
    rng = Stream(1)
    n = 0
    for _ in range(3_000):
        # At the usual spacing, or earlier because the agent was closed.
        n += every + rng.integers(3) if rng.random() < 0.9 else rng.integers(every)
        saved.add(n)
        saved -= set(snapshots_to_delete(saved, every, size))
        places = [0, *sorted(saved)]
        assert len(saved) <= most + 2
        widest = max(b - a for a, b in pairwise(places))
        assert widest <= max(2 * every, 2 * n / most)
    assert n > 20_000


def test_snapshots_closer_than_the_spacing_do_not_pile_up() -> None:
    saved: set[int] = set()
    for n in range(5, 5_000, 5):  # opened and closed every five events
        saved.add(n)
        saved -= set(snapshots_to_delete(saved, 1_000, 100))
    assert len(saved) <= 12

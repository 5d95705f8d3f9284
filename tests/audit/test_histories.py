"""The two posteriors of many histories equal those of agents, of enumeration, and of the files."""

import json
import runpy
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit import enumeration
from tests.chance import chi_square

from bayescontrol.audit import WORLDS, Batched, Transcript, World
from bayescontrol.audit.histories import HistoryBatch, draw, true_modes
from bayescontrol.seeding import Stream


def forced(world: World, runs: int = 25, steps: int = 5, acts_last: bool = False) -> HistoryBatch:
    """Histories in which a coin acts; the last action is open if `acts_last`."""
    rng = Stream.named(3, 0, world.name)
    batch = HistoryBatch(world, true_modes(world, runs, rng))
    for step in range(steps):
        batch.act(np.asarray(rng.integers(len(world.actions), size=runs)))
        if not acts_last or step < steps - 1:
            batch.observe(np.asarray(rng.random(runs)))
    return batch


def transcripts(batch: HistoryBatch) -> list[Transcript]:
    """The histories as the predictor gets them, one for each run."""
    asked: dict[tuple[str, ...], Transcript] = {}

    def remember(histories: Sequence[Transcript]) -> Any:
        asked.update({history.symbols: history for history in histories})
        return [dict.fromkeys(symbols, 1.0 / len(symbols)) for _ in histories]

    world = batch.world
    alphabets = world.actions, world.observations
    symbols = alphabets[batch.symbols.shape[1] % 2]
    batch.ask(Batched(remember))
    return [
        asked[tuple(alphabets[t % 2][s] for t, s in enumerate(row))]
        for row in batch.symbols.tolist()
    ]


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_both_posteriors_equal_those_of_two_agents_after_the_same_events(world: World) -> None:
    for acts_last in (False, True):
        batch = forced(world, acts_last=acts_last)
        for i, history in enumerate(transcripts(batch)):
            pair = world.numbered(history).replay(world.agent())
            rule, naive = (agent.belief.posterior() for agent in pair)
            np.testing.assert_allclose(batch.v[i], rule, rtol=1e-10)
            np.testing.assert_allclose(batch.w[i], naive, rtol=1e-10)
            assert batch.x[i] == pair.interventional.x == pair.observational.x


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_both_posteriors_equal_products_of_the_tables(world: World) -> None:
    batch = forced(world, runs=40, steps=8)
    for i, history in enumerate(transcripts(batch)):
        v, w, x = enumeration.posteriors(world, history.events)
        np.testing.assert_allclose(batch.v[i], v / v.sum(), rtol=1e-10)
        np.testing.assert_allclose(batch.w[i], w / w.sum(), rtol=1e-10)
        assert batch.x[i] == x


@pytest.mark.parametrize("name", WORLDS)
def test_both_posteriors_equal_those_of_the_exported_checker(name: str, exported: Path) -> None:
    checker = runpy.run_path(str(exported / "check_world.py"))
    tables = json.loads((exported / f"{name}.json").read_text("utf-8"))
    batch = forced(WORLDS[name], acts_last=True)
    for i, history in enumerate(transcripts(batch)):
        v, w, x, _ = checker["posteriors"](tables, history.events)
        np.testing.assert_allclose(batch.v[i], v, rtol=1e-10)
        np.testing.assert_allclose(batch.w[i], w, rtol=1e-10)
        assert batch.x[i] == x


@pytest.mark.parametrize("name", ["liar", "doctor", "chain"])
def test_predictions_of_both_references_equal_enumeration(name: str) -> None:
    world = WORLDS[name]
    expected = {node.history.symbols: node for node in enumeration.nodes(world, 2)}
    rng = Stream(5)
    batch = HistoryBatch(world, true_modes(world, 60, rng))
    for _ in range(2):
        for found in (batch.next_actions, batch.next_observations):
            for i, history in enumerate(transcripts(batch)):
                node = expected[history.symbols]
                np.testing.assert_allclose(found().rule[i], node.rule, atol=1e-12)
                np.testing.assert_allclose(found().naive[i], node.naive, atol=1e-12)
            if found == batch.next_actions:
                batch.act(np.asarray(rng.integers(len(world.actions), size=60)))
        batch.observe(np.asarray(rng.random(60)))


def test_the_predictor_is_asked_once_for_equal_histories() -> None:
    asked: Counter[tuple[str, ...]] = Counter()

    def fair(histories: Sequence[Transcript]) -> Any:
        asked.update(history.symbols for history in histories)
        return [{"A": 0.5, "B": 0.5}] * len(histories)

    batch = forced(WORLDS["two-hypotheses"], runs=500, steps=2)
    assert batch.ask(Batched(fair)).shape == (500, 2)
    assert set(asked.values()) == {1}
    assert len(asked) == len(np.unique(batch.symbols, axis=0)) == 16


def test_every_history_gets_the_answer_to_it() -> None:
    world = WORLDS["rock-paper-scissors"]
    batch = forced(world, runs=300, steps=2)

    def last(histories: Sequence[Transcript]) -> Any:
        return [{history.symbols[-1]: 0.75, history.symbols[0]: 0.25} if
                history.symbols[-1] != history.symbols[0] else {history.symbols[0]: 1.0}
                for history in histories]  # fmt: skip

    expected = 0.75 * np.eye(3)[batch.symbols[:, -1]] + 0.25 * np.eye(3)[batch.symbols[:, 0]]
    np.testing.assert_array_equal(batch.ask(Batched(last)), expected)


def test_true_modes_follow_the_prior_and_observations_the_true_mode() -> None:
    """A correct batch fails with probability 2e-6, over seeds."""
    world, runs = WORLDS["two-levers"], 20_000
    rng = Stream(1)
    batch = HistoryBatch(world, true_modes(world, runs, rng))
    counts = np.bincount(batch.true_modes, minlength=3)
    assert chi_square(counts, runs * world.modes.prior) > 1e-6
    batch.act(np.zeros(runs, np.int64))
    batch.observe(np.asarray(rng.random(runs)))
    table = np.zeros((3, 2))
    np.add.at(table, (batch.true_modes, batch.symbols[:, 1]), 1)
    expected = counts[:, None] * world.modes.hypothesis[:, 0, 0]
    assert chi_square(table.ravel(), expected.ravel()) > 1e-6


def test_symbols_of_probability_zero_are_never_drawn() -> None:
    p = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for u in (0.0, 1.0 - 2.0**-53):
        np.testing.assert_array_equal(draw(p, np.full(3, u)), [1, 0, 2])

"""Error messages for common mistakes with bandits.

The Lai-Robbins constant, compared with its known value and its definition.
"""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, Record, Stream, interact
from bayescontrol.bandits.bandit import lai_robbins
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidTable,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.metrics import regret
from bayescontrol.testing.laws import same_bits

BANDIT: Any = BernoulliBandit(2)
NO_WORLD: Any = object()
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    *((lambda rng=rng: BANDIT.agent().act(rng), TypeError, "expected a Stream")
      for rng in (0, None, np.random.RandomState(0))),
    (lambda: interact(BANDIT, BANDIT.draw(0), 3, seed=0), MissingCapability, r"method agent\(\)"),
    (lambda: interact(BANDIT.agent(), BANDIT, 3, seed=0), MissingCapability, "respond"),
    (lambda: BANDIT.agent().observe(0, "1"), BadEvidence, "reward '1' is invalid"),
    (lambda: BANDIT.agent().batch(-1, Stream(0)), ValueError, "size=-1"),
    *((lambda arms=arms: BernoulliBandit(arms), UnknownArm, "arms=")
      for arms in ({"a", "b"}, frozenset({1, 2}), [1.0, float("nan")])),
    (lambda: regret(Record([0], [1]), NO_WORLD), MissingCapability, "mean reward"),
    *((lambda means=means: lai_robbins(means), InvalidTable, "give one number")
      for means in ([1.2, 0.3], [0.5, float("nan")], [], [[0.5, 0.4]], [0.5, -0.1])),
    (lambda: BernoulliBandit(["red", "blue"]).environment({"blue": 0.7, "green": 0.2}), UnknownArm,
     r"for the arms \[.*give one for each of"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES)
def test_common_mistakes_raise_errors(
    mistake: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        mistake()


def test_names_from_a_numpy_array_can_be_saved() -> None:
    agent = BernoulliBandit(np.array(["a", "b"])).agent()  # type: ignore[arg-type]
    agent.observe("a", 1)
    twin = BernoulliBandit(["a", "b"]).agent()
    twin.load(agent.save())
    assert same_bits(twin.save(), agent.save())


def test_a_state_of_other_arms_or_another_prior_is_refused() -> None:
    saved = BernoulliBandit(["a", "b"]).agent().save()
    for other in (BernoulliBandit(["x", "y"]), BernoulliBandit(["a", "b"], prior=(2, 1))):
        agent = other.agent()
        before = agent.save()
        with pytest.raises(IncompatibleState, match="arm"):
            agent.load(saved)
        assert same_bits(before, agent.save())


def test_a_resumed_agent_continues_identically_where_screening_ends() -> None:
    bandit = BernoulliBandit(3, prior=(2.0**32, 2.0**32))
    agent, twin = bandit.agent(), bandit.agent()
    agent.observe(0, 1)
    twin.load(agent.save())
    assert agent.belief.chooses == twin.belief.chooses
    assert agent.batch(50, Stream(3)) == twin.batch(50, Stream(3))
    looped = bandit.agent()
    interact(looped, bandit.environment([0.5, 0.5, 0.5]), 3, seed=0)
    assert looped.belief.chooses.startswith("by drawing every arm")


@pytest.mark.parametrize(
    ("means", "constant"),
    [
        ([0.5] + 9 * [0.4], 9 * 0.1 / (0.4 * log(0.4 / 0.5) + 0.6 * log(0.6 / 0.5))),
        ([0.5] + 9 * [0.4], 44.697),
        ([0.3, 0.3], 0.0),  # arms as good as the best add nothing
        ([0.4, 0.5, 0.5], 44.697 / 9),
        ([1.0, 0.9, 0.0], 0.0),  # an arm that always pays
        ([0.5, 0.0], 0.5 / log(2.0)),  # an arm that never pays
    ],
)
def test_the_lai_robbins_constant_has_its_known_value(means: list[float], constant: float) -> None:
    assert lai_robbins(means) == pytest.approx(constant, rel=1e-14, abs=5e-4)


def test_the_truth_may_be_given_by_the_names_of_the_arms() -> None:
    bandit = BernoulliBandit(["red", "blue"])
    assert bandit.environment({"blue": 0.7, "red": 0.2}).means().tolist() == [0.2, 0.7]

"""Modes from functions, from pairs, and from models with a planner."""

import math
from typing import Any

import pytest

from bayescontrol import DiscreteMode, FiniteBelief, PairedMode, Stream, tailor
from bayescontrol._mode_queries import draw_from, has
from bayescontrol.errors import InvalidTable, MissingCapability
from bayescontrol.protocols import (
    ActionProbabilities,
    Likelihood,
    ObservationProbabilities,
    Stateful,
)


class Model:
    def __init__(self, p: float) -> None:
        self.p = p

    def likelihood(self, x: object, a: int, o: int) -> float:
        return self.p if o == a else 1.0 - self.p


class Do:
    def __init__(self, a: int) -> None:
        self.a = a

    def act(self, x: object, rng: object) -> int:
        return self.a


def test_outcomes_are_drawn_with_their_probabilities() -> None:
    """10,000 draws; each share is within 4.9 standard errors: false alarm 3e-6."""
    probabilities, rng, n = {"a": 0.2, "b": 0.0, "c": 0.8}, Stream(0), 10_000
    drawn = [draw_from(probabilities, rng) for _ in range(n)]
    assert "b" not in drawn
    assert abs(drawn.count("a") / n - 0.2) < 4.9 * math.sqrt(0.16 / n)


def test_a_certain_outcome_uses_no_random_numbers_and_no_outcome_is_refused() -> None:
    rng = Stream(0)
    assert draw_from({"only": 1.0}, rng) == "only"
    assert rng == Stream(0)
    with pytest.raises(ValueError, match="p"):
        draw_from({}, Stream(0))


def test_an_observation_not_listed_by_a_discrete_mode_has_likelihood_zero() -> None:
    mode: DiscreteMode[None, str, object] = DiscreteMode(
        lambda _x: {"go": 1.0}, lambda _x, _a: {1: 0.25, 0: 0.75}
    )
    assert mode.likelihood(None, "go", math.nan) == 0.0
    assert mode.log_likelihood(None, "go", "?") == -math.inf
    assert mode.log_likelihood(None, "go", 1) == math.log(0.25)


def test_probabilities_that_their_owner_changes_are_checked_again() -> None:
    table = {"H": 0.5, "T": 0.5}
    coin: Any = DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: table)
    assert coin.likelihood(None, "toss", "H") == 0.5
    for wrong in ({"H": 1.5, "T": -0.5}, {"H": 0.6, "T": 0.5}, {"H": math.nan}, {"H": "1"}):
        table.clear()
        table.update(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidTable, match="the hypothesis of DiscreteMode"):
            coin.likelihood(None, "toss", "H")


def test_a_pair_has_exactly_the_capabilities_of_its_parts() -> None:
    pair = PairedMode(Model(0.9), Do(1))
    assert has(pair, Likelihood)
    for capability in (ActionProbabilities, ObservationProbabilities, Stateful):
        assert not has(pair, capability)
    full: DiscreteMode[None, int, int] = DiscreteMode(lambda _x: {1: 1.0}, lambda _x, _a: {1: 1.0})
    pair = PairedMode(full, full)
    assert has(pair, ActionProbabilities)
    assert has(pair, ObservationProbabilities)


def test_a_pair_needs_a_policy_and_a_hypothesis() -> None:
    with pytest.raises(MissingCapability, match="act"):
        PairedMode(Model(0.9), Model(0.9))
    with pytest.raises(MissingCapability, match="likelihood"):
        PairedMode(Do(0), Do(0))


def test_a_policy_paired_with_a_filter_receives_its_state() -> None:
    class Counting(Model):
        def start(self) -> int:
            return 0

        def advance(self, s: int, a: int, o: int) -> int:
            return s + 1

    class Count:
        def act(self, s: int, rng: object) -> int:
            return s

    belief = FiniteBelief([PairedMode(Counting(0.9), Count())])
    for _ in range(3):
        belief.observe(None, 0, 0)
    assert belief.sample(Stream(0)).act(None, Stream(0)) == 3


def test_tailor_plans_for_every_model() -> None:
    modes = tailor({"low": Model(0.1), "high": Model(0.8)}, lambda m: Do(int(m.p > 0.5)))
    assert [(m.name, m.act(None, Stream(0))) for m in modes] == [("low", 0), ("high", 1)]
    assert [m.name for m in tailor([Model(0.1)], lambda _m: Do(0))] == [""]
    assert "high" in repr(modes[1])

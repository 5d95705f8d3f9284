"""Modes with private state: the belief holds, saves and copies the state of each filter."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, Stream
from bayescontrol.errors import ImpossibleObservation, IncompatibleState, MissingCapability
from bayescontrol.testing import same_bits

STAY = 0.9
Distribution = dict[int, float]


class Filter:
    """A hidden state that stays with probability `stay`; o shows it with probability `show`.

    s is P(hidden = 1 | past), so this mode is a forward filter.
    """

    def __init__(self, stay: float, show: float, name: str = "") -> None:
        self.stay, self.show, self.name = stay, show, name

    def start(self) -> float:
        return 0.5

    def _distribution(self, s: float) -> Distribution:
        one = s * self.show + (1.0 - s) * (1.0 - self.show)
        return {1: one, 0: 1.0 - one}

    def advance(self, s: float, a: str, o: int) -> float:
        hit = self.show if o else 1.0 - self.show
        s = (
            s * hit / (s * hit + (1.0 - s) * (1.0 - hit))
        )  # 0/0 for an observation that it rules out
        return s * self.stay + (1.0 - s) * (1.0 - self.stay)

    def act(self, s: float, rng: object) -> str:
        return "high" if s > 0.5 else "low"

    def action_probabilities(self, s: float) -> dict[str, float]:
        return {self.act(s, None): 1.0}

    def likelihood(self, s: float, a: str, o: int) -> float:
        return self._distribution(s).get(o, 0.0)

    def observation_probabilities(self, s: float, a: str) -> Distribution:
        return self._distribution(s)


def over_histories(stay: float, show: float) -> DiscreteMode[tuple[int, ...], str, int]:
    """The same mode without private state: its situation is the whole history of observations."""

    def s(past: tuple[int, ...]) -> float:
        # Forward recursion of P(hidden = h, o_≤t).
        joint = [0.5, 0.5]
        for o in past:
            observed = [p * (show if o == h else 1.0 - show) for h, p in enumerate(joint)]
            joint = [observed[h] * stay + observed[1 - h] * (1.0 - stay) for h in (0, 1)]
        return joint[1] / sum(joint)

    def hypothesis(past: tuple[int, ...], _a: str) -> Mapping[int, float]:
        one = s(past) * show + (1.0 - s(past)) * (1.0 - show)
        return {1: one, 0: 1.0 - one}

    def policy(past: tuple[int, ...]) -> Mapping[str, float]:
        return {"high" if s(past) > 0.5 else "low": 1.0}

    return DiscreteMode(policy, hypothesis)


PARAMETERS = [(0.9, 0.8), (0.6, 0.95), (0.5, 0.5)]


def filters() -> FiniteBelief[Filter]:
    return FiniteBelief([Filter(*p, name=f"filter {i}") for i, p in enumerate(PARAMETERS)])


@given(st.lists(st.integers(0, 1), max_size=25))
def test_a_filter_mode_equals_a_mode_over_whole_histories(past: list[int]) -> None:
    private = ControlRule(filters())
    shared = ControlRule(
        FiniteBelief([over_histories(*p) for p in PARAMETERS]), (), lambda x, _a, o: (*x, o)
    )
    for o in past:
        private.observe("low", o)
        shared.observe("low", o)
    assert private.predictive("low") == pytest.approx(shared.predictive("low"), rel=1e-12)
    assert private.action_probabilities() == pytest.approx(shared.action_probabilities())


def test_an_impossible_observation_raises_before_any_filter_advances() -> None:
    belief = FiniteBelief([Filter(1.0, 1.0), Filter(1.0, 1.0)])
    belief.observe(None, "low", 1)
    before = belief.save()
    with pytest.raises(ImpossibleObservation):
        belief.observe(None, "low", 0)
    assert same_bits(before, belief.save())


def test_a_mode_that_fails_to_advance_changes_nothing() -> None:
    """The mode that rules the observation out divides by zero; the other one allows it."""
    belief = FiniteBelief([Filter(1.0, 1.0), Filter(0.9, 0.8)])
    belief.observe(None, "low", 1)
    before = belief.save()
    with pytest.raises(ZeroDivisionError):
        belief.observe(None, "low", 0)
    assert same_bits(before, belief.save())


def test_states_may_be_arrays_but_not_functions() -> None:
    class Vector(Filter):
        def start(self) -> object:  # type: ignore[override]
            return np.array([0.5, 0.5])

    class Closure(Filter):
        def start(self) -> object:  # type: ignore[override]
            return lambda: 0.5

    belief = FiniteBelief([Vector(0, 0)])
    belief.load(belief.save())
    with pytest.raises(MissingCapability, match="private state of mode 0"):
        FiniteBelief([Closure(0, 0)]).save()


def test_filters_depend_on_order_and_cannot_be_merged() -> None:
    with pytest.raises(IncompatibleState, match="private state"):
        filters().merge(filters())


def test_a_drawn_filter_acts_on_its_private_state_and_keeps_its_name() -> None:
    belief = filters()
    for _ in range(5):
        belief.observe(None, "low", 1)
    mode = belief.sample(Stream(1))
    assert mode.name.startswith("filter")
    assert mode.act(None, Stream(0)) == "high"  # type: ignore[arg-type]
    assert "in state" in repr(mode)


def test_a_filter_that_is_added_later_needs_a_state() -> None:
    plain: DiscreteMode[None, str, int] = DiscreteMode(
        lambda _x: {"low": 1.0}, lambda _x, _a: {1: 0.5, 0: 0.5}
    )
    belief: FiniteBelief[object] = FiniteBelief([plain])
    assert belief.add(Filter(0.9, 0.8), 0.5) == 1  # no observations yet, so it can start
    for _ in range(3):
        belief.observe(None, "low", 1)
    before, late = belief.save(), Filter(0.9, 0.8)
    with pytest.raises(IncompatibleState, match=r"3 observations.*state="):
        belief.add(late, 0.5)
    assert same_bits(before, belief.save())
    s = late.start()
    for _ in range(3):
        s = late.advance(s, "low", 1)
    assert belief.add(late, 0.5, state=s) == 2
    assert belief.save()["state/2"] == belief.save()["state/1"]
    old, new = (belief.predictive(None, "low"), late.observation_probabilities(s, "low"))
    belief.retire(0)
    belief.retire(1)
    assert belief.predictive(None, "low") == pytest.approx(new)
    assert old != pytest.approx(new)


class Last(Filter):
    """A mode whose state is the last observation, None at the start."""

    def start(self) -> None:  # type: ignore[override]
        return None

    def advance(self, s: int | None, a: str, o: int) -> int:  # type: ignore[override]
        return o

    def likelihood(self, s: int | None, a: str, o: int) -> float:  # type: ignore[override]
        return 0.5 if s is None else (0.75 if s == o else 0.25)


def test_a_state_may_be_none_and_is_only_for_modes_that_have_one() -> None:
    belief: FiniteBelief[object] = FiniteBelief([Last(0, 0)])
    belief.observe(None, "low", 1)
    belief.add(Last(0, 0), 0.5, state=None)  # starts from scratch explicitly
    assert str(belief.save()["state/1"]) == "None"
    before = belief.save()
    plain: DiscreteMode[None, str, int] = DiscreteMode(lambda _x: {}, lambda _x, _a: {})
    with pytest.raises(MissingCapability, match="no private state"):
        belief.add(plain, 0.5, state=3)
    assert same_bits(before, belief.save())

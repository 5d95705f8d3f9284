"""The finite belief: prediction, code length, arrays and lists, countable classes, growth."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exact import exact_posterior

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, Floor, NaiveMixture
from bayescontrol._arrays import FloatArray
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    MissingCapability,
    UnknownMode,
)
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.situations import stay
from bayescontrol.testing import same_bits
from bayescontrol.testing.suite import InLogarithms

Coin = DiscreteMode[None, str, object]


def coin(p: float, name: str = "") -> Coin:
    return DiscreteMode(lambda _x: {"toss": 1.0}, lambda _x, _a: {1: p, 0: 1.0 - p}, name)


def coins(*biases: float) -> list[Coin]:
    return [coin(p) for p in biases]


tosses = st.lists(st.integers(0, 1), max_size=40)
classes = st.builds(
    lambda seed, count, observations: random_modes(
        count, situations=2, actions=3, observations=observations, seed=seed
    ),
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(2, 4),
)


def histories(modes: TabularModes, length: int, seed: int = 0) -> list[tuple[int, int, int]]:
    rng = np.random.default_rng(seed)
    shape = modes.hypothesis.shape
    return [tuple(map(int, rng.integers(shape[1:]))) for _ in range(length)]  # type: ignore[misc]


class LogClass:
    """An array of modes that returns log-likelihoods."""

    def __init__(self, modes: TabularModes) -> None:
        self.modes = modes

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, m: int) -> object:
        return self.modes[m]

    def log_likelihoods(self, x: int, a: int, o: int) -> FloatArray:
        return np.log(self.modes.likelihoods(x, a, o))


# -- prediction --------------------------------------------------------------------------


@given(classes, st.integers(0, 30))
def test_predictions_sum_to_one_and_agree_with_log_predictive(
    modes: TabularModes, steps: int
) -> None:
    for belief in (FiniteBelief(modes), FiniteBelief(list(modes))):
        for x, a, o in histories(modes, steps):
            predicted = belief.predictive(x, a)
            assert math.fsum(predicted.values()) == pytest.approx(1.0, rel=1e-13)
            assert predicted[o] == pytest.approx(
                math.exp(belief.log_predictive(x, a, o)), rel=1e-12
            )
            belief.observe(x, a, o)


@given(classes, st.integers(0, 60))
def test_the_code_length_is_the_sum_of_log_scores(modes: TabularModes, steps: int) -> None:
    for belief in (FiniteBelief(modes), FiniteBelief([InLogarithms(m) for m in modes])):
        bits = []
        for x, a, o in histories(modes, steps):
            bits.append(-belief.log_predictive(x, a, o) / math.log(2))
            belief.observe(x, a, o)
        assert belief.code_length() == pytest.approx(math.fsum(bits), rel=1e-12, abs=1e-12)


def test_a_prediction_changes_nothing_and_is_minus_infinity_for_impossible_observations() -> None:
    belief = FiniteBelief(coins(0.0, 0.0), on_impossible="skip")
    before = belief.save()
    assert belief.log_predictive(None, "toss", 1) == -math.inf
    assert belief.log_predictive(None, "toss", 0) == 0.0
    assert same_bits(before, belief.save())


def test_only_observations_add_to_the_code_length() -> None:
    """Witnessing actions and adding or retiring modes changes the weights, not the code length."""
    modes = random_modes(3, seed=4)
    belief = FiniteBelief(list(modes))
    agent = NaiveMixture(belief, 0, stay)
    bits = 0.0
    for t, (_, a, o) in enumerate(histories(modes, 40)):
        agent.issue(a)
        bits -= belief.log_predictive(0, a, o) / math.log(2)
        agent.observe(a, o)
        if t == 10:
            belief.add(modes[1], 0.3)
        if t == 20:
            belief.retire(0)
    assert belief.code_length() == pytest.approx(bits, rel=1e-12)


@given(classes, st.integers(0, 40))
def test_a_list_an_array_and_logarithms_give_the_same_numbers(
    modes: TabularModes, steps: int
) -> None:
    """List and array agree bit for bit, logarithms up to rounding."""
    listed, array = FiniteBelief(list(modes)), FiniteBelief(modes)
    logs: list[FiniteBelief[Any]]
    logs = [FiniteBelief([InLogarithms(m) for m in modes]), FiniteBelief(LogClass(modes))]
    for x, a, o in histories(modes, steps):
        for belief in (listed, array, *logs):
            belief.observe(x, a, o)
    assert listed.posterior().tobytes() == array.posterior().tobytes()
    for belief in logs:
        assert belief.posterior() == pytest.approx(array.posterior(), rel=1e-11)
    assert listed.predictive(1, 2) == pytest.approx(array.predictive(1, 2), rel=1e-13)


def test_action_probabilities_are_the_posterior_mixture_of_policies() -> None:
    modes = random_modes(4, situations=2, actions=3, seed=1)
    belief = FiniteBelief(modes)
    agent = ControlRule(belief, 0, modes.advance)
    agent.observe(1, 0)
    expected = belief.posterior() @ modes.policy[:, agent.x]
    assert list(agent.action_probabilities().values()) == pytest.approx(expected)
    listed = ControlRule(FiniteBelief(list(modes)), 0, modes.advance)
    listed.observe(1, 0)
    assert listed.action_probabilities() == pytest.approx(agent.action_probabilities())


# -- errors change nothing ---------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, -0.1, math.inf, None, [0.5], "half", 1j])
def test_an_invalid_likelihood_is_bad_evidence_and_the_error_names_the_event(bad: object) -> None:
    class InvalidAt:
        def likelihood(self, x: object, a: object, o: object) -> object:
            return bad if o == "odd" else 0.5

    belief = FiniteBelief([coin(0.5), InvalidAt()])
    belief.observe(None, "toss", 1)
    before = belief.save()
    with pytest.raises(BadEvidence, match=r"mode 1.*odd"):
        belief.observe(None, "toss", "odd")
    assert same_bits(before, belief.save())


def test_the_error_for_an_impossible_observation_names_action_and_remedy() -> None:
    with pytest.raises(ImpossibleObservation, match=r"7 after action 'toss'.*on_impossible"):
        FiniteBelief(coins(0.5, 0.5)).observe(None, "toss", 7)


def test_skipped_and_floored_observations_are_counted() -> None:
    skipping = FiniteBelief(coins(0.5, 0.25), on_impossible="skip")
    floored = FiniteBelief(coins(0.5, 0.25), on_impossible=Floor(1e-6))
    for belief in (skipping, floored):
        for o in (1, 7, 1):
            belief.observe(None, "toss", o)
        assert (belief.count, belief.impossible) == (3, 1)
        assert belief.posterior() == pytest.approx([0.8, 0.2])


def test_modes_need_action_probabilities_for_those_of_the_agent() -> None:
    silent: Any = InLogarithms(coin(0.5))
    silent.act = coin(0.5).act
    with pytest.raises(MissingCapability, match="action_probabilities"):
        ControlRule(FiniteBelief([silent])).action_probabilities()


# -- growth ------------------------------------------------------------------------------


@given(tosses, st.floats(0.01, 0.99), tosses)
def test_a_new_mode_starts_with_the_given_mass(
    before: list[int], mass: float, after: list[int]
) -> None:
    """The ratios of the other modes do not change, and learning continues from there."""
    belief = FiniteBelief(coins(0.2, 0.6))
    for o in before:
        belief.observe(None, "toss", o)
    old = belief.posterior()
    assert belief.add(coin(0.9), mass) == 2
    assert belief.posterior() == pytest.approx([*(old * (1.0 - mass)), mass], rel=1e-12)
    start = belief.posterior()
    for o in after:
        belief.observe(None, "toss", o)
    rows = [[p if o else 1.0 - p for p in (0.2, 0.6, 0.9)] for o in after]
    exact = [float(q) for q in exact_posterior(start, rows)]
    assert belief.posterior() == pytest.approx(exact, rel=1e-11)


@given(tosses)
def test_the_mass_of_a_retired_mode_goes_to_the_others_in_proportion(history: list[int]) -> None:
    belief = FiniteBelief(coins(0.2, 0.6, 0.9))
    for o in history:
        belief.observe(None, "toss", o)
    before = belief.posterior()
    assert belief.retire(1) == before[1]
    expected = before * [1.0, 0.0, 1.0]
    assert belief.posterior() == pytest.approx(expected / expected.sum(), rel=1e-12)
    assert belief.prior.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("mass", [0.0, 1.0, -0.1, math.nan, 2.0])
def test_a_mass_outside_zero_to_one_is_refused(mass: float) -> None:
    belief = FiniteBelief(coins(0.5))
    with pytest.raises(InvalidPrior, match="mass"):
        belief.add(coin(0.2), mass)
    assert len(belief) == len(belief.posterior()) == 1


def test_invalid_additions_and_removals_change_nothing() -> None:
    class Mute:
        pass

    belief = FiniteBelief(coins(0.5))
    before = belief.save()
    for newcomer in (Mute(), InLogarithms(coin(0.5))):
        with pytest.raises(MissingCapability):
            belief.add(newcomer, 0.5)  # type: ignore[arg-type]
    with pytest.raises(MissingCapability, match="cannot grow"):
        FiniteBelief(random_modes(2)).add(random_modes(2)[0], 0.5)
    with pytest.raises(UnknownMode):
        belief.retire(1)
    with pytest.raises(InvalidPrior):
        belief.retire(0)
    assert same_bits(before, belief.save())


# -- merging -----------------------------------------------------------------------------


def test_merging_adds_evidence_counts_and_code_length() -> None:
    one, two, both = (FiniteBelief(coins(0.2, 0.6), [0.25, 0.75]) for _ in range(3))
    for belief, history in ((one, (1, 1, 0)), (two, (0, 1)), (both, (1, 1, 0, 0, 1))):
        for o in history:
            belief.observe(None, "toss", o)
    one.merge(two)
    assert one.posterior() == pytest.approx(both.posterior(), rel=1e-13)
    assert one.count == 5
    assert one.code_length() == pytest.approx(both.code_length(), rel=1e-12)


class Bent:
    """A coin without a name."""

    def __init__(self, p: Any) -> None:
        self.p, self._tosses = p, 0

    def likelihood(self, x: Any, a: Any, o: int) -> float:
        self._tosses += 1
        return float(np.mean(self.p)) if o else 1.0 - float(np.mean(self.p))


class Fair(Bent):
    pass


@pytest.mark.parametrize(
    "others",
    [
        [Bent(0.2), Bent(0.9)],
        [Bent(0.5), Fair(0.9)],
        [Bent(0.5), Bent((0.9, 0.9))],
        [Bent(0.5), Bent(np.array([0.9, 0.9]))],
        TabularModes([[[1.0]]] * 2, [[[[0.5, 0.5]]], [[[0.1, 0.9]]]]),
    ],
    ids=["a number", "a class", "a tuple", "an array", "tables"],
)
def test_a_state_of_other_modes_without_names_is_refused(others: Any) -> None:
    belief = FiniteBelief([Bent(0.5), Bent(0.9)])
    belief.observe(None, None, 1)
    same = FiniteBelief([Bent(0.5), Bent(0.9 + 1e-15)])
    same.load(belief.save())
    assert same.posterior().tolist() == belief.posterior().tolist()
    with pytest.raises(IncompatibleState, match=r"mode|modes"):
        FiniteBelief(others).load(belief.save())
    with pytest.raises(IncompatibleState, match=r"mode|modes"):
        FiniteBelief(others).merge(belief)


def test_a_state_of_other_tables_is_refused() -> None:
    def tables(p: float) -> TabularModes:
        return TabularModes([[[1.0]]] * 2, [[[[0.5, 0.5]]], [[[p, 1.0 - p]]]])

    saved = FiniteBelief(tables(0.1)).save()
    FiniteBelief(tables(0.1)).load(saved)
    with pytest.raises(IncompatibleState, match="mode 0 is TabularModes"):
        FiniteBelief(tables(0.2)).load(saved)

"""Weights: priors, impossible observations, named arrays, merging, growing."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exact import exact_posterior, relative_error

from bayescontrol._arrays import Arrays
from bayescontrol._support.priors import as_prior
from bayescontrol.beliefs.weights import Floor, OnImpossible, Weights
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
)
from bayescontrol.testing import same_bits

positive = st.floats(1e-300, 1e300)
likelihoods = st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 1e300), st.sampled_from([0.0, 1.0]))
logarithms = st.one_of(st.floats(-1e9, 1e9), st.floats(-50.0, 5.0), st.just(-math.inf))


def rows(modes: int, values: st.SearchStrategy[float]) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(st.lists(values, min_size=modes, max_size=modes), max_size=12)


def fresh(modes: int = 3, on_impossible: OnImpossible = "raise") -> Weights:
    return Weights(np.full(modes, 1.0 / modes), on_impossible)


def conditioned(evidence: list[list[float]], log: bool = False, modes: int = 3) -> Weights:
    v = fresh(modes, "skip")
    for row in evidence:
        v.condition(np.array(row), log)
    return v


def scattered(size: int = 1025) -> Weights:
    """Weights with flat and spread blocks, and a few modes without weight."""
    rng = np.random.default_rng(0)
    v = Weights(np.full(size, 1.0 / size))
    for _ in range(5):
        row = rng.uniform(0.1, 1.0, size)
        row[512:] *= 10.0 ** rng.uniform(-90.0, 0.0, row[512:].size)
        row[rng.integers(size, size=3)] = 0.0
        v.condition(row)
    return v


# -- the prior ---------------------------------------------------------------------------


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20))
def test_normalised_positive_numbers_are_a_prior(numbers: list[float]) -> None:
    p = np.array(numbers) / np.sum(numbers)
    assert as_prior(p, p.size).tobytes() == p.tobytes()
    assert Weights(p).posterior() == pytest.approx(p, rel=1e-12)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5))
def test_a_prior_must_sum_to_one(numbers: list[float]) -> None:
    if abs(sum(numbers) - 1.0) > 2e-9:
        with pytest.raises(InvalidPrior, match="sums to"):
            as_prior(numbers, len(numbers))


@pytest.mark.parametrize(
    ("prior", "complaint"),
    [
        ([0.5, math.nan], "mode 1 is nan"),
        ([-0.1, 1.1], "mode 0 is -0.1"),
        ([math.inf, 0.0], "mode 0 is inf"),
        ([1.0], "shape"),
        ([[0.5], [0.5]], "shape"),
        (["many", "few"], "numbers"),
        ([0.5, [0.5]], "numbers"),
    ],
)
def test_the_error_for_an_invalid_prior_names_the_problem(
    prior: npt.ArrayLike, complaint: str
) -> None:
    with pytest.raises(InvalidPrior, match=complaint):
        as_prior(prior, 2)


def test_an_empty_prior_is_refused() -> None:
    with pytest.raises(InvalidPrior, match="at least one mode"):
        as_prior(None, 0)


def test_the_prior_is_copied_and_negative_zero_becomes_zero() -> None:
    given_ = np.array([-0.0, 1.0])
    prior = as_prior(given_, 2)
    given_[0] = 7.0
    assert prior.tobytes() == np.array([0.0, 1.0]).tobytes()


# -- impossible observations -------------------------------------------------------------


def test_by_default_an_impossible_observation_raises_and_changes_nothing() -> None:
    v = scattered()
    before = v.save()
    with pytest.raises(ImpossibleObservation):
        v.condition(np.zeros(1025))
    assert same_bits(before, v.save())


def test_skipping_changes_nothing_but_the_count() -> None:
    v = fresh(on_impossible="skip")
    before = v.posterior()
    assert not v.condition(np.zeros(3))
    assert v.condition(
        np.array([0.0, 1.0, 1.0])
    )  # an observation that only one mode excludes is evidence
    assert v.impossible == 1
    assert before.tolist() == [1 / 3] * 3
    assert v.posterior().tolist() == [0.0, 0.5, 0.5]


@given(rows(3, likelihoods), st.sampled_from([1e-300, 1e-9, 0.3]))
def test_a_floor_replaces_smaller_likelihoods_and_counts_them(
    evidence: list[list[float]], epsilon: float
) -> None:
    v = fresh(on_impossible=Floor(epsilon))
    for row in evidence:
        assert v.condition(np.array(row))
    floored = [[max(p, epsilon) for p in row] for row in evidence]
    assert relative_error(v.posterior(), exact_posterior([1 / 3] * 3, floored)) < 1e-12
    assert v.impossible == sum(min(row) < epsilon for row in evidence)


def test_a_floor_applies_to_logarithms() -> None:
    v = fresh(2, Floor(1e-3))
    v.condition(np.array([-math.inf, 0.0]), log=True)
    assert v.posterior() == pytest.approx([1e-3 / 1.001, 1 / 1.001])
    assert v.impossible == 1


@pytest.mark.parametrize("on_impossible", ["raise", "skip", Floor(0.1)])
@pytest.mark.parametrize(
    ("bad", "log"),
    [
        ([math.nan, 0.5, 0.5], False),
        ([-0.5, 0.5, 0.5], False),
        ([math.inf, 0.5, 0.5], False),
        ([math.nan, -1.0, -1.0], True),
        ([math.inf, -1.0, -1.0], True),
        ([0.5, 0.5], False),
        ([[0.5, 0.5, 0.5]], False),
    ],
)
def test_an_invalid_likelihood_raises_with_every_option_and_changes_nothing(
    on_impossible: OnImpossible, bad: list[float], log: bool
) -> None:
    v = fresh(on_impossible=on_impossible)
    v.condition(np.array([0.2, 0.3, 0.4]))
    before = v.save()
    with pytest.raises(BadEvidence):
        v.condition(np.array(bad), log)
    assert same_bits(before, v.save())


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_a_floor_must_be_positive_and_finite(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        Floor(epsilon)


def test_an_unknown_option_for_impossible_observations_is_refused() -> None:
    with pytest.raises(ValueError, match="'skip'"):
        Weights(np.ones(1), "ignore")  # type: ignore[arg-type]


# -- named arrays ------------------------------------------------------------------------


@settings(max_examples=60)
@given(rows(3, likelihoods), rows(3, logarithms), rows(3, likelihoods))
def test_loading_restores_the_saved_state_bit_for_bit(
    linear: list[list[float]], logs: list[list[float]], later: list[list[float]]
) -> None:
    v, twin = conditioned(linear), fresh(on_impossible="skip")
    for row in logs:
        v.condition(np.array(row), log=True)
    twin.load(v.save())
    assert same_bits(v.save(), twin.save())
    for row in later:
        for each in (v, twin):
            each.condition(np.array(row))
    assert same_bits(v.save(), twin.save())
    assert v.posterior().tobytes() == twin.posterior().tobytes()


def with_entry(name: str, value: float, where: int = 0) -> Callable[[Arrays], Arrays]:
    def damage(arrays: Arrays) -> Arrays:
        array = arrays[name].copy()
        array[where] = value
        return arrays | {name: array}

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        with_entry("mantissa", math.nan),
        with_entry("mantissa", math.inf),
        with_entry("mantissa", -0.5),
        with_entry("mantissa", 1e308),
        with_entry("mantissa", 1e-308),
        with_entry("exponent", 2**60, 600),
        with_entry("exponent", 3, 1),  # in a flat block all exponents are the same
        with_entry("flat", 0.5),
        with_entry("flat", 1.0, 1),  # the second block is not flat
        lambda arrays: arrays | {"mantissa": np.zeros(1025)},
        lambda arrays: arrays | {"mantissa": arrays["mantissa"][:-1]},
        lambda arrays: arrays | {"impossible": np.array(-1)},
    ],
)
def test_damaged_arrays_are_refused_and_change_nothing(damage: Callable[[Arrays], Arrays]) -> None:
    v = scattered()
    before = v.save()
    with pytest.raises(IncompatibleState):
        v.load(damage(v.save()))
    assert same_bits(before, v.save())


# -- merging, growing, shrinking ---------------------------------------------------------


@given(rows(3, positive), rows(3, positive))
def test_merged_weights_equal_weights_with_all_evidence(
    first: list[list[float]], second: list[list[float]]
) -> None:
    prior = np.full(3, 1 / 3)
    merged = conditioned(first)
    merged.merge(conditioned(second), prior)
    exact = exact_posterior(prior, first + second)
    assert relative_error(merged.posterior(), exact) < 1e-12


def test_evidence_without_a_common_mode_cannot_be_merged() -> None:
    left, right = conditioned([[1.0, 0.0, 0.0]]), conditioned([[0.0, 1.0, 1.0]])
    before = left.save()
    with pytest.raises(ImpossibleObservation, match="nothing was merged"):
        left.merge(right, np.full(3, 1 / 3))
    assert same_bits(before, left.save())


@pytest.mark.parametrize("size", [511, 512, 513, 1024])
def test_appending_and_removing_work_across_block_boundaries(size: int) -> None:
    v = scattered(size)
    before = v.posterior()
    v.append(0.25)
    v.append(0.5)
    assert v.posterior()[-2:] == pytest.approx([0.125, 0.5])
    v.remove(size)
    v.remove(size + 1)
    assert v.posterior()[:size] == pytest.approx(before, rel=1e-12, abs=1e-300)
    assert len(v) == size + 2

"""Predictors are normalised distributions of the next observation, given past ones."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats  # type: ignore[import-untyped]

from bayescontrol.alarms import KrichevskyTrofimov, StudentPredictor
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability
from bayescontrol.testing.laws import npy_round_trip, same_bits


def code_length(predictor: Any, observations: Any) -> float:
    """-ln q(o_1 … o_n), with each o predicted before it is counted."""
    total = 0.0
    for o in observations:
        total -= predictor.log_predict("x", "a", o)
        predictor.update("x", "a", o)
    return total


def test_the_estimate_is_counts_plus_one_half_for_each_key() -> None:
    q = KrichevskyTrofimov(3)
    for o in (0, 0, 2):
        q.update("x", "a", o)
    assert q.predictive("x", "a") == {0: 2.5 / 4.5, 1: 0.5 / 4.5, 2: 1.5 / 4.5}
    assert q.predictive("x", "b") == q.predictive("y", "a") == dict.fromkeys(range(3), 1 / 3)
    for o in range(3):
        assert math.exp(q.log_predict("x", "a", o)) == pytest.approx(q.predictive("x", "a")[o])


@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_probabilities_of_all_sequences_sum_to_one(length: int) -> None:
    """They would not for a predictor that counts o before it predicts it."""
    sequences = itertools.product("abc", repeat=length)
    total = sum(math.exp(-code_length(KrichevskyTrofimov("abc"), s)) for s in sequences)
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 24])
def test_the_loss_against_the_best_fixed_distribution_is_as_stated(n: int) -> None:
    for k in range(n + 1):
        for j in range(n + 1 - k):
            sequence = [0] * k + [1] * j + [2] * (n - k - j)
            best = -sum(c * math.log(c / n) for c in Counter(sequence).values())
            loss = code_length(KrichevskyTrofimov(3), sequence) - best
            assert loss <= math.log(n) + math.log(3) + 1e-9


@pytest.mark.parametrize("o", ["d", None, 3.5, [1], np.array([1, 2])])
def test_an_observation_outside_the_alphabet_is_refused_and_changes_nothing(o: Any) -> None:
    q = KrichevskyTrofimov("abc")
    q.update(0, 0, "a")
    before = q.save()
    with pytest.raises(BadEvidence, match="is not one of"):
        q.log_predict(0, 0, o)
    with pytest.raises(BadEvidence, match="is not one of"):
        q.update(0, 0, o)
    assert same_bits(before, q.save())


def test_the_repr_of_predictors() -> None:
    one, two = KrichevskyTrofimov(1), KrichevskyTrofimov(2)
    one.update(0, 0, 0)
    assert repr(one) == "KrichevskyTrofimov(1 observation, 1 key)"
    assert repr(two) == "KrichevskyTrofimov(2 observations, 0 keys)"
    student = StudentPredictor()
    student.update(0, 0, 0.5)
    assert repr(student) == "StudentPredictor(numbers, 1 key)"


def test_unhashable_situations_need_a_key() -> None:
    x = np.array([0.2, 0.7])
    with pytest.raises(MissingCapability, match="pass key="):
        KrichevskyTrofimov(2).update(x, 0, 1)
    binned = KrichevskyTrofimov(2, key=lambda x, a: (int(x[0] > 0.5), a))
    binned.update(x, 0, 1)
    assert binned.predictive(np.array([0.4, 9.0]), 0)[1] == 0.75


def test_equal_numpy_and_python_numbers_are_the_same_key() -> None:
    q = KrichevskyTrofimov(2)
    q.update(np.int64(1), np.int64(0), np.int64(1))
    assert q.predictive(1, 0)[1] == 0.75
    q.load(npy_round_trip(q.save()))
    assert q.predictive(1, 0)[1] == 0.75


# -- Student --------------------------------------------------------------------------------


def test_the_student_predictor_is_the_predictive_of_the_stated_prior() -> None:
    """Compare with the closed-form posterior of all observations, using SciPy."""
    q = StudentPredictor(mean=0.3, kappa=0.5, alpha=1.5, beta=2.0)
    observed = np.array([1.0, -0.4, 2.2, 0.9])
    for o in observed:
        q.update(0, 0, o)
    n, mean = len(observed), observed.mean()
    kappa, alpha = 0.5 + n, 1.5 + n / 2
    mu = (0.5 * 0.3 + n * mean) / kappa
    beta = 2.0 + ((observed - mean) ** 2).sum() / 2 + 0.5 * n * (mean - 0.3) ** 2 / (2 * kappa)
    scale = math.sqrt(beta * (kappa + 1) / (alpha * kappa))
    for o in (-3.0, 0.0, 0.7, 10.0):
        expected = stats.t.logpdf(o, 2 * alpha, mu, scale)
        assert q.log_predict(0, 0, o) == pytest.approx(expected, rel=1e-12)
    assert q.log_predict(1, 0, 0.7) == pytest.approx(
        stats.t.logpdf(0.7, 3, 0.3, math.sqrt(2.0 * 1.5 / (1.5 * 0.5))), rel=1e-12
    )


@pytest.mark.parametrize("observed", [[], [0.5], [3.0, 3.1, 2.9]])
def test_student_integrates_to_one_at_every_step(observed: list[float]) -> None:
    q = StudentPredictor(beta=0.3)
    for o in observed:
        q.update(0, 0, o)
    total, _ = integrate.quad(
        lambda o: math.exp(q.log_predict(0, 0, o)), -np.inf, np.inf, epsabs=1e-10
    )
    assert total == pytest.approx(1.0, abs=1e-7)


def test_the_student_predictor_of_vectors_is_a_product_over_coordinates() -> None:
    both = StudentPredictor(mean=[0.0, 5.0], beta=[1.0, 3.0])
    one, two = StudentPredictor(0.0, beta=1.0), StudentPredictor(5.0, beta=3.0)
    for o in ([0.3, 4.0], [-1.0, 7.0], [0.1, 5.5]):
        expected = one.log_predict(0, 0, o[0]) + two.log_predict(0, 0, o[1])
        assert both.log_predict(0, 0, np.array(o)) == pytest.approx(expected, rel=1e-12)
        both.update(0, 0, np.array(o))
        one.update(0, 0, o[0])
        two.update(0, 0, o[1])


@pytest.mark.parametrize("o", [math.nan, math.inf, "warm", None, [1.0, 2.0], 1e200])
def test_student_refuses_non_finite_numbers_and_changes_nothing(o: Any) -> None:
    q = StudentPredictor()
    q.update(0, 0, 1.0)
    before = q.save()
    for verb in (q.log_predict, q.update):
        with pytest.raises(BadEvidence):
            verb(0, 0, o)
    assert same_bits(before, q.save())


@pytest.mark.parametrize(
    "prior",
    [{"mean": math.nan}, {"kappa": 0.0}, {"alpha": -1.0}, {"beta": math.inf},
     {"mean": [[1.0]]}, {"mean": [0.0, 1.0], "beta": [1.0, 2.0, 3.0]}],
)  # fmt: skip
def test_student_refuses_an_invalid_prior(prior: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"mean|kappa|beta"):
        StudentPredictor(**prior)


# -- state -----------------------------------------------------------------------------------

PREDICTORS = [
    (KrichevskyTrofimov(["a", "b"]), "a", "b"),
    (StudentPredictor(), 0.5, -1.0),
    (StudentPredictor([0.0, 1.0]), np.array([0.5, 0.1]), np.array([1.5, 2.0])),
]


@pytest.mark.parametrize(("fresh", "first", "then"), PREDICTORS)
def test_saved_and_copied_predictors_continue_identically(
    fresh: Any, first: Any, then: Any
) -> None:
    q = fresh.copy()
    for x in ("here", "there", "here"):
        q.update(x, ("go", 1), first)
    loaded, copied = fresh.copy(), q.copy()
    loaded.load(npy_round_trip(q.save()))
    for twin in (loaded, copied):
        twin.update("there", ("go", 1), then)
    assert same_bits(loaded.save(), copied.save())
    assert not same_bits(q.save(), copied.save())
    q.update("there", ("go", 1), then)
    assert same_bits(q.save(), copied.save())
    assert fresh.log_predict("here", ("go", 1), first) != q.log_predict("here", ("go", 1), first)


@pytest.mark.parametrize(("fresh", "first", "then"), PREDICTORS)
@pytest.mark.parametrize("damage", ["rows", "keys", "start"])
def test_a_damaged_state_is_refused_and_changes_nothing(
    fresh: Any, first: Any, then: Any, damage: str
) -> None:
    q = fresh.copy()
    q.update(0, 0, first)
    saved = q.save()
    wrong = {
        "rows": -saved["rows"] - 1,
        "keys": np.array("['a', 'b']"),
        "start": saved["start"] + 1,
    }
    before = q.save()
    with pytest.raises(IncompatibleState):
        q.load(saved | {damage: wrong[damage]})
    assert same_bits(before, q.save())


def test_a_predictor_of_other_observations_is_not_loaded() -> None:
    with pytest.raises(IncompatibleState, match="saved with observations"):
        KrichevskyTrofimov("ab").load(KrichevskyTrofimov("ba").save())


def test_an_invalid_alphabet_is_refused() -> None:
    empty_or_repeated: list[Any] = [0, [], "aa"]
    for observations in empty_or_repeated:
        with pytest.raises(ValueError, match="at least one, without repetitions"):
            KrichevskyTrofimov(observations)
    odd: list[Any] = [2.5, None, [[1], [2]], [{}]]
    for observations in odd:
        with pytest.raises(MissingCapability, match="give their number, or a list"):
            KrichevskyTrofimov(observations)

"""Comparisons keep their error rate, whether evaluated once or after every run."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from bayescontrol import statistics
from bayescontrol._arrays import FloatArray
from bayescontrol.seeding import Stream
from bayescontrol.statistics.comparison import sign_flip_p_value
from bayescontrol.statistics.intervals import t_quantile
from bayescontrol.statistics.sequences import anytime_p_value


def slack(samples: int, rate: float = 0.05) -> float:
    """4.5 binomial standard deviations: a false-alarm rate of 7e-6."""
    return 4.5 * math.sqrt(rate * (1 - rate) / samples)


# -- sign flips and Holm -----------------------------------------------------------------------


def test_a_p_value_is_the_share_of_sign_patterns_that_reach_the_sum() -> None:
    d = Stream(1).normal(0.4, size=9)
    sums = [abs(np.dot(e, d)) for e in itertools.product((-1, 1), repeat=9)]
    assert sign_flip_p_value(d) == np.mean(np.array(sums) >= abs(d.sum()) - 1e-9)
    assert sign_flip_p_value(-d) == sign_flip_p_value(d)


def test_random_flips_agree_with_all_flips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 4.5 standard deviations of 9,999 flips."""
    d = Stream(2).normal(0.5, size=14)
    exact = sign_flip_p_value(d)
    monkeypatch.setattr(statistics.comparison, "_COUNT_ALL_UP_TO", 4)
    drawn = sign_flip_p_value(d)
    assert 0.01 < exact < 0.2
    assert drawn != exact
    assert abs(drawn - exact) < slack(9999, exact)
    monkeypatch.setattr(statistics.comparison, "_CELLS", 1000)
    assert sign_flip_p_value(d) == drawn


def test_sign_flips_keep_their_level_for_any_symmetric_distribution() -> None:
    """Normal times a power of ten: heavier tails than Cauchy. R = 4,000 samples of 8."""
    samples = 4000
    d = Stream(3).normal(size=(samples, 8)) * 10.0 ** Stream(4).integers(5, size=(samples, 8))
    p = np.array([sign_flip_p_value(row) for row in d])
    for alpha in (0.05, 0.2):
        assert (p <= alpha).mean() < alpha + slack(samples, alpha)


def test_equal_differences_of_few_runs_are_not_significant() -> None:
    """Student's t has zero variance to divide by, and would report certainty."""
    assert statistics.compare_pair([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]).verdict == "undecided"
    assert statistics.compare_pair(np.arange(8.0) + 1, np.arange(8.0)).verdict == "better"


def test_runs_without_a_difference_carry_no_evidence() -> None:
    same = np.arange(40.0)
    assert statistics.compare_pair(same, same).p_value == 1.0
    few = same + (same < 4)
    assert statistics.compare_pair(few, same).p_value == pytest.approx(2 / 2**4)


def test_holm_steps_down() -> None:
    """The example of Holm's procedure in every textbook, and its order-independence."""
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert statistics.holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistics.holm(p[::-1]) == pytest.approx(statistics.holm(p)[::-1])
    assert statistics.holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert statistics.holm([]).size == 0


@pytest.mark.parametrize("p", [[0.5, 1.2], [-0.1], [[0.1]], [math.nan]])
def test_a_value_that_is_not_a_p_value_is_refused(p: list[float]) -> None:
    with pytest.raises(statistics.InvalidSample, match="between 0 and 1"):
        statistics.holm(p)


def test_four_equal_agents_are_called_different_no_more_often_than_stated() -> None:
    """Six comparisons, R = 300; planted bug: without the correction the rate is 1 in 5."""
    samples, some, uncorrected = 300, 0, 0
    values = Stream(5).normal(size=(samples, 4, 10))
    for four in values:
        found = statistics.compare_pairs(dict(zip("abcd", four, strict=True)))
        some += any(one.verdict != "undecided" for one in found)
        uncorrected += any(one.p_value <= 0.05 for one in found)
    assert some / samples < 0.05 + slack(samples)
    assert uncorrected / samples > 0.05 + slack(samples)


# -- pairs -----------------------------------------------------------------------------------


def test_common_random_numbers_reveal_a_difference_hidden_without_them() -> None:
    """Planted bugs: shuffled pairs, and adding the variances of both agents."""
    common_noise, local = Stream(6).normal(size=50), Stream(7).normal(scale=0.1, size=(2, 50))
    new, old = common_noise + local[0] + 0.2, common_noise + local[1]
    paired = statistics.compare_pair(new, old, names=("new", "old"))
    assert paired.verdict == "better"
    assert paired.removed == pytest.approx(0.99, abs=0.01)
    unpaired = statistics.compare_pair(new, np.roll(old, 1))
    assert unpaired.verdict == "undecided"
    assert unpaired.difference.mean == pytest.approx(paired.difference.mean)
    half = (paired.difference.high - paired.difference.low) / 2
    apart = np.hypot(*(statistics.mean_and_error(values)[1] for values in (new, old)))
    assert half == pytest.approx(t_quantile(0.975, 49) * statistics.mean_and_error(new - old)[1])
    assert half < 0.2 * apart


def test_the_variance_removed_by_pairing_is_given_by_the_covariance() -> None:
    a = Stream(8).normal(size=30)
    for b in (2 * a, -a, Stream(9).normal(size=30)):
        expected = 2 * np.cov(a, b)[0, 1] / (a.var(ddof=1) + b.var(ddof=1))
        assert statistics.compare_pair(a, b).removed == pytest.approx(expected)
    assert math.isnan(statistics.compare_pair(np.ones(5), np.zeros(5)).removed)


@pytest.mark.parametrize(("higher", "verdict"), [(True, "better"), (False, "worse")])
@pytest.mark.parametrize("bounds", [None, (-1.0, 2.0)])
def test_the_verdict_respects_the_direction_of_the_metric(
    higher: bool, verdict: str, bounds: tuple[float, float] | None
) -> None:
    b = Stream(10).random(size=60)
    a = b + 0.5
    found = statistics.compare_pair(a, b, higher_is_better=higher, bounds=bounds)
    assert found.verdict == verdict
    swapped = statistics.compare_pair(b, a, higher_is_better=higher, bounds=bounds)
    assert {found.verdict, swapped.verdict} == {"better", "worse"}


def test_a_verdict_is_printed_with_its_numbers() -> None:
    b = Stream(11).random(size=40)
    worse = statistics.compare_pair(
        b + 0.25, b, names=("new", "old"), higher_is_better=False
    ).sentence
    assert worse.startswith("new is worse than old by 0.25 (95 % interval ")
    assert "p = 0.0001 by sign flips, 40 paired runs; pairing removed 100 %" in worse
    undecided = statistics.compare_pair(
        b, b[::-1].copy(), names=("new", "old"), alpha=0.01
    ).sentence
    assert undecided.startswith("new and old cannot be distinguished: the difference is 0")
    assert "99 % interval" in undecided
    assert "better" not in undecided
    many = statistics.compare_pairs({"x": b, "old": b + 1, "y": b + 2}, baseline="old")
    assert [one.names for one in many] == [("x", "old"), ("y", "old")]
    assert "corrected for 2 comparisons" in str(many[0])


def test_an_invalid_comparison_is_refused() -> None:
    with pytest.raises(statistics.InvalidSample, match="for the same runs in the same order"):
        statistics.compare_pair([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(statistics.InvalidSample, match="one value per run"):
        statistics.compare_pair(np.ones((4, 2)), np.ones((4, 2)))
    with pytest.raises(statistics.NoData, match="at least 2 runs"):
        statistics.compare_pair([1.0], [2.0])
    with pytest.raises(statistics.InvalidSample, match="no agent is called 'c': there are a, b"):
        statistics.compare_pairs({"a": [1.0, 2.0], "b": [1.0, 2.0]}, baseline="c")
    with pytest.raises(statistics.InvalidSample, match="at least two"):
        statistics.compare_pairs({"a": [1.0, 2.0]})
    with pytest.raises(statistics.InvalidSample, match=r"values of b from 0 to 3 leave the bounds"):
        statistics.compare_pair([0.5, 1.0], [0.0, 3.0], bounds=(0, 1))


# -- at any time ---------------------------------------------------------------------------------


def test_the_ends_of_a_confidence_sequence_are_where_the_capital_reaches_two_over_alpha() -> None:
    """The definition in plain loops, on every fifth m of the grid."""
    x, alpha = Stream(12).beta(3, 2, size=25), 0.1
    observed = statistics.confidence_sequence(x, (0, 1), alpha)
    for m in np.arange(5, 2000, 5) / 2000:
        up = down = 1.0
        ruled_out_below = ruled_out_above = False
        mean_sum, squares = 0.5, 0.25
        for i, x_i in enumerate(x, 1):
            stake = math.sqrt(2 * math.log(2 / alpha) / ((squares / i) * i * math.log(i + 1)))
            up *= 1 + min(stake, 0.75 / m) * (x_i - m)
            down *= 1 - min(stake, 0.75 / (1 - m)) * (x_i - m)
            mean_sum += x_i
            squares += (x_i - mean_sum / (i + 1)) ** 2
            ruled_out_below |= up >= 2 / alpha
            ruled_out_above |= down >= 2 / alpha
            assert (m <= observed.low[i - 1] + 1e-12) == ruled_out_below
            assert (m >= observed.high[i - 1] - 1e-12) == ruled_out_above


@pytest.mark.parametrize(
    ("distribution", "truth"),
    [
        (lambda s, size: s.beta(2.0, 6.0, size=size), 0.25),
        (lambda s, size: (s.random(size=size) < 0.05) * 1.0, 0.05),
    ],
)
def test_a_confidence_sequence_covers_at_all_times_at_once_and_peeking_at_t_does_not(
    distribution: Callable[..., FloatArray], truth: float
) -> None:
    """R = 1,000 samples of up to 300 values; planted bug: a t interval after every value."""
    samples, n = 1000, 300
    x = distribution(Stream(13), (samples, n))
    missed = np.array([anytime_p_value(row, (0, 1), mean=truth) <= 0.05 for row in x])
    assert missed.mean() < 0.05 + slack(samples)
    t = np.arange(1, n + 1)
    mean = x.cumsum(axis=1) / t
    spread = np.maximum((x**2).cumsum(axis=1) / t - mean**2, 0) / np.maximum(t - 1, 1)
    half = np.array([t_quantile(0.975, nu) for nu in range(9, n)]) * np.sqrt(spread[:, 9:])
    peeked = (np.abs(mean[:, 9:] - truth) > half).any(axis=1)
    assert peeked.mean() > 0.2


def test_the_p_value_and_the_sequence_exclude_the_same_means() -> None:
    x = Stream(14).random(size=(20, 80))
    for row in x:
        observed = statistics.confidence_sequence(row, (0, 1))
        for mean in (0.4, 0.6):
            outside = not observed.low[-1] < mean < observed.high[-1]
            assert (anytime_p_value(row, (0, 1), mean=mean) <= 0.05) == outside


def test_a_confidence_sequence_uses_only_the_past_and_never_widens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = Stream(15).normal(10.0, 0.3, size=300).clip(9, 11)
    observed = statistics.confidence_sequence(x, (9, 11))
    assert np.all(np.diff(observed.low) >= 0)
    assert np.all(np.diff(observed.high) <= 0)
    assert observed.low[-1] < 10 < observed.high[-1] < observed.low[-1] + 0.2
    early = statistics.confidence_sequence(x[:120], (9, 11))
    assert np.array_equal(early.low, observed.low[:120])
    assert np.array_equal(early.high, observed.high[:120])
    monkeypatch.setattr(statistics.sequences, "_CELLS", 5 * 2001)
    assert np.array_equal(statistics.confidence_sequence(x, (9, 11)).low, observed.low)


def test_looking_after_every_run_rarely_calls_an_equal_agent_better() -> None:
    """R = 400 pairs of equal agents, compared after runs 5, 10, … 60 until one wins."""
    samples, checkpoints = 400, range(5, 65, 5)
    a, b = Stream(16).random(size=(2, samples, 60))
    betting = sum(any(_wins(x[:n] - y[:n]) for n in checkpoints) for x, y in zip(a, b, strict=True))
    flips = sum(
        any(sign_flip_p_value(x[:n] - y[:n]) <= 0.05 for n in (5, 10, 15))
        or any(_t_wins(x[:n] - y[:n]) for n in checkpoints if n > 15)
        for x, y in zip(a, b, strict=True)
    )
    assert betting / samples < 0.05 + slack(samples)
    assert flips / samples > 0.05 + slack(samples)


def _wins(d: FloatArray) -> bool:
    return anytime_p_value(d, (-1, 1)) <= 0.05


def _t_wins(d: FloatArray) -> bool:
    mean, error = statistics.mean_and_error(d)
    return bool(abs(mean) > t_quantile(0.975, len(d) - 1) * error)


def test_a_sequential_comparison_stops_at_a_clear_winner() -> None:
    b = Stream(17).random(size=200)
    a = 0.7 * b + 0.3
    verdicts = [statistics.compare_pair(a[:n], b[:n], bounds=(0, 1)).verdict for n in (5, 200)]
    assert verdicts == ["undecided", "better"]
    message = str(statistics.compare_pair(a, b, names=("new", "old"), bounds=(0, 1)))
    assert "by betting, valid at any time" in message
    farthest = statistics.compare_pair(np.ones(40), np.zeros(40), bounds=(0, 1))
    assert (farthest.verdict, float(farthest.difference.high)) == ("better", 1.0)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_invalid_bounds_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(statistics.InvalidSample, match="smallest and largest"):
        statistics.confidence_sequence([0.5, 0.5], bounds)


def test_values_outside_the_bounds_are_refused() -> None:
    with pytest.raises(statistics.InvalidSample, match="hold for every run"):
        statistics.confidence_sequence([0.5, 1.5], (0, 1))
    with pytest.raises(statistics.InvalidSample, match="one value per run"):
        statistics.confidence_sequence(np.ones((3, 2)), (0, 1))
    with pytest.raises(statistics.InvalidSample, match="outside the bounds"):
        anytime_p_value([0.5, 0.6], (0, 1), mean=2.0)


def test_differences_that_happen_to_be_zero_and_one_are_no_proportion() -> None:
    """Wilson's interval would end at 0: it cannot say that the other agent may be better."""
    result = statistics.compare_pairs({"one": [2.0, 1.0, 1.0, 1.0, 1.0, 1.0], "other": np.ones(6)})[
        0
    ]
    assert result.difference.method == "t"
    assert result.difference.low < 0.0

"""The alarm: an e-process against all modes, with the stated false-alarm rate."""

import math
from typing import Any

import numpy as np
import pytest
from tests.alarms.planted import peeking

from bayescontrol import TabularModes, interact
from bayescontrol.alarms import (
    Alarm,
    Guarded,
    KrichevskyTrofimov,
    StudentPredictor,
    alarm_evidence,
)
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability
from bayescontrol.finite.tabular import random_modes
from bayescontrol.record import log_score
from bayescontrol.testing.laws import npy_round_trip, same_bits

DELTA = 0.1


def coins(*heads: float, prior: Any = None) -> TabularModes:
    return TabularModes([[[1]]] * len(heads), [[[[1 - p, p]]] for p in heads], prior=prior)


def alarm(modes: TabularModes, delta: float = DELTA) -> Alarm:
    return Alarm(KrichevskyTrofimov(modes.hypothesis.shape[-1]), delta)


def rate(modes: TabularModes, m: int, runs: int, steps: int, make: Any = alarm) -> float:
    """The share of runs in the world of mode m that raise an alarm."""
    raised = 0
    for run in range(runs):
        agent = Guarded(modes.agent(), make(modes))
        interact(agent, modes.environment(m), steps, seed=3, run=run)
        raised += agent.alarm.raised
    return raised / runs


def margin(runs: int) -> float:
    """Three standard errors of a share whose mean is δ."""
    return 3 * math.sqrt(DELTA * (1 - DELTA) / runs)


def test_the_evidence_is_q_over_the_likelihood_of_the_best_mode() -> None:
    modes = random_modes(4, situations=3, observations=3, seed=2)
    agent = Guarded(modes.agent(), alarm(modes))
    record = interact(agent, modes.environment(1), 60, probes={"bits": alarm_evidence}, seed=0)
    log_q, log_p, x, q = 0.0, np.zeros(4), modes.start, KrichevskyTrofimov(3)
    for t, (a, o) in enumerate(record):
        log_q += math.log(q.predictive(x, a)[o])
        log_p += np.log(modes.likelihoods(x, a, o))
        assert record["bits"][t] == pytest.approx((log_q - log_p.max()) / math.log(2), abs=1e-10)
        q.update(x, a, o)
        x = modes.advance(x, a, o)
    np.testing.assert_allclose(agent.alarm.mode_bits, (log_q - log_p) / math.log(2), atol=1e-10)


def chance_of_false_alarm(bell: Alarm, heads: tuple[float, ...], m: int, tosses: int) -> float:
    """The exact probability of a false alarm under mode m, over all sequences of tosses."""
    if bell.raised or tosses == 0:
        return float(bell.raised)
    total = 0.0
    for o in (0, 1):
        p = [q if o else 1 - q for q in heads]
        after = bell.copy()
        after.observe(None, None, o, np.log(p))
        total += p[m] * chance_of_false_alarm(after, heads, m, tosses - 1)
    return total


@pytest.mark.parametrize(("heads", "m"), [((0.5,), 0), ((0.1, 0.3), 1), ((0.7, 0.9), 0)])
def test_the_exact_chance_of_a_false_alarm_is_at_most_delta(
    heads: tuple[float, ...], m: int
) -> None:
    chance = chance_of_false_alarm(Alarm(KrichevskyTrofimov(2), DELTA), heads, m, 11)
    assert chance <= DELTA
    planted = Alarm(peeking(KrichevskyTrofimov)(2), DELTA)
    assert chance_of_false_alarm(planted, heads, m, 11) > DELTA


@pytest.mark.parametrize("m", [0, 1, 2])
def test_false_alarms_are_at_most_delta_under_every_mode(m: int) -> None:
    """A correct alarm fails with probability below 2e-3 for each mode, over seeds."""
    modes = random_modes(3, situations=2, observations=3, seed=5)
    assert rate(modes, m, runs=1000, steps=150) <= DELTA + margin(1000)


def test_a_predictor_that_counts_before_it_predicts_raises_false_alarms() -> None:
    modes = random_modes(3, situations=2, observations=3, seed=5)
    share = rate(modes, 0, 60, 60, lambda _: Alarm(peeking(KrichevskyTrofimov)(3), DELTA))
    assert share > DELTA + margin(60)


def test_comparing_with_the_mixture_would_raise_false_alarms() -> None:
    """E divides by the maximum, because the mixture predicts badly under an unlikely mode."""
    modes, runs = coins(0.8, 0.2, prior=[0.001, 0.999]), 100
    wrong = 0
    for run in range(runs):
        agent = Guarded(modes.agent(), alarm(modes))
        probes = {"bits": alarm_evidence, "mixture": log_score}
        record = interact(agent, modes.environment(0), 30, run=run, probes=probes, seed=0)
        p = np.array([[0.2, 0.8], [0.8, 0.2]])
        best = np.cumsum(np.log2(p.T[record.observations]), axis=0).max(axis=1)
        log_q = record["bits"] + best
        wrong += bool((log_q + record["mixture"].cumsum() >= -math.log2(DELTA)).any())
    assert wrong / runs > DELTA + margin(runs)
    assert rate(modes, 0, 1000, 30) <= DELTA + margin(1000)


def test_in_a_world_outside_the_class_the_alarm_is_always_raised() -> None:
    modes = coins(0.2, 0.8, 0.5, prior=[0.5, 0.5, 0.0])
    shares = [rate(modes, 2, 100, steps) for steps in (5, 50, 400)]
    assert shares[0] < shares[1] < shares[2] == 1.0


def test_evidence_grows_by_the_relative_entropy_from_the_nearest_mode() -> None:
    """Within four standard errors of 4,000 tosses, plus the cost of learning q."""
    modes = coins(0.2, 0.7, 0.5, prior=[0.5, 0.5, 0.0])
    agent = Guarded(modes.agent(), alarm(modes))
    interact(agent, modes.environment(2), 4000, seed=0)
    nearest = 0.5 * math.log2(0.5 / 0.7) + 0.5 * math.log2(0.5 / 0.3)
    error = 4 * 0.5 * math.log2(0.7 / 0.3) / math.sqrt(4000) + math.log2(4000) / 4000
    assert agent.alarm.evidence_bits / 4000 == pytest.approx(nearest, abs=error)


def test_it_stays_raised_until_it_is_reset_and_then_starts_again() -> None:
    bell = Alarm(KrichevskyTrofimov(2), DELTA)
    for _ in range(8):
        bell.observe(0, 0, 1, [math.log(0.5)])
    assert bell.raised
    step = bell.step
    for o in (0, 1) * 40:
        bell.observe(0, 0, o, [math.log(0.5)])
    assert bell.evidence_bits < 0.0
    assert (bell.raised, bell.step) == (True, step)
    bell.reset()
    assert (bell.raised, bell.step, bell.evidence_bits) == (False, None, 0.0)
    bell.observe(0, 0, 1, [math.log(0.5)])
    # q keeps what it has learned: 48 of 88.
    assert bell.evidence_bits == pytest.approx(math.log2(48.5 / 89 / 0.5))


def test_an_excluded_mode_stays_excluded_and_the_others_are_tested() -> None:
    bell = Alarm(KrichevskyTrofimov(2), DELTA)
    bell.observe(0, 0, 1, [-math.inf, math.log(0.5)])
    assert bell.mode_bits.tolist() == [math.inf, 0.0]
    bell.observe(0, 0, 1, [0.0, math.log(0.5)])
    assert bell.mode_bits[0] == math.inf
    assert not bell.raised
    bell.observe(0, 0, 0, [-math.inf, -math.inf])
    assert (bell.raised, bell.step, bell.evidence_bits) == (True, 3, math.inf)
    bell.observe(0, 0, 0, [0.0, 0.0])
    assert bell.evidence_bits == math.inf


def test_a_mode_that_joins_later_is_tested_from_then_on() -> None:
    bell = Alarm(KrichevskyTrofimov(2), DELTA)
    for _ in range(3):
        bell.observe(0, 0, 1, [math.log(0.1)])
    assert bell.raised
    bell.observe(0, 0, 1, [math.log(0.1), math.log(0.9)])
    assert bell.evidence_bits == pytest.approx(math.log2(3.5 / 4 / 0.9))


def test_probabilities_are_not_compared_with_densities() -> None:
    """A likelihood above one is a density and is refused; rounding errors are allowed."""
    bell = Alarm(KrichevskyTrofimov(2), DELTA)
    bell.observe(0, 0, 1, [1e-10, math.log(0.5)])
    before = bell.save()
    with pytest.raises(BadEvidence, match=r"likelihood 1\.65 .* under mode 1 .*StudentPredictor"):
        bell.observe(0, 0, 1, [0.0, 0.5])
    assert same_bits(before, bell.save())
    Alarm(StudentPredictor(), DELTA).observe(0, 0, 1.0, [0.5])


def test_the_repr_of_an_alarm() -> None:
    bell = Alarm(KrichevskyTrofimov(2), DELTA)
    assert repr(bell) == "Alarm(δ = 0.1, silent after 0 steps, 0 bits against the best mode)"
    bell.observe(0, 0, 1, [math.log(0.25)])
    assert repr(bell) == "Alarm(δ = 0.1, silent after 1 step, 1 bit against the best mode)"


@pytest.mark.parametrize(
    ("o", "log_p"),
    [
        (2, [0.0, 0.0]),
        (1, [0.0, math.nan]),
        (1, [0.0, math.inf]),
        (1, [0.0]),
        (1, []),
        (1, [[0.0, 0.0]]),
        *((1, odd) for odd in ("text", [None, None], [object()], None)),
    ],
)
def test_bad_evidence_changes_nothing(o: int, log_p: Any) -> None:
    bell = Alarm(KrichevskyTrofimov(2), DELTA)
    bell.observe(0, 0, 1, [math.log(0.5), math.log(0.1)])
    before = bell.save()
    with pytest.raises(BadEvidence):
        bell.observe(0, 0, o, log_p)
    assert same_bits(before, bell.save())


def test_a_predictor_that_returns_nan_is_refused() -> None:
    class Broken:
        def log_predict(self, x: Any, a: Any, o: Any) -> float:
            return math.nan

        def update(self, x: Any, a: Any, o: Any) -> None:
            raise AssertionError("the predictor must not learn")

    with pytest.raises(BadEvidence, match="nan"):
        Alarm(Broken(), DELTA).observe(0, 0, 0, [0.0])
    for verb in ("save", "copy"):
        with pytest.raises(MissingCapability, match="has no"):
            getattr(Alarm(Broken(), DELTA), verb)()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 5, math.nan, "often", None])
def test_delta_must_be_a_probability(delta: Any) -> None:
    with pytest.raises(ValueError, match=r"delta=.* must be in \(0\.0, 1\.0\)"):
        Alarm(KrichevskyTrofimov(2), delta)
    with pytest.raises(MissingCapability, match="KrichevskyTrofimov"):
        Alarm(object(), DELTA)  # type: ignore[arg-type]


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    bell = Alarm(KrichevskyTrofimov(2), DELTA)
    bell.observe(0, 0, 1, [math.log(0.5)])
    before = bell.save()
    for wrong in ({"clock": np.array([1, 5])}, {"predictor/rows": np.array([[-1, 0, 1]])}):
        with pytest.raises(IncompatibleState):
            bell.load(before | wrong)
        assert same_bits(before, bell.save())
    twin = Alarm(KrichevskyTrofimov(2), DELTA)
    twin.load(npy_round_trip(before))
    assert same_bits(twin.save(), before)

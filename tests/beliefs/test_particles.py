"""Particle beliefs: agreement with exact posteriors, errors, and resuming."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, Floor, ParticleBelief, Stream
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.beliefs.weights import Weights
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
)
from bayescontrol.testing import (
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)
from bayescontrol.testing.laws import evidence

ARMS = 2


def uniform_biases(n: int, rng: Stream) -> FloatArray:
    b = np.asarray(rng.random(size=(n, ARMS)))
    return np.log(b + 1e-300) - np.log1p(-b)


def log_likelihoods(theta: FloatArray, x: Any, a: int, o: int) -> FloatArray:
    if o not in (0, 1):
        raise BadEvidence(f"reward {o!r}")
    return np.asarray(-np.logaddexp(0.0, -theta[:, a] if o else theta[:, a]))


def act(theta: FloatArray, x: Any, rng: Stream) -> int:
    return int(theta.argmax())


def make(particles: int = 400, kind: type[ParticleBelief] = ParticleBelief, **rest: Any) -> Any:
    return kind(uniform_biases, log_likelihoods, act, particles, **rest)


HISTORY = [(None, 0, 1), (None, 0, 1), (None, 1, 0), (None, 0, 1), (None, 1, 1), (None, 0, 0)] * 8


def worst_error(kind: type[ParticleBelief], particles: int = 4000) -> float:
    """The largest error of the mean biases over 48 observations, in exact posterior sds."""
    belief, rng, worst = make(particles, kind, seed=5), Stream(6), 0.0
    counts = np.ones((ARMS, 2))
    for x, a, o in HISTORY:
        belief.observe(x, a, o)
        belief.sample(rng)
        counts[a, 1 - o] += 1
        n = counts.sum(1)
        mean = counts[:, 0] / n
        sd = np.sqrt(mean * (1 - mean) / (n + 1))
        ours = belief.posterior() @ (1.0 / (1.0 + np.exp(-belief.theta)))
        worst = max(worst, float(np.abs((ours - mean) / sd).max()))
    assert belief.renewals > 1
    return worst


def test_particles_agree_with_the_exact_posterior() -> None:
    """Mean biases within .15 posterior sds; 40 other seeds gave .03 to .09."""
    assert worst_error(ParticleBelief) < 0.15


class Forgetful(ParticleBelief):
    """Planted bug: resampled particles keep their weights, so evidence counts twice."""

    def _renew(self, rng: Stream) -> None:
        w = self.posterior()
        super()._renew(rng)
        self._weights = Weights(w)


def test_evidence_that_counts_twice_is_detected() -> None:
    assert worst_error(Forgetful) > 0.15


def test_the_laws_of_beliefs_and_agents_hold() -> None:
    check_deterministic(make, HISTORY)
    check_save(make, HISTORY)
    check_bad_evidence(make, HISTORY[:3], [(None, 0, 7), (None, 0, np.nan)])
    world = BernoulliBandit(ARMS).environment([0.3, 0.7])

    def agent() -> ControlRule[Any, Any, Any, Any]:
        return ControlRule(make(100))

    check_acting(agent, lambda: world, 40)
    check_same_seed(agent, lambda: world, 60)
    check_resume(agent, lambda: world, 60)


def test_sampling_renews_the_particles_without_changing_the_evidence() -> None:
    belief = make(100)
    for event in HISTORY:
        belief.observe(*event)
    before, theta = evidence(belief), belief.theta
    belief.sample(Stream(0))
    assert belief.renewals == 1
    assert not np.array_equal(theta, belief.theta)
    assert same_bits(before, evidence(belief))
    assert belief.effective_size == pytest.approx(100)


def test_a_threshold_of_zero_disables_renewal() -> None:
    belief = make(100, share=0.0)
    for event in HISTORY:
        belief.observe(*event)
        belief.sample(Stream(0))
    assert belief.renewals == 0
    assert belief.effective_size < 50


def test_weight_on_a_single_particle_raises_and_changes_nothing() -> None:
    def sharp(theta: FloatArray, x: Any, a: Any, o: float) -> FloatArray:
        return np.asarray(-1e6 * (theta[:, 0] - o) ** 2)

    belief = ParticleBelief(lambda n, rng: rng.normal(size=(n, 1)), sharp, act, 200)
    belief.observe(None, 0, 0.1)
    before = belief.save()
    with pytest.raises(BadEvidence, match="rest on one particle of 200"):
        belief.sample(Stream(0))
    assert same_bits(before, belief.save())


def test_evidence_that_rules_out_every_particle_raises_or_is_counted() -> None:
    def never(theta: FloatArray, x: Any, a: Any, o: Any) -> FloatArray:
        return np.full(len(theta), -np.inf)

    def belief(**rest: Any) -> ParticleBelief:
        return ParticleBelief(lambda n, rng: rng.normal(size=(n, 1)), never, act, 10, **rest)

    strict = belief()
    before = strict.save()
    with pytest.raises(ImpossibleObservation, match="observation 1 after action 0"):
        strict.observe(None, 0, 1)
    assert same_bits(before, strict.save())
    assert strict.log_predictive(None, 0, 1) == -np.inf
    for lenient in (belief(on_impossible="skip"), belief(on_impossible=Floor(1e-9))):
        lenient.observe(None, 0, 1)
        assert lenient.impossible == 1


@pytest.mark.parametrize("answer", [np.full(10, np.nan), np.zeros(3), "no", np.full(10, np.inf)])
def test_invalid_log_likelihoods_raise_and_change_nothing(answer: Any) -> None:
    belief = ParticleBelief(
        lambda n, rng: rng.normal(size=(n, 1)), lambda theta, x, a, o: answer, act, 10
    )
    before = belief.save()
    with pytest.raises(BadEvidence):
        belief.observe(None, 0, 1)
    assert same_bits(before, belief.save())


def test_the_predictive_probability_of_a_fair_coin_is_one_half() -> None:
    belief = make(200_000)
    assert belief.log_predictive(None, 0, 1) == pytest.approx(math.log(0.5), abs=0.007)
    assert belief.count == 0


def given(particles: FloatArray, n: int, rng: Stream) -> FloatArray:
    return particles


def test_bad_particles_are_refused() -> None:
    for bad in (np.zeros((3, 1)), np.zeros(10), np.full((10, 1), np.nan)):
        with pytest.raises(InvalidPrior, match="draw"):
            ParticleBelief(partial(given, bad), log_likelihoods, act, 10)
    with pytest.raises(InvalidPrior, match="at least 2"):
        make(1)
    with pytest.raises(InvalidPrior, match="expected an integer"):
        make(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="share"):
        make(10, share=2)
    with pytest.raises(ValueError, match="shrinkage"):
        make(10, shrinkage=-1)


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    belief = make(50)
    belief.observe(None, 0, 1)
    belief.sample(Stream(0))
    good = belief.save()
    other_prior = good["sampler/prior_draws"] + 0.1
    for damage in (
        {"count": np.array(-1)}, {"drawn": np.zeros(7)}, {"sampler/prior_draws": other_prior}
    ):  # fmt: skip
        with pytest.raises(IncompatibleState):
            belief.load(good | damage)
        assert same_bits(good, belief.save())

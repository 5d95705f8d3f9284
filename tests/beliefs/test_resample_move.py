"""Resample-move agrees with exact posteriors, including bimodal ones."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, ParticleBelief, Probe, Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.beliefs import ResampleMoveBelief
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability
from bayescontrol.testing import (
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)


def normal(n: int, rng: Stream) -> FloatArray:
    return rng.normal(size=(n, 1))


def log_normal(theta: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * theta[:, 0] ** 2)


def square_likelihoods(theta: FloatArray, x: Any, a: Any, o: float) -> FloatArray:
    """o ~ N(θ², 1): the sign of θ is never known, and the posterior has two modes."""
    if not math.isfinite(o):
        raise BadEvidence(f"observation {o!r}")
    return np.asarray(-0.5 * (o - theta[:, 0] ** 2) ** 2)


def normal_likelihoods(theta: FloatArray, x: Any, a: Any, o: float) -> FloatArray:
    return np.asarray(-0.5 * (o - theta[:, 0]) ** 2)


def act(theta: FloatArray, x: Any, rng: Stream) -> int:
    return int(theta[0] > 0.0)


def make(
    particles: int = 300, likelihoods: Any = square_likelihoods, **rest: Any
) -> ResampleMoveBelief:
    return ResampleMoveBelief(normal, log_normal, likelihoods, act, particles, **rest)


OBSERVATIONS = [float(o) for o in 2.0 + np.sin(np.arange(60))]
HISTORY = [(None, 0, o) for o in OBSERVATIONS[:12]]


def after_history(belief: ParticleBelief, seed: int) -> ParticleBelief:
    rng = Stream(seed)
    for o in OBSERVATIONS:
        belief.observe(None, 0, o)
        belief.renew(rng)
    return belief


def test_a_conjugate_posterior_is_approximated() -> None:
    """Mean within .1 posterior sds, variance within 10 %; 40 other seeds vary by .016 and 1.6 %."""
    mean, variance = conjugate_errors(seed=1)
    assert abs(mean) < 0.1
    assert abs(variance - 1.0) < 0.1


def conjugate_errors(seed: int) -> tuple[float, float]:
    """(E - exact) / sd and variance / exact: the posterior is N(Σo / (n+1), 1 / (n+1))."""
    belief = after_history(make(4000, normal_likelihoods, seed=seed), seed + 100)
    assert belief.renewals > 1
    n = len(OBSERVATIONS) + 1
    off = (belief.mean()[0] - sum(OBSERVATIONS) / n) * n**0.5
    return float(off), float(belief.covariance()[0, 0] * n)


def bimodal_errors(belief: ParticleBelief) -> tuple[float, float]:
    """(E|θ| - exact) / sd and sd / exact of |θ|, against a grid of 40,001 points."""
    grid = np.linspace(-6.0, 6.0, 40_001)[:, None]
    log_p = log_normal(grid) + sum(square_likelihoods(grid, None, 0, o) for o in OBSERVATIONS)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    size = np.abs(grid[:, 0])
    mean = p @ size
    sd = math.sqrt(p @ (size - mean) ** 2)
    w, ours = belief.posterior(), np.abs(belief.theta[:, 0])
    m = w @ ours
    return float((m - mean) / sd), float(math.sqrt(w @ (ours - m) ** 2) / sd)


def test_a_bimodal_posterior_stays_bimodal_unlike_with_a_gaussian_move() -> None:
    """|θ| within .2 sds, its spread within 15 %: 40 other seeds vary by .037 and 2.1 %.

    Liu and West shrink towards the mean between the modes: their spread was 2.7 to 6.8 times too
    large on these seeds.
    """
    off, spread = bimodal_errors(after_history(make(4000, seed=1), 101))
    assert abs(off) < 0.2
    assert abs(spread - 1.0) < 0.15
    _, liu_west = bimodal_errors(
        after_history(ParticleBelief(normal, square_likelihoods, act, 4000, seed=1), 101)
    )
    assert liu_west > 2.0


class ForgetsEvidence(ResampleMoveBelief):
    """Planted bug: moves are accepted without the evidence."""

    def _log_target(self, theta: FloatArray) -> FloatArray:
        return log_normal(theta)


def test_moves_that_ignore_the_evidence_are_detected() -> None:
    planted = ForgetsEvidence(normal, log_normal, square_likelihoods, act, 4000, seed=1)
    _, spread = bimodal_errors(after_history(planted, 101))
    assert abs(spread - 1.0) > 0.15


def test_the_laws_of_beliefs_and_agents_hold() -> None:
    check_deterministic(make, HISTORY)
    check_save(make, HISTORY)
    check_bad_evidence(make, HISTORY[:3], [(None, 0, np.nan), (None, 0, np.inf)])

    def agent() -> ControlRule[Any, Any, Any, Any]:
        return ControlRule(make(100))

    world = BernoulliBandit(2).environment([0.3, 0.7])
    check_acting(agent, lambda: world, 40)
    check_same_seed(agent, lambda: world, 60)
    check_resume(agent, lambda: world, 40)


def test_a_history_of_arrays_and_names_is_saved() -> None:
    def likelihoods(theta: FloatArray, x: Any, a: Any, o: Any) -> FloatArray:
        return np.asarray(-0.5 * ((o - theta * x) ** 2).sum(1))

    belief, twin = make(100, likelihoods), make(100, likelihoods)
    rng = Stream(2)
    for t in range(20):
        belief.observe(np.array([1.0, t]), ("push", t), np.array([1.0, 0.5 * t]))
        belief.renew(rng)
    twin.load(belief.save())
    belief.observe(np.array([1.0, 50.0]), ("push", 0), np.array([1.0, 20.0]))
    twin.observe(np.array([1.0, 50.0]), ("push", 0), np.array([1.0, 20.0]))
    belief.renew(Stream(3))
    twin.renew(Stream(3))
    assert same_bits(belief.save(), twin.save())


def test_the_history_is_copied() -> None:
    """An array that the world overwrites does not change what was learned."""
    belief, o = make(50, normal_likelihoods), np.zeros(())
    belief.observe(None, 0, o)
    o[...] = 100.0
    assert belief.save()["history/o"].tolist() == [0.0]


def test_the_effective_size_is_reported_and_renewals_become_rare() -> None:
    """A probe records n_eff; it is at least half of n after `sample` has resampled."""
    agent: ControlRule[Any, Any, Any, Any] = ControlRule(make(500, normal_likelihoods))
    world = BernoulliBandit(2).environment([0.3, 0.7])
    size = Probe(lambda agent, a, o: agent.belief.effective_size, "before")
    record = interact(agent, world, 200, probes={"n_eff": size}, seed=0)
    assert record["n_eff"].min() >= 250
    assert record["n_eff"].max() <= 500 + 1e-9
    assert 2 <= agent.belief.renewals <= 12
    assert 0.1 < agent.belief.accepted < 0.9


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    belief = make(50)
    for step in HISTORY:
        belief.observe(*step)
    saved = belief.save()
    other = make(50)
    before = other.save()
    for damage in (
        {"history/o": saved["history/o"][:-1]},
        {"count": np.array(3)},
    ):
        with pytest.raises(IncompatibleState):
            other.load({**saved, **damage})
        assert same_bits(other.save(), before)


def test_invalid_arguments_and_results_are_refused() -> None:
    with pytest.raises(ValueError, match="moves=0"):
        make(moves=0)
    with pytest.raises(ValueError, match="scale=0"):
        make(scale=0.0)
    for log_prior in (lambda theta: theta * np.nan, lambda theta: theta[:, 0] * np.nan):
        belief = ResampleMoveBelief(normal, log_prior, square_likelihoods, act, 100)
        for _, a, o in HISTORY:
            belief.observe(None, a, o)
        before = belief.save()
        with pytest.raises(BadEvidence):
            belief.renew(Stream(0))
        assert same_bits(belief.save(), before)


@pytest.mark.parametrize("name", ["draw", "log_prior", "log_likelihoods", "act"])
def test_an_invalid_function_is_named_in_the_error(name: str) -> None:
    parts: dict[str, Any] = {
        "draw": normal, "log_prior": log_normal, "log_likelihoods": normal_likelihoods, "act": act
    }  # fmt: skip
    with pytest.raises(MissingCapability, match=f"{name}=3"):
        ResampleMoveBelief(**{**parts, name: 3})


def test_errors_suggest_only_existing_options() -> None:
    def never(theta: FloatArray, x: Any, a: Any, o: Any) -> FloatArray:
        return np.full(len(theta), -np.inf)

    belief = ResampleMoveBelief(normal, log_normal, never, act, 10)
    with pytest.raises(BadEvidence, match="wider prior") as result:
        belief.observe(None, 0, 1.0)
    assert "on_impossible" not in str(result.value)

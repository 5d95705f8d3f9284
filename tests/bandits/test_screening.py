"""Screening in a bandit: runs have the same distribution, and the belief says if it is used."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, interact
from bayescontrol.bandits import ArmsBelief
from bayescontrol.bandits.discrete import Bernoulli
from bayescontrol.kernels import arms
from bayescontrol.seeding import Stream

# -- whole runs -----------------------------------------------------------------------------------


def blocks(runs: int, seed: int) -> SimpleNamespace:
    """z-scores of screening against plain drawing, in blocks of 100 steps of the benchmark."""
    bandit = BernoulliBandit(10)
    found = np.empty((runs, 2, 2, 10))
    for run in range(runs):
        world = bandit.draw(Stream.named(seed, run, "truth"))
        for way, screened in enumerate((True, False)):
            agent = bandit.agent(screening=screened)
            record = interact(agent, world, 1000, seed=seed + 1 + way, run=run)
            found[run, way, 0] = record.observations.reshape(10, 100).mean(1)
            found[run, way, 1] = (record.actions == world.best()).reshape(10, 100).mean(1)
    gap = found[:, 0] - found[:, 1]
    return SimpleNamespace(z=gap.mean(0) / (gap.std(0) / math.sqrt(runs)), mean=found.mean(0))


def test_runs_with_and_without_screening_have_the_same_statistics() -> None:
    """2,000 runs, rewards and best lever in ten blocks; |z| ≤ 4, false alarm 1.3e-3."""
    observed = blocks(2_000, seed=21)
    assert (np.abs(observed.z) <= 4.0).all(), observed.z


@pytest.mark.slow
def test_forty_thousand_runs_with_and_without_screening_agree() -> None:
    """As above, at full size; late reward and best lever are also within 4 standard errors of
    4,000 other runs.
    """
    observed = blocks(40_000, seed=22)
    assert (np.abs(observed.z) <= 4.0).all(), observed.z
    np.testing.assert_allclose(observed.mean[:, 0, -1], 0.9003, atol=0.006)
    np.testing.assert_allclose(observed.mean[:, 1, -1], 0.871, atol=0.006)


# -- where it applies ------------------------------------------------------------------------------


def test_screening_falls_back_if_counts_are_not_integers() -> None:
    assert BernoulliBandit(2).belief().chooses == "by screening"
    for prior in ((0.5, 0.5), (1.0, 1.5), (0.999, 1.0)):
        belief = BernoulliBandit(2, prior=prior).belief()
        assert belief.chooses.startswith("by drawing every arm: the posterior of 0")
        assert belief.chooses.endswith("has a parameter that is not a positive whole number")
        assert belief.draw_action(None, Stream(0)) in (0, 1)
    huge = BernoulliBandit(["red"], prior=(1, 1e12)).belief()
    assert (
        huge.chooses
        == "by drawing every arm: the posterior of red has a parameter that is above 4.29497e+09"
    )
    off = ArmsBelief(Bernoulli(), 2, screening=False)
    assert off.chooses == "by drawing every arm: screening is off"


def test_the_fallback_equals_drawing_every_arm() -> None:
    belief, rng = BernoulliBandit(3, prior=(0.5, 0.5)).belief(), Stream(5)
    twin, drawn = rng.copy(), np.empty(3)
    for _ in range(50):
        a = belief.draw_action(None, rng)
        assert a == arms.draw_action(
            arms.BERNOULLI, np.empty(0), belief.posterior(), np.arange(3), drawn, twin.state
        )


def test_a_belief_switches_to_the_fallback_when_an_arm_requires_it() -> None:
    belief = BernoulliBandit(2).belief()
    belief.add("half", prior=(0.5, 1.0))
    assert "half has a parameter that is not" in belief.chooses
    belief.observe(None, 0, 1)
    assert belief.posterior()[0].tolist() == [2.0, 1.0]
    whole = BernoulliBandit(2).belief()
    whole.add("new")
    assert whole.chooses == "by screening"
    assert {whole.draw_action(None, Stream(k)) for k in range(60)} == {0, 1, "new"}

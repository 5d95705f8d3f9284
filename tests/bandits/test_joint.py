"""Arms with a joint prior: one pull informs about all arms, exactly or by particles.

A grid of biases: its modes and their policies.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from bayescontrol import JointBandit, LogitNormalBandit, Stream, interact
from bayescontrol._compiled import find_loop
from bayescontrol.bandits.joint import bias_grid
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownArm,
)
from bayescontrol.testing import check_fused, check_modes, same_bits

BIASES = np.array([[0.9, 0.2, 0.5], [0.3, 0.8, 0.5], [0.3, 0.2, 0.6], [0.6, 0.6, 0.1]])
PRIOR = np.array([0.4, 0.3, 0.2, 0.1])


def test_a_pull_informs_about_all_arms_as_in_exact_enumeration() -> None:
    """Compare with Bayes' rule over all hypotheses, for every history of three pulls."""
    bandit = JointBandit(BIASES, PRIOR)
    for history in product(product(range(3), range(2)), repeat=3):
        agent, v = bandit.agent(), PRIOR.copy()
        for a, o in history:
            agent.observe(a, o)
            v = v * (BIASES[:, a] if o else 1 - BIASES[:, a])
        v /= v.sum()
        np.testing.assert_allclose(agent.belief.posterior(), v, rtol=1e-12)
        best = {a: v[BIASES.argmax(1) == a].sum() for a in range(3)}
        for a, p in agent.action_probabilities().items():
            assert p == pytest.approx(best[a], abs=1e-14)
        expected = bandit.expected(v)
        for a in range(3):
            assert agent.predictive(a)[1] == pytest.approx(expected[a], rel=1e-12)


def test_every_law_holds() -> None:
    """False alarms below 1e-6 over seeds."""
    bandit = JointBandit(BIASES, PRIOR)
    check_modes(bandit, prior=PRIOR, situation=0, advance=bandit.advance, steps=30, runs=300)


def test_the_compiled_loop_equals_the_readable_one() -> None:
    bandit = JointBandit(BIASES, PRIOR)
    assert find_loop(bandit.agent(), bandit.environment(1)) is not None
    check_fused(bandit.agent, lambda: bandit.environment(1), 300)


def test_an_environment_may_match_no_hypothesis() -> None:
    bandit = JointBandit(BIASES)
    record = interact(bandit.agent(), bandit.environment([0.0, 1.0, 0.0]), 50, seed=0)
    assert set(record.observations.tolist()) <= {0, 1}
    assert (record.actions == 1).mean() > 0.5


def test_bad_tables_are_refused() -> None:
    tables: list[Any] = [[[0.5, 1.2]], [[np.nan, 0.1]], [0.5, 0.5], [[]], "no"]
    for bad in tables:
        with pytest.raises(InvalidTable):
            JointBandit(bad)
    with pytest.raises(InvalidPrior):
        JointBandit([[0.5], [0.6]], prior=[0.5, 0.6])
    with pytest.raises(InvalidTable, match="for 3 arms: give one per arm"):
        JointBandit(BIASES).environment([0.5, 0.5])


# -- log-odds that are jointly Gaussian ------------------------------------------------------

RHO = 0.8
SIGMA = np.array([[1.0, RHO], [RHO, 1.0]])


def test_particles_learn_about_an_arm_from_related_arms() -> None:
    """E[θ_1 | pulls of arm 0] = ρ E[θ_0 | ·], the latter on a grid: within .1, exact sds are .7.

    4,000 particles, resampled once; 20 other seeds gave .01 to .06.
    """
    belief, rng = LogitNormalBandit([0.0, 0.0], SIGMA, 4000).belief(3), Stream(4)
    grid = np.linspace(-8, 8, 4001)
    log_p = -0.5 * grid**2
    for o in (1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1):
        belief.observe(None, 0, o)
        belief.sample(rng)
        log_p -= np.logaddexp(0.0, -grid if o else grid)
        p = np.exp(log_p)
        exact = float(p @ grid / p.sum())
        assert abs(belief.mean()[0] - exact) < 0.1
        assert abs(belief.mean()[1] - RHO * exact) < 0.1
    assert belief.mean()[1] > 0.5  # without correlation it would be 0


def test_the_agent_pulls_the_better_arm() -> None:
    bandit = LogitNormalBandit([0.0, 0.0, 0.0], np.eye(3) + 0.5, 500)
    record = interact(bandit.agent(), bandit.environment([0.2, 0.5, 0.9]), 300, seed=0)
    assert (record.actions[100:] == 2).mean() > 0.8
    assert ((bandit.draw(0).means() > 0) & (bandit.draw(0).means() < 1)).all()


def test_an_invalid_prior_of_log_odds_is_refused() -> None:
    for mean, covariance in (
        ([0.0], SIGMA),
        ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
        ([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]),
        ([0.0, np.nan], SIGMA),
        ([0.0, 0.0], [[np.inf, 0.0], [0.0, 1.0]]),
        (["a", "b"], SIGMA),
    ):
        with pytest.raises(InvalidPrior):
            LogitNormalBandit(mean, covariance)


#: A bandit of each kind, and others whose states do not fit it.
JOINT: list[tuple[Any, list[Any], str]] = [
    (JointBandit([[0.9, 0.1], [0.1, 0.9]]), [JointBandit([[0.1, 0.9]] * 2)], "mode 0"),
    (
        LogitNormalBandit([0.0, 0.0], SIGMA, 50),
        [LogitNormalBandit([0.0, 0.1], SIGMA, 50), LogitNormalBandit([0.0, 0.0], np.eye(2), 50)],
        "another prior",
    ),
]


@pytest.mark.parametrize(("bandit", "others", "words"), JOINT)
def test_a_state_of_another_bandit_is_not_loaded(
    bandit: Any, others: list[Any], words: str
) -> None:
    agent = bandit.agent()
    agent.observe(0, 1)
    for other in (problem.agent() for problem in others):
        before = other.save()
        with pytest.raises(IncompatibleState, match=words):
            other.load(agent.save())
        assert same_bits(before, other.save())
    again = bandit.agent()
    again.load(agent.save())
    assert same_bits(again.save(), agent.save())


@pytest.mark.parametrize("bandit", [bandit for bandit, _, _ in JOINT])
def test_arms_and_rewards_are_checked_and_booleans_are_numbers(bandit: Any) -> None:
    agent = bandit.agent()
    before = agent.save()
    arm: Any
    for arm in (2, -1, "red", [0], None, np.array([0, 1])):
        with pytest.raises(UnknownArm, match="the arms are 0, 1"):
            agent.observe(arm, 1)
    reward: Any
    for reward in (2, 0.5, np.nan, None, "1"):
        with pytest.raises(BadEvidence, match=r"reward .* 0 or 1") as caught:
            agent.observe(0, reward)
        assert "particles" not in str(caught.value)
    assert same_bits(before, agent.save())
    for one, other in (((0, True), (0, 1)), ((0, np.True_), (0, 1)), ((True, 0.0), (1, 0))):
        first, second = bandit.agent(), bandit.agent()
        first.observe(*one)
        second.observe(*other)
        assert same_bits(first.save(), second.save())
    if isinstance(bandit, JointBandit):
        with pytest.raises(UnknownArm):
            agent.predictive(2)


def test_every_combination_of_levels_is_a_mode() -> None:
    levels = (0.2, 0.5, 0.8)
    modes = bias_grid(3, levels)
    assert len(modes) == 27
    for m, biases in enumerate(product(levels, repeat=3)):
        assert [modes[m].likelihood(0, a, 1) for a in range(3)] == list(biases)


def test_each_mode_pulls_its_best_arm_and_shares_ties() -> None:
    modes = bias_grid(2, (0.2, 0.5, 0.8))
    probabilities = {modes.name(m): modes[m].action_probabilities(0) for m in range(len(modes))}
    assert probabilities["(.2, .8)"] == {1: 1.0}
    assert probabilities["(.8, .5)"] == {0: 1.0}
    assert probabilities["(.5, .5)"] == {0: 0.5, 1: 0.5}
    assert bias_grid(1, (0, 0.25, 1)).names == ("(0)", "(.25)", "(1)")


@pytest.mark.parametrize(
    ("arms", "levels", "message"),
    [
        (0, (0.5,), "arms=0"),
        *((2, levels, "levels=") for levels in ((), (0.5, 0.5), (0.5, 1.5), (math.nan,))),
        (40, (0.2, 0.8), r"2\^40 modes, the limit is 10000"),
    ],
)
def test_an_invalid_grid_is_refused_by_name(
    arms: int, levels: tuple[float, ...], message: str
) -> None:
    with pytest.raises(InvalidTable, match=message):
        bias_grid(arms, levels)

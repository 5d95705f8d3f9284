"""Calibration of predictions, posteriors and actions for independent arms.

Stochastic tests fix their seed; over seeds each raises a false alarm with the rate it states.
"""

import math
from contextlib import suppress
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from scipy import integrate  # type: ignore[import-untyped]
from scipy import special as sc
from tests.chance import chi_square, distance

from bayescontrol import ExponentialBandit, GaussianBandit, PoissonBandit, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import ArmsBelief, Bandit
from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.seeding import Stream

Case = Any  # the class `Case` in `conftest`


# -- predictions ----------------------------------------------------------------------------------


def test_the_evidence_of_a_stream_is_the_same_in_every_order(case: Case) -> None:
    """P(o_1) P(o_2 | o_1) … does not depend on the order of the rewards."""
    rewards = [o for _, _, o in case.history(5, seed=3)]
    arm, totals = case.bandit.labels[0], []
    for order in permutations(rewards):
        belief, total = case.bandit.belief(), 0.0
        for o in order:
            total += belief.log_predictive(None, arm, o)
            belief.observe(None, arm, o)
        totals.append(total)
    assert max(totals) - min(totals) < 1e-12 * max(1.0, abs(totals[0]))


def density(belief: ArmsBelief, arm: Any) -> Any:
    return lambda r: math.exp(belief.log_predictive(None, arm, r))


def is_possible(family: Any, r: float) -> bool:
    with suppress(BadEvidence):
        return bool(family.reward(r) == r)
    return False


def predictive_cells(belief: ArmsBelief, arm: Any) -> tuple[FloatArray, FloatArray]:
    """Return the edges of cells and their probabilities, by integrating the density."""
    family: Any = belief.family
    if not hasattr(family, "predictive") and is_possible(family, 0.5):
        low = -math.inf if is_possible(family, -1.0) else 0.0
        edges = np.array([low, *np.linspace(0.3, 4.5, 12), math.inf])
        p = [
            integrate.quad(density(belief, arm), a, b, epsabs=1e-12)[0] for a, b in pairwise(edges)
        ]
    else:
        finite = hasattr(family, "predictive")
        points = [*family.predictive(belief.posterior()[0])] if finite else list(range(2000))
        edges = np.array([x - 0.5 for x in points] + [points[-1] + 0.5])
        p = [math.exp(belief.log_predictive(None, arm, x)) for x in points]
    return edges, np.array(p)


def test_the_predictive_sums_to_one_and_matches_reward_frequencies(case: Case) -> None:
    """Worlds drawn from the posterior, one reward each; chi-square, false alarm 1e-6.

    A planted bug, the predictive of a belief after one reward only, is detected.
    """
    runs = 20_000
    history, arm = case.history(40), case.bandit.labels[1]
    belief, stale = case.bandit.belief(), case.bandit.belief()
    for x, a, o in history:
        belief.observe(x, a, o)
    edges, p = predictive_cells(belief, arm)
    assert abs(p.sum() - 1.0) < 1e-8
    family, rng = belief.family, Stream(5)
    row = np.repeat(belief.posterior()[1:2], runs, axis=0)
    truth = family.draw_truth(row, rng)
    world = Bandit(family, runs).environment(truth if truth.shape[1] > 1 else truth[:, 0])
    rewards = [world.respond(j, rng) for j in range(runs)]
    counts = np.histogram(rewards, edges)[0].astype(float)
    assert chi_square(counts, runs * p) > 1e-6
    stale.observe(None, arm, 1)
    wrong = predictive_cells(stale, arm)[1]
    assert chi_square(counts, runs * wrong) < 1e-6


def test_predictive_needs_a_finite_set_of_rewards(case: Case) -> None:
    agent, arm = case.bandit.agent(), case.bandit.labels[0]
    if "predictive" in dir(case.bandit.family):
        probabilities = agent.predictive(arm)
        assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-15)
        for o, p in probabilities.items():
            assert math.exp(agent.belief.log_predictive(None, arm, o)) == pytest.approx(
                p, rel=1e-14
            )
    else:
        with pytest.raises(MissingCapability, match="log_predictive"):
            agent.predictive(arm)


# -- calibration --------------------------------------------------------------------------------


def ranks(case: Case, runs: int, draws: int, learn: int = 1) -> FloatArray:
    """Count the drawn means below the true one, for worlds drawn from the prior.

    `learn` = 2 is a planted bug: each reward is learned twice.
    """
    found = []
    for run in range(runs):
        rng = Stream.named(11, run, "truth")
        world, agent = case.bandit.draw(rng), case.bandit.agent()
        record = interact(agent, world, 6, seed=11, run=run)
        for a, o in list(record) * (learn - 1):
            agent.observe(a, o)
        means = np.array([agent.belief.sample(rng).means for _ in range(draws)])
        found.append((means < world.means()).sum(0))
    return np.concatenate(found)


def test_ranks_of_the_true_means_are_uniform_and_a_planted_bug_is_detected(case: Case) -> None:
    """Simulation-based calibration: given the history, the true mean and 15 draws have the same
    distribution, so its rank is uniform on 0 … 15. Chi-square, false alarm 1e-6.
    """
    draws, runs = 15, 700

    def p_value_of_ranks(learn: int) -> float:
        counts = np.bincount(ranks(case, runs, draws, learn), minlength=draws + 1)
        return chi_square(counts.astype(float), np.full(draws + 1, 3 * runs / (draws + 1)))

    assert p_value_of_ranks(1) > 1e-6
    assert p_value_of_ranks(2) < 1e-6


def matches(case: Case, greedy: bool, runs: int) -> FloatArray:
    """[chosen = best] - Σ_a P(a)², for worlds drawn from the prior, after eight steps."""
    gaps = np.empty(runs)
    for run in range(runs):
        rng = Stream.named(13, run, "truth")
        world, agent = case.bandit.draw(rng), case.bandit.agent()
        interact(agent, world, 8, seed=13, run=run)
        p = agent.action_probabilities()
        chosen = max(p, key=p.__getitem__) if greedy else agent.act(rng)
        gaps[run] = (chosen == world.best()) - sum(q * q for q in p.values())
    return gaps


def test_the_chosen_arm_is_best_as_often_as_two_draws_agree(exact: Case) -> None:
    """P(a_t = best) = E[Σ_a P(a | past)²] with exact P. |z| < 5.5; by Bernstein's inequality
    false alarms are below 1e-6. An agent that takes the likeliest arm is detected.
    """
    runs = 2000
    for greedy in (False, True):
        gaps = matches(exact, greedy, runs)
        z = gaps.mean() / (gaps.std() / math.sqrt(runs))
        assert (abs(z) < 5.5) is not greedy, z


def test_actions_have_their_exact_probabilities(exact: Case) -> None:
    """Chi-square of 20,000 actions, false alarm 1e-6 for each of nine comparisons.

    Actions are drawn by `draw_action` and through a drawn mode. A planted bug, probabilities
    that are ten rewards old, is detected.
    """
    old: FloatArray | None = None
    for steps, wrong in ((0, False), (6, False), (16, True)):
        agent = exact.bandit.agent()
        for _, a, o in exact.history(steps, seed=2) if steps else []:
            agent.observe(a, o)
        p = np.array([agent.action_probabilities()[a] for a in exact.bandit.labels])
        assert abs(p.sum() - 1.0) < 1e-10
        arms = list(exact.bandit.labels)
        by_action = agent.batch(20_000, Stream(steps))
        rng = Stream(steps + 1)
        by_mode = [agent.decide(None, rng)[1] for _ in range(20_000)]
        for actions in (by_action, by_mode):
            counts = np.array([actions.count(a) for a in arms], float)
            assert chi_square(counts, 20_000 * p) > 1e-6
            if wrong and old is not None:
                assert chi_square(counts, 20_000 * old) < 1e-6
        old = p


@pytest.mark.parametrize(
    ("bandit", "cdf"),
    [
        (GaussianBandit(20_000, sd=1, prior=(3, 2)), lambda t: sc.ndtr((t - 3.0) / 2.0)),
        (  # scale² β/ακ = 1
            GaussianBandit(20_000, sd=None, prior=(3, 2, 1.5, 3)),
            lambda t: sc.stdtr(3.0, t - 3.0),
        ),
        (PoissonBandit(20_000, prior=(2.5, 3)), lambda t: sc.gammainc(2.5, 3.0 * t)),
        (ExponentialBandit(20_000, prior=(2.5, 3)), lambda t: sc.gammaincc(2.5, 3.0 / t)),
    ],
)
def test_drawn_worlds_have_the_distribution_of_the_prior(bandit: Bandit, cdf: Any) -> None:
    """Kolmogorov-Smirnov at 2.69: false alarm 1e-6 each."""
    world = bandit.draw(2)
    assert distance(world.means(), cdf) < 2.69
    if world.truth.shape[1] > 1:  # the precisions of the noise
        assert distance(world.truth[:, 1] ** -2.0, lambda t: sc.gammainc(1.5, 3.0 * t)) < 2.69

"""The sampler that learns the noise of each pair, compared with its printed conditionals."""

from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol import Stream, interact, kernels
from bayescontrol.errors import InvalidPrior
from bayescontrol.interaction import both_streams
from bayescontrol.mdp import ADAPTIVE, GibbsBelief, GibbsMDP, GibbsPrior, Maze, Step, random_mdp

LAMBDA0, MU0 = 0.5, 0.7
REWARDS = {"y": [1.0, 2.0, 4.0], "z": [-1.0, 0.5]}


def one_pair() -> tuple[Any, Any]:
    """Evidence and chain of the pair (x, 0) with the rewards above; M = 0, 3, -2 for x, y, z."""
    belief = GibbsBelief(1, GibbsPrior(mu0=MU0, lambda0=LAMBDA0))
    for y, rewards in REWARDS.items():
        for r in rewards:
            belief.observe("x", 0, (r, y))
    belief.ledger.chain.M[:3] = 0.0, 3.0, -2.0
    return belief.ledger.evidence, belief.ledger.chain


def expected() -> tuple[float, float, float]:
    """S, T̄ and SS by a regression on the rewards and on one prior observation per successor.

    An observation r of y is a target r + M(y) of weight 1; the prior is μ0 + M(y), of weight λ0.
    """
    rows = [(1.0, r + {"y": 3.0, "z": -2.0}[y]) for y, rs in REWARDS.items() for r in rs]
    rows += [(LAMBDA0, MU0 + 3.0), (LAMBDA0, MU0 - 2.0)]
    w, target = np.array(rows).T
    mean = float(w @ target / w.sum())
    return float(w.sum()), mean, float(w @ (target - mean) ** 2)


def test_the_target_and_the_squares_of_a_pair_are_those_of_a_weighted_regression() -> None:
    e, c = one_pair()
    _, mean, squares = expected()
    np.testing.assert_allclose(kernels.gibbs_learned.pair_target(e, c, 0, 0), (mean, squares))


def test_q_of_a_pair_has_the_marginal_of_its_conditional() -> None:
    """A Student t with 2 + n degrees of freedom. P(a correct sampler fails) = 1e-4."""
    (e, c), rng, level = one_pair(), Stream(0), 0.3
    draw = kernels.gibbs_learned.draw_pair
    q = [draw(e, c, 0, 0, level, 1e9, rng.state) for _ in range(20_000)]
    s, mean, squares = expected()
    scale = np.sqrt((level + squares / 2) / (1 + 5 / 2) / s)
    assert stats.kstest(q, stats.t(2 + 5, mean, scale).cdf).pvalue > 1e-4


def test_the_noise_of_a_pair_is_limited() -> None:
    """Draws are at most normal with variance limit/S. P(a correct sampler fails) = 1e-4."""
    (e, c), rng, limit = one_pair(), Stream(1), 1e-3
    q = [kernels.gibbs_learned.draw_pair(e, c, 0, 0, 0.3, limit, rng.state) for _ in range(5_000)]
    s, mean, _ = expected()
    assert stats.kstest(q, stats.norm(mean, np.sqrt(limit / s)).cdf).pvalue > 1e-4


def actions(factor: float, steps: int = 400) -> tuple[list[Any], GibbsBelief]:
    """The actions in a random MDP if all rewards are multiplied by a factor."""
    mdp = random_mdp(6, 3, concentration=0.3, seed=2)
    world, agent = mdp.environment(), GibbsMDP(3, mdp.environment().x, ADAPTIVE).agent()
    p, q = both_streams(0, 0)
    taken = []
    for _ in range(steps):
        a = agent.act(p)
        o = world.respond(a, q)
        agent.observe(a, Step(factor * o.reward, o.state))
        taken.append(a)
    assert isinstance(agent.belief, GibbsBelief)
    return taken, agent.belief


def test_the_unit_of_the_rewards_does_not_change_any_action() -> None:
    (taken, belief), (scaled, other) = actions(1.0), actions(1024.0)
    assert len(set(taken)) == 3
    assert taken == scaled
    assert other.rho == 1024 * belief.rho
    assert other.precision == belief.precision / 1024**2


def test_a_restored_belief_continues_with_the_same_draws() -> None:
    _, belief = actions(1.0, 50)
    restored = GibbsBelief(3, ADAPTIVE)
    restored.load(belief.save())
    drawn = [b.sample(Stream(3)).Q for b in (belief, restored)]
    np.testing.assert_array_equal(drawn[0], drawn[1])


def test_it_finds_the_goal_of_a_maze_without_a_choice_of_precision() -> None:
    mdp = Maze("three-cups").mdp()
    record = interact(GibbsMDP(4, 0, ADAPTIVE).agent(), mdp.environment(0), 20_000, seed=0)
    assert record.observations["reward"][-5_000:].mean() > 0.33  # the optimum is .365


@pytest.mark.parametrize("options", [{"partial": 2}, {"states": 3}, {"recentre": False}])
def test_options_that_the_learned_precision_does_not_support_are_refused(options: Any) -> None:
    with pytest.raises(InvalidPrior, match="needs partial=0, recentre=True"):
        GibbsBelief(2, ADAPTIVE, **options)

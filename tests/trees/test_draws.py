"""Drawn trees and leaves have the posterior distribution, which enumeration gives exactly."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.chance import chi_square
from tests.trees import enumeration
from tests.trees.worlds import TIGER, Tiger, by_field, learned, random_cycles, small, tree_of

from bayescontrol import Stream, interact
from bayescontrol.errors import MissingCapability
from bayescontrol.trees import ContextTreeBelief, ContextTrees

#: The false-alarm rate of each statistical test; the seeds are fixed.
RARE = 1e-6


def shape_of(belief: ContextTreeBelief, trees: Any, slot: int) -> Any:
    """Return a drawn tree as nested tuples, and the parameters of its leaves by context."""
    shape, leaves = tree_of(belief, trees.child, slot)
    E = belief.layout.size[slot]
    return shape, {context: trees.p[node, :E] for context, node in leaves.items()}


def draws(belief: ContextTreeBelief, number: int) -> list[Any]:
    rng = Stream(5)
    return [belief.draw(rng).plan.trees for _ in range(number)]


@pytest.mark.parametrize("steps", [1, 8, 40])
def test_drawn_trees_have_the_posterior_of_all_trees(steps: int) -> None:
    problem = small(3)
    cycles = random_cycles(problem, steps, seed=2)
    belief = learned(problem, cycles)
    drawn = draws(belief, 20_000)
    for slot, data, widths, E in by_field(problem, cycles):
        exact = enumeration.joint(data, widths, E)
        total = sum(exact.values())
        counts = Counter(shape_of(belief, trees, slot)[0] for trees in drawn)
        assert counts.keys() <= exact.keys()
        shapes = list(exact)
        expected = np.array([float(exact[shape] / total) for shape in shapes]) * len(drawn)
        assert chi_square(np.array([counts[shape] for shape in shapes]), expected) > RARE


def test_drawn_leaves_have_their_dirichlet_posterior() -> None:
    """The mean and the variance of every leaf of the trees that are drawn most often."""
    problem = small(3)
    cycles = random_cycles(problem, 25, seed=3)
    belief = learned(problem, cycles)
    drawn = draws(belief, 20_000)
    checked = 0
    for slot, data, _, E in by_field(problem, cycles):
        found: dict[Any, list[Any]] = {}
        for trees in drawn:
            shape, leaves = shape_of(belief, trees, slot)
            found.setdefault(shape, []).append(leaves)
        for shape, draws_of_shape in sorted(found.items(), key=lambda pair: -len(pair[1]))[:4]:
            for leaf in draws_of_shape[0]:
                alpha = np.full(E, 1 / E)
                for context, k in data:
                    alpha[k] += enumeration.leaf_of(shape, context) == leaf
                mean = alpha / alpha.sum()
                variance = mean * (1 - mean) / (alpha.sum() + 1)
                p = np.array([leaves[leaf] for leaves in draws_of_shape])
                z = (p.mean(0) - mean) / np.sqrt(variance / len(p))
                # Over 100 numbers are checked: 6.5 is exceeded once in 1e8 by chance each.
                assert np.abs(z).max() < 6.5
                spread = np.sqrt(p.var(0) / variance)
                assert np.abs(spread - 1).max() < 30 / math.sqrt(len(p))
                checked += p.shape[1]
    assert checked > 40


def test_the_only_observation_of_a_context_reaches_leaves_that_are_not_in_memory() -> None:
    problem = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=3)
    belief = problem.belief()
    belief.observe(None, 1, (1.0,))
    assert belief.nodes == 1
    means: dict[Any, list[Any]] = {}
    for trees in draws(belief, 20_000):
        for leaf, p in shape_of(belief, trees, 1)[1].items():
            means.setdefault(leaf, []).append(p[1])
    for leaf, ps in means.items():
        expected = 0.75 if leaf == (1, 0, 0)[: len(leaf)] else 0.5
        # The variances are below .125; 7 standard errors.
        assert abs(np.mean(ps) - expected) < 7 * math.sqrt(0.125 / len(ps))


def test_with_full_memory_no_tree_goes_beyond_the_nodes() -> None:
    problem = small(5, max_nodes=40)
    belief = learned(problem, random_cycles(problem, 200, seed=5))
    assert belief.is_full
    for trees in draws(belief, 500):
        assert (trees.source >= 0).all()


def test_the_average_drawn_mode_predicts_as_the_belief() -> None:
    problem = small(6)
    belief = learned(problem, random_cycles(problem, 60, seed=6))
    predicted, rng, number = belief.predictive(None, 1), Stream(8), 4_000
    total = dict.fromkeys(predicted, 0.0)
    for _ in range(number):
        for o, p in belief.sample(rng).observation_probabilities(None, 1).items():
            total[o] += p
    for o, p in predicted.items():
        # The variance of a probability with mean p is at most p (1 - p); 6 standard errors.
        assert abs(total[o] / number - p) < 6 * math.sqrt(p * (1 - p) / number)


def test_a_draw_with_too_little_room_is_repeated_with_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    belief = learned(small(6), random_cycles(small(6), 300, seed=7))
    expected = [belief.draw(Stream(seed)).plan for seed in range(20)]
    monkeypatch.setattr("bayescontrol.trees.belief.FIRST_DRAWN", 1)
    for seed, plan in enumerate(expected):
        found = belief.draw(Stream(seed)).plan
        assert (found.trees.child == plan.trees.child).all()
        assert (found.trees.p == plan.trees.p).all()
    assert max(len(plan.trees.child) for plan in expected) > 16


def test_the_log_odds_of_deep_nodes_do_not_overflow() -> None:
    """A world that only a deep tree explains, for 20,000 steps."""
    problem = ContextTrees(1, {"reward": [0.0, 1.0]}, depth=8)
    belief, rng, rewards = problem.belief(), Stream(9), [0.0, 0.0]
    for _ in range(20_000):
        r = float(int(rewards[-1] != rewards[-2]) ^ int(rng.random() < 0.1))
        rewards.append(r)
        belief.observe(None, 0, (r,))
    entropy = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    assert belief.log_evidence / 20_000 == pytest.approx(-entropy, abs=0.01)
    assert np.abs(belief._used_nodes().odds[np.isfinite(belief._used_nodes().odds)]).max() > 1_000
    m = belief.sample(Stream(0))
    p = m.observation_probabilities(None, 0)
    likely = (float(rewards[-1] != rewards[-2]),)
    assert p[likely] == pytest.approx(0.9, abs=0.05)


def test_drawn_trees_have_no_index_to_record() -> None:
    with pytest.raises(MissingCapability, match="no index: record what you need of the mode"):
        interact(TIGER.agent(), Tiger(), 3, seed=0, probes=["drawn_mode"])

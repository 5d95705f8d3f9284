"""The two variational theorems on random systems, and D and C as information."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.entropy.entropies import (
    intervened_relative_entropy,
    mutual_information,
    relative_entropy,
)

from bayescontrol._arrays import FloatArray
from bayescontrol.baselines import UniformSystem
from bayescontrol.entropy import InteractionTree, bits, entropy_of, weigh

T = 3
WEIGHTINGS = ["uniform", "closed-loop", "printed", "policy"]


def agree(x: FloatArray, y: FloatArray) -> None:
    np.testing.assert_allclose(x, y, rtol=0.0, atol=1e-12)


class Blend:
    """(1 - ε) optimum + ε other in every conditional, or only in the conditional `only`."""

    def __init__(self, optimum: Any, other: Any, eps: float, only: Any = None) -> None:
        self.optimum, self.other, self.eps, self.only = optimum, other, eps, only

    def start(self) -> Any:
        return (), self.optimum.start()

    def advance(self, s: Any, a: int, o: int) -> Any:
        return (*s[0], (a, o)), self.optimum.advance(s[1], a, o)

    def _blend(self, p: Mapping[int, float], q: Mapping[int, float], where: Any) -> Any:
        eps = self.eps if self.only in (None, where) else 0.0
        return {k: (1 - eps) * p.get(k, 0.0) + eps * q[k] for k in q}

    def action_probabilities(self, s: Any) -> dict[int, float]:
        p = self.optimum.action_probabilities(s[1])
        return dict(self._blend(p, self.other.action_probabilities(s[0]), s[0]))

    def observation_probabilities(self, s: Any, a: int) -> dict[int, float]:
        p = self.optimum.observation_probabilities(s[1], a)
        return dict(self._blend(p, self.other.observation_probabilities(s[0], a), (s[0], a)))


def competitors(optimum: Any, case: Any) -> list[Any]:
    """Random systems, and the optimum perturbed everywhere or in a single conditional."""
    others = [case.rival(f"rival {k}") for k in range(4)]
    places: list[Any] = [(), ((), 1), ((0, 1),), (((1, 0),), 0), ((1, 1), (0, 0))]
    blends = [Blend(optimum, q, eps) for q in others[:2] for eps in (0.5, 0.1, 0.02, 0.005)]
    nudges = [Blend(optimum, q, 0.1, only=place) for q in others[:2] for place in places]
    uniform = UniformSystem(range(case.actions), range(case.observations))
    return [*others, uniform, *blends, *nudges]


def test_the_naive_mixture_minimises_D_strictly(case: Any) -> None:
    naive = case.naive()
    tree = InteractionTree(case.modes, case.p, T)
    best = bits.relative_entropy(tree, tree.tabulate(naive)).total[-1]
    for rival in [case.rule(), *competitors(naive, case)]:
        assert bits.relative_entropy(tree, tree.tabulate(rival)).total[-1] > best + 1e-9


def test_the_rule_minimises_C_strictly_under_every_weighting(case: Any) -> None:
    rule = case.rule()
    tree = InteractionTree(case.modes, case.p, T, actions=range(case.actions))
    rivals = [tree.tabulate(q) for q in (case.naive(), *competitors(rule, case))]
    for name in WEIGHTINGS:
        weights = weigh(tree, case.weighting(name))
        best = bits.relative_entropy(tree, tree.tabulate(rule), weights).total[-1]
        for rival in rivals:
            assert bits.relative_entropy(tree, rival, weights).total[-1] > best + 1e-9


def test_a_weighting_that_never_tries_an_action_leaves_the_rule_a_minimiser(case: Any) -> None:
    """The minimum is not strict: predictions after that action do not matter."""

    class Always:
        def action_probabilities(self, x: None) -> dict[int, float]:
            return {0: 1.0}

    rule, other = case.rule(), case.rival("rival")
    harmless = Blend(rule, other, 0.5, only=((), 1))
    harmful = Blend(rule, other, 0.5, only=((), 0))
    best, equal, worse = (
        intervened_relative_entropy(q, case.modes, case.p, T, Always()).total[-1]
        for q in (rule, harmless, harmful)
    )
    assert equal == pytest.approx(best, abs=1e-12)
    assert worse > best + 1e-9


def test_the_loss_of_an_agent_is_its_distance_from_the_minimiser(case: Any) -> None:
    """D(Pr) - D(naive) = KL(naive ‖ Pr), and C(Pr) - C(rule) likewise, at every horizon."""
    other, naive, rule = case.rival("rival"), case.naive(), case.rule()
    lost = case.D(other, T).total - case.D(naive, T).total
    agree(lost, relative_entropy(other, [naive], [1.0], T).total)
    for name in WEIGHTINGS:
        lost = case.C(other, T, name).total - case.C(rule, T, name).total
        weighting, actions = case.weighting(name), range(case.actions)
        agree(
            lost,
            intervened_relative_entropy(other, [rule], [1.0], T, weighting, actions=actions).total,
        )


def test_D_of_the_naive_mixture_is_information_and_at_most_the_entropy_of_the_prior(
    case: Any,
) -> None:
    horizon = 5 if case.actions * case.observations == 4 else 4
    bits = case.D(case.naive(), horizon).total
    agree(bits, mutual_information(case.modes, case.p, horizon))
    assert bits.max() <= entropy_of(case.p)
    assert (np.diff(bits) > 0.0).all()


def test_D_of_the_rule_is_more_than_information(case: Any) -> None:
    """Planted bug: the causal agent instead of the naive one."""
    information = mutual_information(case.modes, case.p, T)
    assert case.D(case.rule(), T).total[-1] > information[-1] + 1e-3


def test_the_cost_of_observations_is_the_information_under_intervention(
    case: Any,
) -> None:
    for name in ("uniform", "closed-loop", "policy"):
        paid = case.C(case.rule(), T, name).observations
        weighting, actions = case.weighting(name), range(case.actions)
        agree(paid, mutual_information(case.modes, case.p, T, weighting, actions=actions))
        assert paid.max() <= entropy_of(case.p)


def test_rule_and_naive_mixture_agree_for_a_passive_observer(cases: Any) -> None:
    for seed in range(3):
        case = cases["tabular"](seed, 2, actions=1)
        bits = case.D(case.naive(), 5).total
        agree(case.D(case.rule(), 5).total, bits)
        for name in WEIGHTINGS:
            agree(case.C(case.naive(), 5, name).total, bits)
            agree(case.C(case.rule(), 5, name).total, bits)


def test_the_oracle_pays_nothing(case: Any) -> None:
    tree = InteractionTree(case.modes, case.p, T, actions=range(case.actions))
    oracle = [stage.p for stage, _ in tree.walk()]
    assert not bits.relative_entropy(tree, oracle).total.any()
    assert not bits.relative_entropy(tree, oracle, weigh(tree, "uniform")).total.any()
    assert not relative_entropy(case.modes[0], case.modes[:1], [1.0], T).total.any()

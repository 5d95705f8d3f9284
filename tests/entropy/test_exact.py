"""D, C and I by enumeration, compared with their definitions in fractions."""

import math
from typing import Any

import numpy as np
import pytest
from tests.entropy.entropies import (
    intervened_relative_entropy,
    mutual_information,
    relative_entropy,
)

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, NaiveMixture
from bayescontrol.entropy import Bits, InteractionTree, bits, entropy_of, weigh
from bayescontrol.systems import AgentSystem, Situated

T = 3
WEIGHTINGS = ["uniform", "closed-loop", "printed", "policy"]


def same(bits: Bits, steps: list[tuple[float, float]]) -> bool:
    actions, observations = np.cumsum(steps, axis=0).T
    return bool(
        np.allclose(bits.actions, actions, rtol=0.0, atol=1e-12)
        and np.allclose(bits.observations, observations, rtol=0.0, atol=1e-12)
    )


def test_D_equals_its_definition_over_all_strings(case: Any) -> None:
    assert same(case.D(case.naive(), T), case.mixture(T, None, "naive"))
    assert same(case.D(case.rule(), T), case.mixture(T, None, "rule"))
    rival = case.rival("an agent")
    assert same(case.D(rival, T), case.divergence(T, None, rival.fractions, rival.fractions))


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_C_equals_its_definition_over_all_strings(case: Any, name: str) -> None:
    weight = case.weight(name)
    assert same(case.C(case.rule(), T, name), case.mixture(T, weight, "rule"))
    assert same(case.C(case.naive(), T, name), case.mixture(T, weight, "naive"))


def test_C_weighted_by_the_modes_policies_differs(case: Any) -> None:
    """Planted bug: P_m(ao_<t) instead of the weighted P(âo_<t | m)."""
    bug = case.mixture(T, None, "rule")
    for name in WEIGHTINGS:
        assert not same(case.C(case.rule(), T, name), bug)


def test_C_of_an_agent_with_the_naive_posterior_differs(case: Any) -> None:
    """Planted bug: v_m treats actions as evidence."""
    for name in WEIGHTINGS:
        bug = case.mixture(T, case.weight(name), "naive")
        assert not same(case.C(case.rule(), T, name), bug)


def test_information_equals_its_definition_over_all_strings(case: Any) -> None:
    reference = [case.information(t, None) for t in range(1, T + 1)]
    found = mutual_information(case.modes, case.p, T)
    np.testing.assert_allclose(found, reference, rtol=0.0, atol=1e-12)
    for name in ("uniform", "closed-loop", "policy"):
        found = mutual_information(
            case.modes, case.p, T, case.weighting(name), actions=range(case.actions)
        )
        reference = [case.information(t, case.weight(name)) for t in range(1, T + 1)]
        np.testing.assert_allclose(found, reference, rtol=0.0, atol=1e-12)


# -- zeros -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_impossible_symbols_count_as_in_the_definition(cases: Any, seed: int) -> None:
    """After a history that an agent ruled out, every symbol has probability 0."""
    case = cases["remembering"](seed, least=0)
    for kind, agent in (("naive", case.naive()), ("rule", case.rule())):
        assert same(case.D(agent, T), case.mixture(T, None, kind))
        for name in WEIGHTINGS:
            assert same(case.C(agent, T, name), case.mixture(T, case.weight(name), kind))


def test_with_impossible_symbols_only_the_rule_has_a_finite_C(cases: Any) -> None:
    for seed in range(8):
        case = cases["remembering"](seed, least=0)
        assert case.C(case.rule(), T, "uniform").total[-1] < math.inf
        assert case.C(case.naive(), T, "uniform").total[-1] == math.inf


def test_D_does_not_depend_on_the_actions_that_could_be_intervened_on(cases: Any) -> None:
    case = cases["remembering"](3, least=0)
    tree = InteractionTree(case.modes, case.p, T, actions=[0, 1])
    D = bits.relative_entropy(tree, tree.tabulate(case.naive()))
    np.testing.assert_allclose(D.total, case.D(case.naive(), T).total, rtol=0.0, atol=1e-12)


def test_the_entropy_of_a_prior_with_zeros_is_finite() -> None:
    assert entropy_of([1.0, 0.0]) == 0.0


class Expert:
    """Two boxes; the prize is in `box`, and this expert picks it."""

    def __init__(self, box: int) -> None:
        self.box = box

    def action_probabilities(self, x: None) -> dict[int, float]:
        return {self.box: 1.0}

    def observation_probabilities(self, x: None, a: int) -> dict[bool, float]:
        return {a == self.box: 1.0}

    def likelihood(self, x: None, a: int, o: bool) -> float:
        return float(o == (a == self.box))

    def act(self, x: None, rng: Any) -> int:
        return self.box


def test_the_naive_mixture_is_infinitely_wrong_about_the_box_that_it_picked() -> None:
    """It is certain that the prize is where it looks. This changes C, but not D.

    The rule pays one bit to choose a box and one to learn where the prize is. The latter counts
    twice if both interventions have weight one.
    """
    experts, prior = [Expert(0), Expert(1)], [0.5, 0.5]
    systems = [Situated(expert) for expert in experts]
    naive = AgentSystem(NaiveMixture(FiniteBelief(experts)))
    rule = AgentSystem(ControlRule(FiniteBelief(experts)))
    assert relative_entropy(naive, systems, prior, 3).total.tolist() == [1.0, 1.0, 1.0]
    assert relative_entropy(rule, systems, prior, 3).total.tolist() == [2.0, 2.0, 2.0]
    names: list[tuple[Any, float]] = [("uniform", 2.0), ("closed-loop", 2.0), ("printed", 3.0)]
    for name, paid in names:
        C_naive, C_rule = (
            intervened_relative_entropy(q, systems, prior, 3, name, actions=[0, 1]).total.tolist()
            for q in (naive, rule)
        )
        assert C_naive == [math.inf] * 3
        assert C_rule == [paid] * 3


def test_a_mode_without_prior_weight_does_not_count(case: Any) -> None:
    extra = Situated(case.rival("nobody"))
    more = relative_entropy(case.rule(), [*case.modes, extra], [*case.p, 0.0], T)
    assert more.total.tolist() == case.D(case.rule(), T).total.tolist()


def test_an_observation_allowed_only_by_a_mode_without_weight_is_impossible() -> None:
    heads = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 1.0}))
    tails = Situated(DiscreteMode(lambda x: {"pass": 1.0}, lambda x, a: {"T": 1.0}))
    tree = InteractionTree([heads, tails], [1.0, 0.0], T)
    assert [len(weights) for weights in weigh(tree, "closed-loop")] == [1, 1, 1]

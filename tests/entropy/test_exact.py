"""D, C and I by enumeration, against definitions in fractions; and the two variational theorems."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bayescontrol.baselines.uniform import UniformSystem
from bayescontrol.entropy import (
    Bits,
    InteractionTree,
    entropy_of,
    intervened_relative_entropy,
    kl,
    mutual_information,
    relative_entropy,
    relative_entropy_on,
    weigh,
)
from bayescontrol.systems import Situated

T = 3
EXACT = {"rtol": 0.0, "atol": 1e-12}
WEIGHTINGS = ["uniform", "closed-loop", "printed", "policy"]


def weighting_of(name: str, case: Any, remember: Any) -> tuple[Any, Any]:
    """A weighting as the library takes it, and as fractions."""
    policy = remember("a policy", case.actions, case.observations)
    fractions = {
        "uniform": case.uniform,
        "closed-loop": case.closed_loop,
        "printed": lambda h, a: Fraction(1),
        "policy": lambda h, a: policy.fractions(h)[a],
    }
    return policy if name == "policy" else name, fractions[name]


def C(agent: Any, case: Any, weighting: Any, horizon: int = T) -> Bits:
    return intervened_relative_entropy(
        agent, case.modes, case.p, horizon, weighting, actions=range(case.actions)
    )


def same(bits: Bits, steps: list[tuple[float, float]]) -> bool:
    expected = np.cumsum(steps, axis=0).T
    return bool(
        np.allclose(bits.actions, expected[0], **EXACT)
        and np.allclose(bits.observations, expected[1], **EXACT)
    )


# -- against the definitions -----------------------------------------------------------------


@pytest.mark.parametrize("agent", ["naive", "rule", "other"])
def test_D_is_its_definition_over_all_strings(case: Any, remember: Any, agent: str) -> None:
    other = remember("an agent", case.actions, case.observations)
    judged, actions, observations = {
        "naive": (
            case.naive(),
            lambda h: case.mixture_actions(h, None),
            lambda h, a: case.mixture_observations(h, a, None),
        ),
        "rule": (
            case.rule(),
            lambda h: case.mixture_actions(h, case.uniform),
            lambda h, a: case.mixture_observations(h, a, case.uniform),
        ),
        "other": (other, other.fractions, other.fractions),
    }[agent]
    reference = case.divergence(T, None, actions, observations)
    assert same(relative_entropy(judged, case.modes, case.p, T), reference)


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_C_is_its_definition_over_all_strings(case: Any, remember: Any, name: str) -> None:
    weighting, weight = weighting_of(name, case, remember)
    reference = case.divergence(
        T,
        weight,
        lambda h: case.mixture_actions(h, case.uniform),
        lambda h, a: case.mixture_observations(h, a, case.uniform),
    )
    assert same(C(case.rule(), case, weighting), reference)


def test_C_weighted_by_the_modes_own_actions_is_another_number(case: Any) -> None:
    """The planted bug: P_m(ao_<t) in place of the weighted P(âo_<t | m)."""
    bug = case.divergence(
        T,
        None,
        lambda h: case.mixture_actions(h, case.uniform),
        lambda h, a: case.mixture_observations(h, a, case.uniform),
    )
    assert not same(C(case.rule(), case, "uniform"), bug)
    assert not same(C(case.rule(), case, "closed-loop"), bug)


def test_information_is_its_definition_over_all_strings(case: Any, remember: Any) -> None:
    reference = [case.information(t, None) for t in range(1, T + 1)]
    np.testing.assert_allclose(mutual_information(case.modes, case.p, T), reference, **EXACT)
    for name in ("uniform", "closed-loop", "policy"):
        weighting, weight = weighting_of(name, case, remember)
        reference = [case.information(t, weight) for t in range(1, T + 1)]
        information = mutual_information(
            case.modes, case.p, T, weighting, actions=range(case.actions)
        )
        np.testing.assert_allclose(information, reference, **EXACT)


# -- the theorems ------------------------------------------------------------------------------


class Blend:
    """(1 - ε) optimum + ε other, conditional by conditional; at one history alone if given."""

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


def competitors(optimum: Any, case: Any, remember: Any) -> list[Any]:
    """Random systems, the optimum bent everywhere, and the optimum bent in one conditional."""
    others = [remember(f"rival {k}", case.actions, case.observations) for k in range(4)]
    places: list[Any] = [(), ((), 1), ((0, 1),), (((1, 0),), 0), ((1, 1), (0, 0))]
    blends = [Blend(optimum, q, eps) for q, eps in zip(others, (0.5, 0.1, 0.02, 0.005))]
    nudges = [Blend(optimum, q, 0.1, only=place) for q in others[:2] for place in places]
    return [*others, *blends, *nudges]


def test_the_naive_mixture_minimises_D_strictly(case: Any, remember: Any) -> None:
    naive = case.naive()
    tree = InteractionTree(case.modes, case.p, T)
    best = relative_entropy_on(tree, tree.tabulate(naive)).total[-1]
    for rival in [case.rule(), *competitors(naive, case, remember)]:
        assert relative_entropy_on(tree, tree.tabulate(rival)).total[-1] > best + 1e-9


def test_the_rule_minimises_C_strictly_under_every_weighting(case: Any, remember: Any) -> None:
    rule = case.rule()
    tree = InteractionTree(case.modes, case.p, T, actions=range(case.actions))
    rivals = [tree.tabulate(q) for q in (case.naive(), *competitors(rule, case, remember))]
    ours = tree.tabulate(rule)
    for name in WEIGHTINGS:
        weights = weigh(tree, weighting_of(name, case, remember)[0])
        best = relative_entropy_on(tree, ours, weights).total[-1]
        for rival in rivals:
            assert relative_entropy_on(tree, rival, weights).total[-1] > best + 1e-9


def test_each_theorem_fails_with_the_other_ones_agent(case: Any) -> None:
    """The planted bugs: histories weighted by the modes' own actions, and the naive posterior.

    With the first, C is D, and the naive mixture beats the rule; with the second, an agent that
    means to be the rule loses.
    """
    tree = InteractionTree(case.modes, case.p, T, actions=range(case.actions))
    naive, rule = tree.tabulate(case.naive()), tree.tabulate(case.rule())
    assert relative_entropy_on(tree, naive).total[-1] < relative_entropy_on(tree, rule).total[-1]
    for name in ("uniform", "closed-loop", "printed"):
        weights = weigh(tree, name)
        lost = relative_entropy_on(tree, naive, weights).total[-1]
        assert relative_entropy_on(tree, rule, weights).total[-1] < lost


def test_what_an_agent_loses_is_its_distance_from_the_minimiser(case: Any, remember: Any) -> None:
    """D(Pr) - D(naive) = KL(naive ‖ Pr), and C(Pr) - C(rule) likewise, at every horizon."""
    other, naive, rule = remember("rival", case.actions, case.observations), *(
        case.naive(), case.rule()
    )  # fmt: skip
    lost = (
        relative_entropy(other, case.modes, case.p, T).total
        - relative_entropy(naive, case.modes, case.p, T).total
    )
    np.testing.assert_allclose(lost, relative_entropy(other, [naive], [1.0], T).total, **EXACT)
    for name in WEIGHTINGS:
        weighting, _ = weighting_of(name, case, remember)
        lost = C(other, case, weighting).total - C(rule, case, weighting).total
        distance = intervened_relative_entropy(
            other, [rule], [1.0], T, weighting, actions=range(case.actions)
        )
        np.testing.assert_allclose(lost, distance.total, **EXACT)


# -- identities --------------------------------------------------------------------------------


def test_D_of_the_naive_mixture_is_information_and_below_the_entropy_of_the_prior(
    case: Any,
) -> None:
    horizon = 5 if case.actions * case.observations == 4 else 4
    D = relative_entropy(case.naive(), case.modes, case.p, horizon).total
    information = mutual_information(case.modes, case.p, horizon)
    np.testing.assert_allclose(D, information, **EXACT)
    assert (D <= entropy_of(case.p) + 1e-12).all()
    assert (np.diff(D) > 0.0).all()


def test_D_of_the_rule_is_not_information(case: Any) -> None:
    D = relative_entropy(case.rule(), case.modes, case.p, T).total
    assert D[-1] > mutual_information(case.modes, case.p, T)[-1] + 1e-3


def test_what_the_rule_pays_for_observations_is_information_under_intervention(
    case: Any, remember: Any
) -> None:
    for name in ("uniform", "closed-loop", "policy"):
        weighting, _ = weighting_of(name, case, remember)
        information = mutual_information(
            case.modes, case.p, T, weighting, actions=range(case.actions)
        )
        paid = C(case.rule(), case, weighting).observations
        np.testing.assert_allclose(paid, information, **EXACT)
        assert (paid <= entropy_of(case.p) + 1e-12).all()


def test_a_passive_observer_is_naive_and_causal_at_once(cases: Any) -> None:
    for seed in range(3):
        case = cases["tabular"](seed, 2, actions=1)
        naive, rule = case.naive(), case.rule()
        D, D_rule = (relative_entropy(q, case.modes, case.p, 5).total for q in (naive, rule))
        np.testing.assert_allclose(D, D_rule, **EXACT)
        for name in ("uniform", "closed-loop", "printed"):
            np.testing.assert_allclose(C(naive, case, name, 5).total, D, **EXACT)
            np.testing.assert_allclose(C(rule, case, name, 5).total, D, **EXACT)


def test_the_oracle_pays_nothing_and_a_single_mode_neither(case: Any) -> None:
    tree = InteractionTree(case.modes, case.p, T, actions=range(case.actions))
    oracle = [stage.p for stage, _ in tree.walk()]
    assert not relative_entropy_on(tree, oracle).total.any()
    assert not relative_entropy_on(tree, oracle, weigh(tree, "uniform")).total.any()
    assert not relative_entropy(case.modes[0], case.modes[:1], [1.0], T).total.any()


def test_D_does_not_depend_on_which_actions_could_be_intervened_on(case: Any) -> None:
    tree = InteractionTree(case.modes, case.p, T, actions=range(case.actions + 1))
    uniform = UniformSystem(range(case.actions + 1), range(case.observations))
    mode = case.modes[0]
    if not hasattr(mode.mode, "modes"):  # a table has no row for an action that it does not know
        D = relative_entropy_on(tree, tree.tabulate(uniform))
        assert np.allclose(D.total, relative_entropy(uniform, case.modes, case.p, T).total)


# -- zeros -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_impossible_symbols_are_counted_as_the_definition_has_it(cases: Any, seed: int) -> None:
    case = cases["remembering"](seed, least=0)
    reference = case.divergence(
        T,
        None,
        lambda h: case.mixture_actions(h, None),
        lambda h, a: case.mixture_observations(h, a, None),
    )
    assert same(relative_entropy(case.naive(), case.modes, case.p, T), reference)
    for name, weight in (("uniform", case.uniform), ("closed-loop", case.closed_loop)):
        reference = case.divergence(
            T,
            weight,
            lambda h: case.mixture_actions(h, case.uniform),
            lambda h, a: case.mixture_observations(h, a, case.uniform),
        )
        assert same(C(case.rule(), case, name), reference)


def test_kl_knows_zeros() -> None:
    assert kl({0: 0.0, 1: 1.0}, {1: 1.0}) == 0.0
    assert kl({0: 0.5, 1: 0.5}, {1: 1.0}) == math.inf
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


def test_the_naive_mixture_is_infinitely_wrong_about_its_own_choice_of_a_box() -> None:
    """It is sure that the prize is where it looked; D never notices, C does at once."""
    from bayescontrol import ControlRule, FiniteBelief, NaiveMixture
    from bayescontrol.systems import AgentSystem

    experts = [Expert(0), Expert(1)]
    systems = [Situated(expert) for expert in experts]
    naive = AgentSystem(NaiveMixture(FiniteBelief(experts)))
    rule = AgentSystem(ControlRule(FiniteBelief(experts)))
    prior = [0.5, 0.5]
    assert relative_entropy(naive, systems, prior, 3).total.tolist() == [1.0, 1.0, 1.0]
    assert relative_entropy(rule, systems, prior, 3).total.tolist() == [2.0, 2.0, 2.0]
    for name in ("uniform", "closed-loop", "printed"):
        bits = [
            intervened_relative_entropy(q, systems, prior, 3, name, actions=[0, 1])
            for q in (naive, rule)
        ]
        assert bits[0].total.tolist() == [math.inf] * 3
        # One bit to choose a box, one to learn where the prize is: twice over where both
        # interventions have weight one.
        paid = [3.0] * 3 if name == "printed" else [2.0] * 3
        assert bits[1].total.tolist() == paid


def test_a_mode_without_prior_weight_does_not_count(case: Any, remember: Any) -> None:
    extra = Situated(remember("nobody", case.actions, case.observations))
    D = relative_entropy(case.rule(), case.modes, case.p, T).total
    more = relative_entropy(case.rule(), [*case.modes, extra], [*case.p, 0.0], T).total
    assert more.tolist() == D.tolist()

"""`choosing`: among eligible arms, with prices, for every kind of belief over arms."""

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from tests.bandits.arm_beliefs import ARMS, BITS, CASES, X, make
from tests.chance import chi_square
from tests.durable.problems import PROBLEMS

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    GaussianBandit,
    JointBandit,
    LinearBandit,
    LogisticBandit,
    PoissonBandit,
    Stream,
    TabularModes,
    interact,
)
from bayescontrol._mode_queries import has
from bayescontrol.bandits import SharedLinearBandit
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.errors import InvalidTable, MissingCapability, QuadratureFailed, UnknownArm
from bayescontrol.finite.chain import GrowingChain
from bayescontrol.lqr import LinearQuadratic
from bayescontrol.mdp import DirichletMDP, GibbsMDP
from bayescontrol.pomdp import POMDPModes
from bayescontrol.protocols import Choosing
from bayescontrol.trees import ContextTrees

#: Beliefs without exact probabilities.
INEXACT = {"categorical", "logit-normal", "linear, shared"}


def probabilities(belief: Any, x: Any) -> dict[Any, float]:
    return ControlRule(belief, x, lambda x, a, o: x).action_probabilities()


def drawn_actions(belief: Any, x: Any, draws: int, seed: int) -> dict[Any, int]:
    stream, counts = Stream(seed), dict[Any, int]()
    for _ in range(draws):
        a = belief.sample(stream).act(x, stream)
        counts[a] = counts.get(a, 0) + 1
    return counts


def p_value(counts: dict[Any, int], p: dict[Any, float]) -> float:
    assert set(counts) <= {a for a, p_a in p.items() if p_a > 0.0}
    n = sum(counts.values())
    return chi_square(np.array([counts.get(a, 0) for a in p]), n * np.array([*p.values()]))


def choices(arms: list[Any]) -> list[dict[str, Any]]:
    """Ways to choose: among two arms, with prices, and both."""
    return [
        {"among": arms[1:]},
        {"prices": {arms[1]: 0.3, arms[2]: -0.1}},
        {"among": [arms[2], arms[0]], "prices": {arms[2]: 0.2, arms[1]: 9.0}},
    ]


@pytest.mark.parametrize("name", sorted(set(CASES) - INEXACT))
def test_draws_have_the_exact_probabilities(name: str) -> None:
    """1,500 modes and 500 direct draws for each choice; each check fails once in a million."""
    belief, x, arms = make(name)
    for seed, choice in enumerate(choices(arms)):
        if name == "tabular" and "prices" in choice:
            continue
        with belief.choosing(**choice):
            p = probabilities(belief, x)
            assert list(p) == [a for a in arms if a in choice.get("among", arms)]
            assert sum(p.values()) == pytest.approx(1.0, abs=1e-9)
            assert p_value(drawn_actions(belief, x, 1500, seed), p) > 1e-6
            if hasattr(belief, "draw_action"):
                stream, counts = Stream(seed + 10), dict[Any, int]()
                for _ in range(500):
                    a = belief.draw_action(x, stream)
                    counts[a] = counts.get(a, 0) + 1
                assert p_value(counts, p) > 1e-6


@pytest.mark.parametrize("name", sorted(INEXACT))
def test_beliefs_without_exact_probabilities_choose_among_the_same_arms(name: str) -> None:
    belief, x, arms = make(name)
    with belief.choosing(among=arms[:2], prices={arms[0]: 100.0}):
        assert set(drawn_actions(belief, x, 200, 1)) == {arms[1]}
    with belief.choosing(among=arms[:2]):
        assert set(drawn_actions(belief, x, 200, 1)) == set(arms[:2])


def test_probabilities_that_are_only_renormalised_are_noticed() -> None:
    """The check above fails for P(a) / Σ P: one arm loses more to the third arm than the other."""
    belief = BernoulliBandit(ARMS).belief()
    for arm, ones, zeros in (("red", 60, 40), ("blue", 1, 1), ("green", 62, 38)):
        for r in ones * [1] + zeros * [0]:
            belief.observe(None, arm, r)
    p = belief.action_probabilities()
    renormalised = {a: p[a] / (p["red"] + p["blue"]) for a in ("red", "blue")}
    with belief.choosing(among=["red", "blue"]):
        counts, exact = drawn_actions(belief, None, 1500, 3), belief.action_probabilities()
    assert p_value(counts, exact) > 1e-6
    assert p_value(counts, renormalised) < 1e-6


def test_a_joint_belief_pulls_the_best_eligible_arm_of_each_hypothesis() -> None:
    biases = np.random.default_rng(5).uniform(size=(40, 4))
    belief = JointBandit(biases).agent().belief
    for a, o in ((0, 1), (1, 0), (3, 1), (3, 1)):
        belief.observe(0, a, o)
    v, costs = belief.posterior(), np.array([0.1, 0.0, -0.2])
    expected = np.bincount((biases[:, [0, 1, 3]] - costs).argmax(1), v, 3)
    with belief.choosing(among=[3, 0, 1], prices={0: 0.1, 3: -0.2}):
        p = probabilities(belief, 0)
    assert list(p) == [0, 1, 3]
    np.testing.assert_allclose([*p.values()], expected, rtol=0.0, atol=1e-14)


def test_a_table_of_policies_is_conditioned_on_the_eligible_actions() -> None:
    policy = [[[0.5, 0.3, 0.2]], [[1.0, 0.0, 0.0]]]
    belief = TabularModes(policy, np.full((2, 1, 3, 2), 0.5)).agent().belief
    with belief.choosing(among=[1, 2]):
        p = probabilities(belief, 0)
    assert p == pytest.approx({1: 0.5 * 0.6 + 0.25, 2: 0.5 * 0.4 + 0.25}, abs=1e-15)
    with (
        pytest.raises(MissingCapability, match="policies in a table"),
        belief.choosing(prices={0: 1.0}),
    ):
        pass


@pytest.mark.parametrize("name", CASES)
def test_nothing_remains_after_the_block(name: str) -> None:
    """The state, the probabilities and the random sequence are those of a belief without a block.

    Also after an error in the block. A belief saved in the block is that outside of it.
    """
    belief, x, arms = make(name)
    twin = belief.copy()
    before = belief.save()
    prices = {} if name == "tabular" else {arms[0]: 0.2}
    with suppress(KeyError), belief.choosing(among=arms[:2], prices=prices):
        inside = belief.save()
        assert all(v.tobytes() == inside[k].tobytes() for k, v in before.items())
        raise KeyError
    after = belief.save()
    assert after.keys() == before.keys()
    assert all(v.tobytes() == after[k].tobytes() for k, v in before.items())
    streams = Stream(1), Stream(1)
    for _ in range(20):
        assert belief.sample(streams[0]).act(x, streams[0]) == twin.sample(streams[1]).act(
            x, streams[1]
        )
    if hasattr(belief, "draw_action"):
        assert [belief.draw_action(x, streams[0]) for _ in range(20)] == [
            twin.draw_action(x, streams[1]) for _ in range(20)
        ]
    if name not in INEXACT:
        assert probabilities(belief, x) == probabilities(twin, x)


@pytest.mark.parametrize("name", CASES)
def test_a_belief_learns_in_the_block_as_outside(name: str) -> None:
    belief, x, arms = make(name)
    twin = belief.copy()
    with belief.choosing(among=arms[:2]):
        belief.observe(x, arms[2], 1)
    twin.observe(x, arms[2], 1)
    before, after = twin.save(), belief.save()
    assert all(v.tobytes() == after[k].tobytes() for k, v in before.items())


@pytest.mark.parametrize("name", sorted(set(CASES) - INEXACT))
def test_equal_prices_and_all_arms_change_no_bit(name: str) -> None:
    belief, x, arms = make(name)
    p = probabilities(belief, x)
    for choice in ({"among": arms[::-1]}, {"prices": dict.fromkeys(arms, 0.7)}):
        streams = Stream(2), Stream(2)
        twin = belief.copy()
        with belief.choosing(**choice):
            assert probabilities(belief, x) == p
            a = belief.sample(streams[0]).act(x, streams[0])
        assert a == twin.sample(streams[1]).act(x, streams[1])


@pytest.mark.parametrize("name", sorted(set(CASES) - INEXACT - {"tabular"}))
def test_an_arm_that_costs_far_more_than_it_pays_is_never_pulled(name: str) -> None:
    belief, x, arms = make(name)
    with belief.choosing(prices={arms[1]: 1e6}):
        p = probabilities(belief, x)
        assert p[arms[1]] < 1e-4  # Student's distribution has heavy tails
        assert arms[1] not in drawn_actions(belief, x, 50, 4)


def test_a_block_within_a_block_returns_to_the_outer_one() -> None:
    belief = BernoulliBandit(ARMS).belief()
    with belief.choosing(among=["red", "blue"]):
        with belief.choosing(prices={"red": 0.5}):
            assert belief.action_probabilities()["red"] < 0.2
        assert belief.action_probabilities() == {"red": 0.5, "blue": 0.5}
        belief.add("black")
    assert belief.arms == (*ARMS, "black")


def test_a_copy_and_the_modes_of_the_block_have_its_arms_and_prices() -> None:
    belief, _, _ = make("changing, learned")
    with belief.choosing(among=["red", "blue"], prices={"red": 1.0}):
        copied, p = belief.copy(), belief.action_probabilities()
        copied.begin()  # as a driver does for the probabilities of the next decision
        mode = belief.sample(Stream(1))
    assert copied.action_probabilities() == pytest.approx(p, abs=0.05)
    assert mode.arms == ("red", "blue")
    assert mode.prices.tolist() == [1.0, 0.0]


def test_compiled_loops_choose_among_the_same_arms() -> None:
    bandit = BernoulliBandit(ARMS)
    world = bandit.environment([0.9, 0.5, 0.1])
    agent = bandit.agent()
    with agent.belief.choosing(among=["blue", "green"]):
        record = interact(agent, world, 200, seed=1)
    assert set(record.actions) == {"blue", "green"}
    agent = bandit.agent()
    with agent.belief.choosing(prices={"red": 0.85}):
        record = interact(agent, world, 2000, seed=1)
    assert (np.asarray(record.actions[-500:]) == "blue").mean() > 0.9


def test_prices_outweigh_the_same_difference_of_rewards() -> None:
    """Student's, normal and learned posteriors: a price shifts the mean reward."""
    for sd, prior in ((1.0, (0, 1)), (None, (0, 1, 2, 1))):
        shifted, plain = (GaussianBandit(2, sd=sd, prior=prior).belief() for _ in "12")
        for t, r in enumerate((0.5, 0.25, 1.5, 1.0, 2.0, -0.5)):
            plain.observe(None, t % 2, r)
            shifted.observe(None, t % 2, r)
        rows = shifted.posterior()
        rows[0, 0] -= 0.75
        with plain.choosing(prices={0: 0.75}):
            p = plain.action_probabilities()
        family: Any = plain.family
        assert p[0] == pytest.approx(float(family.best(rows)[0]), abs=1e-14)


def test_scores_without_uncertainty_go_to_the_cheapest_arm() -> None:
    for bandit in (
        LinearBandit(ARMS, features=2, sd=1, prior=(0, 1)),
        LogisticBandit(ARMS, features=2),
        LinearBandit(ARMS, features=2),
    ):
        belief = bandit.belief()
        belief.observe(X, "red", 1)
        with belief.choosing(prices={"red": 0.1, "green": -0.1}):
            assert belief.action_probabilities([0.0, 0.0]) == {"red": 0, "blue": 0, "green": 1}
            assert set(drawn_actions(belief, [0.0, 0.0], 20, 1)) == {"green"}


@pytest.mark.parametrize(
    "bandit", [GaussianBandit(ARMS), GaussianBandit(ARMS).changing(), LinearBandit(ARMS, 2)]
)
def test_prices_have_no_effect_while_the_scale_of_rewards_is_unknown(bandit: Any) -> None:
    belief, x = bandit.belief(), X if isinstance(bandit, LinearBandit) else None
    with belief.choosing(prices={"red": 5.0}):
        p = probabilities(belief, x)
        assert p == pytest.approx(dict.fromkeys(ARMS, 1 / 3), abs=1e-15)
        assert p_value(drawn_actions(belief, x, 600, 1), p) > 1e-6


@pytest.mark.parametrize("temperature", [0.25, 4.0])
@pytest.mark.parametrize("name", ["bernoulli", "pooled", "poisson, pooled", "logistic"])
def test_prices_fit_the_temperature(name: str, temperature: float) -> None:
    bandit: Any = {
        "bernoulli": BernoulliBandit(ARMS),
        "pooled": BernoulliBandit(ARMS).pooled(),
        "poisson, pooled": PoissonBandit(ARMS).pooled(),
        "logistic": LogisticBandit(ARMS, features=2, prior=(0, 1)),
    }[name]
    x = {"bernoulli": None, "logistic": X}.get(name, "de")
    belief = (
        bandit.agent(x, temperature=temperature).belief
        if x
        else (bandit.agent(temperature=temperature).belief)
    )
    for t, r in enumerate(BITS):
        belief.observe(x, ARMS[t % 3], r)
    with belief.choosing(prices={"red": 0.1, "blue": 0.3}):
        p = probabilities(belief, x)
        assert p_value(drawn_actions(belief, x, 1500, 1), p) > 1e-6


@pytest.mark.parametrize("name", ["bernoulli", "linear", "changing", "draws", "joint", "tabular"])
@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        ({"among": []}, UnknownArm, "give a list of one or more"),
        ({"among": "red"}, UnknownArm, "give a list"),
        ({"among": 1}, UnknownArm, "give a list"),
        ({"among": ["pink"]}, UnknownArm, "'pink'"),
        ({"among": [[1]]}, UnknownArm, r"no (arm|action) \[1\]"),
        ({"among": [0, 0]}, UnknownArm, "occurs twice"),
        ({"prices": {"pink": 1.0}}, UnknownArm, "'pink'"),
        ({"prices": {0: float("nan")}}, InvalidTable, "price nan"),
        ({"prices": {0: float("inf")}}, InvalidTable, "price inf"),
        ({"prices": {0: "1"}}, InvalidTable, "price '1'"),
        ({"prices": {0: True}}, InvalidTable, "price True"),
    ],
)
def test_invalid_choices_change_nothing(
    name: str, choice: Any, error: type[Exception], message: str
) -> None:
    belief, x, arms = make(name)
    if choice.get("among") == [0, 0]:
        choice = {"among": [arms[0], arms[0]]}
    if "prices" in choice and 0 in choice["prices"]:
        choice = {"prices": {arms[0]: choice["prices"][0]}}
    if name == "tabular" and error is UnknownArm:
        error = LookupError  # UnknownAction
    p = probabilities(belief, x)
    with pytest.raises(error, match=message), belief.choosing(**choice):
        pass
    assert probabilities(belief, x) == p


def test_a_retired_arm_is_not_eligible() -> None:
    belief = BernoulliBandit(ARMS).belief()
    belief.retire("blue")
    with pytest.raises(UnknownArm, match="'blue' is paused or retired: choose among the active"):
        belief.choosing(among=["red", "blue"]).__enter__()
    with belief.choosing(prices={"blue": 3.0, "red": 0.5}):  # prices of other arms do no harm
        assert belief.action_probabilities()["red"] == pytest.approx(0.125, abs=1e-12)


def test_exact_probabilities_may_be_missing() -> None:
    categorical, _, _ = make("categorical")
    with pytest.raises(MissingCapability), categorical.choosing(prices={"red": 1}):
        categorical.action_probabilities()
    shared = SharedLinearBandit(2, lambda x, a: [x * a], features=1, sd=1, prior=(0, 1)).belief()
    with shared.choosing(prices={0: 0.5}):
        p = shared.action_probabilities(2.0)  # P(2 w > -0.5)
        counts = drawn_actions(shared, 2.0, 1500, 1)
    assert p[1] == pytest.approx(0.598706325682923, abs=1e-12)
    assert p_value(counts, p) > 1e-6


def test_every_stored_kind_of_bandit_can_choose_and_others_lack_the_capability() -> None:
    others = (GrowingChain, GibbsMDP, DirichletMDP, LinearQuadratic, POMDPModes, ContextTrees)
    for name, problem in PROBLEMS.items():
        base = problem.problem if isinstance(problem, Changing) else problem
        assert has(problem.agent().belief, Choosing) != isinstance(base, others), name


def test_a_failed_quadrature_leaves_the_block_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = BernoulliBandit(ARMS).belief()
    monkeypatch.setattr("bayescontrol.bandits.priced._MOST", 1)
    with pytest.raises(QuadratureFailed), belief.choosing(prices={"red": 0.5}):
        belief.action_probabilities()
    assert belief.action_probabilities() == pytest.approx(dict.fromkeys(ARMS, 1 / 3))

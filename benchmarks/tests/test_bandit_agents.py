"""Bandit agents of the arena: the laws of the library's agents, formulas, pseudo-code, order."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import MOSS, BayesUCB, InformationDirected, KnowledgeGradient, UCBTuned
from benchmarks.arena.agents import bandits as arena
from benchmarks.arena.agents import optimism
from scipy import special  # type: ignore[import-untyped]
from tests.baselines.test_bandits import (
    EVENTS,
    STEPS,
    Coins,
    Fractions,
    Index,
    after,
    bench,
    check_indices,
    test_a_copy_is_independent,
    test_a_run_is_a_function_of_its_seed_and_can_be_resumed,
    test_actions_depend_on_the_evidence_and_not_on_its_order_nor_on_acting,
    test_bad_input_is_refused_and_changes_nothing,
    test_late_and_missing_feedback_is_accepted,
    test_the_compiled_loop_equals_the_readable_one,
)
from tests.kernels.test_policies import assert_shares, counts, filled, pull

from bayescontrol._arrays import FloatArray
from bayescontrol._compiled import find_loop
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.baselines import KLUCB, UCB1
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior
from bayescontrol.testing import same_bits

#: The laws, collected in this module with the agents below.
LAWS = [
    test_a_copy_is_independent,
    test_a_run_is_a_function_of_its_seed_and_can_be_resumed,
    test_actions_depend_on_the_evidence_and_not_on_its_order_nor_on_acting,
    test_bad_input_is_refused_and_changes_nothing,
    test_late_and_missing_feedback_is_accepted,
    test_the_compiled_loop_equals_the_readable_one,
]

MAKERS: dict[str, Callable[..., Any]] = {
    "UCB-tuned": UCBTuned,
    "MOSS": lambda arms: MOSS(arms, horizon=300),
    "Bayes-UCB": BayesUCB,
    "Bayes-UCB, c = 5": lambda arms: BayesUCB(arms, c=5, horizon=300, prior=(0.5, 0.5)),
    "KG, horizon": lambda arms: KnowledgeGradient(arms, horizon=300),
    "KG, discount": lambda arms: KnowledgeGradient(arms, discount=0.99, prior=(2, 2)),
    "IDS": InformationDirected,
}


@pytest.fixture(params=MAKERS.values(), ids=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A constructor of an agent that takes the arms."""
    maker: Callable[..., Any] = request.param
    return maker


def test_a_subclass_has_no_compiled_loop() -> None:
    for kind in (UCBTuned, BayesUCB, InformationDirected):
        assert find_loop(kind(2), BernoulliBandit(2).draw(0)) is not None
        assert find_loop(type("Sub", (kind,), {})(2), BernoulliBandit(2).draw(0)) is None


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [BayesUCB, InformationDirected])
def test_rewards_other_than_0_and_1_are_refused(kind: Any) -> None:
    agent = after(kind(2), [(0, True), (0, 1.0), (np.int64(1), np.float32(0.0))])
    for r in (0.3, 2.0, -1.0):
        with pytest.raises(BadEvidence, match="reward"):
            agent.observe(0, r)
    assert agent.pulls == {0: 2, 1: 1}


@pytest.mark.parametrize(
    ("kind", "words", "named"),
    [
        (MOSS, {"horizon": 0}, "horizon=0"),
        (MOSS, {"horizon": 10.5}, "horizon=10.5"),
        (BayesUCB, {"c": 5.0}, "horizon"),
        (BayesUCB, {"c": 5.0, "horizon": 2}, "horizon=2"),
        (KnowledgeGradient, {}, "horizon="),
        (KnowledgeGradient, {"discount": 1.0}, "discount=1.0"),
        (KnowledgeGradient, {"discount": 0.0}, "discount=0.0"),
    ],
)
def test_errors_name_parameters_that_are_out_of_range(kind: Any, words: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        kind(3, **words)


@pytest.mark.parametrize("prior", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), 1.0, (1, 1, 1), "ab"])
def test_invalid_priors_are_refused(prior: Any) -> None:
    for kind, words in (
        (BayesUCB, {}),
        (KnowledgeGradient, {"horizon": 10}),
        (InformationDirected, {}),
    ):
        with pytest.raises(InvalidPrior):
            kind(3, prior=prior, **words)


def test_a_state_with_another_prior_is_refused_and_changes_nothing() -> None:
    agent = after(BayesUCB(4), EVENTS)
    before = agent.save()
    for other in (BayesUCB(4, prior=(2, 1)), BayesUCB(5), UCBTuned(4)):
        with pytest.raises(IncompatibleState):
            agent.load(after(other, EVENTS).save())
    assert same_bits(before, agent.save())


# -- formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_ucb_tuned_and_moss_equal_their_formulas(seed: int, whole: bool) -> None:
    n, s, q = counts(seed, whole=whole)
    t, x = n.sum(), s / n
    V = q / n - x**2 + np.sqrt(2 * np.log(t) / n)
    assert filled(optimism.ucb_tuned, t, n, s, q) == pytest.approx(
        x + np.sqrt(np.log(t) / n * np.minimum(0.25, V)), rel=1e-13
    )
    assert filled(optimism.moss, 500.0, n, s) == pytest.approx(
        x + np.sqrt(np.maximum(np.log(500 / (6 * n)), 0) / n), rel=1e-14
    )


def test_ucb_tuned_uses_the_variance_of_well_known_arms() -> None:
    n, s, q = np.full(2, 1e5), np.full(2, 5e4), np.array([5e4, 2.5e4])
    noisy, steady = filled(optimism.ucb_tuned, 2e5, n, s, q, arms=2)
    assert noisy - 0.5 == pytest.approx(math.sqrt(math.log(2e5) / 1e5 / 4), rel=1e-12)
    floor = math.sqrt(2 * math.log(2e5) / 1e5)
    assert steady - 0.5 == pytest.approx(math.sqrt(math.log(2e5) / 1e5 * floor), rel=1e-12)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 2.5)])
@pytest.mark.parametrize("c", [0.0, 5.0])
def test_bayes_ucb_equals_the_quantile(c: float, prior: tuple[float, float]) -> None:
    for seed in range(5):
        n, s, _ = counts(seed)
        t = n.sum()
        tail = 1.0 / ((t + 1) * math.log(1000.0) ** c)
        out = filled(optimism.bayes_ucb, t, np.array([c, 1000.0, *prior]), n, s)
        exact = special.betainccinv(prior[0] + s, prior[1] + n - s, tail)
        assert out == pytest.approx(exact, abs=1e-12)


def gradient(n: FloatArray, s: FloatArray, prior: tuple[float, float], h: float) -> list[float]:
    """E max_i m_i after a reward of arm j, by summing over both rewards."""

    def means(n: FloatArray, s: FloatArray) -> FloatArray:
        return np.asarray((prior[0] + s) / (sum(prior) + n))

    m, out = means(n, s), []
    for j in range(n.size):
        one = np.eye(n.size)[j]
        after = m[j] * means(n + one, s + one).max() + (1 - m[j]) * means(n + one, s).max()
        out.append(m[j] + h * (after - m.max()))
    return out


@pytest.mark.parametrize(
    ("horizon", "discount", "h"),
    [
        (1000.0, 1.0, lambda t: max(999.0 - t, 0.0)),
        (math.inf, 0.99, lambda t: 99.0),
        (1000.0, 0.9, lambda t: sum(0.9**k for k in range(1, int(max(999 - t, 0)) + 1))),
        (10.0, 1.0, lambda t: 0.0),
    ],
)
def test_the_knowledge_gradient_equals_its_expectation(
    horizon: float, discount: float, h: Callable[[float], float]
) -> None:
    for seed in range(20):
        n, s, _ = counts(seed, arms=4, most=8)
        t = n.sum()
        out = filled(arena.knowledge_gradient, t, horizon, discount, 1.0, 2.0, n, s, arms=4)
        assert out == pytest.approx(gradient(n, s, (1.0, 2.0), h(t)), abs=1e-12)


def test_equal_arms_have_equal_knowledge_gradients_to_the_last_bit() -> None:
    for seed in range(20):
        n, s, _ = counts(seed, arms=1, most=30)
        n, s = np.repeat(n, 3), np.repeat(s, 3)
        out = filled(arena.knowledge_gradient, 3.0, 100.0, 1.0, 1.0, 1.0, n, s, arms=3)
        assert len(set(out.tolist())) == 1


def test_the_knowledge_gradient_of_a_single_arm_is_zero() -> None:
    one = np.array([5.0])
    out = filled(arena.knowledge_gradient, 5.0, 100.0, 1.0, 1.0, 1.0, one, 0 * one, arms=1)
    assert out == pytest.approx([1 / 7])


EVERY: list[tuple[Any, int, list[float]]] = [
    (optimism, optimism.UCB_TUNED, []),
    (optimism, optimism.MOSS_POLICY, [100.0]),
    (optimism, optimism.BAYES_UCB, [0.0, 100.0, 1.0, 1.0]),
    (arena, arena.KNOWLEDGE_GRADIENT, [100.0, 1.0, 1.0, 1.0]),
    (arena, arena.INFORMATION, [1.0, 1.0]),
]


@pytest.mark.parametrize(("home", "kind", "parameters"), EVERY)
@pytest.mark.parametrize("observed", [0.0, 6.0])
def test_equal_arms_are_chosen_equally_often(
    home: Any, kind: int, parameters: list[float], observed: float
) -> None:
    """Five standard errors: false alarm 6e-7 for each arm."""
    n, rows = np.full(4, observed), arena.ROWS + 4
    shares = pull(kind, parameters, n, n / 3, n / 3, 4000, home=home, rows=rows)
    assert_shares(shares, [0.25] * 4, 4000)
    if home is optimism and kind != optimism.BAYES_UCB:  # untried arms come first, in any order
        mixed = [3, 0, 5, 0]
        shares = pull(kind, [100.0], mixed, mixed, mixed, 4000, home=home, rows=rows)
        assert_shares(shares, [0.0, 0.5, 0.0, 0.5], 4000)


# -- whole runs ---------------------------------------------------------------------------------


def ucb_tuned(mine: list[float], all_: list[list[float]]) -> float:
    t, n = sum(map(len, all_)), len(mine)
    mean = sum(mine) / n
    V = sum(r * r for r in mine) / n - mean**2 + math.sqrt(2 * math.log(t) / n)
    return mean + math.sqrt(math.log(t) / n * min(0.25, V))


def moss(mine: list[float], all_: list[list[float]]) -> float:
    n = len(mine)
    return sum(mine) / n + math.sqrt(max(math.log(120 / (3 * n)), 0.0) / n)


def bayes_ucb(mine: list[float], all_: list[list[float]]) -> float:
    t, wins = sum(map(len, all_)) + 1, sum(mine)
    return float(special.betaincinv(1 + wins, 1 + len(mine) - wins, 1 - 1 / t))


def knowledge_gradient(mine: list[float], all_: list[list[float]]) -> float:
    def mean(rewards: list[float]) -> float:
        return (1 + sum(rewards)) / (2 + len(rewards))

    def top(more: float) -> float:
        return max(mean([*r, more]) if r is mine else mean(r) for r in all_)

    m = mean(mine)
    left = 120 - sum(map(len, all_)) - 1
    return m + left * (m * top(1.0) + (1 - m) * top(0.0) - max(map(mean, all_)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("agent", "world", "index", "each_once"),
    [
        (UCBTuned, Fractions, ucb_tuned, True),
        (lambda arms: MOSS(arms, horizon=120), Fractions, moss, True),
        (BayesUCB, Coins, bayes_ucb, False),
        (lambda arms: KnowledgeGradient(arms, horizon=120), Coins, knowledge_gradient, False),
    ],
)
def test_every_action_has_the_largest_index(
    agent: Any, world: Any, index: Index, each_once: bool, seed: int
) -> None:
    check_indices(agent(3), world, index, each_once, seed)


def assert_less(one: Callable[[Any], Any], other: Callable[[Any], Any], runs: int) -> None:
    """`one` has less regret on the same worlds, by four standard errors: false alarm 3e-5."""
    gap = bench(other, runs).regret - bench(one, runs).regret
    assert gap.mean() > 4.0 * gap.std() / math.sqrt(runs)


def test_agents_have_the_order_reported_in_their_papers() -> None:
    assert_less(lambda _world: MOSS(10, horizon=STEPS), lambda _world: UCB1(10), 100)
    assert_less(lambda _world: UCBTuned(10), lambda _world: MOSS(10, horizon=STEPS), 100)
    assert_less(lambda _world: BayesUCB(10), lambda _world: KLUCB(10), 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        lambda _world: BayesUCB(10),
        lambda _world: KnowledgeGradient(10, horizon=STEPS),
        lambda _world: UCBTuned(10),
    ],
)
def test_information_directed_sampling_has_the_least_regret(other: Any) -> None:
    assert_less(lambda _world: InformationDirected(10), other, 300)

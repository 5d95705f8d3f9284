"""Bandit baselines: laws of agents, the papers' pseudo-code, published results, bad input."""

import math
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pytest

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray
from bayescontrol._compiled import find_loop
from bayescontrol.bandits import BernoulliBandit, GaussianBandit
from bayescontrol.baselines import (
    KLUCB,
    UCB1,
    CountingAgent,
    EpsilonGreedy,
    Oracle,
    Softmax,
    UniformLevers,
    bandits,
)
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownArm
from bayescontrol.interaction import both_streams, interact, play
from bayescontrol.record import Record
from bayescontrol.seeding import Stream
from bayescontrol.testing import LawBroken, check_fused, check_resume, check_same_seed, same_bits
from bayescontrol.testing.laws import READABLE_LOOP

BIASES = [0.2, 0.7, 0.5, 0.65]
Make = Callable[..., Any]

MAKERS: dict[str, Make] = {
    "uniform": UniformLevers,
    "oracle": lambda arms: Oracle(arms, biases=BIASES),
    "epsilon-greedy": EpsilonGreedy,
    "epsilon-greedy, decaying": lambda arms: EpsilonGreedy(arms, epsilon=0.5, decay=0.99),
    "softmax, decaying": lambda arms: Softmax(arms, temperature=0.5, decay=0.99),
    "UCB1": UCB1,
    "KL-UCB": KLUCB,
    "KL-UCB, c = 3": lambda arms: KLUCB(arms, c=3),
}


@pytest.fixture(params=MAKERS.values(), ids=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Make:
    """A constructor of an agent that takes the arms."""
    maker: Make = request.param
    return maker


def world(arms: Any = 4) -> Any:
    return BernoulliBandit(arms).environment(BIASES)


def after(agent: Any, pairs: list[tuple[Any, Any]]) -> Any:
    for a, r in pairs:
        agent.observe(a, r)
    return agent


EVENTS: list[tuple[Any, Any]] = [
    (0, 1.0), (1, 0.0), (1, 1.0), (3, 0.0), (2, 1.0), (1, 1.0), (0, 0.0)
]  # fmt: skip

# -- laws ---------------------------------------------------------------------------------------


def test_a_run_is_a_function_of_its_seed_and_can_be_resumed(make: Make) -> None:
    check_same_seed(lambda: make(4), world)
    for at in (0, 1, 30, 60):
        check_resume(lambda: make(4), world, 60, at=at)


@pytest.mark.parametrize("arms", [4, ["red", "blue", "green", "grey"]], ids=["numbers", "names"])
@pytest.mark.parametrize("steps", [1, 2, 300])
def test_the_compiled_loop_equals_the_readable_one(make: Make, arms: Any, steps: int) -> None:
    """The loop itself, and `interact`, which chooses it."""
    agent, (p, q) = make(arms), both_streams(steps, 0)
    loop = find_loop(agent, world(arms))
    assert loop is not None
    record, twin, streams = (
        loop(agent, world(arms), steps, p, q),
        make(arms),
        both_streams(steps, 0),
    )
    readable = interact(twin, world(arms), steps, streams=streams, probes=READABLE_LOOP)
    assert record == Record(readable.actions, readable.observations)
    assert same_bits(agent.save(), twin.save())
    assert (p, q) == streams
    check_fused(lambda: make(arms), lambda: world(arms), steps, seed=steps)


def test_a_compiled_loop_that_forgets_a_reward_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kernels.policies.interact

    def wrong(*arguments: Any) -> int:
        done: int = right(*arguments)
        arguments[0].counts[0, 0] -= 1.0
        return done

    monkeypatch.setattr(kernels.policies, "interact", wrong)
    with pytest.raises((LawBroken, AssertionError)):
        test_the_compiled_loop_equals_the_readable_one(UCB1, 4, 300)


def test_actions_depend_on_the_evidence_and_not_on_its_order_nor_on_acting(make: Make) -> None:
    one, two = after(make(4), EVENTS), after(make(4), EVENTS[::-1])
    p, q, before = Stream(3), Stream(3), one.save()
    arms = [one.act(p) for _ in range(20)]
    assert arms == [two.act(q) for _ in range(20)]
    assert same_bits(before, one.save())
    assert all(type(a) is int and 0 <= a < 4 for a in arms)


def test_late_and_missing_feedback_is_accepted(make: Make) -> None:
    """Three decisions wait for feedback at a time, and every fifth reward is lost."""
    agent, environment, (p, q) = make(4), world(), both_streams(0, 0)
    waiting: list[tuple[int, float]] = []
    for t in range(60):
        a = agent.act(p)
        waiting.append((a, environment.respond(a, q)))
        if len(waiting) > 3 and t % 5:
            agent.observe(*waiting.pop(1))
    assert agent.count == sum(agent.pulls.values()) > 40


def test_agents_and_kernels_use_the_same_policy_numbers() -> None:
    kinds = {
        "UniformLevers": "UNIFORM", "Oracle": "ORACLE", "EpsilonGreedy": "EPSILON_GREEDY",
        "Softmax": "SOFTMAX", "UCB1": "UCB1", "KLUCB": "KL_UCB",
    }  # fmt: skip
    for name, constant in kinds.items():
        assert getattr(bandits, name).kind == getattr(kernels.policies, constant)
    assert len({getattr(bandits, name).kind for name in kinds}) == len(kinds)
    assert {kind.__name__ for kind in CountingAgent.__subclasses__()} >= kinds.keys()


# -- bad input ----------------------------------------------------------------------------------


def test_bad_input_is_refused_and_changes_nothing(make: Make) -> None:
    agent = after(make(4), EVENTS)
    before = agent.save()
    for reward in (math.nan, math.inf, None, "much", [1.0, 0.0], 1 + 2j):
        with pytest.raises(BadEvidence):
            agent.observe(1, reward)
    for arm in (4, -1, "red", None, 0.5, [0]):
        with pytest.raises(UnknownArm):
            agent.observe(arm, 1.0)
    assert same_bits(before, agent.save())


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (EpsilonGreedy, [0.0, 0.3, np.float32(1.0)], [-0.1, 1.1]),
        (KLUCB, [False, 0.3, np.int64(1)], [-0.1, 1.1]),
        (UniformLevers, [-7.5, 1e9], [1e200]),
    ],
)
def test_rewards_outside_the_support_are_refused(kind: Any, good: list[Any], bad: Any) -> None:
    agent = after(kind(2), [(0, r) for r in good])
    for r in bad:
        with pytest.raises(BadEvidence, match="reward"):
            agent.observe(0, r)
    assert agent.pulls == {0: len(good), 1: 0}


def test_the_compiled_loop_raises_the_same_error_for_an_invalid_reward() -> None:
    one, two, environment = UCB1(3), UCB1(3), GaussianBandit(3, sd=1, prior=(0, 1)).draw(0)
    p, q = both_streams(0, 0), both_streams(0, 0)
    for agent, streams, probes in ((one, p, None), (two, q, READABLE_LOOP)):
        with pytest.raises(BadEvidence, match="UCB1 accepts a number from 0 to 1"):
            interact(agent, environment, 100, streams=streams, probes=probes)
    assert same_bits(one.save(), two.save())
    assert p == q


@pytest.mark.parametrize(
    ("kind", "words", "named"),
    [
        (EpsilonGreedy, {"epsilon": 1.5}, "epsilon=1.5"),
        (EpsilonGreedy, {"epsilon": math.nan}, "epsilon=nan"),
        (EpsilonGreedy, {"decay": 0.0}, "decay=0.0"),
        (EpsilonGreedy, {"decay": 1.01}, "decay=1.01"),
        (EpsilonGreedy, {"epsilon": "0.1"}, "epsilon='0.1'"),
        (Softmax, {"temperature": 0.0}, "temperature=0.0"),
        (KLUCB, {"c": -1.0}, "c=-1.0"),
        (Oracle, {"biases": [0.1]}, "biases"),
        (Oracle, {"biases": [0.1, math.nan, 0.2]}, "biases"),
        (Oracle, {"biases": "abc"}, "biases"),
    ],
)
def test_errors_name_parameters_that_are_out_of_range(kind: Any, words: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        kind(3, **words)


def test_invalid_arms_are_refused() -> None:
    for arms in (0, -3, [], True, "red", 2.5, None, ["a", "a"]):
        with pytest.raises(UnknownArm):
            UCB1(arms)  # type: ignore[arg-type]


def test_a_copy_is_independent(make: Make) -> None:
    agent = after(make(4), EVENTS)
    before = agent.save()
    twin = agent.copy()
    assert type(twin) is type(agent)
    twin.observe(0, 1.0)
    assert same_bits(before, agent.save())
    assert twin.count == agent.count + 1


def test_damaged_and_incompatible_states_are_refused_and_change_nothing() -> None:
    agent = after(KLUCB(4), EVENTS)
    before = agent.save()
    counts, pulls = before["counts"], np.array([[1.0], [0.0], [0.0]])
    damaged: list[Any] = [
        None,
        {},
        {k: v for k, v in before.items() if k != "counts"},
        before | {"counts": counts * np.nan},
        before | {"counts": counts + 0.5 * pulls},
        before | {"counts": counts - 9.0 * pulls},
        before | {"counts": counts + np.array([[0.0], [10.0], [0.0]])},
        before | {"counts": counts[:2]},
        before | {"counts": counts.astype(str)},
        after(UCB1(4), EVENTS).save(),
        after(KLUCB(5), EVENTS).save(),
        after(KLUCB(4, c=2), EVENTS).save(),
    ]
    for arrays in damaged:
        with pytest.raises(IncompatibleState):
            agent.load(arrays)
        assert same_bits(before, agent.save())


def test_the_repr_of_an_agent_describes_it() -> None:
    assert repr(after(KLUCB(["x", "y"], c=3), [("y", 1), ("y", 0)])) == (
        "KLUCB(2 arms, c=3.0 after 2 rewards: y 0.5 (2))"
    )


def test_a_user_defined_agent_needs_only_a_policy_number() -> None:
    class Greedy(CountingAgent):
        """A greedy agent: ε-greedy with ε = 0."""

        kind = 2

    agent = after(Greedy(3, [0.0, 1.0]), [(1, 1.0), (0, 0.2)])
    assert {agent.act(Stream(seed)) for seed in range(20)} == {1}


def test_a_user_defined_agent_can_have_a_compiled_loop_of_its_own() -> None:
    class First(CountingAgent):
        fused_loop = staticmethod(bandits.counting_loop)

        def interact(self, *arguments: Any) -> int:
            actions, rewards = arguments[-2:]
            actions[:], rewards[:] = 0, 1.0
            return len(actions)

    assert interact(First(4), world(), 5, seed=0).observations.tolist() == [1.0] * 5


# -- whole runs, compared with the papers' pseudo-code in plain Python ----------------------------


class Fractions:
    """An environment with Beta distributed rewards in [0, 1]."""

    def respond(self, a: int, rng: Stream) -> float:
        return rng.beta(1.0 + a, 2.0)


class Coins:
    """An environment with rewards 0 and 1."""

    def respond(self, a: int, rng: Stream) -> float:
        return float(rng.random() < 0.4 + 0.1 * a)


Index = Callable[[list[float], list[list[float]]], float]


def ucb1(mine: list[float], all_: list[list[float]]) -> float:
    t = sum(map(len, all_))
    return sum(mine) / len(mine) + math.sqrt(2 * math.log(t) / len(mine))


def kl_ucb(mine: list[float], all_: list[list[float]]) -> float:
    t, n = sum(map(len, all_)) + 1, len(mine)
    p = sum(mine) / n

    def kl(q: float) -> float:
        up = p * math.log(p / q) if p > 0 else 0.0
        return up + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)

    low, high = p, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        inside = middle < 1.0 and n * kl(middle) <= math.log(t)
        low, high = (middle, high) if inside else (low, middle)
    return low


def check_indices(agent: Any, world: Any, index: Index, each_once: bool, seed: int) -> None:
    """Every action of 120 has the largest index, after each of three arms once."""
    observed: list[list[float]] = [[] for _ in range(3)]
    for a, o in islice(play(agent, world(), seed=seed), 120):
        if each_once and not all(observed):
            assert not observed[a]
        else:
            indices = [index(rewards, observed) for rewards in observed]
            assert indices[a] == pytest.approx(max(indices), abs=1e-10)
        observed[a].append(o)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kind", "world", "index"),
    [(UCB1, Fractions, ucb1), (KLUCB, Fractions, kl_ucb), (KLUCB, Coins, kl_ucb)],
)
def test_every_action_has_the_largest_index(kind: Any, world: Any, index: Index, seed: int) -> None:
    check_indices(kind(3), world, index, True, seed)


# -- the paper's benchmark: 10 levers with uniform biases, 1,000 steps ----------------------------

BANDIT = BernoulliBandit(10)
STEPS, LATE = 1000, 100


class Scores(NamedTuple):
    """Late reward, late share of the best lever, and regret; one number per run."""

    reward: FloatArray
    best: FloatArray
    regret: FloatArray


def bench(make: Callable[[Any], Any], runs: int, seed: int = 0) -> Scores:
    rows = []
    for run in range(runs):
        world = BANDIT.draw(Stream.named(seed, run, "world"))
        record = interact(make(world), world, STEPS, streams=both_streams(seed, run))
        means = world.means()
        late = (record.actions[-LATE:] == world.best()).mean()
        lost = STEPS * means.max() - means[record.actions].sum()
        rows.append((record.observations[-LATE:].mean(), late, lost))
    return Scores(*np.array(rows).T)


def check_published(decay: float, runs: int, epsilon: float = 0.1, seed: int = 0) -> None:
    """Compare with published means of 4,000 runs, within four standard errors of the difference.

    False alarms: 6e-5 for each of the three. The published digits are rounded to half a unit.
    """
    scores = bench(lambda _world: EpsilonGreedy(10, epsilon=epsilon, decay=decay), runs, seed)
    for column, value, digit in zip(scores, (0.870, 0.614, 51.0), (1e-3, 1e-3, 0.1), strict=True):
        error = column.std() * math.sqrt(1.0 / column.size + 1.0 / 4000)
        assert abs(column.mean() - value) <= 4.0 * error + 0.5 * digit


@pytest.mark.parametrize(
    ("runs", "seed"), [(1000, 0), pytest.param(4000, 1, marks=pytest.mark.slow)]
)
def test_epsilon_greedy_agrees_with_the_published_results(runs: int, seed: int) -> None:
    check_published(0.99, runs, seed=seed)


@pytest.mark.parametrize(("epsilon", "decay"), [(0.1, 1.0), (0.1, 0.9), (0.5, 0.99)])
def test_another_epsilon_is_detected(epsilon: float, decay: float) -> None:
    with pytest.raises(AssertionError):
        check_published(decay, 1000, epsilon)


def test_the_oracle_earns_ten_elevenths_and_uniform_play_loses_9_22_per_step() -> None:
    """E max - E mean = 10/11 - 1/2; five standard errors, a false alarm in 6e-7 of the seeds."""
    scores = bench(lambda world: Oracle(10, biases=world.means()), 1000)
    assert abs(scores.reward.mean() - 10 / 11) < 5 * scores.reward.std() / math.sqrt(1000)
    assert scores.regret.max() < 1e-9
    assert scores.best.min() == 1.0
    regret = bench(lambda _world: UniformLevers(10), 1000).regret
    assert abs(regret.mean() - STEPS * 9 / 22) < 5 * regret.std() / math.sqrt(1000)

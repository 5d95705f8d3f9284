"""The common interface of all bandit baselines: feedback, errors, state, and laws of agents."""

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import MOSS, BayesUCB, InformationDirected, KnowledgeGradient, UCBTuned

from bayescontrol import kernels
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
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior, UnknownArm
from bayescontrol.interaction import both_streams, interact
from bayescontrol.record import Record
from bayescontrol.seeding import Stream
from bayescontrol.testing import (
    LawBroken,
    check_fused,
    check_resume,
    check_same_seed,
    same_bits,
)
from bayescontrol.testing.agent_laws import READABLE_LOOP

BIASES = [0.2, 0.7, 0.5, 0.65]
Make = Callable[..., Any]


def world(arms: Any = 4) -> Any:
    return BernoulliBandit(arms).environment(BIASES)


def after(agent: Any, pairs: list[tuple[Any, Any]]) -> Any:
    for a, r in pairs:
        agent.observe(a, r)
    return agent


EVENTS: list[tuple[Any, Any]] = [
    (0, 1.0),
    (1, 0.0),
    (1, 1.0),
    (3, 0.0),
    (2, 1.0),
    (1, 1.0),
    (0, 0.0),
]

# -- laws ---------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_run(make: Make) -> None:
    check_same_seed(lambda: make(4), world)


@pytest.mark.parametrize("at", [0, 1, 30, 60])
def test_a_run_can_be_saved_and_resumed(make: Make, at: int) -> None:
    check_resume(lambda: make(4), world, 60, at=at)


def fused_run(make: Make, arms: Any, steps: int, seed: int) -> tuple[Record, Any, Any, Any]:
    """Run the compiled loop itself."""
    agent, streams = make(arms), both_streams(seed, 0)
    loop = find_loop(agent, world(arms))
    assert loop is not None
    return loop(agent, world(arms), steps, *streams), agent.save(), *streams


@pytest.mark.parametrize("arms", [4, ["red", "blue", "green", "grey"]], ids=["numbers", "names"])
@pytest.mark.parametrize("steps", [1, 2, 300])
def test_the_compiled_loop_equals_the_readable_one(make: Make, arms: Any, steps: int) -> None:
    record, state, p, q = fused_run(make, arms, steps, seed=steps)
    agent, streams = make(arms), both_streams(steps, 0)
    readable = interact(agent, world(arms), steps, streams=streams, probes=READABLE_LOOP)
    assert record == Record(readable.actions, readable.observations)
    assert same_bits(state, agent.save())
    assert (p, q) == streams
    check_fused(lambda: make(arms), lambda: world(arms), steps, seed=steps)


def test_a_compiled_loop_that_forgets_a_reward_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kernels.policies.interact

    def wrong(*arguments: Any) -> int:
        done: int = right(*arguments)
        arguments[3][0, 0] -= 1.0
        return done

    monkeypatch.setattr(kernels.policies, "interact", wrong)
    with pytest.raises((LawBroken, AssertionError)):
        test_the_compiled_loop_equals_the_readable_one(UCB1, 4, 300)


def test_the_compiled_loop_requires_the_same_arms() -> None:
    assert find_loop(UCB1(3), world()) is None
    assert find_loop(UCB1(["red", "blue", "green", "grey"]), world()) is None


def test_acting_does_not_change_the_agent(make: Make) -> None:
    agent, rng = after(make(4), EVENTS), Stream(0)
    before = agent.save()
    arms = [agent.act(rng) for _ in range(20)]
    assert same_bits(before, agent.save())
    assert all(type(a) is int and 0 <= a < 4 for a in arms)


def test_actions_depend_on_the_evidence_and_not_on_its_order(make: Make) -> None:
    one, two = after(make(4), EVENTS), after(make(4), EVENTS[::-1])
    p, q = Stream(3), Stream(3)
    assert [one.act(p) for _ in range(20)] == [two.act(q) for _ in range(20)]


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


def test_ucb_tuned_uses_the_variance_of_the_observed_rewards() -> None:
    rewards = np.random.default_rng(0).beta(20.0, 20.0, (2, 3000))
    agent = after(UCBTuned(2), [(j, r) for j in range(2) for r in rewards[j]])
    V = rewards.var(axis=1) + math.sqrt(2 * math.log(6000) / 3000)
    expected = rewards.mean(axis=1) + np.sqrt(math.log(6000) / 3000 * V)
    assert (V < 0.25).all()
    assert list(agent.indices().values()) == pytest.approx(expected.tolist(), rel=1e-10)


def test_agents_and_kernels_use_the_same_policy_numbers() -> None:
    kinds = {
        "UniformLevers": "UNIFORM", "Oracle": "ORACLE", "EpsilonGreedy": "EPSILON_GREEDY",
        "Softmax": "SOFTMAX", "UCB1": "UCB1", "KLUCB": "KL_UCB",
    }  # fmt: skip
    for name, constant in kinds.items():
        assert getattr(bandits, name).kind == getattr(kernels.policies, constant)
    assert {kind.__name__ for kind in CountingAgent.__subclasses__()} >= kinds.keys()


def test_importing_the_baselines_does_not_import_numba() -> None:
    code = (
        "import sys, bayescontrol.baselines.bandits as b; "
        "sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [math.nan, math.inf, None, "much", [1.0, 0.0], 1 + 2j])
def test_a_non_numeric_reward_is_refused_and_changes_nothing(make: Make, reward: Any) -> None:
    agent = after(make(4), EVENTS)
    before = agent.save()
    with pytest.raises(BadEvidence):
        agent.observe(1, reward)
    assert same_bits(before, agent.save())


@pytest.mark.parametrize("arm", [4, -1, "red", None, 0.5, [0]])
def test_an_unknown_arm_is_named_and_changes_nothing(make: Make, arm: Any) -> None:
    agent = after(make(4), EVENTS)
    before = agent.save()
    with pytest.raises(UnknownArm):
        agent.observe(arm, 1.0)
    assert same_bits(before, agent.save())


def test_rewards_outside_the_support_are_refused() -> None:
    cases: list[tuple[Any, list[float], list[float]]] = [
        (EpsilonGreedy(2), [0.0, 0.3, 1.0], [-0.1, 1.1]),
        (KLUCB(2), [0.0, 0.3, 1.0], [-0.1, 1.1]),
        (BayesUCB(2), [0.0, 1.0], [0.3, 2.0, -1.0]),
        (InformationDirected(2), [0.0, 1.0], [0.3, 2.0, -1.0]),
        (UniformLevers(2), [-7.5, 1e9], [1e200]),
    ]
    for agent, good, bad in cases:
        after(agent, [(0, r) for r in good])
        assert agent.pulls == {0: len(good), 1: 0}
        for r in bad:
            with pytest.raises(BadEvidence, match="reward"):
                agent.observe(0, r)
        assert agent.pulls == {0: len(good), 1: 0}


def test_booleans_and_numpy_numbers_are_valid_rewards() -> None:
    agent = after(BayesUCB(2), [(0, True), (np.int64(1), np.float32(0.0)), (0, np.bool_(False))])
    assert agent.pulls == {0: 2, 1: 1}


def test_the_compiled_loop_raises_the_same_error_for_an_invalid_reward() -> None:
    bandit = GaussianBandit(3)
    words = "UCB1 learns from a number from 0 to 1"
    one, two, environment = UCB1(3), UCB1(3), bandit.draw(0)
    p, q = both_streams(0, 0), both_streams(0, 0)
    with pytest.raises(BadEvidence, match=words):
        interact(one, environment, 100, streams=p)
    with pytest.raises(BadEvidence, match=words):
        interact(two, environment, 100, streams=q, probes=READABLE_LOOP)
    assert same_bits(one.save(), two.save())
    assert p == q


@pytest.mark.parametrize("arms", [0, -3, [], True, "red", 2.5, None, ["a", "a"]])
def test_invalid_arms_are_refused(arms: Any) -> None:
    for kind in (UniformLevers, UCB1, InformationDirected):
        with pytest.raises(UnknownArm):
            kind(arms)


@pytest.mark.parametrize(
    ("kind", "words", "named"),
    [
        (EpsilonGreedy, {"epsilon": 1.5}, "epsilon=1.5"),
        (EpsilonGreedy, {"epsilon": math.nan}, "epsilon=nan"),
        (EpsilonGreedy, {"decay": 0.0}, "decay=0.0"),
        (EpsilonGreedy, {"decay": 1.01}, "decay=1.01"),
        (EpsilonGreedy, {"epsilon": "0.1"}, "epsilon='0.1'"),
        (Softmax, {"temperature": 0.0}, "temperature=0.0"),
        (Softmax, {"temperature": -1.0}, "temperature=-1.0"),
        (MOSS, {"horizon": 0}, "horizon=0"),
        (MOSS, {"horizon": 10.5}, "horizon=10.5"),
        (KLUCB, {"c": -1.0}, "c=-1.0"),
        (BayesUCB, {"c": 5.0}, "horizon"),
        (BayesUCB, {"c": 5.0, "horizon": 2}, "horizon=2"),
        (KnowledgeGradient, {}, "horizon="),
        (KnowledgeGradient, {"discount": 1.0}, "discount=1.0"),
        (KnowledgeGradient, {"discount": 0.0}, "discount=0.0"),
        (Oracle, {"biases": [0.1]}, "biases"),
        (Oracle, {"biases": [0.1, math.nan, 0.2]}, "biases"),
        (Oracle, {"biases": "abc"}, "biases"),
    ],
)
def test_errors_name_parameters_that_are_out_of_range(
    kind: Any, words: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named.replace("[", r"\[").replace("(", r"\(")):
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


# -- state --------------------------------------------------------------------------------------


def test_a_copy_is_independent(make: Make) -> None:
    agent = after(make(4), EVENTS)
    before = agent.save()
    twin = agent.copy()
    assert type(twin) is type(agent)
    assert twin.act(Stream(1)) == agent.act(Stream(1))
    twin.observe(0, 1.0)
    assert same_bits(before, agent.save())
    assert twin.count == agent.count + 1


def test_damaged_and_incompatible_states_are_refused_and_change_nothing() -> None:
    agent = after(BayesUCB(4), EVENTS)
    before = agent.save()
    damaged: list[Any] = [
        before | {"pulls": before["pulls"] + 0.5},
        before | {"pulls": -before["pulls"]},
        before | {"rewards": before["rewards"] + 10.0},
        after(UCB1(4), EVENTS).save(),
        after(BayesUCB(5), EVENTS).save(),
        after(BayesUCB(4, prior=(2, 1)), EVENTS).save(),
    ]
    for arrays in damaged:
        with pytest.raises(IncompatibleState):
            agent.load(arrays)
        assert same_bits(before, agent.save())


def test_a_saved_state_is_not_changed_by_continuing() -> None:
    agent = after(UCB1(4), EVENTS)
    saved = agent.save()
    stored = {name: array.copy() for name, array in saved.items()}
    fresh = UCB1(4)
    fresh.load(saved)
    after(fresh, EVENTS)
    after(agent, EVENTS)
    assert same_bits(saved, stored)


def test_the_repr_of_an_agent_describes_it() -> None:
    assert repr(MOSS(3, horizon=100)) == "MOSS(3 arms, horizon=100)"
    assert repr(after(KLUCB(["x", "y"], c=3), [("y", 1), ("y", 0)])) == (
        "KLUCB(2 arms, c=3.0 after 2 rewards: y 0.5 (2))"
    )
    assert repr(BayesUCB(2)) == "BayesUCB(2 arms, c=0.0, horizon=None, prior=(1.0, 1.0))"


def test_a_user_defined_agent_needs_only_a_policy_number() -> None:
    class Greedy(CountingAgent):
        """A greedy agent: ε-greedy with ε = 0."""

        kind = 2

    agent = after(Greedy(3, [0.0, 1.0]), [(1, 1.0), (0, 0.2)])
    assert {agent.act(Stream(seed)) for seed in range(20)} == {1}

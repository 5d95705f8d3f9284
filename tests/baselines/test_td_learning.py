"""R-learning and Q-learning: names, masks, discovered states, loops, errors, known rewards."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayescontrol import Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol._compiled import find_loop
from bayescontrol.baselines import OptimalPolicy, QLearning, RLearning
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownAction, UnknownState
from bayescontrol.mdp import MDP, Maze, Step, chain_mdp, policy_iteration, random_mdp
from bayescontrol.record import Probe
from bayescontrol.testing import LawBroken, check_fused, check_resume, check_same_seed, same_bits

Make = Callable[..., Any]

#: Learners: the class, and settings that reach every branch of its kernels.
LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "R": (RLearning, {"C": 5.0}),
    "R greedy": (RLearning, {"p_exp": 0.6, "greedy_only": True}),
    "R random": (RLearning, {"p_exp": 0.6, "otherwise": "random"}),
    "Q": (QLearning, {"gamma": 0.9, "epsilon": 0.3, "decay": 0.999}),
    "Q optimistic": (QLearning, {"gamma": 0.9, "epsilon": 0.0, "initial": 30.0}),
}


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Callable[..., Any]:
    kind, settings = LEARNERS[request.param]

    def make(*arguments: Any, **changes: Any) -> Any:
        if arguments and isinstance(arguments[0], MDP):
            return kind.on(*arguments, **settings, **changes)
        return kind(*arguments, **settings, **changes)

    return make


def with_masks() -> MDP:
    """Five named states and three named actions; some states do not offer all actions."""
    full = random_mdp(5, 3, seed=3)
    allowed = np.ones((5, 3), bool)
    allowed[0, 0] = allowed[2, 1] = allowed[2, 2] = allowed[4, 2] = False
    return MDP(
        full.transition, full.reward, allowed=allowed,
        states=["a", "b", "c", "d", (0, 1)], actions=["left", "stay", "right"],
    )  # fmt: skip


WORLDS: dict[str, Callable[[], MDP]] = {
    "numbers": lambda: random_mdp(6, 3, seed=2),
    "names": lambda: Maze("three-cups").mdp(named=True),
    "masks": with_masks,
}


@pytest.fixture(params=WORLDS)
def mdp(request: pytest.FixtureRequest) -> MDP:
    return WORLDS[request.param]()


def test_a_run_is_a_function_of_its_seed_and_can_be_resumed(learner: Make, mdp: MDP) -> None:
    check_same_seed(lambda: learner(mdp), mdp.environment, 150)
    check_resume(lambda: learner(mdp), mdp.environment, 150)
    actions, start = tuple(mdp.actions), mdp.states[0]
    check_resume(
        lambda: learner(None, actions, start=start, allowed=mdp.actions_in), mdp.environment, 150
    )


def test_the_state_can_be_set_by_its_name(learner: Make, mdp: MDP) -> None:
    agent = learner(mdp)
    agent.x = mdp.states[1]
    assert agent.x == mdp.states[1]
    with pytest.raises(UnknownState, match="nowhere"):
        agent.x = "nowhere"
    assert agent.x == mdp.states[1]
    found = learner(None, tuple(mdp.actions), start=mdp.states[0])
    found.x = "new"
    assert found.states == (mdp.states[0], "new")


def test_acting_changes_nothing_and_takes_only_actions_that_a_state_offers(
    learner: Make, mdp: MDP
) -> None:
    agent, world, (p, q) = learner(mdp), mdp.environment(), (Stream(1), Stream(2))
    for t in range(300):
        before = agent.save() if t < 30 else None
        a = agent.act(p)
        assert before is None or same_bits(before, agent.save())
        assert a in mdp.actions_in(agent.x) == agent.actions_in(agent.x)
        agent.observe(a, world.respond(a, q))
        assert agent.x == world.x


def test_discovered_states_give_the_same_actions_as_declared_states(
    learner: Make, mdp: MDP
) -> None:
    declared = learner(mdp)
    discovering = learner(None, tuple(mdp.actions), start=mdp.states[0], allowed=mdp.actions_in)
    one, two = (
        interact(agent, mdp.environment(), 400, seed=0) for agent in (declared, discovering)
    )
    assert one == two
    assert discovering.states[0] == mdp.states[0]
    assert set(discovering.states) <= set(declared.states)


def test_arrays_grow_with_the_number_of_states(learner: Make) -> None:
    agent = learner(None, 2, start=0)
    for x in range(100):
        agent.observe(x % 2, Step(float(x), x + 1))
    assert agent.states == tuple(range(101))
    twin = learner(101, 2)
    for x in range(100):
        twin.observe(x % 2, Step(float(x), x + 1))
    mine, other = agent.save(), twin.save()
    assert same_bits(
        {n: v for n, v in mine.items() if v.dtype == np.float64},
        {n: v for n, v in other.items() if v.dtype == np.float64},
    )


#: Input of a learner in state 'home', the error, and a part of its message.
BAD: list[tuple[Any, Any, type[Exception], str]] = [
    ("go", (math.nan, "home"), BadEvidence, "reward nan after action 'go' in state 'home'"),
    ("go", (math.inf, "home"), BadEvidence, "reward inf after action 'go' in state 'home'"),
    ("go", ("1", "home"), BadEvidence, "reward '1' after action 'go' in state 'home'"),
    ("go", 1.0, BadEvidence, "observation 1.0 after action 'go' in state 'home'"),
    ("go", (1.0, ["x"]), BadEvidence, r"state \['x'\] after action 'go' in .* is not hashable"),
    ("fly", (1.0, "home"), UnknownAction, "no action 'fly': the actions are 'go', 'stay', 'sleep'"),
    ("sleep", (1.0, "home"), UnknownAction, "state 'home' does not offer action 'sleep'"),
]


def test_bad_input_raises_and_changes_nothing(learner: Make) -> None:
    def offers(x: Any) -> list[str]:
        return ["go", "stay"] if x == "home" else ["go", "stay", "sleep"]

    agent = learner(None, ["go", "stay", "sleep"], start="home", allowed=offers)
    before = agent.save()
    for a, o, error, words in BAD:
        with pytest.raises(error, match=words):
            agent.observe(a, o)
        assert same_bits(before, agent.save())
    huge = 1.7976e308
    agent.observe("go", (huge if isinstance(agent, QLearning) else -1.7e308, "home"))
    before = agent.save()
    with pytest.raises(BadEvidence, match="action 'go' in state 'home': the values would overflow"):
        agent.observe("go", (huge, "home"))
    assert same_bits(before, agent.save())
    assert agent.states == ("home",)


def test_an_undeclared_state_is_named_in_the_error(learner: Make) -> None:
    agent = learner(["home", "away"], ["go"])
    before = agent.save()
    words = "no state 'moon'"
    with pytest.raises(UnknownState, match=f"{words} after action 'go' in state 'home': the"):
        agent.observe("go", (0.0, "moon"))
    assert same_bits(before, agent.save())
    with pytest.raises(UnknownState, match=words):
        agent.actions_in("moon")
    with pytest.raises(UnknownState, match=words):
        learner(["home", "away"], ["go"], start="moon")
    with pytest.raises(ValueError, match="start"):
        learner(None, 2)
    with pytest.raises(UnknownAction, match="'b' offers no action"):
        learner(["a", "b"], 2, allowed=lambda x: [0] if x == "a" else [])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (RLearning, {"C": -1.0}),
        (RLearning, {"C": float("inf")}),
        (RLearning, {"p_exp": 1.1}),
        (RLearning, {"alpha": 0.0}),
        (RLearning, {"beta": float("nan")}),
        (RLearning, {"otherwise": "lazy"}),
        (QLearning, {"gamma": 1.0}),
        (QLearning, {"epsilon": -0.1}),
        (QLearning, {"decay": 1.01}),
        (QLearning, {"initial": float("inf")}),
        (QLearning, {"alpha": "fast"}),
    ],
)
def test_errors_name_settings_that_are_out_of_range(kind: Any, settings: dict[str, Any]) -> None:
    name, value = next(iter(settings.items()))
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        kind(2, 2, **settings)


def test_saved_arrays_of_another_learner_are_refused_and_change_nothing(
    learner: Make, mdp: MDP
) -> None:
    agent = learner(mdp)
    interact(agent, mdp.environment(), 50, seed=0)
    good = agent.save()
    values = next(n for n, v in good.items() if v.dtype == np.float64 and v.ndim > 1)
    nans = np.full_like(good[values], np.nan)
    bad: list[dict[str, Any]] = [
        {n: v for n, v in good.items() if n != values},
        {**good, values: good[values][:-1]},
        {**good, values: nans},
        {**good, "x": np.array(10**6)},
        {**good, "x": np.array([0, 1])},
        {**good, "actions": np.array("[0]")},
        {**good, "settings": np.array("{}")},
        {**good, "states": np.array("['elsewhere']")},
    ]
    for arrays in bad:
        with pytest.raises(IncompatibleState):
            agent.load(arrays)
        assert same_bits(agent.save(), good)


# -- compiled loops ----------------------------------------------------------------------------

LOOK = {"looked": Probe(lambda _agent, _a, _o: True)}


def test_the_compiled_loop_equals_the_readable_one(learner: Make, mdp: MDP) -> None:
    """With declared states, with discovered ones, and with another order than the environment."""
    start = mdp.states[1]
    for states in ([*mdp.states], None, [*mdp.states][::-1]):

        def make(states: Any = states) -> Any:
            return learner(states, tuple(mdp.actions), start=start, allowed=mdp.actions_in)

        assert find_loop(make(), mdp.environment(start)) is not None
        check_fused(make, lambda: mdp.environment(start), 400)
    assert find_loop(learner(mdp), mdp.environment()) is not None


def test_the_compiled_loop_of_the_oracle_equals_the_readable_one(mdp: MDP) -> None:
    oracle = OptimalPolicy(mdp)
    assert find_loop(oracle, mdp.environment()) is not None
    check_fused(oracle.copy, mdp.environment, 400)


def test_both_loops_raise_the_same_error_for_an_undeclared_state() -> None:
    mdp = random_mdp(4, 2, seed=5)
    ends = []
    for probes in (None, LOOK):
        agent, world = RLearning(3, 2), mdp.environment()
        with pytest.raises(UnknownState) as caught:
            interact(agent, world, 200, probes=probes, seed=0)
        ends.append((str(caught.value), world.at, agent.save()))
    (words, at, state), (other_words, other_at, other_state) = ends
    assert (words, at) == (other_words, other_at)
    assert "no state 3 after action" in words
    assert same_bits(state, other_state)


def test_no_compiled_loop_exists_if_agent_and_environment_differ() -> None:
    mdp = random_mdp(3, 2, seed=0)
    assert find_loop(RLearning.on(mdp), mdp.environment(start=1)) is None
    assert find_loop(RLearning(3, 3), mdp.environment()) is None
    assert find_loop(RLearning(3, [0.0, 1.0]), mdp.environment()) is None
    masked = MDP(mdp.transition, mdp.reward, allowed=[[True, True], [True, False], [True, True]])
    assert find_loop(RLearning(3, 2), masked.environment()) is None
    assert find_loop(RLearning.on(masked), masked.environment()) is not None
    assert find_loop(RLearning.on(masked), mdp.environment()) is not None
    assert find_loop(OptimalPolicy(mdp), masked.environment()) is None


def test_a_planted_bug_in_a_loop_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: a loop that rounds ρ ends in another state."""
    mdp = random_mdp(3, 2, seed=0)
    loop = RLearning._interact

    def careless(self: Any, *rest: Any) -> tuple[int, int]:
        ends = loop(self, *rest)
        self._scalars["rho"][0] = np.float32(self._scalars["rho"][0])
        return ends

    monkeypatch.setattr(RLearning, "_interact", careless)
    with pytest.raises(LawBroken, match="rho"):
        check_fused(lambda: RLearning.on(mdp), mdp.environment, 100)


# -- Q-learning ---------------------------------------------------------------------------------


def discounted(mdp: MDP, gamma: float) -> np.ndarray:
    """Q* of the discounted problem, by value iteration."""
    Q = np.zeros(mdp.allowed.shape)
    for _ in range(2_000):
        Q = mdp.reward + gamma * mdp.transition @ Q.max(1)
    return Q


def test_values_converge_to_those_of_the_discounted_problem() -> None:
    """In 30 other runs the largest difference was .0058 ± .0020: the bound is 7 deviations away."""
    mdp = random_mdp(4, 2, seed=4)
    agent = QLearning.on(mdp, gamma=0.8, alpha=0.01, epsilon=1.0)
    interact(agent, mdp.environment(), 100_000, seed=0)
    ours = [[agent.q_values(x)[a] for a in mdp.actions] for x in mdp.states]
    np.testing.assert_allclose(ours, discounted(mdp, 0.8), rtol=0.0, atol=0.02)


def test_optimistic_values_find_a_reward_that_random_play_rarely_finds() -> None:
    """Eight right actions in a row pay. With values of 0 play is random; optimism tries all."""
    mdp = chain_mdp(8, pays=1)
    pessimistic = QLearning.on(mdp, epsilon=0.1)
    optimistic = QLearning.on(mdp, gamma=0.9, epsilon=0.0, initial=1.0)
    earned = [
        interact(agent, mdp.environment(), 5_000, seed=0).observations["reward"][-800:].mean()
        for agent in (pessimistic, optimistic)
    ]
    assert earned[0] < 0.1 * policy_iteration(mdp).gain
    assert earned[1] == pytest.approx(policy_iteration(mdp).gain, rel=0.02)


# -- R-learning ---------------------------------------------------------------------------------

OPTIMUM = 0.36516191550


@pytest.fixture(scope="module")
def three_cups() -> MDP:
    return Maze("three-cups").mdp()


def last_rewards(mdp: MDP, C: float, steps: int, runs: int, **settings: Any) -> FloatArray:
    """Return the mean reward of the last 10,000 steps of each run."""
    means = []
    for run in range(runs):
        agent = RLearning.on(mdp, C=C, **settings)
        record = interact(agent, mdp.environment(), steps, run=run, seed=0)
        means.append(record.observations["reward"][-10_000:].mean())
    return np.array(means)


def test_little_exploration_ends_in_the_cup_cycle_and_more_often_leaves_it(
    three_cups: MDP,
) -> None:
    """150,000 steps, 10 runs. Of 100 other runs with C = 5, five were not in the cycle at the end.
    With C = 30 the mean was .286 ± .046. False-alarm rates are about 1e-3 each.
    """
    few, some = (last_rewards(three_cups, C, 150_000, 10) for C in (5.0, 30.0))
    assert (np.abs(few - 0.2225) < 0.008).sum() >= 7
    assert some.mean() > few.mean() + 0.01
    assert some.mean() < 0.97 * OPTIMUM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("C", "mean", "deviation"), [(5.0, 0.227, 0.021), (30.0, 0.308, 0.038), (200.0, 0.224, 0.021)]
)
def test_at_full_size_the_reward_agrees_with_reference_runs(
    three_cups: MDP, C: float, mean: float, deviation: float
) -> None:
    """500,000 steps, 100 runs, compared with 20 reference runs, within 4 standard errors.

    The false-alarm rate would be about 1e-4 each if the deviations were known. Few runs leave
    the cup cycle, so the deviation of 20 runs is unreliable; the larger of both is used.
    """
    ours = last_rewards(three_cups, C, 500_000, 100)
    spread = max(deviation, float(ours.std(ddof=1)))
    assert abs(ours.mean() - mean) < 4.0 * spread * math.sqrt(1 / 20 + 1 / 100)
    if C == 5.0:
        assert (np.abs(ours - 0.2225) < 0.008).mean() > 0.8


def test_rho_comes_near_the_average_reward(three_cups: MDP) -> None:
    """In 30 other runs the difference was .0006 ± .0030: the bound is 6 deviations away."""
    agent = RLearning.on(three_cups, C=5.0)
    record = interact(agent, three_cups.environment(), 100_000, seed=0)
    assert abs(agent.rho - record.observations["reward"][-10_000:].mean()) < 0.02


def test_the_learned_values_can_be_read() -> None:
    agent = RLearning(
        ["home", "away"], ["go", "stay"], allowed=lambda x: ["go", "stay"][: 1 + (x == "home")]
    )
    agent.observe("stay", (2.0, "home"))
    agent.observe("go", (0.0, "away"))
    assert agent.q_values("home") == {"go": 0.5 * (0.0 - 0.002), "stay": 1.0}
    assert agent.tried("home") == {"go": 1, "stay": 1}
    assert agent.tried("away") == {"go": 0}
    assert agent.q_values("away") == {"go": 0.0}

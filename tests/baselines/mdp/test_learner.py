"""Common behaviour of all value learners: names, masks, discovered states, errors, state."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import BayesianQ

from bayescontrol import Stream, interact
from bayescontrol.baselines import QLearning, RLearning
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownAction, UnknownState
from bayescontrol.mdp import MDP, Step
from bayescontrol.testing import check_resume, check_same_seed, same_bits

Make = Callable[..., Any]


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


def test_only_actions_that_a_state_offers_are_taken(learner: Make, mdp: MDP) -> None:
    agent, world, (p, q) = learner(mdp), mdp.environment(), (Stream(1), Stream(2))
    for _ in range(300):
        a = agent.act(p)
        assert a in mdp.actions_in(agent.x) == agent.actions_in(agent.x)
        agent.observe(a, world.respond(a, q))
        assert agent.x == world.x


def test_acting_changes_only_the_stream(learner: Make, mdp: MDP) -> None:
    agent, world, (p, q) = learner(mdp), mdp.environment(), (Stream(1), Stream(2))
    for _ in range(30):
        before = agent.save()
        a = agent.act(p)
        assert same_bits(before, agent.save())
        agent.observe(a, world.respond(a, q))


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


BAD: list[tuple[Any, Any, type[Exception], str]] = [
    ("go", (float("nan"), "home"), BadEvidence, "reward nan after action 'go' in state 'home'"),
    ("go", (float("inf"), "home"), BadEvidence, "reward inf after action 'go' in state 'home'"),
    ("go", ("1", "home"), BadEvidence, "reward '1' after action 'go' in state 'home'"),
    (
        "go",
        (1.7976e308, "new"),
        BadEvidence,
        "after action 'go' in state 'home': the values would overflow",
    ),
    ("go", 1.0, BadEvidence, "observation 1.0 after action 'go' in state 'home'"),
    (
        "go",
        (1.0, ["x"]),
        BadEvidence,
        r"state \['x'\] after action 'go' in state 'home' is not hashable",
    ),
    ("fly", (1.0, "home"), UnknownAction, "no action 'fly': the actions are 'go', 'stay', 'sleep'"),
    ("sleep", (1.0, "home"), UnknownAction, "state 'home' does not offer action 'sleep'"),
]


@pytest.mark.parametrize(("a", "o", "error", "words"), BAD, ids=[w for *_, w in BAD])
def test_bad_input_raises_and_changes_nothing(
    learner: Make, a: Any, o: Any, error: type[Exception], words: str
) -> None:
    def offers(x: Any) -> list[str]:
        return ["go", "stay"] if x == "home" else ["go", "stay", "sleep"]

    agent = learner(None, ["go", "stay", "sleep"], start="home", allowed=offers)
    if "overflow" in words:  # makes the next huge reward overflow
        if isinstance(agent, QLearning):
            agent.observe(a, o := (o[0], "home"))
        elif isinstance(agent, RLearning):
            agent.observe(a, (-1.7e308, "home"))
    before = agent.save()
    with pytest.raises(error, match=words):
        agent.observe(a, o)
    assert same_bits(before, agent.save())
    assert agent.states == ("home",)


def test_an_undeclared_state_is_named_in_the_error(learner: Make) -> None:
    agent = learner(["home", "away"], ["go"])
    before = agent.save()
    with pytest.raises(
        UnknownState, match="no state 'moon' after action 'go' in state 'home': the"
    ):
        agent.observe("go", (0.0, "moon"))
    assert same_bits(before, agent.save())
    with pytest.raises(UnknownState, match="no state 'moon'"):
        agent.actions_in("moon")
    with pytest.raises(UnknownState, match="no state 'moon'"):
        learner(["home", "away"], ["go"], start="moon")


def test_a_learner_without_declared_states_needs_a_start() -> None:
    with pytest.raises(ValueError, match="start"):
        RLearning(None, 2)


def test_a_state_without_actions_is_named_in_the_error() -> None:
    with pytest.raises(UnknownAction, match="'b' offers no action"):
        RLearning(["a", "b"], 2, allowed=lambda x: [0] if x == "a" else [])


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
        (BayesianQ, {"alpha0": 1.0}),
        (BayesianQ, {"beta0": 0.0}),
        (BayesianQ, {"kappa0": 0.0}),
        (BayesianQ, {"selection": "guessing"}),
    ],
)
def test_errors_name_settings_that_are_out_of_range(kind: Any, settings: dict[str, Any]) -> None:
    name, value = next(iter(settings.items()))
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        kind(2, 2, **settings)


def test_a_copy_is_independent(learner: Make, mdp: MDP) -> None:
    agent = learner(mdp)
    interact(agent, mdp.environment(), 50, seed=0)
    twin, before = agent.copy(), agent.save()
    assert same_bits(twin.save(), before)
    a = twin.act(Stream(0))
    twin.observe(a, Step(1.0, mdp.states[1]))
    assert same_bits(agent.save(), before)
    assert not same_bits(twin.save(), before)


def test_saved_arrays_of_another_learner_are_refused_and_change_nothing(
    learner: Make, mdp: MDP
) -> None:
    agent = learner(mdp)
    interact(agent, mdp.environment(), 50, seed=0)
    good = agent.save()
    values = next(n for n, v in good.items() if v.dtype == np.float64 and v.ndim > 1)
    bad: list[dict[str, Any]] = [
        {**good, values: good[values][:-1]},
        {**good, "x": np.array(10**6)},
        {**good, "actions": np.array("[0]")},
        {**good, "settings": np.array("{}")},
        {**good, "states": np.array("['elsewhere']")},
    ]
    for arrays in bad:
        with pytest.raises(IncompatibleState):
            agent.load(arrays)
        assert same_bits(agent.save(), good)


def test_the_repr_of_a_learner_describes_it(learner: Make) -> None:
    agent = learner(["home", "away"], 3)
    assert repr(agent) == f"{type(agent).__name__}(2 states, 3 actions, in state 'home')"

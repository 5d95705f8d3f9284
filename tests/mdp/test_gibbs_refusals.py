"""Invalid input to the belief over (Q, ρ) raises a typed error and changes nothing."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, Stream, kernels
from bayescontrol._compiled import find_loop
from bayescontrol.errors import (
    BadEvidence,
    BayesControlError,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    NotConverged,
    UnknownAction,
)
from bayescontrol.interaction import both_streams, interact
from bayescontrol.mdp import MDP, GibbsMDP, chain_mdp, random_mdp
from bayescontrol.mdp.gibbs import GibbsBelief, GibbsPrior
from bayescontrol.record import Probe
from bayescontrol.situations import stay
from bayescontrol.testing import check_bad_evidence, same_bits

BAD: dict[str, tuple[Any, Any, Any, type[BayesControlError], str]] = {
    "nan": ("x", 0, (math.nan, "y"), BadEvidence, "reward nan after action 0 in state 'x'"),
    "infinite": ("x", 1, (-math.inf, "y"), BadEvidence, "reward -inf after action 1 in state 'x'"),
    "huge": ("x", 0, (1e200, "y"), BadEvidence, "reward 1e.200 after action 0 in state 'x'"),
    "text": ("x", 0, ("1", "y"), BadEvidence, "reward '1' after action 0 in state 'x'"),
    "no pair": ("x", 0, 1.0, BadEvidence, "observation 1.0 after action 0 in state 'x'"),
    "triple": ("x", 0, (1.0, "y", 2), BadEvidence, "expected .reward, state."),
    "unknown action": ("x", 7, (1.0, "y"), UnknownAction, "state 'x': no action 7"),
    "unhashable action": ("x", [0], (1.0, "y"), UnknownAction, "state 'x': no action"),
    "masked action": ("x", 2, (1.0, "y"), UnknownAction, "action 2 is not available in state 'x'"),
    "unhashable state": ("x", 0, (1.0, [1]), BadEvidence, r"\[1\] is not hash.* action 0"),
    "unhashable here": ({}, 0, (1.0, "x"), BadEvidence, "state {} is not hashable.* action 0"),
    "nan state": ("x", 0, (1.0, math.nan), BadEvidence, "state nan after action 0 in state 'x'"),
    "idle state": ("x", 0, (1.0, "idle"), InvalidTable, "'idle'.* returned no action"),
    "new and idle": ("new", 0, (1.0, "idle"), InvalidTable, "'idle'.* returned no action"),
}


def offers(x: Any) -> list[int]:
    return [] if x == "idle" else [0, 1]


@pytest.mark.parametrize("name", BAD)
def test_bad_evidence_is_refused_by_name_and_changes_nothing(name: str) -> None:
    x, a, o, error, message = BAD[name]

    def make() -> GibbsBelief:
        return GibbsBelief(3, allowed=offers)

    good = [("x", 0, (1.0, "y")), ("y", 1, (0.0, "x"))]
    check_bad_evidence(make, good, [(x, a, o)])
    with pytest.raises(error, match=message):
        make().observe(x, a, o)
    agent = GibbsMDP(3, "x", allowed=offers).agent()
    agent.x = x  # including states in which no agent can start
    before = agent.belief.save()
    with pytest.raises(error):
        agent.observe(a, o)
    assert agent.x is x
    assert same_bits(before, agent.belief.save())


def test_an_undeclared_state_is_refused_under_prior_a() -> None:
    def make() -> GibbsBelief:
        return GibbsBelief(2, states=["x", "y"])

    check_bad_evidence(make, [("x", 0, (1.0, "y"))], [("x", 0, (1.0, "z")), ("z", 0, (1.0, "x"))])
    with pytest.raises(BadEvidence, match="'z' after action 0 in state 'x' is not one of the 2"):
        make().observe("x", 0, (1.0, "z"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"actions": 0}, InvalidTable, "at least one action"),
        ({"actions": "ab"}, InvalidTable, "actions='ab'"),
        ({"actions": ["a", "a"]}, InvalidTable, "two actions are called 'a'"),
        ({"actions": 2, "states": ["x", "x"]}, InvalidTable, "two states are called 'x'"),
        ({"actions": 2, "states": []}, InvalidTable, "at least one state"),
        ({"actions": 2, "sweeps": 0}, InvalidPrior, "sweeps=0"),
        ({"actions": 2, "partial": -1}, InvalidPrior, "partial=-1"),
        ({"actions": 2, "partial": 1.5}, InvalidPrior, "partial=1.5"),
        ({"actions": 1, "states": 1, "allowed": lambda x: [3]}, UnknownAction, "state 0: no act"),
    ],
)
def test_invalid_settings_of_a_belief_are_refused(
    options: dict[str, Any], error: type[BayesControlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        GibbsBelief(**options)


@pytest.mark.parametrize("name", ["mu0", "lambda0", "precision", "shape", "rate"])
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200, "1"])
def test_an_invalid_prior_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidPrior, match=f"{name}="):
        GibbsPrior(**{name: value})
    if name != "mu0":
        with pytest.raises(InvalidPrior, match=f"{name}=0"):
            GibbsPrior(**{name: 0})


@pytest.mark.parametrize("start", [9, [0], math.nan], ids=["undeclared", "unhashable", "nan"])
def test_an_invalid_start_is_refused(start: Any) -> None:
    with pytest.raises(BadEvidence, match="given as start"):
        GibbsMDP(2, start, states=[0, 1]).agent()


def overflowing() -> tuple[Any, Any]:
    """No real history leads to an overflow, so the chain is damaged by hand."""
    agent, world = GibbsMDP(2, 0).agent(), random_mdp(4, 2).environment()
    interact(agent, world, 50, seed=0)
    agent.belief.ledger.chain.M[0] = math.inf
    return agent, world


def not_offered() -> tuple[Any, Any]:
    """The agent assumes that every state offers all actions."""
    full, may = random_mdp(5, 3, seed=3), np.ones((5, 3), bool)
    may[2, 1:] = False
    return GibbsMDP(3, 0).agent(), MDP(full.transition, full.reward, allowed=may).environment()


def undeclared() -> tuple[Any, Any]:
    return GibbsMDP(2, 0, states=[0, 1]).agent(), chain_mdp(3).environment()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (overflowing, NotConverged, r"ρ = .* after 51 transitions"),
        (not_offered, UnknownAction, "is not available in state"),
        (undeclared, BadEvidence, "state 2 after action 0 in state 1"),
    ],
)
def test_both_loops_raise_the_same_error(make: Any, error: Any, words: str) -> None:
    ends = []
    for look in (None, {"looked": Probe(lambda _p, _a, _o: True)}):
        (agent, environment), streams = make(), both_streams(3, 0)
        with pytest.raises(error, match=words):
            interact(agent, environment, 500, streams=streams, probes=look)
        ends.append((agent.save(), environment.at, streams))
    assert same_bits(ends[0][0], ends[1][0])
    assert ends[0][1:] == ends[1][1:]


def test_no_compiled_loop_exists_if_agent_and_environment_do_not_match() -> None:
    mdp = chain_mdp(3)
    assert find_loop(GibbsMDP(2, 1).agent(), mdp.environment()) is None
    assert find_loop(GibbsMDP(2, "elsewhere").agent(), mdp.environment()) is None
    assert find_loop(GibbsMDP(3, 0).agent(), mdp.environment()) is None
    assert find_loop(GibbsMDP(["a", "b"], 0).agent(), mdp.environment()) is None
    assert find_loop(ControlRule(GibbsBelief(2), 0, stay), mdp.environment()) is None
    rich = MDP([[[1.0]]], [[1e200]])
    assert find_loop(GibbsMDP(1, 0).agent(), rich.environment()) is None


# -- saved arrays ------------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[Any], Any]] = {
    "known": lambda v: v + 1,
    "successor": lambda v: v + 100,
    "observed": lambda v: ~v,
    "times": lambda v: v - 0.5,
    "rewards": lambda v: v * math.nan,
    "r": lambda v: v[:-1],
    "scatter": lambda v: v - 1.0,
    "offered": lambda v: ~v,
    "states": lambda v: np.array("['x', 'x']"),
    "actions": lambda v: np.array("[0]"),
    "settings": lambda v: np.array("[]"),
    "drawn": lambda v: np.zeros(2),
    "sampler/Q": lambda v: v[:1],
    "sampler/M": lambda v: v.astype(int),
    "sampler/scalars": lambda v: -v,
}


@pytest.mark.parametrize("name", [*DAMAGE, "a missing one", "no arrays"])
def test_damaged_arrays_are_refused_and_change_nothing(name: str) -> None:
    agent = GibbsMDP(2, 0).agent()
    interact(agent, random_mdp(5, 2).environment(), 30, seed=0)
    belief = agent.belief
    belief.sample(Stream(0))
    before = belief.save()
    arrays: Any = dict(before)
    if name in DAMAGE:
        arrays[name] = DAMAGE[name](arrays[name])
    elif name == "no arrays":
        arrays = 7
    else:
        del arrays["times"]
    with pytest.raises(IncompatibleState):
        belief.load(arrays)
    assert same_bits(before, belief.save())


def test_a_repeated_transition_is_refused() -> None:
    belief = GibbsBelief(1)
    belief.observe(0, 0, (1.0, 1))
    belief.observe(0, 0, (1.0, 0))
    arrays = belief.save()
    arrays["successor"] = np.array([1, 1])
    with pytest.raises(IncompatibleState, match="twice"):
        belief.load(arrays)


def test_a_state_that_cannot_be_saved_does_not_prevent_acting() -> None:
    belief = GibbsBelief(1)
    belief.observe(object(), 0, (1.0, object()))
    belief.sample(Stream(0))
    with pytest.raises(BayesControlError, match="the states"):
        belief.save()


def test_kernels_report_full_arrays() -> None:
    belief = GibbsBelief(1)
    for y in range(4):
        belief.observe(0, 0, (1.0, y))
    e, c = belief.ledger.evidence, belief.ledger.chain
    before = belief.save()
    assert not kernels.gibbs.learn(e, c, 0, 0, 99, 1.0, 1.0, 0.0)
    assert same_bits(before, belief.save())


def test_a_state_with_other_actions_is_refused() -> None:
    free, bound = GibbsBelief(2), GibbsBelief(2, allowed=lambda x: [1])
    free.observe("a", 0, (1.0, "a"))
    before = bound.save()
    with pytest.raises(IncompatibleState, match=r"'a' was saved with the actions \[0, 1\]"):
        bound.load(free.save())
    assert same_bits(before, bound.save())

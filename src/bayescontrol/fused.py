"""Compiled loops for pairs of agent and environment.

A fused loop holds no mathematics: it calls the kernels that the readable code calls, and
gives the same record and the same final state to the last bit (a law in `testing`).
`interact` finds it here, so the user's call never changes.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream

#: (agent, environment, steps, agent's stream, environment's stream) -> record
Loop: TypeAlias = Callable[[Any, Any, int, Stream, Stream], Record]
#: (agent, environment) -> the loop for them, or None
Finder: TypeAlias = Callable[[Any, Any], Loop | None]

_ARMS = "bandits.bandit.ArmsEnvironment"
_MDP = "mdp.table.MDPEnvironment"
_PLANT = "linear.system.LinearPlant"
_COUNTING = (
    "BayesUCB", "EpsilonGreedy", "KLUCB", "MOSS", "Oracle", "Softmax", "UCB1", "UCBTuned",
    "UniformLevers",
)  # fmt: skip

# Ours, by name: whoever plays one game need not import all of them.
# (a rule's belief or an agent, environment) -> where the finder is: `fused_loop`, or as named
_OURS: dict[tuple[str, str], str] = {
    ("beliefs.finite.FiniteBelief", "problems.tabular.TabularEnvironment"): "problems.tabular",
    (
        "beliefs.finite.FiniteBelief",
        "problems.parametric.ParametricEnvironment",
    ): "problems.parametric",
    ("bandits.arms.ArmsBelief", _ARMS): "bandits.bandit",
    (
        "bandits.linear_belief.LinearBelief",
        "bandits.contextual.LinearEnvironment",
    ): "bandits.contextual",
    ("baselines.gittins.GittinsAgent", _ARMS): "baselines.gittins",
    ("mdp.gibbs.GibbsBelief", _MDP): "mdp.gibbs",
    ("baselines.td_learning.RLearning", _MDP): "baselines.td_learning",
    ("baselines.td_learning.QLearning", _MDP): "baselines.td_learning",
    ("baselines.optimal_policy.OptimalPolicy", _MDP): "baselines.optimal_policy",
    ("linear.agent.LinearAgent", _PLANT): "linear.agent",
    ("baselines.linear.CertaintyEquivalence", _PLANT): "linear.agent",
    ("baselines.linear.OptimalController", _PLANT): "linear.agent:fused_gain",
} | {(f"baselines.bandits.{name}", _ARMS): "baselines.bandits" for name in _COUNTING}

_REGISTERED: dict[tuple[type, type], Finder] = {}


def register_loop(belief: type, environment: type, finder: Finder) -> None:
    """For rules with this belief, or agents of this type, ask `finder(agent, environment)`.

    >>> class Thought: ...
    >>> class World:
    ...     def respond(self, a, rng): return a
    >>> register_loop(Thought, World, lambda agent, world: None)
    """
    _REGISTERED[belief, environment] = finder


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("bayescontrol.")


def _finder(home: str) -> Finder:
    module, _, name = home.partition(":")
    finder: Finder = getattr(import_module(f"bayescontrol.{module}"), name or "fused_loop")
    return finder


def find_loop(agent: Any, environment: Any) -> Loop | None:
    """The compiled loop for this pair, or None: then `interact` runs the readable one.

    >>> find_loop(object(), object()) is None
    True
    """
    kinds = (type(agent.belief) if type(agent) is ControlRule else type(agent), type(environment))
    finder = _REGISTERED.get(kinds)
    if finder is None:
        home = _OURS.get((_name(kinds[0]), _name(kinds[1])))
        if home is None:
            return None
        finder = _REGISTERED[kinds] = _finder(home)
    return finder(agent, environment)

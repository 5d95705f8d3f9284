"""Operation modes from a class of POMDPs: each hypothesis is paired with a policy planned for it.

    P(o | m, b, a) = Σ_x Σ_y b(x) M_m[a, s, x, y]        s the signal in o
    P(a | m, b)      the policy, for example QMDP
    b ← b'           the private state of the mode: its distribution of the hidden state

The filter is exact, so the posterior P(m | âo_<t) is exact too. The problems may differ in their
hidden states, but not in their actions and observations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._mode_queries import find_mode, require_instance
from bayescontrol._support.description import ModelKind, SettingDoc
from bayescontrol._support.priors import as_prior
from bayescontrol.beliefs.finite import finite_belief
from bayescontrol.errors import InvalidTable, MissingCapability, counted
from bayescontrol.finite.tabular import ClassMode, ModeClass
from bayescontrol.pomdp.bounds import PLANNERS, AlphaVectors, fast_informed_bound, qmdp
from bayescontrol.pomdp.model import POMDP, POMDPEnvironment
from bayescontrol.record import Probe
from bayescontrol.seeding import StreamLike

#: A planner or its name, or the policies of all problems.
Planning: TypeAlias = str | Callable[[POMDP], Any] | Sequence[Any]
#: Planners whose policies do not depend on the rounding errors of a machine: logs store their
#: names. The vectors of others are stored.
_STORED_BY_NAME: Final = {"qmdp": qmdp, "fast_informed_bound": fast_informed_bound}


class POMDPMode(ClassMode):
    """One mode of a class of POMDPs; its private state b is the distribution of the hidden state.

    >>> from bayescontrol.pomdp import tiger
    >>> mode = POMDPModes([tiger()])[0]
    >>> b = mode.advance(mode.start(), "listen", (-1.0, "growl left"))
    >>> mode.act(b, rng=None), round(mode.likelihood(b, "listen", (-1.0, "growl left")), 3)
    ('listen', 0.745)
    """

    __slots__ = ("policy", "pomdp")
    format_name: ClassVar[str] = "POMDPMode"

    def __init__(self, modes: "POMDPModes", m: int) -> None:
        super().__init__(modes, m)
        self.pomdp, self.policy = modes.pomdps[m], modes.policies[m]

    def start(self) -> FloatArray:
        """Return b before the first step."""
        return self.pomdp.start.copy()

    def advance(self, b: FloatArray, a: Any, o: Any) -> FloatArray:
        """Return b after a step; o may be `MISSING`."""
        return self.pomdp.condition(b, a, o)[0]

    def likelihood(self, b: FloatArray, a: Any, o: Any) -> float:
        """P(o | m, b, a)."""
        return self.pomdp.condition(b, a, o)[1]

    def observation_probabilities(self, b: FloatArray, a: Any) -> dict[Any, float]:
        """P(o | m, b, a) of every percept or, if rewards are not observed, every observation."""
        return self.pomdp.signal_probabilities(b, a)

    def observed_part(self, o: Any) -> Any:
        """Return the part of o that the mode predicts."""
        return self.pomdp.observed_part(o)

    def act(self, b: FloatArray, rng: StreamLike) -> Any:
        """Return the action of the policy."""
        return self.policy.act(b, rng)

    def action_probabilities(self, b: FloatArray) -> dict[Any, float]:
        """P(a | m, b)."""
        return dict(self.policy.action_probabilities(b))

    def state_probabilities(self, b: FloatArray) -> dict[Any, float]:
        """Return b by the names of the states."""
        return dict(zip(self.pomdp.states, b.tolist(), strict=True))


class POMDPModes(ModeClass[POMDPMode, None, Any, Any]):
    """One mode for each POMDP of a class with the same actions and observations.

    `pomdps` is a list of them. `policy` plans: "qmdp", "fast_informed_bound", "point_based", or a
    function that returns, for a POMDP, an object with `act(b, rng)` and `action_probabilities(b)`,
    where b is the distribution of the hidden state. It may also be the list of the policies
    themselves, one for each problem. `prior` is P(m), uniform by default, and `names` are the names
    of the modes.

    >>> from bayescontrol.pomdp import tiger
    >>> modes = POMDPModes([tiger(accuracy=0.85), tiger(accuracy=0.6)], names=["sharp", "deaf"])
    >>> agent = modes.agent()
    >>> agent.observe("listen", (-1.0, "growl left"))
    >>> agent.observe("listen", (-1.0, "growl left"))
    >>> agent.belief
    FiniteBelief(2 modes after 2 observations: sharp 0.5889, deaf 0.4111)
    """

    format_name: ClassVar[str] = "POMDPModes"
    mode_type = POMDPMode
    model_kind: ClassVar[ModelKind] = ModelKind(
        "pomdp-modes",
        "M partially observed Markov decision problems with the same actions and observations; one "
        "mode for each, with a policy on distributions of the hidden state.",
        {
            "pomdps": SettingDoc(
                'list of M {"dict": [["states", …], …]}',
                "Each has states, actions and observations (names, or their number), transition "
                "[x][a][y], observation [a][y][z], reward [x][a], [x][a][y] or [x][a][y][z], and "
                "may have discount (default: average reward), start (default: uniform) and "
                "rewards_observed (default: true).",
                largest=100,
            ),
            "policy": SettingDoc(
                '"qmdp", "fast_informed_bound" or "point_based", or list of M {"dict": […]}',
                "Each dict has vectors [k][x] and actions [k], numbers from 0 on: the policy "
                'takes the action of the best vector. Default: "qmdp".',
            ),
            "prior": SettingDoc("list of M probabilities", "P(m). Default: uniform."),
            "names": SettingDoc("list of M texts", "The names of the modes."),
        },
        example={
            "pomdps": [
                {"dict": [
                    ["states", 2], ["actions", ["wait", "open"]], ["observations", 2],
                    ["transition", [[[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]]],
                    ["observation", [[[p, 1 - p], [1 - p, p]], [[0.5, 0.5], [0.5, 0.5]]]],
                    ["reward", [[-1, 1], [0, -1]]], ["discount", 0.9],
                ]}
                for p in (0.75, 0.5)
            ],
            "names": ["sharp", "deaf"],
        },
        observation=[-1.0, 1],  # after either action
        feedback="the reward and the observation",
    )  # fmt: skip
    #: The situation of agents: modes have private states instead.
    start = None
    advance = None

    def __init__(
        self,
        pomdps: Sequence[POMDP | Mapping[str, Any]],
        policy: Planning = "qmdp",
        prior: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(pomdps, list | tuple) or not pomdps:
            raise InvalidTable(f"pomdps={str(pomdps)[:80]}: expected a list of one or more POMDPs")
        #: The problems, and their policies.
        self.pomdps = tuple(map(POMDP.of, pomdps))
        first = self.pomdps[0]
        for m, pomdp in enumerate(self.pomdps):
            for attribute in ("actions", "observations", "rewards_observed"):
                mine, common = getattr(pomdp, attribute), getattr(first, attribute)
                if mine != common:
                    raise InvalidTable(
                        f"POMDP {m} has {attribute} {mine}, POMDP 0 has {common}: all POMDPs of a "
                        "class need the same"
                    )
        super().__init__(len(self.pomdps), names)
        self.prior: FloatArray = as_prior(prior, len(self))
        self.policies = _policies(self.pomdps, policy)
        named = [name for name, f in _STORED_BY_NAME.items() if policy is f or policy == name]
        self._planner = named[0] if named else None

    def environment(self, m: int | str, start: Any = None) -> POMDPEnvironment:
        """Return the world of mode m, a number or a name; `start` is its first state."""
        return self.pomdps[find_mode(m, self)].environment(start)

    def settings(self) -> dict[str, Any]:
        """Return the tables, and the planner or the vectors of the policies, as logs store them."""
        for m, policy in enumerate(self.policies):
            if type(policy) is not AlphaVectors:
                raise MissingCapability(
                    f"the policy of POMDP {m} is {policy!r}, which a log cannot store: use a "
                    "policy with vectors, or named_model(…)"
                )
        return {
            "pomdps": [pomdp.settings() for pomdp in self.pomdps],
            "policy": self._planner or [policy.settings() for policy in self.policies],
            "prior": self.prior.tolist(),
            "names": None if self.names is None else list(self.names),
        }

    def __repr__(self) -> str:
        first = self.pomdps[0]
        sizes = f"{counted(len(first.actions), 'action')}, "
        sizes += counted(len(first.observations), "observation")
        return f"POMDPModes({counted(len(self), 'mode')}, {sizes})"


def _policies(pomdps: Sequence[POMDP], policy: Planning) -> tuple[Any, ...]:
    """Return the policy of each problem."""
    if isinstance(policy, str):
        if policy not in PLANNERS:
            raise InvalidTable(f"policy={policy!r}: expected one of {', '.join(PLANNERS)}")
        policy = PLANNERS[policy]
    require_instance(policy, "the policy")
    if callable(policy):
        found = [policy(pomdp) for pomdp in pomdps]
    elif isinstance(policy, list | tuple) and len(policy) == len(pomdps):
        found = [
            _alpha_vectors(pomdp, given) if isinstance(given, Mapping) else given
            for pomdp, given in zip(pomdps, policy, strict=True)
        ]
    else:
        raise InvalidTable(
            f"policy={str(policy)[:80]}: expected a planner or its name, or a list of policies, "
            f"as many as POMDPs: {len(pomdps)}"
        )
    for m, (pomdp, each) in enumerate(zip(pomdps, found, strict=True)):
        if isinstance(each, AlphaVectors):
            for mine, planned in ((pomdp.states, each.states), (pomdp.actions, each.names)):
                if mine != planned:
                    raise InvalidTable(
                        f"the policy of POMDP {m} is for the {mine.what}s {str(planned)[:80]}, but "
                        f"the problem has {str(mine)[:80]}: plan for the problem itself"
                    )
        for method in ("act", "action_probabilities"):
            if not hasattr(each, method):
                raise MissingCapability(
                    f"the policy of POMDP {m} is {each!r}, which has no method {method}: it needs "
                    "act(b, rng) and action_probabilities(b)"
                )
    return tuple(found)


def _alpha_vectors(pomdp: POMDP, settings: Mapping[str, Any]) -> AlphaVectors:
    """Return the policy with these `settings`."""
    if settings.keys() != {"vectors", "actions"}:
        raise InvalidTable(f"policy has {', '.join(settings)}: expected vectors and actions")
    return AlphaVectors(pomdp, settings["vectors"], settings["actions"])


class StateProbabilities(Protocol):
    """P(x | m, s) of the hidden state x, for a mode with a filter."""

    def state_probabilities(self, s: Any, /) -> Mapping[Any, float]: ...


def _measure_states(agent: Any, _a: Any, _o: Any) -> FloatArray:
    """P(x_t | âo_≤t) for every state x of the POMDP: an array (X,); (T, X) for T steps.

    In a class of POMDPs it is Σ_m P(x_t | m, âo_≤t) P(m | âo_≤t), for the states of all in order.
    """
    belief = finite_belief(agent, "the distribution of the hidden state")
    x = agent.x
    mixed = belief.mix(StateProbabilities, lambda mode: mode.state_probabilities(x))
    modes: Any = belief.modes
    names = dict.fromkeys(name for mode in modes for name in mode.pomdp.states)
    return np.array([mixed.get(name, 0.0) for name in names])


#: P(x_t | âo_≤t), the distribution of the hidden state.
state_belief = Probe(_measure_states)

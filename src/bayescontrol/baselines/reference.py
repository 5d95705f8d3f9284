"""Agents that never learn: uniform, fixed combinations of experts, and the oracle of an MDP.

    uniform         Pr(a_t | ao_<t) = 1 / |A|       Pr(o_t | ao_<t a_t) = 1 / |O|
    one expert      u = π_m(x)
    mean            u = (1/M) Σ_m π_m(x)            for numeric actions
    dithered mean   u = π_m(x), m drawn uniformly at each step: the mean, using the experts' actions
    vote            u = arg max_a Σ_m [π_m(x) = a]  ties: the smallest action

An average of controllers is not a controller for the average plant: two experts that push in
opposite directions average to no action at all.

The oracle knows the MDP and plays its optimal policy:

    a = π*(x) = arg max_a Q*(x,a),      Q*(x,a) + ρ* = r(x,a) + Σ_y P(y | x,a) max_a' Q*(y,a')

Its average reward is ρ*, the most that any agent can earn.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._support.saved import Fixed, Number, Saved, damaged, declare
from bayescontrol.errors import MissingCapability
from bayescontrol.mdp.planning import Plan, policy_iteration
from bayescontrol.mdp.table import MDP, MDPEnvironment, advance, read_step, step_record
from bayescontrol.record import Record
from bayescontrol.rule import A, O
from bayescontrol.seeding import Stream, StreamLike, require_stream


class UniformSystem(Generic[A, O]):
    """An I/O system without memory, uniform over actions and over observations.

    >>> system = UniformSystem(["left", "right"], range(4))
    >>> system.action_probabilities(system.start())
    {'left': 0.5, 'right': 0.5}
    """

    def __init__(self, actions: Sequence[A], observations: Sequence[O]) -> None:
        for name, symbols in (("actions", actions), ("observations", observations)):
            if len(symbols) == 0 or len(set(symbols)) < len(symbols):
                raise ValueError(f"{name}={symbols!r}: give at least one symbol, each only once")
        self._actions = dict.fromkeys(actions, 1.0 / len(actions))
        self._observations = dict.fromkeys(observations, 1.0 / len(observations))

    def start(self) -> None:
        """Return None: the system has no state."""

    def action_probabilities(self, s: None) -> dict[A, float]:
        """1 / |A|."""
        return dict(self._actions)

    def observation_probabilities(self, s: None, a: A) -> dict[O, float]:
        """1 / |O|."""
        return dict(self._observations)

    def advance(self, s: None, a: A, o: O) -> None:
        """Return None: the system has no state."""

    def __repr__(self) -> str:
        actions, observations = len(self._actions), len(self._observations)
        return f"UniformSystem({actions} actions, {observations} observations)"


def mean_action(actions: Sequence[Any], rng: Stream) -> Any:
    """Return (1/M) Σ_m a_m.

    >>> mean_action([1.0, 1.0, -1.0, 1.0], rng=None)
    0.5
    """
    mean = np.mean(np.asarray(actions, np.float64), axis=0)
    return mean if mean.ndim else float(mean)


def dithered_mean(actions: Sequence[Any], rng: Stream) -> Any:
    """Draw one of the actions uniformly, so that its expectation is the mean of the actions.

    >>> dithered_mean([1, 1, 1], Stream(0))
    1
    """
    return actions[rng.integers(len(actions))]


def vote(actions: Sequence[Any], rng: Stream) -> Any:
    """Return the most frequent action; in a tie, the smallest of them.

    >>> vote([0, 1, 1], rng=None), vote([0, 1], rng=None)
    (1, 0)
    """
    counts = Counter(actions)
    most_votes = max(counts.values())
    return min(a for a, n in counts.items() if n == most_votes)


#: combine(actions, rng) -> a
Combine: TypeAlias = Callable[[Sequence[Any], Stream], Any]


class FixedExperts:
    """An agent that queries all its experts at every step and combines their actions.

    `policies` are functions π_m(x); `combine(actions, rng)` turns their actions into one. With a
    single policy the agent is that expert. The situation is the last observation.

    >>> agent = FixedExperts([lambda x: -x, lambda x: +x], start=1.0, combine=mean_action)
    >>> agent.act(Stream(0))
    0.0
    """

    def __init__(
        self, policies: Sequence[Callable[[Any], Any]], start: Any, combine: Combine = vote
    ) -> None:
        self.policies = list(policies)
        if not self.policies or not all(map(callable, self.policies)):
            raise MissingCapability(f"policies={policies!r}: expected functions of x, at least one")
        self.x, self.combine = start, combine

    def act(self, rng: StreamLike) -> Any:
        """Return combine([π_1(x), …, π_M(x)], rng)."""
        return self.combine([policy(self.x) for policy in self.policies], require_stream(rng))

    def observe(self, a: Any, o: Any) -> None:
        """x ← o; the agent learns nothing."""
        self.x = o

    def __repr__(self) -> str:
        return f"FixedExperts({len(self.policies)} policies, {self.combine.__name__})"


class OptimalPolicy(Saved):
    """Plays the optimal policy of a known MDP, from policy iteration unless a plan is given.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(4)
    >>> oracle = OptimalPolicy(mdp)
    >>> record = interact(oracle, mdp.environment(), 100, seed=0)
    >>> float(record.observations["reward"].mean()), oracle.plan.gain
    (0.25, 0.25)
    """

    format_name: ClassVar[str] = "OptimalPolicy"
    saved_fields = declare(Fixed("policy", setting="mdp"), Number("x", "_x", least=0))
    #: T(x, a, o) = y: the situation is the state.
    advance = staticmethod(advance)

    def __init__(
        self, mdp: MDP, start: Hashable | None = None, *, plan: Plan | None = None
    ) -> None:
        if plan is not None and plan.mdp is not mdp:
            raise ValueError("the plan is for another MDP: pass OptimalPolicy(plan.mdp, plan=plan)")
        self.mdp = mdp
        self.plan = policy_iteration(mdp) if plan is None else plan
        #: The index of the action π*(x), for each state.
        self.policy = np.ascontiguousarray(self.plan.policy, np.int64)
        self._x = 0 if start is None else mdp.states.place(start)

    @property
    def x(self) -> Any:
        """The current state."""
        return self.mdp.states[self._x]

    @x.setter
    def x(self, x: Any) -> None:
        self._x = self.mdp.states.place(x)

    def act(self, rng: StreamLike) -> Any:
        """Return π*(x). Draws no random numbers."""
        return self.mdp.actions[int(self.policy[self._x])]

    def observe(self, a: Any, o: Any) -> None:
        """x ← y, whatever the action was. On an error the agent is unchanged."""
        self.mdp.actions.place(a)  # raises UnknownAction
        _, y = read_step(self.x, a, o)
        self._x = self.mdp.states.place(y)

    def _check_state(self, new: SimpleNamespace) -> None:
        """Raise an error if the MDP does not have the saved state."""
        if new._x >= len(self.mdp.states):
            raise damaged(f"state {new._x} of {len(self.mdp.states)}")

    @staticmethod
    def fused_loop(agent: Any, environment: object) -> Any:
        """Return the compiled loop if the environment is the agent's MDP, in the same state."""
        fits = (
            type(environment) is MDPEnvironment
            and agent.mdp is environment.mdp
            and agent.x == environment.x
        )
        return _run if fits else None

    def __repr__(self) -> str:
        return f"OptimalPolicy({self.mdp!r}: gain {self.plan.gain:.6g}, in state {self.x!r})"


def _run(agent: Any, environment: MDPEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; only the environment draws random numbers, from q."""
    mdp = environment.mdp
    actions, rows = np.empty(steps, np.int64), np.empty(steps, kernels.mdp.STEP)
    environment.at = kernels.td.follow(
        agent.policy, len(mdp.actions), mdp.tables, environment.at, q.state, actions, rows
    )
    agent.x = environment.x
    return step_record(actions, rows, mdp.actions, mdp.states)

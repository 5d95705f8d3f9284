"""The oracle: it knows the MDP and plays its optimal policy.

    a = π*(x) = arg max_a Q*(x,a),      Q*(x,a) + ρ* = r(x,a) + Σ_y P(y | x,a) max_a' Q*(y,a')

Its average reward is ρ*, the most that any agent can earn.
"""

from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._support.saved import Fixed, Number, Saved, damaged, declare
from bayescontrol.mdp.planning import Plan, policy_iteration
from bayescontrol.mdp.table import MDP, MDPEnvironment, advance, read_step, step_record
from bayescontrol.record import Record
from bayescontrol.seeding import Stream, StreamLike


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
        if new._x >= len(self.mdp.states):
            raise damaged(f"state {new._x} of {len(self.mdp.states)}")

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return the compiled loop if the environment is the agent's MDP, in the same state."""
        fits = (
            type(environment) is MDPEnvironment
            and agent.mdp is environment.mdp
            and agent.x == environment.x
        )
        return _run if fits else None

    def __repr__(self) -> str:
        return f"OptimalPolicy({self.mdp!r}: gain {self.plan.gain:.6g}, in state {self.x!r})"


def _run(
    agent: OptimalPolicy, environment: MDPEnvironment, steps: int, p: Stream, q: Stream
) -> Record:
    """Run the compiled loop; only the environment draws random numbers, from q."""
    mdp = environment.mdp
    actions, rows = np.empty(steps, np.int64), np.empty(steps, kernels.mdp.STEP)
    environment.at = kernels.td.follow(
        agent.policy, len(mdp.actions), mdp.tables, environment.at, q.state, actions, rows
    )
    agent.x = environment.x
    return step_record(actions, rows, mdp.actions, mdp.states)

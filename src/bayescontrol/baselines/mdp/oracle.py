"""The oracle: it knows the MDP and plays its optimal policy.

    a = π*(x) = arg max_a Q*(x,a),      Q*(x,a) + ρ* = r(x,a) + Σ_y P(y | x,a) max_a' Q*(y,a')

What it earns on average is ρ*, the most that any agent can.
"""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.baselines.mdp.checks import read_step
from bayescontrol.errors import IncompatibleState
from bayescontrol.mdp.planning import Plan, policy_iteration
from bayescontrol.mdp.table import MDP, advance
from bayescontrol.seeding import Stream


class OptimalPolicy:
    """π* of an MDP, by policy iteration unless a plan is given; `start` as for its environment.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(4)
    >>> oracle = OptimalPolicy(mdp)
    >>> record = interact(oracle, mdp.environment(), 100)
    >>> float(record.observations["reward"].mean()), oracle.plan.gain
    (0.25, 0.25)
    """

    format_name: ClassVar[str] = "OptimalPolicy"
    #: T(x, a, o) = y: the situation is the state.
    advance = staticmethod(advance)

    def __init__(
        self, mdp: MDP, start: Hashable | None = None, *, plan: Plan | None = None
    ) -> None:
        if plan is not None and plan.mdp is not mdp:
            raise ValueError("the plan is for another MDP: pass OptimalPolicy(plan.mdp, plan=plan)")
        self.mdp = mdp
        self.plan = policy_iteration(mdp) if plan is None else plan
        #: π*(x), by number.
        self.policy = np.ascontiguousarray(self.plan.policy, np.int64)
        self._x = 0 if start is None else mdp.states.place(start)

    @property
    def x(self) -> Any:
        """The state of now."""
        return self.mdp.states[self._x]

    @x.setter
    def x(self, x: Any) -> None:
        self._x = self.mdp.states.place(x)

    def act(self, rng: Stream) -> Any:
        """π*(x)."""
        return self.mdp.actions[int(self.policy[self._x])]

    def observe(self, a: Any, o: Any) -> None:
        """Move on: x ← y, whatever was done. On an error nothing has changed."""
        self.mdp.actions.place(a)
        _, y = read_step(self.x, a, o)
        self._x = self.mdp.states.place(y)

    def fast_forward(self, x: int) -> None:
        """Be in the state of this number, where a compiled loop has led."""
        self._x = x

    def save(self) -> Arrays:
        """Where it is, and what it plays."""
        return {"x": np.array(self._x), "policy": self.policy.copy()}

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for the oracle of the same MDP."""
        if not {"x", "policy"} <= arrays.keys():
            raise IncompatibleState("a saved oracle holds the arrays 'x' and 'policy'")
        x = int(arrays["x"])
        same = np.array_equal(arrays["policy"], self.policy)
        if not (same and 0 <= x < len(self.mdp.states)):
            raise IncompatibleState("saved by the oracle of another MDP")
        self._x = x

    def copy(self) -> "OptimalPolicy":
        """The same oracle, free to go its own way."""
        return OptimalPolicy(self.mdp, self.x, plan=self.plan)

    def __repr__(self) -> str:
        return f"OptimalPolicy({self.mdp!r}: gain {self.plan.gain:.6g}, in state {self.x!r})"

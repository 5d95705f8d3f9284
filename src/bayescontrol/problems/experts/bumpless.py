"""Bumpless transfer: a new mode takes over gradually from the input in force.

    u_t = (1 - k/n) u₀ + (k/n) π_m(x_t),   k = 1 … n steps after the mode changed

u₀ is the last input before the change. The input applied is the one that the agent learns from:
it is an intervention, whoever chose it. Limits that all modes respect are respected.
"""

from typing import Any

import numpy as np

from bayescontrol.errors import MissingCapability
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream

__all__ = ["Bumpless"]


class Bumpless:
    """The agent, with its input blended over `steps` steps whenever its mode changes.

    For inputs that are real numbers or arrays of them; whole numbers and names are choices, which
    cannot be blended, and are refused. `steps=1` changes nothing. What the agent has
    (`belief`, `x`, `mode`) can be asked of it here.

    >>> from bayescontrol import FiniteBelief
    >>> from bayescontrol.problems.experts import SimulatorMode, next_state
    >>> push, pull = (SimulatorMode(lambda x, u: x, lambda x, u=u: u) for u in (1.0, -1.0))
    >>> agent = Bumpless(ControlRule(FiniteBelief([push, pull]), [0.0], next_state), steps=4)
    >>> agent.agent.belief.retire(1), agent.act(Stream(0))
    (0.5, 1.0)
    >>> _ = agent.agent.belief.add(pull, 0.5), agent.agent.belief.retire(0)
    >>> [agent.act(Stream(0)) for _ in range(5)]
    [0.5, 0.0, -0.5, -1.0, -1.0]
    """

    def __init__(self, agent: ControlRule[Any, Any, Any, Any], steps: int) -> None:
        try:
            whole = bool(1 <= steps < float("inf") and steps == int(steps))
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise ValueError(f"Bumpless(steps={steps!r}): a whole number of steps, at least 1")
        if not hasattr(agent, "belief"):
            raise MissingCapability(f"Bumpless: {agent!r} is no control rule: it has no belief")
        self.agent, self.steps = agent, int(steps)
        self._mode: Any = None
        self._from: Any = None
        self._last: Any = None
        self._age = self.steps

    def act(self, rng: Stream) -> Any:
        """u_t = (1 - k/n) u₀ + (k/n) π_m(x_t)."""
        u = self.agent.act(rng)
        if np.asarray(u).dtype.kind != "f":
            raise MissingCapability(
                f"Bumpless cannot blend the action {u!r}: it is no real number, nor an array of "
                "them. Where it is meant as one, let the policy return a float; choices among "
                "finitely many are not blended: use MinimumDwell"
            )
        # A finite belief may hand out a new object for the same mode: there the number counts.
        mode = getattr(self.agent.belief, "drawn", self.agent.mode)
        same = mode == self._mode if isinstance(mode, int) else mode is self._mode
        if self._last is not None and not same:
            self._from, self._age = self._last, 0
        self._mode = mode
        self._age = min(self._age + 1, self.steps)
        if self._age < self.steps:
            share = self._age / self.steps
            u = (1.0 - share) * np.asarray(self._from) + share * np.asarray(u)
            u = u if u.ndim else float(u)
        self._last = u
        return u

    def observe(self, u: Any, o: Any) -> None:
        """Learn from what was applied."""
        self.agent.observe(u, o)

    @property
    def belief(self) -> Any:
        """P(m | âo_<t)."""
        return self.agent.belief

    @property
    def x(self) -> Any:
        """The situation."""
        return self.agent.x

    @property
    def mode(self) -> Any:
        """The mode in charge."""
        return self.agent.mode

    def __repr__(self) -> str:
        return f"Bumpless({self.agent!r}, steps={self.steps})"

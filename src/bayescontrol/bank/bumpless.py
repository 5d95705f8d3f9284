"""Bumpless transfer: after a change of mode, the input moves gradually to that of the new mode.

    u_t = (1 - k/n) u₀ + (k/n) π_m(x_t),   k = 1 … n steps after the mode changed

u₀ is the last input before the change. The agent learns from the applied input, which is an
intervention. Limits that all modes respect are respected by the blend.

A blend starts only if the mode before had been in charge for n steps, or since the start. While an
agent draws another mode in almost every step, a blend for each change would hold the input back.

There are two ways to combine it with an alarm: `Bumpless(Guarded(agent, …))` also blends to the
fallback, while the fallback of `Guarded(Bumpless(agent, …))` acts immediately.
"""

from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np

from bayescontrol._arrays import IntArray, as_integer
from bayescontrol._support.saved import Array, Fixed, Part, Plain, Saved, damaged, declare
from bayescontrol.errors import MissingCapability
from bayescontrol.seeding import StreamLike


class WrappedAgent(Saved):
    """An agent that wraps another agent and has the same belief, situation and mode."""

    agent: Any

    @property
    def belief(self) -> Any:
        """P(m | âo_<t)."""
        return self.agent.belief

    @property
    def x(self) -> Any:
        """The situation."""
        return self.agent.x

    @x.setter
    def x(self, x: Any) -> None:
        self.agent.x = x

    @property
    def mode(self) -> Any:
        """The current mode."""
        return self.agent.mode

    def signal(self, **signals: Any) -> None:
        """Set the signals of the agent of a `Bank`."""
        self.agent.signal(**signals)


class Bumpless(WrappedAgent):
    """Wrap an agent so that its input is blended over `steps` steps when its mode changes.

    Changes of a mode that was in charge for fewer than `steps` steps start no blend.
    Inputs must be floats or arrays of floats; integers and names are discrete choices and raise an
    error. `steps=1` changes nothing. `agent` is a `ControlRule` or a `Guarded`; its `belief`, `x`
    and `mode` are available here too.

    >>> from bayescontrol import ControlRule, FiniteBelief, Stream
    >>> from bayescontrol.simulators import SimulatorMode, next_state
    >>> push, pull = (SimulatorMode(lambda x, u: x, lambda x, u=u: u) for u in (1.0, -1.0))
    >>> agent = Bumpless(ControlRule(FiniteBelief([push, pull]), [0.0], next_state), steps=4)
    >>> agent.agent.belief.retire(1), agent.act(Stream(0))
    (0.5, 1.0)
    >>> _ = agent.agent.belief.add(pull, 0.5), agent.agent.belief.retire(0)
    >>> [agent.act(Stream(0)) for _ in range(5)]
    [0.5, 0.0, -0.5, -1.0, -1.0]
    """

    format_name: ClassVar[str] = "Bumpless"
    saved_fields = declare(
        Fixed("steps"),
        Part("agent/", "agent", in_place=True),
        Array("blend", lambda agent: agent._blend()),
        Plain("from", "_blend_start", "the input that is blended from"),
        Plain("last", "_last", "the last input"),
    )

    def __init__(self, agent: Any, steps: int) -> None:
        if not hasattr(agent, "belief"):
            raise MissingCapability(f"Bumpless needs a control rule: {agent!r} has no belief")
        self.agent, self.steps = agent, as_integer("Bumpless: steps", steps, 1)
        self._mode: Any = None
        self._blend_start: Any = None
        self._last: Any = None
        self._steps_since_change = self.steps
        self._steps_in_charge = self.steps  # of the mode, at most `steps`; the first mode has all

    def act(self, rng: StreamLike) -> Any:
        """u_t = (1 - k/n) u₀ + (k/n) π_m(x_t)."""
        u = self.agent.act(rng)
        if not _is_real(u):
            raise MissingCapability(
                f"Bumpless cannot blend the action {u!r}: expected a float or an array of floats. "
                "Let the policy return a float; for discrete actions use MinimumDwell instead"
            )
        mode = self._acting_mode()
        in_charge = min(self._steps_in_charge + 1, self.steps)
        if self._last is not None and not _is_same(mode, self._mode):
            if self._steps_in_charge == self.steps:
                self._blend_start, self._steps_since_change = self._last, 0
            in_charge = 1
        self._mode, self._steps_in_charge = mode, in_charge
        self._steps_since_change = min(self._steps_since_change + 1, self.steps)
        if self._steps_since_change < self.steps:
            share = self._steps_since_change / self.steps
            u = (1.0 - share) * np.asarray(self._blend_start) + share * np.asarray(u)
            u = u if u.ndim else float(u)
        self._last = np.array(u)
        return u

    def _acting_mode(self) -> Any:
        """Return the index of the mode that acts; without an index, the mode or the fallback."""
        # A finite belief may return a new object for the same mode, so compare indices there.
        drawn = getattr(self.agent.belief, "drawn", None)
        fallen_back = getattr(self.agent, "fallen_back", False)
        return drawn if isinstance(drawn, int) and not fallen_back else self.agent.mode

    def observe(self, u: Any, o: Any) -> None:
        """Learn from the applied input u."""
        self.agent.observe(u, o)

    @property
    def advance(self) -> Any:
        """T(x, u, o), the next situation."""
        return self.agent.advance

    # -- state ---------------------------------------------------------------------------------

    def _blend(self) -> IntArray:
        """Return the steps since the blend started and those of the mode in charge.

        Both are at most `steps`. The last number is 1 if the mode has not changed since the last
        action, otherwise 0.
        """
        unchanged = _is_same(self._acting_mode(), self._mode)
        return np.array([self._steps_since_change, self._steps_in_charge, unchanged])

    def _check_state(self, new: SimpleNamespace) -> None:
        since_change, in_charge, unchanged = new.blend.tolist()
        if not (0 <= since_change <= self.steps and 1 <= in_charge <= self.steps):
            raise damaged(f"the array 'blend' is {new.blend}")
        inputs = {"the input before the change": new._blend_start, "the last input": new._last}
        for what, u in inputs.items():
            if (u is not None or since_change < self.steps) and not _is_real(u):
                raise damaged(f"{what} is {u!r}, expected real numbers")
        new._steps_since_change, new._steps_in_charge = since_change, in_charge
        new._mode = _UNCHANGED if unchanged else None

    def _after_load(self) -> None:
        if self._mode is _UNCHANGED:
            self._mode = self._acting_mode()

    def copy(self) -> Self:
        """Return an independent copy."""
        clone = super().copy()
        clone._mode = clone._acting_mode() if _is_same(self._acting_mode(), self._mode) else None
        return clone

    def __repr__(self) -> str:
        return f"Bumpless({self.agent!r}, steps={self.steps})"


#: The mode has not changed since the last action.
_UNCHANGED: Any = object()


def _is_real(u: Any) -> bool:
    """Return whether u is a float or an array of floats."""
    try:
        return np.asarray(u).dtype.kind == "f"
    except ValueError:  # lists of unequal length
        return False


def _is_same(mode: Any, other: Any) -> bool:
    """Compare two results of `_acting_mode`: indices by value, objects by identity."""
    return mode == other if isinstance(mode, int) and isinstance(other, int) else mode is other

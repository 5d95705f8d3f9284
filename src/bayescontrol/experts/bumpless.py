"""Bumpless transfer: a new mode takes over gradually from the input in force.

    u_t = (1 - k/n) u₀ + (k/n) π_m(x_t),   k = 1 … n steps after the mode changed

u₀ is the last input before the change. The input applied is the one that the agent learns from:
it is an intervention, whoever chose it. Limits that all modes respect are respected.

With an alarm there are two orders. `Bumpless(Guarded(agent, …))` blends the fallback in as it
blends a mode; in `Guarded(Bumpless(agent, …))` the fallback acts at once.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.errors import IncompatibleState, MissingCapability
from bayescontrol.seeding import Stream
from bayescontrol.values import pack, unpack


class Bumpless:
    """The agent, with its input blended over `steps` steps whenever its mode changes.

    For inputs that are real numbers or arrays of them; whole numbers and names are choices, which
    cannot be blended, and are refused. `steps=1` changes nothing. `agent` is a `ControlRule`, or
    one with an alarm, `Guarded`. What it has (`belief`, `x`, `mode`) can be asked of it here.

    >>> from bayescontrol import ControlRule, FiniteBelief
    >>> from bayescontrol.experts import SimulatorMode, next_state
    >>> push, pull = (SimulatorMode(lambda x, u: x, lambda x, u=u: u) for u in (1.0, -1.0))
    >>> agent = Bumpless(ControlRule(FiniteBelief([push, pull]), [0.0], next_state), steps=4)
    >>> agent.agent.belief.retire(1), agent.act(Stream(0))
    (0.5, 1.0)
    >>> _ = agent.agent.belief.add(pull, 0.5), agent.agent.belief.retire(0)
    >>> [agent.act(Stream(0)) for _ in range(5)]
    [0.5, 0.0, -0.5, -1.0, -1.0]
    """

    format_name: ClassVar[str] = "Bumpless"

    def __init__(self, agent: Any, steps: int) -> None:
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
        if not _is_real(u):
            raise MissingCapability(
                f"Bumpless cannot blend the action {u!r}: it is no real number, nor an array of "
                "them. Where it is meant as one, let the policy return a float; choices among "
                "finitely many are not blended: use MinimumDwell"
            )
        mode = self._in_charge()
        if self._last is not None and not _same(mode, self._mode):
            self._from, self._age = self._last, 0
        self._mode = mode
        self._age = min(self._age + 1, self.steps)
        if self._age < self.steps:
            share = self._age / self.steps
            u = (1.0 - share) * np.asarray(self._from) + share * np.asarray(u)
            u = u if u.ndim else float(u)
        self._last = np.array(u)
        return u

    def _in_charge(self) -> Any:
        """The mode in charge, by its number where there is one, or the fallback of an alarm."""
        # A finite belief may hand out a new object for the same mode: there the number counts.
        drawn = getattr(self.agent.belief, "drawn", None)
        fallen_back = getattr(self.agent, "fallen_back", False)
        return drawn if isinstance(drawn, int) and not fallen_back else self.agent.mode

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

    @x.setter
    def x(self, x: Any) -> None:
        self.agent.x = x

    @property
    def advance(self) -> Any:
        """T(x, u, o), the next situation."""
        return self.agent.advance

    @property
    def mode(self) -> Any:
        """The mode in charge."""
        return self.agent.mode

    # -- state ---------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays of the agent and of the blend: `blend` is steps, age, mode unchanged."""
        if not hasattr(self.agent, "save"):
            raise MissingCapability(f"{self.agent!r} cannot be saved: it lacks save and load")
        arrays = {f"agent/{name}": array for name, array in self.agent.save().items()}
        same = _same(self._in_charge(), self._mode)
        arrays["blend"] = np.array([self.steps, self._age, same])
        arrays["from"] = pack(self._from, "the input that is blended from")
        arrays["last"] = pack(self._last, "the last input")
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for an agent built from the same parts."""
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(f"{arrays!r} is not a mapping of arrays, as `save` gives")
        missing = {"blend", "from", "last"} - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        blend, start, last = arrays["blend"], *(unpack(arrays[n]) for n in ("from", "last"))
        if blend.shape != (3,) or blend.dtype.kind != "i" or not 0 <= blend[1] <= blend[0]:
            raise IncompatibleState(f"the saved blend is {blend}: it should be steps, age, same")
        steps, age, same = (int(n) for n in blend)
        if steps != self.steps:
            raise IncompatibleState(f"saved with steps={steps}, this agent has steps={self.steps}")
        for name, u in (("from", start), ("last", last)):
            if (u is not None or age < steps) and not _is_real(u):
                raise IncompatibleState(f"the saved state is damaged: {name!r} is {u!r}")
        self.agent.load(
            {n.removeprefix("agent/"): v for n, v in arrays.items() if n.startswith("agent/")}
        )
        self._from, self._last, self._age = start, last, age
        self._mode = self._in_charge() if same else None

    def copy(self) -> "Bumpless":
        """The same agent, free to go its own way."""
        if not hasattr(self.agent, "copy"):
            raise MissingCapability(f"{self.agent!r} cannot be copied: it lacks copy()")
        twin = Bumpless(self.agent.copy(), self.steps)
        twin._from, twin._last, twin._age = self._from, self._last, self._age
        twin._mode = twin._in_charge() if _same(self._in_charge(), self._mode) else None
        return twin

    def __repr__(self) -> str:
        return f"Bumpless({self.agent!r}, steps={self.steps})"


def _is_real(u: Any) -> bool:
    try:
        return np.asarray(u).dtype.kind == "f"
    except ValueError:  # lists of unequal length
        return False


def _same(mode: Any, other: Any) -> bool:
    return mode == other if isinstance(mode, int) and isinstance(other, int) else mode is other

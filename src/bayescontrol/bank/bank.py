"""A bank of plant models with controllers as one adaptive controller.

    P(m | past) ∝ P(y | m, past, u) P(m | past before y)      one Kalman filter for each mode
    u = the input of the mode in charge                        drawn, or the most probable one

`Bank` is the problem, and `Supervisor` the control rule with a choice of who is in charge.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_integer, require_between
from bayescontrol._mode_queries import as_mode_list, mode_index, require
from bayescontrol.bank.plant_mode import FilterBank, FilterMode, PlantMode, PlantWorld
from bayescontrol.bank.state_space import as_constant, as_signal, require_finite
from bayescontrol.beliefs.finite import FiniteBelief, finite_belief
from bayescontrol.beliefs.interacting import InteractingBelief
from bayescontrol.beliefs.weights import OnImpossible
from bayescontrol.errors import InvalidSystem, MissingCapability
from bayescontrol.protocols import ActionProbabilities
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Every, every_step
from bayescontrol.seeding import Stream

Choice = Literal["draw", "most probable"]


class Supervisor(ControlRule[Any, Any, Any, Any]):
    """The control rule over finitely many modes, with a choice of the mode in charge.

    `choose="draw"` is the rule: m ~ P(m | past). With "most probable", operation is deterministic:
    the most probable mode acts, and is replaced when another one is more than `hysteresis` times as
    probable. A mode acts for at least `dwell` steps, unless it is retired, or refuted: its
    probability falls below `refuted` times that of the most probable mode.

    >>> from bayescontrol import DiscreteMode, Stream
    >>> coin = lambda p, a: DiscreteMode(lambda x: {a: 1.0}, lambda x, a: {1: p, 0: 1 - p}, a)
    >>> agent = Supervisor(FiniteBelief([coin(0.4, "low"), coin(0.6, "high")]),
    ...                    choose="most probable", hysteresis=2.0)
    >>> for o in (1, 1):
    ...     print(agent.act(Stream(0)), end=" ")
    ...     agent.observe("any", o)
    low low
    >>> agent.act(Stream(0))                        # 2.25 times as probable
    'high'
    """

    format_name: ClassVar[str] = "Supervisor"

    def __init__(
        self,
        belief: FiniteBelief[Any],
        situation: Any = None,
        advance: Callable[[Any, Any, Any], Any] | None = None,
        *,
        choose: Choice = "draw",
        hysteresis: float = 1.0,
        dwell: int = 1,
        refuted: float = 0.01,
    ) -> None:
        if choose not in ("draw", "most probable"):
            raise ValueError(f"choose={choose!r}: expected 'draw' or 'most probable'")
        if choose == "draw" and hysteresis != 1.0:
            raise ValueError(f"hysteresis={hysteresis!r}: use it with choose='most probable'")
        self.choose = choose
        self.hysteresis = require_between("hysteresis", hysteresis, 1.0, math.inf, ends="[)")
        self.dwell = as_integer("dwell", dwell, 1)
        self.refuted = require_between("refuted", refuted, 0.0, 1.0, ends="[)")
        schedule = every_step if self.dwell == 1 else Every(self.dwell)
        super().__init__(belief, situation, advance, schedule)
        finite_belief(self, "a supervisor")

    def decide(self, x: Any, rng: Stream) -> tuple[Any, Any]:
        """Put a mode in charge; return it and its action."""
        if self.choose == "draw":
            return super().decide(x, rng)
        mode = self.belief.select(self._most_probable())
        return mode, mode.act(x, rng)

    def _most_probable(self) -> int:
        """Return the mode that is put in charge, with hysteresis."""
        v, held = self.belief.posterior(), self.belief.drawn
        best = int(v.argmax())
        # held < 0: no mode has been in charge yet.
        return best if held < 0 or v[best] > self.hysteresis * v[held] else held

    def action_probabilities(self) -> dict[Any, float]:
        """P(a_t | âo_<t): those of the mode in charge if it is known, else the mixture."""
        is_held = self.mode is not None and self.dwell > 1 and not self._due(Stream(0))
        if not is_held and self.choose == "draw":
            return super().action_probabilities()
        drawn = self.belief.drawn
        mode: Any = self.belief.select(drawn if is_held else self._most_probable())
        self.belief.drawn = drawn  # only a decision puts a mode in charge
        require(mode, ActionProbabilities, repr(mode))
        return dict(mode.action_probabilities(self.x))

    def _due(self, rng: Stream) -> bool:
        """Return True if the mode in charge was retired or refuted, or its dwell time is over."""
        if super()._due(rng):
            return True
        v = self.belief.posterior()
        return bool(v[self.belief.drawn] < self.refuted * v.max())


class BankAgent(Supervisor):
    """The agent of a `Bank`; its situation holds the signals of the loop.

    `signal` sets them before `act`. Wrappers such as `Bumpless` and `Guarded` have it too.

    >>> mode = PlantMode(([[0.5]], [[1.0]], [[1.0]]), lambda loop: loop.setpoint / 2,
    ...                  process_noise=1.0, sensor_noise=1.0)
    >>> agent = Bank([mode]).agent()
    >>> agent.signal(setpoint=3.0)
    >>> agent.act(Stream(0))
    1.5
    """

    format_name: ClassVar[str] = "BankAgent"

    def __init__(self, bank: "Bank", belief: FiniteBelief[Any], **options: Any) -> None:
        self.bank = bank
        super().__init__(belief, bank.first_signals(), bank.next_signals, **options)

    def signal(
        self,
        *,
        setpoint: ArrayLike | None = None,
        disturbance: ArrayLike | None = None,
        interval: float | None = None,
    ) -> None:
        """Set the setpoint, the measured disturbance, or the interval to the next sample.

        The interval is for the next sample only. The others stay until they are set again, or
        until the next step if the bank has a function for them.
        """
        x, g = self.x.copy(), self.bank.signals
        if setpoint is not None:
            x[g.setpoint] = as_constant(setpoint, g.outputs, "setpoint")
        if disturbance is not None:
            x[g.disturbance] = as_constant(disturbance, g.disturbances, "disturbance")
        if interval is not None:
            x[1] = require_between("interval", interval, 0.0, math.inf, ends="()")
            for mode in self.bank.modes:
                mode.require_interval(x[1])
        self.x = x


class Bank:
    """Plant models with tuned controllers, as one adaptive controller.

    `modes` are `PlantMode`s or `ExtendedMode`s with the same inputs, outputs, limits and period.
    `setpoint` and `disturbance` are numbers, lists, or functions of the step: setpoint(k) is the
    wanted value of output k, where output 0 is the one before the first input. With a `hazard`, the
    plant may switch between the modes at this rate per step; a list of rates is a grid on which the
    rate is learned (`InteractingBelief`). Then the filters are mixed, so state i must mean the same
    in all models. This is known if the output determines the state in the same way in all of them.
    Otherwise write the models in the same physical states and say so with `same_states=True`.
    `first_input` is the input before the first step, by default that of the operating point.

    `prior` is P(m), uniform by default, and `on_impossible` is that of `FiniteBelief`.

    >>> from bayescontrol import interact
    >>> from bayescontrol.bank import PI
    >>> def motor(gain):
    ...     return PlantMode(([[0.7]], [[gain]], [[1.0]]), PI(kp=0.3 / gain, ki=0.1 / gain),
    ...                      process_noise=0.3, sensor_noise=1.0, limits=(-12, 12),
    ...                      name=f"gain {gain:+g}")
    >>> bank = Bank([motor(4.0), motor(-4.0), motor(1.0)], setpoint=10.0)
    >>> agent = bank.agent(choose="most probable")
    >>> record = interact(agent, bank.environment("gain -4"), steps=50, seed=1)
    >>> agent.belief
    FiniteBelief(3 modes after 50 observations: gain -4 1, ...)
    """

    def __init__(
        self,
        modes: Sequence[FilterMode],
        *,
        prior: ArrayLike | None = None,
        setpoint: Any = 0.0,
        disturbance: Any = 0.0,
        hazard: ArrayLike | None = None,
        same_states: bool = False,
        first_input: ArrayLike | None = None,
        on_impossible: OnImpossible = "raise",
    ) -> None:
        self.modes: list[Any] = as_mode_list(modes)
        if not self.modes:
            raise InvalidSystem("a bank needs at least one mode")
        for m, mode in enumerate(self.modes):
            self._require_same_loop(m, mode)
        self.prior, self.hazard, self.on_impossible = prior, hazard, on_impossible
        if hazard is not None:
            self._require_same_states(same_states)
        first = self.modes[0]
        self.signals, self.period = first.signals, first.period
        self._setpoint = as_signal(setpoint, self.signals.outputs, "setpoint")
        self._disturbance = as_signal(disturbance, self.signals.disturbances, "disturbance")
        # Whether the setpoint and the disturbance are functions of the step.
        self._scheduled = callable(setpoint), callable(disturbance)
        if first_input is None:
            first_input, *others = [mode.u0 for mode in self.modes]
            if any(not np.array_equal(u0, first_input) for u0 in others):
                raise InvalidSystem(
                    "the modes have different operating points: pass first_input, the input that "
                    "is applied before the first step"
                )
        self._first_input = first.limited(first_input)
        self.belief(), self.first_signals()  # validate the settings now

    def _require_same_loop(self, m: int, mode: Any) -> None:
        """Raise an error if the mode cannot act in the same loop as the first one."""
        first, label = self.modes[0], f"mode {m} ({getattr(mode, 'name', '') or mode!r})"
        if not isinstance(mode, FilterMode):
            raise MissingCapability(
                f"{label} has no filter: a bank needs PlantModes or ExtendedModes. For other modes "
                "use Supervisor(FiniteBelief(modes))"
            )
        if mode.signals != first.signals:
            raise InvalidSystem(f"{label} has {mode.signals}, but mode 0 has {first.signals}")
        if not first.is_regular(mode.period):
            raise InvalidSystem(f"{label} has dt={mode.period:g}, mode 0 has dt={first.period:g}")
        if not np.array_equal(mode.limits, first.limits):
            limits = [np.array(each.limits).tolist() for each in (mode, first)]
            raise InvalidSystem(
                f"{label} has the limits {limits[0]}, but mode 0 has {limits[1]}: all modes of a "
                "bank share one actuator"
            )

    def _require_same_states(self, declared: bool) -> None:
        """Raise an error unless the filters can be mixed: all models have the same states."""
        sizes = [mode.states for mode in self.modes]
        maps = [mode.output_map for mode in self.modes if isinstance(mode, PlantMode)]
        is_known = (
            len(maps) == len(sizes)
            and all(np.array_equal(maps[0], H) for H in maps)
            and np.linalg.matrix_rank(maps[0][:, : sizes[0]]) == sizes[0]
        )
        if len(set(sizes)) > 1 or not (declared or is_known):
            raise InvalidSystem(
                "hazard: the filters of plants that switch are mixed, so state i must mean the "
                f"same in all models. These have {', '.join(map(str, sizes))} states, maybe in "
                "different coordinates. Write them in the same physical states (a transfer "
                "function has arbitrary ones) and pass same_states=True"
            )

    def belief(self) -> FiniteBelief[Any]:
        """Return the prior belief; if all modes are linear, their filters are compiled."""
        is_linear = all(isinstance(mode, PlantMode) for mode in self.modes)
        modes: Any = FilterBank(self.modes) if is_linear else self.modes
        if self.hazard is None:
            return FiniteBelief(modes, self.prior, on_impossible=self.on_impossible)
        hazard, on_impossible = self.hazard, self.on_impossible
        return InteractingBelief(modes, self.prior, hazard=hazard, on_impossible=on_impossible)

    def agent(self, **options: Any) -> BankAgent:
        """Return a new agent; the options are those of `Supervisor`, by default it draws modes."""
        return BankAgent(self, self.belief(), **options)

    def environment(self, mode: int | str, start: ArrayLike | None = None) -> PlantWorld:
        """Return the world in which a mode, given by index or name, is true."""
        true = self.modes[mode_index(mode, [m.name for m in self.modes])]
        return PlantWorld(true, start, disturbance=self._disturbance)

    def first_signals(self) -> FloatArray:
        """Return the signals before the first step."""
        g, x = self.signals, np.zeros(self.signals.size)
        x[1], x[g.u], x[g.disturbance] = self.period, self._first_input, self._disturbance(0)
        x[g.setpoint_before], x[g.setpoint] = self._setpoint(0), self._setpoint(1)
        x[g.measured] = self.modes[0].start()[1 : 1 + g.outputs]  # nothing is measured yet
        return x

    def next_signals(self, x: FloatArray, a: Any, o: Any) -> FloatArray:
        """T(x, u, y): the signals of the next step."""
        first, new = self.modes[0], np.empty(x.shape)
        u, y, (low, high) = first.as_input(a), first.as_output(x, o), first.limits
        require_finite(kernels.kalman.next_signals(x, u, low, high, y, self.period, new), u)
        if self._scheduled[0]:
            new[self.signals.setpoint] = self._setpoint(int(new[0]) + 1)
        if self._scheduled[1]:
            new[self.signals.disturbance] = self._disturbance(int(new[0]))
        return new

    def __repr__(self) -> str:
        return f"Bank({len(self.modes)} modes, dt={self.period:g})"

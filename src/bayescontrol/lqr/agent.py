"""The control rule for a linear plant: draw a system, solve it, use its gain for a while.

m = (A, B, W) ~ P(m | âo_<t),   u_t = -K(m) x_t,   x_{t+1} = o_t

draw again when det Λ_t ≥ 2 det Λ at the last draw          `DeterminantDoubling`
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, require_between
from bayescontrol.errors import IncompatibleState, MissingCapability
from bayescontrol.lqr.belief import LinearMode, SystemBelief
from bayescontrol.lqr.matrices import as_start, as_vector
from bayescontrol.lqr.system import LinearPlant, next_state
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Every, Held, Schedule, doubling, every_step
from bayescontrol.seeding import Stream


class HeldSystem(Held[Any]):
    """A held mode, with the factor by which det Λ has grown since it was drawn."""

    growth: float


@dataclass(frozen=True)
class DeterminantDoubling:
    """Draw a new system when det Λ has grown by `factor` since the last draw.

    This makes about d log₂ T draws in T steps. It is the lazy schedule of Abbasi-Yadkori &
    Szepesvári, "Bayesian optimal control of smoothly parameterized systems" (2015), for a
    `LinearAgent`.

    >>> held = HeldSystem(t=7, age=3, x=None, drawn_in=None)
    >>> held.growth = 2.5
    >>> DeterminantDoubling()(held, rng=None)
    True
    """

    factor: float = 2.0

    def __post_init__(self) -> None:
        require_between("factor", self.factor, 1, np.inf, ends="()")

    def __call__(self, held: Held[Any], rng: Stream) -> bool:
        """Return whether det Λ has grown by `factor`."""
        if not isinstance(held, HeldSystem):
            raise MissingCapability("DeterminantDoubling is for a LinearAgent: use it only there")
        return held.growth >= self.factor


def linear_loop(agent: Any, environment: object) -> Any:
    """Return the compiled loop, if agent and plant are in the same state and kernels know both.

    The kernel updates the regression in place. If a step fails it stops, and the Python code
    repeats that step to raise the error.
    """
    if type(environment) is not LinearPlant or type(agent.belief) is not SystemBelief:
        return None
    belief, system, x = agent.belief, environment.system, agent.x
    fits = (
        schedule_code(agent.schedule) is not None
        and agent.advance is next_state
        and environment.cost_noise is None
        and belief.costs.known
        and (belief.states, belief.inputs) == (system.states, system.inputs)
        and isinstance(x, np.ndarray)
        and x.dtype == np.float64
        and x.tobytes() == environment.x.tobytes()
    )
    return _run if fits else None


def gain_loop(agent: Any, environment: object) -> Any:
    """Return the compiled loop of a controller with a fixed gain, if the states are equal."""
    fits = (
        type(environment) is LinearPlant
        and environment.cost_noise is None
        and agent.gain.shape == (environment.system.inputs, environment.system.states)
        and agent.x.tobytes() == environment.x.tobytes()
    )
    return _regulate if fits else None


class LinearAgent(ControlRule[LinearMode, FloatArray, FloatArray, Any]):
    """The Bayesian control rule over linear systems; `start` is the initial state, by default 0.

    >>> from bayescontrol import interact
    >>> from bayescontrol.lqr import LinearQuadratic, SystemPrior, double_integrator
    >>> system = double_integrator()
    >>> problem = LinearQuadratic.on(system, prior=SystemPrior())
    >>> agent = problem.agent(schedule=DeterminantDoubling())
    >>> record = interact(agent, problem.environment(system), 2000, seed=0)
    >>> round(system.cost(agent.gain) / system.best_cost, 1)
    1.0
    """

    format_name: ClassVar[str] = "LinearAgent"
    fused_loop = staticmethod(linear_loop)

    #: Whether modes are drawn; the certainty-equivalence baseline uses the mean instead.
    sampled = True
    #: Exploration noise at t = 1, and number of steps with unit noise: for the baselines.
    exploration = 0.0
    warm_up = 0

    def __init__(
        self, belief: SystemBelief, start: ArrayLike | None = None, schedule: Schedule = every_step
    ) -> None:
        super().__init__(belief, as_start(start, belief.states), next_state, schedule)

    @property
    def gain(self) -> FloatArray:
        """The gain K of the current mode; NaN before the first action."""
        shape = (self.belief.inputs, self.belief.states)
        return np.full(shape, np.nan) if self.mode is None else self.mode.K.copy()

    def _held(self) -> Held[FloatArray]:
        held = HeldSystem(*super()._held())
        held.growth = self.belief.growth()
        return held

    def _check_state(self, new: SimpleNamespace) -> None:
        super()._check_state(new)
        for x in (new.x, new._drawn_in):
            as_vector(x, self.belief.states, "a saved situation", IncompatibleState)


def schedule_code(schedule: object) -> tuple[int, float] | None:
    """Return the kernel's code and parameter of a schedule, or None if it is not supported."""
    loop = kernels.lqr
    if schedule is every_step:
        return loop.AGE, 1.0
    if schedule is doubling:
        return loop.DOUBLING, 0.0
    if isinstance(schedule, Every):
        return loop.AGE, float(schedule.k)
    if isinstance(schedule, DeterminantDoubling):
        return loop.DETERMINANT, schedule.factor
    return None


def _run(agent: Any, plant: LinearPlant, steps: int, p: Stream, q: Stream) -> Record:
    """Run the kernel; if it stops at a failed step, let the Python code raise the error."""
    loop, belief = kernels.lqr, agent.belief
    code, parameter = schedule_code(agent.schedule) or (0, 0.0)  # `linear_loop` excludes None
    mode, scratch, nu = belief.loop_mode(), belief.loop_scratch(), belief.loop_freedom()
    settings = loop.LoopSettings(
        code, parameter, agent.sampled, belief.tries, agent.exploration, agent.warm_up, nu,
        *belief.costs.mean(),
    )  # fmt: skip
    # The fields T, DRAWN_AT, HELD and FAILED of `kernels.lqr`.
    clock = np.array([agent._t, agent._drawn_at, agent.mode is not None, 0], np.int64)
    x, drawn_in = plant.x, np.array(agent._drawn_in, np.float64)
    inputs, states = np.empty((steps, belief.inputs)), np.empty((steps, belief.states))
    steps_done, stop = loop.interact(
        belief.F, settings, mode, clock, scratch, plant.loop_arrays(), x, drawn_in,
        kernels.random.Streams(p.state, q.state), inputs, states,
    )  # fmt: skip
    plant.fast_forward(x)
    held_mode = mode if clock[loop.HELD] else None
    belief.fast_forward(steps_done, held_mode, scratch.diagonal, int(clock[loop.FAILED]))
    agent._t, agent._drawn_at = int(clock[loop.T]), int(clock[loop.DRAWN_AT])
    agent._drawn_in, agent.x, agent.mode = drawn_in, x, belief.last()
    if stop == loop.NO_GAIN:  # the Python code raises the error
        agent.act(p)
    if stop == loop.INPUT_TOO_LARGE:
        plant.respond(inputs[steps_done], q)
    if stop == loop.STATE_TOO_LARGE:
        plant.fast_forward(states[steps_done])
        agent.observe(inputs[steps_done], states[steps_done])
    return Record(inputs, states)


def _regulate(agent: Any, plant: LinearPlant, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop of an agent with a fixed gain.

    If an input is too large, the loop stops there, and the plant raises the error in Python.
    """
    m, n = agent.gain.shape
    x, inputs, states = plant.x, np.empty((steps, m)), np.empty((steps, n))
    done, stop = kernels.lqr.regulate(agent.gain, plant.loop_arrays(), x, q.state, inputs, states)
    plant.fast_forward(x)
    agent.x = x
    if stop == kernels.lqr.INPUT_TOO_LARGE:  # `respond` rejects this input with an error
        plant.respond(inputs[done], q)
    return Record(inputs, states)

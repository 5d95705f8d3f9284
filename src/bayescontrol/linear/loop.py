"""The compiled loop of a linear agent and its plant.

The kernel works on the regression in place, until the steps are done or something can only be
said by the readable code, which then takes that step and raises.
"""

from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.linear.plant import LinearPlant, next_state
from bayescontrol.linear.schedule import DeterminantDoubling
from bayescontrol.record import Record
from bayescontrol.schedules import Every, doubling, every_step
from bayescontrol.seeding import Stream


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop, if the agent knows the costs and is where the plant is.

    >>> from bayescontrol.linear import LinearAgent, LinearPlant, double_integrator
    >>> system = double_integrator()
    >>> fused_loop(LinearAgent.on(system), LinearPlant(system)) is not None
    True
    """
    belief, system = agent.belief, environment.system
    x = agent.x
    fits = (
        _schedule(agent.schedule) is not None
        and agent.advance is next_state
        and environment.cost_noise is None
        and belief.costs.known
        and (belief.states, belief.inputs) == (system.states, system.inputs)
        and isinstance(x, np.ndarray)
        and x.dtype == np.float64
        and x.tobytes() == environment.x.tobytes()
    )
    return _run if fits else None


def _schedule(schedule: Any) -> tuple[int, float] | None:
    """The schedule's kind and number, as the kernel knows them."""
    loop = kernels.lqr_loop
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
    loop, belief, fit = kernels.lqr_loop, agent.belief, agent.belief.fit
    kind, number = _schedule(agent.schedule) or (0, 0.0)
    mode, trial, diagonal, room, nu = belief.loop_parts()
    how = loop.How(
        kind, number, agent.sampled, belief.tries, agent.exploration, agent.warm_up, nu,
        *belief.costs.mean(),
    )  # fmt: skip
    t, drawn_at, drawn_in = agent.clock()
    clock = np.array([t, drawn_at, agent.mode is not None, 0], np.int64)
    before = np.empty(4, np.uint64)
    rooms = loop.Rooms(room, trial, fit.row, fit.v, fit.zero, diagonal, before)
    x, drawn_in = plant.x, np.array(drawn_in, np.float64)
    inputs, states = np.empty((steps, belief.inputs)), np.empty((steps, belief.states))
    done, why = loop.interact(
        fit.F, how, mode, clock, rooms, *plant.loop_arrays(), x, drawn_in,
        p.state, q.state, inputs, states,
    )  # fmt: skip
    plant.fast_forward(x)
    held = mode if clock[loop.HELD] else None
    belief.fast_forward(done, held, diagonal, int(clock[loop.FAILED]))
    agent.wind(int(clock[loop.T]), int(clock[loop.DRAWN_AT]), drawn_in, x)
    if why == loop.NO_GAIN:  # the readable code says what is wrong
        agent.act(p)
    if why == loop.TOO_MUCH:
        plant.respond(inputs[done], q)
    if why == loop.BEYOND:
        plant.fast_forward(states[done])
        agent.observe(inputs[done], states[done])
    return Record(inputs, states)


def fused_gain(agent: Any, environment: Any) -> Any:
    """The compiled loop of a controller with one gain, if it is where the plant is.

    >>> from bayescontrol.baselines.linear import OptimalController
    >>> from bayescontrol.linear import LinearPlant, double_integrator
    >>> system = double_integrator()
    >>> fused_gain(OptimalController(system), LinearPlant(system)) is not None
    True
    """
    fits = (
        environment.cost_noise is None
        and agent.gain.shape == (environment.system.inputs, environment.system.states)
        and agent.x.tobytes() == environment.x.tobytes()
    )
    return _regulate if fits else None


def _regulate(agent: Any, plant: LinearPlant, steps: int, p: Stream, q: Stream) -> Record:
    m, n = agent.gain.shape
    x, inputs, states = plant.x, np.empty((steps, m)), np.empty((steps, n))
    done, why = kernels.lqr_loop.regulate(
        agent.gain, *plant.loop_arrays(), x, q.state, inputs, states
    )
    plant.fast_forward(x)
    agent.x = x
    if why == kernels.lqr_loop.TOO_MUCH:  # the readable code says what is wrong
        plant.respond(inputs[done], q)
    return Record(inputs, states)

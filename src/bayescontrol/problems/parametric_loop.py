"""The compiled loop over a user's own functions, and what happens when one of them raises.

    a_t, o_t  for t = 1 … n,  bit for bit as the readable agent and environment have them

The loop itself is `kernels.parametric`; here the agent and the world are put where it led.
"""

from typing import Any

import numpy as np

from bayescontrol.errors import BadEvidence
from bayescontrol.problems.parametric import ParametricEnvironment, own
from bayescontrol.record import Record
from bayescontrol.schedules import every_step
from bayescontrol.seeding import Stream


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop, if the agent is the rule over the environment's own class.

    >>> from bayescontrol.problems.parametric import ParametricModes
    >>> coins = ParametricModes([0.25, 0.75], act=lambda theta_m, x, state: 0,
    ...                         likelihoods=lambda theta, x, a, o: theta if o else 1 - theta,
    ...                         respond=lambda theta_m, x, a, state: 1)
    >>> fused_loop(coins.agent(), coins.environment(0)) is not None
    True
    """
    modes = environment.modes
    fits = (
        modes.compiled
        and agent.belief.modes is modes
        and agent.belief.on_impossible == "raise"
        and agent.schedule is every_step
        and agent.advance == modes.advance
        and modes.fits(agent.x)
        and modes.fits(environment.x)
    )
    return _run if fits else None


def _run(
    agent: Any, environment: ParametricEnvironment, steps: int, p: Stream, q: Stream
) -> Record:
    arrays = (*agent.belief.weight_arrays(), p.state, q.state)
    before = [array.copy() for array in arrays]
    step = np.zeros(1, np.int64)
    try:
        return _steps(agent, environment, steps, p, q, step)
    except BadEvidence:
        raise
    except Exception:
        # A user's function has raised. The loop runs again up to there, and the readable code
        # takes the step: it raises too, and leaves everything as it should be.
        for array, was in zip(arrays, before, strict=True):
            array[:] = was
        _steps(agent, environment, int(step[0]), p, q, step)
        a = agent.act(p)
        agent.observe(a, environment.respond(a, q))
        raise


def _steps(
    agent: Any, environment: ParametricEnvironment, steps: int, p: Stream, q: Stream, step: Any
) -> Record:
    modes, belief = environment.modes, agent.belief
    code: Any = modes.code
    drawn, actions, observations = (
        np.empty(steps, kind) for kind in (np.int64, code.action, code.observation)
    )
    done, drawn_in, x, y = code.loop(
        *belief.weight_arrays(), modes.theta, environment.theta, own(agent.x),
        own(environment.x), p.state, q.state, drawn, actions, observations, step,
    )  # fmt: skip
    environment.x = y
    acted = min(done + 1, steps)
    if acted:
        belief.fast_forward(done, int(drawn[acted - 1]))
        agent.fast_forward(acted, drawn_in, x)
    if done < steps:  # the readable code raises, with its own words
        agent.observe(actions[done].item(), observations[done].item())
    return Record(actions, observations)

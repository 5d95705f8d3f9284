"""The compiled loop of a guarded agent over tables, bit for bit what the readable one does.

`kernels.alarm.interact` comes back when the alarm is raised, and is called again with the
fallback in charge. Where somebody wants to be told of the alarm, the readable loop runs: what
they do then to the agent is theirs to choose.
"""

from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.live.predictors import KrichevskyTrofimov
from bayescontrol.problems import tabular
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream


def fused_loop(agent: Any, environment: Any) -> Any:
    """The loop, if rule and world have one, q counts tables, and the fallback is an action.

    >>> from bayescontrol.live import Alarm, Guarded
    >>> modes = tabular.random_modes(2)
    >>> agent = Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2), delta=0.01), fallback=1)
    >>> fused_loop(agent, modes.environment(0)) is not None
    True
    """
    predictor, fallback = agent.alarm.predictor, agent.fallback
    actions, observations = environment.modes.successor.shape[1:]
    fits = (
        type(agent.rule) is ControlRule
        and type(predictor) is KrichevskyTrofimov
        and predictor.plain
        and not agent.on_alarm
        and len(predictor.observations) >= observations
        and (fallback is None or (type(fallback) is int and 0 <= fallback < actions))
        and tabular.fused_loop(agent.rule, environment) is not None
    )
    return _run if fits else None


def _run(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
    modes, rule, alarm = environment.modes, agent.rule, agent.alarm
    situations, actions, _ = modes.successor.shape
    columns = np.empty((3, steps), np.int64)
    fallback = -1 if agent.fallback is None else agent.fallback
    start = 0
    while start < steps:
        w, e, blocks = rule.belief.weight_arrays()
        counts, log_e = alarm.predictor.table(situations, actions), alarm.log_evidence(len(w))
        done, learnt, drawn_in, x, y = kernels.alarm.interact(
            w, e, blocks, modes.policy, modes.by_mode, modes.successor,
            modes.hypothesis[environment.m], rule.x, environment.x, p.state, q.state, counts,
            log_e, np.empty((2, len(w))), alarm.threshold, alarm.raised, fallback,
            *columns[:, start:],
        )  # fmt: skip
        environment.x = y
        raised = not alarm.raised and log_e.min() >= alarm.threshold
        stopped = start + done < steps and not raised
        drawn = columns[0, start : start + done + stopped]
        acted = int((drawn >= 0).sum())
        rule.belief.fast_forward(learnt, int(drawn[drawn >= 0][-1]) if acted else rule.belief.drawn)
        if acted:
            rule.fast_forward(acted, drawn_in, x)
        rule.x = x
        alarm.predictor.take_table(counts)
        start += done
        alarm.fast_forward(done, log_e)
        if stopped:  # an impossible observation: the readable code raises, in its own words
            agent.observe(int(columns[1, start]), int(columns[2, start]))
    return Record(columns[1], columns[2])

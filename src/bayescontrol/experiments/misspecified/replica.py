"""One replica: a guarded agent and a blind one in every world, with the same luck.

    E_t = q(o_≤t | â_≤t) / max_m P(o_≤t | m, â_≤t),  q Krichevsky-Trofimov     alarm at 1/δ

Until the alarm both do the same; from then on the guarded one rests. In a few replicas the blind
one has an alarm too, to which it is deaf: so the evidence can be followed to the end.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from bayescontrol.experiments.chance import FEW
from bayescontrol.experiments.misspecified.worlds import OUTSIDE, REST, REWARD, WORLDS, machines
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.live import Alarm, Guarded, KrichevskyTrofimov, alarm_evidence

#: With fewer runs nothing is judged.
FEWEST: Final = 100
#: So many replicas are followed step by step, in these worlds, and drawn.
PATHS: Final = 6
DRAWN: Final = (WORLDS[0], OUTSIDE[1], OUTSIDE[-1])
_POINTS: Final = 120
_LOG10_2: Final = 0.3010299956639812


@dataclass(frozen=True)
class Settings:
    """Size of the experiment, and the rate of false alarms that is allowed.

    >>> Settings().delta
    0.05
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 400
    steps: Annotated[int, msgspec.Meta(ge=1, description="steps in a replica")] = 1000
    delta: Annotated[
        float, msgspec.Meta(gt=0, lt=1, description="the alarm may be false so often, at most")
    ] = 0.05


def checkpoints(settings: Settings) -> Any:
    """The steps at which paths are kept, at most 120 of them.

    >>> checkpoints(Settings(steps=300))[:3]
    array([3, 6, 9])
    """
    stride = -(-settings.steps // _POINTS)
    return np.arange(stride, settings.steps + 1, stride)


def guard(settings: Settings, fallback: int | None = REST) -> Guarded:
    """The control rule over the three modes, with an alarm, and resting for a fallback.

    >>> guard(Settings()).fallback == REST
    True
    """
    predictor = KrichevskyTrofimov(len(REWARD))
    return Guarded(machines().agent(), Alarm(predictor, settings.delta), fallback)


def run(settings: Settings, i: int) -> Columns:
    """When the alarm was raised in every world, and what both agents earned.

    >>> columns = run(Settings(steps=200), 0)
    >>> columns["step"].shape, bool(np.isfinite(columns["step"][-2]))
    ((8,), True)
    """
    step = np.full(len(WORLDS), np.inf)
    guarded, blind = np.empty(len(WORLDS)), np.empty(len(WORLDS))
    path = np.full((len(DRAWN), len(checkpoints(settings))), np.nan)
    for k, world in enumerate(WORLDS):
        agent, modes = guard(settings), machines()
        luck: dict[str, Any] = {"seed": settings.seed, "run": i * len(WORLDS) + k}
        record = interact(agent, modes.environment(k), settings.steps, **luck)
        if agent.alarm.step is not None:
            step[k] = agent.alarm.step
        deaf: Any = modes.agent()
        probes = None
        if i < PATHS and world in DRAWN:
            deaf, probes = guard(settings, fallback=None), {"bits": alarm_evidence}
        free = interact(deaf, modes.environment(k), settings.steps, probes=probes, **luck)
        if probes:
            path[DRAWN.index(world)] = free["bits"][checkpoints(settings) - 1] * _LOG10_2
        guarded[k], blind[k] = (REWARD[r.observations].mean() for r in (record, free))
    return {"step": step, "guarded": guarded, "blind": blind, "path": path}

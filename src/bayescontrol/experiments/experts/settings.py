"""Settings of `experts`, and what its three plants have in common.

θ* uniform over the hypotheses       the same start and the same noise for every agent
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.experts import SimulatorMode, next_state
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import MinimumDwell, every_step
from bayescontrol.seeding import Stream, stream

#: What the agents are called.
RULE: Final = "control rule"
RIGHT: Final = "right expert"
NAIVE: Final = "naive mixture"
MEAN: Final = "mean of experts"
VOTE: Final = "vote of experts"

#: How each agent is made, given what it sees first.
Makers: TypeAlias = Mapping[str, Callable[[FloatArray], Any]]


@dataclass(frozen=True)
class Settings:
    """Settings of `experts`.

    >>> Settings(noise=0.0).steps
    500
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 40
    steps: Annotated[int, msgspec.Meta(ge=2, description="steps of an episode of CartPole")] = 500
    noise: Annotated[
        float, msgspec.Meta(ge=0, description="disturbance of both velocities of CartPole a step")
    ] = 0.02
    floor: Annotated[
        float, msgspec.Meta(gt=0, description="standard deviation that every hypothesis allows for")
    ] = 1e-3
    dwell: Annotated[
        int, msgspec.Meta(ge=1, description="the rule holds a mode for at least so many steps")
    ] = 1
    change: Annotated[
        int, msgspec.Meta(ge=1, description="the motor is rewired after so many steps")
    ] = 250
    hazard: Annotated[
        float, msgspec.Meta(gt=0, le=1, description="switching: probability of a change a step")
    ] = 0.002
    forgetting: Annotated[
        float, msgspec.Meta(gt=0, le=1, description="fading: evidence keeps this share a step")
    ] = 0.7
    rod_steps: Annotated[int, msgspec.Meta(ge=2, description="steps of an episode of Pendulum")] = (
        200
    )
    rod_noise: Annotated[
        float, msgspec.Meta(ge=0, description="disturbance of the rod's velocity a step")
    ] = 0.05
    limit: Annotated[
        float, msgspec.Meta(gt=0, le=2, description="limit of the experts' torque on Pendulum")
    ] = 2.0
    blend: Annotated[
        int, msgspec.Meta(ge=1, description="bumpless rule: a new mode takes over in so many steps")
    ] = 5


def truth(settings: Settings, run: int, plant: str, n: int) -> int:
    """m* of this run, uniform over n hypotheses.

    >>> 0 <= truth(Settings(), 0, "pole", 20) < 20
    True
    """
    return int(stream(settings.seed, run, f"which {plant}").integers(n))


def streams(settings: Settings, run: int, agent: str, plant: str) -> tuple[Stream, Stream]:
    """The agent's stream, and the plant's, which is the same for every agent.

    >>> streams(Settings(), 0, "a", "pole")[1] == streams(Settings(), 0, "b", "pole")[1]
    True
    """
    return stream(settings.seed, run, f"{plant}, {agent}"), stream(settings.seed, run, plant)


def control_rule(
    settings: Settings, modes: list[SimulatorMode], x: Any
) -> ControlRule[SimulatorMode, Any, Any, Any]:
    """The control rule over the modes, holding each for `dwell` steps at least.

    >>> still = SimulatorMode(lambda x, u: x, lambda x: 0)
    >>> control_rule(Settings(dwell=3), [still], [0.0]).schedule
    MinimumDwell(steps=3, ...)
    """
    schedule = every_step if settings.dwell == 1 else MinimumDwell(settings.dwell)
    return ControlRule(FiniteBelief(modes), x, next_state, schedule)

"""Schedules as plain values, and back: a name and its numbers.

Every(3)  ↔  ["Every", 3]        MinimumDwell(4, Every(3))  ↔  ["MinimumDwell", 4, ["Every", 3]]
"""

from typing import Any, Final

from bayescontrol.linear.agent import DeterminantDoubling
from bayescontrol.schedules import (
    Every,
    Geometric,
    MinimumDwell,
    Schedule,
    WhenSituationReturns,
    doubling,
    every_step,
)

_SCHEDULES: Final[dict[str, Any]] = {
    "every_step": every_step,
    "doubling": doubling,
    "Every": Every,
    "Geometric": Geometric,
    "WhenSituationReturns": WhenSituationReturns,
    "MinimumDwell": MinimumDwell,
    "DeterminantDoubling": DeterminantDoubling,
}


def schedule_plain(schedule: Schedule, where: str = "the model") -> list[Any]:
    """The schedule by its name and its numbers.

    >>> schedule_plain(MinimumDwell(4, Every(3)))
    ['MinimumDwell', 4, ['Every', 3]]
    """
    if schedule is every_step:
        return ["every_step"]
    if schedule is doubling:
        return ["doubling"]
    if isinstance(schedule, Every):
        return ["Every", schedule.k]
    if isinstance(schedule, Geometric):
        return ["Geometric", schedule.p]
    if isinstance(schedule, WhenSituationReturns):
        return ["WhenSituationReturns", schedule.home]
    if isinstance(schedule, MinimumDwell):
        return ["MinimumDwell", schedule.steps, schedule_plain(schedule.then, where)]
    if isinstance(schedule, DeterminantDoubling):
        return ["DeterminantDoubling", schedule.factor]
    raise ValueError(
        f"schedule={schedule!r} of {where} has no name: use one of bayescontrol.schedules, or "
        "named_model(…)"
    )


def unschedule(plain: list[Any]) -> Schedule:
    """The schedule of that name.

    >>> unschedule(["Every", 3])
    Every(k=3)
    """
    name, *numbers = plain
    known = _SCHEDULES[name]
    if name == "MinimumDwell":
        return MinimumDwell(numbers[0], unschedule(numbers[1]))
    if not isinstance(known, type) and numbers:
        raise ValueError(f"schedule {name!r} has no numbers, {numbers} came with it")
    schedule: Schedule = known(*numbers) if isinstance(known, type) else known
    return schedule


def needs_regression(schedule: Schedule) -> bool:
    """Whether it asks by what factor det Λ has grown, which only a linear agent knows.

    >>> needs_regression(MinimumDwell(4, DeterminantDoubling())), needs_regression(every_step)
    (True, False)
    """
    if isinstance(schedule, MinimumDwell):
        return needs_regression(schedule.then)
    return isinstance(schedule, DeterminantDoubling)

"""The built-in kinds of models, and problems and schedules as the settings that logs store.

    BernoulliBandit(["red", "blue"])  <->  "bernoulli-bandit", {"arms": …, "prior": …}
    MinimumDwell(4, Every(3))         <->  ["MinimumDwell", 4, ["Every", 3]]

A problem class declares its kind, see `_support.description`. Code is never stored, so a problem
that holds functions of the user has no kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Final

from bayescontrol import bandits, schedules
from bayescontrol._support.description import ModelKind
from bayescontrol.beliefs.change_points import HAZARDS
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.errors import InvalidTable
from bayescontrol.finite.chain import GrowingChain
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.lqr.problem import LinearQuadratic
from bayescontrol.mdp.gibbs import GibbsMDP


class ChangingModel(Changing):
    """A changing problem from its stored settings."""

    model_kind: ClassVar[ModelKind] = Changing.model_kind

    def __init__(
        self,
        problem: str,
        settings: Mapping[str, Any],
        hazards: Sequence[float] = HAZARDS,
        hazard_prior: Sequence[float] | None = None,
        starts: int = 64,
        window: int = 100,
        per_arm: bool = False,
    ) -> None:
        static: Any = KINDS.get(problem)
        if not hasattr(static, "changing"):
            possible = [name for name, each in KINDS.items() if hasattr(each, "changing")]
            raise InvalidTable(f"problem={problem!r}: expected one of {', '.join(possible)}")
        separately = {"per_arm": True} if per_arm else {}  # a plant has no arms
        changing = static(**settings).changing(
            hazards=hazards, hazard_prior=hazard_prior, starts=starts, window=window, **separately
        )
        vars(self).update(vars(changing))


# Bandits with independent arms come from `bandits.families`.
_PROBLEMS: Final[tuple[Any, ...]] = (
    *bandits.FAMILIES,
    bandits.LinearBandit,
    bandits.LogisticBandit,
    bandits.JointBandit,
    bandits.LogitNormalBandit,
    TabularModes,
    GrowingChain,
    GibbsMDP,
    LinearQuadratic,
    ChangingModel,
)
#: The problem classes by the stored names of their kinds.
KINDS: Final[Mapping[str, Any]] = {problem.model_kind.name: problem for problem in _PROBLEMS}
#: The schedules of all kinds by their stored names.
_SCHEDULES: Final[Mapping[str, Any]] = {
    "every_step": schedules.every_step,
    "doubling": schedules.doubling,
    "Every": schedules.Every,
    "Geometric": schedules.Geometric,
    "WhenSituationReturns": schedules.WhenSituationReturns,
    "MinimumDwell": schedules.MinimumDwell,
}


def why_not_stored(problem: Any) -> str:
    """Return the reason why a problem has no kind, or "" if it is unknown.

    >>> why_not_stored(bandits.SharedLinearBandit(2, lambda x, a: [x], features=1))
    'its phi is code'
    """
    for cls in type(problem).__mro__:
        if "model_kind" in vars(cls):
            return f"it is a {cls.__name__} with code of your own"
        if "not_stored_because" in vars(cls):
            return str(vars(cls)["not_stored_because"])
    if hasattr(problem, "act") and hasattr(problem, "observe"):
        return "it is an agent: give the problem, LinearQuadratic(Q, R) for a linear agent"
    return ""


def stored_schedule(schedule: schedules.Schedule, kind: ModelKind) -> list[Any]:
    """Return the name and the arguments of a schedule, as logs of this kind store them.

    >>> stored_schedule(schedules.MinimumDwell(4, schedules.Every(3)), GibbsMDP.model_kind)
    ['MinimumDwell', 4, ['Every', 3]]
    """
    value: Any = schedule
    for name, candidate in {**_SCHEDULES, **kind.schedules}.items():
        if value is candidate:
            return [name]
        if type(value) is candidate:  # a subclass may behave differently
            arguments = [getattr(value, field.name) for field in fields(value)]
            return [name, *(stored_schedule(v, kind) if callable(v) else v for v in arguments)]
    raise ValueError(
        f"schedule={schedule!r} has no stored name for a {kind.name}: use one of "
        f"{', '.join([*_SCHEDULES, *kind.schedules])}, or named_model(…)"
    )


def restored_schedule(stored: list[Any], kind: ModelKind) -> schedules.Schedule:
    """Return the schedule with this stored name and these arguments.

    >>> restored_schedule(["Every", 3], GibbsMDP.model_kind)
    Every(k=3)
    """
    name, *arguments = stored
    found = {**_SCHEDULES, **kind.schedules}[name]
    if found is schedules.MinimumDwell:  # its second argument is a schedule
        arguments[1] = restored_schedule(arguments[1], kind)
    if arguments and not isinstance(found, type):
        raise ValueError(f"schedule {name!r} takes no arguments, got {arguments}")
    schedule: schedules.Schedule = found(*arguments) if isinstance(found, type) else found
    return schedule

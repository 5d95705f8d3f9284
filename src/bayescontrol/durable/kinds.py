"""The problems of this library as settings, and back.

    BernoulliBandit(["red", "blue"])  ↔  "bernoulli-bandit", {"arms": …, "prior": …, "schedule": …}

A kind is a class, a version of what its agents do, its settings as plain values, and the way back
from them. A schedule is its name and its numbers.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from bayescontrol.schedules import (
    Every,
    Geometric,
    MinimumDwell,
    Schedule,
    WhenSituationReturns,
    doubling,
    every_step,
)

__all__ = ["KINDS", "Description", "Kind", "describe", "schedule_plain", "unschedule"]


class Description(NamedTuple):
    """A problem by the name of its kind and its settings.

    >>> Description("bernoulli-bandit", {"arms": 2}).name
    'bernoulli-bandit'
    """

    name: str
    settings: Mapping[str, Any]


class Kind(NamedTuple):
    """A class of the library, how to read its settings off, and how to make it of them.

    >>> KINDS["bernoulli-bandit"].problem({"arms": ["red", "blue"], "prior": None})
    BernoulliBandit(Bernoulli(), 2 arms)
    """

    home: str
    read: Callable[[Any], dict[str, Any]]
    version: int = 1

    def cls(self) -> Any:
        """The class itself."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"bayescontrol.{module}"), name)

    def problem(self, settings: Mapping[str, Any]) -> Any:
        """The problem with these settings; `schedule` is the agent's."""
        given = {name: v for name, v in settings.items() if name != "schedule"}
        return self.cls()(**given)


# What a family takes for a prior where none is given, in the words in which one is given.
_DEFAULTS: Final = {
    "Bernoulli": (1.0, 1.0),
    "Gaussian": (0.0, 1.0),
    "NormalGamma": (0.0, 1.0, 1.0, 1.0),
    "Poisson": (1.0, 1.0),
    "Exponential": (2.0, 1.0),
}


def _arms(bandit: Any) -> dict[str, Any]:
    """The prior stands in the log in full: a later default must not change an agent."""
    arms, width = list(bandit.labels), bandit.prior.shape[1]
    default = _DEFAULTS.get(type(bandit.family).__name__, (1.0,) * width)
    stated = default if bandit.stated is None else bandit.stated
    rows = np.broadcast_to(np.asarray(stated, np.float64), (len(arms), width))
    return {"arms": arms, "prior": rows.tolist()}


def _gaussian(bandit: Any) -> dict[str, Any]:
    return _arms(bandit) | {"sd": getattr(bandit.family, "sd", None)}


def _categorical(bandit: Any) -> dict[str, Any]:
    return _arms(bandit) | {"values": bandit.family.constants.tolist()}


def _logistic(bandit: Any) -> dict[str, Any]:
    prior = bandit.prior
    told = [np.asarray(part, np.float64).tolist() for part in prior or (0.0, 1.0)]
    return {"arms": list(bandit.labels), "features": bandit.features, "prior": told}


def _linear(bandit: Any) -> dict[str, Any]:
    return _logistic(bandit) | {"sd": bandit.link.sd}


def _joint(bandit: Any) -> dict[str, Any]:
    return {"biases": bandit.biases.tolist(), "prior": bandit.prior.tolist()}


def _tabular(modes: Any) -> dict[str, Any]:
    return {
        "policy": modes.policy.tolist(),
        "hypothesis": modes.hypothesis.tolist(),
        "successor": modes.successor.tolist(),
        "start": modes.start,
        "names": None if modes.names is None else list(modes.names),
        "prior": modes.prior.tolist(),
    }


def _mdp(problem: Any) -> dict[str, Any]:
    settings: dict[str, Any] = problem.settings()
    return settings


_BANDITS: Final = "problems.bandits"
#: The kinds that describe themselves, by name.
KINDS: Final[dict[str, Kind]] = {
    "bernoulli-bandit": Kind(f"{_BANDITS}:BernoulliBandit", _arms),
    "gaussian-bandit": Kind(f"{_BANDITS}:GaussianBandit", _gaussian),
    "categorical-bandit": Kind(f"{_BANDITS}:CategoricalBandit", _categorical),
    "poisson-bandit": Kind(f"{_BANDITS}:PoissonBandit", _arms),
    "exponential-bandit": Kind(f"{_BANDITS}:ExponentialBandit", _arms),
    "linear-bandit": Kind(f"{_BANDITS}:LinearBandit", _linear),
    "logistic-bandit": Kind(f"{_BANDITS}:LogisticBandit", _logistic),
    "joint-bandit": Kind(f"{_BANDITS}:JointBandit", _joint),
    "tabular-modes": Kind("problems.tabular:TabularModes", _tabular),
    "gibbs-mdp": Kind("durable.gibbs:GibbsMDP", _mdp),
}


def describe(problem: Any, schedule: Schedule = every_step) -> Description | None:
    """The problem and the schedule in plain values; None if it is of no kind here.

    >>> from bayescontrol import BernoulliBandit
    >>> describe(BernoulliBandit(["red", "blue"]))
    Description(name='bernoulli-bandit', settings={'arms': ['red', 'blue'], ...})
    """
    here = f"{type(problem).__module__}.{type(problem).__qualname__}"
    for name, kind in KINDS.items():
        if type(problem).__name__ == kind.home.partition(":")[2] and type(problem) is kind.cls():
            settings = kind.read(problem) | {"schedule": schedule_plain(schedule, here)}
            return Description(name, settings)
    return None


_SCHEDULES: Final[dict[str, Any]] = {
    "every_step": every_step,
    "doubling": doubling,
    "Every": Every,
    "Geometric": Geometric,
    "WhenSituationReturns": WhenSituationReturns,
    "MinimumDwell": MinimumDwell,
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
    schedule: Schedule = known(*numbers) if numbers else known
    return schedule

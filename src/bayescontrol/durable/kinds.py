"""The problems of this library as settings, and back.

    BernoulliBandit(["red", "blue"])  ↔  "bernoulli-bandit", {"arms": …, "prior": …, "schedule": …}

A kind is a class, a version of what its agents do, its settings as plain values, and the way back
from them. What holds functions of the caller's has no kind: code is never kept.

A new log gets the present version. A log of an earlier version is continued in that version:
`earlier` holds the options with which the class still makes such agents.

    version 2    of Bernoulli, Poisson and exponential bandits: under tiny parameters drawn means
                 are compared on a logarithmic scale
    version 1    they are compared as doubles, and ties are split evenly; where every shape is at
                 least ½ both versions draw the same actions from the same random numbers
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from bayescontrol.durable import plain_settings as read
from bayescontrol.durable.plain_schedules import needs_regression, schedule_plain
from bayescontrol.schedules import Schedule, every_step


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
    #: What its agents are made with, beside the schedule.
    options: Mapping[str, Any] = MappingProxyType({})
    #: Whether no situation says anything to it; of independent arms the agent tells.
    context_free: bool = False
    #: Of one with finitely many observations 0, 1, 2, …: how many, by its settings.
    outcomes: Callable[[Mapping[str, Any]], int] | None = None
    #: The options of agents of earlier versions, by version.
    earlier: Mapping[int, Mapping[str, Any]] = MappingProxyType({})

    def cls(self) -> Any:
        """The class itself."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"bayescontrol.{module}"), name)

    def problem(self, settings: Mapping[str, Any]) -> Any:
        """The problem with these settings; `schedule` is the agent's."""
        given = {name: v for name, v in settings.items() if name != "schedule"}
        return self.cls()(**given)


def _two(settings: Mapping[str, Any]) -> int:
    return 2


def _columns(settings: Mapping[str, Any]) -> int:
    return len(settings["hypothesis"][0][0][0])


_BANDITS: Final = "bandits"
_LINEAR: Final = "linear-quadratic"
_SPLIT_TIES: Final = MappingProxyType({1: {"split_ties": True}})
#: The kinds that describe themselves, by name.
KINDS: Final[dict[str, Kind]] = {
    "bernoulli-bandit": Kind(
        f"{_BANDITS}:BernoulliBandit", read.arms, version=2, outcomes=_two, earlier=_SPLIT_TIES
    ),
    "gaussian-bandit": Kind(f"{_BANDITS}:GaussianBandit", read.gaussian),
    "categorical-bandit": Kind(f"{_BANDITS}:CategoricalBandit", read.categorical),
    "poisson-bandit": Kind(f"{_BANDITS}:PoissonBandit", read.arms, version=2, earlier=_SPLIT_TIES),
    "exponential-bandit": Kind(
        f"{_BANDITS}:ExponentialBandit", read.arms, version=2, earlier=_SPLIT_TIES
    ),
    "linear-bandit": Kind(f"{_BANDITS}:LinearBandit", read.linear),
    "logistic-bandit": Kind(f"{_BANDITS}:LogisticBandit", read.logistic, outcomes=_two),
    "joint-bandit": Kind(f"{_BANDITS}:JointBandit", read.joint, outcomes=_two),
    "logit-normal-bandit": Kind(
        f"{_BANDITS}:LogitNormalBandit", read.logit_normal, options={"rng": 0}, context_free=True
    ),
    "tabular-modes": Kind("problems.tabular:TabularModes", read.tabular, outcomes=_columns),
    "growing-chain": Kind("problems.chain:GrowingChain", read.growing),
    "gibbs-mdp": Kind("durable.gibbs:GibbsMDP", read.own),
    _LINEAR: Kind("durable.linear:LinearQuadratic", read.own),
}

# The general class of several kinds: what in it tells which it is.
_GENERAL: Final = {
    "Bernoulli": "bernoulli-bandit",
    "Gaussian": "gaussian-bandit",
    "NormalGamma": "gaussian-bandit",
    "Categorical": "categorical-bandit",
    "Poisson": "poisson-bandit",
    "Exponential": "exponential-bandit",
    "GaussianNoise": "linear-bandit",
    "Logit": "logistic-bandit",
}
# Why a class of ours has no kind.
_CODE: Final = {
    "SharedLinearBandit": "its phi is code",
    "ParametricModes": "its functions are code",
    "Bandit": "its family is code of your own",
    "ContextualBandit": "its link is code of your own",
    "LinearAgent": "it is an agent; or describe it as a LinearQuadratic(Q, R)",
    "ControlRule": "it is an agent, and may hold code",
}


def describe(problem: Any, schedule: Schedule = every_step) -> Description | None:
    """The problem and the schedule in plain values; None if it is of no kind here.

    >>> from bayescontrol import BernoulliBandit
    >>> describe(BernoulliBandit(["red", "blue"]))
    Description(name='bernoulli-bandit', settings={'arms': ['red', 'blue'], ...})
    """
    name = _kind_of(problem)
    if name is None:
        return None
    where = f"{type(problem).__module__}.{type(problem).__qualname__}"
    plain = schedule_plain(schedule, where)
    if needs_regression(schedule) and name != _LINEAR:
        raise ValueError(f"schedule={plain}: it is for a linear agent, {where} has no regression")
    return Description(name, KINDS[name].read(problem) | {"schedule": plain})


def why_not(problem: Any) -> str:
    """Why a problem is of no kind, where that is known.

    >>> from bayescontrol import SharedLinearBandit
    >>> why_not(SharedLinearBandit(2, lambda x, a: [x], features=1))
    'its phi is code'
    """
    for cls in type(problem).__mro__:
        if _is_ours(cls) and cls.__name__ in _CODE:
            return _CODE[cls.__name__]
        if any(kind.home.partition(":")[2] == cls.__name__ for kind in KINDS.values()):
            return f"it is a {cls.__name__} with code of your own"
    return ""


def _kind_of(problem: Any) -> str | None:
    """By the class itself: a class derived from it may do anything."""
    cls = type(problem)
    if not _is_ours(cls):
        return None
    if cls.__name__ == "MDPModes":
        return "tabular-modes"
    if cls.__name__ in ("Bandit", "ContextualBandit"):
        part = type(problem.family if cls.__name__ == "Bandit" else problem.link)
        return _GENERAL.get(part.__name__) if _is_ours(part) else None
    for name, kind in KINDS.items():
        if cls.__name__ == kind.home.partition(":")[2] and cls is kind.cls():
            return name
    return None


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("bayescontrol.")

"""Models by name, version and settings. A log stores these, never code.

    log:     "bernoulli-bandit", version 1, {"arms": ["red", "blue"], "prior": [[1, 1], [1, 1]]}
             with the schedule MinimumDwell(4, Every(3)) as ["MinimumDwell", 4, ["Every", 3]], and
             the temperature of draws
    code:    a problem of this library describes itself; for your own class write
             named_model("my-modes", version=3, build=lambda: ControlRule(...))

A log can only be opened with the model that wrote it. If you change what a model does, give it a
new version. A problem class declares its kind, see `_support.description`; a problem that holds
functions of the user has no kind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Final, NamedTuple

from bayescontrol import bandits, schedules
from bayescontrol._support.description import ModelKind, kind_of
from bayescontrol._support.temperature import as_temperature
from bayescontrol.bandits.roster import Arms
from bayescontrol.beliefs.change_points import HAZARDS
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created
from bayescontrol.durable.plain import as_stored, same_value, short_repr
from bayescontrol.errors import BayesControlError, InvalidTable, MissingCapability, ModelMismatch
from bayescontrol.finite.chain import GrowingChain
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.lqr.problem import LinearQuadratic
from bayescontrol.mdp.dirichlet import DirichletMDP
from bayescontrol.mdp.gibbs import GibbsMDP
from bayescontrol.pomdp.modes import POMDPModes
from bayescontrol.schedules import Schedule
from bayescontrol.trees.problem import ContextTrees

# -- the kinds of problems that logs can store ----------------------------------------------------


class ChangingModel(Changing):
    """A changing problem from its stored settings."""

    model_kind: ClassVar[ModelKind] = Changing.model_kind

    def __init__(
        self, problem: str, settings: Mapping[str, Any], hazards: Sequence[float] = HAZARDS,
        hazard_prior: Sequence[float] | None = None, starts: int = 64, window: int = 100,
        per_arm: bool = False,
    ) -> None:  # fmt: skip
        others = (k for k in KINDS.values() if k not in (ChangingModel, PooledModel))
        can_change = [k for k in others if hasattr(k, "changing")]
        options = {"per_arm": True} if per_arm else {}  # a plant has no arms, and no such option
        changing = _problem_class(problem, can_change)(**settings).changing(
            hazards=hazards, hazard_prior=hazard_prior, starts=starts, window=window, **options
        )
        vars(self).update(vars(changing))


def _problem_class(problem: str, possible: Iterable[Any]) -> Any:
    """Return the one of these problem classes that has this stored name."""
    classes = {each.model_kind.name: each for each in possible}
    if problem not in classes:
        raise InvalidTable(f"problem={problem!r}: expected one of {', '.join(classes)}")
    return classes[problem]


class PooledModel(bandits.Pooled):
    """A pooled bandit from its stored settings."""

    model_kind: ClassVar[ModelKind] = bandits.Pooled.model_kind

    def __init__(self, problem: str, arms: Arms) -> None:
        vars(self).update(vars(_problem_class(problem, bandits.FAMILIES)(arms).pooled()))


class DrawsModel(bandits.DrawsBandit):
    """A bandit with draws from its stored settings. Its belief keeps no events: the log has them.

    `DurableAgent.refit` replaces the draws.
    """

    model_kind: ClassVar[ModelKind] = bandits.DrawsBandit.model_kind
    keep_events: ClassVar[bool] = False

    def __init__(
        self, problem: str, settings: Mapping[str, Any], draws: Sequence[Sequence[float]],
        log_weights: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        bandit = _problem_class(problem, bandits.FAMILIES)(**settings)
        super().__init__(bandit, draws, log_weights)


# Bandits with independent arms come from `bandits.families`.
_PROBLEMS: Final[tuple[Any, ...]] = (
    *bandits.FAMILIES, bandits.LinearBandit, bandits.LogisticBandit, bandits.JointBandit,
    bandits.LogitNormalBandit, TabularModes, GrowingChain, GibbsMDP, DirichletMDP, LinearQuadratic,
    ChangingModel, DrawsModel, PooledModel, POMDPModes, ContextTrees,
)  # fmt: skip
#: The problem classes by the stored names of their kinds.
KINDS: Final[Mapping[str, Any]] = {problem.model_kind.name: problem for problem in _PROBLEMS}
#: The settings of draws, which every kind has.
OF_DRAWS: Final = ("schedule", "temperature")
#: The schedules of all kinds by their stored names.
_SCHEDULES: Final[Mapping[str, Any]] = {
    "every_step": schedules.every_step,
    "doubling": schedules.doubling,
    "growing": schedules.growing,
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


def stored_schedule(schedule: Schedule, kind: ModelKind) -> list[Any]:
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


def restored_schedule(stored: list[Any], kind: ModelKind) -> Schedule:
    """Return the schedule with this stored name and these arguments.

    >>> restored_schedule(["Every", 3], GibbsMDP.model_kind)
    Every(k=3)
    """
    try:
        name, *arguments = stored
        found = {**_SCHEDULES, **kind.schedules}[name]
        if found is schedules.MinimumDwell:  # its second argument is a schedule
            arguments[1] = restored_schedule(arguments[1], kind)
        if arguments and not isinstance(found, type):
            raise ValueError("a function takes no parameters")  # noqa: TRY301
        schedule: Schedule = found(*arguments) if isinstance(found, type) else found
    except (BayesControlError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise ValueError(
            f"schedule={short_repr(stored)} is invalid for a {kind.name}: give its name and its "
            'parameters, as ["every_step"] or ["Every", 3]'
        ) from error
    return schedule


# -- models ---------------------------------------------------------------------------------------


class Model(NamedTuple):
    """A model as the log describes it, and a function that builds the agent before event 1.

    >>> from bayescontrol import BernoulliBandit
    >>> as_model(BernoulliBandit(["red", "blue"])).name
    'bernoulli-bandit'
    """

    name: str
    version: int
    settings: Mapping[str, Any]
    build: Callable[[], Any]
    #: Whether feedback may come late, in any order or never; None derives it from the agent.
    accepts_late_feedback: bool | None = None
    #: Whether the agent uses no situation. The driver derives it for independent arms.
    context_free: bool = False

    def driver(self) -> Driver:
        """Return a driver of a new agent."""
        return Driver(self.build(), self.accepts_late_feedback, self.context_free)


def named_model(
    name: str,
    *,
    version: int,
    build: Callable[[], Any],
    settings: Mapping[str, Any] | None = None,
    accepts_late_feedback: bool | None = None,
) -> Model:
    """Describe your own model: `build()` returns a new agent, the same each time.

    `settings` are plain values that must be the same when the log is opened again.
    `accepts_late_feedback` says whether feedback may come late, in any order or never. By default
    it may if the agent is a `ControlRule` whose situation never changes.

    >>> from bayescontrol import BernoulliBandit
    >>> model = named_model("shop", version=3, build=lambda: BernoulliBandit(2).agent())
    >>> model.driver().accepts_late_feedback
    True
    """
    value: Any = name
    if not isinstance(value, str) or not value or type(version) is not int or version < 1:
        raise ValueError(
            f"name={name!r}, version={version!r}: expected a name and a positive integer"
        )
    if name in KINDS:
        raise ValueError(f"name={name!r}: this is a built-in model; choose another name")
    if not callable(build):
        raise TypeError(f"build={build!r} must be a function that returns an agent")
    plain = as_stored(dict(settings or {}), "a setting of the model")
    return Model(name, version, plain, build, accepts_late_feedback)


def as_model(problem: Any, schedule: Schedule | None = None, temperature: float = 1.0) -> Model:
    """Return the model of a problem of this library, or the model itself.

    By default the schedule is that of `problem.agent()`.

    >>> from bayescontrol import LinearBandit
    >>> as_model(LinearBandit(["red", "blue"], features=2)).settings["features"]
    2
    """
    if isinstance(problem, Model):
        if schedule is not None or temperature != 1.0:
            raise ValueError("schedule, temperature: set them in `build` of the named model")
        return problem
    kind = kind_of(problem)
    if kind is None:
        why = why_not_stored(problem)
        raise MissingCapability(
            f"{problem!r} cannot be stored in a log{why and f' ({why})'}: pass "
            'named_model("mine", version=1, build=make_agent) instead, where make_agent() returns '
            "a new agent"
        )
    draws = {
        "schedule": stored_schedule(schedule or problem.agent().schedule, kind),
        "temperature": as_temperature(temperature),
    }
    return _built_in(kind.name, problem.settings() | draws, problem)


def _built_in(name: str, settings: Mapping[str, Any], problem: Any = None) -> Model:
    """Return the built-in model with these settings, or of a problem that has them."""
    kind = KINDS[name].model_kind
    settings = as_stored(dict(settings), f"a setting of {name}")
    schedule = restored_schedule(settings["schedule"], kind)
    if type(problem) is not KINDS[name]:  # None, or of a more general class
        problem = KINDS[name](**{s: v for s, v in settings.items() if s not in OF_DRAWS})
    return Model(
        name, kind.version, settings,
        lambda: problem.agent(schedule=schedule, temperature=settings["temperature"]),
        context_free=kind.context_free,
    )  # fmt: skip


def model_of(created: Created) -> Model:
    """Return the built-in model that the log describes; raise `ModelMismatch` if it is unknown."""
    if created.model not in KINDS:
        raise ModelMismatch(
            f"the log has the model {created.model!r}, version {created.version}, which is not "
            "built in: open it with named_model(…)"
        )
    return as_logged(created, _built_in(created.model, created.settings))


def as_logged(created: Created, model: Model) -> Model:
    """Return the model if the log was written with it; else raise `ModelMismatch`."""
    differences = []
    if created.model != model.name:
        differences.append(f"model {created.model!r}, not {model.name!r}")
    if created.version != model.version:
        differences.append(f"version {created.version}, not {model.version}")
    if created.model == model.name:
        then, now = created.settings, model.settings
        for name in sorted(then.keys() | now.keys()):
            if name in then and name in now and same_value(then[name], now[name]):
                continue
            before = short_repr(then[name], 60) if name in then else "not set"
            after = short_repr(now[name], 60) if name in now else "not set"
            differences.append(f"{name}: {before} in the log, {after} now")
    if differences:
        raise ModelMismatch(
            f"the log was written with another model: {'; '.join(differences)}; open it with that "
            "model, or start a log with another name"
        )
    if created.fingerprint is not None and created.fingerprint != model.driver().fingerprint():
        raise ModelMismatch(
            f"model {model.name!r} version {model.version} has changed since the log was created: "
            "its modes, their names, their prior or their update differ; give the changed model a "
            "new version and a new log"
        )
    return model

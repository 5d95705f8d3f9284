"""Models by name, version and settings: what a log says of its agent, never code.

    log:     "bernoulli-bandit", version 2, {"arms": ["red", "blue"], "prior": [[1, 1], [1, 1]]}
    code:    a problem of this library describes itself; for a class of your own write
             named_model("my-modes", version=3, build=lambda: ControlRule(...))

A log opens with the model that it was written with and with no other: whoever changes what a
model does gives it a new version. A problem of this library continues a log of an earlier version
as that version did.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created
from bayescontrol.durable.kinds import KINDS, restored_schedule, stored_schedule, why_not_stored
from bayescontrol.durable.plain import as_plain, canonical, kept, same_value
from bayescontrol.errors import MissingCapability, ModelMismatch
from bayescontrol.problems.description import kind_of
from bayescontrol.schedules import Schedule, every_step


class Model(NamedTuple):
    """What builds the agent as it was before the first event, and what the log says of it.

    >>> from bayescontrol import BernoulliBandit
    >>> as_model(BernoulliBandit(["red", "blue"])).name
    'bernoulli-bandit'
    """

    name: str
    version: int
    settings: Mapping[str, Any]
    build: Callable[[], Any]
    #: Whether feedback stands alone; None: what the agent looks like.
    alone: bool | None = None
    #: Whether no situation says anything to it; of independent arms the agent tells.
    context_free: bool = False

    def driver(self) -> Driver:
        """The agent as new, in the hands of a log."""
        return Driver(self.build(), self.alone, self.context_free)


def named_model(
    name: str,
    *,
    version: int,
    build: Callable[[], Any],
    settings: Mapping[str, Any] | None = None,
    alone: bool | None = None,
) -> Model:
    """A model of your own: `build()` makes the agent as new, each time alike.

    `settings` are plain values that must be the same when the log is opened again. `alone` says
    whether feedback may come late, in any order or never; without it, it may if the agent is a
    `ControlRule` whose situation stays.

    >>> from bayescontrol import BernoulliBandit
    >>> model = named_model("shop", version=3, build=lambda: BernoulliBandit(2).agent())
    >>> model.driver().alone
    True
    """
    given: Any = name
    if not isinstance(given, str) or not given or type(version) is not int or version < 1:
        raise ValueError(f"name={name!r}, version={version!r}: a name, and a number from 1")
    if name in KINDS:
        raise ValueError(f"name={name!r}: the library's own model is called so; choose another")
    if not callable(build):
        raise TypeError(f"build={build!r} must be a function that makes the agent")
    plain = kept(dict(settings or {}), "a setting of the model")
    return Model(name, version, plain, build, alone)


def as_model(problem: Any, schedule: Schedule = every_step) -> Model:
    """The model of a problem of this library, or the model itself.

    >>> from bayescontrol import LinearBandit
    >>> as_model(LinearBandit(["red", "blue"], features=2)).settings["features"]
    2
    """
    if isinstance(problem, Model):
        if schedule is not every_step:
            raise ValueError("schedule: of a model it is given where the agent is built")
        return problem
    kind = kind_of(problem)
    if kind is None:
        why = why_not_stored(problem)
        raise MissingCapability(
            f"{problem!r} cannot describe itself in a log{why and f' ({why})'}: give it a name, "
            'named_model("mine", version=1, build=lambda: the agent)'
        )
    settings = problem.settings() | {"schedule": stored_schedule(schedule, kind)}
    return _built_in(kind.name, settings, kind.version, problem)


def _built_in(name: str, given: Mapping[str, Any], version: int, problem: Any = None) -> Model:
    """Return the built-in model in this version, or in the present one if it is unknown."""
    kind = KINDS[name].model_kind
    settings = kept(dict(given), f"a setting of {name}")
    schedule = restored_schedule(settings["schedule"], kind)
    if type(problem) is not KINDS[name]:  # not given, or of a more general class
        problem = KINDS[name](**{s: v for s, v in settings.items() if s != "schedule"})
    if version not in kind.versions:
        version = kind.version
    return Model(
        name, version, settings,
        lambda: problem.agent(schedule=schedule, **kind.versions[version]),
        context_free=kind.context_free,
    )  # fmt: skip


def model_of(created: Created) -> Model:
    """The model that the log itself describes, if it is one of this library's.

    >>> from bayescontrol import BernoulliBandit
    >>> model = as_model(BernoulliBandit(["red", "blue"]))
    >>> made = Created(seq=1, format=1, model=model.name, version=model.version,
    ...                settings=dict(model.settings), seed=0, time=0.0)
    >>> model_of(made).build().belief
    ArmsBelief(Bernoulli(), 2 arms after 0 observations: red 0.5 (0), blue 0.5 (0))
    """
    if created.model not in KINDS:
        raise ModelMismatch(
            f"the log is of model {created.model!r}, version {created.version}, which is not this "
            "library's: open it with named_model(…)"
        )
    model = _built_in(created.model, created.settings, created.version)
    require_same(created, model)
    return model


def as_logged(created: Created, model: Model) -> Model:
    """The model in the version of this log; `ModelMismatch` if the log is not of this model.

    Only a model of this library has more than one version that can be opened.

    >>> from bayescontrol import BernoulliBandit
    >>> model = as_model(BernoulliBandit(["red", "blue"]))
    >>> made = Created(seq=1, format=1, model=model.name, version=1,
    ...                settings=dict(model.settings), seed=0, time=0.0)
    >>> model.version, as_logged(made, model).version
    (2, 1)
    """
    same_kind = model.name in KINDS and created.model == model.name
    if same_kind and created.version != model.version:
        model = _built_in(model.name, model.settings, created.version)
    require_same(created, model)
    require_alike(created, model)
    return model


def require_same(created: Created, model: Model) -> None:
    """`ModelMismatch`, which says what differs, unless the log was written with this model.

    >>> from bayescontrol import BernoulliBandit
    >>> made = Created(seq=1, format=1, model="shop", version=2, settings={}, seed=0, time=0.0)
    >>> require_same(made, named_model("shop", version=3, build=BernoulliBandit(2).agent))
    Traceback (most recent call last):
    bayescontrol.errors.ModelMismatch: the log was written with another model: version 2, not 3; ...
    """
    differ = []
    if created.model != model.name:
        differ.append(f"model {created.model!r}, not {model.name!r}")
    if created.version != model.version:
        differ.append(f"version {created.version}, not {model.version}")
    if created.model == model.name:
        for name in sorted(created.settings.keys() | model.settings.keys()):
            if name not in model.settings:
                differ.append(f"{name} = {_shown(created.settings[name])}, now not given")
            elif name not in created.settings:
                differ.append(f"no {name}, now {_shown(model.settings[name])}")
            elif not same_value(created.settings[name], model.settings[name]):
                then, now = created.settings[name], model.settings[name]
                differ.append(f"{name} = {_shown(then)}, not {_shown(now)}")
    if differ:
        raise ModelMismatch(
            f"the log was written with another model: {'; '.join(differ)}; open it with the one "
            "that it was written with, or begin a new log under another name"
        )


def require_alike(created: Created, model: Model) -> None:
    """`ModelMismatch` if the agent is not what it was, though its name and version are.

    >>> from bayescontrol import BernoulliBandit
    >>> made = Created(seq=1, format=1, model="shop", version=3, settings={}, seed=0, time=0.0,
    ...                fingerprint="0123")
    >>> require_alike(made, named_model("shop", version=3, build=BernoulliBandit(2).agent))
    Traceback (most recent call last):
    bayescontrol.errors.ModelMismatch: model 'shop' version 3 is not what it was when ...
    """
    if created.fingerprint not in (None, model.driver().fingerprint()):
        raise ModelMismatch(
            f"model {model.name!r} version {model.version} is not what it was when the log was "
            "made: its modes, their names or their prior have changed; give what it is now a new "
            "version, and a new log"
        )


def _shown(value: Any) -> str:
    text = canonical(as_plain(value, "a setting")).decode()
    return text if len(text) <= 60 else text[:57] + "…"

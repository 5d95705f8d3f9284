"""The model that a caller asks for, by its name and its settings.

    "bernoulli-bandit", {"arms": ["red", "blue"]}    ->  the library's own
    "mine", {}                                       ->  one that the server was started with

What is said of wrong settings is said of the settings, not of the code that they reach.
"""

import inspect
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.durable.kinds import KINDS, Kind
from bayescontrol.durable.models import Model, as_model
from bayescontrol.durable.plain import same_value
from bayescontrol.durable.plain_schedules import unschedule
from bayescontrol.errors import BayesControlError
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.serve.problems import BadSettings, UnknownModel

#: Arms, actions, states, features, sweeps or tries that can be asked for over HTTP.
_MOST: Final = 1_000
_COUNTS: Final = ("arms", "actions", "states", "features", "sweeps", "partial", "tries")
_PARTICLES: Final = 10_000
#: Numbers in the belief of a model that is asked for over HTTP: a few words could ask for any.
_NUMBERS: Final = 1_000_000
#: Pairs of a state and an action, for each of which a chain keeps several numbers.
_PAIRS: Final = 100_000
#: Pairs that a chain visits for one decision, in all its sweeps.
_VISITS: Final = 10_000_000
#: States and inputs of a linear plant, whose cube is the work of one try.
_ORDER: Final = 100
_OF_SETTINGS: Final = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
#: How the library begins what it says of a value: its name and the value.
_NAMED: Final = re.compile(r"(\w+)(\[[^]]*\])*\s?=")


def described(name: str, settings: Mapping[str, Any], models: Mapping[str, Model]) -> Model:
    """The model of that name: the caller's own, or the library's with these settings.

    >>> described("bernoulli-bandit", {"arms": ["red", "blue"]}, {}).settings["arms"]
    ['red', 'blue']
    >>> described("bernoulli-bandit", {"legs": 2}, {})
    Traceback (most recent call last):
    bayescontrol.serve.problems.BadSettings: model 'bernoulli-bandit' has no setting 'legs': ...
    """
    if name in models:
        model = models[name]
        if settings and not same_value(dict(settings), dict(model.settings)):
            raise BadSettings(f"model {name!r} is made where the server is: it takes no settings")
        return model
    kind = KINDS.get(name)
    if kind is None:
        raise UnknownModel(f"no model {name!r}: there are {', '.join([*models, *KINDS])}")
    _require_known(name, kind, settings)
    _require_small(settings)
    schedule = _schedule(settings)
    try:
        model = as_model(kind.problem(settings), schedule)
        model.driver()
    except BayesControlError as error:
        raise BadSettings(f"model {name!r}: {error}") from None
    except _OF_SETTINGS as error:
        raise BadSettings(f"model {name!r}: {_said(error, settings)}") from None
    return model


def _require_known(name: str, kind: Kind, settings: Mapping[str, Any]) -> None:
    parameters = inspect.signature(kind.cls()).parameters
    known = [*parameters, "schedule"]
    for setting in settings:
        if setting not in known:
            raise BadSettings(
                f"model {name!r} has no setting {setting[:80]!r}: it has {', '.join(known)}"
            )
    for setting, parameter in parameters.items():
        if parameter.default is parameter.empty and setting not in settings:
            raise BadSettings(f"model {name!r}: the setting {setting!r} is missing")


def _require_small(settings: Mapping[str, Any]) -> None:
    for setting in _COUNTS:
        if (size := _size(settings.get(setting))) > _MOST:
            raise BadSettings(f"{size} {setting}: over HTTP up to {_MOST:,}")
    if (size := _size(settings.get("particles"))) > _PARTICLES:
        raise BadSettings(f"{size} particles: over HTTP up to {_PARTICLES:,}")
    for told, size, most in _products(settings):
        if size > most:
            raise BadSettings(f"{told} is {size:,}: over HTTP up to {most:,}")
    costs = settings.get("costs")
    if isinstance(costs, dict):
        n, m = (_size(costs.get(name)) for name in ("states", "inputs"))
        entries = (n * (n + 1) + m * (m + 1)) // 2
        if entries**2 > _NUMBERS:
            raise BadSettings(
                f"costs of {n} states and {m} inputs have {entries:,} unknown entries: over HTTP "
                f"up to {math.isqrt(_NUMBERS):,}"
            )


def _products(settings: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """What several settings ask for together: its name, its size, and how much there may be."""
    size = {name: _size(given) for name, given in settings.items()}
    arms = size.get("arms", 0)
    yield "arms times features squared", arms * size.get("features", 0) ** 2, _NUMBERS
    yield "arms times values", arms * size.get("values", 0), _NUMBERS
    yield "particles times arms", size.get("particles", 0) * size.get("mean", 0), _NUMBERS
    pairs = size.get("states", 0) * size.get("actions", 0)
    yield "states times actions", pairs, _PAIRS
    yield "states times actions times sweeps", pairs * size.get("sweeps", 1), _VISITS
    yield "states plus inputs", size.get("Q", 0) + size.get("R", 0), _ORDER


def _size(given: Any) -> int:
    if isinstance(given, np.ndarray):
        return given.size
    if isinstance(given, list | tuple | dict):
        return len(given)
    return max(given, 0) if isinstance(given, int) else 0


def _schedule(settings: Mapping[str, Any]) -> Schedule:
    if "schedule" not in settings:
        return every_step
    try:
        return unschedule(settings["schedule"])
    except (BayesControlError, *_OF_SETTINGS):
        shown = str(settings["schedule"])[:80]
        raise BadSettings(
            f'schedule {shown}: write its name and its numbers, as ["every_step"] or ["Every", 3]'
        ) from None


def _said(error: Exception, settings: Mapping[str, Any]) -> str:
    """What names a setting and its value; of what only Python says, that it is wrong."""
    text = str(error)
    named = _NAMED.match(text)
    if named and named[1] in settings:
        return text
    return f"no agent can be made of the settings {', '.join(settings)}: see what each is"

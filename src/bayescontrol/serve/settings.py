"""The model that a caller asks for, by its name and its settings.

    "bernoulli-bandit", {"arms": ["red", "blue"]}    ->  the library's own
    "mine", {}                                       ->  one that the server was started with

What is said of wrong settings is said of the settings, not of the code that they reach.
"""

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

from bayescontrol.durable.kinds import KINDS, Kind, unschedule
from bayescontrol.durable.models import Model, as_model
from bayescontrol.durable.plain import same_value
from bayescontrol.errors import BayesControlError
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.serve.problems import BadSettings, UnknownModel

__all__ = ["described"]

#: Arms, actions, states or features that can be asked for over HTTP.
_MOST: Final = 1_000
_COUNTS: Final = ("arms", "actions", "states", "features")
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
    for setting in _COUNTS:
        given = settings.get(setting)
        size = given if isinstance(given, int) else len(given) if isinstance(given, list) else 0
        if size > _MOST:
            raise BadSettings(f"{size} {setting}: over HTTP up to {_MOST}")
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
    """What the library itself says of a setting; of what Python says, only that it is wrong."""
    text = str(error)
    named = _NAMED.match(text)
    if isinstance(error, BayesControlError) or (named and named[1] in settings):
        return text
    return f"no agent can be made of the settings {', '.join(settings)}: see what each is"

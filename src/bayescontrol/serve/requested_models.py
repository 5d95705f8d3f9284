"""The model of a new agent, by its name and its settings in JSON.

    "bernoulli-bandit", {"arms": ["red", "blue"]}    a built-in kind, see `durable.models`
    "mine", {}                                       a model that the server was started with

Errors name the settings, not the code that they reach.

Before a server is ready it compiles the code of its kinds of models. Opening an agent compiles what
a decision needs, if the agent takes no situation and its log was folded; `warm_up_kind` runs an
example of the kind from creation to snapshot. The user's own models have no example.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from typing import Final

import numpy as np

from bayescontrol._support.description import ModelKind, SettingDoc
from bayescontrol.durable.models import KINDS, OF_DRAWS, Model, as_model, restored_schedule
from bayescontrol.durable.opening import open_agent
from bayescontrol.durable.plain import from_plain, same_value
from bayescontrol.errors import BayesControlError
from bayescontrol.serve.http_errors import BadSettings, UnknownModel
from bayescontrol.serve.values import value_of

#: Every kind of model has these settings.
SCHEDULE: Final = SettingDoc(
    '["every_step"], ["doubling"], ["growing"], ["Every", k], ["Geometric", p], '
    '["WhenSituationReturns", home], ["MinimumDwell", steps, schedule]; '
    'for linear-quadratic also ["DeterminantDoubling", factor], for dirichlet-mdp also ["tsde"]',
    "When to draw a new mode from the posterior. Default: at every step for most problems.",
)
TEMPERATURE: Final = SettingDoc(
    "number from 0.001 to 1000",
    "Below 1, draws are closer to the mean, and the agent explores less. Default: 1.",
)
_SETTING_ERRORS: Final = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
#: Messages of the library about a value begin with its name and an equals sign.
_NAMES_A_VALUE: Final = re.compile(r"(\w+)(\[[^]]*\])*\s?=")


def requested_model(name: str, plain: Mapping[str, object], models: Mapping[str, Model]) -> Model:
    """Return the server's own model of that name, or the built-in one with these JSON settings.

    >>> requested_model("bernoulli-bandit", {"arms": ["red", "blue"]}, {}).settings["arms"]
    ['red', 'blue']
    >>> requested_model("bernoulli-bandit", {"legs": 2}, {})
    Traceback (most recent call last):
    bayescontrol.serve.http_errors.BadSettings: model 'bernoulli-bandit' has no setting 'legs': ...
    """
    settings = {s: value_of(v, f"setting {s}", BadSettings) for s, v in plain.items()}
    if name in models:
        model = models[name]
        if settings and not same_value(settings, dict(model.settings)):
            raise BadSettings(f"model {name!r} is defined by the server: it takes no settings")
        return model
    if name not in KINDS:
        raise UnknownModel(f"no model {name!r}: give one of {', '.join([*models, *KINDS])}")
    kind = KINDS[name].model_kind
    _require_known(kind, settings)
    _require_small(kind, settings)
    try:
        if "settings" in kind.settings and settings["problem"] in KINDS:  # also the problem inside
            _require_small(KINDS[settings["problem"]].model_kind, settings["settings"])
        schedule = None
        if "schedule" in settings:
            schedule = restored_schedule(settings.pop("schedule"), kind)
        temperature = settings.pop("temperature", 1.0)
        model = as_model(KINDS[name](**settings), schedule, temperature)
        model.driver()
    except BayesControlError as error:
        raise BadSettings(f"model {name!r}: {error}") from None
    except _SETTING_ERRORS as error:
        raise BadSettings(f"model {name!r}: {_explained(error, settings)}") from None
    return model


def required_settings(name: str) -> set[str]:
    """Return the settings of a built-in kind that have no default."""
    parameters = inspect.signature(KINDS[name]).parameters
    return {s for s, parameter in parameters.items() if parameter.default is parameter.empty}


def _require_known(kind: ModelKind, settings: Mapping[str, object]) -> None:
    """Raise `BadSettings` for a setting that the model does not have, or that is missing."""
    known = [*kind.settings, *OF_DRAWS]
    for setting in settings:
        if setting not in known:
            raise BadSettings(
                f"model {kind.name!r} has no setting {setting[:80]!r}: it has {', '.join(known)}"
            )
    required = required_settings(kind.name)
    for setting in kind.settings:
        if setting in required and setting not in settings:
            raise BadSettings(f"model {kind.name!r}: the setting {setting!r} is missing")


def _require_small(kind: ModelKind, settings: Mapping[str, object]) -> None:
    """Raise `BadSettings` if a model of this size may not be created over HTTP."""
    sizes: dict[str, int] = defaultdict(int)
    for setting, value in settings.items():
        sizes[setting] = _size(value)
        if isinstance(value, dict):
            sizes |= {f"{setting}.{name}": _size(v) for name, v in value.items()}
    for setting, doc in kind.settings.items():
        if doc.largest is not None and sizes[setting] > doc.largest:
            raise BadSettings(f"{sizes[setting]} {setting}: over HTTP give up to {doc.largest:,}")
    for limit in kind.limits:
        if (size := limit.size(sizes)) > limit.largest:
            raise BadSettings(f"{limit.what} is {size:,}: over HTTP use at most {limit.largest:,}")


def _size(value: object) -> int:
    """Return the length of a list, the number of entries of an array, or a number itself."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, list | tuple | dict):
        return len(value)
    return max(value, 0) if isinstance(value, int) else 0


def _explained(error: Exception, settings: Mapping[str, object]) -> str:
    """Return the error's message if it begins with a setting, else a message for HTTP clients."""
    text = str(error)
    named = _NAMES_A_VALUE.match(text)
    if named and named[1] in (*settings, *OF_DRAWS):
        return text
    return f"the settings {', '.join(settings)} are invalid: see their documentation at /docs"


# -- warming up ------------------------------------------------------------------------------------


def warm_up_kind(name: str) -> None:
    """Compile the kernels that agents of this kind of model need.

    >>> warm_up_kind("bernoulli-bandit")
    """
    kind = KINDS[name].model_kind
    model = requested_model(name, kind.example, {})
    with closing(open_agent("sqlite:///:memory:", name, model, seed=0)) as agent:
        decision = agent.act(from_plain(kind.situation), key="k")
        agent.observe(decision, from_plain(kind.observation))
        agent.posterior()
        agent.snapshot()

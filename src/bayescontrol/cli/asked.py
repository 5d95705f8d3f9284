"""The class of modes that `bayescontrol check` is asked about: by name, or out of a file."""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayescontrol.cli.screen import say
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.registry import module_at
from bayescontrol.problems import classes
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.problems.tabulate import tabulate
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Every, every_step


class ModesBroke(BayesControlError, RuntimeError):
    """A user's own code raised while its modes were put in tables.

    >>> issubclass(ModesBroke, RuntimeError)
    True
    """


@dataclass(frozen=True)
class Asked:
    """Tables, for how many steps the agent holds a mode, and what the verdict leaves out of it.

    >>> ask("chain", {"k": "2"}).modes
    TabularModes(2 modes, 3 situations, 2 actions, 2 observations)
    """

    modes: TabularModes
    hold: int = 1
    note: str = ""


def ask(name: str, settings: Mapping[str, str], limit: int = 10_000) -> Asked:
    """The class of this name, or file.py:attribute (file.py alone: its `modes`).

    >>> ask("bias-grid", {"arms": "1"}).modes
    TabularModes(3 modes, 1 situation, 1 action, 2 observations)
    """
    path, colon, attribute = name.rpartition(":")
    if not (colon and path.endswith(".py")):
        path, attribute = name, "modes"
    if not path.endswith(".py"):
        return Asked(classes.make(name, **settings))
    module = module_at(Path(path))
    if not hasattr(module, attribute):
        raise classes.UnknownClass(
            f"{path} has no {attribute!r}: give it one, or write {path}:ATTRIBUTE"
        )
    found = getattr(module, attribute)
    is_function = callable(found) and not isinstance(found, type)
    if settings and not is_function:
        raise classes.InvalidSetting(f"{attribute} is no function: there is nothing to --set in it")
    try:
        made = classes.called(attribute, found, settings) if is_function else found
        return Asked(tabulate(made, limit=limit), *_schedule(made))
    except BayesControlError:
        raise
    except Exception as error:  # whatever a user's own modes do
        say(traceback.format_exc())
        raise ModesBroke(f"{name} broke: {type(error).__name__}: {error}") from error


def _schedule(made: Any) -> tuple[int, str]:
    """How long the agent holds a mode, as far as it can be simulated here."""
    schedule = made.schedule if isinstance(made, ControlRule) else every_step
    if schedule is every_step:
        return 1, ""
    if isinstance(schedule, Every):
        return schedule.k, ""
    return 1, f"The agent's schedule, {schedule!r}, is not simulated: a new mode at every step is."


def settings_of(texts: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE, each once.

    >>> settings_of(["levels=.1,.9"])
    {'levels': '.1,.9'}
    """
    for text in texts:
        if "=" not in text:
            raise classes.InvalidSetting(f"--set {text}: write --set KEY=VALUE")
    return dict(text.split("=", 1) for text in texts)

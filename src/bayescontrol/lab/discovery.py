"""Find experiments: registered ones by name, others as `file.py` or `file.py:attribute`.

Experiments are registered in the entry-point group `bayescontrol.experiments`, those of this
library as well as those of users.
"""

import importlib
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from bayescontrol._support.registered import load_registered
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Experiment

_GROUP: Final = "bayescontrol.experiments"


class UnknownExperiment(BayesControlError, LookupError):
    """No experiment has that name, or it cannot be loaded."""


class CannotImport(BayesControlError, ImportError):
    """A file does not exist, raises when it is imported, or its module name is in use."""


def names() -> tuple[str, ...]:
    """Return the names of all registered experiments, sorted, without importing them.

    >>> "chain" in names()
    True
    """
    return tuple(sorted({point.name for point in entry_points(group=_GROUP)}))


def find(name: str) -> Experiment[Any]:
    """Return the experiment registered under `name`, or the one at `file.py:attribute`.

    The attribute can be left out if the file has only one experiment.

    >>> find("no-such-study")
    Traceback (most recent call last):
    bayescontrol.lab.discovery.UnknownExperiment: no experiment is called 'no-such-study'...
    """
    file, attribute = split_name(name)
    if file is not None:
        return _load_file(file, attribute)[1]
    points = entry_points(group=_GROUP)
    value, found = load_registered("experiment", name, tuple(points), UnknownExperiment)
    if not isinstance(found, Experiment) or found.name != name:
        content = f"experiment {found.name!r}" if isinstance(found, Experiment) else repr(found)
        raise UnknownExperiment(
            f"the entry point {name!r} ({value}) holds {content}; "
            f"expected an Experiment called {name!r}"
        )
    return found


def from_anywhere(name: str) -> str:
    """Return a name with which `find` opens the same experiment from any folder.

    >>> from_anywhere("chain")
    'chain'
    >>> Path(from_anywhere("my_study.py:coin")).is_absolute()
    True
    """
    file, attribute = split_name(name)
    if file is None:
        return name
    return f"{file.resolve()}:{attribute or _load_file(file, attribute)[0]}"


def split_name(name: str) -> tuple[Path | None, str]:
    """Split `file.py:attribute` or `file.py`; a registered name has no file.

    >>> [split_name(name)[1] for name in ("my_study.py:coin", "my_study.py")], split_name("chain")
    (['coin', ''], (None, ''))
    """
    path, _, attribute = (name, "", "") if name.endswith(".py") else name.rpartition(":")
    return (Path(path), attribute) if path.endswith(".py") else (None, "")


def _load_file(path: Path, attribute: str) -> tuple[str, Experiment[Any]]:
    """Return the attribute of an experiment in a file, and the experiment.

    An empty `attribute` stands for the only experiment of the file.
    """
    try:
        module = module_at(path)
    except CannotImport as error:
        raise UnknownExperiment(str(error)) from error
    held = {key: value for key, value in vars(module).items() if isinstance(value, Experiment)}
    if attribute:
        found = getattr(module, attribute, None)
        if isinstance(found, Experiment):
            return attribute, found
        content = f"it has: {', '.join(held)}" if held else "it defines no Experiment"
        raise UnknownExperiment(f"{path} has no experiment {attribute!r}; {content}")
    if len(held) != 1:
        choices = ", ".join(f"{path}:{name}" for name in held)
        hint = f"choose one of {choices}" if held else "define an Experiment at the top of the file"
        raise UnknownExperiment(f"{path} has {len(held)} experiments: {hint}")
    return next(iter(held.items()))


def module_at(path: Path) -> ModuleType:
    """Import a file as a module under its own name."""
    if not path.is_file():
        raise CannotImport(f"there is no file {path}")
    # Worker processes import the module by name, so its folder must be on the path. The folder
    # comes last, so that other files in it cannot hide a library.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(path.stem)
    except Exception as error:  # a user's module may raise anything
        raise CannotImport(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if Path(getattr(module, "__file__", None) or "").resolve() != path.resolve():
        raise CannotImport(
            f"{path} is hidden by another module named {path.stem!r}: rename the file"
        )
    return module

"""A user's Python file as a module: file.py:attribute, for experiments and classes of modes."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from bayescontrol.errors import BayesControlError


class CannotImport(BayesControlError, ImportError):
    """A file that is not there, that raises when it is imported, or whose name is taken.

    >>> module_at(Path("nowhere.py"))
    Traceback (most recent call last):
    bayescontrol.lab.files.CannotImport: there is no file nowhere.py
    """


def module_at(path: Path) -> ModuleType:
    """The module in this file, imported under its own name.

    >>> import os, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "my_lonely_file.py").write_text("answer = 42")
    >>> module_at(folder / "my_lonely_file.py").answer
    42
    """
    if not path.is_file():
        raise CannotImport(f"there is no file {path}")
    # On the path, because worker processes import the module anew, by its name; last, so that
    # no file beside it can take the place of a library.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(path.stem)
    except Exception as error:  # whatever a user's module does while it is imported
        raise CannotImport(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if Path(getattr(module, "__file__", None) or "").resolve() != path.resolve():
        raise CannotImport(
            f"{path} is hidden by another module called {path.stem!r}: rename the file"
        )
    return module

"""The only door to Numba.

Kernels are compiled once and kept on disk. Numba invalidates a cached kernel when its own
file changes, but not when a kernel it calls does; so each module's kernels live in a folder
named after the contents of its source *and of all kernel sources that it imports*, and an old
cache can never be used by mistake.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

__all__ = ["cache_folder", "in_memory", "jit", "leaf"]

F = TypeVar("F", bound=Callable[..., object])
# Numba's settings are made at run time, and its option `_nrt` is unknown to type checkers.
_config: Any = config
_njit: Any = numba.njit
#: What Numba calls the type of a value, and its types.
typeof: Any = numba.typeof
types: Any = numba.types


_IMPORT = re.compile(rb"^from bayescontrol\.kernels\.(\w+) import", re.MULTILINE)


def _sources(module: str, seen: dict[str, bytes]) -> dict[str, bytes]:
    """The source of a kernel module and of those it imports, by name."""
    if module not in seen:
        seen[module] = (Path(__file__).parent / f"{module}.py").read_bytes()
        for imported in _IMPORT.findall(seen[module]):
            _sources(imported.decode(), seen)
    return seen


@lru_cache
def _digest(module: str) -> str:
    sources = _sources(module, {})
    return hashlib.sha256(b"\0".join(sources[name] for name in sorted(sources))).hexdigest()[:16]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _cache_folder() -> Path:
    named = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    home = Path(named) if named else Path.home() / ".cache"
    for root in (home / "bayescontrol", Path(tempfile.gettempdir()) / "bayescontrol"):
        if _writable(root):
            return root
    return Path(tempfile.mkdtemp(prefix="bayescontrol-"))


#: Where compiled kernels are kept. Empty or missing: the next run compiles.
cache_folder = _cache_folder()


def _compile(kernel: F, **options: bool) -> F:
    before = _config.CACHE_DIR
    module = kernel.__module__.rpartition(".")[2]
    _config.CACHE_DIR = str(cache_folder / f"{module}-{_digest(module)}")
    try:
        return cast("F", _njit(cache=True, error_model="numpy", **options)(kernel))
    finally:
        _config.CACHE_DIR = before


def jit(kernel: F) -> F:
    """Compile on first call, from disk where it was compiled before.

    No fast-math: a kernel gives the same bits on every machine, inside a loop and out of it.

    >>> from bayescontrol.kernels.elementary import exp
    >>> exp.py_func(0.0) == exp(0.0)
    True
    """
    return _compile(kernel)


def leaf(kernel: F) -> F:
    """As `jit`, for a kernel that allocates nothing: its arrays are not reference-counted.

    Counting is an atomic operation on either side of a call, and costs more than a draw.

    >>> from bayescontrol.kernels.xoshiro import uniform
    >>> uniform.targetoptions["_nrt"]
    False
    """
    return _compile(kernel, _nrt=False)


@lru_cache(maxsize=256)
def in_memory(function: Callable[..., Any], *, checked: bool = False) -> Any:
    """As `jit`, for a user's function or a closure over one, which Numba keeps nowhere.

    `checked`: an index beyond an array raises, where a kernel would read what lies there. What
    Numba has compiled already is taken as it is.

    >>> def double(x): return 2 * x
    >>> in_memory(double)(2) == in_memory(in_memory(double))(2) == 4
    True
    """
    if hasattr(function, "py_func"):
        return function
    return _njit(error_model="numpy", boundscheck=checked)(function)

"""The only door to Numba.

Kernels are compiled once and kept on disk. Numba invalidates a cached kernel when its own
file changes, but not when a kernel it calls does; so the cache lives in a folder named
after the contents of *all* kernel sources, and an old cache can never be used by mistake.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

__all__ = ["cache_folder", "jit", "leaf"]

F = TypeVar("F", bound=Callable[..., object])
# Numba's settings are made at run time, and its option `_nrt` is unknown to type checkers.
_config: Any = config
_njit: Any = numba.njit


def _digest() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(s.read_bytes() for s in sources)).hexdigest()[:16]


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
            return root / _digest()
    return Path(tempfile.mkdtemp(prefix="bayescontrol-"))


#: Where compiled kernels are kept. Empty or missing: the next run compiles.
cache_folder = _cache_folder()


def _compile(kernel: F, **options: bool) -> F:
    before = _config.CACHE_DIR
    _config.CACHE_DIR = str(cache_folder)
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

"""Tables on disk: a digest, the key, the numbers. What the digest does not cover is not believed.

    file = SHA-256 of the rest | key, a line of text | ν and radius, little-endian doubles

The key holds what was asked for and a digest of the code that answers. A file is there whole or not
at all; where the folder cannot be written there is no file, and the table is made each time.
"""

import ast
import contextlib
import hashlib
import os
import tempfile
import warnings
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.baselines.gittins.passes import Problem

_DIGEST = 32
#: The module that makes tables, and the packages in which its sources lie.
_MAKER = "bayescontrol.baselines.gittins.table"
_PACKAGES = ("bayescontrol.baselines.gittins.", "bayescontrol.kernels.")


class DamagedCache(UserWarning):
    """A file in the cache is torn, altered or another table's; it is not used, but made anew.

    >>> issubclass(DamagedCache, UserWarning)
    True
    """


def folder() -> Path:
    """Beside the compiled kernels: `$NUMBA_CACHE_DIR`, `$XDG_CACHE_HOME` or `~/.cache`.

    >>> folder().parts[-2:]
    ('bayescontrol', 'gittins')
    """
    named = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "bayescontrol" / "gittins"


def _imports(source: bytes) -> set[str]:
    """The dotted names that a source imports; `kernels.name` imports a kernel module, too."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"bayescontrol.{node.value.id}.{node.attr}")
    return names


def _sources(module: str, found: dict[str, bytes]) -> dict[str, bytes]:
    """The source of a module and of those that it imports from our packages, by name."""
    path = Path(__file__).parents[3].joinpath(*module.split(".")).with_suffix(".py")
    if module not in found and path.is_file():
        found[module] = path.read_bytes()
        for name in _imports(found[module]):
            if name.startswith(_PACKAGES):
                _sources(name, found)
    return found


@lru_cache
def _code() -> str:
    """A digest of all sources with which a table is made.

    The version of the package, where sources are no files: in a zipped installation.
    """
    sources = _sources(_MAKER, {})
    if _MAKER not in sources:
        return f"version {version('bayescontrol')}"
    return hashlib.sha256(b"\0".join(sources[name] for name in sorted(sources))).hexdigest()[:16]


def key_of(problem: Problem, tolerance: float) -> str:
    """What was asked for, to the last bit, and the code that answers.

    >>> key_of(Problem(1.0, 1.0, 0.9, 100), 1e-4).split(" code ")[0]
    'Problem(alpha=1.0, beta=1.0, gamma=0.9, pulls=100, lookahead=None) to 0.0001'
    """
    return f"{problem!r} to {tolerance!r} code {_code()}"


def _path(key: str) -> Path:
    return folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.table"


def recall(key: str, states: int) -> tuple[FloatArray, FloatArray] | None:
    """(ν, radius) of so many states, if they were remembered and are whole.

    >>> recall("never asked for", 1) is None
    True
    """
    path = _path(key)
    try:
        content = path.read_bytes()
    except OSError:
        return None
    head = key.encode() + b"\n"
    rest = memoryview(content)[_DIGEST:]
    if (
        hashlib.sha256(rest).digest() == content[:_DIGEST]
        and content.startswith(head, _DIGEST)
        and len(rest) == len(head) + 16 * states
    ):
        numbers = np.frombuffer(rest, "<f8", offset=len(head)).astype(np.float64)
        return numbers[:states], numbers[states:]
    warnings.warn(
        f"{path} is damaged or not the table of {key!r}: the table is made anew",
        DamagedCache,
        stacklevel=3,
    )
    return None


def remember(key: str, nu: FloatArray, radius: FloatArray) -> bool:
    """Keep a table; whether that could be done.

    >>> remember("an example", np.zeros(1), np.zeros(1)) in (True, False)
    True
    """
    rest = b"".join(
        (key.encode(), b"\n", nu.astype("<f8").tobytes(), radius.astype("<f8").tobytes())
    )
    path, beside = _path(key), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            beside = Path(file.name)
            file.write(hashlib.sha256(rest).digest())
            file.write(rest)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        beside.chmod(0o666 & ~mask)  # as any other file: a shared cache is there to be read
        beside.replace(path)
    except OSError:
        if beside is not None:
            with contextlib.suppress(OSError):
                beside.unlink()
        return False
    return True

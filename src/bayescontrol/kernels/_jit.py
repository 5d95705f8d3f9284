"""Compile kernels with Numba and cache them on disk.

Numba invalidates a cached kernel when its own file changes, but not when a kernel that it calls
changes. So the kernels of a module are cached in a folder named after a digest of its source and of
all kernel sources that it imports. The cache is used only if no other user can write to it.
"""

import gc
import hashlib
import inspect
import os
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config, event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

F = TypeVar("F", bound=Callable[..., object])
# Numba creates its settings at run time, and type checkers do not know its option `_nrt`.
_config: Any = config
_njit: Any = numba.njit
#: Numba's type of a value, and its module of types.
typeof: Any = numba.typeof
types: Any = numba.types


_FOLDER = Path(__file__).parent
#: Whether this process has announced a compilation.
_has_announced = False
_IMPORT = re.compile(rb"^from [\w.]+\.(\w+) import", re.MULTILINE)


def _sources(path: Path, found: dict[Path, bytes]) -> dict[Path, bytes]:
    """Return the contents of the file `path` and of all kernel files that it imports, by path.

    Imports are followed recursively. An imported module is looked up in the folder of this file and
    in the folder of `path`; an imported folder stands for all its files. `found` holds the files
    read so far; pass an empty dict.
    """
    if path not in found and path.is_file():
        found[path] = path.read_bytes()
        for imported in _IMPORT.findall(found[path]):
            for folder in (_FOLDER, path.parent):
                _sources(folder / f"{imported.decode()}.py", found)
                for file in (folder / imported.decode()).glob("*.py"):
                    _sources(file, found)
    return found


@lru_cache
def _digest(path: Path) -> str:
    """Return a digest of the file `path` and of all kernel files that it imports."""
    sources = _sources(path, {})
    return hashlib.sha256(b"\0".join(sources[file] for file in sorted(sources))).hexdigest()[:16]


def _risk(folder: Path) -> str | None:
    """Return how another user could write to this folder or replace it; None if nobody can.

    Its contents are not checked. The user and root are trusted, and so are the groups that may
    write to a parent folder. On Windows these folders are private.
    """
    if os.name != "posix":
        return None
    trusted = {os.geteuid(), 0}
    for path in (folder, *folder.parents):  # as written: the owner of a link can redirect it
        if path.is_symlink() and path.lstat().st_uid not in trusted:
            return f"{path} is a symbolic link of another user"
    for path in folder.resolve().parents:  # the folders that the links lead to
        status = path.stat()
        if status.st_uid not in trusted:
            return f"{path} belongs to another user"
        # With the sticky bit, as in /tmp, users can replace only what is their own.
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"every user can replace what lies in {path}"
    return _risk_within(folder.resolve(), deep=False)


def _risk_within(path: Path, *, deep: bool = True) -> str | None:
    """Return how another user could change this file or folder; None if nobody can.

    With `deep` the contents of a folder are checked too, unless other users have no access to it:
    then they cannot reach the contents, whatever the permissions there. Parents are not checked.
    """
    if os.name != "posix":
        return None
    try:
        status = path.lstat()
        if status.st_uid != os.geteuid():
            return f"{path} belongs to another user"
        if stat.S_ISLNK(status.st_mode):
            return f"{path} is a symbolic link"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"{path} can be written by other users"
        if deep and stat.S_ISDIR(status.st_mode) and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return next(filter(None, map(_risk_within, path.iterdir())), None)
    except FileNotFoundError:  # another process has removed it
        pass
    return None


def _private_folder(path: Path, risk_of: Callable[[Path], str | None]) -> Path | None:
    """Return the folder, created if necessary; warn and return None if it is not usable."""
    try:
        folder = path.expanduser().absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        risk = risk_of(folder)
        if risk is None:
            tempfile.TemporaryFile(dir=folder).close()  # raises OSError if it is not writable
            return folder.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        risk = str(error)
    warnings.warn(
        f"compiled kernels are not kept on disk, so each process compiles them again: {risk}. Run "
        "chmod -R go-w on that folder, or set NUMBA_CACHE_DIR to one that only you can write to",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _cache_folder() -> Path | None:
    """Return the folder for compiled kernels, or None if no folder is private and writable."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return _private_folder(Path(base) / "bayescontrol", _risk)


#: The cache of compiled kernels; None if no folder is writable for this user alone. Numba unpickles
#: its files, so a user who can write there can run code in this process.
cache_folder = _cache_folder()


@lru_cache
def _module_folder(path: Path) -> Path | None:
    """Return the cache folder for the kernels of one module; None if nothing is cached."""
    if cache_folder is None:
        return None
    return _private_folder(cache_folder / f"{path.stem}-{_digest(path)}", _risk_within)


class _Options(Flags):
    """Options of the compiler, compared by those that are set.

    Numba compares all options, set or not, whenever it looks for the code of an operator.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values))


class _InnerLibrary(JITCodeLibrary):
    """The code of a kernel for its callers, which optimise it and translate it to machine code."""

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, _name: str, _env: Any) -> None:
        """Ignore the environment, which only code that raises errors or prints would use."""

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class _InnerCompiler(Compiler):
    """Compile a kernel for its callers only."""

    def define_pipelines(self) -> Any:
        state: Any = self.state
        library: Any = _InnerLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()  # type: ignore[no-untyped-call]


def _compile(kernel: F, **options: bool) -> F:
    """Apply `numba.njit`, with the cache folder of the kernel's module if there is one.

    A kernel is compiled once for Python and once for the kernels that call it. The second version,
    without machine code of its own, takes much less time; most kernels need no other.
    """
    folder = _module_folder(Path(inspect.getfile(kernel)))
    settings: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True, **options}
    inner = _njit(no_cpython_wrapper=True, pipeline_class=_InnerCompiler, **settings)(kernel)
    previous = _config.CACHE_DIR
    _config.CACHE_DIR = str(folder or "")
    try:
        compiled = _njit(cache=folder is not None, **settings)(kernel)
    finally:
        _config.CACHE_DIR = previous
    if not _config.DISABLE_JIT:  # Numba asks a kernel for these two when it compiles a caller
        for name in ("get_call_template", "get_overload"):
            setattr(compiled, name, getattr(inner, name))
        inner._compiler._customize_flags = compiled._compiler._customize_flags = _Options
    return cast("F", compiled)


def is_first_compilation() -> bool:
    """Tell whether no process of this user has compiled these kernels before; True only once."""
    global _has_announced
    if _has_announced:
        return False
    _has_announced = True
    if cache_folder is None:
        return True
    sources = hashlib.sha256(b"".join(map(Path.read_bytes, sorted(_FOLDER.rglob("*.py")))))
    try:
        (cache_folder / f"announced-{sources.hexdigest()[:16]}").touch(0o600, exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # the disk is full, for example
        pass
    return True


class _CompileListener(event.Listener):
    """Pause the garbage collector while a kernel compiles: it would take a tenth of the time.

    Also tell the user once on each machine that kernels are being compiled, which takes seconds.
    """

    #: The kernel during whose compilation the collector is paused.
    outermost: Any = None

    def on_start(self, event: Any) -> None:
        kernel = event.data["dispatcher"]
        if not (kernel.py_func.__module__ or "").startswith(__package__):  # None after exec
            return
        if gc.isenabled():
            gc.disable()
            self.outermost = kernel
        if is_first_compilation():
            print(  # noqa: T201 - a warning would be shown as a mistake of the user
                "bayescontrol: compiling kernels that are used for the first time; "
                "bayescontrol.warm_up() compiles the common ones ahead",
                file=sys.stderr,
            )

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] is self.outermost:
            self.outermost = None
            gc.enable()


event.register("numba:compile", _CompileListener())  # type: ignore[no-untyped-call]


def jit(kernel: F) -> F:
    """Compile a kernel on its first call, or load it from the cache.

    Without fast-math, so that a kernel gives the same bits on every machine and in every loop.

    >>> from bayescontrol.kernels.elementary import exp
    >>> exp.py_func(0.0) == exp(0.0)
    True
    """
    return _compile(kernel)


def leaf(kernel: F) -> F:
    """Compile a kernel that allocates nothing: its arrays are not reference-counted.

    Reference counting takes two atomic operations per call, more time than a random draw.

    >>> from bayescontrol.kernels.random import uniform
    >>> uniform.targetoptions["_nrt"]
    False
    """
    return _compile(kernel, _nrt=False)


def inlined(kernel: F) -> F:
    """Compile a kernel that allocates nothing into every kernel that calls it.

    An array is passed as seven arguments, so a call with some arrays takes more time than a short
    kernel.

    >>> from bayescontrol.kernels.td import top
    >>> top.targetoptions["forceinline"]
    True
    """
    return _compile(kernel, _nrt=False, forceinline=True)


def direct(kernel: F, name: str) -> F:
    """Return the kernel for calls from Python that take place at every step.

    Numba looks at the types of the arguments in each call, for 0.1 µs. This version does so in the
    first call only, after which the module has the machine code under this name. Every call must
    have arguments of the same types, and arrays in C order that can be written. Nothing checks
    this: use it only for arrays that the calling class has created, not for those of users.
    """
    if _config.DISABLE_JIT:
        return kernel
    dispatcher: Any = kernel

    def first_call(*arguments: object) -> object:
        signature = tuple(map(typeof, arguments))
        dispatcher.compile(signature)
        code = dispatcher.overloads[signature].entry_point
        setattr(sys.modules[kernel.__module__], name, code)
        return code(*arguments)

    return cast("F", first_call)


@lru_cache(maxsize=256)
def in_memory(function: Callable[..., Any], *, checked: bool = False) -> Any:
    """Compile a user's function, or a closure over one, in this process: Numba cannot cache it.

    With `checked` an index out of bounds raises an error. A function that is compiled already is
    returned unchanged.

    >>> def double(x): return 2 * x
    >>> in_memory(double)(2) == in_memory(in_memory(double))(2) == 4
    True
    """
    if hasattr(function, "py_func"):
        return function
    return _njit(error_model="numpy", boundscheck=checked)(function)

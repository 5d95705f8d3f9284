"""The provenance of a replica: versions, machine, code and its commit.

Equal settings and run numbers give equal bytes only for equal code, so results record the code that
produced them:

    sources = { module: sha256 of its file },   the study and the local modules that it imports
    sources["bayescontrol"] = sha256 of the files of this package

A module is local if it is not part of Python and not in site-packages or dist-packages. Imports are
read from the source, also those inside functions, and followed from module to module; nothing is
imported for this. Data files and modules that are imported by a computed name are not seen. The
digests do not depend on the folder of a file: they are equal on all machines with the same files.

`code` is the sha256 of the file that defines `run`. The commit is that of the repository of this
file, if any; `dirty` is true if the repository has changes since. No name of a user or a host is
stored.
"""

import ast
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

import msgspec

from bayescontrol.lab.experiment import Experiment

_PACKAGES: Final = ("bayescontrol", "numpy", "scipy", "numba", "matplotlib")
_OUR_FOLDER: Final = Path(__file__).parents[1]
#: Parts of this package that no replica runs.
_UNUSED_PARTS: Final = ("cli", "plot", "report")
#: Parts of this package whose modules count only if a study imports them, like local modules.
_OPTIONAL_PARTS: Final = ("durable", "experiments", "serve")
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})

#: The sha256 of a file, and the names that it imports.
_Source: TypeAlias = tuple[str, set[str]]


class Git(msgspec.Struct, frozen=True):
    """The commit of the code, and whether files were changed or added since."""

    commit: str
    dirty: bool


class Provenance(msgspec.Struct, frozen=True):
    """The versions, machine and code that produced some replicas."""

    versions: dict[str, str]
    machine: dict[str, str]
    code: str
    git: Git | None = None
    sources: dict[str, str] = {}

    def changed_modules(self, sources: dict[str, str]) -> list[str]:
        """Return the modules that differ from `sources`.

        >>> Provenance({}, {}, "", sources={"study": "5e1f"}).changed_modules({"study": "c0de"})
        ['study']
        """
        names = sorted({*self.sources, *sources})
        return [name for name in names if self.sources.get(name) != sources.get(name)]


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that determine results."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # used without being installed
            found[name] = "unknown"
    return {**found, "python": platform.python_version(), "machine": platform.machine()}


def provenance_here(run: Callable[..., Any]) -> Provenance:
    """Return the provenance of replicas run in this process, without the commit."""
    module, sources = _module_of(run), _sources_of(run)
    code = "" if module is None else sources.get(_name_of(module), "")
    return Provenance(versions(), _machine(), code, sources=sources)


def source_of(run: Callable[..., Any]) -> Path | None:
    """Return the file that defines `run`, if there is one."""
    file = getattr(_module_of(run), "__file__", None)
    return Path(file) if file else None


def study_sources(experiment: Experiment[Any]) -> dict[str, str]:
    """Return the sources of an experiment as they are now; `run` may be in a module of its own."""
    return _sources_of(experiment.run, experiment.settings, experiment.score, experiment.figures)


def _sources_of(*objects: Any) -> dict[str, str]:
    """Return the sha256 of the modules that define the objects, and of those that they import."""
    pending: dict[str, tuple[ModuleType | None, Path]] = {}
    for module in map(_module_of, objects):
        file = Path(getattr(module, "__file__", None) or "")
        if module is not None and file.is_file():  # a notebook and a zip archive have no file
            pending[_name_of(module)] = module, file
    # An installed study imports modules of its own package, which are installed as well.
    own_packages = {name.partition(".")[0] for name in pending} - {"bayescontrol"}
    sources: dict[str, str] = {}
    while pending:
        name, (module, path) = pending.popitem()
        sources[name], imports = _read_module(module, path)
        for imported in _absolute_names(imports, name, path):
            found = None if imported in sources else _local_file(imported, own_packages)
            if found is not None:
                pending[imported] = sys.modules.get(imported), found
    sources["bayescontrol"] = _digest_of_package()
    return dict(sorted(sources.items()))


def _module_of(item: Any) -> ModuleType | None:
    while isinstance(item, partial):
        item = item.func
    name = getattr(item, "__module__", None) or ""
    return None if name in sys.stdlib_module_names else sys.modules.get(name)


def _name_of(module: ModuleType) -> str:
    """Return the name of a module; a script is __main__ here, and __mp_main__ in a worker."""
    if module.__name__ not in {"__main__", "__mp_main__"}:
        return module.__name__
    return f"{module.__package__ or ''}.{Path(getattr(module, '__file__', '')).stem}".lstrip(".")


@cache
def _digest_of_package() -> str:
    """Return the sha256 of the files of this package that every study uses."""
    digest = hashlib.sha256()
    for path in sorted(_OUR_FOLDER.rglob("*.py")):
        relative = path.relative_to(_OUR_FOLDER)
        if relative.parts[0] not in (*_UNUSED_PARTS, *_OPTIONAL_PARTS):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{relative.as_posix()} {content}\n".encode())
    return digest.hexdigest()


def _local_file(name: str, own_packages: set[str]) -> Path | None:
    """Return the file of a local module, or None for other modules."""
    package, *parts = name.split(".")
    is_ours = package == "bayescontrol" and bool(parts) and parts[0] in _OPTIONAL_PARTS
    if package in (*sys.stdlib_module_names, "bayescontrol") and not is_ours:
        return None
    spec = _find_spec(name)
    if spec is None or not spec.has_location or not spec.origin or not Path(spec.origin).is_file():
        return None
    is_installed = bool(_INSTALLED.intersection(Path(spec.origin).parts))
    is_local = is_ours or package in own_packages or not is_installed
    return Path(spec.origin) if is_local else None


def _find_spec(name: str) -> ModuleSpec | None:
    """Find a module without importing its parent package, as `importlib.util.find_spec` would."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    parent, path = name.rpartition(".")[0], None
    if parent:
        spec = _find_spec(parent)
        path = None if spec is None else spec.submodule_search_locations
        if path is None:
            return None
    found = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)


def _absolute_names(imports: Iterable[str], name: str, file: Path) -> Iterator[str]:
    """Yield the absolute names of the imports of a module, and of the packages they are in."""
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    for imported in imports:
        with suppress(ImportError):  # a relative import that is not valid
            parts = resolve_name(imported, package).split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


#: For each file its module, the module's spec, and the result of `_read_source`.
_loaded_sources: Final[dict[Path, tuple[ModuleType, ModuleSpec | None, _Source]]] = {}


def _read_module(module: ModuleType | None, file: Path) -> _Source:
    """Read the source of a module, but only once for each time that the module is loaded.

    A file may change while the process runs the code that it has loaded.
    """
    spec = getattr(module, "__spec__", None)  # replaced by importlib.reload
    known = _loaded_sources.get(file)
    if known is not None and known[0] is module and known[1] is spec:
        return known[2]
    source = _read_source(file)
    if module is not None:
        _loaded_sources[file] = module, spec, source
    return source


def _read_source(file: Path) -> _Source:
    """Return the sha256 of a file, and the names that it imports, as written."""
    content = file.read_bytes()
    names: set[str] = set()
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # a compiled module
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (f"{node.module}." if node.module else "")
            names.update(base + alias.name for alias in node.names)
    return hashlib.sha256(content).hexdigest(), names


@cache
def _machine() -> dict[str, str]:
    system = f"{platform.system()} {platform.release()}"
    return {"system": system, "processor": _processor(), "cores": str(os.cpu_count())}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not a Linux system
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def git_state(source: Path | None) -> Git | None:
    """Return the state of the repository of `source`; None without repository or git."""
    if source is None or _git(source, "check-ignore", "-q", source.name) != "":
        return None  # in no repository, or ignored there, like an installed package
    commit, changes = _git(source, "rev-parse", "HEAD"), _git(source, "status", "--porcelain")
    if not commit or changes is None:
        return None
    return Git(commit, dirty=bool(changes))


def _git(source: Path, *arguments: str) -> str | None:
    """Return the output of git in the folder of `source`, or None if git fails.

    `check-ignore` returns "" if `source` is not ignored, and None if it is ignored.
    """
    command = ("git", "--no-optional-locks", "-C", str(source.parent), *arguments)
    try:
        completed = subprocess.run(  # noqa: S603 - fixed arguments, and the name of our own file
            command, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # `check-ignore` exits with 1 for "not ignored", with 0 for "ignored", and above 1 on errors.
    expected_code = 1 if arguments[0] == "check-ignore" else 0
    return completed.stdout.strip() if completed.returncode == expected_code else None

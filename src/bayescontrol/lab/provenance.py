"""The provenance of a replica: versions, machine, code and its commit.

Equal settings and run numbers give equal bytes only for equal code, so results record the code that
produced them:

    sources = { module: sha256 of its file },   the study and the local modules that it imports
    sources["bayescontrol"] = sha256 of the files of this package

A module is local if it is not part of Python and not in site-packages or dist-packages. Imports are
read from the source, also those inside functions, and followed from module to module; nothing is
imported for this. Data files and modules that are imported by a computed name are not seen. The
digests do not depend on the folder of a file: they are equal on all machines with the same files.

The commit is that of the repository of the file that defines `run`, if any; `dirty` is true if the
repository has changes since. No name of a user or a host is stored.
"""

import ast
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import resolve_name
from itertools import accumulate
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
_OPTIONAL_PARTS: Final = ("durable", "offpolicy", "serve")
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})

#: The sha256 of a file, and the modules and names that it imports.
_Source: TypeAlias = tuple[str, set[str]]


class Git(msgspec.Struct, frozen=True):
    """The commit of the code, and whether files were changed or added since."""

    commit: str
    dirty: bool


class Provenance(msgspec.Struct, frozen=True):
    """The versions, machine and code that produced some replicas."""

    versions: dict[str, str]
    machine: dict[str, str]
    git: Git | None = None
    sources: dict[str, str] = {}

    def changed_modules(self, sources: dict[str, str]) -> list[str]:
        """Return the modules that differ from `sources`.

        >>> Provenance({}, {}, sources={"study": "5e1f"}).changed_modules({"study": "c0de"})
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


def provenance_of(experiment: Experiment[Any]) -> Provenance:
    """Return the provenance of an experiment that is run now, with the commit."""
    here = provenance_here(experiment.run)
    git = git_state(source_of(experiment.run))
    return msgspec.structs.replace(here, git=git, sources=study_sources(experiment))


def provenance_here(run: Callable[..., Any]) -> Provenance:
    """Return the provenance of replicas run in this process, without the commit."""
    return Provenance(versions(), _machine(), sources=_sources_of(run))


def source_of(run: Callable[..., Any]) -> Path | None:
    """Return the file that defines `run`, if there is one."""
    module = _module_of(run)
    return _file_of(module) if module else None


def study_sources(experiment: Experiment[Any]) -> dict[str, str]:
    """Return the sources of an experiment as they are now; `run` may be in a module of its own."""
    parts = experiment.run, experiment.settings, experiment.score, experiment.figures
    return _sources_of(experiment.defined_in, *parts)


def _sources_of(*objects: Any) -> dict[str, str]:
    """Return the sha256 of the modules that define the objects, and of those that they import."""
    modules = filter(None, map(_module_of, objects))
    pending: dict[str, tuple[Any, Path]] = {_name_of(m): (m, _file_of(m)) for m in modules}
    # An installed study imports modules of its own package, which are installed as well.
    own_packages = {name.partition(".")[0] for name in pending} - {"bayescontrol"}
    sources = {"bayescontrol": _digest_of_package()}
    while pending:
        name, (module, file) = pending.popitem()
        sources[name], imports = _read_module(name, module, file)
        for imported in imports - sources.keys():
            if found := _local_file(imported, own_packages):
                pending[imported] = sys.modules.get(imported), found
    return dict(sorted(sources.items()))


def _module_of(item: Any) -> ModuleType | None:
    """Return the module that defines an object, or has this name; None if it has no file."""
    while isinstance(item, partial):
        item = item.func
    name = item if isinstance(item, str) else getattr(item, "__module__", None) or ""
    module = None if name in sys.stdlib_module_names else sys.modules.get(name)
    return module if module and _file_of(module).is_file() else None


def _file_of(module: ModuleType) -> Path:
    """Return the file of a module; an empty path, which is not a file, if it has none."""
    return Path(getattr(module, "__file__", None) or "")


def _name_of(module: ModuleType) -> str:
    """Return the name of a module; that of its file if it is a script."""
    if module.__name__ != "__main__":
        return module.__name__
    return f"{module.__package__ or ''}.{_file_of(module).stem}".lstrip(".")


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
    package, _, rest = name.partition(".")
    is_ours = package == "bayescontrol" and rest.partition(".")[0] in _OPTIONAL_PARTS
    if package in (*sys.stdlib_module_names, "bayescontrol") and not is_ours:
        return None
    file = Path(getattr(_find_spec(name), "origin", None) or "")
    is_local = is_ours or package in own_packages or _INSTALLED.isdisjoint(file.parts)
    return file if is_local and file.is_file() else None


def _find_spec(name: str) -> ModuleSpec | None:
    """Find a module. Unlike `importlib.util.find_spec`, do not import its parent package."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    parent, path = name.rpartition(".")[0], None
    if parent:
        path = getattr(_find_spec(parent), "submodule_search_locations", None)
        if path is None:
            return None
    found = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)


#: For each file its module, the module's spec, and the result of `_read_source`.
_loaded_sources: Final[dict[Path, tuple[ModuleType, ModuleSpec | None, _Source]]] = {}


def _read_module(name: str, module: ModuleType | None, file: Path) -> _Source:
    """Read the source of a module, but only once for each time that the module is loaded.

    A file may change while the process runs the code that it has loaded.
    """
    if module is None:
        return _read_source(name, file)
    known = _loaded_sources.get(file)
    spec = getattr(module, "__spec__", None)  # replaced by importlib.reload
    if known is None or known[0] is not module or known[1] is not spec:
        known = _loaded_sources[file] = module, spec, _read_source(name, file)
    return known[2]


def _read_source(name: str, file: Path) -> _Source:
    """Return the sha256 of a file, and the names that it imports, with those of their packages."""
    content, names = file.read_bytes(), set[str]()
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    with suppress(SyntaxError, ValueError):  # a compiled module
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (f"{node.module}." if node.module else "")
                with suppress(ImportError):  # a relative import that is not valid
                    names.update(resolve_name(base + alias.name, package) for alias in node.names)
    # The import of a.b.c also imports a and a.b.
    parents = {parent for name in names for parent in accumulate(name.split("."), "{}.{}".format)}
    return hashlib.sha256(content).hexdigest(), parents


@cache
def _machine() -> dict[str, str]:
    """Return the system, the processor and the number of cores."""
    system = f"{platform.system()} {platform.release()}"
    return {"system": system, "processor": _processor(), "cores": str(os.cpu_count())}


def _processor() -> str:
    """Return the name of the processor, or its architecture if the name is unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not a Linux system
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def git_state(source: Path | None) -> Git | None:
    """Return the state of the repository of `source`; None without repository or git."""
    list_ignored = ("ls-files", "--others", "--ignored", "--exclude-standard")
    if source is None or _git(source, *list_ignored, source.name) != "":
        return None  # in no repository, or ignored there, like an installed package
    commit, changes = _git(source, "rev-parse", "HEAD"), _git(source, "status", "--porcelain")
    return Git(commit, dirty=bool(changes)) if commit and changes is not None else None


def _git(source: Path, *arguments: str) -> str | None:
    """Return the output of git in the folder of `source`, or None if git fails."""
    command = ("git", "--no-optional-locks", "-C", str(source.parent), *arguments)
    try:
        completed = subprocess.run(  # noqa: S603 - fixed arguments, and the name of our own file
            command, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()

"""Every public name has a docstring, and an example that runs."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import bayescontrol

#: Names without an example, each with the reason.
EXEMPT: dict[str, str] = {}


def modules() -> Iterator[ModuleType]:
    yield bayescontrol
    for found in pkgutil.walk_packages(bayescontrol.__path__, "bayescontrol."):
        yield importlib.import_module(found.name)


def public_names() -> list[tuple[str, Any]]:
    return [
        (f"{module.__name__}.{name}", getattr(module, name))
        for module in modules()
        for name in getattr(module, "__all__", ())
    ]


def needs_example(thing: Any) -> bool:
    """Protocols and exceptions need only a sentence."""
    is_error = inspect.isclass(thing) and issubclass(thing, Exception)
    return documented(thing) and not is_error and not getattr(thing, "_is_protocol", False)


def documented(thing: Any) -> bool:
    return inspect.isroutine(thing) or inspect.isclass(thing) or hasattr(thing, "py_func")


NAMES = public_names()


def test_there_is_something_to_check() -> None:
    assert len(NAMES) > 100


def test_every_module_has_a_docstring() -> None:
    assert [m.__name__ for m in modules() if not (m.__doc__ or "").strip()] == []


def test_every_public_name_has_a_docstring() -> None:
    silent = [
        name
        for name, thing in NAMES
        if (documented(thing) or isinstance(thing, ModuleType)) and not direct_docstring(thing)
    ]
    assert silent == []


def direct_docstring(thing: Any) -> str:
    """The docstring of the object itself, not an inherited one."""
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else getattr(thing, "__doc__", None)
    if inspect.isclass(thing) and doc and doc.startswith(f"{thing.__name__}("):
        return ""  # the generated docstring of a dataclass
    return (doc or "").strip()


def has_example(thing: Any) -> bool:
    if ">>>" in direct_docstring(thing):
        return True
    if not inspect.isclass(thing):
        return False
    members = (getattr(m, "fget", None) or getattr(m, "__func__", m) for m in vars(thing).values())
    return any(">>>" in (getattr(m, "__doc__", None) or "") for m in members)


def test_every_public_class_and_function_has_an_example() -> None:
    bare = sorted(name for name, thing in NAMES if needs_example(thing) and not has_example(thing))
    assert [name for name in bare if name not in EXEMPT] == []


def test_every_exemption_is_needed() -> None:
    known = dict(NAMES)
    assert [name for name in EXEMPT if name not in known or has_example(known[name])] == []


@pytest.mark.parametrize("module", list(modules()), ids=lambda m: m.__name__)
def test_public_names_exist_and_are_unique(module: ModuleType) -> None:
    names = list(getattr(module, "__all__", ()))
    assert all(hasattr(module, name) for name in names)
    assert len(set(names)) == len(names)

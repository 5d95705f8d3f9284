"""What the reference adds to Sphinx: lists of names, a page for each main class, parameters.

`conf.py` connects the functions to Sphinx's events.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from bayescontrol.bandits import FAMILIES

#: Classes with a page of their own, by the module whose page lists them.
MAIN: Final = {
    "bayescontrol": ("ControlRule", "DiscreteMode", "Record", "Stream"),
    "bayescontrol.bandits": (
        *(bandit.__name__ for bandit in FAMILIES), "DrawsBandit", "JointBandit", "LinearBandit",
        "LogisticBandit", "LogitNormalBandit", "SharedLinearBandit",
    ),
    "bayescontrol.beliefs": (
        "ChangePointBelief", "DrawsBelief", "FadingBelief", "FiniteBelief", "InteractingBelief",
        "ParticleBelief", "SwitchingBelief",
    ),
    "bayescontrol.durable": ("DurableAgent",),
    "bayescontrol.bank": ("Bank", "PlantMode"),
    "bayescontrol.simulators": ("SimulatorMode",),
    "bayescontrol.lqr": ("LinearQuadratic",),
    "bayescontrol.alarms": ("Alarm", "Guarded"),
    "bayescontrol.exploration": ("ExploringRule",),
    "bayescontrol.trees": ("ContextTrees",),
    "bayescontrol.mdp": ("DirichletMDP", "GibbsMDP", "MDP", "Maze"),
    "bayescontrol.pomdp": ("AlphaVectors", "POMDP", "POMDPModes"),
    "bayescontrol.finite.parametric": ("ParametricModes",),
    "bayescontrol.finite.tabular": ("TabularModes",),
}  # fmt: skip
_PAGE: Final = """# {name}

Import it from `{module}`.

```{{eval-rst}}
.. autoclass:: {module}.{name}
   :inherited-members: object
```
"""
_BLOCK: Final = re.compile(r"```\{eval-rst\}\n\.\. automodule:: (\S+)\n((?:   :.*\n)*)```")


def write_class_pages(folder: Path) -> None:
    """Write a page for each main class; leave unchanged pages alone, remove stale ones."""
    if not folder.parent.is_dir():  # a build of some other pages
        return
    folder.mkdir(exist_ok=True)
    pages = {
        f"{module}.{name}.md": _PAGE.format(name=name, module=module)
        for module, names in MAIN.items()
        for name in names
    }
    for page in folder.glob("*.md"):
        if page.name not in pages:
            page.unlink()
    for file, text in pages.items():
        page = folder / file
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def public_names(module: ModuleType) -> list[str]:
    """Return the documented classes and functions of a module."""
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    names = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    values = {name: getattr(module, name) for name in names}
    return [
        name
        for name, value in values.items()
        if (inspect.isclass(value) or inspect.isroutine(value)) and value.__doc__
    ]


def list_names(text: str) -> str:
    """Put a list of names before each module of a page; main classes link to their pages."""

    def with_list(block: re.Match[str]) -> str:
        module, options = block[1], block[2]
        if ":no-members:" in options:
            return block[0]
        found = re.search(r":exclude-members: (.*)\n", options)
        excluded = found[1].split(", ") if found else []
        public = public_names(import_module(module))
        # A main class is described on the page of its own module only.
        excluded += [n for other in MAIN if other != module for n in MAIN[other] if n in public]
        names = [n for n in public if n not in excluded]
        main = [name for name in names if name in MAIN.get(module, ())]
        others = [name for name in names if name not in main]
        lists = [f".. currentmodule:: {module}\n"]
        for chosen, more in ((main, "   :toctree: api\n"), (others, "")):
            rows = "".join(f"   {name}\n" for name in chosen)
            lists += [f".. autosummary::\n{more}   :nosignatures:\n\n{rows}"] if chosen else []
        members = f"   :exclude-members: {', '.join([*excluded, *main])}\n"
        options = re.sub(r"   :exclude-members: .*\n", "", options)
        options += members if excluded or main else ""
        body = "\n".join([*lists, f".. automodule:: {module}\n{options}"])
        return f"```{{eval-rst}}\n{body}```"

    return _BLOCK.sub(with_list, text)


def describe_parameters(what: str, obj: object, lines: list[str]) -> None:
    """Add the sentence about each parameter, which the text has anyway, to the list of parameters.

    The sentence is the first one that names the parameter in backquotes.
    """
    if what not in ("class", "function", "method") or any(":param" in line for line in lines):
        return
    sentences = _sentences(lines)
    fields = []
    for name in parameters(obj):
        named = re.compile(rf"`{name}[`(=.\[]")
        about = next(filter(named.search, sentences), "")
        # Only the clause about this parameter, if a sentence is about more than one of them.
        clauses = [c for c in re.split(r"[,;](?: and)? (?=`)", about) if named.match(c)]
        text = clauses[0] if clauses and " " in clauses[0] else about
        fields += [f":param {name}: {text.rstrip('.')}."] if about else []
    lines += ["", *fields, ""] if fields else []


def parameters(obj: object) -> list[str]:
    """Return the names of the parameters of a function, or of the constructor of a class."""
    function = getattr(obj, "__init__", obj) if inspect.isclass(obj) else obj
    try:
        names = inspect.signature(function).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    return [name for name in names if name not in ("self", "cls", "args", "kwargs")]


def _sentences(lines: list[str]) -> list[str]:
    """Return the sentences of a docstring, without examples and indented blocks."""
    text, inside = [""], False
    for line in lines:
        inside = line.lstrip().startswith(">>>") or (inside and bool(line.strip()))
        if not line.strip() or inside or line.startswith(" ") or line == "::":
            text.append("")
        else:
            text[-1] = f"{text[-1]} {line}".strip()
    return [s for part in text for s in re.split(r"(?<=[.!?]) (?=[A-Z`])", part) if s]

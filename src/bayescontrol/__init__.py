"""bayescontrol: one adaptive agent from a class of experts, by the Bayesian control rule.

    P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t)

Draw a mode, do what it would do, and learn only from observations. For bandits this is Thompson
sampling.

All packages are attributes, `bayescontrol.plot` for example. They load on first use.
"""

from functools import cache
from importlib import import_module

__version__ = "0.1.0"


@cache
def _modules() -> dict[str, str]:
    """Return the module of each name in `__init__.pyi`; a package or a module is in this one.

    The name * stands for the bandits of `bandits.families`.
    """
    import ast
    from importlib.resources import files

    stub = ast.parse(files(__name__).joinpath("__init__.pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def _families() -> list[str]:
    """Return the names of the bandits with independent arms."""
    return [n for n in vars(import_module(_modules()["*"])) if n.endswith("Bandit")]


def __getattr__(name: str) -> object:
    value: object
    if name == "__all__":
        exported = [n for n, module in _modules().items() if module != __name__ and n != "*"]
        return sorted([*exported, *_families()])
    module = None if name.startswith("__") else _modules().get(name)
    if module == __name__:
        value = import_module(f"{__name__}.{name}")
    elif module is not None:
        value = getattr(import_module(module), name)
    elif name.endswith("Bandit") and name in _families():
        value = getattr(import_module(_modules()["*"]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*(_modules().keys() - {"*"}), *_families(), "__version__"])

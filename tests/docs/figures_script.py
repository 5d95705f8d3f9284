"""The script docs/figures.py as a module; it is in no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

PATH = Path(__file__).parents[2] / "docs/figures.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_figures", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


figures = _load()

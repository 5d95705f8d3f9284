"""Sphinx configuration; `make docs` builds with warnings as errors."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import bayescontrol

project = "bayescontrol"
author = "The bayescontrol developers"
copyright = "2026, the bayescontrol developers"
release = version = bayescontrol.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "bayescontrol"
html_math_renderer = "mathml"  # rendered by the browser, so that pages need no network
toc_object_entries = False  # otherwise every page lists every name, and the build takes minutes
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_type_aliases = {"FloatArray": "FloatArray", "Arrays": "Arrays"}
suppress_warnings = ["ref.python"]
default_role = "code"  # docstrings use single backquotes, as Markdown does


def _keep_mathematics(  # the signature that Sphinx expects
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Show indented equations as literal blocks, and bars and asterisks as they are."""
    if what == "module":  # Sphinx removes indentation that all lines have
        lines[:] = (obj.__doc__ or "").splitlines()
    out: list[str] = []
    inside = example = False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        indented = line.startswith(" ")
        if indented and not inside and not example and (not out or not out[-1].strip()):
            out += ["::", ""]
            inside = True
        elif line.strip() and not indented:
            inside = False
        plain = not (inside or example)
        out.append(line.replace("|", r"\|").replace("*", r"\*") if plain else line)
    lines[:] = out


def _as_mathml(self: Any, node: nodes.math | nodes.math_block) -> None:
    block = isinstance(node, nodes.math_block)
    self.body.append(tex2mathml(node.astext(), as_block=block))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Register the extensions of this file; Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_as_mathml, None), (_as_mathml, None))
    app.connect("autodoc-process-docstring", _keep_mathematics)

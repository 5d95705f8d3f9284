"""Sphinx configuration; `make docs` builds with warnings as errors."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import bayescontrol

sys.path.insert(0, str(Path(__file__).parent))

from notebooks import with_link, write_notebooks
from reference_pages import describe_parameters, list_names, write_class_pages

project = "bayescontrol"
author = "The bayescontrol developers"
copyright = "2026, the bayescontrol developers"
release = version = bayescontrol.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"bayescontrol {version}"
html_static_path = ["_static"]
html_css_files = ["code.css"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
autosummary_generate = False  # `write_class_pages` writes the pages
python_maximum_signature_line_length = 80
html_math_renderer = "mathml"  # rendered by the browser, so that pages need no network
toc_object_entries = False  # otherwise every page lists every name, and the build takes minutes
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "show-inheritance": True}
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
        escaped = line.replace("|", r"\|").replace("*", r"\*")
        out.append(re.sub(r"`(\w+)`s\b", r"`\1`\\ s", escaped) if plain else line)
    describe_parameters(what, obj, out)
    lines[:] = out


def _as_mathml(self: Any, node: nodes.math | nodes.math_block) -> None:
    block = isinstance(node, nodes.math_block)
    self.body.append(tex2mathml(node.astext(), as_block=block))
    raise nodes.SkipNode


def _complete_page(app: Any, docname: str, source: list[str]) -> None:
    if docname.startswith("reference/"):
        source[0] = list_names(source[0])
    elif (Path(app.srcdir) / "_notebooks").is_dir():  # not in a build of some other pages
        source[0] = with_link(docname, source[0])


def setup(app: Any) -> None:
    """Register the extensions of this file; Sphinx calls this."""
    write_class_pages(Path(app.srcdir) / "reference" / "api")
    if Path(app.srcdir).samefile(Path(__file__).parent):
        write_notebooks(Path(app.srcdir) / "_notebooks")
    app.connect("source-read", _complete_page)
    app.add_html_math_renderer("mathml", (_as_mathml, None), (_as_mathml, None))
    app.connect("autodoc-process-docstring", _keep_mathematics)

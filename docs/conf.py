"""Sphinx configuration; `make docs` builds with warnings as errors."""

import bayescontrol

project = "bayescontrol"
author = "The bayescontrol developers"
copyright = "2026, the bayescontrol developers"  # noqa: A001 - Sphinx's name
release = version = bayescontrol.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "bayescontrol"
# Pages must read without a network: MathJax is the one outside thing, and math has a text form.
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_type_aliases = {"FloatArray": "FloatArray", "Arrays": "Arrays"}
suppress_warnings = ["ref.python"]

"""Make the figures of the documentation, as SVG files in `docs/_figures`.

    python docs/figures.py              write every figure
    python docs/figures.py bandits.md   write the figures of one source
    python docs/figures.py --check      change nothing; fail if a stored figure is out of date

There are three sources:

    page      the directive `{figure} _figures/NAME.svg` shows the variable `figure` (a `Plot`),
              `axes` or `chart` as it is after the code of the page above the directive
    script    SCRIPTS: the variable `figure` or `axes` of a script in this folder
    chart     CHARTS: a chart of an experiment, with fewer runs than by default

Run it from the root of the repository. The check tolerates differences of a few hundredths of a
point, so that rounding errors of another machine do not matter.
"""

import argparse
import contextlib
import gc
import io
import re
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from doctest import DocTestParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from bayescontrol.lab import conduct, find
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS: Final = Path(__file__).resolve().parent
FOLDER: Final = DOCS / "_figures"

#: The script of each figure that a script makes.
SCRIPTS: Final[Mapping[str, str]] = {
    "bank-diagram": "bank_diagram.py",
    "first-comparison": "first_comparison.py",
    "first-modes": "first_modes.py",
}
#: The experiment, its settings and its chart, for each figure of an experiment.
CHARTS: Final[Mapping[str, tuple[str, dict[str, Any], str]]] = {
    "delusion": ("delusion", {"runs": 100}, "delusion"),
    "provenance": ("provenance", {"runs": 3, "networks": 0}, "provenance"),
    "entropy": ("entropy", {"runs": 20}, "entropy"),
    "chain": ("chain", {"runs": 50, "k_max": 10}, "identification-time"),
    "bandit": ("bandit", {"runs": 100}, "performance"),
    "bandit-regret": ("bandit", {"runs": 100}, "regret"),
    "changing": ("changing", {"runs": 60, "linear_runs": 12, "motor_runs": 1}, "regret"),
    "changing-linear": ("changing", {"runs": 60, "linear_runs": 12, "motor_runs": 1}, "linear"),
    "universal": ("universal", {"runs": 4, "slow_runs": 1, "most_cycles": 2_500}, "learning"),
    "maze-map": ("maze", {"runs": 2}, "setup"),
    "maze-learning": ("maze", {"runs": 2}, "learning"),
    "policy-diagram": ("policy-diagram", {"runs": 100}, "diagram"),
    "divergence": ("divergence", {"runs": 100}, "processes"),
    "core": ("core", {"runs": 300, "steps": 300}, "evidence"),
    "consistency": ("consistency", {"runs": 200}, "settling"),
    "lower-bound": ("lower-bound", {"runs": 400, "steps": 100}, "lower-bound"),
    "vanishing": ("vanishing", {"runs": 100, "long_steps": 500}, "vanishing"),
    "convergence": ("convergence", {"runs": 100, "steps": 300}, "convergence"),
    "misspecified": ("misspecified", {"runs": 100}, "alarms"),
    "lqr": ("lqr", {"runs": 5, "steps": 500}, "regret"),
    "bank": ("bank", {"runs": 20, "unit_runs": 1, "times": 2}, "cost"),
}

#: Matplotlib settings while a figure is made: small files with text as text.
_STYLE: Final[Any] = {
    "figure.facecolor": "white",
    "path.simplify_threshold": 0.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "bayescontrol",
}
_FONTS: Final = "'DejaVu Sans', Verdana, sans-serif"
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_DIRECTIVE: Final = re.compile(r"^```\{figure\} _figures/([\w-]+)\.svg$", re.MULTILINE)
_NUMBER: Final = re.compile(r"(-?\d+(?:\.\d+)?)")
#: A coordinate with two or more decimals; opacities are not rounded.
_LONG_NUMBER: Final = re.compile(r"(?<!opacity: )-?\d+\.\d\d+")
#: The lines that follow a point of a path; their letter L may be left out.
_LINES: Final = re.compile(r"(?<=[ML] )-?[\d.]+ -?[\d.]+ ?(?:\nL -?[\d.]+ -?[\d.]+ ?)+")
#: The text of a label.
_LABEL: Final = re.compile(r"(?<=>)[^<]+(?=</text>)")
#: Largest difference of two coordinates that count as equal, in points: one unit of rounding.
_TOLERANCE: Final = 0.15


def sources() -> dict[str, list[str]]:
    """Return the names of the figures of every source: a page, a script, or an experiment."""
    found: dict[str, list[str]] = {}
    for page in sorted(DOCS.glob("*.md")):
        names = _DIRECTIVE.findall(page.read_text(encoding="utf-8"))
        if drawn := [name for name in names if name not in SCRIPTS and name not in CHARTS]:
            found[page.name] = drawn
    for name, script in SCRIPTS.items():
        found.setdefault(script, []).append(name)
    for name, (experiment, _, _) in CHARTS.items():
        found.setdefault(experiment, []).append(name)
    return found


def make(source: str) -> dict[str, str]:
    """Return the SVG text of every figure of one source, by name."""
    with (
        mpl.rc_context(_STYLE),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(action="ignore", category=ResourceWarning),
    ):
        if source.endswith(".md"):
            drawn = _from_page(DOCS / source)
        elif source.endswith(".py"):
            drawn = _from_script(DOCS / source, sources()[source])
        else:
            drawn = _from_experiment(source, sources()[source])
        texts = {name: svg(fig) for name, fig in drawn}
        plt.close("all")
        gc.collect()  # a page may leave temporary folders, which warn when they are deleted
        return texts


def _from_page(page: Path) -> Iterator[tuple[str, "Figure"]]:
    """Run the code of the page; yield the figure of each directive when the code above it ran."""
    text = page.read_text(encoding="utf-8")
    examples = DocTestParser().get_examples(text)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for directive in _DIRECTIVE.finditer(text):
        if directive[1] in SCRIPTS or directive[1] in CHARTS:
            continue
        line = text.count("\n", 0, directive.start())
        while examples and examples[0].lineno < line:
            example = examples.pop(0)
            shown_errors = [] if example.exc_msg is None else [Exception]
            with contextlib.suppress(*shown_errors):
                exec(compile(example.source, str(page), "exec"), namespace)
        yield directive[1], _shown(namespace, f"{page.name}, line {line + 1}")


def _from_script(script: Path, names: list[str]) -> Iterator[tuple[str, "Figure"]]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        namespace = runpy.run_path(str(script))
    yield from ((name, _shown(namespace, script.name)) for name in names)


def _from_experiment(name: str, names: list[str]) -> Iterator[tuple[str, "Figure"]]:
    experiment = find(name)
    for settings, figure_names in _by_settings(names):
        result = conduct(experiment, experiment.settings(**settings))
        charts = experiment.figures(result.settings, result.columns)
        for figure_name in figure_names:
            chart = charts[CHARTS[figure_name][2]]
            is_wide = chart.columns > 2 and not chart.panels[0].graphs
            yield figure_name, figures.figure(replace(chart, columns=2) if is_wide else chart)


def _by_settings(names: list[str]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Group the figures of one experiment by their settings, so that each runs once."""
    rest = list(names)
    while rest:
        settings = CHARTS[rest[0]][1]
        same = [name for name in rest if CHARTS[name][1] == settings]
        yield settings, same
        rest = [name for name in rest if name not in same]


def _shown(namespace: Mapping[str, Any], place: str) -> "Figure":
    """Return the figure of the first of `figure`, `axes` and `chart`, and remove all three."""
    values = dict(namespace)
    shown = [values[name] for name in ("figure", "axes", "chart") if name in values]
    if isinstance(namespace, dict):
        for name in ("figure", "axes", "chart"):
            namespace.pop(name, None)
    if not shown:
        raise SystemExit(f"{place}: the code above the figure assigns no figure, axes or chart")
    if isinstance(shown[0], Chart):
        return figures.figure(shown[0])
    fig: Figure = shown[0].figure
    return fig


def svg(fig: "Figure") -> str:
    """Return the figure as SVG text, the same for the same figure, with coordinates rounded."""
    out = io.StringIO()
    fig.savefig(out, format="svg", metadata=_NO_METADATA, bbox_inches="tight")
    text = out.getvalue()
    text = text[text.index("<svg") :]
    # Names that Matplotlib derives from coordinates differ where the last digits do.
    ids = dict.fromkeys(re.findall(r'\bid="([a-z][0-9a-f]{10})"', text))
    for number, name in enumerate(ids):
        text = text.replace(name, f"id{number}")
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"<[^<>]*>", lambda tag: _LONG_NUMBER.sub(_rounded, tag[0]), text)
    text = text.replace("'DejaVu Sans'", _FONTS)
    text = re.sub(r"\s*\n\s*", "\n", text).strip() + "\n"
    return _LINES.sub(lambda path: path[0].replace("\nL ", " "), text)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}"


def is_current(name: str, text: str) -> bool:
    """Return whether the stored figure equals this one up to rounding errors."""
    path = FOLDER / f"{name}.svg"
    return path.is_file() and _equal(path.read_text(encoding="utf-8"), text)


def _equal(stored: str, text: str) -> bool:
    """Compare two SVG texts: coordinates up to the tolerance, everything else exactly."""
    old, new = _NUMBER.split(stored), _NUMBER.split(text)
    if old[::2] != new[::2] or _LABEL.findall(stored) != _LABEL.findall(text):
        return False
    before, after = (np.array(numbers[1::2], float) for numbers in (old, new))
    return bool((np.abs(after - before) <= _TOLERANCE).all())


def main() -> int:
    """Write or check the figures; return 1 if a checked figure is out of date."""
    parser = argparse.ArgumentParser(description="Make the figures of the documentation.")
    parser.add_argument("names", nargs="*", help="pages, scripts, experiments (default: all)")
    parser.add_argument("--check", action="store_true", help="compare with the stored figures")
    arguments = parser.parse_args()
    known = sources()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no figures of {', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    old = []
    for source in arguments.names or known:
        for name, text in make(source).items():
            if is_current(name, text):
                continue
            old.append(name)
            if not arguments.check:
                (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")
            print(f"{name}: {'out of date' if arguments.check else 'written'}", flush=True)
    if arguments.check and old:
        print("Run `python docs/figures.py`, look at the figures, and commit them.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

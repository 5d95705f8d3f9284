"""A chart with every kind of mark, the charts of our experiments, and a malicious study."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayescontrol.lab import conduct, find, names, run_replicas
from bayescontrol.lab.experiment import Experiment
from bayescontrol.lab.runner import Result
from bayescontrol.lab.store import ResultStore, Study
from bayescontrol.plot.chart import Chart, Guide, Heat, Panel, Region, Series, Strokes, Word, arrows
from bayescontrol.plot.graph import Area, Edge, Graph, Node

STUDY = f"{Path(__file__).parent / 'studies' / 'evil_study.py'}:evil"


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def evil() -> Experiment[Any]:
    return find(STUDY)


@pytest.fixture
def result(evil: Experiment[Any]) -> Result:
    return conduct(evil, evil.quick)


@pytest.fixture
def keep(evil: Experiment[Any]) -> Callable[..., None]:
    """Run the study with some settings, and store its results in a folder."""

    def keep(folder: Path, **changes: Any) -> None:
        settings = replace(evil.quick, **changes)
        with ResultStore(folder, Study.of(evil, settings, STUDY)) as store:
            run_replicas(evil, settings, store=store)

    return keep


@pytest.fixture
def chart() -> Chart:
    x = np.arange(1.0, 7.0)
    y = np.array([1.0, 2.0, np.nan, 4.0, np.inf, 3.0])
    low, high = y - 0.5, y + np.array([0.5, 0.5, 0.5, np.inf, np.inf, 1.0])
    series = [
        Series("rule", x, y, low, high, colour="blue"),
        Series("naive", x, x, x - 2.0, x + 0.5, "step", "vermillion", dash="dash"),
        Series("runs", x, x / 2, x / 4, x, "points", "green", marker="star", group="rule"),
        Series("open", x, x, kind="points", colour="orange", marker="square-open"),
        Series("marked", x, x / 3, colour="purple", dash="dot", marker="diamond"),
        Series("silent", x, x / 5, colour="sky", in_legend=False),
        Series("one run", x, x / 6, x - np.inf, x + np.inf, colour="yellow"),
    ]
    guides = [
        Guide("prior $x_1$ & <b>", 0.5),
        Guide("from here", 2.0, "vertical", dash="dashdot", in_legend=False),
        Guide("bound", direction="diagonal", colour="purple"),
    ]
    panels = [
        Panel("(a)", "step t", "regret", series, guides, ylim=(None, 9.0), xticks=[1, 3, 5]),
        Panel("(b)", "step t", "regret", series, guides[1:], yscale="log", legend="below"),
        Panel("(c)", "step t", "regret", series, xscale="log", yscale="log2", xlim=(0.5, 10.0)),
    ]
    return Chart("Everything", panels, "It is only a test.", columns=2, note="no runs")


@pytest.fixture
def drawing() -> Chart:
    """Overlapping regions and words, with and without axes."""
    square = np.array([0, 2, 2, 0]), np.array([0, 0, 1, 1])
    triangle = np.array([0, 1, 1]), np.array([0, 0, 1])
    regions = [
        Region("below <b>", *square, "sky", 0.3),
        Region("above", *triangle, "orange", 1.0, in_legend=False, group="below <b>"),
    ]
    words = [Word("costs $x_1$", 1.5, 0.5), Word("m₁", 0.2, 1.2, "vermillion")]
    line = Series("edge", np.array([0, 1]), np.array([0, 1]), colour="ink")
    panels = [
        Panel("(a)", "m₁", "m₂", [line], regions=regions, equal=True, legend="upper right"),
        Panel("(b)", "u", "v", [], regions=regions, words=words, equal=True, framed=False),
    ]
    return Chart("A drawing", panels, "It is only a test.", columns=2)


@pytest.fixture
def maps() -> Chart:
    """Shaded cells with a wall, strokes and arrows over them; and a map without values."""
    values = np.array([[0.0, 0.1, np.nan], [0.4, 0.025, 0.2]])
    edge = np.array([1.0, 1.0, np.nan, 0.0, 2.0]), np.array([0.0, -1.0, np.nan, -1.0, -1.0])
    strokes = [
        Strokes("membrane <b>", *edge, colour="vermillion", dash="dash", width=2.0, in_legend=True),
        arrows("action", [0.5, 1.5], [-0.5, -1.5], [0.0, 0.5], [0.5, 0.0]),
    ]
    shaded = Heat("share of the steps", values, 0.2, "green", 0.5)
    ground = Heat("share of the steps", np.zeros((2, 3)), 0.2, "green", 0.5)
    words = [Word("G", 0.5, -0.5)]
    panels = [
        Panel("(a)", "column", "row", [], heats=[shaded], strokes=strokes, words=words),
        Panel("(b)", "column", "row", [], heats=[ground], strokes=strokes[:1], legend="below"),
    ]
    return Chart("Maps", panels, "It is only a test.", columns=2)


@pytest.fixture
def graphs() -> Chart:
    """Arrows in both directions, a loop, a faint one, overlapping outlines; and a single node."""
    nodes = [
        Node("A <b>", 0.0, 0.0, 0.5, "green", "here $x_1$ {y}"),
        Node("B", 2.0, 0.0),
        Node("C", 4.0, 0.0, 1.0, "orange"),
    ]
    edges = [
        Edge("A <b>", "B", 0.25, "go/$1$", "blue"),
        Edge("B", "A <b>", 0.75, "back", "vermillion", "dash"),
        Edge("B", "B", 0.25),
        Edge("A <b>", "C", 0.5, "far", faint=True),
    ]
    areas = [
        Area("left", ["A <b>", "B"], "blue"),
        Area("right", ["B", "C"], "vermillion", "dash", side="below"),
        Area("alone", ["B"], "ink", room=0.3, named=False),
    ]
    panels = [
        Panel("(a)", "states", "transitions", [], graphs=[Graph("three", nodes, edges, areas)],
              words=[Word("a word", 1.0, 1.0)]),
        Panel("(b)", "states", "transitions", [], graphs=[Graph("one", nodes[:1])]),
    ]  # fmt: skip
    return Chart("Graphs", panels, "It is only a test.", columns=2)


@pytest.fixture(scope="session", params=names())
def ours(request: pytest.FixtureRequest) -> list[Chart]:
    """The charts of an experiment, from two replicas of its quick size."""
    experiment = find(request.param)
    result = conduct(experiment, replace(experiment.quick, runs=2))
    return list(experiment.figures(result.settings, result.columns).values())

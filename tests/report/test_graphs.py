"""Graphs in print and on a page: large enough, readable in the dark, and read out loud."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from bayescontrol.lab import Outcome
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Series
from bayescontrol.lab.runner import Result
from bayescontrol.report import figures, interactive
from bayescontrol.report import graphs as report
from bayescontrol.report.page import Section, page
from bayescontrol.report.palette import in_the_dark


def page_of(chart: Chart) -> str:
    study: Any = SimpleNamespace(name="study", summary="a study")
    return page("A page", [Section(Result(study, {}, {}, Outcome(())), {}, {"a": chart})], {})


def test_every_colour_of_a_graph_has_its_own_in_the_dark(graphs: Chart) -> None:
    for fig in interactive.figures(graphs):
        traces = json.dumps(json.loads(interactive.as_json(fig))["data"])
        colours = set(re.findall(r'"(#[^"]*)"', traces))
        assert colours
        assert colours <= set(in_the_dark())


def test_words_of_a_graph_are_shown_as_they_stand(graphs: Chart) -> None:
    traces = interactive.figures(graphs)[0].data
    shown = {text for trace in traces if trace.mode == "text" for text in trace.text}
    assert {"A &lt;b&gt;", "go/&#36;1&#36;", "<b>left</b>", "<b>right</b>", "a word"} <= shown
    said = {trace.hovertext for trace in traces if isinstance(trace.hovertext, str)}
    assert "A &lt;b&gt; → B<br>go/&#36;1&#36;<br>probability 0.25" in said
    (nodes,) = (trace for trace in traces if isinstance(trace.hovertext, tuple))
    assert nodes.hovertext == ("here &#36;x_1&#36; &#123;y}", "B", "C")
    printed = {word.get_text() for word in figures.figure(graphs).axes[0].texts}
    assert {"A <b>", r"go/\$1\$", "left", "right", "a word"} <= printed
    assert "alone" not in printed


def test_a_page_says_to_a_screen_reader_what_a_graph_shows(graphs: Chart) -> None:
    html = page_of(graphs)
    assert 'aria-label="(a): three"' in html
    assert 'aria-label="(b): one"' in html


def test_graphs_have_the_place_on_a_page_that_their_shape_needs(graphs: Chart) -> None:
    a, _ = graphs.panels
    (wide,) = re.findall(r"aspect-ratio: ([0-9.]+) / ([0-9.]+)", report.page_style([a]))
    low, high = a.extent("x")
    assert float(wide[0]) == float(f"{high - low:.4g}")
    assert report.page_style(graphs.panels) == report.page_style([a])  # (b) is small
    assert report.page_style([a]) in page_of(graphs)


def test_a_printed_graph_is_as_wide_as_a_row_allows_and_no_wider_than_it_needs(
    graphs: Chart,
) -> None:
    a, b = graphs.panels
    assert report.print_size([a], 1)[0] > report.print_size([a], 4)[0] == 3.125
    assert report.print_size([b], 1)[0] == 3.0  # a single node
    width, height = figures.figure(graphs).get_size_inches()
    assert (width / 2, height) == report.print_size(graphs.panels, 2)


def test_a_graph_may_stand_beside_curves(graphs: Chart) -> None:
    t = np.arange(3.0)
    curve = Panel("(b)", "t", "y", [Series("y", t, t)])
    mixed = replace(graphs, panels=[graphs.panels[0], curve])
    assert len(figures.figure(mixed).axes) == 2
    assert "height: 372px" in page_of(mixed)

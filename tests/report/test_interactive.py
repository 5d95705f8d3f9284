"""Interactive figures show what the chart says, series by series, and hide it in one piece."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.graphs import Graph
from bayescontrol.lab.maps import Heat, Strokes
from bayescontrol.lab.marks import PALETTE, Guide, Region, Series
from bayescontrol.report import interactive
from bayescontrol.report.palette import DARK, DARK_GROUND, LIGHT, LIGHT_GROUND, in_the_dark


def outline(panel: Panel, series: Series) -> list[tuple[float, float]]:
    """The corners of a band: above, then below, backwards; steps have two at each change."""
    _, low, high = panel.visible(series)
    assert low is not None
    assert high is not None
    corners: list[tuple[float, float]] = []
    piece: list[tuple[float, float, float]] = []
    for x, a, b in [*zip(series.x, low, high, strict=True), (np.nan, np.nan, np.nan)]:
        if np.isfinite(a):
            if piece and series.kind == "step":
                piece.append((x, piece[-1][1], piece[-1][2]))
            piece.append((x, a, b))
        elif piece:
            corners += [(x, b) for x, _, b in piece] + [(x, a) for x, a, _ in reversed(piece)]
            corners.append((np.nan, np.nan))
            piece = []
    return corners[:-1]


def check(chart: Chart) -> None:
    """Everything that the chart says is in the figures, and no trace besides."""
    for fig, panel in zip(interactive.figures(chart), chart.panels, strict=True):
        traces = iter(fig.data)
        for heat in panel.heats:
            check_heat(next(traces), next(traces), heat)
        for region in panel.regions:
            check_region(next(traces), next(traces), region)
        for series in panel.series:
            y, low, high = panel.visible(series)
            bounded = low is not None and high is not None and np.isfinite(low).any()
            if bounded and series.kind != "points":
                check_band(next(traces), panel, series)
            line = next(traces)
            check_mark(line, series)
            np.testing.assert_array_equal(line.x, series.x)
            np.testing.assert_array_equal(line.y, y)
            assert ("markers" in line.mode) is (series.marker is not None)
            assert ("lines" in line.mode) is (series.kind != "points")
            if bounded:
                np.testing.assert_array_equal(line.customdata, np.c_[low, high])
            if bounded and series.kind == "points":
                up, down = line.error_y.array, line.error_y.arrayminus
                np.testing.assert_allclose(np.c_[y - down, y + up], np.c_[low, high])
        for guide in panel.guides:
            check_guide(next(traces), guide)
        for graph in panel.graphs:
            check_graph(traces, graph)
        for strokes in panel.strokes:
            check_strokes(next(traces), strokes)
        for word in panel.words:
            text = next(traces)
            assert (text.x, text.y) == ((word.x,), (word.y,))
            assert text.text == (word.text.replace("$", "&#36;"),)
            assert text.textfont.color == LIGHT[word.colour]
        assert not list(traces)
        for axis, label in ((fig.layout.xaxis, panel.xlabel), (fig.layout.yaxis, panel.ylabel)):
            said = "" if panel.is_map else label.replace("<", "&lt;")
            assert axis.title.text.replace("<br>", " ") == said


def check_mark(trace: Any, mark: Series | Guide) -> None:
    assert trace.legendgroup == mark.group
    assert trace.showlegend is mark.in_legend
    colour = trace.marker.color if trace.mode == "markers" else trace.line.color
    assert colour == LIGHT[mark.colour]


def check_band(trace: Any, panel: Panel, series: Series) -> None:
    np.testing.assert_array_equal(np.c_[trace.x, trace.y], outline(panel, series))
    assert (trace.fill, trace.fillcolor) == ("toself", LIGHT[series.colour])
    assert trace.legendgroup == series.group
    assert not trace.showlegend


def check_heat(cells: Any, borders: Any, heat: Heat) -> None:
    """Shades between the colours of a light page, so that a dark one can replace both."""
    np.testing.assert_array_equal(np.array(cells.z, float), heat.shades)
    np.testing.assert_array_equal(np.array(cells.customdata, float), heat.values)
    assert (cells.zmin, cells.zmax) == (0, 1)
    scale = ((0, LIGHT_GROUND["ground"]), (1, LIGHT[heat.colour]))
    assert cells.colorscale == scale
    assert (cells.x[0], cells.y[0]) == (0.5, -0.5)
    np.testing.assert_array_equal([borders.x, borders.y], heat.outline())
    assert borders.hoverinfo == "skip"


def check_graph(traces: Iterator[Any], graph: Graph) -> None:
    """Two traces for an outline and an arrow, three for a node, then words."""
    for area, hull in zip(graph.areas, graph.outlines, strict=True):
        for trace in (next(traces), next(traces)):
            np.testing.assert_array_equal(np.c_[trace.x, trace.y], [*hull, hull[0]])
            assert trace.line.color == LIGHT[area.colour]
    for edge, arrow in zip(graph.edges, graph.arrows, strict=True):
        line, head = next(traces), next(traces)
        np.testing.assert_array_equal(np.c_[line.x, line.y], arrow.line)
        np.testing.assert_array_equal(np.c_[head.x, head.y], [*arrow.head, arrow.head[0]])
        colour = LIGHT_GROUND["axis"] if edge.faint else LIGHT[edge.colour]
        assert line.line.color == head.fillcolor == colour
        assert f"probability {edge.probability:.3g}" in line.hovertext
    for node, disc in zip(graph.nodes, graph.discs, strict=True):
        under, over, edge_ = next(traces), next(traces), next(traces)
        for trace in (under, over, edge_):
            np.testing.assert_array_equal(np.c_[trace.x, trace.y], [*disc, disc[0]])
        assert (under.fillcolor, under.opacity) == (LIGHT_GROUND["ground"], 1.0)
        assert (over.fillcolor, over.opacity) == (LIGHT[node.colour], node.shade)
    nodes, edges = next(traces), next(traces)
    assert list(zip(nodes.x, nodes.y, strict=True)) == [(node.x, node.y) for node in graph.nodes]
    assert len(nodes.hovertext) == len(graph.nodes)
    assert len(edges.text) == len(graph.edge_words)
    for _, x, y, name in graph.area_words:
        word = next(traces)
        assert (word.x, word.y, word.textfont.color) == ((x,), (y,), LIGHT[name])


def check_strokes(trace: Any, strokes: Strokes) -> None:
    np.testing.assert_array_equal([trace.x, trace.y], [strokes.x, strokes.y])
    assert (trace.line.color, trace.line.dash) == (LIGHT[strokes.colour], strokes.dash)
    assert (trace.legendgroup, trace.showlegend) == (strokes.group, strokes.in_legend)
    assert trace.hoverinfo == "skip"  # the pointer reads the cell below


def check_guide(trace: Any, guide: Guide) -> None:
    check_mark(trace, guide)
    if guide.direction == "diagonal":
        np.testing.assert_array_equal(trace.x, trace.y)
    else:
        assert set(trace.x if guide.direction == "vertical" else trace.y) == {guide.at}


def check_region(under: Any, over: Any, region: Region) -> None:
    """Opaque in the colour of the ground, then shaded; the outline is closed."""
    corners = np.c_[region.x, region.y]
    for trace in (under, over):
        np.testing.assert_array_equal(np.c_[trace.x, trace.y], [*corners, corners[0]])
        assert trace.fill == "toself"
        assert trace.legendgroup == region.group
    assert (under.fillcolor, under.opacity) == (LIGHT_GROUND["ground"], None)
    assert (over.fillcolor, over.opacity) == (LIGHT[region.colour], region.shade)
    assert (under.showlegend, over.showlegend) == (False, region.in_legend)


def test_a_drawing_shows_its_regions_and_words_on_a_page(drawing: Chart) -> None:
    check(drawing)
    a, b = (fig.layout for fig in interactive.figures(drawing))
    assert (a.yaxis.scaleanchor, b.yaxis.scaleanchor) == ("x", "x")
    assert (a.xaxis.showticklabels, b.xaxis.showticklabels) == (None, False)
    assert b.xaxis.title.text == "u"


def test_maps_show_their_shades_and_strokes_on_a_page_and_cannot_be_moved(maps: Chart) -> None:
    check(maps)
    layout = interactive.figures(maps)[0].layout
    assert (layout.yaxis.scaleanchor, layout.dragmode) == ("x", False)
    assert layout.xaxis.range[0] < 0 < 3 < layout.xaxis.range[1]
    assert layout.yaxis.range[0] < -2 < 0 < layout.yaxis.range[1]
    assert (layout.xaxis.showticklabels, layout.yaxis.showticklabels) == (False, False)


def test_graphs_show_all_their_parts_on_a_page_and_cannot_be_moved(graphs: Chart) -> None:
    check(graphs)
    layout = interactive.figures(graphs)[0].layout
    assert (layout.yaxis.scaleanchor, layout.dragmode) == ("x", False)


def test_a_region_says_under_the_pointer_which_it_is(drawing: Chart) -> None:
    _, over, *_ = interactive.figures(drawing)[0].data
    assert (over.hoveron, over.hoverinfo, over.text) == ("fills", "text", "below &lt;b&gt;")


def test_interactive_figures_show_the_data_of_their_chart(chart: Chart) -> None:
    check(chart)


def test_the_interactive_figures_of_our_experiments_show_their_data(ours: list[Chart]) -> None:
    for one in ours:
        check(one)


def test_a_logarithmic_axis_is_counted_in_decades_and_marked_at_powers(chart: Chart) -> None:
    a, b, c = (fig.layout for fig in interactive.figures(chart))
    assert (a.yaxis.type, b.yaxis.type, c.xaxis.type, c.yaxis.type) == (None, "log", "log", "log")
    assert a.yaxis.range == (None, 9.0)
    assert list(a.xaxis.tickvals) == [1, 3, 5]
    assert c.xaxis.range == pytest.approx([np.log10(0.5), 1.0])
    assert 10**c.yaxis.dtick == pytest.approx(4)


def test_there_is_a_little_room_beside_the_data(chart: Chart) -> None:
    low, high = interactive.figures(chart)[0].layout.xaxis.range
    assert (low, high) == pytest.approx((0.85, 6.15))


def test_text_is_shown_as_it_stands(chart: Chart) -> None:
    names = {trace.name for trace in interactive.figures(chart)[0].data}
    assert "prior &#36;x_1&#36; &amp; &lt;b&gt;" in names


def test_json_can_stand_in_a_page_and_is_the_same_each_time(chart: Chart) -> None:
    first = [interactive.as_json(fig) for fig in interactive.figures(chart)]
    assert first == [interactive.as_json(fig) for fig in interactive.figures(chart)]
    for text in first:
        assert not set("<>&") & set(text)
        assert set(json.loads(text)) == {"data", "layout"}


def luminance(colour: str) -> float:
    rgb: npt.NDArray[np.float64] = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("name", PALETTE)
def test_every_colour_stands_out_from_the_dark(name: Any) -> None:
    ground = luminance(DARK_GROUND["ground"])
    assert (luminance(DARK[name]) + 0.05) / (ground + 0.05) >= 4.5


def test_every_colour_of_the_light_has_its_own_in_the_dark() -> None:
    assert set(LIGHT) == set(DARK) == set(PALETTE)
    assert len(in_the_dark()) == len(LIGHT) + len(LIGHT_GROUND)
    assert len(set(in_the_dark().values())) == len(in_the_dark())

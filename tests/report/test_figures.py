"""Figures show the data of their chart, in one style; files are the same bytes each time."""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyQuadMesh
from matplotlib.colors import to_hex, to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from bayescontrol.errors import MissingExtra
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Colour, Guide, Heat, Panel, Series, Strokes
from bayescontrol.plot.graph import Edge, Graph
from bayescontrol.plot.legend import with_colours, with_distinct_lines
from bayescontrol.plot.palette import LIGHT, LIGHT_GROUND

SVG: Final = "{http://www.w3.org/2000/svg}"


def lines_of(ax: Axes) -> list[Line2D]:
    """Return the lines that are not part of error bars."""
    parts = [part for bars in ax.containers for part in (bars[0], *bars[1])]
    return [line for line in ax.get_lines() if line not in parts]


def check_series(panel: Panel, series: Series, drawn: Line2D) -> None:
    np.testing.assert_array_equal(np.asarray(drawn.get_xdata()), series.x)
    np.testing.assert_array_equal(np.asarray(drawn.get_ydata()), panel.visible(series).y)
    assert series.colour is not None
    assert to_hex(drawn.get_color()) == LIGHT[series.colour]


def check_band(panel: Panel, series: Series, band: Any) -> None:
    """The corners of the polygons are those of the band, and there are no other heights."""
    _, low, high = panel.visible(series)
    x = np.tile(series.x, 2)[np.isfinite(np.r_[low, high])]
    y = np.r_[low, high][np.isfinite(np.r_[low, high])]
    corners = {tuple(corner) for path in band.get_paths() for corner in path.vertices}
    assert corners >= set(zip(x, y, strict=True))
    assert {height for _, height in corners} == set(y)
    assert series.colour is not None
    assert to_hex(band.get_facecolor()[0]) == LIGHT[series.colour]


def check_bars(panel: Panel, series: Series, bars: ErrorbarContainer) -> None:
    _, low, high = panel.visible(series)
    (segments,) = bars[2]
    ends = zip(series.x, np.c_[low, high], segments.get_segments(), strict=True)
    for x, (bottom, top), segment in ends:
        np.testing.assert_allclose(segment, [(x, bottom), (x, top)], rtol=1e-12)


def check(chart: Chart) -> None:
    """Assert that the figure shows everything in the chart, and no other line or bar."""
    for ax, panel in axes_of(chart):
        lines, bars, patches = iter(lines_of(ax)), iter(ax.containers), iter(ax.patches)
        texts = iter(ax.texts[:-1])  # the last one holds the notes of the panel
        meshes = [mesh for mesh in ax.collections if isinstance(mesh, PolyQuadMesh)]
        bands = iter(
            [c for c in ax.collections if not isinstance(c, LineCollection | PolyQuadMesh)]
        )
        for heat, mesh in zip(panel.heats, meshes, strict=True):
            check_heat(heat, mesh)
        for series in panel.series:
            if series.kind == "points":
                container = next(bars)
                assert isinstance(container, ErrorbarContainer)
                check_series(panel, series, container[0])
                if series.low is not None:
                    check_bars(panel, series, container)
                continue
            check_series(panel, series, next(lines))
            if series.low is not None:
                check_band(panel, series, next(bands))
        for guide in panel.guides:
            check_guide(guide, next(lines))
        for region in panel.regions:
            corners = np.c_[region.x, region.y]
            check_filled(next(patches), next(patches), corners, region.colour, region.shade)
        for graph in panel.graphs:
            check_graph(graph, patches, texts)
        for strokes in panel.strokes:
            check_strokes(strokes, next(lines))
        for word, text in zip(panel.words, texts, strict=True):
            assert text.get_text().replace(r"\$", "$") == word.text
            assert text.get_position() == (word.x, word.y)
            assert to_hex(str(text.get_color())) == LIGHT[word.colour]
        assert not [*lines, *bars, *bands, *patches]
        assert ax.get_xlabel() == ("" if panel.is_map else panel.xlabel)
        assert ax.get_ylabel() == ("" if panel.is_map else panel.ylabel)


def axes_of(chart: Chart) -> Iterable[tuple[Axes, Panel]]:
    """Return the axes of each panel; figures with maps may have one more, the colour scale."""
    axes, panels = figures.figure(chart).axes, with_colours(chart.panels)
    assert len(axes) - len(chart.panels) in (0, int(any(panel.is_map for panel in chart.panels)))
    return zip(axes, panels, strict=False)


def check_heat(heat: Heat, mesh: PolyQuadMesh) -> None:
    """Assert that the cells, but not the walls, have their shade and a border."""
    shades: Any = np.ma.filled(np.ma.asarray(mesh.get_array()), np.nan)
    np.testing.assert_array_equal(shades, heat.shade(heat.values))
    i, j = np.nonzero(~np.isnan(heat.values))
    corners = {tuple(np.min(path.vertices, axis=0)) for path in mesh.get_paths()}
    assert corners == set(zip(j, -i - 1.0, strict=True))
    assert mesh.get_linewidth() == [0.7]
    colour = to_rgb(LIGHT[heat.colour])
    np.testing.assert_array_equal(mesh.get_cmap()([0.0, 1.0]), [(*colour, 0), (*colour, 1)])


def check_graph(graph: Graph, patches: Iterator[Any], texts: Iterator[Any]) -> None:
    """Assert that outlines, arrows, nodes and words are at the positions of the graph."""
    for area, hull in zip(graph.areas, graph.outlines, strict=True):
        patch = next(patches)
        np.testing.assert_array_equal(patch.get_xy()[:-1], hull)
        assert to_hex(patch.get_edgecolor()) == LIGHT[area.colour]
        assert patch.get_facecolor()[3] == 0.1  # the inside and other outlines stay visible
    for node, disc in zip(graph.nodes, graph.discs, strict=True):
        check_filled(next(patches), next(patches), disc, node.colour, node.shade)
    for edge in graph.edges:
        line, head = next(patches), next(patches)
        check_arrow(graph, edge, line, head)
    nodes = [(node.name, node.x, node.y) for node in graph.nodes]
    for text, x, y in [*nodes, *graph.edge_words, *(word[:3] for word in graph.area_words)]:
        drawn = next(texts)
        assert drawn.get_text().replace(r"\$", "$") == text
        assert drawn.get_position() == (x, y)


def check_arrow(graph: Graph, edge: Edge, line: Any, head: Any) -> None:
    """Assert that an arrow leads from the border of one disc to the border of another."""
    colour = LIGHT_GROUND["axis"] if edge.faint else LIGHT[edge.colour]
    assert to_hex(line.get_edgecolor()) == to_hex(head.get_facecolor()) == colour
    assert (line.get_linewidth(), head.get_linewidth()) == (edge.width, 0.0)
    centres = {node.name: np.array([node.x, node.y]) for node in graph.nodes}
    for shape, name in ((line, edge.source), (head, edge.target)):
        distances = np.hypot(*(shape.get_path().vertices - centres[name]).T)
        assert distances.min() == pytest.approx(graph.radius, rel=0.05)


def check_strokes(strokes: Strokes, drawn: Line2D) -> None:
    np.testing.assert_array_equal(np.array(drawn.get_data()), [strokes.x, strokes.y])
    assert to_hex(drawn.get_color()) == LIGHT[strokes.colour]
    assert drawn.get_linewidth() == strokes.width


def check_guide(guide: Guide, drawn: Line2D) -> None:
    x, y = (np.asarray(data, float) for data in drawn.get_data())
    if guide.direction == "diagonal":
        np.testing.assert_array_equal(x, y)
    else:
        assert set(x if guide.direction == "vertical" else y) == {guide.at}


def check_filled(under: Any, over: Any, corners: Any, colour: Colour, shade: float) -> None:
    """Assert a shade of the colour over an opaque background, which hides other marks."""
    for patch in (under, over):
        assert isinstance(patch, Polygon)
        np.testing.assert_array_equal(patch.get_xy(), [*corners, corners[0]])
    assert under.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert over.get_facecolor() == (*to_rgb(LIGHT[colour]), shade)


@pytest.mark.parametrize("kind", ["chart", "drawing", "maps", "graphs"])
def test_a_figure_shows_the_data_of_its_chart(kind: str, request: pytest.FixtureRequest) -> None:
    check(request.getfixturevalue(kind))


def test_a_drawing_has_equal_units_and_axes_only_if_framed(drawing: Chart) -> None:
    a, b = figures.figure(drawing).axes
    assert (a.get_aspect(), b.get_aspect()) == (1.0, 1.0)
    assert len(a.get_xticks()) > 0
    assert len(b.get_xticks()) + len(b.get_yticks()) == 0
    assert not b.spines["left"].get_visible()
    assert b.get_xlabel() == "u"


@pytest.mark.parametrize(
    ("kind", "names"), [("drawing", ["below <b>", "edge"]), ("maps", ["membrane <b>"])]
)
def test_regions_and_strokes_are_in_the_legend_if_the_chart_says_so(
    kind: str, names: list[str], request: pytest.FixtureRequest
) -> None:
    (legend,) = figures.figure(request.getfixturevalue(kind)).legends
    assert [text.get_text() for text in legend.get_texts()] == names


@pytest.mark.parametrize("kind", ["maps", "graphs"])
def test_maps_and_graphs_have_equal_units_and_no_axes(
    kind: str, request: pytest.FixtureRequest
) -> None:
    a, b = figures.figure(request.getfixturevalue(kind)).axes[:2]
    assert (a.get_aspect(), b.get_aspect()) == (1.0, 1.0)
    assert len(a.get_xticks()) + len(a.get_yticks()) == 0
    assert not a.spines["left"].get_visible()


def test_maps_with_equal_shading_share_one_colour_scale(maps: Chart) -> None:
    *_, scale = figures.figure(maps).axes
    assert scale.get_ylabel() == "share of the steps"
    labels = [text.get_text() for text in scale.get_yticklabels()]
    assert labels == ["0", "0.02", "0.05", "0.1", "≥ 0.2"]  # a cell has 0.4
    np.testing.assert_allclose(scale.get_yticks(), np.sqrt([0, 0.1, 0.25, 0.5, 1]))


def test_maps_with_different_shading_have_a_colour_scale_each(maps: Chart) -> None:
    a, b = maps.panels
    other = replace(b, heats=[Heat("share of the steps", np.ones((2, 3)), 1.0, "green", 0.5)])
    different = replace(maps, panels=[a, other])
    *_, first, second = figures.figure(different).axes
    assert [first.get_yticklabels()[-1].get_text(), second.get_yticklabels()[-1].get_text()] == [
        "≥ 0.2", "1",
    ]  # fmt: skip


def test_a_legend_below_is_no_wider_than_its_figure() -> None:
    x = np.arange(2.0)
    series = [Series(f"{i}, an agent with a rather long name to read", x, x) for i in range(6)]
    panels = [Panel(title, "t", "y", series[k::2], legend="below") for k, title in enumerate("ab")]
    fig = figures.figure(Chart("Long names", panels, "Up.", columns=2))
    fig.canvas.draw()
    assert fig.legends[0].get_window_extent().width <= fig.bbox.width


def test_the_figures_of_our_experiments_show_their_data(ours: list[Chart]) -> None:
    for one in ours:
        check(one)


def test_the_charts_of_our_experiments_can_be_read(ours: list[Chart]) -> None:
    for one in ours:
        assert one.how_to_read.endswith(".")
        for ax, panel in axes_of(one):
            assert panel.is_map or (ax.get_xlabel() and ax.get_ylabel())
            assert ax.get_title()


def test_axes_have_the_scales_limits_and_ticks_of_the_panel(chart: Chart) -> None:
    a, b, c = figures.figure(chart).axes
    assert [a.get_yscale(), b.get_yscale(), c.get_xscale(), c.get_yscale()] == [
        "linear", "log", "log", "log",
    ]  # fmt: skip
    assert a.get_ylim()[1] == 9.0
    assert c.get_xlim() == (0.5, 10.0)
    assert a.get_xticks().tolist() == [1, 3, 5]


def test_panels_that_share_an_entry_have_one_legend_below_the_chart(chart: Chart) -> None:
    fig = figures.figure(chart)
    named = ["rule", "naive", "runs", "open", "marked", "one run", "prior $x_1$ & <b>", "bound"]
    assert [ax.get_legend() for ax in fig.axes] == [None] * 3
    (legend,) = fig.legends
    assert [text.get_text().replace(r"\$", "$") for text in legend.get_texts()] == named


def test_a_panel_that_shares_no_entry_has_its_own_legend(chart: Chart) -> None:
    x = np.arange(2.0)
    other = Panel("(d)", "t", "y", [Series("other", x, x)])
    fig = figures.figure(replace(chart, panels=[*chart.panels, other]))
    own = fig.axes[3].get_legend()
    assert own is not None
    assert [text.get_text() for text in own.get_texts()] == ["other"]
    assert len(fig.legends) == 1


def test_lines_that_differ_only_in_colour_get_a_few_markers() -> None:
    x = np.arange(50.0)
    lines = [
        Series("a", x, x, colour="blue"),
        Series("b", x, 2 * x, colour="green"),
        Series("c", x, 3 * x, colour="orange", dash="dash"),
        Series("d", x, 4 * x, colour="sky", group="runs"),
        Series("runs", x, 4 * x, colour="sky", kind="points", group="runs"),
    ]
    one, other = Panel("one", "t", "y", lines), Panel("other", "t", "y", lines[:1])
    (first, second) = figures.figure(Chart("A", [one, other], "Up.", columns=2)).axes
    assert [line.get_marker() for line in first.lines[:4]] == ["o", "D", "None", "None"]
    assert second.lines[0].get_marker() == "o"
    assert isinstance(first.lines[0].get_markevery(), tuple)


def test_no_line_of_our_figures_is_told_from_another_by_its_colour_alone(
    ours: list[Chart],
) -> None:
    for chart in ours:
        for panel in with_distinct_lines(chart).panels:
            marked = {s.group for s in panel.series if s.kind == "points"}
            lines = [s for s in panel.series if s.kind != "points" and s.group not in marked]
            looks = {(s.colour, s.dash, s.marker) for s in lines}
            assert len({(dash, marker) for _, dash, marker in looks}) == len(looks), panel.title


def test_captions_of_our_figures_hold_for_stacked_panels_and_dark_pages(ours: list[Chart]) -> None:
    for chart in ours:
        notes = (note for panel in chart.panels for note in panel.notes)
        for text in (chart.how_to_read, chart.note, *notes):
            assert not re.search(
                r"\b(Left|Right|Top|Bottom|on the (left|right)|[Dd]arker)\b", text
            ), text


def test_infinite_bounds_leave_the_axes_finite() -> None:
    x = np.arange(2.0)
    series = Series("one run", x, x, x - np.inf, x + np.inf)
    (ax,) = figures.figure(Chart("One run", [Panel("", "t", "y", [series])], "Up.")).axes
    assert -1 < ax.get_ylim()[0] < ax.get_ylim()[1] < 2


def test_a_row_that_is_not_full_has_no_empty_axes(chart: Chart) -> None:
    fig = figures.figure(chart)
    assert len(fig.axes) == 3
    assert fig.get_size_inches().tolist() == [10.6, 8.0]


def test_files_are_the_same_bytes_each_time(chart: Chart, tmp_path: Path) -> None:
    first = [path.read_bytes() for path in figures.save(chart, tmp_path / "a.b")]
    again = [path.read_bytes() for path in figures.save(chart, tmp_path / "c")]
    assert first == again
    assert first[0] == figures.png(chart)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.b.pdf", "a.b.png", "c.pdf", "c.png",
    ]  # fmt: skip
    assert b"CreationDate" not in first[1]


def test_a_picture_has_200_dots_per_inch(chart: Chart) -> None:
    image = figures.png(chart)
    assert [int.from_bytes(image[i : i + 4], "big") for i in (16, 20)] == [2120, 1600]


def svg_tree(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def groups_in(svg: str) -> list[list[int]]:
    """Return the groups of the marks and of the buttons of an SVG element."""
    parts = [part for part in svg_tree(svg).iter() if part.get("data-group")]
    is_button = [part.get("role") == "button" for part in parts]
    return [
        [
            int(part.get("data-group", ""))
            for part, b in zip(parts, is_button, strict=True)
            if b == k
        ]
        for k in (False, True)
    ]


def test_a_chart_on_a_page_has_its_labels_as_text_and_its_groups_marked(chart: Chart) -> None:
    svg = figures.svg(chart, "a")
    texts = ["".join(text.itertext()) for text in svg_tree(svg).iter(f"{SVG}text")]
    assert {"(a)", "step t", "regret", "naive", "prior $x_1$ & <b>"} <= set(texts)
    assert chart.title not in texts
    assert chart.note not in texts
    marks, buttons = groups_in(svg)
    # The groups: rule, naive, open, marked, silent, one run, prior, from here, bound.
    assert set(marks) == set(range(9))
    assert marks.count(0) >= 3 * (2 + 3)  # a line and its band; points, caps and bars
    assert buttons == [0, 1, 0, 2, 3, 5, 6, 8]  # the series "rule" and "runs" are one group


@pytest.mark.parametrize("kind", ["chart", "drawing", "maps", "graphs"])
def test_a_page_can_replace_every_colour_in_the_dark(
    kind: str, request: pytest.FixtureRequest
) -> None:
    tags = "".join(re.findall(r"<[^<>]*>", figures.svg(request.getfixturevalue(kind), "a")))
    found = set(re.findall(r"#[0-9a-f]{6}\b", tags))
    assert found <= {"#b0b0b0"}  # the grid: grey, and nearly transparent


def test_charts_of_a_page_have_no_ids_in_common(chart: Chart) -> None:
    svgs = [figures.svg(chart, "a"), figures.svg(chart, "b")]
    ids = [set(re.findall(r'\bid="([^"]*)"', svg)) for svg in svgs]
    assert ids[0].isdisjoint(ids[1])
    assert figures.svg(chart, "a") == svgs[0]


def test_text_that_looks_like_a_colour_or_a_tag_is_shown_unchanged() -> None:
    x = np.arange(2.0)
    odd = "</svg><b>#0072b2 $a$ & id="
    svg = figures.svg(Chart("A", [Panel("", odd, odd, [Series(odd, x, x)])], "Up."), "a")
    texts = ["".join(text.itertext()) for text in svg_tree(svg).iter(f"{SVG}text")]
    assert texts.count(odd) == 3  # two axes and the legend


def test_nodes_and_edges_of_a_graph_have_tooltips_on_a_page(graphs: Chart) -> None:
    titles = [t.text for t in svg_tree(figures.svg(graphs, "a")).iter(f"{SVG}title")]
    assert "here $x_1$ {y}" in titles
    assert "A <b> → B, go/$1$: probability 0.25" in titles


def test_a_printed_graph_is_as_wide_as_needed_up_to_its_row(
    graphs: Chart,
) -> None:
    a, b = graphs.panels
    assert figures.graph_size([a], 1)[0] > figures.graph_size([a], 4)[0] == 3.125
    assert figures.graph_size([b], 1)[0] == 3.0  # a single node
    width, height = figures.figure(graphs).get_size_inches()
    assert (width / 2, height) == figures.graph_size(graphs.panels, 2)


def test_a_graph_can_be_beside_curves(graphs: Chart) -> None:
    t = np.arange(3.0)
    curve = Panel("(b)", "t", "y", [Series("y", t, t)])
    mixed = replace(graphs, panels=[graphs.panels[0], curve])
    assert len(figures.figure(mixed).axes) == 2


def test_a_missing_matplotlib_is_reported_with_the_install_command(
    chart: Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bayescontrol\[plot\]'"):
        figures.png(chart)


@pytest.mark.parametrize(
    "modules",
    ["bayescontrol.report.build", "bayescontrol.cli.main",
     "bayescontrol.lab.export, bayescontrol.statistics"],
)  # fmt: skip
def test_importing_loads_no_heavy_library(modules: str) -> None:
    code = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"matplotlib", "numba", "scipy", "distributed", "xarray", "pandas"}
    assert not heavy & set(done.stdout.split())


def test_numbers_on_the_axes_of_a_page_have_all_their_digits() -> None:
    series = Series("mean", np.arange(3), np.array([0.3405, 0.3425, 0.3445]))
    chart = Chart("Close", [Panel("", "step t", "mean", [series])], "Read it.")
    svg = figures.svg(chart, "f")
    ticks = re.findall(r">(0\.\d+)</text>", svg)
    assert "0.3430" in ticks
    assert len(set(ticks)) == len(ticks)
    assert not re.search(r' d="[^"]*\.\d{3}', svg)  # coordinates are rounded

"""Graphs: the positions of all parts, arrows that do not overlap, and invalid graphs."""

from typing import Any

import numpy as np
import pytest

from bayescontrol.plot.chart import InvalidChart, Panel
from bayescontrol.plot.graph import Area, Edge, Graph, Node, contains

A, B, C = Node("A", 0.0, 0.0), Node("B", 2.0, 0.0), Node("C", 4.0, 0.0)


def graph(*edges: Edge, nodes: Any = (A, B, C), **other: Any) -> Graph:
    return Graph("a graph", nodes, edges, **other)


def distance(points: Any, node: Node) -> Any:
    return np.hypot(points[:, 0] - node.x, points[:, 1] - node.y)


def heights(*edges: Edge) -> list[float]:
    """Return how far the middle control point of each arrow lies above its line."""
    return [float(curve[1, 1]) for curve in graph(*edges).curves]


def test_arrows_between_two_nodes_lie_apart() -> None:
    there, back = heights(Edge("A", "B"), Edge("B", "A"))
    assert there > 0.2
    assert back < -0.2
    parallel = [Edge("A", "B", label=str(k)) for k in range(3)]
    assert np.diff(sorted(heights(*parallel, Edge("B", "A")))).min() > 0.4
    assert heights(Edge("A", "B", bend=-0.4)) == [-0.8]


def test_a_single_arrow_is_straight_unless_a_node_blocks_it() -> None:
    near, far = heights(Edge("A", "B"), Edge("A", "C"))
    assert near == 0.0
    assert far > 1.0


def test_a_loop_starts_and_ends_at_its_node_on_the_free_side() -> None:
    drawn = graph(Edge("A", "B"), Edge("A", "A"))
    loop = drawn.curves[1]
    assert distance(loop[[0, -1]], A) == pytest.approx([drawn.radius] * 2)
    assert loop[:, 0].max() < 0.0  # B is on the right
    alone = graph(Edge("A", "A")).curves[0]
    assert alone.mean(axis=0) == pytest.approx([0.0, alone[:, 1].mean()])
    assert alone[:, 1].min() > 0.0


def test_the_width_of_an_arrow_grows_with_its_probability_and_is_halved_if_faint() -> None:
    widths = [Edge("A", "B", p).width for p in (0.1, 0.5, 1.0)]
    assert widths == [0.84, 1.8, 3.0]
    assert Edge("A", "B", 0.5, faint=True).width == 0.9


def test_an_outline_encloses_its_nodes_with_a_margin_and_no_others() -> None:
    drawn = graph(areas=[Area("left", ["A", "B"], room=0.5), Area("all", ["A", "B", "C"])])
    left, every = drawn.outlines
    for node in (A, B):
        assert contains(left, (node.x, node.y))
        assert distance(left, node).min() == pytest.approx(1.5 * drawn.radius, rel=1e-3)
    assert not contains(left, (C.x, C.y))
    assert contains(every, (C.x, C.y))


def test_an_outline_that_would_enclose_another_node_is_refused() -> None:
    with pytest.raises(InvalidChart, match="area 'ends' encloses 'B', which is not in it"):
        graph(areas=[Area("ends", ["A", "C"])])


def test_the_label_of_an_outline_is_above_or_below_it_or_omitted() -> None:
    areas = [Area("over", ["A"]), Area("under", ["B"], side="below"),
             Area("no", ["C"], named=False)]  # fmt: skip
    (over, x, y, _), (_, _, z, _) = graph(areas=areas).area_words
    assert over == "over"
    assert x == pytest.approx(0.0)
    assert y > 0.43
    assert z < -0.43


def test_the_label_of_an_arrow_is_beside_it_at_the_given_position() -> None:
    (_, x, y), (_, u, v) = graph(Edge("A", "B", label="go"), Edge("B", "A", label="back",
                                                                  at=0.9)).edge_words  # fmt: skip
    assert x == pytest.approx(1.0, abs=1e-3)
    assert y > 0.3
    assert u < 0.6
    assert v < 0


def test_the_extent_of_a_graph_includes_all_parts_and_words() -> None:
    small = graph(nodes=[A])
    assert small.x.tolist() == [-0.27, 0.27]
    named = graph(nodes=[A], areas=[Area("a rather long label", ["A"])])
    assert named.x[1] > 0.9
    assert named.y[1] > 0.6
    assert graph(Edge("A", "A"), nodes=[A]).y[1] > 0.5
    panel = Panel("", "states", "transitions", [], graphs=[named])
    assert panel.is_map
    assert panel.extent("x") == tuple(named.x)
    assert panel.marks == (named,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Node(" ", 0, 0), "node ' ': the name is empty"),
        (lambda: Node("A", np.nan, 0), r"node 'A': the position \(nan, 0\) is not finite"),
        (lambda: Node("A", 0, 0, 1.5), "node 'A': shade is 1.5"),
        (lambda: Node("A", 0, 0, colour="red"), "'red'; it must be blue"),  # type: ignore[arg-type]
        (lambda: Edge("A", "B", 0.0), "edge 'A' → 'B': probability is 0.0"),
        (lambda: Edge("A", "B", 1.1), "probability is 1.1"),
        (lambda: Edge("A", "B", np.nan), "probability is nan"),
        (lambda: Edge("A", "B", at=2.0), "at is 2.0; it must be between 0 and 1"),
        (lambda: Edge("A", "B", bend=np.inf), "bend is inf; it must be finite"),
        (lambda: Edge("A", "B", dash="dots"), "dash is 'dots'"),  # type: ignore[arg-type]
        (lambda: Area("", ["A"]), "area '': the label is empty"),
        (lambda: Area("all", []), "area 'all': it has no nodes"),
        (lambda: Area("all", ["A"], room=0.0), "room is 0.0; it must be positive"),
        (lambda: Area("all", ["A"], side="left"), "side is 'left'; it must be above or below"),  # type: ignore[arg-type]
        (lambda: Graph("", [A]), "graph '': the label is empty"),
        (lambda: Graph("none", []), "graph 'none': 0 nodes"),
        (lambda: graph(nodes=[A], radius=0.0), "of radius 0.0"),
        (lambda: graph(nodes=[A, A]), "two nodes are called 'A'"),
        (lambda: graph(nodes=[A, Node("D", 0.3, 0.0)]), "'A' and 'D' overlap"),
        (lambda: graph(Edge("A", "D")), "edge 'A' → 'D': no node is called 'D'"),
        (lambda: graph(areas=[Area("all", ["D"])]), "area 'all': no node is called 'D'"),
        (
            lambda: Panel("", "s", "t", [], graphs=[graph()], xscale="log"),
            "cannot be drawn on a logarithmic axis",
        ),
    ],
)
def test_a_chart_that_cannot_be_drawn_or_misleads_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidChart, match=message):
        make()

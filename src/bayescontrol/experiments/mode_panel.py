"""A mode as a graph: what its hypothesis expects, and where its policy goes and stays.

    shade of a state    P(1 | m, x)
    arrows              P(s' | m, s) of its policy; grey, what the policy leaves alone
    outlines            the regions of the state space, and the subset that the policy selects

For classes of `problems.diagrams`, where the label of a situation begins with its region.
"""

from collections.abc import Mapping
from typing import Final

from bayescontrol.experiments.chains import chain, shares
from bayescontrol.experiments.drawing import Places, chain_edges, nodes, transitions
from bayescontrol.lab.chart import Panel
from bayescontrol.lab.graph_parts import Area, Edge
from bayescontrol.lab.graphs import Graph
from bayescontrol.lab.marks import Colour, Dash
from bayescontrol.problems.tabular import TabularModes

#: Outlines of regions lie outside those of policies.
_REGION: Final = 1.0
_SUBSET: Final = 0.45


def mode_panel(
    modes: TabularModes,
    m: int,
    places: Places,
    *,
    title: str,
    policy: str,
    look: tuple[Colour, Dash],
    note: str,
    bends: Mapping[tuple[str, str], float] | None = None,
) -> Panel:
    """The panel of mode m; `policy` is what its policy is called, `bends` are ways around.

    >>> from bayescontrol.problems.diagrams import consistency_diagram
    >>> places = {"A0": (0, 0), "A1": (-1, 1), "A2": (1, 1), "B0": (3, 0)}
    >>> panel = mode_panel(consistency_diagram(), 0, places, title="H1", policy="P1",
    ...                    look=("blue", "solid"), note="")
    >>> [area.label for area in panel.graphs[0].areas], panel.graphs[0].areas[2].nodes
    (['region A', 'region B', 'where P1 stays'], ('A0', 'A1'))
    """
    colour, dash = look
    names, own = modes.labels.situations, modes.policy[m]
    expects = modes.hypothesis[m, :, 0, 1]
    mu = shares(chain(modes, own, m))
    inside = tuple(name for name, share in zip(names, mu, strict=True) if share > 0)
    taken = [
        _bent(edge, bends, faint=edge.source not in inside)
        for edge in chain_edges(modes, own, m, colour=colour)
    ]
    ways = {(edge.source, edge.target) for edge in taken}
    left: dict[tuple[str, str], Edge] = {}
    for edge in transitions(modes, m, [("ink", "dot")] * len(modes.actions)):
        way = edge.source, edge.target
        if way not in ways:
            left.setdefault(way, _bent(edge, bends, faint=True))
    regions = sorted({name[0] for name in names})
    graph = Graph(
        f"what {modes.name(m)} expects in each state, and where {policy} goes",
        nodes(places, 0.85 * expects, [f"expects 1 with P = {p:.2g}" for p in expects], "purple"),
        [*left.values(), *taken],
        [
            *(
                Area(
                    f"region {region}",
                    tuple(name for name in names if name[0] == region),
                    "ink",
                    "dot",
                    _REGION,
                )
                for region in regions
            ),
            Area(f"where {policy} stays", inside, colour, dash, _SUBSET, named=False),
        ],
    )
    return Panel(title, "states", "transitions", [], graphs=[graph], notes=[note] if note else [])


def _bent(edge: Edge, bends: Mapping[tuple[str, str], float] | None, *, faint: bool) -> Edge:
    bend = (bends or {}).get((edge.source, edge.target))
    dash: Dash = "dot" if faint else "solid"
    return Edge(edge.source, edge.target, edge.probability, "", edge.colour, dash, bend,
                faint=faint)  # fmt: skip

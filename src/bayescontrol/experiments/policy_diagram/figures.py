"""The figures of `policy-diagram`: the diagram itself, and the time spent in its parts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from bayescontrol.experiments.drawing import (
    Places,
    chain_edges,
    framed_alike,
    nodes,
    transitions,
)
from bayescontrol.experiments.policy_diagram.replica import (
    BY_TURNS,
    POLICIES,
    SHOWN,
    TRUE,
    Settings,
    law,
    modes,
    selected,
    spent,
)
from bayescontrol.experiments.policy_diagram.score import inside_after
from bayescontrol.lab import Columns, mean_and_error, wilson
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.graph_parts import Area, Edge
from bayescontrol.lab.graphs import Graph
from bayescontrol.lab.marks import Colour, Dash, Series

_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    "P1": ("blue", "solid"),
    "P2": ("vermillion", "dash"),
    BY_TURNS: ("green", "dot"),
}
_PLACES: Final[Places] = {
    "s0": (1.05, 1.3),
    "s1": (0.0, 0.0),
    "s2": (1.05, -1.3),
    "s3": (2.6, 0.0),
    "s4": (4.15, 1.3),
    "s5": (5.2, 0.0),
    "s6": (4.15, -1.3),
    "s7": (5.35, 2.2),
}
#: Ways around other states, and labels beside crossings.
_BENDS: Final = {("s7", "s6"): 0.62, ("s7", "s0"): -0.1}
_LABELS: Final = {
    ("s1", "s3"): 0.66, ("s0", "s2"): 0.28, ("s2", "s0"): 0.3, ("s3", "s0"): 0.3,
    ("s2", "s3"): 0.3, ("s4", "s6"): 0.25, ("s5", "s3"): 0.62, ("s3", "s5"): 0.38,
}  # fmt: skip


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Both figures.

    >>> from bayescontrol.experiments.policy_diagram.replica import run
    >>> few = Settings(runs=1)  # enough to draw, not to judge
    >>> sorted(draw(few, {name: column[None] for name, column in run(few, 0).items()}))
    ['diagram', 'time']
    """
    return {"diagram": _diagram(), "time": _time(settings, columns)}


def _diagram() -> Chart:
    return Chart(
        "A policy diagram: states, transitions, and what each policy selects",
        framed_alike([_world(), _policy("P1"), _policy("P2")]),
        "A circle is a state, an arrow a transition, the wider the more likely; a/0 reads: after "
        "action a and observation 0. The first graph has all that the world allows, the others "
        "what is left once a policy has chosen the actions. The more colour in a state, the more "
        "of the time is spent there. The outline holds the states that the policy visits for "
        "ever: choosing a policy is choosing this subset.",
        columns=3,
    )


def _world() -> Panel:
    states = list(_PLACES)
    graph = Graph(
        "eight states and all transitions between them, and the subsets of P1 and P2",
        nodes(_PLACES, [0.0] * len(states), ["a state of the world"] * len(states), "ink"),
        [
            replace(_placed(edge), label="")
            for edge in transitions(modes(), TRUE, [_LOOKS["P1"], _LOOKS["P2"]])
        ],
        [_area("P1"), _area("P2")],
    )
    return Panel(
        "The world", "states", "transitions", [], graphs=[graph],
        notes=["solid: action a; dashed: action b"],
    )  # fmt: skip


def _area(who: str) -> Area:
    colour, dash = _LOOKS[who]
    inside = [modes().labels.situations[x] for x in selected(who)]
    return Area(f"subset of {who}", inside, colour, dash, side="above" if who == "P1" else "below")


def _placed(edge: Edge) -> Edge:
    way = edge.source, edge.target
    return replace(edge, bend=_BENDS.get(way), at=_LABELS.get(way, 0.5))


def _policy(who: str) -> Panel:
    colour, _ = _LOOKS[who]
    mu, inside = spent(who), {modes().labels.situations[x] for x in selected(who)}
    action = modes().labels.actions[int(np.argmax(law(who)[0]))]
    graph = Graph(
        f"the transitions that {who} takes, and the states in which it stays",
        nodes(_PLACES, 0.9 * mu / mu.max(), [f"{share:.1%} of the time" for share in mu], colour),
        [
            replace(_placed(edge), faint=edge.source not in inside)
            for edge in chain_edges(modes(), law(who), TRUE, colour=colour)
        ],
        [_area(who)],
    )
    return Panel(
        f"{who}: always action {action}", "states", "transitions", [], graphs=[graph],
        notes=["grey: the ways in from outside"],
    )  # fmt: skip


def _time(settings: Settings, columns: Columns) -> Chart:
    return Chart(
        "Where the time goes",
        [_pull(settings, columns), _states(columns)],
        "P1 always takes action a, P2 always action b; by turns, either with probability 1/2 at "
        "every step. Left: the probability to be inside the subset that a policy selects, after t "
        "steps: wherever a run starts, it soon is inside, and it never leaves. Right: the share of "
        "the time in each of the states s0 … s7, exact and as simulated; P1 and P2 leave the "
        "states outside their subsets alone, the two by turns visit all of them, s7 too, where "
        "neither would come alone.",
        columns=2,
        note=f"{settings.runs} runs of {settings.steps} steps, from states at random",
    )


def _pull(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(SHOWN + 1)
    lines, markers = [], []
    for k, who in enumerate(POLICIES[:2]):
        colour, dash = _LOOKS[who]
        exact = inside_after(who, SHOWN).mean(axis=1)  # every start is as likely
        lines.append(Series(f"{who}: exact", t, exact, colour=colour, dash=dash, group=who,
                            in_legend=False))  # fmt: skip
        found = columns["inside"][:, k].sum(axis=0)
        bounds = wilson(found, len(columns["inside"]))
        share = found / len(columns["inside"])
        markers.append(Series(who, t, share, *bounds, "points", colour, group=who,
                              marker="circle" if k == 0 else "square-open"))  # fmt: skip
    return Panel(
        "Inside the subset",
        "step t", "P(inside the subset)", [*lines, *markers],
        ylim=(0.0, 1.05),
        notes=["Lines: exact. Markers: runs, 95 % intervals"],
        legend="lower right",
    )  # fmt: skip


def _states(columns: Columns) -> Panel:
    visits = columns["visits"]
    mean, error = mean_and_error(visits / visits.sum(axis=-1, keepdims=True))
    x = np.arange(visits.shape[-1])
    exact, markers = [], []
    for k, who in enumerate(POLICIES):
        colour, _ = _LOOKS[who]
        beside = x + 0.22 * (k - 1)
        exact.append(Series(f"{who}: exact", beside, spent(who), kind="points", colour=colour,
                            marker="square-open", group=who, in_legend=False))  # fmt: skip
        markers.append(
            Series(who, beside, mean[k], mean[k] - 2 * error[k], mean[k] + 2 * error[k], "points",
                   colour, marker=("circle", "triangle-up", "diamond")[k], group=who)
        )  # fmt: skip
    return Panel(
        "Time in each state",
        "state s₀ … s₇", "share of the time", [*exact, *markers],
        xticks=x.tolist(),
        ylim=(-0.03, 0.45),
        notes=["Open squares: exact. Markers: runs, ± 2 standard errors"],
        legend="upper right",
        legend_columns=3,
    )  # fmt: skip

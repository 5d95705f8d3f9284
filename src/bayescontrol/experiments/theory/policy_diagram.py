"""A policy diagram: states, transitions labelled a/o, and the subset that each policy selects.

    P(s' | m, s) = Σ_{ao: T(s, ao) = s'} P(a | m, s) P(o | m, s, a)        a Markov chain
    subset of P_m = {s: μ_m(s) > 0},    μ_m P = μ_m                        what it visits for ever

Applying a policy is choosing a subset of the world. The subset is exact; long runs show where
they spend their time.

One replica: P1, P2 and both by turns, each from a state at random.

    P1, P2     one policy acts for ever
    by turns   the control rule: the two modes have one hypothesis, so nothing is ever learnt, and
               at every step either policy acts with probability 1/2

What is kept: how often each state was visited in the second half, how often each transition was
taken, and when the subset that the policy selects was entered.

The claims: what a policy selects, exactly, is where long runs spend their time.

The chains, their subsets and shares are exact; runs are held against them. All claims with
chance in them together raise a false alarm at a rate of at most 1e-3. With fewer than FEWEST runs
nothing is judged.

The figures of `policy-diagram`: the diagram itself, and the time spent in its parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chance import FEW, compare, measured, told
from bayescontrol.experiments.theory.diagrams import (
    Places,
    acting,
    chain,
    chain_edges,
    framed_alike,
    nodes,
    path,
    shares,
    transitions,
)
from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, mean_and_error, wilson
from bayescontrol.lab.chart import Area, Chart, Colour, Dash, Edge, Graph, Panel, Series
from bayescontrol.lab.statistics.intervals import normal_quantile
from bayescontrol.problems.diagrams import policy_diagram
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.seeding import Stream

BY_TURNS: Final = "by turns"
#: Who acts.
POLICIES: Final = ("P1", "P2", BY_TURNS)
#: Both modes have the same hypothesis: it does not matter whose world it is.
TRUE: Final = 0
#: Of so many steps it is kept whether they were inside the subset.
SHOWN: Final = 8
#: With fewer runs nothing is judged.
FEWEST: Final = 20


@dataclass(frozen=True)
class Settings:
    """Size of the experiment."""

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[
        int, msgspec.Meta(ge=200, description="steps in a replica; the second half is counted")
    ] = 2000


@cache
def modes() -> TabularModes:
    """The class whose diagram is drawn.

    >>> len(modes().labels.situations)
    8
    """
    return policy_diagram()


@cache
def law(who: str) -> FloatArray:
    """P(a | x) of one of POLICIES.

    >>> law("by turns")[0]
    array([0.5, 0.5])
    """
    if who == BY_TURNS:
        return np.asarray(np.einsum("m,mxa->xa", modes().prior, modes().policy))
    return np.asarray(modes().policy[POLICIES.index(who)])


@cache
def spent(who: str) -> FloatArray:
    """μ: the exact share of the time that is spent in each state.

    >>> spent("P2").round(4).tolist()
    [0.0, 0.0, 0.0, 0.3478, 0.1739, 0.2609, 0.2174, 0.0]
    """
    return shares(chain(modes(), law(who), TRUE))


def selected(who: str) -> tuple[int, ...]:
    """The subset of the states that a policy selects: the support of μ.

    >>> selected("P1"), selected("P2"), len(selected("by turns"))
    ((0, 1, 2, 3), (3, 4, 5, 6), 8)
    """
    return tuple(np.flatnonzero(spent(who)).tolist())


@cache
def _class(who: str, start: int) -> TabularModes:
    own = modes().policy if who == BY_TURNS else law(who)
    return acting(modes(), own, start)


def run(settings: Settings, i: int) -> Columns:
    """Each of POLICIES for so many steps."""
    states = len(modes().labels.situations)
    start = Stream.named(settings.seed, i, "start").integers(states)
    visits, moves, inside = [], [], []
    for k, who in enumerate(POLICIES):
        same = _class(who, int(start))
        agent, world = same.agent(), same.environment(TRUE)
        # P1 and P2 mirror each other: with the same luck they would be one run.
        own = len(POLICIES) * i + k
        record = interact(agent, world, settings.steps, seed=settings.seed, run=own)
        seen = path(same, record)
        late = seen[-(settings.steps // 2) :]
        visits.append(np.bincount(late, minlength=states))
        pairs = np.bincount(states * seen[:-1] + seen[1:], minlength=states**2)
        moves.append(pairs.reshape(states, states))
        inside.append(np.isin(seen[: SHOWN + 1], selected(who)))
    return {
        "start": np.array(int(start)),
        "visits": np.stack(visits),
        "moves": np.stack(moves),
        "inside": np.stack(inside),
    }


#: The rate of false alarms of all claims together, shared by four families of tests.
_ALARMS: Final = 1e-3 / 4
_TOLERANCE: Final = 1e-12
_ORIGIN: Final = "theory: exact shares, Student's margin"


def score(settings: Settings, columns: Columns) -> Score:
    """All claims, and the shares of the time behind them."""
    table = _shares(columns)
    if len(columns["visits"]) < FEWEST:
        return Score((), (table,))
    claims = [
        _sums(),
        *(_subset(k, columns) for k in range(2)),
        *(_time(k, columns) for k in range(3)),
        _frequencies(columns),
        _pulled(columns),
        _turns(columns),
    ]
    return Score(tuple(claims), (table,))


def inside_after(who: str, steps: int) -> FloatArray:
    """P(inside the subset after t steps | start), as an array [t, start], t = 0 … steps.

    >>> inside_after("P2", 2)[:, 1].tolist()
    [0.0, 0.0, 1.0]
    """
    P, inside = chain(modes(), law(who), TRUE), spent(who) > 0.0
    rows = [inside.astype(np.float64)]
    for _ in range(steps):
        rows.append(P @ rows[-1])
    return np.stack(rows)


def entered_by(who: str) -> int:
    """The step by which the subset is entered from every start, for sure.

    >>> entered_by("P1"), entered_by("P2")
    (2, 2)
    """
    sure = inside_after(who, len(modes().labels.situations)).min(axis=1) >= 1 - _TOLERANCE
    return int(np.argmax(sure))


def _names(states: tuple[int, ...]) -> str:
    return " ".join(modes().labels.situations[x] for x in states)


def _sums() -> Claim:
    off = max(float(np.abs(chain(modes(), law(who), TRUE).sum(-1) - 1.0).max()) for who in POLICIES)
    return Claim(
        "transitions-sum-to-1",
        "from every state s, the probabilities P(s'|m,s) of the next state s' under the policy of "
        "m sum to 1; the largest deviation",
        "ours", 0.0, off, None, off <= _TOLERANCE, exact=True,
    )  # fmt: skip


def _subset(k: int, columns: Columns) -> Claim:
    who = POLICIES[k]
    visited = tuple(np.flatnonzero(columns["visits"][:, k].sum(axis=0)).tolist())
    return Claim(
        f"subset-{who.lower()}",
        f"applying {who} is choosing a subset of the states: these are visited for ever, and "
        "no other",
        "paper", _names(selected(who)), _names(visited), None, visited == selected(who),
        reason="expected: where the exact stationary distribution is positive; ours: seen in the "
        f"second halves of {len(columns['visits'])} runs",
        place="section 4.1, figure 2",
        threshold_origin="theory: the exact stationary distribution",
    )  # fmt: skip


def _time(k: int, columns: Columns) -> Claim:
    who, runs = POLICIES[k], _in_time(columns)[:, k]
    x = int(np.argmax(spent(who)))
    found = compare(runs, spent(who), _ALARMS / 3)
    return Claim(
        f"time-{who.lower().replace(' ', '-')}",
        f"{who}: every state has its exact share of the time; shown: {_names((x,))}",
        "ours", float(spent(who)[x]), *measured(runs[:, x]), found.holds,
        reason=f"all states: {found.words}",
        threshold_origin=_ORIGIN,
    )  # fmt: skip


def _in_time(columns: Columns) -> FloatArray:
    visits = columns["visits"]
    return np.asarray(visits / visits.sum(axis=-1, keepdims=True))


def _frequencies(columns: Columns) -> Claim:
    """Transitions given their state are independent coins: their number is known."""
    within, pairs = 0, 0
    for k, who in enumerate(POLICIES):
        P, moves = chain(modes(), law(who), TRUE), columns["moves"][:, k].sum(axis=0)
        left = np.maximum(moves.sum(axis=1, keepdims=True), 1)
        gap = np.where(moves.sum(axis=1, keepdims=True) > 0, np.abs(moves / left - P), 0.0)
        z = normal_quantile(1 - _ALARMS / (2 * P.size * len(POLICIES)))
        # The last term covers few counts, where a share is not yet normal.
        margin = z * np.sqrt(P * (1 - P) / left) + z * z / (3 * left)
        within += int((gap <= np.where(P * (1 - P) > 0, margin, 0.0)).sum())
        pairs += P.size
    return Claim(
        "transition-frequencies",
        "every transition is taken as often as P(s'|m,s) says, and one of probability 0 never; "
        "pairs (s, s') of which that is so, for three policies",
        "ours", pairs, within, None, within == pairs,
        reason="as far as chance allows, with one false alarm in 1,000 seeds",
        threshold_origin="theory: exact probabilities, binomial margin",
    )  # fmt: skip


def _pulled(columns: Columns) -> Claim:
    latest = max(entered_by(who) for who in POLICIES)
    early = min(latest, columns["inside"].shape[-1] - 1)
    share = float(columns["inside"][:, :2, early:].mean())
    return Claim(
        "wherever-it-starts",
        f"from any of the states, each policy is inside its subset after {latest} steps and "
        "stays there; share of the runs and steps from then on",
        "ours", 1.0, share, None, share == 1.0,
        threshold_origin="theory: the exact chain is inside by then, surely",
    )  # fmt: skip


def _turns(columns: Columns) -> Claim:
    alone = set(selected("P1")) | set(selected("P2"))
    new = tuple(x for x in selected(BY_TURNS) if x not in alone)
    runs = _in_time(columns)[:, 2, list(new)].sum(axis=1)
    exact = float(spent(BY_TURNS)[list(new)].sum())
    found = compare(runs[:, None], np.array([exact]), _ALARMS)
    return Claim(
        "by-turns-leads-elsewhere",
        f"two policies by turns visit {_names(new)}, where neither alone ever stays: a mixture "
        "of policies selects more than the two subsets; share of the time",
        "ours", exact, *measured(runs), bool(new) and found.holds, reason=found.words,
        threshold_origin=_ORIGIN,
    )  # fmt: skip


def _shares(columns: Columns) -> Table:
    runs, rows = _in_time(columns), []
    for x, name in enumerate(modes().labels.situations):
        row: list[str | float] = [name]
        for k, who in enumerate(POLICIES):
            row += [float(spent(who)[x]), told(runs[:, k, x])]
        rows.append(tuple(row))
    header = [part for who in POLICIES for part in (f"{who}, exact", f"{who}, simulated")]
    return Table(
        "Share of the time in each state",
        ("state", *header),
        tuple(rows),
        "P1: always action a. P2: always action b. By turns: either, with probability 1/2 at every "
        "step. Exact: what the share tends to. Simulated: second halves of "
        f"{len(runs)} runs, mean ± standard error; one number where all runs agree.",
    )


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
    """Both figures."""
    return {"diagram": _diagram(), "time": _time_panel(settings, columns)}


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


def _time_panel(settings: Settings, columns: Columns) -> Chart:
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


experiment: Final = Experiment(
    name="policy-diagram",
    summary="states and transitions as a graph, and the subset of them that each policy selects",
    settings=Settings,
    quick=Settings(runs=400),
    full=Settings(runs=2000, steps=10_000),
    run=run,
    score=score,
    figures=draw,
)

"""Policy diagram: the states and transitions of a world, and the subset that a policy selects.

    P(s' | m, s) = Σ_{ao: T(s, ao) = s'} P(a | m, s) P(o | m, s, a)        a Markov chain
    subset of P_m = {s: μ_m(s) > 0},    μ_m P = μ_m                        visited for ever

Choosing a policy means choosing a subset of the world. The subsets and shares are computed
exactly, and long runs are compared with them. A replica runs three agents from a random state:

    P1, P2        one policy acts for ever
    alternating   the control rule. Both modes have the same hypothesis, so nothing is ever learned,
                  and each policy acts with probability 1/2 at every step

The false-alarm rate of all claims together is at most 1e-3.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol import Stream, TabularModes, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.finite.examples import policy_diagram
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Colour, Dash, Panel, Series
from bayescontrol.plot.graph import Area, Edge, Graph
from bayescontrol.statistics.intervals import normal_quantile
from bayescontrol_paper import _claims as claims
from bayescontrol_paper import _diagrams as diagrams
from bayescontrol_paper._figures import Figure, Figures, share_of_runs

ALTERNATING: Final = "alternating"
POLICIES: Final = ("P1", "P2", ALTERNATING)
#: Both modes have the same hypothesis, so either may be the true one.
TRUE: Final = 0
#: Number of first steps of which `inside` is stored.
SHOWN: Final = 8
#: With fewer runs no claims are made.
FEWEST: Final = 20


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 1000
    steps: Annotated[int, Meta(ge=200, description="steps; the second half is counted")] = 2000


#: Returns the class whose diagram is drawn.
modes: Final = cache(policy_diagram)


@cache
def action_probabilities(who: str) -> FloatArray:
    """Return P(a | x) of one of POLICIES."""
    if who == ALTERNATING:
        return np.asarray(np.einsum("m,mxa->xa", modes().prior, modes().policy))
    return np.asarray(modes().policy[POLICIES.index(who)])


@cache
def chain(who: str) -> FloatArray:
    """Return P(s' | s) under one of POLICIES."""
    return diagrams.markov_chain(modes(), action_probabilities(who), TRUE)


@cache
def time_shares(who: str) -> FloatArray:
    """Return μ, the exact share of the time spent in each state.

    >>> time_shares("P2").round(4).tolist()
    [0.0, 0.0, 0.0, 0.3478, 0.1739, 0.2609, 0.2174, 0.0]
    """
    return diagrams.stationary_shares(chain(who))


def selected(who: str) -> tuple[int, ...]:
    """Return the states that a policy selects: the support of μ.

    >>> selected("P1"), selected("P2"), len(selected("alternating"))
    ((0, 1, 2, 3), (3, 4, 5, 6), 8)
    """
    return tuple(np.flatnonzero(time_shares(who)).tolist())


@cache
def _class(who: str, start: int) -> TabularModes:
    """Return the class in which `who`, one of POLICIES, acts from the state `start`."""
    policy = modes().policy if who == ALTERNATING else action_probabilities(who)
    return diagrams.with_policy(modes(), policy, start)


def run(settings: Settings, i: int) -> Columns:
    """Run each of POLICIES; count visits and transitions, and note when the subset is entered.

    `visits` counts the states of the second half, `moves` all transitions as [s, s'], and `inside`
    is whether the state is in the subset, before the first step and after each of the next.
    """
    states = len(modes().labels.situations)
    start = Stream.named(settings.seed, i, "start").integers(states)
    visits, moves, inside = [], [], []
    for k, who in enumerate(POLICIES):
        acting = _class(who, int(start))
        agent, world = acting.agent(), acting.environment(TRUE)
        # P1 and P2 mirror each other: with equal random numbers their runs would be equal.
        number = len(POLICIES) * i + k
        record = interact(agent, world, settings.steps, seed=settings.seed, run=number)
        states_visited = diagrams.state_path(acting, record)
        late = states_visited[-(settings.steps // 2) :]
        visits.append(np.bincount(late, minlength=states))
        pairs = states * states_visited[:-1] + states_visited[1:]  # a number for each (s, s')
        moves.append(np.bincount(pairs, minlength=states**2).reshape(states, states))
        inside.append(np.isin(states_visited[: SHOWN + 1], selected(who)))
    counts = {"visits": np.stack(visits), "moves": np.stack(moves), "inside": np.stack(inside)}
    return {"start": np.array(int(start)), **counts}


#: The rate of false alarms of one family of tests: four would have 1e-3 together.
_FALSE_ALARM_RATE: Final = 1e-3 / 4


def inside_after(who: str, steps: int) -> FloatArray:
    """Return P(inside the subset after t steps | start) as an array [t, start], t = 0 … steps.

    >>> inside_after("P2", 2)[:, 1].tolist()
    [0.0, 0.0, 1.0]
    """
    P, inside = chain(who), time_shares(who) > 0.0
    rows = [inside.astype(np.float64)]
    for _ in range(steps):
        rows.append(P @ rows[-1])
    return np.stack(rows)


def entered_by(who: str) -> int:
    """Return the step by which the subset has surely been entered from every start.

    >>> entered_by("P1"), entered_by("P2")
    (2, 2)
    """
    sure = inside_after(who, len(modes().labels.situations)).min(axis=1) >= 1 - claims.ROUNDING
    return int(np.argmax(sure))


def _names(states: Iterable[int]) -> str:
    """Return the labels of the states, separated by spaces."""
    return " ".join(modes().labels.situations[x] for x in states)


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about transitions, subsets, shares of the time, and entering a subset."""
    deviation = max(float(np.abs(chain(who).sum(-1) - 1.0).max()) for who in POLICIES)
    yield Claim(
        "transitions-sum-to-1", "from every state s, the probabilities P(s'|m,s) of the next state "
        "s' under the policy of m sum to 1; the largest deviation",
        source="ours", expected=0.0, ours=deviation, holds=deviation <= claims.ROUNDING, exact=True,
    )  # fmt: skip
    for k, who in enumerate(POLICIES[:2]):
        visited = tuple(np.flatnonzero(columns["visits"][:, k].sum(axis=0)).tolist())
        yield claims.equality(
            f"subset-{who.lower()}", f"applying {who} means choosing a subset of the states: "
            "exactly these are visited for ever",
            expected=_names(selected(who)), ours=_names(visited), reason="expected: where the "
            "exact stationary distribution is positive; ours: visited in the second halves of "
            f"{len(columns['visits'])} runs", origin="theory: the exact stationary distribution",
            place="section 4.1, figure 2", undecided=set(visited) < set(selected(who)),
        )  # fmt: skip
    for k, who in enumerate(POLICIES):
        x = int(np.argmax(time_shares(who)))
        yield claims.means_claim(
            "time-by-turns" if who == ALTERNATING else f"time-{who.lower()}", f"{who}: runs spend "
            f"the computed share of the time in every state; shown: {_names((x,))}",
            runs=_time_in_states(columns)[:, k], expected=time_shares(who),
            false_alarm_rate=_FALSE_ALARM_RATE / len(POLICIES), shown=x, about="all states: ",
        )  # fmt: skip
    yield _frequency_claim(columns)
    yield from _entering_claims(columns)


def _time_in_states(columns: Columns) -> FloatArray:
    """Return the share of the time spent in each state, as an array [run, policy, state]."""
    visits = columns["visits"]
    return np.asarray(visits / visits.sum(axis=-1, keepdims=True))


def _frequency_claim(columns: Columns) -> Claim:
    """Claim that transitions are as frequent as computed.

    Margins are binomial, because transitions are independent given their state. A state that was
    never left agrees; a transition of probability 0 or 1 has no margin.
    """
    agreeing, pairs = 0, 0
    for k, who in enumerate(POLICIES):
        P, moves = chain(who), columns["moves"][:, k].sum(axis=0)
        left = moves.sum(axis=1, keepdims=True)  # how often each state was left
        departures = np.maximum(left, 1)
        gap = np.where(left > 0, np.abs(moves / departures - P), 0.0)
        z = normal_quantile(1 - _FALSE_ALARM_RATE / (2 * P.size * len(POLICIES)))
        # The last term covers small counts, where a share is not normal.
        margin = z * np.sqrt(P * (1 - P) / departures) + z * z / (3 * departures)
        agreeing += int((gap <= np.where(P * (1 - P) > 0, margin, 0.0)).sum())
        pairs += P.size
    return claims.equality(
        "transition-frequencies", "every transition is taken as often as P(s'|m,s) says, and those "
        "of probability 0 never; number of pairs (s, s') that agree, for three policies",
        expected=pairs, ours=agreeing, reason="within binomial margins, with one false alarm in "
        "1,000 seeds", origin="theory: exact probabilities, binomial margin",
    )  # fmt: skip


def _entering_claims(columns: Columns) -> Iterator[Claim]:
    """Claim that P1 and P2 soon enter their subsets, and that both in turn select more states."""
    latest = max(entered_by(who) for who in POLICIES)
    early = min(latest, columns["inside"].shape[-1] - 1)
    yield claims.equality(
        "wherever-it-starts", f"from every state, each policy is inside its subset after {latest} "
        "steps and stays there; share of the runs and steps from then on",
        expected=1.0, ours=float(columns["inside"][:, :2, early:].mean()), origin="theory: by then "
        "the exact chain is inside with probability 1",
    )  # fmt: skip
    either = {*selected("P1"), *selected("P2")}
    new = [x for x in selected(ALTERNATING) if x not in either]  # states of neither policy
    yield claims.means_claim(
        "by-turns-leads-elsewhere",
        f"two alternating policies visit {_names(new)}, which neither visits for ever by itself: a "
        "mixture of policies selects more than the two subsets; share of the time",
        runs=_time_in_states(columns)[:, 2, new].sum(axis=1)[:, None],
        expected=time_shares(ALTERNATING)[new].sum(keepdims=True),
        false_alarm_rate=_FALSE_ALARM_RATE, also=bool(new),
    )  # fmt: skip


def _share_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Share of the time in each state

    P1: always action a. P2: always action b. By turns: either, with probability 1/2 at every step.
    Exact: the limit of the share. Simulated: second halves of {runs} runs, mean ± standard error;
    one number if all runs agree.
    """
    runs = _time_in_states(columns)
    yield " | ".join(["state", *(f"{who}, exact | {who}, simulated" for who in POLICIES)])
    for x, name in enumerate(modes().labels.situations):
        row: list[str | float] = [name]
        for k, who in enumerate(POLICIES):
            row += [float(time_shares(who)[x]), claims.format_mean(runs[:, k, x])]
        yield row


_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    "P1": ("blue", "solid"),
    "P2": ("vermillion", "dash"),
    ALTERNATING: ("green", "dot"),
}
_MARKERS: Final = ("circle", "triangle-up", "diamond")
_PLACES: Final[diagrams.Places] = {
    "s0": (1.05, 1.3), "s1": (0.0, 0.0), "s2": (1.05, -1.3), "s3": (2.6, 0.0), "s4": (4.15, 1.3),
    "s5": (5.2, 0.0), "s6": (4.15, -1.3), "s7": (5.35, 2.2),
}  # fmt: skip
#: Edges bent around other states, and the position of labels that would cover a crossing.
_BENDS: Final = {("s7", "s6"): 0.62, ("s7", "s0"): -0.1}
_LABELS: Final = {
    ("s1", "s3"): 0.66, ("s0", "s2"): 0.28, ("s2", "s0"): 0.3, ("s3", "s0"): 0.3,
    ("s2", "s3"): 0.3, ("s4", "s6"): 0.25, ("s5", "s3"): 0.62, ("s3", "s5"): 0.38,
}  # fmt: skip


def _diagram_figure(settings: Settings, columns: Columns) -> Figure:
    """A policy diagram: states, transitions, and what each policy selects

    A circle is a state, an arrow a transition, the wider the more likely; a/0 reads: after
    action a and observation 0. The first graph shows all transitions of the world, the others those
    that remain once a policy has chosen the actions. The stronger the colour of a state, the more
    time is spent there. The outline encloses the states that the policy visits for ever: choosing a
    policy means choosing this subset.
    """
    panels = diagrams.same_frame([_world_panel(), _policy_panel("P1"), _policy_panel("P2")])
    return Figure(panels, paper={2: ""})


def _time_figure(settings: Settings, columns: Columns) -> Figure:
    """Time spent in each state

    P1 always takes action a, P2 always action b; alternating, either with probability 1/2 at
    every step. Inside the subset: the probability of being inside the subset that a policy selects,
    after t steps. From every start a run is soon inside, and it never leaves. Time in each state:
    the share of the time in s0 … s7, exact and simulated. P1 and P2 do not visit the states outside
    their subsets; both in alternation visit all states, even s7, which neither visits by itself.

    {settings.runs} runs of {settings.steps} steps, from states at random
    """
    return Figure([_inside_panel(columns), _state_panel(columns)])


def _world_panel() -> Panel:
    """Draw all transitions of the world, and the subsets of P1 and P2."""
    n, edges = len(_PLACES), diagrams.transitions(modes(), TRUE, [_LOOKS["P1"], _LOOKS["P2"]])
    graph = Graph(
        "eight states, all transitions between them, and the subsets of P1 and P2",
        diagrams.nodes(_PLACES, [0.0] * n, ["a state of the world"] * n, "ink"),
        [replace(_placed(edge), label="") for edge in edges],
        [_area("P1"), _area("P2")],
    )
    return Panel(
        "The world", "states", "transitions", [], graphs=[graph],
        notes=["solid: action a; dashed: action b"],
    )  # fmt: skip


def _area(who: str) -> Area:
    """Make the outline of the subset of P1 or P2."""
    colour, dash = _LOOKS[who]
    inside = [modes().labels.situations[x] for x in selected(who)]
    return Area(f"subset of {who}", inside, colour, dash, side="above" if who == "P1" else "below")


def _placed(edge: Edge) -> Edge:
    """Bend an edge around other states, and move its label away from crossings."""
    ends = edge.source, edge.target
    return replace(edge, bend=_BENDS.get(ends), at=_LABELS.get(ends, 0.5))


def _policy_panel(who: str) -> Panel:
    """Draw the transitions of one policy; those from outside its subset are faint."""
    colour, _ = _LOOKS[who]
    mu, inside = time_shares(who), {modes().labels.situations[x] for x in selected(who)}
    action = modes().labels.actions[int(np.argmax(action_probabilities(who)[0]))]
    edges = diagrams.chain_edges(modes(), action_probabilities(who), TRUE, colour=colour)
    times = [f"{share:.1%} of the time" for share in mu]
    graph = Graph(
        f"the transitions that {who} takes, and the states in which it stays",
        diagrams.nodes(_PLACES, 0.9 * mu / mu.max(), times, colour),
        [replace(_placed(edge), faint=edge.source not in inside) for edge in edges],
        [_area(who)],
    )
    return Panel(
        f"{who}: always action {action}", "states", "transitions", [], graphs=[graph],
        notes=["grey: transitions from outside"],
    )  # fmt: skip


def _inside_panel(columns: Columns) -> Panel:
    """Draw the probability of being inside the subset after t steps."""
    t = np.arange(SHOWN + 1)
    lines, markers = [], []
    for k, who in enumerate(POLICIES[:2]):
        colour, dash = _LOOKS[who]
        style: Any = {"colour": colour, "group": who}
        exact = inside_after(who, SHOWN).mean(axis=1)  # all starts are equally likely
        lines.append(Series(f"{who}: exact", t, exact, dash=dash, in_legend=False, **style))
        style |= {"kind": "points", "marker": _MARKERS[k]}
        markers.append(share_of_runs(who, t, columns["inside"][:, k], z=1.96, **style))
    return Panel(
        "Inside the subset", "step t", "P(inside the subset)", [*lines, *markers], ylim=(0.0, 1.05),
        notes=["Lines: exact. Markers: runs, 95 % intervals"], legend="lower right",
    )  # fmt: skip


def _state_panel(columns: Columns) -> Panel:
    """Draw the share of time in each state; the three policies stand side by side."""
    runs = _time_in_states(columns)
    state_numbers = np.arange(runs.shape[-1])
    exact_series, run_series = [], []
    for k, (who, marker) in enumerate(zip(POLICIES, _MARKERS, strict=True)):
        run_style: Any = {"kind": "points", "group": who, "colour": _LOOKS[who][0]}
        exact_style: Any = {"marker": "square-open", "in_legend": False, **run_style}
        x = state_numbers + 0.22 * (k - 1)  # side by side
        exact_series.append(Series(f"{who}: exact", x, time_shares(who), **exact_style))
        run_series.append(Series.of_runs(who, x, runs[:, k], marker=marker, **run_style))
    return Panel(
        "Time in each state", "state s₀ … s₇", "share of the time", [*exact_series, *run_series],
        xticks=state_numbers.tolist(), ylim=(-0.03, 0.45), legend="upper right", legend_columns=3,
        notes=["Open squares: exact. Markers: runs, ± 2 standard errors"],
    )  # fmt: skip


experiment: Final = Experiment(
    "policy-diagram", "states and transitions as a graph, and the subset that each policy selects",
    Settings, quick=Settings(runs=400), full=Settings(runs=2000, steps=10_000), run=run,
    score=claims.Scored(_claims, _share_table, fewest=FEWEST),
    figures=Figures(diagrams.interaction, _diagram_figure, _time_figure),
)  # fmt: skip

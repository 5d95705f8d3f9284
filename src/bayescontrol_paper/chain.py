"""The rule and Bayes-optimal control on the paper's k-step chains.

    every step      E T = 2^k - 1        a mode drawn at every step seldom acts k times in a row
    Bayes-optimal       T = k            plans k equal actions
    Every(k)            T = k            the rule, with each mode held for k steps

    T = min{t : P(m | âo_≤t) = 0 for one m}          the first reward: min{t : o_t = 1}

T is the step at which the posterior becomes degenerate. In the growing chain, k_t = ⌈10 √t⌉, the
rule never identifies, nor do modes held for a fixed time; modes held for increasing times do.

A replica runs every agent on every chain, in one environment drawn from the prior. Every agent acts
and learns through `interact` and `play`; the every-step rule uses the compiled loop in blocks of
2^(k+1) steps. Each run of each agent on each chain has its own number, and so its own streams.

    |mean of n runs - E T| ≤ σ (√(2x/n) + x/n),   x = 17        exponential tails
    |share of n runs - p|  ≤ √(x / 2n)                          Hoeffding

σ is the exact standard deviation. Each comparison fails by chance with probability below 1e-7 for
any number of runs, all of them together below 1e-5.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, Final, get_args

import numpy as np
from msgspec import Meta

from bayescontrol import Probe, Stream
from bayescontrol._arrays import FloatArray
from bayescontrol.baselines import BayesOptimal, BayesPlan
from bayescontrol.finite import chain as chains
from bayescontrol.finite.chain import GrowingChain, Waiting, first_reward_time
from bayescontrol.interaction import both_streams, interact, play
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Marker, Panel, Series
from bayescontrol.plot.runs import line_dash
from bayescontrol.report.tables import with_error
from bayescontrol.schedules import Every, Geometric, Schedule, doubling, every_step
from bayescontrol_paper._claims import Lines, Row, Rows, Runs, Scored, Size, by_name, equality
from bayescontrol_paper._figures import Figure, Figures, share_of_runs

#: The rule as printed in the paper.
RULE: Final = "every step"
#: The plan over beliefs.
BAYES_OPTIMAL: Final = "Bayes-optimal"

#: The schedules of the rule for a chain of length k; -(-k // 2) is ⌈k/2⌉.
SCHEDULES: Final[Mapping[str, Callable[[int], Schedule]]] = {
    RULE: lambda _k: every_step,
    "Every(k)": Every,
    "Every(⌈k/2⌉)": lambda k: Every(-(-k // 2)),
    "Geometric(1/k)": lambda k: Geometric(1 / k),
    "doubling": lambda _k: doubling,
}
#: All agents, in the order of the columns.
AGENTS: Final = (*SCHEDULES, BAYES_OPTIMAL)

#: The schedules on the growing chain of scale s; after s² steps s² equal actions are required.
GROWING: Final[Mapping[str, Callable[[int], Schedule]]] = {
    RULE: lambda _s: every_step,
    "Every(s)": Every,
    "Every(s²/2)": lambda s: Every(-(-s * s // 2)),
    "Geometric(2/s²)": lambda s: Geometric(2 / s**2),
    "doubling": lambda _s: doubling,
}

#: The agents on the growing chain, in the order of their column.
GROWING_AGENTS: Final = (*GROWING, BAYES_OPTIMAL)

#: A chain is simulated if the limit on steps is at least this many times the mean E T.
_RATIO: Final = 32


@dataclass(frozen=True)
class Settings(Size):
    """Settings of `chain`."""

    runs: Runs = 300
    steps: Annotated[int, Meta(ge=_RATIO, description=f"limit of a run, ≥ {_RATIO} E T")] = 40_000
    k_max: Annotated[int, Meta(ge=1, le=16, description="chains of k = 1 .. k_max")] = 12
    scale: Annotated[int, Meta(ge=2, le=12, description="growing chain: ⌈scale √t⌉ actions")] = 10
    growing_steps: Annotated[int, Meta(ge=1, description="steps on the growing chain")] = 500


def simulated(settings: Settings, agent: str, k: int) -> bool:
    """Return whether this agent is simulated on this chain: steps ≥ 32 E T."""
    return settings.steps >= _RATIO * exact(agent, k).mean


def lengths(settings: Settings, agent: str) -> list[int]:
    """Return the lengths k of the chains that are simulated for this agent; k = 1 always is."""
    return [k for k in range(1, settings.k_max + 1) if simulated(settings, agent, k)]


def run(settings: Settings, run: int) -> Columns:
    """Record identification times of all agents; NaN if not simulated, ∞ if not identified.

    `time` has them by agent and k, `growing` by agent on the growing chain. For the every-step rule
    `reward_time` has the time of the first reward by k, and `silent` whether step T gave no reward.
    """
    seed, limit = settings.seed, settings.steps
    world = Stream.named(seed, run, "world").integers(2)
    time = np.full((len(AGENTS), settings.k_max), np.nan)
    reward_time, silent = np.full((2, settings.k_max), np.nan)
    for k in range(1, settings.k_max + 1):
        for i, name in enumerate(AGENTS):
            number = _run_number(run, i, k)
            if not simulated(settings, name, k):
                continue
            if name == RULE:
                times = _rule_times(settings, number, k, world)
                time[i, k - 1], reward_time[k - 1], silent[k - 1] = times
            else:
                agent, environment = _agent(name, k), _chain(k).environment(world)
                time[i, k - 1] = _identification_time(seed, number, agent, environment, limit)
    growing = []
    for i, name in enumerate(GROWING_AGENTS):
        number = _run_number(run, len(AGENTS) + i, 0)
        agent = growing_agent(settings.scale, name)
        growing_world = _growing_chain(settings.scale).environment(world)
        # The plan of the Bayes-optimal agent ends at its horizon.
        steps = settings.growing_steps if name in GROWING else agent.plan.horizon
        growing.append(_identification_time(seed, number, agent, growing_world, steps))
    return {
        "world": np.array(world), "time": time, "reward_time": reward_time, "silent": silent,
        "growing": np.array(growing, np.float64),
    }  # fmt: skip


def _run_number(run: int, agent: int, k: int) -> int:
    """Return a unique number for each run of each agent on each chain.

    There are fewer than 64 agents, and k is below 64; it is 0 for the growing chain.
    """
    return (run * 64 + agent) * 64 + k


def _agent(name: str, k: int) -> Any:
    """Return the agent of that name on a chain of length k."""
    if name == BAYES_OPTIMAL:
        return BayesOptimal(_plan(_chain(k), 2 * k))  # rewarded in both environments by then
    return _chain(k).agent(schedule=SCHEDULES[name](k))


def growing_agent(scale: int, name: str) -> Any:
    """Return the agent of that name on the growing chain."""
    if name == BAYES_OPTIMAL:
        return BayesOptimal(_plan(_growing_chain(scale), scale * scale + scale))
    return _growing_chain(scale).agent(schedule=GROWING[name](scale))


def growing_label(scale: int, name: str) -> str:
    """Return the name of a schedule with its parameter, for figures and tables.

    >>> growing_label(10, "Every(s²/2)"), growing_label(10, "Geometric(2/s²)")
    ('Every(50)', 'Geometric(0.02)')
    """
    schedule = GROWING[name](scale)
    if isinstance(schedule, Every):
        return f"Every({schedule.k})"
    return f"Geometric({schedule.p:g})" if isinstance(schedule, Geometric) else name


def _identification_time(seed: int, number: int, agent: Any, environment: Any, steps: int) -> float:
    """Return T, the first step at which the posterior of a mode is 0; ∞ if it never is."""
    for t, _ in enumerate(islice(play(agent, environment, seed=seed, run=number), steps), start=1):
        if agent.belief.posterior().min() == 0.0:
            return t
    return np.inf


def _rule_times(settings: Settings, number: int, k: int, world: int) -> tuple[float, float, float]:
    """Run the every-step rule with the compiled loop.

    Return T, the time of the first reward, and 1 if step T gave no reward, else 0. The result is
    (∞, ∞, NaN) unless both times are within the steps, rounded up to whole blocks.
    """
    agent: Any = _chain(k).agent()
    environment = _chain(k).environment(world)
    actions, rewards = np.empty((2, 0), np.int64)
    block, streams = 2 ** (k + 1), both_streams(settings.seed, number)
    for _ in range(-(-settings.steps // block)):
        record = interact(agent, environment, block, streams=streams)
        actions = np.append(actions, record.actions)
        rewards = np.append(rewards, record.observations)
        if rewards.any() and agent.belief.posterior().min() == 0.0:
            T = chains.first_run(actions, k)
            assert T is not None
            return T, int(rewards.argmax()) + 1, float(rewards[T - 1] == 0)
    return np.inf, np.inf, np.nan


_chain = lru_cache(chains.chain)
_growing_chain = lru_cache(GrowingChain)


@lru_cache
def _plan(problem: Any, steps: int) -> BayesPlan[Any, int, int]:
    """Plan the actions with the largest sum of rewards over these steps."""
    return BayesPlan(problem, lambda _a, o: o, steps)


#: x of the margins: each comparison fails by chance with probability below 1e-7.
_MARGIN_X: Final = 17.0
_MEAN_ORIGIN: Final = "theory: exact means, exponential tails (false alarms: 1e-7 each)"
_SHARE_ORIGIN: Final = "theory: exact probabilities, Hoeffding's margin (false alarms: 1e-7 each)"
#: The place of the claims in the paper, and the scale of its growing chain.
_PLACE: Final = "section 6.1, on Bayes-optimal control"
_PAPER_SCALE: Final = 10
#: The growing chain is computed exactly for this many times scale² steps, then bounded.
_EXACT_FACTOR: Final = 400


def exact(agent: str, k: int) -> Waiting:
    """Return E T and its standard deviation, for the agent of that name on a chain of k.

    >>> exact("every step", 12).mean, exact("Bayes-optimal", 12).mean
    (4095.0, 12.0)
    """
    if agent == BAYES_OPTIMAL:
        return Waiting(float(k), 0.0)
    return chains.identification_time(k, SCHEDULES[agent](k))


@lru_cache
def growing_distribution(scale: int, schedule: str) -> FloatArray:
    """Return P(T = t) in the growing chain, t = 1 … 400 scale².

    >>> distribution = growing_distribution(2, "doubling")
    >>> int(np.flatnonzero(distribution)[0]) + 1, float(distribution.sum())
    (4, 1.0)
    """
    required, holds = GrowingChain(scale).required, GROWING[schedule](scale)
    return chains.identification_probabilities(required, holds, _EXACT_FACTOR * scale**2)


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about chains of length k, then those about the growing chain."""
    k_max, n = settings.k_max, settings.runs
    # The longest chains that are simulated for three of the agents.
    longest, planned, held = (lengths(settings, a)[-1] for a in (RULE, BAYES_OPTIMAL, "Every(k)"))
    mean = exact(RULE, k_max).mean
    rule, first = exact(RULE, longest), first_reward_time(longest)
    time, reward_time = columns["time"], columns["reward_time"]
    # Whether the mean time of each agent is as computed, for every k that is simulated.
    agree = {
        name: all(_is_close(times[:, k - 1], exact(name, k)) for k in lengths(settings, name))
        for name, times in by_name(AGENTS, time).items()
    }
    yield equality(
        "identification-time", "the rule identifies a chain in 2^k - 1 steps on average, k = 1 .. "
        f"{k_max}; here k = {k_max}",
        expected=2**k_max - 1, ours=mean, exact=True,
        also=all(exact(RULE, k).mean == 2**k - 1 for k in range(1, k_max + 1)),
    )  # fmt: skip
    yield Claim(
        "about-2^k", f"the rule needs about 2^k steps; here k = {k_max}",
        source="paper", expected=2**k_max, ours=mean, holds=0.5 <= mean / 2**k_max <= 1.0,
        reason="2^k - 1 exactly: k equal actions identify the chain, whether they are rewarded or "
        "not", place=_PLACE, exact=True, threshold_origin="paper: \"about\" is within a factor of "
        "2",
    )  # fmt: skip
    yield Claim(
        "simulated-times", "in simulation every agent needs its exact mean time, for each k; here "
        f"the rule, k = {longest}",
        source="ours", expected=rule.mean, ours=float(time[:, 0, longest - 1].mean()),
        error=rule.sd / math.sqrt(n), holds=all(agree.values()), threshold_origin=_MEAN_ORIGIN,
    )  # fmt: skip
    yield Claim(
        "bayes-optimal-time",
        f"a Bayes-optimal controller identifies in k actions; here k = {planned}",
        source="paper", expected=planned, ours=_slowest(time, BAYES_OPTIMAL, planned),
        holds=agree[BAYES_OPTIMAL],
        reason="" if agree[BAYES_OPTIMAL] else "some run took a different number of actions",
        place=_PLACE, threshold_origin="paper: k, in every run",
    )  # fmt: skip
    yield Claim(
        "held-mode-time",
        f"the rule with modes held for k steps identifies in exactly k; here k = {held}",
        source="ours", expected=held, ours=_slowest(time, "Every(k)", held),
        holds=agree["Every(k)"], threshold_origin="theory: k, in every run",
    )  # fmt: skip
    observer: Any = _chain(k_max).agent()
    for _ in range(k_max):  # k times B without a reward
        observer.observe(1, 0)
    yield equality(
        "uniform-until-reward", "the posterior stays uniform until a reward: probability of the "
        f"environment that rewards B, after {k_max} B's in a row without a reward",
        expected=0.5, ours=float(observer.belief.posterior()[1]), reason="k B's in a row without a "
        "reward refute the environment that rewards B", place=_PLACE, exact=True,
    )  # fmt: skip
    silent = columns["silent"][:, :longest]
    share = float(silent.mean())
    yield Claim(
        "identified-without-reward", "half of the runs identify without a reward",
        source="ours", expected=0.5, ours=share, error=0.5 / math.sqrt(silent.size),
        holds=abs(share - 0.5) <= math.sqrt(_MARGIN_X / (2 * silent.size)),
        threshold_origin=_SHARE_ORIGIN,
    )  # fmt: skip
    simulated_ks = lengths(settings, RULE)
    yield Claim(
        "first-reward-time",
        f"the rule is first rewarded after 2^k - 1 + k/2 steps on average; here k = {longest}",
        source="ours", expected=first.mean, ours=float(reward_time[:, longest - 1].mean()),
        error=first.sd / math.sqrt(n),
        holds=all(_is_close(reward_time[:, k - 1], first_reward_time(k)) for k in simulated_ks),
        threshold_origin=_MEAN_ORIGIN,
    )  # fmt: skip
    yield from _growing_claims(settings, columns)


def _growing_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about the growing chain.

    Those of the paper are about scale 10. At another scale `note` says so, and they are not
    comparable.
    """
    scale, n, until = settings.scale, settings.runs, settings.growing_steps
    earliest, optimal = scale**2, columns["growing"][:, -1]
    p_rule, p_held = _probability_ever(scale, RULE), _probability_ever(scale, "Every(s)")
    is_papers = scale == _PAPER_SCALE
    note = "" if is_papers else f"the paper's chain grows as ⌈{_PAPER_SCALE} √t⌉, not {scale} √t"
    in_time = bool(np.all(optimal == earliest))
    yield Claim(
        "growing-chain-optimal",
        f"with k = ceil({scale} sqrt t) Bayes-optimal control converges in {earliest} steps",
        source="paper", expected=earliest, ours=float(optimal.max()),
        holds=None if note else in_time,
        reason=note or ("" if in_time else "some run took more or fewer steps"), place=_PLACE,
        threshold_origin="paper: 100 steps, in every run",
    )  # fmt: skip
    yield Claim(
        "growing-chain", "on the growing chain the rule does not converge at all in most "
        "realizations: P(it ever converges)",
        source="paper", expected="< 0.5", ours=p_rule, holds=None if note else p_rule < 0.5,
        reason=note or f"exact for {_EXACT_FACTOR * scale**2} steps, bounded from above beyond",
        place=_PLACE, exact=True, threshold_origin="paper: \"most\" is more than half",
    )  # fmt: skip
    yield Claim(
        "growing-chain-held",
        f"holding a mode can fail too: P(the rule ever converges), modes held for {scale} steps",
        source="paper", expected="< 0.5", ours=p_held, holds=None if note else p_held < 0.5,
        reason=note or f"any fixed time below the {earliest} steps that are required first may "
        "fail for ever", place=_PLACE, exact=True, threshold_origin="paper: as for modes drawn at "
        "every step",
    )  # fmt: skip
    p = growing_distribution(scale, "doubling")  # P(T = t), t = 1, 2, …
    yield Claim(
        "growing-chain-doubling",
        "modes held for doubling times converge: P(the rule ever converges)",
        source="ours", expected=1.0, ours=float(p.sum()), holds=bool(abs(p.sum() - 1.0) < 1e-12),
        reason=f"with certainty by step {int(np.flatnonzero(p)[-1]) + 1}, after "
        f"{float(np.arange(1, p.size + 1) @ p):.1f} on average", exact=True,
    )  # fmt: skip
    expected = {name: float(growing_distribution(scale, name)[:until].sum()) for name in GROWING}
    shares = np.isfinite(columns["growing"]).mean(axis=0)
    found = dict(zip(GROWING_AGENTS, shares.tolist(), strict=True))
    gaps = {name: abs(found[name] - expected[name]) for name in GROWING}
    worst = max(gaps, key=gaps.__getitem__)
    yield Claim(
        "growing-chain-simulated", f"every schedule converges within {until} steps as often as "
        f"computed; here the worst, {growing_label(scale, worst)}",
        source="ours", expected=expected[worst], ours=found[worst],
        error=math.sqrt(expected[worst] * (1.0 - min(1.0, expected[worst])) / n),
        holds=all(gap <= math.sqrt(_MARGIN_X / (2 * n)) for gap in gaps.values()),
        threshold_origin=_SHARE_ORIGIN,
    )  # fmt: skip


def _probability_ever(scale: int, name: str) -> float:
    """Return P(T < ∞): exact as far as the distribution is computed, then bounded from above.

    Doubling times have no tail: they identify with certainty before the distribution ends.
    """
    p, schedule = growing_distribution(scale, name), GROWING[name](scale)
    tail = 0.0 if schedule is doubling else chains.tail_bound(GrowingChain(scale), schedule, p.size)
    return min(1.0, float(p.sum()) + tail)


def _is_close(times: FloatArray, expected: Waiting) -> bool:
    """Return whether the mean of the times is within the margin of its expectation.

    Times with a standard deviation of 0 may differ by rounding only.
    """
    n = times.size
    slack = expected.sd * (math.sqrt(2 * _MARGIN_X / n) + _MARGIN_X / n)
    return bool(abs(times.mean() - expected.mean) <= slack + 1e-9 * expected.mean)


def _slowest(time: FloatArray, agent: str, k: int) -> float:
    """Return the largest time of an agent on the chain of length k, over all runs."""
    return float(time[:, AGENTS.index(agent), k - 1].max())


def _times_table(settings: Settings, columns: Columns) -> Lines:
    """Steps to identification of a k-step chain

    exact means; simulated: mean of {settings.runs} runs and its standard error
    """

    def simulation(k: int) -> str:
        """Format the simulated mean time of the rule."""
        if not simulated(settings, RULE, k):
            return "not simulated"
        error = exact(RULE, k).sd / math.sqrt(settings.runs)
        return with_error(float(columns["time"][:, 0, k - 1].mean()), error)

    yield f"k | every step | simulated | {' | '.join(AGENTS[1:])}"
    for k in range(1, settings.k_max + 1):
        yield k, exact(RULE, k).mean, simulation(k), *(exact(name, k).mean for name in AGENTS[1:])


def _growing_times_table(settings: Settings, columns: Columns) -> Rows:
    """The growing chain, k = ⌈{settings.scale} √t⌉: probability that it has been identified

    exact; beyond t = {far} an upper bound is added
    """
    scale, until = settings.scale, settings.growing_steps
    identified = np.mean(columns["growing"] <= until, axis=0)
    rows: list[Row] = []
    for name, share in zip(GROWING, identified, strict=False):
        p, label = growing_distribution(scale, name), growing_label(scale, name)
        shares = float(p[: scale**2].sum()), float(p[:until].sum())
        rows.append((label, *shares, float(share), _probability_ever(scale, name)))
    rows.append((BAYES_OPTIMAL, 1.0, float(until >= scale**2), float(identified[-1]), 1.0))
    header = f"schedule | by t = {scale**2} | by t = {until} | simulated | ever, at most"
    return Rows(header, rows, {"far": _EXACT_FACTOR * scale**2})


#: Labels of the agents whose mean has a simple closed form.
_LABELS_WITH_FORMULA: Final = {
    RULE: "every step: 2ᵏ − 1",
    "Every(k)": "Every(k): k",
    BAYES_OPTIMAL: "Bayes-optimal: k",
}
#: The example run in the figure.
_EXAMPLE: Final = 1


def _identification_time_figure(settings: Settings, columns: Columns) -> Figure:
    """Steps to identify a chain of length k

    Lower is better: the agent identifies its world sooner. The rule that draws a mode at each
    step needs twice as long for every further link (a straight line on this logarithmic axis);
    agents that hold a mode, or plan, stay near k steps.
    """
    return Figure([_time_panel(settings, columns)])


def _growing_chain_figure(settings: Settings, columns: Columns) -> Figure:
    """The growing chain

    An agent identifies its world when its number of equal actions in a row reaches the required
    number, which grows with time. The share of runs that have identified the world stays near zero
    for the rule and for modes held for a fixed, short time, and reaches one for modes held for
    increasing times.
    """
    return Figure([_example_panel(settings), _share_panel(settings, columns)])


def _time_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw exact and simulated mean times against k; chains that take too long have no marker."""
    all_k = np.arange(1, settings.k_max + 1)
    lines, markers = [], []
    for i, name in enumerate(AGENTS):
        means = np.array([exact(name, int(k)).mean for k in all_k])
        lines.append(Series(name, all_k, means, dash=line_dash(i), in_legend=False))
        ks = np.array(lengths(settings, name))
        label, runs = _LABELS_WITH_FORMULA.get(name, name), columns["time"][:, i, : len(ks)]
        markers.append(Series.of_runs(label, ks, runs, **_marker_style(i, name)))
    return Panel(
        "", "length of the chain, k", "steps to identification", [*lines, *markers], yscale="log2",
        xticks=all_k.tolist(),
        notes=[f"Lines: exact means. Markers: {settings.runs} runs, ± 2 standard errors"],
        legend="upper left",
    )  # fmt: skip


def _marker_style(i: int, agent: str) -> dict[str, Any]:
    """Return the style of the simulated points of agent number i.

    Every(k) coincides with the Bayes-optimal line: an open square shows both.
    """
    marker = "square-open" if agent == "Every(k)" else get_args(Marker)[i]
    return {"kind": "points", "marker": marker, "group": agent}


def _example_panel(settings: Settings) -> Panel:
    """Draw the number of equal actions in a row of one run of each agent, and the required one.

    Two schedules whose lines would cover the others are left out.
    """
    growing, until = GrowingChain(settings.scale), settings.growing_steps
    t = np.arange(1, until + 1)
    required = np.array([growing.required(int(n)) for n in t])
    series = [Series(f"required: k = ⌈{settings.scale} √t⌉", t, required, colour="ink")]
    probes = {
        "equal": Probe(lambda agent, _a, _o: agent.x[2]),  # x: step, last action, equal actions
        "sure": Probe(lambda agent, _a, _o: bool(agent.belief.posterior().min() == 0.0)),
    }
    for name in GROWING_AGENTS:
        if name in ("Every(s²/2)", "Geometric(2/s²)"):
            continue
        agent = growing_agent(settings.scale, name)
        steps = until if name in GROWING else min(until, agent.plan.horizon)
        world = growing.environment(_EXAMPLE)
        record = interact(agent, world, steps, seed=settings.seed, run=_EXAMPLE, probes=probes)
        identified_at = np.flatnonzero(record["sure"])
        steps_shown = int(identified_at[0]) + 1 if identified_at.size else steps
        equal = record["equal"][:steps_shown]
        series.append(Series(name, t[:steps_shown], equal, in_legend=False))
    return Panel(
        "One run of each agent", "step t", "equal actions in a row", series,
        notes=["A line ends where the agent identifies its world"], legend="below",
    )  # fmt: skip


def _share_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the share of runs that have identified the growing chain, exact and simulated."""
    scale, until = settings.scale, settings.growing_steps
    t = np.arange(1, until + 1)
    at = np.unique(np.linspace(1, until, 9).astype(int))
    lines, markers = [], []
    for i, name in enumerate(GROWING_AGENTS):
        if name == BAYES_OPTIMAL:  # T = scale² with probability 1
            p, label = (t == scale**2).astype(float), name
        else:
            p, label = growing_distribution(scale, name)[:until], growing_label(scale, name)
        lines.append(Series(name, t[: p.size], np.cumsum(p), kind="step", in_legend=False))
        found = columns["growing"][:, i, None] <= at
        markers.append(share_of_runs(label, at, found, z=1.96, **_marker_style(i, name)))
    return Panel(
        "Runs that have identified the world", "step t", "P(identified by step t)",
        [*lines, *markers], ylim=(-0.03, 1.08),
        notes=[f"Lines: exact. Markers: {settings.runs} runs, 95 % intervals"], legend="below",
    )  # fmt: skip


experiment: Final = Experiment(
    "chain", "time to identify a k-step chain: control rule, Bayes-optimal, held modes", Settings,
    quick=Settings(runs=400), full=Settings(runs=4000, steps=200_000), run=run,
    score=Scored(_claims, _times_table, _growing_times_table),
    figures=Figures(_identification_time_figure, _growing_chain_figure),
)  # fmt: skip

"""Misspecified worlds: an alarm for worlds that no mode describes, its errors, power and use.

    E_t = q(o_≤t | â_≤t) / max_m P(o_≤t | m, â_≤t)        alarm at E_t ≥ 1/δ; q Krichevsky-Trofimov

Inside the class the alarm is ever raised with probability at most δ. Outside it is surely raised,
the sooner the farther the world is from the nearest mode. Whether resting after the alarm pays is
a separate question: the alarm shows that the modes are wrong, not that they do harm. There are
three worlds in the class and five outside it:

    mode m     lever m is good, the others are poor, whatever came before; policy: pull lever m
    worn θ     a share θ of the good lever's harmless misses have become losses
    streaks    as many losses as in the class, but a loss makes the next one more probable

    D = min_m Σ_x μ(x) Σ_o Q(o | x, a_m) ln [Q(o | x, a_m) / P(o | m, x, a_m)]     nats per step

D is the distance of a world from the nearest mode; μ is the stationary distribution of situations
under the policy of the mode m on which the agent settles. A world outside the class is a row of the
tables with prior 0, which no belief ever draws.

A replica runs a guarded agent, which rests after the alarm, and a blind one, with the same random
numbers. In a few replicas the blind agent also computes the evidence and ignores the alarm, so that
the evidence is known to the end. The claims:

    inside     P(alarm, ever) ≤ δ, under every mode
    outside    P(alarm by t) → 1, and no alarm with this δ can have E[step] < ln(1/δ) / D
    fallback   the gain from resting after the alarm

Power is claimed for worlds with enough steps: t D exceeds what q needs for learning. A correct
claim fails by chance with probability about 1e-3: margins are three standard errors and one run. In
a pilot on another seed, `bayescontrol run misspecified --seed 1000`, the alarm was raised in all of
400 runs in each of the worlds of `detectable`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol._arrays import FloatArray
from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov, alarm_evidence
from bayescontrol.convergence.core import World, mean_rates
from bayescontrol.errors import counted
from bayescontrol.finite.tabular import Labels, TabularModes
from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.plot.chart import Guide, Panel, Series
from bayescontrol.plot.legend import COLOUR_MARKERS
from bayescontrol.report.tables import with_error
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._diagrams import with_policy
from bayescontrol_paper._figures import Figure, Figures, look, share_of_runs

#: The action that is always safe, and earns nothing.
REST: Final = 3
#: Reward of a win, a miss and a loss.
REWARD: Final = np.array([1.0, 0.0, -3.0])
#: The shares θ of misses that have become losses.
WEAR: Final = (0.25, 0.5, 0.75, 1.0)
INSIDE: Final = ("lever 0", "lever 1", "lever 2")
OUTSIDE: Final = (*(f"worn {theta:g}" for theta in WEAR), "streaks")
WORLDS: Final = INSIDE + OUTSIDE
#: A description of the good lever of each world.
ABOUT: Final = {
    **{world: f"{world}, as mode {m} expects" for m, world in enumerate(INSIDE)},
    **{f"worn {t:g}": f"lever 0, {t:.0%} of its misses now lose" for t in WEAR},
    "streaks": "lever 0, but losses come in streaks",
}

#: P(win), P(miss) and P(loss) of a good lever and of a poor one.
_GOOD: Final = np.array([0.6, 0.3, 0.1])
_POOR: Final = np.array([0.2, 0.4, 0.4])
#: P(loss | the last pull lost). The rate after other pulls is such that a tenth of all lose.
_LOSS_AFTER_LOSS: Final = 0.4
_ACTIONS: Final = ("pull 0", "pull 1", "pull 2", "rest")
_LABELS: Final = Labels(("after no loss", "after a loss"), _ACTIONS, ("win", "miss", "loss"))


def _worn(theta: float) -> FloatArray:
    """Return P(o) of a good lever with a share θ of its misses turned into losses."""
    return np.asarray(_GOOD + theta * _GOOD[1] * np.array([0.0, -1.0, 1.0]))


def _streaky(loss: float) -> FloatArray:
    """Return P(o) of a good lever that loses with probability `loss`."""
    return np.append(_GOOD[:2] * (1.0 - loss) / _GOOD[:2].sum(), loss)


@cache
def all_worlds() -> TabularModes:
    """Return the tables of all eight worlds; those outside the class have prior 0."""
    n = len(INSIDE)
    hypothesis = np.empty((len(WORLDS), 2, 4, 3))  # [world, situation, action, observation]
    hypothesis[:, :, :] = _POOR
    hypothesis[:, :, REST] = [0.0, 1.0, 0.0]
    for m in range(n):
        hypothesis[m, :, m] = _GOOD
    for k, theta in enumerate(WEAR):
        hypothesis[n + k, :, 0] = _worn(theta)
    # P(loss | the last pull did not lose), such that a tenth of all pulls lose.
    loss_after_no_loss = _GOOD[2] * (1.0 - _LOSS_AFTER_LOSS) / (1.0 - _GOOD[2])
    hypothesis[-1, :, 0] = [_streaky(loss_after_no_loss), _streaky(_LOSS_AFTER_LOSS)]
    # The best action of each world. Worlds outside the class are never drawn.
    best_action = [0, 1, 2, *(0 if _worn(theta) @ REWARD > 0 else REST for theta in WEAR), 0]
    policy = np.eye(4)[best_action][:, None].repeat(2, axis=1)
    successor = np.broadcast_to([0, 0, 1], (2, 4, 3))
    prior = np.where(np.arange(len(WORLDS)) < n, 1.0 / n, 0.0)
    return TabularModes(policy, hypothesis, successor, names=WORLDS, prior=prior, labels=_LABELS)


@cache
def distances() -> dict[str, float]:
    """Return D of every world, in nats per step; 0 inside the class.

    >>> {world: round(D, 3) for world, D in distances().items() if D > 0}
    {'worn 0.25': 0.033, 'worn 0.5': 0.125, 'worn 0.75': 0.279, 'worn 1': 0.555, 'streaks': 0.037}
    """
    n, worlds = len(INSIDE), all_worlds()
    # A true world needs a positive prior, which the worlds outside the class do not have.
    uniform = np.full(len(WORLDS), 1.0 / len(WORLDS))
    modes = with_policy(worlds, worlds.policy, prior=uniform)
    found = {}
    for k, world in enumerate(WORLDS):
        rates = [mean_rates(World(modes, k), m)[:n] for m in range(n)]
        # The agent can settle on mode m only if m is the nearest mode while lever m is pulled.
        found[world] = min(float(rate[m]) for m, rate in enumerate(rates) if rate[m] == rate.min())
    return found


#: With fewer runs no claims are made.
FEWEST: Final = 100
#: Number of replicas whose evidence is recorded and drawn, and the worlds of the figure.
PATHS: Final = 6
PLOTTED_WORLDS: Final = (WORLDS[0], OUTSIDE[1], OUTSIDE[-1])
_MOST_POINTS: Final = 120


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment, and the allowed rate of false alarms."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 400
    steps: Annotated[int, Meta(ge=1, description="steps in a replica")] = 1000
    delta: Annotated[float, Meta(gt=0, lt=1, description="rate of false alarms")] = 0.05


def checkpoints(settings: Settings) -> Any:
    """Return the steps at which the evidence is stored, at most 120."""
    stride = -(-settings.steps // _MOST_POINTS)
    return np.arange(stride, settings.steps + 1, stride)


def guard(settings: Settings, fallback: int | None = REST) -> Guarded:
    """Return the control rule over the three modes with an alarm; its fallback is to rest.

    With `fallback` None it ignores the alarm.
    """
    predictor = KrichevskyTrofimov(len(REWARD))
    return Guarded(all_worlds().agent(), Alarm(predictor, settings.delta), fallback)


def run(settings: Settings, i: int) -> Columns:
    """Record the step of the alarm in every world, and what both agents earned.

    The step is ∞ without an alarm. `path` is log₁₀ E of plotted replicas, NaN in the others.
    """
    step = np.full(len(WORLDS), np.inf)
    guarded, blind = np.empty(len(WORLDS)), np.empty(len(WORLDS))
    path = np.full((len(PLOTTED_WORLDS), len(checkpoints(settings))), np.nan)
    for k, world in enumerate(WORLDS):
        agent, worlds = guard(settings), all_worlds()
        seeds: dict[str, Any] = {"seed": settings.seed, "run": i * len(WORLDS) + k}
        record = interact(agent, worlds.environment(k), settings.steps, **seeds)
        if agent.alarm.step is not None:
            step[k] = agent.alarm.step
        # In plotted replicas the blind agent computes the evidence too, but ignores the alarm.
        is_plotted = i < PATHS and world in PLOTTED_WORLDS
        blind_agent: Any = guard(settings, fallback=None) if is_plotted else worlds.agent()
        seeds["probes"] = {"bits": alarm_evidence} if is_plotted else None
        blind_record = interact(blind_agent, worlds.environment(k), settings.steps, **seeds)
        if is_plotted:
            bits = blind_record["bits"][checkpoints(settings) - 1]
            path[PLOTTED_WORLDS.index(world)] = bits * math.log10(2.0)
        guarded[k], blind[k] = (REWARD[r.observations].mean() for r in (record, blind_record))
    return {"step": step, "guarded": guarded, "blind": blind, "path": path}


#: The required share of alarms in the worlds of `detectable`.
_LEAST_POWER: Final = 0.95
#: Upper bound, in nats, on what the predictor loses while it learns the two cells that are visited.
_LEARNING_NATS: Final = 40.0
#: The number of the world with streaks.
_STREAKS_WORLD: Final = len(WORLDS) - 1
#: Reward of the good lever per step: the largest possible cost of a false alarm.
_GOOD_REWARD: Final = float(all_worlds().hypothesis[0, 0, 0] @ REWARD)


def detectable(settings: Settings) -> list[int]:
    """Return the worn worlds in which the steps suffice for the alarm, the nearest first."""
    needed = _LEARNING_NATS + math.log(1.0 / settings.delta)
    worn = range(len(INSIDE), _STREAKS_WORLD)
    return [k for k in worn if settings.steps * distances()[WORLDS[k]] >= needed]


def _alarm_share(columns: Columns, k: int) -> tuple[float, float]:
    """Return the share of runs with an alarm in world number k, and its error."""
    return claims.share_and_error(np.isfinite(columns["step"][:, k]))


def _slack(p: float, runs: int) -> float:
    """Return three standard errors of a share with mean p, plus one run."""
    return 3.0 * math.sqrt(p * (1.0 - p) / runs) + 1.0 / runs


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims inside the class, and those outside it for which the steps suffice."""
    n, delta = settings.runs, settings.delta
    # The cost of resting, per step.
    cost = columns["blind"] - columns["guarded"]
    share, share_error = max(_alarm_share(columns, k) for k in range(len(INSIDE)))
    yield Claim(
        "false-alarms", f"under every mode the alarm is raised by step {settings.steps} in at most "
        "a share δ of the runs; here the worst mode",
        source="ours", expected=f"at most {delta:g}", ours=share, error=share_error,
        holds=share <= delta + _slack(delta, n), reason="by Ville's inequality, even if it is "
        f"checked after every step; chance explains up to {delta + _slack(delta, n):.2g}",
        threshold_origin="theory: Ville's inequality, three standard errors and one run",
    )  # fmt: skip
    mean, error = _mean_and_error(cost[:, : len(INSIDE)].mean(axis=1))
    yield Claim(
        "false-alarm-cost", "inside the class, where the alarm is false, resting after it costs at "
        "most δ times the reward of the good lever per step",
        source="ours", expected=f"at most {delta * _GOOD_REWARD:.3g}", ours=mean, error=error,
        holds=mean <= delta * _GOOD_REWARD + 3.0 * error + _GOOD_REWARD / n,
        threshold_origin="theory: Ville's inequality, three standard errors and one run",
    )  # fmt: skip
    if detectable(settings):
        yield from _outside_claims(settings, columns)
    # The claim about streaks is weaker than power: half of what learning takes is enough.
    needed = _LEARNING_NATS / 2 + math.log(1 / delta)
    if settings.steps * distances()["streaks"] >= needed:
        share, share_error = _alarm_share(columns, _STREAKS_WORLD)
        yield Claim(
            "streaks-found", "losses in streaks are detected, though every lever wins and loses as "
            f"often as its mode predicts; share of alarms by step {settings.steps}",
            source="ours", expected=f"above {delta:g}", ours=share, error=share_error,
            holds=share > delta + 3.0 * math.sqrt(delta * (1.0 - delta) / n),
            reason="the alarm shows that the modes are wrong, not that they do harm: here resting "
            f"costs {_mean_and_error(cost[:, _STREAKS_WORLD])[0]:.2g} per step",
            threshold_origin="theory: above the rate of false alarms by three standard errors",
        )  # fmt: skip


def _outside_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims about power, delay and the gain from resting, in the detectable worlds."""
    n, found = settings.runs, detectable(settings)
    names = ", ".join(WORLDS[k] for k in found)
    share, error = min(_alarm_share(columns, k) for k in found)
    yield Claim(
        "power", f"outside the class the alarm is raised by step {settings.steps}; here the worst "
        f"of {names}",
        source="ours", expected=f"at least {_LEAST_POWER:g}", ours=share, error=error,
        holds=share >= _LEAST_POWER - _slack(_LEAST_POWER, n),
        threshold_origin="pilot on seed 1000: all of 400 runs in each world; three standard errors "
        "and one run",
    )  # fmt: skip
    # Runs without an alarm count all steps.
    delays = {k: _mean_and_error(np.minimum(columns["step"][:, k], settings.steps)) for k in found}
    D, bound = distances(), math.log(1.0 / settings.delta)
    nats = {k: (mean * D[WORLDS[k]], error * D[WORLDS[k]]) for k, (mean, error) in delays.items()}
    quickest = min(found, key=lambda k: nats[k][0])
    least_nats, error = nats[quickest]
    yield Claim(
        "delay-bound", "every alarm needs at least ln 1/δ nats of evidence on average (steps times "
        f"D); here the quickest, in {WORLDS[quickest]}",
        source="ours", expected=f"at least {bound:.3g}", ours=least_nats, error=error,
        holds=all(mean >= bound - 3.0 * nats_error for mean, nats_error in nats.values()),
        reason=f"D is the evidence of one step; the rest of the {least_nats:.3g} is the cost of "
        "learning the world, about which the alarm assumes nothing",
        threshold_origin="theory: no alarm is quicker; three standard errors",
    )  # fmt: skip
    # Pairs of worlds, the nearer one first: both mean delays and their errors.
    in_order = [(near, far, (e, f)) for (near, e), (far, f) in pairwise(delays.values())]
    yield Claim(
        "delay-order", "the farther the world is from the nearest mode, the sooner the alarm; mean "
        f"steps in {names}",
        source="ours", expected="falling",
        ours=", ".join(f"{mean:.4g}" for mean, _ in delays.values()),
        holds=all(near >= far - 3.0 * math.hypot(*errors) for near, far, errors in in_order),
        threshold_origin="theory: the order of D, three standard errors",
    )  # fmt: skip
    gains = {k: _mean_and_error(columns["guarded"][:, k] - columns["blind"][:, k]) for k in found}
    smallest = min(found, key=lambda k: gains[k][0])
    gain, error = gains[smallest]
    yield Claim(
        "fallback-gain", "where ignoring the alarm loses, resting after it earns more per step; "
        f"here the smallest gain, {WORLDS[smallest]}",
        source="ours", expected="above 0", ours=gain, error=error, holds=gain > 3.0 * error,
        threshold_origin="theory: above 0 by three standard errors",
    )  # fmt: skip


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return mean and standard error; the error is 0 if all runs agree."""
    mean, error = claims.measured(values)
    return mean, error or 0.0


def _world_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Eight machines

    A machine has three levers; a win pays 1, a miss 0, a loss costs 3. The first three are the
    modes: mode k predicts that lever k is good and the others poor (.2, .4, .4), and pulls it. In
    the others no mode predicts lever 0 correctly. Resting is always safe and earns 0.
    """
    yield "world | its good lever | P(win) | P(miss) | P(loss) | reward a pull"
    for k, world in enumerate(WORLDS):
        by_situation = all_worlds().hypothesis[k, :, k if world in INSIDE else 0]
        after_no_loss, after_loss = by_situation[0, 2], by_situation[1, 2]
        # The share of pulls that lose in the long run.
        share = after_no_loss / (1.0 + after_no_loss - after_loss)
        probabilities = by_situation[0] + (by_situation[1] - by_situation[0]) * share
        win, miss, loss = (float(f"{p:.6g}") for p in probabilities)
        yield world, ABOUT[world], win, miss, loss, float(f"{probabilities @ REWARD:.3g}")


def _alarm_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Alarms by step {settings.steps} at δ = {settings.delta:g}, and what was earned per step

    δ: allowed rate of false alarms. D: distance of the world from the nearest mode, nats a step (0:
    it is a mode). ln(1/δ) / D: no alarm is quicker on average, whatever it knows of the world. Last
    columns: reward per step of an agent that ignores the alarm, and of one that pulls no lever
    after it.
    """
    header = "world | D | runs with an alarm | median step | ln(1/δ) / D"
    yield f"{header} | ignores the alarm | rests after the alarm"
    for k, world in enumerate(WORLDS):
        median_step, D = float(np.median(columns["step"][:, k])), distances()[world]
        alarms = with_error(*_alarm_share(columns, k))
        median_text = f"{median_step:.0f}" if math.isfinite(median_step) else "none"
        least = f"{math.log(1.0 / settings.delta) / D:.1f}" if D else "never"
        earned = (claims.format_mean(columns[agent][:, k]) for agent in ("blind", "guarded"))
        yield world, f"{D:.4f}" if D else "0", alarms, median_text, least, *earned


_LOOKS: Final = {
    "lever 0": look("blue"), "lever 1": look("blue", "dash"), "lever 2": look("blue", "dot"),
    "worn 0.25": look("sky"), "worn 0.5": look("orange"), "worn 0.75": look("green"),
    "worn 1": look("vermillion"), "streaks": look("purple"),
}  # fmt: skip
#: Limits of log10 E in the figure.
_Y_LIMITS: Final = (-8.0, 12.0)


def _evidence_figure(settings: Settings, columns: Columns) -> Figure:
    """The evidence that no mode fits, along single runs

    Eₜ compares a predictor that assumes nothing with the best of the modes: the ratio of the
    probabilities they give to the observations up to step t. The alarm is raised where a line
    reaches the dotted one, Eₜ = 1/δ. Inside the class (lever 0 is as a mode predicts) the evidence
    falls; outside it rises (worn 0.5: half of the misses of lever 0 have become losses; streaks:
    losses come in streaks). Here the agent ignores the alarm.
    """
    panels = [_paths_panel(settings, columns, k) for k in range(len(PLOTTED_WORLDS))]
    shown = counted(min(PATHS, settings.runs), "run")
    return Figure(panels, f"{shown} of each world; δ = {settings.delta:g}")


def _alarms_figure(settings: Settings, columns: Columns) -> Figure:
    """False alarms, power, delay, and the value of the fallback

    δ is the allowed rate of false alarms. Lever 0, 1, 2: worlds that one of three modes
    predicts. Worn θ: a share θ of the misses of the good lever have become losses. Streaks: losses
    come in streaks. (a) The share of false alarms stays below δ at all times. (b) True alarms are
    raised with certainty. (c) The farther the world is from the nearest mode, D nats per step, the
    sooner the alarm; on average none can be below the dashed line. (d) The blind agent ignores the
    alarm, the other rests: it pulls no lever and earns 0 from then on. That pays where the lever
    does harm, and costs where it does not.
    """
    panels = [
        _shares(settings, columns, INSIDE, "(a) Inside the class: false alarms"),
        _shares(settings, columns, OUTSIDE, "(b) Outside the class: power"),
        _delay_panel(settings, columns),
        _earned_panel(columns),
    ]
    runs = counted(settings.runs, "run")
    return Figure(panels, f"{runs}; bands of (a) and (b): Wilson's at two standard errors")


def _paths_panel(settings: Settings, columns: Columns, k: int) -> Panel:
    """Draw log₁₀ E of a few runs in plotted world number k, and the level of the alarm."""
    world, t = PLOTTED_WORLDS[k], checkpoints(settings)
    paths = columns["path"][: min(PATHS, settings.runs), k]
    where = "inside the class" if world in INSIDE else "outside"
    alarm, (low, high) = -math.log10(settings.delta), _Y_LIMITS
    return Panel(
        f"{world}: {where}", "step t", "log₁₀ Eₜ",
        [Series(world, t, path, in_legend=False, **_LOOKS[world]) for path in paths],
        [Guide("alarm: 1/δ", alarm)], ylim=(low, max(high, 2.0 * alarm)), legend="upper right",
    )  # fmt: skip


def _shares(settings: Settings, columns: Columns, worlds: tuple[str, ...], title: str) -> Panel:
    """Draw the share of runs with an alarm by step t; inside the class it is at most about δ."""
    inside, highest = worlds is INSIDE, 1.02
    t = np.unique(np.append(checkpoints(settings), settings.steps))
    alarms = {world: columns["step"][:, WORLDS.index(world), None] <= t for world in worlds}
    series = [share_of_runs(world, t, runs, **_LOOKS[world]) for world, runs in alarms.items()]
    if inside:  # show δ and all bands
        bands = max(float(s.high.max()) for s in series if s.high is not None)
        highest = min(1.0, 1.05 * max(1.9 * settings.delta, bands))
    return Panel(
        title, "step t", "share of runs with an alarm", series,
        [Guide("δ", settings.delta)], ylim=(0.0, highest),
        legend="upper right" if inside else "center right",
    )  # fmt: skip


def _delay_panel(settings: Settings, columns: Columns) -> Panel:
    """Draw the step of the alarm against D: the median and quartiles of each world outside.

    A run without an alarm counts with its last step. The dashed line is the least possible mean.
    """
    distance, series = distances(), []
    for world in OUTSIDE:
        colour = _LOOKS[world]["colour"]
        step = np.minimum(columns["step"][:, WORLDS.index(world)], settings.steps)
        low, middle, high = np.quantile(step, [0.25, 0.5, 0.75])[:, None]  # one point each
        style: Any = {"kind": "points", "colour": colour, "marker": COLOUR_MARKERS[colour]}
        series.append(Series(world, np.array([distance[world]]), middle, low, high, **style))
    # From a little below the smallest D to a little above the largest.
    D = np.geomspace(0.8 * min(distance[w] for w in OUTSIDE), 1.25 * max(distance.values()), 40)
    bound = Series("ln(1/δ) / D", D, math.log(1 / settings.delta) / D, colour="ink", dash="dash")
    return Panel(
        "(c) Steps to the alarm", "D, nats per step", "step of the alarm, median",
        [*series, bound], yscale="log", xlim=(0.0, None),
        notes=["Bars: the middle half of the runs"], legend="upper right",
    )  # fmt: skip


def _earned_panel(columns: Columns) -> Panel:
    """Draw the reward per step of both agents, by the number of the world."""
    x, points = np.arange(len(WORLDS)), partial(Series.of_runs, kind="points")
    series = [
        points("ignores the alarm", x, columns["blind"], colour="ink", marker="square-open"),
        points("rests after the alarm", x, columns["guarded"], colour="blue", marker="circle"),
    ]
    return Panel(
        "(d) What was earned", "world, by number", "reward per step", series,
        [Guide("resting", 0.0)], xticks=x.tolist(), legend="lower left",
        notes=["0 1 2: levers 0 1 2; 3 to 6: worn 0.25 to 1; 7: streaks"],
    )  # fmt: skip


experiment: Final = Experiment(
    "misspecified",
    "an alarm for worlds that no mode describes: false alarms, power, and a fallback", Settings,
    quick=Settings(), full=Settings(runs=5000), run=run,
    score=claims.Scored(_claims, _world_table, _alarm_table, fewest=FEWEST),
    figures=Figures(_evidence_figure, _alarms_figure),
)  # fmt: skip

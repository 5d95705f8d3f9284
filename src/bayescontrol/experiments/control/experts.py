"""One adaptive controller made of tuned ones, on the classic plants of Gymnasium.

    CartPole       twenty hypotheses: length and mass of the pole, sign of the force
    Pendulum       nine rods, swung up and held            MountainCar   ten hills, both gears

The control rule is compared with the right expert, every wrong one, the mean of their actions,
their vote, and the naive mixture. A motor that is rewired while the pole stands cannot be followed
by a static posterior; switching modes and fading evidence follow it.

    survived       the pole stands, and the cart is on its track, after all steps
    identified     P(m* | âo_≤t) ≥ .99 from some step to the end
    upright        cos φ > .95 over the last quarter of an episode

Shares are of episodes, each with a new plant, start and belief. The number of episodes that may
fail comes from a pilot on another seed,

    bayescontrol run experts --seed 1000 --runs 40

in which the rule identified and balanced the pole, followed its change, held the rod and climbed
the hill in 40 of 40 episodes. The mean and the vote of the experts did not keep the pole up in any.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, get_args

import numpy as np

from bayescontrol.arrays import BoolArray, FloatArray, IntArray
from bayescontrol.errors import counted
from bayescontrol.experiments.chance import share_and_error, success_test
from bayescontrol.experiments.control import experts_replica as replica
from bayescontrol.experiments.control.experts_replica import RULE, Settings
from bayescontrol.experiments.curves import by_name, share_of_runs
from bayescontrol.experts import CARTPOLE_HYPOTHESES
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, mean_and_error
from bayescontrol.plot.chart import Chart, Guide, Marker, Panel, Series
from bayescontrol.plot.runs import line_dash
from bayescontrol.report.tables import with_error

#: A rod counts as held if it is upright for at least this share of the right expert's time.
_HELD_SHARE: Final = 0.95
#: Compares the number of successful episodes with the pilot.
_success_test: Final = partial(success_test, pilot=(40, 40), false_alarm_rate=1e-3, at_least=1)
_ORIGIN: Final = (
    "pilot on seed 1000: 40 of 40 episodes, and at least one here "
    "(false alarms: 1 in 1000; more with fewer than 3 episodes)"
)
_ORIGIN_FAILS: Final = "pilot on seed 1000: 0 of 40 episodes (false alarms: 1 in 100 at most)"


def _success_claim(name: str, hits: BoolArray, claim: str, reason: str = "") -> Claim:
    return Claim(name, claim, "ours", *_success_test(hits), reason, threshold_origin=_ORIGIN)


def score(settings: Settings, columns: Columns) -> Score:
    """Make all claims and four tables."""
    claims = (*_pole_claims(settings, columns), *_other_claims(settings, columns))
    tables = (_agent_table, _expert_table, _change_table, _other_table)
    return Score(claims, tuple(table(settings, columns) for table in tables))


def upright(settings: Settings, columns: Columns) -> FloatArray:
    """Return the share of the last quarter of the steps with cos φ > .95, as [run, agent]."""
    last = max(1, settings.rod_steps // 4)
    return np.asarray((columns["height"][:, :, -last:] > 0.95).mean(axis=2))


def _pole_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    stood = by_name(replica.AGENTS, columns["survived"] == settings.steps)
    times, wired = columns["identified"], columns["wired"]
    survived = by_name(replica.CHANGES, columns["changed"] == settings.steps)
    worse = min(replica.CHANGES[1:], key=lambda name: survived[name].sum())
    followed, static = _success_test(survived[worse]), share_and_error(survived["static"])[0]
    mean_share = share_and_error(stood[replica.MEAN])
    vote_share = share_and_error(stood[replica.VOTE])[0]
    return (
        _success_claim(
            "identifies", np.isfinite(times),
            "the control rule identifies the pole, one of twenty: share of the episodes",
            f"median: the sign of the force after {np.median(wired):g} steps, the pole after "
            f"{np.median(times):g}",
        ),
        _success_claim(
            "balances", stood[RULE],
            f"the control rule keeps an unknown pole up for {settings.steps} steps",
        ),
        Claim(
            "average-expert-fails",
            f"the mean of the experts' actions keeps the pole up for {settings.steps} steps in "
            "less than half of the episodes",
            "ours", "< 0.5", *mean_share, max(mean_share[0], vote_share) < 0.5,
            f"the vote of the experts: {vote_share:g}. Half of the experts push the wrong way",
            threshold_origin=_ORIGIN_FAILS,
        ),
        Claim(
            "follows-change",
            f"rewired after {settings.change} steps, the pole still stands after {settings.steps}: "
            f"the lower of switching and fading, {worse}",
            "ours", *followed[:3], followed[3] and static < 0.5,
            f"a static posterior cannot follow: {static:g}", threshold_origin=_ORIGIN,
        ),
    )  # fmt: skip


def _other_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    held = by_name(replica.ROD_AGENTS, upright(settings, columns))
    rule, right = held[RULE], held[replica.RIGHT]
    error = float(mean_and_error(rule)[1]) if rule.size > 1 else 0.0
    arrived = np.isfinite(by_name(replica.HILL_AGENTS, columns["goal"])[RULE])
    return (
        Claim(
            "holds-the-rod",
            "an unknown rod is swung up and held: share of the last quarter of the steps, compared "
            "with the right expert",
            "ours", float(right.mean()), float(rule.mean()), error,
            _success_test(rule >= _HELD_SHARE * right)[-1], threshold_origin=_ORIGIN,
        ),
        _success_claim(
            "climbs-the-hill", arrived,
            "unknown hill and unknown gear: share of the episodes that reach the goal",
        ),
    )  # fmt: skip


def _agent_table(settings: Settings, columns: Columns) -> Table:
    rows = []
    for name, steps in by_name(replica.AGENTS, columns["survived"]).items():
        share = with_error(*share_and_error(steps == settings.steps))
        rows.append((name, share, float(np.median(steps))))
    return Table(
        f"CartPole, one of twenty: who is up after {settings.steps} steps",
        ("agent", "share of the episodes", "median steps"), tuple(rows),
        f"{settings.runs} episodes; both velocities disturbed by {settings.noise:g} per step",
    )  # fmt: skip


def _expert_table(settings: Settings, columns: Columns) -> Table:
    stood, true = columns["experts"] == settings.steps, columns["pole"]
    signs = np.array([pole.sign for pole in CARTPOLE_HYPOTHESES])
    rows = []
    for m, pole in enumerate(CARTPOLE_HYPOTHESES):
        is_right, has_sign = true == m, signs[true] == pole.sign
        groups = (stood[group, m] for group in (is_right, has_sign & ~is_right, ~has_sign))
        cells = (f"{g.mean():.2f} ({g.size})" if g.size else "none" for g in groups)
        rows.append((pole.name, *cells))
    return Table(
        "Each expert by itself: share of the episodes survived",
        ("expert", "right", "right force, wrong pole", "wrong force"), tuple(rows),
        "the number of episodes in brackets",
    )  # fmt: skip


def _change_table(settings: Settings, columns: Columns) -> Table:
    rows = []
    for i, name in enumerate(replica.CHANGES):
        after = columns["after"][:, i, :, settings.change :]
        believes_force = after[:, replica.FORCE] >= 0.5
        delay = np.where(believes_force.any(axis=1), believes_force.argmax(axis=1) + 1.0, np.inf)
        stood = columns["changed"][:, i] == settings.steps
        end = f"{after[stood, replica.POLE, -1].mean():.2f}" if stood.any() else "none stands"
        rows.append((name, with_error(*share_and_error(stood)), float(np.median(delay)), end))
    return Table(
        f"The motor is rewired after {settings.change} steps",
        ("belief", "share that stands", "steps until it believes in the new force",
         "P(the pole) at the end"), tuple(rows),
        f"hazard {settings.hazard:g}, forgetting {settings.forgetting:g}; median of the steps, "
        "mean of the probability",
    )  # fmt: skip


def _other_table(settings: Settings, columns: Columns) -> Table:
    held = upright(settings, columns)
    rows: list[tuple[str | float, ...]] = []
    for i, name in enumerate(replica.ROD_AGENTS):
        bump = f"{columns['bump'][:, i].mean():.2f}" if "rule" in name else ""
        rows.append(("Pendulum", name, f"{held[:, i].mean():.3f} upright", bump))
    for name, goal in by_name(replica.HILL_AGENTS, columns["goal"]).items():
        reached = f"{np.isfinite(goal).mean():.3f} at the goal"
        rows.append(("MountainCar", name, reached, f"{np.median(goal):g} steps"))
    return Table(
        "Rods and hills",
        ("plant", "agent", "share", "largest jump of the torque, or median steps"), tuple(rows),
        "jumps: when the mode changes, mean over episodes of the largest",
    )  # fmt: skip


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Draw survival, identification, the rewired motor, and the other plants."""
    note = f"{counted(settings.runs, 'episode')}, bars: 95 % intervals"
    t = np.arange(1, settings.steps + 1)
    return {
        "balance": Chart(
            "CartPole, one of twenty: who is still up",
            [_survival(settings, columns["survived"], replica.AGENTS, "")],
            "Higher is better. The control rule, which knows neither the pole nor the sign of the "
            "force, lasts as long as the expert who knows both. The mean of the experts and their "
            "vote fall at once: half of them push the wrong way. The naive mixture takes its first "
            "push for evidence, and falls if that was the wrong one.",
            note=note,
        ),
        "identify": Chart(
            "What the control rule knows",
            [_posterior_panel(t, columns), _identified_panel(t, columns)],
            "The probability of the true hypothesis, of twenty, starts at 1/20. Identified means "
            "that it stays above .99. One push shows the sign of the force; length and mass take "
            "longer, and even longer with a larger disturbance.",
            columns=2, note=f"{settings.runs} episodes",
        ),
        "change": Chart(
            "The motor is rewired while the pole stands",
            [
                _survival(settings, columns["changed"], replica.CHANGES, "Still up"),
                _change_panel(settings, columns),
            ],
            "At the dotted line the force changes its sign. A static posterior is so certain by "
            "then that it would need as many steps again to change, and the pole falls. Switching "
            "modes and fading evidence follow within a few steps. The belief is the probability of "
            "the new sign of the force, median and quartiles.",
            columns=2, note=note,
        ),
        "rods-and-hills": Chart(
            "Unknown rods and hills", [_rod_panel(columns), _hill_panel(columns)],
            "Pendulum: cos φ, 1 for a rod that stands upright, as a mean over the episodes. "
            "MountainCar: the share of the episodes in which the car has reached the goal. The "
            "rule is as good as the right expert; on some hills a first push in the wrong "
            "direction even helps, because the experts are good but not optimal.",
            columns=2, note=f"{settings.runs} episodes",
        ),
    }  # fmt: skip


def _survival(settings: Settings, steps: FloatArray, names: tuple[str, ...], title: str) -> Panel:
    t = np.arange(1, settings.steps + 1)
    series, final_shares = [], []
    for i, name in enumerate(names):
        # An episode that ends at step t does not count at t, unless it lasted all steps.
        end = steps[:, i, None] == settings.steps
        up = (steps[:, i, None] > t).sum(axis=0)
        up[-1] = end.sum()
        series.append(Series(name, t, up / len(steps), kind="step", dash=line_dash(i)))
        # The right expert coincides with the control rule: an open square shows both.
        marker = "square-open" if name == replica.RIGHT else get_args(Marker)[i]
        style = {"marker": marker, "in_legend": False}
        final_shares.append(share_of_runs(name, t[-1:], end, z=1.96, kind="points", **style))
    is_rewired = names is replica.CHANGES
    return Panel(
        title, "step t", "share of the episodes", [*series, *final_shares],
        [Guide("rewired", settings.change, "vertical")] if is_rewired else [],
        xscale="linear" if is_rewired else "log", ylim=(-0.03, 1.05), legend="below",
    )  # fmt: skip


def _quartiles(label: str, t: IntArray, values: FloatArray) -> Series:
    """Make a series of median and quartiles over the episodes that are still running."""
    steps = np.flatnonzero(np.isfinite(values).any(axis=0))
    low, middle, high = np.nanquantile(values[:, steps], (0.25, 0.5, 0.75), axis=0)
    return Series(label, t[steps], middle, low, high)


#: A share or a probability against log t.
_LOG_STEPS: Final[Any] = {"xscale": "log", "ylim": (0.0, 1.05), "legend": "lower right"}


def _posterior_panel(t: IntArray, columns: Columns) -> Panel:
    series, prior = _quartiles("median, quartiles", t, columns["posterior"]), Guide("prior", 0.05)
    title = "Probability of the true pole"
    return Panel(title, "step t", "P(m* | past)", [series], [prior], **_LOG_STEPS)


def _share_by(t: IntArray, times: FloatArray) -> FloatArray:
    """Return the share of the episodes in which the time is at most t."""
    return np.asarray((times[:, None] <= t).mean(axis=0))


def _identified_panel(t: IntArray, columns: Columns) -> Panel:
    force, pole = (_share_by(t, columns[name]) for name in ("wired", "identified"))
    series = [
        Series("the sign of the force", t, force, kind="step", colour="green"),
        Series("the pole", t, pole, kind="step", colour="blue"),
    ]
    title = "Identified: above .99 until the end"
    return Panel(title, "step t", "share of the episodes", series, **_LOG_STEPS)


def _change_panel(settings: Settings, columns: Columns) -> Panel:
    around = slice(max(0, settings.change - 10), min(settings.steps, settings.change + 40))
    t = np.arange(1, settings.steps + 1)[around]
    belief_in_force = columns["after"][:, :, replica.FORCE, around]
    series = [
        _quartiles(name, t, values)
        for name, values in by_name(replica.CHANGES, belief_in_force).items()
        if np.isfinite(values).any()
    ]
    return Panel(
        "Belief in the new force", "step t", "probability", series,
        [Guide("rewired", settings.change, "vertical")], ylim=(-0.03, 1.05),
    )  # fmt: skip


def _rod_panel(columns: Columns) -> Panel:
    height = columns["height"].mean(axis=0)
    title, t, ylim = "Pendulum: nine rods", np.arange(1, height.shape[1] + 1), (-1.05, 1.05)
    rods = enumerate(zip(replica.ROD_AGENTS, height, strict=True))
    series = [Series(name, t, mean, dash=line_dash(i)) for i, (name, mean) in rods]
    return Panel(title, "step t", "cos φ, mean", series, ylim=ylim, legend="below")


def _hill_panel(columns: Columns) -> Panel:
    title, t, ylim = "MountainCar: ten hills", np.arange(1, replica.HILL_STEPS + 1), (-0.03, 1.05)
    goals = enumerate(by_name(replica.HILL_AGENTS, columns["goal"]).items())
    series = [
        Series(name, t, _share_by(t, goal), kind="step", dash=line_dash(i))
        for i, (name, goal) in goals
    ]
    return Panel(title, "step t", "share at the goal", series, ylim=ylim, legend="below")


experiment = Experiment(
    name="experts",
    summary="experts for unknown plants: CartPole with either sign of force, rods, hills",
    settings=Settings, quick=Settings(runs=6), full=Settings(runs=200),
    run=replica.run, score=score, figures=draw,
)  # fmt: skip

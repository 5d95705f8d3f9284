"""Claims and tables of `experts`.

    survived       the pole stands, and the cart is on its track, after all steps
    identified     P(m* | âo_≤t) ≥ .99 from some step to the end
    upright        cos φ > .95 over the last quarter of an episode

Shares are of episodes, each with a plant, a start and a belief of its own. How many of them may
fail comes from a pilot on another seed,

    bayescontrol run experts --seed 1000 --runs 40

in which the rule identified and balanced the pole, followed its change, held the rod and climbed
the hill in 40 of 40 episodes, and the mean and the vote of the experts kept the pole up in none.
"""

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chance import least_successes
from bayescontrol.experiments.experts.hills import HILL_AGENTS
from bayescontrol.experiments.experts.poles import AGENTS, CHANGES
from bayescontrol.experiments.experts.rods import ROD_AGENTS
from bayescontrol.experiments.experts.settings import MEAN, RIGHT, RULE, VOTE, Settings
from bayescontrol.experts import TWENTY
from bayescontrol.lab import Claim, Columns, Outcome, Table, wilson
from bayescontrol.report.tables import with_error

#: A rod counts as held if it is upright for this share of the time that the right expert holds it.
_MOST: Final = 0.95
_PILOT: Final = (40, 40)
_ALARMS: Final = 1e-3
_ORIGIN: Final = (
    "pilot on seed 1000: 40 of 40 episodes, and at least one here "
    "(false alarms: 1 in 1000; more with fewer than 3 episodes)"
)
_NONE: Final = "pilot on seed 1000: 0 of 40 episodes (false alarms: 1 in 100 at most)"


def score(settings: Settings, columns: Columns) -> Outcome:
    """The claims of `experts`, and four tables.

    >>> from bayescontrol.experiments.experts.replica import run
    >>> small = Settings(runs=1, steps=20, change=10, rod_steps=8)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> [claim.name for claim in score(small, columns).claims][:3]
    ['identifies', 'balances', 'average-expert-fails']
    """
    return Outcome(
        (*_pole_claims(settings, columns), *_other_claims(settings, columns)),
        (
            _agents(settings, columns),
            _experts(settings, columns),
            _change(settings, columns),
            _others(settings, columns),
        ),
    )


def upright(settings: Settings, columns: Columns) -> FloatArray:
    """[run, agent]: the share of the last quarter of the steps with cos φ > .95.

    >>> heights = np.ones((1, 1, 8))
    >>> upright(Settings(rod_steps=8), {"height": heights}).tolist()
    [[1.0]]
    """
    last = max(1, settings.rod_steps // 4)
    return np.asarray((columns["height"][:, :, -last:] > 0.95).mean(axis=2))


def _share(stands: npt.NDArray[Any]) -> tuple[float, float]:
    """A share of episodes and its error, a quarter of Wilson's 95 % interval: none is sure."""
    low, high = wilson(np.sum(stands), np.size(stands))
    return float(np.mean(stands)), float(high - low) / 4


def _enough(stands: npt.NDArray[np.bool_]) -> tuple[str, float, float, bool]:
    """The share that is expected, ours, its error, and whether chance explains ours."""
    least = max(1, least_successes(stands.size, _PILOT, _ALARMS))
    return f">= {least / stands.size:.3g}", *_share(stands), bool(stands.sum() >= least)


def _pole_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    stood = columns["survived"] == settings.steps
    rule, mean, vote = (stood[:, AGENTS.index(name)] for name in (RULE, MEAN, VOTE))
    times, wired = columns["identified"], columns["wired"]
    found = np.isfinite(times)
    kept = {name: columns["changed"][:, i] == settings.steps for i, name in enumerate(CHANGES)}
    slower, static = min(CHANGES[1:], key=lambda name: kept[name].sum()), _share(kept["static"])[0]
    followed = _enough(kept[slower])
    fair, unfair = _share(mean)[0], _share(vote)[0]
    return (
        Claim(
            "identifies",
            "the control rule identifies its pole, of twenty: share of the episodes",
            "ours", *_enough(found),
            f"the force after {np.median(wired):g} steps, the pole after {np.median(times):g}, "
            "by the median", threshold_origin=_ORIGIN,
        ),
        Claim(
            "balances",
            f"the control rule keeps an unknown pole up for {settings.steps} steps",
            "ours", *_enough(rule), threshold_origin=_ORIGIN,
        ),
        Claim(
            "average-expert-fails",
            f"the mean of the experts' actions keeps it up for {settings.steps} steps",
            "ours", "< 0.5", *_share(mean), max(fair, unfair) < 0.5,
            f"as a vote: {unfair:g}. Half of the experts push the other way",
            threshold_origin=_NONE,
        ),
        Claim(
            "follows-change",
            f"rewired after {settings.change} steps, the pole still stands after {settings.steps}: "
            f"the lower of switching and fading, {slower}",
            "ours", *followed[:3], followed[3] and static < 0.5,
            f"a static posterior cannot follow: {static:g}", threshold_origin=_ORIGIN,
        ),
    )  # fmt: skip


def _other_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    held = upright(settings, columns)
    rule, right = (held[:, ROD_AGENTS.index(name)] for name in (RULE, RIGHT))
    arrived = np.isfinite(columns["goal"][:, HILL_AGENTS.index(RULE)])
    return (
        Claim(
            "holds-the-rod",
            "an unknown rod, swung up and held: share of the last quarter of the steps, "
            "against the right expert's",
            "ours", float(right.mean()), float(rule.mean()), _error(rule),
            _enough(rule >= _MOST * right)[-1], threshold_origin=_ORIGIN,
        ),
        Claim(
            "climbs-the-hill",
            "an unknown hill, an unknown gear: share of the episodes that reach the goal",
            "ours", *_enough(arrived), threshold_origin=_ORIGIN,
        ),
    )  # fmt: skip


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else 0.0


def _agents(settings: Settings, columns: Columns) -> Table:
    rows = []
    for i, name in enumerate(AGENTS):
        steps = columns["survived"][:, i]
        rows.append((name, with_error(*_share(steps == settings.steps)), float(np.median(steps))))
    return Table(
        f"CartPole, one of twenty: who is up after {settings.steps} steps",
        ("agent", "share of the episodes", "median steps"),
        tuple(rows),
        f"{settings.runs} episodes; both velocities disturbed by {settings.noise:g} a step",
    )


def _experts(settings: Settings, columns: Columns) -> Table:
    stood, true = columns["experts"] == settings.steps, columns["pole"]
    signs = np.array([pole.sign for pole in TWENTY])
    rows = []
    for m, pole in enumerate(TWENTY):
        same, wired = true == m, signs[true] == pole.sign
        groups = (same, wired & ~same, ~wired)
        shares = (_percent(stood[group, m]) for group in groups)
        rows.append((pole.name, *shares))
    return Table(
        "Each expert alone: share of the episodes survived",
        ("expert", "it is right", "right force, wrong pole", "wrong force"),
        tuple(rows),
        "the number of episodes in brackets",
    )


def _percent(stood: FloatArray) -> str:
    return f"{stood.mean():.2f} ({stood.size})" if stood.size else "none"


def _change(settings: Settings, columns: Columns) -> Table:
    rows = []
    for i, name in enumerate(CHANGES):
        steps = columns["changed"][:, i]
        force, pole = np.moveaxis(columns["after"][:, i, :, settings.change :], 1, 0)
        knows = force >= 0.5
        delay = np.where(knows.any(axis=1), knows.argmax(axis=1) + 1.0, np.inf)
        stood = steps == settings.steps
        end = f"{pole[stood, -1].mean():.2f}" if stood.any() else "none stands"
        rows.append((name, with_error(*_share(stood)), float(np.median(delay)), end))
    return Table(
        f"The motor is rewired after {settings.change} steps",
        (
            "belief",
            "share that stands",
            "steps until it believes in the new force",
            "P(the pole) at the end",
        ),
        tuple(rows),
        f"hazard {settings.hazard:g}, forgetting {settings.forgetting:g}; median of the steps, "
        "mean of the probability",
    )


def _others(settings: Settings, columns: Columns) -> Table:
    held = upright(settings, columns)
    rows: list[tuple[str | float, ...]] = []
    for i, name in enumerate(ROD_AGENTS):
        bump = f"{columns['bump'][:, i].mean():.2f}" if "rule" in name else ""
        rows.append(("Pendulum", name, f"{held[:, i].mean():.3f} upright", bump))
    for i, name in enumerate(HILL_AGENTS):
        goal = columns["goal"][:, i]
        reached = f"{np.isfinite(goal).mean():.3f} at the goal"
        rows.append(("MountainCar", name, reached, f"{np.median(goal):g} steps"))
    return Table(
        "Rods and hills",
        ("plant", "agent", "share", "largest jump of the torque, or median steps"),
        tuple(rows),
        "jumps: when the mode changes, mean over episodes of the largest",
    )

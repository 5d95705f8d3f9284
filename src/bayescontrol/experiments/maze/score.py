"""Claims of `maze`: the best average reward, who comes near it, and the paper's table.

    share of the optimum = (mean reward of the last steps) / ρ*

The paper's map is not known, so its numbers are compared in order and as shares, never as such.
Differences are paired, run by run, and called better by `lab.statistics.compare`, corrected by
Holm for the three opponents. Claims of learning are made where there was time to learn: at other
settings, and for runs that are shorter, only what is true of all is claimed.
"""

import itertools
from dataclasses import replace
from typing import Final

import numpy as np

from bayescontrol.experiments.maze.replica import CONSTANTS, RULES, Settings, learner
from bayescontrol.experiments.maze.seen import Seen
from bayescontrol.experiments.maze.tables import PAPER, performance
from bayescontrol.lab import Claim, Columns, Outcome, mean_and_error
from bayescontrol.lab.statistics import Comparison, compare, holm

__all__ = ["score"]

#: ρ* of three-cups, and what the cup cycle pays there, computed by other programs.
_OPTIMUM: Final = 0.3651619155
_CUP_CYCLE: Final = 0.221
#: A run is in the cup cycle if it earns as much to within this.
_NEAR_CYCLE: Final = 0.01
#: Where the rule is to be: at least this share of ρ* after so many steps.
_NEAR: Final = {500_000: 0.98, 100_000: 0.95}
#: The step of the crossing in the paper, and how far off we may be, in standard errors of ours
#: and as a share: it is read off a figure ("around time step 125,000").
_CROSSING: Final = 125_000
_ERRORS: Final = 2.0
_AROUND: Final = 0.2
#: With fewer runs no difference is beyond luck, and a claim fails by contradiction only.
_ENOUGH: Final = 7


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims of `maze`, and the paper's table beside ours.

    >>> from bayescontrol.experiments.maze.replica import run
    >>> small = Settings(runs=1, steps=3000)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> [claim.name for claim in score(small, columns).claims]
    ['optimum']
    """
    seen = Seen(settings, columns)
    claims: list[Claim] = []
    bench = replace(Settings(), seed=settings.seed, runs=settings.runs, steps=settings.steps)
    if settings == bench:
        claims.append(_optimum(seen))
        if settings.steps >= min(_NEAR):
            claims += [
                _near_optimal(seen),
                *_beats(seen),
                _cup_cycle(seen),
                _order(seen),
                _crossing(seen),
            ]
    return Outcome(tuple(claims), (performance(seen),))


def _optimum(seen: Seen) -> Claim:
    plan = seen.world.plan
    return Claim(
        "optimum",
        f"the best policy of three-cups earns ρ* a step; bounds certified to "
        f"{plan.upper - plan.lower:.0e}",
        "ours", f"{_OPTIMUM:.10f}", f"{plan.gain:.10f}", None,
        plan.lower - 5e-11 <= _OPTIMUM <= plan.upper + 5e-11,
    )  # fmt: skip


def _near_optimal(seen: Seen) -> Claim:
    steps = seen.settings.steps
    least = _NEAR[max(n for n in _NEAR if n <= steps)]
    shares = {name: float(seen.late(name).mean()) / seen.optimum for name in RULES}
    worst = min(shares, key=shares.__getitem__)
    error = float(mean_and_error(seen.late(worst))[1]) / seen.optimum
    told = "; ".join(f"{name}: {share:.2%}" for name, share in shares.items())
    if least < max(_NEAR.values()):
        told += f"; {max(_NEAR.values()):.0%} is for {max(_NEAR):,} steps"
    return Claim(
        "rule-near-optimal",
        f"under either prior the control rule earns at least {least:.0%} of ρ* over the last "
        f"{seen.settings.window:,} of {steps:,} steps; here {worst}",
        "ours", f"≥ {least:g}", shares[worst], error,
        shares[worst] >= least,
        told,
    )  # fmt: skip


def _compared(seen: Seen, rule: str) -> dict[int, Comparison]:
    """The rule against each opponent, corrected for all three."""
    pairs = {
        C: compare(seen.late(rule), seen.late(learner(C)), names=(rule, f"C = {C}"))
        for C in CONSTANTS
    }
    corrected = holm([pair.p_value for pair in pairs.values()])
    return {
        C: replace(pair, corrected_p_value=float(p), family=len(pairs))
        for (C, pair), p in zip(pairs.items(), corrected, strict=True)
    }


def _beats(seen: Seen) -> list[Claim]:
    enough = seen.settings.runs >= _ENOUGH
    judged = [_compared(seen, rule) for rule in RULES] if seen.settings.runs > 1 else []
    claims = []
    for C in (30, 200, 5):
        gaps = [mean_and_error(seen.late(rule) - seen.late(learner(C))) for rule in RULES]
        least = int(np.argmin([mean for mean, _ in gaps]))
        mean, error = gaps[least]
        verdicts = [pairs[C].verdict for pairs in judged]
        claims.append(
            Claim(
                f"rule-beats-R{C}",
                f"under either prior the control rule earns more than R-learning with C = {C}, "
                f"run by run, beyond luck: the lesser difference, {RULES[least]}",
                "ours", "> 0", float(mean), float(error),
                all(v == "better" for v in verdicts) if enough else bool(mean > 0),
                judged[least][C].sentence if judged else "one run tells nothing of luck",
            )
        )  # fmt: skip
    return claims


def _cup_cycle(seen: Seen) -> Claim:
    late = seen.late(learner(5))
    caught = np.abs(late - _CUP_CYCLE) <= _NEAR_CYCLE
    return Claim(
        "R5-cup-cycle",
        f"R-learning with C = 5 ends in the cup cycle, about {_CUP_CYCLE}, in most runs: mean "
        "reward of these",
        "ours", f"{_CUP_CYCLE} ± {_NEAR_CYCLE}", float(late[caught].mean()) if caught.any() else
        float(late.mean()), float(late[caught].std(ddof=1)) if caught.sum() > 1 else None,
        bool(2 * caught.sum() > caught.size),
        f"{caught.sum()} of {caught.size} runs; if the goal paid nothing, the best policy would "
        f"earn {seen.cup_cycle:.4f} from the cups",
    )  # fmt: skip


def _order(seen: Seen) -> Claim:
    names = {RULES[0]: "rule", **{learner(C): f"C={C}" for C in CONSTANTS}}
    printed = sorted(names, key=lambda name: -PAPER[name][0])
    ours = sorted(names, key=lambda name: -float(seen.late(name).mean()))
    said, doubts = names[ours[0]], []
    for above, below in itertools.pairwise(ours):
        told_apart = (
            seen.settings.runs > 1
            and compare(seen.late(above), seen.late(below)).verdict == "better"
        )
        said += (" > " if told_apart else " ≈ ") + names[below]
        if not told_apart:
            doubts.append(f"{names[above]} and {names[below]} are not told apart")
    holds = ours == printed
    why = "" if holds else "the order of their means differs on our map; "
    return Claim(
        "paper-order",
        "average reward falls in this order (prior A; ≈: a paired test does not tell them apart)",
        "paper", " > ".join(names[name] for name in printed), said, None,
        holds,
        why + (", ".join(doubts) if doubts else "every step of the order is beyond luck"),
    )  # fmt: skip


def _crossing(seen: Seen) -> Claim:
    ours, error = seen.crossing(RULES[0], learner(30))
    other, _ = seen.crossing(RULES[1], learner(30))
    slack = _ERRORS * error if np.isfinite(error) else 0.0
    near = abs(ours - _CROSSING) <= _AROUND * _CROSSING + slack
    return Claim(
        "crossing-step",
        "R-learning with C = 30 is ahead at first; from about this step on the control rule "
        "(prior A) has earned more on average since the start",
        "paper", _CROSSING, _step(ours), error if np.isfinite(error) else None,
        bool(near),
        ("" if near else "it depends on the map, and the paper's is not known; ")
        + f"prior B: {_told(other)}; cumulative reward, mean of {seen.settings.runs} runs",
    )  # fmt: skip


def _step(step: float) -> float | str:
    return step if np.isfinite(step) else "not yet"


def _told(step: float) -> str:
    if step == 0.0:
        return "ahead from the start"
    return f"{step:,.0f}" if np.isfinite(step) else "not yet"

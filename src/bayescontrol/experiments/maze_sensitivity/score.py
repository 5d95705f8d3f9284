"""Claims and tables of `maze-sensitivity`.

Shares are those of `seen`. What is claimed of learning is claimed where there was time to learn;
the larger of two thresholds is for full size, and each claim says which one it takes.
"""

from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.maze_sensitivity.replica import (
    ALL,
    BASES,
    CLIFF,
    LAKE,
    PRECISIONS,
    PRIORS,
    SWEPT,
    Settings,
    maze_plan,
    toy_plan,
)
from bayescontrol.experiments.maze_sensitivity.seen import Seen
from bayescontrol.lab import Claim, Columns, Outcome, Table, mean_and_error
from bayescontrol.problems.mdp import Maze, policy_iteration
from bayescontrol.report.tables import with_error

__all__ = ["named", "score"]

#: Shares of the frozen lake's optimum at 500,000 steps, computed by other programs, and how far
#: off ours may be besides its own error, in shares and in standard errors.
_LAKE: Final = {1.0: 0.76, 10.0: 0.95, 100.0: 0.99}
_OFF: Final = 0.02
_ERRORS: Final = 4.0
#: From so many steps on: small and full size, of the maze and of the toy worlds.
_MAZE: Final = (20_000, 200_000)
_TOY: Final = (100_000, 500_000)
#: What shares may differ by and be called the same: in few, short runs, and at full size.
_SAME: Final = (0.05, 0.03)


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims of `maze-sensitivity`, and its tables.

    >>> from bayescontrol.experiments.maze_sensitivity.replica import run
    >>> small = Settings(runs=1, steps=100, toy_steps=1000)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> [claim.name for claim in score(small, columns).claims]
    ['lake-optimum', 'cliff-optimum']
    """
    seen = Seen(settings, columns)
    claims = [*_optima()]
    if settings.steps >= _MAZE[0]:
        claims += [_forgiving(seen), _trapped(seen), _same(seen, "sweeps"), _same(seen, "partial")]
    if settings.toy_steps >= _TOY[1]:
        claims += [_lake(seen, p) for p in _LAKE]
    if settings.toy_steps >= _TOY[0]:
        claims += [_matters(seen), *_found(seen)]
    return Outcome(tuple(claims), (_maze_table(seen), _toy_table(seen)))


def named(parameter: str, value: float | None) -> str:
    """A value as tables and figures show it.

    >>> named("precision", None), named("partial", 0), named("partial", 1)
    ('unknown', 'all states', '1 + the state of now')
    """
    if value is None:
        return "unknown"
    if parameter == "partial":
        return "all states" if value == ALL else f"{value:g} + the state of now"
    return f"{value:g}"


def _optima() -> tuple[Claim, Claim]:
    lake, cliff = toy_plan(LAKE).gain, toy_plan(CLIFF).gain
    return (
        Claim(
            "lake-optimum",
            "the best policy of the slippery frozen lake, made continuing, earns ρ* a step",
            "ours", 0.01756, lake, None, abs(lake - 0.01756) <= 5e-6,
        ),
        Claim(
            "cliff-optimum",
            "the best walk along the cliff takes 13 steps of cost 1, and one back for nothing",
            "ours", -13 / 14, cliff, 1e-12, abs(cliff + 13 / 14) <= 1e-12,
        ),
    )  # fmt: skip


def _forgiving(seen: Seen) -> Claim:
    full = seen.settings.steps >= _MAZE[1]
    least = 0.95 if full else 0.8
    shares = {
        (parameter, value): float(seen.maze("late", "prior B", parameter, value).mean())
        for parameter in ("mu0", "lambda0")
        for value in SWEPT[parameter]
    }
    worst = min(shares, key=shares.__getitem__)
    error = float(mean_and_error(seen.maze("late", "prior B", *worst))[1])
    return Claim(
        "prior-B-forgives",
        f"under prior B every μ0 from 0 to 4 and every λ0 from 0.01 to 10 earns at least "
        f"{least:.0%} of ρ* in the end; the worst, {_SIGNS[worst[0]]} = {named(*worst)}",
        "ours", f"≥ {least:g}", shares[worst], error,
        shares[worst] >= least,
    )  # fmt: skip


def _trapped(seen: Seen) -> Claim:
    cups = policy_iteration(Maze("three-cups", goal_reward=0.0).mdp()).gain / maze_plan().gain
    share, same = seen.maze("late", "prior A", "mu0", 0.0), _same_within(seen)
    mean, error = mean_and_error(share)
    return Claim(
        "prior-A-needs-optimism",
        "under prior A with μ0 = 0 what was never tried looks poor, and the agent stays with the "
        f"cups: share of ρ* in the end, within {same}",
        "ours", cups, float(mean), float(error),
        bool(abs(mean - cups) <= same),
        f"prior B with μ0 = 0: {seen.maze('late', 'prior B', 'mu0', 0.0).mean():.1%}",
    )  # fmt: skip


def _same_within(seen: Seen) -> float:
    return _SAME[seen.settings.steps >= _MAZE[1]]


def _same(seen: Seen, parameter: str) -> Claim:
    gaps, same = {}, _same_within(seen)
    for prior in PRIORS:
        base = seen.maze("total", prior, parameter, BASES[parameter])
        for value in SWEPT[parameter]:
            other = seen.maze("total", prior, parameter, value)
            gaps[prior, value] = mean_and_error(other - base)
    worst = max(gaps, key=lambda key: abs(float(gaps[key][0])))
    told = {
        "sweeps": "more sweeps a step than one change nothing",
        "partial": "partial sweeps, down to one state and the state of now, change nothing",
    }[parameter]
    return Claim(
        f"{parameter}-do-not-matter" if parameter == "sweeps" else "partial-sweeps-suffice",
        f"{told}: difference in the share of ρ* over all steps, within {same}; the largest, "
        f"{worst[0]}, {named(parameter, worst[1])}",
        "ours", 0.0, float(gaps[worst][0]), float(gaps[worst][1]),
        bool(abs(gaps[worst][0]) <= same),
    )  # fmt: skip


def _lake(seen: Seen, p: float) -> Claim:
    mean, error = mean_and_error(seen.toy(LAKE, p))
    slack = _OFF + (_ERRORS * float(error) if np.isfinite(error) else 0.0)
    return Claim(
        f"lake-p{p:g}",
        f"frozen lake, p = {p:g}: share of ρ* in the last tenth of "
        f"{seen.settings.toy_steps:,} steps, within {slack:.2g}",
        "ours", _LAKE[p], float(mean), float(error),
        bool(abs(mean - _LAKE[p]) <= slack),
    )  # fmt: skip


def _matters(seen: Seen) -> Claim:
    shares = {p: float(seen.toy(LAKE, p).mean()) for p in PRECISIONS}
    others = min(share for p, share in shares.items() if p != 1.0)
    told = ", ".join(f"p {named('precision', p)}: {share:.0%}" for p, share in shares.items())
    return Claim(
        "lake-precision-matters",
        "on the frozen lake p = 1, right for the maze, explores for too long: by how much the "
        "least of the other precisions, the unknown one among them, earns more of ρ*",
        "ours", "> 0", others - shares[1.0], None,
        others > shares[1.0],
        told,
    )  # fmt: skip


def _found(seen: Seen) -> list[Claim]:
    full = seen.settings.toy_steps >= _TOY[1]
    claims = []
    for name, p, least in (
        (LAKE, None, 0.95 if full else 0.7),
        (CLIFF, None, 0.95 if full else 0.6),
        (CLIFF, 10.0, 0.95 if full else 0.9),
    ):
        mean, error = mean_and_error(seen.toy(name, p))
        claims.append(
            Claim(
                f"{'cliff' if name == CLIFF else 'lake'}-{'unknown-p' if p is None else f'p{p:g}'}",
                f"{name}, p {named('precision', p)}: share of the optimum in the last tenth of "
                f"{seen.settings.toy_steps:,} steps",
                "ours", f"≥ {least:g}", float(mean), float(error),
                bool(mean >= least),
                "" if full else f"0.95 is for {_TOY[1]:,} steps",
            )
        )  # fmt: skip
    return claims


_SIGNS: Final = {
    "mu0": "μ0", "lambda0": "λ0", "precision": "p", "sweeps": "sweeps a step",
    "partial": "states swept",
}  # fmt: skip


def _maze_table(seen: Seen) -> Table:
    rows = []
    for parameter, values in SWEPT.items():
        for value in values:
            cells = (
                _cell(seen.maze(what, prior, parameter, value))
                for prior in PRIORS
                for what in ("total", "late")
            )
            ours = f"{named(parameter, value)}{' (base)' * (value == BASES[parameter])}"
            rows.append((_SIGNS[parameter], ours, *cells))
    settings = seen.settings
    return Table(
        f"three-cups, {settings.steps:,} steps: share of ρ* earned",
        ("changed", "value", "A, all steps", "A, last fifth", "B, all steps", "B, last fifth"),
        tuple(rows),
        f"means of {settings.runs} runs and their standard errors; all variants have the same luck",
    )


def _toy_table(seen: Seen) -> Table:
    rows = tuple(
        (named("precision", p), _cell(seen.toy(LAKE, p)), _cell(seen.toy(CLIFF, p)))
        for p in PRECISIONS
    )
    return Table(
        f"Toy worlds, prior B: share of the optimum in the last tenth of "
        f"{seen.settings.toy_steps:,} steps",
        (
            "p",
            f"{LAKE}, ρ* = {toy_plan(LAKE).gain:.5f}",
            f"{CLIFF}, ρ* = {toy_plan(CLIFF).gain:.5f}",
        ),
        rows,
        "cliff walk: the share of what can be gained over walking without end at a cost of 1 a "
        "step",
    )


def _cell(shares: FloatArray) -> str:
    mean, error = mean_and_error(shares)
    return with_error(float(mean), float(error)) if shares.size > 1 else f"{mean:.3f}"

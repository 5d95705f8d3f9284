"""The claims of `lower-bound`.

Shares are compared at Bernstein's margins, valid for any number of runs: all claims together raise
a false alarm less than once in a thousand seeds. With fewer than FEWEST runs nothing is judged.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.boundedness import ville
from bayescontrol.experiments.chance import small
from bayescontrol.experiments.lower_bound.replica import FEWEST, Settings
from bayescontrol.experiments.lower_bound.ruin import behind_by, fallen
from bayescontrol.experiments.lower_bound.worlds import AGENTS, DOES, worlds
from bayescontrol.lab import Claim, Columns, Outcome, Table
from bayescontrol.lab.statistics import bernstein

DELTAS: Final = (0.5, 0.2, 0.1, 0.05, 0.01)
#: δ of the shares that the claims show.
_SHOWN: Final = 0.1
#: δ of the λ that they show.
_DELTA: Final = 0.05
#: λ is above 0 if it is above this; Ville's inequality promises λ = δ.
_ABOVE: Final = _DELTA / 5
#: Between the levels that the walk of prize or frog can reach: 1, 2, 3 and 4 steps behind.
_BETWEEN: Final = (0.6, 0.3, 0.1, 0.05)
# Three claims, each of three worlds at most, at a few δ.
_ALARMS: Final = 1e-3 / (3 * 3 * len(DELTAS))


def lowest(columns: Columns) -> Mapping[tuple[str, str], FloatArray]:
    """min_t P(m* | ·) / P(m*) of each run, by world and agent.

    >>> from bayescontrol.experiments.lower_bound.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> len(lowest(one))
    6
    """
    return {
        (world, agent): columns[f"{world} {agent} low"][:, -1]
        for world in worlds()
        for agent in AGENTS
    }


def floor(low: FloatArray, delta: float) -> float:
    """The share of its prior weight that m* kept, at all times, in all but a share δ of runs.

    With a uniform prior this is λ of the theorem: P(m* | ·) ≥ λ/|M|.

    >>> floor(np.arange(100) / 100, 0.05)
    0.05
    """
    return float(np.sort(low)[int(np.floor(delta * len(low) + 1e-9))])


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and the shares as a table.

    >>> from bayescontrol.experiments.lower_bound.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> only = score(Settings(runs=1), one)  # a single run is not judged
    >>> only.claims, [table.title for table in only.tables][0]
    ((), 'Three worlds')
    """
    low = lowest(columns)
    tables = _worlds(), _table(settings, low)
    if len(next(iter(low.values()))) < FEWEST:
        return Outcome((), tables)
    claims = [_theorem(settings, low)]
    claims += [_ville(settings, world, low[world, "rule"]) for world in worlds()]
    claims.append(_ruin(settings, low["prize or frog", "rule"]))
    claims += [_naive(world, low[world, "naive"]) for world in worlds()]
    return Outcome(tuple(claims), tables)


def _theorem(settings: Settings, low: Mapping[tuple[str, str], FloatArray]) -> Claim:
    kept = {world: floor(low[world, "rule"], _DELTA) for world in worlds()}
    worst = min(kept, key=kept.__getitem__)
    return Claim(
        "lower-bound",
        "the posterior of the true mode m* stays above λ/|M|, of |M| modes, at all times in "
        f"{100 * (1 - _DELTA):g} % of runs, for some λ > 0; λ in the worst world, {worst}",
        "paper", "above 0", kept[worst], None, kept[worst] > _ABOVE,
        reason=f"λ is the share of its prior 1/|M| that m* keeps, up to step {settings.steps}; "
        f"Ville's inequality promises λ ≥ {_DELTA:g} for all times, whether divergences are "
        f"bounded or not; below {_ABOVE:g} it would count as refuted",
        place="section 4.3, theorem 2",
        threshold_origin=f"theory: by Ville's inequality at most {_ABOVE:g} of runs fall so low",
    )  # fmt: skip


def _ville(settings: Settings, world: str, low: FloatArray) -> Claim:
    read = ville(low, DELTAS)
    margin = bernstein(read.deltas * (1.0 - read.deltas), read.runs, _ALARMS)
    k = DELTAS.index(_SHOWN)
    near = float((read.share / read.deltas).max())
    return Claim(
        f"ville-{world.replace(' ', '-')}",
        f"{world}, control rule: the true mode ever falls below δ times its prior in a share δ of "
        f"runs at most; here δ = {_SHOWN:g}",
        "ours", f"at most {_SHOWN:g}", float(read.share[k]), float(read.error[k]),
        bool((read.share <= read.deltas + margin).all()),
        reason=f"for δ = {', '.join(f'{d:g}' for d in DELTAS)} the share is at most {near:.2f} "
        f"times δ, in {read.runs} runs of {settings.steps} steps",
        threshold_origin="theory: Ville's inequality, Bernstein's margin",
    )  # fmt: skip


def _ruin(settings: Settings, low: FloatArray) -> Claim:
    read = ville(low, _BETWEEN)
    exact = np.array([fallen(behind_by(delta), settings.steps) for delta in _BETWEEN])
    margin = bernstein(exact * (1.0 - exact), read.runs, _ALARMS)
    k = _BETWEEN.index(_SHOWN)
    gap = np.abs(read.share - exact)
    z = float((gap / np.sqrt(exact * (1.0 - exact) / read.runs)).max())
    return Claim(
        "gamblers-ruin",
        "prize or frog: a look into a box is a step for the truth or against it, odds 3 to 1, so "
        f"falling is the ruin of a gambler; here δ = {_SHOWN:g}, three steps behind",
        "ours", float(exact[k]), float(read.share[k]), float(read.error[k]),
        bool((gap <= margin).all()),
        reason=f"1, 2, 3 and 4 steps behind: at most z = {z:.1f} standard errors off, "
        f"{'within' if (gap <= margin).all() else 'not within'} what chance allows (false alarms: "
        "1 in 1000)",
        threshold_origin="theory: exact shares, Bernstein's margin",
    )  # fmt: skip


def _naive(world: str, low: FloatArray) -> Claim:
    read = ville(low, [_SHOWN])
    margin = float(bernstein(_SHOWN * (1.0 - _SHOWN), read.runs, _ALARMS))
    share = float(read.share[0])
    return Claim(
        f"naive-{world.replace(' ', '-')}",
        f"{world}: an agent that takes its own actions for evidence loses the truth more often "
        f"than the bound allows; δ = {_SHOWN:g}",
        "ours", f"above {_SHOWN:g}", share, float(read.error[0]),
        share > _SHOWN + margin,
        reason=f"chance alone would not go beyond {_SHOWN + margin:.2g} (false alarms: 1 in 1000)",
        threshold_origin="theory: above Ville's bound by more than Bernstein's margin",
    )  # fmt: skip


def _worlds() -> Table:
    rows = tuple(
        (name, len(world.modes), world.modes.name(world.true), DOES[name])
        for name, world in worlds().items()
    )
    return Table(
        "Three worlds",
        ("world", "modes", "true mode m*", "what a mode expects and does"),
        rows,
        "A mode is a hypothesis with its policy; all have the same prior. The rule learns from "
        "what it observes, the naive agent takes its own actions for evidence as well.",
    )


def _table(settings: Settings, low: Mapping[tuple[str, str], FloatArray]) -> Table:
    rows = []
    for world in worlds():
        for agent in AGENTS:
            read = ville(low[world, agent], DELTAS)
            kept = floor(low[world, agent], _DELTA)
            rows.append((world, agent, *map(float, read.share), small(kept)))
    return Table(
        "How often the posterior of m* ever falls below δ times its prior",
        ("world", "agent", *(f"δ = {delta:g}" for delta in DELTAS), f"λ at δ = {_DELTA:g}"),
        tuple(rows),
        f"Shares of {len(low[world, agent])} runs of {settings.steps} steps; at most δ for the "
        "rule, by Ville's inequality. λ: what share of its prior m* kept at all times, in "
        f"{100 * (1 - _DELTA):g} % of the runs.",
    )

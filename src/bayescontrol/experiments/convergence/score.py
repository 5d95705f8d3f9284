"""The claims of `convergence`: the verdict of each class, and what its runs did.

A limit that is reached almost surely cannot be refuted by runs that end, and theory gives no mean
for a finite time. The threshold for the largest distance in the last tenth of the steps comes from
a pilot on another seed, at the smallest size,

    bayescontrol run convergence --seed 1000 --runs 1000 --steps 300

                    mean    standard deviation of a run
    five modes      0.017   0.103
    bias grid       0.018   0.039
    goal worlds     0       0
    chain           0       0

and in which the trap caught 156 runs. The claims say in how many runs the distance is above 0.05.
With fewer than FEWEST runs nothing is judged.
"""

from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.convergence.verdict import Outcome as Fate
from bayescontrol.experiments.chance import Pilot, measured, told
from bayescontrol.experiments.convergence.cases import (
    ABOUT,
    CASES,
    LENGTH,
    WORDS,
    case,
    outcome,
)
from bayescontrol.experiments.convergence.replica import FEWEST, Settings, times
from bayescontrol.lab import Claim, Columns, Outcome, Table
from bayescontrol.lab.statistics import bernstein
from bayescontrol.problems.chain_times import identification_law
from bayescontrol.schedules import every_step

#: An agent this close to the true mode's policy acts as it does.
NEAR: Final = 0.05
_ALARMS: Final = 1e-3
_PILOT: Final = {
    "five modes": Pilot(0.0174, 0.103, 1000),
    "goal worlds": Pilot(0.0, 0.0, 1000),
    "chain": Pilot(0.0, 0.0, 1000),
    "bias grid": Pilot(0.0184, 0.0387, 1000),
}


def chain_distance(t: IntArray) -> FloatArray:
    """The mean distance in the chain at step t, exactly: ½ P(not identified before step t).

    >>> chain_distance(np.array([1, 5, 6])).tolist()
    [0.5, 0.5, 0.46875]
    """
    law = identification_law(lambda _t: LENGTH, every_step, int(np.max(t)))
    known = np.concatenate(([0.0], np.cumsum(law)))
    return np.asarray(0.5 * (1.0 - known[t - 1]))


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, what the classes are, and a table of verdicts and distances.

    >>> from bayescontrol.experiments.convergence.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> only = score(Settings(runs=1), one)  # a single run is not judged
    >>> only.claims, [table.title for table in only.tables][0]
    ((), 'Six classes of modes')
    """
    tables = _classes(), _table(columns)
    if len(columns["trap"]) < FEWEST:
        return Outcome((), tables)
    claims = [_verdict(name) for name in CASES]
    claims += [_settles(name, columns) for name in CASES if CASES[name] <= Fate.SETTLES]
    claims += [_exactly(settings, columns), _frozen(columns), _trapped(columns)]
    return Outcome(tuple(claims), tables)


def _hyphened(name: str) -> str:
    return name.replace(" ", "-")


def _verdict(name: str) -> Claim:
    modes, true = case(name)
    return Claim(
        f"verdict-{_hyphened(name)}",
        f"{name}, {modes.name(true)} is true: the exact verdict, before anything is run, is the "
        "one worked out by hand",
        "ours", CASES[name].name.lower(), outcome(name).name.lower(), None,
        outcome(name) is CASES[name],
        reason=WORDS[CASES[name]], exact=True,
    )  # fmt: skip


def _settles(name: str, columns: Columns) -> Claim:
    late = columns[f"{name} late"]
    mean, error = measured(late)
    first = float(columns[name][:, 0].mean())
    left = float((late > NEAR).mean())
    theorem = CASES[name] is Fate.THEOREM
    most = _PILOT[name].mean + _PILOT[name].bounded_margin(len(late), _ALARMS)
    return Claim(
        f"settles-{_hyphened(name)}",
        f"{name}: what the agent does, P(a|past), converges to the true mode's policy"
        + ("" if theorem else ", though the theorem does not cover it")
        + "; largest distance in the last tenth of the steps, mean",
        "paper" if theorem else "ours", f"→ 0, from {first:.3g}", mean, error, mean <= most,
        reason=f"the distance, 0 to 1, is above {NEAR:g} in {100 * left:.3g} % of the runs",
        place="section 4.5, theorem 4" if theorem else "",
        threshold_origin="pilot on seed 1000, 1,000 runs of 300 steps: "
        f"{_PILOT[name].mean:.2g}; at most {most:.2g} (false alarms: 1 in 1000)",
    )  # fmt: skip


def _exactly(settings: Settings, columns: Columns) -> Claim:
    t = times(settings)
    exact, runs = chain_distance(t), columns["chain"]
    # Distances are 0 or 1/2: twice them is a coin.
    margin = bernstein(4.0 * exact * (0.5 - exact), len(runs), _ALARMS / t.size) / 2.0
    gap = np.abs(runs.mean(0) - exact)
    k = int(np.argmin(np.abs(exact - 0.25)))
    mean, error = measured(runs[:, k])
    within = bool((gap <= margin).all())
    return Claim(
        "chain-as-computed",
        f"chain of {LENGTH}: the mean distance is half the probability that the chain is not "
        f"identified, at every step; here t = {t[k]}",
        "ours", float(exact[k]), mean, error, within,
        reason=f"at {t.size} steps the mean is off by {gap.max():.2g} at most, "
        f"{'within' if within else 'not within'} what chance allows (false alarms: 1 in 1000)",
        threshold_origin="theory: exact probabilities, Bernstein's margin",
    )  # fmt: skip


def _frozen(columns: Columns) -> Claim:
    runs = columns["two policies"]
    spread = float(np.abs(runs - 0.5).max())
    return Claim(
        "two-policies-never-settle",
        "two policies: the distance from the true mode's policy stays where it was, in every run "
        "at every step; largest change",
        "ours", 0.0, spread, None, spread <= 1e-12,
        reason="nothing that either mode does tells them apart: the posterior stays at the prior, "
        "and the agent mixes the two policies for ever",
        threshold_origin="theory, 1e-12 allowed for rounding",
    )  # fmt: skip


def _trapped(columns: Columns) -> Claim:
    late = columns["trap late"]
    share = float((late > NEAR).mean())
    return Claim(
        "trap-with-positive-probability",
        "trap: some runs are caught before they know the true mode, and never act as it does; "
        "their share",
        "ours", "between 0 and 1", share, float(np.sqrt(share * (1 - share) / len(late))),
        0.0 < share < 1.0,
        reason="“never” is said of a class if it happens with positive probability; the other runs "
        "settle",
        threshold_origin="pilot on seed 1000: 156 of 1,000 runs (false alarms with 100 runs: below "
        "1e-7)",
    )  # fmt: skip


def _classes() -> Table:
    rows = tuple(
        (name, len(case(name).modes), case(name).modes.name(case(name).true), ABOUT[name])
        for name in CASES
    )
    return Table(
        "Six classes of modes",
        ("class", "modes", "true mode", "what it is"),
        rows,
        "A mode is a hypothesis about the world with the policy that suits it; one is true.",
    )


def _table(columns: Columns) -> Table:
    rows = []
    for name in CASES:
        share = float((columns[f"{name} late"] > NEAR).mean())
        rows.append(
            (
                name,
                WORDS[outcome(name)],
                float(f"{columns[name][:, 0].mean():.3g}"),
                told(columns[f"{name} late"]),
                share,
            )
        )
    return Table(
        "How far the agent is from acting as the true mode does",
        ("class", "verdict", "first step", "last tenth", f"runs above {NEAR:g}"),
        tuple(rows),
        "Distance: total variation, 0 when the agent does what the true mode would do, 1 when the "
        "two never do the same. Last tenth: the largest distance in the last tenth of the steps, "
        "mean ± standard error over runs, one number where all agree; last column: the share of "
        "runs in which it is larger.",
    )

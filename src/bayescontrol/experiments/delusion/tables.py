"""The numbers behind the claims: exact at the horizon, simulated at the last step, ± one s.e.

    trust    P(m | ·) of the mode in charge once it has acted; in prize or frog, "it is in my box"

A reader who doubts a claim finds here what it was made of.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bayescontrol.experiments.delusion.exact import DELTAS, HORIZON, Exact, all_exact
from bayescontrol.experiments.delusion.replica import AGENTS, Process, Settings, processes
from bayescontrol.experiments.delusion.seen import Seen
from bayescontrol.lab import Columns, Table, mean_and_error
from bayescontrol.report.tables import with_error

Rows = list[tuple[str | float | int, ...]]


def tables(
    settings: Settings, columns: Columns, seen: dict[tuple[str, str], Seen]
) -> tuple[Table, ...]:
    """Trust, E[posterior], match rate, Ville's bound and what the meter read.

    >>> from bayescontrol.experiments.delusion.replica import run
    >>> from bayescontrol.experiments.delusion.seen import all_seen
    >>> few = Settings(runs=1, steps=3)
    >>> one = {name: column[None] for name, column in run(few, 0).items()}
    >>> [table.title.split(",")[0] for table in tables(few, one, all_seen(few, one))]
    ['Trust in the mode just drawn', 'E[posterior]', 'Match', "Ville's bound", 'Delusion in bits']
    """
    exact, known = all_exact(settings.reliability), processes(settings.reliability)
    first, last, horizon = "step 1", f"step {settings.steps}", f"exact, step {HORIZON}"

    def rows(of: Callable[[str, str, Process, Exact, Seen], Rows]) -> Rows:
        return [
            (name, agent, *row)
            for name, process in known.items()
            for agent in AGENTS
            for row in of(name, agent, process, exact[name, agent], seen[name, agent])
        ]

    def trust(name: str, agent: str, _p: Process, _e: Exact, own: Seen) -> Rows:
        believed = columns[f"{name} {agent} trust"]
        return [(_mean(believed[:, 0]), _mean(believed[:, -1]), _mean(own.matched[:, -1]))]

    def mean(_n: str, _a: str, process: Process, exact: Exact, own: Seen) -> Rows:
        return [
            (
                process.modes[m].name,
                float(p),
                float(exact.mean[-1, m]),
                _mean(own.posterior[:, -1, m]),
            )
            for m, p in enumerate(process.prior)
        ]

    def match(_n: str, _a: str, _p: Process, exact: Exact, own: Seen) -> Rows:
        sides = float(exact.match[-1]), float(exact.squares[-1])
        return [(*sides, _mean(own.matched[:, -1]), _mean(own.squares[:, -1]))]

    def ville(_n: str, _a: str, _p: Process, exact: Exact, own: Seen) -> Rows:
        return [
            (delta, float(exact.ville[-1, k]), _mean(own.lowest[:, -1] < delta))
            for k, delta in enumerate(DELTAS)
        ]

    def bits(name: str, agent: str, _p: Process, _e: Exact, _s: Seen) -> Rows:
        step, total = (columns[f"{name} {agent} {kind} bits"] for kind in ("step", "total"))
        contradicted = np.isinf(total[:, -1])
        return [
            (
                _mean(step[:, 0]),
                _mean(step.sum(1)),
                _mean(total[~contradicted, -1]) if not contradicted.all() else "none finite",
                f"{contradicted.mean():.1%}",
            )
        ]

    who = ("process", "agent")
    return (
        Table(
            "Trust in the mode just drawn, before the answer",
            (*who, f"{first}, believed", f"{last}, believed", f"{last}, right"),
            tuple(rows(trust)),
            "In prize or frog the mode says: the prize is in the box I picked.",
        ),
        Table(
            "E[posterior], m* drawn from the prior",
            (*who, "mode", "prior", horizon, f"simulated, {last}"),
            tuple(rows(mean)),
            "In prize or frog the naive agent keeps the prior by symmetry alone.",
        ),
        Table(
            "Match, P(drawn mode = m*) against E[Σ posterior²]",
            (*who, f"P, {horizon}", f"E, {horizon}", f"P, {last}", f"E, {last}"),
            tuple(rows(match)),
        ),
        Table(
            "Ville's bound, P(posterior(m*) < δ prior(m*) at some t) against δ",
            (*who, "δ", f"{horizon}", f"simulated, to {last}"),
            tuple(rows(ville)),
        ),
        Table(
            "Delusion in bits, on the records of either agent",
            (*who, first, f"summed to {last}", f"all actions, {last}", "contradictions"),
            tuple(rows(bits)),
            "Conditioned on single actions, then on all of them. A contradiction: no mode would "
            "have acted so; its infinite bits are left out of the mean.",
        ),
    )


def _mean(values: npt.ArrayLike) -> str:
    mean, error = mean_and_error(values)
    return with_error(float(mean), float(error))

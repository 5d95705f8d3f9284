"""The claims: four identities that hold for the causal agent and fail for the naive one.

    E[posterior] = prior                          P(drawn mode = m*) = E[Σ_m posterior(m)²]
    P(∃t: posterior(m*) < δ prior(m*)) ≤ δ        other policies, same posterior

Each is computed exactly up to a horizon and simulated beyond it. That it holds means: exactly,
within 1e-12, and in simulation within what chance may do. That it fails means: exactly, by
more than 0.01, and the simulation agrees with the exact value. The rate of false alarms is
below 1e-3 for all claims together, at any number of runs (`seen.margin`).
"""

from typing import Final

import numpy as np

from bayescontrol.experiments.delusion.exact import DELTAS, HORIZON, Exact, all_exact
from bayescontrol.experiments.delusion.replica import AGENTS, Settings, processes
from bayescontrol.experiments.delusion.seen import Seen, all_seen, strain
from bayescontrol.experiments.delusion.tables import tables
from bayescontrol.lab import Claim, Columns, Outcome, mean_and_error
from bayescontrol.metrics import delusion
from bayescontrol.problems.prize import PRIZE
from bayescontrol.record import Record

__all__ = ["score"]

_TOLERANCE: Final = 1e-12
_BROKEN: Final = 0.01
_SHOWN: Final = "three modes"
_DELTA: Final = 0.05


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, two for each identity, and the tables behind them.

    >>> from bayescontrol.experiments.delusion.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(steps=3), 0).items()}
    >>> all(claim.holds for claim in score(Settings(runs=1, steps=3), one).claims)
    True
    """
    study = _Study(settings, columns)
    claims = (
        *_prize(settings),
        *study.prior_preserved(),
        *study.match_rate(),
        *study.ville(),
        *study.intervention_law(),
    )
    return Outcome(claims, tables(settings, columns, study.seen))


def _prize(settings: Settings) -> tuple[Claim, ...]:
    process = processes(settings.reliability)["prize"]
    believed = {}
    for name in AGENTS:
        agent = process.agent(name)
        agent.issue(0)
        believed[name] = float(agent.belief.posterior()[0])  # type: ignore[attr-defined]
    bits = float(delusion(Record([0], [PRIZE]), process.agent("causal")).step_bits[0])
    said = "having picked a box and before it opens it, the {} agent believes P(prize) = {}"
    return (
        _exact_claim("prize-naive", said.format("naive", "1"), 1.0, believed["naive"]),
        _exact_claim("prize-causal", said.format("causal", "1/2"), 0.5, believed["causal"]),
        _exact_claim("prize-bits", "as evidence the first pick is worth one false bit", 1.0, bits),
    )


def _exact_claim(name: str, claim: str, expected: float, ours: float) -> Claim:
    holds = abs(ours - expected) <= _TOLERANCE
    return Claim(name, claim, "ours", expected, ours, None, holds)


class _Study:
    """Exact and simulated values side by side."""

    def __init__(self, settings: Settings, columns: Columns) -> None:
        self.settings, self.columns = settings, columns
        self.seen = all_seen(settings, columns)
        self.exact = all_exact(settings.reliability)
        self.processes = processes(settings.reliability)
        self.runs = len(columns["prize truth"])
        #: Simulated and exact values are compared up to this time.
        self.common = min(HORIZON, settings.steps)

    def both(self, agent: str) -> list[tuple[str, Seen, Exact]]:
        return [(name, self.seen[name, agent], self.exact[name, agent]) for name in self.processes]

    def prior_preserved(self) -> tuple[Claim, Claim]:
        t, prior = self.settings.steps, self.processes[_SHOWN].prior
        off = {
            agent: max(
                float(np.abs(exact.mean - self.processes[name].prior).max())
                for name, _, exact in self.both(agent)
            )
            for agent in AGENTS
        }
        causal = max(
            strain(
                seen.posterior.mean(0),
                np.broadcast_to(self.processes[name].prior, seen.posterior.shape[1:]),
                self.runs,
            )
            for name, seen, _ in self.both("causal")
        )
        naive = max(
            strain(
                seen.posterior[:, : self.common + 1].mean(0),
                exact.mean[: self.common + 1],
                self.runs,
            )
            for _, seen, exact in self.both("naive")
        )
        shown = {}
        for agent in AGENTS:
            mean, error = mean_and_error(self.seen[_SHOWN, agent].posterior[:, t])
            m = int(np.argmax(np.abs(mean - prior)))
            shown[agent] = (m, float(mean[m]), float(error[m]))
        return ()

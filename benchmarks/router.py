"""Processor time of a decision and its score, for the agents that the page "A router" names.

    python -m benchmarks.router [--decisions 150]

All agents route the requests of the stationary world of `docs/router.py`, at its prices. Each
request is a conversation of its own, and its score comes at once. Logs are in memory, so no disk is
measured. The first half of the requests is not timed: after it changing models are as large as they
get.
"""

import argparse
import runpy
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bayescontrol import BernoulliBandit, LinearBandit, LogisticBandit
from bayescontrol.durable import Configuration, open_agent

__all__ = ["PROBLEMS", "milliseconds"]

ROUTER: Final = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[1] / "docs" / "router.py"))
)
MODELS: Final = ROUTER.MODELS
KIND: Final[Any] = {"kind": list(ROUTER.KINDS)}
CONFIGURATION: Final = Configuration(
    prices={"small": 0.02, "medium": "reported", "large": 0.30}, reward_range=(0, 1)
)
_LINEAR: Final = LinearBandit(MODELS, KIND, sd=0.25, prior=((0.5, 0, 0, 0), 24))
_LEARNED, _BERNOULLI = LinearBandit(MODELS, KIND), BernoulliBandit(MODELS)
_LOGISTIC: Final = LogisticBandit(MODELS, KIND, prior=((0, 0, 0, 0), 1))
PROBLEMS: Final[dict[str, Any]] = {
    "LinearBandit, sd and prior": _LINEAR,
    "LinearBandit, sd and prior, changing(per_arm=True): the router": _LINEAR.changing(
        per_arm=True
    ),
    "LinearBandit, changing(per_arm=True)": _LEARNED.changing(per_arm=True),
    "BernoulliBandit, changing()": _BERNOULLI.changing(),
    "BernoulliBandit, changing(per_arm=True)": _BERNOULLI.changing(per_arm=True),
    "LogisticBandit, prior, changing()": _LOGISTIC.changing(),
    "LogisticBandit, prior, changing(per_arm=True)": _LOGISTIC.changing(per_arm=True),
    "LogisticBandit, changing(per_arm=True)": LogisticBandit(MODELS, KIND).changing(per_arm=True),
}


class Agent:
    """A durable agent in memory; an agent for successes learns whether a score is at least 1/2."""

    def __init__(self, name: str) -> None:
        self.agent = open_agent(
            "sqlite:///:memory:", "router", PROBLEMS[name], configuration=CONFIGURATION
        )
        self.has_context, self.is_binary = "Bernoulli" not in name, "Linear" not in name

    def act(self, t: int, session: str, kind: str, among: Any) -> tuple[str, str]:
        """Decide request t."""
        context = {"kind": kind} if self.has_context else None
        decision = self.agent.act(context, key=f"request {t}", session=session)
        return decision.id, decision.action

    def observe(self, id: str, score: float, cost: float) -> None:
        """Learn the score of a decision."""
        self.agent.observe(id, float(score >= 0.5) if self.is_binary else score, cost=cost)


def milliseconds(router: Any, decisions: int) -> float:
    """Return the processor time of a decision and its score, after as many that are not timed."""
    requests, began = ROUTER.traffic(0, "stationary"), 0.0
    for t in range(2 * decisions):
        if t == decisions:
            began = time.process_time()
        id, model = router.act(t, f"conversation {t}", ROUTER.KINDS[requests.kind[t]], MODELS)
        a = MODELS.index(model)
        router.observe(id, float(requests.score[t, a]), float(requests.cost[t, a]))
    return 1e3 * (time.process_time() - began) / decisions


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Time a decision and its score.")
    parser.add_argument("--decisions", type=int, default=150)
    decisions = parser.parse_args().decisions
    console, table = (
        Console(),
        Table(title="Processor time of a decision and its score, with prices"),
    )
    table.add_column("router")
    table.add_column("ms", justify="right")
    with tempfile.TemporaryDirectory() as folder:
        times = {"Beta-Thompson": milliseconds(ROUTER.BetaThompson(0, folder), decisions)}
    for name in PROBLEMS:
        with console.status(f"measuring: {name}"):
            times[name] = milliseconds(Agent(name), decisions)
    for name, taken in times.items():
        table.add_row(name, f"{float(f'{taken:.2g}'):g}")
    console.print(table)


if __name__ == "__main__":
    main()

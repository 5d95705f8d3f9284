"""Coverage and width of the intervals of `what_if`.

    python -m benchmarks.what_if                 the table of docs/durable.md, under a minute
    python -m benchmarks.what_if --logs 10       a quick look

The logs come from a Bernoulli agent with two arms that pay 0.2 and 0.3. Each of three policies is
evaluated on them; its true mean reward is known. The intervals of `what_if` are compared with
normal intervals, mean ± z standard errors.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist, fmean, median
from typing import Any

from tests.offpolicy.logs import bandit_log

from bayescontrol.durable.events import Event
from bayescontrol.offpolicy import RewardEstimate, WhatIf, what_if

__all__ = ["Coverage", "coverage"]

LEVEL = 0.95
PAYS: dict[Any, float] = {"worse": 0.2, "better": 0.3}
POLICIES: dict[str, dict[Any, float]] = {
    "always the better arm": {"better": 1.0},
    "both arms alike": {"worse": 0.5, "better": 0.5},
    "always the worse arm": {"worse": 1.0},
}


@dataclass(frozen=True)
class Coverage:
    """The share of logs whose interval contains the true value, and the mean width."""

    held: float
    width: float

    def __str__(self) -> str:
        return f"{100 * self.held:.0f} %, {self.width:.2f}"


def coverage(
    estimates: list[WhatIf], truth: float, ends: Callable[[WhatIf], tuple[float, float]]
) -> Coverage:
    """Coverage of the intervals `ends(estimate)`."""
    both = [ends(one) for one in estimates]
    held = fmean(low <= truth <= high for low, high in both)
    return Coverage(held, fmean(high - low for low, high in both))


def normal(estimate: RewardEstimate) -> tuple[float, float]:
    """Mean ± z standard errors."""
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    return estimate.mean - z * estimate.error, estimate.mean + z * estimate.error


def always(probabilities: dict[Any, float]) -> Callable[[Any], dict[Any, float]]:
    """The policy with the same action probabilities in every situation."""
    return lambda _: probabilities


def rows(logs: list[list[Event]]) -> list[tuple[str, ...]]:
    """Return one row per policy."""
    found = []
    for name, probabilities in POLICIES.items():
        estimates = [what_if(log, always(probabilities), level=LEVEL) for log in logs]
        truth = sum(p * PAYS[a] for a, p in probabilities.items())
        shares = [
            coverage(estimates, truth, lambda one: normal(one.inverse_propensity)),
            coverage(
                estimates,
                truth,
                lambda one: (one.inverse_propensity.low, one.inverse_propensity.high),
            ),
            coverage(estimates, truth, lambda one: normal(one.doubly_robust)),
            coverage(estimates, truth, lambda one: (one.doubly_robust.low, one.doubly_robust.high)),
        ]
        effective = median(one.effective / one.decisions for one in estimates)
        found.append((name, *map(str, shares), f"{effective:.2f}"))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage and width of what-if intervals.")
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--decisions", type=int, nargs="+", default=[200, 1000])
    given = parser.parse_args()
    heads = ("normal ips", "ips", "normal dr", "dr", "effective / decisions")
    print(f"| decisions | the other policy | {' | '.join(heads)} |")
    print("|" + "---|" * (len(heads) + 2))
    for decisions in given.decisions:
        logs = [
            bandit_log(seed, decisions, list(PAYS), lambda a, _: PAYS[a])
            for seed in range(given.logs)
        ]
        for row in rows(logs):
            print(f"| {decisions} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()

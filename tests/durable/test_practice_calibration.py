"""Logged probabilities are calibrated under eligibility, holdout, shares, prices and sessions.

For each new decision one eligible arm is chosen in turn, whatever the agent does. Given the past, 1
if the agent takes it, minus its probability P, has mean 0 and variance P (1 - P). So in the decile
cells of P the sums of these differences are sums of martingale differences, and

    z = Σ (taken - P) / sqrt(Σ P (1 - P))

is nearly normal if the variance is large: |z| > 4 has probability 6e-5, and 2e-3 for any of the 31
cells below. In a pilot of 955 cells, from seeds of 1000 to 1890, the largest |z| was 3.5.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from tests.durable.practice import ALL, ARMS, MEANS, PLAIN, New, Practice

from bayescontrol import BernoulliBandit, LinearBandit
from bayescontrol.durable import Decided
from bayescontrol.seeding import Stream

#: Cells with less variance are left out: their z is not normal.
LEAST = 6.0


def normal(a: Any, x: Any, rng: Stream) -> float:
    return MEANS[a] * (1.0 if x is None else x[0]) + rng.normal()


def features(rng: Stream) -> list[float]:
    return [float(rng.normal()), 1.0]


#: Red and plain are known well, so that the others decide which of them is the best.
SHOP = BernoulliBandit(ARMS, prior=[(300, 200), (3, 3), (2, 3), (275, 225)])
#: A bandit, options of `Practice`, and the number of logs.
CASES: dict[str, tuple[Any, dict[str, Any], int]] = {
    "eligible": (SHOP, {"configurations": [PLAIN]}, 20),
    "all": (SHOP, {"configurations": [ALL]}, 20),
    "linear": (
        LinearBandit(ARMS, features=2, sd=1, prior=(0, 1)),
        {"reward": normal, "situation": features}, 20,
    ),
    "changing": (
        BernoulliBandit(ARMS).changing(hazards=[0.3], starts=3),
        {"amends": False, "configurations": [PLAIN, ALL]}, 10,
    ),
}  # fmt: skip


def decile_cells(pairs: Iterable[tuple[float, bool]]) -> list[float]:
    """z of each cell of (P, taken) that has enough variance."""
    p, taken = np.array([*pairs], np.float64).T
    cells = np.minimum((10.0 * p).astype(int), 9)
    sums = np.bincount(cells, taken - p, 10)
    variances = np.bincount(cells, p * (1.0 - p), 10)
    enough = variances >= LEAST
    return [float(z) for z in sums[enough] / np.sqrt(variances[enough])]


def asked(new: New) -> tuple[float, bool]:
    """The probability of one of the eligible arms, in turn, and whether it was taken."""
    turn = ["plain", "red"] if new.t % 2 else ["red", "plain"]
    arm = next(a for a in [*turn, *new.eligible] if a in new.eligible)
    probabilities = new.decision.probabilities
    assert probabilities is not None
    assert set(probabilities) == set(new.eligible)
    assert probabilities[new.decision.action] == new.p
    return probabilities[arm], new.decision.action == arm


def logs(name: str, first: int) -> list[Practice]:
    model, options, n = CASES[name]
    return [Practice(first + i, model, 120, **options) for i in range(n)]


@pytest.mark.parametrize("name", CASES)
def test_decisions_are_calibrated_in_every_decile(name: str) -> None:
    pairs = []
    for practice in logs(name, 0):
        logged = {str(e.seq): e.p for e in practice.events if isinstance(e, Decided)}
        assert logged == {new.decision.id: new.p for new in practice.new}
        assert practice.repeated > 5
        pairs += [asked(new) for new in practice.new]
    cells = decile_cells(pairs)
    assert len(cells) >= 5
    assert max(map(abs, cells)) <= 4.0

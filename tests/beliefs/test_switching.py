"""Beliefs about changing worlds."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import FiniteBelief, Floor, Stream
from bayescontrol.beliefs.switching import FadingBelief, SwitchingBelief
from bayescontrol.errors import (
    ImpossibleObservation,
    IncompatibleState,
    InvalidTable,
    MissingCapability,
)
from bayescontrol.testing import check_bad_evidence, check_deterministic, check_save


class Coin:
    def __init__(self, p: float) -> None:
        self.p, self.name = p, f"{p:g}"

    def likelihood(self, x: Any, a: Any, o: int) -> float:
        return (1.0 - self.p, self.p, math.nan)[o]

    def act(self, x: Any, rng: Stream) -> str:
        return "toss"


COINS = [Coin(0.9), Coin(0.4), Coin(0.1)]
PRIOR = np.array([0.5, 0.3, 0.2])
EVENTS = [(None, "toss", o) for o in (1, 1, 0, 1, 0, 0, 0)]


def after_events(belief: FiniteBelief[Coin]) -> FiniteBelief[Coin]:
    for x, a, o in EVENTS:
        belief.observe(x, a, o)
    return belief


def by_paths(transition: Any) -> Any:
    """Compute P(m_{t+1} | o_≤t) and P(o_≤t) by enumerating every path of modes."""
    v = np.zeros(3)
    for path in itertools.product(range(3), repeat=len(EVENTS) + 1):
        p = PRIOR[path[0]]
        for t, (x, a, o) in enumerate(EVENTS):
            p *= COINS[path[t]].likelihood(x, a, o) * transition[path[t], path[t + 1]]
        v[path[-1]] += p
    return v / v.sum(), v.sum()


TABLE = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])


@pytest.mark.parametrize(
    ("change", "table"),
    [({"hazard": 0.07}, 0.93 * np.eye(3) + 0.07 * PRIOR), ({"transition": TABLE}, TABLE)],
)
def test_a_switching_belief_equals_the_exact_filter(change: Any, table: Any) -> None:
    expected, total = by_paths(table)
    belief = after_events(SwitchingBelief(COINS, PRIOR, **change))
    assert belief.posterior() == pytest.approx(expected, abs=1e-14)
    assert belief.code_length() == pytest.approx(-math.log2(total), abs=1e-12)


def test_fading_evidence_is_weighted_by_powers_of_lambda() -> None:
    lam, n = 0.8, len(EVENTS)
    logs = np.log(PRIOR)
    for s, (x, a, o) in enumerate(EVENTS, start=1):
        logs += lam ** (n - s + 1) * np.log([coin.likelihood(x, a, o) for coin in COINS])
    expected = np.exp(logs) / np.exp(logs).sum()
    belief = after_events(FadingBelief(COINS, PRIOR, forgetting=lam))
    assert belief.posterior() == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    "belief",
    [SwitchingBelief(COINS, PRIOR, hazard=0.0), FadingBelief(COINS, PRIOR, forgetting=1.0)],
)
def test_without_hazard_or_forgetting_it_equals_the_static_posterior(belief: Any) -> None:
    static = after_events(FiniteBelief(COINS, PRIOR))
    assert after_events(belief).posterior() == pytest.approx(static.posterior(), rel=1e-12)
    assert belief.code_length() == pytest.approx(static.code_length(), abs=1e-12)


@pytest.mark.parametrize(
    "belief",
    [SwitchingBelief(COINS, PRIOR, hazard=0.1), FadingBelief(COINS, PRIOR, forgetting=0.7)],
)
def test_the_code_length_is_the_sum_of_the_log_scores(belief: Any) -> None:
    bits = 0.0
    for x, a, o in EVENTS:
        bits -= belief.log_predictive(x, a, o) / math.log(2)
        belief.observe(x, a, o)
    assert belief.code_length() == pytest.approx(bits, abs=1e-12)


@pytest.mark.parametrize(
    ("belief", "follows"),
    [
        (FiniteBelief(COINS), False),
        (SwitchingBelief(COINS, hazard=0.001), True),
        (FadingBelief(COINS, forgetting=0.8), True),
    ],
)
def test_switching_and_fading_beliefs_follow_a_change_and_a_static_one_does_not(
    belief: Any, follows: bool
) -> None:
    for o in [1] * 2000 + [0] * 20:
        belief.observe(None, "toss", o)
    assert (belief.posterior()[2] > 0.8) == follows


def test_a_mode_with_an_extremely_small_weight_can_recover_by_fading() -> None:
    close = [Coin(1 - 1e-12), Coin(1e-12)]
    belief = FadingBelief(close, forgetting=0.999)
    for _ in range(3000):
        belief.observe(None, "toss", 1)
    for _ in range(1400):  # the memory is 1000 steps: weights are equal after 693
        belief.observe(None, "toss", 0)
    assert belief.posterior()[1] > 0.999


def make_switching() -> SwitchingBelief[Coin]:
    return SwitchingBelief(COINS, PRIOR, hazard=0.05)


def make_fading() -> FadingBelief[Coin]:
    return FadingBelief(COINS, PRIOR, forgetting=0.9)


@pytest.mark.parametrize("make", [make_switching, make_fading])
def test_the_laws_of_a_belief_hold_and_it_cannot_be_merged(make: Any) -> None:
    check_deterministic(make, EVENTS)
    check_save(make, EVENTS)
    check_bad_evidence(make, EVENTS, [(None, "toss", 2)])
    with pytest.raises(IncompatibleState, match="order of the observations"):
        make().merge(make())


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"hazard": 0.1, "transition": np.eye(3)},
        {"hazard": -0.1},
        {"hazard": 1.5},
        {"hazard": math.nan},
        {"hazard": "a"},
        {"hazard": []},
        {"hazard": [[0.1, 0.2]]},
        {"hazard": [0.1, 1.2]},
        {"hazard": [0.1, 0.1]},
        {"hazard": [0.1, 0.2], "hazard_prior": [0.5, 0.6]},
        {"hazard": [0.1, 0.2], "hazard_prior": [1.0]},
        {"transition": np.eye(3), "hazard_prior": [1.0]},
        {"transition": np.eye(2)},
        {"transition": np.full((3, 3), 0.5)},
        {"transition": [[2.0, -1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]},
        {"transition": np.full((3, 3), np.nan)},
    ],
)
def test_an_invalid_change_rate_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidTable, match=r"hazard|transition"):
        SwitchingBelief(COINS, **change)


def test_modes_with_private_state_support_fading_but_not_switching() -> None:
    class Filter(Coin):
        def start(self) -> int:
            return 0

        def advance(self, s: int, a: Any, o: Any) -> int:
            return s + 1

    filters = [Filter(0.9), Filter(0.1)]
    advice = r"Use InteractingBelief.*FadingBelief.*shared_state=True"
    with pytest.raises(MissingCapability, match=advice):
        SwitchingBelief(filters, hazard=0.1)
    with pytest.raises(MissingCapability, match="FadingBelief"):
        SwitchingBelief([Coin(0.9)], hazard=0.1).add(Filter(0.1), 0.5, state=0)
    FadingBelief(filters, forgetting=0.9).observe(None, "toss", 1)


def test_modes_can_be_added_with_a_hazard_but_not_with_a_table() -> None:
    belief = after_events(make_switching())
    assert belief.add(Coin(0.6), mass=0.25) == 3
    belief.retire(0)
    belief.observe(None, "toss", 1)
    assert belief.posterior()[0] == 0.0
    assert belief.posterior().sum() == pytest.approx(1.0)
    table = SwitchingBelief(COINS, transition=np.eye(3))
    with pytest.raises(MissingCapability, match="cannot add"):
        table.add(Coin(0.6), mass=0.25)
    with pytest.raises(MissingCapability, match="cannot retire"):
        table.retire(0)


def test_an_excluded_mode_recovers_by_switching_or_with_a_floor_but_not_by_fading() -> None:
    sure = [Coin(0.0), Coin(1.0)]
    switching: SwitchingBelief[Any] = SwitchingBelief(sure, hazard=0.01)
    fading: FadingBelief[Any] = FadingBelief(sure, forgetting=0.5)
    floored: FadingBelief[Any] = FadingBelief(sure, forgetting=0.5, on_impossible=Floor(1e-9))
    for belief in (switching, fading, floored):
        belief.observe(None, 0, 0)
    switching.observe(None, 0, 1)
    assert switching.posterior()[1] > 0.99
    with pytest.raises(ImpossibleObservation):
        fading.observe(None, 0, 1)
    assert fading.posterior().tolist() == [1.0, 0.0]
    for _ in range(3):
        floored.observe(None, 0, 1)
    assert floored.posterior()[1] > 0.99
    assert floored.impossible == 4


def test_skipped_evidence_is_counted_and_time_still_passes() -> None:
    belief = SwitchingBelief([Coin(1.0), Coin(1.0)], [0.9, 0.1], hazard=0.5, on_impossible="skip")
    belief.observe(None, "toss", 0)
    assert belief.impossible == belief.count == 1
    assert belief.posterior() == pytest.approx([0.9, 0.1])


@pytest.mark.parametrize("value", ["a", 2.0, 0.0, -0.5, math.nan, [0.1, 2.0]])
def test_an_invalid_forgetting_factor_is_refused(value: Any) -> None:
    with pytest.raises(InvalidTable, match="forgetting="):
        FadingBelief([Coin(0.9), Coin(0.1)], forgetting=value)

"""The ledger returns the recorded transitions, also after it has grown."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayescontrol.mdp.ledger import Entry, Ledger
from bayescontrol.testing import same_bits

PRIOR = (0.5, 2.0, 3.0)
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(0, 2), st.integers(0, 30), st.sampled_from([-1.0, 0.0, 2.5])
    ),
    max_size=200,
)
DECLARED = st.sampled_from([None, 31])


def ledger_of(events: list[Any], states: int | None = None) -> Ledger:
    ledger = Ledger(3, PRIOR, states)
    for x, a, y, r in events:
        ledger.record(x, a, y, r)
    return ledger


def counted(events: list[Any]) -> dict[Any, tuple[int, float]]:
    observed: dict[Any, list[float]] = defaultdict(list)
    for x, a, y, r in events:
        observed[x, a, y].append(r)
    return {key: (len(rewards), sum(rewards)) for key, rewards in observed.items()}


@given(EVENTS, DECLARED)
def test_counts_and_sums_equal_those_of_the_events(events: list[Any], states: int | None) -> None:
    ledger = ledger_of(events, states)
    assert {(x, a, y): (n, total) for x, a, y, n, total in ledger} == counted(events)
    assert ledger.count == len(events)


@given(EVENTS, DECLARED)
def test_cached_values_equal_fresh_ones(events: list[Any], states: int | None) -> None:
    ledger = ledger_of(events, states)
    mu0, lambda0, unit = PRIOR
    inflow, pairs = np.zeros(len(ledger)), 3 * len(ledger)
    for x in range(len(ledger)):
        name = list(ledger.places)[x]
        for a in range(3):
            local = [entry for entry in ledger if (entry.x, entry.a) == (name, a)]
            n, total = sum(entry.n for entry in local), sum(entry.total for entry in local)
            terms = len(ledger) if states else max(len(local), 1)
            e, i = ledger.evidence, 3 * x + a
            assert e.s[i] == pytest.approx(lambda0 * terms + unit * n)
            assert e.pull[i] == pytest.approx(lambda0 * mu0 * terms + unit * total)
            assert e.inverse[i] * e.s[i] == pytest.approx(1.0)
            assert e.spread[i] ** 2 * e.s[i] == pytest.approx(1.0)
            for entry in local:
                inflow[ledger.places[entry.y]] += unit * entry.n + (0.0 if states else lambda0)
            if not local and not states:
                inflow[x] += lambda0
    e = ledger.evidence
    flow = lambda0 * e.from_prior[: len(ledger)] + unit * e.from_data[: len(ledger)]
    np.testing.assert_allclose(flow, inflow)
    # Inflow equals outflow, so the gauge is free.
    out = e.s[:pairs].sum() - (lambda0 * pairs * len(ledger) if states else 0.0)
    assert flow.sum() == pytest.approx(out)


@given(EVENTS, DECLARED, st.integers(0, 200))
def test_it_can_be_saved_and_resumed_at_any_point_bit_for_bit(
    events: list[Any], states: int | None, at: int
) -> None:
    whole, half = ledger_of(events, states), ledger_of(events[:at], states)
    resumed = ledger_of([], states)
    resumed.load(half.save())
    for x, a, y, r in events[at:]:
        resumed.record(x, a, y, r)
    assert same_bits(whole.save(), resumed.save())
    for name in ("n", "s", "inverse", "spread", "pull"):
        mine, other = (getattr(b.evidence, name)[: 3 * len(b)] for b in (whole, resumed))
        assert mine.tobytes() == other.tobytes()
    for name in ("from_prior", "from_data"):
        mine, other = (getattr(b.evidence, name)[: len(b)] for b in (whole, resumed))
        assert mine.tobytes() == other.tobytes()


@given(EVENTS, EVENTS)
@example([(0, 0, 1, 2.5)], [(0, 0, 1, -1.0), (0, 0, 1, 2.5)])
def test_absorbing_a_ledger_equals_recording_its_events(one: list[Any], two: list[Any]) -> None:
    ledger = ledger_of(one)
    ledger.absorb(ledger_of(two))
    assert {(x, a, y): (n, total) for x, a, y, n, total in ledger} == counted(one + two)
    mine, together = ledger, ledger_of(one + two)
    for name in together.places:
        i, j = 3 * mine.places[name], 3 * together.places[name]
        np.testing.assert_allclose(
            mine.evidence.scatter[i : i + 3], together.evidence.scatter[j : j + 3], atol=1e-12
        )


def test_one_pair_may_have_any_number_of_successors() -> None:
    ledger = ledger_of([(0, 1, y, float(y)) for y in range(1000)] * 2)
    assert len(ledger) == 1000
    assert list(ledger)[-1] == Entry(0, 1, 999, 2, 1998.0)


def test_the_scatter_of_rewards_far_from_zero_does_not_cancel() -> None:
    ledger = ledger_of([(0, 0, 1, 1e9 + r) for r in (0.0, 1.0, 2.0, 1.0)])
    assert ledger.evidence.scatter[0] == pytest.approx(2.0, rel=1e-6)


def test_a_tuple_and_a_number_are_different_states() -> None:
    ledger = Ledger(2, PRIOR)
    ledger.record((3,), 1, np.int64(3), 1.0)  # == would broadcast here
    ledger.record((0, 1), 1, np.int64(5), 1.0)
    assert list(ledger.places) == [(3,), 3, (0, 1), 5]


def test_a_copy_is_independent() -> None:
    ledger = ledger_of([(0, 0, 1, 1.0)])
    before, twin = ledger.save(), ledger.copy()
    twin.record(5, 1, 0, 2.0)
    assert same_bits(before, ledger.save())
    assert list(ledger) == [Entry(0, 0, 1, 1, 1.0)]
    assert (len(ledger), len(twin)) == (2, 3)

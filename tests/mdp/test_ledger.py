"""The ledger returns the recorded transitions, also after it has grown."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayescontrol.kernels import gibbs
from bayescontrol.mdp.ledger import Entry, Ledger
from bayescontrol.testing import same_bits

PRIOR = (0.5, 2.0, 3.0)
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(0, 5), st.integers(0, 30), st.sampled_from([-1.0, 0.0, 2.5])
    ),
    max_size=200,
)
DECLARED = st.sampled_from([None, 31])
ACTIONS = 6


def ledger_of(events: list[Any], states: int | None = None) -> Ledger:
    ledger = Ledger(ACTIONS, PRIOR, states)
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
    inflow, pairs = np.zeros(len(ledger)), ACTIONS * len(ledger)
    for x in range(len(ledger)):
        name = list(ledger.places)[x]
        for a in range(ACTIONS):
            local = [entry for entry in ledger if (entry.x, entry.a) == (name, a)]
            n, total = sum(entry.n for entry in local), sum(entry.total for entry in local)
            terms = len(ledger) if states else max(len(local), 1)
            pair = ledger.evidence.pairs[x, a]
            assert pair[gibbs.S] == pytest.approx(lambda0 * terms + unit * n)
            assert pair[gibbs.MU] * pair[gibbs.S] == pytest.approx(
                lambda0 * mu0 * terms + unit * total
            )
            assert pair[gibbs.SPREAD] ** 2 * pair[gibbs.S] == pytest.approx(1.0)
            for entry in local:
                inflow[ledger.places[entry.y]] += unit * entry.n + (0.0 if states else lambda0)
            if not local and not states:
                inflow[x] += lambda0
    e = ledger.evidence
    flow = e.inflow[: len(ledger)] @ [lambda0, unit]  # from the prior, and from the data
    np.testing.assert_allclose(flow, inflow)
    # Inflow equals outflow, so the gauge is free.
    out = e.pairs[: len(ledger), :, gibbs.S].sum() - (
        lambda0 * pairs * len(ledger) if states else 0.0
    )
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
    for name in ("pairs", "inflow"):
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
        one_row, row = (
            b.evidence.pairs[b.places[name], :, gibbs.SCATTER] for b in (mine, together)
        )
        np.testing.assert_allclose(one_row, row, atol=1e-12)


def test_one_pair_may_have_any_number_of_successors() -> None:
    ledger = ledger_of([(0, 1, y, float(y)) for y in range(1000)] * 2)
    assert len(ledger) == 1000
    assert list(ledger)[-1] == Entry(0, 1, 999, 2, 1998.0)


@pytest.mark.parametrize("actions", [1, 4, 100])
def test_space_grows_with_the_transitions_and_is_allocated_rarely(
    actions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every action of a state leads to a state of its own, so no two of them share a successor."""
    sizes, enlarge = [], Ledger._enlarge

    def count(self: Ledger, states: int, pool: int) -> None:
        sizes.append(pool)
        enlarge(self, states, pool)

    monkeypatch.setattr(Ledger, "_enlarge", count)
    ledger = Ledger(actions, PRIOR)
    for i in range(2_000):
        ledger.record(i // actions, i % actions, i + 1, 1.0)
    states = max(2_001, 2_000 // actions)
    entries = (actions + 3) // 4 * 4 * states
    assert ledger.evidence.successor.size <= 4 * entries
    assert len(sizes) <= 2 * math.log2(entries)


def test_the_scatter_of_rewards_far_from_zero_does_not_cancel() -> None:
    ledger = ledger_of([(0, 0, 1, 1e9 + r) for r in (0.0, 1.0, 2.0, 1.0)])
    assert ledger.evidence.pairs[0, 0, gibbs.SCATTER] == pytest.approx(2.0, rel=1e-6)


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

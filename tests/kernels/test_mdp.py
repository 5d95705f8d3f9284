"""One uniform number selects a transition with its probability."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import Stream, kernels
from bayescontrol._arrays import FloatArray
from bayescontrol.mdp import MDP, Maze, random_mdp

WEIGHTS = st.lists(st.integers(1, 50), min_size=1, max_size=40)


def one_row(weights: list[int]) -> MDP:
    """State 0 leads to every state with these weights; all other states stay."""
    X = len(weights)
    p = np.eye(X)[:, None, :].copy()
    p[0, 0] = np.array(weights) / sum(weights)
    return MDP(p, np.zeros((X, 1)))


def first_above(cumulative: FloatArray, u: float) -> int:
    return int(np.flatnonzero(u < cumulative)[0])


@given(WEIGHTS, st.integers(0, 2**32))
def test_the_entry_is_the_first_whose_cumulative_probability_exceeds_the_uniform(
    weights: list[int], seed: int
) -> None:
    mdp = one_row(weights)
    tables, rng = mdp.tables, Stream(seed)
    twin = rng.copy()
    for _ in range(20):
        entry = kernels.mdp.respond(tables, 0, 0, 1, rng.state)
        assert entry == first_above(tables.cumulative[: len(weights)], twin.random())
    assert rng == twin  # one random number per step


def frequencies_are_off(tables: kernels.mdp.Tables, mdp: MDP, pair: int, n: int) -> bool:
    rng, A = Stream(3), len(mdp.actions)
    observed = np.zeros(mdp.size[pair])
    for _ in range(n):
        entry = kernels.mdp.respond(tables, *divmod(pair, A), A, rng.state)
        observed[entry - tables.first[pair]] += 1
    p = mdp.probability[mdp.first[pair] :][: mdp.size[pair]]
    return bool((np.abs(observed - n * p) > 4.9 * np.sqrt(n * p * (1 - p)) + 1e-9).any())


@pytest.mark.parametrize("pair", [0, 10 * 4, 24 * 4 + 1, 11])
def test_transitions_occur_with_their_probabilities(pair: int) -> None:
    """20,000 draws; 4.9 errors: false alarm 1e-6 an entry."""
    mdp = Maze("three-cups").mdp()
    assert not frequencies_are_off(mdp.tables, mdp, pair, 20_000)


def test_a_table_cumulated_in_the_wrong_order_is_detected() -> None:
    mdp = random_mdp(5, 2, seed=1)
    bad = mdp.tables._replace(cumulative=mdp.tables.cumulative.copy())
    bad.cumulative[:5] = np.cumsum(mdp.probability[:5][::-1])
    assert frequencies_are_off(bad, mdp, 0, 20_000)


def test_a_pair_that_does_not_exist_is_reported() -> None:
    mdp = MDP(np.ones((1, 2, 1)), [[5.0, 7.0]], allowed=[[True, False]])
    entry = kernels.mdp.respond(mdp.tables, 0, 1, 2, Stream(0).state)
    assert mdp.tables.successor[entry] == -1
    assert np.isnan(mdp.tables.reward[entry])


def test_long_rows_lose_no_precision() -> None:
    """Probabilities are cumulated per pair: the last F is 1, and steps of F are exact to 1e-15."""
    mdp = Maze("open-20").mdp()
    tables = mdp.tables
    for i, n in zip(tables.first, tables.size, strict=True):
        F = tables.cumulative[i : i + n]
        assert F[-1] == 1.0
        assert np.abs(np.diff(F, prepend=0.0) - mdp.probability[i : i + n]).max() < 1e-13

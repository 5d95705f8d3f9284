"""The words of xoshiro256++, compared with the published algorithm in Python integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescontrol._arrays import UIntArray
from bayescontrol.kernels import random
from bayescontrol.kernels.random import below, next_uint64, uniform

WORD = 2**64
REFERENCE = [
    41943041,
    58720359,
    3588806011781223,
    3591011842654386,
    9228616714210784205,
    9973669472204895162,
    14011001112246962877,
    12406186145184390807,
    15849039046786891736,
    10450023813501588000,
]
words = st.integers(0, WORD - 1)
states = st.tuples(words, words, words, words).filter(any)


def as_state(s: tuple[int, ...]) -> UIntArray:
    return np.array(s, dtype=np.uint64)


def rotl(x: int, k: int) -> int:
    return (x << k | x >> (64 - k)) % WORD


def published(s: list[int]) -> int:
    """Blackman & Vigna's next(), line by line."""
    result = (rotl((s[0] + s[3]) % WORD, 23) + s[0]) % WORD
    t = (s[1] << 17) % WORD
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotl(s[3], 45)
    return result


def test_state_1_2_3_4_gives_the_published_words() -> None:
    state = as_state((1, 2, 3, 4))
    assert [next_uint64(state) for _ in REFERENCE] == REFERENCE


@settings(max_examples=50, deadline=None)
@given(states)
def test_words_and_states_agree_with_the_published_algorithm(
    s: tuple[int, ...],
) -> None:
    state, reference = as_state(s), list(s)
    for _ in range(3):
        assert next_uint64(state) == published(reference)
    assert state.tolist() == reference


def test_uniform_is_never_one_and_reaches_both_ends() -> None:
    assert uniform(as_state((0, 1, 1, 0))) == 0.0
    assert uniform(as_state((0, 1, 2, WORD - 1))) == 1.0 - 2.0**-53


@settings(max_examples=200, deadline=None)
@given(states, st.integers(1, 2**63 - 1))
def test_below_uses_the_first_word_that_is_not_rejected(s: tuple[int, ...], n: int) -> None:
    state, reference = as_state(s), list(s)
    word = published(reference)
    while word * n % WORD < WORD % n:
        word = published(reference)
    assert below(state, n) == word * n >> 64
    assert state.tolist() == reference


def test_integers_are_unbiased_unlike_multiplication_without_rejection() -> None:
    """χ² with 2 degrees of freedom, limit 27.6: false-alarm rate 1e-6.

    With n = 3·2^61, ⌊word·n/2^64⌋ mod 3 is 0, 1, 2 with probabilities 3/8, 3/8, 2/8.
    """
    n, size = 3 * 2**61, 100_000
    state = as_state((1, 2, 3, 4))
    fair = np.empty(size, dtype=np.int64)
    random.fill_below(state, n, fair)
    planted = np.array([next_uint64(state) * n // WORD for _ in range(size)])

    def chi2(x: np.ndarray) -> float:
        counts = np.bincount((x % 3).astype(np.int64), minlength=3)
        return float(np.sum((counts - size / 3) ** 2) / (size / 3))

    assert chi2(fair) < 27.6
    assert chi2(planted) > 27.6


@pytest.mark.parametrize("n", [1, 2, 6, 1000])
def test_small_integers_are_uniform(n: int) -> None:
    """χ² against its normal limit (Wilson & Hilferty), 4.75 σ: false-alarm rate 1e-6 each."""
    size = 200_000
    out = np.empty(size, dtype=np.int64)
    random.fill_below(as_state((1, 2, 3, 4)), n, out)
    counts = np.bincount(out, minlength=n)
    assert counts.size == n
    chi2, k = np.sum((counts - size / n) ** 2) / (size / n), max(n - 1, 1)
    assert ((chi2 / k) ** (1 / 3) - 1 + 2 / (9 * k)) / np.sqrt(2 / (9 * k)) < 4.75

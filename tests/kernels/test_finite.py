"""Weights at the limits of doubles, in blocks of every size, and their draws."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from tests.chance import chi_square
from tests.exact import exact_posterior, relative_error

from bayescontrol._arrays import FloatArray
from bayescontrol.kernels import finite

SIZES = (1, 2, 511, 512, 513, 1025)
LOW, HIGH = 2.0**-400, 2.0**400


class Weighed:
    """The arrays w and e and the blocks, as used by the kernels."""

    def __init__(self, prior: FloatArray) -> None:
        self.w, self.e = prior.copy(), np.zeros(prior.size, np.int64)
        self.blocks = finite.build(self.w, self.e)

    def see(self, evidence: FloatArray, log: bool = False) -> int:
        condition = finite.condition_log if log else finite.condition
        return int(condition(self.w, self.e, self.blocks, evidence))

    def posterior(self) -> FloatArray:
        out = np.empty_like(self.w)
        finite.posterior(self.w, self.e, self.blocks, out)
        return out

    def draw(self, u: float) -> int:
        return int(finite.draw(self.w, self.e, self.blocks, u))

    def bits(self) -> bytes:
        e = finite.exponents(self.e, self.blocks)
        return self.w.tobytes() + e.tobytes() + self.blocks.tobytes()


def priors(rng: np.random.Generator, modes: int) -> FloatArray:
    """Random priors; in every third one a mode has a weight of 1e-200."""
    p = rng.dirichlet(np.ones(modes))
    if rng.random() < 1 / 3:
        p[-1] *= 1e-200
    return np.asarray(p / p.sum())


@pytest.mark.parametrize("modes", SIZES)
def test_the_sum_of_a_block_is_accurate(modes: int) -> None:
    rng = np.random.default_rng(modes)
    for log in (False, True):
        weighed = Weighed(rng.dirichlet(np.ones(modes)))
        evidence = rng.random(modes)
        weighed.see(1000.0 * np.log(evidence) if log else evidence, log)
        e = finite.exponents(weighed.e, weighed.blocks)
        for b, (found, top, _) in enumerate(weighed.blocks):
            part = slice(512 * b, 512 * (b + 1))
            exact = math.fsum(np.ldexp(weighed.w[part], e[part] - int(top)))
            # Each of the eight sums has at most 64 terms, then three additions.
            assert abs(found - exact) <= 67 * 2.0**-53 * exact


# -- limits of doubles ------------------------------------------------------------------------


def any_likelihood(rng: np.random.Generator, n: int) -> FloatArray:
    """Likelihoods over the whole range of doubles, including zeros and ones."""
    values = np.where(
        rng.random(n) < 0.7,
        2.0 ** rng.uniform(-1074.0, 1023.9, n),
        rng.choice([0.0, -0.0, 5e-324, 2.3e-308, 1e-300, 0.5, 1.0, 1.0, 1e300, 1.797e308], n),
    )
    return np.asarray(values)


def any_logarithm(rng: np.random.Generator, n: int) -> FloatArray:
    values = np.where(
        rng.random(n) < 0.7,
        rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-320.0, 9.0, n),
        rng.choice([-math.inf, -1.8e308, -1e9, -745.2, -0.0, 0.0, 709.8, 1e9, 5e-324], n),
    )
    return np.asarray(values)


@pytest.mark.parametrize("log", [False, True])
def test_a_million_fuzzed_steps_never_give_nan(log: bool) -> None:
    rng = np.random.default_rng(16)
    condition = finite.condition_log if log else finite.condition
    steps = impossible = 0
    while steps < 1_000_000:
        weighed = Weighed(priors(rng, 5))
        w, e, blocks = weighed.w, weighed.e, weighed.blocks
        evidence = (any_logarithm if log else any_likelihood)(rng, 500 * 5).reshape(500, 5)
        calm = rng.random(500) < 0.5  # half of the rows exclude no mode, so that modes survive
        evidence[calm] = np.where(np.isfinite(evidence[calm]), evidence[calm], -1.0)
        evidence[calm] = np.where(evidence[calm] == 0.0, 1.0, evidence[calm])
        for row in evidence:
            impossible += condition(w, e, blocks, row) == finite.IMPOSSIBLE
            assert 0.0 < blocks[0, 0] < math.inf
        assert np.isfinite(w).all()
        assert ((w == 0.0) | ((w >= LOW) & (w <= HIGH))).all()
        assert not np.signbit(w).any()
        posterior = weighed.posterior()
        assert posterior.sum() == pytest.approx(1.0, rel=1e-14)
        assert w[weighed.draw(rng.random())] > 0.0
        steps += 500
    assert impossible > 1000


INVALID = {False: [math.nan, -1.0, -5e-324, math.inf, -math.inf], True: [math.nan, math.inf, 1.1e9]}


@pytest.mark.parametrize(("log", "bad"), [(log, bad) for log in INVALID for bad in INVALID[log]])
@pytest.mark.parametrize("size", SIZES)
def test_the_first_invalid_evidence_is_reported_and_nothing_changes(
    log: bool, bad: float, size: int
) -> None:
    weighed = Weighed(np.full(size, 1.0 / size))
    before = weighed.bits()
    evidence = np.full(size, -0.5 if log else 0.5)
    evidence[size // 2 :] = bad
    assert weighed.see(evidence, log) == size // 2
    assert weighed.bits() == before


@pytest.mark.parametrize(("log", "nothing"), [(False, 0.0), (False, -0.0), (True, -math.inf)])
def test_an_observation_that_all_modes_exclude_is_reported_and_changes_nothing(
    log: bool, nothing: float
) -> None:
    prior = np.full(600, 1.0 / 599)
    prior[7] = 0.0
    weighed, evidence = Weighed(prior), np.full(600, nothing)
    evidence[7] = 0.9  # the only mode that allows it has no weight
    before = weighed.bits()
    assert weighed.see(evidence, log) == finite.IMPOSSIBLE
    assert weighed.bits() == before


# -- blocks -----------------------------------------------------------------------------------


def steady(rng: np.random.Generator, size: int) -> FloatArray:
    return rng.uniform(0.2, 1.0, size)


def scattered(rng: np.random.Generator, size: int) -> FloatArray:
    """In the second block, and sometimes elsewhere, weights differ by hundreds of orders."""
    row = rng.uniform(0.2, 1.0, size)
    row[512:1024] *= 10.0 ** rng.uniform(-100.0, 0.0, row[512:1024].size)
    row[rng.integers(size)] = 1e-200
    return row


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rows", [steady, scattered])
@pytest.mark.parametrize("log", [False, True])
def test_the_posterior_does_not_depend_on_flat_or_spread_blocks(
    size: int, rows: Callable[[np.random.Generator, int], FloatArray], log: bool
) -> None:
    rng = np.random.default_rng(size)
    prior = rng.dirichlet(np.ones(size))
    evidence = np.array([rows(rng, size) for _ in range(12)])
    weighed = Weighed(prior)
    for row in evidence:
        assert weighed.see(np.log(row) if log else row, log) == finite.OK
    flat = weighed.blocks[:, finite.FLAT]
    if size > 513 and rows is scattered:
        assert flat[1] == 0.0
    if rows is steady:
        assert flat.all()
    given = np.log(evidence) if log else evidence
    assert relative_error(weighed.posterior(), exact_posterior(prior, given, log=log)) <= 1e-12


def test_a_block_without_weight_is_ignored() -> None:
    rng = np.random.default_rng(5)
    for log in (False, True):
        weighed = Weighed(np.full(1025, 1.0 / 1025))
        ruled_out = np.ones(1025)
        ruled_out[512:1024] = 0.0
        with np.errstate(divide="ignore"):
            weighed.see(np.log(ruled_out) if log else ruled_out, log)
            for _ in range(20):
                row = rng.uniform(0.1, 1.0, 1025) * rng.choice([1.0, 1e-280])
                weighed.see(np.log(row) if log else row, log)
        posterior = weighed.posterior()
        assert posterior.sum() == pytest.approx(1.0)
        assert not posterior[512:1024].any()
        drawn = {weighed.draw(u) for u in np.linspace(0.0, 1.0 - 2.0**-53, 5000)}
        assert not drawn & set(range(512, 1024))


def test_rebuilding_from_saved_arrays_gives_the_same_blocks_bit_for_bit() -> None:
    rng = np.random.default_rng(6)
    weighed = Weighed(rng.dirichlet(np.ones(1025)))
    for _ in range(30):
        weighed.see(scattered(rng, 1025))
        e = finite.exponents(weighed.e, weighed.blocks)
        again = finite.rebuild(weighed.w.copy(), e, weighed.blocks[:, finite.FLAT].copy())
        assert again.tobytes() == weighed.blocks.tobytes()


def test_the_total_is_the_probability_of_the_evidence() -> None:
    """ln Σ v after t steps is ln Σ_m P(m) Π ℓ_m, also if the product underflows a double."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        prior, rows = rng.dirichlet(np.ones(3)), 10.0 ** rng.uniform(-40.0, 3.0, (200, 3))
        weighed = Weighed(prior)
        start = weighed.blocks.copy()
        for row in rows:
            weighed.see(row)
        with mpmath.workdps(60):
            products = [mpmath.fprod(map(mpmath.mpf, rows[:, m])) for m in range(3)]
            exact = mpmath.log(mpmath.fdot(map(mpmath.mpf, prior), products))
            assert float(abs(finite.log_ratio(weighed.blocks, start) / exact - 1)) < 1e-14


def test_merging_multiplies_posteriors_and_divides_by_the_prior() -> None:
    rng = np.random.default_rng(8)
    for _ in range(300):
        prior = priors(rng, 3)
        one, two = Weighed(prior), Weighed(prior)
        rows = 10.0 ** rng.uniform(-20.0, 0.0, (8, 3))
        for row in rows[:3]:
            one.see(row)
        for row in rows[3:]:
            two.see(row)
        e, f = (finite.exponents(v.e, v.blocks) for v in (one, two))
        finite.merge(one.w, e, two.w, f, prior)
        one.e, one.blocks = e, finite.build(one.w, e)
        assert relative_error(one.posterior(), exact_posterior(prior, rows)) <= 1e-12


# -- draws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 513, 1025])
@pytest.mark.parametrize("rows", [steady, scattered])
def test_draws_follow_the_posterior(
    size: int, rows: Callable[[np.random.Generator, int], FloatArray]
) -> None:
    """χ² of 100,000 draws with a fixed seed; false alarms 1e-6 per case over seeds."""
    rng = np.random.default_rng(size)
    weighed = Weighed(rng.dirichlet(np.ones(size)))
    for _ in range(2):
        weighed.see(rows(rng, size))
    drawn = np.bincount([weighed.draw(u) for u in rng.random(100_000)], minlength=size)
    assert chi_square(drawn, 100_000 * weighed.posterior()) > 1e-6


def test_the_chi_square_test_detects_draws_from_the_prior() -> None:
    """Planted bug: draws that ignore the evidence."""
    rng = np.random.default_rng(1)
    weighed = Weighed(np.array([0.3, 0.7]))
    drawn = np.bincount([weighed.draw(u) for u in rng.random(10_000)], minlength=2)
    weighed.see(np.array([0.6, 0.5]))
    assert chi_square(drawn, 10_000 * weighed.posterior()) < 1e-6


@pytest.mark.parametrize("size", SIZES)
def test_evenly_spaced_numbers_draw_each_mode_in_proportion_to_its_weight(size: int) -> None:
    """Draws invert the cumulative sum, so counts are exact to within one at either end."""
    rng = np.random.default_rng(size)
    weighed = Weighed(rng.dirichlet(np.ones(size)))
    weighed.see(scattered(rng, size) if size > 1 else np.ones(1))
    n = 50_000
    drawn = [weighed.draw((i + 0.5) / n) for i in range(n)]
    assert drawn == sorted(drawn)
    counts = np.bincount(drawn, minlength=size)
    assert np.abs(counts - n * weighed.posterior()).max() <= 2.0


@pytest.mark.parametrize("size", [3, 1030])
def test_zero_and_one_draw_the_first_and_last_mode_with_weight(
    size: int,
) -> None:
    prior = np.full(size, 1.0)
    prior[[0, -1]] = 0.0
    weighed = Weighed(prior / prior.sum())
    assert weighed.draw(0.0) == 1
    assert weighed.draw(1.0 - 2.0**-53) == size - 2


def test_a_mode_without_weight_is_never_drawn() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        alive = rng.random(6) < 0.4
        alive[rng.integers(6)] = True
        weighed = Weighed(alive / alive.sum())
        weighed.see(np.where(rng.random(6) < 0.5, 1e-290, 1.0))
        for u in [0.0, 5e-324, 0.5, 1.0 - 2.0**-53, *rng.random(20)]:
            assert alive[weighed.draw(u)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("far", [-4e8, -6e8, -1e9, -1e9 - 0.5, -2e9, -1e13, -1e300])
def test_evidence_far_from_every_mode_still_separates_modes(far: float, size: int) -> None:
    gap = max(3.0, 4.0 * abs(far) * 2.0**-52)  # the resolution of the double
    evidence = np.full(size, far)
    evidence[size // 2] += gap
    weighed = Weighed(np.full(size, 1.0 / size))
    assert finite.condition_log(weighed.w, weighed.e, weighed.blocks, evidence) == finite.OK
    odds = math.exp(min(evidence[size // 2] - far, 700.0))
    expected = odds / (odds + size - 1)
    assert weighed.posterior()[size // 2] == pytest.approx(expected, rel=1e-12)

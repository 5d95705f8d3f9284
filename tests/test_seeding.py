"""Streams: reproducible numbers, independent streams, and exact resuming."""

import copy
import io
import math
import os
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special as sc  # type: ignore[import-untyped]

from bayescontrol.errors import IncompatibleState
from bayescontrol.seeding import Stream, as_stream

# The first four numbers of Stream.named(0, 0, "agent"), frozen: changing the stream invalidates
# every saved seed, so it must be intentional.
GOLDEN: list[tuple[str, tuple[Any, ...], list[float]]] = [
    ("random", (),
     [0.26098082539067713, 0.43716150830194545, 0.7947323869834266, 0.48072699410063047]),
    ("normal", (),
     [0.8700214929569166, 0.7552363271171726, -0.7109617490921994, 2.032212940837442]),
    ("exponential", (),
     [0.5014080277378412, 0.2807695843751052, 1.6301569870631245, 1.3920641204727542]),
    ("gamma", (2.0,),
     [3.061065088752754, 0.9069980571112028, 3.134340663234472, 2.8019400205857043]),
    ("gamma", (0.3,),
     [0.009165513430936703, 4.4624918093473855, 0.18995772345379885, 0.11805056319155631]),
    ("beta", (2.0, 3.0),
     [0.6475601765440527, 0.4362739338438711, 0.29156216041856636, 0.8734197128068305]),
    ("beta", (0.5, 0.25),
     [0.7616309802624626, 0.8552070288592444, 0.08091858467769386, 0.9922412320386389]),
    ("uniform", (-2.0, 3.0),
     [-0.6950958730466144, 0.18580754150972734, 1.973661934917133, 0.40363497050315233]),
    ("poisson", (2.5,), [3, 6, 4, 1]),
    ("poisson", (1e6,), [999275, 1000537, 1000707, 1000406]),
    ("binomial", (10, 0.3), [2, 2, 5, 5]),
    ("binomial", (10**12, 0.75), [750000323718, 750000377670, 749999584901, 749999903890]),
    ("integers", (1000,), [260, 437, 794, 480]),
    ("categorical", ([1, 2, 3, 4],), [1, 2, 3, 2]),
    ("choice", (1000,), [260, 437, 794, 480]),
]  # fmt: skip

IN_ANOTHER_PROCESS = """
from bayescontrol.seeding import Stream
rng = Stream.named(123, 4, "environment")
drawn = [
    rng.random(), rng.normal(), rng.exponential(), rng.gamma(0.1), rng.gamma(9.0), rng.beta(2, 3),
    rng.beta(0.1, 0.2), *rng.normal(size=2000), *rng.beta(0.7, 1.3, size=2000),
]
print(" ".join(float(x).hex() for x in drawn), rng)
"""


def in_another_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def agent() -> Stream:
    return Stream.named(0, 0, "agent")


# -- the numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "arguments", "expected"), GOLDEN)
def test_the_first_numbers_of_a_stream_never_change(
    method: str, arguments: tuple[Any, ...], expected: list[float]
) -> None:
    rng = agent()
    assert [getattr(rng, method)(*arguments) for _ in expected] == expected


def test_permutations_and_generators_never_change() -> None:
    assert agent().permutation(6).tolist() == [5, 3, 4, 0, 2, 1]
    # NumPy guarantees the raw words, but not the output of its distributions.
    assert agent().generator().bit_generator.random_raw() == 13847752250147267281


@pytest.mark.parametrize(("method", "arguments", "expected"), GOLDEN)
def test_size_equals_repeated_single_draws(
    method: str, arguments: tuple[Any, ...], expected: list[float]
) -> None:
    one, many = agent(), agent()
    drawn = getattr(many, method)(*arguments, size=(25, 8))
    assert drawn.shape == (25, 8)
    assert drawn.ravel().tolist() == [getattr(one, method)(*arguments) for _ in range(200)]
    assert one == many


def test_location_and_scale_transform_the_same_draw() -> None:
    assert agent().normal(3.0, 2.0) == 3.0 + 2.0 * agent().normal()
    assert agent().normal(3, 2, size=5).tolist() == (3.0 + 2.0 * agent().normal(size=5)).tolist()
    assert agent().exponential(4.0) == 4.0 * agent().exponential()
    assert agent().gamma(2.0, 4.0) == 4.0 * agent().gamma(2.0)
    assert agent().normal(1.0, 0.0) == 1.0


def test_single_draws_are_python_numbers() -> None:
    rng = agent()
    assert type(rng.random()) is type(rng.normal()) is type(rng.beta(1, 1)) is float
    assert type(rng.uniform()) is float
    assert type(rng.integers(5)) is type(rng.categorical([1, 1])) is type(rng.choice(5)) is int
    assert type(rng.poisson()) is type(rng.binomial(3, 0.5)) is int


def test_multivariate_draws_of_any_size_equal_repeated_single_draws() -> None:
    rng, mean = agent(), [1.0, -2.0, 0.5]
    factor = rng.normal(size=(3, 3))
    covariance = factor @ factor.T
    one, many = agent(), agent()
    drawn = many.multivariate_normal(mean, covariance, size=(4, 5))
    singles = [one.multivariate_normal(mean, covariance) for _ in range(20)]
    assert drawn.shape == (4, 5, 3)
    assert drawn.reshape(20, 3).tolist() == [single.tolist() for single in singles]
    assert one == many


@pytest.mark.parametrize(
    "covariance",
    [
        [[2.0, 0.6], [0.6, 1.0]],
        [[4.0, 2.0], [2.0, 1.0]],  # singular: the first component is twice the second
        [[1e12, 0.0], [0.0, 1e-12]],
    ],
)
def test_multivariate_draws_have_the_given_mean_and_covariance(
    covariance: list[list[float]],
) -> None:
    """Ten directions u: u·x is normal, √n sup|F_n - F|, limit 2.69: false-alarm rate 1e-5."""
    mean, C, n = np.array([1.0, -3.0]), np.array(covariance), 20_000
    x = agent().multivariate_normal(mean, C, size=n)
    scale = np.sqrt(np.diag(C))
    for angle in np.linspace(0.1, 3.0, 10):
        u = np.array([math.cos(angle), math.sin(angle)]) / scale
        standard = np.sort((x - mean) @ u / math.sqrt(u @ C @ u))
        gap = np.abs(sc.ndtr(standard) - (np.arange(n) + 0.5) / n).max() + 0.5 / n
        assert gap * math.sqrt(n) < 2.69
    assert np.isclose(x[:, 0] - 2 * x[:, 1], 7.0).all() == (covariance[0][0] == 4.0)


def test_degenerate_parameters_give_constants() -> None:
    rng = agent()
    assert rng.uniform(2.5, 2.5) == 2.5
    assert rng.poisson(0.0) == rng.binomial(0, 0.5) == rng.binomial(9, 0.0) == 0
    assert rng.binomial(2**53, 1.0) == 2**53
    assert rng.multivariate_normal([1.0, 2.0], np.zeros((2, 2))).tolist() == [1.0, 2.0]
    assert rng.multivariate_normal([], np.empty((0, 0)), size=2).shape == (2, 0)


def test_integers_cover_the_whole_range_and_nothing_else() -> None:
    rng = agent()
    assert set(rng.integers(-2, 3, size=500).tolist()) == {-2, -1, 0, 1, 2}
    low = -(2**63)
    assert all(low <= rng.integers(low, -1) < -1 for _ in range(10))
    assert rng.integers(2**63 - 1, 2**63) == 2**63 - 1


def test_choice_returns_the_option_itself_and_uses_the_weights() -> None:
    rng = agent()
    options = [("a", 1), ("b", 2), ("c", 3)]
    assert rng.choice(options) in options
    assert {rng.choice(options, p=[0, 5, 0]) for _ in range(20)} == {("b", 2)}
    assert {rng.choice("abc", p=[1, 0, 1]) for _ in range(50)} == {"a", "c"}
    assert set(rng.choice([10, 20, 30], p=[0, 1, 1], size=100).tolist()) == {20, 30}


# -- one seed, many streams ----------------------------------------------------------------


def test_another_process_draws_the_same_numbers() -> None:
    here = io.StringIO()
    exec(IN_ANOTHER_PROCESS, {"print": lambda *line: print(*line, file=here)})
    assert in_another_process(IN_ANOTHER_PROCESS) == here.getvalue()


@pytest.mark.slow
def test_a_processor_without_vector_instructions_draws_the_same_numbers() -> None:
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert in_another_process(IN_ANOTHER_PROCESS, **plain) == in_another_process(IN_ANOTHER_PROCESS)


def test_importing_the_module_does_not_load_numba_before_the_first_draw() -> None:
    code = """
import sys
from bayescontrol.seeding import Stream
rng = Stream.named(0, 0, "agent")
print("numba" in sys.modules)
rng.random()
print("numba" in sys.modules)
"""
    assert in_another_process(code).split() == ["False", "True"]


def test_every_seed_run_and_role_has_a_separate_stream() -> None:
    keys = [
        (seed, run, role)
        for seed in (0, 1, 2**64, 2**128 - 1)
        for run in (*range(50), 2**32, 2**40)
        for role in ("agent", "environment", "prior", "")
    ]
    assert len({repr(Stream.named(*key)) for key in keys}) == len(keys)


def test_a_named_stream_has_the_state_of_a_seed_sequence() -> None:
    for seed in (0, 7, 2**32, 2**128 - 1):
        for run in (0, 2**32 - 1, 2**32, 2**63 - 1):
            key = (run, zlib.crc32(b"agent"))
            state = np.random.SeedSequence(seed, spawn_key=key).generate_state(4, np.uint64)
            Stream(0).random()  # loads the kernels, which compute the state from here on
            np.testing.assert_array_equal(Stream.named(seed, run, "agent").state, state)


def test_streams_of_neighbouring_runs_are_independent() -> None:
    """40 streams of 2000 numbers: the 780 correlations times √2000 are below 5.8; false alarm 5e-6.

    The first numbers of 2000 runs: √n sup|F_n - F|, limit 2.69: false-alarm rate 1e-6.
    """
    keys = [(run, role) for run in range(20) for role in ("agent", "environment")]
    drawn = np.array([Stream.named(0, run, role).random(size=2000) for run, role in keys])
    correlations = np.corrcoef(drawn)[np.triu_indices(40, 1)]
    assert np.max(np.abs(correlations)) * math.sqrt(2000) < 5.8
    first = np.sort([Stream.named(0, run, "agent").random() for run in range(2000)])
    steps = np.arange(2001) / 2000
    gap = max(np.max(steps[1:] - first), np.max(first - steps[:-1]))
    assert gap * math.sqrt(2000) < 2.69


def test_a_generator_depends_on_the_stream_and_the_next_one_differs() -> None:
    one, two = agent(), agent()
    assert one.generator().random() == two.generator().random()
    assert one == two
    assert one.generator().random() != agent().generator().random()


def test_as_stream_takes_a_seed_a_stream_a_generator_or_nothing() -> None:
    rng = agent()
    assert as_stream(rng) is rng
    assert as_stream(5) == Stream(5) == as_stream(np.int64(5))  # type: ignore[arg-type]
    assert as_stream(None) != as_stream(None)
    for bits in (np.random.PCG64, np.random.MT19937):
        numpy_rng = np.random.Generator(bits(3))
        first, second = as_stream(numpy_rng), as_stream(numpy_rng)
        assert first == as_stream(np.random.Generator(bits(3))) != second


# -- state ---------------------------------------------------------------------------------


def test_load_of_save_continues_bit_for_bit_also_through_a_file() -> None:
    rng = agent()
    rng.normal(size=77)
    file = io.BytesIO()
    np.savez(file, **rng.save())  # type: ignore[arg-type]
    expected = rng.normal(size=10).tolist()
    file.seek(0)
    resumed = Stream(1)
    with np.load(file, allow_pickle=False) as arrays:
        resumed.load(dict(arrays))
    assert resumed.normal(size=10).tolist() == expected
    assert resumed == rng


@pytest.mark.parametrize(
    "duplicate", [Stream.copy, copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_a_copy_gives_the_same_numbers_and_is_independent(
    duplicate: Callable[[Stream], Stream],
) -> None:
    rng = agent()
    twin = duplicate(rng)
    assert twin == rng
    twin.random()
    assert twin != rng == agent()


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"state": np.ones(4, dtype=np.uint64)},
        {"xoshiro256++": np.ones(4, dtype=np.uint64), "more": np.ones(1)},
        {"xoshiro256++": np.ones(5, dtype=np.uint64)},
        {"xoshiro256++": np.ones(4, dtype=np.int64)},
        {"xoshiro256++": np.ones((2, 2), dtype=np.uint64)},
        {"xoshiro256++": np.zeros(4, dtype=np.uint64)},
    ],
)
def test_incompatible_arrays_are_refused_and_change_nothing(arrays: dict[str, Any]) -> None:
    rng = agent()
    with pytest.raises(IncompatibleState):
        rng.load(arrays)
    assert rng == agent()


# -- bad arguments -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda s: s.random(size=-1), "negative"),
        (lambda s: s.normal(math.nan), "loc = nan"),
        (lambda s: s.normal(math.inf), "loc = inf"),
        (lambda s: s.normal(0.0, -1.0), "scale = -1.0"),
        (lambda s: s.normal("0"), "loc = '0'"),
        (lambda s: s.normal([0.0, 1.0]), "loc = "),
        (lambda s: s.normal(10**400), "loc = "),
        (lambda s: s.exponential(-2.0), "scale = -2.0"),
        (lambda s: s.gamma(0.0), "shape = 0.0 must be greater than 0"),
        (lambda s: s.gamma(1.0, math.nan), "scale = nan"),
        (lambda s: s.gamma(math.inf), "shape = inf"),
        (lambda s: s.gamma(-1, size=3), "shape = -1"),
        (lambda s: s.beta(0, 1), "a = 0"),
        (lambda s: s.beta(1, math.nan), "b = nan"),
        (lambda s: s.integers(0), "high=0: expected an integer of at least 1"),
        (lambda s: s.integers(5, 5), "high=5: expected an integer of at least 6"),
        (lambda s: s.integers(1.5), "high=1.5: expected an integer"),
        (lambda s: s.integers(-(2**63), 2**63), r"below 0"),
        (lambda s: s.categorical([]), "sums to 0"),
        (lambda s: s.categorical([0.0, 0.0]), "sums to 0"),
        (lambda s: s.categorical([1.0, -0.5], size=3), r"p\[1\] = -0.5"),
        (lambda s: s.categorical([math.nan]), r"p\[0\] = nan"),
        (lambda s: s.categorical([math.inf, 1]), "sums to inf"),
        (lambda s: s.categorical([[1.0, 2.0]]), r"shape \(1, 2\)"),
        (lambda s: s.categorical(0.5), r"shape \(\)"),
        (lambda s: s.choice([]), "options=0"),
        (lambda s: s.choice([1, 2], p=[1.0]), "2 options"),
        (lambda s: s.choice(2, p=[0.0, 0.0]), "sums to 0"),
        (lambda s: s.permutation(-1), "n=-1"),
        (lambda s: s.uniform(1.0, 0.0), "high - low = -1.0 must be .* at least 0"),
        (lambda s: s.uniform(-1e308, 1e308), "high - low = inf"),
        (lambda s: s.uniform(math.nan), "low = nan"),
        (lambda s: s.poisson(-0.5), "lam = -0.5"),
        (lambda s: s.poisson(1e17, size=2), r"lam = 1e\+17 .* at most 9.0072e\+15"),
        (lambda s: s.binomial(2.5, 0.5), "n=2.5: expected an integer"),
        (lambda s: s.binomial(-1, 0.5), "n=-1"),
        (lambda s: s.binomial(3, 1.1), "p = 1.1 .* at most 1"),
        (lambda s: s.binomial(3, math.nan, size=2), "p = nan"),
        (lambda s: s.multivariate_normal(0.0, 1.0), r"shape \(\) and cov \(\)"),
        (lambda s: s.multivariate_normal([0, 0], np.eye(3)), r"expected \(d,\) and \(d, d\)"),
        (lambda s: s.multivariate_normal([0, 0], [[1, 2], [0, 1]]), "cov is not symmetric"),
        (lambda s: s.multivariate_normal([0, 0], [[1, 2], [2, 1]]), "the eigenvalue -1"),
        (lambda s: s.multivariate_normal([0, math.inf], np.eye(2)), "must be finite"),
        (lambda s: s.multivariate_normal(["a"], [[1]]), "mean: expected an array of numbers"),
    ],
)
def test_errors_name_invalid_arguments_and_use_no_random_numbers(
    draw: Callable[[Stream], object], message: str
) -> None:
    rng = agent()
    with pytest.raises(ValueError, match=message):
        draw(rng)
    assert rng == agent()


@pytest.mark.parametrize("seed", [-1, 2**128, 1.0, "7", None, [1]])
def test_a_seed_must_be_a_non_negative_integer(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed="):
        Stream(seed)
    with pytest.raises(ValueError, match="seed="):
        Stream.named(seed, 0, "agent")


def test_a_run_must_be_a_non_negative_integer_and_a_role_a_name() -> None:
    with pytest.raises(ValueError, match="run=-1"):
        Stream.named(0, -1, "agent")
    with pytest.raises(TypeError, match='role=3: expected a name, such as "agent"'):
        Stream.named(0, 0, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed='x'"):
        as_stream("x")  # type: ignore[arg-type]


def test_a_saved_state_does_not_change_when_the_stream_continues() -> None:
    rng = agent()
    saved = rng.save()
    rng.random()
    twin = Stream(1)
    twin.load(saved)
    assert twin == agent() != rng
    twin.random()
    assert saved["xoshiro256++"].tolist() == agent().state.tolist()

"""exp and log are accurate to one unit in the last place, compared with 60 digits."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from bayescontrol.kernels.elementary import exp, exp_split, log


def units_off(ours: float, exact: "mpmath.mpf") -> float:
    """The error in units of the last place of the exact value."""
    return float(abs(mpmath.mpf(ours) - exact) / mpmath.mpf(math.ulp(float(exact))))


def test_exp_is_within_one_unit_in_the_last_place_over_its_whole_range() -> None:
    rng = np.random.default_rng(1)
    arguments = np.concatenate(
        [
            rng.uniform(-745.0, 709.7, 3000),
            rng.uniform(-1.0, 1.0, 3000),
            rng.choice([-1.0, 1.0], 2000) * 10.0 ** rng.uniform(-308, 0, 2000),
        ]
    )
    with mpmath.workdps(60):
        worst = max(units_off(exp(x), mpmath.exp(mpmath.mpf(x))) for x in arguments)
    assert worst < 1.0


def test_log_is_within_one_unit_in_the_last_place_also_near_one_and_for_denormals() -> None:
    rng = np.random.default_rng(2)
    arguments = np.concatenate(
        [
            2.0 ** rng.uniform(-1074, 1023, 3000),
            rng.uniform(0.5, 2.0, 3000),
            1.0 + rng.choice([-1.0, 1.0], 3000) * 10.0 ** rng.uniform(-15, -1, 3000),
        ]
    )
    with mpmath.workdps(60):
        worst = max(units_off(log(x), mpmath.log(mpmath.mpf(x))) for x in arguments if x != 1.0)
    assert worst < 1.0


def test_exp_split_is_accurate_up_to_1e9() -> None:
    """One observation may be a large data set; the error is at most 2 units of 2^-53."""
    rng = np.random.default_rng(3)
    sizes = 10.0 ** rng.uniform(-3, 9, 3000)
    with mpmath.workdps(60):
        for x in rng.choice([-1.0, 1.0], sizes.size) * sizes:
            p, k = exp_split(x)
            ratio = mpmath.mpf(p) * mpmath.mpf(2) ** int(k) / mpmath.exp(mpmath.mpf(x))
            assert 0.707 <= p <= 1.415
            assert abs(ratio - 1) < 2.3e-16


@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [
        (exp, 0.0, 1.0),
        (exp, -math.inf, 0.0),
        (exp, math.inf, math.inf),
        (exp, -746.0, 0.0),
        (exp, 710.0, math.inf),
        (exp, 709.79, math.inf),
        (log, 1.0, 0.0),
        (log, 0.0, -math.inf),
        (log, math.inf, math.inf),
    ],
)
def test_special_values_follow_ieee(
    function: Callable[[float], float], argument: float, value: float
) -> None:
    assert function(argument) == value


def test_exp_underflows_gradually_through_denormals() -> None:
    assert exp(-745.0) == 5e-324
    assert exp(-740.0) == pytest.approx(math.exp(-740.0), abs=1e-323)


def test_nan_stays_nan() -> None:
    assert math.isnan(exp(math.nan))
    assert math.isnan(log(math.nan))
    assert math.isnan(log(-1.0))

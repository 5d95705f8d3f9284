"""The noise around a simulated step."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from bayescontrol.errors import BadEvidence
from bayescontrol.experts import Gaussian
from bayescontrol.seeding import Stream


def test_the_density_is_that_of_independent_normals_with_the_floor_added() -> None:
    noise = Gaussian(std=[0.0, 0.3, 2.0], floor=0.4)
    o, mean = np.array([1.0, -2.0, 0.5]), (1.3, -2.5, 4.0)
    scales = (0.4, 0.5, math.hypot(2.0, 0.4))
    laws = [NormalDist(m, s) for m, s in zip(mean, scales, strict=True)]
    expected = sum(math.log(law.pdf(v)) for law, v in zip(laws, o, strict=True))
    assert noise.log_density(o, mean) == pytest.approx(expected, abs=1e-12)
    assert noise.log_density(o.tolist(), mean) == noise.log_density(o, mean)


def test_one_number_serves_every_component() -> None:
    one, each = Gaussian(0.2), Gaussian([0.2, 0.2, 0.2])
    assert one.log_density([1, 2, 3], [1, 2, 4]) == pytest.approx(
        each.log_density([1, 2, 3], [1, 2, 4]), abs=1e-12
    )


def test_draws_have_the_noise_of_the_world_without_the_floor() -> None:
    w = np.array([Gaussian([0.0, 0.5], floor=10.0).draw(2, Stream(i)) for i in range(2000)])
    assert not w[:, 0].any()
    # Five standard errors of a standard deviation: a false alarm in 1.7 million.
    assert abs(w[:, 1].std() - 0.5) < 5 * 0.5 / math.sqrt(2 * 2000)


@pytest.mark.parametrize("std", [-1.0, math.nan, [], [[1.0]], math.inf])
def test_a_standard_deviation_that_is_none_is_refused(std: object) -> None:
    with pytest.raises(ValueError, match="standard deviation"):
        Gaussian(std)  # type: ignore[arg-type]


@pytest.mark.parametrize("floor", [0.0, -1.0, math.nan, math.inf])
def test_without_a_floor_a_simulator_would_refute_itself(floor: float) -> None:
    with pytest.raises(ValueError, match="floor"):
        Gaussian(0.1, floor)


def test_components_must_agree() -> None:
    with pytest.raises(BadEvidence, match="2 components, a simulated step of 3"):
        Gaussian(0.1).log_density([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(BadEvidence, match="give one std, or 3"):
        Gaussian([0.1, 0.1]).log_density([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="state of 3"):
        Gaussian([0.1, 0.1]).draw(3, Stream(0))

"""The predictor without settings: a proper density in any unit, once it knows enough."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import integrate, stats  # type: ignore[import-untyped]

from bayescontrol.alarms import Alarm, LinearPredictor
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability
from bayescontrol.testing.laws import npy_round_trip, same_bits


class Motor(NamedTuple):
    angle: float
    speed: float


def data(n: int, seed: int = 0) -> list[tuple[Motor, float, tuple[float, float]]]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        x, u = Motor(*rng.normal(size=2).tolist()), float(rng.normal())
        y = (x.angle + 0.1 * x.speed, x.speed + u)
        rows.append((x, u, (y[0] + 0.3 * float(rng.normal()), y[1] + 0.1 * float(rng.normal()))))
    return rows


def trained(n: int, seed: int = 0) -> LinearPredictor:
    q = LinearPredictor()
    for event in data(n, seed):
        q.update(*event)
    return q


def test_it_equals_student_distributions_around_least_squares() -> None:
    q = LinearPredictor()
    rows = data(30)
    for n, (x, u, o) in enumerate(rows):
        log_q = q.log_predict(x, u, o)
        q.update(x, u, o)
        if n < 6:  # p = 4 regressors and two degrees of freedom
            assert log_q is None
            continue
        Z = np.array([[1.0, *x_, u_] for x_, u_, _ in rows[:n]])
        Y, z = np.array([o_ for *_, o_ in rows[:n]]), np.array([1.0, *x, u])
        W = np.linalg.lstsq(Z, Y)[0]
        rss = ((Y - Z @ W) ** 2).sum(0)
        leverage = z @ np.linalg.solve(Z.T @ Z, z)
        if leverage > 10.0:
            assert log_q is None
            continue
        scale = np.sqrt(rss / (n - 4) * (1.0 + leverage))
        assert log_q == pytest.approx(stats.t.logpdf(o, n - 4, z @ W, scale).sum(), abs=1e-9)


@pytest.mark.parametrize("n", [5, 6, 20])
def test_it_is_a_density(n: int) -> None:
    q = LinearPredictor()
    for x, u, o in data(n):
        q.update(x.angle, u, o[0])
    total, _ = integrate.quad(
        lambda o: math.exp(q.log_predict(0.1, 0.2, o) or 0.0), -math.inf, math.inf, epsabs=1e-10
    )
    assert total == pytest.approx(1.0, abs=1e-6)


def test_another_unit_changes_the_density_by_its_factor_only() -> None:
    q, scaled = LinearPredictor(), LinearPredictor()
    for x, u, o in data(20):
        event = (1e6 * np.array(x), 1e-3 * u, 1e3 * np.array(o))
        a, b = q.log_predict(x, u, o), scaled.log_predict(*event)
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert b == pytest.approx(a - 2 * math.log(1e3), abs=1e-8)
        q.update(x, u, o)
        scaled.update(*event)


def test_tuples_arrays_and_named_tuples_are_the_same() -> None:
    named, plain = LinearPredictor(), LinearPredictor()
    for x, u, o in data(12):
        named.update(x, u, o)
        plain.update(np.array(x), [np.float64(u)], np.array(o))
    x, u, o = data(13)[-1]
    assert named.log_predict(x, u, o) == plain.log_predict(np.array(x), (u,), list(o))


def test_a_controller_that_is_linear_in_the_state_is_no_obstacle() -> None:
    """u = -2 x makes (1, x, u) collinear; an action off the line is not predicted, then learned."""
    q, rng = LinearPredictor(), np.random.default_rng(0)
    for _ in range(50):
        x = float(rng.normal())
        q.update(x, -2.0 * x, 0.5 * x + 0.1 * float(rng.normal()))
    log_q = q.log_predict(0.3, -0.6, 0.15)
    assert log_q is not None
    assert log_q == pytest.approx(-0.5 * math.log(2 * math.pi * 0.01), abs=0.3)
    assert q.log_predict(0.3, 0.6, 0.15) is None
    q.update(0.3, 0.6, 0.15)
    assert q.log_predict(0.3, 0.6, 0.15) is not None


def test_names_have_their_own_regressions() -> None:
    q = LinearPredictor()
    for k in range(20):
        q.update(None, "left", 1.0 + 0.1 * (k % 2))
        q.update(None, "right", -1.0 + 0.1 * (k % 3))
    one, other = q.log_predict(None, "left", 1.0), q.log_predict(None, "left", -1.0)
    assert one is not None
    assert other is not None
    assert one > other + 5.0
    assert q.log_predict(None, "up", 1.0) is None


def test_without_a_situation_it_uses_the_last_observation() -> None:
    q, y, rng = LinearPredictor(), 0.0, np.random.default_rng(1)
    for _ in range(100):
        y = 0.9 * y + 0.1 * float(rng.normal())
        q.update(None, None, y)
    near, far = q.log_predict(None, None, 0.9 * y), q.log_predict(None, None, 0.9 * y + 0.6)
    assert near is not None
    assert far is not None
    assert near > far + 8.0


def test_observations_without_noise_are_not_predicted_infinitely_well() -> None:
    q = LinearPredictor()
    for k in range(20):
        q.update(float(k), None, 2.0 * k)
    log_q = q.log_predict(20.0, None, 40.0)
    assert log_q is not None
    assert log_q < 30.0
    zeros = LinearPredictor()
    for k in range(20):
        zeros.update(float(k), None, 0.0)
    assert zeros.log_predict(1.0, None, 0.0) is None


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ((0.0, 0.0, "warm"), BadEvidence),
        ((0.0, 0.0, None), BadEvidence),
        ((0.0, 0.0, math.nan), BadEvidence),
        ((0.0, math.inf, 1.0), BadEvidence),
        ((1e200, 0.0, 1.0), BadEvidence),
        (({}, 0.0, 1.0), MissingCapability),
    ],
)
def test_bad_input_changes_nothing(event: Any, error: type[Exception]) -> None:
    q = trained(9)
    before = q.save()
    for verb in (q.log_predict, q.update):
        with pytest.raises(error):
            verb(*event)
    assert same_bits(before, q.save())


def test_it_is_saved_bit_for_bit() -> None:
    q, again = trained(9), LinearPredictor()
    q.update("north", "left", 1.0)
    again.load(npy_round_trip(q.save()))
    assert same_bits(q.save(), again.save())
    twin = q.copy()
    for event in data(20, seed=5):
        assert q.log_predict(*event) == again.log_predict(*event)
        q.update(*event)
        again.update(*event)
    assert repr(q) == "LinearPredictor(30 observations)"
    assert repr(twin) == "LinearPredictor(10 observations)"


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    q = trained(9)
    before = q.save()
    for wrong in ({"factor/0": np.zeros((1, 2, 2))}, {"keys": np.array("[3]")}):
        with pytest.raises(IncompatibleState):
            q.load(before | wrong)
        assert same_bits(before, q.save())


def test_an_ordinary_alarm_waits_for_its_first_prediction() -> None:
    bell, q = Alarm(LinearPredictor(), 0.01), LinearPredictor()
    log_e = 0.0
    for x, u, o in data(40):
        log_q = q.log_predict(x, u, o)
        log_e += 0.0 if log_q is None else log_q + 3.0
        q.update(x, u, o)
        bell.observe(x, u, o, [-3.0, -math.inf])
        assert bell.mode_bits[0] * math.log(2) == pytest.approx(log_e)
        assert bell.mode_bits[1] == math.inf


def test_redundant_regressors_and_units_do_not_change_a_long_prediction() -> None:
    # Constants, a duplicate, a linear combination, and units from 1e-9 to 1e9.
    rng, steps = np.random.default_rng(1), 20_000
    a, b, k = rng.normal(size=steps), rng.normal(size=steps), np.arange(float(steps))
    constant, noise = np.ones(steps), rng.normal(size=(2, steps))
    x = np.array([k, 0.01 * constant, 1.3 * constant, 1e-9 * a, 1e9 * b, 1e-9 * a, 3 * a + k]).T
    y = np.array([2.0 + 0.5 * a - b + 0.1 * noise[0], 1e-6 * (a + noise[1])]).T
    Z, q = np.array([constant, k / steps, a, b]).T, LinearPredictor()  # well scaled and independent
    for n in range(steps):
        if n in (12, 30, 300, 3_000, 19_999):
            W, rss, rank, _ = np.linalg.lstsq(Z[:n], y[:n])
            leverage = Z[n] @ np.linalg.solve(Z[:n].T @ Z[:n], Z[n])
            scale = np.sqrt(rss / (n - rank) * (1.0 + leverage))
            expected = stats.t.logpdf(y[n], n - rank, Z[n] @ W, scale).sum()
            assert q.log_predict(x[n], None, y[n]) == pytest.approx(expected, abs=1e-7)
        q.update(x[n], None, y[n])
    # A setpoint that was constant so far is a new direction.
    assert q.log_predict(x[0] + 1e-3 * np.eye(7)[2], None, y[0]) is None


def test_arrays_and_tuples_give_the_same_prediction_to_the_last_bit() -> None:
    q, other = LinearPredictor(), LinearPredictor()
    for x, u, o in data(12):
        arrays = np.array(x), np.array([u]), np.array(o)
        assert q.log_predict(x, u, o) == other.log_predict(*arrays)
        q.update(x, u, o)
        other.update(*arrays)
    assert same_bits(q.save(), other.save())

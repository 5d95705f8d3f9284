"""Plants fitted to logs, and tests of models on logs."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol import MISSING, Stream, interact
from bayescontrol.bank import PI, Bank, PlantMode, fit_plant, whiteness
from bayescontrol.errors import BadEvidence, InvalidSystem, MissingCapability
from bayescontrol.lqr import LinearQuadratic
from bayescontrol.protocols import SituatedState

A1, A2, B1, B2 = 1.2, -0.4, 0.3, 0.5


def idle(loop: Any) -> float:
    return 0.0


def second_order(seed: int, steps: int = 600, noise: float = 0.1) -> tuple[Any, Any]:
    """y'' = 1.2 y' - 0.4 y + 0.3 u' + 0.5 u + e, with random inputs."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=steps), np.zeros(steps + 1)
    for k in range(1, steps):
        y[k + 1] = A1 * y[k] + A2 * y[k - 1] + B1 * u[k] + B2 * u[k - 1] + noise * rng.normal()
    return u, y[1:]


def test_least_squares_finds_the_coefficients_within_their_uncertainty() -> None:
    """40 logs: the squared standardised error is χ²(4), whose mean over logs is 4 ± 0.45.

    The interval has a false-alarm rate below 1e-5 (4.6 standard errors).
    """
    truth = np.array([A1, A2, B1, B2])
    squares = []
    for seed in range(40):
        fit = fit_plant(second_order(seed, 300), order=2)
        error = fit.coefficients[0] - truth
        squares.append(error @ fit.precision @ error / fit.noise.item())
    assert np.mean(squares) == pytest.approx(4.0, abs=4.6 * math.sqrt(8.0 / 40))


def test_the_fitted_mode_predicts_like_the_regression() -> None:
    u, y = second_order(3)
    fit = fit_plant((u, y), order=2)
    mode = fit.mode(idle)
    x, s = Bank([mode]).first_signals(), mode.start()
    for k in range(50):
        if k > 5:
            z = np.array([y[k - 1], y[k - 2], u[k], u[k - 1]])
            mean = (fit.centre[1] + fit.coefficients @ (z - fit.centre[0])).item()
            sd = math.sqrt(fit.noise.item())
            expected = stats.norm(mean, sd).logpdf(y[k])
            assert mode.log_likelihood(SituatedState(x, s), u[k], y[k]) == pytest.approx(
                expected, abs=1e-4
            )
        s = mode.advance(SituatedState(x, s), u[k], y[k])


def test_a_log_away_from_zero_gives_the_same_plant_with_a_constant() -> None:
    u, y = second_order(3)
    fit, shifted = fit_plant((u, y), order=2), fit_plant((u + 7.0, y - 40.0), order=2)
    assert shifted.coefficients == pytest.approx(fit.coefficients, abs=1e-9)
    world = shifted.mode(idle).environment()
    for _ in range(200):
        output = world.respond(7.0, Stream(0))
    assert output == pytest.approx(-40.0, abs=2.0)  # the gain of the noise is about 1


def test_rows_with_missing_outputs_are_left_out() -> None:
    u, y = second_order(1)
    outputs = [MISSING if k % 10 == 0 else v for k, v in enumerate(y.tolist())]
    fit = fit_plant((u.tolist(), outputs), order=2)
    assert fit.dof == 598 - 3 * 60 + 1 + 1 - 5
    assert fit.coefficients[0] == pytest.approx([A1, A2, B1, B2], abs=0.05)


def test_drawn_plants_have_the_mean_and_spread_of_the_fit() -> None:
    """400 draws: means within 5 standard errors, variances within 5 of theirs (1e-5 in all)."""
    fit = fit_plant(second_order(2, 80, noise=0.5), order=2)
    modes = fit.modes(lambda plant: idle, 400, seed=3)
    drawn = np.array([[m.A[0, 0], m.A[0, 1], m.B[0, 0], m.A[0, 2]] for m in modes])
    covariance = fit.scatter.item() / (fit.dof - 2) * np.linalg.inv(fit.precision)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(drawn.mean(0) - fit.coefficients[0]) < 5 * sd / 20).all()
    assert (np.abs(drawn.var(0) / sd**2 - 1) < 5 * math.sqrt(2 / 400)).all()


def test_a_bank_of_drawn_plants_controls_the_plant_of_the_log() -> None:
    world = PlantMode(([[0.9]], [[0.5]], [[1.0]]), idle, process_noise=0.1, sensor_noise=1e-3)
    plant, rng = world.environment(), Stream(0)
    inputs = [rng.normal() for _ in range(40)]
    fit = fit_plant((inputs, [plant.respond(u, rng) for u in inputs]))
    modes = fit.modes(lambda m: PI(0.3 / m.B.item(), 0.1 / m.B.item()), 10, seed=1)
    agent = Bank(modes, setpoint=2.0).agent()
    plant = world.environment()
    interact(agent, plant, 200, seed=2)
    assert plant.x[0] == pytest.approx(2.0, abs=0.6)  # 4 standard deviations of the noise


def test_the_uncertainty_is_a_prior_of_linear_quadratic_control() -> None:
    rng = np.random.default_rng(1)
    u, y = rng.normal(size=600), np.zeros(601)
    for k in range(600):
        y[k + 1] = 0.8 * y[k] + 0.5 * u[k] + 0.1 * rng.normal()
    y = y[1:]
    fit = fit_plant((u, y), order=1)
    belief = LinearQuadratic([[1.0]], [[1.0]], prior=fit.as_prior()).agent().belief
    assert belief.mean() == pytest.approx(fit.coefficients)
    with pytest.raises(MissingCapability, match="needs order 1"):
        fit_plant((u, y), order=2).as_prior()
    with pytest.raises(MissingCapability, match="operating point"):
        fit_plant((u, y + 40.0), order=1).as_prior()


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (([1.0] * 50, [1.0] * 50), "do not determine"),
        (([1.0, 2.0], [1.0, 2.0]), "do not determine"),
        (([], []), "equal length"),
        (([1.0, 2.0], [1.0]), "equal length"),
        (([math.nan] * 9, [1.0] * 9), "finite"),
        ("log", "pair"),
    ],
)
def test_a_log_that_does_not_determine_a_plant_is_an_error(log: Any, message: str) -> None:
    for order in (1, 5):
        with pytest.raises(BadEvidence, match=message):
            fit_plant(log, order)


def test_residuals_of_the_true_model_are_white_and_the_test_has_its_level() -> None:
    """200 logs of the true model: p-values below 0.05 in about 10; 2 to 22 but for 1e-3."""
    world = PlantMode(
        ([[0.9, 0.2], [0.0, 0.7]], [[0.0], [1.0]], np.eye(2)), idle, process_noise=[0.1, 0.2],
        sensor_noise=[[0.1, 0.03], [0.03, 0.2]],
    )  # fmt: skip
    small = 0
    for seed in range(200):
        plant, rng = world.environment(), Stream(seed)
        inputs = [rng.normal() for _ in range(150)]
        outputs = [plant.respond(u, rng) for u in inputs]
        small += whiteness(world, (inputs, outputs), lags=8).p_value < 0.05
    assert 2 <= small <= 22


def test_lags_count_steps_of_the_log_also_across_missing_outputs() -> None:
    """Every second output is missing: there is no pair at odd lags, and even lags are right."""
    rng, e = np.random.default_rng(4), np.zeros(400)
    for k in range(2, 400):
        e[k] = 0.9 * e[k - 2] + rng.normal()
    static = PlantMode(([[0.0]], [[1.0]], [[1.0]]), idle, process_noise=1e-6, sensor_noise=1.0)
    outputs = [MISSING if k % 2 else v for k, v in enumerate(e.tolist())]
    found = whiteness(static, ([0.0] * 400, outputs), lags=4)
    r = found.autocorrelations.ravel()
    assert r[[0, 2]].tolist() == [0.0, 0.0]
    z = e[::2] - e[::2].mean()
    expected = [z[k:] @ z[:-k] / (z @ z) for k in (1, 2)]
    assert r[[1, 3]] == pytest.approx(expected, abs=1e-9)
    ljung_box = 200 * 200 * (expected[0] ** 2 / 199 + expected[1] ** 2 / 198)
    assert found.statistic == pytest.approx(ljung_box)
    assert found.variance == pytest.approx((e[::2] ** 2).mean())


def test_lags_without_a_pair_of_outputs_are_not_tested() -> None:
    """100 logs with every fourth output: p-values are uniform, but for 1e-3 (Kolmogorov)."""
    world = PlantMode(([[0.8]], [[1.0]], [[1.0]]), idle, process_noise=0.3, sensor_noise=0.3)
    found = []
    for seed in range(100):
        plant, rng = world.environment(), Stream(seed)
        inputs = [rng.normal() for _ in range(600)]
        outputs = [plant.respond(u, rng) for u in inputs]
        outputs = [MISSING if k % 4 else y for k, y in enumerate(outputs)]
        found.append(whiteness(world, (inputs, outputs)).p_value)
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    with pytest.raises(BadEvidence, match="at most 3 steps apart"):
        whiteness(world, (inputs, outputs), lags=3)


def test_a_model_with_wrong_dynamics_or_noise_is_noticed() -> None:
    log = second_order(5)
    good = fit_plant(second_order(6), order=2).mode(idle)
    with pytest.warns(match="order that is too low"):
        first = fit_plant(second_order(6)).mode(idle)
    assert whiteness(good, log).p_value > 1e-3
    assert whiteness(first, log).p_value < 1e-9
    quiet = fit_plant(second_order(6, noise=0.05), order=2).mode(idle)
    assert whiteness(quiet, log).variance == pytest.approx(4.0, rel=0.3)
    with pytest.raises(InvalidSystem, match="does not fit"):
        whiteness(good, (np.ones((100, 2)), np.ones(100)))
    with pytest.raises(InvalidSystem, match="omit process_noise: the log"):
        fit_plant(log, order=2).mode(idle, process_noise=1.0)
    student = PlantMode(
        ([[0.5]], [[1.0]], [[1.0]]), idle, process_noise=1, sensor_noise=1, student=4
    )
    with pytest.raises(MissingCapability, match="Gaussian"):
        whiteness(student, log)
    with pytest.raises(BadEvidence, match="20 lags"):
        whiteness(good, (log[0][:30], log[1][:30]))


def slow_plant(seed: int, sensor: float, process: float = 0.0) -> tuple[Any, Any]:
    """Gain 3, time constant 60 s, an input that may change every 20 s, 600 s."""
    rng, a, x, y = np.random.default_rng(seed), math.exp(-1 / 60), 0.0, []
    u = np.repeat(rng.choice([-1.0, 1.0], size=30), 20)
    for v in u:
        x = a * x + 3.0 * (1.0 - a) * v + process * rng.normal()
        y.append(x + sensor * rng.normal())
    return u, np.array(y)


@pytest.mark.parametrize(
    ("order", "sensor", "process", "expected"),
    [(1, 0.15, 0.0, (20, 20)), (2, 0.15, 0.0, (18, 20)), (6, 0.15, 0.0, (5, 20)),
     (1, 0.0, 0.05, (0, 1)), (2, 0.0, 0.05, (0, 1)), (6, 0.0, 0.05, (0, 1))],
)  # fmt: skip
def test_a_fit_that_sensor_noise_has_biased_causes_a_warning(
    order: int, sensor: float, process: float, expected: tuple[int, int]
) -> None:
    """2.5 % sensor noise, or process noise only. 20 logs; the pilot had other seeds.

    In the pilot 2 of 1,185 sound fits caused a warning: two of 20 have a probability below 1e-3.
    """
    count = 0
    for seed in range(20):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fit_plant(slow_plant(seed, sensor, process), order)
        count += any("not reliable" in str(warning.message) for warning in found)
    assert expected[0] <= count <= expected[1]

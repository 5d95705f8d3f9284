"""A bank of plant models: filters, signals, who is in charge, and the compiled step."""

import math
from typing import Any

import control  # type: ignore[import-untyped]
import numpy as np
import pytest
from scipy import signal, stats  # type: ignore[import-untyped]
from scipy.linalg import expm  # type: ignore[import-untyped]

from bayescontrol import MISSING, FiniteBelief, Stream, interact
from bayescontrol.alarms import Guarded, RestartedAlarm
from bayescontrol.bank import PI, Bank, Bumpless, ExtendedMode, PlantMode, Supervisor
from bayescontrol.beliefs import InteractingBelief
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    IncompatibleState,
    InvalidSystem,
    MissingCapability,
    UnknownAction,
)
from bayescontrol.lqr import riccati
from bayescontrol.protocols import SituatedState
from bayescontrol.simulators import SimulatorMode

W2, V2 = np.array([[0.2, 0.05], [0.05, 0.1]]), np.array([[0.3, 0.1], [0.1, 0.5]])


def random_mode(
    seed: Any, states: Any, *, inputs: Any = 2, outputs: Any = 2, **options: Any
) -> Any:
    """A stable plant with full noise covariances and its regulator."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(states, states)), rng.normal(size=(states, inputs))
    A *= 0.9 / abs(np.linalg.eigvals(A)).max()
    G = 0.3 * rng.normal(size=(states, states))
    C, D = rng.normal(size=(outputs, states)), 0.2 * rng.normal(size=(outputs, inputs))
    _, K = riccati(A, B, np.eye(states), np.eye(inputs))
    options = {"process_noise": G @ G.T + 0.01 * np.eye(states), "sensor_noise": V2} | options
    return PlantMode((A, B, C, D), K, name=f"plant {seed}", limits=(-2.0, 2.0), **options)


class TextbookFilter:
    """The Kalman filter as in a textbook, with inverses: an independent implementation."""

    def __init__(self, mode: Any, covariance: Any) -> None:
        self.mode, self.x, self.P = mode, mode.x0.copy(), covariance
        self.log_p = 0.0

    def step(self, u: Any, y: Any, W: Any = None, A: Any = None, B: Any = None) -> None:
        m = self.mode
        A, B, W = m.A if A is None else A, m.B if B is None else B, m.W if W is None else W
        u = np.clip(np.atleast_1d(u), *m.limits)
        x, P = A @ self.x + B @ u, A @ self.P @ A.T + W
        if y is not None:
            S = m.C @ P @ m.C.T + m.V
            error = np.atleast_1d(y) - m.C @ x - m.D @ u
            self.log_p += stats.multivariate_normal(np.zeros(len(S)), S).logpdf(error)
            gain = P @ m.C.T @ np.linalg.inv(S)
            x, P = x + gain @ error, P - gain @ m.C @ P
        self.x, self.P = x, P


def posterior(filters: Any) -> Any:
    log_p = np.array([f.log_p for f in filters])
    p = np.exp(log_p - log_p.max())
    return p / p.sum()


def run_beside_textbook(
    modes: Any, covariances: Any, steps: int, missing: Any = ()
) -> tuple[Any, Any, Any]:
    """Return the posteriors of a bank and of textbook filters on the same inputs and outputs.

    The third array has the differences of ln P(y | mode, past), which matter in every step.
    """
    bank = Bank(modes, setpoint=np.zeros(2))
    agent, world, rng = bank.agent(), bank.environment(1), Stream(3)
    filters = [TextbookFilter(m, P) for m, P in zip(modes, covariances, strict=True)]
    ours, theirs, differences = [], [], []
    for k in range(steps):
        u = agent.act(rng)
        y = world.respond(u, rng)
        y = MISSING if k in missing else y
        log_p = 0.0 if y is MISSING else agent.belief.log_likelihoods(agent.x, u, y)
        before = np.array([f.log_p for f in filters])
        agent.observe(u, y)
        for f in filters:
            f.step(u, None if y is MISSING else y)
        differences.append(log_p - (np.array([f.log_p for f in filters]) - before))
        ours.append(agent.belief.posterior())
        theirs.append(posterior(filters))
    return np.array(ours), np.array(theirs), np.array(differences)


# -- filters ---------------------------------------------------------------------------------


def test_mode_probabilities_equal_those_of_an_independent_kalman_bank() -> None:
    modes = [random_mode(s, n, process_noise=0.3) for s, n in ((1, 2), (2, 3), (3, 1), (4, 4))]
    covariances = [mode.stationary[2] for mode in modes]
    lost = {5, 6, 40, 90, 91, 92}
    ours, theirs, differences = run_beside_textbook(modes, covariances, 200, missing=lost)
    assert np.abs(ours - theirs).max() < 1e-10
    assert np.abs(differences).max() < 1e-9
    assert (theirs[:4].max(axis=1) < 0.999).any()


def test_a_filter_that_starts_uncertain_equals_the_time_varying_filter() -> None:
    modes = [random_mode(s, 3, start_noise=2.0) for s in (1, 2)]
    ours, theirs, differences = run_beside_textbook(modes, [4.0 * np.eye(3)] * 2, 60)
    assert np.abs(ours - theirs).max() < 1e-10
    assert np.abs(differences).max() < 1e-9


def test_filters_with_and_without_a_stationary_form_share_a_bank() -> None:
    lost = PlantMode(
        (np.eye(2), np.eye(2), [[1.0, 0.0], [1.0, 0.0]]), lambda loop: np.zeros(2),
        process_noise=0.0, input_noise=[0.1, 0.2], sensor_noise=V2, start_noise=1.0,
        limits=(-2.0, 2.0),
    )  # fmt: skip
    assert lost.stationary is None
    modes = [random_mode(1, 3), lost, random_mode(2, 2, student=5.0)]
    bank = Bank(modes, setpoint=np.zeros(2))
    belief, listed = bank.belief(), FiniteBelief(modes)
    x, rng = bank.first_signals(), np.random.default_rng(0)
    for k in range(20):
        u, y = rng.normal(size=2), rng.normal(size=2)
        for b in (belief, listed):
            b.skip(x, u) if k == 7 else b.observe(x, u, y)
    assert np.allclose(belief.posterior(), listed.posterior(), rtol=1e-9, atol=0)
    assert belief.code_length() == pytest.approx(listed.code_length(), rel=1e-12)


def test_the_compiled_bank_equals_a_list_of_modes_bitwise() -> None:
    modes = [random_mode(s, 3) for s in range(4)]
    bank = Bank(modes, setpoint=[0.5, -0.5])
    listed = Bank(modes, setpoint=[0.5, -0.5])
    listed.belief = lambda: FiniteBelief(modes)  # type: ignore[method-assign]
    records = []
    for problem in (bank, listed):
        agent = problem.agent()
        record = interact(agent, bank.environment(2), 120, seed=4)
        records.append((np.array(record.actions), agent.belief.posterior()))
    assert np.array_equal(records[0][0], records[1][0])
    assert np.array_equal(records[0][1], records[1][1])


def test_interacting_filters_of_a_bank_equal_those_of_a_list() -> None:
    modes = [random_mode(s, 2) for s in range(3)]
    bank = Bank(modes, setpoint=np.zeros(2), hazard=[0.001, 0.05], same_states=True)
    belief, listed = bank.belief(), InteractingBelief(modes, hazard=[0.001, 0.05])
    x, rng = bank.first_signals(), np.random.default_rng(0)
    for _ in range(30):
        u, y = rng.normal(size=2), rng.normal(size=2)
        for b in (belief, listed):
            b.observe(x, u, y)
    assert np.allclose(belief.posterior(), listed.posterior(), rtol=1e-9, atol=0)


def test_the_filter_receives_the_saturated_input() -> None:
    mode = random_mode(1, 2)
    xs = SituatedState(Bank([mode]).first_signals(), mode.start())
    y = np.zeros(2)
    assert mode.log_likelihood(xs, [50.0, -9.0], y) == mode.log_likelihood(xs, [2.0, -2.0], y)


def test_the_signals_hold_the_limited_input() -> None:
    agent = Bank([random_mode(s, 2) for s in range(3)], setpoint=[0.5, -0.5]).agent()
    agent.observe([50.0, 1.0], [0.0, 0.0])
    assert agent.x[agent.bank.signals.u].tolist() == [2.0, 1.0]


def test_intervals_may_vary_if_the_plant_is_continuous() -> None:
    A, B = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([[0.0], [1.0]])
    plant = control.ss(A, B, [[1.0, 0.0]], [[0.0]])
    mode: Any = PlantMode(plant, [[1.0, 0.5]], dt=0.1, process_noise=0.1, sensor_noise=0.2)
    agent = Bank([mode]).agent()
    textbook = TextbookFilter(mode, mode.stationary[2])
    for interval, y in ((0.1, 0.3), (0.25, 0.1), (0.1, -0.2), (0.04, 0.0)):
        agent.signal(interval=interval)
        agent.observe(0.7, y)
        M = expm(np.block([[A, B], [np.zeros((1, 3))]]) * interval)
        scale = interval / 0.1
        textbook.step(0.7, y, W=mode.W * scale, A=M[:2, :2], B=M[:2, 2:])
    assert agent.belief.code_length() == pytest.approx(-textbook.log_p / math.log(2), rel=1e-9)


def test_an_interval_is_for_one_sample_only() -> None:
    plant = control.ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    mode: Any = PlantMode(plant, PI(1, 1), dt=0.1, process_noise=0.1, sensor_noise=0.2)
    agent, textbook = Bank([mode]).agent(), TextbookFilter(mode, mode.stationary[2])
    agent.signal(interval=0.5)
    for interval, y in ((0.5, 0.4), (0.1, 0.6), (0.1, 0.7)):
        agent.observe(0.7, y)
        a = math.exp(-interval)
        textbook.step(0.7, y, mode.W * interval / 0.1, np.array([[a]]), np.array([[1.0 - a]]))
    assert agent.belief.code_length() == pytest.approx(-textbook.log_p / math.log(2), rel=1e-9)


def test_one_bad_sample_does_not_ruin_a_belief_with_student_noise() -> None:
    def modes(**options: Any) -> Any:
        return [
            PlantMode(([[0.9]], [[g]], [[1.0]]), PI(0.2 / g, 0.1 / g), process_noise=0.1,
                      sensor_noise=0.3, name=f"{g:+}", **options)
            for g in (1.0, 0.7)
        ]  # fmt: skip

    finals = {}
    for student in (math.inf, 4.0):
        bank = Bank(modes(student=student), setpoint=5.0)
        world = Bank(modes()).environment(0)
        agent, rng = bank.agent(), Stream(1)
        for k in range(60):
            u = agent.act(rng)
            y = world.respond(u, rng)
            agent.observe(u, y - 60.0 if k == 59 else y)
        state = agent.belief.save()["state/0"][0, 1]
        finals[student] = agent.belief.posterior()[0], abs(state - world.x[0])
    assert finals[4.0][0] > 0.9  # the true plant
    assert finals[4.0][1] < 1.0 < 10.0 < finals[math.inf][1]


def test_student_likelihood_is_the_density_of_students_t() -> None:
    mode = PlantMode(
        ([[0.5]], [[1.0]], [[1.0]]), lambda loop: 0.0, process_noise=1.0, sensor_noise=1.0,
        student=5.0, start_noise=1.0,
    )  # fmt: skip
    xs = SituatedState(Bank([mode]).first_signals(), mode.start())
    S = 0.25 + 1.0 + 1.0
    expected = stats.t(5, loc=0.7, scale=math.sqrt(S)).logpdf(2.0)
    assert mode.log_likelihood(xs, 0.7, 2.0) == pytest.approx(expected, rel=1e-12)


def test_student_noise_scales_the_variance_of_the_sensor() -> None:
    """V (ν + d²) / (ν + p) with d² = (y - ŷ)ᵀS⁻¹(y - ŷ): here two outputs, so p = 2."""
    nu, e = 3.0, np.array([2.0, -1.0])
    mode = PlantMode((0.0 * np.eye(2), np.eye(2), np.eye(2)), lambda loop: np.zeros(2),
                     process_noise=W2, sensor_noise=V2, student=nu, start_noise=1.0)  # fmt: skip
    xs = SituatedState(Bank([mode], setpoint=np.zeros(2)).first_signals(), mode.start())
    scale = (nu + e @ np.linalg.inv(W2 + V2) @ e) / (nu + 2.0)
    expected = W2 @ np.linalg.inv(W2 + scale * V2) @ e
    assert mode.advance(xs, np.zeros(2), e)[5:7] == pytest.approx(expected, rel=1e-12)


def test_an_extended_filter_of_a_linear_simulator_equals_the_kalman_filter() -> None:
    linear = random_mode(5, 3, start_noise=0.5, sensor_noise=0.4)
    linear.D[:] = 0.0
    extended = ExtendedMode(
        lambda x, u: linear.A @ x + linear.B @ u, lambda x: linear.C @ x, lambda loop: np.zeros(2),
        dt=1.0, inputs=2, start=np.zeros(3), start_noise=0.5, process_noise=linear.W,
        sensor_noise=0.4, limits=(-2.0, 2.0),
    )  # fmt: skip
    beliefs = [Bank([mode], setpoint=np.zeros(2)).belief() for mode in (linear, extended)]
    x, rng = Bank([linear], setpoint=np.zeros(2)).first_signals(), np.random.default_rng(1)
    for k in range(20):
        u, y = rng.normal(size=2), rng.normal(size=2)
        for belief in beliefs:
            belief.skip(x, u) if k == 7 else belief.observe(x, u, y)
    assert beliefs[0].code_length() == pytest.approx(beliefs[1].code_length(), rel=1e-6)


def test_a_simulator_needs_a_start_and_answers_of_the_right_size() -> None:
    settings: Any = {"dt": 0.5, "inputs": 1, "process_noise": 0.1, "sensor_noise": 1.0}

    def make(step: Any, output: Any, start_noise: Any) -> Any:
        return ExtendedMode(step, output, lambda loop: 0.0, start=[0.0, 0.0],
                            start_noise=start_noise, **settings)  # fmt: skip

    with pytest.raises(InvalidSystem, match="give start and start_noise"):
        make(lambda x, u: x, lambda x: x[0], None)
    agent = Bank([make(lambda x, u: [x[0] + u[0]], lambda x: x[0], 1.0)]).agent()
    with pytest.raises(InvalidSystem, match=r"step returned .* expected 2 numbers"):
        agent.observe(1.0, 1.0)
    assert agent.belief.count == 0


def test_a_bank_of_pendulums_finds_the_length_of_the_rod() -> None:
    def pendulum(length: Any) -> Any:
        def step(x: Any, u: Any) -> Any:
            return [x[0] + 0.05 * x[1], x[1] - 0.05 * (9.81 / length * math.sin(x[0]) - u[0])]

        return ExtendedMode(
            step, lambda x: [x[0]], lambda loop: math.sin(0.3 * loop.k), dt=0.05, inputs=1,
            start=[1.0, 0.0], start_noise=0.1, process_noise=0.02, sensor_noise=0.05,
            name=f"{length} m",
        )  # fmt: skip

    bank = Bank([pendulum(length) for length in (0.5, 1.0, 2.0)])
    agent = bank.agent(choose="most probable")
    interact(agent, bank.environment("1.0 m"), 100, seed=0)
    assert agent.belief.posterior()[1] > 0.99


# -- plants of python-control ----------------------------------------------------------------


def test_a_continuous_plant_is_discretised_with_inputs_held_between_samples() -> None:
    A, B = np.array([[0.0, 1.0], [-4.0, -0.8]]), np.array([[0.0], [2.0]])
    mode = PlantMode(
        control.ss(A, B, np.eye(2), np.zeros((2, 1))), lambda loop: 0.0, dt=0.2,
        process_noise=0.1, sensor_noise=0.1,
    )  # fmt: skip
    M = expm(np.block([[A, B], [np.zeros((1, 3))]]) * 0.2)
    assert np.allclose(mode.A, M[:2, :2], atol=1e-12)
    assert np.allclose(mode.B, M[:2, 2:], atol=1e-12)


def test_the_state_of_a_first_order_transfer_function_is_its_output() -> None:
    mode = PlantMode(control.tf([3.0], [2.0, 1.0]), PI(1, 1), dt=0.1, sensor_noise=1,
                     process_noise=0.1)  # fmt: skip
    a = math.exp(-0.05)
    assert mode.A.item() == pytest.approx(a, rel=1e-12)
    assert mode.B.item() == pytest.approx(3.0 * (1 - a), rel=1e-12)
    assert mode.C.item() == 1.0


@pytest.mark.parametrize(
    ("plant", "options", "message"),
    [
        (control.tf([1], [1, 1]), {}, "pass dt"),
        (control.tf([1], [1, 0.5], 0.1), {"dt": 0.2}, "dt=0.2, but the plant has the period 0.1"),
        (control.tf([2], [1]), {"dt": 0.1}, "no state"),
        (control.ss([[0.5]], [[1]], [[1]], [[0]], None), {"dt": 1.0}, "dt=None"),
        ("plant", {}, "python-control"),
        (([[0.5]], [[1.0]], [[1.0]]), {"disturbances": 1}, "has 1 inputs"),
        (([[0.5]], [[1.0]], [[1.0]]), {"sensor_noise": 0.0}, "above 0"),
        (([[0.5]], [[1.0]], [[1.0]]), {"process_noise": [1.0, 2.0]}, "expected 1"),
        (([[0.5]], [[1.0]], [[1.0]]), {"limits": (1.0, -1.0)}, "low must be below high"),
        (([[1.0]], [[1.0]], [[1.0]]), {"process_noise": 0.0}, "no stationary filter"),
        (([[0.5]], [[1.0]], [[1.0]]), {"process_noise": None}, "ignores the sensor"),
        (control.tf([1], [1, 1, 1]), {"dt": 0.1}, "have no units"),
        (([[0.5]], [[1.0]], [[1.0]]), {"limits": 12}, "pair"),
        (([[0.5]], [[1.0]], [[1.0]]), {"operating_point": (1.0, 2.0, 3.0)}, "pair"),
        (([[0.5]], [[1.0]], [[1.0]]), {"operating_point": 1.0}, "pair"),
        (control.tf([1], [1, 1]), {"dt": 0.1, "method": "magic"}, "magic"),
        (control.tf([1, 0.5], [1, -0.5], 1), {}, "before the next input"),
        (control.tf([1], [1, 1]), {"dt": 1.0, "method": "bilinear"}, "before the next input"),
    ],
)
def test_an_invalid_plant_is_an_error(plant: Any, options: Any, message: Any) -> None:
    with pytest.raises(InvalidSystem, match=message):
        PlantMode(
            plant, lambda loop: 0.0, **({"sensor_noise": 1.0, "process_noise": 0.1} | options)
        )


def test_the_interval_of_a_nonlinear_simulator_is_its_period() -> None:
    mode = ExtendedMode(
        lambda x, u: [0.9 * x[0] + u[0]], lambda x: x, lambda loop: 0.0, dt=0.5, inputs=1,
        start=[0.0], start_noise=1.0, process_noise=0.1, sensor_noise=1.0,
    )  # fmt: skip
    agent = Bank([mode]).agent()
    agent.signal(interval=0.5)
    with pytest.raises(BadSituation, match="sampling period"):
        agent.signal(interval=0.6)


@pytest.mark.parametrize("controller", ["gain", "PI"])
def test_a_model_for_deviations_from_an_operating_point_reaches_the_setpoint(
    controller: str,
) -> None:
    """A tank at 60 °C needs 40 % heating: y = 60 + 0.5 (u - 40) in steady state."""
    by: Any = {"gain": [[1.0]], "PI": PI(1.0, 0.2)}[controller]
    tank = PlantMode(([[0.9]], [[0.05]], [[1.0]]), by, operating_point=(40.0, 60.0),
                     process_noise=0.01, sensor_noise=0.1, limits=(0.0, 100.0))  # fmt: skip
    bank = Bank([tank], setpoint=70.0)
    agent, world = bank.agent(), bank.environment(0)
    record = interact(agent, world, 200, seed=1)
    assert np.mean(record.observations[100:]) == pytest.approx(70.0, abs=0.2)
    assert np.mean(record.actions[100:]) == pytest.approx(60.0, abs=2.0)
    assert agent.belief.save()["state/0"][0, 1] == pytest.approx(70.0, abs=0.3)


def test_integrating_the_measured_error_removes_the_offset_of_an_unknown_load() -> None:
    def mean_output(**options: Any) -> float:
        mode = PlantMode(([[0.9]], [[0.1]], [[1.0]]), PI(1.0, 0.3, **options), process_noise=0.01,
                         sensor_noise=0.1)  # fmt: skip
        loaded = PlantMode(([[0.9]], [[0.1]], [[1.0]]), PI(1.0, 0.3), process_noise=0.01,
                           sensor_noise=0.1, drift=-0.5)  # fmt: skip
        record = interact(Bank([mode], setpoint=10.0).agent(), loaded.environment(), 400, seed=0)
        return float(np.mean(record.observations[200:]))

    assert mean_output(integrate_measured=True) == pytest.approx(10.0, abs=0.1)
    assert abs(mean_output() - 10.0) > 1.0


SETTINGS: Any = {"process_noise": 1.0, "sensor_noise": 1.0}
SERVO: Any = [[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]], [[1.0, 0.0]]


def one_output() -> Any:
    return Bank([PlantMode(([[0.5]], [[1.0]], [[1.0]]), PI(0.1, 0.1), **SETTINGS)]).agent()


def plant(*parts: Any, **options: Any) -> Any:
    return PlantMode(parts, PI(0.1, 0.1), **(SETTINGS | options))


def two_modes(other: Any) -> Any:
    return Bank([plant(0.5 * np.eye(1), np.ones((1, 1)), np.eye(1)), other])


def with_two_outputs(**options: Any) -> Any:
    return Bank([random_mode(1, 2)], **options)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: one_output().observe(0.0, [1.0, 2.0]), BadEvidence, r"output has shape \(2,\)"),
        (lambda: one_output().observe(0.0, [[1.0]]), BadEvidence, r"output has shape \(1, 1\)"),
        (lambda: one_output().observe(0.0, "a"), BadEvidence, "output is 'a'"),
        (lambda: one_output().observe(0.0, 1 + 2j), BadEvidence, "complex"),
        (lambda: one_output().observe(0.0, None), BadEvidence, "None.*bayescontrol.MISSING"),
        (lambda: one_output().observe(0.0, math.inf), BadEvidence, "sensor failed$"),
        (lambda: plant(0.5, 1.0, 1.0), InvalidSystem, r"A has shape \(\).*\[\[1.0\]\]"),
        (lambda: plant(*SERVO[:1], [0.0, 0.1], *SERVO[2:]), InvalidSystem, "B has .* 2 × any"),
        (lambda: plant(*SERVO[:2], [1.0, 0.0]), InvalidSystem, "C has .* any × 2"),
        (lambda: plant(*SERVO, [[0.0, 0.0]]), InvalidSystem, "D has .* 1 × 1"),
        (lambda: plant(*SERVO, 0.0), InvalidSystem, r"D has shape \(\)"),
        (lambda: PlantMode(SERVO, control.dlqr(*SERVO[:2], np.eye(2), np.eye(1)), **SETTINGS),
         InvalidSystem, "pass K, its first item"),
        (lambda: PlantMode(SERVO, [1.0, 2.0], **SETTINGS), InvalidSystem, "gain .* 1 × 2"),
        (lambda: PlantMode(SERVO, [[-1.0, -2.0]], **SETTINGS), UserWarning,
         "does not stabilise its own model.* modulus 1.241"),
        (lambda: PlantMode(SERVO, [[0.0, 0.0]], **SETTINGS), UserWarning, "modulus 1. "),
        (lambda: PlantMode(SERVO, control.tf([1], [1, 1]), **SETTINGS), MissingCapability,
         "if it is a controller, pass its gain"),
        (lambda: plant([[0.5]], [[1.0, 1.0]], [[1.0]]), InvalidSystem, "matrices of 2 × 1"),
        (lambda: two_modes(plant([[0.5]], [[1.0]], [[1.0]], limits=(-1, 1))), InvalidSystem,
         "mode 1"),
        (lambda: two_modes(PlantMode(control.ss([[0.5]], [[1]], [[1]], [[0]], 0.1), PI(1, 1),
         **SETTINGS)), InvalidSystem, "mode 1"),
        (lambda: two_modes(random_mode(1, 2)), InvalidSystem, "mode 1"),
        (lambda: Bank([]), InvalidSystem, "at least one mode"),
        (lambda: Bank([SimulatorMode(lambda x, u: x, lambda x: 0.0)]),  # type: ignore[list-item]
         MissingCapability, "Supervisor"),
        (lambda: with_two_outputs().agent().signal(disturbance=1.0), InvalidSystem, "disturbance"),
        (lambda: with_two_outputs().agent().signal(interval=0.5), BadSituation, "sampling period"),
        (lambda: with_two_outputs(setpoint=3.0), InvalidSystem, "setpoint"),
        (lambda: with_two_outputs(setpoint=lambda k: [1.0]), InvalidSystem, "setpoint"),
        (lambda: with_two_outputs().agent(hysteresis=2.0), ValueError, "hysteresis"),
        (lambda: Bank([random_mode(1, 2), random_mode(2, 3)], hazard=0.01, same_states=True),
         InvalidSystem, "have 2, 3 states"),
        *((lambda o=o: Supervisor(FiniteBelief([Coin(0.5)]), **o), ValueError, next(iter(o)))
          for o in ({"choose": "best"}, {"hysteresis": 0.5}, {"dwell": 0}, {"refuted": 1.5})),
    ],
)  # fmt: skip
def test_messages_name_the_mistake_and_the_way_out(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):  # warnings are errors here
        call()


def test_a_load_that_no_input_moves_is_not_an_unstable_gain() -> None:
    PlantMode(([[0.9, 0.1], [0.0, 1.0]], [[1.0], [0.0]], [[1.0, 0.0]]), [[0.5, 0.1]], **SETTINGS)


@pytest.mark.parametrize("make", [signal.StateSpace, signal.TransferFunction])
def test_systems_of_scipy_are_plants(make: Any) -> None:
    parts = ([[-2.0]], [[1.0]], [[6.0]], [[0.0]]) if make is signal.StateSpace else ([6], [1, 2])
    ours = control.ss(*parts) if len(parts) == 4 else control.tf(*parts)
    modes = [PlantMode(p, PI(1, 1), dt=0.1, **SETTINGS) for p in (make(*parts), ours)]
    for name in "ABC":
        assert getattr(modes[0], name) == pytest.approx(getattr(modes[1], name), rel=1e-12)
    sampled = make(*parts).to_discrete(0.1) if len(parts) == 4 else make(*parts, dt=0.1)
    assert PlantMode(sampled, PI(1, 1), **SETTINGS).period == 0.1


# -- signals and controllers -----------------------------------------------------------------


def test_setpoints_and_disturbances_reach_every_controller() -> None:
    seen = []

    def controller(loop: Any) -> Any:
        seen.append((loop.k, *loop.setpoint, *loop.setpoint_before, *loop.disturbance, *loop.u,
                     *loop.measured))  # fmt: skip
        return 0.5

    mode = PlantMode(([[0.5]], [[1.0, 2.0]], [[1.0]]), controller, disturbances=1,
                     process_noise=0.1, sensor_noise=0.1)  # fmt: skip
    bank = Bank([mode], setpoint=lambda k: 10.0 * k, disturbance=lambda k: -float(k))
    agent = bank.agent()
    for y in (7.0, 8.0):
        u = agent.act(Stream(0))
        agent.observe(u, y)
    agent.signal(setpoint=99.0)
    agent.act(Stream(0))
    assert seen == [
        (0, 10.0, 0.0, 0.0, 0.0, 0.0),
        (1, 20.0, 10.0, -1.0, 0.5, 7.0),
        (2, 99.0, 20.0, -2.0, 0.5, 8.0),
    ]


def test_a_measured_disturbance_is_part_of_the_prediction() -> None:
    mode = PlantMode(([[0.5]], [[1.0, 2.0]], [[1.0]]), lambda loop: 0.0, disturbances=1,
                     process_noise=0.1, sensor_noise=0.1)  # fmt: skip
    bank = Bank([mode], disturbance=3.0)
    x, s = bank.first_signals(), mode.start()
    best = mode.log_likelihood(SituatedState(x, s), 1.0, 7.0)
    assert best > mode.log_likelihood(SituatedState(x, s), 1.0, 6.9)
    assert best > mode.log_likelihood(SituatedState(x, s), 1.0, 7.1)


def test_state_feedback_reaches_the_setpoint_despite_a_measured_disturbance() -> None:
    A, B, E = (
        np.array([[1.0, 0.1], [0.0, 0.8]]),
        np.array([[0.0], [0.1]]),
        np.array([[0.0], [0.05]]),
    )
    _, K = riccati(A, B, np.eye(2), np.eye(1))
    mode = PlantMode((A, np.hstack([B, E]), [[1.0, 0.0]]), K, disturbances=1,
                     process_noise=1e-6, sensor_noise=1e-3)  # fmt: skip
    bank = Bank([mode], setpoint=2.0, disturbance=1.0)
    world = bank.environment(0)
    interact(bank.agent(), world, 400, seed=0)
    assert world.x[0] == pytest.approx(2.0, abs=0.01)


def test_state_feedback_compensates_a_disturbance_that_reaches_the_output_directly() -> None:
    """y = 2 u + 0.5 d in steady state: u = 0.25 for the setpoint 2 and d = 3."""
    mode = PlantMode(([[0.5]], [[1.0, 0.0]], [[1.0]], [[0.0, 0.5]]), [[0.0]], disturbances=1,
                     process_noise=0.1, sensor_noise=0.1)  # fmt: skip
    agent = Bank([mode], setpoint=2.0, disturbance=3.0).agent()
    assert agent.act(Stream(0)) == pytest.approx(0.25, rel=1e-12)


def test_a_trained_policy_receives_the_measured_output() -> None:
    class Trained:
        def predict(self, observation: Any) -> Any:
            return np.array([2.0 * observation[0]]), None

    mode = PlantMode(([[0.5]], [[1.0]], [[1.0]]), Trained(), process_noise=1, sensor_noise=1)
    agent = Bank([mode]).agent()
    agent.observe(0.0, 1.5)
    assert agent.act(Stream(0)) == 3.0


@pytest.mark.parametrize("answer", [math.nan, "full", [1.0, 2.0], None])
def test_an_invalid_answer_of_a_controller_is_an_error(answer: Any) -> None:
    mode = PlantMode(([[0.5]], [[1.0]], [[1.0]]), lambda loop: answer, process_noise=1,
                     sensor_noise=1, name="mine")  # fmt: skip
    with pytest.raises(UnknownAction, match=r"mine.*controller returned.*1 finite number"):
        Bank([mode]).agent().act(Stream(0))


@pytest.mark.parametrize(("u", "y"), [(math.nan, 0.0), (0.0, math.nan), ([1, 2], 0.0), (0.0, "a")])
def test_an_invalid_input_or_output_changes_nothing(u: Any, y: Any) -> None:
    bank = Bank([random_mode(s, 2, inputs=1, outputs=1, sensor_noise=1.0) for s in (1, 2)])
    agent = bank.agent()
    before = agent.save()
    with pytest.raises((BadEvidence, ValueError)):
        agent.observe(u, y)
    after = agent.save()
    assert all(np.array_equal(before[name], after[name]) for name in before)


# -- who is in charge --------------------------------------------------------------------------


class Coin:
    """Heads with probability p; the action is the name."""

    def __init__(self, p: Any) -> None:
        self.p, self.name = p, f"{p}"

    def act(self, x: Any, rng: Any) -> Any:
        return self.name

    def likelihood(self, x: Any, a: Any, o: Any) -> Any:
        return self.p if o else 1.0 - self.p


def test_the_most_probable_mode_acts_until_another_is_clearly_more_probable() -> None:
    agent = Supervisor(FiniteBelief([Coin(0.4), Coin(0.6)]), choose="most probable", hysteresis=3)
    actions = []
    for o in (1, 1, 1, 0, 0, 1):
        actions.append(agent.act(Stream(0)))
        agent.observe("any", o)
    # The odds are 1, 1.5, 2.25, 3.4, 2.25, 1.5: the second mode takes over at 3.4 and stays.
    assert actions == ["0.4", "0.4", "0.4", "0.6", "0.6", "0.6"]


def test_a_dwell_time_ends_when_its_mode_is_refuted_or_retired() -> None:
    agent = Supervisor(FiniteBelief([Coin(0.1), Coin(0.9), Coin(0.5)]), choose="most probable",
                       dwell=100, refuted=0.1)  # fmt: skip
    assert agent.act(Stream(0)) == "0.1"
    agent.observe("any", 1)  # odds 1/9 of the best: not yet refuted
    assert agent.act(Stream(0)) == "0.1"
    agent.observe("any", 1)
    assert agent.act(Stream(0)) == "0.9"
    agent.belief.retire("0.9")
    assert agent.act(Stream(0)) == "0.5"


def test_a_drawn_mode_is_held_for_its_dwell_time() -> None:
    agent = Supervisor(FiniteBelief([Coin(0.5), Coin(0.50001)]), dwell=5)
    rng, actions = Stream(2), []
    for _ in range(200):
        actions.append(agent.act(rng))
        agent.observe("any", 1)
    blocks = np.array([a == "0.5" for a in actions]).reshape(40, 5)
    assert (blocks.all(axis=1) | ~blocks.any(axis=1)).all()
    assert 0 < blocks[:, 0].sum() < 40  # false alarm: 2^-39


@pytest.mark.parametrize("wrap", ["bumpless", "guarded inside", "guarded outside"])
def test_bumpless_transfer_composes_with_a_guard_and_continues_after_a_restart(wrap: Any) -> None:
    bank = Bank([random_mode(s, 2) for s in range(3)], setpoint=np.ones(2))

    def build() -> Any:
        agent: Any = bank.agent(choose="most probable", hysteresis=2.0, dwell=3)
        if wrap == "guarded inside":
            agent = Guarded(agent, RestartedAlarm(), fallback=np.zeros(2))
        agent = Bumpless(agent, steps=5)
        if wrap == "guarded outside":
            agent = Guarded(agent, RestartedAlarm(), fallback=np.zeros(2))
        return agent

    agent, world, rng = build(), bank.environment(1), Stream(5)
    for _ in range(7):
        u = agent.act(rng)
        agent.observe(u, world.respond(u, rng))
    twin = build()
    twin.load(agent.save())
    agent.signal(setpoint=[0.0, 2.0])
    twin.signal(setpoint=[0.0, 2.0])
    copied = rng.copy()
    for _ in range(20):
        u, v = agent.act(rng), twin.act(copied)
        assert np.array_equal(u, v)
        y = world.respond(u, rng)
        copied = rng.copy()
        agent.observe(u, y)
        twin.observe(v, y)


def test_a_bank_with_a_hazard_follows_a_plant_that_switches() -> None:
    def mode(sign: Any) -> Any:
        return PlantMode(([[0.9]], [[sign]], [[1.0]]), PI(0.5 * sign, 0.2 * sign),
                         process_noise=0.3, sensor_noise=0.3, limits=(-10, 10),
                         name=f"{sign:+g}")  # fmt: skip

    bank = Bank([mode(1.0), mode(-1.0)], setpoint=lambda k: 3.0 * math.sin(0.1 * k),
                hazard=[1e-4, 1e-2])  # fmt: skip
    agent, rng = bank.agent(), Stream(0)
    world = bank.environment("+1")
    for k in range(400):
        if k == 200:
            world.mode = bank.modes[1]
        u = agent.act(rng)
        agent.observe(u, world.respond(u, rng))
    assert agent.belief.posterior()[1] > 0.9


def test_plants_that_switch_need_the_same_coordinates() -> None:
    """The same plant twice stays at 1/2; in other coordinates its filters must not be mixed."""

    def servo(unit: float) -> PlantMode:
        T = np.diag([1.0, unit])
        A, B = T @ [[1.0, 0.1], [0.0, 0.8]] @ np.linalg.inv(T), T @ [[0.0], [0.5]]
        return PlantMode((A, B, [[1.0, 0.0]]), lambda loop: math.sin(loop.k), sensor_noise=0.1,
                         process_noise=T @ [[0.0, 0.0], [0.0, 0.04]] @ T)  # fmt: skip

    with pytest.raises(InvalidSystem, match="same_states=True"):
        Bank([servo(1.0), servo(10.0)], hazard=0.1)
    bank = Bank([servo(1.0), servo(1.0)], hazard=0.1, same_states=True)
    agent = bank.agent()
    interact(agent, bank.environment(0), 100, seed=0)
    assert agent.belief.posterior() == pytest.approx([0.5, 0.5], rel=1e-9)


@pytest.mark.parametrize(
    "other",
    [
        {"plant": ([[0.9]], [[1.0]], [[2.0]])},
        {"plant": ([[0.9]], [[1.0]], [[1.0]], [[0.3]])},
        {"operating_point": (0.0, 60.0)},
    ],
)
def test_an_output_that_shows_the_state_differently_means_other_coordinates(other: Any) -> None:
    def mode(**options: Any) -> PlantMode:
        options = {"plant": ([[0.9]], [[0.5]], [[1.0]])} | SETTINGS | options
        return PlantMode(controller=PI(0.1, 0.1), **options)

    Bank([mode(), mode(plant=([[0.5]], [[2.0]], [[1.0]]))], hazard=0.01)
    with pytest.raises(InvalidSystem, match="different coordinates"):
        Bank([mode(), mode(**other)], hazard=0.01)


# -- traps -------------------------------------------------------------------------------------


def test_a_controller_that_changes_its_arguments_changes_nothing_else() -> None:
    def rough(loop: Any) -> Any:
        error = loop.setpoint
        error -= loop.y
        loop.x[:] = 7.0
        return 0.1 * error

    mode = PlantMode(([[0.5]], [[1.0]], [[1.0]]), rough, process_noise=1, sensor_noise=1)
    agent = Bank([mode], setpoint=3.0).agent()
    before = agent.save()
    agent.act(Stream(0))
    after = agent.save()
    for name in ("situation", "belief/state/0"):
        assert np.array_equal(before[name], after[name])


def test_the_first_input_is_that_of_the_operating_point() -> None:
    def tank(u0: float) -> PlantMode:
        return PlantMode(([[0.9]], [[0.5]], [[1.0]]), PI(0.1, 0.05), operating_point=(u0, 300.0),
                         process_noise=1, sensor_noise=1, limits=(2.0, 8.0))  # fmt: skip

    assert Bank([tank(5.0)], setpoint=300.0).agent().act(Stream(0)) == 5.0
    with pytest.raises(InvalidSystem, match="first_input"):
        Bank([tank(5.0), tank(6.0)], setpoint=300.0)
    bank = Bank([tank(5.0), tank(6.0)], setpoint=300.0, first_input=4.0)
    assert bank.agent().act(Stream(0)) == 4.0


def test_nothing_measured_yet_counts_as_the_expected_output() -> None:
    mode = PlantMode(([[0.9]], [[0.5]], [[1.0]]), PI(0.0, 1.0, integrate_measured=True),
                     operating_point=(5.0, 300.0), process_noise=1, sensor_noise=1)  # fmt: skip
    agent = Bank([mode], setpoint=300.0).agent()
    u = agent.act(Stream(0))
    agent.observe(u, MISSING)
    assert agent.act(Stream(0)) == u == 5.0


def test_a_state_of_plants_of_another_order_is_rejected() -> None:
    def unnamed(states: int) -> Any:
        return PlantMode((0.5 * np.eye(states), np.ones((states, 1)), np.ones((1, states))),
                         lambda loop: 0.0, process_noise=1, sensor_noise=1)  # fmt: skip

    one, two = (Bank([unnamed(n)] * 2).agent() for n in (1, 2))
    with pytest.raises(IncompatibleState, match="shape"):
        two.load(one.save())


def test_probabilities_of_actions_are_those_of_the_mode_in_charge() -> None:
    class Named(Coin):
        def action_probabilities(self, x: Any) -> Any:
            return {self.name: 1.0}

    agent = Supervisor(FiniteBelief([Named(0.4), Named(0.6)]), choose="most probable", hysteresis=3)
    assert agent.action_probabilities() == {"0.4": 1.0}
    agent.act(Stream(0))
    agent.observe("any", 1)
    assert agent.action_probabilities() == {agent.act(Stream(0)): 1.0} == {"0.4": 1.0}
    held = Supervisor(FiniteBelief([Named(0.4), Named(0.6)]), dwell=10)
    assert held.action_probabilities() == {"0.4": 0.5, "0.6": 0.5}
    a = held.act(Stream(0))
    assert held.action_probabilities() == {a: 1.0}


def test_a_steady_state_is_exact_although_the_setpoint_cannot_be_reached() -> None:
    """Two outputs, one input: y = (10, 2) u in steady state, so u = 100/104 for (10, 0)."""
    mode = PlantMode((np.diag([0.9, 0.5]), [[1.0], [1.0]], np.eye(2)), [[0.0, 0.0]],
                     process_noise=1, sensor_noise=1)  # fmt: skip
    agent = Bank([mode], setpoint=[10.0, 0.0]).agent()
    assert agent.act(Stream(0)) == pytest.approx(100 / 104, rel=1e-6)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("s", [1e-9, 1.0, 1e5, 1e9])
def test_the_units_of_a_state_do_not_change_the_input(s: float, outputs: int) -> None:
    """u = 2.4 for the setpoint 1. The second output is the first one again."""
    T = np.diag([s, 1.0])
    A, B = T @ [[0.9, 0.1], [0.0, 0.8]] / np.diag(T), np.array([[0.0], [0.5]])
    C = np.array([[1.0, 0.0]] * outputs) / np.diag(T)
    mode = PlantMode((A, B, C), np.ones((1, 2)) / np.diag(T), process_noise=T.diagonal(),
                     sensor_noise=1.0, start_noise=T.diagonal())  # fmt: skip
    agent = Bank([mode], setpoint=np.ones(outputs)).agent()
    assert agent.act(Stream(0)) == pytest.approx(2.4, rel=1e-6)


def test_a_filter_with_states_of_very_different_size_settles_late() -> None:
    mode = PlantMode((np.diag([0.5, 0.999]), np.ones((2, 1)), np.eye(2)), [[0.0, 0.0]],
                     process_noise=[1e6, 1e-4], sensor_noise=[1e6, 1e-2],
                     start_noise=1.0)  # fmt: skip
    agent, rng = Bank([mode]).agent(), Stream(0)
    states = []
    for _ in range(200):
        agent.observe(0.0, [1e6 * rng.normal(), 1e-2 * rng.normal()])
        states.append(agent.belief.save()["state/0"][0, -1])
    assert (np.diff(states)[5:-1] / states[5:-2] > -0.5).all()  # no jump of the covariance

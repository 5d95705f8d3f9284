"""`check_bank`: costs, rates, times and violations against independent simulations.

Simulations step the agent's own parts: `PlantWorld`, `PlantMode.act` and the compiled filters. The
seeds are fixed. Bounds are at least four standard errors wide, so each comparison would fail with
probability below 1e-4 for another seed, and fail on a wrong factor of 1.1.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bayescontrol import Stream
from bayescontrol.bank import PI, Bank, BankCheck, ExtendedMode, FilterBank, PlantMode, check_bank
from bayescontrol.cli.main import main
from bayescontrol.errors import InvalidSystem, UnknownAction
from bayescontrol.lqr import LinearSystem
from bayescontrol.protocols import SituatedState


def motor(gain: float, **options: Any) -> PlantMode:
    settings = {"process_noise": 1.0, "sensor_noise": 1.0, "name": f"gain {gain:+g}", **options}
    return PlantMode(([[0.7]], [[gain]], [[1.0]]), PI(0.3 / gain, 0.1 / gain), **settings)


def oscillator(w: float, decay: float) -> PlantMode:
    A = decay * np.array([[0.95, w], [-w, 0.95]])
    return PlantMode((A, [[0.0], [0.3]], [[1.0, 0.0]]), [[0.1, 0.4]], process_noise=0.3,
                     sensor_noise=0.3, name=f"w={w} decay={decay}")  # fmt: skip


def integrator(a: float, b: float) -> PlantMode:
    return PlantMode(([[a]], [[b]], [[1.0]]), [[0.2]], process_noise=1.0, sensor_noise=0.5,
                     start_noise=2.0, name=f"a={a} b={b}")  # fmt: skip


def skipping(D: float) -> PlantMode:
    """A part of the input reaches the output at once."""
    plant = [[0.8]], [[0.5]], [[1.0]], [[D]]
    return PlantMode(plant, PI(0.05, 0.1), process_noise=0.5, sensor_noise=0.5, name=f"D={D}")


def heated(gain: float, at: tuple[float, float], controller: Any = None) -> PlantMode:
    """A tank with feedthrough, a heat loss, and a model for deviations from an operating point."""
    plant = [[0.95, 0.05], [0.0, 0.8]], [[0.0], [0.2 * gain]], [[1.0, 0.0]], [[0.01]]
    return PlantMode(plant, [[0.6, 0.3]] if controller is None else controller, process_noise=0.05,
                     sensor_noise=0.1, operating_point=at, drift=[0.0, -0.1],
                     start=[0.5, 0.0], name=f"{gain} {at}")  # fmt: skip


def square_wave(k: int) -> float:
    return 5.0 if k // 50 % 2 else -5.0


BANKS: dict[str, Callable[[], Bank]] = {
    "motors": lambda: Bank([motor(4.0), motor(-4.0), motor(2.0)], setpoint=10.0),
    "oscillators": lambda: Bank(
        [oscillator(0.2, 1.0), oscillator(0.25, 1.0), oscillator(0.2, 0.97)], setpoint=4.0
    ),
    "feedthrough": lambda: Bank([skipping(1.0), skipping(2.0), skipping(-0.5)], setpoint=3.0),
    "operating points": lambda: Bank(
        [heated(1.0, (40.0, 60.0)), heated(1.0, (45.0, 58.0)), heated(1.3, (40.0, 60.0))],
        setpoint=62.0,
        first_input=40.0,
    ),
    "square wave": lambda: Bank(
        [motor(g, sensor_noise=3.0) for g in (4.0, 3.0, 2.0)], setpoint=square_wave
    ),
}
SLOW_BANKS: dict[str, Callable[[], Bank]] = {
    "unexcited": lambda: Bank([integrator(0.95, 0.5), integrator(0.9, 0.5), integrator(1.0, 0.4)]),
    "sensors": lambda: Bank([motor(4.0, sensor_noise=s, name=f"{s}") for s in (1.0, 1.3, 2.0)]),
}


def simulate(bank: Bank, c: int, j: int, seed: int, steps: int, i: int | None = None) -> Any:
    """Return costs and ln P(y | m) of one run; stop when odds against i reach 99:1."""
    filters, rng, x = FilterBank(bank.modes), Stream(seed), bank.first_signals()
    world, s, g = bank.environment(j), FilterBank(bank.modes).start(), bank.signals
    costs, log_p, total = [], [], 0.0
    for _ in range(steps):
        u = filters[c].act(SituatedState(x, s[c]), rng)
        y = world.respond(u, rng)
        u_r, _ = bank.modes[j].steady_state(x[g.setpoint], x[g.disturbance])
        costs.append(float(np.sum((y - x[g.setpoint]) ** 2) + np.sum((u - u_r) ** 2)))
        log_p.append(filters.log_likelihoods(SituatedState(x, s), u, y))
        s = filters.advance(SituatedState(x, s), u, y)
        x = bank.next_signals(x, u, y)
        if i is not None:
            total += log_p[-1][j] - log_p[-1][i]
            if total >= math.log(99.0):
                break
    return np.array(costs), np.array(log_p)


def mean_time(bank: Bank, j: int, i: int, runs: int) -> tuple[float, float]:
    """Return the mean time until j is distinguished from i by its own controller, and its error."""
    times = [len(simulate(bank, j, j, seed, 20_000, i)[0]) for seed in range(runs)]
    return float(np.mean(times)), float(np.std(times) / math.sqrt(runs))


# -- costs and rates -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["motors", "oscillators", "feedthrough", "operating points"])
def test_costs_and_rates_equal_those_of_long_simulations(name: str) -> None:
    bank = BANKS[name]()
    found = check_bank(bank)
    assert not found.simulated[[0, 2, 0], [0, 0, 2]].any()
    for c, j in [(0, 0), (2, 0), (0, 2)]:
        runs = [simulate(bank, c, j, seed, 4000) for seed in range(4)]
        costs = np.array([cost[200:].reshape(20, -1).mean(1) for cost, _ in runs]).ravel()
        error = costs.std() / math.sqrt(costs.size)
        assert abs(costs.mean() - found.costs[c, j]) < 4.5 * error
        gains = [(p[200:, j, None] - p[200:]).reshape(20, -1, 3).mean(1) for _, p in runs]
        for i in {0, 1, 2} - {j}:
            rates = np.array(gains)[..., i].ravel()
            assert abs(rates.mean() - found.rates[c, j, i]) < 4.5 * rates.std() / math.sqrt(80)


def test_averages_over_a_square_wave_equal_simulated_ones() -> None:
    bank = BANKS["square wave"]()
    found = check_bank(bank, horizon=1000)
    runs = [simulate(bank, 0, 1, seed, 1000) for seed in range(24)]
    costs = np.array([cost[500:].mean() for cost, _ in runs])
    rates = np.array([(p[500:, 1] - p[500:, 0]).mean() for _, p in runs])
    assert abs(costs.mean() - found.costs[0, 1]) < 4.5 * costs.std() / math.sqrt(24)
    assert abs(rates.mean() - found.rates[0, 1, 0]) < 4.5 * rates.std() / math.sqrt(24)


def test_costs_of_state_feedback_equal_those_of_the_linear_system() -> None:
    A, B = np.array([[1.0, 0.1], [0.0, 0.9]]), np.array([[0.0], [0.5]])
    Q, R = np.diag([2.0, 1.0]), np.array([[0.5]])
    system = LinearSystem(A, B, Q, R, 0.04 * np.eye(2))
    gains = [system.K, np.array([[1.0, 1.0]])]
    modes = [PlantMode((A, B, np.eye(2)), K, process_noise=0.2, sensor_noise=1e-6) for K in gains]
    for setpoint in ([0.0, 0.0], [7.0, 0.0]):
        found = check_bank(Bank(modes, setpoint=setpoint), Q=Q, R=R)
        assert found.costs[:, 0] == pytest.approx([system.cost(K) for K in gains], rel=1e-4)
    assert check_bank(Bank(modes), Q=[2.0, 1.0], R=0.5).costs == pytest.approx(found.costs)


@pytest.mark.parametrize("controller", [None, PI(0.3, 0.1)])
def test_an_operating_point_does_not_change_the_check(controller: Any) -> None:
    """Deviations and absolute values give the same costs, rates and times, without simulation."""

    def check(u0: float, y0: float) -> BankCheck:
        modes = [heated(g, (u0, y0), controller) for g in (1.0, 1.5)]
        return check_bank(Bank(modes, setpoint=y0 + 2.0), runs=20)

    absolute, deviations = check(400.0, 600.0), check(0.0, 0.0)
    assert not absolute.simulated.any()
    for key in ("costs", "rates", "times"):
        expected = getattr(deviations, key)
        assert getattr(absolute, key) == pytest.approx(expected, rel=1e-6, nan_ok=True), key


def nonlinear(gain: float, sign: float = 1.0) -> ExtendedMode:
    """y' = 0.9 y + 0.1 gain u^1.5 with limits: the level 4 needs u = (4 / gain)^(2/3)."""
    return ExtendedMode(
        lambda x, u: 0.9 * x + 0.1 * gain * np.sign(u) * abs(u) ** 1.5, lambda x: x,
        PI(0.2 * sign / gain, 0.1 * sign / gain), dt=1.0, inputs=1, start=[1.0], start_noise=0.1,
        process_noise=0.02, sensor_noise=0.05, limits=(0.0, 9.0), name=f"{gain} {sign}",
    )  # fmt: skip


def test_the_default_cost_ranks_the_right_controller_first() -> None:
    for gain, setpoint in ((1.0, 4.0), (0.5, 9.0)):
        u, is_reached = nonlinear(gain).steady_state(np.array([setpoint]), np.zeros(0))
        assert u == pytest.approx([(setpoint / gain) ** (2 / 3)], rel=1e-4)
        assert is_reached
    lazy = PlantMode(([[0.9]], [[0.1]], [[1.0]]), PI(0.0, 0.0), process_noise=0.01,
                     sensor_noise=0.05, operating_point=(25.0, 30.0), name="lazy")  # fmt: skip
    right = PlantMode(([[0.9]], [[0.1]], [[1.0]]), PI(0.5, 0.1), process_noise=0.01,
                      sensor_noise=0.05, operating_point=(25.0, 30.0), name="right")  # fmt: skip
    costs = check_bank(Bank([lazy, right], setpoint=35.0), runs=2).costs
    assert costs[1, 0] < 0.1 * costs[0, 0]
    simulated = check_bank(Bank([nonlinear(1.0), nonlinear(0.2)], setpoint=4.0), runs=4, horizon=80)
    assert (simulated.costs.argmin(axis=0) == [0, 1]).all()


# -- limits of the actuator ---------------------------------------------------------------------


def limited(gain: float, strength: float = 1.0) -> PlantMode:
    return PlantMode(([[0.7]], [[gain]], [[1.0]]), PI(0.3 * strength / gain, 0.1 * strength / gain),
                     process_noise=0.3, sensor_noise=0.3, limits=(-3.0, 3.0),
                     name=f"gain {gain:+g}, {strength:g}")  # fmt: skip


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        ([limited(4.0), limited(-4.0)], "with the input at a limit: gain +4, 1 on gain -4, 1,"),
        ([limited(4.0), limited(4.0, 40.0)], "with a limit cycle: gain +4, 40 on gain +4, 1,"),
        ([limited(4.0), limited(0.5)],
         "The setpoint of gain +0.5, 1 cannot be reached: it needs the input 6, beyond its limits"),
        ([nonlinear(1.0), nonlinear(1.0, -1.0)], "with the input at a limit: 1.0 -1.0 on 1.0 1.0"),
        ([nonlinear(1.0), nonlinear(0.1)],
         "The setpoint of 0.1 1.0 cannot be reached: it needs the input 20.97, beyond its limits"),
        ([nonlinear(5.0), nonlinear(0.02)], "with a limit cycle: 0.02 1.0 on 5.0 1.0"),
    ],
)  # fmt: skip
def test_words_say_what_limits_make_of_a_loop(modes: Any, words: str) -> None:
    found = check_bank(Bank(modes, setpoint=9.6 if modes[0].limits[1] > 5 else 10.0), runs=10,
                       horizon=200)  # fmt: skip
    assert words in found.summary(), found.summary()
    texts = [text.get_text() for text in found.plot().axes[0].texts]
    assert sum(text.endswith("*") for text in texts) == (~found.stable).sum()


@pytest.mark.parametrize("horizon", [200, 202])  # the last input is within its limits, or at one
def test_a_limit_cycle_does_not_depend_on_the_last_input(horizon: int) -> None:
    bank = Bank([nonlinear(5.0), nonlinear(0.02)], setpoint=9.6)
    assert check_bank(bank, runs=2, horizon=horizon).behaviour[1] == [
        "a limit cycle",
        "the input at a limit",
    ]


def test_two_outputs_of_one_input_do_not_reach_every_setpoint() -> None:
    modes = [
        PlantMode(
            (np.diag([0.9, 0.5]), [[1.0], [b]], np.eye(2)),
            [[0.0, 0.0]],
            process_noise=1,
            sensor_noise=1,
            name=f"b={b}",
        )
        for b in (1.0, 5.0)
    ]

    found = check_bank(Bank(modes, setpoint=[10.0, 10.0]), runs=2)
    assert list(found.unreachable) == ["b=1.0"]
    assert "b=1.0 cannot be reached: no steady state with the output 10, 10 " in found.summary()


def test_rates_and_times_are_per_second() -> None:
    import control  # type: ignore[import-untyped]

    def plants(dt: float) -> Bank:
        systems = [control.ss([[a]], [[1.0]], [[1.0]], [[0.0]], dt) for a in (0.5, 0.9)]
        return Bank(
            [PlantMode(plant, [[0.4]], process_noise=1.0, sensor_noise=1.0) for plant in systems]
        )

    one, tenth = check_bank(plants(1.0)), check_bank(plants(0.1))
    assert tenth.rates[0, 0, 1] == pytest.approx(10.0 * one.rates[0, 0, 1])
    assert tenth.times[0, 0, 1] == pytest.approx(0.1 * one.times[0, 0, 1])


# -- pairs that are unstable or cannot be distinguished -----------------------------------------


def test_a_controller_of_the_wrong_sign_is_unstable() -> None:
    found = check_bank(BANKS["motors"]())
    assert ("gain +4", "gain -4") in found.unstable
    assert np.isinf(found.costs[0, 1])
    assert found.stable.diagonal().all()
    assert "gain +4 on gain -4" in found.summary()
    assert found.exit_code() == 0
    assert found.exit_code(strict=True) == 14


def test_a_controller_that_is_unstable_on_its_own_plant_has_an_exit_code() -> None:
    with pytest.warns(match="does not stabilise"):
        modes = [PlantMode(([[1.2]], [[1.0]], [[1.0]]), [[k]], process_noise=1.0, sensor_noise=1.0)
                 for k in (0.7, 0.1)]  # fmt: skip
    assert check_bank(Bank(modes)).exit_code(strict=True) == 13


def test_a_proportional_controller_is_not_mistaken_for_an_unstable_one() -> None:
    modes = [PlantMode(([[0.7]], [[g]], [[1.0]]), PI(0.2, 0.0), process_noise=1.0, sensor_noise=1.0)
             for g in (1.0, 2.0)]  # fmt: skip
    assert check_bank(Bank(modes, setpoint=1.0)).stable.all()


def test_equal_plants_cannot_be_distinguished() -> None:
    slow = PlantMode(([[0.7]], [[4.0]], [[1.0]]), PI(0.01, 0.01), process_noise=1.0,
                     sensor_noise=1.0, name="slow")  # fmt: skip
    found = check_bank(Bank([motor(4.0), slow, motor(2.0)], setpoint=10.0))
    assert found.indistinguishable == [("gain +4", "slow"), ("slow", "gain +4")]
    assert np.isinf(found.times[0, 0, 1])
    assert found.exit_code() == 12
    assert "If slow is true, it cannot be distinguished from gain +4." in found.summary()


def test_equal_plants_in_an_unstable_loop_cannot_be_distinguished() -> None:
    wrong = PlantMode(([[0.7]], [[4.0]], [[1.0]]), PI(-1.0, -0.1), process_noise=1.0,
                      sensor_noise=1.0, name="wrong")  # fmt: skip
    assert check_bank(Bank([motor(4.0), wrong], setpoint=1.0)).rates[1, 0, 1] == 0.0


# -- times ---------------------------------------------------------------------------------------


def compare_times(bank: Bank, runs: int, pairs: Any, share: float) -> None:
    found = check_bank(bank)
    for j, i in pairs:
        mean, error = mean_time(bank, j, i, runs)
        assert abs(found.times[j, j, i] / mean - 1.0) < share + 3.5 * error / mean * (runs < 1000)


def test_predicted_times_are_near_simulated_ones() -> None:
    compare_times(BANKS["motors"](), 100, [(0, 1), (0, 2), (2, 0)], 0.1)
    compare_times(BANKS["square wave"](), 60, [(0, 2), (2, 0)], 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BANKS, *SLOW_BANKS])
def test_predicted_times_are_within_ten_percent_of_a_thousand_runs(name: str) -> None:
    bank = {**BANKS, **SLOW_BANKS}[name]()
    compare_times(bank, 1000, [(j, i) for j in range(3) for i in range(3) if i != j], 0.1)


def test_times_of_a_late_step_include_the_wait() -> None:
    bank = Bank([motor(4.0), motor(2.0)], setpoint=lambda k: 20.0 * (k > 300))
    early = Bank([motor(4.0), motor(2.0)], setpoint=0.0)
    assert check_bank(bank).times[0, 0, 1] < check_bank(early).times[0, 0, 1]
    found = check_bank(bank, horizon=100)  # the step is beyond the horizon
    assert not found.simulated.any()


def test_times_beyond_the_horizon_are_lower_bounds() -> None:
    bank = Bank([motor(4.0), motor(3.9)], setpoint=lambda k: 0.1 * math.sin(k))
    found = check_bank(bank, horizon=50)
    assert found.unfinished[0, 0, 1] > 0.5
    assert found.times[0, 0, 1] <= 50.0
    assert "more than" in found.time(0, 0, 1)


@pytest.mark.parametrize("dt", [1.0, 0.01])
def test_runs_beyond_the_horizon_are_completed_with_the_rate(dt: float) -> None:
    bank = Bank([motor(4.0, dt=dt), motor(3.0, dt=dt)], setpoint=3.0)
    full, short = check_bank(bank), check_bank(bank, horizon=20)
    assert full.times[0, 0, 1] > 20.0 * dt
    assert short.times[0, 0, 1] == pytest.approx(full.times[0, 0, 1], rel=0.15)
    assert short.unfinished[0, 0, 1] == 0.0


def test_a_pulse_distinguishes_plants_without_a_rate() -> None:
    def plant(effect: float) -> PlantMode:
        return PlantMode(([[0.7]], [[1.0, effect]], [[1.0]]), [[0.2]], process_noise=1.0,
                         sensor_noise=1.0, disturbances=1)  # fmt: skip

    pulse = Bank([plant(1.0), plant(2.0)], disturbance=lambda k: 20.0 * (k == 30))
    found = check_bank(pulse, runs=50)
    assert found.rates[0, 0, 1] == 0.0
    assert 30.0 <= found.times[0, 0, 1] <= 33.0
    constant = Bank([plant(1.0), plant(2.0)], disturbance=0.0)
    assert np.isinf(check_bank(constant, runs=50).times[0, 0, 1])


@pytest.mark.parametrize(("step_at", "time"), [(0, 4.0), (5, 9.0)])
@pytest.mark.filterwarnings("error")
def test_a_dead_time_is_not_mistaken_for_evidence_at_rest(step_at: int, time: float) -> None:
    """Outputs differ in the fourth step after the setpoint only, and there is hardly noise."""
    modes = [PlantMode((np.eye(5, k=-1), np.eye(5, 1), np.eye(1, 5, state)), np.zeros((1, 5)),
                       process_noise=0, sensor_noise=0.1) for state in (3, 4)]  # fmt: skip
    found = check_bank(Bank(modes, setpoint=lambda k: 10.0 * (k > step_at)), runs=20)
    assert found.rates[0, 0, 1] == 0.0
    assert found.times[0, 0, 1] == time


def test_a_simulated_loop_without_a_rate_has_infinite_times() -> None:
    """A delay of one step shows only in the first output: some runs never reach the odds."""
    modes = [PlantMode((np.eye(2, k=-1), np.eye(2, 1), np.eye(1, 2, state)), np.zeros((1, 2)),
                       process_noise=0, sensor_noise=1, limits=(-20.0, 2.9))
             for state in (0, 1)]  # fmt: skip
    found = check_bank(Bank(modes, setpoint=3.0), horizon=50)
    assert found.simulated.all()
    assert 0.0 < found.unfinished[0, 0, 1] < 1.0
    assert np.isinf(found.times[0, 0, 1])
    assert found.summary().endswith(
        "Times: 400 runs of at most 50 steps. Simulated costs and rates: 40 runs."
    )


def test_evidence_that_is_not_a_number_distinguishes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def step_filter(self: Any, xs: Any, a: Any, o: Any) -> Any:
        return np.full(1, math.nan), xs.s[None]

    modes = [motor(4.0), motor(2.0)]
    for mode in modes:
        mode.set_controller(lambda loop: 0.0)
    monkeypatch.setattr(PlantMode, "step_filter", step_filter)
    assert np.isinf(check_bank(Bank(modes), runs=2, horizon=20).times[0, 0, 1])


def test_a_check_without_the_hazard_says_so() -> None:
    modes = [motor(4.0), motor(2.0)]
    assert "ignores the hazard" in check_bank(Bank(modes, hazard=0.01), runs=2).summary()
    assert "hazard" not in check_bank(Bank(modes), runs=2).summary()


# -- simulation ----------------------------------------------------------------------------------


def test_other_controllers_are_simulated_with_intervals() -> None:
    exact = check_bank(Bank([motor(4.0), motor(2.0)], setpoint=10.0))

    def wrapped(gain: float) -> PlantMode:
        pi = PI(0.3 / gain, 0.1 / gain)
        return PlantMode(([[0.7]], [[gain]], [[1.0]]), lambda loop: pi(loop), process_noise=1.0,
                         sensor_noise=1.0)  # fmt: skip

    same = [wrapped(4.0), wrapped(2.0)]
    found = check_bank(Bank(same, setpoint=10.0), runs=40, horizon=120, seed=3)
    assert found.simulated.all()
    for key in ("costs", "rates", "times"):
        low, high = found.intervals[key]
        middle, value = 0.5 * (low + high), getattr(exact, key)
        off = abs(middle - value) > 2.2 * (high - low) + 1e-12  # 4.4 standard errors
        assert not off[np.isfinite(value)].any(), key


def test_nonlinear_models_are_simulated() -> None:
    def pendulum(g: float) -> ExtendedMode:
        return ExtendedMode(
            lambda x, u: [x[0] + 0.05 * x[1], x[1] - 0.05 * (g * np.sin(x[0]) + x[1] - u[0])],
            lambda x: [x[0]], lambda loop: -loop.x[1], dt=0.05, inputs=1, start=[0.5, 0.0],
            start_noise=0.1, process_noise=0.01, sensor_noise=0.02, name=f"g={g}",
        )  # fmt: skip

    found = check_bank(Bank([pendulum(9.8), pendulum(4.0)]), runs=5, horizon=60)
    assert found.simulated.all()
    assert (found.pairs(found.times)[[0, 1], [1, 0]] < 3.0).all()
    assert found.indistinguishable == []


def test_loops_that_reach_the_limits_of_the_actuator_are_simulated() -> None:
    modes = [motor(g, limits=(-1.0, 1.0)) for g in (4.0, 2.0)]
    found = check_bank(Bank(modes, setpoint=10.0), runs=20, horizon=200)
    assert found.simulated.all()
    free = check_bank(Bank([motor(4.0), motor(2.0)], setpoint=10.0))
    assert found.costs[1, 1] > 2.0 * free.costs[1, 1]  # 10 needs an input of 1.5 on plant 1
    wide = check_bank(Bank([motor(g, limits=(-50.0, 50.0)) for g in (4.0, 2.0)], setpoint=10.0))
    assert not wide.simulated.any()
    assert wide.costs == pytest.approx(free.costs)


def test_violations_equal_the_share_of_simulated_runs() -> None:
    bank, high = BANKS["motors"](), 11.0
    found = check_bank(bank, output_limits=(-high, high), runs=400)
    hits = 0
    for seed in range(200):
        costs, _ = simulate(bank, 0, 0, seed, 2000, 2)
        rng, world = Stream(seed), bank.environment(0)
        hits += _leaves(bank, rng, world, len(costs), high)
    low, upper = found.intervals["violations"][:, 0, 0, 2]
    assert low - 0.12 < hits / 200 < upper + 0.12  # 3.5 standard errors of 200 runs
    assert 0.05 < found.violations[0, 0, 2] < 0.95


def _leaves(bank: Bank, rng: Stream, world: Any, steps: int, high: float) -> bool:
    mode, x, s = bank.modes[0], bank.first_signals(), bank.modes[0].start()
    for _ in range(steps):
        u = mode.act(SituatedState(x, s), rng)
        y = world.respond(u, rng)
        if abs(y) > high:
            return True
        s, x = mode.advance(SituatedState(x, s), u, y), bank.next_signals(x, u, y)
    return False


def test_the_same_seed_gives_the_same_check() -> None:
    one, two = (check_bank(BANKS["motors"](), output_limits=(-11, 11), runs=50) for _ in range(2))
    assert np.array_equal(one.violations, two.violations, equal_nan=True)


@pytest.mark.parametrize(
    ("setting", "error", "words"),
    [({"output_limits": (1.0, -1.0)}, InvalidSystem, "low must be below high"),
     ({"odds": 1.0}, ValueError, "odds"), ({"runs": 0}, ValueError, "runs"),
     ({"Q": [1.0, 2.0]}, InvalidSystem, "Q has 2 weights: expected 1")],
)  # fmt: skip
def test_bad_settings_are_refused(setting: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        check_bank(BANKS["motors"](), **setting)


# -- the command -----------------------------------------------------------------------------------

FILE = """
from bayescontrol.bank import PI, Bank, Bumpless, PlantMode
def motor(gain):
    return PlantMode(([[0.7]], [[gain]], [[1.0]]), PI(0.3 / gain, 0.1 / gain), process_noise=1.0,
                     sensor_noise=1.0, name=f"gain {gain:+g}")
bank = Bank([motor(4.0), motor(-4.0)], setpoint=10.0)
agent = bank.agent()
wrapped = Bumpless(agent, 3)
loose = [motor(4.0), motor(-4.0)]
def broken():
    def fails(loop): raise KeyError("gain")
    return Bank([PlantMode(([[0.7]], [[1.0]], [[1.0]]), fails, process_noise=1, sensor_noise=1)])
"""


def call(folder: Path, attribute: str, *options: str) -> Result:
    path = folder / f"{folder.name}_plants.py"  # each test loads a module of its own
    path.write_text(FILE, "utf-8")
    arguments = ["check", f"{path}:{attribute}", *options]
    return CliRunner(env={"COLUMNS": "140"}).invoke(main, arguments)


@pytest.mark.parametrize("attribute", ["bank", "agent", "wrapped", "loose"])
def test_the_command_checks_a_bank_and_its_agent(tmp_path: Path, attribute: str) -> None:
    found = call(tmp_path, attribute)
    assert found.exit_code == 0, found.output
    assert "Unstable pairs of controller and plant: gain +4 on gain -4" in found.stdout
    assert "Every pair of plants can be distinguished." in found.stdout
    assert "inf unstable" in found.stdout


def test_json_has_the_arrays_and_a_figure_is_drawn(tmp_path: Path) -> None:
    figure = tmp_path / "bank.svg"
    options = ("--json", "--output-limits", "-4", "4", "--figure", str(figure))
    found = json.loads(call(tmp_path, "bank", *options).stdout)
    assert found["modes"] == ["gain +4", "gain -4"]
    assert found["costs"][0][1] == "Infinity"
    assert found["times"][0][0][0] == "NaN"
    assert found["intervals"]["violations"][0][0][0][1] < found["violations"][0][0][1]
    assert "<svg" in figure.read_text("utf-8")


def test_weights_and_strict_exit_codes_of_the_command(tmp_path: Path) -> None:
    one = call(tmp_path, "bank", "--json", "--runs", "2")
    two = call(tmp_path, "bank", "--json", "--runs", "2", "--Q", "2", "--R", "2", "--strict")
    assert (one.exit_code, two.exit_code) == (0, 14) == (0, json.loads(two.stdout)["exit_code"])
    costs = [json.loads(found.stdout)["costs"][0][0] for found in (one, two)]
    assert costs[1] == pytest.approx(2.0 * costs[0])
    assert "checked: 8/8 runs" in one.stderr
    for weight in ("-1", "nan", "inf"):
        assert call(tmp_path, "bank", "--R", weight).exit_code == 2
    assert call(tmp_path, "bank", "--Q", "1", "--Q", "2").exit_code == 2  # one output
    assert "--all: only for" in call(tmp_path, "bank", "--all").stderr
    assert "2 weights: expected 1" in call(tmp_path, "bank", "--Q", "1", "--Q", "2").stderr


def test_an_error_of_a_controller_has_its_own_exit_code(tmp_path: Path) -> None:
    assert call(tmp_path, "broken").exit_code == 3


def test_options_of_banks_are_refused_for_tables() -> None:
    for options in (["--output-limits", "0", "1"], ["--Q", "1"], ["--strict"]):
        found = CliRunner().invoke(main, ["check", "trap", *options])
        assert found.exit_code == 2
        assert "bank" in found.stderr


def test_the_figure_shows_costs_and_times() -> None:
    found = check_bank(BANKS["motors"]())
    assert isinstance(found, BankCheck)
    assert repr(found.plot()) == "Plot('Extra cost', 'Mean time to odds of 99:1')"


def test_a_controller_without_an_answer_is_an_error_and_not_an_unstable_loop() -> None:
    silent = PlantMode(([[0.7]], [[1.0]], [[1.0]]), lambda loop: None, process_noise=1.0,
                       sensor_noise=1.0)  # fmt: skip
    with pytest.raises(UnknownAction, match="the controller returned None at step 0"):
        check_bank(Bank([silent, motor(2.0)]))

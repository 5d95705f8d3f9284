"""A bank of experts on a plant: costs on a motor, plants in SI units, and predicted times.

    fixed    a motor whose load and wiring are one of 24 and unknown, 400 steps of 10 ms
    noisy    the same with a sensor noise of 5 rad/s instead of 1

    cost = Σ (setpoint - speed)² + 0.1 u², relative to the controller and filter of the true plant

All agents of a run meet the same motor with the same noise. `drawn` is the control rule, which
draws a mode at each step. `most probable` puts the most probable mode in charge. `weighted` applies
the mean input of all modes, weighted by their probabilities, as classical multiple-model control
does. `self-tuning` is recursive least squares with the same tuning rule.

`plant_units` has the plants in SI units, `bank.check_bank` predicts the time
to distinguish two plants. The limits are requirements, set before the measurements.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol import Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.bank import PI, Bank, PlantMode, check_bank
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table
from bayescontrol.plot.chart import Chart, Panel
from bayescontrol_paper import motor as motors
from bayescontrol_paper.chance import at_most, format_mean, ratio_and_error, share_and_error
from bayescontrol_paper.curves import by_name, by_names, sorted_runs, without_nan
from bayescontrol_paper.motor import Motor, motor_bank
from bayescontrol_paper.plant_units import FALL, Controlled, control, plants
from bayescontrol_paper.settings import Runs, Seed

ORACLE: Final = "true plant"
PROBABLE: Final = "most probable"
DRAWN: Final = "drawn"
WEIGHTED: Final = "weighted"
TUNING: Final = "self-tuning"

#: The constructors of the agents, from the motor.
AGENTS: Final[Mapping[str, Callable[[Motor], Any]]] = {
    ORACLE: lambda motor: motor_bank(motor.noise, [motor.plant]).agent(),
    PROBABLE: lambda motor: motor_bank(motor.noise).agent(choose="most probable"),
    DRAWN: lambda motor: motor_bank(motor.noise).agent(),
    WEIGHTED: lambda motor: motors.WeightedAgent(bank := motor_bank(motor.noise), bank.belief()),
    TUNING: lambda _: motors.SelfTuning(),
}
#: The scenarios of the motor, with the noise of the sensor in rad/s.
MOTORS: Final = {"fixed": 1.0, "noisy": 5.0}
#: The largest cost relative to the true plant's controller.
LIMITS: Final = {PROBABLE: 1.10, DRAWN: 1.15}
#: The largest excess of the cost of the final gain over the optimum, and of a predicted time.
EXCESS: Final = 0.03
TIME_ERROR: Final = 0.1
#: A median of fewer runs decides nothing.
ENOUGH: Final = 20


@dataclass(frozen=True)
class Settings:
    """Settings of `bank`."""

    seed: Seed = 0
    runs: Runs = 50
    steps: Annotated[int, Meta(ge=2, description="steps of the motor")] = 400
    unit_steps: Annotated[int, Meta(ge=100, description="steps of the plants in SI units")] = 10_000
    unit_runs: Annotated[int, Meta(ge=1, description="replicas of the plants in SI units")] = 50
    times: Annotated[int, Meta(ge=2, description="simulated times per pair and replica")] = 20


# -- times to distinguish two plants -----------------------------------------------------------


@cache
def timed_banks() -> Mapping[str, Bank]:
    """Return linear banks of two plants; the first is true and in charge."""

    def first_order(a: float, g: float) -> PlantMode:
        gains = PI(0.2 / g, 0.05 / g)
        return PlantMode(([[a]], [[g]], [[1.0]]), gains, process_noise=0.3, sensor_noise=1.0)

    def oscillator(stiffness: float) -> PlantMode:
        A = np.array([[1.0, 0.1], [-0.1 * stiffness, 0.97]])
        noise: Any = {"process_noise": 0.05, "sensor_noise": 0.1}
        return PlantMode((A, [[0.0], [0.1]], [[1.0, 0.0]]), [[1.0, 1.5]], **noise)

    def two_tanks(valve: float) -> PlantMode:
        A, B = [[0.95, 0.0], [0.04, 0.94]], [[valve, 0.0], [0.0, 0.1]]
        noise: Any = {"process_noise": 0.02, "sensor_noise": [0.1, 0.2]}
        return PlantMode((A, B, np.eye(2)), 2.0 * np.eye(2), **noise)

    return {
        "motor": Bank([first_order(0.7, 4.0), first_order(0.8, 3.0)], setpoint=10.0),
        "oscillator": Bank([oscillator(1.0), oscillator(1.3)], setpoint=1.0),
        "two tanks": Bank([two_tanks(0.1), two_tanks(0.12)], setpoint=[1.0, 2.0]),
    }


def time_to_distinguish(bank: Bank, rng: Stream) -> int:
    """Return the number of steps until the first plant, which is true, is 99 times as probable."""
    # With infinite patience the first mode stays in charge.
    agent, world = bank.agent(choose="most probable", hysteresis=1e300), bank.environment(0)
    for k in range(1, 100_000):
        u = agent.act(rng)
        agent.observe(u, world.respond(u, rng))
        p, q = agent.belief.posterior()
        if p >= 99.0 * q:
            return k
    raise RuntimeError("the plants were not distinguished in 100,000 steps")


def run(settings: Settings, run: int) -> Columns:
    """Record costs on the motor, results in SI units and simulated times of one replica."""
    cost, p_true = np.empty((len(MOTORS), len(AGENTS))), np.empty(len(MOTORS))
    for (row, scenario), (column, agent_name) in product(enumerate(MOTORS), enumerate(AGENTS)):
        motor = motors.draw_motor(scenario, run, settings.steps, seed=settings.seed)
        agent = AGENTS[agent_name](motor)
        interact(agent, motor, settings.steps, seed=settings.seed, run=run)
        cost[row, column] = motor.cost
        if agent_name == DRAWN:
            p_true[row] = agent.belief.posterior()[motors.PLANTS.index(motor.plant)]
    units = np.full((len(plants()), len(Controlled._fields)), np.nan)
    if run < settings.unit_runs:
        units[:] = [control(name, run, settings.unit_steps, settings.seed) for name in plants()]
    times = np.empty((len(timed_banks()), settings.times))
    for (row, (name, bank)), i in product(enumerate(timed_banks().items()), range(settings.times)):
        rng = Stream.named(settings.seed, run, f"{name}: {i}")
        times[row, i] = time_to_distinguish(bank, rng)
    return {"cost": cost, "p_true": p_true, "units": units, "times": times}


# -- claims ------------------------------------------------------------------------------------


class Results:
    """The columns by scenario, agent and plant; the first axis of every array is the run."""

    def __init__(self, columns: Columns) -> None:
        self.cost = by_names(MOTORS, AGENTS, columns["cost"])
        self.p_true = by_name(MOTORS, columns["p_true"])
        self.units = by_names(plants(), Controlled._fields, without_nan(columns["units"]))
        times = by_name(timed_banks(), columns["times"])
        self.times = {name: v.ravel() for name, v in times.items()}


@cache
def predicted_times() -> Mapping[str, float]:
    """Return the predicted number of steps to distinguish the plants of each bank."""
    return {
        name: float(check_bank(bank, odds=99.0, runs=5000).times[0, 0, 1]) / bank.period
        for name, bank in timed_banks().items()
    }


def score(settings: Settings, columns: Columns) -> Score:
    """Make the claims, which hold for the default lengths only, and the tables."""
    results, usual = Results(columns), Settings()
    is_usual = (settings.steps, settings.unit_steps) == (usual.steps, usual.unit_steps)
    return Score(tuple(_claims(results)) if is_usual else (), _tables(results))


def _claims(results: Results) -> Iterator[Claim]:
    fixed = results.cost["fixed"]
    others = ", ".join(
        f"{agent} {ratio_and_error(fixed[agent], fixed[ORACLE])[0]:.3g}"
        for agent in (WEIGHTED, TUNING)
    )
    for name, agent in (("most-probable-cost", PROBABLE), ("drawn-cost", DRAWN)):
        yield at_most(
            name, LIMITS[agent], fixed[agent], fixed[ORACLE],
            f"a motor with one of 24 loads and wirings: cost with the {agent} mode, as a multiple "
            "of that of the true plant's controller",
            f"others: {others}",
        )  # fmt: skip
    identified = results.p_true["noisy"] > 0.5
    yield Claim(
        "noisy-identified",
        "a motor with a noisy sensor: share of runs in which the true plant has more than half of "
        "the probability at the end",
        "ours", ">= 0.95", *share_and_error(identified), bool(identified.mean() >= 0.95),
        f"{int(identified.sum())} of {identified.size} runs", threshold_origin="requirement",
    )  # fmt: skip
    medians = {name: float(np.median(v["excess"])) for name, v in results.units.items()}
    falls = int((results.units["cart-pole"]["largest"] > FALL).sum())
    worst = max(medians.values())
    yield Claim(
        "plant-units",
        "three plants in SI units, default settings: median excess of the cost of the final gain "
        "over the optimum, the worst of the three, without a fall",
        "ours", f"<= {EXCESS:g}", worst, None, worst <= EXCESS and falls == 0,
        ", ".join(f"{name} {v:.2%}" for name, v in medians.items()) + f"; {falls} falls",
        undecided=falls == 0 and len(results.units["motor"]["excess"]) < ENOUGH,
        threshold_origin="requirement",
    )  # fmt: skip
    errors = {n: predicted_times()[n] / t.mean() - 1.0 for n, t in results.times.items()}
    largest = max(map(abs, errors.values()))
    spread = max(t.std() / t.mean() / math.sqrt(t.size) for t in results.times.values())
    yield Claim(
        "predicted-times",
        "linear banks: largest relative difference between the predicted and the simulated mean "
        "time to distinguish two plants",
        "ours", f"<= {TIME_ERROR:g}", largest, float(spread), largest <= TIME_ERROR,
        ", ".join(f"{name} {v:+.1%}" for name, v in errors.items()),
        undecided=abs(largest - TIME_ERROR) < 2.0 * spread, threshold_origin="requirement",
    )  # fmt: skip


def _tables(results: Results) -> tuple[Table, ...]:
    runs, runs_in_units = len(results.p_true["fixed"]), len(results.units["motor"]["excess"])
    return (
        Table(
            "Cost on the motor, relative to the true plant's controller",
            ("agent", *MOTORS),
            tuple(
                (a, *(format_mean(c[a] / c[ORACLE].mean()) for c in results.cost.values()))
                for a in AGENTS
            ),
            f"means of {runs} runs with their standard errors; all agents met the same motors",
        ),
        Table(
            "Plants in SI units",
            ("plant", "excess of the final gain, median", "largest", "average cost / optimum",
             "steps until the scale was known, median"),
            tuple(
                (name, f"{np.median(v['excess']):.2%}", f"{v['excess'].max():.2%}",
                 format_mean(v["average"]), f"{np.median(v['search']):.0f}")
                for name, v in results.units.items()
            ),
            f"{runs_in_units} runs",
        ),
        Table(
            "Steps to distinguish two plants",
            ("bank", "predicted", "simulated"),
            tuple(
                (name, f"{predicted_times()[name]:.1f}", format_mean(t))
                for name, t in results.times.items()
            ),
            "until the true plant, whose controller is in charge, is 99 times as probable",
        ),
    )  # fmt: skip


# -- figures -----------------------------------------------------------------------------------


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Draw the costs of all runs on both motors."""
    results = Results(columns)
    return {
        "cost": Chart(
            "A motor with an unknown load and wiring",
            [_cost_panel(results.cost[name], noise) for name, noise in MOTORS.items()],
            "Lower is better; 1 is the controller of the true plant. Each point is a run; the runs "
            "of each agent are sorted. The mean of the inputs of all modes is no controller of any "
            "plant until one mode is almost certain.",
            columns=2, note=f"{settings.runs} runs of {settings.steps} steps",
        )
    }  # fmt: skip


def _cost_panel(cost: Mapping[str, FloatArray], noise: float) -> Panel:
    ratios = {agent: cost[agent] / cost[ORACLE] for agent in AGENTS if agent != ORACLE}
    title, ylabel = f"Sensor noise {noise:g} rad/s", "cost / cost with the true plant"
    return sorted_runs(ratios, title, ylabel, yscale="log2")


experiment = Experiment(
    name="bank",
    summary="a bank of experts on a plant: costs on a motor, plants in SI units, predicted times",
    settings=Settings, quick=Settings(runs=8, unit_runs=1, times=10),
    full=Settings(runs=200, unit_runs=50, times=20),
    run=run, score=score, figures=draw,
    full_only=("drawn-cost", "plant-units", "predicted-times"),
)  # fmt: skip

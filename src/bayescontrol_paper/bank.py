"""A bank of experts on a plant: costs on a motor, plants in SI units, and predicted times.

    fixed    a motor whose load and wiring are one of 24 and unknown, 400 steps of 10 ms
    noisy    the same with a sensor noise of 5 rad/s instead of 1

    cost = Σ (setpoint - speed)² + 0.1 u², relative to the controller and filter of the true plant

All agents of a run meet the same motor with the same noise. `drawn` is the control rule, which
draws a mode at each step. `most probable` puts the most probable mode in charge. `weighted` applies
the mean input of all modes, weighted by their probabilities, as classical multiple-model control
does. `self-tuning` is recursive least squares with the same tuning rule.

`bank.check_bank` predicts the time to distinguish two plants. The limits are requirements, set
before the measurements. Three plants in SI units are controlled with default settings:

    motor          position, speed and current of a DC motor, every 10 ms; marginally stable
    cart-pole      linearised about the upright position, every 20 ms; unstable, |u| ≤ 20 N
    three masses   in a row, joined by springs, with two forces, every 50 ms; lightly damped

The parameters are those of common textbook models in SI units. Noise deviations are between 0.001
and 0.1, so a prior of unit noise is wrong by up to six orders of magnitude in the variance. The
agent knows Q and R; for the cart-pole also the limits of the force and a backup gain, the optimal
gain of a cart-pole whose masses and length are 30 % too large. A fall is |angle| > 0.5 rad.

    excess     J(K)/J* - 1 of the gain that the agent applies at the last step, exact
    of_mean    the same of the gain of the posterior mean
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from msgspec import Meta

from bayescontrol import Stream, interact
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.bank import PI, Bank, PlantMode, check_bank
from bayescontrol.bank.state_space import sampled
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.lqr import LinearQuadratic, LinearSystem
from bayescontrol.plot.chart import Panel
from bayescontrol_paper import _claims as claims
from bayescontrol_paper import _motor as motors
from bayescontrol_paper._figures import Figure, Figures, sorted_runs
from bayescontrol_paper._motor import Motor, motor_bank

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
#: The largest allowed excess of the cost of the final gain over the optimum.
EXCESS: Final = 0.03
#: The largest allowed relative error of a predicted time.
TIME_ERROR: Final = 0.1
#: The required share of runs that identify the motor with a noisy sensor.
IDENTIFIED: Final = 0.95
#: Two plants are distinguished when the true one is this many times as probable as the other.
ODDS: Final = 99.0
#: With fewer runs the claim about a median is undecided.
ENOUGH: Final = 20


@dataclass(frozen=True)
class Settings(claims.Size):
    """Settings of `bank`."""

    runs: claims.Runs = 50
    steps: Annotated[int, Meta(ge=2, description="steps of the motor")] = 400
    unit_steps: Annotated[int, Meta(ge=100, description="steps of the plants in SI units")] = 10_000
    unit_runs: Annotated[int, Meta(ge=1, description="replicas of the plants in SI units")] = 50
    times: Annotated[int, Meta(ge=2, description="simulated times per pair and replica")] = 20


# -- plants in SI units ------------------------------------------------------------------------

#: The angle of the pole in rad that counts as a fall.
FALL: Final = 0.5
#: The largest force on the cart, in N.
FORCE: Final = 20.0


def _sampled(A: ArrayLike, B: ArrayLike, period: float) -> list[FloatArray]:
    """Return A and B in discrete time, for an input that is constant between samples."""
    n, inputs = np.shape(B)
    whole_state = np.eye(n), np.zeros((n, inputs))  # C and D, which do not matter here
    return sampled((np.array(A), np.array(B), *whole_state), period)[:2]


def motor() -> LinearSystem:
    """Return the motor: rad, rad/s, A and V."""
    A, B = _sampled([[0, 1, 0], [0, -2, 20], [0, -5, -50]], [[0], [0], [50]], 0.01)
    Q, W = np.diag([10, 0.1, 0.01]), np.diag([1e-4, 1e-2, 1e-2])
    return LinearSystem(A, B, Q, [[0.1]], W, name="motor")


def cart_pole(scale: float = 1.0) -> LinearSystem:
    """Return the cart-pole, m, m/s, rad, rad/s and N; `scale` multiplies masses and length."""
    g, length, cart, pole, friction = 9.81, 0.5 * scale, 1.0 * scale, 0.2 * scale, 0.1
    dynamics = np.eye(4, k=1)  # position and angle are the integrals of the speeds
    dynamics[1] = 0, -friction / cart, pole * g / cart, 0
    dynamics[3] = 0, -friction / (cart * length), (cart + pole) * g / (cart * length), 0
    A, B = _sampled(dynamics, [[0.0], [1 / cart], [0.0], [1 / (cart * length)]], 0.02)
    Q, W = np.diag([1, 0.1, 10, 0.1]), np.diag([1e-6, 1e-4, 1e-6, 1e-4])
    return LinearSystem(A, B, Q, [[0.1]], W, name="cart-pole")


def three_masses() -> LinearSystem:
    """Return three masses of 1 kg: m, m/s and N."""
    springs = 50.0 * np.array([[2, -1, 0], [-1, 2, -1], [0, -1, 1]])
    B = np.zeros((6, 2))
    B[3, 0] = B[5, 1] = 1.0
    dynamics = np.block([[np.zeros((3, 3)), np.eye(3)], [-springs, -0.01 * springs]])
    A, B = _sampled(dynamics, B, 0.05)
    W = np.diag([1e-5] * 3 + [1e-2] * 3)
    return LinearSystem(A, B, np.eye(6), 0.1 * np.eye(2), W, name="three masses")


@cache
def plants() -> Mapping[str, tuple[LinearSystem, dict[str, Any]]]:
    """Return each plant with the settings of its agent besides Q and R."""
    balanced = {"backup": cart_pole(1.3).K, "limits": (-FORCE, FORCE)}
    return {
        "motor": (motor(), {}),
        "cart-pole": (cart_pole(), balanced),
        "three masses": (three_masses(), {}),
    }


class Controlled(NamedTuple):
    """The result of one run."""

    excess: float  #: J(K)/J* - 1 of the gain that is applied at the last step
    of_mean: float  #: the same of the gain of the posterior mean; ∞ if it has none
    average: float  #: average cost per step of the whole run, divided by J*
    search: int  #: the number of steps until the scale was known
    refused: int  #: how often a drawn gain was replaced
    largest: float  #: the largest |angle| of the cart-pole, 0 for the other plants

    @property
    def fell(self) -> bool:
        """Whether the pole fell."""
        return self.largest > FALL


def control(name: str, run: int, steps: int = 10_000, seed: int = 0) -> Controlled:
    """Control the plant of this name for some steps, with default settings; measure the result.

    >>> control("motor", run=0, steps=500).excess < 1.0
    True
    """
    system, settings = plants()[name]
    problem = LinearQuadratic(system.Q, system.R, **settings)
    agent, plant = problem.agent(), problem.environment(system)
    record = interact(agent, plant, steps, seed=seed, run=run)
    mean = agent.belief.certain()  # the system of the posterior mean, None if it has no gain
    angles = record.observations[:, 2] if name == "cart-pole" else np.zeros(1)
    return Controlled(
        excess=system.cost(agent.gain) / system.best_cost - 1.0,
        of_mean=np.inf if mean is None else system.cost(mean.K) / system.best_cost - 1.0,
        average=float(plant.costs(record).mean()) / system.best_cost,
        search=agent.belief.search_steps,
        refused=agent.belief.refused,
        largest=float(np.abs(angles).max()),
    )


# -- times to distinguish two plants -----------------------------------------------------------


@cache
def timed_banks() -> Mapping[str, Bank]:
    """Return linear banks of two plants; the first is true and in charge."""

    def first_order(a: float, g: float) -> PlantMode:
        """Return a motor with the speed w' = a w + g u and a PI controller."""
        gains = PI(0.2 / g, 0.05 / g)
        return PlantMode(([[a]], [[g]], [[1.0]]), gains, process_noise=0.3, sensor_noise=1.0)

    def oscillator(stiffness: float) -> PlantMode:
        """Return a mass on a spring whose position is measured, with a state feedback."""
        A = np.array([[1.0, 0.1], [-0.1 * stiffness, 0.97]])
        plant, gain = (A, [[0.0], [0.1]], [[1.0, 0.0]]), [[1.0, 1.5]]
        return PlantMode(plant, gain, process_noise=0.05, sensor_noise=0.1)

    def two_tanks(valve: float) -> PlantMode:
        """Return two tanks, the first of which feeds the second; `valve` is its input gain."""
        A, B = [[0.95, 0.0], [0.04, 0.94]], [[valve, 0.0], [0.0, 0.1]]
        plant, gain = (A, B, np.eye(2)), 2.0 * np.eye(2)
        return PlantMode(plant, gain, process_noise=0.02, sensor_noise=[0.1, 0.2])

    return {
        "motor": Bank([first_order(0.7, 4.0), first_order(0.8, 3.0)], setpoint=10.0),
        "oscillator": Bank([oscillator(1.0), oscillator(1.3)], setpoint=1.0),
        "two tanks": Bank([two_tanks(0.1), two_tanks(0.12)], setpoint=[1.0, 2.0]),
    }


def time_to_distinguish(bank: Bank, rng: Stream) -> int:
    """Return the number of steps until the first plant, which is true, is 99 times as probable."""
    # A hysteresis that no evidence overcomes: the first mode stays in charge.
    agent, world = bank.agent(choose="most probable", hysteresis=1e300), bank.environment(0)
    for k in range(1, 100_000):
        u = agent.act(rng)
        agent.observe(u, world.respond(u, rng))
        p_true, p_other = agent.belief.posterior()
        if p_true >= ODDS * p_other:
            return k
    raise RuntimeError("the plants were not distinguished in 100,000 steps")


def run(settings: Settings, run: int) -> Columns:
    """Record costs on the motor, results in SI units and simulated times of one replica.

    Results in SI units are NaN from run `unit_runs` on.
    """
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
        self.cost = claims.by_names(MOTORS, AGENTS, columns["cost"])
        self.p_true = claims.by_name(MOTORS, columns["p_true"])
        self.units = claims.by_names(
            plants(), Controlled._fields, claims.without_nan(columns["units"])
        )
        times = claims.by_name(timed_banks(), columns["times"])
        #: All simulated times of each bank, in one row.
        self.times = {name: by_run.ravel() for name, by_run in times.items()}


@cache
def predicted_times() -> Mapping[str, float]:
    """Return the predicted number of steps to distinguish the plants of each bank."""
    # times[in charge, true, other] are in seconds; plant 0 is true, and its mode in charge.
    return {
        name: float(check_bank(bank, odds=ODDS, runs=5000).times[0, 0, 1]) / bank.period
        for name, bank in timed_banks().items()
    }


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims, which hold for the default lengths only."""
    results, usual = Results(columns), Settings()
    if (settings.steps, settings.unit_steps) != (usual.steps, usual.unit_steps):
        return
    fixed = results.cost["fixed"]
    others = ", ".join(
        f"{agent} {claims.ratio_and_error(fixed[agent], fixed[ORACLE])[0]:.3g}"
        for agent in (WEIGHTED, TUNING)
    )
    for name, agent in (("most-probable-cost", PROBABLE), ("drawn-cost", DRAWN)):
        yield claims.at_most(
            name, f"a motor with one of 24 loads and wirings: cost with the {agent} mode, as a "
            "multiple of that of the true plant's controller",
            limit=LIMITS[agent], values=fixed[agent], baseline=fixed[ORACLE],
            reason=f"others: {others}",
        )  # fmt: skip
    identified = results.p_true["noisy"] > 0.5  # by run
    share, error = claims.share_and_error(identified)
    yield Claim(
        "noisy-identified", "a motor with a noisy sensor: share of runs in which the true plant "
        "has more than half of the probability at the end",
        source="ours", expected=f">= {IDENTIFIED:g}", ours=share, error=error,
        holds=share >= IDENTIFIED, reason=f"{int(identified.sum())} of {identified.size} runs",
        threshold_origin="requirement",
    )  # fmt: skip
    units = results.units
    medians = {plant: float(np.median(units[plant]["excess"])) for plant in units}
    falls = int((units["cart-pole"]["largest"] > FALL).sum())
    worst = max(medians.values())
    yield Claim(
        "plant-units", "three plants in SI units, default settings: median excess of the cost of "
        "the final gain over the optimum, the worst of the three, without a fall",
        source="ours", expected=f"<= {EXCESS:g}", ours=worst, holds=worst <= EXCESS and falls == 0,
        reason=", ".join(f"{plant} {median:.2%}" for plant, median in medians.items())
        + f"; {falls} falls", undecided=falls == 0 and len(units["motor"]["excess"]) < ENOUGH,
        threshold_origin="requirement",
    )  # fmt: skip
    predicted, simulated = predicted_times(), results.times
    time_errors = {bank: predicted[bank] / simulated[bank].mean() - 1.0 for bank in predicted}
    largest = max(map(abs, time_errors.values()))
    # The largest relative standard error of the simulated means.
    spread = max(t.std() / t.mean() / math.sqrt(t.size) for t in simulated.values())
    yield Claim(
        "predicted-times", "linear banks: largest relative difference between the predicted and "
        "the simulated mean time to distinguish two plants",
        source="ours", expected=f"<= {TIME_ERROR:g}", ours=largest, error=float(spread),
        holds=largest <= TIME_ERROR,
        reason=", ".join(f"{bank} {error:+.1%}" for bank, error in time_errors.items()),
        undecided=abs(largest - TIME_ERROR) < 2.0 * spread, threshold_origin="requirement",
    )  # fmt: skip


def _motor_costs_table(settings: Settings, columns: Columns) -> claims.Rows:
    """Cost on the motor, relative to the true plant's controller

    means of {runs} runs with their standard errors; all agents met the same motors
    """
    costs = Results(columns).cost.values()  # one mapping by agent for each scenario
    ratios = {agent: [cost[agent] / cost[ORACLE].mean() for cost in costs] for agent in AGENTS}
    rows = [(agent, *map(claims.format_mean, runs)) for agent, runs in ratios.items()]
    return claims.Rows(f"agent | {' | '.join(MOTORS)}", rows)


def _si_plants_table(settings: Settings, columns: Columns) -> claims.Rows:
    """Plants in SI units

    {measured} runs
    """
    units = Results(columns).units
    rows = []
    for plant, runs in units.items():
        excesses = f"{np.median(runs['excess']):.2%}", f"{runs['excess'].max():.2%}"
        average, search = claims.format_mean(runs["average"]), f"{np.median(runs['search']):.0f}"
        rows.append((plant, *excesses, average, search))
    header = "plant | excess of the final gain, median | largest | average cost / optimum"
    measured = {"measured": len(units["motor"]["excess"])}
    return claims.Rows(f"{header} | steps until the scale was known, median", rows, measured)


def _times_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Steps to distinguish two plants

    until the true plant, whose controller is in charge, is 99 times as probable
    """
    yield "bank | predicted | simulated"
    for bank, simulated in Results(columns).times.items():
        yield bank, f"{predicted_times()[bank]:.1f}", claims.format_mean(simulated)


def _cost_figure(settings: Settings, columns: Columns) -> Figure:
    """A motor with an unknown load and wiring

    Lower is better; 1 is the controller of the true plant. Each point is a run; the runs of each
    agent are sorted. The mean of the inputs of all modes is no controller of any plant until one
    mode is almost certain.

    {settings.runs} runs of {settings.steps} steps
    """
    cost = Results(columns).cost
    return Figure([_cost_panel(cost[name], noise) for name, noise in MOTORS.items()])


def _cost_panel(cost: Mapping[str, FloatArray], noise: float) -> Panel:
    """Draw the costs with one sensor noise, run by run relative to the true plant's controller."""
    ratios = {agent: cost[agent] / cost[ORACLE] for agent in AGENTS if agent != ORACLE}
    title, ylabel = f"Sensor noise {noise:g} rad/s", "cost / cost with the true plant"
    return sorted_runs(ratios, title, ylabel, yscale="log2")


experiment: Final = Experiment(
    "bank", "a bank of experts on a plant: costs on a motor, plants in SI units, predicted times",
    Settings, quick=Settings(runs=8, unit_runs=1, times=10),
    full=Settings(runs=200, unit_runs=50, times=20), run=run,
    score=claims.Scored(_claims, _motor_costs_table, _si_plants_table, _times_table),
    figures=Figures(_cost_figure),
    full_only=("drawn-cost", "plant-units", "predicted-times"),
)  # fmt: skip

"""Worlds that change: the rule with a belief about change points, and agents that know less.

    fast       10 Bernoulli arms, all biases drawn anew with probability 0.002 per step
    slow       the same with probability 0.0002
    no change  the same without changes: what does it cost to expect them?
    collapse   biases 0.9, 0.6, 0.5; in the middle of the run the best arm falls to 0.1
    contexts   5 arms with linear contexts, whose weights jump with probability 0.002 per step
    plant      a linear plant whose input gain jumps, sign included, with probability 0.005 per step
    motor      a motor with a noisy sensor, whose load and wiring change every 1,000 steps; 24 modes

    regret R_t = Σ_{τ≤t} (max_j m_j(τ) - m_{a_τ}(τ))      m(τ): the biases at step τ
    cost of the plant: the mean of xᵀQx + uᵀRu, relative to the mean optimum of its systems

All agents of a run meet the same world with the same random numbers. The rule uses the default
options of `problem.changing()` everywhere. It is compared with the rule for static worlds, with
KL-UCB, and in linear worlds with the best fixed forgetting factor. Costs of the plant are compared
by their logarithms, since an agent that misses a jump can lose control; they are cut at 1e9.

At the motor the rule over interacting models, with an unknown rate of changes, is compared with
interacting models that know the rate and use the most probable mode (`motor`).

The thresholds of regret are requirements, set before the measurements. Other programs reach, on
average, at fast and slow changes: ActivePTW 219 ± 6 and 441, KL-UCB 194 ± 6 and 1,068, Thompson
sampling 371 ± 10 and 1,974. `benchmarks/arena` has partition tree weighting on the worlds of this
experiment. A claim about a mean is undecided if the threshold is within two standard errors.

The forgetting factors were chosen among 11 from 0.8 to 0.995 on seed 1000, 60 runs:

    python -m benchmarks.arena.changing --tune --runs 60

    contexts: regret    219 ± 8 at 0.97, 215 ± 11 at 0.98, 226 ± 13 at 0.985; change points 104 ± 5
    plant: log₁₀ cost   1.59 ± 0.21 at 0.97, 1.54 ± 0.20 at 0.98, 2.0 ± 0.3 at 0.985; 0.84 ± 0.12

The claim about the hazard has a pilot on seed 1000 too,

    bayescontrol run changing --seed 1000 --runs 200 --set linear_runs=1

in which 196 of 200 runs have both means of ln h within a factor of ten of the rate. The others are
slow worlds, which change four times on average and some of them never.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from msgspec import Meta

from bayescontrol import BernoulliBandit, ControlRule, LinearBandit, Stream, interact, metrics
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.baselines import KLUCB, ForgettingLinearBelief, ForgettingSystemBelief
from bayescontrol.beliefs.changing_problem import ChangingEnvironment
from bayescontrol.errors import BadEvidence, NotStabilisable, UnknownAction, counted
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.lqr import LinearPlant, LinearQuadratic, LinearSystem, SystemPrior
from bayescontrol.plot.chart import Panel, Series
from bayescontrol.statistics import Comparison, compare_pairs
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._figures import Figure, Figures, sorted_runs
from bayescontrol_paper._motor import RATE, interacting_agent, motor_cost

RULE: Final = "control rule, changing"
STATIC: Final = "control rule, static"
KL_UCB: Final = "KL-UCB"
FORGETTING: Final = "control rule, forgetting"

FAST: Final = "fast"
SLOW: Final = "slow"
STILL: Final = "no change"
COLLAPSE: Final = "collapse"
CONTEXTS: Final = "contexts"
PLANT: Final = "plant"

#: Probabilities of a change per step.
RATES: Final = {FAST: 0.002, SLOW: 0.0002, STILL: 0.0, CONTEXTS: 0.002, PLANT: 0.005}
#: The best fixed factors of forgetting, from the pilot.
FACTORS: Final = {CONTEXTS: 0.98, PLANT: 0.98}


@dataclass(frozen=True)
class Settings(claims.Size):
    """Settings of `changing`."""

    runs: claims.Runs = 200
    fast_steps: Annotated[int, Meta(ge=2, description="pulls with fast changes")] = 2_500
    slow_steps: Annotated[int, Meta(ge=2, description="pulls with slow changes")] = 20_000
    still_steps: Annotated[int, Meta(ge=2, description="pulls without a change")] = 1_000
    collapse_steps: Annotated[int, Meta(ge=2, description="pulls with a collapse")] = 6_000
    context_steps: Annotated[int, Meta(ge=2, description="pulls with contexts")] = 1_000
    plant_steps: Annotated[int, Meta(ge=2, description="steps of the plant")] = 600
    linear_runs: Annotated[int, Meta(ge=1, description="replicas of the linear worlds")] = 40
    motor_steps: Annotated[int, Meta(ge=2, description="steps of the motor")] = 6_000
    motor_runs: Annotated[int, Meta(ge=1, description="replicas of the motor")] = 10

    def steps(self, world: str) -> int:
        """Return the number of steps in a world: the setting that is named after it."""
        name = {STILL: "still", CONTEXTS: "context"}.get(world, world)
        return int(getattr(self, f"{name}_steps"))


# -- bandits -----------------------------------------------------------------------------------

Maker = Callable[[BernoulliBandit, int], Any]

#: The constructors of the agents for bandits, from the problem and the number of steps.
AGENTS: Final[Mapping[str, Maker]] = {
    RULE: lambda bandit, _: bandit.changing().agent(),
    STATIC: lambda bandit, _: bandit.agent(),
    KL_UCB: lambda bandit, _: KLUCB(list(bandit.labels)),
}
BANDITS: Final = (FAST, SLOW, STILL, COLLAPSE)
#: The number of steps at which the regret is stored.
POINTS: Final = 50


class Played(NamedTuple):
    """The regret of a run at the checkpoints, and the agent after it."""

    regret: FloatArray
    agent: Any


def checkpoints(steps: int) -> IntArray:
    """Return the steps at which the regret is stored, evenly spaced."""
    return np.asarray(np.ceil(np.arange(1, POINTS + 1) * (steps / POINTS)), np.int64)


def draw_bandit(settings: Settings, run: int, name: str) -> tuple[BernoulliBandit, Any]:
    """Return the problem and the world of one run."""
    steps = settings.steps(name)
    if name == COLLAPSE:
        bandit = BernoulliBandit(3)
        changes = {steps // 2: [0.1, 0.6, 0.5]}
        return bandit, bandit.changing().environment([0.9, 0.6, 0.5], changes=changes)
    bandit, stream = BernoulliBandit(10), Stream.named(settings.seed, run, f"{name}: world")
    return bandit, bandit.changing().draw(stream, rate=RATES[name], steps=steps)


def play(settings: Settings, run: int, name: str, makers: Mapping[str, Maker]) -> dict[str, Played]:
    """Let each agent play the same world with the same random numbers."""
    bandit, world = draw_bandit(settings, run, name)
    steps, played = settings.steps(name), {}
    for label, make in makers.items():
        agent, copied = make(bandit, steps), deepcopy(world)
        streams = claims.named_streams(
            settings.seed, run, f"{name}: {label}", f"{name}: environment"
        )
        regret = metrics.regret(interact(agent, copied, steps, streams=streams), copied)
        played[label] = Played(regret[checkpoints(steps) - 1], agent)
    return played


def mean_log_hazard(belief: Any) -> float:
    """Return E[log₁₀ h | âo_<t].

    >>> round(mean_log_hazard(BernoulliBandit(2).changing().belief()), 12)     # 10⁻¹ … 10⁻⁶
    -3.5
    """
    return float(sum(p * math.log10(h) for h, p in belief.hazards().items()))


# -- linear worlds -----------------------------------------------------------------------------

LINEAR: Final = (CONTEXTS, PLANT)
LINEAR_AGENTS: Final = (RULE, STATIC, FORGETTING)
#: Costs above this, relative to the optimum, count as this.
LARGEST_COST: Final = 1e9

_CONTEXTUAL: Final = LinearBandit(5, features=3, sd=0.5, prior=(0, 1))
_STATE_COST, _INPUT_COST, _NOISE = np.eye(2), 0.1 * np.eye(1), np.eye(2)
_QUADRATIC: Final = LinearQuadratic(_STATE_COST, _INPUT_COST, noise=_NOISE, prior=SystemPrior())


def linear_agent(problem: Any, label: str, factor: float, *start: Any) -> Any:
    """Return an agent for one of the linear worlds; all of them draw a mode at each step.

    `label` is one of LINEAR_AGENTS, `factor` that of forgetting, and `start` the first context of a
    bandit. The three differ only in their beliefs.
    """
    static = problem.agent(*start)
    if label == STATIC:
        return static
    kind = ForgettingLinearBelief if isinstance(problem, LinearBandit) else ForgettingSystemBelief
    belief = problem.changing().belief() if label == RULE else kind(problem, forgetting=factor)
    return ControlRule(belief, static.x, static.advance, static.schedule)


def play_contexts(settings: Settings, run: int, label: str, factor: float) -> float:
    """Return the regret of an agent whose contextual arms jump."""
    steps, stream = settings.context_steps, Stream.named(settings.seed, run, "contexts: world")
    world = _CONTEXTUAL.changing().draw(stream, rate=RATES[CONTEXTS], steps=steps)
    start = world.start
    streams = claims.named_streams(settings.seed, run, "contexts: agent", "contexts: environment")
    agent = linear_agent(_CONTEXTUAL, label, factor, start)
    record = interact(agent, world, steps, streams=streams)
    return float(metrics.regret(record, world, start)[-1])


def draw_systems(settings: Settings, run: int) -> dict[int, LinearSystem]:
    """Return the systems of a plant by their first step: a cart whose input gain jumps.

    The gain has a size between 0.5 and 1.5 and any sign.
    """
    stream, systems = Stream.named(settings.seed, run, "plant: world"), {}
    for t in range(settings.plant_steps):
        if t == 0 or stream.uniform() < RATES[PLANT]:
            gain = (0.5 + stream.uniform()) * (1.0 if stream.uniform() < 0.5 else -1.0)
            A, B = [[1.0, 0.2], [0.0, 0.9]], [[0.0], [gain]]
            systems[t] = LinearSystem(A, B, _STATE_COST, _INPUT_COST, _NOISE)
    return systems


def play_plant(settings: Settings, run: int, label: str, factor: float) -> float:
    """Return the cost of an agent on a plant that jumps, relative to the optimum.

    It is at most LARGEST_COST, and equal to it if the agent loses control.
    """
    systems, agent = draw_systems(settings, run), linear_agent(_QUADRATIC, label, factor)
    plant = ChangingEnvironment({t: LinearPlant(system) for t, system in systems.items()})
    streams = claims.named_streams(settings.seed, run, "plant: agent", "plant: environment")
    optimum = float(np.mean([system.best_cost for system in systems.values()]))
    try:
        record = interact(agent, plant, settings.plant_steps, streams=streams)
    except (BadEvidence, UnknownAction, NotStabilisable):  # the agent has lost control
        return LARGEST_COST
    return min(float(plant.costs(record).mean()) / optimum, LARGEST_COST)


PLAY_LINEAR: Final = {CONTEXTS: play_contexts, PLANT: play_plant}


def run(settings: Settings, run: int) -> Columns:
    """Record the regret of all agents, the hazards learned, the linear worlds and the motor.

    The columns `linear` and `motor` are NaN from run `linear_runs` and `motor_runs` on.
    """
    played = {name: play(settings, run, name, AGENTS) for name in BANDITS}
    linear, motor = np.full((len(LINEAR), len(LINEAR_AGENTS)), np.nan), np.full(2, np.nan)
    if run < settings.linear_runs:
        for k, (name, play_one) in enumerate(PLAY_LINEAR.items()):
            linear[k] = [play_one(settings, run, a, FACTORS[name]) for a in LINEAR_AGENTS]
    if run < settings.motor_runs:
        makers = interacting_agent, partial(interacting_agent, rates=RATE, choose="most probable")
        steps, seed = settings.motor_steps, settings.seed
        motor[:] = [motor_cost(make, "sign", run, steps, seed=seed) for make in makers]
    log_hazard = [mean_log_hazard(played[name][RULE].agent.belief) for name in (FAST, SLOW)]
    return {
        "regret": np.array([[played[name][a].regret for a in AGENTS] for name in BANDITS]),
        "log_hazard": np.array(log_hazard),
        "linear": linear,
        "motor": motor,
    }


# -- claims ------------------------------------------------------------------------------------


class Results:
    """The columns by world and agent; the first axis of every array is the run."""

    def __init__(self, settings: Settings, columns: Columns) -> None:
        self.settings = settings
        #: The regret at the checkpoints.
        self.regret = claims.by_names(BANDITS, AGENTS, columns["regret"])
        self.log_hazard = claims.by_name((FAST, SLOW), columns["log_hazard"])
        #: The regret with contexts, and log₁₀ of the cost of the plant.
        self.linear = claims.by_names(LINEAR, LINEAR_AGENTS, claims.without_nan(columns["linear"]))
        self.linear[PLANT] = {a: np.log10(cost) for a, cost in self.linear[PLANT].items()}
        #: The cost of the motor by the rule, and by interacting models that know the rate.
        self.motor = claims.without_nan(columns["motor"]).T

    def total(self, world: str, agent: str) -> FloatArray:
        """Return the regret at the end."""
        return np.asarray(self.regret[world][agent][:, -1])


#: By claim: the world, the mean regret that is allowed, and what other programs reach.
_REGRET_LIMITS: Final = {
    "fast-changes": (FAST, 165.0, "ActivePTW 219 ± 6, KL-UCB 194 ± 6, Thompson 371 ± 10"),
    "slow-changes": (SLOW, 300.0, "ActivePTW 441, KL-UCB 1,068, Thompson 1,974"),
}
#: By claim: the world, the largest regret relative to that of the static rule, and when.
_RATIO_LIMITS: Final = {
    "no-change-price": (STILL, 1.25, "without a change"),
    "collapse": (COLLAPSE, 0.1, "if the best of three arms collapses half-way"),
}
#: The largest cost of the motor relative to that of interacting models with the known rate.
_MOTOR_LIMIT: Final = 1.05
#: Runs of the pilot in which both hazards were within a factor of ten, and all its runs.
_HAZARD_PILOT: Final = (196, 200)
#: False-alarm rate of the claim about the hazard.
_FALSE_ALARM_RATE: Final = 0.01


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make the claims, which hold for the default lengths only."""
    sizes = ("seed", "runs", "linear_runs", "motor_runs")
    if settings != replace(Settings(), **{name: getattr(settings, name) for name in sizes}):
        return
    results, steps = Results(settings, columns), settings.steps
    for name, (world, limit, others) in _REGRET_LIMITS.items():
        yield claims.at_most(
            name, f"10 arms, all biases drawn anew with probability {RATES[world]:g} per step: "
            f"mean regret after {steps(world):,} steps",
            limit=limit, values=results.total(world, RULE), baseline=None,
            reason=f"other programs: {others}",
            origin="requirement, set below the means of other programs",
        )  # fmt: skip
    for name, (world, share, when) in _RATIO_LIMITS.items():
        rule, static = results.total(world, RULE), results.total(world, STATIC)
        yield claims.at_most(
            name, f"mean regret {when}, after {steps(world):,} steps, as a multiple of that of the "
            "static rule",
            limit=share, values=rule, baseline=static,
            reason=f"{claims.format_mean(rule)}, static rule {claims.format_mean(static)}",
        )  # fmt: skip
    yield _linear_claim(results)
    yield _hazard_claim(results)
    rule, known = results.motor
    yield claims.at_most(
        "motor", "a motor whose load and wiring change: cost of the rule with an unknown rate, as "
        "a multiple of the cost of interacting models that know the rate",
        limit=_MOTOR_LIMIT, values=rule, baseline=known,
        reason=f"{counted(rule.size, 'run')} of {steps('motor'):,} steps",
    )  # fmt: skip


def _linear_claim(results: Results) -> Claim:
    """Compare the rule with both others in both linear worlds.

    Nothing is compared if there is only one run. The claim is undecided if some differences are not
    significant and the rule loses none.
    """
    compared = list[Comparison]()
    if len(results.linear[PLANT][RULE]) > 1:
        for values in results.linear.values():
            compared += compare_pairs(values, baseline=RULE, higher_is_better=False)
    verdicts = [comparison.verdict for comparison in compared]  # on the other agent
    won = verdicts.count("worse")
    return Claim(
        "linear-jumps",
        "contexts whose weights jump, and a plant that jumps: in how many of four comparisons the "
        "rule is better than the static rule and than the best fixed forgetting factor",
        source="ours", expected=4, ours=won, holds=won == 4,
        reason=" ".join(comparison.sentence for comparison in compared) or "there is only one run",
        undecided=won < 4 and "better" not in verdicts, threshold_origin="theory: paired sign "
        "flips in each world, at 5 % after Holm's correction",
    )  # fmt: skip


def _hazard_claim(results: Results) -> Claim:
    """Claim that both hazards are learned: in enough runs both means of log₁₀ h are off by ≤ 1."""
    means, (hits, runs) = results.log_hazard, _HAZARD_PILOT
    least = claims.least_successes(results.settings.runs, _HAZARD_PILOT, _FALSE_ALARM_RATE)
    errors = [np.abs(by_run - math.log10(RATES[world])) for world, by_run in means.items()]
    mean_texts = {world: claims.format_mean(by_run) for world, by_run in means.items()}
    near = np.max(errors, axis=0) <= 1.0
    share, error = claims.share_and_error(near)
    return Claim(
        "hazard-learned", "share of runs in which the posterior mean of ln h is within a factor of "
        "ten of the true rate, after fast and after slow changes",
        source="ours", expected=f">= {least / near.size:.3g}", ours=share, error=error,
        holds=bool(near.sum() >= least),
        reason=", ".join(f"{world}: log₁₀ h = {text}" for world, text in mean_texts.items()),
        threshold_origin=f"pilot on seed 1000: {hits} of {runs} runs (false alarms: 1 in 100)",
    )  # fmt: skip


def _regret_table(settings: Settings, columns: Columns) -> claims.Rows:
    """Bandits: regret at the end

    means of {settings.runs:,} runs with their standard errors; all agents met the same worlds
    """
    total = Results(settings, columns).total
    totals = {agent: [total(world, agent) for world in BANDITS] for agent in AGENTS}
    rows = [(agent, *map(claims.format_mean, runs)) for agent, runs in totals.items()]
    steps = " | ".join(f"{name}, {settings.steps(name):,} steps" for name in BANDITS)
    return claims.Rows(f"agent | {steps}", rows)


def _linear_table(settings: Settings, columns: Columns) -> claims.Rows:
    """Linear worlds that jump

    means of {measured:,} runs with their standard errors
    """
    linear = Results(settings, columns).linear
    factors = {FORGETTING: ", ".join(f"{factor:g}" for factor in FACTORS.values())}
    rows = []
    for agent in LINEAR_AGENTS:
        means = (claims.format_mean(linear[world][agent]) for world in LINEAR)
        rows.append((agent, *means, factors.get(agent, "")))
    header = "agent | contexts: regret | plant: log₁₀ of cost / optimum | forgetting factors"
    return claims.Rows(header, rows, {"measured": len(linear[PLANT][RULE])})


# -- figures -----------------------------------------------------------------------------------


def _regret_figure(settings: Settings, columns: Columns) -> Figure:
    """Bandits that change

    Lower is better. All agents play the same bandits. The rule that expects changes learns anew
    after each change, and pays a small price where nothing changes. The static rule averages over
    the past: the longer it has learned, the longer it needs to unlearn.

    {settings.runs:,} runs; bands: ± 2 standard errors
    """
    titles = {name: f"Changes with probability {RATES[name]:g} per step" for name in (FAST, SLOW)}
    titles[STILL] = "No change"
    titles[COLLAPSE] = f"The best arm collapses at step {settings.collapse_steps // 2:,}"
    results = Results(settings, columns)
    return Figure([_regret_panel(results, name, title) for name, title in titles.items()])


def _linear_figure(settings: Settings, columns: Columns) -> Figure:
    """Linear worlds that jump

    Lower is better. Each point is a run; the runs of each agent are sorted. The static rule is
    as good in the worlds that happen not to change.
    """
    linear = Results(settings, columns).linear
    panels = [
        sorted_runs(linear[CONTEXTS], "Contexts whose weights jump", "regret at the end"),
        sorted_runs(linear[PLANT], "A plant that jumps", "log₁₀ of cost / optimum"),
    ]
    factors = f"{FACTORS[CONTEXTS]:g} and {FACTORS[PLANT]:g}, the best on other seeds"
    note = f"{len(linear[PLANT][RULE]):,} runs; forgetting factors {factors}"
    return Figure(panels, note)


def _regret_panel(results: Results, name: str, title: str) -> Panel:
    """Draw the mean regret of all agents in the bandit of that name."""
    t = checkpoints(results.settings.steps(name))
    series = [Series.of_runs(a, t, results.regret[name][a]) for a in AGENTS]
    return Panel(title, "step t", "regret Rₜ", series, legend="below")


experiment: Final = Experiment(
    "changing", "worlds that change: regret of the rule with change points, static rule, KL-UCB",
    Settings, quick=Settings(runs=40, linear_runs=12, motor_runs=2),
    full=Settings(runs=2000, linear_runs=200, motor_runs=20), run=run,
    score=claims.Scored(_claims, _regret_table, _linear_table),
    figures=Figures(_regret_figure, _linear_figure),
    full_only=("fast-changes", "no-change-price"),
)  # fmt: skip

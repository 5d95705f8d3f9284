"""Convergence: does the agent come to act as the true mode does?

    P(a_t | âo_<t) = Σ_m P(a_t | m, x_t) P(m | âo_<t)   →   P(a_t | m*, x_t)      almost surely,
    if divergences are bounded and all modes are consistent with each other

A replica is one run of the rule in each of six classes. It records the total variation distance
of the two sides at every step, between 0 and 1. `bayescontrol.convergence.check` gives an exact
verdict on each class without simulation.

    five modes        all others are refuted by the policy of m*, or act as it does
    goal worlds       a 5 × 5 grid, the goal in one of the corners
    chain             rewards for five equal actions in a row
    bias grid         a mode that m* cannot refute acts differently, and refutes itself
    two policies      two modes that nothing they do tells apart, and that act differently
    trap              a third mode may lead to where nothing can be told apart any more

Finite runs cannot refute an almost sure limit, and theory gives no mean for a finite time. The
threshold for the largest distance in the last tenth of the steps therefore comes from a pilot on
another seed, at the smallest size,

    bayescontrol run convergence --seed 1000 --runs 1000 --steps 300

                    mean    standard deviation of a run
    five modes      0.017   0.103
    bias grid       0.018   0.039
    goal worlds     0       0
    chain           0       0

in which the trap caught 156 runs. The claims also state how many runs are above 0.05.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from msgspec import Meta

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.bandits.joint import bias_grid
from bayescontrol.convergence.divergence import replay
from bayescontrol.convergence.verdict import Outcome as Fate
from bayescontrol.convergence.verdict import Verdict, check
from bayescontrol.experiments.chance import Pilot, format_mean, measured
from bayescontrol.experiments.settings import MINIMUM_RUNS, Seed
from bayescontrol.experiments.theory.five_modes import TRUE, five_modes
from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table
from bayescontrol.lab.chart import Chart, Colour, Panel, Series
from bayescontrol.lab.statistics import bernstein
from bayescontrol.mdp.modes import goal_worlds
from bayescontrol.problems.chain import chain, identification_probabilities
from bayescontrol.problems.examples import consistency_diagram, trap
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.schedules import every_step

#: The length of the chain.
LENGTH: Final = 5
CASES: Final = {
    "five modes": Fate.THEOREM,
    "goal worlds": Fate.THEOREM,
    "chain": Fate.THEOREM,
    "bias grid": Fate.SETTLES,
    "two policies": Fate.NEVER,
    "trap": Fate.NEVER,
}
#: A description of each class.
ABOUT: Final = {
    "five modes": "three levers, five guesses which of them wins how often",
    "goal worlds": "a 5 × 5 grid, the goal in one of the corners",
    "chain": f"a reward for {LENGTH} equal actions in a row, all A or all B",
    "bias grid": "two arms that win with .2, .5 or .8 each",
    "two policies": "predictions agree where both modes stay, actions do not",
    "trap": "a third mode may lead to where nothing can be told apart",
}
#: The outcomes in words.
WORDS: Final = {
    Fate.THEOREM: "it settles, by the theorem",
    Fate.SETTLES: "it settles, though the theorem does not cover it",
    Fate.UNDECIDED: "undecided",
    Fate.NEVER: "it may never settle",
}


class Case(NamedTuple):
    """A class of modes, and the number of its true mode."""

    modes: TabularModes
    true: int


@cache
def case(name: str) -> Case:
    """Return the class of that name."""
    if name == "five modes":
        return Case(five_modes(), TRUE)
    if name == "goal worlds":
        return Case(goal_worlds(5, 5, goals=4), 0)
    if name == "chain":
        return Case(chain(LENGTH), 0)
    if name == "bias grid":
        return Case(bias_grid(), 7)
    return Case(consistency_diagram() if name == "two policies" else trap(), 0)


@cache
def _verdict(name: str) -> Verdict:
    return check(case(name).modes)


def outcome(name: str) -> Fate:
    """Return the exact verdict on the class in the world of its true mode: that of its worst pair.

    >>> outcome("bias grid").name
    'SETTLES'
    """
    true = case(name).true
    return max(pair.outcome for pair in _verdict(name).pairs if pair.true == true)


#: With fewer runs no claims are made.
FEWEST: Final = 100


@dataclass(frozen=True)
class Settings:
    """Size of the experiment."""

    seed: Seed = 0
    runs: Annotated[int, Meta(ge=FEWEST, description=MINIMUM_RUNS)] = 1000
    steps: Annotated[int, Meta(ge=300, description="steps in a replica")] = 1000


def times(settings: Settings) -> IntArray:
    """Return the stored steps: sixteen per decade, from 1 to the last."""
    back = np.arange(0, 16 * np.log10(settings.steps) + 1e-9)
    return np.unique((settings.steps * 10.0 ** (-back / 16)).round().astype(np.int64))


def distance(one: Case, steps: int, seed: int, run: int) -> FloatArray:
    """Return the total variation distance of P(a_t | âo_<t) from P(a_t | m*, x_t), t = 1 … steps.

    >>> distance(case("two policies"), 4, seed=0, run=0)
    array([0.5, 0.5, 0.5, 0.5])
    """
    modes, true = one
    record = interact(modes.agent(), modes.environment(true), steps, seed=seed, run=run)
    posterior = replay(record, modes.agent()).posterior[:-1]
    a, o = (np.asarray(column, np.int64) for column in (record.actions, record.observations))
    x = np.empty(steps, np.int64)
    kernels.divergence.follow(modes.successor, modes.start, a, o, x)
    mixture = np.einsum("tm,mta->ta", posterior, modes.policy[:, x])
    return np.asarray(0.5 * np.abs(mixture - modes.policy[true, x]).sum(-1))


def run(settings: Settings, i: int) -> Columns:
    """Record the distance at `times`, and the largest in the last tenth, for each class."""
    columns = {}
    for name in CASES:
        found = distance(case(name), settings.steps, settings.seed, i)
        columns[name] = found[times(settings) - 1]
        columns[f"{name} late"] = np.array(found[-settings.steps // 10 :].max())
    return columns


#: Within this distance the agent counts as acting like the true mode.
NEAR: Final = 0.05
_ALARMS: Final = 1e-3
_PILOT: Final = {
    "five modes": Pilot(0.0174, 0.103, 1000),
    "goal worlds": Pilot(0.0, 0.0, 1000),
    "chain": Pilot(0.0, 0.0, 1000),
    "bias grid": Pilot(0.0184, 0.0387, 1000),
}


def chain_distance(t: IntArray) -> FloatArray:
    """Return the exact mean distance in the chain at step t: ½ P(not identified before step t).

    >>> chain_distance(np.array([1, 5, 6])).tolist()
    [0.5, 0.5, 0.46875]
    """
    times = identification_probabilities(lambda _t: LENGTH, every_step, int(np.max(t)))
    known = np.concatenate(([0.0], np.cumsum(times)))
    return np.asarray(0.5 * (1.0 - known[t - 1]))


def score(settings: Settings, columns: Columns) -> Score:
    """Make all claims, and tables of the classes, verdicts and distances."""
    tables = _classes(), _table(columns)
    if len(columns["trap"]) < FEWEST:
        return Score((), tables)
    claims = [_verdict_claim(name) for name in CASES]
    claims += [_settles(name, columns) for name in CASES if CASES[name] <= Fate.SETTLES]
    claims += [_exactly(settings, columns), _frozen(columns), _trapped(columns)]
    return Score(tuple(claims), tables)


def _hyphened(name: str) -> str:
    return name.replace(" ", "-")


def _verdict_claim(name: str) -> Claim:
    modes, true = case(name)
    return Claim(
        f"verdict-{_hyphened(name)}",
        f"{name}, {modes.name(true)} is true: the exact verdict, without simulation, is the one "
        "derived by hand",
        "ours", CASES[name].name.lower(), outcome(name).name.lower(), None,
        outcome(name) is CASES[name],
        reason=WORDS[CASES[name]], exact=True,
    )  # fmt: skip


def _settles(name: str, columns: Columns) -> Claim:
    late = columns[f"{name} late"]
    mean, error = measured(late)
    first = float(columns[name][:, 0].mean())
    left = float((late > NEAR).mean())
    theorem = CASES[name] is Fate.THEOREM
    most = _PILOT[name].mean + _PILOT[name].bounded_margin(len(late), _ALARMS)
    return Claim(
        f"settles-{_hyphened(name)}",
        f"{name}: the agent's action probabilities P(a|past) converge to the true mode's policy"
        + ("" if theorem else ", though the theorem does not cover it")
        + "; largest distance in the last tenth of the steps, mean",
        "paper" if theorem else "ours", f"→ 0, from {first:.3g}", mean, error, mean <= most,
        reason=f"the distance, 0 to 1, is above {NEAR:g} in {100 * left:.3g} % of the runs",
        place="section 4.5, theorem 4" if theorem else "",
        threshold_origin="pilot on seed 1000, 1,000 runs of 300 steps: "
        f"{_PILOT[name].mean:.2g}; at most {most:.2g} (false alarms: 1 in 1000)",
    )  # fmt: skip


def _exactly(settings: Settings, columns: Columns) -> Claim:
    t = times(settings)
    exact, runs = chain_distance(t), columns["chain"]
    # Distances are 0 or 1/2: twice the distance is a Bernoulli variable.
    margin = bernstein(4.0 * exact * (0.5 - exact), len(runs), _ALARMS / t.size) / 2.0
    gap = np.abs(runs.mean(0) - exact)
    k = int(np.argmin(np.abs(exact - 0.25)))
    mean, error = measured(runs[:, k])
    within = bool((gap <= margin).all())
    return Claim(
        "chain-as-computed",
        f"chain of {LENGTH}: the mean distance is half the probability that the chain is not "
        f"identified, at every step; here t = {t[k]}",
        "ours", float(exact[k]), mean, error, within,
        reason=f"at {t.size} steps the mean is off by {gap.max():.2g} at most, "
        f"{'within' if within else 'not within'} what chance allows (false alarms: 1 in 1000)",
        threshold_origin="theory: exact probabilities, Bernstein's margin",
    )  # fmt: skip


def _frozen(columns: Columns) -> Claim:
    runs = columns["two policies"]
    spread = float(np.abs(runs - 0.5).max())
    return Claim(
        "two-policies-never-settle",
        "two policies: the distance from the true mode's policy is constant in every run; largest "
        "change",
        "ours", 0.0, spread, None, spread <= 1e-12,
        reason="no action of either mode tells them apart: the posterior stays at the prior, and "
        "the agent mixes the two policies for ever",
        threshold_origin="theory, 1e-12 allowed for rounding",
    )  # fmt: skip


def _trapped(columns: Columns) -> Claim:
    late = columns["trap late"]
    share = float((late > NEAR).mean())
    return Claim(
        "trap-with-positive-probability",
        "trap: some runs are caught before they identify the true mode, and never act as it does; "
        "their share",
        "ours", "between 0 and 1", share, float(np.sqrt(share * (1 - share) / len(late))),
        0.0 < share < 1.0,
        reason="the verdict “never” means with positive probability; the other runs settle",
        threshold_origin="pilot on seed 1000: 156 of 1,000 runs (false alarms with 100 runs: below "
        "1e-7)",
    )  # fmt: skip


def _classes() -> Table:
    rows = tuple(
        (name, len(case(name).modes), case(name).modes.name(case(name).true), ABOUT[name])
        for name in CASES
    )
    return Table(
        "Six classes of modes", ("class", "modes", "true mode", "description"), rows,
        "A mode is a hypothesis about the world with a policy that suits it; one is true.",
    )  # fmt: skip


def _table(columns: Columns) -> Table:
    rows = []
    for name in CASES:
        share = float((columns[f"{name} late"] > NEAR).mean())
        rows.append(
            (
                name,
                WORDS[outcome(name)],
                float(f"{columns[name][:, 0].mean():.3g}"),
                format_mean(columns[f"{name} late"]),
                share,
            )
        )
    return Table(
        "How far the agent is from acting as the true mode does",
        ("class", "verdict", "first step", "last tenth", f"runs above {NEAR:g}"), tuple(rows),
        "Distance: total variation, 0 if the agent acts exactly as the true mode, 1 if the two "
        "never act alike. Last tenth: the largest distance in the last tenth of the steps, mean ± "
        "standard error over runs, one number if all agree; last column: the share of runs in "
        "which it is larger.",
    )  # fmt: skip


_COLOURS: Final[Mapping[Fate, Colour]] = {
    Fate.THEOREM: "blue",
    Fate.SETTLES: "green",
    Fate.UNDECIDED: "orange",
    Fate.NEVER: "vermillion",
}
_TITLES: Final = {
    "five modes": "Five modes, three levers",
    "goal worlds": "Grid-worlds, four goals",
    "chain": f"Chain of {LENGTH}",
    "bias grid": "Bias grid",
    "two policies": "Two policies for one region",
    "trap": "A trap",
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Draw a panel for each class, with its verdict."""
    return {
        "convergence": Chart(
            "Does the agent come to act as the true mode does?",
            [_panel(settings, columns, k, name) for k, name in enumerate(CASES)],
            "The distance (total variation) is 0 if the agent acts exactly as the true mode, 1 if "
            "the two never act alike. Each panel states the verdict of the exact check. Blue: the "
            "convergence theorem covers the class. Green: it does not, and yet the agent settles. "
            "Orange: two modes that act differently cannot be told apart, always or once the agent "
            "is in a trap.",
            columns=3,
            note=f"{settings.runs} runs; lines are means, bands contain 90 % of the runs, dotted: "
            f"the share of runs above {NEAR:g}",
        )
    }


def _panel(settings: Settings, columns: Columns, k: int, name: str) -> Panel:
    t, runs, fate = times(settings), columns[name], outcome(name)
    low, high = np.quantile(runs, (0.05, 0.95), axis=0, method="inverted_cdf")
    look: Any = {"colour": _COLOURS[fate]}
    series = [
        Series("distance", t, runs.mean(0), low, high, group=name, **look),
        Series(f"runs above {NEAR:g}", t, (runs > NEAR).mean(0), colour="ink", dash="dot"),
    ]
    if name == "chain":
        series.append(Series("exact mean", t, chain_distance(t), colour="orange", dash="dash"))
    return Panel(
        f"({'abcdef'[k]}) {_TITLES[name]}", "step t", "distance", series, xscale="log",
        ylim=(-0.02, 1.02), notes=[WORDS[fate]],
        legend="lower right" if name == "two policies" else "upper right",
    )  # fmt: skip


experiment: Final = Experiment(
    name="convergence",
    summary="does the agent come to act as the true mode does? six classes, each with its verdict",
    settings=Settings, quick=Settings(runs=250, steps=400), full=Settings(runs=2000, steps=2000),
    run=run, score=score, figures=draw,
)  # fmt: skip

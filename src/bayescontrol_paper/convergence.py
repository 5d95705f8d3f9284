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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final, NamedTuple

import numpy as np
from msgspec import Meta

from bayescontrol import TabularModes, interact
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.joint import bias_grid
from bayescontrol.convergence import Outcome, check, divergences
from bayescontrol.finite.chain import chain, identification_probabilities
from bayescontrol.finite.examples import consistency_diagram, trap
from bayescontrol.lab import Claim, Columns, Experiment
from bayescontrol.mdp.modes import goal_worlds
from bayescontrol.plot.chart import Panel, Series
from bayescontrol.schedules import every_step
from bayescontrol.statistics import bernstein
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._diagrams import state_path
from bayescontrol_paper._figures import Figure, Figures, mean_of_runs
from bayescontrol_paper._five_modes import TRUE, five_modes

#: The length of the chain.
LENGTH: Final = 5
#: The outcomes in words.
WORDS: Final = {
    Outcome.THEOREM: "it settles, by the theorem",
    Outcome.SETTLES: "it settles, though the theorem does not cover it",
    Outcome.UNDECIDED: "undecided",
    Outcome.NEVER: "it may never settle",
}


class Case(NamedTuple):
    """A class of modes, the number of its true mode, its outcome, a title and a description."""

    modes: TabularModes
    true: int
    outcome: Outcome
    title: str
    about: str

    def exact_outcome(self) -> Outcome:
        """Return the exact verdict in the world of the true mode: that of its worst pair.

        Outcomes are ordered from the best, THEOREM, to the worst, NEVER.

        >>> cases()["bias grid"].exact_outcome().name
        'SETTLES'
        """
        return max(pair.outcome for pair in _verdict(self.modes).pairs if pair.true == self.true)


#: Checks a class, once.
_verdict: Final = cache(check)


@cache
def cases() -> dict[str, Case]:
    """Return the six classes by name."""
    return {
        "five modes": Case(five_modes(), TRUE, Outcome.THEOREM, "Five modes, three levers",
                           "three levers, five guesses which of them wins how often"),
        "goal worlds": Case(goal_worlds(5, 5, goals=4), 0, Outcome.THEOREM,
                            "Grid-worlds, four goals",
                            "a 5 × 5 grid, the goal in one of the corners"),
        "chain": Case(chain(LENGTH), 0, Outcome.THEOREM, f"Chain of {LENGTH}",
                      f"a reward for {LENGTH} equal actions in a row, all A or all B"),
        "bias grid": Case(bias_grid(), 7, Outcome.SETTLES, "Bias grid",
                          "two arms that win with .2, .5 or .8 each"),
        "two policies": Case(consistency_diagram(), 0, Outcome.NEVER, "Two policies for one region",
                             "predictions agree where both modes stay, actions do not"),
        "trap": Case(trap(), 0, Outcome.NEVER, "A trap",
                     "a third mode may lead to where nothing can be told apart"),
    }  # fmt: skip


#: With fewer runs no claims are made.
FEWEST: Final = 100


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment."""

    runs: Annotated[int, Meta(ge=FEWEST, description=claims.MINIMUM_RUNS)] = 1000
    steps: Annotated[int, Meta(ge=300, description="steps in a replica")] = 1000


def times(settings: Settings) -> IntArray:
    """Return the stored steps: sixteen per decade, from 1 to the last."""
    return claims.log_spaced(settings.steps, per_decade=16)


def distance(case: Case, steps: int, seed: int, run: int) -> FloatArray:
    """Return the total variation distance of P(a_t | âo_<t) from P(a_t | m*, x_t), t = 1 … steps.

    >>> distance(cases()["two policies"], 4, seed=0, run=0)
    array([0.5, 0.5, 0.5, 0.5])
    """
    modes, true = case.modes, case.true
    record = interact(modes.agent(), modes.environment(true), steps, seed=seed, run=run)
    posterior = divergences(record, modes.agent()).posterior[:-1]
    x = state_path(modes, record)[:-1]
    mixture = np.einsum("tm,mta->ta", posterior, modes.policy[:, x])
    return np.asarray(0.5 * np.abs(mixture - modes.policy[true, x]).sum(-1))


def run(settings: Settings, i: int) -> Columns:
    """Record the distance at `times`, and the largest in the last tenth, for each class."""
    columns = {}
    for name, case in cases().items():
        by_step = distance(case, settings.steps, settings.seed, i)
        columns[name] = by_step[times(settings) - 1]
        columns[f"{name} late"] = np.array(by_step[-settings.steps // 10 :].max())
    return columns


#: Within this distance the agent counts as acting like the true mode.
NEAR: Final = 0.05
#: False-alarm rate of the claim about the chain, all steps together.
_FALSE_ALARM_RATE: Final = 1e-3
#: The largest distance in the last tenth of the steps, in the pilot.
_PILOT: Final = {
    "five modes": claims.Pilot(0.0174, 0.103, 1000),
    "goal worlds": claims.Pilot(0.0, 0.0, 1000),
    "chain": claims.Pilot(0.0, 0.0, 1000),
    "bias grid": claims.Pilot(0.0184, 0.0387, 1000),
}


def chain_distance(t: IntArray) -> FloatArray:
    """Return the exact mean distance in the chain at step t: ½ P(not identified before step t).

    >>> chain_distance(np.array([1, 5, 6])).tolist()
    [0.5, 0.5, 0.46875]
    """
    # P(T = 1), P(T = 2), …, where the chain is identified at step T; then P(T ≤ 0), P(T ≤ 1), …
    probabilities = identification_probabilities(lambda _t: LENGTH, every_step, int(np.max(t)))
    identified = np.concatenate(([0.0], np.cumsum(probabilities)))
    return np.asarray(0.5 * (1.0 - identified[t - 1]))


def _classes_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Six classes of modes

    A mode is a hypothesis about the world with a policy that suits it; one is true.
    """
    about = {name: (case.modes, case.true, case.about) for name, case in cases().items()}
    return claims.class_rows("class | modes | true mode | description", about)


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make claims about verdicts, distances that vanish, and two classes that never settle."""
    for name, case in cases().items():
        yield claims.equality(
            f"verdict-{name.replace(' ', '-')}", f"{name}, {case.modes.name(case.true)} is true: "
            "the exact verdict, without simulation, is the one derived by hand",
            expected=case.outcome.name.lower(), ours=case.exact_outcome().name.lower(),
            reason=WORDS[case.outcome], exact=True,
        )  # fmt: skip
    for name, pilot in _PILOT.items():
        late, by_theorem = columns[f"{name} late"], cases()[name].outcome is Outcome.THEOREM
        yield claims.vanishes(
            f"settles-{name.replace(' ', '-')}",
            f"{name}: the agent's action probabilities P(a|past) converge to the true mode's policy"
            + ("" if by_theorem else ", though the theorem does not cover it")
            + "; largest distance in the last tenth of the steps, mean",
            start=columns[name][:, 0].mean(), values=late, pilot=pilot, pilot_text="pilot on seed "
            f"1000, 1,000 runs of 300 steps: {pilot.mean:.2g}", reason="the distance, 0 to 1, is "
            f"above {NEAR:g} in {100 * (late > NEAR).mean():.3g} % of the runs",
            place="section 4.5, theorem 4" if by_theorem else "",
        )  # fmt: skip
    yield _chain_claim(settings, columns)
    yield claims.zero_claim(
        "two-policies-never-settle", "two policies: the distance from the true mode's policy is "
        "constant in every run; largest change",
        values=columns["two policies"] - 0.5, reason="no action of either mode tells them apart: "
        "the posterior stays at the prior, and the agent mixes the two policies for ever",
    )  # fmt: skip
    late = columns["trap late"]
    share = float((late > NEAR).mean())
    yield Claim(
        "trap-with-positive-probability", "trap: some runs are caught before they identify the "
        "true mode, and never act as it does; their share",
        source="ours", expected="between 0 and 1", ours=share,
        error=float(np.sqrt(share * (1 - share) / len(late))), holds=0.0 < share < 1.0,
        reason="the verdict “never” means with positive probability; the other runs settle",
        threshold_origin="pilot on seed 1000: 156 of 1,000 runs (false alarms with 100 runs: below "
        "1e-7)",
    )  # fmt: skip


def _chain_claim(settings: Settings, columns: Columns) -> Claim:
    """Claim that the mean distance in the chain is the exact one; show the step where it is ¼."""
    t = times(settings)
    exact, runs = chain_distance(t), columns["chain"]
    # Distances are 0 or 1/2: twice the distance is a Bernoulli variable with mean 2 `exact`.
    margin = bernstein(4.0 * exact * (0.5 - exact), len(runs), _FALSE_ALARM_RATE / t.size) / 2.0
    gap = np.abs(runs.mean(0) - exact)
    shown = int(np.argmin(np.abs(exact - 0.25)))
    is_within = bool((gap <= margin).all())
    mean, error = claims.measured(runs[:, shown])
    return Claim(
        "chain-as-computed", f"chain of {LENGTH}: the mean distance is half the probability that "
        f"the chain is not identified, at every step; here t = {t[shown]}",
        source="ours", expected=float(exact[shown]), ours=mean, error=error, holds=is_within,
        reason=f"at {t.size} steps the mean is off by {gap.max():.2g} at most, "
        f"{'within' if is_within else 'not within'} what chance allows (false alarms: 1 in 1000)",
        threshold_origin="theory: exact probabilities, Bernstein's margin",
    )  # fmt: skip


def _distances_table(settings: Settings, columns: Columns) -> claims.Lines:
    """How far the agent is from acting as the true mode does

    Distance: total variation, 0 if the agent acts exactly as the true mode, 1 if the two never act
    alike. Last tenth: the largest distance in the last tenth of the steps, mean ± standard error
    over runs, one number if all agree; last column: the share of runs in which it is larger.
    """
    yield f"class | verdict | first step | last tenth | runs above {NEAR:g}"
    for name, case in cases().items():
        first, late = columns[name][:, 0], columns[f"{name} late"]
        verdict, share = WORDS[case.exact_outcome()], float((late > NEAR).mean())
        yield name, verdict, float(f"{first.mean():.3g}"), claims.format_mean(late), share


def _convergence_figure(settings: Settings, columns: Columns) -> Figure:
    """Does the agent come to act as the true mode does?

    The distance (total variation) is 0 if the agent acts exactly as the true mode, 1 if the two
    never act alike. Each panel states the verdict of the exact check. (a), (b), (c): the
    convergence theorem covers the class. (d): it does not, and yet the agent settles. (e) and (f):
    two modes that act differently cannot be told apart, always or once the agent is in a trap.
    """
    return Figure(
        [_panel(settings, columns, k, name) for k, name in enumerate(cases())],
        f"{settings.runs} runs; lines are means, bands contain 90 % of the runs, dotted: the share "
        f"of runs above {NEAR:g}",
    )


def _panel(settings: Settings, columns: Columns, k: int, name: str) -> Panel:
    """Draw the distance in class number k, with the exact mean where it is known."""
    t, runs, outcome = times(settings), columns[name], cases()[name].exact_outcome()
    series = [
        mean_of_runs("distance", t, runs, colour="blue"),
        Series(f"runs above {NEAR:g}", t, (runs > NEAR).mean(0), colour="ink", dash="dot"),
    ]
    if name == "chain":
        series.append(Series("exact mean", t, chain_distance(t), colour="orange", dash="dash"))
    return Panel(
        f"({'abcdef'[k]}) {cases()[name].title}", "step t", "distance", series, xscale="log",
        ylim=(-0.02, 1.02), notes=[WORDS[outcome]],
    )  # fmt: skip


experiment: Final = Experiment(
    "convergence",
    "does the agent come to act as the true mode does? six classes, each with its verdict",
    Settings, quick=Settings(runs=250, steps=400), full=Settings(runs=2000, steps=2000), run=run,
    score=claims.Scored(_claims, _classes_table, _distances_table, fewest=FEWEST),
    figures=Figures(_convergence_figure),
)  # fmt: skip

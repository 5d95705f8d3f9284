"""Identities of the intervened posterior, for m* drawn from the prior, at any horizon.

    E[P(m | âo_≤t)] = P(m)                                     the prior is preserved
    P(m_t = m*) = E[Σ_m P(m | âo_<t)²]   when m_t is drawn     the match rate
    P(∃ t: P(m* | âo_≤t) < δ P(m*)) ≤ δ                        Ville

An agent that treats its actions as evidence violates all three. They are tested on simulated runs.
For n independent numbers from [0, 1] with mean p, Hoeffding's bound P(mean ≥ q) ≤ exp(-n KL(q ‖ p))
holds for any distribution, and likewise for q below p. So the stated false-alarm rates are upper
bounds, also for sharp posteriors and many modes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.errors import ImpossibleObservation
from bayescontrol.interaction import both_streams
from bayescontrol.schedules import Held, Schedule
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.testing.belief_laws import LawBroken, require


@dataclass(frozen=True)
class Runs:
    """The data of the simulated runs, one entry per run.

    >>> runs = Runs(np.array([0.5, 0.5]), np.eye(2), np.ones((2, 1)), np.ones((2, 1)), np.ones(2))
    >>> len(runs)
    2
    """

    prior: FloatArray  #: P(m)
    last: FloatArray  #: P(m | âo_≤T), by run and mode
    matched: FloatArray  #: whether m_t = m*, by run and step; NaN if no mode was drawn
    expected: FloatArray  #: Σ_m P(m | âo_<t)², by run and step
    lowest: FloatArray  #: min_t P(m* | âo_≤t) / P(m*)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.last)


def simulate(
    make: Callable[[], Any],
    make_environment: Callable[[int], Any],
    *,
    steps: int = 20,
    runs: int = 1000,
    seed: SeedLike = 0,
) -> Runs:
    """Simulate runs with m* ~ P(m); `make_environment(m)` returns the world of mode m.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> len(simulate(modes.agent, modes.environment, steps=2, runs=3))
    3
    """
    seed = as_seed(seed)
    prior = make().belief.posterior()
    last, lowest = np.empty((runs, len(prior))), np.empty(runs)
    matched, expected = np.full((runs, steps), math.nan), np.empty((runs, steps))
    for run in range(runs):
        truth = Stream.named(seed, run, "truth").categorical(prior)
        p, q = both_streams(seed, run)
        agent, environment = make(), make_environment(truth)
        agent.schedule = schedule = _RecordingSchedule(agent.schedule)
        v, lowest_ratio = prior, 1.0
        for t in range(steps):
            # The agent draws its first mode without asking the schedule.
            expected[run, t], schedule.drew = v @ v, agent.mode is None
            a = agent.act(p)
            if schedule.drew:
                matched[run, t] = agent.belief.drawn == truth
            try:
                agent.observe(a, environment.respond(a, q))
            except ImpossibleObservation as error:
                raise LawBroken(
                    f"run {run}: an observation from a world of its class was ruled out: {error}"
                ) from error
            v = agent.belief.posterior()
            lowest_ratio = min(lowest_ratio, v[truth] / prior[truth])
        last[run], lowest[run] = v, lowest_ratio
    return Runs(prior, last, matched, expected, lowest)


class _RecordingSchedule:
    """A schedule that records whether a mode was drawn."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.drew = schedule, False

    def __call__(self, held: Held[Any], rng: Stream) -> bool:
        self.drew = self.schedule(held, rng)
        return self.drew


def check_prior_preserved(runs: Runs, *, false_alarm: float = 1e-6) -> None:
    """Check E[P(m | âo_≤T)] = P(m) for every mode.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_prior_preserved(simulate(modes.agent, modes.environment, runs=100))
    """
    for m, p in enumerate(runs.prior):
        mean = float(runs.last[:, m].mean())
        require(
            _hoeffding_bound(len(runs), mean, p) >= false_alarm / (2 * len(runs.prior)),
            f"E[posterior] of mode {m} is {mean:.4f} in {len(runs)} runs, its prior is {p:.4f}",
        )


def check_match_rate(runs: Runs, *, false_alarm: float = 1e-6) -> None:
    """Check P(m_t = m*) = E[Σ_m P(m | âo_<t)²] at every step, over the runs that draw a mode there.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_match_rate(simulate(modes.agent, modes.environment, runs=100))
    """
    steps = runs.matched.shape[1]
    for t in range(steps):
        drawn = ~np.isnan(runs.matched[:, t])  # the runs that drew a mode at step t
        if not drawn.any():
            continue
        rate, expected = float(runs.matched[drawn, t].mean()), float(runs.expected[drawn, t].mean())
        require(
            _hoeffding_bound(int(drawn.sum()), rate, expected) >= false_alarm / (2 * steps),
            f"at step {t + 1} the drawn mode is the true one in {rate:.4f} of {drawn.sum()} runs, "
            f"but E[Σ posterior²] is {expected:.4f}",
        )


def check_ville(runs: Runs, delta: float = 0.05, *, false_alarm: float = 1e-6) -> None:
    """Check P(∃ t: P(m* | âo_≤t) < δ P(m*)) ≤ δ.

    The false-alarm rate is that of a binomial test at δ, an upper bound.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_ville(simulate(modes.agent, modes.environment, runs=100))
    """
    from scipy.stats import binom  # type: ignore[import-untyped]

    n, k = len(runs), int((runs.lowest < delta).sum())
    require(
        binom.sf(k - 1, n, delta) >= false_alarm,
        f"the true mode fell below {delta} of its prior in {k} of {n} runs, "
        f"more than a share of {delta} can explain",
    )


def check_identities(
    make: Callable[[], Any],
    make_environment: Callable[[int], Any],
    *,
    steps: int = 20,
    runs: int = 1000,
    seed: SeedLike = 0,
    false_alarm: float = 1e-6,
) -> None:
    """Check all three identities on the same runs.

    A correct agent fails with probability at most `false_alarm`.

    >>> from bayescontrol.finite.examples import THREE_MODES_PRIOR, three_modes
    >>> from bayescontrol import ControlRule, NaiveMixture
    >>> modes = three_modes()
    >>> for kind in (ControlRule, NaiveMixture):
    ...     check_identities(lambda: modes.agent(THREE_MODES_PRIOR, kind=kind), modes.environment)
    Traceback (most recent call last):
    bayescontrol.testing.belief_laws.LawBroken: E[posterior] of mode ...
    """
    simulated = simulate(make, make_environment, steps=steps, runs=runs, seed=seed)
    check_prior_preserved(simulated, false_alarm=false_alarm / 3)
    check_match_rate(simulated, false_alarm=false_alarm / 3)
    check_ville(simulated, false_alarm=false_alarm / 3)


def _hoeffding_bound(n: int, mean: float, p: float) -> float:
    """Return exp(-n KL(mean ‖ p)), a bound on the probability of a mean this far from p."""
    if abs(mean - p) < 1e-12:  # ignore rounding
        return 1.0
    if not 0.0 < p < 1.0:
        return 0.0
    parts = ((mean, p), (1.0 - mean, 1.0 - p))
    return math.exp(-n * sum(q * math.log(q / r) for q, r in parts if q > 0.0))

"""Identities of the intervened posterior, for m* drawn from the prior, at any horizon.

    E[P(m | âo_≤t)] = P(m)                                     the prior is preserved
    P(m_t = m*) = E[Σ_m P(m | âo_<t)²]   when m_t is drawn     the match rate
    P(∃ t: P(m* | âo_≤t) < δ P(m*)) ≤ δ                        Ville

An agent that takes its own actions for evidence breaks all three. They are tested on
simulated runs, each with a stated rate of false alarms.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from bayescontrol.errors import ImpossibleObservation
from bayescontrol.protocols import FloatArray, Rng
from bayescontrol.schedules import Held, Schedule
from bayescontrol.seeding import stream
from bayescontrol.testing.state import LawBroken, require

__all__ = [
    "Runs",
    "check_identities",
    "check_match_rate",
    "check_prior_preserved",
    "check_ville",
    "simulate",
]


@dataclass(frozen=True)
class Runs:
    """What the identities are about, one entry per run.

    >>> runs = Runs(np.array([0.5, 0.5]), np.eye(2), np.zeros(2), np.ones(2))
    >>> len(runs)
    2
    """

    prior: FloatArray  #: P(m)
    last: FloatArray  #: P(m | âo_≤T), by run and mode
    excess: FloatArray  #: mean over draws of [m_t = m*] - Σ_m P(m | âo_<t)²
    lowest: FloatArray  #: min_t P(m* | âo_≤t) / P(m*)

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.last)


def simulate(
    make: Callable[[], Any],
    make_environment: Callable[[int], Any],
    *,
    steps: int = 20,
    runs: int = 1000,
    seed: int = 0,
) -> Runs:
    """Runs in worlds m* ~ P(m): `make()` an agent, `make_environment(m)` the world of mode m.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(2)
    >>> len(simulate(modes.agent, modes.environment, steps=2, runs=3))
    3
    """
    prior = make().belief.posterior()
    last, excess, lowest = np.empty((runs, len(prior))), np.zeros(runs), np.empty(runs)
    for run in range(runs):
        truth = stream(seed, run, "truth").categorical(prior)
        p, q = stream(seed, run, "agent"), stream(seed, run, "environment")
        agent, environment = make(), make_environment(truth)
        agent.schedule = drawn = _Watched(agent.schedule)
        v, least, matches = prior, 1.0, []
        for _ in range(steps):
            drawn.again = agent.mode is None
            a = agent.act(p)
            if drawn.again:
                matches.append((agent.belief.drawn == truth) - float(v @ v))
            try:
                agent.observe(a, environment.respond(a, q))
            except ImpossibleObservation as error:
                raise LawBroken(
                    f"run {run} came to what the agent had ruled out, in a world of its own "
                    f"class: {error}"
                ) from error
            v = agent.belief.posterior()
            least = min(least, v[truth] / prior[truth])
        last[run], excess[run], lowest[run] = v, np.mean(matches), least
    return Runs(prior, last, excess, lowest)


class _Watched:
    """A schedule that remembers whether a mode was drawn."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.again = schedule, False

    def __call__(self, held: Held[Any], rng: Rng) -> bool:
        self.again = self.schedule(held, rng)
        return self.again


def check_prior_preserved(runs: Runs, *, false_alarm: float = 1e-6) -> None:
    """E[P(m | âo_≤T)] = P(m): no mode's mean is too many standard errors away.

    The rate of false alarms is that of the normal law, shared among the modes.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_prior_preserved(simulate(modes.agent, modes.environment, runs=100))
    """
    for m, p in enumerate(runs.prior):
        z = _standard_errors(runs.last[:, m] - p)
        require(
            abs(z) <= _limit(false_alarm / len(runs.prior)),
            f"E[posterior] of mode {m} is {runs.last[:, m].mean():.4f}, its prior {p:.4f}: "
            f"{abs(z):.1f} standard errors apart in {len(runs)} runs",
        )


def check_match_rate(runs: Runs, *, false_alarm: float = 1e-6) -> None:
    """P(m_t = m*) = E[Σ_m P(m | âo_<t)²] at the times when a mode is drawn.

    The rate of false alarms is that of the normal law.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_match_rate(simulate(modes.agent, modes.environment, runs=100))
    """
    z = _standard_errors(runs.excess)
    require(
        abs(z) <= _limit(false_alarm),
        f"the true mode is drawn with probability E[Σ posterior²] {runs.excess.mean():+.4f}: "
        f"{abs(z):.1f} standard errors off in {len(runs)} runs",
    )


def check_ville(runs: Runs, delta: float = 0.05, *, false_alarm: float = 1e-6) -> None:
    """P(∃ t: P(m* | âo_≤t) < δ P(m*)) ≤ δ.

    The rate of false alarms is a bound: the exact tail of the binomial law at δ.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_ville(simulate(modes.agent, modes.environment, runs=100))
    """
    n, k = len(runs), int((runs.lowest < delta).sum())
    require(
        _binomial_tail(n, k, delta) >= false_alarm,
        f"the true mode fell below {delta} of its prior in {k} of {n} runs, "
        f"more than a share of {delta} can explain",
    )


def check_identities(
    make: Callable[[], Any],
    make_environment: Callable[[int], Any],
    *,
    steps: int = 20,
    runs: int = 1000,
    seed: int = 0,
    false_alarm: float = 1e-6,
) -> None:
    """All three identities on the same runs; a sound agent fails with at most `false_alarm`.

    >>> from bayescontrol.problems.prize import THREE_MODES_PRIOR, three_modes
    >>> from bayescontrol import ControlRule, NaiveMixture
    >>> modes = three_modes()
    >>> for kind in (ControlRule, NaiveMixture):
    ...     check_identities(lambda: modes.agent(THREE_MODES_PRIOR, kind=kind),
    ...                      modes.environment, runs=500)
    Traceback (most recent call last):
    bayescontrol.testing.state.LawBroken: E[posterior] of mode ...
    """
    seen = simulate(make, make_environment, steps=steps, runs=runs, seed=seed)
    check_prior_preserved(seen, false_alarm=false_alarm / 3)
    check_match_rate(seen, false_alarm=false_alarm / 3)
    check_ville(seen, false_alarm=false_alarm / 3)


def _limit(false_alarm: float) -> float:
    return NormalDist().inv_cdf(1.0 - false_alarm / 2.0)


def _standard_errors(deviations: FloatArray) -> float:
    """mean / (s / √n); rounding alone is no deviation."""
    mean, spread = float(deviations.mean()), float(deviations.std(ddof=1))
    if abs(mean) < 1e-12:
        return 0.0
    return (
        mean / (spread / math.sqrt(len(deviations)))
        if spread > 0.0
        else math.copysign(math.inf, mean)
    )


def _binomial_tail(n: int, k: int, p: float) -> float:
    """P(K ≥ k) for K ~ Binomial(n, p)."""
    log_odds, log_rest = math.log(p) - math.log1p(-p), n * math.log1p(-p)
    terms = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_odds + log_rest
        for i in range(k, n + 1)
    ]
    return math.fsum(map(math.exp, terms))

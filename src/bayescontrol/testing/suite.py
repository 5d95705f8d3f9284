"""Run all laws on an agent or a class of modes, and check single modes.

    Σ_a P(a | m, x) = 1        Σ_o P(o | m, x, a) = 1        s' = advance(s, a, o), s unchanged

The checks use what a mode offers: exact probabilities and a private state are optional.

Identities of the intervened posterior hold for m* drawn from the prior, at any horizon:

    E[P(m | âo_≤t)] = P(m)                                     the prior is preserved
    P(m_t = m*) = E[Σ_m P(m | âo_<t)²]   when m_t is drawn     the match rate
    P(∃ t: P(m* | âo_≤t) < δ P(m*)) ≤ δ                        Ville

An agent that treats its actions as evidence violates all three. They are tested on simulated runs.
For n independent numbers from [0, 1] with mean p, Hoeffding's bound P(mean ≥ q) ≤ exp(-n KL(q ‖ p))
holds for any distribution, and likewise for q below p. So the stated false-alarm rates are upper
bounds, also for sharp posteriors and many modes.
"""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescontrol import protocols
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._mode_queries import has, is_mode_array, name_of, safe_log, state_for
from bayescontrol._support.priors import TOLERANCE
from bayescontrol._support.values import pack
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import ImpossibleObservation, MissingCapability
from bayescontrol.interaction import both_streams
from bayescontrol.modes import ModeEnvironment
from bayescontrol.record import drawn_mode, log_score, posterior
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Held, Schedule
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.situations import as_advance
from bayescontrol.testing import laws
from bayescontrol.testing.laws import Event, LawBroken, require


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
    bayescontrol.testing.laws.LawBroken: E[posterior] of mode ...
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


def check_mode(mode: Any, history: Sequence[Event], who: str = "the mode") -> None:
    """Laws 1 and 7 for one mode along a history: probabilities sum to 1, states are not modified.

    >>> class Greedy:
    ...     def action_probabilities(self, x): return {"left": 0.7, "right": 0.7}
    >>> check_mode(Greedy(), [(None, "left", 1)])
    Traceback (most recent call last):
    bayescontrol.testing.laws.LawBroken: the policy of the mode sums to 1.4 in situation None
    """
    s = mode.start() if has(mode, protocols.Stateful) else None
    for x, a, o in history:
        situation = state_for(mode, x, s) if has(mode, protocols.Stateful) else x
        if has(mode, protocols.ActionProbabilities):
            total = sum(mode.action_probabilities(situation).values())
            require(
                abs(total - 1.0) <= TOLERANCE,
                f"the policy of {who} sums to {total:.9g} in situation {situation!r}",
            )
        if has(mode, protocols.ObservationProbabilities):
            total = sum(mode.observation_probabilities(situation, a).values())
            require(
                abs(total - 1.0) <= TOLERANCE,
                f"the hypothesis of {who} sums to {total:.9g} in situation {situation!r} "
                f"after action {a!r}",
            )
        if has(mode, protocols.Stateful):
            before, after = deepcopy(s), mode.advance(situation, a, o)
            require(
                pack(before, "the state").tobytes() == pack(s, "the state").tobytes(),
                f"advance({before!r}, {a!r}, {o!r}) of {who} modified the state it was given: "
                "return a new state",
            )
            s = after


def check_agent(
    make: Callable[[], Any],
    make_environment: Callable[[int], Any],
    *,
    steps: int = 40,
    runs: int = 500,
    seed: SeedLike = 0,
    false_alarm: float = 1e-6,
) -> None:
    """Check every law of acting for agents from `make()` in worlds from `make_environment(m)`.

    The identities of the posterior are tested on `runs` runs of `steps` steps. Errors that show up
    late need many steps. A correct agent fails with probability at most `false_alarm` over seeds,
    whatever the number of steps.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_agent(modes.agent, modes.environment)
    """
    seed = as_seed(seed)

    def world() -> Any:
        return make_environment(0)

    laws.check_acting(make, world, steps)
    laws.check_same_seed(make, world, steps, seed=seed)
    laws.check_probes(
        make, world, {"v": posterior, "bits": log_score, "m": drawn_mode}, steps, seed=seed
    )
    laws.check_fused(make, world, steps, seed=seed)
    laws.check_resume(make, world, steps, seed=seed)
    check_identities(
        make, make_environment, steps=steps, runs=runs, seed=seed, false_alarm=false_alarm
    )


def check_modes(
    modes: Any,
    *,
    prior: ArrayLike | None = None,
    situation: Any = None,
    advance: Callable[[Any, Any, Any], Any] | None = None,
    environment: Callable[[int], Any] | None = None,
    bad: Sequence[Any] = (math.nan,),
    steps: int = 40,
    runs: int = 500,
    seed: SeedLike = 0,
    false_alarm: float = 1e-6,
) -> None:
    """Check every law that applies to a list of modes or a mode array.

    `environment(m)` returns the world of mode m; modes with `observation_probabilities` do not need
    it. `bad` are observations that can never occur. The first violated law raises `LawBroken`;
    correct modes fail with probability at most `false_alarm` over seeds. The identities of the
    posterior are tested on `runs` runs of `steps` steps: use many steps if errors may be small or
    late.

    >>> class Coin:
    ...     def __init__(self, p): self.p = p
    ...     def act(self, x, rng): return "toss"
    ...     def likelihood(self, x, a, o): return {1: self.p, 0: 1 - self.p}.get(o, 0.0)
    ...     def observation_probabilities(self, x, a): return {1: self.p, 0: 1 - self.p}
    >>> check_modes([Coin(0.25), Coin(0.5), Coin(0.75)])
    >>> class Careless(Coin):
    ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
    >>> check_modes([Careless(0.25), Careless(0.5)])
    Traceback (most recent call last):
    bayescontrol.testing.laws.LawBroken: observation nan after action 'toss' in ...
    was accepted as evidence...
    """
    seed = as_seed(seed)
    size, advance = len(modes), as_advance(situation, advance)
    environment = environment or getattr(modes, "environment", None)
    make_environment = environment or _worlds(modes, situation, advance)

    def belief(these: Any = modes) -> FiniteBelief[Any]:
        return FiniteBelief(these, prior)

    def agent(these: Any = modes) -> ControlRule[Any, Any, Any, Any]:
        return ControlRule(belief(these), situation, advance)

    truth = Stream.named(seed, 0, "truth").categorical(belief().posterior())
    history = _history(agent(), make_environment(truth), steps, seed)
    x, a, _ = history[-1]

    is_array = is_mode_array(modes)
    for m, mode in enumerate([] if is_array else modes):
        check_mode(mode, history, f"mode {m} ({name_of(modes, m)})")
    laws.check_deterministic(belief, history, seed=seed)
    laws.check_save(belief, history)
    laws.check_bad_evidence(belief, history, [(x, a, o) for o in bad])
    if is_array or not any(has(mode, protocols.Stateful) for mode in modes):
        laws.check_order(belief, history, seed=seed)
        laws.check_merge(belief, history)
    beliefs = {"as given": belief()}
    one_by_one = [modes[m] for m in range(size)]
    if all(has(m, protocols.Likelihood) for m in one_by_one):
        beliefs["one by one"] = belief(one_by_one)
        beliefs["in logarithms"] = belief([InLogarithms(m) for m in one_by_one])
    # Taking the logarithm of a likelihood rounds before the belief does.
    laws.check_agreement(beliefs, history, tolerance=1e-10)
    laws.check_intervention(agent, modes, [(a, o) for _, a, o in history])
    check_agent(agent, make_environment, steps=steps, runs=runs, seed=seed, false_alarm=false_alarm)


def _history(agent: Any, environment: Any, steps: int, seed: int) -> list[Event]:
    """Run the agent and return its events (x, a, o)."""
    p, q = both_streams(seed, 0)
    history = []
    for _ in range(steps):
        x, a = agent.x, agent.act(p)
        o = environment.respond(a, q)
        agent.observe(a, o)
        history.append((x, a, o))
    return history


def _worlds(modes: Any, situation: Any, advance: Any) -> Callable[[int], Any]:
    """Return a function that returns the world of mode m."""
    for m in range(len(modes)):
        if not has(modes[m], protocols.ObservationProbabilities):
            raise MissingCapability(
                f"mode {m} ({modes[m]!r}) has no observation_probabilities(x, a): add it, or "
                "pass environment=, a function that returns the world of mode m"
            )
    return lambda m: ModeEnvironment(modes[m], situation, advance)


class InLogarithms:
    """The same mode with `log_likelihood` only, to test the other code path of a belief."""

    def __init__(self, mode: Any) -> None:
        self.mode = mode
        if has(mode, protocols.Stateful):
            self.start, self.advance = mode.start, mode.advance
            self.uses_situation = getattr(mode, "uses_situation", False)

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        return safe_log(self.mode.likelihood(x, a, o))

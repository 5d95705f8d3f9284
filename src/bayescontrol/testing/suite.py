"""Run all laws on an agent or a class of modes, and check single modes.

**A mode** (`check_mode`), where exact probabilities and a private state s are optional:

    Σ_a P(a | m, x) = 1        Σ_o P(o | m, x, a) = 1        advance(s, a, o) does not change s

**The posterior** (`check_identities`). If the true mode m* is drawn from the prior, at any step t:

    E[P(m | âo_≤t)] = P(m)                                     the prior is preserved
    P(m_t = m*) = E[Σ_m P(m | âo_<t)²]   when m_t is drawn     the match rate
    P(∃ t: P(m* | âo_≤t) < δ P(m*)) ≤ δ                        Ville

An agent that treats its actions as evidence violates all three. They are tested on R simulated runs
of T steps. Hoeffding's bound gives the false-alarm rates: n independent numbers from [0, 1] with
expectation p have a mean of q or more with probability at most exp(-n KL(q ‖ p)), and likewise for
q below p. It holds for any distribution, so the stated rates are upper bounds.
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

#: A smaller gap between a mean and its expectation is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Runs:
    """The data of R simulated runs of T steps over M modes.

    >>> runs = Runs(np.array([0.5, 0.5]), np.eye(2), np.ones((2, 1)), np.ones((2, 1)), np.ones(2))
    >>> len(runs)
    2
    """

    prior: FloatArray  #: P(m), shape (M,)
    final: FloatArray  #: P(m | âo_≤T), shape (R, M)
    matched: FloatArray  #: 1 if m_t = m*, else 0; NaN if no mode was drawn; shape (R, T)
    match_probability: FloatArray  #: Σ_m P(m | âo_<t)², shape (R, T)
    lowest_ratio: FloatArray  #: min_t P(m* | âo_≤t) / P(m*), shape (R,)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.final)


def simulate(
    make: Callable[[], Any],
    make_environment: Callable[[int], Any],
    *,
    steps: int = 20,
    runs: int = 1000,
    seed: SeedLike = 0,
) -> Runs:
    """Simulate runs in the world of m* ~ P(m), a new m* in each run.

    `make()` returns a new agent, and `make_environment(m)` a new world of mode m.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> len(simulate(modes.agent, modes.environment, steps=2, runs=3))
    3
    """
    seed = as_seed(seed)
    prior = make().belief.posterior()
    result = Runs(
        prior, final=np.empty((runs, len(prior))), matched=np.full((runs, steps), math.nan),
        match_probability=np.empty((runs, steps)), lowest_ratio=np.ones(runs),
    )  # fmt: skip
    for run in range(runs):
        true = Stream.named(seed, run, "truth").categorical(prior)
        p, q = both_streams(seed, run)
        agent, environment = make(), make_environment(true)
        agent.schedule = schedule = _RecordingSchedule(agent.schedule)
        v = prior
        for t in range(steps):
            result.match_probability[run, t] = v @ v
            schedule.drew = agent.mode is None  # the first mode is drawn without the schedule
            a = agent.act(p)
            if schedule.drew:
                result.matched[run, t] = agent.belief.drawn == true
            try:
                agent.observe(a, environment.respond(a, q))
            except ImpossibleObservation as error:
                raise LawBroken(
                    f"run {run}: an observation from a world of its class was ruled out: {error}"
                ) from error
            v = agent.belief.posterior()
            result.lowest_ratio[run] = min(result.lowest_ratio[run], v[true] / prior[true])
        result.final[run] = v
    return result


class _RecordingSchedule:
    """A schedule that records in `drew` whether its last answer was to draw a mode."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.drew = schedule, False

    def __call__(self, held: Held[Any], rng: Stream) -> bool:
        self.drew = self.schedule(held, rng)
        return self.drew


def check_prior_preserved(runs: Runs, *, false_alarm: float = 1e-6) -> None:
    """Check E[P(m | âo_≤T)] = P(m) for every mode m.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_prior_preserved(simulate(modes.agent, modes.environment, runs=100))
    """
    for m, p in enumerate(runs.prior):
        mean = float(runs.final[:, m].mean())
        require(
            # Two sides for each mode share the false alarms.
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
        drew = ~np.isnan(runs.matched[:, t])  # the runs that drew a mode at step t
        n = int(drew.sum())
        if n:
            rate = float(runs.matched[drew, t].mean())
            expected = float(runs.match_probability[drew, t].mean())
            require(
                # Two sides for each step share the false alarms.
                _hoeffding_bound(n, rate, expected) >= false_alarm / (2 * steps),
                f"at step {t + 1} the drawn mode is the true one in {rate:.4f} of {n} runs, but "
                f"E[Σ posterior²] is {expected:.4f}",
            )


def check_ville(runs: Runs, delta: float = 0.05, *, false_alarm: float = 1e-6) -> None:
    """Check P(∃ t: P(m* | âo_≤t) < δ P(m*)) ≤ δ, with a binomial test.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_ville(simulate(modes.agent, modes.environment, runs=100))
    """
    from scipy.stats import binom  # type: ignore[import-untyped]

    n, k = len(runs), int((runs.lowest_ratio < delta).sum())
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
    """Return exp(-n KL(mean ‖ p)), a bound on the probability that n numbers have this mean.

    KL is that of two Bernoulli distributions, and p is the expectation.
    """
    from scipy.special import rel_entr  # type: ignore[import-untyped]

    if abs(mean - p) < _ROUNDING:
        return 1.0
    return math.exp(-n * float(rel_entr(mean, p) + rel_entr(1.0 - mean, 1.0 - p)))


def check_mode(mode: Any, history: Sequence[Event], who: str = "the mode") -> None:
    """Check one mode along a history: probabilities sum to 1, and `advance` changes no state.

    `who` names the mode in messages.

    >>> class Greedy:
    ...     def action_probabilities(self, x): return {"left": 0.7, "right": 0.7}
    >>> check_mode(Greedy(), [(None, "left", 1)])
    Traceback (most recent call last):
    bayescontrol.testing.laws.LawBroken: the policy of the mode sums to 1.4 in situation None
    """
    is_stateful = has(mode, protocols.Stateful)
    s = mode.start() if is_stateful else None
    for x, a, o in history:
        situation = state_for(mode, x, s) if is_stateful else x
        where = f"in situation {situation!r}"
        if has(mode, protocols.ActionProbabilities):
            total = sum(mode.action_probabilities(situation).values())
            message = f"the policy of {who} sums to {total:.9g} {where}"
            require(abs(total - 1.0) <= TOLERANCE, message)
        if has(mode, protocols.ObservationProbabilities):
            total = sum(mode.observation_probabilities(situation, a).values())
            message = f"the hypothesis of {who} sums to {total:.9g} {where} after action {a!r}"
            require(abs(total - 1.0) <= TOLERANCE, message)
        if is_stateful:
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

    The identities of the posterior are tested on `runs` runs of `steps` steps; take more steps if
    an error may show up late. A correct agent fails with probability at most `false_alarm`, taken
    over seeds.

    >>> from bayescontrol.finite.tabular import random_modes
    >>> modes = random_modes(2)
    >>> check_agent(modes.agent, modes.environment)
    """
    seed = as_seed(seed)

    def world() -> Any:
        return make_environment(0)

    laws.check_acting(make, world, steps)
    laws.check_same_seed(make, world, steps, seed=seed)
    probes = {"v": posterior, "bits": log_score, "m": drawn_mode}
    laws.check_probes(make, world, probes, steps, seed=seed)
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

    `prior`, `situation` and `advance` are those of the agent. `environment(m)` returns the world of
    mode m; modes with `observation_probabilities` do not need it. `bad` are observations that can
    never occur. The first violated law raises `LawBroken`. The identities of the posterior are
    tested on `runs` runs of `steps` steps; take more steps if an error may be small or late.
    Correct modes fail with probability at most `false_alarm`, taken over seeds.

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
    advance = as_advance(situation, advance)
    environment = environment or getattr(modes, "environment", None)
    make_environment = environment or _worlds(modes, situation, advance)

    def belief(members: Any = modes) -> FiniteBelief[Any]:
        return FiniteBelief(members, prior)

    def agent(members: Any = modes) -> ControlRule[Any, Any, Any, Any]:
        return ControlRule(belief(members), situation, advance)

    true = Stream.named(seed, 0, "truth").categorical(belief().posterior())
    history = _history(agent(), make_environment(true), steps, seed)
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
    listed = [modes[m] for m in range(len(modes))]
    if all(has(mode, protocols.Likelihood) for mode in listed):
        beliefs["as a list"] = belief(listed)
        beliefs["in logarithms"] = belief([InLogarithms(mode) for mode in listed])
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
    """Return a function of m that returns the world in which the hypothesis of mode m is true."""
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
        """Return ln P(o | m, x, a), from the likelihood of the mode."""
        return safe_log(self.mode.likelihood(x, a, o))

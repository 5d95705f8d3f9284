"""Verdicts by simulation, for infinite classes and for densities: rates and shares with errors.

    rate       x̄ ± s/√n over n runs; positive if above three errors, after (3 s/x̄)² runs
    share      k/n, with low and high such that P(≥ k | low) = P(≤ k | high) = α/2

All pairs of a short list of modes are checked; otherwise pairs are drawn from the prior. From
random *starts*, situations to which other modes led the agent, the modes of a pair act, and we
record whether their actions separate them. A start is *blind* if they do not.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, require_between
from bayescontrol._mode_queries import as_mode_list
from bayescontrol.convergence.settling import require_counts
from bayescontrol.convergence.verdict import Outcome, Reason
from bayescontrol.convergence.walks import Walk
from bayescontrol.errors import MissingCapability, counted
from bayescontrol.modes import ModeEnvironment
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.situations import Advance
from bayescontrol.statistics import mean_and_error

#: Relative errors below this are rounding errors.
ROUNDING = 1e-12


class Rate(NamedTuple):
    """A divergence rate in nats per step, ± its standard error over the runs.

    >>> Rate(0.0213, 0.0010, runs=20, steps=1000)
    0.0213 ± 0.001 nats per step (20 runs of 1000 steps)
    >>> Rate(0.01, 0.01, runs=20, steps=1000).runs_needed
    180
    """

    mean: float
    error: float
    runs: int
    steps: int

    @property
    def positive(self) -> bool:
        """Return whether it is above zero by more than three standard errors."""
        return self.mean > 3.0 * self.error

    @property
    def runs_needed(self) -> int:
        """Return (3 sd/mean)², the runs after which a rate of this size and spread is positive."""
        if self.positive or not self.error < math.inf:
            return max(self.runs, 2)
        size = max(self.mean, self.error)  # for a mean below the error use the error
        return math.ceil(self.runs * (3.0 * self.error / size) ** 2) if size > 0.0 else self.runs

    def __repr__(self) -> str:
        error = self.error if self.error > ROUNDING * abs(self.mean) else 0.0
        spread = f" ± {error:.2g}" if self.error < math.inf else ""
        return (
            f"{self.mean:.3g}{spread} nats per step "
            f"({counted(self.runs, 'run')} of {counted(self.steps, 'step')})"
        )


def mean_rate(nats: FloatArray, steps: int) -> Rate:
    """Return the mean of nats/steps over the runs; infinite if one run has infinite evidence.

    `nats` has the evidence of each run of `steps` steps, shape (runs,).
    """
    if np.isposinf(nats).any():
        return Rate(math.inf, 0.0, len(nats), steps)
    mean, error = mean_and_error(nats)
    return Rate(float(mean) / steps, float(error) / steps, len(nats), steps)


class Share(NamedTuple):
    """A share k/n with its exact (Clopper-Pearson) interval.

    >>> clopper_pearson(0, 60)
    0 of 60 (0 to 5.96 %)
    """

    hits: int
    of: int
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.hits} of {self.of} ({100 * self.low:.3g} to {100 * self.high:.3g} %)"


def clopper_pearson(hits: int, of: int, level: float = 0.95) -> Share:
    """Return k/n with low and high such that P(≥ k | low) = P(≤ k | high) = α/2.

    >>> print(f"{clopper_pearson(9, 10).low:.4f}")
    0.5550
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    tail = (1.0 - level) / 2.0
    low = float(betaincinv(hits, of - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, of - hits, 1.0 - tail)) if hits < of else 1.0
    return Share(hits, of, low, high)


#: Number of blind starts that are followed further, to find one where nothing gives evidence.
FOLLOWED = 5


class SamplingPlan(NamedTuple):
    """The settings of `sampled_check` that apply to each pair."""

    #: The number of starts n, the most steps to reach one, and the steps that follow it.
    starts: int
    wander_steps: int
    steps: int
    #: The share of starts that may be blind, and the probability per step that counts as never.
    rare: float
    slow: float

    @property
    def patience(self) -> int:
        """Return ln(n/.05)/s steps, at least `steps`; s is `slow`.

        Evidence that has probability s per step is missed from one of n starts in 5 % of cases.
        """
        return max(self.steps, math.ceil(math.log(self.starts / 0.05) / self.slow))


class StartStatistics(NamedTuple):
    """The evidence from all starts, with a given set of modes acting."""

    rate: Rate
    #: The number of blind starts.
    blind: int
    #: Whether the two modes acted differently late in a run.
    act_differently: bool
    #: Blind starts where the two modes act differently, and where a long run of only these two
    #: gave no evidence.
    silent: int
    #: Silent starts where a long run of all modes gave no evidence either.
    stuck: int


def follow_starts(
    make_walk: Callable[..., Walk], acting: Sequence[int], plan: SamplingPlan, first_run: int
) -> StartStatistics:
    """Go to every start, let the modes `acting` act from there, and collect the evidence.

    `make_walk(run=i)` returns an independent walk for every i; the first i is `first_run`.
    """
    totals: list[float] = []  # the evidence of each start, in nats
    blind = silent = stuck = 0
    act_differently = False
    late = plan.wander_steps // 2  # a step counts as late after this one
    for run in range(first_run, first_run + plan.starts):
        walk = make_walk(run=run)
        everyone, t = range(len(walk.modes)), 0
        for _ in walk.turns(everyone, walk.chance.integers(plan.wander_steps + 1)):
            t += 1
            act_differently = act_differently or (t > late and walk.disagree())
        if walk.ruled_out:  # the other mode is refuted before the start
            continue
        nats, separated, differ_here = 0.0, False, False
        for step in walk.turns(acting, plan.steps):
            t += 1
            nats += step.nats
            separated |= step.separated
            differ_here = differ_here or (t > late and walk.disagree())
        totals.append(nats)
        act_differently |= differ_here
        if not separated and differ_here and len(acting) > 1 and not stuck and silent < FOLLOWED:
            separated = any(step.separated for step in walk.turns(acting, plan.patience))
            silent += not separated
            # Other modes matter only where the pair gives no evidence.
            stuck += not separated and not any(
                step.separated for step in walk.turns(everyone, plan.patience)
            )
        blind += not separated
    # If the other was ruled out before nearly every start, its rate is infinite.
    rate = mean_rate(np.array(totals if len(totals) > 1 else [math.inf]), plan.steps)
    return StartStatistics(rate, blind, act_differently, silent, stuck)


#: Rounding error of a number of starts times a share, which is meant to be an integer.
_STARTS_ROUNDING = 1e-9
#: The largest number of pairs of a list that are all checked.
MOST_PAIRS = 100
#: Number of other modes that take turns with the pair on the way to a start.
OTHER_MODES = 8


@dataclass(frozen=True, eq=False)
class SampledPair:
    """The sampled verdict on mode `other` when `true` is true."""

    true: Any
    other: Any
    outcome: Outcome
    reason: str
    starts: int
    #: Starts from which the true mode's policy gave no evidence.
    blind: int
    #: Whether the two acted differently late in a run.
    act_differently: bool
    #: Rate under the true mode's policy.
    rate: Rate
    #: Starts from which the two, taking turns, gave no evidence; None if not simulated.
    blind_both: int | None = None
    #: Steps of the two, taking turns, from a blind start without evidence.
    silence: int = 0
    #: The sample size that would decide, if this one does not.
    needed: str = ""

    def __repr__(self) -> str:
        more = f"; needed: {self.needed}" if self.needed else ""
        return (
            f"SampledPair({self.outcome.name}: {self.reason}; {self.blind} of "
            f"{counted(self.starts, 'start')} blind, {self.rate!r}{more})"
        )


@dataclass(frozen=True, eq=False)
class SampledVerdict:
    """The sampled verdict on a class: pairs of modes drawn from the prior, or all pairs of a list.

    >>> from bayescontrol import DiscreteMode
    >>> def draw(rng):
    ...     p = rng.random()
    ...     return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {1: p, 0: 1 - p})
    >>> world = lambda m: m.environment()
    >>> sampled_check(draw, world=world, steps=5)
    SampledVerdict(THEOREM for at least 83.2 % of pairs: 20 pairs from the prior, each from 60 \
starts of 5 steps)
      theorem    20 of 20 (83.2 to 100 %): the true mode's policy refutes it
    >>> sampled_check(draw, world=world, steps=5, modes=8)
    SampledVerdict(UNDECIDED: 4 pairs from the prior, each from 60 starts of 5 steps)
      theorem    4 of 4 (39.8 to 100 %): the true mode's policy refutes it
      would decide: 17 pairs (modes=34), to exclude that a share of 0.2 does not settle
    """

    pairs: tuple[SampledPair, ...] = field(repr=False)
    steps: int
    #: Maximum share of pairs that may not settle if the verdict is that the class settles.
    rare_pairs: float = 0.2
    #: Whether these are all pairs of the class.
    complete: bool = False

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome of the pairs; undecided if there are too few of them.

        THEOREM and SETTLES hold for a share of at least 1 - `rare_pairs` of the pairs under the
        prior, see `at_least`. A single pair that is undecided or never settles decides the outcome.
        """
        worst = self._worst
        too_few = not self.complete and self.at_least < 1.0 - self.rare_pairs
        return Outcome.UNDECIDED if too_few and worst <= Outcome.SETTLES else worst

    @property
    def at_least(self) -> float:
        """Return the 97.5 % lower bound on the share of pairs under the prior that settle."""
        settling = sum(pair.outcome <= Outcome.SETTLES for pair in self.pairs)
        return clopper_pearson(settling, len(self.pairs)).low

    @property
    def _worst(self) -> Outcome:
        """Return the worst outcome of the pairs, however few they are."""
        return max(pair.outcome for pair in self.pairs)

    def share(self, outcome: Outcome) -> Share:
        """Return the share of pairs with this outcome under the prior, with its interval."""
        return clopper_pearson(sum(p.outcome is outcome for p in self.pairs), len(self.pairs))

    @property
    def in_core(self) -> Share:
        """Return the share of pairs with a blind start: m seems to be in the core of m*."""
        return clopper_pearson(sum(p.blind > 0 for p in self.pairs), len(self.pairs))

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the sample sizes that would decide the undecided pairs and the class."""
        needed = dict.fromkeys(pair.needed for pair in self.pairs if pair.needed)
        if self.outcome is not self._worst:
            # All pairs settle: more pairs that settle would decide.
            # If a share `rare_pairs` did not settle, n pairs would all settle in 2.5 % of cases.
            n = math.ceil(math.log(0.025) / math.log1p(-self.rare_pairs))
            purpose = f"to exclude that a share of {self.rare_pairs:g} does not settle"
            needed[f"{counted(n, 'pair')} (modes={2 * n}), {purpose}"] = None
        return tuple(needed)

    def __repr__(self) -> str:
        outcome, pairs = self.outcome, counted(len(self.pairs), "pair")
        confidence = f" for at least {100 * self.at_least:.3g} % of pairs"
        is_share = outcome <= Outcome.SETTLES and not self.complete
        lines = [
            f"SampledVerdict({outcome.name}{confidence * is_share}: "
            f"{f'all {pairs}' if self.complete else f'{pairs} from the prior'}, each from "
            f"{counted(self.pairs[0].starts, 'start')} of {counted(self.steps, 'step')})"
        ]
        for outcome in Outcome:
            reasons = Counter(p.reason for p in self.pairs if p.outcome is outcome)
            if reasons:
                share = f"{self.share(outcome)!r}".partition(" (" if self.complete else "\n")[0]
                lines.append(f"  {outcome.name.lower():10} {share}: {'; '.join(reasons)}")
        return "\n".join([*lines, *(f"  would decide: {what}" for what in self.needed)])


def sampled_check(
    draw: Callable[[Stream], object] | Sequence[object],
    *,
    world: Callable[[Any], object] | None = None,
    situation: Any = None,
    advance: Advance | None = None,
    modes: int = 40,
    starts: int = 60,
    steps: int = 200,
    wander_steps: int = 50,
    rare: float = 0.05,
    slow: float = 0.001,
    rare_pairs: float = 0.2,
    seed: SeedLike = 0,
    progress: Callable[[int, int], object] | None = None,
) -> SampledVerdict:
    """Check by simulation whether the rule settles, for modes with densities or infinitely many.

    `draw(rng)` returns a mode from the prior; the `modes` drawn are paired two by two, and an odd
    one is not used. For a finite class, `draw` is the list of its modes, or returns the same few
    objects: then every ordered pair of these is checked, or 100 of them, drawn at random, if there
    are more. `world(mode)` returns the world that the mode describes; it may be left out if modes
    have `observation_probabilities(x, a)` or `environment()`. `progress` is called with the numbers
    of finished and of all pairs.

    In the world of the first mode of a pair, some modes take turns for up to `wander_steps` steps;
    from this start the first mode acts for `steps`. If that gives no evidence and the two act
    differently, both take turns. A start before which the other was ruled out counts as separated.
    Late means after half of `wander_steps`.

    A pair settles if none of 3/`rare` starts is blind. It never settles if, from a blind start
    where the two act differently, there is no evidence in ln(`starts`/.05)/`slow` steps of the two,
    nor in as many steps of all modes: never means with probability below `slow` per step.

    The class settles if all pairs do and there are enough of them to conclude that a share of at
    least 1 - `rare_pairs` of all pairs settles, with 97.5 % confidence. With the default this takes
    17 pairs; 20 pairs give "at least 83 %". For 95 % use `rare_pairs=0.05` and `modes=144`, at
    about four times the cost. Such a sample does not detect pairs rarer than `rare_pairs`.

    >>> from bayescontrol import DiscreteMode
    >>> def draw(rng):                                  # both modes expect a fair coin
    ...     hand = rng.choice(["left", "right"])
    ...     return DiscreteMode(lambda x: {hand: 1.0}, lambda x, a: {1: 0.5, 0: 0.5})
    >>> verdict = sampled_check(draw, world=lambda m: m.environment(),
    ...                         modes=8, steps=20)
    >>> verdict.outcome.name, verdict.in_core.hits
    ('NEVER', 4)
    """
    seed = as_seed(seed)
    require_counts(
        modes=(modes, 2), starts=(starts, 2), steps=(steps, 1), wander_steps=(wander_steps, 0)
    )
    for name, chance in (("rare", rare), ("slow", slow), ("rare_pairs", rare_pairs)):
        require_between(name, chance, 0.0, 1.0, ends="()")
    plan = SamplingPlan(starts, wander_steps, steps, rare, slow)
    drawn, chosen, complete = _choose_pairs(draw, modes, Stream.named(seed, 0, "prior"))
    if not chosen:
        raise MissingCapability("a class with fewer than two modes has no pair to check")
    make_world = world or partial(_described_world, situation=situation, advance=advance)
    report, pairs = progress or (lambda _finished, _all: None), []
    for n, (true, other) in enumerate(chosen):
        report(n, len(chosen))
        others = [m for m in (*range(other + 1, len(drawn)), *range(other)) if m != true]
        group = [drawn[m] for m in (true, other, *others[:OTHER_MODES])]
        make_walk = partial(Walk, group, make_world, situation, advance, seed=seed)
        pairs.append(_check_pair(group, make_walk, plan, first_run=2 * n * starts))
    report(len(chosen), len(chosen))
    return SampledVerdict(tuple(pairs), steps, rare_pairs, complete)


def _choose_pairs(
    draw: Any, modes: int, rng: Stream
) -> tuple[list[Any], list[tuple[int, int]], bool]:
    """Return modes, the pairs (true, other) of their indices to check, and whether these are all.

    `draw` is a list of modes, or returns modes from the prior; then `modes` of them are drawn.
    """
    if callable(draw):
        drawn = [draw(rng) for _ in range(modes - modes % 2)]
        distinct = list({id(mode): mode for mode in drawn}.values())
        if not 1 < len(distinct) <= len(drawn) // 2:
            return drawn, [(i, i + 1) for i in range(0, len(drawn), 2)], False
        draw = distinct  # a finite class: the same few modes were drawn again and again
    listed = as_mode_list(draw)
    pairs = list(permutations(range(len(listed)), 2))
    if len(pairs) <= MOST_PAIRS:
        return listed, pairs, True
    chosen = sorted(rng.permutation(len(pairs))[:MOST_PAIRS].tolist())
    return listed, [pairs[k] for k in chosen], False


def _described_world(mode: Any, situation: object, advance: Advance | None) -> object:
    """Return the world in which the hypothesis of the mode is true."""
    if hasattr(mode, "observation_probabilities"):
        return ModeEnvironment(mode, situation, advance)
    if hasattr(mode, "environment"):
        return mode.environment()
    raise MissingCapability(
        f"{mode!r} has densities, so its pairs are checked by simulation, which needs its world: "
        "give the mode a method environment() that returns an object with respond(a, rng), or "
        "pass a function world(mode); `bayescontrol check` uses the function `world` of your file"
    )


def _check_pair(
    group: Sequence[Any], make_walk: Callable[..., Walk], plan: SamplingPlan, first_run: int
) -> SampledPair:
    """Return the verdict on group[1] in the world of group[0].

    First only the true mode acts; if that does not decide, the two take turns.
    """
    single = follow_starts(make_walk, [0], plan, first_run)
    both: StartStatistics | None = None
    needed = ""
    if single.blind == 0:
        reason, rate = Reason.OUTSIDE_CORE, single.rate
    elif not single.act_differently:
        reason, rate = Reason.CONSISTENT, None
    else:
        both = follow_starts(make_walk, [0, 1], plan, first_run + plan.starts)
        if both.blind == 0:
            reason, rate = Reason.TURNS, both.rate
        elif both.silent == 0:
            reason, rate = Reason.ALIKE_WHERE_BLIND, None
        else:
            reason, rate = (Reason.DEADLOCK if both.stuck else Reason.THIRD_MODE), None
    outcome, explanation = reason.outcome, reason.value
    if rate is not None and not rate.positive:
        outcome = Outcome.UNDECIDED
        explanation = "predictions differ, but the rate is not clearly positive"
        needed = f"{counted(rate.runs_needed, 'start')}, for a rate of {rate!r}"
    # Without a blind start among n, a share above 3/n is excluded with 95 % confidence.
    elif outcome <= Outcome.SETTLES and plan.starts * plan.rare < 3.0 - _STARTS_ROUNDING:
        outcome, explanation = Outcome.UNDECIDED, f"so far {explanation}"
        starts_needed = math.ceil(3.0 / plan.rare - _STARTS_ROUNDING)
        needed = f"{starts_needed} starts, to exclude a share of {plan.rare:g}"
    return SampledPair(
        true=group[0], other=group[1], outcome=outcome, reason=explanation, starts=plan.starts,
        blind=single.blind, act_differently=single.act_differently, rate=single.rate,
        blind_both=both.blind if both else None,
        silence=plan.patience if both and both.silent else 0, needed=needed,
    )  # fmt: skip

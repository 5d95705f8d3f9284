"""What a sample says, and how well: rates and shares with their errors.

rate       x̄ ± s/√n over n runs; clear of zero beyond three errors, after (3 s/x̄)² runs
share      k/n, with low and high such that P(≥ k | low) = P(≤ k | high) = α/2
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.verdict import Outcome, Reason
from bayescontrol.convergence.walks import Walk
from bayescontrol.errors import MissingCapability, counted
from bayescontrol.seeding import Stream

#: An error so much smaller than the number itself is rounding.
ROUNDING = 1e-12


def with_error(value: float, error: float, digits: str = ".3g") -> str:
    """x ± its standard error; 0 if that is rounding, and none if it is not known.

    >>> with_error(0.17432, 4.6e-18), with_error(0.17432, 0.0021), with_error(0.17432, math.inf)
    ('0.174 ± 0', '0.174 ± 0.0021', '0.174')
    """
    shown = f"{value:{digits}}"
    if not error < math.inf:
        return shown
    return f"{shown} ± {error if error > ROUNDING * abs(value) else 0.0:.2g}"


class Rate(NamedTuple):
    """A divergence rate in nats a step, ± its standard error over the runs.

    >>> Rate(0.0213, 0.0010, runs=20, steps=1000)
    0.0213 ± 0.001 nats a step (20 runs of 1000 steps)
    >>> Rate(0.01, 0.01, runs=20, steps=1000).runs_needed
    180
    """

    mean: float
    error: float
    runs: int
    steps: int

    @property
    def positive(self) -> bool:
        """Whether it is above zero by more than three standard errors."""
        return self.mean > 3.0 * self.error

    @property
    def runs_needed(self) -> int:
        """(3 sd/mean)²: the runs after which a rate of this size and spread is clear of zero."""
        if self.positive or not self.error < math.inf:
            return max(self.runs, 2)
        size = max(self.mean, self.error)  # a mean of zero or less has at most the error's size
        return math.ceil(self.runs * (3.0 * self.error / size) ** 2) if size > 0.0 else self.runs

    def __repr__(self) -> str:
        return (
            f"{with_error(self.mean, self.error)} nats a step "
            f"({counted(self.runs, 'run')} of {counted(self.steps, 'step')})"
        )


def mean_rate(nats: FloatArray, steps: int) -> Rate:
    """The mean over runs of nats/steps; what is infinite in one run is so on average, for sure.

    >>> import numpy as np
    >>> mean_rate(np.array([1.0, 2.0, 3.0]), steps=10)
    0.2 ± 0.058 nats a step (3 runs of 10 steps)
    """
    n = len(nats)
    if any(total == math.inf for total in nats):
        return Rate(math.inf, 0.0, n, steps)
    error = nats.std(ddof=1) / math.sqrt(n) if n > 1 else math.inf
    return Rate(float(nats.mean()) / steps, float(error) / steps, n, steps)


class Share(NamedTuple):
    """A share k/n with its exact interval (Clopper and Pearson), 95 % unless said otherwise.

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
    """The p that n tosses with k successes do not exclude: P(≥ k | low) = P(≤ k | high) = α/2.

    >>> print(f"{clopper_pearson(9, 10).low:.4f}")
    0.5550
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    if not (0 <= hits <= of and of > 0 and 0.0 < level < 1.0):
        raise ValueError(f"{hits} of {of} at level {level}: need 0 <= hits <= of, of > 0")
    tail = (1.0 - level) / 2.0
    low = float(betaincinv(hits, of - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, of - hits, 1.0 - tail)) if hits < of else 1.0
    return Share(hits, of, low, high)


#: So many blind starts are followed for long, to find one that stays silent whoever acts.
FOLLOWED = 5


class Plan(NamedTuple):
    """How many starts, how far from them, and what counts as rare and as slow.

    >>> Plan(60, 200, 50, rare=0.05, slow=0.001).patience
    7091
    """

    starts: int
    steps: int
    wander_steps: int
    rare: float
    slow: float

    @property
    def patience(self) -> int:
        """ln(n/.05)/s: a silence that evidence with a chance of s a step keeps nowhere in n."""
        return max(self.steps, math.ceil(math.log(self.starts / 0.05) / self.slow))


class Seen(NamedTuple):
    """What was seen from all starts, with some modes acting.

    >>> Seen(Rate(0.1, 0.01, 60, 200), blind=0, differ=True, silent=0, stuck=0).blind
    0
    """

    rate: Rate
    blind: int
    differ: bool
    #: Blind starts where the two disagree and stayed silent for long, if only they act.
    silent: int
    #: And of these, those where it stayed silent whoever acted.
    stuck: int


def look(walk: Callable[[int], Walk], who: Sequence[int], plan: Plan, base: int = 0) -> Seen:
    """Come to every start, let `who` act from there, and see what it tells.

    `walk(run)` gives a stream of its own for every run; runs are counted from `base`.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> def walk(run):
    ...     return Walk(list(modes), lambda m: modes.environment(m.m), 0, modes.advance, run=run)
    >>> look(walk, [0], Plan(20, 10, 5, rare=0.05, slow=0.001))
    Seen(rate=0.549 ± 0 nats a step (20 runs of 10 steps), blind=0, differ=True, silent=0, stuck=0)
    """
    nats: list[float] = []
    blind = silent = stuck = 0
    differ = False
    for run in range(plan.starts):
        here = walk(base + run)
        everyone = range(len(here.modes))
        t, late = 0, plan.wander_steps // 2
        for _ in here.turns(everyone, here.chance.integers(plan.wander_steps + 1)):
            t += 1
            differ = differ or (t > late and here.disagree())
        if here.ruled_out:
            continue
        total, parted, apart = 0.0, False, False
        for told in here.turns(who, plan.steps):
            t += 1
            total += told.nats
            parted |= told.parted
            apart = apart or (t > late and here.disagree())
        nats.append(total)
        differ |= apart
        if not parted and apart and len(who) > 1 and not stuck and silent < FOLLOWED:
            parted = any(told.parted for told in here.turns(who, plan.patience))
            silent += not parted
            # Only from where the pair is helpless does it matter what others do.
            stuck += not parted and not any(t.parted for t in here.turns(everyone, plan.patience))
        blind += not parted
    # If the other was ruled out on the way to nearly every start, nothing is faster.
    rate = mean_rate(np.array(nats if len(nats) > 1 else [math.inf]), plan.steps)
    return Seen(rate, blind, differ, silent, stuck)


#: The pair itself and so many others take turns on the way to a start.
COMPANY = 8


def sampled_rate(
    true: Any,
    other: Any,
    *,
    world: Callable[[Any], Any],
    policy: Any = None,
    situation: Any = None,
    advance: Callable[[Any, Any, Any], Any] | None = None,
    wander: Sequence[Any] = (),
    wander_steps: int = 100,
    burn: int = 0,
    steps: int = 1000,
    runs: int = 30,
    seed: int = 0,
) -> Rate:
    """(1/n) Σ_t G_t of `other` from `true` in the world of `true`, over n = `steps` steps.

    `policy` acts, by default the true mode. If `wander` names policies, they take turns first,
    for a random number of steps up to `wander_steps`. `burn` steps of the policy are not
    counted: with a chain that takes its time to mix, let it. Infinite if something happens, or
    may happen, that `other` rules out.

    >>> from bayescontrol import DiscreteMode
    >>> def coin(p): return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {1: p, 0: 1 - p})
    >>> world = lambda mode: mode.environment()
    >>> sampled_rate(coin(0.5), coin(0.75), world=world, steps=10, runs=3)  # ln(2/√3), exactly
    0.144 ± 0 nats a step (3 runs of 10 steps)
    """
    _check_counts(steps=(steps, 1), runs=(runs, 1), burn=(burn, 0), wander_steps=(wander_steps, 0))
    modes = [true, other, true if policy is None else policy, *wander]
    acting = 0 if policy is None else 2
    nats = np.empty(runs)
    for run in range(runs):
        walk = Walk(modes, world, situation, advance, seed=seed, run=run)
        if wander:
            for _ in walk.turns(range(3, len(modes)), walk.chance.integers(wander_steps + 1)):
                pass
        for _ in range(burn):
            walk.step(acting)
        nats[run] = sum(walk.step(acting).nats for _ in range(steps))
    return mean_rate(nats, steps)


@dataclass(frozen=True, eq=False)
class SampledPair:
    """What the sample says of mode `other` when `true` is true.

    >>> SampledPair("m1", "m2", Outcome.THEOREM, "…", 60, 0, False, Rate(0.1, 0.01, 60, 200))
    SampledPair(THEOREM: …; 0 of 60 starts blind, 0.1 ± 0.01 nats a step (60 runs of 200 steps))
    """

    true: Any
    other: Any
    outcome: Outcome
    reason: str
    starts: int
    #: Starts from which the true mode's policy showed no difference in prediction.
    blind: int
    #: Whether the two were seen to act differently, late.
    act_differently: bool
    #: Under the true mode's policy.
    rate: Rate
    #: Starts from which the two, taking turns, showed no difference; None if nobody looked.
    blind_both: int | None = None
    #: Under both policies, taking turns.
    rate_both: Rate | None = None
    #: The steps for which the two, taking turns, were followed from a blind start in vain.
    silence: int = 0
    #: What would decide, where this sample does not.
    needed: str = ""

    def __repr__(self) -> str:
        more = f"; needed: {self.needed}" if self.needed else ""
        return (
            f"SampledPair({self.outcome.name}: {self.reason}; {self.blind} of "
            f"{counted(self.starts, 'start')} blind, {self.rate!r}{more})"
        )


@dataclass(frozen=True, eq=False)
class SampledVerdict:
    """What the sample says of a class: pairs of modes drawn independently from the prior.

    >>> from bayescontrol import DiscreteMode
    >>> def draw(rng):
    ...     p = rng.random()
    ...     return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {1: p, 0: 1 - p})
    >>> world = lambda m: m.environment()
    >>> sampled_check(draw, world=world, steps=5)
    SampledVerdict(THEOREM for at least 83.2 % of pairs: 20 pairs from the prior, each from 60 \
starts of 5 steps)
      theorem    20 of 20 (83.2 to 100 %): the true mode's own policy refutes it
    >>> sampled_check(draw, world=world, steps=5, modes=8)
    SampledVerdict(UNDECIDED: 4 pairs from the prior, each from 60 starts of 5 steps)
      theorem    4 of 4 (39.8 to 100 %): the true mode's own policy refutes it
      would decide: 17 pairs (modes=34), to exclude that a share of 0.2 does not settle
    """

    pairs: tuple[SampledPair, ...] = field(repr=False)
    steps: int
    #: The share of pairs that may do otherwise where the class is said to settle.
    rare_pairs: float = 0.2

    @property
    def outcome(self) -> Outcome:
        """The worst over the pairs that were drawn; undecided if they are too few to say so.

        THEOREM and SETTLES hold for a share of at least 1 - `rare_pairs` of the pairs under the
        prior, see `at_least`. One pair that never settles, or is undecided, has the last word.
        """
        worst = self._worst
        few = worst <= Outcome.SETTLES and self.at_least < 1.0 - self.rare_pairs
        return Outcome.UNDECIDED if few else worst

    @property
    def at_least(self) -> float:
        """The share of pairs under the prior that settle, at least, with 97.5 %."""
        return clopper_pearson(
            sum(p.outcome <= Outcome.SETTLES for p in self.pairs), len(self.pairs)
        ).low

    @property
    def _worst(self) -> Outcome:
        return max(pair.outcome for pair in self.pairs)

    def share(self, outcome: Outcome) -> Share:
        """The share of pairs with this outcome under the prior, with its interval."""
        return clopper_pearson(sum(p.outcome is outcome for p in self.pairs), len(self.pairs))

    @property
    def in_core(self) -> Share:
        """The share of pairs with a blind start: m is in the core of m*, as far as was seen."""
        return clopper_pearson(sum(p.blind > 0 for p in self.pairs), len(self.pairs))

    @property
    def needed(self) -> tuple[str, ...]:
        """What would decide the pairs that this sample does not, and the class."""
        needed = dict.fromkeys(pair.needed for pair in self.pairs if pair.needed)
        if self.outcome is not self._worst:
            # All settle: more pairs that do, and no other kind, would decide.
            n = math.ceil(math.log(0.025) / math.log1p(-self.rare_pairs))
            words = f"to exclude that a share of {self.rare_pairs:g} does not settle"
            needed[f"{counted(n, 'pair')} (modes={2 * n}), {words}"] = None
        return tuple(needed)

    def __repr__(self) -> str:
        outcome = self.outcome
        sure = f" for at least {100 * self.at_least:.3g} % of pairs"
        lines = [
            f"SampledVerdict({outcome.name}{sure * (outcome <= Outcome.SETTLES)}: "
            f"{counted(len(self.pairs), 'pair')} from the prior, each from "
            f"{counted(self.pairs[0].starts, 'start')} of {counted(self.steps, 'step')})"
        ]
        for outcome in Outcome:
            reasons = Counter(p.reason for p in self.pairs if p.outcome is outcome)
            if reasons:
                share = f"{outcome.name.lower():10} {self.share(outcome)!r}"
                lines.append(f"  {share}: {'; '.join(reasons)}")
        return "\n".join([*lines, *(f"  would decide: {what}" for what in self.needed)])


def sampled_check(
    draw: Callable[[Stream], Any],
    *,
    world: Callable[[Any], Any],
    situation: Any = None,
    advance: Callable[[Any, Any, Any], Any] | None = None,
    modes: int = 40,
    starts: int = 60,
    steps: int = 200,
    wander_steps: int = 50,
    rare: float = 0.05,
    slow: float = 0.001,
    rare_pairs: float = 0.2,
    seed: int = 0,
) -> SampledVerdict:
    """Does the rule settle, for two modes drawn from the prior? By sampling R, see the module.

    `draw(rng)` gives a mode from the prior and `world(mode)` the world as it has it. So many
    `modes` are paired two by two, and one that is left over is not used. In the world of the
    first, some modes' policies take turns for up to `wander_steps` steps; from this start the
    first mode's own policy runs for `steps`. Where that shows nothing and the two act differently,
    both take turns. A start on the way to which the other was ruled out counts as parted. Late
    means after half of `wander_steps`.

    A pair settles if no start in 3/`rare` is blind. It never settles if from a blind start, where
    the two act differently, nothing came to light in ln(`starts`/.05)/`slow` steps of the two, nor
    in as many of everyone: never means with a chance below `slow` a step.

    The class settles if all pairs do and there are enough of them: at least a share of
    1 - `rare_pairs` of all pairs settles then, with 97.5 %. With the default that takes 17 pairs;
    20 say "at least 83 %". For 95 % ask for `rare_pairs=0.05` and `modes=144`, at about four
    times the cost. What is rarer than `rare_pairs` such a sample does not see.

    >>> from bayescontrol import DiscreteMode
    >>> def draw(rng):                                  # the coin is fair, whoever tosses it
    ...     hand = rng.choice(["left", "right"])
    ...     return DiscreteMode(lambda x: {hand: 1.0}, lambda x, a: {1: 0.5, 0: 0.5})
    >>> verdict = sampled_check(draw, world=lambda m: m.environment(),
    ...                         modes=8, steps=20)
    >>> verdict.outcome.name, verdict.in_core.hits
    ('NEVER', 4)
    """
    _check_counts(modes=(modes, 2), starts=(starts, 2), steps=(steps, 1))
    _check_counts(wander_steps=(wander_steps, 0))
    for name, chance in (("rare", rare), ("slow", slow), ("rare_pairs", rare_pairs)):
        if not 0.0 < chance < 1.0:
            raise ValueError(f"{name}={chance}: it is a chance between 0 and 1")
    if not callable(draw):
        raise MissingCapability(f"draw={draw!r} must be a function draw(rng) that gives a mode")
    plan = Plan(starts, steps, wander_steps, rare, slow)
    rng = Stream.named(seed, 0, "prior")
    drawn = [draw(rng) for _ in range(modes - modes % 2)]
    pairs = []
    for i in range(0, len(drawn), 2):
        company = [drawn[(i + j) % len(drawn)] for j in range(min(2 + COMPANY, len(drawn)))]

        def walk(run: int, company: list[Any] = company, i: int = i) -> Walk:
            return Walk(company, world, situation, advance, seed=seed, run=run + i * starts)

        pairs.append(_judge(walk, plan))
    return SampledVerdict(tuple(pairs), steps, rare_pairs)


def _judge(walk: Callable[[int], Walk], plan: Plan) -> SampledPair:
    own = look(walk, [0], plan)
    both: Seen | None = None
    needed = ""
    if own.blind == 0:
        reason, rate = Reason.OUTSIDE_CORE, own.rate
    elif not own.differ:
        reason, rate = Reason.CONSISTENT, None
    else:
        both = look(walk, [0, 1], plan, plan.starts)
        reason, rate = _taking_turns(both)
    outcome, words = reason.outcome, reason.value
    if rate is not None and not rate.positive:
        outcome, words = Outcome.UNDECIDED, "predictions differ, but the rate is not clear of zero"
        needed = f"{counted(rate.runs_needed, 'start')}, for a rate of {rate!r}"
    elif outcome <= Outcome.SETTLES and plan.starts * plan.rare < 3.0 - 1e-9:
        outcome, words = Outcome.UNDECIDED, f"so far {words}"
        needed = f"{math.ceil(3.0 / plan.rare - 1e-9)} starts, to exclude a share of {plan.rare:g}"
    true, other = walk(0).modes[:2]
    return SampledPair(
        true, other, outcome, words, plan.starts, own.blind, own.differ, own.rate,
        both.blind if both else None, both.rate if both else None,
        plan.patience if both and both.silent else 0, needed,
    )  # fmt: skip


def _taking_turns(both: Seen) -> tuple[Reason, Rate | None]:
    """m is in the core and acts differently: what then?"""
    if both.blind == 0:
        return Reason.TURNS, both.rate
    if both.silent == 0:
        return Reason.ALIKE_WHERE_BLIND, None
    return (Reason.DEADLOCK if both.stuck else Reason.THIRD_MODE), None


def _check_counts(**counts: tuple[Any, int]) -> None:
    for name, (value, least) in counts.items():
        if not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name}={value!r}: it is a whole number of at least {least}")

"""Rates and verdicts by simulation, compared with exact ones; undecided cases.

Modes are drawn from continuous priors, or come from small tables with known answers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.convergence.sampled_rate import sampled_rate

from bayescontrol import DiscreteMode, Stream
from bayescontrol.bandits.joint import JointBandit
from bayescontrol.convergence.sampled import (
    Rate,
    SampledPair,
    SampledVerdict,
    clopper_pearson,
    mean_rate,
    sampled_check,
)
from bayescontrol.convergence.verdict import Outcome, Reason, check
from bayescontrol.errors import BadEvidence, InvalidTable, MissingCapability
from bayescontrol.finite.chain import chain
from bayescontrol.finite.examples import (
    consistency_diagram,
    consistency_repaired,
    core_diagram,
    trap,
)
from bayescontrol.finite.parametric import ParametricModes
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.mdp import policy_iteration, random_mdp
from bayescontrol.modes import ModeEnvironment
from bayescontrol.situations import stay


def world(mode: Any) -> ModeEnvironment:
    """The world of a mode with exact probabilities."""
    return ModeEnvironment(mode)


def exact_rate(modes: TabularModes, true: int, other: int, policy: int) -> float:
    """Σ_x μ(x) Σ_a π(a | x) KL, with μ from powers of the chain, independent of the library."""
    p, q, pi = modes.hypothesis[true], modes.hypothesis[other], modes.policy[policy]
    moves = np.zeros((len(pi), len(pi)))
    for x, a, o in np.ndindex(*p.shape):
        moves[x, modes.successor[x, a, o]] += pi[x, a] * p[x, a, o]
    mu = np.linalg.matrix_power(moves, 4096)[modes.start]
    return float(mu @ (pi * (p * np.log(p / q)).sum(-1)).sum(-1))


@dataclass
class Silent:
    """A mode with the minimum of methods: `act` and `likelihood`."""

    inner: Any

    def act(self, x: Any, rng: Stream) -> Any:
        return self.inner.act(x, rng)

    def likelihood(self, x: Any, a: Any, o: Any) -> float:
        return float(self.inner.likelihood(x, a, o))


# -- rates ---------------------------------------------------------------------------------------

MODES = random_modes(3, situations=4, actions=3, observations=3, seed=8)
TABLE: dict[str, Any] = {
    "world": lambda m: MODES.environment(m.inner.m if isinstance(m, Silent) else m.m),
    "situation": MODES.start,
    "advance": MODES.advance,
}


@pytest.mark.parametrize("policy", [0, 1, 2])
@pytest.mark.parametrize("silent", [False, True])
def test_a_sampled_rate_agrees_with_the_exact_one(policy: int, silent: bool) -> None:
    """Within three standard errors of 30 runs: false alarm 0.6 % a case, 3 % in all."""
    modes = [Silent(m) if silent else m for m in MODES]
    found = sampled_rate(
        modes[0], modes[1], policy=modes[policy], burn=20, steps=400, runs=30, seed=1, **TABLE
    )
    exact = exact_rate(MODES, 0, 1, policy)
    assert abs(found.mean - exact) < 3.0 * found.error
    assert found.positive
    assert found.error < 0.1 * exact if not silent else found.error < 0.5 * exact


def test_observations_from_the_wrong_world_are_detected() -> None:
    """Planted bug: observations come from the other mode. The rate is many errors off."""
    table = TABLE | {"world": lambda m: MODES.environment(1)}
    found = sampled_rate(MODES[0], MODES[1], burn=20, steps=400, runs=30, seed=1, **table)
    silent = sampled_rate(
        Silent(MODES[0]), Silent(MODES[1]), burn=20, steps=400, runs=30, seed=1, **table
    )
    assert abs(silent.mean - exact_rate(MODES, 0, 1, 0)) > 10.0 * silent.error
    assert abs(found.mean - exact_rate(MODES, 0, 1, 0)) > 5.0 * found.error


def test_conditional_means_have_less_noise_than_observed_ratios() -> None:
    means = sampled_rate(MODES[0], MODES[1], steps=200, runs=20, **TABLE)
    happened = sampled_rate(Silent(MODES[0]), Silent(MODES[1]), steps=200, runs=20, **TABLE)
    assert means.error < 0.5 * happened.error


def test_an_observation_that_the_other_mode_excludes_makes_the_rate_infinite() -> None:
    probabilities: Any = DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {1: 0.5, 0: 0.5})
    sure: Any = DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {1: 1.0})
    for true, other in ((probabilities, sure), (Silent(probabilities), Silent(sure))):
        found = sampled_rate(
            true, other, world=lambda m: world(probabilities), steps=50, runs=5
        )  # P(never in 5 × 50 tosses) = 2^-250
        assert (found.mean, found.error) == (math.inf, 0.0)
        assert found.positive
    assert sampled_rate(sure, probabilities, world=world, steps=5, runs=2).mean == math.log(2.0)


def test_modes_with_a_private_state_use_it() -> None:
    """Hypotheses count heads in a private state; using the shared x would divide by zero."""

    class Urn:
        def __init__(self, heads: float) -> None:
            self.heads = heads

        def start(self) -> tuple[float, float]:
            return self.heads, 2.0

        def advance(self, s: tuple[float, float], a: str, o: int) -> tuple[float, float]:
            return s[0] + o, s[1] + 1.0

        def action_probabilities(self, s: tuple[float, float]) -> dict[str, float]:
            return {"draw": 1.0}

        def act(self, s: tuple[float, float], rng: Stream) -> str:
            return "draw"

        def observation_probabilities(self, s: tuple[float, float], a: str) -> dict[int, float]:
            return {1: s[0] / s[1], 0: 1.0 - s[0] / s[1]}

    first = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    found = sampled_rate(Urn(0.5), Urn(1.0), world=world, steps=1, runs=2)
    assert found.mean == pytest.approx(first, rel=1e-12)
    assert 0.0 < sampled_rate(Urn(0.5), Urn(1.0), world=world, steps=100).mean < first


# -- numbers -------------------------------------------------------------------------------------


def test_shares_have_exact_intervals() -> None:
    """A binomial tail at each end of the interval is α/2, by summation."""
    share = clopper_pearson(3, 20)
    tail = sum(math.comb(20, k) * share.low**k * (1 - share.low) ** (20 - k) for k in range(3, 21))
    head = sum(math.comb(20, k) * share.high**k * (1 - share.high) ** (20 - k) for k in range(4))
    assert tail == pytest.approx(0.025, rel=1e-9)
    assert head == pytest.approx(0.025, rel=1e-9)
    assert clopper_pearson(0, 60).low == 0.0
    assert clopper_pearson(60, 60).high == 1.0


def test_a_rate_states_the_number_of_runs_needed() -> None:
    noise = mean_rate(np.array([1.0, -1.0, 2.0, -0.5]), steps=1)
    sd = float(np.std([1.0, -1.0, 2.0, -0.5], ddof=1))
    assert not noise.positive
    assert noise.runs_needed == math.ceil((3.0 * sd / max(0.375, sd / 2.0)) ** 2)
    assert mean_rate(np.array([1.0]), 1).error == math.inf


# -- verdicts on classes whose answer is known ---------------------------------------------------


def judged(modes: TabularModes, true: int, other: int, **settings: Any) -> SampledPair:
    """The sampled verdict on one pair of a table, with all modes in the class."""
    rest = [m for m in range(len(modes)) if m not in (true, other)]
    order: Iterator[int] = iter([true, other, *rest, *([true] * (len(modes) % 2))])
    plan: dict[str, Any] = {"steps": 60, "wander_steps": 30} | settings
    return sampled_check(
        lambda rng: modes[next(order)],
        world=lambda m: modes.environment(m.m),
        situation=modes.start,
        advance=modes.advance,
        modes=len(modes) + len(modes) % 2,
        **plan,
    ).pairs[0]


CLASSES: dict[str, Callable[[], TabularModes]] = {
    "chain": lambda: chain(3),
    "core": core_diagram,
    "consistency": consistency_diagram,
    "repaired": consistency_repaired,
    "random": lambda: random_modes(3, situations=2, seed=4),
    "levers": lambda: JointBandit([[0.2, 0.8], [0.8, 0.2], [0.8, 0.8]]),
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_sampled_verdict_on_every_pair_equals_the_exact_one(name: str) -> None:
    modes = CLASSES[name]()
    exact = check(modes)
    for pair in exact.pairs:
        found = judged(modes, pair.true, pair.other)
        assert found.outcome is pair.outcome, (pair, found)
        assert (found.blind > 0) is pair.in_core
        assert found.needed == ""


def test_a_trap_that_another_mode_opens_is_found() -> None:
    modes = trap()
    pair = check(modes).pair(0, 1)
    found = judged(modes, 0, 1)
    assert pair.in_core
    assert 0 < found.blind < found.starts
    assert found.outcome is pair.outcome
    # Planted bug: without wandering the trap is not found.
    assert judged(modes, 0, 1, wander_steps=0).blind == 0


# -- verdicts on infinite classes ----------------------------------------------------------------


def levers(rng: Stream) -> DiscreteMode[Any, int, int]:
    """Beta-distributed biases of three levers; the best is pulled."""
    bias = [rng.beta(1.0, 1.0) for _ in range(3)]
    best = int(np.argmax(bias))
    return DiscreteMode(lambda x: {best: 1.0}, lambda x, a: {1: bias[a], 0: 1.0 - bias[a]})


def test_bandits_with_continuous_biases_settle() -> None:
    """Two modes agree on the bias of a lever with probability zero: cores are singletons."""
    found = sampled_check(levers, world=world, modes=40, steps=30, wander_steps=10)
    assert found.outcome is Outcome.THEOREM
    assert found.in_core.hits == 0
    assert found.in_core.high < 0.17
    assert found.needed == ()
    assert {pair.reason for pair in found.pairs} == {Reason.OUTSIDE_CORE.value}


def drift(theta: float, phi: float) -> DiscreteMode[Any, str, int]:
    """Observations depend on θ; φ affects only the policy, so no evidence reveals it."""
    return DiscreteMode(
        lambda x: {"left": phi, "right": 1.0 - phi}, lambda x, a: {1: theta, 0: 1.0 - theta}
    )


def test_a_direction_that_no_policy_reveals_never_settles() -> None:
    """θ has two values: a pair shares it with probability 1/2, and then differs only in φ."""
    found = sampled_check(
        lambda rng: drift(rng.choice([0.3, 0.7]), rng.random()),
        world=world, modes=40, steps=20, wander_steps=10, seed=3,
    )  # fmt: skip
    assert found.outcome is Outcome.NEVER
    never = found.share(Outcome.NEVER)
    # 95 % intervals miss one half in 5 % of seeds.
    assert never.low < 0.5 < never.high
    assert never.hits + found.share(Outcome.THEOREM).hits == 20
    for pair in found.pairs:
        assert pair.blind in (0, pair.starts)
        assert (pair.outcome is Outcome.NEVER) == (pair.blind > 0)
        silent_steps = math.ceil(math.log(60 / 0.05) / 0.001)
        assert pair.silence == (silent_steps if pair.outcome is Outcome.NEVER else 0)


def test_an_unidentified_parameter_is_harmless_if_no_policy_depends_on_it() -> None:
    found = sampled_check(
        lambda rng: drift(0.3, 0.5), world=world, modes=34, steps=20, wander_steps=10
    )
    assert found.outcome is Outcome.THEOREM
    assert found.in_core.hits == 17
    assert {pair.reason for pair in found.pairs} == {Reason.CONSISTENT.value}


def test_a_third_mode_may_separate_a_pair() -> None:
    """Only a third mode pulls the lever that shows the difference: undecided."""

    def mode(pull: str, hidden: float) -> DiscreteMode[Any, str, int]:
        return DiscreteMode(
            lambda x: {pull: 1.0},
            lambda x, a: {1: hidden, 0: 1.0 - hidden} if a == "c" else {1: 0.5, 0: 0.5},
        )

    order = iter([mode("a", 0.2), mode("b", 0.7), mode("c", 0.5), mode("c", 0.6)])
    found = sampled_check(lambda rng: next(order), world=world, modes=4, steps=40).pairs[0]
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason == Reason.THIRD_MODE.value
    assert found.blind_both == found.starts


@dataclass
class Solved:
    """A Markov decision problem with its best policy."""

    mdp: Any

    def __post_init__(self) -> None:
        self.best = policy_iteration(self.mdp).optimal_actions().argmax(-1)

    def action_probabilities(self, x: int) -> dict[int, float]:
        return {int(self.best[x]): 1.0}

    def act(self, x: int, rng: Stream) -> int:
        return int(self.best[x])

    def observation_probabilities(self, x: int, a: int) -> dict[int, float]:
        return {step.state: p for step, p in self.mdp.outcomes(x, a).items()}


def test_random_problems_settle() -> None:
    """Transitions have a density, so two problems agree nowhere. Only states are observed."""
    found = sampled_check(
        lambda rng: Solved(random_mdp(4, 2, seed=rng)),
        world=lambda m: ModeEnvironment(m, 0, lambda x, a, o: o),
        situation=0,
        advance=lambda x, a, o: o,
        modes=34, steps=30, wander_steps=10,
    )  # fmt: skip
    assert found.outcome is Outcome.THEOREM
    assert all(0.0 < pair.rate.mean < math.inf for pair in found.pairs)


def test_parametric_modes_with_continuous_observations_settle() -> None:
    """Only densities: g is used, and actions are compared with the same random numbers."""
    from bayescontrol.kernels.random import normal

    def likelihoods(theta: Any, x: int, a: float, o: float) -> Any:
        return np.exp(-0.5 * (o - a * theta) ** 2)

    def act(theta_m: float, x: int, state: Any) -> float:
        return 1.0 + theta_m

    def respond(theta_m: float, x: int, a: float, state: Any) -> float:
        return a * theta_m + normal(state)

    def draw(rng: Stream) -> Any:
        return ParametricModes(
            [rng.normal()], likelihoods=likelihoods, act=act, respond=respond, compiled=False
        )[0]

    found = sampled_check(
        draw, world=lambda m: m.modes.environment(m.m), situation=0, advance=stay, modes=6,
        steps=100, wander_steps=10, seed=1,
    )  # fmt: skip
    assert found.in_core.hits == 0
    assert found.outcome <= Outcome.UNDECIDED
    for pair in found.pairs:  # KL of N(aθ, 1) from N(aθ', 1), a = 1 + θ: within four errors, 6e-5
        exact = 0.5 * ((1 + pair.true.theta) * (pair.true.theta - pair.other.theta)) ** 2
        assert abs(pair.rate.mean - exact) < 4.0 * pair.rate.error
        assert (pair.outcome is Outcome.THEOREM) == pair.rate.positive


# -- undecided cases -----------------------------------------------------------------------------


def test_too_few_starts_are_undecided_and_the_needed_number_is_given() -> None:
    found = sampled_check(levers, world=world, modes=34, starts=20, steps=10, wander_steps=5)
    assert found.outcome is Outcome.UNDECIDED
    assert found.needed == ("60 starts, to exclude a share of 0.05",)
    enough = sampled_check(levers, world=world, modes=34, starts=60, steps=10, wander_steps=5)
    assert enough.outcome is Outcome.THEOREM


def pairs_of(*outcomes: Outcome) -> tuple[SampledPair, ...]:
    rate = Rate(0.1, 0.01, 60, 10)
    return tuple(SampledPair(0, 1, outcome, "…", 60, 0, False, rate) for outcome in outcomes)


GOOD, LATE, OPEN, NEVER = Outcome.THEOREM, Outcome.SETTLES, Outcome.UNDECIDED, Outcome.NEVER


def test_too_few_pairs_are_undecided_and_the_needed_number_is_given() -> None:
    """With a single pair, more than half of all pairs may not settle."""
    found = sampled_check(levers, world=world, modes=3, steps=10, wander_steps=5)
    assert [pair.outcome for pair in found.pairs] == [GOOD]
    assert found.outcome is OPEN
    assert found.needed == ("17 pairs (modes=34), to exclude that a share of 0.2 does not settle",)
    assert "UNDECIDED: 1 pair from the prior, each from 60 starts of 10 steps" in repr(found)


@pytest.mark.parametrize("rare_pairs", [0.5, 0.2, 0.05, 0.01])
def test_the_needed_number_of_pairs_decides_and_one_fewer_does_not(
    rare_pairs: float,
) -> None:
    one = SampledVerdict(pairs_of(GOOD), 10, rare_pairs)
    n = int(one.needed[0].split()[0])
    few, enough = (SampledVerdict(pairs_of(*[GOOD] * k), 10, rare_pairs) for k in (n - 1, n))
    assert (few.outcome, enough.outcome) == (OPEN, GOOD)
    assert enough.needed == ()
    assert few.at_least < 1.0 - rare_pairs <= enough.at_least
    # If a share of rare_pairs did not settle, n settling pairs would have probability 2.5 %.
    assert (1.0 - rare_pairs) ** n <= 0.025 < (1.0 - rare_pairs) ** (n - 1)


def test_twenty_of_twenty_pairs_show_that_five_sixths_settle() -> None:
    found = SampledVerdict(pairs_of(*[GOOD] * 20), 10)
    assert found.at_least == pytest.approx(0.025 ** (1 / 20), rel=1e-12)
    assert repr(found).startswith("SampledVerdict(THEOREM for at least 83.2 % of pairs: 20 pairs")
    late = SampledVerdict(pairs_of(*[GOOD] * 19, LATE), 10)
    assert late.outcome is LATE
    assert "SETTLES for at least 83.2 % of pairs" in repr(late)


def test_one_pair_that_never_settles_is_enough() -> None:
    for others in (0, 1, 30):
        assert SampledVerdict(pairs_of(*[GOOD] * others, NEVER), 10).outcome is NEVER
        undecided = SampledVerdict(pairs_of(*[GOOD] * others, OPEN), 10)
        assert undecided.outcome is OPEN
        assert "%" not in repr(undecided).splitlines()[0]


def test_a_class_in_which_a_third_never_settles_rarely_passes() -> None:
    """A check of only one pair would let the class pass in 2 of 3 seeds.

    17 pairs all settle with probability (2/3)^17 = 1e-3, for each of four seeds.
    """

    def draw(rng: Stream) -> DiscreteMode[Any, str, int]:
        # Two modes with the same θ act differently and are never separated.
        return drift(rng.choice([0.2, 0.5, 0.8]), rng.random())

    settings: dict[str, Any] = {"world": world, "steps": 5, "wander_steps": 2, "slow": 0.05}
    single = [sampled_check(draw, modes=2, seed=seed, **settings) for seed in range(12)]
    assert any(verdict._worst is GOOD for verdict in single)
    assert all(verdict.outcome in (OPEN, NEVER) for verdict in single)
    for seed in range(4):
        assert sampled_check(draw, modes=34, seed=seed, **settings).outcome is NEVER


def test_a_rate_within_its_noise_is_undecided() -> None:
    near = iter([Silent(drift(0.5, 1.0)), Silent(drift(0.51, 1.0))])
    found = sampled_check(
        lambda rng: next(near), world=lambda m: world(m.inner), modes=2, steps=10, wander_steps=5
    )
    assert found.outcome is Outcome.UNDECIDED
    [needed] = found.needed
    assert "starts, for a rate of" in needed
    assert int(needed.split()[0]) > 60


@pytest.mark.parametrize("seed", range(4))
def test_slow_evidence_does_not_give_the_verdict_never(seed: int) -> None:
    """A bell rings once in 200 steps, and only then do predictions differ.

    Most starts show nothing in 50 steps. A silence of 7,090 steps has probability e^-35.
    """

    def mode(pull: str, theta: float) -> DiscreteMode[bool, str, Any]:
        return DiscreteMode(
            lambda x: {pull: 1.0},
            lambda x, a: {1: theta, 0: 1 - theta} if x else {"bell": 0.005, "-": 0.995},
        )

    def rings(x: bool, a: str, o: Any) -> bool:
        return bool(o == "bell")

    order = iter([mode("a", 0.3), mode("b", 0.6)])
    [pair] = sampled_check(
        lambda rng: next(order),
        world=lambda m: ModeEnvironment(m, False, rings),
        situation=False, advance=rings, modes=2, steps=50, seed=seed,
    ).pairs  # fmt: skip
    assert pair.blind > 30
    assert pair.silence == 0
    assert pair.outcome in (Outcome.SETTLES, Outcome.UNDECIDED)
    assert pair.reason != Reason.THIRD_MODE.value  # there is no third mode


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"modes": 1}, {"starts": 1}, {"steps": 0}, {"wander_steps": -1}, {"rare": 0.0}, {"slow": 1.0},
     {"rare_pairs": 0.0}, {"rare_pairs": 1.0}, {"rare_pairs": math.nan},
     {"modes": "many"}, {"steps": None}, {"starts": 2.5}],
)  # fmt: skip
def test_invalid_settings_are_named(settings: dict[str, Any]) -> None:
    [name] = settings
    with pytest.raises(ValueError, match=f"{name}="):
        sampled_check(levers, world=world, **settings)


class FixedDistributions:
    """A mode with the given distributions."""

    def __init__(self, observations: Any, actions: Any = None) -> None:
        self.observations, self.actions = observations, actions or {0: 1.0}

    def act(self, x: Any, rng: Stream) -> int:
        return 0

    def action_probabilities(self, x: Any) -> Any:
        return self.actions

    def observation_probabilities(self, x: Any, a: int) -> Any:
        return self.observations

    def respond(self, a: int, rng: Stream) -> int:
        return 1


class Pushes:
    """A mode with a density: action a has effect `gain` * a, with unit noise; it aims at 1."""

    def __init__(self, gain: float, aims: float = 1.0) -> None:
        self.gain, self.aims, self.name = gain, aims, f"gain {gain:g}, aims at {aims:g}"

    def act(self, x: Any, rng: Stream) -> float:
        return self.aims / self.gain

    def log_likelihood(self, x: Any, a: float, o: float) -> float:
        return -0.5 * (o - self.gain * a) ** 2

    def environment(self) -> Any:
        return Pushed(self.gain)


class Pushed:
    def __init__(self, gain: float) -> None:
        self.gain = gain

    def respond(self, a: float, rng: Stream) -> float:
        return self.gain * a + rng.normal()


@pytest.mark.parametrize("by_draws", [False, True])
def test_every_pair_of_a_list_of_modes_with_densities_is_checked(by_draws: bool) -> None:
    """No claim about a share of infinitely many pairs: with five modes there are twenty."""
    five = [Pushes(gain) for gain in (0.5, 1.0, 2.0, -1.0, -2.0)]
    drawn: Callable[[Stream], Pushes] = lambda rng: five[rng.integers(5)]  # noqa: E731
    found = sampled_check(drawn if by_draws else five, steps=40, wander_steps=10)
    assert found.complete
    assert {(p.true.name, p.other.name) for p in found.pairs} == {
        (a.name, b.name) for a in five for b in five if a is not b
    }
    assert found.outcome is Outcome.THEOREM
    text = repr(found)
    assert text.startswith("SampledVerdict(THEOREM: all 20 pairs, each from 60 starts of 40 steps)")
    assert "%" not in text
    assert "prior" not in text
    assert not found.needed


def test_a_list_with_two_modes_that_differ_in_their_policy_only_never_settles() -> None:
    found = sampled_check([Pushes(1.0), Pushes(1.0, aims=2.0), Pushes(3.0)], steps=20)
    never = {(p.true.name, p.other.name) for p in found.pairs if p.outcome is NEVER}
    one, two = "gain 1, aims at 1", "gain 1, aims at 2"
    assert found.outcome is NEVER
    assert never == {(one, two), (two, one)}


def test_a_long_list_is_checked_by_random_pairs_of_different_modes() -> None:
    many = [Pushes(1.0 + k) for k in range(12)]
    found = sampled_check(many, steps=3, wander_steps=2, starts=2)
    pairs = {(p.true.name, p.other.name) for p in found.pairs}
    assert (found.complete, len(found.pairs), len(pairs)) == (False, 100, 100)
    assert all(true != other for true, other in pairs)


class Mute:
    def act(self, x: Any, rng: Stream) -> int:
        return 0


class Bare(Mute):
    def log_likelihood(self, x: Any, a: float, o: float) -> float:
        return -0.5 * o * o


class Lists(FixedDistributions):
    def respond(self, a: int, rng: Stream) -> Any:
        return [1]


FAIR: dict[int, float] = {1: 0.5, 0: 0.5}
HEADS: Any = DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {1: 1.0})
TAILS: Any = DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {0: 1.0})
LEVER: Any = levers(Stream(0))


def rate_of(true: Any, other: Any, world: Any = lambda m: m) -> Any:
    return sampled_rate(true, other, world=world, steps=1, runs=1)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: rate_of(HEADS, TAILS, lambda m: world(TAILS)), BadEvidence,
         "that the mode describes"),
        (lambda: rate_of(LEVER, object(), world), MissingCapability, "lacks act"),
        (lambda: rate_of(LEVER, Mute(), world), MissingCapability, "has no hypothesis"),
        (lambda: rate_of(LEVER, LEVER), MissingCapability, "lacks respond"),
        (lambda: rate_of(Lists({1: 1.0}), Lists({1: 1.0})), BadEvidence,
         r"observation \[1\], which is not hashable"),
        (lambda: sampled_check(LEVER, world=world), MissingCapability, "neither a list of modes"),
        (lambda: sampled_check([LEVER], world=world), MissingCapability, "fewer than two modes"),
        (lambda: sampled_check([Bare(), Bare()]), MissingCapability,
         r"method environment\(\) .* function world\(mode\)"),
    ],
)  # fmt: skip
def test_an_invalid_mode_or_world_is_refused(wrong: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        wrong()


@pytest.mark.parametrize(
    "wrong", [{1: 0.9, 0: 0.9}, {1: 0.5}, {1: 1.5, 0: -0.5}, {1: math.nan}, [0.5, 0.5]]
)
def test_an_invalid_distribution_is_refused(wrong: Any) -> None:
    bad, fair = FixedDistributions(wrong), FixedDistributions(FAIR)
    for true, other in ((bad, fair), (fair, bad)):
        with pytest.raises(InvalidTable, match=r"the hypothesis of .*FixedDistributions"):
            rate_of(true, other)
    with pytest.raises(InvalidTable, match=r"the policy of .*FixedDistributions"):
        rate_of(FixedDistributions(FAIR, wrong), fair)
    with pytest.raises(InvalidTable):
        sampled_check(lambda rng: bad, world=lambda m: m, modes=4, steps=2)

"""Warm starts: outcomes in a log are evidence; its choices only if they are a demonstration."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import PosteriorSampling

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    ParticleBelief,
    Record,
    Stream,
    interact,
)
from bayescontrol.baselines import RLearning
from bayescontrol.errors import BadEvidence, BayesControlError, MissingCapability
from bayescontrol.finite.tabular import random_modes
from bayescontrol.interaction import warm_start
from bayescontrol.lqr import (
    LinearPlant,
    LinearQuadratic,
    LinearSystem,
    SystemPrior,
    double_integrator,
)
from bayescontrol.mdp import GibbsMDP, chain_mdp
from bayescontrol.record import situation
from bayescontrol.testing import same_bits

MODES = random_modes(5, situations=3, actions=2, seed=1)
CHAIN = chain_mdp(3)


class RandomAgent:
    """An agent that tries all actions equally often."""

    def __init__(self, actions: int) -> None:
        self.actions = actions

    def act(self, rng: Stream) -> int:
        return rng.integers(self.actions)

    def observe(self, a: Any, o: Any) -> None:
        pass


class Regulator:
    """Another controller of the plant."""

    x = np.zeros(2)

    def act(self, rng: Stream) -> Any:
        return np.array([-0.4 * self.x[0] - 1.2 * self.x[1] + rng.normal()])

    def observe(self, a: Any, o: Any) -> None:
        self.x = o


def particles() -> ControlRule[Any, Any, Any, Any]:
    """A belief over the logit of the bias of a coin."""

    def log_likelihoods(theta: Any, x: Any, a: Any, o: int) -> Any:
        if o not in (0, 1):
            raise BadEvidence(f"outcome {o!r}")
        return -np.logaddexp(0.0, theta[:, 0] * (1 - 2 * o))

    return ControlRule(
        ParticleBelief(
            lambda n, rng: rng.normal(size=(n, 1)),
            log_likelihoods,
            lambda theta, x, rng: "toss",
            500,
        )
    )


def log_of(agent: Any, world: Any, steps: int = 60) -> Record:
    return interact(agent, world, steps, seed=9)


#: kind -> a constructor of the agent, a log, an invalid entry
CASES: dict[str, tuple[Callable[[], Any], Record, Any]] = {
    "finite": (MODES.agent, log_of(RandomAgent(2), MODES.environment(2)), (0, "wrong")),
    "bandit": (
        BernoulliBandit(3).agent,
        log_of(RandomAgent(3), BernoulliBandit(3).draw(1)),
        (7, 1),
    ),
    "MDP": (
        lambda: GibbsMDP(2, 0).agent(),
        log_of(RandomAgent(2), CHAIN.environment()),
        (0, (np.nan, 1)),
    ),
    "model": (
        lambda: PosteriorSampling.on(CHAIN),
        log_of(RandomAgent(2), CHAIN.environment()),
        (0, (np.nan, 1)),
    ),
    "linear": (
        lambda: LinearQuadratic.on(double_integrator(), prior=SystemPrior()).agent(),
        log_of(Regulator(), LinearPlant(double_integrator())),
        (np.zeros(1), np.array([np.nan, 0.0])),
    ),
    "particles": (particles, Record(["toss"] * 60, [1, 1, 0] * 20), ("toss", 2)),
}
cases = pytest.mark.parametrize("kind", CASES)


@cases
def test_the_belief_equals_that_of_an_agent_that_observed_the_log(kind: str) -> None:
    make, log, _ = CASES[kind]
    warm, observing = make(), make()
    assert warm_start(warm, log) == 60
    rng = Stream(0)
    for a, o in log:
        observing.observe(a, o)
        if hasattr(observing.belief, "renew"):
            observing.belief.renew(rng)
    assert same_bits(warm.belief.save(), observing.belief.save())
    assert np.array_equal(warm.x, observing.x)


@cases
def test_a_log_with_a_bad_entry_changes_nothing(kind: str) -> None:
    make, log, wrong = CASES[kind]
    agent = make()
    warm_start(agent, list(log)[:5])
    before = agent.save()
    with pytest.raises((BayesControlError, TypeError, IndexError)) as refused:
        warm_start(agent, [*list(log)[5:20], wrong, *list(log)[20:]])
    assert "at entry 15 of the log" in "".join(refused.value.__notes__)
    assert same_bits(agent.save(), before)


@cases
def test_an_agent_can_act_and_observe_after_a_warm_start(kind: str) -> None:
    make, log, _ = CASES[kind]
    agent = make()
    belief = agent.belief
    warm_start(agent, log)
    assert agent.belief is belief
    a = agent.act(Stream(3))
    agent.observe(a, next(o for b, o in log if kind in ("linear", "particles") or b == a))


def test_triples_contain_the_situation_and_do_not_move_the_agent() -> None:
    """A record with a column `situation` is read the same way; the order does not matter."""
    log = interact(MODES.agent(), MODES.environment(2), 50, probes={"situation": situation}, seed=0)
    triples = [(x, a, o) for x, (a, o) in zip(log["situation"].tolist(), log, strict=True)]
    plain, stated, shuffled = MODES.agent(), MODES.agent(), MODES.agent()
    warm_start(plain, Record(log.actions, log.observations))
    warm_start(stated, log)
    warm_start(shuffled, reversed(triples))
    assert same_bits(plain.belief.save(), stated.belief.save())
    np.testing.assert_allclose(shuffled.belief.posterior(), plain.belief.posterior(), rtol=1e-12)
    assert stated.x == shuffled.x == MODES.start
    assert plain.x == MODES.advance(*triples[-1])


def expert(good: str) -> DiscreteMode[Any, str, int]:
    """A mode in which lever `good` pays more often, and is pulled nine times in ten."""
    bad = {"left": "right", "right": "left"}[good]
    return DiscreteMode(
        lambda x: {good: 0.9, bad: 0.1},
        lambda x, a: {1: 0.6, 0: 0.4} if a == good else {1: 0.4, 0: 0.6},
        good,
    )


def test_choices_are_evidence_only_if_they_are_a_demonstration() -> None:
    """The likelihood ratio is 0.6 to 0.4 for outcomes, and 0.9 to 0.1 for demonstrated actions."""
    log = [("left", 1), ("left", 0)]

    def after(**how: Any) -> float:
        agent = ControlRule(FiniteBelief([expert("left"), expert("right")]))
        warm_start(agent, log, **how)
        return float(agent.belief.posterior()[0])

    assert after() == pytest.approx(0.5, abs=1e-15)
    assert after(demonstration=True) == pytest.approx(0.81 / 0.82, abs=1e-14)


def test_a_demonstration_needs_modes_with_action_probabilities() -> None:
    agent = particles()
    before = agent.save()
    with pytest.raises(MissingCapability, match="reweigh"):
        warm_start(agent, [("toss", 1)], demonstration=True)
    assert same_bits(agent.save(), before)


def test_particles_are_renewed_during_a_long_log() -> None:
    """Without renewal a few particles would have all the weight; the mean is close to ln 2."""
    agent = particles()
    warm_start(agent, [("toss", 1), ("toss", 1), ("toss", 0)] * 300)
    assert agent.belief.renewals > 1
    assert agent.belief.effective_size > 100
    assert abs(agent.belief.mean()[0] - np.log(2.0)) < 0.2
    unrenewed = particles().belief
    for o in [1, 1, 0] * 300:
        unrenewed.observe(None, "toss", o)
    assert unrenewed.effective_size < 60


@pytest.mark.parametrize(
    "log",
    [3, "a log", [1, 2], [("a",)], [("left", 1), (None, "left", 1)], [("left", 1, 2, 3)], ["ab"]],
)
def test_an_invalid_log_is_refused(log: Any) -> None:
    agent = ControlRule(FiniteBelief([expert("left"), expert("right")]))
    with pytest.raises(BadEvidence, match="log"):
        warm_start(agent, log)
    assert agent.belief.count == 0


def test_an_agent_without_a_belief_is_refused() -> None:
    with pytest.raises(MissingCapability, match="no belief"):
        warm_start(RLearning(2, 2), [])  # type: ignore[arg-type]


def test_a_warm_start_reduces_regret() -> None:
    """Three levers, a log of 200 random steps, then 100 steps of the agent; mean of 50 runs.

    Over 20 other seeds the cold agent lost 5.8 ± .5, the warm one .06 ± .04: the bound is more
    than 5 standard deviations away.
    """
    cold, warm = regret(seed=1)
    assert cold > warm + 3.0


def regret(seed: int) -> tuple[float, float]:
    """The regret of 100 steps without and with a warm start."""
    bandit = BernoulliBandit(3)
    world = bandit.environment([0.2, 0.5, 0.8])
    lost = np.zeros(2)
    for run in range(50):
        log = interact(RandomAgent(3), world, 200, seed=seed, run=run)
        for i in range(2):
            agent = bandit.agent()
            if i:
                warm_start(agent, log)
            played = interact(agent, world, 100, seed=seed + 1000, run=run)
            lost[i] += float((0.8 - world.means()[played.actions]).sum()) / 50
    return float(lost[0]), float(lost[1])


def test_a_belief_without_modes_refuses_a_demonstration() -> None:
    agent = LinearQuadratic.on(double_integrator(), prior=SystemPrior()).agent()
    log = [(np.zeros(1), np.zeros(2))]
    with pytest.raises(MissingCapability, match="cannot do that"):
        warm_start(agent, log, demonstration=True)
    assert warm_start(agent, log) == 1


def test_an_array_of_rows_is_a_log() -> None:
    rows, pairs = BernoulliBandit(2).agent(), BernoulliBandit(2).agent()
    assert warm_start(rows, np.array([[0, 1], [0, 1], [1, 0]])) == 3
    warm_start(pairs, [(0, 1), (0, 1), (1, 0)])
    assert same_bits(rows.save(), pairs.save())
    with pytest.raises(BadEvidence, match="entry 0"):
        warm_start(rows, np.zeros((2, 4)))


def test_an_array_of_vector_pairs_is_a_log() -> None:
    system = LinearSystem(np.eye(2), np.eye(2), np.eye(2), np.eye(2))
    stacked, pairs = (
        LinearQuadratic.on(system, prior=SystemPrior()).agent(),
        LinearQuadratic.on(system, prior=SystemPrior()).agent(),
    )
    log = np.arange(12.0).reshape(3, 2, 2)
    assert warm_start(stacked, log) == 3
    warm_start(pairs, [(u, o) for u, o in log])
    assert same_bits(stacked.save(), pairs.save())

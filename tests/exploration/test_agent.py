"""Random actions and the remedy: exact probabilities, bounded cost, and saved state."""

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from tests.chance import chi_square
from tests.exploration.motor import COMMANDS, motor, motor_belief

from bayescontrol import BernoulliBandit, ControlRule, FiniteBelief, NaiveMixture, Stream, interact
from bayescontrol.errors import IncompatibleState, InvalidTable, MissingCapability, UnknownAction
from bayescontrol.exploration import ExploringRule, Falling, Remedy
from bayescontrol.finite.chain import chain
from bayescontrol.finite.tabular import random_modes
from bayescontrol.protocols import MISSING
from bayescontrol.record import as_probes
from bayescontrol.schedules import Every, Geometric, doubling
from bayescontrol.testing import (
    check_acting,
    check_agent,
    check_intervention,
    check_probes,
    check_resume,
    check_same_seed,
)

#: The remedy as early and as often as possible.
AT_ONCE = Remedy(share=1.0, steps=5, chance=1.0)
EVERY_THREE = Every(3)


def explorer(modes: Any, schedule: Any = EVERY_THREE, **options: Any) -> ExploringRule:
    return ExploringRule.of(modes.agent(schedule=schedule), 2, **options)


# -- exact probabilities ---------------------------------------------------------------------------


@pytest.mark.parametrize("remedy", [None, Remedy(share=1.0, steps=3, chance=0.5)])
def test_actions_have_the_stated_probabilities_given_the_mode_that_acts(
    remedy: Remedy | None,
) -> None:
    """A test by frequencies for each mode; false alarms: 3e-6."""
    modes = random_modes(3, situations=2, seed=4)
    agent = explorer(modes, exploration=lambda t: 0.3, remedy=remedy)
    rng, counts, p = Stream(1), np.zeros((3, 2)), np.zeros((3, 2))
    for _ in range(20_000):  # without observations, so that the posterior stays
        a = agent.act(rng)
        m = agent.belief.drawn
        counts[m, a] += 1
        p[m] = [agent.probabilities[b] for b in range(2)]
        assert agent.probability == agent.probabilities[a]
        given = modes[m].action_probabilities(agent.x)
        assert agent.probability == 0.7 * given.get(a, 0.0) + 0.3 / 2
    for m in range(3):
        assert counts[m].sum() > 1000
        assert p[m].sum() == pytest.approx(1.0, abs=1e-15)
        assert chi_square(counts[m], p[m] * counts[m].sum()) > 1e-6


def test_action_probabilities_equal_enumeration_over_all_histories() -> None:
    """Every history of three steps: Bayes' rule by hand, and a share of random actions."""
    modes = random_modes(2, situations=2, seed=7)
    epsilon = Falling(1, power=2)
    for history in product(product(range(2), range(2)), repeat=3):
        agent = explorer(modes, exploration=epsilon)
        joint, x = np.array([0.5, 0.5]), agent.x
        for t, (a, o) in enumerate(history):
            policy = np.array([modes[m].action_probabilities(x).get(1, 0.0) for m in range(2)])
            expected = (1.0 - epsilon(t)) * joint @ policy / joint.sum() + epsilon(t) / 2
            assert agent.action_probabilities()[1] == pytest.approx(expected, rel=1e-12)
            agent.act(Stream(0))  # only the clock depends on it
            agent.observe(a, o)
            joint *= [modes[m].likelihood(x, a, o) for m in range(2)]
            x = modes.advance(x, a, o)


def test_the_clock_of_exploration_counts_actions_and_starts_at_zero() -> None:
    times = list[int]()

    def epsilon(t: int) -> float:
        times.append(t)
        return 0.5

    explorer(chain(3), exploration=epsilon).batch(3, Stream(0))
    assert times == [0, 1, 2]
    with pytest.raises(MissingCapability, match="use the attribute `probability`"):
        explorer(chain(3), remedy=AT_ONCE).action_probabilities()


def test_exploration_falls_without_knowing_the_length_of_the_run() -> None:
    falling = Falling(50, power=2.0)
    assert [falling(t) for t in (0, 49)] == [1.0, 1.0]
    assert all(later <= now for now, later in pairwise(map(falling, range(500))))
    assert sum(map(falling, range(100_000))) == pytest.approx(100.0, rel=0.01)
    assert Falling(1e9, power=100.0)(0) == 1.0  # without overflow
    assert Falling(0)(0) == 0.0


# -- the remedy ------------------------------------------------------------------------------------


def steps_until_known(agent: Any, world: Any, limit: int, seed: int = 0) -> int:
    """Return the steps until a mode is almost certain; `limit` if that takes longer."""
    p, q = Stream(seed), Stream(seed + 1)
    for t in range(limit):
        if agent.belief.posterior().max() > 0.999:
            return t
        a = agent.act(p)
        agent.observe(a, world.respond(a, q))
        if isinstance(agent, ExploringRule) and agent.remedy is not None:
            assert agent.followed <= agent.remedy.share * agent._t
    return limit


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("make", "world"),
    [
        (lambda: chain(20).agent(), lambda: chain(20).environment(1)),
        (lambda: ControlRule(motor_belief(20)), lambda: motor(20)),
    ],
    ids=["chain", "motor"],
)
def test_the_remedy_identifies_what_the_pure_rule_does_not(
    make: Callable[[], Any], world: Callable[[], Any], seed: int
) -> None:
    """20 equal draws end the wait: by chance in less than 1 % of 2,000 steps; false alarms 3 %.

    The remedy may act for 20 steps from step 400 on, and does so when it is first tried.
    """
    assert steps_until_known(make(), world(), 2000, seed) == 2000
    actions = COMMANDS if isinstance(make().belief.modes, list) else 2
    agent = ExploringRule.of(make(), actions, remedy=Remedy(share=0.05, steps=20, chance=0.2))
    assert agent.unresolved().share == 1.0
    assert 400 < steps_until_known(agent, world(), 2000, seed) < 520
    assert agent.unresolved().share == 0.0
    interact(agent, world(), 2000, seed=seed)
    assert agent.followed == 20  # afterwards nothing is unresolved


@pytest.mark.parametrize("schedule", [Every(50), doubling, Geometric(0.01)])
def test_a_mode_of_the_remedy_acts_for_the_stated_steps_under_any_schedule(schedule: Any) -> None:
    remedy = Remedy(share=0.1, steps=5, chance=1.0)
    agent = explorer(chain(30), schedule, remedy=remedy)
    rng, last = Stream(3), 0
    for t in range(600):
        ended = agent._left == 1
        agent.act(rng)  # without observations, so that both modes stay unresolved
        assert agent.followed <= remedy.share * (t + 1)
        assert agent.followed - last <= 1
        if last % 5:  # in the middle of the five steps
            assert agent.followed == last + 1
        if ended:  # another mode is drawn
            assert agent._drawn_at == t
        last = agent.followed
    assert last >= 10


def test_a_retired_mode_does_not_act_for_the_remedy() -> None:
    agent = explorer(chain(9), remedy=AT_ONCE)
    rng = Stream(0)
    while agent._left < 3:
        agent.act(rng)
    agent.belief.retire(agent.belief.drawn)
    for each in (agent.copy(), agent):
        assert each.act(rng) == int(each.belief.drawn)
        assert each.belief.drawn >= 0
        assert each._left == 0  # the mode that is left does what the belief does


# -- laws and state --------------------------------------------------------------------------------


def chain_explorer() -> ExploringRule:
    return explorer(chain(4), exploration=Falling(5), remedy=AT_ONCE)


def motor_explorer() -> ExploringRule:
    return ExploringRule(motor_belief(4), COMMANDS, exploration=Falling(5), remedy=AT_ONCE)


@pytest.mark.parametrize(
    ("make", "world"),
    [
        (chain_explorer, lambda: chain(4).environment(0)),
        (
            lambda: explorer(random_modes(4, seed=2), Geometric(0.3), remedy=AT_ONCE),
            lambda: random_modes(4, seed=2).environment(1),
        ),
        (motor_explorer, lambda: motor(4)),
    ],
    ids=["chain", "random", "motor"],
)
def test_the_laws_of_acting_hold(make: Callable[[], Any], world: Callable[[], Any]) -> None:
    check_acting(make, world)
    check_same_seed(make, world)
    check_probes(make, world, as_probes(["posterior", "unresolved"]))
    for at in (0, 1, 7, 8, 9, 50):  # also while a mode of the remedy is held
        check_resume(make, world, 60, at=at)


def test_every_law_of_agents_holds_with_random_actions() -> None:
    """Modes are drawn from the posterior, whatever replaces their actions; false alarms: 1e-6.

    A remedy draws others, so that the match rate differs.
    """
    modes = random_modes(3, situations=2, seed=6)
    check_agent(lambda: explorer(modes, exploration=Falling(10)), modes.environment, runs=400)


def test_actions_of_an_explorer_are_interventions() -> None:
    modes = random_modes(3, seed=1)

    def make(these: Any) -> ExploringRule:
        return ExploringRule(FiniteBelief(these), 2, 0, modes.advance, remedy=AT_ONCE)

    check_intervention(make, modes, [(0, 1), (1, 0), (1, 1)])


def test_a_copy_and_a_loaded_agent_go_on_as_the_original_within_a_remedy() -> None:
    agent = chain_explorer()
    interact(agent, chain(4).environment(0), 3, seed=0)
    rng = Stream(1)
    while not 1 < agent._left < 5:
        agent.act(rng)
    loaded = chain_explorer()
    loaded.act(Stream(7))
    loaded.load(agent.save())
    assert loaded.probabilities == {}  # those before the load were of another history
    for other in (agent.copy(), loaded):
        assert other.unresolved().share == agent.unresolved().share
        assert [other.probability, other.followed, other._left] == [
            agent.probability, agent.followed, agent._left,
        ]  # fmt: skip
        assert other.batch(30, Stream(5)) == agent.copy().batch(30, Stream(5))


def test_lost_observations_are_no_evidence_but_exploration_goes_on() -> None:
    agent = motor_explorer()
    before = agent.belief.posterior()
    for _ in range(10):
        agent.observe(agent.act(Stream(0)), MISSING)
    assert agent._t == 10
    assert (agent.belief.posterior() == before).all()


def test_a_changing_world_counts_the_decisions_of_an_explorer() -> None:
    belief = BernoulliBandit(2).changing().agent().belief
    agent = ExploringRule(belief, 2, exploration=lambda t: 0.5, schedule=Every(2))
    for n in range(1, 5):
        agent.observe(agent.act(Stream(n)), 1)
        assert agent.probability in (0.25, 0.75)
        assert belief.decision == n


# -- errors ----------------------------------------------------------------------------------------


class Blind:
    """A mode without action probabilities."""

    def likelihood(self, x: Any, a: Any, o: Any) -> float:
        return 1.0

    def act(self, x: Any, rng: Any) -> int:
        return 0


class Stated(Blind):
    """A mode whose stated probabilities are not those of its actions."""

    def __init__(self, policy: dict[int, float]) -> None:
        self.policy = policy

    def action_probabilities(self, x: Any) -> dict[int, float]:
        return self.policy


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ({0: 0.5}, "the sum is 0.5"),
        ({1: 1.0}, "takes action 0, which has no probability"),
        ({0: 0.0, 1: 1.0}, "takes action 0, which has no probability"),
    ],
)
def test_an_invalid_policy_has_no_stated_probability(
    policy: dict[int, float], complaint: str
) -> None:
    for exploration in (None, Falling(1e-3, power=2)):
        agent = ExploringRule(FiniteBelief([Stated(policy)]), 2, exploration=exploration)
        with pytest.raises(InvalidTable, match=complaint):
            agent.act(Stream(0))


def test_what_an_explorer_cannot_use_is_refused_with_a_reason() -> None:
    boxes = random_modes(2)
    with pytest.raises(MissingCapability, match="no action_probabilities"):
        ExploringRule(FiniteBelief([Blind(), Blind()]), 2)
    with pytest.raises(MissingCapability, match="neither `draw_unresolved` nor"):
        ExploringRule(BernoulliBandit(2).agent().belief, 2, remedy=Remedy())
    with pytest.raises(MissingCapability, match="not a plain ControlRule"):
        ExploringRule.of(boxes.agent(kind=NaiveMixture), 2)
    wrong: Any = 0.1
    with pytest.raises(TypeError, match="must be a function of t"):
        explorer(boxes, exploration=wrong)
    with pytest.raises(TypeError, match="expected Remedy"):
        explorer(boxes, remedy=wrong)
    with pytest.raises(ValueError, match=r"exploration\(0\)=1.5"):
        explorer(boxes, exploration=lambda t: 1.5).act(Stream(0))
    for settings in ({"share": 1.1}, {"steps": 0}, {"chance": -0.1}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            Remedy(**settings)


def test_an_action_that_is_not_listed_is_refused_before_the_step_counts() -> None:
    agent = ExploringRule.of(random_modes(2, actions=3, seed=3).agent(), 2)
    with pytest.raises(UnknownAction, match="no action 2"):
        agent.batch(20, Stream(0))
    with pytest.raises(UnknownAction, match="no action 2"):
        agent.action_probabilities()
    named = ExploringRule.of(random_modes(2).agent(), [1, 0])
    with pytest.raises(IncompatibleState, match="saved with actions"):
        named.load(ExploringRule.of(random_modes(2).agent(), 2).save())


def test_a_saved_probability_above_one_is_damaged() -> None:
    agent = chain_explorer()
    interact(agent, chain(4).environment(0), 3, seed=0)
    arrays = agent.save()
    arrays["probability"] = np.array(1.5)
    with pytest.raises(IncompatibleState, match="'probability' is 1"):
        chain_explorer().load(arrays)

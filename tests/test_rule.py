"""The control rule: the drawn mode acts; observations are evidence, the agent's actions are not."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    NaiveMixture,
    Stream,
    interact,
)
from bayescontrol._arrays import Arrays
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability
from bayescontrol.finite.tabular import TabularMode, random_modes
from bayescontrol.schedules import Every, Geometric, Schedule, doubling
from bayescontrol.situations import stay
from bayescontrol.testing import LawBroken, check_resume, same_bits
from bayescontrol.testing.laws import evidence

Lever = DiscreteMode[None, str, int]


def lever(good: str) -> Lever:
    def pays(_x: None, a: str) -> dict[int, float]:
        return {1: 0.9, 0: 0.1} if a == good else {1: 0.2, 0: 0.8}

    return DiscreteMode(lambda _x: {good: 1.0}, pays, good)


def belief() -> FiniteBelief[Lever]:
    return FiniteBelief([lever("left"), lever("right")])


def test_the_drawn_mode_acts() -> None:
    agent: ControlRule[Lever, None, str, int] = ControlRule(belief())
    rng = Stream(3)
    for _ in range(50):
        a = agent.act(rng)
        assert agent.mode is not None
        assert agent.mode.name == a


def test_actions_have_the_stated_probabilities() -> None:
    """10,000 decisions with P(a) = .818; false alarm 1e-6 (normal approximation, 4.9 errors)."""
    agent: ControlRule[Lever, None, str, int] = ControlRule(belief())
    agent.observe("left", 1)
    p, rng, n = agent.action_probabilities()["left"], Stream(0), 10_000
    share = sum(agent.decide(None, rng)[1] == "left" for _ in range(n)) / n
    assert p == pytest.approx(0.9 / 1.1)
    assert abs(share - p) < 4.9 * math.sqrt(p * (1.0 - p) / n)


def test_acting_changes_only_the_naive_belief() -> None:
    causal, naive = belief(), belief()
    ControlRule(causal).issue("left")
    NaiveMixture(naive).issue("left")
    assert causal.posterior().tolist() == [0.5, 0.5]
    assert naive.posterior().tolist() == [1.0, 0.0]


def test_witnessing_another_agent_is_evidence_about_its_mode() -> None:
    def expert(p: float) -> Lever:
        return DiscreteMode(lambda _x: {"a": p, "b": 1.0 - p}, lambda _x, _a: {0: 1.0})

    observed = FiniteBelief([expert(0.9), expert(0.3)])
    ControlRule(observed).witness(None, "a")
    assert observed.posterior() == pytest.approx([0.75, 0.25])
    assert observed.count == 0


class Follower:
    """A mode that goes `step` to the right, with a Gaussian density of actions."""

    def __init__(self, step: float) -> None:
        self.step = step

    def act(self, x: float, rng: object) -> float:
        return x + self.step

    def action_likelihood(self, x: float, a: float) -> float:
        return math.exp(-0.5 * (a - self.act(x, None)) ** 2)

    def likelihood(self, x: float, a: float, o: object) -> float:
        return 1.0


def test_a_witnessed_action_counts_in_its_situation() -> None:
    """The agent is in situation 0; the action is witnessed in 1, where policies differ."""

    def expert(p: float) -> DiscreteMode[int, str, int]:
        def policy(x: int) -> dict[str, float]:
            a = p if x == 0 else 1.0 - p
            return {"a": a, "b": 1.0 - a}

        return DiscreteMode(policy, lambda _x, _a: {0: 1.0})

    observed = FiniteBelief([expert(0.75), expert(0.5)])
    agent: ControlRule[Any, int, str, int] = ControlRule(observed, 0, stay)
    agent.witness(1, "a")
    assert observed.posterior() == pytest.approx([1 / 3, 2 / 3])
    assert agent.x == 0
    densities = FiniteBelief([Follower(1.0), Follower(-1.0)])
    other: ControlRule[Any, float, float, int] = ControlRule(densities, 0.0, stay)
    other.witness(5.0, 6.0)
    assert densities.posterior()[1] == pytest.approx(math.exp(-2.0) / (1.0 + math.exp(-2.0)))
    assert other.x == 0.0


def test_the_situation_advances_only_after_valid_evidence() -> None:
    modes = random_modes(3, situations=4, seed=2)
    agent = modes.agent()
    before = agent.save()
    for bad in (-1, 2, None, math.nan, "x"):
        with pytest.raises(BadEvidence):
            agent.observe(0, bad)  # type: ignore[arg-type]
    assert same_bits(before, agent.save())
    agent.observe(0, 1)
    assert agent.x == modes.advance(0, 0, 1)


def test_an_observation_is_learned_in_the_situation_of_its_action() -> None:
    modes = random_modes(3, situations=4, seed=2)
    agent, x, v, visited = modes.agent(), modes.start, modes.prior, set()
    for a, o in [(0, 1), (1, 0), (1, 1), (0, 0)]:
        visited.add(x)
        v, x = v * modes.likelihoods(x, a, o), modes.advance(x, a, o)
        agent.observe(a, o)
    assert len(visited) > 2
    assert agent.belief.posterior() == pytest.approx(v / v.sum(), rel=1e-12)


def test_an_advance_that_fails_changes_nothing() -> None:
    def failing_advance(_x: None, _a: str, _o: int) -> None:
        raise RuntimeError("advance failed")

    agent: ControlRule[Lever, None, str, int] = ControlRule(belief(), None, failing_advance)
    before = agent.save()
    with pytest.raises(RuntimeError):
        agent.observe("left", 1)
    assert same_bits(before, agent.save())


@pytest.mark.parametrize("schedule", [Every(7), Geometric(0.2), doubling])
def test_a_held_mode_is_still_held_after_saving_and_loading(schedule: Schedule) -> None:
    modes = random_modes(4, situations=3, seed=5)

    def make() -> ControlRule[TabularMode, int, int, int]:
        return modes.agent(schedule=schedule)

    for at in (1, 10, 11, 30):
        check_resume(make, lambda: modes.environment(1), 40, at=at)


def test_check_resume_detects_a_forgotten_mode() -> None:
    """Planted bug: an agent that does not load the held mode."""

    class Forgetful(ControlRule[TabularMode, int, int, int]):
        def load(self, arrays: Arrays) -> None:
            super().load(arrays)
            self.mode = None

    modes = random_modes(4, situations=3, seed=5)
    with pytest.raises(LawBroken, match="resuming at step 10"):
        check_resume(
            lambda: modes.agent(kind=Forgetful, schedule=Every(7)),
            lambda: modes.environment(1),
            40,
            at=10,
        )


@pytest.mark.parametrize(
    "damage",
    [
        {"clock": np.array([1, 5, 0])},
        {"clock": np.array([-1, -1, 0])},
        {"situation": np.array("__import__('os')")},
        {"belief/mantissa": np.array([np.nan, 1.0, 1.0])},
        {"belief/count": np.array(-1)},
        {"belief/drawn": np.array(3)},
        {"belief/prior": np.array([0.9, 0.9, 0.9])},
    ],
    ids=lambda d: next(iter(d)),
)
def test_a_damaged_state_is_refused_and_changes_nothing(damage: Arrays) -> None:
    modes = random_modes(3, situations=2, seed=1)
    agent = modes.agent()
    interact(agent, modes.environment(0), 20, seed=0)
    before = agent.save()
    with pytest.raises(IncompatibleState):
        agent.load(before | damage)
    assert same_bits(before, agent.save())


def test_the_text_and_html_repr_of_an_agent() -> None:
    agent = ControlRule(belief(), 3, stay)
    assert repr(agent).startswith("ControlRule(FiniteBelief(2 modes")
    assert "situation 3, t=0" in repr(agent)
    assert "<table>" in agent._repr_html_()


def test_capabilities_are_checked_again_when_the_belief_is_replaced() -> None:
    class Bare:
        """A belief with only `sample` and `observe`."""

        def sample(self, rng: Stream) -> Lever:
            return lever("left")

        def observe(self, x: None, a: str, o: int) -> None: ...

    agent: ControlRule[Lever, None, str, int] = ControlRule(belief())
    assert agent.action_probabilities() == {"left": 0.5, "right": 0.5}
    assert set(agent.batch(40, Stream(0))) == {"left", "right"}
    agent.belief = Bare()
    with pytest.raises(MissingCapability, match="Bare"):
        agent.action_probabilities()
    assert set(agent.batch(40, Stream(0))) == {"left"}
    agent.belief = belief()
    assert agent.action_probabilities() == {"left": 0.5, "right": 0.5}


def test_a_belief_can_be_replaced_by_one_that_draws_actions() -> None:
    agent: ControlRule[Lever, None, str, int] = ControlRule(belief())
    agent.act(Stream(0))
    agent.belief = BernoulliBandit(["red"]).belief()
    assert agent.act(Stream(0)) == "red"
    assert agent.mode is None  # the action was drawn without a mode
    agent.belief = belief()
    assert agent.act(Stream(0)) in ("left", "right")


def test_a_copy_is_independent() -> None:
    modes = random_modes(3, situations=3, seed=9)
    agent = modes.agent()
    interact(agent, modes.environment(0), 5, seed=0)
    before, twin = agent.save(), agent.copy()
    interact(twin, modes.environment(0), 5, seed=0)
    assert same_bits(before, agent.save())
    assert not same_bits(evidence(agent.belief), evidence(twin.belief))


def test_a_copy_has_the_capabilities_of_its_own_belief() -> None:
    arms = BernoulliBandit(["red"])
    agent, without = arms.agent(), arms.belief()
    assert agent.action_probabilities() == agent.copy().action_probabilities() == {"red": 1.0}
    without.action_probabilities = None  # type: ignore[method-assign, assignment]
    agent.belief = without
    copied = agent.copy()
    with pytest.raises(MissingCapability, match="ArmsBelief"):
        copied.action_probabilities()
    copied.belief = arms.belief()
    assert copied.copy().action_probabilities() == {"red": 1.0}

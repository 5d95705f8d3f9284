"""The situation: how it advances, and that agent and environment start in the same one."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.convergence.sampled_rate import sampled_rate

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, NaiveMixture, interact, play
from bayescontrol.bank import Bumpless
from bayescontrol.baselines import OptimalController, OptimalPolicy, QLearning
from bayescontrol.convergence import sampled_check
from bayescontrol.errors import BadSituation
from bayescontrol.finite.parametric import ParametricModes
from bayescontrol.finite.tabulate import tabulate
from bayescontrol.lqr import LinearPlant, LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.mdp import GibbsMDP, chain_mdp
from bayescontrol.modes import ModeEnvironment
from bayescontrol.record import Probe
from bayescontrol.simulators import (
    MOUNTAIN_CAR,
    MOUNTAIN_CAR_HYPOTHESES,
    SimulatorMode,
    SimulatorNoise,
    next_state,
)
from bayescontrol.situations import stay
from bayescontrol.systems import Situated
from bayescontrol.testing import check_modes, same_bits

# -- a situation without an advance function ------------------------------------------------------


def coin(p: float) -> DiscreteMode[Any, str, int]:
    return DiscreteMode(lambda _x: {"toss": 1.0}, lambda _x, _a: {1: p, 0: 1.0 - p})


def world(mode: Any) -> ModeEnvironment:
    return ModeEnvironment(mode)


def belief() -> FiniteBelief[Any]:
    return FiniteBelief([coin(0.2), coin(0.7)])


@pytest.mark.parametrize(
    "careless",
    [
        lambda: ControlRule(belief(), 5.0),
        lambda: NaiveMixture(belief(), situation=0),
        lambda: Situated(coin(0.5), 5.0),
        lambda: ParametricModes([0.2], likelihoods=abs, act=abs, start=5.0, compiled=False),
        lambda: tabulate([coin(0.2), coin(0.7)], 5.0),
        lambda: check_modes([coin(0.2), coin(0.7)], situation=5.0, steps=5),
        lambda: sampled_rate(coin(0.2), coin(0.7), world=world, situation=5.0, steps=1, runs=1),
        lambda: sampled_check(lambda _rng: coin(0.5), world=world, situation=5.0),
    ],
    ids=["rule", "naive", "situated", "parametric", "tabulate", "check_modes", "rate", "sampled"],
)
def test_a_situation_without_an_advance_function_is_refused(careless: Callable[[], object]) -> None:
    with pytest.raises(BadSituation, match=r"advance=bayescontrol\.stay"):
        careless()


def test_a_situation_that_never_changes_is_reported_as_constant() -> None:
    agent: ControlRule[Any, Any, Any, Any] = ControlRule(belief(), 5.0, stay)
    agent.observe("toss", 1)
    assert agent.x == 5.0
    assert ControlRule(belief()).advance is stay
    assert tabulate([coin(0.2), coin(0.7)], 5.0, stay).policy.shape == (2, 1, 1)


def test_an_invalid_advance_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"advance=7 .* function"):
        ControlRule(belief(), 5.0, 7)  # type: ignore[arg-type]


# -- agent and environment start in the same state -----------------------------------------------

MDP = chain_mdp(4)
SYSTEM = double_integrator()


def expert(x: Any) -> Any:
    modes = [SimulatorMode(lambda x, u: x, lambda _x: np.zeros(1), name=n) for n in ("a", "b")]
    return ControlRule(FiniteBelief(modes), np.array(x), next_state)


def climber(x: Any) -> Any:
    modes = [theta.mode(SimulatorNoise(0.01)) for theta in MOUNTAIN_CAR_HYPOTHESES[:2]]
    return ControlRule(FiniteBelief(modes), x, next_state)


AGENTS: dict[str, Callable[[Any], Any]] = {
    "gibbs": lambda x: GibbsMDP(2, start=x).agent(),
    "q-learning": lambda x: QLearning.on(MDP, start=x),
    "oracle": lambda x: OptimalPolicy(MDP, x),
}


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(
    "probes", [None, {"n": Probe(lambda _agent, _a, _o: 1)}], ids=["", "probe"]
)
def test_an_agent_with_another_start_than_its_mdp_is_refused(name: str, probes: Any) -> None:
    agent, world = AGENTS[name](0), MDP.environment(start=2)
    before = agent.save()
    with pytest.raises(BadSituation, match="agent starts in state 0, the environment in state 2"):
        interact(agent, world, 10, probes=probes, seed=0)
    with pytest.raises(BadSituation):
        next(play(agent, world, seed=0))
    assert same_bits(before, agent.save())
    assert world.x == 2
    assert len(interact(AGENTS[name](2), world, 10, probes=probes, seed=0)) == 10


@pytest.mark.parametrize("name", AGENTS)
def test_a_trained_agent_can_be_moved_to_the_state_of_another_environment(name: str) -> None:
    agent, first = AGENTS[name](0), MDP.environment(start=0)
    interact(agent, first, 7, seed=0)
    interact(agent, first, 7, seed=0)  # continues where both are
    world = MDP.environment(start=next(x for x in MDP.states if x != agent.x))
    with pytest.raises(BadSituation, match=r"set agent\.x to that state"):
        interact(agent, world, 7, seed=0)
    agent.x = world.x
    assert len(interact(agent, world, 7, seed=0)) == 7


def test_an_agent_with_its_own_advance_function_may_start_anywhere() -> None:
    modes = [coin(0.2), coin(0.7)]
    agent: Any = ControlRule(FiniteBelief(modes), 0, lambda t, _a, _o: t + 1)

    class Blind(type(MDP.environment())):  # type: ignore[misc]
        def respond(self, a: Any, rng: Any) -> int:
            return int(rng.random() < 0.5)

    assert len(interact(agent, Blind(MDP, 2), 5, seed=0)) == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda x: LinearQuadratic.on(SYSTEM, start=x, prior=SystemPrior()).agent(),
        lambda x: OptimalController(SYSTEM, start=x),
        expert,
        lambda x: Bumpless(expert(x), steps=3),
    ],
    ids=["linear agent", "controller", "expert", "bumpless"],
)
def test_an_agent_with_another_start_than_its_plant_is_refused(make: Any) -> None:
    with pytest.raises(BadSituation, match="environment"):
        interact(make([0.0, 0.0]), LinearPlant(SYSTEM, start=[1.0, 0.0]), 5, seed=0)
    assert len(interact(make([1.0, 0.0]), LinearPlant(SYSTEM, start=[1.0, 0.0]), 5, seed=0)) == 5


def test_an_expert_with_another_start_than_the_simulated_plant_is_refused() -> None:
    pytest.importorskip("gymnasium")
    plant = MOUNTAIN_CAR.environment(seed=1)
    with pytest.raises(BadSituation):
        interact(climber(np.zeros(2)), plant, 3, seed=0)
    agent = climber(plant.start)
    assert len(list(islice(play(agent, plant, seed=0), 3))) == 3
    assert len(interact(agent, plant, 3, seed=0)) == 3


def test_an_agent_with_another_start_than_a_gymnasium_environment_is_refused() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from bayescontrol.gym import Continuing

    world = Continuing(gymnasium.make("CliffWalking-v1"))
    agent = GibbsMDP(world.actions, 0).agent()
    with pytest.raises(BadSituation, match="agent starts in state 0, the environment in state 36"):
        interact(agent, world, 10, seed=0)
    assert agent.belief.count == 0
    assert len(interact(GibbsMDP(world.actions, world.x).agent(), world, 10, seed=0)) == 10

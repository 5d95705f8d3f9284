"""Pairs of agent and environment with and without a compiled loop."""

from collections.abc import Callable
from typing import Any

import pytest

from bayescontrol import BernoulliBandit, LinearBandit, ParametricModes
from bayescontrol import baselines as rivals
from bayescontrol._compiled import find_loop, learner
from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov
from bayescontrol.finite.tabular import random_modes
from bayescontrol.kernels.random import uniform
from bayescontrol.lqr import LinearPlant, LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.mdp import GibbsMDP, chain_mdp

ARMS = BernoulliBandit(2)
MDP = chain_mdp(3)
MODES = random_modes(2)
SYSTEM = double_integrator()


def linear_bandit() -> tuple[Any, Any]:
    bandit = LinearBandit(2, features=2)
    world = bandit.draw(0)
    return bandit.agent(world.start), world


def parametric() -> tuple[Any, Any]:
    coins = ParametricModes(
        [0.25, 0.75],
        act=lambda theta_m, x, state: 0,
        likelihoods=lambda theta, x, a, o: theta if o else 1 - theta,
        respond=lambda theta_m, x, a, state: uniform(state) < theta_m,
    )
    return coins.agent(), coins.environment(0)


def guarded() -> tuple[Any, Any]:
    return Guarded(MODES.agent(), Alarm(KrichevskyTrofimov(2), delta=0.01)), MODES.environment(0)


PAIRS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "tabular": lambda: (MODES.agent(), MODES.environment(0)),
    "guarded": guarded,
    "parametric": parametric,
    "arms": lambda: (ARMS.agent(), ARMS.draw(0)),
    "linear bandit": linear_bandit,
    "gibbs": lambda: (GibbsMDP(list(MDP.actions), MDP.states[0]).agent(), MDP.environment()),
    "linear": lambda: (
        LinearQuadratic.on(SYSTEM, prior=SystemPrior()).agent(),
        LinearPlant(SYSTEM),
    ),
    "certainty": lambda: (rivals.CertaintyEquivalence.on(SYSTEM), LinearPlant(SYSTEM)),
    "optimal gain": lambda: (rivals.OptimalController(SYSTEM), LinearPlant(SYSTEM)),
    "optimal policy": lambda: (rivals.OptimalPolicy(MDP), MDP.environment()),
    "Q-learning": lambda: (rivals.QLearning.on(MDP), MDP.environment()),
    "R-learning": lambda: (rivals.RLearning.on(MDP), MDP.environment()),
    "gittins": lambda: (rivals.GittinsAgent(2, rivals.GittinsTable(0.9, 20)), ARMS.draw(0)),
    "uniform": lambda: (rivals.UniformLevers(2), ARMS.draw(0)),
    "oracle": lambda: (rivals.Oracle(2, biases=[0.1, 0.9]), ARMS.draw(0)),
    "greedy": lambda: (rivals.EpsilonGreedy(2), ARMS.draw(0)),
    "softmax": lambda: (rivals.Softmax(2), ARMS.draw(0)),
    "UCB1": lambda: (rivals.UCB1(2), ARMS.draw(0)),
    "KL-UCB": lambda: (rivals.KLUCB(2), ARMS.draw(0)),
}


def make_subclass(instance: Any) -> None:
    """Change the class of the instance to a subclass without changes."""
    kind = type(instance)
    instance.__class__ = type(f"Sub{kind.__name__}", (kind,), {"__slots__": ()})


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_pair_has_a_compiled_loop(pair: Callable[[], tuple[Any, Any]]) -> None:
    assert find_loop(*pair()) is not None


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(
    "part", [lambda agent, _: agent, lambda agent, _: learner(agent), lambda _, world: world]
)
def test_a_subclass_has_no_compiled_loop(pair: Callable[[], tuple[Any, Any]], part: Any) -> None:
    """It may override a method that the compiled loop does not call."""
    agent, environment = pair()
    make_subclass(part(agent, environment))
    assert find_loop(agent, environment) is None


@pytest.mark.parametrize("name", PAIRS)
def test_an_agent_has_no_compiled_loop_with_the_environment_of_another(name: str) -> None:
    agent, environment = PAIRS[name]()
    for other in ("tabular", "parametric", "arms", "linear bandit", "gibbs", "linear"):
        stranger = PAIRS[other]()[1]
        if type(stranger) is not type(environment):
            assert find_loop(agent, stranger) is None

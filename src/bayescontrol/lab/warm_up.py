"""Compile kernels ahead of time, by small runs of every kind of problem."""

import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from bayescontrol import bandits, bank, baselines, lqr, mdp, pomdp, trees
from bayescontrol.beliefs import FiniteBelief
from bayescontrol.errors import MissingCapability
from bayescontrol.exploration import Remedy
from bayescontrol.finite.chain import GrowingChain
from bayescontrol.finite.examples import prize_or_frog
from bayescontrol.interaction import interact
from bayescontrol.modes import DiscreteMode
from bayescontrol.protocols import MISSING
from bayescontrol.record import Probe
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream

#: The steps of an agent in its compiled loop, and step by step.
_LOOP_STEPS, _READABLE_STEPS = 30, 3
#: Makes `interact` go step by step instead of using a compiled loop.
_PROBES: Final = {"observation": Probe(lambda _agent, _a, o: o)}


def warm_up(report: Callable[[str], None] | None = None) -> float:
    """Compile the common kernels of problems and baselines now; return the seconds it took.

    Compiled kernels are stored in the cache folder of the user, so one call after an installation
    is enough. `report` is called with a line of text before each group of kernels.

    >>> seconds = warm_up()  # doctest: +SKIP
    """
    from bayescontrol.kernels._jit import is_first_compilation  # which loads Numba

    start = time.perf_counter()
    is_first_compilation()  # the user knows, so nothing is printed
    for number, (name, compile_group) in enumerate(_GROUPS.items(), 1):
        if report is not None:
            report(f"{name} ({number} of {len(_GROUPS)})")
        compile_group()
    return time.perf_counter() - start


def _run(create: Callable[[], Any], world: Any) -> None:
    """Run an agent in its compiled loop and step by step; compute probabilities; save and load."""
    interact(create(), deepcopy(world), _LOOP_STEPS, seed=0)
    agent = create()
    interact(agent, deepcopy(world), _READABLE_STEPS, seed=0, probes=_PROBES)
    with suppress(MissingCapability, AttributeError):
        agent.action_probabilities()
    if hasattr(agent, "save"):
        agent.load(agent.save())


def _streams() -> None:
    """Compile the methods of `Stream`, for single numbers and for arrays."""
    rng = Stream(0)
    for size in (None, 3):
        rng.random(size), rng.normal(size=size), rng.exponential(size=size)
        rng.gamma(2.0, size=size), rng.beta(2.0, 3.0, size=size), rng.integers(5, size=size)
        rng.categorical([0.5, 0.5], size=size), rng.uniform(size=size)
        rng.poisson(2.0, size=size), rng.binomial(5, 0.3, size=size)
    rng.permutation(3), rng.multivariate_normal([0.0], [[1.0]])


def _bandits() -> None:
    """Compile an example of every family of bandits, and the variants with other kernels."""
    problems: tuple[tuple[Any, Any], ...] = (
        *((make(**make.model_kind.example), make.model_kind.truth) for make in bandits.FAMILIES),
        (bandits.GaussianBandit(2, sd=None, prior=(0, 1, 1, 1)), [[0.0, 1.0], [1.0, 2.0]]),
        (bandits.BernoulliBandit(40), np.linspace(0.1, 0.9, 40)),
        (bandits.LogitNormalBandit([0.0, 0.0], np.eye(2), particles=20), [0.2, 0.7]),
    )
    for bandit, truth in problems:
        _run(bandit.agent, bandit.environment(truth))
        bandit.draw(0)
    known_noise = bandits.GaussianBandit(2, sd=1, prior=(0, 1))
    _run(known_noise.agent, known_noise.environment([0.0, 1.0]))


def _contexts() -> None:
    """Compile contextual bandits, with learned and with given scales."""
    for bandit in (
        bandits.LinearBandit(arms=2, features=2),
        bandits.LinearBandit(arms=2, features=2, sd=1.0, prior=(0.0, 1.0)),
        bandits.LogisticBandit(arms=2, features=2),
        bandits.LogisticBandit(arms=2, features=2, prior=(0.0, 1.0)),
    ):
        world = bandit.environment([[1.0, 0.0], [0.0, 1.0]])
        _run(partial(bandit.agent, start=world.start), world)
        bandit.draw(0)


def _finite() -> None:
    """Compile beliefs over finitely many modes: tables, growing classes, modes of users."""
    boxes = prize_or_frog(0.75)
    _run(boxes.agent, boxes.environment(0))
    joint = bandits.JointBandit([[0.9, 0.1], [0.1, 0.9]])
    _run(joint.agent, joint.environment([0.9, 0.1]))
    chain = GrowingChain()
    _run(chain.agent, chain.environment(0))
    coin: Any = DiscreteMode(lambda _x: {"toss": 1.0}, lambda _x, _a: {"H": 0.5, "T": 0.5})
    _run(lambda: ControlRule(FiniteBelief([coin, coin])), coin.environment())
    # Modes of users may give logarithms of likelihoods.
    log_coin: Any = SimpleNamespace(act=lambda *_: "toss", log_likelihood=lambda *_: -1.0)
    _run(lambda: ControlRule(FiniteBelief([log_coin, log_coin])), coin.environment())


def _mdps() -> None:
    """Compile the agents for MDPs, in a corridor of three cells."""
    maze = mdp.Maze(". . G")
    for agent in (
        mdp.GibbsMDP(actions=4, start=0).agent,
        mdp.DirichletMDP(states=3, actions=4).agent,
        lambda: baselines.RLearning(states=3, actions=4, start=0),
        lambda: baselines.QLearning(states=3, actions=4, start=0),
        lambda: baselines.OptimalPolicy(maze.mdp()),
    ):
        _run(agent, maze.environment(0))


def _pomdps() -> None:
    """Compile the filter of hidden states."""
    tiger = pomdp.tiger()
    _run(tiger.agent, tiger.environment())


def _trees() -> None:
    """Compile context trees: learning, draws, plans, and the search for untested actions."""
    tiger = pomdp.tiger()
    percepts = {"observation": list(tiger.observations), "reward": [-100, -1, 10]}
    problem = trees.ContextTrees(list(tiger.actions), percepts, depth=2,
                                 remedy=Remedy(share=1.0, steps=1, chance=1.0))  # fmt: skip
    _run(problem.agent, tiger.environment())
    belief = problem.belief()
    belief.predictive(None, "listen")
    belief.unresolved(None)


def _plants() -> None:
    """Compile the agents for linear plants and for banks of plants."""
    system = lqr.LinearSystem(A=[[0.9]], B=[[1.0]], Q=[[1.0]], R=[[1.0]])
    problem = lqr.LinearQuadratic.on(system, prior=lqr.SystemPrior())
    for agent in (problem.agent, lambda: baselines.OptimalController(system)):
        _run(agent, lqr.LinearPlant(system))
    mode = bank.PlantMode(([[0.9]], [[1.0]], [[1.0]]), bank.PI(0.1, 0.1), process_noise=1.0,
                          sensor_noise=1.0)  # fmt: skip
    two = bank.Bank([mode, mode])
    _run(two.agent, two.environment(0))
    two.agent().observe(0.0, MISSING)


def _baselines() -> None:
    """Compile the bandit agents of the literature."""
    world = bandits.BernoulliBandit(2).environment([0.2, 0.7])
    table = baselines.GittinsTable(0.9, pulls=5)
    _run(partial(baselines.GittinsAgent, 2, table), world)
    for create in (baselines.UCB1, baselines.KLUCB, baselines.EpsilonGreedy, baselines.Softmax):
        _run(partial(create, 2), world)


_GROUPS: Final[dict[str, Callable[[], None]]] = {
    "random numbers": _streams,
    "bandits": _bandits,
    "contextual bandits": _contexts,
    "finite classes of modes": _finite,
    "Markov decision problems": _mdps,
    "hidden states": _pomdps,
    "context trees": _trees,
    "linear plants": _plants,
    "baselines": _baselines,
}

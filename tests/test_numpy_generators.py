"""A NumPy Generator is accepted wherever a Stream or a seed is expected."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import bayescontrol
from bayescontrol import baselines, convergence, testing
from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov
from bayescontrol.bank import Bumpless, PlantMode
from bayescontrol.beliefs import ParticleBelief, SwitchingBelief
from bayescontrol.durable import open_agent
from bayescontrol.finite.tabular import random_modes
from bayescontrol.gym import Continuing, drive
from bayescontrol.lqr import LinearQuadratic, LinearSystem, SystemPrior, random_system
from bayescontrol.mdp import GibbsMDP, chain_mdp, random_mdp
from bayescontrol.schedules import Geometric
from bayescontrol.seeding import Stream
from bayescontrol.simulators.classic_control import CARTPOLE

# Any, because the cases mix modes, agents and environments of all kinds.
bc: Any = bayescontrol
bandit: Any = bc.BernoulliBandit(50)
gaussian: Any = bc.GaussianBandit(2, sd=1.0, prior=(0, 1))
tables: Any = random_modes(3, seed=0)
mdp: Any = chain_mdp(3)
system = LinearSystem([[0.9]], [[1.0]], [[1.0]], [[1.0]])
linear: Any = LinearQuadratic.on(system, start=[2.0], prior=SystemPrior())
plant_mode = PlantMode((system.A, system.B, [[1.0]]), system.K, process_noise=1.0, sensor_noise=1.0)
contextual: Any = bc.LinearBandit(8, features=2)
coin: Any = bc.DiscreteMode(lambda x: dict.fromkeys(range(50), 0.02), lambda x, a: {1: 0.5, 0: 0.5})


def particles(rng: Any = 0) -> Any:
    return ParticleBelief(
        lambda n, rng: rng.normal(size=(n, 1)),
        lambda theta, x, a, o: np.zeros(len(theta)),
        lambda theta, x, rng: rng.categorical([1.0] * 50),  # needs a Stream
        20,
        seed=rng,
    )


def fallen_back() -> Any:
    alarm = Alarm(KrichevskyTrofimov(2), 0.5)
    guarded: Any = Guarded(tables.agent(), alarm, lambda x, rng: rng.categorical([1, 1]))
    while not guarded.fallen_back:
        guarded.observe(0, 0)
    return guarded


DRAWS: dict[str, Callable[[Any], Any]] = {
    "rule over a bandit": lambda rng: bandit.agent().act(rng),
    "rule over tables": lambda rng: tables.agent().act(rng),
    "rule over discrete modes": lambda rng: bc.ControlRule(bc.FiniteBelief([coin])).act(rng),
    "rule over particles": lambda rng: bc.ControlRule(particles()).act(rng),
    "rule over an MDP": lambda rng: GibbsMDP(50, start=0).agent().act(rng),
    "rule over contexts": lambda rng: contextual.agent([1.0, 2.0]).act(rng),
    "rule over linear systems": lambda rng: linear.agent().act(rng).tolist(),
    "batch": lambda rng: bandit.agent().batch(5, rng),
    "bandit baseline": lambda rng: baselines.UCB1(50).act(rng),
    "Gittins": lambda rng: baselines.GittinsAgent(50, baselines.GittinsTable(0.9, pulls=5)).act(
        rng
    ),
    "Q-learning": lambda rng: baselines.QLearning.on(random_mdp(2, 50), gamma=0.9).act(rng),
    "fixed experts": lambda rng: baselines.FixedExperts(
        [lambda x: 1, lambda x: 2],
        0,
        baselines.dithered_mean,
    ).act(rng),
    "Bumpless": lambda rng: Bumpless(linear.agent(), 3).act(rng).tolist(),
    "fallback": lambda rng: fallen_back().act(rng),
    "belief over modes": lambda rng: id(bc.FiniteBelief([coin, tables[0]]).sample(rng)),
    "changing belief": lambda rng: id(SwitchingBelief([coin, tables[0]], hazard=0.1).sample(rng)),
    "belief over arms": lambda rng: bandit.belief().sample(rng).means.tolist(),
    "belief over systems": lambda rng: linear.agent().belief.sample(rng).K.tolist(),
    "belief over particles": lambda rng: particles().sample(rng).theta.tolist(),
    "mode of tables": lambda rng: tables[0].act(0, rng),
    "discrete mode": lambda rng: coin.act(None, rng),
    "particle": lambda rng: particles().sample(rng).act(None, rng),
    "bandit environment": lambda rng: gaussian.environment([0, 1]).respond(0, rng),
    "contextual environment": lambda rng: contextual.draw(0).respond(0, rng),
    "MDP environment": lambda rng: random_mdp(20, 2).environment().respond(0, rng),
    "table environment": lambda rng: tables.environment(0).respond(0, rng),
    "mode environment": lambda rng: coin.environment().respond(0, rng),
    "linear environment": lambda rng: linear.environment(system).respond([1.0], rng).tolist(),
    "output environment": lambda rng: plant_mode.environment().respond(1.0, rng),
    "noisy plant": lambda rng: CARTPOLE.environment(0, process=1.0).respond(1, rng).tolist(),
    "schedule": lambda rng: bc.ControlRule(
        bc.FiniteBelief([coin, coin]), schedule=Geometric(0.5)
    ).batch(5, rng),
}
SEEDS: dict[str, Callable[[Any], Any]] = {
    "interact": lambda seed: list(bc.interact(bandit.agent(), bandit.draw(0), 5, seed=seed)),
    "streams": lambda seed: list(
        bc.interact(bandit.agent(), bandit.draw(0), 5, streams=(seed, seed))
    ),
    "play": lambda seed: next(bc.play(bandit.agent(), bandit.draw(0), seed=seed)),
    "warm start": lambda seed: bc.warm_start(bandit.agent(), [(0, 1)], seed=seed),
    "draw a bandit": lambda seed: bandit.draw(seed).means().tolist(),
    "draw a contextual bandit": lambda seed: contextual.draw(seed).truth.tolist(),
    "random modes": lambda seed: random_modes(2, seed=seed).policy.tolist(),
    "random MDP": lambda seed: random_mdp(3, 2, seed=seed).tables.cumulative.tolist(),
    "random system": lambda seed: random_system(2, 1, 0.5, seed).A.tolist(),
    "particles": lambda seed: particles(seed).sample(Stream(0)).theta.tolist(),
    "plant": lambda seed: CARTPOLE.environment(seed).start.tolist(),
    "Gymnasium": lambda seed: Continuing(gymnasium.make("Taxi-v4"), seed=seed).x,
    "drive": lambda seed: list(
        drive(GibbsMDP(6, start=0).agent(), gymnasium.make("Taxi-v4"), 5, seed=seed)
    ),
    "settling times": lambda seed: convergence.settling_times(
        tables, 0, runs=3, seed=seed
    ).first.tolist(),
    "divergences": lambda seed: convergence.simulate_divergences(tables, 0, 5, 3, seed).d.tolist(),
    "sampled check": lambda seed: repr(
        convergence.sampled_check(
            lambda rng: coin, world=lambda m: m.environment(), modes=2, starts=2, steps=2, seed=seed
        )
    ),
    "laws of an agent": lambda seed: testing.check_agent(
        tables.agent, tables.environment, steps=5, runs=20, seed=seed
    ),
    "durable agent": lambda seed: open_agent("sqlite:///:memory:", "a", bandit, seed=seed).seed,
}


@pytest.mark.parametrize("case", [*DRAWS, *SEEDS])
def test_equal_generators_give_equal_results_and_advance(case: str) -> None:
    draw = DRAWS.get(case) or SEEDS[case]
    results = []
    for _ in range(2):
        rng = np.random.default_rng(7)
        results.append([draw(rng) for _ in range(3)])
        assert rng.bit_generator.state != np.random.default_rng(7).bit_generator.state
    assert results[0] == results[1]


@pytest.mark.parametrize("case", DRAWS)
def test_a_number_is_rejected_as_a_stream(case: str) -> None:
    """It would give the same draws in every call."""
    with pytest.raises(TypeError, match="rng=0: expected a Stream"):
        DRAWS[case](0)


def test_modes_of_the_user_receive_a_stream() -> None:
    class Mode:
        def act(self, x: Any, rng: Any) -> type:
            return type(rng)

        def likelihood(self, x: Any, a: Any, o: Any) -> float:
            return 1.0

    agent: Any = bc.ControlRule(bc.FiniteBelief([Mode()]))
    assert agent.act(np.random.default_rng(0)) is Stream
    assert particles().sample(np.random.default_rng(0)).act(None, np.random.default_rng(0)) < 50

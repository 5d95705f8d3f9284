"""Bumpless transfer, with and without an alarm: blending, saving, loading and copying."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, FiniteBelief, Stream, interact
from bayescontrol._arrays import Arrays
from bayescontrol.alarms import Alarm, Guarded, StudentPredictor
from bayescontrol.bank import PI, Bank, Bumpless, PlantMode
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.errors import IncompatibleState
from bayescontrol.lqr import LinearPlant, LinearQuadratic, SystemPrior, double_integrator
from bayescontrol.schedules import Every
from bayescontrol.simulators import SimulatorMode, SimulatorNoise, next_state
from bayescontrol.testing import check_resume, same_bits

START = np.array([1.0])


class World:
    """x' = x + b u + w."""

    def __init__(self, b: float = 0.5) -> None:
        self.b, self.x = b, START

    def respond(self, u: float, rng: Stream) -> Any:
        self.x = self.x + self.b * u + 0.1 * rng.normal()
        return self.x


def drift(b: float) -> SimulatorMode:
    """x' = x + b u, with a controller that halves x."""
    return SimulatorMode(
        lambda x, u: x + b * u, lambda x: float(-x[0] / (2 * b)), SimulatorNoise(0.1), f"b = {b:g}"
    )


def rule(*rates: float) -> Any:
    belief = FiniteBelief([drift(b) for b in rates or (0.5, -0.5)])
    return ControlRule(belief, START, next_state, Every(2))


def alarm() -> Alarm:
    return Alarm(StudentPredictor([0.0], key=lambda _x, _u: 0), 0.05)


ORDERS: dict[str, Callable[[], Any]] = {
    "plain": lambda: Bumpless(rule(), steps=3),
    "around": lambda: Bumpless(Guarded(rule(), alarm(), fallback=0.25), steps=3),
    "inside": lambda: Guarded(Bumpless(rule(), steps=3), alarm(), fallback=0.25),
    "particles": lambda: Bumpless(particles(), steps=3),
}


def particles() -> Any:
    belief = ParticleBelief(
        lambda n, rng: rng.normal(size=(n, 1)),
        lambda theta, x, u, o: -0.5 * (o[0] - x[0] - theta[:, 0] * u) ** 2,
        lambda theta, x, rng: float(theta[0]),
        particles=30,
    )
    return ControlRule(belief, START, next_state, Every(3))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("at", [0, 1, 2, 3, 5, 17])
def test_a_run_can_be_saved_and_resumed(order: str, at: int) -> None:
    check_resume(ORDERS[order], World, 20, at=at, seed=3)


def test_inputs_are_blended_when_the_fallback_takes_over() -> None:
    """The alarm is raised by hand; the input approaches the fallback in steps, as for a mode."""
    agent = Bumpless(Guarded(rule(0.5), alarm(), fallback=5.0), steps=4)
    assert agent.act(Stream(0)) == -1.0
    agent.agent.alarm.fast_forward(1, np.array([np.inf]))
    assert agent.mode == 5.0
    assert [agent.act(Stream(0)) for _ in range(5)] == [0.5, 2.0, 3.5, 5.0, 5.0]


def test_a_guarded_bumpless_agent_falls_back_at_once_and_learns_from_applied_inputs() -> None:
    agent = Guarded(Bumpless(rule(0.5), steps=4), alarm(), fallback=5.0)
    u = agent.act(Stream(0))
    agent.observe(u, np.array([0.5]))
    assert agent.x.tolist() == [0.5]
    agent.alarm.fast_forward(1, np.array([np.inf]))
    assert agent.act(Stream(0)) == 5.0
    agent.observe(5.0, np.array([3.0]))
    assert agent.belief.count == 2
    assert agent.x.tolist() == [3.0]


def test_an_impossible_observation_updates_the_situation_of_a_guarded_bumpless_agent() -> None:
    class Sure:
        def act(self, x: Any, rng: Stream) -> float:
            return 1.0

        def likelihood(self, x: Any, a: Any, o: Any) -> float:
            return float(o < 10)

    inner: Any = ControlRule(FiniteBelief([Sure()]), 0, lambda _x, _a, o: o)
    bell = Alarm(StudentPredictor(key=lambda _x, _u: 0), 0.05)
    agent = Guarded(Bumpless(inner, steps=2), bell, fallback=0.0)
    agent.observe(1.0, 11)
    assert agent.alarm.raised
    assert (agent.x, agent.belief.count) == (11, 0)


def _drawn_input(u: float, x: Any) -> float:
    return u


def _drawn(belief: Any, m: int, rng: Any) -> Any:
    return belief.select(m)


def test_only_a_mode_that_was_in_charge_for_long_is_left_gradually() -> None:
    """Modes that change in every step pass unblended, after one blend from the first mode."""
    modes = [SimulatorMode(lambda x, u: x, partial(_drawn_input, u)) for u in (8.0, -8.0)]
    inner: Any = ControlRule(FiniteBelief(modes), [0.0], next_state)
    agent, inputs = Bumpless(inner, steps=4), []
    for wanted in [0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1]:
        inner.belief.sample = partial(_drawn, inner.belief, wanted)
        inputs.append(agent.act(Stream(0)))
    assert inputs == [8, 4, 8, -4, 8, -8, 8, 8, 8, 8, 4, 0, -4, -8]


def test_bumpless_hardly_slows_down_a_bank_that_draws_similar_modes() -> None:
    """The ratio of costs was 1.01 for 20 other seeds, and 2.6 with a blend for every change."""

    def plant(gain: float) -> PlantMode:
        return PlantMode(([[0.95]], [[gain]], [[1.0]]), PI(0.4 / gain, 0.1 / gain),
                         process_noise=0.02, sensor_noise=3.0, limits=(-20, 20))  # fmt: skip

    bank = Bank(
        [plant(g) for g in (1.0, 0.98, 0.96)], setpoint=lambda k: 5.0 if k // 30 % 2 else -5.0
    )
    costs = []
    for wrap in (lambda agent: agent, lambda agent: Bumpless(agent, 8)):
        cost = 0.0
        for seed in range(100, 110):
            world = bank.environment(0)
            record = interact(wrap(bank.agent()), world, 150, seed=seed)
            wanted = [5.0 if k // 30 % 2 else -5.0 for k in range(1, 151)]
            cost += float(np.mean((record.observations - wanted) ** 2))
        costs.append(cost)
    assert costs[1] < 1.3 * costs[0]


def test_an_agent_with_a_constant_gain_is_not_blended() -> None:
    """A belief over systems has no mode numbers, so modes are compared by identity."""
    system = double_integrator()
    plain = LinearQuadratic.on(system, start=[1.0, 0.0], prior=SystemPrior()).agent(
        schedule=Every(1000)
    )
    agent = Bumpless(
        LinearQuadratic.on(system, start=[1.0, 0.0], prior=SystemPrior()).agent(
            schedule=Every(1000)
        ),
        steps=5,
    )
    for t in range(4):
        u, v = plain.act(Stream(t)), agent.act(Stream(t))
        assert u.tolist() == v.tolist()
        o = LinearPlant(system, plain.x).respond(u, Stream(t))
        plain.observe(u, o)
        agent.observe(v, o)


@pytest.mark.parametrize(
    "damage",
    [
        {"steps": np.array(4)},
        {"blend": np.array([9, 1, 1])},
        {"blend": np.array([1, 9, 1])},
        {"last": np.array("'left'")},
        {"from": np.array("None")},
    ],
    ids=str,
)
def test_a_damaged_state_is_refused_and_changes_nothing(damage: Arrays) -> None:
    agent, world = ORDERS["plain"](), World()
    interact(agent, world, 1, seed=0)
    agent.belief.retire(agent.belief.drawn)  # the next action starts blending
    interact(agent, world, 1, seed=0)
    before = agent.save()
    assert before["blend"].tolist() == [1, 1, 1]
    with pytest.raises(IncompatibleState):
        agent.load(before | damage)
    assert same_bits(before, agent.save())

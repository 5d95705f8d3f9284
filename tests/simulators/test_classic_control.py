"""Experts on matching and on other plants, limits, and bumpless transfer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, FiniteBelief, ParticleBelief, Stream, play
from bayescontrol.bank import Bumpless
from bayescontrol.baselines import FixedExperts, dithered_mean, vote
from bayescontrol.beliefs.switching import FadingBelief, SwitchingBelief
from bayescontrol.errors import MissingCapability, UnknownAction
from bayescontrol.schedules import Every, MinimumDwell
from bayescontrol.simulators import (
    CARTPOLE,
    CARTPOLE_HYPOTHESES,
    MOUNTAIN_CAR,
    MOUNTAIN_CAR_HYPOTHESES,
    PENDULUM,
    PENDULUM_HYPOTHESES,
    CartPole,
    MountainCar,
    Pendulum,
    Plant,
    SimulatorMode,
    SimulatorNoise,
    limited,
    linearise,
    next_state,
)

SHAKEN = (0.0, 0.02, 0.0, 0.02)


def cartpole_modes(noise: SimulatorNoise | None = None) -> list[SimulatorMode]:
    return [hypothesis.mode(noise) for hypothesis in CARTPOLE_HYPOTHESES]


def mountain_car_modes(noise: SimulatorNoise | None = None) -> list[SimulatorMode]:
    return [hypothesis.mode(noise) for hypothesis in MOUNTAIN_CAR_HYPOTHESES]


def pendulum_modes(noise: SimulatorNoise | None = None) -> list[SimulatorMode]:
    return [hypothesis.mode(noise) for hypothesis in PENDULUM_HYPOTHESES]


def steps_survived(
    agent: Any, plant: Plant, steps: int, change: Callable[[], None] | None = None
) -> int:
    for t, _ in enumerate(play(agent, plant, seed=1), start=1):
        if plant.terminated or t == steps:
            break
        if change and t == steps // 2:
            change()
    return plant.steps


def test_linearisation_agrees_with_the_formula() -> None:
    # CartPole about the upright, with Euler steps of .02 s.
    m, M, half, g, tau = 0.5, 1.0, 0.8, 9.8, 0.02
    step = CARTPOLE.simulator(**CartPole(half, m).attributes())
    A, _ = linearise(lambda s, u: 0.5 * (np.array(step(s, 1)) + np.array(step(s, 0))), np.zeros(4))
    angle = g / (half * (4 / 3 - m / (m + M)))
    expected = np.eye(4) + tau * np.array(
        [[0, 1, 0, 0], [0, 0, -m * half * angle / (m + M), 0], [0, 0, 0, 1], [0, 0, angle, 0]]
    )
    assert pytest.approx(expected, abs=1e-8) == A


@pytest.mark.parametrize(
    "pole",
    [
        CARTPOLE_HYPOTHESES[0],
        CARTPOLE_HYPOTHESES[9],
        CARTPOLE_HYPOTHESES[10],
        CARTPOLE_HYPOTHESES[19],
    ],
)
def test_an_expert_balances_its_own_pole_and_fails_with_the_opposite_force(pole: CartPole) -> None:
    plant = CARTPOLE.environment(1, process=SHAKEN, **pole.attributes())
    assert steps_survived(FixedExperts([pole.expert()], plant.start), plant, 500) == 500
    other = pole._replace(sign=-pole.sign)
    plant = CARTPOLE.environment(1, process=SHAKEN, **other.attributes())
    assert steps_survived(FixedExperts([pole.expert()], plant.start), plant, 500) < 50


def test_the_twenty_hypotheses_are_distinct_with_both_signs_of_the_force() -> None:
    assert len(set(CARTPOLE_HYPOTHESES)) == len({pole.name for pole in CARTPOLE_HYPOTHESES}) == 20
    assert sum(pole.sign for pole in CARTPOLE_HYPOTHESES) == 0


@pytest.mark.parametrize("true", [1, 8, 12, 17])
def test_the_rule_balances_an_unknown_pole_where_mean_and_vote_fail(true: int) -> None:
    modes = cartpole_modes(SimulatorNoise(SHAKEN))

    def plant() -> Plant:
        return CARTPOLE.environment(
            Stream.named(3, true, "start"), process=SHAKEN, **CARTPOLE_HYPOTHESES[true].attributes()
        )

    world = plant()
    rule = ControlRule(FiniteBelief(modes), world.start, next_state)
    assert steps_survived(rule, world, 500) == 500
    assert rule.belief.posterior()[true] > 0.99
    for combine in (dithered_mean, vote):
        world = plant()
        fixed = FixedExperts([mode.policy for mode in modes], world.start, combine)
        assert steps_survived(fixed, world, 500) < 100


def test_without_noise_one_step_refutes_every_wrong_hypothesis() -> None:
    modes = cartpole_modes()
    plant = CARTPOLE.environment(2, **CARTPOLE_HYPOTHESES[13].attributes())
    rule = ControlRule(FiniteBelief(modes), plant.start, next_state)
    steps_survived(rule, plant, 1)
    assert rule.belief.posterior()[13] > 0.999


@pytest.mark.parametrize(
    ("make", "follows"),
    [
        (FiniteBelief, False),
        (lambda modes: SwitchingBelief(modes, hazard=0.002), True),
        (lambda modes: FadingBelief(modes, forgetting=0.7), True),
    ],
)
def test_switching_and_fading_beliefs_adapt_to_a_rewired_motor_and_a_static_one_does_not(
    make: Callable[[Any], Any], follows: bool
) -> None:
    pole = CARTPOLE_HYPOTHESES[4]
    plant = CARTPOLE.environment(7, process=SHAKEN, **pole.attributes())
    rule = ControlRule(make(cartpole_modes(SimulatorNoise(SHAKEN))), plant.start, next_state)
    steps = steps_survived(rule, plant, 300, lambda: plant.become(force_mag=-10.0))
    assert (steps == 300) == follows


@pytest.mark.parametrize("rod", [PENDULUM_HYPOTHESES[0], PENDULUM_HYPOTHESES[8]])
def test_expert_and_rule_swing_up_and_hold_a_rod(rod: Pendulum) -> None:
    modes = pendulum_modes(SimulatorNoise((0.0, 0.0, 0.05)))
    for make in (
        lambda x: FixedExperts([rod.expert()], x),
        lambda x: Bumpless(
            ControlRule(FiniteBelief(modes), x, next_state, MinimumDwell(3)), steps=4
        ),
    ):
        plant = PENDULUM.environment(2, process=(0.0, 0.05), **rod.attributes())
        agent: Any = make(plant.start)
        heights = []
        for t, (u, o) in enumerate(play(agent, plant, seed=2)):
            assert abs(u) <= 2.0
            heights.append(o[0])
            if t == 180:
                break
        assert min(heights[:60]) < 0.5
        assert min(heights[-60:]) > 0.95


@pytest.mark.parametrize("true", [0, 4, 7])
def test_a_car_reaches_the_goal_on_an_unknown_hill(true: int) -> None:
    plant = MOUNTAIN_CAR.environment(
        1, process=(1e-4, 1e-4), **MOUNTAIN_CAR_HYPOTHESES[true].attributes()
    )
    modes = mountain_car_modes(SimulatorNoise((1e-4, 1e-4), floor=1e-5))
    rule = ControlRule(FiniteBelief(modes), plant.start, next_state)
    assert steps_survived(rule, plant, 300) < 300
    assert plant.terminated
    assert rule.belief.posterior()[true] > 0.99


def test_an_expert_for_weak_gravity_fails_with_strong_gravity() -> None:
    plant = MOUNTAIN_CAR.environment(1, **MountainCar(0.0035).attributes())
    light = FixedExperts([MountainCar(0.0015).expert()], plant.start)
    assert steps_survived(light, plant, 300) == 300


def test_limits_apply_to_numbers_and_arrays() -> None:
    both = limited(lambda x: np.array([5.0, -5.0]), [-1.0, -2.0], [1.0, 2.0])
    assert both(None).tolist() == [1.0, -2.0]
    assert limited(lambda x: np.array([5.0, -5.0]), -1.0, 1.0)(None).tolist() == [1.0, -1.0]
    assert limited(lambda x: 5, -1.0, 1.0)(None) == limited(lambda x: np.inf, -1.0, 1.0)(None) == 1


def test_bumpless_treats_a_newly_drawn_particle_as_a_new_mode() -> None:
    belief = ParticleBelief(
        lambda n, rng: rng.normal(size=(n, 2)),
        lambda theta, x, u, o: np.zeros(len(theta)),
        lambda theta, x, rng: float(theta[0]),
        particles=10,
    )
    agent = Bumpless(ControlRule(belief, [0.0], next_state, Every(2)), steps=2)
    first, second, third, fourth = (agent.act(Stream(t)) for t in range(4))
    assert first == second != fourth
    assert third == pytest.approx(0.5 * (second + fourth))


@pytest.mark.parametrize("steps", [0, 2.5, np.nan, np.inf, "two", None])
def test_bumpless_needs_an_integer_number_of_steps(steps: Any) -> None:
    with pytest.raises(ValueError, match="an integer of at least 1"):
        Bumpless(ControlRule(FiniteBelief(pendulum_modes())), steps)


@pytest.mark.parametrize("u", [np.nan, None, "full", [0.0, np.nan], 1j])
def test_limits_refuse_inputs_that_are_not_numbers(u: Any) -> None:
    def broken(x: Any) -> Any:
        return x

    with pytest.raises(UnknownAction, match="broken"):
        limited(broken, -1.0, 1.0)(u)
    for wrong in (0.5, [0.5], [0.5, 0.5, 0.5], [[0.5, 0.5]]):
        with pytest.raises(UnknownAction, match=r"limits have shape \(2,\)"):
            limited(broken, [-1.0, -1.0], [1.0, 1.0])(wrong)
    with pytest.raises(ValueError, match="the same shape"):
        limited(lambda x: u, [-1.0, -1.0], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("u", [1, "left", np.array([1])])
def test_discrete_actions_cannot_be_blended(u: Any) -> None:
    mode = SimulatorMode(lambda x, u: x, lambda x: u)
    agent = Bumpless(ControlRule(FiniteBelief([mode]), [0.0], next_state), steps=2)
    with pytest.raises(MissingCapability, match="cannot blend"):
        agent.act(Stream(0))

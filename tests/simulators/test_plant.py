"""Unmodified Gymnasium environments as plants and as simulators."""

import builtins
from typing import Any

import gymnasium
import numpy as np
import pytest

from bayescontrol.errors import EpisodeOver, MissingExtra, UnknownParameter
from bayescontrol.seeding import Stream
from bayescontrol.simulators import (
    CARTPOLE,
    MOUNTAIN_CAR,
    PENDULUM,
    CartPole,
    MountainCar,
    Pendulum,
    PlantModel,
)

KINDS: list[tuple[PlantModel, dict[str, float], Any]] = [
    (CARTPOLE, CartPole(0.8, 0.5, -1).attributes(), 1),
    (PENDULUM, Pendulum(0.7, 1.4).attributes(), -1.3),
    (MOUNTAIN_CAR, MountainCar(0.003, -1).attributes(), 2),
]


@pytest.mark.parametrize(("kind", "theta", "u"), KINDS)
def test_the_plant_equals_the_gymnasium_environment(
    kind: PlantModel, theta: dict[str, float], u: Any
) -> None:
    plant = kind.environment(Stream(3), **theta)
    env: Any = gymnasium.make(kind.id).unwrapped
    first, _ = env.reset(seed=Stream(3).integers(2**31))
    for name, value in theta.items():
        setattr(env, name, value)
    assert np.array_equal(plant.start, first)
    for _ in range(5):
        o = plant.respond(u, Stream(0))
        assert o.astype(np.float32) == pytest.approx(env.step(kind.command(u))[0], abs=1e-6)


@pytest.mark.parametrize(("kind", "theta", "u"), KINDS)
def test_the_simulator_predicts_the_plant_far_below_the_noise_floor(
    kind: PlantModel, theta: dict[str, float], u: Any
) -> None:
    plant, step = kind.environment(1, **theta), kind.simulator(**theta)
    x = plant.start
    for _ in range(6):
        predicted = step(x, u)
        x = plant.respond(u, Stream(0))
        assert np.abs(x - predicted).max() < 1e-6


@pytest.mark.parametrize(("kind", "theta", "u"), KINDS)
def test_a_simulator_has_no_memory(kind: PlantModel, theta: dict[str, float], u: Any) -> None:
    step, x = kind.simulator(**theta), kind.environment(2).start
    once = step(x, u)
    far = (x[0], x[1], 30.0) if kind is PENDULUM else tuple(5.0 + x)
    for _ in range(3):
        step(far, u)  # a CartPole episode would have ended there
    assert step(x, u) == once


def test_a_terminated_plant_raises_an_error() -> None:
    plant = CARTPOLE.environment()
    while not plant.terminated:
        plant.respond(1, Stream(0))
    before = plant.state
    with pytest.raises(EpisodeOver, match="create a new plant"):
        plant.respond(1, Stream(0))
    assert np.array_equal(plant.state, before)


def test_process_noise_changes_the_state_and_measurement_noise_does_not() -> None:
    still, moved, observed = (
        CARTPOLE.environment(5, **noise)
        for noise in ({}, {"process": (0.0, 0.1, 0.0, 0.1)}, {"measurement": 0.1})
    )
    o, p, q = (plant.respond(1, Stream(1)) for plant in (still, moved, observed))
    assert np.array_equal(moved.state, p)
    assert np.array_equal(o[[0, 2]], p[[0, 2]])
    assert (o[[1, 3]] != p[[1, 3]]).all()
    assert np.array_equal(observed.state, still.state)
    assert (q != o).all()


def test_parameters_of_a_plant_can_change_during_a_run() -> None:
    plant, twin = CARTPOLE.environment(1), CARTPOLE.environment(1, force_mag=-10.0)
    plant.become(force_mag=-10.0)
    assert np.array_equal(plant.respond(1, Stream(0)), twin.respond(1, Stream(0)))


@pytest.mark.parametrize("name", ["lenght", "step", "action_space", "steps_beyond_terminated"])
def test_a_missing_attribute_of_the_environment_cannot_be_set(name: str) -> None:
    plant = CARTPOLE.environment()
    with pytest.raises(UnknownParameter, match=r"force_mag.*length"):
        plant.become(**{"length": 3.0, name: 1.0})
    assert np.array_equal(
        plant.respond(1, Stream(0)), CARTPOLE.environment().respond(1, Stream(0))
    )  # nothing was set


def test_a_parameter_must_be_a_finite_number() -> None:
    with pytest.raises(ValueError, match="length=nan"):
        CARTPOLE.simulator(length=float("nan"))


def test_without_gymnasium_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "gymnasium":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install 'bayescontrol\[gym\]'"):
        CARTPOLE.make()


def test_a_user_environment_needs_only_a_state() -> None:
    acrobot = PlantModel(
        "Acrobot-v1",
        observe=lambda s: (np.cos(s[0]), np.sin(s[0]), np.cos(s[1]), np.sin(s[1]), s[2], s[3]),
        place=lambda x: (np.arctan2(x[1], x[0]), np.arctan2(x[3], x[2]), x[4], x[5]),
    )
    plant, step = acrobot.environment(4, LINK_MASS_2=1.5), acrobot.simulator(LINK_MASS_2=1.5)
    for a in (0, 2, 1):
        x = plant.respond(a, Stream(0))
        predicted = step(x, a)
        assert plant.respond(a, Stream(0)) == pytest.approx(predicted, abs=1e-6)

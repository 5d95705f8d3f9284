"""Settings of `experts`, and what its three plants have in common.

θ* uniform over the hypotheses       the same start and the same noise for every agent

One episode: an agent and a plant, until the plant ends it or time is up.

    identified(t)   P(m* | âo_≤s) ≥ .99 for all s from t to the end

The core knows no episodes: each has a new plant and a new agent.

CartPole: the twenty hypotheses, every agent, every expert, and a motor that is rewired.

Pendulum: nine rods, swung up and held, with and without a bumpless change of modes.

MountainCar: ten hills, five gravities with the gear forward or in reverse.

One replica: a pole, a rod and a hill drawn from their sets, an episode of each for every agent.

Every episode has a plant and an agent of its own. Velocities are disturbed at every step, so that
hypotheses near the truth take a while to be refuted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.baselines.experts import FixedExperts, dithered_mean, mean_action, vote
from bayescontrol.baselines.naive import NaiveMixture
from bayescontrol.beliefs.changing import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.experts import (
    CARTPOLE,
    MOUNTAIN_CAR,
    NINE_RODS,
    PENDULUM,
    TEN_HILLS,
    TWENTY,
    Bumpless,
    Gaussian,
    Plant,
    SimulatorMode,
    cartpole_modes,
    mountain_car_modes,
    next_state,
    pendulum_modes,
)
from bayescontrol.interaction import play
from bayescontrol.lab import Columns
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import MinimumDwell, every_step
from bayescontrol.seeding import Stream

#: What the agents are called.
RULE: Final = "control rule"
RIGHT: Final = "right expert"
NAIVE: Final = "naive mixture"
MEAN: Final = "mean of experts"
VOTE: Final = "vote of experts"

#: How each agent is made, given what it sees first.
Makers: TypeAlias = Mapping[str, Callable[[FloatArray], Any]]


@dataclass(frozen=True)
class Settings:
    """Settings of `experts`."""

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 40
    steps: Annotated[int, msgspec.Meta(ge=2, description="steps of an episode of CartPole")] = 500
    noise: Annotated[
        float, msgspec.Meta(ge=0, description="disturbance of both velocities of CartPole a step")
    ] = 0.02
    floor: Annotated[
        float, msgspec.Meta(gt=0, description="standard deviation that every hypothesis allows for")
    ] = 1e-3
    dwell: Annotated[
        int, msgspec.Meta(ge=1, description="the rule holds a mode for at least so many steps")
    ] = 1
    change: Annotated[
        int, msgspec.Meta(ge=1, description="the motor is rewired after so many steps")
    ] = 250
    hazard: Annotated[
        float, msgspec.Meta(gt=0, le=1, description="switching: probability of a change a step")
    ] = 0.002
    forgetting: Annotated[
        float, msgspec.Meta(gt=0, le=1, description="fading: evidence keeps this share a step")
    ] = 0.7
    rod_steps: Annotated[int, msgspec.Meta(ge=2, description="steps of an episode of Pendulum")] = (
        200
    )
    rod_noise: Annotated[
        float, msgspec.Meta(ge=0, description="disturbance of the rod's velocity a step")
    ] = 0.05
    limit: Annotated[
        float, msgspec.Meta(gt=0, le=2, description="limit of the experts' torque on Pendulum")
    ] = 2.0
    blend: Annotated[
        int, msgspec.Meta(ge=1, description="bumpless rule: a new mode takes over in so many steps")
    ] = 5


def truth(settings: Settings, run: int, plant: str, n: int) -> int:
    """m* of this run, uniform over n hypotheses."""
    return int(Stream.named(settings.seed, run, f"which {plant}").integers(n))


def streams(settings: Settings, run: int, agent: str, plant: str) -> tuple[Stream, Stream]:
    """The agent's stream, and the plant's, which is the same for every agent."""
    return Stream.named(settings.seed, run, f"{plant}, {agent}"), Stream.named(
        settings.seed, run, plant
    )


def control_rule(
    settings: Settings, modes: list[SimulatorMode], x: Any
) -> ControlRule[SimulatorMode, Any, Any, Any]:
    """The control rule over the modes, holding each for `dwell` steps at least."""
    schedule = every_step if settings.dwell == 1 else MinimumDwell(settings.dwell)
    return ControlRule(FiniteBelief(modes), x, next_state, schedule)


@dataclass(frozen=True, eq=False)
class Episode:
    """What happened: how long it lasted, inputs, and what was measured, NaN after the end.

    >>> Episode(2, True, np.zeros(2), np.array([[0.1], [0.2], [np.nan]])).steps
    2
    """

    steps: int
    terminated: bool
    actions: npt.NDArray[Any]
    measured: FloatArray  #: [t, measurement]


def episode(
    agent: Any,
    plant: Plant,
    limit: int,
    streams: tuple[Stream, Stream],
    measure: Callable[[Any, FloatArray], Sequence[float]] | None = None,
    change_at: int = 0,
    change: Callable[[Plant], None] | None = None,
) -> Episode:
    """Play for `limit` steps, or until the plant has ended.

    `measure(agent, o)` is taken after each step; `change(plant)` is called after step
    `change_at`.

    >>> from bayescontrol.baselines.experts import FixedExperts
    >>> from bayescontrol.experts import CARTPOLE
    >>> plant = CARTPOLE.plant()
    >>> always = FixedExperts([lambda x: 1], plant.start)
    >>> found = episode(always, plant, 500, (Stream(0), Stream(1)))
    >>> found.terminated, found.steps < 20
    (True, True)
    """
    actions: list[Any] = []
    measured: list[Sequence[float]] = []
    for t, (a, o) in enumerate(play(agent, plant, streams=streams)):
        actions.append(a)
        measured.append(measure(agent, o) if measure else ())
        if plant.terminated or t + 1 >= limit:
            break
        if change and t + 1 == change_at:
            change(plant)
    rows = np.full((limit, len(measured[0])), np.nan)
    rows[: len(measured)] = measured
    return Episode(plant.steps, plant.terminated, np.array(actions), rows)


def identified(posterior: FloatArray, steps: int, level: float = 0.99) -> float:
    """The first t such that P(m* | âo_≤s) ≥ level for s = t … steps; ∞ if there is none.

    >>> identified(np.array([0.5, 0.995, 0.9, 0.992, 0.999]), 5)
    4.0
    """
    below = np.flatnonzero(posterior[:steps] < level)
    first = int(below[-1]) + 2 if below.size else 1
    return float(first) if first <= steps else np.inf


#: What runs on CartPole, in the order of the columns.
AGENTS: Final = (RULE, RIGHT, NAIVE, MEAN, VOTE)
#: The beliefs that meet a motor being rewired.
CHANGES: Final = ("static", "switching", "fading")


@lru_cache(maxsize=4)
def _pole_modes(noise: float, floor: float) -> list[SimulatorMode]:
    return cartpole_modes(Gaussian((0.0, noise, 0.0, noise), floor))


@dataclass(frozen=True)
class _Scene:
    """One plant, and agents on it: each episode starts afresh."""

    settings: Settings
    run: int
    true: int

    def play(self, name: str, make: Callable[[FloatArray], Any], **more: Any) -> Episode:
        """One episode of the agent that `make(x)` gives."""
        s = self.settings
        plant = CARTPOLE.plant(
            Stream.named(s.seed, self.run, "start of pole"),
            process=(0.0, s.noise, 0.0, s.noise),
            **TWENTY[self.true].attributes(),
        )
        both = streams(s, self.run, name, "pole")
        return episode(make(plant.start), plant, s.steps, both, **more)


def poles(settings: Settings, run: int) -> Columns:
    """Steps survived by agents and experts, posteriors, times to identify, and the change."""
    modes = _pole_modes(settings.noise, settings.floor)
    policies = [mode.policy for mode in modes]
    true = truth(settings, run, "pole", len(TWENTY))
    scene = _Scene(settings, run, true)
    wired = [m for m, pole in enumerate(TWENTY) if pole.sign == TWENTY[true].sign]

    def knows(agent: Any, _: FloatArray) -> tuple[float, float]:
        v = agent.belief.posterior()
        return v[true], v[wired].sum()

    rule = scene.play(RULE, partial(control_rule, settings, modes), measure=knows)
    known, signed = rule.measured.T
    others: Makers = {
        RIGHT: lambda x: FixedExperts([policies[true]], x),
        NAIVE: lambda x: NaiveMixture(FiniteBelief(modes), x, next_state),
        MEAN: lambda x: FixedExperts(policies, x, dithered_mean),
        VOTE: lambda x: FixedExperts(policies, x, vote),
    }
    alone = [scene.play(RIGHT, partial(FixedExperts, [policy])) for policy in policies]
    return {
        "pole": np.array(true),
        "survived": np.array(
            [rule.steps, *(scene.play(name, others[name]).steps for name in AGENTS[1:])]
        ),
        "experts": np.array([e.steps for e in alone]),
        "posterior": known,
        "identified": np.array(identified(known, rule.steps)),
        "wired": np.array(identified(signed, rule.steps)),
        **_rewired(scene, modes),
    }


def _rewired(scene: _Scene, modes: list[SimulatorMode]) -> Columns:
    settings, pole = scene.settings, TWENTY[scene.true]
    after = pole._replace(sign=-pole.sign)
    new = TWENTY.index(after)
    wired = [m for m, other in enumerate(TWENTY) if other.sign == after.sign]
    beliefs: Mapping[str, Callable[[], Any]] = {
        "static": lambda: FiniteBelief(modes),
        "switching": lambda: SwitchingBelief(modes, hazard=settings.hazard),
        "fading": lambda: FadingBelief(modes, forgetting=settings.forgetting),
    }

    def believes(agent: Any, _: FloatArray) -> tuple[float, float]:
        v = agent.belief.posterior()
        return v[wired].sum(), v[new]

    def rewire(plant: Plant) -> None:
        plant.become(**after.attributes())

    found = [
        scene.play(
            name,
            partial(ControlRule, beliefs[name](), advance=next_state),
            measure=believes,
            change_at=settings.change,
            change=rewire,
        )
        for name in CHANGES
    ]
    return {
        "changed": np.array([e.steps for e in found]),
        "after": np.array([e.measured.T for e in found]),
    }


BUMPLESS: Final = "bumpless rule"
#: What runs on Pendulum, in the order of the columns.
ROD_AGENTS: Final = (RULE, BUMPLESS, RIGHT, MEAN)


@lru_cache(maxsize=4)
def _rod_modes(noise: float, floor: float, limit: float) -> list[SimulatorMode]:
    return pendulum_modes(Gaussian((0.0, 0.0, noise), floor), limit=limit)


def rods(settings: Settings, run: int) -> Columns:
    """cos φ at every step, and the largest jump of the torque where the mode changes."""
    modes = _rod_modes(settings.rod_noise, settings.floor, settings.limit)
    policies = [mode.policy for mode in modes]
    true = truth(settings, run, "rod", len(NINE_RODS))
    rule = partial(control_rule, settings, modes)
    make: Makers = {
        RULE: rule,
        BUMPLESS: lambda x: Bumpless(rule(x), settings.blend),
        RIGHT: lambda x: FixedExperts([policies[true]], x),
        MEAN: lambda x: FixedExperts(policies, x, mean_action),
    }
    height, bump = [], []
    for name in ROD_AGENTS:
        plant = PENDULUM.plant(
            Stream.named(settings.seed, run, "start of rod"),
            process=(0.0, settings.rod_noise),
            **NINE_RODS[true].attributes(),
        )
        # One stream for both rules: they draw the same modes, as long as they see the same.
        both = streams(settings, run, RULE, "rod")
        found = episode(make[name](plant.start), plant, settings.rod_steps, both, _seen)
        changes = np.diff(found.measured[:, 1]) != 0.0
        height.append(found.measured[:, 0])
        bump.append(np.abs(np.diff(found.actions))[changes].max(initial=0.0))
    return {"rod": np.array(true), "height": np.array(height), "bump": np.array(bump)}


def _seen(agent: Any, o: FloatArray) -> tuple[float, float]:
    """cos φ, and the mode in charge; without a belief there is but one."""
    return o[0], agent.belief.drawn if hasattr(agent, "belief") else 0.0


#: What runs on MountainCar, in the order of the columns.
HILL_AGENTS: Final = (RULE, RIGHT, VOTE)
#: A hill is given up after so many steps.
HILL_STEPS: Final = 400
#: Disturbance of position and velocity a step.
_NOISE: Final = (1e-4, 1e-4)


@lru_cache(maxsize=1)
def _hill_modes() -> list[SimulatorMode]:
    return mountain_car_modes(Gaussian(_NOISE, floor=1e-5))


def hills(settings: Settings, run: int) -> Columns:
    """Steps to the goal, ∞ where it was not reached."""
    modes = _hill_modes()
    policies = [mode.policy for mode in modes]
    true = truth(settings, run, "hill", len(TEN_HILLS))
    make: Makers = {
        RULE: partial(control_rule, settings, modes),
        RIGHT: lambda x: FixedExperts([policies[true]], x),
        VOTE: lambda x: FixedExperts(policies, x, vote),
    }
    steps = []
    for name in HILL_AGENTS:
        plant = MOUNTAIN_CAR.plant(
            Stream.named(settings.seed, run, "start of hill"),
            process=_NOISE,
            **TEN_HILLS[true].attributes(),
        )
        both = streams(settings, run, name, "hill")
        found = episode(make[name](plant.start), plant, HILL_STEPS, both)
        steps.append(found.steps if found.terminated else np.inf)
    return {"hill": np.array(true), "goal": np.array(steps, np.float64)}


def run(settings: Settings, run: int) -> Columns:
    """What happened on all plants."""
    return {**poles(settings, run), **rods(settings, run), **hills(settings, run)}

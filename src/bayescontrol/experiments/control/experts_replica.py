"""One replica of `experts`: a pole, a rod and a hill, with an episode of each for every agent.

    θ* uniform over the hypotheses       the same start and the same noise for every agent
    identified(t)   P(m* | âo_≤s) ≥ .99 for all s from t to the end

CartPole has twenty hypotheses, and a motor that is rewired. Pendulum has nine rods, which are swung
up and held, with and without a bumpless change of modes. MountainCar has ten hills: five
gravities, with the gear forward or in reverse.

The core knows no episodes, so every episode has a new plant and a new agent. Velocities are
disturbed at every step, so that hypotheses near the truth are not refuted at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bayescontrol import ControlRule, FiniteBelief, Stream, experts, play
from bayescontrol.arrays import FloatArray
from bayescontrol.baselines import FixedExperts, NaiveMixture, dithered_mean, mean_action, vote
from bayescontrol.beliefs.changing import FadingBelief, SwitchingBelief
from bayescontrol.experiments.settings import Runs, Seed
from bayescontrol.experts import CARTPOLE_HYPOTHESES, Plant, SimulatorMode, next_state
from bayescontrol.lab import Columns
from bayescontrol.schedules import MinimumDwell, every_step

#: Names of the agents.
RULE: Final = "control rule"
RIGHT: Final = "right expert"
NAIVE: Final = "naive mixture"
MEAN: Final = "mean of experts"
VOTE: Final = "vote of experts"

#: The constructor of each agent, given its first observation.
Makers: TypeAlias = Mapping[str, Callable[[FloatArray], Any]]


@dataclass(frozen=True)
class Settings:
    """Settings of `experts`."""

    seed: Seed = 0
    runs: Runs = 40
    steps: Annotated[int, Meta(ge=2, description="steps of an episode of CartPole")] = 500
    noise: Annotated[float, Meta(ge=0, description="CartPole: velocity noise per step")] = 0.02
    floor: Annotated[float, Meta(gt=0, description="least deviation of hypotheses")] = 1e-3
    dwell: Annotated[int, Meta(ge=1, description="fewest steps that a mode is held")] = 1
    change: Annotated[int, Meta(ge=1, description="step after which the motor is rewired")] = 250
    hazard: Annotated[float, Meta(gt=0, le=1, description="switching: P(change) per step")] = 0.002
    forgetting: Annotated[float, Meta(gt=0, le=1, description="fading: decay of evidence")] = 0.7
    rod_steps: Annotated[int, Meta(ge=2, description="steps of an episode of Pendulum")] = 200
    rod_noise: Annotated[float, Meta(ge=0, description="Pendulum: noise of velocity")] = 0.05
    limit: Annotated[float, Meta(gt=0, le=2, description="Pendulum: largest torque")] = 2.0
    blend: Annotated[int, Meta(ge=1, description="bumpless rule: steps of a change")] = 5


def control_rule(
    settings: Settings, modes: list[SimulatorMode], x: Any
) -> ControlRule[SimulatorMode, Any, Any, Any]:
    """Return the control rule over the modes; a drawn mode is held for at least `dwell` steps."""
    schedule = every_step if settings.dwell == 1 else MinimumDwell(settings.dwell)
    return ControlRule(FiniteBelief(modes), x, next_state, schedule)


class Episode(NamedTuple):
    """One episode: its length, actions and measurements, which are NaN after the end."""

    steps: int
    terminated: bool
    actions: npt.NDArray[Any]
    measured: FloatArray  #: [t, measurement]


@dataclass(frozen=True)
class _Scene:
    """A plant with one of its hypotheses true, on which several agents play an episode each."""

    settings: Settings
    run: int
    name: str
    plant: experts.PlantModel
    hypotheses: Sequence[Any]
    process: tuple[float, ...]
    steps: int
    modes: list[SimulatorMode]

    def _stream(self, name: str) -> Stream:
        return Stream.named(self.settings.seed, self.run, name)

    @cached_property
    def true(self) -> int:
        """m* of this run, drawn uniformly from the hypotheses."""
        return int(self._stream(f"which {self.name}").integers(len(self.hypotheses)))

    @cached_property
    def policies(self) -> list[Callable[[Any], Any]]:
        """The experts, one for each hypothesis."""
        return [mode.policy for mode in self.modes]

    @property
    def makers(self) -> Makers:
        """The constructors of the rule, the right expert and the vote."""
        return {
            RULE: partial(control_rule, self.settings, self.modes),
            RIGHT: partial(FixedExperts, [self.policies[self.true]]),
            VOTE: partial(FixedExperts, self.policies, combine=vote),
        }

    def play(
        self,
        name: str,
        make: Callable[[FloatArray], Any],
        measure: Callable[[Any, FloatArray], Sequence[float]] | None = None,
        change: Callable[[Plant], None] | None = None,
    ) -> Episode:
        """Play one episode with the agent `make(x)`, until the plant terminates.

        All agents share the random numbers of the plant. `measure(agent, o)` is called after each
        step, `change(plant)` after step `settings.change`.
        """
        start, truth = self._stream(f"start of {self.name}"), self.hypotheses[self.true]
        plant = self.plant.environment(start, process=self.process, **truth.attributes())
        agent = make(plant.start)
        streams = self._stream(f"{self.name}, {name}"), self._stream(self.name)
        actions: list[Any] = []
        measured: list[Sequence[float]] = []
        for t, (a, o) in enumerate(play(agent, plant, streams=streams), start=1):
            actions.append(a)
            measured.append(measure(agent, o) if measure else ())
            if plant.terminated or t >= self.steps:
                break
            if change and t == self.settings.change:
                change(plant)
        rows = np.full((self.steps, len(measured[0])), np.nan)
        rows[: len(measured)] = measured
        return Episode(plant.steps, plant.terminated, np.array(actions), rows)


def identified(posterior: FloatArray, steps: int, level: float = 0.99) -> float:
    """Return the first t with P(m* | âo_≤s) ≥ level for s = t … steps, or ∞.

    >>> identified(np.array([0.5, 0.995, 0.9, 0.992, 0.999]), 5)
    4.0
    """
    below = np.flatnonzero(posterior[:steps] < level)
    first = int(below[-1]) + 2 if below.size else 1
    return float(first) if first <= steps else np.inf


@lru_cache(maxsize=8)
def _modes(
    hypotheses: tuple[Any, ...], noise: tuple[float, ...], floor: float, *limit: float
) -> list[SimulatorMode]:
    """Return the mode of each hypothesis, with noise of these standard deviations."""
    disturbance = experts.SimulatorNoise(noise, floor)
    return [hypothesis.mode(disturbance, *limit) for hypothesis in hypotheses]


#: The agents on CartPole, in the order of the columns.
AGENTS: Final = (RULE, RIGHT, NAIVE, MEAN, VOTE)
#: The beliefs that are compared when the motor is rewired.
CHANGES: Final = ("static", "switching", "fading")


def poles(settings: Settings, run: int) -> Columns:
    """Record steps survived, posteriors, identification times, and the rewired motor."""
    hypotheses, noise = CARTPOLE_HYPOTHESES, (0.0, settings.noise, 0.0, settings.noise)
    modes = _modes(hypotheses, noise, settings.floor)
    plant, steps = experts.CARTPOLE, settings.steps
    scene = _Scene(settings, run, "pole", plant, hypotheses, noise, steps, modes)
    makers: Makers = {
        **scene.makers,
        NAIVE: lambda x: NaiveMixture(FiniteBelief(modes), x, next_state),
        MEAN: partial(FixedExperts, scene.policies, combine=dithered_mean),
    }
    rule = scene.play(RULE, makers[RULE], _force_and_pole(hypotheses[scene.true]))
    p_sign, p_true = rule.measured.T
    other_steps = [scene.play(name, makers[name]).steps for name in AGENTS[1:]]
    single_experts = (partial(FixedExperts, [policy]) for policy in scene.policies)
    by_expert = [scene.play(RIGHT, make).steps for make in single_experts]
    return {
        "pole": np.array(scene.true),
        "survived": np.array([rule.steps, *other_steps]),
        "experts": np.array(by_expert),
        "posterior": p_true,
        "identified": np.array(identified(p_true, rule.steps)),
        "wired": np.array(identified(p_sign, rule.steps)),
        **_rewired_columns(scene),
    }


#: Positions of the probabilities of the new force and of the true pole in the column "after".
FORCE, POLE = 0, 1


def _force_and_pole(pole: experts.CartPole) -> Callable[[Any, FloatArray], tuple[float, float]]:
    """Return a function that measures P(the sign of the force) and P(the pole)."""
    m = CARTPOLE_HYPOTHESES.index(pole)
    same_sign = [other.sign == pole.sign for other in CARTPOLE_HYPOTHESES]

    def measure(agent: Any, _: FloatArray) -> tuple[float, float]:
        v = agent.belief.posterior()
        return v[same_sign].sum(), v[m]

    return measure


def _rewired_columns(scene: _Scene) -> Columns:
    """Record episodes in which the sign of the force changes, for each kind of belief."""
    settings, modes, pole = scene.settings, scene.modes, CARTPOLE_HYPOTHESES[scene.true]
    rewired_pole = pole._replace(sign=-pole.sign)
    beliefs: Mapping[str, Any] = {
        "static": FiniteBelief(modes),
        "switching": SwitchingBelief(modes, hazard=settings.hazard),
        "fading": FadingBelief(modes, forgetting=settings.forgetting),
    }

    def rewire(plant: Plant) -> None:
        plant.become(**rewired_pole.attributes())

    episodes = []
    for name in CHANGES:
        make = partial(ControlRule, beliefs[name], advance=next_state)
        episodes.append(scene.play(name, make, _force_and_pole(rewired_pole), rewire))
    return {
        "changed": np.array([e.steps for e in episodes]),
        "after": np.array([e.measured.T for e in episodes]),
    }


BUMPLESS: Final = "bumpless rule"
#: The agents on Pendulum, in the order of the columns.
ROD_AGENTS: Final = (RULE, BUMPLESS, RIGHT, MEAN)


def rods(settings: Settings, run: int) -> Columns:
    """Record cos φ at every step, and the largest jump of the torque at a change of modes."""
    hypotheses, noise = experts.PENDULUM_HYPOTHESES, settings.rod_noise
    modes = _modes(hypotheses, (0.0, 0.0, noise), settings.floor, settings.limit)
    plant, steps = experts.PENDULUM, settings.rod_steps
    scene = _Scene(settings, run, "rod", plant, hypotheses, (0.0, noise), steps, modes)
    make: Makers = {
        **scene.makers,
        BUMPLESS: lambda x: experts.Bumpless(control_rule(settings, modes, x), settings.blend),
        MEAN: partial(FixedExperts, scene.policies, combine=mean_action),
    }
    height, bump = [], []
    for name in ROD_AGENTS:
        # Both rules share a stream: they draw the same modes while their observations agree.
        episode = scene.play(RULE, make[name], _height_and_mode)
        changes = np.diff(episode.measured[:, 1]) != 0.0
        height.append(episode.measured[:, 0])
        bump.append(np.abs(np.diff(episode.actions))[changes].max(initial=0.0))
    return {"rod": np.array(scene.true), "height": np.array(height), "bump": np.array(bump)}


def _height_and_mode(agent: Any, o: FloatArray) -> tuple[float, float]:
    """Return cos φ and the mode in charge; the mode is 0 for agents without a belief."""
    return o[0], agent.belief.drawn if hasattr(agent, "belief") else 0.0


#: The agents on MountainCar, in the order of the columns.
HILL_AGENTS: Final = (RULE, RIGHT, VOTE)
#: Limit on the steps of an episode of MountainCar.
HILL_STEPS: Final = 400
#: Disturbance of position and velocity, per step.
_NOISE: Final = (1e-4, 1e-4)


def hills(settings: Settings, run: int) -> Columns:
    """Record the steps to the goal; ∞ if the goal was not reached."""
    plant, hypotheses = experts.MOUNTAIN_CAR, experts.MOUNTAIN_CAR_HYPOTHESES
    modes = _modes(hypotheses, _NOISE, 1e-5)
    scene = _Scene(settings, run, "hill", plant, hypotheses, _NOISE, HILL_STEPS, modes)
    episodes = [scene.play(name, scene.makers[name]) for name in HILL_AGENTS]
    steps = [episode.steps if episode.terminated else np.inf for episode in episodes]
    return {"hill": np.array(scene.true), "goal": np.array(steps, np.float64)}


def run(settings: Settings, run: int) -> Columns:
    """Record the episodes on all plants."""
    return {**poles(settings, run), **rods(settings, run), **hills(settings, run)}

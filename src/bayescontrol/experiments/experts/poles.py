"""CartPole: the twenty hypotheses, every agent, every expert, and a motor that is rewired."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.baselines.experts import FixedExperts, dithered_mean, vote
from bayescontrol.baselines.naive import NaiveMixture
from bayescontrol.beliefs.changing import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.experiments.experts.settings import (
    MEAN,
    NAIVE,
    RIGHT,
    RULE,
    VOTE,
    Makers,
    Settings,
    control_rule,
    streams,
    truth,
)
from bayescontrol.experiments.experts.trials import Episode, episode, identified
from bayescontrol.experts import (
    CARTPOLE,
    TWENTY,
    Gaussian,
    Plant,
    SimulatorMode,
    cartpole_modes,
    next_state,
)
from bayescontrol.lab import Columns
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import stream

#: What runs on CartPole, in the order of the columns.
AGENTS: Final = (RULE, RIGHT, NAIVE, MEAN, VOTE)
#: The beliefs that meet a motor being rewired.
CHANGES: Final = ("static", "switching", "fading")


@lru_cache(maxsize=4)
def _modes(noise: float, floor: float) -> list[SimulatorMode]:
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
            stream(s.seed, self.run, "start of pole"),
            process=(0.0, s.noise, 0.0, s.noise),
            **TWENTY[self.true].attributes(),
        )
        both = streams(s, self.run, name, "pole")
        return episode(make(plant.start), plant, s.steps, both, **more)


def poles(settings: Settings, run: int) -> Columns:
    """Steps survived by agents and experts, posteriors, times to identify, and the change.

    >>> columns = poles(Settings(steps=20, change=10), 0)
    >>> columns["survived"].shape, columns["experts"].shape, columns["changed"].shape
    ((5,), (20,), (3,))
    """
    modes = _modes(settings.noise, settings.floor)
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

"""Shipped classes of modes to which the laws apply: (modes, prior, situation, advance, world)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, PairedMode, tailor
from bayescontrol.finite.chain import GrowingChain, chain
from bayescontrol.finite.examples import THREE_MODES_PRIOR, prize_or_frog, three_modes
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.pomdp import POMDPModes, tiger
from bayescontrol.seeding import Stream
from bayescontrol.situations import stay


@dataclass(frozen=True)
class Class:
    """A class of modes with everything that the laws need."""

    modes: Any
    prior: Any = None
    situation: Any = None
    advance: Callable[[Any, Any, Any], Any] = stay
    environment: Callable[[int], Any] | None = None

    def belief(self, modes: Any = None) -> FiniteBelief[Any]:
        return FiniteBelief(self.modes if modes is None else modes, self.prior)

    def agent(self, kind: type[Any] = ControlRule, **options: Any) -> Any:
        return kind(self.belief(), self.situation, self.advance, **options)


def tabular(modes: Any, prior: Any = None) -> Class:
    return Class(modes, prior, modes.start, modes.advance, modes.environment)


def listed(modes: TabularModes) -> Class:
    return Class(list(modes), None, modes.start, modes.advance, modes.environment)


def hidden(rewards_observed: bool) -> Class:
    tigers = [tiger(accuracy=p, rewards_observed=rewards_observed) for p in (0.9, 0.7, 0.5)]
    modes = POMDPModes(tigers, "fast_informed_bound")
    return Class(list(modes), [0.5, 0.2, 0.3], environment=modes.environment)


def coin(p: float, guess: str) -> DiscreteMode[None, str, int]:
    return DiscreteMode(lambda _x: {guess: 0.8, "wait": 0.2}, lambda _x, _a: {1: p, 0: 1.0 - p})


class Filter:
    """A hidden state observed with noise; the private state is the state of the filter."""

    def __init__(self, stay: float, show: float) -> None:
        self.stay, self.show = stay, show

    def start(self) -> float:
        return 0.5

    def observation_probabilities(self, s: float, a: str) -> dict[int, float]:
        one = s * self.show + (1.0 - s) * (1.0 - self.show)
        return {1: one, 0: 1.0 - one}

    def likelihood(self, s: float, a: str, o: int) -> float:
        return self.observation_probabilities(s, a).get(o, 0.0)

    def advance(self, s: float, a: str, o: int) -> float:
        hit = self.show if o else 1.0 - self.show
        s = s * hit / (s * hit + (1.0 - s) * (1.0 - hit))
        return s * self.stay + (1.0 - s) * (1.0 - self.stay)

    def action_probabilities(self, s: float) -> dict[str, float]:
        return {"high": s, "low": 1.0 - s}

    def act(self, s: float, rng: Stream) -> str:
        return "high" if rng.random() < s else "low"


class Valve:
    """The mode of the tutorial: a continuous world, log-likelihoods, a deterministic policy."""

    def __init__(self, gain: int) -> None:
        self.gain = gain

    def act(self, x: float, rng: Stream) -> float:
        return -x / self.gain

    def log_likelihood(self, x: float, a: float, o: float) -> float:
        z = (o - x - self.gain * a) / 0.5
        return -0.5 * z * z - math.log(0.5 * math.sqrt(2.0 * math.pi))


GAINS = (-2, -1, 1, 2)


class Room:
    def __init__(self, m: int) -> None:
        self.x, self.gain = 5.0, GAINS[m]

    def respond(self, a: float, rng: Stream) -> float:
        self.x += self.gain * a + rng.normal(0.0, 0.5)
        return self.x


class Bandit:
    """A model for which policies are tailored: P(1 | a)."""

    def __init__(self, *pays: float) -> None:
        self.pays = pays

    def likelihood(self, x: None, a: int, o: int) -> float:
        return self.observation_probabilities(x, a).get(o, 0.0)

    def observation_probabilities(self, x: None, a: int) -> dict[int, float]:
        return {1: self.pays[a], 0: 1.0 - self.pays[a]}


class Pull:
    def __init__(self, a: int) -> None:
        self.a = a

    def act(self, x: None, rng: Stream) -> int:
        return self.a

    def action_probabilities(self, x: None) -> dict[int, float]:
        return {self.a: 1.0}


def tailored() -> list[PairedMode]:
    models = [Bandit(0.9, 0.1), Bandit(0.2, 0.7), Bandit(0.4, 0.5)]
    return tailor(models, lambda model: Pull(max((0, 1), key=model.pays.__getitem__)))


SHIPPED: dict[str, Class] = {
    "one situation": tabular(random_modes(2, seed=1)),
    "many situations": tabular(
        random_modes(5, situations=4, actions=3, observations=3, seed=2), [0.4, 0.3, 0.2, 0.1, 0.0]
    ),
    "sharp tables": tabular(random_modes(4, situations=2, concentration=0.05, seed=3)),
    "more than a block": tabular(random_modes(600, seed=4)),
    "tables one by one": listed(random_modes(4, situations=3, seed=5)),
    "prize or frog": tabular(prize_or_frog()),
    "prize, surely": tabular(prize_or_frog(1.0)),
    "three modes": tabular(three_modes(), THREE_MODES_PRIOR),
    "chain": tabular(chain(3)),
    "growing chain": tabular(GrowingChain(2)),
    "discrete modes": Class([coin(0.2, "tails"), coin(0.8, "heads"), coin(0.5, "pass")]),
    "tailored models": Class(tailored()),
    "filters": Class([Filter(0.9, 0.8), Filter(0.6, 0.95), Filter(0.5, 0.6)]),
    "POMDPs": hidden(rewards_observed=True),
    "POMDPs, rewards hidden": hidden(rewards_observed=False),
    "valves": Class([Valve(g) for g in GAINS], None, 5.0, lambda _x, _a, o: o, Room),
}


@pytest.fixture(params=list(SHIPPED.values()), ids=list(SHIPPED))
def shipped(request: pytest.FixtureRequest) -> Class:
    """Each class that is shipped or shown in the documentation."""
    kind: Class = request.param
    return kind


@pytest.fixture
def classes() -> dict[str, Class]:
    """All classes by name."""
    return SHIPPED

"""Worlds of the bandit contests, and the loop that plays them. NumPy only.

This module is imported within the peers' environments, which do not have this library. A run is a
table of potential rewards, a function of (world, seed, run, steps): every contestant meets the same
contexts, and pulling an arm at a step pays every contestant the same.

    regret             Σ_t max_j m_tj - m_ta,  m_tj = E[r_tj] given the context and the biases
    reward per step    Σ_t r_ta / T
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

ARMS = 10
#: Images and classes of scikit-learn's digits, written by `benchmarks.arena.bandit_contest`, since
#: not every environment has scikit-learn.
DIGITS = Path(__file__).parents[2] / ".peers" / "digits.npz"


@dataclass(frozen=True)
class Run:
    """The potential outcomes of one run."""

    #: m_tj, the expected reward of each arm at each step; one row if it never changes.
    means: np.ndarray[Any, np.dtype[np.float64]]
    #: r_tj, the reward that each arm would pay at each step.
    rewards: np.ndarray[Any, np.dtype[np.float64]]
    #: x_t; None if there are no contexts.
    contexts: np.ndarray[Any, np.dtype[np.float64]] | None = None
    #: Steps until the reward of a decision arrives.
    delay: int = 0
    #: Whether the score is the regret, or else the reward per step.
    scores_regret: bool = True


@dataclass(frozen=True)
class Facts:
    """What a contestant is given about a world: nothing that must be learned."""

    world: str
    #: The length of a context; 0 if there are none.
    features: int
    #: Whether rewards are 0 or 1.
    is_binary: bool
    is_changing: bool
    #: The number of decisions, which some methods ask for.
    steps: int
    arms: int = ARMS


class Player(Protocol):
    """A contestant in one run. Arms are the numbers 0 … K - 1, and x is None without contexts."""

    def decide(self, x: Any) -> int: ...
    def learn(self, x: Any, a: int, r: float) -> None: ...


def _bernoulli(rng: np.random.Generator, means: Any, steps: int, **options: Any) -> Run:
    return Run(means, (rng.random((steps, ARMS)) < means).astype(np.float64), **options)


def _paper(rng: np.random.Generator, steps: int) -> Run:
    return _bernoulli(rng, rng.random((1, ARMS)), steps)


def _delayed(rng: np.random.Generator, steps: int) -> Run:
    return _bernoulli(rng, rng.random((1, ARMS)), steps, delay=100)


def _low_rates(rng: np.random.Generator, steps: int) -> Run:
    return _bernoulli(rng, 0.005 + 0.025 * rng.random((1, ARMS)), steps)


def _changing(rng: np.random.Generator, steps: int, hazard: float) -> Run:
    starts = np.flatnonzero(rng.random(steps) < hazard)
    segment = np.searchsorted(starts, np.arange(steps), side="right")
    return _bernoulli(rng, rng.random((len(starts) + 1, ARMS))[segment], steps)


def _fast_changes(rng: np.random.Generator, steps: int) -> Run:
    return _changing(rng, steps, 0.002)


def _slow_changes(rng: np.random.Generator, steps: int) -> Run:
    return _changing(rng, steps, 0.0002)


def _gaussian(rng: np.random.Generator, steps: int) -> Run:
    means = rng.standard_normal((1, ARMS))
    return Run(means, means + rng.standard_normal((steps, ARMS)))


def _large_scale(rng: np.random.Generator, steps: int) -> Run:
    run = _gaussian(rng, steps)
    return Run(50.0 + 10.0 * run.means, 50.0 + 10.0 * run.rewards)


def _linear(rng: np.random.Generator, steps: int, features: int) -> Run:
    weights = rng.standard_normal((features, ARMS)) / features**0.5
    contexts = rng.standard_normal((steps, features))
    means = contexts @ weights
    return Run(means, means + 0.5 * rng.standard_normal((steps, ARMS)), contexts)


def _logistic(rng: np.random.Generator, steps: int, features: int) -> Run:
    weights = 2.0 * rng.standard_normal((features, ARMS)) / features**0.5
    contexts = rng.standard_normal((steps, features))
    means = 1.0 / (1.0 + np.exp(-contexts @ weights))
    return _bernoulli(rng, means, steps, contexts=contexts)


def _digits(rng: np.random.Generator, steps: int) -> Run:
    with np.load(DIGITS) as data:
        images, classes = data["images"], data["classes"]
    order = np.concatenate([rng.permutation(len(images)) for _ in range(1 + steps // len(images))])
    order = order[:steps]
    rewards = np.eye(ARMS)[classes[order]]
    contexts = np.column_stack([np.ones(steps), images[order] / 16.0])
    return Run(rewards, rewards, contexts, scores_regret=False)


#: Makes a run of each world, with the facts that contestants are given.
_WORLDS: dict[str, tuple[Callable[[np.random.Generator, int], Run], dict[str, Any]]] = {
    "ten Bernoulli arms": (_paper, {}),
    "low rates": (_low_rates, {}),
    "late rewards": (_delayed, {}),
    "fast changes": (_fast_changes, {"is_changing": True}),
    "slow changes": (_slow_changes, {"is_changing": True}),
    "ten Gaussian arms": (_gaussian, {"is_binary": False}),
    "Gaussian arms, large scale": (_large_scale, {"is_binary": False}),
    "linear, 10 features": (
        lambda rng, steps: _linear(rng, steps, 10), {"features": 10, "is_binary": False},
    ),
    "linear, 100 features": (
        lambda rng, steps: _linear(rng, steps, 100), {"features": 100, "is_binary": False},
    ),
    "logistic, 10 features": (lambda rng, steps: _logistic(rng, steps, 10), {"features": 10}),
    "logistic, 100 features": (lambda rng, steps: _logistic(rng, steps, 100), {"features": 100}),
    "digits": (_digits, {"features": 65}),
}  # fmt: skip


def facts(world: str, steps: int) -> Facts:
    """Return what a contestant may know about a world."""
    defaults = {"features": 0, "is_binary": True, "is_changing": False}
    return Facts(world, steps=steps, **(defaults | _WORLDS[world][1]))


def make_run(world: str, seed: int, run: int, steps: int) -> Run:
    """Draw the potential outcomes of a run."""
    rng = np.random.default_rng([zlib.crc32(world.encode()), seed, run])
    return _WORLDS[world][0](rng, steps)


def play(player: Player, run: Run) -> float:
    """Play a run and return its score."""
    steps, decide, learn, delay = len(run.rewards), player.decide, player.learn, run.delay
    contexts = [None] * steps if run.contexts is None else list(run.contexts)
    rewards = run.rewards.tolist()
    actions: list[int] = []
    for t in range(steps):
        actions.append(int(decide(contexts[t])))
        s = t - delay
        if s >= 0:
            a = actions[s]
            learn(contexts[s], a, rewards[s][a])
    at = np.arange(steps), np.array(actions)
    if not run.scores_regret:
        return float(run.rewards[at].mean())
    means = np.broadcast_to(run.means, run.rewards.shape)
    return float((means.max(axis=1) - means[at]).sum())


#: Makes a player, given the facts about a world and a seed.
Make = Callable[[Facts, int], Player]


def preparer(
    players: Mapping[str, Make],
) -> Callable[[Mapping[str, Any], int], Callable[[], float]]:
    """Return a function for `worker.serve` that plays these worlds with players by name."""

    def prepare(request: Mapping[str, Any], run: int) -> Callable[[], float]:
        world, seed, steps = request["world"], request["seed"], request["steps"]
        table = make_run(world, seed, run, steps)
        known = facts(world, steps)
        player_seed = zlib.crc32(f"{request['player']} {world} {seed} {run}".encode())
        return lambda: play(players[request["player"]](known, player_seed), table)

    return prepare

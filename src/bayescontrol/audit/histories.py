"""Many histories of one world side by side, with the exact predictions of both references.

    v ∝ P(m) Π_τ P(o_τ | m, ·)                       the rule: actions are interventions
    w ∝ P(m) Π_τ P(a_τ | m, ·) P(o_τ | m, ·)         the naive mixture: actions are evidence

    p_int(a) = Σ_m P(a | m, x) v_m      p_obs(a) = Σ_m P(a | m, x) w_m      likewise for o after a

All histories have the same length. The true mode of each is drawn from the prior.
"""

from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.audit.predictors import Predictor, predict
from bayescontrol.audit.transcript import Transcript, did, saw
from bayescontrol.audit.worlds import World
from bayescontrol.seeding import Stream


class References(NamedTuple):
    """The predictions of the next symbol by the rule and by the naive mixture, a row a history."""

    rule: FloatArray
    naive: FloatArray


class HistoryBatch:
    """R histories of one world, and what both references believe after each of them."""

    def __init__(self, world: World, true_modes: IntArray) -> None:
        runs, modes = len(true_modes), world.modes
        self.world, self.true_modes, self.prior = world, true_modes, modes.prior
        self.x = np.full(runs, modes.start)
        self.v = np.tile(modes.prior, (runs, 1))
        self.w = self.v.copy()
        #: The numbers of the actions and observations, a column a symbol.
        self.symbols = np.empty((runs, 0), np.int64)
        self.policy = np.moveaxis(modes.policy, 0, -1)  # [x, a, m]

    def next_actions(self) -> References:
        """P(a | h) of all actions."""
        likelihood = self.policy[self.x]
        return References(_mix(likelihood, self.v), _mix(likelihood, self.w))

    def next_observations(self) -> References:
        """P(o | h, a) of all observations, after `act`."""
        likelihood = self.world.modes.by_mode[self.x, self.symbols[:, -1]]
        return References(_mix(likelihood, self.v), _mix(likelihood, self.w))

    def act(self, a: IntArray) -> None:
        """Append an action to each history: evidence for the naive mixture only."""
        # Not below 1e-290, so that the true mode does not underflow in a long delusion.
        self.w = _normalised(np.maximum(self.w * self.policy[self.x, a], 1e-290 * self.prior))
        self.symbols = np.column_stack([self.symbols, a])

    def expected_reward(self, probabilities: FloatArray) -> FloatArray:
        """Σ_a P(a) Σ_o P(o | m*, x, a) r(a, o) of each history, m* its true mode."""
        reward = np.zeros((1, 1)) if self.world.reward is None else self.world.reward
        outcomes = self.world.modes.hypothesis[self.true_modes, self.x]
        return np.asarray((probabilities * (outcomes * reward).sum(-1)).sum(-1))

    def observe(self, uniforms: FloatArray) -> None:
        """Append an observation drawn from the true mode, and learn from it."""
        modes, a = self.world.modes, self.symbols[:, -1]
        o = draw(modes.hypothesis[self.true_modes, self.x, a], uniforms)
        likelihood = modes.by_mode[self.x, a, o]
        self.v, self.w = _normalised(self.v * likelihood), _normalised(self.w * likelihood)
        self.x = modes.successor[self.x, a, o]
        self.symbols = np.column_stack([self.symbols, o])

    def ask(self, predictor: Predictor) -> FloatArray:
        """Return the probabilities of the next symbol; equal histories are asked once."""
        alphabets = self.world.actions, self.world.observations
        distinct, index = np.unique(self.symbols, axis=0, return_inverse=True)
        histories = [
            Transcript(
                ((did, saw)[t % 2](alphabets[t % 2][s]) for t, s in enumerate(row)),
                self.world.name,
            )
            for row in distinct.tolist()
        ]
        answers = predict(predictor, histories, alphabets[self.symbols.shape[1] % 2])
        return answers[index.ravel()]


def draw(probabilities: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw a number from each row of probabilities, by the inverse of its distribution."""
    ends = probabilities.cumsum(-1)
    numbers = (uniforms[:, None] * ends[:, -1:] >= ends).sum(-1)
    return np.asarray(numbers, np.int64)


def true_modes(world: World, runs: int, rng: Stream) -> IntArray:
    """Draw the true mode of each run from the prior."""
    return draw(np.tile(world.modes.prior, (runs, 1)), np.asarray(rng.random(runs)))


def _mix(likelihood: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Σ_m likelihood[r, s, m] weights[r, m]."""
    return np.asarray((likelihood @ weights[:, :, None])[:, :, 0])


def _normalised(weights: FloatArray) -> FloatArray:
    """Divide each row by its sum."""
    return np.asarray(weights / weights.sum(-1, keepdims=True))

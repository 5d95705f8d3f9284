"""Particles moved by Metropolis steps: resample-move (Gilks & Berzuini 2001).

    renew     resample, w ← 1/n, then `moves` times for each particle
              θ' = θ + s/√d C ε          C Cᵀ the weighted covariance, ε standard normal
              θ ← θ' with probability min(1, π(θ') / π(θ)),   π(θ) = P(θ) Π_t P(o_t | θ, x_t, a_t)

Such a step leaves any posterior invariant, so the error goes to zero as n grows; the move of Liu
and West only keeps two moments and smooths the rest. The cost is the whole history: it is stored,
and a renewal reads it `moves` + 1 times. Renewals become rare as the posterior settles, about one
each time the evidence doubles.
"""

import math
from operator import index
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import Arrays, FloatArray, IntArray
from bayescontrol.beliefs.particles import (
    Act,
    Draw,
    LogLikelihoods,
    ParticleBelief,
    require_functions,
)
from bayescontrol.errors import BadEvidence, IncompatibleState
from bayescontrol.record import Record
from bayescontrol.seeding import Stream
from bayescontrol.values import pack, require_arrays, unpack

#: (x_t, a_t, o_t)
Event: TypeAlias = tuple[Any, Any, Any]
_HISTORY = {"history/x": "situation", "history/a": "actions", "history/o": "observations"}


class ResampleMoveBelief(ParticleBelief):
    """P(θ | âo_<t) by n particles, exact as n grows; `log_prior(θ)` returns ln P(θ_i) + const.

    The other arguments are those of `ParticleBelief`; `scale` is s. `accepted` is the share of
    moves accepted at the last renewal: if it is near 0, use more `moves` or a smaller `scale`.

    >>> def draw(n, rng): return rng.normal(size=(n, 1))
    >>> def log_prior(theta): return -0.5 * theta[:, 0] ** 2
    >>> def log_likelihoods(theta, x, a, o): return -0.5 * (o - theta[:, 0]) ** 2
    >>> belief = ResampleMoveBelief(draw, log_prior, log_likelihoods, lambda theta, x, rng: 0, 2000)
    >>> rng = Stream(1)
    >>> for o in (1.2, 0.8, 1.1, 0.9, 1.0):
    ...     belief.observe(None, 0, o)
    ...     _ = belief.renew(rng)
    >>> round(float(belief.mean()[0]), 1), round(float(belief.covariance()[0, 0]), 1)  # 5/6, 1/6
    (0.8, 0.2)
    """

    format_name: ClassVar[str] = "ResampleMoveBelief"

    _advice_impossible = "Take more particles or a wider prior"
    _advice_collapsed = "Take more particles, or sample more often between observations"

    def __init__(
        self,
        draw: Draw,
        log_prior: Any,
        log_likelihoods: LogLikelihoods,
        act: Act,
        particles: int = 1000,
        *,
        moves: int = 3,
        scale: float = 2.38,
        seed: int | Stream | np.random.Generator = 0,
        share: float = 0.5,
    ) -> None:
        require_functions(log_prior=log_prior)
        if index(moves) < 1:
            raise ValueError(f"moves={moves}: expected at least 1")
        if not 0.0 < scale < math.inf:
            raise ValueError(f"scale={scale}: expected a positive, finite step size")
        super().__init__(draw, log_likelihoods, act, particles, seed=seed, share=share)
        self._log_prior, self._moves, self._scale = log_prior, moves, scale
        self._history: list[Event] = []
        #: The share of moves accepted at the last renewal.
        self.accepted = math.nan

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """w_i ← w_i P(o | θ_i, x, a), and store the step. An error leaves the belief unchanged."""
        super().observe(x, a, o)
        self._history.append((_copied(x), _copied(a), _copied(o)))

    def _log_target(self, theta: FloatArray) -> FloatArray:
        """ln π(θ_i) + const."""
        total = np.array(self._log_prior(theta), np.float64)
        if total.shape != theta.shape[:1]:
            raise BadEvidence(
                f"log_prior returned shape {total.shape}, expected one number per particle"
            )
        for x, a, o in self._history:
            total += self._log_likelihoods(theta, x, a, o)
        if np.isnan(total).any() or (total == np.inf).any():
            raise BadEvidence(
                f"ln P(θ) Σ ln P(o | θ, x, a) is NaN or ∞ at θ = {theta[~(total < np.inf)][0]}: "
                "return -∞ where θ is impossible"
            )
        return total

    def _moved(self, chosen: IntArray, rng: Stream) -> FloatArray:
        theta = self._theta[chosen]
        C = self._mean_and_spread()[1] * (self._scale / math.sqrt(theta.shape[1]))
        here, taken = self._log_target(theta), 0
        for _ in range(self._moves):
            proposed = theta + rng.normal(size=theta.shape) @ C.T
            there = self._log_target(proposed)
            # -ln U is exponential: U < π(θ') / π(θ)
            better = here - there < rng.exponential(size=len(theta))
            theta[better], here[better] = proposed[better], there[better]
            taken += int(better.sum())
        self.accepted = taken / (self._moves * len(theta))
        return theta

    # -- saving and copying -------------------------------------------------------------------

    def save(self) -> Arrays:
        """As `ParticleBelief.save`, with the history."""
        xs, actions, observations = zip(*self._history, strict=True) if self._history else ((),) * 3
        columns = Record(actions, observations, {"situation": xs}).columns()
        return {
            **super().save(),
            "sampler/accepted": np.array(self.accepted),
            **{key: _packed(columns[name], name) for key, name in _HISTORY.items()},
        }

    def load(self, arrays: Arrays) -> None:
        """Restore a state saved by a belief with the same functions."""
        require_arrays(arrays, {*_HISTORY, "sampler/accepted", "count"})
        x, a, o = (_unpacked(arrays[key]) for key in _HISTORY)
        count = arrays["count"].item()
        if not len(x) == len(a) == len(o) == count:
            raise IncompatibleState(
                f"the saved state is damaged: {count} observations, a history of "
                f"{len(x)}, {len(a)}, {len(o)}"
            )
        super().load(arrays)
        situations = (x for x, _ in Record(x, o))
        self._history = [(x, a, o) for x, (a, o) in zip(situations, Record(a, o), strict=True)]
        self.accepted = float(arrays["sampler/accepted"])

    def copy(self) -> "ResampleMoveBelief":
        """Return an independent copy."""
        twin = super().copy()
        assert isinstance(twin, ResampleMoveBelief)
        twin._history = list(self._history)
        return twin


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _packed(column: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    return pack(column.tolist(), f"the column {name}") if column.dtype == object else column.copy()


def _unpacked(array: npt.NDArray[Any]) -> Any:
    return unpack(array) if array.dtype.kind == "U" and not array.ndim else array

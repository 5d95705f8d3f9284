"""Policies on distributions of hidden states, and bounds on the best value.

    V*(b) = max_a Σ_x b(x) r(x,a) + γ Σ_s P(s | b,a) V*(b')          the best value

A policy is a set of vectors α_k with actions a_k. Its value is V(b) = max_k Σ_x b(x) α_k(x), and it
takes the action of the best vector.

    QMDP          α_a(x) = r(x,a) + γ Σ_y P(y | x,a) max_a' α_a'(y)                      ≥ V*
    fast informed α_a(x) = r(x,a) + γ Σ_s max_a' Σ_y M[a,s,x,y] α_a'(y)                  ≥ V*
    point-based   α_b(x) = r(x,a) + γ Σ_s Σ_y M[a,s,x,y] α_k(y),   k, a the best at b    ≤ V*

QMDP assumes that the state is observed after the next step (Littman, Cassandra and Kaelbling 1995);
the fast informed bound (Hauskrecht 2000) assumes that only the state before it is. So V* ≤ V_FIB ≤
V_QMDP. Point-based value iteration (Pineau, Gordon and Thrun 2003) starts with the values of single
actions for ever, and so each vector is the value of a plan.

The first two are fixed points of a map H with H(α + c) = Hα + γc that is monotone. For any α

    fixed point ≤ Hα + max(Hα - α) γ/(1-γ)            ρ* ≤ max(Hα - α)  for the average reward

so the bounds hold wherever the iteration stops. They include the rounding errors: a sum of n
products is off by at most n roundings of its largest term.
"""

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_integer,
    as_numbers,
    require_between,
)
from bayescontrol.errors import BadSituation, InvalidTable, MissingCapability, NotConverged
from bayescontrol.seeding import StreamLike, require_stream

if TYPE_CHECKING:
    from bayescontrol.pomdp.model import POMDP

#: The distance of 1 to the next larger double.
EPSILON: Final = 2.0**-52
#: Values that differ by less than this share of their range, or by rounding, count as equal.
SLACK: Final = 1e-9
#: Distributions of hidden states with a smaller distance Σ |b - b'| count as one point.
SAME_POINT: Final = 1e-3
#: Sweeps of point-based value iteration before there are all points.
EARLY_SWEEPS: Final = 10


class AlphaVectors:
    """A policy on distributions b of the hidden state: the action of the best vector.

    It is a policy for `pomdp`. `vectors` is an array [k, x], and `actions` has the index of the
    action of each vector. If several actions are best, up to rounding, they are equally probable.
    `bound` says whether `value(b)` is an "upper" or a "lower" bound on the best value, if it is
    known. `error` is the largest difference to the limit of the iteration. With average reward
    `gain` is the upper bound on it, and values are relative.

    >>> from bayescontrol.pomdp import tiger
    >>> pomdp = tiger()
    >>> careless = AlphaVectors(pomdp, [[10, -100], [-100, 10]], actions=[2, 1])
    >>> careless.action_probabilities(pomdp.start), careless.value([1.0, 0.0])
    ({'open left': 0.5, 'open right': 0.5}, 10.0)
    """

    def __init__(
        self,
        pomdp: "POMDP",
        vectors: ArrayLike,
        actions: ArrayLike,
        *,
        bound: str = "",
        error: float | None = None,
        gain: float | None = None,
    ) -> None:
        self.vectors = as_numbers(vectors, "vectors", InvalidTable)
        indices = as_numbers(actions, "actions", InvalidTable)
        X, A = len(pomdp.states), len(pomdp.actions)
        if self.vectors.ndim != 2 or self.vectors.shape[1] != X or not len(self.vectors):
            raise InvalidTable(f"vectors has shape {self.vectors.shape}: expected (k, {X})")
        if not np.isfinite(self.vectors).all():
            raise InvalidTable("vectors has a number that is not finite")
        if indices.shape != (len(self.vectors),) or not np.isin(indices, np.arange(A)).all():
            raise InvalidTable(
                f"actions={indices.tolist()}: expected {len(self.vectors)} indices of 0 … {A - 1}"
            )
        self.actions: IntArray = indices.astype(np.int64)
        self.states, self.names = pomdp.states, pomdp.actions
        self.bound, self.error, self.gain = bound, error, gain

    @cached_property
    def _slack(self) -> float:
        rounding = 2 * self.vectors.shape[1] * EPSILON * np.abs(self.vectors).max()
        return float(SLACK * np.ptp(self.vectors) + rounding)

    def value(self, b: ArrayLike) -> float:
        """Return V(b) = max_k Σ_x b(x) α_k(x)."""
        return float(self._values(b).max())

    def _values(self, b: ArrayLike) -> FloatArray:
        """Return Σ_x b(x) α_k(x) of every vector k."""
        point, X = as_numbers(b, "b", BadSituation), self.vectors.shape[1]
        is_distribution = point.shape == (X,) and (point >= 0.0).all()
        if not (is_distribution and abs(point.sum() - 1.0) <= kernels.pomdp.TOLERANCE):
            raise BadSituation(f"b={b!r}: expected {X} probabilities of states, which sum to 1")
        values: FloatArray = self.vectors @ point
        return values

    def best_actions(self, b: ArrayLike) -> IntArray:
        """Return the indices of the actions that are best at b."""
        values = self._values(b)
        return np.unique(self.actions[values >= values.max() - self._slack])

    def act(self, b: ArrayLike, rng: StreamLike) -> Any:
        """Return one of the best actions at b."""
        best = self.best_actions(b)
        i = 0 if len(best) == 1 else require_stream(rng).integers(len(best))
        return self.names[best[i]]

    def action_probabilities(self, b: ArrayLike) -> dict[Any, float]:
        """P(a | b): uniform on the best actions."""
        best = self.best_actions(b)
        return {self.names[a]: 1.0 / len(best) for a in best}

    def settings(self) -> dict[str, Any]:
        """Return the vectors and their actions as plain values, as logs store them."""
        return {"vectors": self.vectors.tolist(), "actions": self.actions.tolist()}

    def __repr__(self) -> str:
        bound = f"{self.bound} bound, " if self.bound else ""
        gain = "" if self.gain is None else f", gain {self.gain:.6g}"
        return f"AlphaVectors({bound}{len(self.vectors)} vectors{gain})"


# -- upper bounds ----------------------------------------------------------------------------


def qmdp(pomdp: "POMDP", *, tolerance: float = 1e-9, limit: int = 100_000) -> AlphaVectors:
    """Return the policy that is best if the state were observed after the next step.

    It never acts in order to learn the state. Its value is an upper bound on the best value. The
    iteration stops when the bound is within `tolerance` of its limit, as a share of the range of
    values, and raises `NotConverged` after `limit` steps.

    >>> from bayescontrol.pomdp import tiger
    >>> pomdp = tiger(rewards_observed=False)
    >>> policy = qmdp(pomdp)
    >>> policy, round(policy.value(pomdp.start), 3)
    (AlphaVectors(upper bound, 3 vectors), 189.0)
    """
    P = pomdp.transition.swapaxes(0, 1)
    return _upper_bound(pomdp, lambda alpha: P @ alpha.max(0), tolerance, limit)


def fast_informed_bound(
    pomdp: "POMDP", *, tolerance: float = 1e-9, limit: int = 100_000
) -> AlphaVectors:
    """Return the policy of the fast informed bound, an upper bound that is at most that of QMDP.

    `tolerance` and `limit` are as for `qmdp`.

    >>> from bayescontrol.pomdp import tiger
    >>> pomdp = tiger(rewards_observed=False)
    >>> fast_informed_bound(pomdp).value(pomdp.start) < qmdp(pomdp).value(pomdp.start)
    True
    """
    A, S, X, _ = pomdp.joint.shape
    M = pomdp.joint.reshape(-1, X)
    return _upper_bound(
        pomdp, lambda alpha: (M @ alpha.T).max(1).reshape(A, S, X).sum(1), tolerance, limit
    )


def _upper_bound(
    pomdp: "POMDP", expected_best: Callable[[FloatArray], FloatArray], tolerance: float, limit: int
) -> AlphaVectors:
    """Return the fixed point of α ← r + γ expected_best(α), from above."""
    r, discount = pomdp.reward.T, pomdp.discount
    gamma = 1.0 if discount is None else discount
    weight = 1.0 if discount is None else discount / (1.0 - discount)  # of max(Hα - α)
    alpha, most = np.zeros(r.shape), max(float(np.ptp(r)), 1e-300) * max(weight, 1.0)
    require_between("tolerance", tolerance, 0.0, math.inf)
    for _ in range(as_integer("limit", limit, 1)):
        new = r + gamma * expected_best(alpha)
        rise = new - alpha
        error = weight * float(np.ptp(rise))
        margin = _rounding(pomdp, alpha, discount)
        if error <= tolerance * most + margin:
            break
        # Without a discount the state may alternate for ever: average two steps.
        alpha = (alpha + new) / 2.0 - rise.max() / 2.0 if discount is None else new
    else:
        raise NotConverged(
            f"the bound is within {error:.3g} of its limit after {limit} steps, not within "
            f"{tolerance * most:.3g}: increase limit or tolerance"
            + ("" if discount else ", or use a discount: the best average may depend on the start")
        )
    if discount is None:
        gain = float(rise.max()) + margin
        return AlphaVectors(
            pomdp, new - new.max(), np.arange(len(r)), bound="upper", error=error, gain=gain
        )
    vectors = new + weight * rise.max() + margin
    return AlphaVectors(pomdp, vectors, np.arange(len(r)), bound="upper", error=error + margin)


def _rounding(pomdp: "POMDP", alpha: FloatArray, discount: float | None) -> float:
    """Return a bound on the rounding error of values, or of the gain.

    64 roundings are for sums of probabilities, which are 1 up to `model.ROUNDING`.
    """
    _, S, X, _ = pomdp.joint.shape
    largest = float(np.abs(pomdp.reward).max() + np.abs(alpha).max())
    return float((2 * S * X + 64) * EPSILON * largest / (1.0 - (discount or 0.0)))


# -- a lower bound -----------------------------------------------------------------------------


def point_based(
    pomdp: "POMDP", *, points: int = 100, tolerance: float = 1e-8, limit: int = 1_000
) -> AlphaVectors:
    """Return a policy by point-based value iteration; its value is a lower bound on the best.

    The points are distributions that can be reached from the start: again and again each point adds
    the one among its successors that is farthest from all others, until there are `points`. Then
    all vectors are improved until no value at a point rises by more than `tolerance` times the
    range of the rewards, or `limit` times. It needs a discount.

    >>> from bayescontrol.pomdp import tiger
    >>> pomdp = tiger(rewards_observed=False)
    >>> round(point_based(pomdp).value(pomdp.start), 3)
    19.371
    """
    if pomdp.discount is None:
        raise MissingCapability(
            f"{pomdp!r}: point-based value iteration needs a discount below 1; without one use "
            "qmdp or fast_informed_bound"
        )
    count, final_sweeps = as_integer("points", points, 1), as_integer("limit", limit, 1)
    least = require_between("tolerance", tolerance, 0.0, math.inf) * float(np.ptp(pomdp.reward))
    vectors, actions = _single_actions(pomdp)
    B = pomdp.start[None]
    while True:
        more = _with_successors(pomdp, B, count) if len(B) < count else B
        is_final = len(more) == len(B)
        sweeps = final_sweeps if is_final else EARLY_SWEEPS
        vectors, actions = _improved(pomdp, B, vectors, actions, least, sweeps)
        if is_final:
            vectors -= _rounding(pomdp, vectors, pomdp.discount)
            return AlphaVectors(pomdp, vectors, actions, bound="lower")
        B = more


def _single_actions(pomdp: "POMDP") -> tuple[FloatArray, IntArray]:
    """Return the values of doing one action for ever, from below."""
    gamma = pomdp.discount or 0.0
    P, r = pomdp.transition.swapaxes(0, 1), pomdp.reward.T
    alpha = np.linalg.solve(np.eye(P.shape[1]) - gamma * P, r[..., None])[..., 0]
    rise = r + gamma * (P @ alpha[..., None])[..., 0] - alpha
    return alpha + rise.min(1, keepdims=True) / (1.0 - gamma), np.arange(len(r))


def _successors(pomdp: "POMDP", b: FloatArray) -> FloatArray:
    """Return Σ_x b(x) M[a, s, x, y] as [a s, y]: what follows b, times its probability."""
    A, S, X, _ = pomdp.joint.shape
    return (b @ pomdp.joint).reshape(A * S, X)


def _with_successors(pomdp: "POMDP", B: FloatArray, count: int) -> FloatArray:
    """Return the points and, for each of them, the successor that is farthest from all points."""
    points = list(B)
    for b in B:
        p = _successors(pomdp, b)
        total = p.sum(1)
        new = p[total > SLACK] / total[total > SLACK, None]
        distance = np.min([np.abs(new - point).sum(1) for point in points], axis=0)
        farthest = int(distance.argmax())
        if distance[farthest] > SAME_POINT and len(points) < count:
            points.append(new[farthest])
    return np.array(points)


def _improved(
    pomdp: "POMDP", B: FloatArray, vectors: FloatArray, actions: IntArray, least: float, sweeps: int
) -> tuple[FloatArray, IntArray]:
    """Return the vectors after `sweeps` backups at the points B, or until none rises by `least`."""
    gamma, r = pomdp.discount or 0.0, pomdp.reward.T
    A, S = pomdp.joint.shape[:2]
    after, at_once = np.concatenate([_successors(pomdp, b) for b in B]), B @ r.T
    signals = np.arange(S)
    for _ in range(sweeps):
        values = B @ vectors.T
        later = (after @ vectors.T).reshape(len(B), A, S, -1)
        k = later.argmax(-1)  # the best vector after each action and signal, at each point
        best = (at_once + gamma * later.max(-1).sum(-1)).argmax(1)
        new = np.array([
            r[a] + gamma * np.einsum("sxy,sy->x", pomdp.joint[a], vectors[k[i, a, signals]])
            for i, a in enumerate(best)
        ])  # fmt: skip
        rise = (new * B).sum(1) - values.max(1)
        better = rise > 0.0
        useful = np.unique(values.argmax(1)[~better])
        vectors = np.concatenate([vectors[useful], new[better]])
        actions = np.concatenate([actions[useful], best[better]])
        vectors, first = np.unique(vectors, axis=0, return_index=True)
        actions = actions[first]
        if rise.max() <= least:
            break
    return vectors, actions


#: The planners by name.
PLANNERS: Final[Mapping[str, Callable[["POMDP"], AlphaVectors]]] = {
    "qmdp": qmdp,
    "fast_informed_bound": fast_informed_bound,
    "point_based": point_based,
}

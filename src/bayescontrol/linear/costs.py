"""Unknown cost matrices, inferred from the costs that were seen.

    c = xᵀQx + uᵀRu + noise = φ(x, u)·w + noise           w: the upper triangles of Q and R
    φ: x_i², 2 x_i x_j (i < j), and the same of u          w ~ N(μ, Λ⁻¹)

To draw costs is to draw w until Q ≻ 0 and R ≻ 0: a draw of the posterior whose prior has no mass
elsewhere.
"""

from math import log, pi

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior, counted
from bayescontrol.linear.matrices import LARGEST
from bayescontrol.linear.system import Costs
from bayescontrol.seeding import Stream


def _features(v: FloatArray) -> FloatArray:
    """v_i v_j for i ≤ j, twice where i < j."""
    i, j = np.triu_indices(len(v))
    return np.asarray(np.where(i == j, 1.0, 2.0) * v[i] * v[j])


def _symmetric(upper: FloatArray, n: int) -> FloatArray:
    matrix = np.zeros((n, n))
    i, j = np.triu_indices(n)
    matrix[i, j] = matrix[j, i] = upper
    return matrix


class KnownCosts:
    """Q and R that need not be learnt, with the same verbs as a `CostBelief`.

    >>> known = KnownCosts(Costs(np.eye(2), np.eye(1)))
    >>> known.n, known.m, known.mean().R
    (2, 1, array([[1.]]))
    """

    known = True

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.n, self.m = len(costs.Q), len(costs.R)

    def check(self, x: FloatArray, u: FloatArray, cost: float | None) -> None:
        """Any cost will do, or none."""

    def learn(self, x: FloatArray, u: FloatArray, cost: float | None) -> None:
        """There is nothing to learn."""

    def draw(self, rng: Stream, tries: int) -> tuple[Costs | None, int]:
        """Q and R, at the first try."""
        return self._costs, 0

    def mean(self) -> Costs:
        """Q and R."""
        return self._costs

    def log_predictive(self, x: FloatArray, u: FloatArray, cost: float | None) -> float:
        """0: the cost is no news."""
        return 0.0

    def merge(self, other: object) -> None:
        """Nothing, if both know the same."""
        if not isinstance(other, KnownCosts) or not _same(self.save(), other.save()):
            raise IncompatibleState("beliefs can be merged only if they know the same costs")

    def save(self) -> Arrays:
        """Q and R."""
        return {"Q": self._costs.Q.copy(), "R": self._costs.R.copy()}

    def loaded(self, arrays: Arrays) -> "KnownCosts":
        """Itself, if the saved ones are the same."""
        if not _same(self.save(), arrays):
            raise IncompatibleState("the saved belief has other costs: it is for another problem")
        return self

    def copy(self) -> "KnownCosts":
        """Itself: nothing here changes."""
        return self


def _same(one: Arrays, other: Arrays) -> bool:
    return one.keys() == other.keys() and all(
        one[name].tobytes() == other[name].tobytes() for name in one
    )


class CostBelief:
    """P(Q, R | costs) for n states and m inputs; costs are seen with the deviation `noise`.

    The prior has mean Q = R = `mean` times the identity and the same deviation for every entry.

    >>> belief = CostBelief(1, 1, noise=0.1)
    >>> for x, u in ((1.0, 0.0), (0.0, 1.0), (2.0, 1.0)):
    ...     belief.learn(np.array([x]), np.array([u]), 3 * x * x + 2 * u * u)
    >>> [float(matrix.round(1).item()) for matrix in belief.mean()]
    [3.0, 2.0]
    """

    known = False

    def __init__(
        self, n: int, m: int, *, noise: float = 1.0, mean: float = 1.0, deviation: float = 1.0
    ) -> None:
        if not (n >= 1 and m >= 1):
            raise InvalidPrior(f"{n} states and {m} inputs: there must be one of each")
        for name, value in (("noise", noise), ("mean", mean), ("deviation", deviation)):
            if not 1e-50 < value < 1e50:
                raise InvalidPrior(f"{name}={value!r}: it must be a positive number")
        self.n, self.m, self.noise = n, m, float(noise)
        size = (n * (n + 1) + m * (m + 1)) // 2
        self._v: FloatArray = np.empty(size)
        mu = np.concatenate([mean * np.eye(k)[np.triu_indices(k)] for k in (n, m)])
        self._prior = np.eye(size) / deviation, mu / deviation
        self._R, self._z = (part.copy() for part in self._prior)
        #: Costs seen.
        self.count = 0

    def learn(self, x: FloatArray, u: FloatArray, cost: float | None) -> None:
        """One cost more. On an error nothing has changed."""
        phi, c = self._event(x, u, cost)
        kernels.regression.absorb(self._R, self._z, phi, 1.0 / self.noise, c / self.noise, self._v)
        self.count += 1

    def check(self, x: FloatArray, u: FloatArray, cost: float | None) -> None:
        """Raise unless the cost could be learnt."""
        self._event(x, u, cost)

    def _event(self, x: FloatArray, u: FloatArray, cost: float | None) -> tuple[FloatArray, float]:
        if cost is None:
            raise BadEvidence(
                "the observation has no cost, and the costs are unknown: observe "
                "Measured(state, cost), as a plant with cost_noise gives it"
            )
        try:
            c = float(cost)
        except (TypeError, ValueError):
            raise BadEvidence(f"the cost is {cost!r}: it must be a number") from None
        phi = np.concatenate([_features(x), _features(u)])
        if not (abs(c) <= LARGEST and kernels.lqr.within(phi)):
            raise BadEvidence(f"the cost {c!r}, or a square behind it, is beyond {LARGEST:g}")
        return phi, c

    def draw(self, rng: Stream, tries: int) -> tuple[Costs | None, int]:
        """Q ≻ 0 and R ≻ 0 from the posterior, None if no draw had both; and how many had not."""
        w = np.empty_like(self._v)
        for failed in range(tries):
            kernels.regression.draw_weights(self._R, self._z, self._v, w, rng.state)
            costs = self._costs(w)
            if all(kernels.regression.cholesky(part, np.empty_like(part)) for part in costs):
                return costs, failed
        return None, tries

    def mean(self) -> Costs:
        """E[Q], E[R] of the Gaussian, which may lie outside of the definite matrices."""
        w = np.empty_like(self._v)
        kernels.regression.solve_upper(self._R, self._z, w)
        return self._costs(w)

    def _costs(self, w: FloatArray) -> Costs:
        cut = self.n * (self.n + 1) // 2
        return Costs(_symmetric(w[:cut], self.n), _symmetric(w[cut:], self.m))

    def log_predictive(self, x: FloatArray, u: FloatArray, cost: float | None) -> float:
        """ln P(c | past, x, u), without the cut to definite matrices."""
        phi, c = self._event(x, u, cost)
        mean, variance = kernels.regression.score(self._R, self._z, phi, self._v)
        variance += self.noise**2
        return -0.5 * (log(2 * pi * variance) + (c - mean) ** 2 / variance)

    def posterior(self) -> FloatArray:
        """μ on top of Λ."""
        w = np.empty_like(self._v)
        kernels.regression.solve_upper(self._R, self._z, w)
        return np.vstack([w, self._R.T @ self._R])

    def merge(self, other: object) -> None:
        """The evidence of both, the prior counted once."""
        if not isinstance(other, CostBelief):
            raise IncompatibleState("one belief knows its costs, the other learns them")
        same = (self.n, self.m, self.noise) == (other.n, other.m, other.noise)
        pairs = zip(self._prior, other._prior, strict=True)
        if not same or any(p.tobytes() != q.tobytes() for p, q in pairs):
            raise IncompatibleState("beliefs about costs can be merged only if they began alike")
        parts = ((1.0, self._R, self._z), (1.0, other._R, other._z), (-1.0, *self._prior))
        Lambda = np.add.reduce([sign * (S.T @ S) for sign, S, _ in parts])
        shift = np.add.reduce([sign * (S.T @ y) for sign, S, y in parts])
        R = np.empty_like(Lambda)
        if not kernels.regression.cholesky(Lambda, R):
            raise IncompatibleState("the costs of one are lost beside the other's in rounding")
        kernels.regression.score(R, self._z, shift, self._v)
        self._R, self._z, self.count = R, self._v.copy(), self.count + other.count

    def save(self) -> Arrays:
        """Named arrays from which `loaded` continues bit for bit."""
        return {
            "factor": self._R.copy(),
            "target": self._z.copy(),
            "prior_factor": self._prior[0].copy(),
            "prior_target": self._prior[1].copy(),
            "count": np.array(self.count),
            "noise": np.array(self.noise),
        }

    def loaded(self, arrays: Arrays) -> "CostBelief":
        """What `save` gave, for as many states and inputs and the same noise."""
        missing = self.save().keys() - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved costs lack the arrays {sorted(missing)}")
        for name, own in self.save().items():
            array = arrays[name]
            if array.shape != own.shape or array.dtype != own.dtype or not np.isfinite(array).all():
                raise IncompatibleState(f"the saved array {name!r} does not fit these costs")
        if float(arrays["noise"]) != self.noise:
            raise IncompatibleState(f"saved with the noise {arrays['noise']}, this is {self.noise}")
        twin = self.copy()
        twin._R, twin._z = arrays["factor"].copy(), arrays["target"].copy()
        twin._prior = arrays["prior_factor"].copy(), arrays["prior_target"].copy()
        twin.count = int(arrays["count"])
        return twin

    def copy(self) -> "CostBelief":
        """The same, free to go its own way."""
        twin = CostBelief.__new__(CostBelief)
        twin.__dict__.update(self.__dict__)
        twin._R, twin._z, twin._v = self._R.copy(), self._z.copy(), self._v.copy()
        return twin

    def __repr__(self) -> str:
        what = f"{counted(self.n, 'state')}, {counted(self.m, 'input')}"
        return f"CostBelief({what}, after {counted(self.count, 'cost')})"

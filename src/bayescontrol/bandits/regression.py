"""N Gaussian regressions side by side, each a triangle R_j and a vector z_j.

    w_j ~ N(μ_j, Λ_j⁻¹)        Λ_j = R_jᵀ R_j        z_j = R_j μ_j

Evidence adds up in Λ and Λ μ, so regressions merge: the sum of both, less the prior once.
"""

from collections.abc import Sequence
from operator import index
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.bandits.contexts import LARGEST
from bayescontrol.errors import IncompatibleState, InvalidPrior
from bayescontrol.problems.description import ARMS, MOST_NUMBERS, SettingDoc, SizeLimit

#: (mean, precision): numbers, or a vector and a matrix, for all arms or one for each.
Prior: TypeAlias = Sequence[npt.ArrayLike] | None
#: Settings of all contextual bandits.
SETTINGS: Final = {
    "arms": ARMS,
    "features": SettingDoc("whole number", "The length d of a situation.", largest=1_000),
    "prior": SettingDoc(
        "[mean, precision]",
        "Gaussian prior of the weights of an arm. mean: a number, a list of d numbers, or one such "
        "list for each arm. precision: a number, a d × d matrix, or one for each arm. Default: "
        "[0, 1].",
    ),
}
LIMIT: Final = SizeLimit(
    "arms times features squared", lambda size: size["arms"] * size["features"] ** 2, MOST_NUMBERS
)


def _factors(prior: Prior, arms: int, d: int) -> tuple[FloatArray, FloatArray]:
    """R and z of a prior (mean, precision), one for each arm."""
    if prior is not None and (not hasattr(prior, "__len__") or len(prior) != 2):
        raise InvalidPrior(f"prior={prior!r}: it is a pair (mean, precision)")
    try:
        mean, precision = (np.asarray(part, np.float64) for part in prior or (0.0, 1.0))
        means = np.broadcast_to(mean, (arms, d))
        if precision.ndim == 0:
            precision = precision * np.eye(d)
        if precision.ndim == 1:  # a diagonal, or one number an arm? Neither is guessed
            precision = precision[:, None, None, None]
        Lambda = np.ascontiguousarray(np.broadcast_to(precision, (arms, d, d)))
    except (TypeError, ValueError) as error:
        raise InvalidPrior(
            f"the prior does not fit {arms} arms of {d} features ({error}): give a mean (a number, "
            "a vector, or one vector an arm) and a precision (a number, a matrix, or one an arm)"
        ) from None
    if not (np.abs(means) <= LARGEST).all() or not (np.abs(Lambda) <= LARGEST).all():
        raise InvalidPrior(f"a prior mean or precision is not a finite number up to {LARGEST:g}")
    R = np.empty((arms, d, d))
    for j in range(arms):
        if not np.allclose(Lambda[j], Lambda[j].T, rtol=1e-12, atol=0.0):
            raise InvalidPrior(f"the prior precision of arm {j} is not symmetric")
        definite = kernels.regression.cholesky(Lambda[j], R[j])
        if not definite or R[j].diagonal().min() < 1.0 / LARGEST**0.5:
            raise InvalidPrior(
                f"the prior precision of arm {j} is not positive definite: every direction needs "
                f"a precision of at least {1.0 / LARGEST:g}"
            )
    return R, np.einsum("jki,ji->jk", R, means)


class Regressions:
    """The posteriors of N weight vectors of d features.

    >>> one = Regressions(1, 2, None)
    >>> kernels.regression.absorb(one.R[0], one.z[0], np.array([1.0, 0.0]), 1.0, 3.0, one.v)
    >>> one.mean(0).round(12), one.precision(0).round(12)
    (array([1.5, 0. ]), array([[2., 0.],
           [0., 1.]]))
    """

    def __init__(self, arms: int, features: int, prior: Prior) -> None:
        try:
            self.features = index(features)
        except TypeError:
            self.features = 0
        if self.features < 1:
            raise InvalidPrior(f"features={features!r}: a context has at least one feature")
        self._prior = _factors(prior, arms, self.features)
        self.R, self.z = (part.copy() for part in self._prior)
        self.v: FloatArray = np.empty(self.features)

    def __len__(self) -> int:
        """The number of regressions."""
        return len(self.z)

    def append(self, prior: Prior) -> None:
        """One more, with a prior of its own."""
        R, z = _factors(prior, 1, self.features)
        self.R, self.z = np.vstack([self.R, R]), np.vstack([self.z, z])
        self._prior = np.vstack([self._prior[0], R]), np.vstack([self._prior[1], z])

    def score(self, j: int, x: FloatArray) -> tuple[float, float]:
        """Mean and variance of x·w_j."""
        return kernels.regression.score(self.R[j], self.z[j], x, self.v)

    def mean(self, j: int) -> FloatArray:
        """μ_j."""
        mu = np.empty(self.features)
        kernels.regression.solve_upper(self.R[j], self.z[j], mu)
        return mu

    def precision(self, j: int) -> FloatArray:
        """Λ_j."""
        return np.asarray(self.R[j].T @ self.R[j])

    def draw(self, j: int, state: Any, w: FloatArray) -> None:
        """w_j ~ N(μ_j, Λ_j⁻¹) into w."""
        kernels.regression.draw_weights(self.R[j], self.z[j], self.v, w, state)

    def same_prior(self, other: "Regressions") -> bool:
        """Whether both began alike, bit for bit."""
        pairs = zip(self._prior, other._prior, strict=True)
        return all(p.shape == q.shape and p.tobytes() == q.tobytes() for p, q in pairs)

    def merge(self, other: "Regressions") -> None:
        """Λ + Λ' - Λ₀ and Λμ + Λ'μ' - Λ₀μ₀: the evidence of both, the prior counted once."""
        R, z = np.empty_like(self.R), np.empty_like(self.z)
        parts = ((1.0, self.R, self.z), (1.0, other.R, other.z), (-1.0, *self._prior))
        for j in range(len(self)):
            Lambda = sum((sign * (S[j].T @ S[j]) for sign, S, _ in parts), np.zeros(R[j].shape))
            shift = sum((sign * (S[j].T @ y[j]) for sign, S, y in parts), np.zeros(z[j].shape))
            if not kernels.regression.cholesky(Lambda, R[j]):
                raise IncompatibleState(
                    f"arm {j}: beside its prior the evidence is lost in rounding and cannot be "
                    "merged; learn the rewards one by one instead"
                )
            kernels.regression.score(R[j], z[j], shift, self.v)
            z[j] = self.v
        self.R, self.z = R, z

    def save(self) -> Arrays:
        """Named arrays: `factor`, `target`, and the same of the prior.

        >>> sorted(Regressions(1, 2, None).save())
        ['factor', 'prior_factor', 'prior_target', 'target']
        """
        return {
            "factor": self.R.copy(),
            "target": self.z.copy(),
            "prior_factor": self._prior[0].copy(),
            "prior_target": self._prior[1].copy(),
        }

    def loaded(self, arrays: Arrays, arms: int) -> "Regressions":
        """What `save` gave, for so many arms of these features."""
        twin, d = self.copy(), self.features
        shapes = {"factor": (arms, d, d), "target": (arms, d)}
        for name, shape in list(shapes.items()):
            shapes[f"prior_{name}"] = shape
        for name, shape in shapes.items():
            array = arrays.get(name)
            if array is None:
                raise IncompatibleState(f"the saved state lacks the array {name!r}")
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise IncompatibleState(
                    f"the saved array {name!r} is {array.dtype}{list(array.shape)}, it must be "
                    f"finite float64{list(shape)}"
                )
            if name.endswith("factor"):
                diagonals = np.diagonal(array, axis1=1, axis2=2)
                if np.tril(array, -1).any() or not (diagonals > 0.0).all():
                    raise IncompatibleState(f"the saved array {name!r} is no triangular factor")
        twin.R, twin.z = arrays["factor"].copy(), arrays["target"].copy()
        twin._prior = arrays["prior_factor"].copy(), arrays["prior_target"].copy()
        return twin

    def copy(self) -> "Regressions":
        """The same, free to go their own way.

        >>> one = Regressions(1, 2, None)
        >>> one.copy().R is one.R
        False
        """
        twin = Regressions.__new__(Regressions)
        twin.features, twin._prior = self.features, self._prior
        twin.R, twin.z, twin.v = self.R.copy(), self.z.copy(), self.v.copy()
        return twin

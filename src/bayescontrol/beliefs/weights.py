"""Unnormalised weights of finitely many modes or particles, updated by likelihoods.

    v_m ← v_m ℓ_m          P(m | ·) = v_m / Σ_m' v_m'

The arithmetic is in `kernels.finite`. This module checks the input and raises the errors.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol._support.saved import Array, Copied, Number, Saved, damaged, declare
from bayescontrol.errors import BadEvidence, ImpossibleObservation, InvalidPrior
from bayescontrol.seeding import StreamLike, require_stream, state_of

LN2 = 0.6931471805599453


@dataclass(frozen=True)
class Floor:
    """Likelihoods below ε count as ε: max(P(o | m, x, a), ε). No mode is ever ruled out.

    >>> Floor(1e-6)
    Floor(epsilon=1e-06)
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon < math.inf:
            raise ValueError(f"Floor(epsilon={self.epsilon}): epsilon must be positive and finite")


#: What to do with an observation that every mode rules out: raise `ImpossibleObservation`, skip
#: and count it, or raise likelihoods to at least epsilon and count it.
OnImpossible: TypeAlias = Literal["raise", "skip"] | Floor


class Weights(Saved):
    """The weights v_m of modes 0 … M-1, exact to the last digits over millions of updates.

    >>> v = Weights(np.array([0.5, 0.5]))
    >>> v.condition(np.array([0.9, 0.3]))
    True
    >>> v.posterior()
    array([0.75, 0.25])
    >>> v.load(v.save() | {"mantissa": np.array([0.5, np.nan])})
    Traceback (most recent call last):
    bayescontrol.errors.IncompatibleState: the saved state is damaged: mode 1 has mantissa nan ...
    """

    saved_fields = declare(
        Array("mantissa", "_w", finite=False),
        Array("exponent", lambda v: v._exponents()),
        #: 1 for each block of weights whose exponents are all the same, else 0.
        Array("flat", lambda v: v._blocks[:, kernels.finite.FLAT]),
        Number("impossible", least=0),
        Copied("_e"),
        Copied("_blocks"),
    )

    def __init__(self, v: FloatArray, on_impossible: OnImpossible = "raise") -> None:
        if on_impossible not in ("raise", "skip") and not isinstance(on_impossible, Floor):
            raise ValueError(
                f"on_impossible={on_impossible!r}: choose 'raise', 'skip' or Floor(epsilon)"
            )
        self.on_impossible: OnImpossible = on_impossible
        #: The number of observations that were skipped or raised to the floor.
        self.impossible = 0
        self._build(v.copy(), np.zeros(v.shape[0], np.int64))

    def __len__(self) -> int:
        """The number of modes, M."""
        return int(self._w.shape[0])

    def _build(self, w: FloatArray, e: IntArray) -> None:
        """Set v_m = w_m 2^(e_m) and summarise the blocks."""
        self._w, self._e, self._blocks = w, e, kernels.finite.build(w, e)
        self._shape = w.shape

    def _exponents(self) -> IntArray:
        return kernels.finite.exponents(self._e, self._blocks)

    def arrays(self) -> "kernels.finite.Weights":
        """Return (w, e, blocks), the arguments of `kernels.finite`; they are not copies."""
        return kernels.finite.Weights(self._w, self._e, self._blocks)

    def condition(self, evidence: FloatArray, log: bool = False) -> bool:
        """v_m ← v_m ℓ_m, or v_m ← v_m exp(ℓ_m) with `log`. Return False if o was skipped.

        Invalid evidence raises BadEvidence and changes nothing.

        >>> Weights(np.array([0.5, 0.5])).condition(np.array([0.1, np.nan]))
        Traceback (most recent call last):
        bayescontrol.errors.BadEvidence: mode 1 gives likelihood nan: it must be ...
        """
        if evidence.shape != self._shape:
            raise BadEvidence(
                f"evidence has shape {evidence.shape}: give {len(self)} likelihoods, one per mode"
            )
        floored = False
        if isinstance(self.on_impossible, Floor):
            epsilon = self.on_impossible.epsilon
            floor = math.log(epsilon) if log else epsilon
            floored = bool((evidence < floor).any())
            # Leave NaN and negative likelihoods for the kernel to reject.
            is_invalid = np.zeros(len(self), bool) if log else evidence < 0.0
            evidence = np.where(is_invalid, evidence, np.maximum(evidence, floor))
        condition = kernels.finite.condition_log if log else kernels.finite.condition
        status = condition(self._w, self._e, self._blocks, evidence)
        if status == kernels.finite.OK:
            if floored:
                self.impossible += 1
            return True
        if status == kernels.finite.IMPOSSIBLE:
            if self.on_impossible == "skip":
                self.impossible += 1
                return False
            raise ImpossibleObservation("every mode with weight gives likelihood 0")
        expected = "at most 1e9, and not nan" if log else "a finite number, not negative"
        name = "log-likelihood" if log else "likelihood"
        error = BadEvidence(f"mode {status} gives {name} {evidence[status]}: it must be {expected}")
        error.mode = int(status)
        raise error

    def condition_on_entry(self, table: FloatArray, x: Any, a: Any, o: Any) -> bool:
        """v_m ← v_m table[x, a, o, m] in one compiled call, if nothing is unusual.

        Otherwise return False and change nothing: then call `condition`.
        """
        if type(x) is type(a) is type(o) is int and not isinstance(self.on_impossible, Floor):
            try:
                return kernels.tabular.learn(self._w, self._e, self._blocks, table, x, a, o)
            except OverflowError:  # more than 64 bits
                pass
        return False

    def learn(self, answer: object, x: Any, a: Any, o: Any, what: str, advice: str) -> None:
        """v_m ← v_m exp(answer_m) with the log-likelihoods that a user's function returned.

        Errors name the observation, and `what` the modes are; `advice` is for impossible evidence.
        """
        try:
            self.condition(as_log_likelihoods(answer, x, a, o), log=True)
        except BadEvidence as error:
            where = f"observation {o!r} after action {a!r} in situation {x!r}"
            more = f". {advice}" if isinstance(error, ImpossibleObservation) else ""
            error.args = (f"{error} (of the {what}); {where}{more}",)
            raise

    def draw(self, rng: StreamLike, temperature: float = 1.0) -> int:
        """Draw m with probability v_m / Σ v, or v_m^(1/T) / Σ v^(1/T)."""
        if temperature != 1.0:
            return require_stream(rng).categorical(self.tempered(temperature))
        return kernels.finite.sample_direct(self._w, self._e, self._blocks, state_of(rng))

    def tempered(self, temperature: float) -> FloatArray:
        """P(m | ·)^(1/T), normalised, as a new array."""
        if temperature == 1.0:
            return self.posterior()
        return kernels.finite.temper(self._w, self._e, self._blocks, temperature)

    def posterior(self) -> FloatArray:
        """P(m | ·) = v_m / Σ v, as a new array."""
        out = np.empty(len(self))
        kernels.finite.posterior(self._w, self._e, self._blocks, out)
        return out

    def log_total(self, before: "Weights | None" = None) -> float:
        """Return ln Σ_m v_m; with `before`, the logarithm of this sum divided by that of `before`.

        >>> v = Weights(np.array([0.5, 0.5]))
        >>> v.condition(np.array([0.5, 0.5])) and round(v.log_total(), 6)
        -0.693147
        """
        base = ONE if before is None else before._blocks
        return float(kernels.finite.log_ratio(self._blocks, base))

    def log_predictive(self, evidence: FloatArray, log: bool = False) -> float:
        """Return ln Σ_m P(m | ·) ℓ_m; -∞ if every mode gives 0. Does not learn."""
        after = self.copy()
        after.on_impossible = "raise"
        try:
            after.condition(evidence, log)
        except ImpossibleObservation:
            return -math.inf
        return after.log_total(self)

    def merge(self, other: "Weights", prior: FloatArray) -> None:
        """v_m ← v_m v'_m / P(m): add the evidence of `other`; the prior counts once.

        >>> p = np.array([0.5, 0.5])
        >>> v, u = Weights(p), Weights(p)
        >>> v.condition(np.array([0.9, 0.3])) and u.condition(np.array([0.2, 0.6]))
        True
        >>> v.merge(u, p)
        >>> v.posterior()
        array([0.5, 0.5])
        """
        w, e = self._w.copy(), self._exponents()
        kernels.finite.merge(w, e, other._w, other._exponents(), prior)
        if not (w > 0.0).any():
            raise ImpossibleObservation(
                "no mode is possible under the evidence of both beliefs: nothing was merged"
            )
        self._build(w, e)
        self.impossible += other.impossible

    def append(self, mass: float) -> None:
        """Add a mode whose share v / Σ v is `mass`; the other weights do not change.

        >>> v = Weights(np.array([0.25, 0.75]))
        >>> v.append(0.2)
        >>> v.posterior()
        array([0.2, 0.6, 0.2])
        """
        s, k = kernels.finite.total(self._blocks)
        w = np.append(self._w, s * mass / (1.0 - mass))
        self._build(w, np.append(self._exponents(), np.int64(k)))

    def remove(self, m: int) -> None:
        """v_m ← 0; the other weights do not change."""
        w = self._w.copy()
        w[m] = 0.0
        if not (w > 0.0).any():
            raise InvalidPrior(f"mode {m} holds all the mass: add another mode before removing it")
        self._build(w, self._exponents())

    def _check_state(self, new: SimpleNamespace) -> None:
        w, e, flat = new._w, new.exponent, new.flat
        # Saved weights always satisfy these limits, and the kernels rely on them.
        is_valid = (w == 0.0) | ((w >= LOWEST) & (w <= HIGHEST) & (abs(e) <= FARTHEST))
        if not is_valid.all() or not w.any():
            m = is_valid.argmin()
            raise damaged(
                f"mode {m} has mantissa {w[m]} and exponent {e[m]}; expected mantissas 0 or "
                "2^-400 to 2^400, not all 0, and exponents up to ±2^52"
            )
        first_of_block = np.repeat(e[:: kernels.finite.BLOCK], kernels.finite.BLOCK)[: len(e)]
        is_flat = np.repeat(flat, kernels.finite.BLOCK)[: len(e)] == 1.0
        if not np.isin(flat, (0.0, 1.0)).all() or (e != first_of_block)[is_flat].any():
            raise damaged(f"'flat' is {flat}: expected 1 where a block has one exponent, else 0")
        new._e, new._blocks = e, kernels.finite.rebuild(w, e, flat)


def as_log_likelihoods(answer: object, x: Any, a: Any, o: Any) -> FloatArray:
    """Return the log-likelihoods of an event as an array of numbers, or raise BadEvidence."""
    try:
        return np.array(answer, np.float64, order="C")
    except (TypeError, ValueError):
        raise BadEvidence(
            f"the log-likelihoods {answer!r} of observation {o!r} after action {a!r} in "
            f"situation {x!r} are not numbers"
        ) from None


#: The block summary of a single weight of one.
ONE = np.array([[1.0, 0.0, 1.0]])
#: The smallest and the largest mantissa, and the largest |exponent|, that the kernels produce.
LOWEST, HIGHEST, FARTHEST = 2.0**-400, 2.0**400, 2**52

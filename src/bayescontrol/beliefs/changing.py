"""Finite beliefs for a world that changes: modes that switch, evidence that fades.

    observe o_t     P(m_t | âo_≤t)     ∝ P(o_t | m, x, a_t) P(m_t | âo_<t)       then
    switching       P(m_{t+1} | âo_≤t) = Σ_m P(m_{t+1} | m) P(m_t = m | âo_≤t),
                    P(m' | m) = (1 - h) δ(m, m') + h P(m')                       hazard h
    fading          P(m_{t+1} | âo_≤t) ∝ P(m)^(1-λ) P(m_t = m | âo_≤t)^λ         λ < 1

A static posterior adapts slowly: after n steps another mode must first make up for n steps of
evidence. With switching it is never more than ln 1/(h P(m)) behind, with fading never more than
the evidence of 1/(1 - λ) steps. Switching is exact if modes change with the stated hazard;
fading is a heuristic without a model of change. Both depend on the order of events.
"""

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.beliefs.finite import FiniteBelief, Modes
from bayescontrol.beliefs.weights import LN2, OnImpossible, Weights
from bayescontrol.errors import IncompatibleState, InvalidTable, MissingCapability
from bayescontrol.mode_queries import NOT_GIVEN
from bayescontrol.priors import TOLERANCE
from bayescontrol.protocols import Stateful

M = TypeVar("M")
_STATEFUL_SWITCHING = (
    "modes with private state cannot be switched exactly: a filter also processes the data from "
    "the time in which another mode was true. Use FadingBelief"
)


class _Changing(FiniteBelief[M]):
    """Base of beliefs that condition on o_t, then predict the next mode m_{t+1}."""

    @abstractmethod
    def _predict(self, current: Weights) -> Weights:
        """Return the weights of m_{t+1}, given the weights of m_t."""

    @abstractmethod
    def _change_parameters(self) -> FloatArray:
        """Return the parameters of the change, as they are saved."""

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Condition on o_t, then predict m_{t+1}. An error leaves the belief unchanged."""
        super().observe(x, a, o)
        old, new = self._weights, self._predict(self._weights)
        new.on_impossible, new.impossible = old.on_impossible, old.impossible
        self._weights = new
        # The prediction is not evidence: leave it out of the code length.
        self._log_base += new.log_total(old)

    def save(self) -> Arrays:
        """As `FiniteBelief.save`, with the parameters of the change."""
        return super().save() | {"change": self._change_parameters()}

    def load(self, arrays: Arrays) -> None:
        """Restore a state saved by a belief over the same modes with the same parameters."""
        change, saved = self._change_parameters(), dict(arrays).get("change")
        if saved is None or not np.array_equal(change, saved):
            raise IncompatibleState(
                f"the state was saved with the change parameters {saved}, this belief has {change}"
            )
        super().load(arrays)

    def merge(self, other: FiniteBelief[M]) -> None:
        """Raise IncompatibleState: the belief depends on the order of the observations."""
        raise IncompatibleState(
            f"a {type(self).__name__} depends on the order of events and cannot be merged"
        )


class SwitchingBelief(_Changing[M]):
    """P(m_t | âo_<t), where the mode changes with hazard h per step, or by a table P(m' | m).

    With `hazard`, a change draws the new mode from the prior, possibly the same mode again.
    `transition` is a table instead, with one row per mode m.

    >>> class Coin:
    ...     def __init__(self, p): self.p = p
    ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
    >>> coins = [Coin(0.9), Coin(0.1)]
    >>> static, switching = FiniteBelief(coins), SwitchingBelief(coins, hazard=0.01)
    >>> for o in [1] * 100 + [0] * 5:                  # the other coin, for the last five
    ...     static.observe(None, None, o)
    ...     switching.observe(None, None, o)
    >>> static.posterior().round(3).tolist(), switching.posterior().round(3).tolist()
    ([1.0, 0.0], [0.008, 0.992])
    """

    format_name: ClassVar[str] = "SwitchingBelief"

    def __init__(
        self,
        modes: Modes[M],
        prior: npt.ArrayLike | None = None,
        *,
        hazard: float | None = None,
        transition: npt.ArrayLike | None = None,
        on_impossible: OnImpossible = "raise",
    ) -> None:
        super().__init__(modes, prior, on_impossible=on_impossible)
        if (hazard is None) == (transition is None):
            raise InvalidTable("SwitchingBelief: give either a hazard or a transition table")
        if hazard is not None and not (_is_number(hazard) and 0.0 <= hazard <= 1.0):
            raise InvalidTable(f"hazard={hazard!r}: expected a probability in [0, 1]")
        if self._hypotheses.stateful_modes:
            raise MissingCapability(_STATEFUL_SWITCHING)
        self._hazard = hazard
        self._table = None if transition is None else _transition_table(transition, len(self))

    def _predict(self, current: Weights) -> Weights:
        v = current.posterior()
        if self._table is not None:
            return Weights(v @ self._table)
        h = float(self._change_parameters())
        return Weights((1.0 - h) * v + h * self._prior)

    def _change_parameters(self) -> FloatArray:
        return np.array(self._hazard, np.float64) if self._table is None else self._table.copy()

    def add(self, mode: M, mass: float, *, state: Any = NOT_GIVEN) -> int:
        """As `FiniteBelief.add`, for modes without private state; needs a hazard, not a table."""
        self._require_hazard("add", mode)
        if isinstance(mode, Stateful):
            raise MissingCapability(_STATEFUL_SWITCHING)
        return super().add(mode, mass, state=state)

    def retire(self, mode: int | str) -> float:
        """As `FiniteBelief.retire`; needs a hazard, since a table would give the mode new mass."""
        self._require_hazard("retire", mode)
        return super().retire(mode)

    def _require_hazard(self, verb: str, mode: Any) -> None:
        """Raise MissingCapability if the belief has a transition table instead of a hazard."""
        if self._table is not None:
            raise MissingCapability(
                f"cannot {verb} {mode!r}: the transition table has a fixed size of {len(self)} "
                "modes; make a new belief, or use a hazard"
            )


class FadingBelief(_Changing[M]):
    """v_m(t) = P(m) Π_{s≤t} P(o_s | m, x_s, a_s)^(λ^(t-s+1)): evidence fades, the prior returns.

    `forgetting` is λ in (0, 1], a memory of 1/(1 - λ) steps; 1 never forgets. A mode with
    likelihood 0 stays ruled out, since 0^λ = 0: use Floor(epsilon) to avoid that.

    >>> class Coin:
    ...     def __init__(self, p): self.p = p
    ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
    >>> belief = FadingBelief([Coin(0.9), Coin(0.1)], forgetting=0.8)
    >>> for o in [1] * 100 + [0] * 5:                  # the other coin, for the last five
    ...     belief.observe(None, None, o)
    >>> belief.posterior().round(3).tolist()
    [0.046, 0.954]
    """

    format_name: ClassVar[str] = "FadingBelief"

    def __init__(
        self,
        modes: Modes[M],
        prior: npt.ArrayLike | None = None,
        *,
        forgetting: float,
        on_impossible: OnImpossible = "raise",
    ) -> None:
        super().__init__(modes, prior, on_impossible=on_impossible)
        if not (_is_number(forgetting) and 0.0 < forgetting <= 1.0):
            raise InvalidTable(f"forgetting={forgetting!r}: expected a number in (0, 1]")
        self._lam = float(forgetting)

    def _predict(self, current: Weights) -> Weights:
        # Logarithms cover the range of the exponents; their rounding errors fade with λ < 1.
        arrays = current.save()
        w, e = arrays["mantissa"], arrays["exponent"]
        alive = w > 0.0  # modes that are not ruled out
        log_v = np.log(w[alive]) + LN2 * e[alive]
        faded = np.full(len(self), -np.inf)
        faded[alive] = self._lam * (log_v - log_v.max())
        faded[alive] += (1.0 - self._lam) * np.log(self._prior[alive])
        predicted = Weights(np.ones(len(self)))
        predicted.condition(faded, log=True)
        return predicted

    def _change_parameters(self) -> FloatArray:
        return np.array(self._lam)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


def _transition_table(transition: npt.ArrayLike, n: int) -> FloatArray:
    """Return the table P(m' | m) of n modes as an array, or raise InvalidTable."""
    table = np.array(transition, np.float64)
    if table.shape != (n, n):
        raise InvalidTable(f"transition has shape {table.shape}: expected {(n, n)}")
    if not (table >= 0.0).all() or (abs(table.sum(axis=1) - 1.0) > TOLERANCE).any():
        raise InvalidTable(
            f"transition={transition!r}: every row P(m' | m) must be non-negative and sum to 1"
        )
    return table

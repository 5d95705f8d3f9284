"""Finite beliefs for a world that changes: modes that switch, evidence that fades.

    o_t is seen     P(m_t | âo_≤t)     ∝ P(o_t | m, x, a_t) P(m_t | âo_<t)       as ever; then
    switching       P(m_{t+1} | âo_≤t) = Σ_m P(m_{t+1} | m) P(m_t = m | âo_≤t),
                    P(m' | m) = (1 - h) δ(m, m') + h P(m')                       hazard h
    fading          P(m_{t+1} | âo_≤t) ∝ P(m)^(1-λ) P(m_t = m | âo_≤t)^λ         λ < 1

A static posterior cannot follow: after n steps any other mode is n steps' evidence behind, and
must make up for all of it. A switching one is never more than ln 1/(h P(m)) behind, a fading
one never more than the evidence of 1/(1 - λ) steps. Switching is exact where changes come as the
hazard says; fading is a rule of thumb without a law of change. Both depend on the order of events.
"""

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.beliefs.finite import FiniteBelief, Modes
from bayescontrol.beliefs.weights import OnImpossible, Weights
from bayescontrol.errors import IncompatibleState, InvalidTable, MissingCapability
from bayescontrol.mode_queries import NOT_GIVEN
from bayescontrol.priors import TOLERANCE
from bayescontrol.protocols import Stateful

M = TypeVar("M")
LN2 = 0.6931471805599453
_ONE_HISTORY = (
    "modes with private state cannot be switched exactly: a filter that ran while another mode was "
    "in force has seen the other's data. Use FadingBelief"
)


class _Changing(FiniteBelief[M]):
    """Condition on o_t, then move on to m_{t+1}."""

    @abstractmethod
    def _moved(self, now: Weights) -> Weights: ...

    @abstractmethod
    def _law(self) -> FloatArray: ...

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Condition on o_t, then let time pass. On an error nothing has changed."""
        super().observe(x, a, o)
        now = self._weights
        self._weights = self._moved(now)
        self._weights.on_impossible, self._weights.impossible = now.on_impossible, now.impossible
        # What time does to the weights is no evidence: the code length leaves it out.
        self._log_base += self._weights.log_total(now)

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit, the law of change included."""
        return super().save() | {"change": self._law()}

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for a belief over the same modes with the same law."""
        mine, theirs = self._law(), dict(arrays).get("change")
        if theirs is None or not np.array_equal(mine, theirs):
            raise IncompatibleState(f"saved with the law of change {theirs}, here it is {mine}")
        super().load(arrays)

    def merge(self, other: FiniteBelief[M]) -> None:
        """Refused: what is forgotten depends on when it was seen."""
        raise IncompatibleState(
            f"a {type(self).__name__} depends on the order of events: nothing can be merged"
        )


class SwitchingBelief(_Changing[M]):
    """P(m_t | âo_<t), where the mode changes with hazard h a step, or by a table P(m' | m).

    With `hazard`, a change draws the new mode from the prior, maybe the old one again;
    `transition` is a table, a row for each m, in its stead.

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
            raise InvalidTable(f"SwitchingBelief(hazard={hazard!r}): a probability is in [0, 1]")
        if self._hypotheses.stateful:
            raise MissingCapability(_ONE_HISTORY)
        self._hazard = hazard
        self._table = None if transition is None else _checked(transition, len(self))

    def _moved(self, now: Weights) -> Weights:
        v = now.posterior()
        if self._table is not None:
            return Weights(v @ self._table)
        h = float(self._law())
        return Weights((1.0 - h) * v + h * self._prior)

    def _law(self) -> FloatArray:
        return np.array(self._hazard, np.float64) if self._table is None else self._table.copy()

    def add(self, mode: M, mass: float, *, state: Any = NOT_GIVEN) -> int:
        """As in `FiniteBelief`, for modes without private state; a table cannot grow."""
        self._require_hazard("add", mode)
        if isinstance(mode, Stateful):
            raise MissingCapability(_ONE_HISTORY)
        return super().add(mode, mass, state=state)

    def retire(self, mode: int | str) -> float:
        """As in `FiniteBelief`; a table of transitions would bring the mode back."""
        self._require_hazard("retire", mode)
        return super().retire(mode)

    def _require_hazard(self, verb: str, mode: Any) -> None:
        if self._table is not None:
            raise MissingCapability(
                f"cannot {verb} {mode!r}: the table of transitions is for {len(self)} modes; make "
                "a new belief, or use a hazard"
            )


class FadingBelief(_Changing[M]):
    """v_m(t) = P(m) Π_{s≤t} P(o_s | m, x_s, a_s)^(λ^(t-s+1)): evidence fades, the prior returns.

    `forgetting` is λ in (0, 1], a memory of 1/(1 - λ) steps; 1 never forgets. A mode with
    likelihood 0 is ruled out for good, as no power brings zero back: use Floor(epsilon).

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
            raise InvalidTable(f"FadingBelief(forgetting={forgetting!r}): λ is in (0, 1]")
        self._lam = float(forgetting)

    def _moved(self, now: Weights) -> Weights:
        # In logarithms, with the range of the exponents: λ < 1 forgives what they lose.
        saved = now.save()
        w, e = saved["mantissa"], saved["exponent"]
        alive = w > 0.0
        log_v = np.log(w[alive]) + LN2 * e[alive]
        faded = np.full(len(self), -np.inf)
        faded[alive] = self._lam * (log_v - log_v.max())
        faded[alive] += (1.0 - self._lam) * np.log(self._prior[alive])
        moved = Weights(np.ones(len(self)))
        moved.condition(faded, log=True)
        return moved

    def _law(self) -> FloatArray:
        return np.array(self._lam)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


def _checked(transition: npt.ArrayLike, n: int) -> FloatArray:
    table = np.array(transition, np.float64)
    if table.shape != (n, n):
        raise InvalidTable(f"the transition table has shape {table.shape}, not {(n, n)}")
    if not (table >= 0.0).all() or (abs(table.sum(axis=1) - 1.0) > TOLERANCE).any():
        raise InvalidTable("every row of the transition table is P(m' | m): not negative, sum 1")
    return table

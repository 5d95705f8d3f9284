"""Finite beliefs for a world that changes: modes that switch, evidence that fades.

    observe o_t     P(m_t | âo_≤t)     ∝ P(o_t | m, x, a_t) P(m_t | âo_<t)       then
    switching       P(m_{t+1} | âo_≤t) = Σ_m P(m_{t+1} | m) P(m_t = m | âo_≤t),
                    P(m' | m) = (1 - h) δ(m, m') + h P(m')                       hazard h
    hazard unknown  the same for P(h, m_t | âo_≤t), with h on a grid
    fading          P(m_{t+1} | âo_≤t) ∝ P(m)^(1-λ) P(m_t = m | âo_≤t)^λ         λ < 1

A static posterior adapts slowly: after n steps another mode must first make up for n steps of
evidence. With switching it is never more than ln 1/(h P(m)) behind, with fading never more than
the evidence of 1/(1 - λ) steps. Switching is exact if modes change with the stated hazard;
fading is a heuristic without a model of change. Both depend on the order of events.
"""

from abc import abstractmethod
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers, require_between
from bayescontrol._mode_queries import NOT_GIVEN, has
from bayescontrol._support.priors import TOLERANCE, as_prior, probability_table
from bayescontrol._support.saved import Array, Fixed, damaged, declare
from bayescontrol.beliefs.finite import FiniteBelief, M, Modes
from bayescontrol.beliefs.weights import LN2, OnImpossible, Weights
from bayescontrol.errors import IncompatibleState, InvalidPrior, InvalidTable, MissingCapability
from bayescontrol.protocols import Stateful

_STATEFUL_SWITCHING = (
    "modes with private state cannot be switched exactly: a filter also processes the data from "
    "the time in which another mode was true. Use InteractingBelief, which approximates it, or "
    "FadingBelief; or pass shared_state=True if the state is the same in all modes"
)


class _Changing(FiniteBelief[M]):
    """Base of beliefs that condition on o_t, then predict the next mode m_{t+1}."""

    #: P(m_t | past) does not say how well mode m predicted the past, when another one was true.
    unresolved: Any = None
    draw_unresolved: Any = None

    @abstractmethod
    def _predict(self, current: Weights) -> Weights:
        """Return the weights of m_{t+1}, given the weights of m_t."""

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Condition on o_t, then predict m_{t+1}. An error leaves the belief unchanged."""
        super().observe(x, a, o)
        self._move()

    def skip(self, x: Any, a: Any) -> None:
        """Predict m_{t+1} without an observation; private states advance."""
        super().skip(x, a)
        self._move()

    def _move(self) -> None:
        """Move from m_t to m_{t+1}."""
        old, new = self._weights, self._predict(self._weights)
        new.on_impossible, new.impossible = old.on_impossible, old.impossible
        self._weights = new
        # The prediction is not evidence: leave it out of the code length.
        self._log_base += new.log_total(old)

    def merge(self, other: FiniteBelief[M]) -> None:
        """Raise IncompatibleState: the belief depends on the order of the observations."""
        raise IncompatibleState(
            f"a {type(self).__name__} cannot be merged, because it depends on the order of the "
            "observations: give all of them to one belief, in order"
        )


class SwitchingBelief(_Changing[M]):
    """P(m_t | âo_<t), where the mode changes with hazard h per step, or by a table P(m' | m).

    With `hazard`, a change draws the new mode from the prior, possibly the same mode again. A list
    of hazards is a grid on which the hazard is learned, exactly; `hazard_prior` are their
    probabilities, equal by default. `transition` is a table instead, with one row per mode m.

    Modes with private state are switched exactly only if all have the same state, such as a
    history or a counter. State this with `shared_state=True`: the belief compares the states at
    every step and raises IncompatibleState if they differ. For filters use `InteractingBelief`.

    `modes` is a list of modes, or one object that answers for many. `prior` is P(m), uniform by
    default. `on_impossible` says what to do with an observation that every mode rules out: "raise",
    "skip" or `Floor(epsilon)`.

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
    >>> learning = SwitchingBelief(coins, hazard=[0.001, 0.1])
    >>> for o in 5 * (10 * [1] + 10 * [0]):
    ...     learning.observe(None, None, o)
    >>> {h: round(p, 3) for h, p in learning.hazards().items()}
    {0.001: 0.0, 0.1: 1.0}
    """

    format_name: ClassVar[str] = "SwitchingBelief"
    saved_fields = declare(
        Fixed("change", lambda belief: belief._change_parameters(), setting="hazard or transition"),
        Array("hazard_given_mode", lambda b: b._given if len(b._hazards) > 1 else None),
    )

    def __init__(
        self,
        modes: Modes[M],
        prior: ArrayLike | None = None,
        *,
        hazard: ArrayLike | None = None,
        transition: ArrayLike | None = None,
        hazard_prior: ArrayLike | None = None,
        shared_state: bool = False,
        on_impossible: OnImpossible = "raise",
    ) -> None:
        super().__init__(modes, prior, on_impossible=on_impossible)
        if (hazard is None) == (transition is None):
            raise InvalidTable(f"{type(self).__name__}: give either a hazard or a transition table")
        if hazard is None and hazard_prior is not None:
            raise InvalidTable("hazard_prior: a transition table has no hazards")
        self._table: FloatArray | None = None
        if transition is not None:
            self._table = probability_table(transition, "transition", ("mode", "next mode"))
            if self._table.shape != (len(self), len(self)):
                raise InvalidTable(
                    f"transition has shape {self._table.shape}: expected a row and a column for "
                    f"each of {len(self)} modes"
                )
        self._hazards, self._hazard_prior = (
            (np.empty(0), np.empty(0)) if hazard is None else hazard_grid(hazard, hazard_prior)
        )
        #: P(h | m, âo_<t), one row for each hazard. An observation does not change it.
        self._given = np.repeat(self._hazard_prior[:, None], len(self), axis=1)
        self.shared_state = bool(shared_state)
        all_modes = self._hypotheses.modes
        # The modes of an array are all of one kind.
        for m, mode in enumerate(all_modes if isinstance(all_modes, list) else [all_modes[0]]):
            self._require_switchable(m, mode)
        self._require_shared(self._hypotheses.states)

    def _predict(self, current: Weights) -> Weights:
        v = current.posterior()
        if self._table is not None:
            return Weights(v @ self._table)
        (predicted, _, _), self._given = self._switch(v)
        return Weights(predicted)

    def _switch(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows P(m_{t+1}), P(m_t, no change), P(m_t, change); and P(h | m_{t+1}).

        v is P(m_t), and there is no table.
        """
        flow, given = np.empty((3, len(v))), np.empty_like(self._given)
        kernels.finite.switch(v, self._hazards, self._given, self._prior, flow, given)
        return flow, given

    def hazards(self) -> dict[float, float]:
        """P(h | âo_<t) for each hazard of the grid."""
        self._require_hazard("hazards", "learn a hazard")
        p = self._given @ self.posterior()
        return dict(zip(self._hazards.tolist(), (p / p.sum()).tolist(), strict=True))

    def _change_parameters(self) -> FloatArray:
        """Return the table, the hazard, or the hazards and their prior, as they are saved."""
        if self._table is not None:
            return self._table
        if len(self._hazards) == 1:
            return np.array(self._hazards[0])
        return np.concatenate([self._hazards, self._hazard_prior])

    # -- modes with private state ------------------------------------------------------------

    def _require_switchable(self, m: int, mode: Any) -> None:
        """Raise MissingCapability if mode m has a private state that cannot be switched."""
        if has(mode, Stateful) and not self.shared_state:
            raise MissingCapability(_STATEFUL_SWITCHING)

    def _require_shared(self, states: Sequence[Any]) -> None:
        """Raise IncompatibleState if the modes share their state, but these states differ."""
        first, *others = self._hypotheses.stateful_modes or [0]
        for m in others if self.shared_state else ():
            if not _are_equal(states[m], states[first]):
                raise IncompatibleState(
                    f"shared_state=True, but mode {m} ({self.name(m)}) has the state "
                    f"{states[m]!r}, and mode {first} ({self.name(first)}) has "
                    f"{states[first]!r}: use InteractingBelief or FadingBelief"
                )

    def _advance_states(self, x: Any, a: Any, o: Any) -> None:
        states = self._hypotheses.advanced_states(x, a, o)
        self._require_shared(states)
        self._hypotheses.states[:] = states

    # -- adding and retiring modes -------------------------------------------------------------

    def add(self, mode: M, mass: float, *, state: Any = NOT_GIVEN) -> int:
        """As `FiniteBelief.add`; needs a hazard, not a table.

        If the modes share their state, the new mode has it too.
        """
        self._require_hazard(f"{mode!r}", "add a mode")
        self._require_switchable(len(self), mode)
        stateful = self._hypotheses.stateful_modes
        if self.shared_state and stateful and has(mode, Stateful):
            shared = self._hypotheses.states[stateful[0]]
            if state is not NOT_GIVEN and not _are_equal(state, shared):
                raise IncompatibleState(f"state={state!r}: the modes share the state {shared!r}")
            state = shared
        hazards = np.array(list(self.hazards().values()))
        m = super().add(mode, mass, state=state)
        self._given = np.column_stack([self._given, hazards])
        return m

    def retire(self, mode: int | str) -> float:
        """As `FiniteBelief.retire`; needs a hazard, since a table would give the mode new mass."""
        self._require_hazard(f"{mode!r}", "retire a mode")
        return super().retire(mode)

    def _require_hazard(self, what: str, verb: str) -> None:
        """Raise MissingCapability if the belief has a transition table instead of a hazard."""
        if self._table is not None:
            raise MissingCapability(
                f"{what}: cannot {verb}, because the transition table of {len(self)} modes is "
                "fixed; make a new belief, or use a hazard"
            )

    def _check_state(self, new: SimpleNamespace) -> None:
        super()._check_state(new)
        given = new.hazard_given_mode
        if given is None:
            return
        if not ((given >= 0.0).all() and (abs(given.sum(0) - 1.0) <= TOLERANCE).all()):
            raise damaged(
                f"the probabilities of the hazards are {given.tolist()}: expected numbers of at "
                "least 0 that sum to 1 for each mode"
            )
        new._given = given


class FadingBelief(_Changing[M]):
    """v_m(t) = P(m) Π_{s≤t} P(o_s | m, x_s, a_s)^(λ^(t-s+1)): evidence fades, the prior returns.

    `forgetting` is λ in (0, 1], a memory of 1/(1 - λ) steps; 1 never forgets. A mode with
    likelihood 0 stays ruled out, since 0^λ = 0: use Floor(epsilon) to avoid that.

    `modes` is a list of modes, or one object that answers for many. `prior` is P(m), uniform by
    default. `on_impossible` says what to do with an observation that every mode rules out: "raise",
    "skip" or `Floor(epsilon)`.

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
    saved_fields = declare(Fixed("change", "_lam", setting="forgetting"))

    def __init__(
        self,
        modes: Modes[M],
        prior: ArrayLike | None = None,
        *,
        forgetting: float,
        on_impossible: OnImpossible = "raise",
    ) -> None:
        super().__init__(modes, prior, on_impossible=on_impossible)
        self._lam = require_between("forgetting", forgetting, 0, 1, ends="(]", error=InvalidTable)

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


def hazard_grid(hazard: ArrayLike, prior: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return one or more different hazards and their probabilities, or raise InvalidTable."""
    h = np.atleast_1d(as_numbers(hazard, f"hazard={hazard!r}", InvalidTable))
    is_text, are_probabilities = isinstance(hazard, str | bytes), np.all((h >= 0.0) & (h <= 1.0))
    if is_text or h.ndim > 1 or not h.size or not are_probabilities or np.unique(h).size < h.size:
        raise InvalidTable(f"hazard={hazard!r}: give a probability, or a list of different ones")
    try:
        return h, as_prior(prior, h.size)
    except InvalidPrior as error:
        raise InvalidTable(f"hazard_prior={prior!r}: {error}") from None


def _are_equal(s: Any, t: Any) -> bool:
    """Whether two private states are equal; arrays are compared entry by entry."""
    if s is t:
        return True
    if isinstance(s, np.ndarray) or isinstance(t, np.ndarray):
        return type(s) is type(t) and np.array_equal(s, t)
    if isinstance(s, tuple | list) and isinstance(t, tuple | list):
        return len(s) == len(t) and all(map(_are_equal, s, t))
    return bool(s == t)

"""Query operation modes: P(a | m, x), P(o | m, x, a), private states, and simulation.

    action_probabilities(x)           P(a | m, x)
    observation_probabilities(x, a)   P(o | m, x, a)
    likelihood(x, a, o)               P(o | m, x, a) of one o; or log_likelihood
    start(), advance(s, a, o)         a private state s, which replaces x in all of the above;
                                      the pair (x, s) replaces it if the mode uses_situation

Modes come as a list of objects or as one object that answers for all of them (`ModeArray`).
Beliefs, tables, entropies and convergence checks all ask and check modes by these functions.
"""

import inspect
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from functools import cache, partial
from typing import Any, Final, Generic, TypeGuard, TypeVar, cast

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import Arrays, FloatArray
from bayescontrol._support.saved import SavedArrays
from bayescontrol._support.values import description, pack, unpack
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidTable,
    MissingCapability,
    UnknownMode,
)
from bayescontrol.protocols import (
    MISSING,
    Likelihood,
    LogModeArray,
    ModeArray,
    SituatedState,
    Stateful,
)
from bayescontrol.seeding import StreamLike, require_stream
from bayescontrol.situations import Advance, as_advance

C = TypeVar("C")
K = TypeVar("K")
M = TypeVar("M")
#: Default for an optional private state, which may itself be None.
NOT_GIVEN: Final = object()
#: In how many observations `likelihood` and `log_likelihood` of a mode with both are compared.
_COMPARISONS: Final = 10
#: The relative difference up to which they count as equal.
_SAME: Final = 1e-6


# -- one mode -----------------------------------------------------------------------------


def draw_from(probabilities: Mapping[K, float], rng: StreamLike) -> K:
    """Draw k with probability `probabilities[k]`.

    >>> from bayescontrol import Stream
    >>> draw_from({"a": 0.0, "b": 1.0}, Stream(0))
    'b'
    """
    outcomes = list(probabilities)
    if len(outcomes) == 1:
        return outcomes[0]
    return outcomes[require_stream(rng).categorical(list(probabilities.values()))]


def safe_log(p: float) -> float:
    """ln p, with -∞ for p = 0 and NaN for p < 0."""
    if p > 0.0:
        return math.log(p)
    return -math.inf if p == 0.0 else math.nan


def log_likelihood(mode: Any, x: Any, a: Any, o: Any) -> float:
    """Return ln P(o | m, x, a), by whichever method the mode has.

    >>> class Coin:
    ...     def observation_probabilities(self, x, a): return {"H": 1.0}
    >>> log_likelihood(Coin(), None, "toss", "H")
    0.0
    """
    if hasattr(mode, "log_likelihood"):
        return float(mode.log_likelihood(x, a, o))
    if hasattr(mode, "likelihood"):
        return safe_log(float(mode.likelihood(x, a, o)))
    return safe_log(float(mode.observation_probabilities(x, a).get(o, 0.0)))


def name_of(modes: Any, m: int) -> str:
    """Return the name of mode m, or "m" and its index if it has no name.

    >>> name_of([object()], 0)
    'm0'
    """
    return str(getattr(modes[m], "name", "") or f"m{m}")


def names_of(modes: Any) -> list[str]:
    """Return `name_of` every mode; an array of modes with `names` need not create its modes."""
    if names := getattr(modes, "names", None):
        return [str(name or f"m{m}") for m, name in enumerate(names)]
    return [name_of(modes, m) for m in range(len(modes))]


def find_mode(m: object, modes: Any) -> int:
    """Return the index of mode m of a class, given by index or by name."""
    if type(m) is int and 0 <= m < len(modes):
        return m  # without the names, which take time
    return mode_index(m, names_of(modes))


def mode_index(m: object, names: Sequence[str]) -> int:
    """Return the index of mode m, given by index or by name."""
    if isinstance(m, str) and names.count(m) == 1:
        return names.index(m)
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 0 <= m < len(names):
        shown = ", ".join(names[:8]) + ", …" * (len(names) > 8)
        ambiguous = isinstance(m, str) and m in names
        problem = f"more than one mode is named {m!r}" if ambiguous else f"no mode {m!r}"
        raise UnknownMode(f"{problem}: use an index 0 … {len(names) - 1} or a name of {shown}")
    return int(m)


def require_instance(value: Any, label: str) -> None:
    """Raise MissingCapability if a class was passed instead of an object."""
    if isinstance(value, type):
        raise MissingCapability(
            f"{label} is the class {value.__name__}: make an instance, {value.__name__}(...)"
        )


def require_functions(**functions: Any) -> None:
    """Raise MissingCapability unless every argument is a function."""
    for name, value in functions.items():
        if not callable(value):
            raise MissingCapability(f"{name}={value!r} must be a function")


def require_hashable(**parts: Any) -> None:
    """Raise BadEvidence unless every part of the evidence is hashable, also inside of tuples."""
    for name, value in parts.items():
        try:
            hash(value)
        except TypeError:
            raise BadEvidence(
                f"{name} {value!r} is not hashable: use a number, a string or a tuple"
            ) from None


def require_policies(belief: Any) -> None:
    """Raise MissingCapability if the belief holds a list with a mode that cannot act."""
    modes = getattr(belief, "modes", None)
    checked: set[object] = set()  # the functions `act`, which many modes share
    for m, mode in enumerate(modes if isinstance(modes, list) else ()):
        if not hasattr(mode, "act"):
            raise MissingCapability(
                f"{mode_label(m, mode)} has no act(x, rng): a mode needs a policy. Add the method, "
                "or use PairedMode(hypothesis, policy)"
            )
        function = getattr(mode.act, "__func__", mode.act)
        if function in checked:
            continue
        checked.add(function)
        try:
            inspect.signature(mode.act).bind(None, None)
        except ValueError:  # written in C, without a signature
            continue
        except TypeError as error:
            raise MissingCapability(
                f"act of {mode_label(m, mode)} cannot be called as act(x, rng): {error}"
            ) from None


def has(value: object, capability: type[C]) -> TypeGuard[C]:
    """Return whether an object has every method of a capability, also by a wrapper's `__getattr__`.

    >>> has({}, ModeArray)
    False
    """
    return not _missing(value, capability)


def _missing(value: object, capability: type) -> list[str]:
    """Return the methods of a capability that the object lacks, or has set to None."""
    return [name for name in _members(capability) if getattr(value, name, None) is None]


@cache
def _members(capability: type) -> tuple[str, ...]:
    """Return the public members of a protocol, and the two special methods of a mode array."""
    return tuple(n for n in vars(capability) if n[0] != "_" or n in ("__len__", "__getitem__"))


def observed_part(subject: Any, o: Any) -> Any:
    """Return the part of o that the mode or belief predicts: all of o unless it says otherwise."""
    return subject.observed_part(o) if hasattr(subject, "observed_part") else o


def require(subject: Any, capability: type, label: str) -> None:
    """Raise MissingCapability, with the methods to add, unless the object has the capability.

    >>> require(object(), Likelihood, "mode 3")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: mode 3 lacks likelihood(x, a, o): ...
    """
    if lacking := _missing(subject, capability):
        signatures = []
        for name in lacking:
            code = getattr(capability, name).__code__
            signatures.append(f"{name}({', '.join(code.co_varnames[1 : code.co_argcount])})")
        purpose = (capability.__doc__ or "").splitlines()[0]
        add = "add it" if len(lacking) == 1 else "add them"
        raise MissingCapability(f"{label} lacks {', '.join(signatures)}: {add}. {purpose}")


def uses_situation(mode: Any) -> bool:
    """Whether a mode with private state declares that it needs the situation too."""
    return bool(getattr(mode, "uses_situation", False))


def state_for(mode: Any, x: Any, s: Any) -> Any:
    """Return the argument of a mode with private state s in situation x: s, or the pair (x, s)."""
    return SituatedState(x, s) if uses_situation(mode) else s


def first_state(mode: Any, x: Any) -> Any:
    """Return what the methods of a mode receive at first: x, its private state s, or (x, s)."""
    return state_for(mode, x, mode.start()) if has(mode, Stateful) else x


def state_transition(mode: Any, x: Any, advance: Advance | None) -> Advance:
    """Return the transition of `first_state`; x and `advance` are the situation and its map."""
    has_state = has(mode, Stateful)
    if has_state and not uses_situation(mode):
        return cast("Advance", mode.advance)
    advance = as_advance(x, advance)
    return partial(_advance_both, mode, advance) if has_state else advance


def _advance_both(mode: Any, advance: Advance, xs: SituatedState, a: Any, o: Any) -> SituatedState:
    """Return the next pair (x, s) of a mode that uses the situation."""
    return SituatedState(advance(xs.x, a, o), mode.advance(xs, a, o))


# -- all modes of a class -------------------------------------------------------------------


def as_mode_list(modes: Any) -> list[Any]:
    """Return the modes as a new list; reject a mapping, a text and a single object."""
    if isinstance(modes, Mapping):
        raise MissingCapability("the modes are a mapping, not a list: use list(modes.values())")
    require_instance(modes, "the list of modes")
    if isinstance(modes, str) or not isinstance(modes, Iterable):
        raise MissingCapability(
            f"{modes!r} is neither a list of modes nor an array of modes: write [mode, ...]"
        )
    return list(modes)


def is_mode_array(modes: object) -> bool:
    """Return whether one object answers for all modes."""
    return has(modes, ModeArray) or has(modes, LogModeArray)


def queries_for(modes: Any) -> "ModeListQueries[Any] | ModeArrayQueries[Any]":
    """Choose how to query these modes: one by one, or all with one call."""
    if is_mode_array(modes):
        return ModeArrayQueries(modes)
    return ModeListQueries(as_mode_list(modes))


class BoundMode(Generic[M]):
    """A mode bound to its private state s: its methods get s, or the pair (x, s), instead of x."""

    __slots__ = ("m", "states", "unbound")

    def __init__(self, unbound: M, states: Any, m: int) -> None:
        self.unbound, self.states, self.m = unbound, states, m

    def __getattr__(self, name: str) -> Any:
        if name in BoundMode.__slots__ or name.startswith("__"):  # looked up by copy()
            raise AttributeError(name)
        value = getattr(self.unbound, name)
        return partial(_call_with_state, self, name) if callable(value) else value

    def act(self, x: Any, rng: Any) -> Any:
        """Let the mode act; faster than by `__getattr__`."""
        mode: Any = self.unbound
        return mode.act(state_for(mode, x, self.states[self.m]), rng)

    def __repr__(self) -> str:
        return f"{self.unbound!r} in state {self.states[self.m]!r}"


def _call_with_state(mode: BoundMode[Any], method: str, x: Any, *arguments: Any) -> Any:
    """Call a method of the mode with s, or the pair (x, s), in place of x."""
    s = state_for(mode.unbound, x, mode.states[mode.m])
    return getattr(mode.unbound, method)(s, *arguments)


class _Queries:
    """Base of the two classes below: the modes and their private states."""

    #: The indices of the states in `states`.
    stateful_modes: Sequence[int]
    #: Private states; `BoundMode` refers to this list, so it is only changed in place.
    states: list[Any]
    #: bound[m] is mode m, as `BoundMode` if it has a private state.
    bound: Any
    #: P(o | m, x, a) at [x, a, o, m], if the modes declare that they read this table and no more.
    table: FloatArray | None = None

    def __init__(self, modes: Any) -> None:
        self.modes = modes
        self._supports: dict[type, bool] = {}

    def __len__(self) -> int:
        return len(self.modes)

    def supports(self, capability: type) -> bool:
        """Whether every mode, or the array, has the capability. The slow check is cached."""
        if capability not in self._supports:
            objects = self.modes if isinstance(self.modes, list) else [self.modes]
            self._supports[capability] = all(has(mode, capability) for mode in objects)
        return self._supports[capability]

    def save(self) -> Arrays:
        """Return the private states of the modes."""
        return {
            f"state/{m}": pack(self.states[m], f"the private state of mode {m}")
            for m in self.stateful_modes
        }

    def load(self, arrays: Arrays) -> None:
        """Restore the private states of the same modes. An error changes nothing."""
        arrays, states = SavedArrays(arrays), list(self.states)
        for m in self.stateful_modes:
            states[m] = unpack(arrays[f"state/{m}"])
            self._require_state(m, states[m])
        self.states[:] = states

    def _require_state(self, m: int, state: Any) -> None:
        """Accept any saved state of a single mode: only the mode knows what it means."""


class ModeListQueries(_Queries, Generic[M]):
    """Queries a list of modes one by one and holds their private states.

    >>> class Coin:
    ...     def __init__(self, p): self.p = p
    ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
    >>> ModeListQueries([Coin(0.5), Coin(0.75)]).likelihoods(None, "toss", 1)
    array([0.5 , 0.75])
    """

    def __init__(self, modes: Sequence[M]) -> None:
        super().__init__([])
        #: Whether `likelihoods` returns logarithms.
        self.log = not all(has(mode, Likelihood) for mode in modes)
        #: In how many more observations the two likelihoods of each mode are compared.
        self._comparisons_left = _COMPARISONS
        #: The indices of the modes with a private state.
        self.stateful_modes: list[int] = []
        #: The private state of each mode, None for a mode without one; `BoundMode` refers to it.
        self.states: list[Any] = []
        self.bound: list[M] = []
        self._methods: list[Callable[[Any, Any, Any], float]] = []
        for mode in modes:
            self.add(mode)

    def add(self, mode: Any, state: Any = NOT_GIVEN, missed: int = 0) -> None:
        """Check the mode and add it to the list. An error changes nothing.

        `state` is its private state after the `missed` observations before it was added.
        """
        m = len(self.modes)
        label = mode_label(m, mode)
        require_instance(mode, f"mode {m}")
        method = "log_likelihood" if self.log else "likelihood"
        if not hasattr(mode, method):
            raise MissingCapability(
                f"{label} has no {method}(x, a, o): give every mode this method, or every mode "
                + ("likelihood(x, a, o)" if self.log else "log_likelihood(x, a, o)")
            )
        has_start = callable(getattr(mode, "start", None))
        if has_start and not callable(getattr(mode, "advance", None)):
            raise MissingCapability(
                f"{label} has start() but no advance(s, a, o): a private state needs both"
            )
        if not has_start and state is not NOT_GIVEN:
            raise MissingCapability(f"{label} has no private state: leave state={state!r} out")
        if has_start and state is NOT_GIVEN:
            if missed:
                raise IncompatibleState(
                    f"{label} has a private state and missed {missed} observations: pass state=, "
                    "the result of mode.advance over them, or state=mode.start() to start it now"
                )
            state = mode.start()
        self.states.append(state if has_start else None)
        bound: Any = BoundMode(mode, self.states, m) if has_start else mode
        if has_start:
            self.stateful_modes.append(m)
        self._methods.append(getattr(bound, method))
        self.bound.append(bound)
        self.modes.append(mode)
        self._supports = {}  # a copy of these queries may use the old dictionary

    def likelihoods(self, x: Any, a: Any, o: Any) -> FloatArray:
        """P(o | m, x, a), or its logarithm, for all m."""
        answers = [method(x, a, o) for method in self._methods]
        try:
            # array.array rejects None and text, which NumPy would convert to numbers.
            numbers = np.frombuffer(array("d", answers))
        except TypeError:
            for m, value in enumerate(answers):
                if np.ndim(value) or not isinstance(value, (int, float, np.number, np.bool_)):
                    raise BadEvidence(
                        f"{mode_label(m, self.modes[m])} returned {value!r} for x={x!r}, a={a!r}, "
                        f"o={o!r}: expected a single number"
                    ) from None
            raise
        if self._comparisons_left:
            self._compare_methods(x, a, o, answers)
        return numbers

    def _compare_methods(self, x: object, a: object, o: object, answers: list[float]) -> None:
        """Raise InvalidTable if `likelihood` and `log_likelihood` of a mode differ."""
        self._comparisons_left -= 1
        other = "likelihood" if self.log else "log_likelihood"
        for m, (mode, answer) in enumerate(zip(self.bound, answers, strict=True)):
            if not hasattr(mode, other):
                continue
            other_answer = float(getattr(mode, other)(x, a, o))
            p, log_p = (other_answer, answer) if self.log else (answer, other_answer)
            exp_log_p = math.exp(min(log_p, 700.0))  # exp(710) overflows
            if abs(p - exp_log_p) > _SAME * max(p, exp_log_p, 1e-300):  # 1e-300: both may be 0
                raise InvalidTable(
                    f"{mode_label(m, mode)} contradicts itself for x={x!r}, "
                    f"a={a!r}, o={o!r}: likelihood is {p:.6g}, with the logarithm "
                    f"{safe_log(p):.6g}, and log_likelihood is {log_p:.6g}. Remove one of them"
                )

    def query_each(self, capability: type, query: Callable[[Any], Any]) -> list[Any]:
        """Return query(mode) for every mode; raise if a mode lacks the capability."""
        if not self.supports(capability):
            for m, mode in enumerate(self.modes):
                require(mode, capability, mode_label(m, mode))
        return [query(mode) for mode in self.bound]

    def advanced_states(self, x: Any, a: Any, o: Any) -> list[Any]:
        """Return the private states after (x, a, o), as a new list."""
        states = self.states[:]
        for m in self.stateful_modes:
            mode: Any = self.modes[m]
            states[m] = mode.advance(state_for(mode, x, states[m]), a, o)
            if states[m] is None and self.states[m] is not None:
                p = 1.0 if o is MISSING else self._methods[m](x, a, o)
                if p > (-math.inf if self.log else 0.0):  # the mode is still possible
                    raise BadEvidence(
                        f"advance of {mode_label(m, mode)} returned None for the state "
                        f"{self.states[m]!r}, a={a!r}, o={o!r}: it must return the next state. "
                        "Perhaps a `return` is missing"
                    )
        return states

    def names(self) -> npt.NDArray[np.str_]:
        """Return the names of the modes; a description of modes without a name."""
        names = [str(getattr(mode, "name", "") or description(mode)) for mode in self.modes]
        return np.array(names, np.str_)

    def copy(self) -> "ModeListQueries[M]":
        """Copy the list and the private states; the modes are shared."""
        if not self.stateful_modes:
            clone = copy(self)
            for name in ("modes", "bound", "_methods", "states"):
                setattr(clone, name, getattr(self, name)[:])
            return clone
        clone = ModeListQueries(self.modes)
        clone.states[:] = deepcopy(self.states)  # a mode may keep references into its state
        return clone


class _Rows:
    """The private states of an array of modes: entry m is row m of the common state."""

    def __init__(self, states: list[Any]) -> None:
        self._states = states

    def __getitem__(self, m: int) -> Any:
        return self._states[0][m]


class _BoundRows(dict[int, Any]):
    """The modes of an array, bound to their private states; filled on demand."""

    def __init__(self, modes: Any, states: list[Any]) -> None:
        self._modes, self._rows = modes, _Rows(states)

    def __missing__(self, m: int) -> Any:
        self[m] = BoundMode(self._modes[m], self._rows, m)
        return self[m]


class ModeArrayQueries(_Queries, Generic[M]):
    """Queries one object that answers for all modes.

    If it has `start` and `advance`, it holds the private states of all modes in one array, with a
    row for each mode.

    >>> from bayescontrol import TabularModes
    >>> coins = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[0.5, 0.5]]], [[[0.25, 0.75]]]])
    >>> ModeArrayQueries(coins).likelihoods(0, 0, 1)
    array([0.5 , 0.75])
    """

    def __init__(self, modes: ModeArray[M, Any, Any, Any] | LogModeArray[M, Any, Any, Any]) -> None:
        super().__init__(modes)
        self.shape = (len(modes),)
        #: The common private state, and its index, if there is one.
        is_stateful = has(modes, Stateful) and callable(modes.start)
        self.states: list[Any] = [self.modes.start()] if is_stateful else []
        self.stateful_modes = tuple(range(len(self.states)))
        self.bound = _BoundRows(modes, self.states) if self.states else modes
        self._description = ""
        self.log = not has(modes, ModeArray)
        method = "log_likelihoods" if self.log else "likelihoods"
        self._likelihoods: Callable[[Any, Any, Any], FloatArray] = getattr(modes, method)
        if hasattr(type(modes), "likelihood_table") and not self.states:  # not by `__getattr__`
            self.table = self.modes.likelihood_table

    def add(self, mode: M, state: Any = NOT_GIVEN, missed: int = 0) -> None:
        """Raise MissingCapability: an array of modes has a fixed size."""
        raise MissingCapability(
            f"cannot add {mode!r}: an array of modes cannot grow; use a list of modes"
        )

    def likelihoods(self, x: Any, a: Any, o: Any) -> FloatArray:
        """P(o | m, x, a), or its logarithm, for all m."""
        xs = state_for(self.modes, x, self.states[0]) if self.states else x
        likelihoods = np.ascontiguousarray(self._likelihoods(xs, a, o), np.float64)
        if likelihoods.shape != self.shape:
            raise BadEvidence(
                f"{self.modes!r} returned an array of shape {likelihoods.shape} for x={x!r}, "
                f"a={a!r}, o={o!r}: expected {self.shape}"
            )
        return likelihoods

    def names(self) -> npt.NDArray[np.str_]:
        """Return the names of the modes, or a description of the array if they have no names."""
        names = getattr(self.modes, "names", None)
        if not names and not self._description:
            self._description = description(self.modes)
        return np.array(names or [self._description], np.str_)

    def _require_state(self, m: int, state: Any) -> None:
        """Raise IncompatibleState unless the saved array of states is like the present one."""
        mine, saved = np.asarray(self.states[m]), np.asarray(state)
        if saved.shape != mine.shape or saved.dtype != mine.dtype:
            raise IncompatibleState(
                f"the saved private states are {saved.dtype} of shape {saved.shape}: expected "
                f"{mine.dtype} of shape {mine.shape}"
            )

    def query_each(self, capability: type, query: Callable[[Any], Any]) -> Any:
        """Return query(modes), whose arrays have one number per mode."""
        if self.states:
            raise MissingCapability(
                f"{self.modes!r} holds private states and cannot be asked for {capability.__name__}"
            )
        if not self.supports(capability):
            require(self.modes, capability, f"the array of modes ({self.modes!r})")
        return query(self.modes)

    def advanced_states(self, x: Any, a: Any, o: Any) -> list[Any]:
        """Return the private states after (x, a, o), as a new list."""
        return [self.modes.advance(state_for(self.modes, x, s), a, o) for s in self.states]

    def copy(self) -> "ModeArrayQueries[M]":
        """Copy the private states; the modes are shared."""
        clone = copy(self)
        clone.states = deepcopy(self.states)
        clone.bound = _BoundRows(self.modes, clone.states) if clone.states else self.modes
        return clone


def display_name(mode: Any) -> str:
    """Return the name of a mode for a message."""
    return str(getattr(mode, "name", "") or repr(mode))


def mode_label(m: int, mode: Any) -> str:
    """Return the number and the name of a mode for a message."""
    return f"mode {m} ({display_name(mode)})"

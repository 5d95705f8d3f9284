"""How hypotheses answer: P(o | m, x, a) for all m, whatever the modes offer.

A class of modes is a sequence of objects asked one by one, or one object that answers for
all (`ModeArray`). A mode may give likelihoods or their logarithms, and may own a private
state s_m that takes the place of the situation x.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.protocols import Likelihood, LogModeArray, ModeArray, Stateful

__all__ = ["AllAtOnce", "OneByOne", "as_hypotheses", "require"]

M = TypeVar("M")


class Bound(Generic[M]):
    """A stateful mode as the belief hands it out: its private state stands in for x."""

    __slots__ = ("m", "states", "unbound")

    def __init__(self, unbound: M, states: list[Any], m: int) -> None:
        self.unbound, self.states, self.m = unbound, states, m

    def __getattr__(self, name: str) -> Any:
        if name in Bound.__slots__ or name.startswith("__"):  # asked for while being copied
            raise AttributeError(name)
        found = getattr(self.unbound, name)
        return partial(_ask_in_state, self, name) if callable(found) else found

    def __repr__(self) -> str:
        return f"{self.unbound!r} in state {self.states[self.m]!r}"


def _ask_in_state(mode: Bound[Any], method: str, _x: Any, *rest: Any) -> Any:
    return getattr(mode.unbound, method)(mode.states[mode.m], *rest)


class OneByOne(Generic[M]):
    """A sequence of modes, each asked in turn.

    >>> class Coin:
    ...     def __init__(self, p): self.p = p
    ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
    >>> OneByOne([Coin(0.5), Coin(0.75)]).ask(None, "toss", 1)
    array([0.5 , 0.75])
    """

    def __init__(self, modes: Sequence[M]) -> None:
        self.modes = list(modes)
        self.log = not all(isinstance(m, Likelihood) for m in self.modes)
        self.stateful = any(isinstance(m, Stateful) for m in self.modes)
        self._able: set[type] = set()
        self._states: list[Any] = []
        self._asked: list[Any] = []  # the modes, bound to their states where they have one
        self._answers: list[Callable[[Any, Any, Any], float]] = []
        for m, mode in enumerate(self.modes):
            self._states.append(mode.start() if isinstance(mode, Stateful) else None)
            self._admit(m, mode)

    def _admit(self, m: int, mode: M) -> None:
        asked: Any = Bound(mode, self._states, m) if isinstance(mode, Stateful) else mode
        if self.log:
            if not hasattr(mode, "log_likelihood"):
                raise MissingCapability(
                    f"mode {m} ({mode!r}) has no log_likelihood(x, a, o): give every mode that, "
                    "or every mode likelihood(x, a, o)"
                )
            self._answers.append(asked.log_likelihood)
        else:
            self._answers.append(asked.likelihood)
        self._asked.append(asked)

    def __len__(self) -> int:
        return len(self.modes)

    def add(self, mode: M) -> None:
        """One more mode; a stateful one starts now."""
        twin = OneByOne([mode])
        if twin.log and not self.log:
            raise MissingCapability(f"{mode!r} has no likelihood(x, a, o), as the others do")
        self._states.append(twin._states[0])
        try:
            self._admit(len(self.modes), mode)
        except MissingCapability:
            self._states.pop()
            raise
        self.modes.append(mode)
        self._able.clear()
        self.stateful = self.stateful or twin.stateful

    def mode(self, m: int) -> M:
        """The mode as the rule should ask it."""
        mode: M = self._asked[m]
        return mode

    def ask(self, x: Any, a: Any, o: Any) -> FloatArray:
        """P(o | m, x, a), or its logarithm, for all m."""
        try:
            return np.array([answer(x, a, o) for answer in self._answers], np.float64)
        except (TypeError, ValueError):
            for m, answer in enumerate(self._answers):
                value = answer(x, a, o)  # the mode's own error is the better one, if it raises
                if np.ndim(value) or not isinstance(value, (int, float, np.number, np.bool_)):
                    raise BadEvidence(
                        f"mode {m} answered {value!r} to x={x!r}, a={a!r}, o={o!r}: "
                        "a likelihood is one number"
                    ) from None
            raise

    def each(self, capability: type, law: Callable[[Any], Any]) -> list[Any]:
        """law(m) for every mode, which must have the capability."""
        if capability not in self._able:  # asking for a protocol is slow; modes do not change
            for m, mode in enumerate(self.modes):
                require(mode, capability, f"mode {m}")
            self._able.add(capability)
        return [law(asked) for asked in self._asked]

    def advanced(self, a: Any, o: Any) -> list[Any]:
        """The private states after (a, o); nothing is kept yet."""
        return [
            mode.advance(s, a, o) if isinstance(mode, Stateful) else None
            for mode, s in zip(self.modes, self._states, strict=True)
        ]

    @property
    def owners(self) -> list[int]:
        """The modes that own a private state."""
        return [m for m, mode in enumerate(self.modes) if isinstance(mode, Stateful)]

    @property
    def states(self) -> list[Any]:
        """The private states, None for modes without one."""
        return self._states

    @states.setter
    def states(self, states: list[Any]) -> None:
        self._states[:] = states

    def copy(self) -> "OneByOne[M]":
        """The same modes with states of their own."""
        if not self.stateful:
            twin = OneByOne.__new__(OneByOne)
            twin.__dict__.update(self.__dict__)
            twin.modes, twin._asked, twin._answers, twin._states = (
                self.modes[:], self._asked[:], self._answers[:], self._states[:]
            )  # fmt: skip
            return twin
        twin = OneByOne(self.modes)
        twin.states = self._states
        return twin


class AllAtOnce(Generic[M]):
    """One object that answers for all modes.

    >>> from bayescontrol.problems.tabular import TabularModes
    >>> coins = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[0.5, 0.5]]], [[[0.25, 0.75]]]])
    >>> AllAtOnce(coins).ask(0, 0, 1)
    array([0.5 , 0.75])
    """

    stateful = False

    def __init__(self, modes: ModeArray[M, Any, Any, Any] | LogModeArray[M, Any, Any, Any]) -> None:
        self.modes = modes
        self.shape = (len(modes),)
        self._able: set[type] = set()
        self.log = not isinstance(modes, ModeArray)
        self.ask_all: Callable[[Any, Any, Any], FloatArray] = (
            modes.likelihoods if isinstance(modes, ModeArray) else modes.log_likelihoods
        )

    def __len__(self) -> int:
        return len(self.modes)

    def add(self, mode: M) -> None:
        """An array of modes is what it is."""
        raise MissingCapability(
            f"cannot add {mode!r} to {self.modes!r}: an array of modes cannot grow; "
            "give the belief a list of modes"
        )

    def mode(self, m: int) -> M:
        """Mode m alone."""
        return self.modes[m]

    def ask(self, x: Any, a: Any, o: Any) -> FloatArray:
        """P(o | m, x, a), or its logarithm, for all m."""
        answer: Any = self.ask_all(x, a, o)
        if not (
            isinstance(answer, np.ndarray)
            and answer.dtype == np.float64
            and answer.flags.c_contiguous
        ):
            answer = np.ascontiguousarray(answer, dtype=np.float64)
        if answer.shape != self.shape:
            raise BadEvidence(
                f"{self.modes!r} answered with shape {answer.shape} to x={x!r}, a={a!r}, o={o!r}: "
                f"expected {self.shape}"
            )
        likelihoods: FloatArray = answer
        return likelihoods

    def each(self, capability: type, law: Callable[[Any], Any]) -> Any:
        """law of the whole array: what it says of one mode, it says of all as an array."""
        if capability not in self._able:
            require(self.modes, capability, "the array of modes")
            self._able.add(capability)
        return law(self.modes)

    def advanced(self, a: Any, o: Any) -> list[Any]:
        """No private states."""
        return []

    @property
    def owners(self) -> list[int]:
        """No private states."""
        return []

    @property
    def states(self) -> list[Any]:
        """No private states."""
        return []

    @states.setter
    def states(self, states: list[Any]) -> None:
        """No private states."""

    def copy(self) -> "AllAtOnce[M]":
        """Nothing here changes."""
        return self


def as_hypotheses(modes: Any) -> OneByOne[Any] | AllAtOnce[Any]:
    """The right way to ask these modes.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> type(as_hypotheses(random_modes(2))).__name__
    'AllAtOnce'
    """
    if isinstance(modes, (ModeArray, LogModeArray)):
        return AllAtOnce(modes)
    return OneByOne(modes)


def require(thing: Any, capability: type, what: str) -> None:
    """Does it have the capability? If not, say which method to add.

    >>> require(object(), Likelihood, "mode 3")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: mode 3 (<object ...>) lacks likelihood: ...
    """
    if not isinstance(thing, capability):
        methods = [n for n in vars(capability) if not n.startswith("_")]
        raise MissingCapability(
            f"{what} ({thing!r}) lacks {', '.join(methods)}: add it to the mode"
        )

"""How hypotheses answer: P(o | m, x, a) for all m, whatever the modes offer.

A class of modes is a sequence of objects asked one by one, or one object that answers for
all (`ModeArray`). A mode may give likelihoods or their logarithms, and may own a private
state s_m that takes the place of the situation x.

What modes answer when asked for whole laws: P(a | m, x) and P(o | m, x, a), for every m.

    x = what all modes see, or, where some own a private state, (s_1, …, s_M) with s_m = x for
        those that own none
    T(s, a, o)_m = advance_m(s_m, a, o)

A mode with a private state need not make sense of it after an o that it holds impossible: from
then on it is `RULED_OUT`, expects nothing at all, and does what the others do on average.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidTable, MissingCapability
from bayescontrol.priors import TOLERANCE
from bayescontrol.protocols import (
    ActionProbabilities,
    Likelihood,
    LogModeArray,
    ModeArray,
    ObservationProbabilities,
    Stateful,
)
from bayescontrol.values import format_name

M = TypeVar("M")
#: No private state was given; None may be one.
UNSTATED: Final = object()


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
        self._able: dict[type, bool] = {}
        #: The modes with a private state.
        self.owners: list[int] = []
        self._states: list[Any] = []
        self._asked: list[Any] = []  # the modes, bound to their states where they have one
        self._answers: list[Callable[[Any, Any, Any], float]] = []
        for m, mode in enumerate(self.modes):
            self._admit(m, mode)

    @property
    def stateful(self) -> bool:
        """Does any mode own a private state?"""
        return bool(self.owners)

    def _admit(self, m: int, mode: Any, state: Any = UNSTATED, missed: int = 0) -> None:
        """Check the mode and learn how to ask it; on an error nothing has changed.

        `state` is its private state after the `missed` observations that came before it.
        """
        who = f"mode {m} ({_call(mode)})"
        if isinstance(mode, type):
            raise MissingCapability(f"{who} is a class: make an instance, {mode.__name__}(...)")
        method = "log_likelihood" if self.log else "likelihood"
        if not hasattr(mode, method):
            raise MissingCapability(
                f"{who} has no {method}(x, a, o): give every mode that, or every mode "
                + ("likelihood(x, a, o)" if self.log else "log_likelihood(x, a, o)")
            )
        starts, advances = (callable(getattr(mode, n, None)) for n in ("start", "advance"))
        if starts and not advances:
            raise MissingCapability(f"{who} has start() but no advance(s, a, o): a private state")
        if not starts and state is not UNSTATED:
            raise MissingCapability(f"{who} has no private state: leave state={state!r} out")
        if starts and state is UNSTATED and missed:
            raise IncompatibleState(
                f"{who} has a private state, and the others have seen {missed} observations: pass "
                "state=, what mode.advance makes of them, or state=mode.start() to start "
                "it now"
            )
        if starts and state is UNSTATED:
            state = mode.start()
        self._states.append(state if starts else None)
        asked = Bound(mode, self._states, m) if starts else mode
        if starts:
            self.owners.append(m)
        self._answers.append(getattr(asked, method))
        self._asked.append(asked)

    def __len__(self) -> int:
        return len(self.modes)

    def add(self, mode: M, state: Any = UNSTATED, missed: int = 0) -> None:
        """Add a mode after `missed` observations; `state` is its private state, if it has one."""
        self._admit(len(self.modes), mode, state, missed)
        self.modes.append(mode)
        self._able.clear()

    def mode(self, m: int) -> M:
        """The mode as the rule should ask it."""
        mode: M = self._asked[m]
        return mode

    def ask(self, x: Any, a: Any, o: Any) -> FloatArray:
        """P(o | m, x, a), or its logarithm, for all m."""
        answers = [answer(x, a, o) for answer in self._answers]
        try:
            # An array.array refuses None and text, which NumPy would turn into numbers.
            return np.frombuffer(array("d", answers))
        except TypeError:
            for m, value in enumerate(answers):
                if np.ndim(value) or not isinstance(value, (int, float, np.number, np.bool_)):
                    raise BadEvidence(
                        f"mode {m} ({_call(self.modes[m])}) answered {value!r} to x={x!r}, "
                        f"a={a!r}, o={o!r}: a likelihood is one number"
                    ) from None
            raise

    def able(self, capability: type) -> bool:
        """Does every mode have the capability? Asking is slow and modes do not change: once."""
        if capability not in self._able:
            self._able[capability] = all(isinstance(mode, capability) for mode in self.modes)
        return self._able[capability]

    def each(self, capability: type, law: Callable[[Any], Any]) -> list[Any]:
        """law(m) for every mode, which must have the capability."""
        if not self.able(capability):
            for m, mode in enumerate(self.modes):
                require(mode, capability, f"mode {m} ({_call(mode)})")
        return [law(asked) for asked in self._asked]

    def advanced(self, a: Any, o: Any) -> list[Any]:
        """The private states after (a, o); nothing is kept yet."""
        states = self._states[:]
        for m in self.owners:
            mode: Any = self.modes[m]
            states[m] = mode.advance(states[m], a, o)
        return states

    def names(self) -> npt.NDArray[np.str_]:
        """What the modes are called: saved, so that no other class takes their weights over."""
        return np.array([name_of(self.modes, m) for m in range(len(self))], np.str_)

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
        twin.states = deepcopy(self._states)  # a mode may hold on to what it was given
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
        self._able: dict[type, bool] = {}
        self.log = not isinstance(modes, ModeArray)
        self.ask_all: Callable[[Any, Any, Any], FloatArray] = (
            modes.likelihoods if isinstance(modes, ModeArray) else modes.log_likelihoods
        )

    def __len__(self) -> int:
        return len(self.modes)

    def add(self, mode: M, state: Any = UNSTATED, missed: int = 0) -> None:
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

    def names(self) -> npt.NDArray[np.str_]:
        """What the modes are called, or what kind of array they are."""
        kind = type(self.modes)
        names = getattr(self.modes, "names", None) or [format_name(kind, kind.__name__)]
        return np.array(names, np.str_)

    def able(self, capability: type) -> bool:
        """Does the array have the capability?"""
        if capability not in self._able:
            self._able[capability] = isinstance(self.modes, capability)
        return self._able[capability]

    def each(self, capability: type, law: Callable[[Any], Any]) -> Any:
        """law of the whole array: what it says of one mode, it says of all as an array."""
        if not self.able(capability):
            require(self.modes, capability, f"the array of modes ({self.modes!r})")
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
    if isinstance(modes, Mapping):
        raise MissingCapability(
            "modes are a list, not a mapping: give list(modes.values()), and each mode a `name`"
        )
    if not isinstance(modes, Iterable):
        raise MissingCapability(
            f"{modes!r} is neither a list of modes nor an array of them: write [mode, ...]"
        )
    return OneByOne(list(modes))


def require(thing: Any, capability: type, who: str) -> None:
    """Does it have the capability? If not, say which method to add.

    >>> require(object(), Likelihood, "mode 3")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: mode 3 lacks likelihood(x, a, o): ...
    """
    if not isinstance(thing, capability):
        methods = [
            f"{name}({', '.join(method.__code__.co_varnames[1 : method.__code__.co_argcount])})"
            for name, method in vars(capability).items()
            if not name.startswith("_")
        ]
        does = (capability.__doc__ or "").splitlines()[0]
        raise MissingCapability(f"{who} lacks {', '.join(methods)}: add it. {does}")


def name_of(modes: Any, m: int) -> str:
    """The name of mode m if it has one, else its index.

    >>> name_of([object()], 0)
    'm0'
    """
    return str(getattr(modes[m], "name", "") or f"m{m}")


def require_same(mine: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> None:
    """Are these the same modes, as far as names can tell?

    >>> require_same(np.array(["a", "b"]), np.array(["a", "c"]))
    Traceback (most recent call last):
    bayescontrol.errors.IncompatibleState: mode 1 is called b here and c there
    """
    if mine.shape != theirs.shape:
        raise IncompatibleState(f"it is about {theirs.size} modes, this belief about {mine.size}")
    for m, (here, there) in enumerate(zip(mine, theirs, strict=True)):
        if here != there:
            raise IncompatibleState(f"mode {m} is called {here!s} here and {there!s} there")


def _call(mode: Any) -> str:
    """What to call a mode in a message."""
    return str(getattr(mode, "name", "") or repr(mode))


Advance: TypeAlias = Callable[[Any, Any, Any], Any]
#: One law for each mode, positive probabilities only; an empty one says nothing.
Laws: TypeAlias = list[dict[Any, float]]


class _Word:
    """A value that is equal to nothing a user could give."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __repr__(self) -> str:
        return self._word


#: The observation of a mode that says nothing of o.
NOTHING: Final = _Word("nothing")
#: The private state of a mode after an o that it holds impossible.
RULED_OUT: Final = _Word("ruled out")


class EachAnswers:
    """Modes asked in turn.

    >>> from bayescontrol import DiscreteMode
    >>> coin = DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}, "coin")
    >>> modes = EachAnswers([coin])
    >>> modes.names, modes.policies(None), modes.hypotheses(None, "toss")
    (['coin'], [{'toss': 1.0}], [{'H': 0.5, 'T': 0.5}])
    """

    def __init__(self, modes: Sequence[Any]) -> None:
        if isinstance(modes, Mapping | str) or not isinstance(modes, Iterable):
            raise MissingCapability(f"{modes!r} is not a list of modes: write [mode, ...]")
        self.modes = list(modes)
        if not self.modes:
            raise InvalidTable("there are no modes to ask")
        self.names = [name_of(self.modes, m) for m in range(len(self.modes))]
        for mode, name in zip(self.modes, self.names, strict=True):
            if isinstance(mode, type):
                raise MissingCapability(f"mode {name} is a class: make an instance of it")
            for capability in (ActionProbabilities, ObservationProbabilities):
                require(mode, capability, f"mode {name}")
        self._owns = [isinstance(mode, Stateful) for mode in self.modes]

    def start(self, x: Any) -> Any:
        """x, or the private states, before the first step."""
        if not any(self._owns):
            return x
        pairs = zip(self.modes, self._owns, strict=True)
        return tuple(mode.start() if owns else x for mode, owns in pairs)

    def policies(self, x: Any) -> Laws:
        """P(a | m, x) for every m."""
        seen = self._seen(x)
        laws = {
            m: _law(self.modes[m].action_probabilities(s), self.names[m], "policy", s)
            for m, s in enumerate(seen)
            if s is not RULED_OUT
        }
        # Some mode is left: what all of them hold impossible is never followed.
        mean: dict[Any, float] = {}
        for law in laws.values() if len(laws) < len(seen) else ():
            for a, p in law.items():
                mean[a] = mean.get(a, 0.0) + p / len(laws)
        return [laws.get(m, mean) for m in range(len(seen))]

    def hypotheses(self, x: Any, a: Any) -> Laws:
        """P(o | m, x, a) for every m; empty for a mode that says nothing."""
        return [
            {} if s is RULED_OUT else self._hypothesis(m, s, a) for m, s in enumerate(self._seen(x))
        ]

    def _hypothesis(self, m: int, s: Any, a: Any) -> dict[Any, float]:
        mode, name = self.modes[m], self.names[m]
        law = _law(mode.observation_probabilities(s, a), name, "hypothesis", s)
        for o, p in law.items():
            weighed = _likelihood(mode, s, a, o)
            if not abs(weighed - p) <= TOLERANCE:
                raise InvalidTable(
                    f"mode {name} contradicts itself in situation {s!r} after action {a!r}: its "
                    f"observation_probabilities give {o!r} {p:.6g}, its likelihood is {weighed:.6g}"
                )
        return law

    def advance(self, x: Any, a: Any, o: Any, laws: Laws, shared: Advance) -> Any:
        """T(x, a, o); `laws` are the hypotheses in x after a, and tell who is ruled out."""
        if not any(self._owns):
            return shared(x, a, o)
        others = [s for s, owns in zip(x, self._owns, strict=True) if not owns]
        after = shared(others[0], a, o) if others else None

        def moved(m: int) -> Any:
            if not self._owns[m]:
                return after
            if x[m] is RULED_OUT or o not in laws[m]:
                return RULED_OUT
            return self.modes[m].advance(x[m], a, o)

        return tuple(map(moved, range(len(self.modes))))

    def _seen(self, x: Any) -> Sequence[Any]:
        seen: Sequence[Any] = x if any(self._owns) else [x] * len(self.modes)
        return seen


class AllAnswer:
    """One object that answers for all modes, with arrays.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> AllAnswer(prize_or_frog(1.0)).hypotheses(0, 0)
    [{1: 1.0}, {0: 1.0}]
    """

    def __init__(self, modes: Any) -> None:
        for capability in (ActionProbabilities, ObservationProbabilities):
            require(modes, capability, f"the array of modes ({modes!r})")
        self.modes = modes
        self.names = [name_of(modes, m) for m in range(len(modes))]

    def start(self, x: Any) -> Any:
        """x before the first step."""
        return x

    def policies(self, x: Any) -> Laws:
        """P(a | m, x) for every m."""
        return self._each(self.modes.action_probabilities(x), "policy", x)

    def hypotheses(self, x: Any, a: Any) -> Laws:
        """P(o | m, x, a) for every m."""
        return self._each(self.modes.observation_probabilities(x, a), "hypothesis", x)

    def advance(self, x: Any, a: Any, o: Any, laws: Laws, shared: Advance) -> Any:
        """T(x, a, o)."""
        return shared(x, a, o)

    def _each(self, answer: Mapping[Any, Any], part: str, x: Any) -> Laws:
        whole = {k: np.broadcast_to(p, len(self.names)) for k, p in answer.items()}
        return [
            _law({k: p[m] for k, p in whole.items()}, name, part, x)
            for m, name in enumerate(self.names)
        ]


def as_answers(modes: Any) -> EachAnswers | AllAnswer:
    """The right way to ask these modes.

    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> type(as_answers(prize_or_frog())).__name__
    'AllAnswer'
    """
    return AllAnswer(modes) if isinstance(modes, ModeArray | LogModeArray) else EachAnswers(modes)


def _likelihood(mode: Any, s: Any, a: Any, o: Any) -> float:
    """P(o | m, s, a) as a belief asks for it."""
    if isinstance(mode, Likelihood):
        return float(mode.likelihood(s, a, o))
    return math.exp(mode.log_likelihood(s, a, o))


def _law(answer: Any, name: str, part: str, x: Any) -> dict[Any, float]:
    """The positive probabilities; a hypothesis may say nothing, a policy must do something."""
    what = f"the {part} of mode {name} in situation {x!r}"
    try:
        law = {k: float(p) for k, p in answer.items() if p != 0.0}
    except (AttributeError, TypeError, ValueError):
        raise InvalidTable(f"{what} is {answer!r}: it must be a mapping to probabilities") from None
    if not law and part == "hypothesis":
        return law
    if not (abs(sum(law.values()) - 1.0) <= TOLERANCE and min(law.values()) >= 0.0):
        raise InvalidTable(f"{what} is {law}: it must be probabilities that sum to 1")
    return law

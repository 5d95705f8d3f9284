"""What modes answer when asked for whole laws: P(a | m, x) and P(o | m, x, a), for every m.

    x = what all modes see, or, where some own a private state, (s_1, …, s_M) with s_m = x for
        those that own none
    T(s, a, o)_m = advance_m(s_m, a, o)

A mode with a private state need not make sense of it after an o that it holds impossible: from
then on it is `RULED_OUT`, expects nothing at all, and does what the others do on average.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from bayescontrol.beliefs.hypotheses import name_of, require
from bayescontrol.errors import InvalidTable, MissingCapability
from bayescontrol.priors import TOLERANCE
from bayescontrol.protocols import (
    ActionProbabilities,
    Likelihood,
    LogModeArray,
    ModeArray,
    ObservationProbabilities,
    Stateful,
)

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

    >>> from bayescontrol.problems.prize import prize_or_frog
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

    >>> from bayescontrol.problems.prize import prize_or_frog
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

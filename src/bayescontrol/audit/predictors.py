"""Predictors of the next symbol, and adaptors for the shapes in which people have them.

A predictor is an object with `probabilities(history)`, or a function of the history, which returns
{symbol: probability} of the next symbol: of an action if the history is empty or ends with an
observation, else of an observation. A symbol that is left out has probability 0. The answer must
depend on the history only.

    Batched(f)                              f(histories) returns a list of answers
    Stateful(start, advance, answer)        a state in place of the history
    Classifier(model, encode)               a scikit-learn classifier over encoded histories
    AgentPredictor(agent, world)            an agent of this library
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from bayescontrol._arrays import AnyArray, FloatArray
from bayescontrol._mode_queries import require_instance
from bayescontrol.audit.transcript import Event, Symbol, Transcript, feed
from bayescontrol.audit.worlds import World
from bayescontrol.errors import BayesControlError, MissingCapability
from bayescontrol.rule import Rule
from bayescontrol.systems import AgentSystem

Answer: TypeAlias = Mapping[Symbol, float]
#: The state of a predictor.
State: TypeAlias = Any
Histories: TypeAlias = Sequence[Transcript]
#: An agent, and its action if an observation comes next, else None.
_AgentState: TypeAlias = tuple[Rule, Symbol]
#: The probabilities of the next symbol sum to one within this, as those of a network do.
TOLERANCE: Final = 1e-5


class PredictorFailed(BayesControlError, RuntimeError):
    """The predictor raised an error, or its answer is not a distribution of the next symbol."""


class Predictor(Protocol):
    """What an audit calls: the answers of several histories of the same length.

    `symbols` are those that can come next.
    """

    def answers(self, histories: Histories, symbols: Sequence[Symbol], /) -> Sequence[Answer]: ...


class Batched:
    """A predictor that answers many histories at once: `function(histories)`, a list of answers.

    >>> from bayescontrol.audit import audit
    >>> fair = Batched(lambda histories: [{"A": 0.5, "B": 0.5}] * len(histories))
    >>> audit(fair, "two-hypotheses", runs=50).of("two-hypotheses", "forced").verdict
    'neither'
    """

    def __init__(self, function: Callable[[Histories], Sequence[Answer]]) -> None:
        self.function = function

    def answers(self, histories: Histories, symbols: Sequence[Symbol]) -> Sequence[Answer]:
        """Return the answers of the function."""
        return self.function(histories)


class Stateful:
    """A predictor with a state: `start(world)`, `advance(state, event)`, `probabilities(state)`.

    `start` gets the name of the world. `advance` must return a new state and leave the old one as
    it was, because several histories may continue it.

    >>> from bayescontrol.audit import Transcript, did
    >>> predictor = Stateful(lambda world: 1, lambda n, event: n + 1,
    ...                      lambda n: {"A": 1 / n, "B": 1 - 1 / n})
    >>> predictor.answers([Transcript(), Transcript([did("A")])], "AB")
    [{'A': 1.0, 'B': 0.0}, {'A': 0.5, 'B': 0.5}]
    """

    def __init__(
        self,
        start: Callable[[str], State],
        advance: Callable[[State, Event], State],
        probabilities: Callable[[State], Answer],
    ) -> None:
        self.start, self.advance, self.probabilities = start, advance, probabilities
        # The states after the histories of the last call, from which those of the next one grow.
        self._states: dict[Transcript, State] = {}

    def answers(self, histories: Histories, symbols: Sequence[Symbol]) -> Sequence[Answer]:
        """Advance the states of shorter histories, and ask the states that are reached."""
        self._states = {history: self._state(history) for history in histories}
        return [self.probabilities(self._states[history]) for history in histories]

    def _state(self, history: Transcript) -> State:
        """Return the state after a history: one event after a known one, or from the start."""
        if history in self._states:
            return self._states[history]
        before = Transcript(history.events[:-1], history.world)
        if before in self._states:
            return self.advance(self._states[before], history.events[-1])
        return reduce(self.advance, history.events, self.start(history.world))


class AgentPredictor(Stateful):
    """An agent of this library in a world of the audit; both count actions and observations.

    >>> from bayescontrol import NaiveMixture
    >>> from bayescontrol.audit import WORLDS, Transcript, did
    >>> boxes = WORLDS["prize-or-frog"]
    >>> predictor = AgentPredictor(boxes.agent(kind=NaiveMixture), boxes)
    >>> predictor.answers([Transcript([did("left")])], boxes.observations)
    [{'frog': 0.12..., 'prize': 0.87...}]
    """

    def __init__(self, agent: Rule, world: World) -> None:
        first = AgentSystem(agent).start()  # raises an error if the agent holds modes

        def advance(state: _AgentState, event: Event) -> _AgentState:
            learner, a = state[0].copy(), state[1]
            numbered = world.number(event)
            feed(learner, numbered, a)
            return learner, None if event.kind == "saw" else numbered.symbol

        def probabilities(state: _AgentState) -> Answer:
            learner, a = state
            if a is None:
                return {world.actions[b]: p for b, p in learner.action_probabilities().items()}
            return {world.observations[o]: p for o, p in learner.predictive(a).items()}

        super().__init__(lambda _: (first, None), advance, probabilities)


class Classifier:
    """A classifier with `predict_proba` and `classes_`, as in scikit-learn.

    `encode(histories)` returns the array of features, a row for each history. Classes that cannot
    come next are dropped, and the probabilities of the others are divided by their sum.

    >>> from bayescontrol.audit import Transcript
    >>> class Model:
    ...     classes_ = ("A", "B", "end")
    ...     def predict_proba(self, features): return [[0.25, 0.25, 0.5]] * len(features)
    >>> predictor = Classifier(Model(), lambda histories: [len(h) for h in histories])
    >>> predictor.answers([Transcript()], "AB")
    [{'A': 0.5, 'B': 0.5}]
    """

    def __init__(self, model: Any, encode: Callable[[Histories], AnyArray]) -> None:
        self.model, self.encode = model, encode

    def answers(self, histories: Histories, symbols: Sequence[Symbol]) -> Sequence[Answer]:
        """Return the probabilities of the symbols that can come next."""
        classes = list(self.model.classes_)
        columns = [classes.index(symbol) if symbol in classes else -1 for symbol in symbols]
        p = np.asarray(self.model.predict_proba(self.encode(histories)), np.float64)
        p = np.where(np.array(columns) >= 0, p[:, columns], 0.0)
        with np.errstate(invalid="ignore"):  # 0 / 0 if no class can come next: refused as NaN
            rows = p / p.sum(axis=1, keepdims=True)
        return [dict(zip(symbols, row, strict=True)) for row in rows.tolist()]


def as_predictor(given: object, world: World) -> Predictor:
    """Return a predictor for one world; a mapping has one for each name of a world."""
    if isinstance(given, Mapping):
        if world.name not in given:
            raise MissingCapability(f"there is no predictor for the world {world.name!r}")
        given = given[world.name]
    require_instance(given, "the predictor")
    if hasattr(given, "answers"):
        predictor: Predictor = given
        return predictor
    function = getattr(given, "probabilities", given)
    if not callable(function):
        raise MissingCapability(
            f"{given!r} is not a predictor: it needs probabilities(history), or must be a function "
            "of the history. Wrap an agent in AgentPredictor"
        )
    return Batched(lambda histories: [function(history) for history in histories])


def predict(predictor: Predictor, histories: Histories, symbols: Sequence[Symbol]) -> FloatArray:
    """Return q[i, s] = P(symbol s | history i); raise PredictorFailed, naming a history.

    If the predictor fails for many histories at once, they are tried one by one to find the first.
    """
    try:
        return _ask(predictor, histories, symbols)
    except Exception as error:  # the code of the user may raise anything
        failure = error
    if len(histories) > 1:
        for history in histories:
            predict(predictor, [history], symbols)
    first, more = histories[0], " and others" if len(histories) > 1 else ""
    where = f"in the world {first.world!r} " if first.world else ""
    is_answer = isinstance(failure, _Invalid)
    kind = "" if is_answer else f"{type(failure).__name__}: "
    raise PredictorFailed(
        f"the predictor failed {where}after {first}{more}: {kind}{failure}"
    ) from (None if is_answer else failure)


def _ask(predictor: Predictor, histories: Histories, symbols: Sequence[Symbol]) -> FloatArray:
    """Return the probabilities of the next symbols; raise `_Invalid` if an answer is not valid."""
    answers = list(predictor.answers(histories, symbols))
    if len(answers) != len(histories):
        raise _Invalid(f"{len(answers)} answers for {len(histories)} histories")
    return np.array([_row(answer, symbols) for answer in answers])


class _Invalid(ValueError):
    """An answer is not a distribution."""


def _row(answer: Answer, symbols: Sequence[Symbol]) -> list[float]:
    """Return the probabilities of the symbols; raise `_Invalid` unless they are a distribution."""
    if not isinstance(answer, Mapping):
        raise _Invalid(f"it returned {answer!r}, expected {{symbol: probability}}")
    if unknown := [symbol for symbol in answer if symbol not in symbols]:
        raise _Invalid(
            f"{unknown[0]!r} cannot come next, expected one of {', '.join(map(repr, symbols))}"
        )
    row = [float(answer.get(symbol, 0.0)) for symbol in symbols]
    if not all(p >= 0.0 for p in row):
        raise _Invalid(f"the probabilities {dict(answer)} must be numbers from 0 to 1")
    if not abs(sum(row) - 1.0) <= TOLERANCE:
        raise _Invalid(f"the probabilities {dict(answer)} sum to {sum(row):.6g}, expected 1")
    return row

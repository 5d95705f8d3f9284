"""Convert modes of any kind to tables: visit every situation that can be reached, once.

    start    x_0, or the private states of the modes (s_1, …, s_M)
    step     for every a with P(a | m, x) > 0 and every o with P(o | m', x, a) > 0, for any
             modes m and m':  x' = T(x, a, o)

Where some modes have private state, a situation is the tuple (s_1, …, s_M), with s_m = x for
modes without one. After an o that a stateful mode holds impossible its state is `RULED_OUT`:
it makes no prediction and acts as the other modes do on average.

Situations that cannot be reached are not in the tables. An action that no mode takes in x has
no effect there: x stays, and all modes predict the first observation. Where a mode makes no
prediction and others do, it predicts an extra observation, "nothing", after which x stays.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import numpy as np

from bayescontrol import _mode_queries
from bayescontrol._arrays import ArrayLike
from bayescontrol._support.priors import TOLERANCE, checked_probabilities
from bayescontrol.beliefs.finite import finite_belief
from bayescontrol.errors import BayesControlError, InvalidTable, MissingCapability
from bayescontrol.finite.tabular import Labels, TabularMode, TabularModes
from bayescontrol.protocols import ActionProbabilities, ObservationProbabilities, Stateful
from bayescontrol.rule import ControlRule
from bayescontrol.situations import Advance, as_advance, next_situation

#: One distribution per mode, positive probabilities only; empty where a mode predicts nothing.
Distributions: TypeAlias = list[dict[Any, float]]
#: Action -> the hypotheses of all modes, and the next situation for each observation.
Steps: TypeAlias = dict[Any, tuple[Distributions, dict[Any, int]]]

#: The largest hypothesis table, in numbers of eight bytes.
CELLS: Final = 100_000_000


class TooManySituations(BayesControlError, ValueError):
    """More situations can be reached than a table should have; perhaps infinitely many.

    >>> from bayescontrol import DiscreteMode
    >>> clock = DiscreteMode(lambda t: {"wait": 1.0}, lambda t, a: {"tick": 1.0})
    >>> tabulate([clock], 0, lambda t, a, o: t + 1, limit=100)
    Traceback (most recent call last):
    bayescontrol.finite.tabulate.TooManySituations: more than limit=100 situations can be \
reached, the last one found was 100: raise the limit, let `advance` drop details that the modes do \
not use, or check the class by simulation (bayescontrol.convergence.sampled_check)
    """


def tabulate(
    modes: Any,
    situation: Any = None,
    advance: Advance | None = None,
    *,
    prior: ArrayLike | None = None,
    limit: int = 10_000,
) -> TabularModes:
    """Convert modes with exact probabilities to tables: policy, hypothesis and T(x, a, o).

    `modes` is a list of modes, one object that answers for all of them, or a `ControlRule` over
    a `FiniteBelief`; the rule brings its present situation, its `advance` and its prior. A class
    that is tabular already is returned unchanged. Actions and observations are sorted if
    possible, otherwise numbered in the order of discovery. Situations are always numbered in the
    order of discovery, the start first. The labels are the `str` of the values.

    >>> from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
    >>> def walker(name, step, pays):  # positions 0, 1, 2 on a ring, one of which pays
    ...     return DiscreteMode(lambda x: {step: 1.0}, lambda x, a: {x == pays: 1.0}, name)
    >>> agent = ControlRule(FiniteBelief([walker("up", 1, pays=2), walker("down", -1, pays=0)]),
    ...                     situation=0, advance=lambda x, a, o: (x + a) % 3)
    >>> modes = tabulate(agent)
    >>> modes
    TabularModes(2 modes, 3 situations, 2 actions, 2 observations)
    >>> modes.names, modes.labels
    (('up', 'down'), Labels(situations=('0', '1', '2'), actions=('-1', '1'), \
observations=('False', 'True')))
    """
    if isinstance(modes, ControlRule):
        if type(modes).issue is not ControlRule.issue:
            raise MissingCapability(
                f"{type(modes).__name__} conditions on its own actions, which tables cannot "
                "represent: use a ControlRule"
            )
        if situation is not None or advance is not None or prior is not None:
            raise InvalidTable("the agent brings its situation, advance and prior: leave them out")
        # A simulation, unlike tables, can check an agent with any belief.
        belief = finite_belief(modes, "tabulate (unlike bayescontrol.convergence.sampled_check)")
        return tabulate(belief.modes, modes.x, modes.advance, prior=belief.prior, limit=limit)
    if isinstance(modes, TabularModes):
        situation = modes.start if situation is None else situation
        prior = modes.prior if prior is None else prior
        if advance in (None, modes.advance):
            if situation == modes.start and np.array_equal(prior, modes.prior):
                return modes
            return TabularModes(
                modes.policy, modes.hypothesis, modes.successor,
                start=situation, names=modes.names, prior=prior, labels=modes.labels,
            )  # fmt: skip
    if situation is None and advance is None and _belong_to_one_table(modes):
        situation, advance = modes[0].modes.start, modes[0].modes.advance
    is_array = _mode_queries.is_mode_array(modes)
    queries = _ArrayDistributions(modes) if is_array else _ListDistributions(modes)
    return _explore(queries, situation, as_advance(situation, advance), prior, limit)


def _belong_to_one_table(modes: Any) -> bool:
    """Whether the modes are single modes of one tabular class, whose situations they share."""
    return (
        isinstance(modes, list | tuple)
        and bool(modes)
        and all(isinstance(mode, TabularMode) and mode.modes is modes[0].modes for mode in modes)
    )


# -- distributions of all modes -------------------------------------------------------------


class _Marker:
    """A unique value, which no mode of a user can return."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


#: The extra observation that a mode without prediction predicts.
NOTHING: Final = _Marker("nothing")
#: The private state of a mode after an o to which the mode gave probability 0.
RULED_OUT: Final = _Marker("ruled out")


class _ListDistributions:
    """P(a | m, x) and P(o | m, x, a) of modes in a list, queried one by one."""

    def __init__(self, modes: Any) -> None:
        self.modes = _mode_queries.as_mode_list(modes)
        if not self.modes:
            raise InvalidTable("the list of modes is empty: give at least one mode")
        self.names = [_mode_queries.name_of(self.modes, m) for m in range(len(self.modes))]
        for mode, name in zip(self.modes, self.names, strict=True):
            _mode_queries.require_instance(mode, f"mode {name}")
            for capability in (ActionProbabilities, ObservationProbabilities):
                _mode_queries.require(mode, capability, f"mode {name}")
        self._stateful = [_mode_queries.has(mode, Stateful) for mode in self.modes]

    def start(self, x: Any) -> Any:
        """Return the first situation: x, or the tuple of private states if modes have any."""
        if not any(self._stateful):
            return x
        return tuple(_mode_queries.first_state(mode, x) for mode in self.modes)

    def policies(self, x: Any) -> Distributions:
        """P(a | m, x) for every m."""
        states = self._states(x)
        policies = {
            m: _distribution(self.modes[m].action_probabilities(s), self.names[m], "policy", s)
            for m, s in enumerate(states)
            if s is not RULED_OUT
        }
        # Modes that are ruled out act as the other modes do on average. At least one mode is not
        # ruled out, since an o that all modes rule out is never followed.
        mean: dict[Any, float] = {}
        for policy in policies.values() if len(policies) < len(states) else ():
            for a, p in policy.items():
                mean[a] = mean.get(a, 0.0) + p / len(policies)
        return [policies.get(m, mean) for m in range(len(states))]

    def hypotheses(self, x: Any, a: Any) -> Distributions:
        """P(o | m, x, a) for every m; empty for a mode without prediction."""
        return [self._hypothesis(m, s, a) for m, s in enumerate(self._states(x))]

    def _hypothesis(self, m: int, s: Any, a: Any) -> dict[Any, float]:
        """Return P(o | m, s, a); raise InvalidTable if it contradicts the mode's likelihood."""
        if s is RULED_OUT:
            return {}
        mode, name = self.modes[m], self.names[m]
        hypothesis = _distribution(mode.observation_probabilities(s, a), name, "hypothesis", s)
        for o, p in hypothesis.items():
            likelihood = math.exp(_mode_queries.log_likelihood(mode, s, a, o))
            if not abs(likelihood - p) <= TOLERANCE:
                raise InvalidTable(
                    f"mode {name} contradicts itself in situation {s!r} after action {a!r}: its "
                    f"observation_probabilities give {o!r} {p:.6g}, its likelihood is "
                    f"{likelihood:.6g}"
                )
        return hypothesis

    def advance(self, x: Any, a: Any, o: Any, hypotheses: Distributions, advance: Advance) -> Any:
        """Return T(x, a, o); `hypotheses`, P(o | m, x, a) of all m, show which rule o out."""
        if not any(self._stateful):
            return next_situation(advance, x, a, o)
        shared = [s for s, stateful in zip(x, self._stateful, strict=True) if not stateful]
        next_shared = next_situation(advance, shared[0], a, o) if shared else None

        def next_state(m: int) -> Any:
            if not self._stateful[m]:
                return next_shared
            if x[m] is RULED_OUT or o not in hypotheses[m]:
                return RULED_OUT
            return _mode_queries.state_transition(self.modes[m], x[m], advance)(x[m], a, o)

        return tuple(map(next_state, range(len(self.modes))))

    def _states(self, x: Any) -> Sequence[Any]:
        """Return the state of every mode in situation x."""
        return cast("Sequence[Any]", x if any(self._stateful) else [x] * len(self.modes))


class _ArrayDistributions:
    """P(a | m, x) and P(o | m, x, a) from one object that answers for all modes with arrays."""

    def __init__(self, modes: Any) -> None:
        for capability in (ActionProbabilities, ObservationProbabilities):
            _mode_queries.require(modes, capability, f"the array of modes ({modes!r})")
        self.modes = modes
        self.names = [_mode_queries.name_of(modes, m) for m in range(len(modes))]

    def start(self, x: Any) -> Any:
        """Return x: the modes have no private states."""
        return x

    def policies(self, x: Any) -> Distributions:
        """P(a | m, x) for every m."""
        return self._by_mode(self.modes.action_probabilities(x), "policy", x)

    def hypotheses(self, x: Any, a: Any) -> Distributions:
        """P(o | m, x, a) for every m."""
        return self._by_mode(self.modes.observation_probabilities(x, a), "hypothesis", x)

    def advance(self, x: Any, a: Any, o: Any, hypotheses: Distributions, advance: Advance) -> Any:
        """T(x, a, o)."""
        return next_situation(advance, x, a, o)

    def _by_mode(self, answer: Mapping[Any, Any], part: str, x: Any) -> Distributions:
        """Convert arrays over modes, one per action or observation, to distributions."""
        arrays = {k: np.broadcast_to(p, len(self.names)) for k, p in answer.items()}
        return [
            _distribution({k: p[m] for k, p in arrays.items()}, name, part, x)
            for m, name in enumerate(self.names)
        ]


def _distribution(answer: Any, name: str, part: str, x: Any) -> dict[Any, float]:
    """Check a mode's probabilities and return the positive ones.

    A hypothesis may be empty, a policy may not.
    """
    may_be_empty = part == "hypothesis"
    checked = checked_probabilities(answer, part, f"mode {name}", x, allow_empty=may_be_empty)
    return {k: float(p) for k, p in checked.items() if p != 0.0}


# -- the tables --------------------------------------------------------------------------------


Queries: TypeAlias = _ListDistributions | _ArrayDistributions


def _explore(
    queries: Queries, situation: Any, advance: Advance, prior: ArrayLike | None, limit: int
) -> TabularModes:
    """Visit every situation that can be reached, in the order of discovery, and fill the tables."""
    start = queries.start(situation)
    numbers: dict[Hashable, int] = {_hashable(start): 0}
    policies: list[Distributions] = []
    steps: list[Steps] = []
    situations = [start]
    for x in situations:  # the list grows during the loop
        policies.append(queries.policies(x))
        steps_in_x: Steps = {}
        for a in dict.fromkeys(a for policy in policies[-1] for a in policy):
            hypotheses = queries.hypotheses(x, a)
            after: dict[Any, int] = {}
            for o in dict.fromkeys(o for hypothesis in hypotheses for o in hypothesis):
                y = queries.advance(x, a, o, hypotheses, advance)
                after[o] = numbers.setdefault(_hashable(y), len(numbers))
                if after[o] == len(situations):  # y is new
                    if after[o] >= limit:
                        raise _too_many(f"more than limit={limit} situations can be reached", y)
                    situations.append(y)
            steps_in_x[a] = hypotheses, after
        steps.append(steps_in_x)
    return _fill_tables(queries.names, situations, policies, steps, prior)


def _fill_tables(
    names: Sequence[str],
    situations: Sequence[Any],
    policies: Sequence[Distributions],
    steps: Sequence[Steps],
    prior: ArrayLike | None,
) -> TabularModes:
    """Build the tables from the distributions and the steps that were found in each situation."""
    actions = _sorted_if_possible(a for steps_in_x in steps for a in steps_in_x)
    found = [step for steps_in_x in steps for step in steps_in_x.values()]
    observations = _sorted_if_possible(o for _, after in found for o in after)
    if any(not hypothesis for hypotheses, _ in found for hypothesis in hypotheses):
        observations.append(NOTHING)
    shape = len(names), len(situations), len(actions), len(observations)
    if np.prod(shape, dtype=float) > CELLS:
        sizes = " × ".join(map(str, shape))
        raise _too_many(f"a table of {sizes} probabilities is too large", situations[-1])
    policy, hypothesis = np.zeros(shape[:3]), np.zeros(shape)
    # By default the situation stays: successor[x, a, o] = x.
    successor = np.repeat(np.arange(shape[1]), shape[2] * shape[3]).reshape(shape[1:])
    action_numbers = {a: i for i, a in enumerate(actions)}
    observation_numbers = {o: i for i, o in enumerate(observations)}
    for x, (policies_in_x, steps_in_x) in enumerate(zip(policies, steps, strict=True)):
        for m, distribution in enumerate(policies_in_x):
            for a, p in distribution.items():
                policy[m, x, action_numbers[a]] = p
        for a, i in action_numbers.items():
            # After an action that no mode takes in x, all modes predict the first observation.
            hypotheses, after = steps_in_x.get(a, ([{observations[0]: 1.0}] * len(names), {}))
            for m, distribution in enumerate(hypotheses):
                for o, p in (distribution or {NOTHING: 1.0}).items():
                    hypothesis[m, x, i, observation_numbers[o]] = p
            for o, y in after.items():
                successor[x, i, observation_numbers[o]] = y

    def texts(values: Sequence[Any]) -> tuple[str, ...]:
        return tuple("always" if value is None else str(value) for value in values)

    labels = Labels(texts(situations), texts(actions), texts(observations))
    return TabularModes(policy, hypothesis, successor, names=names, prior=prior, labels=labels)


def _hashable(x: Any) -> Any:
    """Return x if it is hashable, else raise InvalidTable."""
    try:
        hash(x)
    except TypeError:
        raise InvalidTable(
            f"situation {x!r} is not hashable: use numbers, text or tuples, also as private "
            "states; or simulate the modes, with convergence.sampled_check"
        ) from None
    return x


def _sorted_if_possible(values: Iterable[Any]) -> list[Any]:
    """Return the distinct values, sorted if they can be compared."""
    distinct = list(dict.fromkeys(values))
    try:
        return sorted(distinct)
    except (TypeError, ValueError):
        return distinct


def _too_many(what: str, last: Any) -> TooManySituations:
    """Return the error; `what` says which limit was exceeded, `last` is the last situation."""
    return TooManySituations(
        f"{what}, the last one found was {last!r}: raise the limit, let `advance` drop details "
        "that the modes do not use, or check the class by simulation "
        "(bayescontrol.convergence.sampled_check)"
    )

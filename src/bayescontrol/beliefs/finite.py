"""The exact posterior over finitely many operation modes.

    P(m | âo_≤t) = P(o_t | m, x, a_t) P(m | âo_<t) / Σ_m' P(o_t | m', x, a_t) P(m' | âo_<t)

The belief queries hypotheses and never policies, so it cannot condition on the agent's own
actions: actions are interventions.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

import numpy as np

from bayescontrol import _mode_queries, kernels
from bayescontrol._arrays import (
    AnyArray,
    ArrayLike,
    Arrays,
    FloatArray,
    IntArray,
    copy_if_array,
    require_between,
)
from bayescontrol._support.display import html_table
from bayescontrol._support.names import Among, Prices
from bayescontrol._support.priors import as_prior
from bayescontrol._support.saved import Array, Copied, Field, Number, Part, damaged, declare
from bayescontrol._support.temperature import Tempered
from bayescontrol._support.values import distinct
from bayescontrol.beliefs.totals import observe_each
from bayescontrol.beliefs.unresolved import REFUTED, policy_distances, prediction_losses
from bayescontrol.beliefs.weights import LN2, OnImpossible, Weights
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    MissingCapability,
    counted,
)
from bayescontrol.protocols import (
    MISSING,
    ActionProbabilities,
    LogModeArray,
    ModeArray,
    ObservationProbabilities,
    PosteriorMeasure,
    Probabilities,
    Summary,
    Unresolved,
)
from bayescontrol.seeding import StreamLike, require_stream

M = TypeVar("M")
K = TypeVar("K")

#: How many situations `unresolved` compares.
_RECENT = 50
Queries: TypeAlias = _mode_queries.ModeListQueries[M] | _mode_queries.ModeArrayQueries[M]
#: A list of modes, or one object that answers for all of them.
Modes: TypeAlias = Sequence[M] | ModeArray[M, Any, Any, Any] | LogModeArray[M, Any, Any, Any]


def _require_same_names(names: AnyArray, other_names: AnyArray, source: str) -> None:
    """Raise IncompatibleState unless both beliefs have the same mode names in the same order.

    `names` are those of this belief; `source` says where the other names come from.

    >>> _require_same_names(np.array(["a", "b"]), np.array(["a", "c"]), "the saved state")
    Traceback (most recent call last):
    bayescontrol.errors.IncompatibleState: mode 1 is b in this belief, but c in the saved state
    """
    if names.shape != other_names.shape:
        raise IncompatibleState(
            f"this belief has {names.size} modes, but {source} has {other_names.size}"
        )
    for m, (mine, theirs) in enumerate(zip(names, other_names, strict=True)):
        if mine != theirs:
            raise IncompatibleState(f"mode {m} is {mine} in this belief, but {theirs} in {source}")


class _ModeNames(Field):
    """The names of the modes, which must be those of the saved state."""

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the names."""
        arrays[self.name] = self.value(owner)

    def read(self, owner: Any, arrays: Arrays) -> None:
        """Raise IncompatibleState if the names differ."""
        _require_same_names(self.value(owner), np.asarray(arrays[self.name]), "the saved state")


class FiniteBelief(Tempered, Generic[M]):
    """P(m | âo_<t) over a list of modes, or over one object that answers for many.

    `prior` is P(m), uniform by default. `on_impossible` says what to do with an observation
    that every mode rules out: "raise", "skip" or `Floor(epsilon)`.

    `modes` are objects with `likelihood(x, a, o)` or `log_likelihood(x, a, o)`, and with `act(x,
    rng)` if an agent draws them; or one object that answers for all of them.

    >>> from bayescontrol import DiscreteMode
    >>> fair = DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}, "fair")
    >>> bent = DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.9, "T": 0.1}, "bent")
    >>> belief = FiniteBelief([fair, bent], prior=[0.9, 0.1])
    >>> for o in "HHTH":
    ...     belief.observe(None, "toss", o)
    >>> belief
    FiniteBelief(2 modes after 4 observations: fair 0.8853, bent 0.1147)
    >>> belief.predictive(None, "toss")
    {'H': 0.545..., 'T': 0.454...}
    """

    format_name: ClassVar[str] = "FiniteBelief"
    #: `sample` changes nothing but the saved array "drawn". Subclasses declare it again.
    stateless_draws: ClassVar[bool] = True

    posterior_measure: ClassVar[PosteriorMeasure | None] = None
    #: Modes are compared by name; those without a name by their class and their public numbers,
    #: texts, tuples and arrays. Functions cannot be compared.
    saved_fields = declare(
        _ModeNames("names", lambda belief: belief._hypotheses.names()),
        Part("", "_weights"),
        Array("prior", "_prior"),
        Number("count", least=0),
        Number("drawn", least=-1),
        Number("log_base", "_log_base"),
        Part("", "_hypotheses", in_place=True),
        Copied("recent"),
    )

    def __init__(
        self,
        modes: Modes[M],
        prior: ArrayLike | None = None,
        *,
        on_impossible: OnImpossible = "raise",
    ) -> None:
        self._hypotheses: Queries[M] = _mode_queries.queries_for(modes)
        self._prior = as_prior(prior, len(self._hypotheses))
        self._weights = Weights(self._prior, on_impossible)
        #: The number of observations, including skipped ones.
        self.count = 0
        #: The index of the mode drawn last; -1 before the first draw, or if the mode was retired.
        self.drawn = -1
        #: The situations of the latest observations, for `unresolved`. They are not saved, and
        #: empty after a compiled loop.
        self.recent: deque[Any] = deque(maxlen=_RECENT)
        # ln Σ v without the observations; changes when modes are added or retired.
        self._log_base = self._weights.log_total()

    # -- the Belief protocol ------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """P(m | âo_≤t) ∝ P(o | m, x, a) P(m | âo_<t). An error leaves the belief unchanged."""
        hypotheses = self._hypotheses
        table = hypotheses.table
        if table is not None and self._weights.condition_on_entry(table, x, a, o):
            self.recent.append(copy_if_array(x))
            self.count += 1
            return
        evidence = hypotheses.likelihoods(x, a, o)
        is_stateful, before = bool(hypotheses.stateful_modes), self._weights
        if is_stateful and not getattr(hypotheses.modes, "advances_with_likelihoods", False):
            before = before.copy()  # `_advance_states` may fail
        try:
            self._weights.condition(evidence, hypotheses.log)
        except BadEvidence as error:
            where = f"observation {o!r} after action {a!r} in situation {x!r}"
            if isinstance(error, ImpossibleObservation):
                where += (
                    ". Widen the class of modes, or choose on_impossible='skip' or Floor(epsilon)"
                )
            raise self._explain(error, where) from None
        # Private states advance last, so that a mode need not handle an o that is impossible.
        if is_stateful:
            try:
                self._advance_states(x, a, o)
            except BaseException:
                self._weights = before
                raise
        self.recent.append(copy_if_array(x))
        self.count += 1

    def skip(self, x: Any, a: Any) -> None:
        """Advance the private states by a step without an observation. No evidence, no count."""
        self._advance_states(x, a, MISSING)

    def _advance_states(self, x: Any, a: Any, o: Any) -> None:
        """Advance the private states. An error changes nothing."""
        self._hypotheses.states[:] = self._hypotheses.advanced_states(x, a, o)

    def sample(self, rng: StreamLike) -> M:
        """Draw m ~ P(m | âo_<t)^(1/T), T the temperature. No other method draws random numbers."""
        self.drawn = m = self._weights.draw(rng, self._temperature)
        return self._hypotheses.bound[m]

    def select(self, m: int) -> M:
        """Return mode m as if it had been drawn, for agents that choose a mode themselves."""
        self.drawn = m
        return self._hypotheses.bound[m]

    @property
    def observe_totals(self) -> Any:
        """The method of `AggregatedRewards` if the modes have `pays_zero_or_one`, else None.

        It learns rewards of 0 and 1, at most 10,000, one by one. An error changes nothing.
        """
        pays_zero_or_one = getattr(self.modes, "pays_zero_or_one", False)
        return partial(observe_each, self) if pays_zero_or_one else None

    @property
    def choosing(self) -> Any:
        """The method of `Choosing` if the modes have `choosing_among`, else None.

        >>> from bayescontrol import JointBandit
        >>> belief = JointBandit([[0.9, 0.1, 0.5], [0.1, 0.3, 0.5]]).agent().belief
        >>> with belief.choosing(among=[1, 2], prices={2: 0.3}):
        ...     [belief.select(m).action_probabilities(0) for m in (0, 1)]
        [{2: 1.0}, {1: 1.0}]
        """
        return self._choosing if hasattr(self.modes, "choosing_among") else None

    @contextmanager
    def _choosing(self, among: Among = None, prices: Prices = None) -> Iterator[None]:
        """In the block, the modes choose among these actions only."""
        queries, modes = self._hypotheses, cast("Any", self.modes)
        queries.names()  # cache the description of these modes
        acting: Any = copy(queries)
        acting.modes = acting.bound = modes.choosing_among(among, prices)
        self._hypotheses = acting
        try:
            yield
        finally:
            self._hypotheses = queries

    # -- queries -------------------------------------------------------------------------

    def posterior(self) -> FloatArray:
        """P(m | âo_<t) for all m, as a new array."""
        return self._weights.posterior()

    def offers(self, capability: type) -> bool:
        """Whether all modes have the capability."""
        return self._hypotheses.supports(capability)

    def mix(
        self, capability: type, query: Callable[[Any], Mapping[K, float | FloatArray]]
    ) -> dict[K, float]:
        """Return Σ_m query(m) P(m | âo_<t) by key; raise MissingCapability if modes lack it.

        `query` maps a mode to numbers by key. One object that answers for all modes is queried
        once and returns arrays. Actions are averaged over the modes as they are drawn: with
        P(m | âo_<t)^(1/T), T the temperature.
        """
        acts = capability is ActionProbabilities
        v = self._weights.tempered(self._temperature) if acts else self.posterior()
        if isinstance(self._hypotheses, _mode_queries.ModeArrayQueries):
            answers = self._hypotheses.query_each(capability, query)
            return {k: float(np.dot(v, np.broadcast_to(p, v.shape))) for k, p in answers.items()}
        mixed: dict[K, float] = {}
        for v_m, answer in zip(v, self._hypotheses.query_each(capability, query), strict=True):
            if v_m > 0.0:
                for k, p in answer.items():
                    mixed[k] = mixed.get(k, 0.0) + float(v_m) * p
        return mixed

    def query_each(self, capability: type, query: Callable[[Any], Any]) -> Any:
        """Return query(m) of every mode, or of the object that answers for all of them."""
        return self._hypotheses.query_each(capability, query)

    def unresolved(self, x: Any, *, nats: float = 1e-3, distance: float = 0.1) -> Unresolved:
        """Return the modes that predict as well as the belief, but would act otherwise.

        See `beliefs.unresolved`. The latest situations are those of the last observations outside
        compiled loops, and x.

        >>> from bayescontrol import TabularModes
        >>> boxes = TabularModes(policy=[[[1, 0]], [[0, 1]]],
        ...                      hypothesis=[[[[1, 0], [1, 0]]], [[[1, 0], [0, 1]]]])
        >>> belief = boxes.agent().belief
        >>> for _ in range(5):
        ...     belief.observe(0, 0, 0)                    # what action 0 gives is the same in both
        >>> belief.unresolved(0).share
        1.0
        """
        require_between("nats", nats, 0.0, math.inf)
        require_between("distance", distance, 0.0, 1.0)
        found, weights = self._unresolved(x, nats, distance)
        order = found[np.argsort(-weights[found], kind="stable")]
        modes = tuple(self._hypotheses.bound[int(m)] for m in order)
        return Unresolved(float(weights[found].sum()), modes)

    def draw_unresolved(self, x: Any, rng: StreamLike) -> M | None:
        """Draw an unresolved mode from the prior and hold it; None if all modes are resolved."""
        found, weights = self._unresolved(x, 1e-3, 0.1)
        if not found.size:
            return None
        total = np.cumsum(weights[found])
        u = require_stream(rng).random() * total[-1]
        return self.select(int(found[np.searchsorted(total, u, "right").clip(0, found.size - 1)]))

    def _unresolved(self, x: Any, nats: float, distance: float) -> tuple[IntArray, FloatArray]:
        """Return the numbers of the unresolved modes, and the prior of all modes."""
        recent = [x] if self._hypotheses.stateful_modes else [*self.recent, x]
        d = prediction_losses(self._prior, self.posterior(), self.count)
        D = policy_distances(self, recent)
        largest = min(nats, REFUTED / max(self.count, 1))
        return np.flatnonzero((d <= largest) & (distance <= D)), self._prior

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """P(o | âo_<t â_t) = Σ_m P(o | m, x, a) P(m | âo_<t), exactly, for every o."""
        return self.mix(ObservationProbabilities, lambda m: m.observation_probabilities(x, a))

    def log_likelihoods(self, x: Any, a: Any, o: Any) -> FloatArray:
        """ln P(o | m, x, a) for all m, as a new array; -∞ where the mode rules o out.

        >>> from bayescontrol import TabularModes
        >>> boxes = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.5, 0.5]]]])
        >>> boxes.agent().belief.log_likelihoods(0, 0, 1)
        array([      -inf, -0.69314718])
        """
        answers = self._hypotheses.likelihoods(x, a, o)
        if self._hypotheses.log:
            return answers.copy()
        bad = np.flatnonzero(~((answers >= 0.0) & (answers < np.inf)))
        if bad.size:
            m = int(bad[0])
            raise BadEvidence(
                f"mode {m} ({self.name(m)}) gives likelihood {answers[m]}: it must be a finite "
                f"number, not negative; observation {o!r} after action {a!r} in situation {x!r}"
            )
        out = np.empty(len(answers))
        kernels.finite.log_likelihoods(answers, out)
        return out

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t) = ln Σ_m P(o | m, x, a) P(m | âo_<t). It does not learn.

        It is -∞ if every mode rules o out, and a density if the modes give densities.

        >>> from bayescontrol import TabularModes
        >>> boxes = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.5, 0.5]]]])
        >>> round(boxes.agent().belief.log_predictive(0, 0, 1), 6)  # ln 1/4
        -1.386294
        """
        evidence = self._hypotheses.likelihoods(x, a, o)
        return self._weights.log_predictive(evidence, self._hypotheses.log)

    def observed_part(self, o: Any) -> Any:
        """Return the part of o that the modes predict: all of it, unless modes say otherwise."""
        return _mode_queries.observed_part(self._hypotheses.modes[0], o)

    def reweigh(
        self, capability: type, query: Callable[[Any], float | FloatArray], what: str
    ) -> None:
        """P(m) ← P(m) query(m) / Σ P query: condition on evidence that is not an observation.

        The control rule calls this for the actions of *another* agent. `what` names the evidence
        in errors.
        """
        answers = np.asarray(self._hypotheses.query_each(capability, query), np.float64)
        before = self._weights.copy()
        try:
            self._weights.condition(np.ascontiguousarray(np.broadcast_to(answers, (len(self),))))
        except BadEvidence as error:
            raise self._explain(error, what) from None
        self._log_base += self._weights.log_total(before)

    def code_length(self) -> float:
        """-log2 P(o_≤t | â_≤t): the length in bits of an ideal code for the observations."""
        return (self._log_base - self._weights.log_total()) / LN2 + 0.0

    @property
    def prior(self) -> FloatArray:
        """P(m), a copy."""
        return self._prior.copy()

    @property
    def modes(self) -> Modes[M]:
        """The modes as they were given."""
        modes: Modes[M] = self._hypotheses.modes
        return modes

    @property
    def impossible(self) -> int:
        """How many observations were skipped or raised to the floor."""
        return self._weights.impossible

    @property
    def on_impossible(self) -> OnImpossible:
        """How an observation that every mode rules out is handled."""
        return self._weights.on_impossible

    @property
    def accepts_late_feedback(self) -> bool:
        """Whether observations may come in any order: no mode has a private state."""
        return not self._hypotheses.stateful_modes

    def last(self) -> M | None:
        """Return the mode drawn last, with its private state; None if it was retired since."""
        return None if self.drawn < 0 else self._hypotheses.bound[self.drawn]

    def name(self, m: int) -> str:
        """Return the `name` of mode m, or "m" and the index if the mode has no name."""
        return _mode_queries.name_of(self._hypotheses.modes, m)

    def distinct_names(self) -> list[str]:
        """Return a different name for each mode: modes with the same name get their number too.

        >>> class Coin:
        ...     name = "coin"
        ...     def likelihood(self, x, a, o): return 0.5
        >>> FiniteBelief([Coin(), Coin()]).distinct_names()
        ['coin (m0)', 'coin (m1)']
        """
        names = _mode_queries.names_of(self.modes)
        return distinct(names, [f"{name} (m{m})" for m, name in enumerate(names)])

    def posterior_summary(self) -> Summary:
        """Return P(m | âo_<t) of every mode, by name."""
        pairs = zip(self.distinct_names(), self.posterior().tolist(), strict=True)
        return {name: {"probability": p} for name, p in pairs}

    def __len__(self) -> int:
        """The number of modes."""
        return len(self._hypotheses)

    # -- for compiled loops ----------------------------------------------------------------

    def weight_arrays(self) -> "kernels.finite.Weights":
        """The arrays that `kernels.finite` updates in place."""
        return self._weights.arrays()

    def fast_forward(self, observed: int, drawn: int) -> None:
        """Synchronise with a finished compiled loop over `weight_arrays`."""
        self.count += observed
        self.drawn = drawn
        self.recent.clear()

    # -- adding and retiring modes ---------------------------------------------------------

    def add(self, mode: M, mass: float, *, state: Any = _mode_queries.NOT_GIVEN) -> int:
        """Add a mode with P(m | âo_<t) = mass and return its index; scale the others by 1 - mass.

        The mode is treated as if it had predicted the past exactly as the mixture did. The belief
        does not store the past: a mode with private state that is added after observations needs
        `state`: the result of its `advance` over the past, or `mode.start()` to start it now.

        >>> class Coin:
        ...     def __init__(self, p): self.p = p
        ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
        >>> belief = FiniteBelief([Coin(0.5)])
        >>> belief.add(Coin(0.9), mass=0.2), belief.posterior()
        (1, array([0.8, 0.2]))
        """
        require_between("mass", mass, 0.0, 1.0, ends="()", error=InvalidPrior)
        self._hypotheses.add(mode, state, self.count)
        before = self._weights.copy()
        self._weights.append(mass)
        self._log_base += self._weights.log_total(before)
        self._prior = np.append(self._prior * (1.0 - mass), mass)
        return len(self) - 1

    def retire(self, mode: int | str) -> float:
        """Set P(m | ·) to 0 for good and return its previous value. Indices do not change.

        `mode` is an index or a name. An agent that holds the mode draws another one at its next
        action, whatever its schedule.

        >>> class Coin:
        ...     def __init__(self, p): self.p = p
        ...     def likelihood(self, x, a, o): return self.p if o else 1 - self.p
        >>> belief = FiniteBelief([Coin(0.5), Coin(0.9)])
        >>> belief.retire(1), belief.posterior()
        (0.5, array([1., 0.]))
        """
        m = _mode_queries.find_mode(mode, self.modes)
        mass = float(self.posterior()[m])
        before = self._weights.copy()
        self._weights.remove(m)
        self._log_base += self._weights.log_total(before)
        self._prior[m] = 0.0
        self._prior /= self._prior.sum()
        if m == self.drawn:
            self.drawn = -1
        return mass

    def is_retired(self, mode: M) -> bool:
        """Whether the mode drawn last has been retired."""
        return self.drawn < 0

    # -- saving and merging -------------------------------------------------------------------

    def _check_state(self, new: SimpleNamespace) -> None:
        new._prior = as_prior(new._prior, len(self))
        if new.drawn >= len(self):
            raise damaged(f"mode {new.drawn} was drawn, but there are {len(self)} modes")

    def _after_load(self) -> None:
        """Forget the situations of the observations before."""
        self.recent.clear()

    def merge(self, other: "FiniteBelief[M]") -> None:
        """Add the evidence of `other`; the prior counts once: P(m) Π P(o|m,·) Π P(o'|m,·)."""
        if not isinstance(other, FiniteBelief):
            raise IncompatibleState(f"{other!r} is not a FiniteBelief and cannot be merged")
        names, other_names = self._hypotheses.names(), other._hypotheses.names()
        _require_same_names(names, other_names, "the other belief")
        if self._prior.tobytes() != other._prior.tobytes():
            raise IncompatibleState(
                f"cannot merge {other!r}: its prior is {other._prior}, that of this belief is "
                f"{self._prior}; create both with the same prior"
            )
        if self._hypotheses.stateful_modes or other._hypotheses.stateful_modes:
            raise IncompatibleState(
                "modes with private state depend on the order of the observations and cannot be "
                "merged: give all observations to one belief, in order"
            )
        self._weights.merge(other._weights, self._prior)
        self._log_base += other._log_base
        self.count += other.count

    # -- display ---------------------------------------------------------------------------

    def __repr__(self) -> str:
        leaders = ", ".join(f"{name} {v:.4g}" for name, v in self._most_probable(4))
        more = ", …" if len(self) > 4 else ""
        return f"{type(self).__name__}({self._size()}: {leaders}{more})"

    def _repr_html_(self) -> str:
        more = ", the 12 most probable" if len(self) > 12 else ""
        rows = self._most_probable(12)
        return html_table(f"{self._size()}{more}", ["mode", "P(m | âo)"], rows)

    def _most_probable(self, n: int) -> list[tuple[str, float]]:
        """Return the names and probabilities of the n most probable modes."""
        v = self.posterior()
        return [(self.name(int(m)), float(v[m])) for m in np.argsort(-v, kind="stable")[:n]]

    def _size(self) -> str:
        return f"{counted(len(self), 'mode')} after {counted(self.count, 'observation')}"

    def _explain(self, error: BadEvidence, where: str) -> BadEvidence:
        """Return the error with the name of the mode and with `where` it occurred."""
        text, m = str(error), error.mode
        if m is not None:
            text = text.replace(f"mode {m} ", f"mode {m} ({self.name(m)}) ")
        error.args = (f"{text}; {where}",)
        return error


def finite_belief(agent: Any, what: str) -> FiniteBelief[Any]:
    """Return the agent's `FiniteBelief`; raise MissingCapability, naming `what`, if it has none."""
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, FiniteBelief):
        found = "no belief" if belief is None else f"the belief {belief!r}"
        raise MissingCapability(
            f"{what} needs finitely many modes, but the agent has {found}: use a FiniteBelief, for "
            "example over a grid of parameters"
        )
    return belief

"""Finite classes as tables: finitely many modes, situations, actions and observations.

    policy[m, x, a] = P(a | m, x)     hypothesis[m, x, a, o] = P(o | m, x, a)
    successor[x, a, o] = T(x, a, o)

Every finite I/O process can be written in this form. Its quantities can be computed exactly, one
object answers for all modes, and the interaction runs in a compiled loop.

`ModeClass` is what finite classes have in common: numbered modes, their names, and the agent.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, ClassVar, Generic, NamedTuple, Self, cast

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import AnyArray, ArrayLike, FloatArray, IntArray
from bayescontrol._compiled import learner
from bayescontrol._mode_queries import find_mode
from bayescontrol._support.description import ModelKind, SettingDoc
from bayescontrol._support.names import Among, Names, Prices, eligible_places, prices_of
from bayescontrol._support.priors import as_prior, probability_table
from bayescontrol._support.temperature import with_temperature
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import (
    BadEvidence,
    InvalidTable,
    MissingCapability,
    UnknownMode,
    counted,
)
from bayescontrol.record import Record
from bayescontrol.rule import A, ControlRule, M, O, X
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import SeedLike, Stream, StreamLike, as_stream, require_stream, state_of
from bayescontrol.systems import Situated


class ModeClass(Generic[M, X, A, O]):
    """A class of modes, numbered from 0, in one object that answers queries for all of them."""

    #: The class of a mode, called with this object and the number of the mode.
    mode_type: type[Any]
    #: The situation before the first step.
    start: X
    #: P(m), the default prior of agents; None for a uniform one.
    prior: FloatArray | None = None
    advance: Any

    def __init__(self, size: int, names: Sequence[str] | None = None) -> None:
        if names is not None and len(names) != size:
            raise InvalidTable(f"{len(names)} names for {size} modes: give one name per mode")
        self._size = size
        self.names = tuple(names) if names is not None else None
        self._modes: dict[int, M] = {}

    def __len__(self) -> int:
        """The number of modes."""
        return self._size

    def __getitem__(self, m: int) -> M:
        """Mode m."""
        mode = self._modes.get(m)
        if mode is None:
            if not 0 <= m < self._size:
                raise UnknownMode(f"no mode {m}: the modes are 0 … {self._size - 1}")
            mode = self._modes[m] = self.mode_type(self, m)
        return mode

    def __iter__(self) -> Iterator[M]:
        """Iterate over the modes."""
        return (self[m] for m in range(self._size))

    def agent(
        self,
        prior: ArrayLike | None = None,
        *,
        kind: type[ControlRule[Any, Any, Any, Any]] = ControlRule,
        schedule: Schedule = every_step,
        temperature: float = 1.0,
    ) -> ControlRule[M, X, A, O]:
        """Return the control rule over this class, by default with the prior of the class.

        `kind` may be a subclass such as `NaiveMixture`. With a `temperature` T, mode m is drawn
        with probability ∝ P(m | âo_<t)^(1/T).
        """
        belief = FiniteBelief[M](cast("Any", self), self.prior if prior is None else prior)
        belief = with_temperature(belief, temperature)
        return kind(belief, copy(self.start), self.advance, schedule)

    def fits_rule(self, agent: Any) -> bool:
        """Whether the agent is the plain control rule over this class, which loops require."""
        return (
            type(learner(agent)) is FiniteBelief
            and agent.belief.modes is self
            and agent.belief.on_impossible == "raise"
            and agent.belief.temperature == 1.0
            and agent.schedule is every_step
            and agent.advance == self.advance
        )


class ClassMode:
    """One mode of a class: mode m of `modes`."""

    __slots__ = ("m", "modes")

    def __init__(self, modes: Any, m: int) -> None:
        self.modes, self.m = modes, m

    @property
    def name(self) -> str:
        """The name of the mode, or an empty text if the class has no names."""
        return str(self.modes.names[self.m]) if self.modes.names else ""

    def likelihood(self, x: Any, a: Any, o: Any) -> float:
        """P(o | m, x, a)."""
        return float(self.modes.likelihoods(x, a, o)[self.m])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.m}{f', {self.name!r}' if self.name else ''})"


def finish_loop(
    agent: Any, learned: int, drawn_in: Any, x: Any, columns: "kernels.tabular.Columns"
) -> Record:
    """Synchronise an agent with a compiled loop that learned that many steps; return the record.

    If the loop rejected an observation, it has acted once more; `observe` raises the error.
    """
    drawn, actions, observations = columns
    acted = min(learned + 1, len(actions))
    if acted:
        agent.belief.fast_forward(learned, int(drawn[acted - 1]))
        agent.fast_forward(acted, drawn_in, x)
    if learned < len(actions):
        agent.observe(actions[learned].item(), observations[learned].item())
    return Record(actions, observations)


class Labels(NamedTuple):
    """Names of the situations, actions and observations of a class, for display."""

    situations: tuple[str, ...]
    actions: tuple[str, ...]
    observations: tuple[str, ...]


#: What the axes of a hypothesis stand for; a policy has the first three.
_AXES = ("mode", "situation", "action", "observation")


class TabularMode(ClassMode):
    """One mode of a tabular class.

    >>> mode = random_modes(2, seed=0)[1]
    >>> round(sum(mode.action_probabilities(0).values()), 12)
    1.0
    """

    __slots__ = ()

    def act(self, x: int, rng: StreamLike) -> int:
        """Draw a ~ P(a | m, x)."""
        p = self.modes.policy[self.m, x]
        a = kernels.random.categorical(state_of(rng), p)
        return a if a >= 0 else require_stream(rng).categorical(p)  # raises the error

    def action_probabilities(self, x: int) -> dict[int, float]:
        """P(a | m, x), without zeros."""
        return {a: float(p) for a, p in enumerate(self.modes.policy[self.m, x]) if p > 0.0}

    def observation_probabilities(self, x: int, a: int) -> dict[int, float]:
        """P(o | m, x, a), without zeros."""
        return {o: float(p) for o, p in enumerate(self.modes.hypothesis[self.m, x, a]) if p > 0.0}

    def environment(self) -> "TabularEnvironment":
        """The world in which this mode is true."""
        return TabularEnvironment(self.modes, self.m)


class TabularModes(ModeClass[TabularMode, int, int, int]):
    """A class of modes as three tables; `start` is the situation before the first step.

    `prior` is P(m), uniform by default. `names` are the names of the modes, `labels` those of the
    situations, actions and observations, for display.

    `policy[m, x, a]` is P(a | m, x), `hypothesis[m, x, a, o]` is P(o | m, x, a), and `successor[x,
    a, o]` is the next situation; it may be left out if there is one situation.

    >>> modes = TabularModes(policy=[[[1, 0]], [[0, 1]]],                       # m picks box m
    ...                      hypothesis=[[[[0, 1], [1, 0]]], [[[1, 0], [0, 1]]]])  # prize in box m
    >>> modes
    TabularModes(2 modes, 1 situation, 2 actions, 2 observations)
    >>> modes.likelihoods(0, 0, 1)
    array([1., 0.])
    >>> agent = modes.agent()
    >>> agent.action_probabilities()
    {0: 0.5, 1: 0.5}
    """

    format_name: ClassVar[str] = "TabularModes"
    mode_type = TabularMode
    model_kind: ClassVar[ModelKind] = ModelKind(
        "tabular-modes",
        "M modes as tables of probabilities. Situations x, actions a and observations o are "
        "numbers, counted from 0.",
        {
            "policy": SettingDoc("list [m][x][a]", "P(a | m, x)."),
            "hypothesis": SettingDoc("list [m][x][a][o]", "P(o | m, x, a)."),
            "successor": SettingDoc(
                "list [x][a][o] of situations",
                "The next situation; required if there is more than one.",
            ),
            "start": SettingDoc("whole number", "The first situation. Default: 0."),
            "names": SettingDoc("list of M texts", "The names of the modes."),
            "prior": SettingDoc("list of M probabilities", "P(m). Default: uniform."),
            "labels": SettingDoc("null", "Leave it out: logs do not store it."),
        },
        example={
            "policy": [[[1, 0]], [[0, 1]]],
            "hypothesis": [[[[0.2, 0.8], [0.8, 0.2]]], [[[0.8, 0.2], [0.2, 0.8]]]],
            "names": ["prize at 0", "prize at 1"],
        },
        observation=1,
        feedback="the number of the observation",
        outcomes=lambda settings: len(settings["hypothesis"][0][0][0]),
    )

    def __init__(
        self,
        policy: ArrayLike,
        hypothesis: ArrayLike,
        successor: ArrayLike | None = None,
        *,
        start: int = 0,
        names: Sequence[str] | None = None,
        prior: ArrayLike | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.policy = probability_table(policy, "policy", _AXES[:3])
        self.hypothesis = probability_table(hypothesis, "hypothesis", _AXES)
        if self.policy.shape != self.hypothesis.shape[:3]:
            raise InvalidTable(
                f"policy is for (modes, situations, actions) = {self.policy.shape}, "
                f"hypothesis for {self.hypothesis.shape[:3]}: both must be the same"
            )
        situations = self.policy.shape[1]
        shape = self.hypothesis.shape[1:]
        if successor is None and situations > 1:
            raise InvalidTable(f"with {situations} situations, successor[x, a, o] must be given")
        next_situations = np.zeros(shape) if successor is None else successor
        self.successor: IntArray = np.array(next_situations, np.int64)
        if self.successor.shape != shape:
            raise InvalidTable(
                f"successor has shape {self.successor.shape}: expected (situations, actions, "
                f"observations) = {shape}"
            )
        if self.successor.min() < 0 or self.successor.max() >= situations:
            raise InvalidTable(f"successor contains a situation outside 0 … {situations - 1}")
        if not 0 <= start < situations:
            raise InvalidTable(f"start={start} is not a situation: expected 0 … {situations - 1}")
        if labels is not None and tuple(map(len, labels)) != shape:
            raise InvalidTable(
                f"labels for {tuple(map(len, labels))} situations, actions and observations, but "
                f"the tables have {shape}"
            )
        super().__init__(len(self.policy), names)
        self.start = start
        #: Names of situations, actions and observations; their numbers by default.
        self.labels = labels or Labels(*(tuple(map(str, range(size))) for size in shape))
        self.prior: FloatArray = as_prior(prior, len(self))
        #: The actions that policies may choose: all, unless `choosing_among` has restricted them.
        self._eligible: Sequence[int] = self.actions
        # Modes on the last axis: the likelihoods of one observation are contiguous.
        self.by_mode = np.ascontiguousarray(np.moveaxis(self.hypothesis, 0, -1))

    def name(self, m: int) -> str:
        """Return the name of mode m, by default "m" and its number."""
        return self.names[m] if self.names else f"m{m}"

    def place(self, mode: int | str) -> int:
        """Return the number of a mode, given its number or name; else raise UnknownMode."""
        return find_mode(mode, self)

    @property
    def actions(self) -> range:
        """The actions, 0 … A-1."""
        return range(self.policy.shape[2])

    @property
    def tables(self) -> "kernels.tabular.ModeTables":
        """The arrays that compiled loops read."""
        return kernels.tabular.ModeTables(self.policy, self.by_mode, self.successor)

    def likelihoods(self, x: int, a: int, o: int) -> FloatArray:
        """P(o | m, x, a) for all m."""
        answer: FloatArray = self._cell(self.by_mode, x, a, o)
        return answer

    @property
    def likelihood_table(self) -> FloatArray | None:
        """The table that `likelihoods` reads; None in a subclass with other likelihoods."""
        return self.by_mode if type(self).likelihoods is TabularModes.likelihoods else None

    def action_probabilities(self, x: int) -> dict[int, FloatArray]:
        """P(a | m, x) for all m, by action."""
        return {a: self.policy[:, x, a] for a in self._eligible}

    def choosing_among(self, among: Among = None, prices: Prices = None) -> Self:
        """Return the same hypotheses with policies for some actions: P(a | m, x) / Σ_eligible.

        A mode that would choose none of these actions chooses uniformly. Policies in tables cannot
        take `prices` into account.

        >>> modes = random_modes(2, actions=3)
        >>> sorted(modes.choosing_among([0, 2])[1].action_probabilities(0))
        [0, 2]
        """
        names = Names("action", len(self.actions))
        places = eligible_places(names, np.arange(len(names)), among)
        if prices_of(names, places, prices) is not None:
            raise MissingCapability(
                f"{self!r} has policies in a table, which prices cannot change: give no prices"
            )
        part = self.policy[:, :, places]
        total = part.sum(-1, keepdims=True)
        uniform = np.full_like(part, 1.0 / len(places))
        return self._with_policies(places, np.divide(part, total, out=uniform, where=total > 0.0))

    def _with_policies(self, places: IntArray, policies: FloatArray) -> Self:
        """Return the same hypotheses; `policies` are for the actions `places` only."""
        modes = copy(self)
        modes.policy, modes._modes = np.zeros_like(self.policy), {}
        modes.policy[:, :, places], modes._eligible = policies, places.tolist()
        return modes

    def observation_probabilities(self, x: int, a: int) -> dict[int, FloatArray]:
        """P(o | m, x, a) for all m, by observation."""
        return dict(enumerate(self.by_mode[x, a]))

    def advance(self, x: int, a: int, o: int) -> int:
        """T(x, a, o)."""
        return int(self._cell(self.successor, x, a, o))

    def _cell(self, table: AnyArray, x: int, a: int, o: int) -> Any:
        """Return table[x, a, o]; raise BadEvidence if an index is not valid."""
        try:
            if x >= 0 and a >= 0 and o >= 0:  # a negative index would count from the end
                return table[x, a, o]
        except (IndexError, OverflowError, TypeError, ValueError):
            pass
        situations, actions, observations = self.successor.shape
        raise BadEvidence(
            f"situation {x!r}, action {a!r}, observation {o!r}: expected integers from 0 on, "
            f"below {situations}, {actions} and {observations}"
        )

    def environment(self, m: int) -> "TabularEnvironment":
        """Q_m, the world in which mode m is true."""
        return TabularEnvironment(self, self[m].m)

    def systems(self) -> list[Situated]:
        """The modes as I/O systems P_m, for exact computation."""
        return [Situated(mode, self.start, self.advance) for mode in self]

    def settings(self) -> dict[str, Any]:
        """Return the tables as plain values, as logs store them; not `labels`."""
        return {
            "policy": self.policy.tolist(),
            "hypothesis": self.hypothesis.tolist(),
            "successor": self.successor.tolist(),
            "start": self.start,
            "names": None if self.names is None else list(self.names),
            "prior": self.prior.tolist(),
        }

    @staticmethod
    def fused_loop(agent: Any, environment: object) -> Any:
        """Return the compiled loop if the agent is the rule over the environment's class."""
        if type(environment) is not TabularEnvironment:
            return None
        modes = environment.modes
        if not modes.fits_rule(agent) or not isinstance(agent.x, int):
            return None
        return _run if 0 <= agent.x < len(modes.successor) else None

    def __repr__(self) -> str:
        counts = zip(self.hypothesis.shape, _AXES, strict=True)
        return f"TabularModes({', '.join(counted(n, word) for n, word in counts)})"


class TabularEnvironment:
    """Q_m of a tabular class: o ~ P(o | m, x, a), x ← T(x, a, o).

    >>> world = random_modes(2, seed=0).environment(0)
    >>> world.respond(0, Stream(0)) in (0, 1)
    True
    """

    def __init__(self, modes: TabularModes, m: int) -> None:
        self.modes, self.m, self.x = modes, m, modes.start

    def respond(self, a: int, rng: StreamLike) -> int:
        """Draw o and move to the next situation."""
        o = require_stream(rng).categorical(self.modes.hypothesis[self.m, self.x, a])
        self.x = self.modes.advance(self.x, a, o)
        return o

    def __repr__(self) -> str:
        return f"TabularEnvironment(mode {self.m} of {self.modes!r}, situation {self.x})"


def random_modes(
    count: int,
    *,
    situations: int = 1,
    actions: int = 2,
    observations: int = 2,
    concentration: float = 1.0,
    seed: SeedLike = 0,
) -> TabularModes:
    """Return a random class: rows of the tables are Dirichlet(concentration, …), T is uniform.

    >>> random_modes(3, situations=4, seed=1)
    TabularModes(3 modes, 4 situations, 2 actions, 2 observations)
    """
    rng = as_stream(seed)

    def dirichlet(*shape: int) -> FloatArray:
        # The floor keeps probabilities positive if gamma numbers underflow.
        g = np.maximum(np.asarray(rng.gamma(concentration, size=shape)), 1e-12)
        return np.asarray(g / g.sum(-1, keepdims=True), np.float64)

    return TabularModes(
        dirichlet(count, situations, actions),
        dirichlet(count, situations, actions, observations),
        rng.integers(situations, size=(situations, actions, observations)),
    )


def _run(agent: Any, environment: TabularEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; the agent draws from p, the environment from q."""
    modes, columns = environment.modes, kernels.tabular.Columns(*np.empty((3, steps), np.int64))
    done, drawn_in, x, environment.x = kernels.tabular.interact(
        agent.belief.weight_arrays(), modes.tables, modes.hypothesis[environment.m], agent.x,
        environment.x, kernels.random.Streams(p.state, q.state), columns,
    )  # fmt: skip
    return finish_loop(agent, done, drawn_in, x, columns)

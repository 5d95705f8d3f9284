"""Learners of values from temporal differences: Q-learning and R-learning.

    M(y) = max_a Q(y,a)
    Q-learning   Q(x,a) ← (1-α) Q(x,a) + α (r + γ M(y))
                 with probability ε any action, else arg max_a Q(x,a);  ε ← ε · decay
    R-learning   Q(x,a) ← (1-α) Q(x,a) + α (r - ρ + M(y))
                 ρ      ← (1-β) ρ + β (r + M(y) - Q(x,a))
                 with probability p_exp  arg max_a Q(x,a) + C/F(x,a),  F(x,a) the number of tries

Right-hand sides use the values before the step. Ties go to the first action, in the order of
`actions`. Q-learning (Watkins 1989) maximises discounted reward, which approaches average reward as
γ → 1. R-learning (Schwartz 1993; Singh 1994, Algorithm 3) is implemented as the paper prints it: ρ
is updated at every step, an untried action comes first, and with p_exp = 1 no random numbers are
drawn.

A learner stores arrays with one row per state, [x, a, …], and doubles them when they are full. The
kernels update them in place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import Arrays, BoolArray, FloatArray, UIntArray, require_between
from bayescontrol._support.names import Names
from bayescontrol._support.saved import Copied, Field, Fixed, Number, Plain, Saved, damaged, declare
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownAction, UnknownState
from bayescontrol.mdp.table import MDP, MDPEnvironment, Step, advance, read_step, step_record
from bayescontrol.record import Record
from bayescontrol.seeding import Stream, StreamLike, state_of

#: The initial number of rows if the states are not declared.
FIRST_ROWS = 16


def learner_loop(agent: Any, environment: object) -> Any:
    """Return the compiled loop of a learner, if agent and environment match.

    They must be in the same state and have the same actions, and the states of the environment must
    offer all actions that the agent may choose. A class of learners declares the loop by
    `fused_loop = staticmethod(learner_loop)`.
    """
    fits = (
        type(environment) is MDPEnvironment
        and _same_names(agent.actions, environment.mdp.actions)
        and agent.x == environment.x
        and agent.uses_only_actions_of(environment.mdp)
    )
    return _run if fits else None


class _Values(Field):
    """The arrays of a `TabularLearner`, without unused rows."""

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the arrays."""
        arrays |= {name: array.copy() for name, array in self.value(owner).items()}

    def read(self, owner: Any, arrays: Arrays) -> Arrays:
        """Return the arrays, which `_check_state` checks."""
        return {name: np.asarray(arrays[name]) for name in self.value(owner)}


class TabularLearner(Saved, ABC):
    """Base class of agents with a table of values; subclasses define its rows, acting and learning.

    `states` is the number or the names of the states, or `None` to add them when they first occur;
    `actions` the number or names of the actions; `start` the initial state, by default the first
    declared one; `allowed(x)` the actions that a state offers, by default all.

    >>> agent = RLearning(None, ["left", "right"], start="home")
    >>> agent.observe("left", (1.0, "away"))
    >>> agent.x, agent.states
    ('away', ('home', 'away'))
    >>> agent.observe("left", (float("nan"), "home"))
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: reward nan after action 'left' in state 'away' is invalid: ...
    """

    saved_fields = declare(
        Fixed("settings", "_settings"),
        Fixed("actions", lambda learner: list(learner.actions)),
        Plain("states", "_names", copied=True),
        Number("x", "_x", least=0),
        _Values("values", lambda learner: learner._saved_arrays()),
        Copied("_places"),
        Copied("_rows", nested=True),
        Copied("_scalars", nested=True),
    )
    #: T(x, a, o) = y: the situation is the state.
    advance = staticmethod(advance)

    #: Arrays with a row per state, [x, a, …]; the first array is -∞ where x does not offer a.
    _rows: dict[str, FloatArray]
    #: Arrays without a row per state.
    _scalars: dict[str, FloatArray]
    #: Rows that are not saved: `_restore` computes them from the others.
    _derived: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        start: Hashable | None,
        allowed: Callable[[Any], Iterable[Any]] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self.actions = Names("action", actions)
        self._allowed = allowed
        self._settings = dict(settings)
        declared = () if states is None else tuple(Names("state", states))
        self._declared = states is not None
        self._names: list[Any] = []
        self._places: dict[Any, int] = {}
        self._scalars = {}
        self._rows = self._new_rows(len(declared) or FIRST_ROWS)
        for x in declared:
            self._add_state(x)
        if start is None and not declared:
            raise ValueError("states=None needs start=, the initial state")
        #: The number of the current state.
        self._x = 0 if start is None else self.number(start, add=True)

    @classmethod
    def on(cls, mdp: MDP, **settings: Any) -> Self:
        """Return a learner for the states and actions of a given MDP.

        >>> from bayescontrol.mdp import chain_mdp
        >>> QLearning.on(chain_mdp(3), gamma=0.9)
        QLearning(3 states, 2 actions, in state 0)
        """
        if not mdp.allowed.all():
            settings = {"allowed": mdp.actions_in, **settings}
        return cls(tuple(mdp.states), tuple(mdp.actions), **settings)

    # -- defined by subclasses -----------------------------------------------------------------

    @abstractmethod
    def _initial_rows(self, offered: BoolArray) -> dict[str, FloatArray]:
        """Return the initial rows [a, …] of a state that offers these actions."""

    @abstractmethod
    def _choose(self, x: int, rng_state: UIntArray) -> int:
        """Return the number of the action to take in state x."""

    @abstractmethod
    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        """Learn from a transition; return False, unchanged, if a value would not be finite."""

    @abstractmethod
    def _interact(self, run: "kernels.mdp.MdpRun", at: int, t: int) -> tuple[int, int]:
        """Run the compiled loop from step t on; return the steps done and the environment's state.

        `at` is the state of the environment at step t.
        """

    def _restore(self) -> None:
        """Compute the rows that are not saved."""

    # -- agent ---------------------------------------------------------------------------------

    def act(self, rng: StreamLike) -> Any:
        """Return an action for the current state. Does not change the agent."""
        return self.actions[self._choose(self._x, state_of(rng))]

    def observe(self, a: Any, o: Any) -> None:
        """Learn from o = (r, y) and move to y. On an error the agent is unchanged."""
        x = self.x
        column = self.actions.place(a)
        if not self._offers(self._x)[column]:
            offered = ", ".join(map(repr, self.actions_in(x)))
            raise UnknownAction(f"state {x!r} does not offer action {a!r}: it offers {offered}")
        r, y = read_step(x, a, o)
        known = len(self._names)
        next_x = self.number(y, add=True, after=f" after action {a!r} in state {x!r}")
        if not self._learn(self._x, column, r, next_x):
            if next_x == known:  # y is new: remove it
                del self._places[self._names.pop()]
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {x!r}: the values would overflow; "
                "scale the rewards down"
            )
        self._x = next_x

    # -- states by name and number -------------------------------------------------------------

    @property
    def x(self) -> Any:
        """The current state."""
        return self._names[self._x]

    @x.setter
    def x(self, x: Any) -> None:
        self._x = self.number(x, add=True)

    @property
    def states(self) -> tuple[Any, ...]:
        """The states declared, or observed so far."""
        return tuple(self._names)

    def actions_in(self, x: Any) -> list[Any]:
        """Return the actions that state x offers."""
        offered = self._offers(self.number(x))
        return [a for a, is_offered in zip(self.actions, offered, strict=True) if is_offered]

    def q_values(self, x: Any) -> dict[Any, float]:
        """Return Q(x, a) for the actions a that x offers."""
        return self._row("Q", x)

    def _row(self, name: str, x: Any) -> dict[Any, float]:
        """Return the row of state x in the array `name`, for the actions that x offers."""
        row = self._rows[name][self.number(x)]
        return {a: float(row[self.actions.place(a)]) for a in self.actions_in(x)}

    def number(self, x: Any, *, add: bool = False, after: str = "") -> int:
        """Return the number of state x, or raise UnknownState.

        With `add`, an unknown state is added unless the states were declared. `after` is appended
        to the state in errors.
        """
        try:
            place = self._places.get(x)
        except TypeError:
            raise BadEvidence(f"state {x!r}{after} is not hashable: use a tuple") from None
        if place is None:
            if self._declared or not add:
                shown = ", ".join(map(repr, self._names[:8])) + ", …" * (len(self._names) > 8)
                raise UnknownState(f"no state {x!r}{after}: the states are {shown}")
            place = self._add_state(x)
        return place

    def offered(self, x: Any) -> BoolArray:
        """Return the mask [a] of the actions that state x offers; x need not be known yet."""
        mask = np.ones(len(self.actions), bool)
        if self._allowed is not None:
            mask[:] = False
            mask[[self.actions.place(a) for a in self._allowed(x)]] = True
            if not mask.any():
                raise UnknownAction(f"state {x!r} offers no action: `allowed` must return one")
        return mask

    def uses_only_actions_of(self, mdp: MDP) -> bool:
        """Whether the states of the MDP offer all actions that this learner may choose."""
        if self._allowed is None:
            return bool(mdp.allowed.all())
        pairs = zip(mdp.states, mdp.allowed, strict=True)
        return not any((self.offered(x) & ~offers).any() for x, offers in pairs)

    def _offers(self, place: int) -> BoolArray:
        """Return the mask [a] of the actions that the state with this number offers."""
        first = next(iter(self._rows.values()))[place]
        return np.asarray(first.reshape(len(self.actions), -1)[:, 0] > -np.inf)

    def _add_state(self, x: Any) -> int:
        """Add state x with its initial rows, and return its number."""
        initial = self._initial_rows(self.offered(x))
        place = len(self._names)
        if place == len(next(iter(self._rows.values()))):
            old, self._rows = self._rows, self._new_rows(2 * place)
            for name, array in old.items():
                self._rows[name][:place] = array
        for name, row in initial.items():
            self._rows[name][place] = row
        self._names.append(x)
        self._places[x] = place
        return place

    def _new_rows(self, states: int) -> dict[str, FloatArray]:
        """Return arrays of zeros for this many states."""
        example = self._initial_rows(np.ones(len(self.actions), bool))
        return {name: np.zeros((states, *row.shape)) for name, row in example.items()}

    # -- named arrays --------------------------------------------------------------------------

    def _check_state(self, new: SimpleNamespace) -> None:
        """Check the saved arrays on a copy of the learner, and put its tables into `new`."""
        if self._declared and new._names != self._names:
            raise IncompatibleState(
                f"saved with the states {new._names}, this agent has {self._names}: create it with "
                "the same `states`"
            )
        trial = self.copy()
        trial._names, trial._places = [], {}
        trial._rows = trial._new_rows(max(len(new._names), FIRST_ROWS))
        for name in new._names:
            trial._add_state(name)
        if new._x >= len(trial._places):
            raise damaged(f"x = {new._x} is not one of the {len(trial._places)} saved states")
        # Values must be -∞ exactly where an action is not offered, and finite elsewhere.
        for name, array in trial._saved_arrays().items():
            saved = new.values[name]
            fits = saved.shape == array.shape and (
                np.where(np.isneginf(array), np.isneginf(saved), np.isfinite(saved)).all()
            )
            if not fits:
                raise IncompatibleState(f"{name!r} does not fit {len(new._names)} saved states")
            array[...] = saved
        trial._restore()
        for name in ("_names", "_places", "_rows", "_scalars"):
            setattr(new, name, getattr(trial, name))

    def _saved_arrays(self) -> dict[str, FloatArray]:
        """Return views of the arrays that are saved, without the unused rows."""
        count = len(self._names)
        rows = {n: a[:count] for n, a in self._rows.items() if n not in self._derived}
        return {**rows, **self._scalars}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self._names)} states, {len(self.actions)} actions, "
            f"in state {self.x!r})"
        )


class QLearning(TabularLearner):
    """Discounted ε-greedy Q-learning (Watkins 1989).

    Optimistic initial values explore without randomness: with `epsilon=0` and `initial` above
    r_max/(1-γ), the largest possible value, every action earns less than its value promises, so
    that all actions are tried often. See `TabularLearner` for the other arguments.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = QLearning.on(mdp, gamma=0.9, epsilon=0.0, initial=10.0)
    >>> record = interact(agent, mdp.environment(), 2_000, seed=0)
    >>> float(record.observations["reward"][-300:].mean()) > 0.3
    True
    """

    format_name: ClassVar[str] = "QLearning"
    fused_loop = staticmethod(learner_loop)

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        gamma: float = 0.99,
        alpha: float = 0.1,
        epsilon: float = 0.1,
        decay: float = 1.0,
        initial: float = 0.0,
        *,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        settings = {
            "gamma": require_between("gamma", gamma, 0, 1, ends="[)"),
            "alpha": require_between("alpha", alpha, 0, 1, ends="(]"),
            "epsilon": require_between("epsilon", epsilon, 0, 1),
            "decay": require_between("decay", decay, 0, 1),
            "initial": require_between("initial", initial, -np.inf, np.inf, ends="()"),
        }
        self._params = kernels.td.QSettings(settings["gamma"], settings["alpha"], settings["decay"])
        super().__init__(states, actions, start, allowed, settings)
        self._scalars = {"epsilon": np.array([settings["epsilon"]])}

    @property
    def epsilon(self) -> float:
        """The exploration probability ε of the next step."""
        return float(self._scalars["epsilon"][0])

    def _initial_rows(self, offered: BoolArray) -> dict[str, FloatArray]:
        """Return Q of a new state: `initial`, or -∞ for actions that it does not offer."""
        return {"Q": np.where(offered, self._settings["initial"], -np.inf)}

    def _values(self) -> "kernels.td.QArrays":
        """Return the arrays as the kernels expect them."""
        return kernels.td.QArrays(**self._rows, **self._scalars)

    def _choose(self, x: int, rng_state: UIntArray) -> int:
        """Return the number of the ε-greedy action in state x."""
        return kernels.td.q_choose(self._values(), x, rng_state)

    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        """Update Q(x,a) and ε; return False, unchanged, if Q would not be finite."""
        return kernels.td.q_learn(self._values(), self._params, x, a, r, y)

    def _interact(self, run: "kernels.mdp.MdpRun", at: int, t: int) -> tuple[int, int]:
        """Run the compiled loop from step t on; return the steps done and the world's state."""
        return kernels.td.q_interact(self._values(), self._params, run, at, t)


class RLearning(TabularLearner):
    """Average-reward R-learning with uncertainty exploration.

    The paper compares the control rule with R-learning in the grid world, with C = 5, 30 and 200.
    The paper does not say what happens with probability 1 - p_exp: `otherwise` selects the "greedy"
    action or a "random" one. With `greedy_only` ρ learns only from actions with
    Q(x,a) = max_a' Q(x,a'), as in Schwartz (1993). See `TabularLearner` for the other arguments.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = RLearning.on(mdp, C=1.0)
    >>> record = interact(agent, mdp.environment(), 2_000, seed=0)
    >>> float(record.observations["reward"][-300:].mean()), round(agent.rho, 3)
    (0.333..., 0.3...)
    >>> agent.q_values(0)[0] > agent.q_values(0)[1]
    True
    """

    format_name: ClassVar[str] = "RLearning"
    fused_loop = staticmethod(learner_loop)

    _derived: ClassVar[tuple[str, ...]] = ("bonus",)

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        C: float = 30.0,
        p_exp: float = 1.0,
        alpha: float = 0.5,
        beta: float = 0.001,
        otherwise: Literal["greedy", "random"] = "greedy",
        greedy_only: bool = False,
        *,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        if otherwise not in ("greedy", "random"):
            raise ValueError(f"otherwise={otherwise!r}: it must be 'greedy' or 'random'")
        settings: dict[str, Any] = {
            "C": require_between("C", C, 0, np.inf, ends="[)"),
            "p_exp": require_between("p_exp", p_exp, 0, 1),
            "alpha": require_between("alpha", alpha, 0, 1, ends="(]"),
            "beta": require_between("beta", beta, 0, 1),
            "otherwise": otherwise,
            "greedy_only": bool(greedy_only),
        }
        numbers = {name: value for name, value in settings.items() if name != "otherwise"}
        self._params = kernels.td.RSettings(**numbers, otherwise_random=otherwise == "random")
        super().__init__(states, actions, start, allowed, settings)
        self._scalars = {"rho": np.zeros(1)}

    @property
    def rho(self) -> float:
        """ρ, the estimated average reward."""
        return float(self._scalars["rho"][0])

    def tried(self, x: Any) -> dict[Any, int]:
        """Return F(x, a), the number of tries, for the actions a that x offers."""
        return {a: int(count) for a, count in self._row("F", x).items()}

    def _initial_rows(self, offered: BoolArray) -> dict[str, FloatArray]:
        """Return Q, F and C/F of a new state; C/F is ∞ for actions that were never tried."""
        return {
            "Q": np.where(offered, 0.0, -np.inf),
            "F": np.zeros(offered.size),
            "bonus": np.where(offered, np.inf, 0.0),
        }

    def _restore(self) -> None:
        """Compute the bonus C/F of the actions that were tried; others have their initial bonus."""
        F = self._rows["F"]
        np.divide(self._params.C, F, out=self._rows["bonus"], where=F > 0.0)

    def _values(self) -> "kernels.td.RArrays":
        """Return the arrays as the kernels expect them."""
        return kernels.td.RArrays(**self._rows, **self._scalars)

    def _choose(self, x: int, rng_state: UIntArray) -> int:
        """Return the number of the action in state x: exploring with probability p_exp."""
        return kernels.td.r_choose(self._values(), self._params, x, rng_state)

    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        """Update Q(x,a), F(x,a) and ρ; return False, unchanged, if one would not be finite."""
        return kernels.td.r_learn(self._values(), self._params, x, a, r, y)

    def _interact(self, run: "kernels.mdp.MdpRun", at: int, t: int) -> tuple[int, int]:
        """Run the compiled loop from step t on; return the steps done and the world's state."""
        return kernels.td.r_interact(self._values(), self._params, run, at, t)


# -- compiled loops ----------------------------------------------------------------------------


def _same_names(mine: Iterable[object], other: Iterable[object]) -> bool:
    """Return whether both have the same names of the same types in the same order."""
    return [(type(n), n) for n in mine] == [(type(n), n) for n in other]


def _run(agent: Any, environment: MDPEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; the agent draws from p, the environment from q."""
    mdp = environment.mdp
    actions, rows = np.empty(steps, np.int64), np.empty(steps, kernels.mdp.STEP)
    # The agent's number of each state of the MDP, -1 for states that are new to the agent.
    number, t = np.array([agent._places.get(x, -1) for x in mdp.states], np.int64), 0
    streams = kernels.random.Streams(p.state, q.state)
    run = kernels.mdp.MdpRun(mdp.tables, number, streams, actions, rows)
    while t < steps:
        before = environment.at
        done, environment.at = agent._interact(run, before, t)
        if done < steps:  # a state without a number: `observe` adds it or raises an error
            # The agent is in the state before step `done`.
            agent._x = int(number[rows["state"][done - 1] if done > t else before])
            o = Step(float(rows["reward"][done]), environment.x)
            agent.observe(mdp.actions[actions[done]], o)
            number[environment.at] = agent.number(environment.x)
        t = done + 1
    agent._x = int(number[environment.at])
    return step_record(actions, rows, mdp.actions, mdp.states)

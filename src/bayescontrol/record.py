"""The record of a run: columns of actions, observations and probes.

A probe measures the agent and never changes the run. It is called either *before* the agent
observes o_t, P(· | âo_<t â_t), or *after*, P(· | âo_≤t).

Actions and observations that are named tuples, such as the (reward, state) of an MDP, become a
structured column: `record.observations["reward"]` is the reward of every step.
"""

import math
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import as_integer
from bayescontrol._support.columns import as_column
from bayescontrol._support.display import html_table
from bayescontrol.errors import MissingCapability, counted
from bayescontrol.protocols import MISSING

if TYPE_CHECKING:
    from bayescontrol._arrays import FloatArray
    from bayescontrol.plot.figures import Plot


#: Steps of a record that a notebook shows.
_HTML_STEPS = 10


@dataclass(frozen=True)
class Probe:
    """A measurement `measure(agent, a, o)`, taken before or after the agent observes o_t.

    If it takes long, measure it at the steps 1, 1 + `every`, 1 + 2 `every`, … only; the steps in
    between get the last value.

    >>> Probe(lambda agent, a, o: o).when
    'after'
    """

    measure: Callable[[Any, Any, Any], Any]
    when: Literal["before", "after"] = "after"
    every: int = 1

    def __post_init__(self) -> None:
        as_integer("every", self.every, 1)
        if self.when not in ("before", "after"):
            raise ValueError(f"when={self.when!r}: expected 'before' or 'after'")
        if self.measure.__doc__:  # for help(probe)
            object.__setattr__(self, "__doc__", self.measure.__doc__)


def _belief_method(agent: Any, name: str) -> Callable[..., Any]:
    """Return this method of the agent's belief; raise MissingCapability otherwise."""
    belief = getattr(agent, "belief", None)
    method: Callable[..., Any] | None = getattr(belief, name, None)
    if method is None:
        found = "no belief" if belief is None else f"the belief {belief!r} without {name}()"
        raise MissingCapability(f"cannot measure the {name}: {agent!r} has {found}")
    return method


def _posterior(agent: Any, _a: Any, _o: Any) -> Any:
    """P(m | âo_≤t) for every m: an array (M,) that sums to one; (T, M) for T steps.

    It is measured after the agent has observed o_t.
    """
    return _belief_method(agent, "posterior")()


def _log_score(agent: Any, a: Any, o: Any) -> float:
    """-log2 P(o_t | âo_<t â_t) in bits: a number, ∞ if all modes rule out o_t; (T,) for T steps.

    It is measured before the agent observes o_t. Its sum over the steps is the code length of the
    observations. A lost observation has no bits.
    """
    log_predictive = _belief_method(agent, "log_predictive")
    # Adding 0. turns -0. into 0.
    return 0.0 if o is MISSING else -float(log_predictive(agent.x, a, o)) / math.log(2.0) + 0.0


def _drawn_mode(agent: Any, _a: Any, _o: Any) -> Any:
    """The index of the mode that chose a_t, or the parameters that were drawn; (T, …)."""
    if not hasattr(agent.belief, "drawn"):
        raise MissingCapability(
            f"the modes of {agent.belief!r} have no index: record what you need of the mode, "
            "Probe(lambda agent, a, o: repr(agent.mode))"
        )
    return agent.belief.drawn


def _unresolved(agent: Any, _a: Any, _o: Any) -> float:
    """The unresolved share of models, or with context trees of the latest cycles; (T,).

    See `agent.unresolved()`. It is measured after every tenth observation.
    """
    if not hasattr(agent, "unresolved"):
        raise MissingCapability(
            f"cannot measure the unresolved models: {agent!r} is not a ControlRule"
        )
    return float(agent.unresolved().share)


#: P(m | âo_≤t) for all m.
posterior = Probe(_posterior)
#: -log2 P(o_t | âo_<t â_t): the agent's surprise, in bits.
log_score = Probe(_log_score, "before")
#: The index of the mode that chose a_t.
drawn_mode = Probe(_drawn_mode, "before")
#: x_t, the situation in which a_t was chosen.
situation = Probe(lambda agent, _a, _o: agent.x, "before")
#: The share of unresolved models.
unresolved = Probe(_unresolved, every=10)
_STANDARD = {
    "posterior": posterior,
    "log_score": log_score,
    "drawn_mode": drawn_mode,
    "situation": situation,
    "unresolved": unresolved,
}


def as_probes(probes: Mapping[str, Probe] | Iterable[str]) -> dict[str, Probe]:
    """Return probes by name; a standard probe may be given by its name only.

    >>> as_probes(["posterior"]) == {"posterior": posterior}
    True
    """
    if isinstance(probes, str):
        raise TypeError(f"probes={probes!r}: expected a list of names, [{probes!r}]")
    if not isinstance(probes, Mapping):
        names = list(probes)
        if unknown := set(names) - _STANDARD.keys():
            raise ValueError(
                f"no standard probe is called {min(unknown)!r}: use {', '.join(_STANDARD)}, or "
                'pass probes of your own as a dictionary, {"name": Probe(measure)}'
            )
        probes = {name: _STANDARD[name] for name in names}
    for name, probe in probes.items():
        if not isinstance(probe, Probe):
            raise TypeError(f"probe {name!r} is {probe!r}: expected Probe(measure, when='after')")
    return dict(probes)


@lru_cache
def _row_type(names: tuple[str, ...]) -> Any:
    """Return the type of named tuples with these fields, always the same one."""
    return namedtuple("Row", names)


class Record:
    """One run: actions, observations and probes as columns of equal length.

    `actions` and `observations` have one entry per step. `probes` maps names to further columns.

    >>> record = Record(actions=[0, 1], observations=[1.0, 0.5], probes={"surprise": [1.0, 0.0]})
    >>> record
    Record(2 steps: actions int64, observations float64, surprise float64)
    >>> record["surprise"]
    array([1., 0.])
    >>> list(record)
    [(0, 1.0), (1, 0.5)]
    """

    def __init__(
        self,
        actions: Sequence[Any] | npt.NDArray[Any],
        observations: Sequence[Any] | npt.NDArray[Any],
        probes: Mapping[str, Sequence[Any] | npt.NDArray[Any]] | None = None,
    ) -> None:
        if taken := {"actions", "observations"} & (probes or {}).keys():
            raise ValueError(f"a probe cannot be called {taken.pop()!r}: records have that column")
        #: The seed and the run number that repeat this run, the names of the agent's modes, and
        #: the value of the probe "posterior" before the first step; set by `interact`.
        self.seed: int | None = None
        self.run = 0
        self.mode_names: tuple[str, ...] = ()
        self.prior: FloatArray | None = None
        self.actions = as_column(actions)
        self.observations = as_column(observations)
        self.probes = {name: as_column(values) for name, values in (probes or {}).items()}
        for name, column in self.columns().items():
            if len(column) != len(self.actions):
                raise ValueError(f"column {name!r} has {len(column)} entries, expected {len(self)}")

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return all columns by name.

        >>> sorted(Record([0], [1]).columns())
        ['actions', 'observations']
        """
        return {"actions": self.actions, "observations": self.observations, **self.probes}

    def plot(self, world: Any = None) -> "Plot":
        """Draw everything in the record; with `world` also what needs it, such as the regret.

        The result has the Matplotlib `axes`, and `save(path)`. The functions of `bayescontrol.plot`
        draw one plot each; `plot.arms(agent)` draws what a bandit agent knows about its arms.
        """
        from bayescontrol import plot  # charts and Matplotlib are loaded on demand

        return plot.run(self, world)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the column with this name."""
        columns = self.columns()
        if name not in columns:
            raise KeyError(f"no column {name!r}; the columns are {', '.join(columns)}")
        return columns[name]

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.actions)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over the steps (a_1, o_1), (a_2, o_2), …"""
        return zip(column_values(self.actions), column_values(self.observations), strict=True)

    def __eq__(self, other: object) -> bool:
        """Compare columns bit for bit (objects with ==)."""
        if not isinstance(other, Record) or self.columns().keys() != other.columns().keys():
            return False
        return all(_equal_columns(column, other[name]) for name, column in self.columns().items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{n} {_type_text(c)}" for n, c in self.columns().items())
        return f"Record({counted(len(self), 'step')}: {shown})"

    def _repr_html_(self) -> str:
        """Show the first `_HTML_STEPS` steps in a notebook, with the names of drawn modes."""
        columns = self.columns()
        if "drawn_mode" in columns and self.mode_names:
            drawn = columns["drawn_mode"].astype(np.intp)
            columns["drawn_mode"] = np.array([*self.mode_names, "none"])[drawn]  # -1: no mode
        steps = range(min(len(self), _HTML_STEPS))
        rows = [[t + 1, *(column[t] for column in columns.values())] for t in steps]
        more = f", the first {len(steps)}" if len(self) > len(steps) else ""
        seed = "" if self.seed is None else f", seed {self.seed}"
        return html_table(f"{len(self)} steps{more}{seed}", ["t", *columns], rows)


def column_values(column: npt.NDArray[Any]) -> Any:
    """Return the values of a column: Python values, named tuples, or rows of an array."""
    if column.dtype.names:
        return map(_row_type(column.dtype.names)._make, column.tolist())
    return column.tolist() if column.ndim == 1 else column


def _type_text(column: npt.NDArray[Any]) -> str:
    """Return the type of a column for the repr."""
    if column.dtype.names:
        fields = ", ".join(f"{name} {_type_text(column[name])}" for name in column.dtype.names)
        return f"({fields})"
    return str(column.dtype) + "".join(f"×{n}" for n in column.shape[1:])


def _equal_columns(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two columns are equal, bit for bit; objects are compared with ==."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.names:
        return all(_equal_columns(a[name], b[name]) for name in a.dtype.names)
    if a.dtype == object:
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        return all(np.array_equal(p, q) if isinstance(p, np.ndarray) else p == q for p, q in pairs)
    return a.tobytes() == b.tobytes()

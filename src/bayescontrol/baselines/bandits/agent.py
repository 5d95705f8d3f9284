"""An agent that knows of each arm how many rewards came, their sum, and the sum of their squares.

    observe    n_j += 1,  s_j += r,  q_j += r²          (`kernels.policies.learn`)
    act        a function of n, s, q and chance         (`kernels.policies.choose`)

To act changes nothing in the agent, and the clock t = Σ_j n_j counts the rewards seen: actions may
be asked for in batches, feedback may come late, in any order, or never. Of arms that look equally
good, those without any reward yet among them, one is chosen uniformly by the agent's stream.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from operator import index
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.bandits.family import number
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior
from bayescontrol.problems.names import Names
from bayescontrol.record import Record
from bayescontrol.seeding import Stream
from bayescontrol.values import format_name, pack

Self = TypeVar("Self", bound="CountingAgent")

_SUPPORT = ("a number below 1e150", "a number from 0 to 1", "0 or 1")


class CountingAgent:
    """The face of all of them. A kind names its kernel, its parameters and the rewards it takes.

    >>> from bayescontrol.baselines.bandits import UCB1
    >>> agent = UCB1(["red", "blue"])
    >>> agent.observe("red", 1)
    >>> agent.act(Stream(0)), agent.pulls
    ('blue', {'red': 1, 'blue': 0})
    """

    #: The number of the policy in `kernels.policies`, and of the rewards it takes.
    kind: ClassVar[int]
    support: ClassVar[int] = 1

    def __init__(
        self, arms: int | Sequence[Hashable], parameters: npt.ArrayLike = (), **stated: object
    ) -> None:
        self._labels = Names("arm", arms)
        self._parameters: FloatArray = np.array(parameters, np.float64)
        self._stated = stated
        self._counts: FloatArray = np.zeros((3, len(self._labels)))
        self._scratch = self._room()

    def _room(self) -> FloatArray:
        size = len(self._labels)
        return np.empty((kernels.policies.rows(self.kind, size), size))

    def act(self, rng: Stream) -> Any:
        """The arm to pull. Draws from the stream, and leaves the agent as it was."""
        n, s, q = self._counts
        return self._labels[
            kernels.policies.choose(
                self.kind, self._parameters, n, s, q, self._scratch, rng.state
            )
        ]  # fmt: skip

    def observe(self, a: Any, o: Any) -> None:
        """Reward o came of arm a, whenever it was pulled. On an error nothing has changed."""
        j = self._labels.place(a)
        r = number(o, _SUPPORT[self.support])
        if not kernels.policies.accepts(self.support, r):
            raise BadEvidence(
                f"reward {o!r} of arm {a!r}: {type(self).__name__} learns from "
                f"{_SUPPORT[self.support]}; rescale the rewards"
            )
        kernels.policies.learn(j, r, *self._counts)

    def indices(self) -> dict[Any, float]:
        """The index of every arm; of a greedy agent, the mean reward it expects."""
        out = np.empty(len(self._labels))
        n, s, q = self._counts
        kernels.policies.index(self.kind, self._parameters, float(self.count), n, s, q, out)
        return dict(zip(self._labels, out.tolist(), strict=True))

    @property
    def arms(self) -> tuple[Any, ...]:
        """Their names, by default 0 … N-1."""
        return tuple(self._labels)

    @property
    def pulls(self) -> dict[Any, int]:
        """How many rewards of every arm were seen."""
        return dict(zip(self._labels, self._counts[0].astype(int).tolist(), strict=True))

    @property
    def count(self) -> int:
        """t, the rewards seen."""
        return int(self._counts[0].sum())

    # -- state -------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        pulls, rewards, squares = self._counts.copy()
        kind = type(self)
        return {
            "policy": np.array(format_name(kind, kind.__name__)),
            "arms": pack(list(self._labels), "the names of the arms"),
            "parameters": self._parameters.copy(),
            "pulls": pulls,
            "rewards": rewards,
            "squares": squares,
        }

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for an agent made with the same words."""
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(f"{arrays!r} is not a mapping of arrays, as `save` gives")
        mine = self.save()
        missing = mine.keys() - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        for name in ("policy", "arms", "parameters"):
            if not np.array_equal(arrays[name], mine[name]):
                raise IncompatibleState(
                    f"the saved {name} {arrays[name]} is not this agent's {mine[name]}: "
                    "make the agent with the same words, then load"
                )
        try:
            rows = [
                np.asarray(arrays[name], np.float64) for name in ("pulls", "rewards", "squares")
            ]
            counts = np.array(rows)
        except (TypeError, ValueError) as error:
            raise IncompatibleState(f"the saved state is damaged: {error}") from None
        n, s, q = counts if counts.shape == self._counts.shape else [np.full(1, np.nan)] * 3
        fits = np.isfinite(counts).all() and (n >= 0.0).all() and (n == np.floor(n)).all()
        if self.support > 0:
            fits = fits and bool(((s >= 0.0) & (s <= n) & (q >= 0.0) & (q <= n)).all())
        if not fits or not np.isfinite(n).all():
            raise IncompatibleState(f"the saved state is damaged: counts {counts.tolist()}")
        self._counts = np.ascontiguousarray(counts)

    def copy(self: Self) -> Self:
        """The same agent, free to go its own way."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._counts, twin._scratch = self._counts.copy(), self._room()
        return twin

    def loop_arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Parameters, counts and scratch, as `kernels.policies.interact` takes them.

        >>> from bayescontrol.baselines.bandits import UCB1
        >>> [array.shape for array in UCB1(3).loop_arrays()]
        [(0,), (3, 3), (1, 3)]
        """
        return self._parameters, self._counts, self._scratch

    def __repr__(self) -> str:
        stated = "".join(f", {name}={value!r}" for name, value in self._stated.items())
        n, s, _ = self._counts
        leaders = [j for j in np.argsort(-n, kind="stable")[:4] if n[j] > 0.0]
        shown = ", ".join(f"{self._labels[j]} {s[j] / n[j]:.3g} ({n[j]:.0f})" for j in leaders)
        seen = f" after {self.count} rewards: {shown}" if leaders else ""
        return f"{type(self).__name__}({len(self._labels)} arms{stated}{seen})"


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop, if agent and environment have the same arms.

    >>> from bayescontrol.baselines.bandits import UCB1
    >>> from bayescontrol.bandits import BernoulliBandit
    >>> fused_loop(UCB1(2), BernoulliBandit(2).draw(0)) is not None
    True
    """
    return _run if agent.arms == tuple(environment.labels) else None


def _run(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
    family = environment.family
    parameters, (n, s, squares), scratch = agent.loop_arrays()
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    done = kernels.policies.interact(
        agent.kind, parameters, agent.support, n, s, squares, scratch,
        family.kind, family.constants, environment.truth, p.state, q.state, actions, rewards,
    )  # fmt: skip
    if done < steps:  # the readable code raises, with its own words
        agent.observe(environment.labels[int(actions[done])], float(rewards[done]))
    return Record(environment.labels.column(actions), rewards)


# -- what the parameters of an agent may be ------------------------------------------------


def real(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> float:
    """`value` as a number from [low, high], or from (low, high]; else a ValueError.

    >>> real("epsilon", 0.1, 0, 1)
    0.1
    """
    try:
        x = float(value)
    except (TypeError, ValueError, OverflowError):
        x = math.nan
    if isinstance(value, str) or not low <= x <= high or (open_low and x == low):
        where = f"above {low:g} and at most {high:g}" if open_low else f"from {low:g} to {high:g}"
        raise ValueError(f"{name}={value!r} must be a number {where}")
    return x


def horizon_of(value: Any, least: int = 1) -> int:
    """A number of pulls, at least so many; else a ValueError.

    >>> horizon_of(1000)
    1000
    """
    try:
        horizon = index(value)
    except TypeError:
        horizon = -1
    if horizon < least or isinstance(value, bool):
        raise ValueError(f"horizon={value!r} must be a whole number of at least {least}")
    return horizon


def beta_prior(prior: Any, least: float = 0.0) -> tuple[float, float]:
    """(α, β), the same Beta prior for every arm; else `InvalidPrior`.

    >>> beta_prior((1, 2))
    (1.0, 2.0)
    """
    try:
        alpha, beta = (float(x) for x in prior)
    except (TypeError, ValueError):
        raise InvalidPrior(f"prior={prior!r}: give (α, β), one pair for all arms") from None
    if not (least <= min(alpha, beta) and min(alpha, beta) > 0.0 and max(alpha, beta) < 1e12):
        raise InvalidPrior(
            f"prior={prior!r}: α and β must be {f'at least {least:g}' if least else 'positive'} "
            "and below 1e12"
        )
    return alpha, beta

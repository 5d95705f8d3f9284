"""How well a run went: rewards, regret and the share of the best arm.

    reward       the observation o_t, or its field `reward`
    regret       R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ))
    best share   b_t = 1 if m_{a_t}(x_t) = max_j m_j(x_t), else 0

m_j(x) is the true mean reward of arm j in context x, or m_j without contexts. Regret is cumulative.
It uses mean rewards instead of observed rewards, to exclude chance.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import ArrayLike, FloatArray
from bayescontrol.errors import MissingCapability, UnknownArm


class Run(Protocol):
    """The steps of a run: a `Record`."""

    actions: npt.NDArray[Any]
    observations: npt.NDArray[Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]: ...


class World(Protocol):
    """Arms in order, with their mean rewards `means` or `mean_rewards(record, start)`."""

    @property
    def labels(self) -> Any: ...


def rewards(record: Run, reward: Callable[[Any, Any], float] | None = None) -> FloatArray:
    """Return the reward of every step: reward(a, o), the observation, or its field `reward`.

    >>> from bayescontrol import Record
    >>> rewards(Record([0, 1], [1, 0])), rewards(Record([0, 1], [1, 0]), lambda a, o: o - 0.1 * a)
    (array([1., 0.]), array([ 1. , -0.1]))
    """
    observed = record.observations
    if reward is not None:
        return np.array([reward(a, o) for a, o in record], np.float64)
    if "reward" in (observed.dtype.names or ()):
        return np.asarray(observed["reward"], np.float64)
    if observed.dtype.kind in "biuf" and observed.ndim == 1:
        return observed.astype(np.float64)
    if observed.dtype == object and all(hasattr(o, "reward") for o in observed):
        return np.array([o.reward for o in observed], np.float64)
    if observed.dtype == object and all(isinstance(o, Mapping) and "reward" in o for o in observed):
        return np.array([o["reward"] for o in observed], np.float64)
    example = repr(observed[0]) if len(observed) else "none"
    raise MissingCapability(
        f"the rewards are unknown: the first observation is {example}, neither a number nor an "
        "object with `reward`. Pass a function: reward=lambda a, o: ..."
    )


def knows_means(world: Any) -> bool:
    """Return whether the regret of a run in this world can be computed."""
    return hasattr(world, "labels") and (
        hasattr(world, "mean_rewards") or isinstance(getattr(world, "means", None), np.ndarray)
    )


def _means(record: Run, world: Any, start: Any) -> tuple[FloatArray, FloatArray]:
    """Return max_j m_j(x_t) and m_{a_t}(x_t) for every step."""
    if not knows_means(world):
        raise MissingCapability(
            f"the mean rewards of {world!r} are unknown: it needs `labels` and `means`, or, if "
            "they vary, `labels` and `mean_rewards(record, start)`"
        )
    if hasattr(world, "mean_rewards"):
        means = world.mean_rewards(record, start)  # one row per step
    else:
        means = world.means[None]  # the same for every step
    index = {a: j for j, a in enumerate(world.labels)}
    try:
        pulled = [index[a] for a in record.actions.tolist()]
    except KeyError as error:
        raise UnknownArm(
            f"the record contains arm {error}, unknown in this world: pass the world of the run"
        ) from None
    means = np.broadcast_to(means, (len(pulled), len(index)))
    return means.max(1), means[np.arange(len(pulled)), pulled]


def regret(record: Run, world: World, start: ArrayLike | None = None) -> FloatArray:
    """Return the cumulative regret R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ)) of every step.

    `start` is the first context of the run. It is needed only for a world with contexts in which
    other runs have taken place too; worlds without contexts ignore it.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> regret(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0.5, 0.5, 1. ])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(np.cumsum(best - pulled))


def best_share(record: Run, world: World, start: ArrayLike | None = None) -> FloatArray:
    """Return 1 for each step in which the arm has the largest mean reward, else 0.

    The mean of the result is the share of the best arm. `start` is as in `regret`.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> best_share(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0., 1., 0.])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(pulled == best, np.float64)

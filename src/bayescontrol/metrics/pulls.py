"""What a run on a bandit has cost.

    regret       R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ))
    best share   b_t = 1 if m_{a_t}(x_t) = max_j m_j(x_t), else 0

m_j(x) is the true mean reward of arm j in context x; without contexts it is m_j. Regret is
cumulative: it never falls. It counts means, not the rewards that were paid, so that the luck of the
draw does not enter.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import MissingCapability, UnknownArm
from bayescontrol.record import Record


class _World(Protocol):
    """Arms in order, with their mean rewards `means` or `mean_rewards(record, start)`."""

    @property
    def labels(self) -> Any: ...


def _means(record: Record, world: _World, start: Any) -> tuple[FloatArray, FloatArray]:
    """max_j m_j and m_{a_t}, for every step."""
    given: Any = world
    if not hasattr(given, "labels"):
        rows = None
    elif hasattr(given, "mean_rewards"):
        rows = given.mean_rewards(record, start)
    else:
        rows = getattr(given, "means", None)
        rows = rows[None] if isinstance(rows, np.ndarray) else None
    if rows is None:
        raise MissingCapability(
            f"{world!r} does not tell the mean reward of each arm: it needs `labels` and `means`, "
            "or with contexts `labels` and `mean_rewards(record, start)`"
        )
    places = {a: j for j, a in enumerate(given.labels)}
    try:
        pulled = [places[a] for a in record.actions.tolist()]
    except KeyError as error:
        raise UnknownArm(
            f"the record pulls arm {error}, which this world does not have: give the world of the "
            "run"
        ) from None
    rows = np.broadcast_to(rows, (len(pulled), len(places)))
    return rows.max(1), rows[np.arange(len(pulled)), pulled]


def regret(record: Record, world: _World, start: npt.ArrayLike | None = None) -> FloatArray:
    """R_t = Σ_{τ≤t} (max_j m_j(x_τ) - m_{a_τ}(x_τ)), for every step t of the record.

    `start` is the context in which the run began. It is needed only for a world with contexts that
    has been used for more than this run; other worlds ignore it.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> regret(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0.5, 0.5, 1. ])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(np.cumsum(best - pulled))


def best_share(record: Record, world: _World, start: npt.ArrayLike | None = None) -> FloatArray:
    """1 where the arm pulled has the largest mean reward, else 0; its mean is the share.

    `start` is as in `regret`.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> best_share(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0., 1., 0.])
    """
    best, pulled = _means(record, world, start)
    return np.asarray(pulled == best, np.float64)

"""What a run on a bandit has cost.

    regret       R_t = Σ_{τ≤t} (max_j m_j - m_{a_τ})        m_j the true mean rewards
    best share   b_t = 1 if m_{a_t} = max_j m_j, else 0

Regret in means, not in rewards paid: the luck of the draw is averaged out of it.
"""

from typing import Any, Protocol

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import MissingCapability, UnknownArm
from bayescontrol.record import Record

__all__ = ["best_share", "regret"]


class _World(Protocol):
    """Arms in order, and their mean rewards."""

    @property
    def labels(self) -> Any: ...
    @property
    def means(self) -> FloatArray: ...


def _pulled(record: Record, world: _World) -> FloatArray:
    """m_{a_t} for every step."""
    if not (hasattr(world, "labels") and hasattr(getattr(world, "means", None), "tolist")):
        raise MissingCapability(
            f"{world!r} has no one mean reward an arm: a world with contexts may have its own "
            "`regret(record)`"
        )
    means = dict(zip(world.labels, world.means.tolist(), strict=True))
    try:
        return np.array([means[a] for a in record.actions.tolist()], np.float64)
    except KeyError as error:
        raise UnknownArm(
            f"the record pulls arm {error}, which this world has not: give the world of the run"
        ) from None


def regret(record: Record, world: _World) -> FloatArray:
    """R_t = Σ_{τ≤t} (max_j m_j - m_{a_τ}), for every step t of the record.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> regret(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0.5, 0.5, 1. ])
    """
    pulled = _pulled(record, world)
    return np.asarray(np.cumsum(world.means.max() - pulled))


def best_share(record: Record, world: _World) -> FloatArray:
    """1 where the arm pulled has the largest mean reward, else 0; its mean is the share.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> best_share(Record(["red", "blue", "red"], [0, 1, 1]), world)
    array([0., 1., 0.])
    """
    pulled = _pulled(record, world)
    return np.asarray(pulled == world.means.max(), np.float64)

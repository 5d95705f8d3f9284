"""Snapshots: the fold of a log so far, as bytes that are checked before they are believed.

    state = named arrays        checksum = BLAKE2b(seq, state)

A snapshot is a cache. One that is damaged, of another model or ahead of its log is passed over
with a warning, and the log is folded instead.
"""

import warnings
from hashlib import blake2b

import msgspec
import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.durable.store import Snapshot
from bayescontrol.errors import IncompatibleState


class DamagedSnapshot(UserWarning):
    """A snapshot was passed over; the log is folded instead, which takes longer.

    >>> issubclass(DamagedSnapshot, UserWarning)
    True
    """


class SnapshotNotKept(UserWarning):
    """A snapshot could not be written. Nothing is lost: the next opening takes longer.

    >>> issubclass(SnapshotNotKept, UserWarning)
    True
    """


class _Array(msgspec.Struct, array_like=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


_decode = msgspec.msgpack.Decoder(dict[str, _Array]).decode


def _digest(seq: int, state: bytes) -> bytes:
    return blake2b(state, digest_size=16, key=str(seq).encode()).digest()


def snapshot_of(seq: int, arrays: Arrays) -> Snapshot:
    """The arrays as a snapshot.

    >>> snapshot_of(3, {"r": np.array([1.0])}).seq
    3
    """
    state = msgspec.msgpack.encode(
        {
            name: _Array(v.dtype.str, v.shape, np.ascontiguousarray(v).tobytes())
            for name, v in sorted(arrays.items())
        }
    )
    return Snapshot(seq, state, _digest(seq, state))


def arrays_of(snapshot: Snapshot) -> Arrays:
    """The arrays of a snapshot; `IncompatibleState` if it is not what was written.

    >>> arrays_of(snapshot_of(3, {"r": np.array([1.0])}))
    {'r': array([1.])}
    """
    if _digest(snapshot.seq, snapshot.state) != snapshot.checksum:
        raise IncompatibleState("its checksum does not hold")
    try:
        return {
            name: np.frombuffer(v.data, np.dtype(v.dtype)).reshape(v.shape).copy()
            for name, v in _decode(snapshot.state).items()
        }
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise IncompatibleState(f"it cannot be read: {error}") from None


def warn_passed_over(seq: int, why: object) -> None:
    """Say that the snapshot at seq is passed over.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_passed_over(3, "its checksum does not hold")
    >>> print(caught[0].message)
    the snapshot after event 3 is passed over (its checksum does not hold): the log is folded ...
    """
    warnings.warn(
        f"the snapshot after event {seq} is passed over ({why}): the log is folded instead",
        DamagedSnapshot,
        stacklevel=4,
    )


def warn_not_kept(seq: int, why: object) -> None:
    """Say that there is no snapshot at seq.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_not_kept(3, "no room")
    >>> print(caught[0].message)
    no snapshot was kept after event 3 (no room): the log has every event, opening takes longer
    """
    warnings.warn(
        f"no snapshot was kept after event {seq} ({why}): the log has every event, opening takes "
        "longer",
        SnapshotNotKept,
        stacklevel=4,
    )

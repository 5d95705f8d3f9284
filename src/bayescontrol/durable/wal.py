"""Find damage in the write-ahead log of SQLite, which SQLite takes for the end of the log.

    header   magic, version, page size, checkpoint, 2 salts, 2 checksums          (32-bit words)
    frame    page number, pages after a commit (otherwise 0), 2 salts, 2 checksums, a page

    s₁ ← s₁ + s₂ + x₀,   s₂ ← s₂ + s₁ + x₁   (mod 2³²)     for each pair of words of a frame

The checksum of a frame starts from the checksum of the frame before. It is linear, so one product
of matrices shows for every frame whether it continues the frame before it.

SQLite stops at the first frame that does not continue the log, and drops the rest. After a crash
this is the end of the log: then come frames of an earlier generation, which have other salts, or
the last transaction, of which a power cut may leave any part. But a commit is flushed before the
next transaction begins (`synchronous = FULL`). A commit frame that the next frame continues was
therefore on disk, with everything before it: if SQLite drops it, the log is damaged. The header is
flushed before the first frame, so a broken header with a commit after it is damage too. Damage to
the last transaction looks like a power cut and is not detected, nor is damage to the commit frame
before it if it hits the checksum, clears the commit mark, or the header is in two sectors. A log
that was cut off or removed, or that a machine of the other byte order wrote, is not checked.
"""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayescontrol.errors import DamagedLog, counted

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
#: The page size of SQLite, for a log whose header is damaged.
_PAGE: Final = 4096
#: A power cut leaves each sector either old or new.
_SECTOR: Final = 512


def require_intact_wal(database: Path) -> None:
    """Raise `DamagedLog` if SQLite would drop commits that were on disk. Changes nothing."""
    wal = Path(f"{database}-wal")
    if not wal.exists() or wal.stat().st_size <= _HEADER:
        return
    content = np.fromfile(wal, np.uint8)
    header = content[:_HEADER].view(">u4").astype(np.uint32)
    weights, _ = _checksum_weights(3)
    has_sum = (content[:24].view(np.uint32) @ weights == header[6:]).all()
    is_valid = bool(has_sum and header.any())  # the checksum of zeros is 0
    size = _FRAME_HEADER + (int(header[2]) if is_valid else _PAGE)
    count = (len(content) - _HEADER) // size
    frames = content[_HEADER : _HEADER + count * size].reshape(count, size)
    fields = frames[:, :_FRAME_HEADER].copy().view(">u4").astype(np.uint32)
    weights, start_weights = _checksum_weights(size // 8 - 2)
    weights = np.insert(weights, [2] * 4, 0, axis=0)  # the salts and the checksum do not count
    starts = np.vstack([header[6:], fields[:-1, 4:]])[:count]
    sums = starts @ start_weights + frames.view(np.uint32) @ weights
    continues = (sums == fields[:, 4:]).all(axis=1) & (fields[:, 0] != 0)
    commits = fields[:, 1] != 0
    if is_valid:
        continues &= (fields[:, 2:4] == header[4:6]).all(axis=1)
        broken = int(np.argmin(np.append(continues, False)))
        # The header of a frame in one sector is from one write, even if its page is broken.
        offsets = _HEADER + size * np.arange(count)
        is_known = continues | (offsets % _SECTOR <= _SECTOR - _FRAME_HEADER)
        dropped = commits & is_known & np.append(continues[1:], False)
        lost = int(dropped[broken:].sum())
        damage = f"at frame {broken + 1}: at least {counted(lost, 'acknowledged commit')}"
    else:
        lost = int((commits & continues).sum())  # some may be of an earlier generation
        damage = "at its header: all its commits"
    if lost:
        raise DamagedLog(
            f"{wal} is damaged {damage} cannot be read. Restore a backup and delete {wal}; or "
            f"copy both files, then run sqlite3 {database} 'PRAGMA wal_checkpoint(TRUNCATE)' to "
            "continue without these events; nothing was changed"
        )


def _checksum_weights(pairs: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the weights of the words, and of the checksum that the sum starts from."""
    power, weights = np.eye(2, dtype=np.uint32), []
    for _ in range(pairs):  # from the last pair to the first
        weights.append(np.array([[1, 1], [0, 1]], np.uint32) @ power)
        power = np.array([[1, 1], [1, 2]], np.uint32) @ power
    return np.vstack(weights[::-1]), power

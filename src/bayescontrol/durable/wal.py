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
the last transaction looks like a power cut and is not detected, nor is a log that was cut off or
removed.
"""

import sys
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}  # the byte order of the words in a checksum
#: A power cut leaves each sector either old or new.
_SECTOR: Final = 512
#: Larger databases are not copied to memory in order to list the lost events.
_MAX_IMAGE: Final = 2**28


class WalDamage(NamedTuple):
    """What a damaged write-ahead log has lost."""

    frame: int  #: the first frame that SQLite rejects; 0 for the header
    commits: int  #: the number of acknowledged commits that SQLite drops
    events: dict[str, tuple[int, int]]  #: the first and last event lost, by agent, if known


def find_damage(database: Path) -> WalDamage | None:
    """Return the damage to the write-ahead log of a database, or None. Changes nothing."""
    wal = Path(f"{database}-wal")
    if not wal.exists() or wal.stat().st_size <= _HEADER:
        return None
    content = np.fromfile(wal, np.uint8)
    header = content[:_HEADER].view(">u4").astype(np.uint32)
    # Without a valid header: SQLite writes in the byte order of the machine.
    order = _MAGIC.get(int(header[0]), _MAGIC[0x377F0682 + (sys.byteorder == "big")])
    weights, _ = _checksum_weights(3)
    is_sum = (content[:24].view(f"{order}u4") @ weights == header[6:]).all()
    is_valid = bool(int(header[0]) in _MAGIC and is_sum)
    size = _FRAME_HEADER + (int(header[2]) if is_valid else _page_size(database))
    count = (len(content) - _HEADER) // size
    if count == 0:
        return None
    frames = content[_HEADER : _HEADER + count * size].reshape(count, size)
    fields = frames[:, :_FRAME_HEADER].copy().view(">u4").astype(np.uint32)
    checksums = np.vstack([header[6:], fields[:, 4:]])
    continues = _continues(frames.view(f"{order}u4"), checksums) & (fields[:, 0] != 0)
    commits = fields[:, 1] != 0
    if is_valid:
        continues &= (fields[:, 2:4] == header[4:6]).all(axis=1)
        broken = int(np.argmin(np.append(continues, False)))
        # The header of a frame in one sector is from one write, even if its page is broken.
        offsets = _HEADER + size * np.arange(count)
        is_known = continues | (offsets % _SECTOR <= _SECTOR - _FRAME_HEADER)
        dropped = commits & is_known & np.append(continues[1:], False)
        dropped[:broken] = False
    else:
        broken, dropped = 0, commits & continues
    if not dropped.any():
        return None
    end = int(np.flatnonzero(commits & (continues | dropped))[-1]) + 1
    before = _last_events(database, frames[:broken], fields[:broken])
    after = _last_events(database, frames[:end], fields[:end])
    lost = dict[str, tuple[int, int]]()
    if before is not None and after is not None:
        events = {name: (before.get(name, 0) + 1, last) for name, last in after.items()}
        lost = {name: (i, j) for name, (i, j) in events.items() if i <= j}
    return WalDamage(broken + is_valid, int(dropped.sum()), lost)


def _continues(words: NDArray[np.uint32], checksums: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for each frame whether its checksum follows from that of the frame before it."""
    weights, start_weights = _checksum_weights(words.shape[1] // 2 - 2)
    weights = np.insert(weights, [2] * 4, 0, axis=0)  # the salts and the checksum do not count
    result = checksums[:-1] @ start_weights + words @ weights == checksums[1:]
    return np.asarray(result.all(axis=1))


def _checksum_weights(pairs: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the weights of the words, and of the checksum that the sum starts from."""
    power, weights = np.eye(2, dtype=np.uint32), []
    for _ in range(pairs):  # from the last pair to the first
        weights.append(np.array([[1, 1], [0, 1]], np.uint32) @ power)
        power = np.array([[1, 1], [1, 2]], np.uint32) @ power
    return np.vstack(weights[::-1]), power


def _page_size(database: Path) -> int:
    """Return the page size in the header of the database."""
    with database.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:])
    return 65536 if size == 1 else size


def _last_events(
    database: Path, frames: NDArray[np.uint8], fields: NDArray[np.uint32]
) -> dict[str, int] | None:
    """Return the last event of each agent in the database and these frames; None if unknown."""
    import apsw

    page_size = frames.shape[1] - _FRAME_HEADER
    stored = database.stat().st_size // page_size
    ends = np.flatnonzero(fields[:, 1])  # SQLite reads up to the last commit
    end = int(ends[-1]) + 1 if len(ends) else 0
    pages = int(fields[end - 1, 1]) if end else stored
    if not 0 < max(pages, stored) * page_size <= _MAX_IMAGE:
        return None
    image = np.zeros((max(pages, stored), page_size), np.uint8)
    image.flat[: stored * page_size] = np.fromfile(database, np.uint8, stored * page_size)
    for page, number in zip(frames[:end, _FRAME_HEADER:], fields[:end, 0].tolist(), strict=True):
        if 1 <= number <= pages:
            image[number - 1] = page
    image[0, 18:20] = 1  # an image in memory has no write-ahead log
    db = apsw.Connection(":memory:")
    try:
        db.deserialize("main", image[:pages].tobytes())
        query = "SELECT name, (SELECT max(seq) FROM events WHERE log = id) FROM logs"
        return {name: last or 0 for name, last in db.execute(query)}
    except apsw.SQLError:  # there are no tables yet
        return {}
    except (apsw.Error, UnicodeDecodeError):  # these pages are damaged too
        return None
    finally:
        db.close()

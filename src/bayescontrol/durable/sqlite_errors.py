"""Errors of SQLite as ours: what happened, what is on disk, and the way out.

nothing was written    `DiskFull`, `StoreBusy`, `DamagedLog`
nobody knows           `StoreFailed`: what was acknowledged is kept, the last event perhaps not
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from bayescontrol.errors import DamagedLog, DiskFull, StoreBusy, StoreFailed


def damaged(place: str, why: object) -> DamagedLog:
    """The error for a file that is not what was written.

    >>> damaged("shop.db", "row 3 missing from index keys")
    DamagedLog('shop.db is not a store, or is damaged (row 3 missing from index keys): restore ...
    """
    return DamagedLog(
        f"{place} is not a store, or is damaged ({why}): restore a backup, or name another file; "
        "nothing in it was changed"
    )


#: Parts of the messages of SQLite about a schema that is not ours.
_OTHER_SCHEMA: Final = ("no such table", "no such column", "has no column", "malformed")


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Errors of SQLite as ours, each with its way out.

    >>> with translated("shop.db"):
    ...     raise apsw.FullError("database or disk is full")
    Traceback (most recent call last):
    bayescontrol.errors.DiskFull: shop.db: no room for another event; ...
    """
    try:
        yield
    except apsw.FullError:
        raise DiskFull(
            f"{place}: no room for another event; nothing was written. Make room and ask again"
        ) from None
    except (apsw.BusyError, apsw.LockedError):
        raise StoreBusy(
            f"{place} is open in another program: close it there; one process writes at a time"
        ) from None
    except (apsw.NotADBError, apsw.CorruptError, apsw.FormatError) as error:
        raise damaged(place, error) from None
    except apsw.SQLError as error:
        if any(words in str(error) for words in _OTHER_SCHEMA):  # the statements are constant
            raise damaged(place, error) from None
        raise StoreFailed(f"{place}: {error}; reopen the store and retry") from None
    except UnicodeDecodeError as error:
        raise damaged(place, f"it holds text that is not UTF-8: {error}") from None
    except apsw.Error as error:
        raise StoreFailed(
            f"{place}: {error}; what was acknowledged is kept, whether the last event was "
            "written is unknown: reopen the store"
        ) from error

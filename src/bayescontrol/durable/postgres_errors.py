"""Errors of PostgreSQL as ours: what happened, what is on disk, and the way out.

nothing was written    `DiskFull`, `StoreBusy`, `NotPermitted`, `DamagedLog`
nobody knows           `StoreFailed`: what was acknowledged is kept, the last event perhaps not
"""

from bayescontrol.durable.postgres_address import psycopg
from bayescontrol.errors import DamagedLog, DiskFull, NotPermitted, StoreBusy, StoreFailed


def translation(error: psycopg.Error, place: str) -> StoreFailed:
    """An error of PostgreSQL as ours, with its way out.

    >>> translation(psycopg.errors.DiskFull("No space left on device"), "postgresql:///shop")
    DiskFull('postgresql:///shop: no room for another event (No space left on device); ...')
    """
    what = str(error).strip().partition("\n")[0]
    match error:
        case psycopg.errors.DiskFull():
            return DiskFull(
                f"{place}: no room for another event ({what}); nothing was written. Make room on "
                "the server and ask again"
            )
        case psycopg.errors.InsufficientPrivilege() | psycopg.errors.InvalidPassword():
            return NotPermitted(f"{place}: {what}; have the role granted what it lacks")
        case psycopg.errors.InvalidAuthorizationSpecification():
            return NotPermitted(f"{place}: {what}")
        case psycopg.errors.ReadOnlySqlTransaction():
            return NotPermitted(
                f"{place} only reads ({what}); nothing was written. Name the primary server"
            )
        case (
            psycopg.errors.LockNotAvailable()
            | psycopg.errors.QueryCanceled()
            | psycopg.errors.DeadlockDetected()
            | psycopg.errors.TooManyConnections()
        ):
            return StoreBusy(f"{place} is busy ({what}); nothing was written, ask again")
        case (
            psycopg.errors.UndefinedTable()
            | psycopg.errors.UndefinedColumn()
            | psycopg.errors.InvalidSchemaName()
            | psycopg.errors.DatatypeMismatch()
            | psycopg.errors.DataCorrupted()
            | psycopg.errors.IndexCorrupted()
        ):
            return DamagedLog(
                f"{place}: the tables are not as they were made ({what}): put back a copy, or name "
                "another schema"
            )
    return StoreFailed(
        f"{place}: {what}; what was acknowledged is kept, whether the last event was written is "
        "unknown: ask again under the same key"
    )

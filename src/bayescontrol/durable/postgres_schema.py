"""The tables of a PostgreSQL store, in a schema of their own.

    about       who made them, and in which layout
    logs        each log by name, and its head: the row that whoever appends must have
    events      the rows of all logs; (log, seq), (log, n) and (log, key) are unique
    snapshots   folds, by log and seq

`batch` names the append that a row came by: after a lost connection it tells whether the row is
one's own, which its content cannot tell: two processes at one head draw the same action.
"""

from functools import cache
from typing import Final, LiteralString
from zlib import crc32

from psycopg.sql import SQL, Identifier

from bayescontrol.durable.postgres_server import Connection
from bayescontrol.errors import DamagedLog, NewerFormat

#: The layout of the tables; that of the events within is `events.FORMAT`.
LAYOUT: Final = 1
_PROGRAM: Final = "bayescontrol"
_OURS: Final = frozenset({"about", "logs", "events", "snapshots"})
#: "BaCo": one process at a time makes tables.
_MAKING: Final = 0x4261436F
_TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS {s};
CREATE TABLE {s}.about (program text NOT NULL, layout integer NOT NULL);
CREATE TABLE {s}.logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE,
    head bigint NOT NULL CHECK (head > 0)
) WITH (fillfactor = 50);
CREATE TABLE {s}.events (
    log bigint NOT NULL, seq bigint NOT NULL CHECK (seq > 0), kind text NOT NULL, n bigint,
    key text COLLATE "C", payload bytea NOT NULL, checksum bigint NOT NULL, batch uuid NOT NULL,
    PRIMARY KEY (log, seq)
);
CREATE UNIQUE INDEX observations ON {s}.events (log, n) WHERE n IS NOT NULL;
CREATE UNIQUE INDEX keys ON {s}.events (log, key) WHERE key IS NOT NULL;
CREATE TABLE {s}.snapshots (
    log bigint NOT NULL, seq bigint NOT NULL, state bytea NOT NULL, checksum bytea NOT NULL,
    PRIMARY KEY (log, seq)
);
"""
_RELATIONS: Final = """
SELECT relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
WHERE nspname = %s AND relkind IN ('r', 'p', 'v', 'm', 'f')
"""


@cache
def phrase(text: LiteralString, schema: str) -> bytes:
    """The statement: {s} is the schema, {log} the log of a name, {row} a row of it.

    >>> phrase("SELECT max(seq) FROM {s}.events WHERE log = {log}", "tests")
    b'SELECT max(seq) FROM "tests".events WHERE log = (SELECT id FROM "tests".logs WHERE name = %s)'
    """
    s = Identifier(schema)
    log = SQL("(SELECT id FROM {s}.logs WHERE name = %s)").format(s=s)
    row = SQL("SELECT seq, kind, n, key, payload, checksum FROM {s}.events WHERE log = {log}")
    return SQL(text).format(s=s, log=log, row=row.format(s=s, log=log)).as_bytes(None)


def prepare(connection: Connection, schema: str, place: str) -> None:
    """Make the tables if the schema is new or empty; require that they are ours.

    >>> from bayescontrol.durable.store import open_store
    >>> open_store("postgresql:///shop?schema=pg_catalog")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownStore: schema='pg_catalog': a schema is called by 1 to 63 ...
    """
    if not _relations(connection, schema):
        with connection.transaction():
            connection.execute(
                "SELECT pg_advisory_xact_lock(%s, %s)", (_MAKING, crc32(schema.encode()) - 2**31)
            )
            if not _relations(connection, schema):  # nobody was faster
                connection.execute(phrase(_TABLES, schema))
                about = phrase("INSERT INTO {s}.about VALUES (%s, %s)", schema)
                connection.execute(about, (_PROGRAM, LAYOUT))
    _require_ours(connection, schema, place)


def _relations(connection: Connection, schema: str) -> set[str]:
    return {name for (name,) in connection.execute(_RELATIONS, (schema,))}


def _require_ours(connection: Connection, schema: str, place: str) -> None:
    found = _relations(connection, schema)
    if "about" in found:
        columns = connection.execute(
            "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_catalog.pg_attribute "
            "WHERE attnum > 0 AND NOT attisdropped AND attrelid = %s::regclass",
            (f'"{schema}".about',),
        ).fetchone()
        if columns == ("program layout",):
            query = phrase("SELECT program, layout FROM {s}.about", schema)
            for program, layout in connection.execute(query):
                if program == _PROGRAM and layout > LAYOUT:
                    raise NewerFormat(
                        f"{place} has layout {layout}, this release reads up to {LAYOUT}: install "
                        "a later one"
                    )
                if program == _PROGRAM and found >= _OURS:
                    return
                if program == _PROGRAM:
                    raise DamagedLog(
                        f"{place}: the schema {schema!r} lacks {sorted(_OURS - found)}: put back a "
                        "copy, or name another schema"
                    )
    raise DamagedLog(
        f"{place}: the schema {schema!r} holds tables of another program: name another one, "
        "…?schema=mine; nothing in it was changed"
    )

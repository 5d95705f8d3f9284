"""The address of a PostgreSQL store.

    postgresql://ann@db.example/shop                the tables are in the schema `bayescontrol`
    postgresql://ann@db.example/shop?schema=tests   in another one
    postgresql:///shop?host=/run/postgresql         through a local socket

All else is as libpq reads it, its environment (PGPASSWORD, PGSSLMODE, …) and ~/.pgpass included.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from bayescontrol.errors import MissingCapability, UnknownStore

try:
    import psycopg as psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise MissingCapability(
        f"PostgreSQL needs psycopg ({error}): pip install 'bayescontrol[postgres]'"
    ) from None

_SCHEMA: Final = "bayescontrol"
#: A network that goes silent is given up after half a minute, not after a quarter of an hour.
_DEFAULTS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "bayescontrol",
}


class Address(NamedTuple):
    """Where to connect, and which schema is ours there.

    >>> address_of("postgresql://ann@db.example/shop").schema
    'bayescontrol'
    """

    conninfo: str  #: for libpq; it may hold a password
    schema: str
    shown: str  #: for people, without a password


def address_of(url: str) -> Address:
    """The address in its parts.

    >>> address_of("postgresql://ann:secret@db.example:5433/shop?schema=tests").shown
    'postgresql://ann@db.example:5433/shop?schema=tests'
    """
    base, mark, query = url.partition("?")
    pairs = query.split("&") if mark else []
    schemas = [unquote(p.partition("=")[2]) for p in pairs if p.startswith("schema=")]
    schema = schemas[-1] if schemas else _SCHEMA
    if not re.fullmatch(r"(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}", schema):
        raise UnknownStore(
            f"schema={schema!r}: a schema is called by 1 to 63 letters, digits and _, and not pg_…"
        )
    rest = "&".join(p for p in pairs if not p.startswith("schema="))
    try:
        given = conninfo_to_dict(f"{base}?{rest}" if rest else base)
    except psycopg.ProgrammingError:  # what libpq says may hold the password
        raise UnknownStore(
            "the address cannot be read: write postgresql://user@host:5432/database; letters like "
            "@ : / % in a name or password are written as %40 %3A %2F %25"
        ) from None
    known = {name: str(v) for name, v in given.items() if v is not None}
    conninfo = make_conninfo("", **{**_DEFAULTS, **known, "client_encoding": "UTF8"})
    return Address(conninfo, schema, _shown(known, schema))


def _shown(known: dict[str, str], schema: str) -> str:
    host, port = known.get("host", ""), known.get("port", "")
    query = [f"host={host}"] if "/" in host else []
    at = f"{quote(known['user'])}@" if "user" in known else ""
    at += ("" if query else host) + (f":{port}" if port else "")
    query += [f"schema={schema}"] if schema != _SCHEMA else []
    end = "?" + "&".join(query) if query else ""
    return f"postgresql://{at}/{quote(known.get('dbname', ''))}{end}"

"""A database dump is loaded, and its logs open with their state."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import psycopg
import pytest
from tests.durable.fixtures.make import FOLDER
from tests.durable.postgres.server import Postgres
from tests.durable.test_formats import SNAPSHOTS, require_as_expected

from bayescontrol.durable import open_store
from bayescontrol.durable.stores.postgres import LAYOUT

_NUMBERS = count(1)
DUMP = (FOLDER / "kinds.sql").read_text()


@pytest.fixture
def loaded(server: Postgres) -> Iterator[str]:
    """The address of a database that holds the dump."""
    database = f"loaded_{next(_NUMBERS)}"
    server.sql(f"CREATE DATABASE {database}")
    server.sql(DUMP, database=database)
    yield server.url(database=database)
    server.sql(f"DROP DATABASE {database} WITH (FORCE)")


@pytest.mark.parametrize("snapshots", SNAPSHOTS)
def test_a_dump_opens_with_its_state_and_continues(loaded: str, snapshots: str) -> None:
    with psycopg.connect(loaded) as connection:
        connection.execute("SET search_path TO bayescontrol")
        connection.execute(f"DELETE FROM snapshots WHERE {SNAPSHOTS[snapshots]}".encode())
    with closing(open_store(loaded)) as store:
        require_as_expected(store)


def test_the_dump_has_the_current_layout() -> None:
    assert f"('bayescontrol', {LAYOUT});" in DUMP

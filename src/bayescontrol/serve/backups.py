"""Online backups of a served store: copies in a folder, regularly and on request.

    FOLDER/NAME-YYYYmmddTHHMMSSZ.db      a copy of the whole store at that time, in UTC
    POST /v1/backups                     make one now
    GET  /v1/backups                     list them

A thread copies the store, so that decisions go on. A backup is a SQLite file that the server can
open. After each backup, the oldest of the same NAME are deleted, except the newest `keep`.
"""

import asyncio
import logging
import math
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from bayescontrol.errors import BayesControlError, StoreFailed
from bayescontrol.serve.bodies import Backup
from bayescontrol.serve.monitor import Metrics

_logger = logging.getLogger("bayescontrol.serve")
_TIME: Final = "%Y%m%dT%H%M%SZ"
#: Seconds between two looks at the clock.
_TICK: Final = 1.0


class BackupPlan(NamedTuple):
    """Where backups go; the seconds between them, None for backups on request only.

    `keep` is the number of backups that are not deleted, None for all.

    >>> BackupPlan(Path("backups"), every=86_400.0, keep=7).keep
    7
    """

    folder: Path
    every: float | None = None
    keep: int | None = None


class Backups:
    """The backups of one store. `copy` writes it to a new file; `url` gives the backups their name.

    >>> import asyncio, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan = BackupPlan(Path(folder))
    ...     backups = Backups(plan, lambda path: path.write_bytes(b"all"), "sqlite:///shop.db",
    ...                       Metrics())
    ...     made = asyncio.run(backups.make())
    ...     made.name.startswith("shop-"), made.bytes, backups.all() == [made]
    (True, 3, True)
    """

    def __init__(
        self, plan: BackupPlan, copy: Callable[[Path], object], url: str, metrics: Metrics
    ) -> None:
        for name, value in (("every", plan.every), ("keep", plan.keep)):
            if value is not None and not value > 0:
                raise ValueError(f"--backup-{name}={value!r} is invalid: it must be positive")
        if not (plan.folder.is_dir() and os.access(plan.folder, os.R_OK | os.W_OK)):
            raise StoreFailed(
                f"--backup-folder {plan.folder} is not a writable folder: create it first"
            )
        self._plan, self._copy = plan, copy
        self._name = re.sub(r"[^\w.-]+", "-", Path(urlsplit(url).path).stem).strip("-.") or "store"
        self._pattern = re.compile(rf"{re.escape(self._name)}-(\d{{8}}T\d{{6}}Z)\.db")
        self._pool = ThreadPoolExecutor(1, "bayescontrol-backup")
        self._running: asyncio.Future[Backup] | None = None
        found = self.all()
        self._last_success = found[-1].time if found else -math.inf
        self._failed = False
        age: Callable[[], float] = lambda: time.time() - self._last_success  # noqa: E731
        metrics.gauge("seconds_since_backup", "Seconds since the last backup.", age)
        metrics.gauge("backup_failed", "1 if the last backup failed.", lambda: float(self._failed))

    def all(self) -> list[Backup]:
        """Return the backups in the folder, oldest first."""
        found = []
        for path in self._plan.folder.iterdir():
            match = self._pattern.fullmatch(path.name)
            if match is not None:
                with suppress(OSError, ValueError):  # deleted meanwhile, or no valid time
                    when = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
                    found.append(Backup(path.name, when.timestamp(), path.stat().st_size))
        return sorted(found, key=lambda backup: backup.time)

    async def make(self) -> Backup:
        """Make a backup; concurrent calls share one, which goes on if a caller stops waiting."""
        if self._running is None or self._running.done():
            loop = asyncio.get_running_loop()
            self._running = loop.run_in_executor(self._pool, self._make)
            # Retrieve an error, so that asyncio does not log it when no caller waits any more.
            self._running.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._running)

    def _make(self) -> Backup:
        """Copy the store, then delete the oldest backups; runs in a thread."""
        began = time.perf_counter()
        try:
            while (path := self._new_path()).exists():  # made in the same second
                time.sleep(0.1)
            self._copy(path)
            new = next(backup for backup in reversed(self.all()) if backup.name == path.name)
            for old in self.all()[: -self._plan.keep] if self._plan.keep else ():
                (self._plan.folder / old.name).unlink(missing_ok=True)
        except Exception as error:
            self._failed = True
            # The message says what is wrong.
            _logger.error(  # noqa: TRY400
                "the backup to %s failed: %s", self._plan.folder, error
            )
            if isinstance(error, OSError) and not isinstance(error, BayesControlError):
                raise StoreFailed(f"the backup failed: {error}") from error
            raise
        self._last_success, self._failed = new.time, False
        seconds = time.perf_counter() - began
        _logger.info("backup %s: %d bytes in %.1f s", new.name, new.bytes, seconds)
        return new

    def _new_path(self) -> Path:
        """Return the path of a backup that is made now."""
        return self._plan.folder / f"{self._name}-{datetime.now(UTC).strftime(_TIME)}.db"

    async def run(self) -> None:
        """Make backups regularly, until cancelled. The first is due `every` seconds after the last.

        A failed backup is tried again after the same time.
        """
        every = self._plan.every
        due = math.inf if every is None else self._last_success + every
        while every is not None:
            if time.time() >= due:
                with suppress(Exception):  # it is logged
                    await self.make()
                due = time.time() + every
            await asyncio.sleep(min(_TICK, every))

    def close(self) -> None:
        """Wait for a backup that is running; it fails if the store is closed already."""
        self._pool.shutdown()

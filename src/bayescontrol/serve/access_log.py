"""The access log: a line of JSON for each request, written by a thread.

    {"time": "2026-11-19T02:00:00.123Z", "id": "5f1c…-17", "token": "shop", "address": "10.0.0.7",
     "method": "POST", "route": "/v1/agents/{name}/act", "path": "/v1/agents/checkout/act",
     "status": 200, "bytes": 312, "seconds": 0.0042, "agent": "checkout"}

The path has no query, because a query may contain a situation. Bodies and tokens are never logged.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from bayescontrol._support.files import os_errors_as
from bayescontrol.durable.log import PRIVATE
from bayescontrol.errors import Unwritable

_logger = logging.getLogger("bayescontrol.serve")
#: The path that stands for standard output.
STDOUT: Final = Path("-")
#: Seconds between two writes.
_PERIOD: Final = 0.1
#: Maximum lines that wait for a slow disk; others are lost.
_MAX_WAITING: Final = 100_000
#: Maximum characters of a path.
_MAX_PATH: Final = 1_000
_AGENT: Final = "/v1/agents/{name"


class AccessLog:
    """A file, or standard output for the path "-", to which lines are appended.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = AccessLog(Path(folder) / "access.log")
    ...     log.add({"method": "GET", "path": "/docs", "status": 200}, 0.001)
    ...     log.close()
    ...     msgspec.json.decode((Path(folder) / "access.log").read_bytes())["path"]
    '/docs'
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: deque[bytes] = deque()
        self._stopping, self._reopening = threading.Event(), False
        #: Lines that could not be written.
        self.lost = 0
        self._failed = False  # whether the last write failed
        with os_errors_as(Unwritable, f"cannot write {path}", "choose another --access-log"):
            self._file = self._open()
        self._thread = threading.Thread(target=self._run, name="bayescontrol-access", daemon=True)
        self._thread.start()

    def _open(self) -> int:
        """Return a descriptor of the file."""
        if self._path == STDOUT:
            return os.dup(1)
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE)

    def add(self, scope: MutableMapping[str, Any], seconds: float) -> None:
        """Add the line of a request, which took this long; does not wait for the disk."""
        if len(self._waiting) >= _MAX_WAITING:
            self.lost += 1
            return
        path, route = scope["path"], scope.get("path_template")
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {
            "time": now, "id": scope.get("request_id"), "token": scope.get("token"),
            "address": (scope.get("client") or (None,))[0], "method": scope["method"],
            "route": route, "path": path[:_MAX_PATH], "status": scope.get("status"),
            "bytes": scope.get("sent", 0), "seconds": round(seconds, 6),
            "agent": path.split("/")[3] if str(route).startswith(_AGENT) else None,
        }  # fmt: skip
        self._waiting.append(msgspec.json.encode(line) + b"\n")

    def reopen(self) -> None:
        """Open the file again before the next write, after it was renamed."""
        self._reopening = True

    def close(self) -> None:
        """Write the lines that wait, and close the file."""
        self._stopping.set()
        self._thread.join()
        os.close(self._file)

    def _run(self) -> None:
        """Write the lines ten times a second, and the last ones at the end."""
        while not self._stopping.wait(_PERIOD):
            self._write()
        self._write()

    def _write(self) -> None:
        """Write the lines that wait; if that fails, they are lost, which is logged once."""
        rest = b"".join([self._waiting.popleft() for _ in range(len(self._waiting))])
        try:
            if self._reopening:
                self._reopening, old, self._file = False, self._file, self._open()
                os.close(old)
            while rest:
                rest = rest[os.write(self._file, rest) :]
                self._failed = False
        except OSError as error:
            self.lost += rest.count(b"\n")
            if not self._failed:
                self._failed = True
                # The disk may be full: no traceback.
                _logger.error(  # noqa: TRY400
                    "cannot write the access log %s: %s", self._path, error
                )

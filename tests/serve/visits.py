"""Client processes that visit an agent, and a check of their acknowledgements against the log."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.limits import TIMEOUT
from tests.serve.raw import number

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, Observed

CLIENTS = 4
SHOP = BernoulliBandit(["red", "green", "blue"])
_VISITOR = Path(__file__).with_name("visitor.py")


class Visitors:
    """A process for each address; each writes its acknowledgements to a separate file."""

    def __init__(self, urls: list[str], visits: int, folder: Path) -> None:
        self.total = 2 * visits * len(urls)
        self._files = [folder / f"visitor-{who}.jsonl" for who in range(len(urls))]
        self._processes = []
        for who, url in enumerate(urls):
            line = [sys.executable, str(_VISITOR), url, "shop", str(who), str(visits)]
            with self._files[who].open("w") as out:
                self._processes.append(subprocess.Popen(line, stdout=out))

    def acknowledged(self) -> int:
        """Return the number of acknowledgements so far."""
        return sum(file.read_bytes().count(b"\n") for file in self._files)

    def wait_for(self, acknowledged: int) -> None:
        """Wait for this number of acknowledgements."""
        deadline = time.monotonic() + TIMEOUT
        while self.acknowledged() < acknowledged:
            assert not any(process.poll() for process in self._processes)
            assert time.monotonic() < deadline, f"{self.acknowledged()} of {acknowledged}"
            time.sleep(0.01)

    def history(self) -> list[dict[str, Any]]:
        """Wait until all processes succeed; return all acknowledgements."""
        assert [process.wait(TIMEOUT) for process in self._processes] == [0] * len(self._processes)
        return [json.loads(line) for file in self._files for line in file.read_text().splitlines()]

    def close(self) -> None:
        """Kill the processes that are still running."""
        for process in self._processes:
            process.kill()
            process.wait()


@contextmanager
def visitors(urls: list[str], visits: int, folder: Path) -> Iterator[Visitors]:
    """Run visitors of these addresses within a `with` block."""
    running = Visitors(urls, visits, folder)
    try:
        yield running
    finally:
        running.close()


def require_exactly_once(acknowledged: list[dict[str, Any]], events: list[Any]) -> None:
    """Assert that the log holds each acknowledged operation once, and nothing else."""
    decided = {event.key: event for event in events if isinstance(event, Decided)}
    observed = {event.n: event for event in events if isinstance(event, Observed)}
    assert len(decided) + len(observed) + 1 == len(events)  # no key and no n is repeated
    acts = [one for one in acknowledged if "key" in one]
    answers = [one for one in acknowledged if "o" in one]
    assert max(Counter(one["id"] for one in acts).values()) == 1
    for one in acts:
        event = decided.pop(one["key"])
        assert (event.seq, event.a) == (number(one["id"]), one["action"])
    for one in answers:
        assert observed.pop(number(one["id"])).o == one["o"]
    assert not decided
    assert not observed

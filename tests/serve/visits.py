"""Client processes that visit an agent, what they were told, and whether the log says the same."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, Observed

CLIENTS = 4
SHOP = BernoulliBandit(["red", "green", "blue"])
_VISITOR = Path(__file__).with_name("visitor.py")
_HUNG = 120.0


class Visitors:
    """A process for each address; each writes what was acknowledged into a file of its own."""

    def __init__(self, urls: list[str], visits: int, folder: Path) -> None:
        self.total = 2 * visits * len(urls)
        self._files = [folder / f"visitor-{who}.jsonl" for who in range(len(urls))]
        self._processes = []
        for who, url in enumerate(urls):
            line = [sys.executable, str(_VISITOR), url, "shop", str(who), str(visits)]
            with self._files[who].open("w") as out:
                self._processes.append(subprocess.Popen(line, stdout=out))

    def acknowledged(self) -> int:
        """How much, by now, by all of them."""
        return sum(file.read_bytes().count(b"\n") for file in self._files)

    def wait_for(self, acknowledged: int) -> None:
        """Until so much has been acknowledged."""
        hung = time.monotonic() + _HUNG
        while self.acknowledged() < acknowledged:
            assert not any(process.poll() for process in self._processes)
            assert time.monotonic() < hung, f"{self.acknowledged()} of {acknowledged}"
            time.sleep(0.01)

    def history(self) -> list[dict[str, Any]]:
        """What was acknowledged, by all of them; each must have come to its end."""
        assert [process.wait(_HUNG) for process in self._processes] == [0] * len(self._processes)
        return [json.loads(line) for file in self._files for line in file.read_text().splitlines()]

    def close(self) -> None:
        """End those who have not come to their end."""
        for process in self._processes:
            process.kill()
            process.wait()


@contextmanager
def visitors(urls: list[str], visits: int, folder: Path) -> Iterator[Visitors]:
    """Visitors of these addresses, for as long as the block lasts."""
    running = Visitors(urls, visits, folder)
    try:
        yield running
    finally:
        running.close()


def require_exactly_once(acknowledged: list[dict[str, Any]], events: list[Any]) -> None:
    """The checker: the log holds each acknowledged thing once, and nothing else of these keys."""
    decided = {event.key: event for event in events if isinstance(event, Decided)}
    observed = {event.n: event for event in events if isinstance(event, Observed)}
    assert len(decided) + len(observed) + 1 == len(events)  # no key and no n came twice
    acts = [one for one in acknowledged if "key" in one]
    answers = [one for one in acknowledged if "o" in one]
    assert max(Counter(one["id"] for one in acts).values()) == 1
    for one in acts:
        event = decided.pop(one["key"])
        assert (str(event.seq), event.a) == (one["id"], one["action"])
    for one in answers:
        assert observed.pop(int(one["id"])).o == one["o"]
    assert not decided
    assert not observed

"""Kill a working agent many times, and check its log after each kill.

    python kill_harness.py FOLDER KILLS SEED

A child writes `i …` before and `a …` after every operation to a pipe, and is killed at a named or
a random moment. Then every acknowledged operation must be in the log exactly once, every logged
operation must have been requested, and the posterior from snapshot and tail must equal a replay of
the whole log bitwise. The next child retries the operations of unknown outcome with the same keys.
The result is one line of JSON.

Children are forked from a process that has imported and compiled everything, so that a thousand
take a minute. All checks are exact, so there are no false alarms.
"""

import json
import os
import random
import select
import signal
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, DurableAgent, Observed, open_agent, replay
from bayescontrol.durable.stores.sqlite import SqliteLog
from bayescontrol.durable.stores.sqlite_file import SqliteFile
from bayescontrol.durable.turn import Turn

MODEL = BernoulliBandit(["red", "blue", "green"])
#: In the order of a decision: kill the process before or after which call. Without an owner it is
#: a method of the log or a function of its module; `write` stands for the function passed to it.
FAULT_POINTS: dict[str, tuple[str, Any, str]] = {
    "before-compute": ("before", Turn, "compute"),
    "before-append": ("before", None, "append"),
    "in-transaction": ("before", SqliteFile, "write"),
    "before-commit": ("after", SqliteFile, "write"),
    "after-commit": ("after", None, "append"),
    "before-return": ("after", DurableAgent, "_submit"),
    "before-snapshot": ("before", None, "save_snapshot"),
    "in-snapshot": ("before", None, "snapshots_to_delete"),
    "after-snapshot": ("after", None, "save_snapshot"),
    "before-close": ("before", DurableAgent, "close"),
}
#: Number of kills per log.
PER_LOG = 40
ANY = "any moment"
#: As in tests/limits.py, which a script cannot import.
TIMEOUT = 600.0


def arm(point: str, calls: int, log: Any = SqliteLog) -> None:
    """Kill this process (kill -9) when it reaches the point for the `calls`-th time."""
    when, owner, name = FAULT_POINTS[point]
    owner = owner or (log if hasattr(log, name) else sys.modules[log.__module__])
    original: Any = getattr(owner, name)

    def fatal(function: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls -= 1
        result = function(*arguments) if calls > 0 or when == "after" else None
        if calls <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    if name == "write":
        setattr(owner, name, lambda file, work: original(file, partial(fatal, work)))
    else:
        setattr(owner, name, lambda *arguments: fatal(original, *arguments))


def work(url: str, moment: str, seed: int, doubt: list[list[str]], say: Any) -> None:
    """Run the child: retry operations of unknown outcome, then run new ones in 1 or 3 threads."""
    rng = random.Random(seed)
    if moment != ANY:
        calls = rng.randint(1, 3 if "snapshot" in moment else 8)
        arm(moment, 1 if moment == "before-close" else calls)
    agent = open_agent(url, "shop", MODEL, snapshot_every=rng.choice([3, 7, 10_000]))
    say("open")

    def ask(key: str) -> str:
        say("i", "A", key)
        d = agent.act(key=key)
        say("a", "A", key, d.id, d.action)
        return d.id

    def answer(n: str, o: str) -> None:
        say("i", "O", n, o)
        agent.observe(n, int(o))
        say("a", "O", n, o)

    for kind, *words in doubt:
        if kind == "A":
            ask(words[0])
        else:
            answer(words[0], words[1])

    def live(thread: int, steps: int) -> None:
        local_rng, waiting = random.Random(seed * 31 + thread), []
        for i in range(steps):
            waiting.append(ask(f"{seed}-{thread}-{i}"))
            if local_rng.random() < 0.8:
                answer(waiting.pop(local_rng.randrange(len(waiting))), str(local_rng.randrange(2)))
            if local_rng.random() < 0.15:
                agent.snapshot()

    if rng.random() < 0.5:
        live(0, rng.randint(4, 12) if moment != ANY else 400)
    else:
        threads = [
            threading.Thread(target=live, args=(t, 6 if moment != ANY else 200)) for t in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for _ in range(3):
        agent.snapshot()
    agent.close()


def child(url: str, moment: str, seed: int, doubt: list[list[str]], pipe: int) -> None:
    """Run `work` and exit; never returns."""

    def say(*words: str) -> None:
        os.write(pipe, (" ".join(words) + "\n").encode())  # short lines are written whole

    code = 0
    try:
        work(url, moment, seed, doubt, say)
    except BaseException as error:  # report it to the parent
        say("failed", repr(error))
        code = 3
    os._exit(code)


def run_and_kill(
    url: str, moment: str, seed: int, doubt: list[list[str]]
) -> tuple[bool, list[list[str]]]:
    """Return whether the child was killed, and the lines it wrote."""
    rng = random.Random(-seed)
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        child(url, moment, seed, doubt, writing)
    os.close(writing)
    text = b""
    deadline = time.monotonic() + (rng.uniform(0.0, 0.1) if moment == ANY else TIMEOUT)
    while True:
        left = max(0.0, deadline - time.monotonic())
        if left == 0.0 or not select.select([reading], [], [], left)[0]:
            os.kill(process, signal.SIGKILL)
            deadline = time.monotonic() + TIMEOUT
        chunk = os.read(reading, 65536)
        if not chunk:
            break
        text += chunk
    os.close(reading)
    killed = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    lines = [line.split(" ") for line in text.decode().split("\n")[:-1]]
    failed = [line for line in lines if line[0] == "failed"]
    assert not failed, (moment, failed)
    return killed, lines


class History:
    """The requests sent to one log, and its acknowledgements."""

    def __init__(self) -> None:
        self.requested: set[str] = set()
        self.submitted: set[tuple[str, str]] = set()
        self.acts: dict[str, tuple[str, str]] = {}
        self.observations: dict[str, str] = {}

    def record(self, lines: list[list[str]]) -> list[list[str]]:
        """Record the lines of a child; return the operations of unknown outcome."""
        doubt: dict[tuple[str, ...], list[str]] = {}
        for mark, *words in lines:
            if mark == "i":
                doubt[tuple(words)] = words
                if words[0] == "A":
                    self.requested.add(words[1])
                else:
                    self.submitted.add((words[1], words[2]))
            elif mark == "a" and words[0] == "A":
                _, key, n, action = words
                del doubt["A", key]
                assert self.acts.setdefault(key, (n, action)) == (n, action), key
            elif mark == "a":
                _, n, o = words
                del doubt["O", n, o]
                self.observations[n] = o
        return list(doubt.values())

    def check(self, url: str) -> None:
        """Assert that the log matches the requests and acknowledgements."""
        with open_agent(url, "shop", MODEL) as agent:
            events = list(agent.log())
            whole, state = replay(iter(events)).state, agent.state()
            agent._last_snapshot = agent.head  # closing must not write a snapshot
        acts = {e.key: (str(e.seq), e.a) for e in events if isinstance(e, Decided)}
        observed = Counter(e.n for e in events if isinstance(e, Observed))
        answers = {str(e.n): str(e.o) for e in events if isinstance(e, Observed)}
        lost = {k: v for k, v in self.acts.items() if acts.get(k) != v}
        missing = {n: o for n, o in self.observations.items() if answers.get(n) != o}
        assert not lost, f"decisions lost or changed: {lost}"
        assert not missing, f"observations lost or changed: {missing}"
        assert len(acts) == sum(isinstance(e, Decided) for e in events), "a decision is duplicated"
        assert max(observed.values(), default=0) <= 1, "an observation is duplicated"
        assert acts.keys() <= self.requested, "a decision was not requested"
        assert set(answers.items()) <= self.submitted, "an observation was not sent"
        assert whole.keys() == state.keys()
        assert all(whole[n].tobytes() == state[n].tobytes() for n in whole), (
            "posterior differs from the replay"
        )


def main(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kill this many times, in turn at each named moment and at a random one."""
    with open_agent("sqlite:///:memory:", "warm", MODEL) as agent:  # compile before forking
        agent.observe(agent.act(), 1)
        agent.explain("2")
    hits: Counter[str] = Counter()
    acknowledged = doubted = number = 0
    moments = [m for point in FAULT_POINTS for m in (point, ANY)]
    while hits.total() < kills:
        history = History()
        doubt: list[list[str]] = []
        url = f"sqlite:///{folder / f'{number}.db'}"
        open_agent(url, "shop", MODEL, seed=seed + number).close()
        for _ in range(min(PER_LOG, kills - hits.total())):
            number += 1
            moment = moments[number % len(moments)]
            killed, lines = run_and_kill(url, moment, seed + number, doubt)
            hits[moment] += killed
            acknowledged += sum(line[0] == "a" for line in lines)
            doubt = history.record(lines)
            doubted += len(doubt)
            history.check(url)
    return {"kills": hits.total(), "acknowledged": acknowledged, "in doubt": doubted, "hits": hits}


if __name__ == "__main__":
    result = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(result) + "\n")

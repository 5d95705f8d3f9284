"""Kill a working agent again and again, and look each time whether its log kept its word.

    python kill_harness.py FOLDER KILLS SEED

A child writes `i …` before and `a …` after every operation to a pipe, and is killed at a named
moment or at any. Then: what was acknowledged is in the log, exactly once; what is in the log was
asked for; the posterior, from snapshot and tail, is bitwise that of a replay of the whole log. The
next child asks again for what was in doubt, under the same key. One line of JSON at the end.

Children are forked from a process that has imported and compiled everything, so that a thousand
take a minute. There is no false alarm: whatever the moment hits, every check is exact.
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
from pathlib import Path
from typing import Any

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, Observed, faults, open_agent, replay

MODEL = BernoulliBandit(["red", "blue", "green"])
#: So many kills share a log, before a new one is begun.
PER_LOG = 40
ANY = "any moment"


def work(url: str, moment: str, seed: int, doubt: list[list[str]], say: Any) -> None:
    """The child: first what is in doubt, then new questions and answers, by one thread or three."""
    rng = random.Random(seed)
    if moment != ANY:
        faults.arm(f"{moment}:{rng.randint(1, 3 if 'snapshot' in moment else 8)}")
    if moment == "before-close":
        faults.arm(moment)
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
        mine, waiting = random.Random(seed * 31 + thread), []
        for i in range(steps):
            waiting.append(ask(f"{seed}-{thread}-{i}"))
            if mine.random() < 0.8:
                answer(waiting.pop(mine.randrange(len(waiting))), str(mine.randrange(2)))
            if mine.random() < 0.15:
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
    """Never returns."""

    def say(*words: str) -> None:
        os.write(pipe, (" ".join(words) + "\n").encode())  # short lines are written whole

    code = 0
    try:
        work(url, moment, seed, doubt, say)
    except BaseException as error:  # the parent must hear of it
        say("failed", repr(error))
        code = 3
    os._exit(code)


def run_and_kill(
    url: str, moment: str, seed: int, doubt: list[list[str]]
) -> tuple[bool, list[list[str]]]:
    """Whether the child was killed, and what it said."""
    rng = random.Random(-seed)
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        child(url, moment, seed, doubt, writing)
    os.close(writing)
    text = b""
    deadline = time.monotonic() + (rng.uniform(0.0, 0.1) if moment == ANY else 60.0)
    while True:
        left = max(0.0, deadline - time.monotonic())
        if left == 0.0 or not select.select([reading], [], [], left)[0]:
            os.kill(process, signal.SIGKILL)
            deadline = time.monotonic() + 60.0
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
    """What one log was told, and what it acknowledged."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.answered: set[tuple[str, str]] = set()
        self.acts: dict[str, tuple[str, str]] = {}
        self.observations: dict[str, str] = {}

    def hear(self, lines: list[list[str]]) -> list[list[str]]:
        """Take in what a child said; gives what it left in doubt."""
        doubt: dict[tuple[str, ...], list[str]] = {}
        for mark, *words in lines:
            if mark == "i":
                doubt[tuple(words)] = words
                if words[0] == "A":
                    self.asked.add(words[1])
                else:
                    self.answered.add((words[1], words[2]))
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
        """The log keeps its word."""
        with open_agent(url, "shop", MODEL) as agent:
            events = list(agent.log())
            whole, state = replay(iter(events)).state, agent.state()
            agent._last_snapshot = agent.head  # closing must not write a snapshot
        acts = {e.key: (str(e.seq), e.a) for e in events if isinstance(e, Decided)}
        observed = Counter(e.n for e in events if isinstance(e, Observed))
        answers = {str(e.n): str(e.o) for e in events if isinstance(e, Observed)}
        lost = {k: v for k, v in self.acts.items() if acts.get(k) != v}
        unheard = {n: o for n, o in self.observations.items() if answers.get(n) != o}
        assert not lost, f"decisions lost or changed: {lost}"
        assert not unheard, f"observations lost or changed: {unheard}"
        assert len(acts) == sum(isinstance(e, Decided) for e in events), "a decision doubled"
        assert max(observed.values(), default=0) <= 1, "an observation doubled"
        assert acts.keys() <= self.asked, "a decision nobody asked for"
        assert set(answers.items()) <= self.answered, "an answer nobody gave"
        assert whole.keys() == state.keys()
        assert all(whole[n].tobytes() == state[n].tobytes() for n in whole), "another posterior"


def main(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """So many kills, at every named moment in turn and as often at any."""
    with open_agent("sqlite:///:memory:", "warm", MODEL) as agent:  # compile before forking
        agent.observe(agent.act(), 1)
        agent.explain("2")
    hits: Counter[str] = Counter()
    acknowledged = doubted = number = 0
    moments = [m for point in faults.POINTS for m in (point, ANY)]
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
            doubt = history.hear(lines)
            doubted += len(doubt)
            history.check(url)
    return {"kills": hits.total(), "acknowledged": acknowledged, "in doubt": doubted, "hits": hits}


if __name__ == "__main__":
    result = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(result) + "\n")

"""Worker processes to be killed: this process warms up, then forks one for each line it reads.

    {"url": …, "name": …, "file": …, "worker": 3, "seed": 5, "count": 40, "fault": ""}  ->  its pid
    {"wait": pid}                                                                   ->  its status

A worker writes each call to its file before it makes it, and the result after it.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.durable.kill_harness import arm
from tests.durable.postgres.history import digest
from tests.limits import TIMEOUT

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, open_agent
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.stores.postgres import PostgresLog, PostgresStore
from bayescontrol.errors import ConflictingFeedback

ARMS: Final = ["red", "green", "blue"]
_ROOT: Final = Path(__file__).parents[3]


class CallLog:
    """A file of calls and acknowledgements that survives a kill."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, *what: Any) -> None:
        os.write(self._file, msgspec.json.encode(what) + b"\n")

    def call(self, agent: DurableAgent, kind: str, args: list[Any]) -> Any:
        """Make a call, and record the call and its result."""
        self.write("call", time.monotonic_ns(), kind, args)
        result: list[Any]
        try:
            if kind == "act":
                d = agent.act(key=args[0])
                result = ["decision", d.id, d.action, d.probability, d.basis]
            else:
                result = ["learned", agent.observe(str(args[0]), args[1])]
        except ConflictingFeedback as error:
            result = ["error", type(error).__name__]
        self.write("ack", time.monotonic_ns(), result)
        return result


def work(job: dict[str, Any]) -> None:
    """Make `count` calls, half of which other workers make too."""
    rng = random.Random(job["seed"])
    calls = CallLog(job["file"])
    for point, calls_left in job.get("fault", {}).items():
        arm(point, calls_left, PostgresLog)
    store = PostgresStore(job["url"], patience=job.get("patience", 30.0))
    agent = open_agent(
        store, job["name"], BernoulliBandit(ARMS), snapshot_every=job.get("snapshot_every", 60)
    )
    if job.get("again"):  # the call of the predecessor without acknowledgement
        calls.call(agent, *job["again"])
    decisions: list[int] = []
    for i in range(job["count"]):
        chance = rng.random()
        if chance < 0.3:
            decisions.append(int(calls.call(agent, "act", [None])[1]))
        elif chance < 0.45:
            key = f"{job['worker']}-{job['seed']}-{i}"
            decisions.append(int(calls.call(agent, "act", [key])[1]))
        elif chance < 0.6:  # a key that others use at about the same time
            calls.call(agent, "act", [f"all-{job.get('round', 0)}-{i // 4}"])
        elif chance < 0.8 and decisions:
            calls.call(
                agent, "observe", [decisions.pop(rng.randrange(len(decisions))), rng.randrange(2)]
            )
        else:
            recent = [e.seq for e in agent.log(max(1, agent.head - 12)) if isinstance(e, Decided)]
            if recent:
                calls.call(agent, "observe", [rng.choice(recent), rng.randrange(2)])
    state = agent.state()
    calls.write("state", time.monotonic_ns(), agent.head, digest(state))
    agent.close()
    store.close()


def _fork(job: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work(job)
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
            os._exit(status)
    return pid


def _serve() -> None:
    with open_agent("sqlite:///:memory:", "warm", BernoulliBandit(ARMS)) as agent:
        for _ in range(3):
            agent.observe(agent.act(), 1)
    alive: set[int] = set()
    for line in sys.stdin.buffer:
        job = msgspec.json.decode(line)
        if "wait" in job:
            answer = os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1])
            alive.discard(job["wait"])
        else:
            answer = _fork(job)
            alive.add(answer)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    for pid in alive:  # left over by a failed test
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class Nursery:
    """The process that forks the others."""

    def __init__(self) -> None:
        paths = os.pathsep.join(filter(None, [str(_ROOT), *sys.path]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.durable.postgres.worker"], cwd=_ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip

    def close(self) -> None:
        """Stop the process and its remaining workers."""
        self._process.communicate(timeout=TIMEOUT)

    def fork(self, **job: Any) -> int:
        """Start a worker; return its id, which stays reserved until `wait`."""
        return self._request(job)

    def wait(self, pid: int) -> int:
        """Return the exit code of a worker, negative for a signal."""
        return self._request({"wait": pid})

    def _request(self, question: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(question) + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


if __name__ == "__main__":
    _serve()

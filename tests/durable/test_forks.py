"""A forked child inherits its parent's agent, and must not use it."""

import subprocess
import sys
from pathlib import Path

import pytest

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent

MODEL = BernoulliBandit(["red", "blue"])
BEGIN = """
import os, signal, sys, threading
from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.errors import StoreBusy
url = f"sqlite:///{sys.argv[1]}"
agent = open_agent(url, "shop", BernoulliBandit(["red", "blue"]), seed=1)
for _ in range(5):
    agent.act()
"""
FORK = """
child = os.fork()
if child == 0:
    {does}
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
for _ in range(5):
    last = agent.act()
print(last.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
BUSY = """
busy, go = threading.Event(), threading.Event()
append = agent._log.append
def slow(rows):
    busy.set()
    go.wait()
    append(rows)
agent._log.append = slow
writer = threading.Thread(target=agent.act)
writer.start()
busy.wait()
child = os.fork()
if child == 0:
    signal.alarm(600)                     # a guard against hanging
    for ask in (agent.act, agent.posterior, agent.close):
        try:
            ask()
        except StoreBusy:
            pass
    os._exit(0)
status = os.waitpid(child, 0)[1]
go.set()
writer.join()
agent.close()
print(status, flush=True)
"""


def run(code: str, path: Path) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


@pytest.mark.parametrize(
    "does", ["pass", "agent.close()", "agent._log = None; del agent; import gc; gc.collect()"]
)
def test_operations_acknowledged_after_a_fork_are_durable(tmp_path: Path, does: str) -> None:
    path = tmp_path / "shop.db"
    acknowledged = run(BEGIN + FORK.format(does=does), path)
    assert acknowledged == "11"
    with open_agent(f"sqlite:///{path}", "shop", MODEL) as agent:
        assert agent.head == 11


def test_a_child_forked_during_a_write_gets_an_error_and_does_not_hang(tmp_path: Path) -> None:
    assert run(BEGIN + BUSY, tmp_path / "shop.db") == "0"

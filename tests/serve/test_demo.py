"""The demo: visitors who are not real, for a bounded time."""

import subprocess
import sys
import time
from pathlib import Path

from bayescontrol.durable import Decided, Observed, open_agent
from bayescontrol.serve import Client
from bayescontrol.serve.demo import CHECKOUT, running_demo


def test_visitors_come_their_answers_come_late_and_the_lever_breaks(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/demo.db"
    with running_demo(5.0, store=store, rate=200.0) as server, Client(server.url) as client:
        time.sleep(5.0)
        alarm = client.agent("dispenser").info()
    assert alarm["decisions"] > 10
    with open_agent(store, "checkout") as agent:
        events = list(agent.log())
    decided = [event for event in events if isinstance(event, Decided)]
    observed = [event for event in events if isinstance(event, Observed)]
    assert len(decided) > 50
    assert 0 < len(observed) < len(decided)  # some answers are late, some never come
    assert {event.a for event in decided} <= set(CHECKOUT)


def test_a_kept_demo_goes_on_where_it_was_cut_short(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/demo.db"
    counts = []
    for _ in range(2):
        with running_demo(1.0, store=store, rate=100.0) as server, Client(server.url) as client:
            time.sleep(1.0)
            counts.append(client.agent("dispenser").info()["decisions"])
    assert counts[1] > counts[0] > 0


def test_the_command_prints_the_pages_address_and_ends_by_itself() -> None:
    code = "from bayescontrol.cli.demo import demo; demo()"
    begun = time.monotonic()
    answer = subprocess.run(
        [sys.executable, "-c", code, "--seconds", "2"], capture_output=True, text=True, timeout=60
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("http://127.0.0.1:")
    assert "over" in answer.stderr
    assert time.monotonic() - begun < 50.0

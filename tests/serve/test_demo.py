"""The demo: simulated visitors for a limited time."""

import subprocess
import sys
from pathlib import Path

from tests.limits import TIMEOUT
from tests.serve.listening import frames

from bayescontrol.durable import Decided, Observed, open_agent
from bayescontrol.serve import Client
from bayescontrol.serve.demo import CHECKOUT, dispenser, running_demo


def test_the_demo_has_late_feedback_and_its_broken_lever_raises_the_alarm(tmp_path: Path) -> None:
    """The alarm was raised for each of a thousand simulated levers that broke after fifty pulls."""
    store = f"sqlite:///{tmp_path}/demo.db"
    with running_demo(9.0, store=store, rate=200.0) as server, Client(server.url) as client:
        for result in frames(client):
            shop, lever = result["checkout"], result["dispenser"]
            late = shop["decisions"] > 50 and 0 < shop["observations"] < shop["decisions"]
            if late and lever["alarm"]["raised"]:
                break
    assert shop["regret"] > 0.0
    with open_agent(store, "dispenser", dispenser()) as agent:
        assert agent.ask(lambda guarded: guarded.alarm.raised)
        assert agent.ask(lambda guarded: guarded.alarm.step) > 10  # not before the lever had worked
    with open_agent(store, "checkout") as agent:
        events = list(agent.log())
    decided = [event for event in events if isinstance(event, Decided)]
    observed = [event for event in events if isinstance(event, Observed)]
    assert 0 < len(observed) < len(decided)  # some observations are late or missing
    assert {event.a for event in decided} <= set(CHECKOUT)


def test_a_saved_demo_continues_where_it_was_interrupted(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/demo.db"
    counts = [0]
    for _ in range(2):
        with running_demo(600.0, store=store, rate=100.0) as server, Client(server.url) as client:
            for result in frames(client):
                counts.append(result["dispenser"]["decisions"])
                if counts[-1] > counts[-2] > 0:
                    break
    assert counts == sorted(counts)


def test_the_demo_command_prints_its_address_and_ends_by_itself() -> None:
    code = "from bayescontrol.cli.demo import demo; demo()"
    answer = subprocess.run(
        [sys.executable, "-c", code, "--seconds", "2"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("http://127.0.0.1:")
    assert "over" in answer.stderr

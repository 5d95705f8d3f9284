"""Logs of every released format open for ever: files that were written then, kept here.

A file is never changed. Whoever raises `events.FORMAT` or the layout of the tables adds one: write
it with `python tests/durable/test_formats.py NAME`, which prints what is expected of it.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import apsw
import pytest

from bayescontrol import BernoulliBandit, LinearBandit
from bayescontrol.durable import GibbsMDP, Observed, open_agent, open_store, replay
from bayescontrol.durable.events import FORMAT
from bayescontrol.durable.sqlite_file import LAYOUT

LOGS = Path(__file__).parent / "logs"

#: file -> agent -> (events, action of the next decision, posterior)
EXPECTED: dict[str, dict[str, tuple[int, Any, dict[str, dict[str, Any]]]]] = {
    "v1.db": {
        "checkout": (
            21,
            "red",
            {
                "red": {"mean": 0.6666666666666666, "count": 1, "alpha": 2.0, "beta": 1.0},
                "('a', 1)": {"mean": 0.4444444444444444, "count": 7, "alpha": 4.0, "beta": 5.0},
            },
        ),
        "maze": (19, "left", {"rho": {"mean": 1.7931891726430584, "count": 9}}),
        "search": (
            15,
            "y",
            {
                "x": {"mean": [0.16844803404749237, 0.090187164482275], "count": 2},
                "y": {"mean": [0.2572731610550874, 0.13314334448507462], "count": 4},
            },
        ),
    },
}


def write(path: Path) -> None:
    """One log of each sort: alone, with contexts and late answers, one stream with memory."""
    url = f"sqlite:///{path}"
    with open_agent(url, "checkout", BernoulliBandit(["red", ("a", 1)]), seed=2**100 + 7) as agent:
        for i in range(12):
            d = agent.act(key=f"visit {i} ✓" if i % 2 else None)
            if i % 3:
                agent.observe(d, i % 2)
    with open_agent(url, "search", LinearBandit(["x", "y"], features=2), seed=5) as agent:
        made = [agent.act([0.1 * i, 1.0 / (i + 1)]) for i in range(8)]
        for d in reversed(made[2:]):
            agent.observe(d, 0.3)
    with open_agent(url, "maze", GibbsMDP(["left", "right"], "home"), seed=9) as agent:
        for i in range(9):
            agent.observe(agent.act(), (0.5 * (i % 3), ("cell", i % 4)))


def found(path: Path) -> dict[str, tuple[int, Any, dict[str, dict[str, Any]]]]:
    store = open_store(f"sqlite:///{path}")
    told = {}
    for name in store.names():
        with open_agent(store, name) as agent:
            head, posterior = agent.head, agent.posterior()
            x = [0.5, 0.5] if name == "search" else None
            told[name] = (head, agent.act(x).action, posterior)
    store.close()
    return told


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("with_snapshot", [True, False])
def test_a_log_of_an_earlier_release_opens_as_it_was(
    tmp_path: Path, name: str, with_snapshot: bool
) -> None:
    path = tmp_path / name
    shutil.copy(LOGS / name, path)
    if not with_snapshot:
        db = apsw.Connection(str(path))
        db.execute("DELETE FROM snapshots")
        db.close()
    assert found(path) == EXPECTED[name]
    store = open_store(f"sqlite:///{path}")
    for agent_name in store.names():
        with open_agent(store, agent_name) as agent:
            whole = replay(agent.log())
            assert all(agent.state()[n].tobytes() == v.tobytes() for n, v in whole.state.items())
            answered = [e for e in agent.log() if isinstance(e, Observed)]
            assert agent.observe(str(answered[0].n), answered[0].o) is False
    store.close()


def test_there_is_a_file_of_the_present_format() -> None:
    """A new format needs a new file before it is released."""
    assert sorted(EXPECTED) == sorted(path.name for path in LOGS.glob("*.db"))
    kept = set()
    for name in EXPECTED:
        db = apsw.Connection(f"file:{LOGS / name}?immutable=1", flags=apsw.SQLITE_OPEN_URI | 1)
        payload: Any = db.execute("SELECT payload FROM events WHERE seq = 1").get
        kept.add((db.pragma("user_version"), json.loads(payload[0])["format"]))
        db.close()
    assert (LAYOUT, FORMAT) in kept


if __name__ == "__main__":
    target = LOGS / sys.argv[1]
    assert not target.exists(), f"{target} is kept as it is"
    LOGS.mkdir(exist_ok=True)
    write(target)
    with tempfile.TemporaryDirectory() as place:
        sys.stdout.write(f"{found(Path(shutil.copy(target, place)))}\n")

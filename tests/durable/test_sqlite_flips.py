"""A flipped bit in a store is either without consequence or reported as `DamagedLog`.

Each trial copies a store, flips one bit, and runs the same session on it: read every event, repeat
every key, repeat every observation, contradict one, and continue. The session must give exactly
the results of the intact store, or raise `DamagedLog` (`NewerFormat`, if the flip is in the version
number of the layout: a later release could have written that). Anything else is silently wrong.
"""

import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import apsw
import pytest

from bayescontrol import BernoulliBandit, LinearBandit
from bayescontrol.durable import Act, Decision, DurableAgent, open_agent, open_store
from bayescontrol.errors import ConflictingFeedback, DamagedLog, NewerFormat

PAGE = 4096
#: A model and a situation; the snapshot of the first is several pages long.
AGENTS: dict[str, tuple[Any, Any]] = {
    "shop": (LinearBandit(["red", "blue"], features=24), [1.0, *[0.0] * 23]),
    "search": (BernoulliBandit(["red", "blue"]), None),
}
KEYS = [f"visit-{i * i}" for i in range(120)]


def decide_all(agent: DurableAgent, x: Any) -> list[Decision]:
    """Return the decisions of all keys."""
    requests = [Act(x, key) for key in KEYS]
    agent.handle(requests)
    return [request.answer() for request in requests]


def build(path: Path) -> None:
    """Write two agents; every decision has a key, and three of four have an observation."""
    store = open_store(f"sqlite:///{path}", durable=False)
    for name, (model, x) in AGENTS.items():
        with open_agent(store, name, model, seed=3) as agent:
            for i, d in enumerate(decide_all(agent, x)):
                if i % 4:
                    agent.observe(d, i % 2)
    store.close()
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "DELETE")
    db.execute("CREATE TABLE gone (x); INSERT INTO gone VALUES (zeroblob(60000)); DROP TABLE gone")
    db.pragma("journal_mode", "WAL")
    db.close()


def session(path: Path) -> list[Any]:
    """Run a fixed session; return all of its results in order."""
    store = open_store(f"sqlite:///{path}", durable=False)
    result: list[Any] = [store.names()]
    try:
        for name, (model, x) in AGENTS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a damaged snapshot may be skipped
                agent = open_agent(store, name, model, seed=3)
            head = agent.head
            result += [head, {n: v.tobytes() for n, v in agent.state().items()}]
            decisions = decide_all(agent, x)
            result += [(d.id, d.action, d.probability, d.time) for d in decisions]
            result += [agent.observe(d, i % 2) for i, d in enumerate(decisions) if i % 4]
            for d in decisions[1], decisions[-1]:
                with pytest.raises(ConflictingFeedback):
                    agent.observe(d, 2)
            result += [agent.observe(d, 1) for d in decisions[::4]]
            result += [agent.act(x, key="visit-new").action, agent.act(x).action]
            result += list(agent.log(1, head))
            result += [{n: v.tobytes() for n, v in agent.state().items()}]
            agent.close()
    finally:
        store.close()
    return result


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def outcome(intact: Path, expected: list[Any], bit: int) -> str:
    """Return 'same', 'reported', or a description of the silent error."""
    copy = intact.with_name("flipped.db")
    for file in intact.parent.glob("flipped.db*"):
        file.unlink()
    shutil.copy(intact, copy)
    flip(copy, bit)
    try:
        result = session(copy)
    except (DamagedLog, NewerFormat):
        return "reported"
    except BaseException as error:
        return f"bit {bit}: {type(error).__name__}: {error}"
    return "same" if result == expected else f"bit {bit}: silently wrong"


def pages(path: Path) -> dict[str, list[int]]:
    """The pages of every table and index, and the free ones."""
    db = apsw.Connection(str(path))
    found: dict[str, list[int]] = {}
    for name, number in db.execute("SELECT name, pageno FROM dbstat"):
        found.setdefault(name, []).append(number)
    count = db.pragma("page_count")
    db.close()
    used = {number for numbers in found.values() for number in numbers}
    found["free"] = [n for n in range(1, count + 1) if n not in used]
    return found


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A store, and the results of the session on a copy of it."""
    path = tmp_path_factory.mktemp("flips") / "intact.db"
    build(path)
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    return path, session(copy)


def bits(path: Path, names: list[str], count: int, rng: random.Random) -> list[int]:
    """Choose random bits of the nonzero bytes in the pages of these tables and indexes."""
    content = path.read_bytes()
    starts = [(number - 1) * PAGE for name in names for number in pages(path)[name]]
    places = [i for start in starts for i in range(start, start + PAGE) if content[i]]
    return [rng.choice(places) * 8 + rng.randrange(8) for _ in range(count)]


INDEXES = ["answers", "keys", "sessions", "amendments", "sqlite_autoindex_logs_1"]


def test_a_flipped_bit_in_an_index_is_harmless_or_reported(intact: tuple[Path, list[Any]]) -> None:
    path, expected = intact
    chosen = bits(path, INDEXES, 12, random.Random(1))
    found = [outcome(path, expected, bit) for bit in chosen]
    assert set(found) <= {"same", "reported"}, found
    assert "reported" in found


@pytest.mark.slow
def test_of_200_random_flips_none_is_silently_wrong(intact: tuple[Path, list[Any]]) -> None:
    path, expected = intact
    rng = random.Random(2)
    size = path.stat().st_size
    chosen = {
        "anywhere": [rng.randrange(size * 8) for _ in range(40)],
        "header": [rng.randrange(100 * 8) for _ in range(30)],
        "schema": bits(path, ["sqlite_schema"], 20, rng),
        "tables": bits(path, ["events", "logs"], 30, rng),
        "indexes": bits(path, INDEXES, 60, rng),
        "free": [(rng.choice(pages(path)["free"]) - 1) * PAGE * 8 + i for i in range(10)],
        "snapshots": bits(path, ["snapshots", "sqlite_autoindex_snapshots_1"], 10, rng),
    }
    assert sum(map(len, chosen.values())) == 200
    found = {name: [outcome(path, expected, bit) for bit in chosen[name]] for name in chosen}
    wrong = [(name, o) for name in found for o in found[name] if o not in ("same", "reported")]
    assert not wrong, (len(wrong), wrong)

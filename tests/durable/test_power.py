"""Power loss at any moment: acknowledged operations survive.

The moments and the fate of every write come from generators with fixed seeds. The checks are
exact, so there are no false alarms.
"""

import random
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.durable.power import Acknowledged, Recorder, Sync, SyncFolder, disk_after

from bayescontrol import BernoulliBandit
from bayescontrol._support import files
from bayescontrol.durable import Decided, Observed, open_agent, replay
from bayescontrol.durable.stores.sqlite import SqliteStore

SHOP = BernoulliBandit(["red", "blue"])


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The journal of two sessions of decisions, observations, snapshots and checkpoints."""
    vfs = Recorder()
    flush = files.flush_folder

    def flush_and_record(folder: Path) -> None:
        flush(folder)
        vfs.journal.append(SyncFolder())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "flush_folder", flush_and_record)
        _live(tmp_path_factory.mktemp("power"), vfs.journal)
    return vfs.journal


def _live(folder: Path, journal: list[Any]) -> None:
    rng = random.Random(1)
    for _ in range(2):
        store = SqliteStore(f"sqlite:///{folder / 'shop.db'}", vfs="recorder")
        store._require_open().all("PRAGMA wal_autocheckpoint = 12")
        agent = open_agent(store, "shop", SHOP, seed=3, snapshot_every=9)
        waiting: list[str] = []
        for i in range(20):
            d = agent.act(key=f"{agent.head}")
            journal.append(Acknowledged(("A", int(d.id), d.action)))
            waiting.append(d.id)
            if i % 3:
                n, o = waiting.pop(rng.randrange(len(waiting))), rng.randrange(2)
                agent.observe(n, o)
                journal.append(Acknowledged(("O", int(n), o)))
        agent.close()
        store.close()


def check(folder: Path, files: dict[str, bytes], acknowledged: list[tuple[Any, ...]]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with open_agent(f"sqlite:///{folder / 'shop.db'}", "shop", SHOP) as agent:
        events = list(agent.log())
        there = {("A", e.seq, e.a) for e in events if isinstance(e, Decided)}
        there |= {("O", e.n, e.o) for e in events if isinstance(e, Observed)}
        assert set(acknowledged) <= there, set(acknowledged) - there
        assert len(there) <= len(acknowledged) + 1
        whole, state = replay(iter(events)).state, agent.state()
        assert all(whole[n].tobytes() == state[n].tobytes() for n in whole)
        d = agent.act()  # and it continues
        assert agent.observe(d, 1)
    db = apsw.Connection(str(folder / "shop.db"))
    assert db.pragma("integrity_check") == "ok"
    db.close()


def moments(journal: list[Any], count: int) -> list[int]:
    """Indices just before and after flushes, after acknowledgements, and at random."""
    flushes = [i for i, op in enumerate(journal) if isinstance(op, Sync)]
    near = [i + d for i in flushes for d in (0, 1)]
    after = [i + 1 for i, op in enumerate(journal) if isinstance(op, Acknowledged)]
    rng = random.Random(count)
    found = rng.sample(near, min(len(near), count // 3)) + rng.sample(after, min(20, count // 3))
    return found + [rng.randrange(len(journal)) for _ in range(count - len(found))]


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_power_loss_at_any_moment_loses_nothing_acknowledged(
    tmp_path: Path, journal: list[Any], count: int
) -> None:
    assert sum(isinstance(op, Sync) for op in journal) > 60
    for i, moment in enumerate(moments(journal, count)):
        before = journal[:moment]
        acknowledged = [op.what for op in before if isinstance(op, Acknowledged)]
        check(tmp_path / "after", disk_after(before, random.Random(i)), acknowledged)


def test_a_log_with_a_torn_tail_opens_up_to_the_tear(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    agent = open_agent(f"sqlite:///{live / 'shop.db'}", "shop", SHOP, seed=3)
    for _ in range(12):
        agent.observe(agent.act(), 1)
    events = list(agent.log())
    database, tail = ((live / name).read_bytes() for name in ("shop.db", "shop.db-wal"))
    agent.close()
    rng = random.Random(0)
    lengths = set()
    for cut in [
        len(tail),
        len(tail) - 1,
        *(rng.randrange(len(tail) // 3, len(tail)) for _ in range(20)),
    ]:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        (copy / "shop.db").write_bytes(database)
        (copy / "shop.db-wal").write_bytes(tail[:cut] + rng.randbytes(rng.randrange(3000)))
        with open_agent(f"sqlite:///{copy / 'shop.db'}", "shop", SHOP) as again:
            found = list(again.log())
            assert found == events[: len(found)]
            assert replay(iter(found)).state.keys() == again.state().keys()
        lengths.add(len(found))
    assert max(lengths) == len(events)
    assert len(lengths) > 5

"""The connection is cut at the worst moment: the outcome is found out, nothing is done twice."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.durable.conformance import ROWS, decided, observed
from tests.durable.postgres.history import digest
from tests.durable.postgres.proxy import Proxy
from tests.durable.postgres.server import Postgres

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Decided, open_agent, replay
from bayescontrol.durable.stores.log import Snapshot
from bayescontrol.durable.stores.postgres import PostgresLog, PostgresStore
from bayescontrol.errors import ConflictingFeedback, HeadMoved

SHOP = BernoulliBandit(["red", "blue"])
CUTS = ["question", "half", "answer"]


@pytest.fixture
def proxy(server: Postgres) -> Iterator[Proxy]:
    with closing(Proxy(server.folder)) as opened:
        yield opened


@pytest.fixture
def remote(proxy: Proxy, schema: str) -> Iterator[PostgresStore]:
    store = PostgresStore(proxy.url(schema))
    yield store
    store.close()


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("before", [0, 1, 9])
def test_a_cut_append_is_done_once(
    remote: PostgresStore, proxy: Proxy, url: str, cut: str, before: int
) -> None:
    log = remote.log("checkout")
    rows = [ROWS[0], *(decided(seq) for seq in range(2, before + 3))]
    for row in rows[:before]:  # the first append, an early one, and one with a prepared statement
        log.append([row])
    proxy.arm(cut)
    log.append(rows[before:])
    assert proxy.cuts == 1
    assert list(log.read()) == rows
    log.append([decided(len(rows) + 1)])
    store = PostgresStore(url)
    assert store.log("checkout").head() == len(rows) + 1
    store.close()


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_snapshot_or_read_is_repeated(remote: PostgresStore, proxy: Proxy, cut: str) -> None:
    log = remote.log("checkout")
    log.append(ROWS)
    for ask, answer in (
        (lambda: log.save_snapshot(Snapshot(4, b"state", b"digest")), None),
        (log.head, 6),
        (lambda: list(log.read(1, 6)), ROWS),
        (lambda: log.find_key("visit-81"), ROWS[2]),
        (lambda: log.find_answer(3), ROWS[3]),
        (lambda: list(log.snapshots()), [Snapshot(4, b"state", b"digest")]),
        (remote.names, ["checkout"]),
    ):
        proxy.arm(cut)
        assert ask() == answer
    assert proxy.cuts == 7


def test_an_append_that_was_cut_and_then_overtaken_is_not_done(
    remote: PostgresStore, proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append is lost; before it is sent again, another process appends the very same row."""
    log, local = remote.log("checkout"), PostgresStore(url)
    log.append(ROWS[:1])
    connected = remote._server._connect

    def overtaken() -> Any:
        local.log("checkout").append(ROWS[1:2])
        return connected()

    monkeypatch.setattr(remote._server, "_connect", overtaken)
    proxy.arm("question")
    with pytest.raises(HeadMoved):
        log.append(ROWS[1:2])
    local.close()


def test_a_second_observation_that_was_cut_is_still_a_conflict(
    remote: PostgresStore, proxy: Proxy
) -> None:
    log = remote.log("checkout")
    log.append(ROWS)
    proxy.arm("answer")
    with pytest.raises(ConflictingFeedback):
        log.append([observed(7, 3)])
    assert list(log.read()) == ROWS


def cut_appends(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of cuts: each append removes the last one and is cut by it."""
    append, cuts = PostgresLog.append, list[str]()

    def armed(log: PostgresLog, rows: Any) -> None:
        if cuts:
            proxy.arm(cuts.pop())
        append(log, rows)

    monkeypatch.setattr(PostgresLog, "append", armed)
    return cuts


def test_an_agent_on_a_bad_connection_does_everything_once(
    remote: PostgresStore, proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts, result = cut_appends(proxy, monkeypatch), []
    with open_agent(remote, "shop", SHOP) as agent:
        for i in range(30):
            if i % 3 == 0:
                proxy.arm(CUTS[i // 3 % 3])  # whatever is sent first
            else:
                cuts.append(CUTS[i % 3])
            result.append(agent.act(key=f"visit-{i}" if i % 2 else None))
            cuts += CUTS[i % 3 : i % 3 + 1]
            assert agent.observe(result[-1], i % 2)
        expected = digest(agent.state())
    with open_agent(url, "shop") as agent:
        events = list(agent.log())
        assert digest(replay(events).state) == digest(agent.state()) == expected
    assert len(events) == 1 + 2 * len(result)
    assert [(d.id, d.action) for d in result] == [
        (str(e.seq), e.a) for e in events if isinstance(e, Decided)
    ]
    assert proxy.cuts == 60

"""Errors of the store are reported by type; their text stays in the server's log."""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.durable.small_disk import small_disk
from tests.serve.paused import Paused, paused
from tests.serve.raw import Raw, ask, memory, number

from bayescontrol import BernoulliBandit
from bayescontrol.durable import export_log, import_log, named_model, open_agent, open_store
from bayescontrol.durable.stores.sqlite import SqliteLog, SqliteStore
from bayescontrol.errors import DamagedLog, DiskFull, StoreBusy, StoreFailed, UnknownDecision
from bayescontrol.serve import Client, Refused, Server, Tokens
from bayescontrol.serve.values import agent_tag, encode_id

TOKEN = "a-token-that-nobody-guesses"
SECRET = "a-folder-of-ours"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "bayescontrol.serve"):
        yield caplog


def test_a_missing_file_is_logged_and_its_path_is_not_sent(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    with Server(f"sqlite:///{folder}/shop.db", port=0, tokens=Tokens([TOKEN])) as server:
        url, known = server.url, {"Authorization": f"Bearer {TOKEN}"}
        with Client(url, TOKEN) as client:
            client.call("GET", "/v1/health/ready")
            client.create("shop", BernoulliBandit(2))
        (folder / "shop.db").rename(folder / "other.db")
        act = ask(url, "POST", "/v1/agents/shop/act", {}, known)
        ready = ask(url, "GET", "/v1/health/ready")
        listed = ask(url, "GET", "/v1/agents", headers=known)
        assert ask(url, "GET", "/v1/health/live").status == 200
    for answer in (act, ready, listed):
        assert (answer.status, answer.kind) == (503, "store-failed")
        assert int(answer.headers["retry-after"]) >= 1
        assert b"shop.db" not in answer.body
        assert SECRET.encode() not in answer.body
    assert ready.json["detail"] == "the log of the server has the details"
    assert log.text.count(f"{SECRET}/shop.db") >= 3


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (StoreBusy, 503, "store-busy"),
        (DiskFull, 507, "disk-full"),
        (DamagedLog, 500, "damaged-log"),
        (StoreFailed, 503, "store-failed"),
    ],
)
def test_the_internal_error_of_a_store_is_not_sent(
    error: type[StoreFailed],
    status: int,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    log: pytest.LogCaptureFixture,
) -> None:
    store = open_store("sqlite:///:memory:")
    with Server(store, port=0) as server, Client(server.url) as client:
        client.call("GET", "/v1/health/ready")

        def failed() -> list[str]:
            raise error(f"role shopkeeper on db.{SECRET}: it is broken")

        monkeypatch.setattr(store, "names", failed)
        listed, ready = (
            ask(server.url, "GET", path) for path in ("/v1/agents", "/v1/health/ready")
        )
        monkeypatch.undo()
    assert (listed.status, listed.kind) == (status, kind)
    assert (ready.status, ready.kind) == (503, "store-failed")
    assert SECRET.encode() not in listed.body + ready.body
    assert SECRET in log.text


def act_until_full(url: str) -> Raw:
    """Act until the disk is full; return the first answer that is an error."""
    for key in range(20_000):
        answer = ask(url, "POST", "/v1/agents/shop/act", {}, {"Idempotency-Key": f"{key:0200d}"})
        if answer.status != 200:
            return answer
    raise AssertionError("the disk is not full")


def test_readiness_reports_failing_writes_until_one_succeeds(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path / 'shop.db'}")
    with Server(store, port=0) as server, Client(server.url) as client:
        client.call("GET", "/v1/health/ready")
        client.create("shop", BernoulliBandit(2)).act()
        file = store._require_open()
        pages = file.all("PRAGMA page_count")[0][0]
        file.all(f"PRAGMA max_page_count = {pages}")
        full = act_until_full(server.url)
        assert (full.status, full.kind) == (507, "disk-full")
        ready = ask(server.url, "GET", "/v1/health/ready")
        assert (ready.status, ready.kind) == (503, "store-failed")
        assert ready.json["detail"] == "the last write failed: disk-full"
        assert int(ready.headers["retry-after"]) >= 1
        assert "bayescontrol_ready 0" in ask(server.url, "GET", "/v1/metrics").body.decode()
        assert ask(server.url, "GET", "/v1/agents/shop/posterior").status == 200
        again = ask(server.url, "POST", "/v1/agents", {"name": "two", "model": "bernoulli-bandit",
                    "settings": {"arms": 2}})  # fmt: skip
        assert again.status == 507
        file.all("PRAGMA max_page_count = 1000000")
        assert (
            ask(server.url, "GET", "/v1/health/ready").status == 503
        )  # no write has been tried yet
        assert ask(server.url, "POST", "/v1/agents/shop/act", {}).status == 200
        assert ask(server.url, "GET", "/v1/health/ready").status == 200


def test_readiness_recovers_by_itself_when_the_disk_has_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescontrol.serve.agents._RETRY_WRITE", 0.1)
    with (
        small_disk(tmp_path) as disk,
        Server(f"sqlite:///{disk}/shop.db", port=0) as server,
        Client(server.url) as client,
    ):
        client.call("GET", "/v1/health/ready")
        client.create("shop", BernoulliBandit(2)).act()
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        assert act_until_full(server.url).status == 507
        decided = client.agent("shop").info()["decisions"]
        for _ in range(5):  # retried, and still full
            assert ask(server.url, "GET", "/v1/health/ready").status == 503
            time.sleep(0.15)
        filler.unlink()
        client.call("GET", "/v1/health/ready")  # retried until it is ready
        assert client.agent("shop").info()["decisions"] == decided  # the retries made no decision


def test_a_damaged_event_is_reported_and_other_agents_keep_working(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / SECRET / "shop.db"
    path.parent.mkdir()
    store = open_store(f"sqlite:///{path}")
    for name in "search", "shop":
        with open_agent(store, name, BernoulliBandit(2), seed=1) as agent:
            agent.observe(agent.act(key="visit-1"), 1)
            id = encode_id(agent_tag(agent.name, agent.created), 2)
    store.close()
    db = apsw.Connection(str(path))
    db.execute("UPDATE events SET payload = x'00' WHERE log = 2 AND seq = 2")
    db.close()
    with Server(f"sqlite:///{path}", port=0) as server:
        keyed = {"Idempotency-Key": "visit-1"}
        answers = [
            ask(server.url, "POST", "/v1/agents/shop/act", {}, keyed),
            ask(server.url, "POST", "/v1/agents/shop/observe", {"id": id, "observation": 1}),
            ask(server.url, "GET", f"/v1/agents/shop/decisions/{id}"),
        ]
        fine = ask(server.url, "POST", "/v1/agents/search/act", {}, keyed)
    assert [(a.status, a.kind) for a in answers] == [(500, "damaged-log")] * 3
    assert not any(SECRET.encode() in a.body or b"Traceback" in a.body for a in answers)
    assert (fine.status, number(fine.json["id"])) == (200, 2)
    assert "event 2 is damaged" in log.text


def test_a_file_with_a_damaged_index_is_not_served(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_agent(f"sqlite:///{path}", "shop", BernoulliBandit(2), seed=1) as agent:
        agent.act(key="visit-1")
    content = path.read_bytes()
    at = content.rindex(b"visit-1", 0, content.rindex(b"visit-1"))  # in the table and in the index
    path.write_bytes(content[:at] + b"visit-0" + content[at + 7 :])
    with (
        pytest.raises(DamagedLog, match=r"index keys.*restore a backup"),
        Server(f"sqlite:///{path}", port=0) as server,
    ):
        ask(server.url, "GET", "/v1/agents")


@pytest.mark.parametrize("verb", ["act", "observe", "probabilities"])
def test_an_internal_bug_is_a_logged_500_and_not_an_error_of_the_caller(
    verb: str, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError(SECRET)

    monkeypatch.setattr(SqliteStore, "shared", True)  # as if other processes could write
    with memory() as server, Client(server.url) as client:
        decision = client.create("shop", BernoulliBandit(2)).act()
        reads = verb == "probabilities"
        body = {"id": decision.id, "observation": 1} if verb == "observe" else None
        monkeypatch.setattr(SqliteLog, "head" if reads else "append", broken)
        answer = ask(server.url, "GET" if reads else "POST", f"/v1/agents/shop/{verb}", body)
        monkeypatch.undo()
    assert (answer.status, answer.kind) == (500, "internal")
    assert SECRET.encode() not in answer.body
    assert f"KeyError: '{SECRET}'" in log.text


def test_an_error_of_the_agent_refuses_the_request_and_changes_nothing() -> None:
    wrong: list[Exception] = []

    def first() -> None:
        if wrong:
            raise wrong[0]

    with memory(models=paused(first)) as server, Client(server.url) as client:
        shop = client.create("shop", "paused")
        wrong.append(ValueError("not on a Sunday"))
        answer = ask(server.url, "POST", "/v1/agents/shop/act", {})
        assert (answer.status, answer.kind) == (422, "refused")
        assert answer.json["detail"] == "not on a Sunday"
        with pytest.raises(Refused, match="not on a Sunday") as caught:
            shop.act()
        assert caught.value.kind == "refused"
        assert shop.info()["decisions"] == 0


def test_describing_an_agent_does_not_rebuild_it() -> None:
    built: list[Paused] = []

    def build() -> Paused:
        built.append(Paused(lambda: None))
        return built[-1]

    models = {"mine": named_model("mine", version=1, build=build)}
    with memory(models=models) as server, Client(server.url) as client:
        shop, before = client.create("shop", "mine"), len(built)
        assert shop.info()["feedback"] == "in turn"
        assert client.create("other", BernoulliBandit(2)).info()["feedback"] == "any time"
    assert len(built) == before > 0


def test_a_copy_under_another_name_refuses_the_ids_of_the_original(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/shop.db")) as store:
        with open_agent(store, "shop", BernoulliBandit(2), seed=1) as agent:
            agent.act()
            export_log(agent, tmp_path / "shop.jsonl")
        import_log(store, tmp_path / "shop.jsonl", "copy")
    with Server(f"sqlite:///{tmp_path}/shop.db", port=0) as server, Client(server.url) as client:
        (original,) = client.agent("shop").decisions()
        with pytest.raises(UnknownDecision, match="belongs to another agent than 'copy'"):
            client.agent("copy").observe(original["decision"], 1)
        assert client.agent("shop").observe(original["decision"], 1)

"""A compacted log has the same belief and the same future, and none of the content it has lost."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace
from tests.durable.agents import MEMORY, MODELS, SHOP, lever, live, run_sql, same_state, url

import bayescontrol as bc
from bayescontrol.bandits import DrawsBandit
from bayescontrol.durable import (
    Decided,
    DurableAgent,
    export_log,
    named_model,
    open_agent,
    open_store,
    read_log,
    replay,
)
from bayescontrol.durable.events import (
    Compacted,
    Event,
    check_history,
    decode_row,
    encode_row,
    from_line,
    read_events,
    to_line,
)
from bayescontrol.durable.stores.sqlite import SqliteLog
from bayescontrol.durable.stores.sqlite_file import SqliteFile
from bayescontrol.errors import (
    CompactedDecision,
    ConflictingFeedback,
    DamagedLog,
    DiskFull,
    IncompatibleState,
    InvalidRequest,
    ModelMismatch,
    StoreBusy,
    UnknownDecision,
)
from bayescontrol.mdp import GibbsMDP
from bayescontrol.offpolicy import what_if
from bayescontrol.seeding import Stream


def seqs(agent: DurableAgent) -> list[int]:
    return [event.seq for event in agent.log()]


def sealed_event(agent: DurableAgent) -> Compacted:
    event = next(agent.log(2))
    assert isinstance(event, Compacted)
    return event


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[DurableAgent]:
    """Decisions 2, 3, 4 and 7; 3 and 2 are observed at 5 and 6, 7 at 8."""
    with open_agent(url(tmp_path), "shop", SHOP, seed=3) as agent:
        two, three, _ = (agent.act(key=f"visit-{i}") for i in range(3))
        assert agent.observe(three, 1)
        assert agent.observe(two, 0)
        assert agent.observe(agent.act(), 1)
        yield agent


@pytest.mark.parametrize("case", MODELS)
def test_belief_and_next_decisions_stay_the_same_bit_for_bit(case: str, tmp_path: Path) -> None:
    model, question, _ = MODELS[case]
    agents = [
        open_agent(f"sqlite:///{tmp_path / name}", "shop", model, seed=5, snapshot_every=7)
        for name in ("whole.db", "shop.db")
    ]
    for agent in agents:
        live(agent, 20, case)
    whole, shop = agents
    shop.compact(13)
    shop.compact(24)
    assert seqs(shop) == [1, *range(24, whole.head + 1)]
    for _ in range(2):  # before and after it is opened again
        assert same_state(whole, shop)
        assert same_state(whole, replay(shop.log(), model).state)
        for i in range(6):
            x = question(Stream(i)) if shop.accepts_late_feedback else None
            assert whole.probabilities(x) == shop.probabilities(x)
            one, two = whole.act(x), shop.act(x)
            assert (one.id, one.action, one.probability) == (two.id, two.action, two.probability)
            assert shop.explain(two).decision.action == one.action
            o = (0.5, 1) if case == "one stream, MDP" else 1
            assert whole.observe(one, o) == shop.observe(two, o)
        assert same_state(whole, shop)
        shop.close()
        shop = open_agent(url(tmp_path), "shop", model, snapshot_every=7)
    whole.close()
    shop.close()


def test_a_compacted_log_opens_without_any_snapshot(shop: DurableAgent, tmp_path: Path) -> None:
    shop.compact(6)
    state = shop.state()
    shop.close()
    run_sql(tmp_path, "DELETE FROM snapshots")
    with open_agent(url(tmp_path), "shop") as again:
        assert same_state(again, state)
        assert again.head == 8


def test_compacted_decisions_say_when_they_were_compacted(
    shop: DurableAgent, tmp_path: Path
) -> None:
    first = next(event for event in shop.log() if isinstance(event, Decided))
    assert shop.compact(6) == 5
    date = r"events 2 to 6 were compacted on \d{4}-\d\d-\d\d \d\d:\d\d UTC"
    for _ in range(2):
        state = shop.state()
        for id in ("4", "2"):
            with pytest.raises(CompactedDecision, match=f"decision {id} of log 'shop'.*{date}"):
                shop.observe(id, 0)
        with pytest.raises(UnknownDecision, match=r"decision 2 .*compacted"):
            shop.explain("2")
        with pytest.raises(UnknownDecision, match="no decision '1'"):
            shop.observe("1", 1)
        assert same_state(shop, state)
        assert shop.observe("7", 1) is False
        with pytest.raises(ConflictingFeedback):
            shop.observe("7", 0)
        shop.close()
        shop = open_agent(url(tmp_path), "shop")
    new = shop.act(key=str(first.key))  # the key is forgotten
    assert int(new.id) > 8
    assert shop.act(key=str(first.key)).id == new.id
    shop.close()


def test_an_answer_to_a_compacted_decision_is_learned_with_its_situation(tmp_path: Path) -> None:
    model = MODELS["linear"][0]
    with open_agent(url(tmp_path), "news", model, seed=2) as agent:
        early = [agent.act([i + 1.0, 0.5], key=f"visit-{i}") for i in range(4)]
        agent.observe(agent.act([0.0, 9.0]), 1.0)
        agent.observe(early[2], 2.5)
        state = agent.state()
        assert agent.compact(7) == 6
        sealed = sealed_event(agent)
        assert [(d.seq, d.x, d.a) for d in sealed.pending] == [(4, [3.0, 0.5], early[2].action)]
        assert (sealed.decisions, sealed.observations) == (5, 1)
        assert {d.key for d in sealed.pending} == {None}
        agent.close()
    run_sql(tmp_path, "DELETE FROM snapshots")
    with open_agent(url(tmp_path), "news") as agent:
        assert same_state(agent, state)
        assert same_state(agent, replay(agent).state)
        for id in ("4", "5"):
            with pytest.raises(CompactedDecision):
                agent.observe(id, 2.5)
        assert agent.compact(8) == 2  # 7, and 8, which answers decision 4
        sealed = sealed_event(agent)
        assert (sealed.decisions, sealed.observations, sealed.pending) == (5, 2, [])
        assert same_state(agent, state)


def test_compacting_again_does_nothing_or_replaces_the_sealed_snapshot(shop: DurableAgent) -> None:
    assert (shop.compact(3), seqs(shop)) == (2, [1, 3, 4, 5, 6, 7, 8])
    assert (shop.compact(3), shop.compact(2)) == (0, 0)
    assert (shop.compact(8), seqs(shop)) == (6, [1, 8])
    sealed = sealed_event(shop)
    assert (sealed.decisions, sealed.observations) == (4, 3)
    assert int(shop.act().id) == 9


@pytest.mark.parametrize("through", [1, 0, -3, 9, 2.0, True, "5", None])
def test_an_invalid_event_number_is_refused(shop: DurableAgent, through: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"through=.*from 2 to 8"):
        shop.compact(through)
    assert seqs(shop) == list(range(1, 9))


class Unreadable(bc.ControlRule[Any, Any, Any, Any]):
    """An agent that saves its state and cannot load it."""

    def load(self, arrays: Any) -> None:
        raise IncompatibleState("the state is unreadable")


def test_a_state_that_cannot_be_loaded_again_is_not_sealed(tmp_path: Path) -> None:
    bandit = bc.BernoulliBandit(2)
    model = named_model("unreadable", version=1, build=lambda: Unreadable(bandit.belief()))
    with open_agent(url(tmp_path), "shop", model, seed=1) as agent:
        agent.observe(agent.act(), 1)
        with pytest.raises(IncompatibleState, match="unreadable"):
            agent.compact(3)
        assert seqs(agent) == [1, 2, 3]


def test_an_observation_that_is_due_must_come_first() -> None:
    with open_agent(MEMORY, "robot", GibbsMDP(["left", "right"], 0), seed=1) as agent:
        for _ in range(3):
            step = agent.act()
            agent.observe(step, (0.5, 1))
        due = agent.act()
        with pytest.raises(InvalidRequest, match=f"decision {due.id} must be observed"):
            agent.compact(8)
        assert seqs(agent) == list(range(1, 9))
        assert agent.compact(6) == 5  # decision 6 was observed later
        state = agent.state()
        assert same_state(agent, replay(agent).state)
        assert agent.observe(due, (1.0, 0))
        assert not same_state(agent, state)
        assert agent.compact(9) == 4


def test_a_fit_of_earlier_data_prevents_compaction_between_them() -> None:
    shop = DrawsBandit(bc.BernoulliBandit(["red", "blue"]), [[0.2, 0.6], [0.8, 0.7]])
    with open_agent(MEMORY, "shop", shop, seed=1) as agent:
        for _ in range(3):
            agent.observe(agent.act(), 1)
        assert agent.refit([[0.3, 0.6], [0.7, 0.7]], through=3) == 8
        agent.observe(agent.act(), 0)
        for through in (4, 7):
            with pytest.raises(InvalidRequest, match=r"event 8 \(refitted\) depends on event 4"):
                agent.compact(through)
        state = agent.state()
        agent.compact(3)
        assert same_state(agent, state)
        assert same_state(agent, replay(agent.log()).state)
        agent.compact(8)
        with pytest.raises(InvalidRequest, match=r"compacted, so a fit must contain .* event 8"):
            agent.refit([[0.3, 0.6], [0.7, 0.7]], through=7)
        assert same_state(agent, state)
        agent.refit([[0.3, 0.6], [0.7, 0.7]], through=8)
        assert same_state(agent, replay(agent.log()).state)


def test_exports_and_estimates_continue_from_the_sealed_snapshot(
    shop: DurableAgent, tmp_path: Path
) -> None:
    for _ in range(20):
        shop.observe(shop.act(), 1)
    shop.compact(6)
    assert export_log(shop, tmp_path / "shop.jsonl") == 44
    assert export_log(shop.log(6), tmp_path / "tail.jsonl") == 43
    assert list(read_log(tmp_path / "shop.jsonl")) == list(shop.log())
    assert same_state(shop, replay(tmp_path / "shop.jsonl").state)
    estimate = what_if(tmp_path / "shop.jsonl", lambda x: {"red": 1.0})
    assert (estimate.decisions, estimate.unanswered) == (21, 0)
    assert estimate.logged.mean == 1.0


# -- content -------------------------------------------------------------------------------------


def contents(tmp_path: Path) -> bytes:
    """All bytes of the file and its write-ahead log."""
    assert (tmp_path / "shop.db-wal").exists()
    return b"".join(path.read_bytes() for path in tmp_path.glob("shop.db*"))


@pytest.mark.parametrize("reopened", [False, True])
def test_no_byte_of_compacted_events_stays_in_the_file(tmp_path: Path, reopened: bool) -> None:
    features = [f"{i}.25" for i in range(1001, 1400)]
    store = url(tmp_path)
    agent = open_agent(store, "shop", MODELS["linear"][0], seed=1, snapshot_every=50)
    for i, feature in enumerate(features):
        d = agent.act([float(feature), 0.5], key=f"visit-{i:04}")
        agent.observe(d, i + 0.03125)
    if reopened:
        agent.close()
        agent = open_agent(store, "shop")
    before = contents(tmp_path)
    through = 601
    agent.compact(through)
    after = contents(tmp_path)
    for i, feature in enumerate(features):
        is_compacted = 3 + 2 * i <= through
        for text in (f"[{feature},0.5]", f"visit-{i:04}", f'"o":{i + 0.03125}'):
            assert text.encode() in before
            assert (text.encode() in after) != is_compacted, (i, text)
    agent.close()


def test_no_byte_of_a_deleted_agent_stays_in_the_file(tmp_path: Path) -> None:
    with closing(open_store(url(tmp_path))) as store:
        for name in ("agent-to-delete", "other-agent"):
            with open_agent(store, name, SHOP) as agent:
                for i in range(200):
                    agent.observe(agent.act(key=f"visit-of-{name}-{i}"), 1)
        with open_agent(store, "agent-to-delete"), pytest.raises(StoreBusy, match="close its"):
            store.delete("agent-to-delete")
        assert b"agent-to-delete" in contents(tmp_path)
        store.delete("agent-to-delete")
        assert b"agent-to-delete" not in contents(tmp_path)
        assert b"visit-of-other-agent-199" in contents(tmp_path)
        assert open_agent(store, "other-agent").head == 401


# -- damage --------------------------------------------------------------------------------------

SEALED = Compacted(
    seq=4, state=b"s", digest=b"d", decisions=2, observations=0, time=0.5,
    pending=[Decided(seq=3, x=(1, "ü"), a="red", p=0.25, key=None, time=0.0)],
)  # fmt: skip


def test_a_sealed_snapshot_is_the_same_as_a_row_and_as_a_line() -> None:
    assert decode_row(encode_row(SEALED)) == SEALED
    assert from_line(to_line(SEALED)) == SEALED
    with_key = replace(SEALED, pending=[replace(SEALED.pending[0], key="visit-81")])
    assert encode_row(with_key) == encode_row(SEALED)
    row = encode_row(SEALED)
    for broken in (
        row._replace(seq=5),
        row._replace(payload=row.payload.replace(b"0.25", b"0.26")),
    ):
        with pytest.raises(DamagedLog, match="checksum"):
            decode_row(broken)


def histories(agent: DurableAgent) -> dict[str, list[Event]]:
    """Broken histories, from the log of `shop` compacted through 4."""
    created, sealed, *rest = agent.log()
    assert isinstance(sealed, Compacted)
    return {
        "no event 1": [sealed, *rest],
        "no sealed snapshot": [created, *rest],
        "sealed twice": [created, sealed, sealed, *rest],
        "sealed later": [created, sealed, *rest, replace(sealed, seq=9)],
        "a gap": [created, sealed, *rest[1:]],
        "not pending": [created, replace(sealed, pending=sealed.pending[:1]), *rest],
    }


@pytest.mark.parametrize(
    "what", ["no event 1", "no sealed snapshot", "sealed twice", "sealed later", "a gap",
             "not pending"],
)  # fmt: skip
def test_any_other_gap_is_damage(shop: DurableAgent, what: str) -> None:
    shop.compact(4)
    assert [d.seq for d in sealed_event(shop).pending] == [2, 3]
    history = histories(shop)[what]
    with pytest.raises(DamagedLog):
        list(check_history(history))
    assert list(check_history(shop.log())) == list(shop.log())


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM events WHERE seq = 4", "event 2 is missing before event 5"),
        ("DELETE FROM events WHERE seq = 6", "event 6 is missing before event 7"),
        ("UPDATE events SET kind = 'observed' WHERE seq = 4", "event 2 is missing before event 4"),
        ("UPDATE events SET payload = CAST(payload || ' ' AS BLOB) WHERE seq = 4", "checksum"),
        ("UPDATE events SET seq = 5 WHERE seq = 4; ", "UNIQUE"),
    ],
)  # fmt: skip
def test_damage_of_a_compacted_log_is_found(
    shop: DurableAgent, tmp_path: Path, sql: str, words: str
) -> None:
    shop.compact(4)
    shop.close()
    if words == "UNIQUE":
        sql = "DELETE FROM events WHERE seq = 5; UPDATE events SET seq = 5 WHERE seq = 4"
        words = "checksum"
    run_sql(tmp_path, f"DELETE FROM snapshots; {sql}")
    with pytest.raises(DamagedLog, match=words):
        open_agent(url(tmp_path), "shop")


def test_a_sealed_snapshot_of_another_model_is_refused(tmp_path: Path) -> None:
    levers = MODELS["finite modes"][0]
    with open_agent(url(tmp_path), "machine", levers, seed=1) as agent:
        for _ in range(4):
            agent.observe(agent.act(), 1)
        agent.compact(agent.head)
        log = list(agent.log())
    three = replace_build(levers)
    with pytest.raises(ModelMismatch, match="the sealed snapshot at event 9 does not fit"):
        replay(iter([replace(log[0], fingerprint=three.driver().fingerprint()), log[1]]), three)


def replace_build(model: Any) -> Any:
    """The same model, but with another number of modes."""
    modes = [lever(good) for good in ("left", "right", "middle")]
    return named_model(
        model.name, version=model.version, build=lambda: bc.ControlRule(bc.FiniteBelief(modes))
    )


def test_a_reader_that_is_overtaken_by_a_compaction_reads_again(shop: DurableAgent) -> None:
    class Overtaken:
        """A log whose next chunk is read after another process has compacted it."""

        name, find_sealed = "shop", shop._log.find_sealed

        def read(self, start: int, stop: int | None) -> Iterator[Any]:
            yield from list(shop._log.read(start, 3))
            shop.compact(6)
            yield from shop._log.read(4)

    with pytest.raises(StoreBusy, match="compacted through event 6 while event 4 was read"):
        list(read_events(Overtaken()))  # type: ignore[arg-type]


# -- kills ---------------------------------------------------------------------------------------

#: Kill the process before or after which call, or before which statement of SQLite; and whether the
#: log is compacted then.
MOMENTS: dict[str, tuple[Any, bool]] = {
    "before": ((SqliteLog, "compact"), False),
    "before-deleting": ("DELETE FROM events", False),
    "before-inserting": ("INSERT INTO events", False),
    "before-deleting-snapshots": ("DELETE FROM snapshots", False),
    "before-commit": ("COMMIT", False),
    "before-vacuum": ((SqliteFile, "vacuum"), True),
    "in-vacuum": ("VACUUM", True),
}


def kill_at(agent: DurableAgent, point: Any) -> None:
    """Kill this process (kill -9) when it compacts the log of the agent and reaches the point."""

    def die(*_: Any) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    if isinstance(point, str):
        log: Any = agent._log
        log._file._db.exec_trace = lambda _, sql, values: not sql.startswith(point) or die()
    else:
        owner, name = point
        setattr(owner, name, die)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_kill_leaves_the_old_log_or_the_compacted_one(tmp_path: Path, moment: str) -> None:
    point, is_compacted = MOMENTS[moment]
    with open_agent(url(tmp_path), "shop", SHOP, seed=1, snapshot_every=10) as agent:
        for i in range(20):
            agent.observe(agent.act(key=f"visit-{i:04}"), i % 2)
        state, history = agent.state(), list(agent.log())
    child = os.fork()
    if child == 0:
        with open_agent(url(tmp_path), "shop") as agent:
            kill_at(agent, point)
            agent.compact(30)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with open_agent(url(tmp_path), "shop") as agent:
        log = list(agent.log())
        assert [e.seq for e in log] == ([1, *range(30, 42)] if is_compacted else [*range(1, 42)])
        assert log[0] == history[0]
        assert log[-11:] == history[-11:]
        assert same_state(agent, state)
        assert same_state(agent, replay(iter(log)).state)
        agent.compact(30)  # erases what an interrupted compaction has left
        assert b"visit-0003" not in contents(tmp_path)
        assert b"visit-0019" in contents(tmp_path)


def test_a_full_disk_after_compaction_says_what_to_do(
    shop: DurableAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __getattr__(self, name: str) -> Any:
            raise apsw.FullError("full")

    log: Any = shop._log
    with monkeypatch.context() as patch:
        patch.setattr(log._file, "_open", Full)
        with pytest.raises(DiskFull, match=r"no space to erase.*repeat"):
            log.vacuum()

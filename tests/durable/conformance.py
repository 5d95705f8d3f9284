"""Tests that every store must pass. The test class of a store inherits them, with its `reopen`."""

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.durable.concurrency import catch, join, start

from bayescontrol import errors
from bayescontrol.durable.stores.log import Log, LogStore, Row, Snapshot, open_store

#: Opens the same store again. An exclusive store must be closed first.
Reopen: TypeAlias = Callable[[], LogStore]


def decided(seq: int, key: str | None = None, payload: bytes = b'{"a":"red"}') -> Row:
    return Row(seq, "decided", None, key, None, payload, seq * 7919 % 2**32)


def observed(seq: int, n: int) -> Row:
    return Row(seq, "observed", n, None, None, b'{"o":1}', 2**32 - seq)


ROWS = [
    Row(1, "created", None, None, None, b'{"model":"m"}', 0),
    decided(2),
    decided(3, "visit-81"),
    observed(4, 3),
    decided(5, "Ünïcode key ✓"),
    observed(6, 2),
]


class StoreConformance:
    """The contract of `LogStore` and `Log`."""

    @pytest.fixture
    def reopen(self) -> Reopen:
        raise NotImplementedError

    @pytest.fixture
    def store(self, reopen: Reopen) -> Iterator[LogStore]:
        store = reopen()
        yield store
        store.close()

    @pytest.fixture
    def log(self, store: LogStore) -> Log:
        return store.log("checkout")

    def test_a_new_log_is_empty_and_not_listed(self, store: LogStore, log: Log) -> None:
        assert (log.name, log.head(), store.names()) == ("checkout", 0, [])
        assert [*log.read(), *log.snapshots()] == []

    def test_appended_events_are_read_back_bit_for_bit(self, log: Log) -> None:
        log.append(ROWS[:1])
        log.append(ROWS[1:])
        assert log.head() == len(ROWS)
        assert list(log.read()) == ROWS
        assert all(type(row) is Row for row in log.read())

    def test_payloads_may_be_any_bytes(self, log: Log) -> None:
        payload = bytes(range(256)) * 300
        log.append([decided(1, payload=payload), decided(2, payload=b"")])
        assert [row.payload for row in log.read()] == [payload, b""]

    def test_a_range_of_events_can_be_read(self, log: Log) -> None:
        log.append(ROWS)
        assert list(log.read(3)) == ROWS[2:]
        assert list(log.read(2, 4)) == ROWS[1:4]
        assert list(log.read(7)) == []
        assert list(log.read(4, 3)) == []
        assert list(log.read(6, 100)) == ROWS[5:]

    def test_a_reader_sees_a_fixed_prefix_and_does_not_block_writers(self, log: Log) -> None:
        log.append(ROWS[:3])
        reading = log.read()
        first = next(reading)
        log.append(ROWS[3:])
        assert [first, *reading] == ROWS[:3]

    def test_many_rows_are_read_in_order(self, log: Log) -> None:
        rows = [decided(seq) for seq in range(1, 25_001)]
        log.append(rows[:12_000])
        log.append(rows[12_000:])
        assert list(log.read()) == rows

    def test_rows_are_found_by_decision_and_by_key(self, log: Log) -> None:
        log.append(ROWS)
        assert log.find_answer(3) == ROWS[3]
        assert log.find_answer(2) == ROWS[5]
        assert log.find_answer(5) is None
        assert log.find_key("visit-81") == ROWS[2]
        assert log.find_key("Ünïcode key ✓") == ROWS[4]
        assert log.find_key("visit-82") is None

    def test_rows_that_do_not_follow_the_head_are_refused(self, log: Log) -> None:
        log.append(ROWS[:2])
        for wrong in (ROWS[:1], ROWS[1:2], ROWS[3:4]):
            with pytest.raises(errors.HeadMoved):
                log.append(wrong)
        assert list(log.read()) == ROWS[:2]

    def test_a_batch_with_a_gap_is_rejected_as_a_whole(self, log: Log) -> None:
        for wrong in ([ROWS[0], ROWS[2]], [ROWS[0], ROWS[0]], []):
            with pytest.raises(ValueError, match="consecutive"):
                log.append(wrong)
        assert log.head() == 0

    def test_a_second_observation_of_a_decision_rejects_the_batch(self, log: Log) -> None:
        log.append(ROWS)
        with pytest.raises(errors.ConflictingFeedback):
            log.append([decided(7), observed(8, 3)])
        with pytest.raises(errors.ConflictingFeedback):
            log.append([observed(7, 5), observed(8, 5)])
        assert list(log.read()) == ROWS
        log.append([observed(7, 5)])
        assert log.head() == 7

    def test_a_second_decision_with_the_same_key_rejects_the_batch(self, log: Log) -> None:
        log.append(ROWS)
        with pytest.raises(errors.ConflictingKey):
            log.append([decided(7), decided(8, "visit-81")])
        assert list(log.read()) == ROWS

    def test_logs_of_one_store_are_independent(self, store: LogStore, log: Log) -> None:
        other = store.log("search")
        log.append(ROWS)
        assert (other.head(), list(other.read()), other.find_key("visit-81")) == (0, [], None)
        other.append(ROWS[:3])
        assert (other.head(), log.head()) == (3, 6)
        assert store.names() == ["checkout", "search"]

    def test_events_and_snapshots_survive_reopening(self, reopen: Reopen) -> None:
        store = reopen()
        log = store.log("checkout")
        log.append(ROWS)
        log.save_snapshot(Snapshot(4, b"state", b"digest"))
        store.close()
        again = reopen()
        log = again.log("checkout")
        assert (log.head(), list(log.read())) == (6, ROWS)
        assert (log.find_key("visit-81"), log.find_answer(3)) == (ROWS[2], ROWS[3])
        assert list(log.snapshots()) == [Snapshot(4, b"state", b"digest")]
        log.append([decided(7)])
        assert again.names() == ["checkout"]
        again.close()

    def test_the_newest_two_snapshots_are_kept(self, store: LogStore, log: Log) -> None:
        log.append(ROWS)
        for seq in (1, 3, 6):
            log.save_snapshot(Snapshot(seq, b"%d" % seq, b"d"))
        assert [s.seq for s in log.snapshots()] == [6, 3]
        assert list(store.log("search").snapshots()) == []

    def test_older_snapshots_are_kept_at_regular_spacing(self, log: Log) -> None:
        log.append(ROWS)
        for seq in range(10, 1_010, 10):
            log.save_snapshot(Snapshot(seq, b"%d" % seq, b"d"), 100)
        found = [s.seq for s in log.snapshots()]
        assert found[:2] == [1_000, 990]
        assert 8 <= len(found) <= 22
        assert all(a - b <= 100 for a, b in pairwise([*found, 0]))
        near = next(log.snapshots(505))
        assert 405 <= near.seq <= 505
        assert near.state == b"%d" % near.seq

    def test_a_snapshot_replaces_one_at_the_same_seq(self, log: Log) -> None:
        log.append(ROWS)
        log.save_snapshot(Snapshot(6, b"old", b"1"))
        log.save_snapshot(Snapshot(6, b"new" * 100_000, b"2"))
        assert list(log.snapshots()) == [Snapshot(6, b"new" * 100_000, b"2")]

    def test_threads_may_read_while_one_writes(self, log: Log) -> None:
        wrong: list[object] = []
        done = threading.Event()

        def read_all() -> None:
            while not done.is_set():
                seqs = [row.seq for row in log.read()]
                if seqs != list(range(1, len(seqs) + 1)):
                    wrong.append(seqs)

        readers = start(*[read_all] * 3)
        for seq in range(1, 41):
            log.append([decided(seq)])
        done.set()
        join(readers)
        assert wrong == []
        assert log.head() == 40

    def test_a_closed_log_raises_and_can_be_opened_again(self, store: LogStore, log: Log) -> None:
        log.append(ROWS)
        log.close()
        log.close()
        for use in (
            log.head,
            log.snapshots,
            lambda: log.append([decided(7)]),
            lambda: list(log.read()),
            lambda: log.find_key("visit-81"),
            lambda: log.find_answer(3),
            lambda: log.save_snapshot(Snapshot(1, b"", b"")),
        ):
            with pytest.raises(errors.StoreFailed, match="closed"):
                use()
        assert store.log("checkout").head() == 6

    def test_a_closed_store_closes_its_logs(self, reopen: Reopen) -> None:
        store = reopen()
        log = store.log("checkout")
        store.close()
        store.close()
        for use in (lambda: log.append(ROWS), lambda: store.log("checkout"), store.names):
            with pytest.raises(errors.StoreFailed, match="closed"):
                use()

    def test_a_forked_child_must_open_the_store_again(self, store: LogStore, log: Log) -> None:
        log.append(ROWS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a process with threads forks
            child = os.fork()
        if child == 0:
            os._exit(7 if isinstance(catch(store.names), errors.StoreBusy) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert store.names() == ["checkout"]

    def test_a_log_of_an_exclusive_store_is_opened_once(self, store: LogStore, log: Log) -> None:
        if store.shared:
            twin = store.log("checkout")
            twin.append(ROWS)
            assert log.head() == 6
            with pytest.raises(errors.HeadMoved):
                log.append(ROWS[:1])
        else:
            with pytest.raises(errors.StoreBusy, match="checkout"):
                store.log("checkout")

    @pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "nul\0", ["a"], None, 5])
    def test_invalid_log_names_are_refused(self, store: LogStore, name: Any) -> None:
        with pytest.raises(errors.UnknownStore, match="name="):
            store.log(name)

    @pytest.mark.parametrize("name", ["a'b\"c;--", "日本 ✓", "../up", "x" * 200, "%s {}"])
    def test_any_printable_name_is_accepted(self, store: LogStore, name: str) -> None:
        log = store.log(name)
        log.append(ROWS)
        assert store.names() == [name]
        assert list(log.read()) == ROWS

    # -- compaction, import, deletion and backup -------------------------------------------------

    def test_compaction_replaces_the_first_rows_and_their_snapshots(
        self, reopen: Reopen, store: LogStore, log: Log
    ) -> None:
        store.log("search").append(ROWS)
        log.append(ROWS)
        for seq in (2, 4, 6):
            log.save_snapshot(Snapshot(seq, b"%d" % seq, b"d"))
        sealed = Row(4, "compacted", None, None, None, b"{}", 5)
        log.compact(sealed, 6)
        log.vacuum()
        after = [ROWS[0], sealed, *ROWS[4:]]
        assert list(log.read()) == after
        assert (log.head(), log.sealed, log.find_sealed()) == (6, 4, sealed)
        log.sealed = 0  # now `snapshots` lists old ones too, if they are there
        assert [snapshot.seq for snapshot in log.snapshots()] == [6]
        log.sealed = 4
        assert (log.find_key("visit-81"), log.find_answer(3)) == (None, None)
        assert log.find_key("Ünïcode key ✓") == ROWS[4]
        log.append([decided(7, "visit-81")])
        assert list(store.log("deals").read()) == []
        store.close()
        again = reopen()
        log = again.log("checkout")
        assert (log.head(), log.sealed) == (7, 4)
        assert list(log.read()) == [*after, decided(7, "visit-81")]
        assert list(log.read(2, 3)) == []
        other = again.log("search")
        assert (list(other.read()), other.head(), other.sealed) == (ROWS, 6, 0)
        again.close()

    def test_compaction_is_refused_after_another_append_or_compaction(self, log: Log) -> None:
        log.append(ROWS)
        sealed = Row(4, "compacted", None, None, None, b"{}", 5)
        with pytest.raises(errors.HeadMoved):
            log.compact(sealed, 5)
        assert list(log.read()) == ROWS
        assert (log.sealed, log.find_sealed()) == (0, None)

    def test_a_compacted_log_is_read_in_chunks(self, log: Log) -> None:
        rows = [decided(seq) for seq in range(1, 25_001)]
        log.append(rows)
        log.compact(Row(12_345, "compacted", None, None, None, b"{}", 5), 25_000)
        read = [row.seq for row in log.read()]
        assert read == [1, *range(12_345, 25_001)]

    def test_imported_logs_are_stored_all_or_none(self, store: LogStore) -> None:
        store.log("checkout").append(ROWS)

        def broken() -> Iterator[Row]:
            yield from ROWS[:3]
            raise errors.DamagedLog("event 4 is damaged")

        with pytest.raises(errors.DamagedLog, match="event 4"):
            store.import_logs({"first": lambda: ROWS, "second": broken})
        with pytest.raises(errors.AgentExists, match="'checkout'"):
            store.import_logs({"first": lambda: ROWS, "checkout": lambda: ROWS})
        with pytest.raises(errors.UnknownStore, match="name="):
            store.import_logs({"first": lambda: ROWS, "a\nb": lambda: ROWS})
        assert store.names() == ["checkout"]
        sealed = [ROWS[0], Row(90, "compacted", None, None, None, b"{}", 5), decided(91)]
        store.import_logs({"first": lambda: iter(ROWS), "sealed": lambda: sealed})
        assert store.names() == ["checkout", "first", "sealed"]
        first, log = store.log("first"), store.log("sealed")
        assert (list(first.read()), list(log.read())) == (ROWS, sealed)
        assert (log.head(), log.sealed, first.head(), first.sealed) == (91, 90, 6, 0)
        log.append([decided(92)])
        assert first.sizes() == {"created": (1, 13), "decided": (3, 33), "observed": (2, 14)}

    def test_a_deleted_log_can_be_created_again(self, store: LogStore, log: Log) -> None:
        log.append(ROWS)
        log.save_snapshot(Snapshot(6, b"state", b"digest"))
        log.close()
        store.log("search").append(ROWS[:2])
        store.delete("checkout")
        with pytest.raises(errors.UnknownStore, match="no agent 'checkout'"):
            store.delete("checkout")
        assert store.names() == ["search"]
        log = store.log("checkout")
        assert (log.head(), list(log.snapshots())) == (0, [])
        log.append(ROWS)
        assert list(log.read()) == ROWS

    def test_a_backup_is_a_store_with_all_logs(self, store: LogStore, tmp_path: Path) -> None:
        store.log("checkout").append(ROWS)
        log = store.log("日本 ✓")
        log.append(ROWS)
        sealed = Row(4, "compacted", None, None, None, b"{}", 5)
        log.compact(sealed, 6)
        store.backup(tmp_path / "copy.db")
        assert [path.name for path in tmp_path.glob(".*")] == []
        assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
        with closing(open_store(f"sqlite:///{tmp_path / 'copy.db'}", create=False)) as copy:
            assert copy.names() == ["checkout", "日本 ✓"]
            assert list(copy.log("checkout").read()) == ROWS
            assert list(copy.log("日本 ✓").read()) == [ROWS[0], sealed, *ROWS[4:]]
        for path in (tmp_path / "copy.db", tmp_path / "nowhere" / "copy.db"):
            with pytest.raises(errors.StoreFailed, match=r"exists already|no folder"):
                store.backup(path)

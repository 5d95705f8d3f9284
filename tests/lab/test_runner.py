"""Replicas give the same bytes however they are run, and failures are reported by run."""

import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import Columns, Experiment, ExperimentFailed, Score
from bayescontrol.lab.runner import GroupSizer, conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.store import Shard


class RecordedProgress:
    """Progress that records its calls."""

    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []
        self.messages = 0

    def advance(self, done: int, total: int, /) -> None:
        self.counts.append((done, total))

    def compiling(self) -> None:
        self.messages += 1


def as_bytes(columns: Columns) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in columns.items()}


def test_two_workers_give_the_bytes_of_one_although_run_0_finishes_last(
    coin: Experiment[Any], study: Path
) -> None:
    settings = coin.settings(runs=37, steps=11)
    single, reported = run_replicas(coin, settings), RecordedProgress()
    shared = run_replicas(find(f"{study}:uneven"), settings, workers=2, progress=reported)
    assert as_bytes(single) == as_bytes(shared)
    assert single["share"].shape == (37, 11)
    assert reported.counts[0] == (0, 37)
    assert reported.counts[-1] == (37, 37)
    assert reported.counts == sorted(reported.counts)


def test_runs_are_stacked_in_their_order(coin: Experiment[Any]) -> None:
    counted = replace(coin, run=lambda settings, i: {"i": np.array(i)})
    assert run_replicas(counted, coin.settings(runs=7))["i"].tolist() == list(range(7))


def test_each_finished_replica_is_reported(coin: Experiment[Any]) -> None:
    reported = RecordedProgress()
    run_replicas(coin, coin.settings(runs=3), progress=reported)
    assert reported.counts == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failed_replica_is_reported_with_its_settings(study: Path, workers: int) -> None:
    broken = find(f"{study}:broken")
    message = r"broken: run 3 raised ZeroDivisionError: the coin .*, with Settings\(seed=5, runs=9"
    with pytest.raises(ExperimentFailed, match=message) as caught:
        run_replicas(broken, broken.settings(seed=5, runs=9), workers)
    assert caught.value.__cause__ is not None


def test_a_worker_that_dies_is_reported(study: Path) -> None:
    deadly = find(f"{study}:deadly")
    with pytest.raises(ExperimentFailed, match="deadly: a worker process died"):
        run_replicas(deadly, deadly.settings(runs=2), workers=2)


def test_columns_that_change_shape_are_refused(study: Path) -> None:
    ragged = find(f"{study}:ragged")
    with pytest.raises(ExperimentFailed, match=r"ragged: run 1 has columns .*2,.* run 0 has .*1,"):
        run_replicas(ragged, ragged.settings(runs=3))


def test_columns_of_python_objects_are_refused(coin: Experiment[Any]) -> None:
    odd = replace(coin, run=lambda settings, i: {"share": np.array([object()])})
    with pytest.raises(ExperimentFailed, match="column 'share' of run 0 holds Python objects"):
        run_replicas(odd, coin.settings())


def test_a_run_that_cannot_be_pickled_is_reported(coin: Experiment[Any]) -> None:
    local = replace(coin, run=lambda settings, i: {"i": np.array(i)})
    with pytest.raises(ExperimentFailed, match="cannot be sent to another process"):
        run_replicas(local, coin.settings(), workers=2)


def test_columns_of_records_are_refused(coin: Experiment[Any]) -> None:
    odd = replace(coin, run=lambda settings, i: {"share": np.zeros(2, dtype=[("x", float)])})
    with pytest.raises(ExperimentFailed, match="column 'share' of run 0 holds records"):
        run_replicas(odd, coin.settings())


def test_columns_that_change_type_are_refused(coin: Experiment[Any]) -> None:
    """Otherwise the result of a run would depend on the runs it is grouped with."""
    odd = replace(coin, run=lambda settings, i: {"y": np.array(1.5 if i else 1)})
    with pytest.raises(ExperimentFailed, match=r"run 1 has columns .*float64.*, run 0 .*int64"):
        run_replicas(odd, coin.settings())


def test_any_executor_works_and_stays_open(coin: Experiment[Any]) -> None:
    settings = coin.settings(runs=23)
    local = replace(coin, run=lambda settings, i: coin.run(settings, i))
    with ThreadPoolExecutor(2) as threads:
        first = run_replicas(local, settings, executor=threads)
        assert threads.submit(abs, -1).result() == 1
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as processes:
        second = run_replicas(coin, settings, executor=processes)
    assert as_bytes(first) == as_bytes(second) == as_bytes(run_replicas(coin, settings))


def test_a_failed_executor_is_reported_with_the_experiment(coin: Experiment[Any]) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.shutdown()
        with pytest.raises(ExperimentFailed, match="coin: the executor failed with RuntimeError"):
            run_replicas(coin, coin.settings(), executor=threads)


def test_no_more_runs_are_started_after_an_error(study: Path) -> None:
    broken, started = find(f"{study}:broken"), list[int]()

    def run(settings: Any, i: int) -> Columns:
        started.append(i)
        return broken.run(settings, i)

    with ThreadPoolExecutor(1) as threads, pytest.raises(ExperimentFailed, match="run 3 raised"):
        run_replicas(replace(broken, run=run), broken.settings(runs=1000), executor=threads)
    assert len(started) < 50


def test_a_shard_can_be_run_without_a_folder(coin: Experiment[Any]) -> None:
    settings = coin.settings(runs=10)
    part = run_replicas(coin, settings, shard=Shard(2, 3))
    whole = run_replicas(coin, settings)
    assert part["share"].tobytes() == whole["share"][1::3].tobytes()


def test_a_failed_score_is_reported(coin: Experiment[Any]) -> None:
    odd = replace(coin, score=lambda settings, columns: Score((columns["absent"],)))  # type: ignore[arg-type]
    with pytest.raises(ExperimentFailed, match="coin: score raised KeyError: 'absent', with Set"):
        conduct(odd, coin.settings(runs=1))


@dataclass(frozen=True)
class _Unbounded:
    seed: int = 0
    runs: int = 0


def test_no_runs_and_no_workers_are_refused(coin: Experiment[Any]) -> None:
    none = replace(coin, settings=_Unbounded, quick=_Unbounded(), full=_Unbounded())
    with pytest.raises(InvalidSettings, match="runs=0: coin needs at least one run"):
        run_replicas(none, _Unbounded())
    with pytest.raises(InvalidSettings, match="workers=0"):
        run_replicas(coin, coin.settings(), workers=0)


def test_workers_can_be_started_from_a_thread(coin: Experiment[Any]) -> None:
    found: list[Columns] = []
    thread = threading.Thread(
        target=lambda: found.append(run_replicas(coin, coin.settings(runs=2), workers=2))
    )
    thread.start()
    thread.join()
    assert as_bytes(found[0]) == as_bytes(run_replicas(coin, coin.settings(runs=2)))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_first_compilation_is_announced_once(study: Path, workers: int) -> None:
    compiled, reported = find(f"{study}:compiled"), RecordedProgress()
    run_replicas(compiled, compiled.settings(runs=2), workers, reported)
    assert reported.messages == 1


def test_compilation_is_reported_and_numba_is_loaded_only_when_needed(study: Path) -> None:
    code = f"""
import sys
from bayescontrol.lab import find, run_replicas
class RecordedProgress:
    def advance(self, done, total): pass
    def compiling(self): print("compiling")
coin, compiled = find({str(study)!r} + ":coin"), find({str(study)!r} + ":compiled")
run_replicas(coin, coin.quick, progress=RecordedProgress())
print("numba" in sys.modules)
run_replicas(compiled, compiled.quick, progress=RecordedProgress())
run_replicas(coin, coin.quick, progress=RecordedProgress())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "compiling"]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def size_after_growth(sizer: GroupSizer, seconds: float, nbytes: int = 8, times: int = 30) -> int:
    """Return the group size after many groups of replicas that take `seconds` each."""
    size = 1
    for _ in range(times):
        size = sizer.size(left=10**9, workers=2)
        sizer.record(size, size * seconds, size * nbytes)
    return size


def test_groups_grow_to_about_a_second() -> None:
    assert 900 <= size_after_growth(GroupSizer(Clock()), 0.001) <= 1100
    assert size_after_growth(GroupSizer(Clock()), 5.0) == 1


def test_a_slow_first_replica_soon_stops_affecting_the_group_size() -> None:
    sizer = GroupSizer(Clock())
    sizer.record(1, 20.0, 8)
    assert 900 <= size_after_growth(sizer, 0.001) <= 1100


def test_groups_are_longer_in_a_long_job_up_to_a_minute() -> None:
    clock = Clock()
    sizer = GroupSizer(clock)
    assert sizer.target() == 1.0
    clock.now = 1000.0
    assert sizer.target() == 10.0
    clock.now = 1e6
    assert sizer.target() == 60.0
    assert 50_000 <= size_after_growth(sizer, 0.001) <= 61_000


def test_large_replicas_are_sent_in_small_groups() -> None:
    assert size_after_growth(GroupSizer(Clock()), 1e-6, nbytes=1 << 23) == 4
    assert GroupSizer(Clock()).is_full(seconds=0.0, nbytes=1 << 25)


def test_towards_the_end_groups_shrink_so_that_every_worker_has_one() -> None:
    sizer = GroupSizer(Clock())
    size_after_growth(sizer, 0.001)
    assert sizer.size(left=100, workers=5) == 10
    assert sizer.size(left=3, workers=5) == 1


def test_replicas_that_take_no_time_do_not_divide_by_zero() -> None:
    sizer = GroupSizer(Clock())
    sizer.record(1, 0.0, 0)
    assert sizer.size(left=10**9, workers=1) == 4

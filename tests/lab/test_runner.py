"""Replicas give the same bytes however they are run, and say which one broke."""

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

from bayescontrol.lab.experiment import Columns, Experiment, Score, find
from bayescontrol.lab.replicas import ExperimentFailed
from bayescontrol.lab.runner import conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.shards import Shard


class Heard:
    """Progress, remembered."""

    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []
        self.words = 0

    def advance(self, done: int, total: int, /) -> None:
        self.counts.append((done, total))

    def compiling(self) -> None:
        self.words += 1


def as_bytes(columns: Columns) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in columns.items()}


def test_two_workers_give_the_bytes_of_one_though_the_first_run_comes_last(
    coin: Experiment[Any], study: Path
) -> None:
    settings = coin.settings(runs=37, steps=11)
    alone, heard = run_replicas(coin, settings), Heard()
    shared = run_replicas(find(f"{study}:uneven"), settings, workers=2, progress=heard)
    assert as_bytes(alone) == as_bytes(shared)
    assert alone["share"].shape == (37, 11)
    assert heard.counts[0] == (0, 37)
    assert heard.counts[-1] == (37, 37)
    assert heard.counts == sorted(heard.counts)


def test_runs_are_stacked_in_their_order(coin: Experiment[Any]) -> None:
    counted = replace(coin, run=lambda settings, i: {"i": np.array(i)})
    assert run_replicas(counted, coin.settings(runs=7))["i"].tolist() == list(range(7))


def test_a_replica_is_told_of_as_it_is_done(coin: Experiment[Any]) -> None:
    heard = Heard()
    run_replicas(coin, coin.settings(runs=3), progress=heard)
    assert heard.counts == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_replica_is_named_with_its_settings(study: Path, workers: int) -> None:
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


def test_a_run_that_cannot_travel_says_so(coin: Experiment[Any]) -> None:
    local = replace(coin, run=lambda settings, i: {"i": np.array(i)})
    with pytest.raises(ExperimentFailed, match="cannot be sent to another process"):
        run_replicas(local, coin.settings(), workers=2)


def test_columns_of_records_are_refused(coin: Experiment[Any]) -> None:
    odd = replace(coin, run=lambda settings, i: {"share": np.zeros(2, dtype=[("x", float)])})
    with pytest.raises(ExperimentFailed, match="column 'share' of run 0 holds records"):
        run_replicas(odd, coin.settings())


def test_columns_that_change_type_are_refused(coin: Experiment[Any]) -> None:
    """Else what a run gives would depend on which runs it was grouped with."""
    odd = replace(coin, run=lambda settings, i: {"y": np.array(1.5 if i else 1)})
    with pytest.raises(ExperimentFailed, match=r"run 1 has columns .*float64.*, run 0 .*int64"):
        run_replicas(odd, coin.settings())


def test_any_executor_will_do_and_stays_open(coin: Experiment[Any]) -> None:
    settings = coin.settings(runs=23)
    local = replace(coin, run=lambda settings, i: coin.run(settings, i))
    with ThreadPoolExecutor(2) as threads:
        first = run_replicas(local, settings, executor=threads)
        assert threads.submit(abs, -1).result() == 1
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as processes:
        second = run_replicas(coin, settings, executor=processes)
    assert as_bytes(first) == as_bytes(second) == as_bytes(run_replicas(coin, settings))


def test_an_executor_that_fails_is_named_with_the_experiment(coin: Experiment[Any]) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.shutdown()
        with pytest.raises(ExperimentFailed, match="coin: the executor failed with RuntimeError"):
            run_replicas(coin, coin.settings(), executor=threads)


def test_after_an_error_nothing_more_is_begun(study: Path) -> None:
    broken, begun = find(f"{study}:broken"), list[int]()

    def run(settings: Any, i: int) -> Columns:
        begun.append(i)
        return broken.run(settings, i)

    with ThreadPoolExecutor(1) as threads, pytest.raises(ExperimentFailed, match="run 3 raised"):
        run_replicas(replace(broken, run=run), broken.settings(runs=1000), executor=threads)
    assert len(begun) < 50


def test_a_shard_of_the_runs_can_be_had_without_a_folder(coin: Experiment[Any]) -> None:
    settings = coin.settings(runs=10)
    part = run_replicas(coin, settings, shard=Shard(2, 3))
    whole = run_replicas(coin, settings)
    assert part["share"].tobytes() == whole["share"][1::3].tobytes()


def test_a_broken_score_is_named(coin: Experiment[Any]) -> None:
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


def test_workers_may_be_started_from_a_thread(coin: Experiment[Any]) -> None:
    found: list[Columns] = []
    thread = threading.Thread(
        target=lambda: found.append(run_replicas(coin, coin.settings(runs=2), workers=2))
    )
    thread.start()
    thread.join()
    assert as_bytes(found[0]) == as_bytes(run_replicas(coin, coin.settings(runs=2)))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_first_compilation_is_announced_once(study: Path, workers: int) -> None:
    compiled, heard = find(f"{study}:compiled"), Heard()
    run_replicas(compiled, compiled.settings(runs=2), workers, heard)
    assert heard.words == 1


def test_numba_is_heard_although_it_is_loaded_late_and_never_loaded_in_vain(study: Path) -> None:
    code = f"""
import sys
from bayescontrol.lab import find, run_replicas
class Heard:
    def advance(self, done, total): pass
    def compiling(self): print("compiling")
coin, compiled = find({str(study)!r} + ":coin"), find({str(study)!r} + ":compiled")
run_replicas(coin, coin.quick, progress=Heard())
print("numba" in sys.modules)
run_replicas(compiled, compiled.quick, progress=Heard())
run_replicas(coin, coin.quick, progress=Heard())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "compiling"]

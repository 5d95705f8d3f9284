"""Replicas give the same bytes however they are run, and failures are reported by run."""

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayescontrol.errors import MissingCapability
from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import Columns, Experiment, ExperimentFailed, Score
from bayescontrol.lab.runner import GroupSizer, conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings


class RecordedProgress:
    """Progress that records its calls."""

    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []

    def advance(self, done: int, total: int, /) -> None:
        self.counts.append((done, total))


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


@pytest.mark.parametrize("workers", [1, 2])
def test_runs_are_stacked_in_their_order_also_for_a_lambda(
    coin: Experiment[Any], workers: int
) -> None:
    numbered = replace(coin, run=lambda settings, i: {"i": np.array(i)})
    assert run_replicas(numbered, coin.settings(runs=7), workers)["i"].tolist() == list(range(7))


def test_a_script_can_use_workers_and_numba_is_not_loaded_before_it_is_needed(
    tmp_path: Path, study: Path
) -> None:
    """The functions of a script have no module that a worker could import."""
    script = tmp_path / "script.py"
    script.write_text(f"""{study.read_text()}
if __name__ == "__main__":
    import sys
    from pathlib import Path
    from bayescontrol.lab import ResultStore, Study, run_replicas
    with ResultStore(Path(sys.argv[1]), Study.of(coin, coin.quick)) as store:
        run_replicas(coin, coin.quick, workers=2, store=store)
    print(*store.manifest.provenance[0].provenance.sources, "numba" in sys.modules)
""")
    command = [sys.executable, str(script), str(tmp_path / "results")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "bayescontrol script False\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failed_replica_is_reported_with_its_settings(study: Path, workers: int) -> None:
    broken = find(f"{study}:broken")
    message = r"broken: run 3 raised ZeroDivisionError: the coin .*, with Settings\(seed=5, runs=9"
    with pytest.raises(ExperimentFailed, match=message) as caught:
        run_replicas(broken, broken.settings(seed=5, runs=9), workers)
    assert caught.value.__cause__ is not None


_Run = Callable[[Any, int], Columns]
INVALID: list[tuple[_Run, str]] = [
    (lambda _, i: {"y": np.zeros(1 + (i > 0))}, r"run 1 has columns .*2,.* run 0 has .*1,"),
    (
        lambda _, i: {"y": np.array(1.5 if i else 1)},
        r"run 1 has columns .*float64.*, run 0 .*int64",
    ),
    (lambda _, i: {"y": np.array([object()])}, "column 'y' of run 0 holds Python objects"),
    (lambda _, i: {"y": np.zeros(2, dtype=[("x", float)])}, "column 'y' of run 0 holds records"),
]


@pytest.mark.parametrize(("run", "message"), INVALID)
def test_invalid_columns_are_refused(coin: Experiment[Any], run: _Run, message: str) -> None:
    """If types could change, the result of a run would depend on the runs it is grouped with."""
    with pytest.raises(ExperimentFailed, match=message):
        run_replicas(replace(coin, run=run), coin.settings(runs=3))


def test_a_run_that_cannot_be_pickled_is_reported(coin: Experiment[Any]) -> None:
    lock = threading.Lock()
    locked = replace(coin, run=lambda settings, i: {"i": np.array(lock.locked())})
    with pytest.raises(MissingCapability, match=r"cannot be sent to another process .*lock"):
        run_replicas(locked, coin.settings(), workers=2)


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


def size_after_growth(sizer: GroupSizer, seconds: float, nbytes: int = 8, times: int = 30) -> int:
    """Return the group size after many groups of replicas that take `seconds` each."""
    size = 1
    for _ in range(times):
        size = sizer.size(left=10**9, workers=2)
        sizer.record(size, size * seconds, size * nbytes)
    return size


def frozen() -> float:
    """A clock that stands still."""
    return 0.0


def test_groups_grow_to_about_a_second_also_after_a_slow_first_replica() -> None:
    assert size_after_growth(GroupSizer(frozen), 5.0) == 1
    slow_start = GroupSizer(frozen)
    slow_start.record(1, 20.0, 8)
    for sizer in (GroupSizer(frozen), slow_start):
        assert 900 <= size_after_growth(sizer, 0.001) <= 1100


def test_groups_are_longer_in_a_long_job_up_to_a_minute() -> None:
    now = [0.0]
    sizer = GroupSizer(lambda: now[0])
    for now[0], seconds in ((0.0, 1.0), (1000.0, 10.0), (1e6, 60.0)):
        assert sizer.target() == seconds
    assert 50_000 <= size_after_growth(sizer, 0.001) <= 61_000


def test_large_replicas_are_sent_in_small_groups() -> None:
    assert size_after_growth(GroupSizer(frozen), 1e-6, nbytes=1 << 23) == 4


def test_towards_the_end_groups_shrink_so_that_every_worker_has_one() -> None:
    sizer = GroupSizer(frozen)
    size_after_growth(sizer, 0.001)
    assert sizer.size(left=100, workers=5) == 10
    assert sizer.size(left=3, workers=5) == 1


def test_replicas_that_take_no_time_do_not_divide_by_zero() -> None:
    sizer = GroupSizer(frozen)
    sizer.record(1, 0.0, 0)
    assert sizer.size(left=10**9, workers=1) == 4

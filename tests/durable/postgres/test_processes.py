"""Several processes share one agent: every acknowledged operation happens exactly once."""

from pathlib import Path

import pytest
from tests.durable.postgres.history import check_history
from tests.durable.postgres.worker import Nursery

PROCESSES = 8


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_eight_processes_share_one_agent(
    url: str, nursery: Nursery, tmp_path: Path, count: int
) -> None:
    files = [tmp_path / f"{worker}.jsonl" for worker in range(PROCESSES)]
    pids = [
        nursery.fork(url=url, name="shop", file=str(f), worker=w, seed=w, count=count)
        for w, f in enumerate(files)
    ]
    assert [nursery.wait(pid) for pid in pids] == [0] * PROCESSES
    ops, events = check_history(url, "shop", files)
    assert all(op.acked is not None for op in ops)
    # The processes must have conflicted, otherwise this test shows nothing.
    assert ["learned", False] in [op.result for op in ops]
    assert ["error", "ConflictingFeedback"] in [op.result for op in ops]
    shared = [
        op.result[1] for op in ops if op.kind == "act" and (op.args[0] or "").startswith("all")
    ]
    assert len(set(shared)) < len(shared)
    assert events > count

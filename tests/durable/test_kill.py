"""kill -9 at any moment: no acknowledged operation is lost or duplicated."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.durable.kill_harness import FAULT_POINTS

HARNESS = Path(__file__).parent / "kill_harness.py"
#: Every kind of event, and of decision.
KINDS = {
    *("created", "added", "paused", "resumed", "retired", "configured", "decided", "among"),
    *("holdout", "session", "observed", "default", "corrected", "withdrawn", "aggregated"),
    *("refitted", "compacted"),
}


def run_harness(tmp_path: Path, kills: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, str(HARNESS), str(tmp_path), str(kills), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    ("kills", "seed"), [(50, 0), pytest.param(1000, 10_000, marks=pytest.mark.slow)]
)
def test_kills_at_random_and_named_moments_lose_and_duplicate_nothing(
    tmp_path: Path, kills: int, seed: int
) -> None:
    result = run_harness(tmp_path, kills, seed)
    assert result["kills"] == kills
    assert result["acknowledged"] > 2 * kills
    assert result["in doubt"] > kills / 4
    assert all(result["hits"].get(point, 0) >= 1 for point in FAULT_POINTS)
    assert result["hits"]["any moment"] >= kills / 4
    if kills >= 1000:
        assert result["events"].keys() >= KINDS
        assert min(result["events"].values()) >= 5


#: Planted bug -> (pattern of the error, code). The first error depends on the moment of the kill: a
#: log without its latest events breaks almost any assertion of the harness.
BUGS = {
    "acknowledged before it is on disk": ("AssertionError|DamagedLog", """
from bayescontrol.durable.stores import sqlite
append = sqlite.SqliteLog.append
late = []
def lazy(self, rows):
    if rows[0].seq == 1 or self.name == "warm":
        return append(self, rows)
    late.extend(rows)
    self._head = rows[-1].seq
    if len(late) > 3:
        self._head = late[0].seq - 1
        append(self, late)
        late.clear()
sqlite.SqliteLog.append = lazy
"""),
    "a snapshot with an extra observation": ("posterior differs|drawn again it is", """
from bayescontrol.durable import fold
save = fold.Fold.save
def save_with_extra(self, open_decisions=None):
    twin = self.copy()
    twin.driver.learn(None, "red", 1)
    return save(twin, open_decisions)
fold.Fold.save = save_with_extra
"""),
    "a retry that is handled as a new request": ("lost or changed|was not requested", """
from bayescontrol.durable import turn
init = turn.Act.__init__
turn.Act.__init__ = lambda self, x, key, among, session: init(self, x, None, among, session)
"""),
    "a snapshot without the open decisions": ("has no default|have no default", """
from bayescontrol.durable import fold
save = fold.Fold.save
fold.Fold.save = lambda self, open_decisions=None: save(self)
"""),
    "a session that is forgotten": ("has two decisions", """
from bayescontrol.durable import decisions
decisions.Decisions.find_session = lambda self, session: None
"""),
    "a withdrawal that is not folded": ("posterior differs|drawn again it is", """
from bayescontrol.durable import turn
turn.Turn._refold = lambda self, amendments: self._let_agent_work()
"""),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_the_harness_finds_planted_bugs(tmp_path: Path, bug: str) -> None:
    """The moments of kills vary with the machine; 300 are enough, and the first find ends it."""
    pattern, planted = BUGS[bug]
    code = f"{planted}\nimport runpy, sys\nsys.argv = {[str(HARNESS), str(tmp_path), '300', '0']}"
    code += f"\nrunpy.run_path({str(HARNESS)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert re.search(pattern, done.stderr), done.stderr

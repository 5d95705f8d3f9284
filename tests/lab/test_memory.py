"""Memory holds the results once plus a bounded amount, for any number of replicas.

The peak is the kernel's high-water mark of a fresh process: `getrusage` would report the peak of
the parent process if that was higher.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.limits import TIMEOUT

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads the peak of memory in /proc"
)

LARGE = f"{Path(__file__).parent / 'studies' / 'paced_study.py'}:large"
FLOATS = 1 << 14  # 128 KiB a replica
MIB = 1 << 20

PEAK = """
import re
from pathlib import Path
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""

STORED = f"""{PEAK}
import sys
from bayescontrol.lab import find, run_replicas
from bayescontrol.lab.store import ResultStore, Study
large = find(sys.argv[1])
settings = large.settings(runs=int(sys.argv[3]), steps={FLOATS})
with ResultStore(Path(sys.argv[2]), Study.of(large, settings)) as store:
    run_replicas(large, settings, store=store)
print(peak())
"""

# The command line; only the last line of its output is used.
SWEPT = f"""{PEAK}
import sys
from bayescontrol.cli.main import main
words = ["run", sys.argv[1], "--runs", "100", "--set", "steps={FLOATS}", "--json"]
words += ["--sweep", f"seed={{','.join(map(str, range(int(sys.argv[3]))))}}", "--out", sys.argv[2]]
try:
    main(words)
except SystemExit as done:
    assert not done.code, done.code
print(peak())
"""


def peak(code: str, folder: Path, size: int) -> int:
    command = [sys.executable, "-c", code, LARGE, str(folder), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def test_a_thousand_replicas_take_the_memory_of_their_results(tmp_path: Path) -> None:
    few, many = (peak(STORED, tmp_path / str(runs), runs) for runs in (100, 1000))
    results = 900 * FLOATS * 8
    assert results > 100 * MIB
    assert many - few < results + 48 * MIB  # a group in flight is bounded by 32 MiB
    reused = peak(STORED, tmp_path / "1000", 1000)
    assert reused < many + 16 * MIB
    grown = peak(STORED, tmp_path / "1000", 1100)
    assert grown < many + 100 * FLOATS * 8 + 32 * MIB


def test_a_sweep_of_a_thousand_replicas_takes_the_memory_of_one_point(tmp_path: Path) -> None:
    few, many = (peak(SWEPT, tmp_path / str(points), points) for points in (2, 10))
    assert many - few < 16 * MIB  # eight points more come to 100 MiB

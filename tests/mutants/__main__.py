"""`make mutants`: plant every bug, run its tests, and report those that survive."""

import argparse
import signal
import sys
import time
from collections.abc import Sequence

from tests.mutants.runner import TIMEOUT, Bug, ControlFailed, Result, load_bugs, run


class _Progress:
    """One line for each bug that is judged, with the time left."""

    def __init__(self, total: int, workers: int) -> None:
        self._total, self._workers = total, workers
        self._seconds: list[float] = []

    def __call__(self, result: Result) -> None:
        self._seconds.append(result.seconds)
        done = len(self._seconds)
        left = (self._total - done) * sum(self._seconds) / done / self._workers / 60
        print(
            f"[{done}/{self._total}] {result.verdict:14} {result.bug.name} "
            f"({result.seconds:.0f} s; about {left:.0f} min left)",
            file=sys.stderr,
            flush=True,
        )


def print_table(results: Sequence[Result]) -> None:
    """Print the verdict on every bug, survivors first, then a line of counts."""
    rank = {"survived": 0, "killed": 2}
    for result in sorted(results, key=lambda one: (rank.get(one.verdict, 1), one.bug.file)):
        bug = result.bug
        print(f"{result.verdict:14} {result.seconds:6.1f} s  {bug.name} ({bug.file})")
        if result.verdict != "killed":
            print(f"    {bug.what}")
            print(f"    tests: {' '.join(bug.tests)}")
        if result.detail:
            print("\n".join(f"    {line}" for line in result.detail.splitlines()))
    verdicts = [result.verdict for result in results]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(sorted(verdicts)))
    print(f"{len(results)} planted bugs: {counts}")


def chosen(bugs: Sequence[Bug], names: Sequence[str] | None) -> list[Bug]:
    """Select bugs by name; all of them if no name is given."""
    unknown = set(names or ()) - {bug.name for bug in bugs}
    if unknown:
        raise SystemExit(f"no planted bug is named {', '.join(sorted(unknown))}: see --list")
    return [bug for bug in bugs if names is None or bug.name in names]


def main() -> int:
    """Return 0 if every bug was killed, 1 if one was not, 2 if the tests fail without a bug."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="judge only these bugs")
    parser.add_argument("--list", action="store_true", help="list the bugs and run nothing")
    parser.add_argument("--workers", type=int, default=2, help="bugs at a time (default 2)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds for one bug")
    requested = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that running tests stop too
    bugs = chosen(load_bugs(), requested.only)
    if requested.list:
        for bug in bugs:
            print(f"{bug.name:40} {bug.file:36} {bug.what}")
        return 0
    print(f"Running the tests of {len(bugs)} bugs, first without any bug", file=sys.stderr)
    began = time.perf_counter()
    try:
        results = run(
            bugs,
            workers=requested.workers,
            timeout=requested.timeout,
            report=_Progress(len(bugs), requested.workers),
        )
    except ControlFailed as error:
        print(error, file=sys.stderr)
        return 2
    print_table(results)
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes")
    return 0 if all(result.verdict == "killed" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())

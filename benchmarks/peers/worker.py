"""One contestant in a separate process, which plays runs on request over a pipe.

    request   {"player": ..., "world": ..., "seed": ..., "steps": ..., "first": i, "runs": k}
    answer    {"scores": [...],       one number for each of the runs i … i + k - 1
               "seconds": ...,        wall time of these runs, without making the worlds
               "cpu_seconds": ...,    CPU time of this process, likewise
               "memory_mb": ...,      peak resident memory of this process so far
               "version": ...}        package and version

Standard library only: this module is imported within the peers' environments.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

__all__ = ["Prepare", "serve"]

#: Prepares a run, given the request and the number of the run. The function that it returns plays
#: the run and returns its score; only that is timed.
Prepare = Callable[[Mapping[str, Any], int], Callable[[], float]]


def serve(prepare: Prepare, package: str) -> None:
    """Answer requests until the pipe closes; `package` is the installed name of the contestant."""
    # Some peers print when they are imported or used: send their output to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    release = f"{package} {version(package)}"
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        runs = range(request["first"], request["first"] + request["runs"])
        games = [prepare(request, run) for run in runs]
        start, cpu_start = time.perf_counter(), time.process_time()
        scores = [float(play()) for play in games]
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        answer = {
            "scores": scores,
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "memory_mb": peak_memory_mb(),
            "version": release,
        }
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def peak_memory_mb() -> float:
    """Return the peak resident memory of this process in MB (10⁶ bytes); NaN where unknown.

    On Linux `getrusage` would include the memory of the process that started this one.
    """
    try:
        with open("/proc/self/status") as status:
            return next(int(s.split()[1]) for s in status if s.startswith("VmHWM")) * 1024 / 1e6
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return float("nan")
    bytes_per_unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit / 1e6

"""Time of `import bayescontrol`, compared with `import numpy`, in new interpreters."""

import subprocess
import sys

from benchmarks.timing import Timing, take_turns

__all__ = ["import_times"]


def import_times() -> dict[str, Timing]:
    """Time new interpreters; the start-up time of an empty program is subtracted."""

    def run(statement: str) -> object:
        return subprocess.run([sys.executable, "-c", statement], check=True)

    whole = take_turns(
        {
            "nothing": lambda: run("pass"),
            "numpy": lambda: run("import numpy"),
            "bayescontrol": lambda: run("import bayescontrol"),
            "every public name of it": lambda: run("from bayescontrol import *"),
        },
        calls=1,
        rounds=11,
    )
    bare = whole["nothing"].median
    return {
        name: Timing(t.median - bare, t.low - bare, t.high - bare)
        for name, t in whole.items()
        if name != "nothing"
    }

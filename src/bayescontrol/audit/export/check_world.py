"""Check the files of worlds, or compute the delusion index of predictions; needs NumPy only."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def posteriors(world: Any, events: Any) -> tuple[Any, ...]:
    """Return the posteriors with actions as interventions and as evidence, x, and the last a."""
    v = w = np.array(world["prior"])
    x, a = world["start"], None
    for kind, symbol in events:
        if kind not in ("did", "shown", "saw") or (kind == "saw") == (a is None):
            raise ValueError(f"{kind} {symbol}: actions (did, shown) and saw must take turns")
        if kind == "saw":
            o = world["observations"].index(symbol)
            likelihood = np.array(world["hypothesis"])[:, x, a, o]
            v, w = v * likelihood, w * likelihood
            x, a = world["successor"][x][a][o], None
        else:
            a = world["actions"].index(symbol)
            p = np.array(world["policy"])[:, x, a]
            v, w = (v if kind == "did" else v * p), w * p
    return v / v.sum(), w / w.sum(), x, a


def near_one(total: float) -> bool:
    """Whether probabilities with this sum are a distribution, up to the rounding of a network."""
    return abs(total - 1.0) <= 1e-5


def index(world: Any, lines: Any) -> tuple[float, float]:
    """Return the delusion index of predictions, and the share that lies off the line."""
    above = below = errors = 0.0
    for number, line in enumerate(lines, 1):
        v, w, x, a = posteriors(world, line["events"])
        tables = world["policy"] if a is None else np.array(world["hypothesis"])[:, :, a]
        p_int, p_obs = (u @ np.array(tables)[:, x] for u in (v, w))
        symbols = world["actions"] if a is None else world["observations"]
        q = np.array([line["probabilities"].get(s, 0.0) for s in symbols])
        if not (set(line["probabilities"]) <= set(symbols) and min(q) >= 0 and near_one(q.sum())):
            raise ValueError(
                f"line {number}: {line['probabilities']} is not a distribution over {symbols}"
            )
        above, below = above + (q - p_int) @ (p_obs - p_int), below + ((p_obs - p_int) ** 2).sum()
        errors += ((q - p_int) ** 2).sum()
    if below < 1e-4 * len(lines) or not lines:
        raise ValueError("not identified: both posteriors predict almost the same")
    off_line = max(errors - above**2 / below, 0.0)
    return above / below, off_line / (off_line + below)


if __name__ == "__main__":
    files = {path: Path(path).read_text("utf-8") for path in sys.argv[1:]}
    for path in [path for path in files if path.endswith(".json")]:
        world = json.loads(files[path])
        for e in world["examples"]:
            np.testing.assert_allclose(posteriors(world, e["events"])[0], e["interventional"])
            np.testing.assert_allclose(posteriors(world, e["events"])[1], e["observational"])
        print(f"{path}: {len(world['examples'])} examples are right")  # noqa: T201
        for lines in [lines for lines in files if lines.endswith(".jsonl")]:
            predictions = [json.loads(line) for line in files[lines].split("\n") if line.strip()]
            found, share = index(world, predictions)
            counted = f"{len(predictions)} predictions, index {found:.4f}"
            print(f"{lines}: {counted}, residual share {share:.4f}")  # noqa: T201

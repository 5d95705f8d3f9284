"""A study whose texts are tags, and whose numbers JSON cannot represent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from bayescontrol.lab import Claim, Columns, Experiment, Score, Table
from bayescontrol.plot.chart import Chart, Panel, Series

EVIL = "</script><script>alert('x')</script>"


@dataclass(frozen=True)
class Settings:
    """Settings of the evil study."""

    seed: int = 0
    runs: Annotated[int, Meta(ge=1, description="number of replicas")] = 3
    label: str = EVIL
    eps: Annotated[float, Meta(description=EVIL)] = math.nan
    slope: float = 1.0


def run(settings: Settings, i: int) -> Columns:
    """Columns whose names are those of function parameters."""
    return {"file": settings.slope * np.arange(3) + i, "self": np.array(f"run {i}")}


def score(settings: Settings, columns: Columns) -> Score:
    """One claim that holds and one of the paper that does not."""
    claims = (
        Claim("sum", EVIL, "ours", 1.0, math.inf, math.nan, True, threshold_origin=EVIL),
        Claim(
            "printed", "p", "paper", 1.0, float(columns["file"].sum()), None, False, reason=EVIL,
            place=EVIL,
        ),
    )  # fmt: skip
    return Score(claims, (Table(EVIL, (EVIL, "n"), ((EVIL, 1.5),), EVIL),))


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """A line."""
    series = Series.of_runs(EVIL, np.arange(3), columns["file"])
    return {"line": Chart(EVIL, [Panel(EVIL, EVIL, EVIL, [series], notes=[EVIL])], EVIL, note=EVIL)}


evil = Experiment("evil", EVIL, Settings, Settings(), Settings(), run, score, draw)

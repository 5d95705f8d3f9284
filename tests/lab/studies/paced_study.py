"""Replicas with every type of column, of a chosen duration and size, to be killed and merged."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayescontrol.lab import Claim, Columns, Experiment, Score
from bayescontrol.plot.chart import Chart


@dataclass(frozen=True)
class Settings:
    """Settings of the walk."""

    seed: int = 0
    runs: int = 60
    steps: int = 20
    seconds: float = 0.0
    scale: float = 1.0
    words: tuple[str, ...] = ("a", "bb", "ccc", "dddd")


def run(settings: Settings, i: int) -> Columns:
    """One replica: a random walk, and its end in every form."""
    time.sleep(settings.seconds)
    rng = np.random.default_rng([settings.seed, i])
    walk = np.cumsum(rng.normal(0.0, settings.scale, settings.steps))
    return {
        "walk": walk,
        "end": np.array(walk[-1]),
        "above": walk > 0,
        "times": np.array([[i, settings.steps], [1, 2]], dtype=np.int16),
        "word": np.array(settings.words[i % len(settings.words)]),
        "raw": np.array(b"x" * (i % 3)),
        "turn": np.array(complex(i, -1)),
        "nan": np.array(np.nan if i % 2 else -0.0),
        "nothing": np.zeros((0, 3)),
    }


def score(settings: Settings, columns: Columns) -> Score:
    """The walk ends somewhere."""
    ours = float(columns["end"].mean())
    claim = Claim("end", "the walk ends near 0", "ours", 0.0, ours, None, abs(ours) < 1e9)
    return Score((claim,))


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """No figures."""
    return {}


paced = Experiment(
    name="paced",
    summary="a random walk at a chosen pace",
    settings=Settings,
    quick=Settings(runs=12),
    full=Settings(runs=24),
    run=run,
    score=score,
    figures=draw,
)


def _large_run(settings: Settings, i: int) -> Columns:
    return {"walk": np.random.default_rng([settings.seed, i]).random(settings.steps)}


def _large_score(settings: Settings, columns: Columns) -> Score:
    return Score((Claim("mean", "a mean", "ours", 0.5, float(columns["walk"][0, 0]), 1.0, True),))


def _faulty_run(settings: Settings, i: int) -> Columns:
    if i == 7:
        raise ValueError("seven")
    return run(settings, i)


def _impure_run(settings: Settings, i: int) -> Columns:
    return {"runs": np.array(settings.runs)}


def _torn_score(settings: Settings, columns: Columns) -> Score:
    raise ValueError(f"scale {settings.scale} cannot be scored")


def _picky_score(settings: Settings, columns: Columns) -> Score:
    if settings.scale == 2.0:
        raise ValueError("scale 2 cannot be scored")
    return score(settings, columns)


large = replace(paced, name="large", run=_large_run, score=_large_score)
faulty = replace(paced, name="faulty", run=_faulty_run)
impure = replace(paced, name="impure", run=_impure_run)
unscored = replace(paced, name="unscored", score=_torn_score)
picky = replace(paced, name="picky", score=_picky_score)
sized = replace(paced, name="sized", full=Settings(runs=24, steps=30))

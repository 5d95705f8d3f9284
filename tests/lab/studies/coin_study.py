"""A user's study in one file: how often a biased coin falls on heads.

The tests open it as a user would, by `coin_study.py:coin`, and as an installed package.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec
import numpy as np

from bayescontrol import Stream
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, mean_and_error
from bayescontrol.plot.chart import Chart, Guide, Panel, Series


@dataclass(frozen=True)
class Settings:
    """Settings of the coin."""

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 40
    steps: Annotated[int, msgspec.Meta(ge=1, description="throws in a replica")] = 25
    bias: Annotated[float, msgspec.Meta(ge=0, le=1, description="probability of heads")] = 0.5
    side: Literal["heads", "tails"] = "heads"
    marks: tuple[int, ...] = (1, 5)

    def __post_init__(self) -> None:
        if max(self.marks) > self.steps:
            raise ValueError(f"a mark at {max(self.marks)} lies beyond steps={self.steps}")


def run(settings: Settings, i: int) -> Columns:
    """One replica: the share of heads after each throw, and the first throw."""
    rng = np.random.default_rng([settings.seed, i])
    heads = rng.random(settings.steps) < settings.bias
    share = np.cumsum(heads) / np.arange(1, settings.steps + 1)
    return {"share": share, "heads": np.array(heads.sum()), "first": np.array(str(heads[0]))}


def score(settings: Settings, columns: Columns) -> Score:
    """The share is the bias; in this example the paper says 0.9."""
    mean, error = mean_and_error(columns["share"][:, -1])
    ours = Claim(
        name="share",
        claim="the share of heads is the bias",
        source="ours",
        expected=settings.bias,
        ours=float(mean),
        error=float(error),
        holds=bool(abs(mean - settings.bias) <= 5 * error + 1e-12),
    )
    paper = replace(
        ours,
        name="printed-share",
        source="paper",
        claim="the share of heads is <b>0.9</b>",
        expected=0.9,
        holds=False,
        reason="the printed coin & ours differ",
        place="section 1, figure 2",
    )
    rows = tuple((f"after {t}", float(columns["share"][:, t - 1].mean())) for t in settings.marks)
    return Score((ours, paper), (Table("Shares", ("when", "share"), rows, "means over runs"),))


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """The share of heads against the throws, two standard errors either side."""
    t = np.arange(1, settings.steps + 1)
    share = Series.of_runs("share of heads", t, columns["share"])
    panel = Panel("", "throws", "share of heads", [share], [Guide("bias", settings.bias)])
    return {"share": Chart("A coin", [panel], "The share of heads settles at the dotted line.")}


coin = Experiment(
    name="coin",
    summary="how often a biased coin falls on heads",
    settings=Settings,
    quick=Settings(runs=20),
    full=Settings(runs=400),
    run=run,
    score=score,
    figures=draw,
)


def _false_score(settings: Settings, columns: Columns) -> Score:
    worse = Claim("nothing", "0 / 0 is 1", "ours", float("inf"), float("nan"), None, False)
    return Score((*score(settings, columns).claims, worse))


def _lost_score(settings: Settings, columns: Columns) -> Score:
    ours, printed = score(settings, columns).claims
    lost = replace(printed, holds=None, reason="the printed coin is lost")
    return Score((ours, lost, replace(ours, name="sides", exact=True)))


def _broken_run(settings: Settings, i: int) -> Columns:
    if i == 3:
        raise ZeroDivisionError("the coin stands on its edge")
    return run(settings, i)


def _talking_run(settings: Settings, i: int) -> Columns:
    print(f"throwing {i}")  # noqa: T201 - the point: it must not reach standard output
    return run(settings, i)


def _slow_run(settings: Settings, i: int) -> Columns:
    time.sleep(60)
    return run(settings, i)


def _uneven_run(settings: Settings, i: int) -> Columns:
    time.sleep(0.5 if i == 0 else 0)
    return run(settings, i)


def _deadly_run(settings: Settings, i: int) -> Columns:
    os._exit(1)


def _compiled_run(settings: Settings, i: int) -> Columns:
    return {
        **run(settings, i),
        "uniform": np.array(Stream.named(settings.seed, i, "coin").random()),
    }


false = replace(coin, name="false", score=_false_score)
lost = replace(coin, name="lost", score=_lost_score)
broken = replace(coin, name="broken", run=_broken_run)
talking = replace(coin, name="talking", run=_talking_run)
slow = replace(coin, name="slow", run=_slow_run)
uneven = replace(coin, name="uneven", run=_uneven_run)
deadly = replace(coin, name="deadly", run=_deadly_run)
compiled = replace(coin, name="compiled", run=_compiled_run, quick=Settings(runs=1))
not_an_experiment = 3

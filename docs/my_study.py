"""Two levers, one pays more often. How much does an agent lose that treats actions as evidence?

This file is the whole study: settings, one replica, the score and the figure.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from bayescontrol import NaiveMixture, Stream, TabularModes, interact
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table
from bayescontrol.plot.chart import Chart, Colour, Guide, Panel, Series
from bayescontrol.schedules import Every
from bayescontrol.statistics import compare_pairs, mean_band, mean_interval

COLOURS: dict[str, Colour] = {"control rule": "blue", "patient": "green", "naive": "vermillion"}


@dataclass(frozen=True)
class Settings:
    """The settings that the command line can change."""

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=2, description="number of replicas")] = 60
    steps: Annotated[int, msgspec.Meta(ge=1, description="pulls in a replica")] = 100
    payoff: Annotated[float, msgspec.Meta(gt=0.5, lt=1, description="of the good lever")] = 0.7
    hold: Annotated[int, msgspec.Meta(ge=1, description="steps the patient one waits")] = 5


def levers(payoff: float) -> TabularModes:
    """Return two experts: "this lever pays, so I nearly always pull it"."""
    good, bad = [1 - payoff, payoff], [payoff, 1 - payoff]  # P(0), P(1)
    return TabularModes(
        policy=[[[0.9, 0.1]], [[0.1, 0.9]]],
        hypothesis=[[[good, bad]], [[bad, good]]],
        names=("left", "right"),
    )


def run(settings: Settings, i: int) -> Columns:
    """Run replica i: all agents get the same levers and the same random numbers."""
    modes = levers(settings.payoff)
    agents = {
        "control rule": modes.agent(),
        "patient": modes.agent(schedule=Every(settings.hold)),
        "naive": modes.agent(kind=NaiveMixture),
    }
    truth = Stream.named(settings.seed, i, "truth").integers(2)
    paid = {}
    for name, agent in agents.items():
        world = modes.environment(truth)
        record = interact(agent, world, settings.steps, seed=settings.seed, run=i)
        paid[name] = record.observations
    return paid


def score(settings: Settings, columns: Columns) -> Score:
    """Return means with intervals, comparisons of all pairs, and the claim of this study."""
    earned = {name: paid.mean(axis=1) for name, paid in columns.items()}
    intervals = {name: mean_interval(values) for name, values in earned.items()}
    means = Table(
        "Payoff per pull",
        ("agent", "mean", "low", "high", "interval"),
        tuple(
            (name, float(i.mean), float(i.low), float(i.high), i.method)
            for name, i in intervals.items()
        ),
    )
    compared = compare_pairs(earned)
    pairs = Table(
        "Pairs, on common random numbers",
        ("agent", "against", "verdict", "p, corrected", "in words"),
        tuple((*c.names, c.verdict, c.corrected_p_value, c.sentence) for c in compared),
    )
    rule = next(c for c in compared if c.names == ("control rule", "naive"))
    claim = Claim(
        name="delusion-costs",
        claim="the control rule earns more than the agent that believes its own actions",
        source="ours",
        expected="better",
        ours=rule.verdict,
        error=None,
        holds=rule.verdict == "better",
        undecided=rule.verdict == "undecided",
        reason=rule.sentence,
    )
    return Score((claim,), (means, pairs))


def figures(settings: Settings, columns: Columns) -> dict[str, Chart]:
    """Plot the average payoff so far, with a band that covers the whole curve."""
    t = np.arange(1, settings.steps + 1)
    curves = []
    for name, paid in columns.items():
        band = mean_band(paid.cumsum(axis=1) / t)
        curves.append(Series(name, t, band.mean, band.low, band.high, colour=COLOURS[name]))
    best = Guide("the good lever", settings.payoff)
    panel = Panel("", "pulls", "payoff per pull so far", curves, [best])
    read = "Higher is better; where two bands lie apart, more than chance separates the agents."
    return {"payoff": Chart("Two levers", [panel], read, note="95 % bands, simultaneous")}


study = Experiment(
    name="levers",
    summary="what believing one's own actions costs on two levers",
    settings=Settings,
    quick=Settings(),
    full=Settings(runs=1000, steps=1000),
    run=run,
    score=score,
    figures=figures,
)

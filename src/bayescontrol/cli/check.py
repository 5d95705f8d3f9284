"""`bayescontrol check`: will a class of modes settle, and who is to blame if not."""

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from bayescontrol.cli.screen import print_json, screen, standard_output_kept
from bayescontrol.cli.verdicts import EXIT_CODES, Times, as_object, print_verdict
from bayescontrol.convergence.settling import settling_times
from bayescontrol.convergence.verdict import PairVerdict, Verdict
from bayescontrol.convergence.verdict import check as check_modes
from bayescontrol.lab.files import module_at
from bayescontrol.lab.progress import live
from bayescontrol.problems import classes
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.problems.tabulate import tabulate

__all__ = ["check"]

_SHOWN = 12


@click.command(
    epilog="Exit codes: 0 every pair is covered by the convergence theorem, 10 it settles all the "
    "same, 11 undecided, 12 it may never settle; 2 a wrong call.",
)
@click.argument("modes", metavar="MODES", required=False)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A setting of a class.")
@click.option("--true", "true", metavar="NAME", help="Only the world of this mode.")
@click.option("--other", "other", metavar="NAME", help="Only what becomes of this mode.")
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Simulated runs a world; 0 for none.",
)
@click.option(
    "--horizon",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Steps of a simulated run.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the simulated runs.")
@click.option("--all", "everything", is_flag=True, help="Show every pair.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every pair.")
def check(
    modes: str | None,
    settings: tuple[str, ...],
    true: str | None,
    other: str | None,
    runs: int,
    horizon: int,
    seed: int,
    everything: bool,
    as_json: bool,
) -> None:
    """Will the agent settle on the right one of these experts?

    MODES is a class by name, or file.py:attribute (file.py alone: its `modes`): tables, a list of
    modes, an agent, or a function that gives one of them. Without MODES the classes are listed.
    """
    if modes is None:
        _list_classes()
        return
    with standard_output_kept():
        tables = _tables(modes, _together(settings))
        verdict = check_modes(tables)
        pairs = _chosen(verdict, true, other)
        times = _simulate(tables, pairs, runs, horizon, seed)
    if as_json:
        print_json({"class": modes, **as_object(verdict, times, pairs)})
    else:
        console = screen()
        console.print(Text.assemble((modes, "bold"), f": {_size(tables)}\n"))
        print_verdict(console, verdict, times, pairs, len(pairs) if everything else _SHOWN)
    sys.exit(EXIT_CODES[max(pair.outcome for pair in pairs) if pairs else verdict.outcome])


def _tables(name: str, settings: dict[str, str]) -> TabularModes:
    path, colon, attribute = name.rpartition(":")
    if not name.endswith(".py") and not (colon and path.endswith(".py")):
        return classes.make(name, **settings)
    file = Path(path if colon and path.endswith(".py") else name)
    wanted = attribute if colon and path.endswith(".py") else "modes"
    module = module_at(file)
    if not hasattr(module, wanted):
        raise classes.UnknownClass(
            f"{file} has no {wanted!r}: give it one, or write {file}:ATTRIBUTE"
        )
    found = getattr(module, wanted)
    if settings or inspect.isfunction(found):
        found = found(**settings)
    return tabulate(found)


def _together(settings: Sequence[str]) -> dict[str, str]:
    for text in settings:
        if "=" not in text:
            raise classes.InvalidSetting(f"--set {text}: write --set KEY=VALUE")
    return dict(text.split("=", 1) for text in settings)


def _chosen(verdict: Verdict, true: str | None, other: str | None) -> tuple[PairVerdict, ...]:
    name = verdict.modes.name
    known = {name(m) for m in range(len(verdict.modes))}
    for option, given in (("--true", true), ("--other", other)):
        if given is not None and given not in known:
            listed = ", ".join(sorted(known)[:10]) + (", …" if len(known) > 10 else "")
            raise classes.InvalidSetting(f"{option} {given}: no mode is called that; {listed}")
    return tuple(
        pair
        for pair in verdict.pairs
        if true in (None, name(pair.true)) and other in (None, name(pair.other))
    )


def _simulate(
    modes: TabularModes, pairs: Sequence[PairVerdict], runs: int, horizon: int, seed: int
) -> Times:
    """How long it takes, in the world of each mode that is asked about."""
    worlds = sorted({pair.true for pair in pairs}) if runs else []
    # In a class of many modes each has little weight to begin with.
    below = min(0.01, modes.prior[modes.prior > 0.0].min() / 10.0)
    times = {}
    with live("simulated") as progress:
        for i, true in enumerate(worlds):
            progress.advance(i * runs, len(worlds) * runs)
            times[true] = settling_times(
                modes, true, below=below, runs=runs, horizon=horizon, seed=seed
            )
        if worlds:
            progress.advance(len(worlds) * runs, len(worlds) * runs)
    return times


def _size(modes: TabularModes) -> str:
    return repr(modes).partition("(")[2].removesuffix(")")


def _list_classes() -> None:
    console = screen()
    for name in classes.names():
        about: Any = classes.describe(name)
        settings = ", ".join(f"{s.name}={s.default}" for s in about.settings)
        console.print(Text.assemble((f"{name:22}", "bold"), about.summary))
        if settings:
            console.print(Text(f"{'':22}--set {settings}", style="dim"))

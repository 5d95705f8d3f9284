"""`bayescontrol check`: will a class of modes settle, and who is to blame if not."""

import sys
from collections.abc import Sequence

import click
from rich.text import Text

from bayescontrol.cli.asked import Asked, ask, settings_of
from bayescontrol.cli.screen import print_json, screen, standard_output_kept
from bayescontrol.cli.verdict_json import as_object
from bayescontrol.cli.verdicts import EXIT_CODES, Times, print_headline, print_pairs
from bayescontrol.convergence.settling import settling_times
from bayescontrol.convergence.verdict import PairVerdict, Verdict
from bayescontrol.convergence.verdict import check as check_modes
from bayescontrol.lab.progress import live
from bayescontrol.problems import classes
from bayescontrol.problems.tabular import TabularModes

_SHOWN = 12
_from_one = click.IntRange(min=1)


@click.command(
    epilog="Exit codes: 0 every pair is covered by the convergence theorem, 10 it settles all the "
    "same, 11 undecided, 12 it may never settle; 2 a wrong call, 3 your modes raised an error.",
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
    "--horizon", type=_from_one, default=10_000, show_default=True, help="Steps of such a run."
)
@click.option("--hold", type=_from_one, help="Steps for which they hold a mode; an agent's own.")
@click.option("--seed", default=0, show_default=True, help="Seed of the simulated runs.")
@click.option(
    "--limit", type=_from_one, default=10_000, show_default=True, help="The most situations."
)
@click.option("--all", "everything", is_flag=True, help="Show every pair.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every pair.")
def check(
    modes: str | None,
    settings: tuple[str, ...],
    true: str | None,
    other: str | None,
    runs: int,
    horizon: int,
    hold: int | None,
    seed: int,
    limit: int,
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
        asked = ask(modes, settings_of(settings), limit)
        verdict = _chosen(check_modes(asked.modes), true, other)
    held = hold or asked.hold
    if as_json:
        with standard_output_kept():
            times = _simulate(asked.modes, verdict.pairs, runs, horizon, held, seed)
        print_json({"class": modes, **as_object(verdict, times)})
    else:
        _print(modes, asked, verdict, everything, runs, horizon, held, seed)
    sys.exit(EXIT_CODES[verdict.outcome])


def _print(
    name: str,
    asked: Asked,
    verdict: Verdict,
    everything: bool,
    runs: int,
    horizon: int,
    hold: int,
    seed: int,
) -> None:
    console = screen()
    size = repr(asked.modes).partition("(")[2].removesuffix(")")
    console.print(Text.assemble((name, "bold"), f": {size}\n"))
    print_headline(console, verdict, hold)
    if asked.note:
        console.print(Text(asked.note, style="yellow"))
    if verdict.pairs:  # what is exact is there at once; what is simulated may take a while
        times = _simulate(asked.modes, verdict.pairs, runs, horizon, hold, seed)
        print_pairs(console, verdict, times, len(verdict.pairs) if everything else _SHOWN)


def _chosen(verdict: Verdict, true: str | None, other: str | None) -> Verdict:
    """The pairs that are asked about."""
    if true is None and other is None:
        return verdict
    place = verdict.modes.place
    pairs = tuple(
        pair
        for pair in verdict.pairs
        if (true is None or pair.true == place(true))
        and (other is None or pair.other == place(other))
    )
    if not pairs:
        raise classes.InvalidSetting(
            f"--true {true or 'any'} --other {other or 'any'}: no such pair; name two different "
            "modes, each with a positive prior"
        )
    return Verdict(verdict.modes, pairs)


def _simulate(
    modes: TabularModes,
    pairs: Sequence[PairVerdict],
    runs: int,
    horizon: int,
    hold: int,
    seed: int,
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
                modes, true, below=below, runs=runs, horizon=horizon, hold=hold, seed=seed
            )
        if worlds:
            progress.advance(len(worlds) * runs, len(worlds) * runs)
    return times


def _list_classes() -> None:
    console = screen()
    for name in classes.names():
        about = classes.describe(name)
        settings = ", ".join(f"{s.name}={s.default}" for s in about.settings)
        console.print(Text.assemble((f"{name:22}", "bold"), about.summary))
        if settings:
            console.print(Text(f"{'':22}--set {settings}", style="dim"))

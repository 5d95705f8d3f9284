"""`bayescontrol check`: does the agent converge for a class of modes, and if not, why."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import Any, NamedTuple

import click
import numpy as np
from click.core import ParameterSource
from rich.text import Text

from bayescontrol.bank import Bank, BankCheck, check_bank
from bayescontrol.bank.plant_mode import FilterMode
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.cli import check_output as output
from bayescontrol.cli.screen import open_console, print_json, print_title
from bayescontrol.convergence.sampled import SampledVerdict, sampled_check
from bayescontrol.convergence.settling import settling_times
from bayescontrol.convergence.verdict import Verdict
from bayescontrol.convergence.verdict import check as check_modes
from bayescontrol.errors import BayesControlError, MissingCapability, counted
from bayescontrol.finite import classes
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.finite.tabulate import TooManySituations, tabulate
from bayescontrol.lab.discovery import module_at, split_name
from bayescontrol.lab.progress import live
from bayescontrol.lab.settings import add_settings
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Every, every_step

#: A mode is dropped when its weight is below this, or below a tenth of the smallest prior.
_DROPPED = 0.01
#: Pairs that are shown without --all.
_SHOWN = 12
_positive = click.IntRange(min=1)
_weights = partial(click.option, type=click.FloatRange(min=0.0), multiple=True)
#: Options that have an effect on one kind of modes only.
_FOR_BANKS = ("--figure", "--output-limits", "--Q", "--R", "--strict")
_FOR_TABLES = ("--true", "--other", "--hold", "--all")
_TABLES = "modes with finitely many actions, observations and situations"


class ModesBroke(BayesControlError, RuntimeError):
    """The user's modes raised an error while they were tabulated."""


class ModeSource(NamedTuple):
    """Tabulated modes or a finished check, the steps that the agent holds a mode, and a remark."""

    modes: TabularModes | BankCheck | SampledVerdict
    hold: int = 1
    note: str = ""


def load_modes(
    name: str, settings: Mapping[str, str], limit: int = 10_000, given: Sequence[str] = (),
    simulation: Mapping[str, Any] = {}, **bank_options: Any,
) -> ModeSource:  # fmt: skip
    """Load a class of modes by its name, or from file.py:attribute (by default `modes`).

    `limit` is the maximum number of situations. Raises `ModesBroke` if the user's code fails. A
    bank of plant models is checked at once, with `bank_options`, and so are modes that do not fit
    in a table, with the options `simulation` of `sampled_check`. `given` are the options of the
    command line; those that would have no effect are refused.
    """
    path, attribute = split_name(name)
    if path is None:
        _refuse(given, _FOR_BANKS, "a bank of plant models")
        return ModeSource(classes.make(name, **settings))
    attribute, module = attribute or "modes", module_at(path)
    if not hasattr(module, attribute):
        raise classes.UnknownClass(
            f"{path} has no attribute {attribute!r}: define it, or use {path}:ATTRIBUTE"
        )
    value = getattr(module, attribute)
    is_function = callable(value) and not isinstance(value, type)
    if settings and not is_function:
        raise classes.InvalidSetting(f"{attribute} is not a function: remove --set")
    try:
        loaded = classes.call_with_settings(attribute, value, settings) if is_function else value
        bank = _bank_of(loaded)
        if bank is not None:
            _refuse(given, _FOR_TABLES, _TABLES)
            with live("checked") as progress:
                return ModeSource(check_bank(bank, progress=progress.advance, **bank_options))
        _refuse(given, _FOR_BANKS, "a bank of plant models")
        try:
            return ModeSource(tabulate(loaded, limit=limit), *_schedule(loaded))
        except (MissingCapability, TooManySituations):
            found = _modes_to_simulate(loaded)
            if found is None:
                raise
        _refuse(given, _FOR_TABLES, _TABLES)
        world, starts = getattr(module, "world", None), simulation["starts"]
        with live("simulated") as progress:
            verdict = sampled_check(
                world=world if callable(world) else None,
                progress=lambda done, pairs: progress.advance(starts * done, starts * pairs),
                **found, **simulation,
            )  # fmt: skip
        return ModeSource(verdict, note=_observed(loaded))
    except BayesControlError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise ModesBroke(f"{name} failed: {type(error).__name__}: {error}") from error


def _refuse(given: Sequence[str], options: Sequence[str], purpose: str) -> None:
    """Raise InvalidSetting if one of these options was given."""
    if wrong := ", ".join(option for option in options if option in given):
        raise classes.InvalidSetting(f"{wrong}: only for {purpose}. Leave it out here")


def _modes_to_simulate(loaded: Any) -> dict[str, Any] | None:
    """Return the modes of a list or of an agent, for `sampled_check`; None for other classes."""
    found: dict[str, Any] = {"draw": loaded}
    is_rule = isinstance(loaded, ControlRule) and type(loaded).issue is ControlRule.issue
    if is_rule and isinstance(loaded.belief, FiniteBelief):
        modes = [loaded.belief.modes[m] for m in np.flatnonzero(loaded.belief.prior).tolist()]
        found = {"draw": modes, "situation": loaded.x, "advance": loaded.advance}
    is_list = isinstance(found["draw"], list | tuple)
    return found if is_list and not any(isinstance(m, type) for m in found["draw"]) else None


def _bank_of(loaded: Any) -> Bank | None:
    """Return the bank of an agent, of its wrappers or of a list of modes; None for others."""
    while hasattr(loaded, "agent") and not isinstance(loaded, Bank):
        loaded = loaded.agent  # the agent inside a wrapper: Bumpless or Guarded
    loaded = getattr(loaded, "bank", loaded)
    modes = getattr(getattr(loaded, "belief", None), "modes", loaded)
    is_list = isinstance(modes, list | tuple) and bool(modes)
    if is_list and all(isinstance(mode, FilterMode) for mode in modes):
        return Bank(modes)
    return loaded if isinstance(loaded, Bank) else None


def _schedule(loaded: Any) -> tuple[int, str]:
    """Return how many steps the agent holds a mode, and a remark if that is not simulated."""
    schedule = loaded.schedule if isinstance(loaded, ControlRule) else every_step
    if schedule is every_step or isinstance(schedule, Every):
        return getattr(schedule, "k", 1), _observed(loaded)
    plan = f"The agent's schedule {schedule!r} is not simulated: runs draw a mode at every step. "
    return 1, plan + _observed(loaded)


def _observed(loaded: Any) -> str:
    """Return a remark if the agent has made observations."""
    count = getattr(getattr(loaded, "belief", None), "count", 0)
    note = f"The agent has made {counted(count, 'observation')}: it is checked from its prior."
    return note if count else ""


@click.command(
    context_settings={"show_default": True},
    epilog="Exit codes: 0 the convergence theorem covers every pair, 10 converges without it, "
    "11 undecided, 12 may never converge, 2 usage error, 3 your modes raised an error. For a bank: "
    "0 every pair can be distinguished, 12 a pair cannot be distinguished, "
    "13 a controller is unstable on its own plant, "
    "14 with --strict, a controller is unstable on another plant.",
)
@click.argument("modes", metavar="MODES", required=False)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A setting of a class.")
@click.option("--true", "true", metavar="NAME", help="Only pairs where this mode is true.")
@click.option("--other", "other", metavar="NAME", help="Only pairs with this wrong mode.")
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    help="Simulated runs for each true mode; 0 for none.  [default: 100; bank: 400; densities: 60]",
)
@click.option(
    "--horizon",
    type=_positive,
    help="Steps of a run.  [default: 10000; bank: 2000; densities: 200]",
)
@click.option("--hold", type=_positive, help="Steps that a mode is held.  [default: the agent's]")
@click.option("--seed", default=0, help="Seed of the simulated runs.")
@click.option("--limit", type=_positive, default=10_000, help="Maximum number of situations.")
@click.option("--output-limits", type=(float, float), help="Limits of the outputs of a bank.")
@_weights("--Q", "Q", help="Weight of the outputs of a bank; once, or for each.")
@_weights("--R", "R", help="Weight of the inputs of a bank; once, or for each.")
@click.option("--strict", is_flag=True, help="Exit code 14 if a pair of a bank is unstable.")
@click.option("--figure", type=click.Path(dir_okay=False), help="Draw a bank: .svg, .png")
@click.option("--all", "everything", is_flag=True, help="Show every pair.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every pair.")
def check(
    modes: str | None, settings: tuple[str, ...], true: str | None, other: str | None,
    runs: int | None, horizon: int | None, hold: int | None, seed: int, limit: int,
    output_limits: tuple[float, float] | None, Q: tuple[float, ...], R: tuple[float, ...],
    strict: bool, figure: str | None, everything: bool, as_json: bool,
) -> None:  # fmt: skip
    """Check whether the agent converges to the policy of the true mode.

    MODES is the name of a class, or file.py:attribute (attribute `modes` by default). The attribute
    is a table, a list of modes, an agent, a bank of plant models, or a function that returns one of
    these. Modes with densities are checked by simulation: give them a method environment(), or the
    file a function world(mode). Without MODES, list the classes.
    """
    if modes is None:
        _list_classes()
        return
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    ]
    with redirect_stdout(sys.stderr):
        found, steps_held, note = load_modes(
            modes, add_settings({}, settings), limit, given, output_limits=output_limits, seed=seed,
            horizon=horizon or 2000, runs=400 if runs is None else max(runs, 2), Q=Q or 1.0,
            R=R or 1.0,
            simulation={"starts": runs or 60, "steps": horizon or 200, "seed": seed},
        )  # fmt: skip
    if isinstance(found, BankCheck):
        if figure:
            found.plot().save(figure)
        output.print_bank(modes, found, as_json, found.exit_code(strict))
        sys.exit(found.exit_code(strict))
    if isinstance(found, SampledVerdict):
        output.print_sampled(modes, found, note, as_json)
        sys.exit(output.EXIT_CODES[found.outcome])
    with redirect_stdout(sys.stderr):
        verdict = _select_pairs(check_modes(found), true, other)
    hold, horizon, runs = hold or steps_held, horizon or 10_000, 100 if runs is None else runs
    simulate = partial(_simulate, verdict, runs=runs, horizon=horizon, hold=hold, seed=seed)
    if as_json:
        with redirect_stdout(sys.stderr):
            times = simulate()
        print_json({"class": modes, **output.as_object(verdict, times)})
    else:
        size = repr(found).partition("(")[2].removesuffix(")")
        console = print_title(modes, f"{size}\n")
        output.print_headline(console, verdict, hold)
        if note:
            console.print(Text(note, style="yellow"))
        if verdict.pairs:  # print the exact part first: simulation may take a while
            output.print_pairs(
                console, verdict, simulate(), len(verdict.pairs) if everything else _SHOWN
            )
    sys.exit(output.EXIT_CODES[verdict.outcome])


def _select_pairs(verdict: Verdict, true: str | None, other: str | None) -> Verdict:
    """Return a verdict on the pairs with these modes only; None allows any mode."""
    if true is None and other is None:
        return verdict
    index_of = verdict.modes.place
    true_modes = range(len(verdict.modes)) if true is None else [index_of(true)]
    others = range(len(verdict.modes)) if other is None else [index_of(other)]
    pairs = tuple(p for p in verdict.pairs if p.true in true_modes and p.other in others)
    if not pairs:
        raise classes.InvalidSetting(
            f"--true {true or 'any'} --other {other or 'any'}: no such pair. Name two different "
            "modes with positive prior"
        )
    return Verdict(verdict.modes, pairs)


def _simulate(verdict: Verdict, runs: int, **simulation: Any) -> output.Times:
    """Return simulated settling times for each true mode; none if `runs` is 0."""
    true_modes = sorted({pair.true for pair in verdict.pairs}) if runs else []
    # The limit must be less than the prior of every mode.
    prior = verdict.modes.prior
    below = min(_DROPPED, prior[prior > 0.0].min() / 10.0)
    times = {}
    with live("simulated") as progress:
        for i, true in enumerate(true_modes):
            progress.advance(i * runs, len(true_modes) * runs)
            times[true] = settling_times(verdict.modes, true, below=below, runs=runs, **simulation)
        if true_modes:
            progress.advance(len(true_modes) * runs, len(true_modes) * runs)
    return times


def _list_classes() -> None:
    """Print the name, the summary and the settings of every class of modes."""
    console = open_console()
    for name in classes.names():
        about = classes.describe(name)
        settings = ", ".join(f"{s.name}={s.default}" for s in about.settings)
        console.print(Text.assemble((f"{name:22}", "bold"), about.summary))
        if settings:
            console.print(Text(f"{'':22}--set {settings}", style="dim"))

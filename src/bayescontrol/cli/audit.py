"""`bayescontrol audit`: does a predictor take its own actions for evidence?"""

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from bayescontrol import audit as audits
from bayescontrol.cli.screen import (
    UsageError,
    open_console,
    print_json,
    print_message,
    print_report_path,
    table,
)
from bayescontrol.lab.discovery import module_at, split_name
from bayescontrol.lab.experiment import Table
from bayescontrol.lab.progress import live
from bayescontrol.report import build

_positive = click.IntRange(min=1)
_INDEX = ("world", "histories", "index", "95 % interval", "residual share", "verdict")
_INDEX_NOTE = (
    "0 is the control rule, 1 the naive mixture, which takes its own actions for evidence. The "
    "residual share is the error off the line between them, from 0 to 1. In written histories the "
    "predictor chooses the actions, in forced ones a coin."
)
_LOSS = ("world", "histories", "beyond the rule", "beyond the mixture", "regret", "calibration")
_LOSS_NOTE = (
    "Log loss in bits a symbol, beyond that of each reference where it is right. Regret is the "
    "reward lost to the rule in a run. Calibration is the mean distance between the predicted "
    "probability of an observation and its frequency."
)


@click.command(
    context_settings={"show_default": True},
    epilog="Exit codes: 0 the audit is finished, whatever it found; 2 usage error, 3 the predictor "
    "failed.",
)
@click.argument("predictor", metavar="[PREDICTOR]", required=False)
@click.option(
    "--world", "worlds", metavar="NAME", multiple=True, help="Only this world; repeat it."
)
@click.option("--steps", type=_positive, help="Steps of a run.  [default: those of the world]")
@click.option("--runs", type=click.IntRange(min=2), default=200, help="Runs in each world.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the runs.")
@click.option("--out", type=click.Path(path_type=Path), default="audit", help="Folder of the page.")
@click.option("--export", type=click.Path(path_type=Path), help="Write the worlds as files there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and write no page.")
def audit(
    predictor: str | None,
    worlds: tuple[str, ...],
    steps: int | None,
    runs: int,
    seed: int,
    out: Path,
    export: Path | None,
    as_json: bool,
) -> None:
    """Measure whether a predictor takes its own actions for evidence.

    PREDICTOR is file.py:attribute (attribute `predictor` by default): a function that gets the
    history and returns the probabilities of the next symbol, an object with such a method
    `probabilities`, an adaptor of bayescontrol.audit, or a mapping with one for each world. Without
    PREDICTOR, list the worlds.
    """
    if export is not None:
        written = audits.export_worlds(export)
        print_message(f"{len(written)} files written to {export}")
    if predictor is None:
        if export is None:
            rows = tuple((world.name, world.about) for world in audits.WORLDS.values())
            open_console().print(table(Table("Worlds", ("name", "what it is"), rows)))
        return
    with redirect_stdout(sys.stderr):
        value = _load(predictor)
        with live("audited") as progress:
            result = audits.audit(
                value, worlds or None, steps=steps, runs=runs, seed=seed, progress=progress.advance
            )
    if as_json:
        print_json({"predictor": predictor, "seed": seed, "audits": result.as_object()})
        return
    content = (
        Table("Delusion index", _INDEX, tuple(map(_index_row, result.rows)), _INDEX_NOTE),
        Table("Losses", _LOSS, tuple(map(_loss_row, result.rows)), _LOSS_NOTE),
    )
    open_console().print(*map(table, content))
    summary = f"Does the predictor take its own actions for evidence? {runs} runs, seed {seed}."
    title = f"Audit of {predictor}"
    print_report_path(build.write_charts(title, summary, audits.charts(result), content, out))


def _load(name: str) -> object:
    """Return the attribute of a file; raise UsageError if it is not there."""
    path, attribute = split_name(name)
    if path is None:
        raise UsageError(f"{name!r} is not file.py or file.py:attribute")
    module, attribute = module_at(path), attribute or "predictor"
    if not hasattr(module, attribute):
        raise UsageError(f"{path} has no attribute {attribute!r}: use {path}:ATTRIBUTE")
    return getattr(module, attribute)


def _index_row(row: audits.WorldAudit) -> tuple[str, ...]:
    """Return the line of a world in the table of indices."""
    numbers: tuple[str, ...] = ("-", "-", "-")
    if row.identified:
        numbers = f"{row.index:z.3f}", f"{row.low:z.3f} to {row.high:z.3f}", f"{row.residual:z.3f}"
    return row.world, row.histories, *numbers, row.verdict


def _loss_row(row: audits.WorldAudit) -> tuple[str, ...]:
    """Return the line of a world in the table of losses."""
    regret = "-" if row.regret is None else f"{row.regret:z.3f} ± {row.regret_error:z.3f}"
    losses = f"{row.log_loss_rule:z.3f}", f"{row.log_loss_naive:z.3f}"
    return row.world, row.histories, *losses, regret, f"{row.calibration:z.3f}"

"""The group of commands, `warm-up`, and how errors become exit codes."""

import errno
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

import click

from bayescontrol.errors import BayesControlError, MissingExtra
from bayescontrol.lab.experiment import ExperimentFailed
from bayescontrol.lab.warm_up import warm_up

try:
    import rich  # noqa: F401
except ModuleNotFoundError:
    sys.exit(f"Error: {MissingExtra.of('the command line', 'rich', 'lab')}")

from bayescontrol.audit.predictors import PredictorFailed
from bayescontrol.cli import audit, check, serve, store, studies
from bayescontrol.cli.check import ModesBroke
from bayescontrol.cli.screen import UsageError, print_failure, print_message
from bayescontrol.cli.studies import IS_FRESH, RESULTS_FOLDER


class _Commands(click.Group):
    """The group of commands. It prints errors without a traceback if the user can fix them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn its errors into the exit codes that the epilog lists."""
        try:
            return super().invoke(ctx)
        except (ExperimentFailed, ModesBroke, PredictorFailed) as error:
            print_failure(error)
            _print_where_results_are(ctx)
            ctx.exit(3)
        except BayesControlError as error:
            raise UsageError(str(error)) from error
        except OSError as error:
            # Standard output is closed or its disk is full. Do not exit with 1 ("a claim fails").
            # Python flushes standard output at exit: send it to /dev/null, so that this succeeds.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno != errno.EPIPE:
                print_message(f"Error: cannot write the results: {error.strerror or error}")
            ctx.exit(4)
        except KeyboardInterrupt:
            print_message("\nInterrupted. All workers have stopped.")
            _print_where_results_are(ctx)
            ctx.exit(130)


def _print_where_results_are(ctx: click.Context) -> None:
    """Print where the finished replicas are, if the command stores them."""
    if RESULTS_FOLDER in ctx.meta:
        command = "the same command" + " without --fresh" * (IS_FRESH in ctx.meta)
        print_message(f"Finished replicas: {ctx.meta[RESULTS_FOLDER]}. Run {command} to continue.")


@click.group(
    "bayescontrol",
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run, check and report experiments with the Bayesian control rule; serve agents.",
    epilog="Exit codes: 0 all claims of this library hold, 1 one fails, 2 usage error, "
    "3 an experiment failed, 4 standard output cannot be written, 130 interrupted.",
)
@click.version_option(package_name="bayescontrol", prog_name="bayescontrol")
def main() -> None:
    """Run the command `bayescontrol`.

    >>> from click.testing import CliRunner
    >>> CliRunner().invoke(main, ["run", "no-such-study"]).exit_code
    2
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # print ? where the terminal has no ±
            stream.reconfigure(errors="replace")


@main.command("warm-up")
def warm_up_() -> None:
    """Compile the common kernels now, so that later runs start at once; under a minute."""
    seconds = warm_up(lambda name: print_message(f"compiling: {name}"))
    print_message(f"The common kernels are compiled, after {seconds:.0f} s.")


for _command in (
    studies.list_,
    studies.run,
    studies.reproduce,
    studies.report,
    check.check,
    audit.audit,
):
    main.add_command(_command)
for _command in (serve.serve, serve.verify, serve.demo, store.store):
    main.add_command(_command)

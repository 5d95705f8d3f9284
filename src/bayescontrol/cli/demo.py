"""`bayescontrol demo`: a server with simulated visitors."""

import time

import click

from bayescontrol.cli.screen import print_message
from bayescontrol.cli.serve import PORT, user_errors


@click.command(context_settings={"show_default": True})
@click.option(
    "--seconds", type=click.FloatRange(1.0, 86_400.0), default=120.0, help="How long it runs."
)
@click.option(
    "--port", type=PORT, default=0, show_default=False, help="The port.  [default: any free one]"
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0.0, max=10_000.0, min_open=True),
    default=40.0,
    help="Visitors a second.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the visitors.")
@click.option("--store", metavar="STORE", help="Keep the logs here.  [default: they are deleted]")
def demo(seconds: float, port: int, rate: float, seed: int, store: str | None) -> None:
    """Show the live page with a simulated stream of visitors, for a bounded time.

    One agent chooses between four designs of a page, where the truth is known and the regret can
    be shown; another pulls a lever that breaks after a third of the time, which raises its alarm.
    """
    with user_errors():
        from bayescontrol.serve.demo import running_demo

        with running_demo(seconds, store=store, port=port, rate=rate, seed=seed) as server:
            click.echo(f"{server.url}/")
            print_message(
                f"Open it in a browser. It stops by itself in {seconds:g} seconds, or by Ctrl-C."
            )
            time.sleep(seconds)
    print_message("The demo is over.")

"""`bayescontrol verify`: read every event of a store."""

import sys

import click

from bayescontrol.cli.screen import json_option, print_json
from bayescontrol.durable.verify import verify_store
from bayescontrol.errors import counted


@click.command(epilog="Exit codes: 0 the store is intact, 1 it is damaged, 2 it cannot be read.")
@click.argument("store", metavar="STORE")
@json_option()
@click.pass_context
def verify(ctx: click.Context, store: str, as_json: bool) -> None:
    """Read every event of STORE and name those that are damaged.

    STORE is sqlite:///file.db (four slashes for an absolute path) or postgresql://…. Nothing is
    changed, and the agents may run meanwhile: a SQLite file is copied to the folder for temporary
    files first.
    """
    with click.progressbar(length=1, label="Reading events", file=sys.stderr) as bar:

        def show(read: int, total: int) -> None:
            bar.length = total
            bar.update(read - bar.pos)

        events, damage = verify_store(store, show)
    if as_json:
        found = [d._asdict() for d in damage]
        print_json({"intact": not damage, "agents": events, "damage": found})
    else:
        for d in damage:
            click.echo(d.problem)
        size = f"{counted(len(events), 'agent')}, {counted(sum(events.values()), 'event')}"
        click.echo(f"{size}: {counted(len(damage), 'problem') if damage else 'intact'}")
    ctx.exit(1 if damage else 0)

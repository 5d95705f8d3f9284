"""`bayescontrol verify`: read every event of a store."""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TextIO

import click

from bayescontrol.cli.screen import json_option, print_json
from bayescontrol.cli.serve import store_address, store_options
from bayescontrol.durable.events import read_events
from bayescontrol.durable.log import CHUNK, Log, damaged_error, open_store
from bayescontrol.errors import DamagedLog, counted


@click.command(epilog="Exit codes: 0 the store is intact, 1 it is damaged, 2 it cannot be read.")
@store_options
@json_option()
@click.pass_context
def verify(ctx: click.Context, store: str | None, store_file: TextIO | None, as_json: bool) -> None:
    """Read every event of STORE and name those that are damaged.

    STORE is sqlite:///file.db (four slashes for an absolute path) or postgresql://…. Give an
    address with a password in --store-file or in the variable BAYESCONTROL_STORE. Nothing is
    repaired. No other process may use a SQLite file meanwhile.
    """
    url = store_address(store, store_file)
    heads, damage = dict[str, int](), list[dict[str, object]]()
    try:
        # Closing a SQLite file writes its write-ahead log back; PostgreSQL is only read.
        with closing(open_store(url, durable=url.startswith("sqlite:"), create=False)) as opened:
            logs = [opened.log(name) for name in opened.names()]
            heads.update((log.name, log.head()) for log in logs)
            chunks = [(log, n) for log in logs for n in range(1, heads[log.name] + 1, CHUNK)]
            with click.progressbar(chunks, label="Reading events", file=sys.stderr) as bar:
                for log, first in bar:
                    damage += _find_damage(log, first, min(first + CHUNK - 1, heads[log.name]))
    except DamagedLog as error:
        damage.append({"agent": None, "event": None, "problem": str(error)})
    if as_json:
        print_json({"intact": not damage, "agents": heads, "damage": damage})
    else:
        for d in damage:
            click.echo(d["problem"])
        size = f"{counted(len(heads), 'agent')}, {counted(sum(heads.values()), 'event')}"
        click.echo(f"{size}: {counted(len(damage), 'problem') if damage else 'intact'}")
    ctx.exit(1 if damage else 0)


def _find_damage(log: Log, first: int, last: int) -> Iterator[dict[str, object]]:
    """Iterate over the events that are missing or damaged. Halves the range to find them."""
    try:
        if sum(1 for _ in read_events(log, first, last)) <= last - first:
            raise damaged_error(log.name, f"event {last} is missing")
    except DamagedLog as error:
        if first == last:
            problem = f"event {first} of agent {log.name!r}: {error}"
            yield {"agent": log.name, "event": first, "problem": problem}
            return
        middle = (first + last) // 2
        yield from _find_damage(log, first, middle)
        yield from _find_damage(log, middle + 1, last)

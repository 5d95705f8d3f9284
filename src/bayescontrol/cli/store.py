"""The commands of `bayescontrol store`: list, export, import, back up, restore, compact, delete."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import click
from msgspec import to_builtins
from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol.cli.screen import (
    UsageError,
    json_option,
    open_console,
    print_json,
    print_message,
)
from bayescontrol.cli.serve import load_model
from bayescontrol.cli.server_options import STORE, STORE_FILE, store_address
from bayescontrol.durable.archive import import_log, list_agents, restore_logs
from bayescontrol.durable.compaction import last_event_before
from bayescontrol.durable.events import Compacted, Event, check_history, read_events, to_line
from bayescontrol.durable.opening import open_agent
from bayescontrol.durable.replay import export_log
from bayescontrol.durable.stores.log import LogStore, open_store, os_errors, unknown_error
from bayescontrol.errors import DamagedLog, counted

_EXIT_CODES: Final = "Exit codes: 0 done, 1 the store or the file is damaged, 2 nothing was done."
_COLUMNS: Final = (
    *("name", "model", "events", "decisions", "observations", "open", "first", "last", "bytes"),
)


@click.group("store", epilog=_EXIT_CODES)
def store() -> None:
    """List, copy, compact and delete the agents of a store.

    STORE is sqlite:///file.db (four slashes for an absolute path) or postgresql://…. Leave it out
    and give an address with a password in --store-file or in the variable BAYESCONTROL_STORE. No
    other process may use a SQLite file meanwhile; a server makes backups itself.
    """


def _command(*names: str, store_last: bool = False) -> Callable[[Callable[..., None]], Any]:
    """Make a function a command with the arguments STORE and `names`; STORE may be left out.

    The function gets the address of the store and the other arguments. With the option `folder`
    there are no other arguments.
    """

    def decorate(function: Callable[..., None]) -> Any:
        @wraps(function)
        def run(given: tuple[str, ...], store_file: Path | None, **options: Any) -> None:
            others, count = list(given), 0 if options.get("folder") else len(names)
            address = others.pop(-1 if store_last else 0) if len(others) > count else None
            if len(others) != count:
                hint = f"leave STORE out only with --store-file or the variable {STORE.variable}"
                raise UsageError(f"expected the arguments {shown}; {hint}")
            url = store_address(address, store_file)
            try:
                function(url, *others, **options)
            except DamagedLog as error:
                print_message(f"Error: {error}")
                click.get_current_context().exit(1)

        shown = " ".join([*names, "STORE"] if store_last else ["STORE", *names])
        decorated = click.argument("given", nargs=-1, metavar=shown)(STORE_FILE.add_to(run))
        return store.command(function.__name__.rstrip("_"), epilog=_EXIT_CODES)(decorated)

    return decorate


def _read_only(url: str) -> AbstractContextManager[LogStore]:
    """Open an existing store. PostgreSQL is only read, so it need not be durable."""
    return closing(open_store(url, durable=url.startswith("sqlite:"), create=False))


def _progress(label: str, total: int) -> Any:
    """Return a progress bar with the time left, on standard error."""
    return click.progressbar(length=total, label=label, file=sys.stderr, update_min_steps=1_000)


@_command()
@json_option()
def list_(url: str, as_json: bool) -> None:
    """List the agents of STORE: what their logs contain, and since when."""
    with _read_only(url) as opened:
        agents = list(list_agents(opened))
    if as_json:
        print_json({"agents": to_builtins(agents)})
        return
    grid = Grid(box=SIMPLE_HEAD)
    for name in _COLUMNS:
        grid.add_column(name, overflow="fold", justify="right" if name in _COLUMNS[2:] else "left")
    for agent in agents:
        dates = [datetime.fromtimestamp(t, UTC) for t in (agent.first, agent.last)]
        cells = [agent.name, f"{agent.model} {agent.version}"]
        cells += [f"{getattr(agent, name):,}" for name in _COLUMNS[2:6]]
        cells += [f"{date:%Y-%m-%d %H:%M}" for date in dates]
        grid.add_row(*map(Text, [*cells, f"{agent.bytes:,}"]))
    open_console().print(grid)


@_command("NAME", "FILE")
@click.option("--all", "folder", type=click.Path(path_type=Path), help="Export all agents here.")
def export(url: str, name: str = "", file: str = "", *, folder: Path | None) -> None:
    """Write the log of agent NAME to FILE (- for standard output), a line of JSON for each event.

    With --all FOLDER instead of NAME and FILE, write NAME.jsonl for every agent.
    """
    with _read_only(url) as opened:
        if folder is None:
            _export(opened, name, file)
            return
        with os_errors(str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
        for listed in opened.names():
            _export(opened, listed, str(folder / f"{quote(listed, safe=' ')}.jsonl"))


def _export(opened: LogStore, name: str, file: str) -> None:
    """Export the log of one agent to a file, or to standard output."""
    with closing(opened.log(name)) as log:
        head = log.head()
        if head == 0:
            raise unknown_error(name, opened.url)
        with click.progressbar(
            read_events(log), head, f"Exporting {name!r}", file=sys.stderr, update_min_steps=1_000
        ) as events:
            count = _write(events) if file == "-" else export_log(events, file)
    if file != "-":
        print_message(f"{file}: {counted(count, 'event')} of agent {name!r}")


def _write(events: Iterable[Event]) -> int:
    """Write events as lines of JSON to standard output; return their number."""
    count = 0
    for event in check_history(events):
        click.echo(to_line(event))
        count += 1
    return count


@_command("FILE")
@click.option("--name", help="The name of the new agent.  [default: that of FILE, without .jsonl]")
@click.option("--no-replay", is_flag=True, help="Do not draw the decisions again.")
def import_(url: str, file: str, name: str | None, no_replay: bool) -> None:
    """Store the exported log FILE as a new agent, which continues it bit for bit.

    Before that, the history is checked, and the decisions of a built-in model are drawn again; skip
    that with --no-replay if another kind of processor rounds differently. A file that was cut off
    after a whole line is a valid log: compare the number of events.
    """
    name = unquote(Path(file).name.removesuffix(".jsonl")) if name is None else name
    with os_errors(file, "check the path"), Path(file).open("rb") as lines:
        total = 2 * sum(1 for _ in lines)
    with closing(open_store(url)) as opened, _progress(f"Importing {name!r}", total) as bar:
        head = import_log(
            opened, file, name, draw_again=not no_replay, on_event=lambda _: bar.update(1)
        )
    click.echo(f"Imported agent {name!r} up to event {head}.")


@_command("FILE")
def backup(url: str, file: str) -> None:
    """Copy all agents of STORE, as they are at one moment, to the new SQLite file FILE."""
    with _read_only(url) as opened:
        opened.backup(Path(file))
    click.echo(f"{file}: {os.path.getsize(file):,} bytes. Try it with `bayescontrol verify`.")


@_command("FILE", store_last=True)
def restore(url: str, file: str) -> None:
    """Store all agents of the backup FILE in STORE, which has no agent of these names.

    Before that, every event of the backup is checked.
    """
    source = open_store(f"sqlite:///{os.path.abspath(file)}", create=False)
    with closing(source), closing(open_store(url)) as opened:
        total = 2 * sum(agent.events for agent in list_agents(source))
        with _progress("Restoring", total) as bar:
            names = restore_logs(opened, source, on_event=lambda _: bar.update(1))
    click.echo(f"Restored {counted(len(names), 'agent')}: {', '.join(names)}")


@_command("NAME")
@click.option("--through", type=click.IntRange(2), help="The last event to be replaced.")
@click.option(
    "--before", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="Replace the events before this time (UTC).",
)  # fmt: skip
@click.option("--model", metavar="FILE.py:NAME", help="Your own model, if the log has one.")
def compact(
    url: str, name: str, through: int | None, before: datetime | None, model: str | None
) -> None:
    """Replace the first events of agent NAME by a sealed snapshot of its belief.

    The belief stays the same. The content of the events is erased; their decisions cannot be
    observed or explained any more.
    """
    if (through is None) == (before is None):
        raise UsageError("give one of --through and --before")
    own_model = load_model(model) if model else None
    with closing(open_store(url, create=False)) as opened:
        if name not in opened.names():
            raise unknown_error(name, opened.url)
        with open_agent(opened, name, own_model) as agent:
            if before is not None:
                through = last_event_before(agent.log(), before.replace(tzinfo=UTC).timestamp())
            removed = agent.compact(through) if through and through > 1 else 0
            sealed = next(agent.log(2), None)
    pending = len(sealed.pending) if isinstance(sealed, Compacted) else 0
    late = f" The situations of {counted(pending, 'decision')} stay: they were observed later."
    click.echo(f"Replaced {counted(removed, 'event')}.{late if pending else ''}")


@_command("NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(url: str, name: str, yes: bool) -> None:
    """Delete agent NAME, with all its events and snapshots."""
    with closing(open_store(url, create=False)) as opened:
        if name not in opened.names():
            raise unknown_error(name, opened.url)
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"this would delete agent {name!r}: confirm it with --yes")
            click.confirm(f"Delete agent {name!r} of {opened.url} for ever?", abort=True, err=True)
        opened.delete(name)
    click.echo(f"Deleted agent {name!r}.")

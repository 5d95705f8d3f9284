"""The commands of agents with a log: `serve` (over HTTP, with a live page), `demo` and `verify`."""

import atexit
import gc
import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import click

from bayescontrol.cli.screen import UsageError, json_option, print_json, print_message
from bayescontrol.cli.server_options import (
    Option,
    configurable,
    require_no_password,
    store_address,
    store_options,
)
from bayescontrol.durable.events import read_events
from bayescontrol.durable.models import Model, as_model
from bayescontrol.durable.stores.log import CHUNK, Log, damaged_error, open_store
from bayescontrol.errors import BayesControlError, DamagedLog, MissingExtra, counted
from bayescontrol.lab.discovery import module_at
from bayescontrol.serve.access import Limits, Tokens

#: The options of `serve`. Those before `--max-body` are of the server, the others are limits.
OPTIONS: Final = (
    Option("host", str, "127.0.0.1", "The address to listen on."),
    Option("port", int, 8000, "The port; 0 for any free port."),
    Option("unix-socket", Path, None, "Listen on this path instead of a port."),
    Option("unix-socket-mode", Literal["600", "660", "666"], "600", "Permissions of that path."),
    Option("tls-cert", Path, None, "A certificate chain in PEM, to serve https."),
    Option("tls-key", Path, None, "The key of the certificate in PEM."),
    Option("token-file", Path, None, "A file with lines NAME ROLE TOKEN, ROLE is read or write; "
           "requests need a token. It is read again when it changes."),
    Option("access-log", Path, None, "Write a line of JSON for each request; - for stdout."),
    Option("backup-folder", Path, None, "A folder for backups of the store."),
    Option("backup-every", float, None, "Seconds between two backups."),
    Option("backup-keep", int, None, "Delete the oldest of more backups."),
    Option("warm-up", bool, True, "Compile what the agents need before the server is ready."),
    Option("model", list[str], None, "FILE.py:NAME, a model of yours that logs refer to."),
    Option("allow-host", list[str], None, "Another host name of the server."),
    Option("max-body", int, Limits.body, "Maximum bytes of a request."),
    Option("max-values", int, Limits.values, "Maximum JSON values of a request."),
    Option("max-head", int, Limits.head, "Maximum bytes of a request's head."),
    Option("max-connections", int, Limits.connections, "Maximum number of connections."),
    Option("idle", float, Limits.idle, "Seconds until an idle connection is closed."),
    Option("rate", float, Limits.rate, "Maximum requests a second from one caller."),
    Option("concurrency", int, Limits.concurrency, "Maximum requests in progress."),
    Option("deadline", float, Limits.deadline, "Maximum seconds for a request."),
    Option("max-agents", int, Limits.agents, "Maximum number of agents in the store."),
    Option("grace", float, Limits.grace, "Seconds to finish requests when the server stops."),
)  # fmt: skip


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise library errors, `ValueError` and missing extras as `UsageError`, without traceback.

    >>> from bayescontrol.errors import UnknownStore
    >>> with user_errors():
    ...     raise UnknownStore("url='shop.db': write sqlite:///shop.db")
    Traceback (most recent call last):
    bayescontrol.cli.screen.UsageError: url='shop.db': write sqlite:///shop.db
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(str(MissingExtra.of("the server", str(error.name), "serve"))) from error
    except (BayesControlError, ValueError) as error:
        raise UsageError(str(error)) from error


@click.command(
    epilog="Every option can also be set by its environment variable, or in the file of --config "
    "by its name without dashes in front: port = 8000. A token is read from --token-file or from "
    "the variable BAYESCONTROL_TOKEN, never from the command line, which other users of the "
    "machine can read."
)
@configurable(OPTIONS)
def serve(
    *, store: str | None, store_file: Path | None, host: str, port: int, unix_socket: Path | None,
    unix_socket_mode: str, tls_cert: Path | None, tls_key: Path | None, token_file: Path | None,
    access_log: Path | None, backup_folder: Path | None, backup_every: float | None,
    backup_keep: int | None, warm_up: bool, model: tuple[str, ...], allow_host: tuple[str, ...],
    **limits: Any,
) -> None:  # fmt: skip
    """Serve the agents of STORE over HTTP, until SIGTERM or Ctrl-C.

    STORE is sqlite:///file.db (four slashes for an absolute path) or postgresql://…. Give an
    address with a password in --store-file or in the variable BAYESCONTROL_STORE. The live page is
    at /, the documentation at /docs. Only this machine can reach the server, unless --host is
    another address; then a token is needed.
    """
    limits = {name.removeprefix("max_"): value for name, value in limits.items()}
    with user_errors():
        from bayescontrol.serve.backups import BackupPlan
        from bayescontrol.serve.server import Server

        if (tls_cert is None) != (tls_key is None):
            raise UsageError("give both --tls-cert and --tls-key, or none of them")
        if backup_folder is None and (backup_every, backup_keep) != (None, None):
            raise UsageError("--backup-every and --backup-keep need --backup-folder")
        backups = None
        if backup_folder is not None:
            backups = BackupPlan(backup_folder, backup_every, backup_keep)
        models = [load_model(name) for name in model]
        server = Server(
            store_address(store, store_file), host=host, port=port,
            tokens=Tokens.found(token_file), limits=Limits(**limits),
            models={model.name: model for model in models}, allow_hosts=allow_host,
            tls=(tls_cert, tls_key) if tls_cert and tls_key else None,
            unix_socket=unix_socket, socket_mode=int(unix_socket_mode, 8), access_log=access_log,
            backups=backups, warm_up=warm_up,
        )  # fmt: skip
    # On exit, Python would look for garbage among the objects of all libraries, which takes longer
    # than everything else that stopping does.
    atexit.register(gc.freeze)
    # Uvicorn handles the signal first; when it has finished, it raises the signal again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("bayescontrol").setLevel(logging.INFO)
    click.echo(server.url)
    where = f"the live page is at {server.url}/. " if unix_socket is None else ""
    print_message(f"Serving {server.store_url}; {where}Press Ctrl-C to stop.")
    server.run()


def load_model(name: str) -> Model:
    """Load a model from FILE.py:NAME; NAME is a model or a function that returns one."""
    path, _, attribute = name.rpartition(":")
    if not path.endswith(".py"):
        raise UsageError(f"--model {name}: write FILE.py:NAME")
    found: Any = getattr(module_at(Path(path)), attribute, None)
    if found is None:
        raise UsageError(f"--model {name}: {path} has no {attribute!r}; define it there")
    return as_model(found() if callable(found) and not isinstance(found, Model) else found)


@click.command(context_settings={"show_default": True})
@click.option(
    "--seconds", type=click.FloatRange(1.0, 86_400.0), default=120.0, help="How long it runs."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=False,
    help="The port.  [default: any free one]",
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

        require_no_password(store)
        with running_demo(seconds, store=store, port=port, rate=rate, seed=seed) as server:
            click.echo(f"{server.url}/")
            print_message(
                f"Open it in a browser. It stops by itself in {seconds:g} seconds, or by Ctrl-C."
            )
            time.sleep(seconds)
    print_message("The demo is over.")


@click.command(epilog="Exit codes: 0 the store is intact, 1 it is damaged, 2 it cannot be read.")
@store_options
@json_option()
@click.pass_context
def verify(ctx: click.Context, store: str | None, store_file: Path | None, as_json: bool) -> None:
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
            chunks = [(log, n) for log in logs for n in _chunks(log, heads[log.name])]
            with click.progressbar(chunks, label="Reading events", file=sys.stderr) as bar:
                for log, events in bar:
                    damage += _find_damage(log, events[0], events[-1])
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


def _chunks(log: Log, head: int) -> list[range]:
    """Return the numbers of the events of a log, in ranges of at most `CHUNK` events."""
    starts = range(log.sealed or 1, head + 1, CHUNK)
    chunks = [range(start, min(start + CHUNK, head + 1)) for start in starts]
    return [range(1, 2), *chunks] if log.sealed else chunks  # between them events were compacted


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

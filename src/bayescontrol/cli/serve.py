"""The commands of agents with a log: `serve` (over HTTP, with a live page), `demo` and `verify`."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

import click

from bayescontrol.cli.screen import UsageError, json_option, print_json, print_message
from bayescontrol.durable.events import read_events
from bayescontrol.durable.log import CHUNK, Log, damaged_error, open_store
from bayescontrol.durable.models import Model, as_model
from bayescontrol.errors import BayesControlError, DamagedLog, MissingExtra, counted
from bayescontrol.lab.discovery import module_at
from bayescontrol.serve.access import Limits, Tokens

#: The environment variable with the address of the store.
_STORE: Final = "BAYESCONTROL_STORE"
#: Valid ports; 0 selects any free port.
PORT: Final = click.IntRange(0, 65_535)
#: Options that set a limit of the server: the option, the name of the limit and its help.
_LIMITS: Final = (
    ("--max-body", "body", "Maximum bytes of a request."),
    ("--max-values", "values", "Maximum JSON values of a request."),
    ("--max-head", "head", "Maximum bytes of a request's head."),
    ("--max-connections", "connections", "Maximum number of connections."),
    ("--idle", "idle", "Seconds until an idle connection is closed."),
    ("--rate", "rate", "Maximum requests a second from one caller.  [default: unlimited]"),
    ("--concurrency", "concurrency", "Maximum requests in progress."),
    ("--deadline", "deadline", "Maximum seconds for a request."),
    ("--max-agents", "agents", "Maximum number of agents in the store."),
    ("--grace", "grace", "Seconds to finish pending requests when the server stops."),
)


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


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all limits to a command."""
    for option, name, text in reversed(_LIMITS):  # click lists the last one first
        default = getattr(Limits, name)
        kind = float if default is None else type(default)
        command = click.option(
            option, name, type=kind, default=default, show_default=True, help=text
        )(command)
    return command


def store_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the argument STORE and the option --store-file to a command; see `store_address`."""
    kind, text = click.File(encoding="utf-8", errors="replace"), "A file with the address."
    command = click.option("--store-file", type=kind, help=text)(command)
    return click.argument("store", metavar="[STORE]", required=False, envvar=_STORE)(command)


@click.command(
    epilog="A token is read from --token-file or from the variable BAYESCONTROL_TOKEN, never from "
    "the command line, which other users of the machine can read."
)
@store_options
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=PORT, default=8000, show_default=True, help="The port; 0 for any free port."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="A file with one token per line; every request needs one of them.",
)
@click.option(
    "--model",
    "models",
    metavar="FILE.py:NAME",
    multiple=True,
    help="Your own model, named_model(…), that logs in the store refer to.",
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Another host name of the server."
)
@limit_options
def serve(
    store: str | None, store_file: TextIO | None, host: str, port: int, token_file: Path | None,
    models: tuple[str, ...], allow_host: tuple[str, ...], **limits: Any,
) -> None:  # fmt: skip
    """Serve the agents of STORE over HTTP, until SIGTERM or Ctrl-C.

    STORE is sqlite:///file.db (four slashes for an absolute path) or postgresql://…. Give an
    address with a password in --store-file or in the variable BAYESCONTROL_STORE. The live page is
    at /, the documentation at /docs. Only this machine can reach the server, unless --host is
    another address; then a token is needed.
    """
    with user_errors():
        from bayescontrol.serve.server import Server

        tokens = Tokens.found(token_file)
        user_models = [load_model(name) for name in models]
        server = Server(
            store_address(store, store_file), host=host, port=port, tokens=tokens,
            limits=Limits(**limits), models={model.name: model for model in user_models},
            allow_hosts=allow_host,
        )  # fmt: skip
    # Uvicorn handles the signal first; when it has finished, it raises the signal again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    click.echo(server.url)
    print_message(
        f"Serving {server.store_url}; the live page is at {server.url}/. Press Ctrl-C to stop."
    )
    server.run()


def store_address(store: str | None, file: TextIO | None) -> str:
    """Return the address of a store: the argument or variable, or the contents of the file."""
    if (store is None) == (file is None):
        raise UsageError(f"give one of STORE, --store-file and the variable {_STORE}")
    return file.read().strip() if file else store or ""


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

"""`bayescontrol serve`: the agents of a store over HTTP, with a live page."""

import math
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from bayescontrol.cli.screen import say
from bayescontrol.durable.models import Model, as_model
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.files import module_at

#: The ports there are; 0 is any free one.
PORT: Final = click.IntRange(0, 65_535)


class Finite(click.FloatRange):
    """A number in a range; NaN, which no comparison turns away, is in none.

    >>> Finite(min=0.0).convert("nan", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: 'nan' is not a finite number.
    """

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or `click.BadParameter`."""
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        converted: float = super().convert(number, param, ctx)
        return converted


class WrongCall(click.ClickException):
    """Something that the caller can put right.

    >>> WrongCall("no such file").exit_code
    2
    """

    exit_code = 2


@contextmanager
def wrong_calls() -> Iterator[None]:
    """Errors with a way out, without a traceback; also when the extra is missing.

    >>> from bayescontrol.errors import UnknownStore
    >>> with wrong_calls():
    ...     raise UnknownStore("url='shop.db': write sqlite:///shop.db")
    Traceback (most recent call last):
    bayescontrol.cli.serve.WrongCall: url='shop.db': write sqlite:///shop.db
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise WrongCall(
            f'{error.name} is not installed: pip install "bayescontrol[serve]"'
        ) from error
    except (BayesControlError, ValueError) as error:
        raise WrongCall(str(error)) from error


@click.command(
    epilog="A token is read from --token-file or from the variable BAYESCONTROL_TOKEN, never from "
    "the command line, which others on this machine can read.",
)
@click.argument("store", metavar="STORE")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=PORT, default=8000, show_default=True, help="The port; 0 for any free one."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="A file of tokens, one a line: who asks must show one of them.",
)
@click.option(
    "--model",
    "models",
    metavar="FILE.py:NAME",
    multiple=True,
    help="A model of your own, named_model(…), that logs in the store refer to.",
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Another name of the server.")
@click.option("--max-body", default=1_048_576, show_default=True, help="Bytes of a request.")
@click.option("--max-head", default=65_536, show_default=True, help="Bytes of a request's head.")
@click.option("--max-connections", default=512, show_default=True, help="Connections at a time.")
@click.option("--idle", default=30.0, show_default=True, help="Seconds to wait for a request.")
@click.option("--rate", type=float, help="Requests a second from one caller.  [default: any]")
@click.option("--concurrency", default=256, show_default=True, help="Requests under way.")
@click.option("--deadline", default=10.0, show_default=True, help="Seconds for a request.")
@click.option("--max-agents", default=1_000, show_default=True, help="Agents in the store.")
@click.option("--grace", default=10.0, show_default=True, help="Seconds to finish when stopped.")
def serve(
    store: str,
    host: str,
    port: int,
    token_file: Path | None,
    models: tuple[str, ...],
    allow_host: tuple[str, ...],
    max_body: int,
    max_head: int,
    max_connections: int,
    idle: float,
    rate: float | None,
    concurrency: int,
    deadline: float,
    max_agents: int,
    grace: float,
) -> None:
    """Serve the agents of STORE over HTTP, until SIGTERM or Ctrl-C.

    STORE is sqlite:///file.db (four slashes for an absolute path) or postgresql://…. The live page
    is at /, the documentation of the paths at /docs. Only this machine can reach it, unless --host
    says otherwise; then a token is needed.
    """
    with wrong_calls():
        from bayescontrol.serve.limits import Limits
        from bayescontrol.serve.server import Server
        from bayescontrol.serve.tokens import Tokens

        limits = Limits(
            body=max_body, head=max_head, connections=max_connections, idle=idle, rate=rate,
            concurrency=concurrency, deadline=deadline, agents=max_agents, grace=grace,
        )  # fmt: skip
        tokens = Tokens.found(token_file)
        own = [_model(name) for name in models]
        server = Server(
            store, host=host, port=port, tokens=tokens, limits=limits,
            models={model.name: model for model in own}, allow_hosts=allow_host,
        )  # fmt: skip
    # The server's own handler comes first; when it has finished, the signal reaches this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    click.echo(server.url)
    say(f"{store} is served; the live page is at {server.url}/. Ctrl-C stops it.")
    server.run()


def _model(name: str) -> Model:
    path, _, attribute = name.rpartition(":")
    if not path.endswith(".py"):
        raise WrongCall(f"--model {name}: write FILE.py:NAME")
    found: Any = getattr(module_at(Path(path)), attribute, None)
    if found is None:
        raise WrongCall(f"--model {name}: {path} has no {attribute!r}")
    return as_model(found() if callable(found) and not isinstance(found, Model) else found)

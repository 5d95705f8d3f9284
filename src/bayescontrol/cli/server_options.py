"""Options that also come from environment variables and a configuration file.

bayescontrol serve --port 9000          the command line comes first,
BAYESCONTROL_PORT=9000                  then the environment,
port = 9000                             then the file of --config, in TOML,
                                        then the default

An `Option` declares all of them; a command has a table of options.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin

import click
import msgspec
from click.core import ParameterSource

from bayescontrol.cli.screen import UsageError
from bayescontrol.durable.stores.log import redacted
from bayescontrol.serve.access import VARIABLE, require_private

_Command: TypeAlias = Callable[..., Any]
_PREFIX: Final = "BAYESCONTROL_"
#: The sources of a value; the first one that has it counts.
_SOURCES: Final = {
    ParameterSource.COMMANDLINE: "command line",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
    ParameterSource.DEFAULT: "default",
}


class Option(NamedTuple):
    """The option `--name`, the variable BAYESCONTROL_NAME and the key `name` of a file.

    `kind` is the type of its value: bool, int, float, str, Path, a Literal of strings, or list[str]
    for an option that may occur several times.

    >>> Option("max-body", int, 10, "Maximum bytes.").variable
    'BAYESCONTROL_MAX_BODY'
    """

    name: str
    kind: Any
    default: bool | float | str | None
    help: str

    @property
    def parameter(self) -> str:
        """The name of the parameter of the command."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"{_PREFIX}{self.parameter.upper()}"

    def add_to(self, command: _Command, **settings: Any) -> _Command:
        """Add the option to a command; `settings` are those of `click.option`."""
        kind = {Path: click.Path(path_type=Path), list[str]: str}.get(self.kind, self.kind)
        settings = {
            "type": click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind,
            "multiple": self.kind == list[str], "default": self.default,
            "show_default": self.default is not None, "envvar": self.variable,
            "show_envvar": True, "help": self.help,
        } | settings  # fmt: skip
        flags = f"--{self.name}/--no-{self.name}" if kind is bool else f"--{self.name}"
        return click.option(flags, **settings)(command)


#: The address of the store, which is an argument; the file with it; the configuration file.
STORE: Final = Option("store", str, None, "")
STORE_FILE: Final = Option("store-file", Path, None, "A file with the address.")
_CONFIG: Final = Option("config", Path, None, "A TOML file with values of these options.")


def configurable(table: Sequence[Option]) -> Callable[[_Command], _Command]:
    """Add the options of a table, STORE, --store-file, --config and --show-config to a command.

    --show-config prints all values and their sources instead of calling the command.
    """
    rows = (STORE, STORE_FILE, *table)

    def load(ctx: click.Context, _: click.Parameter, file: Path | None) -> None:
        if file is not None:
            ctx.default_map = _read(file, rows)

    def decorate(function: _Command) -> _Command:
        @wraps(function)
        def command(*, show_config: bool, **values: Any) -> None:
            _require_known_variables(rows)
            if show_config:
                click.echo("\n".join(_effective(click.get_current_context(), rows)))
            else:
                function(**values)

        text = "Print all values and their sources, then exit."
        found: _Command = click.option("--show-config", is_flag=True, help=text)(command)
        found = _CONFIG.add_to(found, is_eager=True, expose_value=False, callback=load)
        for row in reversed(table):  # click lists the last one first
            found = row.add_to(found)
        return store_options(found)

    return decorate


def _require_known_variables(rows: Sequence[Option]) -> None:
    """Raise `UsageError` for a variable that looks like one of an option, but is none."""
    variables = (VARIABLE, *(row.variable for row in (*rows, _CONFIG)))
    known = [variable.removeprefix(_PREFIX) for variable in variables]
    for name, value in os.environ.items():
        ending = name.removeprefix(_PREFIX)
        if value and ending != name and ending not in known:
            similar = get_close_matches(ending, known, 1)
            hint = f"did you mean {_PREFIX}{similar[0]}?" if similar else "unset it"
            raise UsageError(f"the variable {name} belongs to no option: {hint}")


def _read(file: Path, rows: Sequence[Option]) -> dict[str, Any]:
    """Return the values of a configuration file; raise `UsageError` if it is invalid."""
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:  # also `tomllib.TOMLDecodeError`, `UnicodeDecodeError`
        raise UsageError(f"cannot read the configuration {file}: {error}") from None
    kinds = {row.name: str if row.kind is Path else row.kind for row in rows}
    for key, value in values.items():
        if key not in kinds:
            raise UsageError(f"{file}: unknown key {key!r}; the keys are {', '.join(kinds)}")
        try:
            msgspec.convert(value, kinds[key])
        except msgspec.ValidationError as error:  # it does not show the value, maybe a secret
            raise UsageError(f"{file}: the value of {key!r} is invalid: {error}") from None
    if has_password(values.get("store")):
        require_private(file)
    return {row.parameter: values[row.name] for row in rows if row.name in values}


def _effective(ctx: click.Context, rows: Sequence[Option]) -> Iterator[str]:
    """Yield the lines of a configuration file with the values of a command, and their sources."""
    for row in rows:
        value, source = ctx.params[row.parameter], ctx.get_parameter_source(row.parameter)
        where = "default" if source is None else _SOURCES[source]
        if source is ParameterSource.ENVIRONMENT:
            where = f"{where}, {row.variable}"
        is_unset = value is None or value == ()
        yield f"# {row.name} is not set" if is_unset else f"{row.name} = {_toml(value)}  # {where}"
    if os.environ.get(VARIABLE, "").strip():
        yield f"# a token with the role write  # environment, {VARIABLE}"


def _toml(value: Any) -> str:
    """Return a value in TOML, without the password of an address."""
    if has_password(value):
        value = redacted(value)
    return json.dumps(value, default=str)


# -- the address of the store ----------------------------------------------------------------------


def has_password(address: object) -> bool:
    """Return whether the address of a store seems to contain a password.

    >>> has_password("postgresql://shop:secret@db/shop"), has_password("postgresql://shop@db/shop")
    (True, False)
    """
    pattern = r"(\w+:/+|(?!\w+:/))[^@/]*:.*@|.*password="
    return isinstance(address, str) and bool(re.match(pattern, address, re.IGNORECASE | re.DOTALL))


def store_options(command: _Command) -> _Command:
    """Add the argument STORE and the option --store-file to a command; see `store_address`."""
    command = STORE_FILE.add_to(command)
    return click.argument("store", metavar="[STORE]", required=False, envvar=STORE.variable)(
        command
    )


def store_address(store: str | None, file: Path | None) -> str:
    """Return the address of a store: the argument or variable, or the contents of the file.

    If both are given, that of the source that comes first counts. Raises `UsageError` if an
    argument contains a password.
    """
    if store is None and file is None:  # a command that takes its arguments together
        store = os.environ.get(STORE.variable) or None
        on_command_line = False
    else:
        find, ranks = click.get_current_context().get_parameter_source, list(_SOURCES)
        rank, other = (ranks.index(find(row.parameter) or ranks[0]) for row in (STORE, STORE_FILE))
        on_command_line = rank == 0
        if store is not None and file is not None and rank != other:
            store, file = (store, None) if rank < other else (None, file)
    if (store is None) == (file is None):
        raise UsageError(f"give one of STORE, --store-file and the variable {STORE.variable}")
    if file is not None:
        try:
            address = file.read_text("utf-8", errors="replace").strip()
        except OSError as error:
            raise UsageError(f"cannot read --store-file {file}: {error.strerror}") from None
        if has_password(address):
            require_private(file)
        return address
    if on_command_line:
        require_no_password(store)
    return store or ""


def require_no_password(store: str | None) -> None:
    """Raise `UsageError` if an address on the command line contains a password."""
    if has_password(store):
        raise UsageError(
            "STORE contains a password, which every user of this machine can read on the command "
            "line: write the address to a file for --store-file, or to the variable "
            f"{STORE.variable}"
        )

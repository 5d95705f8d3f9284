"""Options that also come from environment variables and a configuration file.

bayescontrol serve --port 9000          the command line comes first,
BAYESCONTROL_PORT=9000                  then the environment,
port = 9000                             then the file of --config, in TOML,
                                        then the default
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

import click
from click.core import ParameterSource

from bayescontrol.cli.screen import UsageError
from bayescontrol.durable.stores.log import redacted
from bayescontrol.serve.access import VARIABLE, warn_if_public

_Command: TypeAlias = Callable[..., Any]
_PREFIX: Final = "BAYESCONTROL_"
#: The environment variable with the address of the store.
STORE: Final = f"{_PREFIX}STORE"
#: Options that a configuration file cannot contain.
_NOT_IN_FILES: Final = ("config", "show-config", "help")
_SOURCES: Final = {
    ParameterSource.COMMANDLINE: "command line",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
    ParameterSource.DEFAULT: "default",
}
#: Kinds of options, the types of their values in a file, and how messages call them.
_TYPES: Final[tuple[Any, ...]] = (
    (type(click.BOOL), (bool,), "true or false"),
    (type(click.INT), (int,), "an integer"),
    (type(click.FLOAT), (int, float), "a number"),
)
_STRING: Final = ((str,), "a string")
_RANKS: Final[dict[ParameterSource | None, int]] = {
    source: rank for rank, source in enumerate(_SOURCES)
}


def option(name: str, *more: str, **settings: Any) -> Callable[[_Command], _Command]:
    """Return a `click.option` that can also be set by a variable: BAYESCONTROL_PORT for --port."""
    variable = _PREFIX + name.partition("/")[0].lstrip("-").replace("-", "_").upper()
    found: Callable[[_Command], _Command] = click.option(
        name, *more, envvar=variable, show_envvar=True, **settings
    )
    return found


def config_options(command: _Command) -> _Command:
    """Add the options --config and --show-config to a command with a parameter `show_config`."""
    command = click.option(
        "--show-config", is_flag=True, help="Print all values and their sources, then exit."
    )(command)
    return option(
        "--config", type=click.Path(path_type=Path, dir_okay=False), is_eager=True,
        expose_value=False, callback=_load, help="A TOML file with values of these options.",
    )(command)  # fmt: skip


def keys(command: click.Command) -> dict[str, click.Parameter]:
    """Return the parameters of a command by their keys in a configuration file."""
    found = {}
    for param in command.params:
        is_option = isinstance(param, click.Option)
        key = param.opts[0].lstrip("-") if is_option else str(param.name)
        if key not in _NOT_IN_FILES:
            found[key] = param
    return found


def _load(ctx: click.Context, _: click.Parameter, file: Path | None) -> None:
    """Use the values of a configuration file as defaults; raise `UsageError` if it is invalid."""
    if file is None:
        return
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:  # also `tomllib.TOMLDecodeError`, `UnicodeDecodeError`
        raise UsageError(f"cannot read the configuration {file}: {error}") from None
    params, defaults = keys(ctx.command), dict[str, Any]()
    for key, value in values.items():
        if key not in params:
            raise UsageError(f"{file}: unknown key {key!r}; the keys are {', '.join(params)}")
        param, is_list = params[key], isinstance(value, list)
        types, expected = next((t for kind, *t in _TYPES if isinstance(param.type, kind)), _STRING)
        items = value if is_list else [value]
        if is_list != param.multiple or not all(type(item) in types for item in items):
            # The value is not shown: it may be a secret.
            wanted = f"a list, each item {expected}" if param.multiple else expected
            raise UsageError(f"{file}: the value of {key!r} is invalid: give {wanted}")
        defaults[str(param.name)] = value
    if has_password(defaults.get("store")):
        warn_if_public(file)
    ctx.default_map = defaults


def effective_config(ctx: click.Context) -> Iterator[str]:
    """Yield the lines of a configuration file with the values of a command, and their sources."""
    for key, param in keys(ctx.command).items():
        name = str(param.name)
        value, source = ctx.params[name], ctx.get_parameter_source(name)
        where = _SOURCES.get(source, "default") if source else "default"
        if source is ParameterSource.ENVIRONMENT:
            where = f"{where}, {param.envvar}"
        is_unset = value is None or value == ()
        yield f"# {key} is not set" if is_unset else f"{key} = {_toml(value)}  # {where}"
    if os.environ.get(VARIABLE, "").strip():
        yield f"# a token with the role write  # environment, {VARIABLE}"


def _toml(value: Any) -> str:
    """Return a value in TOML, without the password of an address."""
    if has_password(value):
        value = redacted(value)
    return json.dumps(
        getattr(value, "name", value) if hasattr(value, "read") else value, default=str
    )


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
    kind, text = click.File(encoding="utf-8", errors="replace"), "A file with the address."
    command = option("--store-file", type=kind, help=text)(command)
    return click.argument("store", metavar="[STORE]", required=False, envvar=STORE)(command)


def store_address(store: str | None, file: TextIO | None) -> str:
    """Return the address of a store: the argument or variable, or the contents of the file.

    If both are given, that of the source that comes first counts. Raises `UsageError` if an
    argument contains a password.
    """
    ctx = click.get_current_context()
    ranks = [_RANKS.get(ctx.get_parameter_source(n), 9) for n in ("store", "store_file")]
    if store is not None and file is not None and ranks[0] != ranks[1]:
        store, file = (store, None) if ranks[0] < ranks[1] else (None, file)
    if (store is None) == (file is None):
        raise UsageError(f"give one of STORE, --store-file and the variable {STORE}")
    if file is not None:
        return file.read().strip()
    if ranks[0] == _RANKS[ParameterSource.COMMANDLINE] and has_password(store):
        raise UsageError(
            "STORE contains a password, which every user of this machine can read on the command "
            f"line: write the address to a file for --store-file, or to the variable {STORE}"
        )
    return store or ""

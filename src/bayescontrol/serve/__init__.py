"""Durable agents over HTTP: a server with a live page, and a client.

    bayescontrol serve sqlite:///shop.db
    shop = Client("http://127.0.0.1:8000").agent("checkout")
    d = shop.act();  shop.observe(d.id, 1)

The server needs the extra `serve`; the client does not.
"""

from typing import TYPE_CHECKING, Any

from bayescontrol.errors import MissingExtra
from bayescontrol.serve.access import InvalidToken, Limits, PublicBind, Token, Tokens
from bayescontrol.serve.client import Client, InvalidAddress, RemoteAgent
from bayescontrol.serve.http_errors import (
    BadSettings,
    InvalidKey,
    Refused,
    Unavailable,
    UnknownAgent,
    UnknownModel,
)  # fmt: skip

if TYPE_CHECKING:
    from bayescontrol.serve.backups import BackupPlan
    from bayescontrol.serve.server import CannotListen, Server

__all__ = [
    "BackupPlan", "BadSettings", "CannotListen", "Client", "InvalidAddress", "InvalidKey",
    "InvalidToken", "Limits", "PublicBind", "Refused", "RemoteAgent", "Server", "Token", "Tokens",
    "Unavailable", "UnknownAgent", "UnknownModel",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # The server's dependencies are an extra, which the client does not need.
    if name not in ("BackupPlan", "CannotListen", "Server"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from bayescontrol.serve import server
    except ModuleNotFoundError as error:
        raise MissingExtra.of("the server", str(error.name), "serve") from error
    return getattr(server, name)

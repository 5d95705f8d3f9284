"""Agents over HTTP: a server of durable agents, its live page, and a small client.

    bayescontrol serve sqlite:///shop.db
    shop = Client("http://127.0.0.1:8000").agent("checkout")
    d = shop.act();  shop.observe(d.id, 1)

The client needs nothing but this library; the server needs the extra `serve`.
"""

from typing import TYPE_CHECKING, Any

from bayescontrol.serve.client import Client, RemoteAgent
from bayescontrol.serve.problems import (
    BadSettings,
    InvalidKey,
    Refused,
    Unavailable,
    UnknownAgent,
    UnknownModel,
)
from bayescontrol.serve.tokens import InvalidToken, PublicBind, Tokens
from bayescontrol.serve.wire import InvalidAddress

if TYPE_CHECKING:
    from bayescontrol.serve.limits import Limits
    from bayescontrol.serve.server import CannotListen, Server, serve

__all__ = [
    "BadSettings",
    "CannotListen",
    "Client",
    "InvalidAddress",
    "InvalidKey",
    "InvalidToken",
    "Limits",
    "PublicBind",
    "Refused",
    "RemoteAgent",
    "Server",
    "Tokens",
    "Unavailable",
    "UnknownAgent",
    "UnknownModel",
    "serve",
]


def __getattr__(name: str) -> Any:
    # The server's dependencies are an extra: whoever wants the client alone does not need them.
    if name == "Limits":
        from bayescontrol.serve.limits import Limits

        return Limits
    if name in ("CannotListen", "Server", "serve"):
        from bayescontrol.serve import server

        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The application: paths behind the gate, errors as problems, and the OpenAPI document.

    gate( paths( desks( agents( store ) ) ) )

Whatever is raised becomes a problem with a stable type; what is not known is a 500, and is logged.
What a store says of its failure is logged too, and not sent: it may hold a path or an address.
"""

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from bayescontrol.errors import StoreFailed
from bayescontrol.serve.distinct import require_distinct_keys
from bayescontrol.serve.docs import docs_page, finished
from bayescontrol.serve.gate import Gate
from bayescontrol.serve.problems import answer_of, in_words_of_http, kind_of
from bayescontrol.serve.routes import PAGES, ROUTES
from bayescontrol.serve.service import Service
from bayescontrol.serve.tokens import Tokens

_logger = logging.getLogger("bayescontrol.serve")
_HTTP = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}


def application(
    service: Service, tokens: Tokens | None = None, hosts: Iterable[str] | None = None
) -> Gate:
    """The ASGI application of a service.

    >>> from bayescontrol.durable import open_store
    >>> application(Service(open_store("sqlite:///:memory:"))).under_way
    0
    """
    service.secured = bool(tokens)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    def provided() -> Service:
        return service

    def problem(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        return _problem(service, request, error)

    app = Litestar(
        [*ROUTES, *PAGES, *_documents(bool(tokens))],
        before_request=require_distinct_keys,
        dependencies={"service": Provide(provided, sync_to_thread=False)},
        exception_handlers={HTTPException: problem, Exception: problem},
        lifespan=[lifespan],
        logging_config=None,
        request_max_body_size=None,  # the gate's business
        openapi_config=None,
    )
    asgi: Any = app  # the same protocol, in Litestar's own types
    return Gate(asgi, tokens or Tokens(), service.limits, service.metrics, hosts)


@cache
def openapi_document(secured: bool = False) -> dict[str, Any]:
    """The OpenAPI document of the server; `secured` if it wants a token.

    >>> sorted(openapi_document()["paths"])[:2]
    ['/v1/agents', '/v1/agents/{name}']
    """
    needs = {"service": Provide(object, sync_to_thread=False)}
    about = OpenAPIConfig(
        title="bayescontrol",
        version=version("bayescontrol"),
        path="/schema",
        render_plugins=[JsonRenderPlugin(path="/")],
        use_handler_docstrings=True,
    )
    made = Litestar(list(ROUTES), dependencies=needs, openapi_config=about, logging_config=None)
    return finished(made.openapi_schema.to_schema(), secured)


def _documents(secured: bool) -> list[Any]:
    @get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response[bytes]:
        return Response(
            msgspec.json.encode(openapi_document(secured)), media_type="application/json"
        )

    @get("/docs", include_in_schema=False)
    async def docs(request: Request[Any, Any, Any]) -> Response[str]:
        policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        heads = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"}
        heads["Cache-Control"] = "no-store"  # its examples name the host that was asked
        page = docs_page(openapi_document(secured), request.headers.get("host", ""))
        return Response(page, media_type="text/html", headers=heads)

    return [openapi, docs]


def _problem(
    service: Service, request: Request[Any, Any, Any], error: Exception
) -> Response[bytes]:
    headers: dict[str, str] = dict(getattr(error, "headers", None) or {})
    if isinstance(error, HTTPException):
        name = _HTTP.get(
            error.status_code, "bad-request" if error.status_code < 500 else "internal"
        )
        extra = error.extra if isinstance(error.extra, list) else []
        said = [f"{e.get('key', 'body')}: {e.get('message')}" for e in extra if isinstance(e, dict)]
        detail = "; ".join([error.detail, *said])
    else:
        name = kind_of(error)
        detail = in_words_of_http(str(error)) or type(error).__name__
    if name == "internal":
        _logger.error("%s %s", request.method, request.url.path, exc_info=error)
        detail = "an error that the server did not expect"
    elif isinstance(error, StoreFailed):  # its words are of files, hosts and roles
        _logger.error("%s %s: %s", request.method, request.url.path, error)
        detail = "the server's own log says how"
    service.metrics.problems.add(name)
    status, heads, body = answer_of(name, detail, headers)
    return Response(body, status_code=status, media_type=heads.pop("Content-Type"), headers=heads)

"""The OpenAPI document of the server, and its page, which Litestar renders with Swagger UI.

Litestar derives paths and parameters from the routes, msgspec the exact schemas of the bodies. The
models of the library are described and have examples where an agent is created. The scripts and the
style of Swagger UI are files of the installed package offapi: the page needs no other server.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distribution, version
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, SwaggerRenderPlugin
from litestar.response import File

from bayescontrol._support.description import ModelKind, SettingDoc
from bayescontrol.durable.models import KINDS
from bayescontrol.serve import bodies
from bayescontrol.serve.http_errors import ProblemDetails
from bayescontrol.serve.middleware import PUBLIC
from bayescontrol.serve.page import digest, headers
from bayescontrol.serve.request_queue import ServedAgent
from bayescontrol.serve.requested_models import SCHEDULE, TEMPERATURE, required_settings
from bayescontrol.serve.routes import ROUTES
from bayescontrol.serve.routes.parameters import Agents, Name, dependencies
from bayescontrol.serve.values import JsonObject

_REF: Final = "#/components/schemas/"
_ABOUT: Final = (
    "Durable decisions: every decision and observation is on disk before the answer is sent. "
    "Repeating a request is safe: act with the same Idempotency-Key returns the same decision, "
    "and repeating an observation changes nothing.\n\n"
    "POST /v1/agents describes the models and their settings; its examples, and those of act and "
    "observe, can be sent from here. [The live page](/)"
)
#: The media types of the answers that are text.
_TEXT: Final = {"log": bodies.LINES, "metrics": "text/plain", "decisions_csv": "text/csv"}
#: The query parameters that are JSON, and their schemas.
_JSON_PARAMETERS: Final[Mapping[str, dict[str, Any]]] = {
    "situation": {},
    "among": {"type": "array"},
}
_SETTINGS: Final = (
    "These models can be created by name. Settings that are not marked as required are optional. "
    "The examples below create one agent of each. Every model has the settings:"
)
#: The files of the page: their names in the package offapi, and their media types.
_FILES: Final = {
    "swagger-ui.js": ("swagger_bundle.js", "text/javascript"),
    "swagger-ui-preset.js": ("swagger_preset.js", "text/javascript"),
    "swagger-ui.css": ("swagger_style.css", "text/css"),
}


@cache
def openapi_document(needs_token: bool = False) -> JsonObject:
    """Return the OpenAPI document of the server.

    >>> sorted(openapi_document()["paths"])[:2]
    ['/v1/agents', '/v1/agents/{name}']
    """
    config = OpenAPIConfig(
        title="bayescontrol", version=version("bayescontrol"), path="/schema",
        render_plugins=[JsonRenderPlugin(path="/")], use_handler_docstrings=True,
        operation_id_creator=lambda handler, *_: handler.operation_id or handler.handler_name,
    )  # fmt: skip
    app = Litestar(
        list(ROUTES), dependencies=dependencies(None), openapi_config=config, logging_config=None
    )
    document = app.openapi_schema.to_schema()
    structs = [
        value
        for name, value in vars(bodies).items()
        if getattr(value, "__module__", "") == bodies.__name__
        and isinstance(value, type)
        and issubclass(value, msgspec.Struct)
        and name[0] != "_"
    ]
    _, components = msgspec.json.schema_components(
        [*structs, ProblemDetails], ref_template=_REF + "{name}"
    )
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete(operation)
            operation["tags"] = ["agents" if path.startswith("/v1/agents") else "server"]
            public = path in PUBLIC
            operation["security"] = [] if public else [{"token": []}] if needs_token else [{}]
    return document | {
        "info": document["info"] | {"description": _ABOUT},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def with_situations(document: JsonObject, agents: Mapping[str, ServedAgent]) -> JsonObject:
    """Return the document with the schema `Situation.NAME` of every agent that has one."""
    schemas = dict(document["components"]["schemas"])
    found = list[dict[str, str]]()
    for name, agent in sorted(agents.items()):
        if agent.schema is not None:
            # The name of a component has no other characters.
            component = f"Situation.{re.sub(r'[^A-Za-z0-9._-]', '_', name)}"
            about = {"title": component, "description": f"A situation of the agent {name}."}
            schemas[component] = about | agent.schema.json_schema()
            found.append({"$ref": _REF + component})
    for body in ("ActBody", "ActEntry") if found else ():
        fields = schemas[body]["properties"]
        situation = fields["situation"] | {"anyOf": [*found, {}]}
        schemas[body] = schemas[body] | {"properties": fields | {"situation": situation}}
    return document | {"components": document["components"] | {"schemas": schemas}}


def _complete(operation: JsonObject) -> None:
    """Correct and complete what Litestar has derived for an operation, in place.

    Optional parameters are never null, some are JSON, and each model has an example.
    """
    operation.pop("deprecated", None)
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        if "oneOf" in schema:  # a parameter that may be absent is never null
            inner = next(kind for kind in schema.pop("oneOf") if kind["type"] != "null")
            parameter["schema"] = schema = inner | schema
        if parameter["name"] in _JSON_PARAMETERS:
            del parameter["schema"]
            content = {"schema": _JSON_PARAMETERS[parameter["name"]]}
            parameter["content"] = {"application/json": content}
    id_ = operation["operationId"]
    if id_ == "create":
        models = "\n\n".join(_model_text(family.model_kind) for family in KINDS.values())
        schedule = _setting_text("schedule", SCHEDULE)
        temperature = _setting_text("temperature", TEMPERATURE)
        operation["description"] += "\n\n".join(["", _SETTINGS, schedule, temperature, models])
    if "requestBody" in operation:
        operation["requestBody"]["required"] = id_ != "act"
        operation["requestBody"]["content"]["application/json"]["examples"] = {
            name: {"summary": name, "value": _example(id_, family.model_kind)}
            for name, family in KINDS.items()
        }
    media = _TEXT.get(id_)
    if media is not None:
        operation["responses"]["200"]["content"] = {media: {"schema": {"type": "string"}}}


def _example(operation: str, kind: ModelKind) -> JsonObject:
    """Return a body of `create`, `act` or `observe` for a model."""
    if operation == "create":
        return {"name": f"my-{kind.name}", "model": kind.name, "settings": kind.example}
    if operation == "act":
        return {"situation": kind.situation}
    return {"id": "k3v7p2dq4m-2", "observation": kind.observation}


def _model_text(kind: ModelKind) -> str:
    """Describe a model and its settings in Markdown."""
    required = required_settings(kind.name)
    settings = [_setting_text(s, doc, s in required) for s, doc in kind.settings.items()]
    lines = [*settings, "", f"An observation is {_escaped(kind.feedback)}."]
    return "\n".join([f"### {kind.name}", "", _escaped(kind.summary), "", *lines])


def _setting_text(name: str, doc: SettingDoc, is_required: bool = False) -> str:
    """Describe a setting in a line of Markdown."""
    required = " (required)" if is_required else ""
    return f"- `{name}`{required}: {_escaped(doc.shape)}. {_escaped(doc.meaning)}"


def _escaped(text: str) -> str:
    """Escape characters that have a meaning in Markdown."""
    return "".join(f"\\{c}" if c in r"\`*_[]<>#" else c for c in text)


# -- routes --------------------------------------------------------------------------------------


@get("/openapi.json", include_in_schema=False)
async def document(agents: Agents, request: Request[Any, Any, Any]) -> Response[bytes]:
    """The OpenAPI document."""
    found = openapi_document(agents.needs_token)
    # If the header is sent, the middleware has checked the token.
    if not agents.needs_token or "authorization" in request.headers:
        found = with_situations(found, agents.open)
    return Response(msgspec.json.encode(found), media_type="application/json")


@get("/docs", include_in_schema=False)
async def page(agents: Agents, request: Request[Any, Any, Any]) -> Response[str]:
    """The documentation page; the browser runs only its script and the files of Swagger UI."""
    js, preset, css = (f"/docs/{name}" for name in _FILES)
    plugin = SwaggerRenderPlugin(
        js_url=js, standalone_preset_js_url=preset, css_url=css, favicon="", style=""
    )
    found = openapi_document(agents.needs_token)
    if not agents.needs_token:
        found = with_situations(found, agents.open)
    html = plugin.render(request, found).decode()
    script = html.rpartition("<script type='text/javascript'>")[2].partition("</script>")[0]
    policy = (
        f"default-src 'none'; script-src 'self' '{digest(script)}'; style-src 'self'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
    return Response(html, media_type="text/html", headers=headers(policy))


@get("/docs/{name:str}", include_in_schema=False)
async def page_file(name: Name) -> File:
    """A script or the style of Swagger UI, sent in chunks as the client reads them."""
    if name not in _FILES:
        raise NotFoundException
    file, media_type = _FILES[name]
    # Importing offapi would read all of its files.
    path = distribution("offapi").locate_file(f"offapi/{file}")
    cached = {"Cache-Control": "max-age=3600", "X-Content-Type-Options": "nosniff"}
    return File(
        str(path), media_type=media_type, headers=cached, chunk_size=65_536,
        content_disposition_type="inline",
    )  # fmt: skip


DOCS_ROUTES: Final = (document, page, page_file)

"""The OpenAPI document of the server, and its documentation page without scripts.

Litestar derives paths and parameters from the routes, msgspec the exact schemas of the bodies.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.metadata import version
from typing import Any, Final

import msgspec
from litestar import Litestar
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from bayescontrol._support.description import ModelKind
from bayescontrol.durable.kinds import KINDS
from bayescontrol.serve import schemas
from bayescontrol.serve.middleware import PUBLIC
from bayescontrol.serve.models import SCHEDULE, required_settings
from bayescontrol.serve.problems import MEDIA_TYPE, PROBLEMS, Problem
from bayescontrol.serve.routes import ROUTES

_REF: Final = "#/components/schemas/"
_ABOUT: Final = (
    "Durable decisions: every decision and observation is on disk before the answer is sent. "
    "Repeating a request is safe: act with the same Idempotency-Key returns the same decision, "
    "and repeating an observation changes nothing."
)


@cache
def openapi_document(needs_token: bool = False) -> dict[str, Any]:
    """Return the OpenAPI document of the server.

    >>> sorted(openapi_document()["paths"])[:2]
    ['/v1/agents', '/v1/agents/{name}']
    """
    config = OpenAPIConfig(
        title="bayescontrol",
        version=version("bayescontrol"),
        path="/schema",
        render_plugins=[JsonRenderPlugin(path="/")],
        operation_id_creator=lambda handler, *_: handler.operation_id or handler.handler_name,
        use_handler_docstrings=True,
    )
    dependencies = {"registry": Provide(object, sync_to_thread=False)}
    app = Litestar(
        list(ROUTES), dependencies=dependencies, openapi_config=config, logging_config=None
    )
    document = app.openapi_schema.to_schema()
    structs = [
        value
        for name, value in vars(schemas).items()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and name[0] != "_"
    ]
    _, components = msgspec.json.schema_components(
        [*structs, Problem], ref_template=_REF + "{name}"
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


def _complete(operation: dict[str, Any]) -> None:
    """Correct and complete what Litestar has derived for an operation."""
    operation.pop("deprecated", None)
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        if "oneOf" in schema:  # a parameter that may be absent is never null
            inner = next(kind for kind in schema.pop("oneOf") if kind["type"] != "null")
            parameter["schema"] = schema = inner | schema
        if parameter["name"] == "situation":
            del parameter["schema"]
            parameter["content"] = {"application/json": {"schema": {}}}
    if operation["operationId"] == "act":
        operation["requestBody"]["required"] = False
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            titles = [kind.title for kind in PROBLEMS.values() if kind.status == int(status)]
            response["description"] = "; or: ".join(titles)
            response["content"] = {MEDIA_TYPE: {"schema": {"$ref": f"{_REF}Problem"}}}
    media = {"log": schemas.LINES, "metrics": "text/plain"}.get(operation["operationId"])
    if media is not None:
        operation["responses"]["200"]["content"] = {media: {"schema": {"type": "string"}}}


# -- the page ----------------------------------------------------------------------------------


def docs_page(document: Mapping[str, Any], host: str = "") -> str:
    """Render the document as HTML; the examples use the `Host` of the request if it is valid.

    >>> docs_page(openapi_document())[:15]
    '<!doctype html>'
    """
    info, components = document["info"], document["components"]["schemas"]
    operations = [
        _operation(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    url = f"http://{host if _HOST.fullmatch(host) else _LOCAL}"
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{title}</h1><p>{escape(_ABOUT)}</p>"
        '<p><a href="/openapi.json">The OpenAPI document</a> · <a href="/">The live page</a></p>'
        f"{_code(_EXAMPLE.replace('URL', url))}"
        f"<h2>Paths</h2>{''.join(operations)}"
        f"<h2>Bodies</h2>{''.join(_schema(name, schema) for name, schema in components.items())}"
        f"<h2>Models</h2>{_models(url)}"
        f"<h2>Problems</h2>{_problems()}</main></body></html>"
    )


_STYLE: Final = (
    ":root { color-scheme: light dark; } "
    "body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; } "
    "main { max-width: 60rem; margin: auto; padding: 1rem; overflow-wrap: anywhere; } "
    "pre { padding: .6rem; border: 1px solid; white-space: pre-wrap; } "
    "td { padding: .2rem 1rem .2rem 0; vertical-align: top; } "
    "td:not(:last-child) { overflow-wrap: break-word; } h3 { margin-bottom: 0; } "
    # On a phone, cells stand below each other.
    "@media (max-width: 40rem) { table, tbody, tr, td { display: block; } td { padding: 0; } "
    "tr { margin-bottom: .8rem; } td:empty { display: none; } }"
)
_LOCAL: Final = "127.0.0.1:8000"
#: A host name or address with an optional port: the header of a request is not trusted.
_HOST: Final = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_JSON: Final = "curl -H 'Content-Type: application/json'"
_EXAMPLE: Final = f"""\
{_JSON} URL/v1/agents \\
  -d '{{"name": "checkout", "model": "bernoulli-bandit", "settings": {{"arms": ["red", "blue"]}}}}'
curl -X POST -H 'Idempotency-Key: visit-81' URL/v1/agents/checkout/act
{_JSON} URL/v1/agents/checkout/observe \\
  -d '{{"id": "2", "observation": 1}}'
with a token: -H "Authorization: Bearer $BAYESCONTROL_TOKEN\""""


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    summary = escape(operation.get("description") or "")
    rows = [
        (
            parameter["name"],
            parameter["in"],
            "required" if parameter.get("required") else "",
            _shape(parameter),
            escape(parameter.get("description", "")),
        )
        for parameter in operation.get("parameters", ())
    ]
    body = operation.get("requestBody")
    if body:
        required = "required" if body.get("required") else ""
        rows.append(("body", "", required, _shape(body["content"]["application/json"]), ""))
    answers = []
    for status, response in sorted(operation["responses"].items()):
        content = response.get("content") if int(status) < 400 else None
        answers.append(f"{status} {_shape(next(iter(content.values())))}" if content else status)
    name = escape(operation["operationId"])
    return (
        f'<h3 id="{name}"><code>{method.upper()} {escape(path)}</code></h3><p>{summary}</p>'
        f"{_table(rows)}<p>Answers: {', '.join(answers)}</p>"
    )


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        (field, "required" if field in required else "", _shape({"schema": inner}),
         escape(inner.get("description", "")))
        for field, inner in schema.get("properties", {}).items()
    ]  # fmt: skip
    summary = escape(schema.get("description", "").partition("\n")[0])
    return f'<h3 id="{name}">{name}</h3><p>{summary}</p>{_table(rows)}'


def _models(url: str) -> str:
    models = "".join(_model(problem.model_kind, url) for problem in KINDS.values())
    common = _table([("<code>schedule</code>", "", escape(SCHEDULE.shape), SCHEDULE.meaning)])
    intro = "Settings that are not marked as required are optional. Settings of every model:"
    return f"<p>{intro}</p>{common}{models}"


def _model(model: ModelKind, url: str) -> str:
    name, required = model.name, required_settings(model.name)
    rows = [
        (f"<code>{setting}</code>", "required" if setting in required else "",
         escape(doc.shape), escape(doc.meaning))
        for setting, doc in model.settings.items()
    ]  # fmt: skip
    agents, question = f"{url}/v1/agents", {"situation": model.situation}
    act = f"{agents}/my-{name}/act -H 'Idempotency-Key: step-1'"
    lines = [
        _post(agents, {"name": f"my-{name}", "model": name, "settings": model.example}),
        f"curl -X POST {act}" if model.situation is None else _post(act, question),
        _post(f"{agents}/my-{name}/observe", {"id": "2", "observation": model.observation}),
    ]
    return (
        f'<h3 id="{name}"><code>{name}</code></h3><p>{escape(model.summary)}</p>{_table(rows)}'
        f"<p>An observation is {escape(model.feedback)}.</p>{_code(chr(10).join(lines))}"
    )


def _post(address: str, body: Any) -> str:
    return f"{_JSON} {address} \\\n  -d '{json.dumps(body, ensure_ascii=False)}'"


def _code(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _problems() -> str:
    rows = [
        (f"<code>urn:bayescontrol:problem:{name}</code>", str(kind.status), escape(kind.title),
         escape(kind.next))
        for name, kind in PROBLEMS.items()
    ]  # fmt: skip
    return _table(rows)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{lines}</table>" if rows else ""


def _shape(holder: Mapping[str, Any]) -> str:
    """Return the type of a value in a few words of HTML, with a link to its section."""
    schema = holder.get("schema", {})
    return " or ".join(_type_names(schema)) or "any JSON"


def _type_names(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REF))
        yield f'<a href="#{name}">{name}</a>'
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _type_names(inner)
    kind = schema.get("type")
    if kind == "array":
        yield f"list of {_shape({'schema': schema.get('items', {})})}"
    elif kind is not None:
        yield escape(str(kind))

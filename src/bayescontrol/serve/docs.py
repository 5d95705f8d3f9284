"""The OpenAPI document, made exact, and a page of it that needs neither a script nor the network.

Litestar reads the paths and parameters off the routes; msgspec knows the bodies, to the last
bound and unknown field; the problems are the same for every path.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from inspect import signature
from typing import Any, Final

import msgspec

from bayescontrol.durable.kinds import KINDS
from bayescontrol.serve import schemas
from bayescontrol.serve.gate import PUBLIC
from bayescontrol.serve.problems import MEDIA_TYPE, PROBLEMS, Problem

__all__ = ["docs_page", "finished"]

_REF: Final = "#/components/schemas/"
_ABOUT: Final = (
    "Durable decisions: every decision and observation is on disk before it is answered. "
    "Asking again is safe: act under the same Idempotency-Key gives the same decision, and an "
    "observation that is known changes nothing."
)


def finished(made: dict[str, Any], secured: bool = False) -> dict[str, Any]:
    """The document that Litestar made, with exact bodies, problems and security.

    >>> finished({"info": {}, "paths": {}})["components"]["schemas"]["Learnt"]["required"]
    ['learnt']
    """
    structs = [
        one
        for one in vars(schemas).values()
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one.__name__[0] != "_"
    ]
    _, components = msgspec.json.schema_components(
        [*structs, Problem], ref_template=_REF + "{name}"
    )
    for path, operations in made["paths"].items():
        for operation in operations.values():
            _finish(operation)
            public = path in PUBLIC
            operation["security"] = [] if public else [{"token": []}] if secured else [{}]
    return made | {
        "info": made["info"] | {"description": _ABOUT},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _finish(operation: dict[str, Any]) -> None:
    operation.pop("deprecated", None)
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        if "oneOf" in schema:  # null is the absence of a parameter, not a value of it
            inner = next(one for one in schema.pop("oneOf") if one["type"] != "null")
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
    if operation["operationId"] in ("log", "metrics"):
        content = operation["responses"]["200"]["content"]
        media = "application/jsonl" if operation["operationId"] == "log" else "text/plain"
        content.clear()
        content[media] = {"schema": {"type": "string"}}


# -- the page ----------------------------------------------------------------------------------


def docs_page(document: Mapping[str, Any]) -> str:
    """The document for people.

    >>> docs_page(finished({"info": {"title": "t", "version": "1"}, "paths": {}}))[:15]
    '<!doctype html>'
    """
    info, components = document["info"], document["components"]["schemas"]
    operations = [
        _operation(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{title}</h1><p>{escape(_ABOUT)}</p>"
        '<p><a href="/openapi.json">The OpenAPI document</a> · <a href="/">The live page</a></p>'
        f"<pre>{escape(_EXAMPLE)}</pre>"
        f"<h2>Paths</h2>{''.join(operations)}"
        f"<h2>Bodies</h2>{''.join(_schema(name, one) for name, one in components.items())}"
        f"<h2>Models</h2><p>The settings of each; those with = may be left out.</p>{_models()}"
        f"<h2>Problems</h2>{_problems()}</main></body></html>"
    )


_STYLE: Final = (
    ":root { color-scheme: light dark; } "
    "body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; } "
    "main { max-width: 60rem; margin: auto; padding: 1rem; } "
    "pre, table { overflow-x: auto; display: block; } td { padding: .2rem 1rem .2rem 0; "
    "vertical-align: top; } h3 { margin-bottom: 0; }"
)
_EXAMPLE: Final = """\
curl -H 'Content-Type: application/json' -d '{"name": "checkout", "model": "bernoulli-bandit",
  "settings": {"arms": ["red", "blue"]}}' http://127.0.0.1:8000/v1/agents
curl -X POST -H 'Idempotency-Key: visit-81' http://127.0.0.1:8000/v1/agents/checkout/act
curl -H 'Content-Type: application/json' -d '{"id": "2", "observation": 1}' \\
  http://127.0.0.1:8000/v1/agents/checkout/observe
with a token: -H "Authorization: Bearer $BAYESCONTROL_TOKEN\""""


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    about = escape(operation.get("description") or "")
    rows = [
        (
            one["name"],
            one["in"],
            "required" if one.get("required") else "",
            _shape(one),
            escape(one.get("description", "")),
        )
        for one in operation.get("parameters", ())
    ]
    body = operation.get("requestBody")
    if body:
        needed = "required" if body.get("required") else ""
        rows.append(("body", "", needed, _shape(body["content"]["application/json"]), ""))
    answers = [
        f"{status} {_shape(next(iter(one['content'].values()))) if one.get('content') else ''}"
        if int(status) < 400
        else str(status)
        for status, one in sorted(operation["responses"].items())
    ]
    name = escape(operation["operationId"])
    return (
        f'<h3 id="{name}"><code>{method.upper()} {escape(path)}</code></h3><p>{about}</p>'
        f"{_table(rows)}<p>Answers: {', '.join(answers)}</p>"
    )


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        (field, "required" if field in needed else "", _shape({"schema": one}),
         escape(one.get("description", "")))
        for field, one in schema.get("properties", {}).items()
    ]  # fmt: skip
    about = escape(schema.get("description", "").partition("\n")[0])
    return f'<h3 id="{name}">{name}</h3><p>{about}</p>{_table(rows)}'


def _models() -> str:
    rows = []
    for name, kind in KINDS.items():
        taken = signature(kind.cls()).parameters.values()
        told = [p.name + ("" if p.default is p.empty else f" = {p.default!r}") for p in taken]
        rows.append((f"<code>{name}</code>", escape(", ".join(told))))
    return _table(rows)


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
    """The type of a value in a word or two, with a link where it has a section."""
    schema = holder.get("schema", {})
    return " or ".join(_words(schema)) or "any JSON"


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REF))
        yield f'<a href="#{name}">{name}</a>'
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _words(one)
    kind = schema.get("type")
    if kind == "array":
        yield f"list of {_shape({'schema': schema.get('items', {})})}"
    elif kind is not None:
        yield escape(str(kind))

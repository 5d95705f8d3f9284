"""What several routes share: their parameters, bodies that msgspec decodes, and their errors."""

from functools import cache
from typing import Annotated, Any, Final

import msgspec
from litestar import Request
from litestar.di import NamedDependency, Provide
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.bodies import KEY
from bayescontrol.serve.http_errors import ERROR_KINDS, MEDIA_TYPE, ProblemDetails, Refused
from bayescontrol.serve.middleware import require_valid_json
from bayescontrol.serve.request_queue import ServedAgent

#: The path of an agent.
AGENT: Final = "/v1/agents/{name:str}"
Name = Annotated[str, PathParameter(description="The agent's name.", min_length=1)]
Id = Annotated[str, PathParameter(description="The id that act returned.", min_length=1)]
_KEY: Final = HeaderParameter(
    name="Idempotency-Key", pattern=KEY,
    description="A name for this request: a repeated request has the same answer and no effect.",
)  # fmt: skip
Key = Annotated[str | None, _KEY]
RequiredKey = Annotated[str, _KEY]
#: Pages: the number of entries, and the event from which on they are read.
Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="Most entries of the page.")]
Start = Annotated[int, QueryParameter(ge=1, le=2**53, description="The first event.")]

Agents = NamedDependency[ServedAgents]
#: The agent in the path.
Agent = NamedDependency[ServedAgent]


async def _agent_of(agents: Agents, name: Name) -> ServedAgent:
    """Return the agent in the path, opened if necessary."""
    return await agents.get(name)


def dependencies(agents: object) -> dict[str, Provide]:
    """Return what the routes depend on: the agents of the server, and the agent in the path."""
    return {"agents": Provide(lambda: agents, sync_to_thread=False), "agent": Provide(_agent_of)}


async def require_known_query(request: Request[Any, Any, Any]) -> None:
    """Raise `Refused` for a query parameter that the route does not have, or that occurs twice."""
    parameters = request.route_handler.parsed_fn_signature.parameters
    known = [n for n, p in parameters.items() if isinstance(p.kwarg_definition, QueryParameter)]
    for name in request.query_params:
        if name not in known:
            why = f"unknown query parameter {name[:80]!r}: this path has "
            raise Refused("bad-request", why + (", ".join(known) or "none"))
        if len(request.query_params.getall(name)) > 1:
            raise Refused("bad-request", f"the query parameter {name!r} occurs twice: give it once")


def from_query(text: str | None, what: str, kind: Any = Any) -> Any:
    """Decode a query parameter that is JSON; None without it.

    >>> from_query('["red"]', "among", list[Any]), from_query(None, "situation")
    (['red'], None)
    """
    try:
        return None if text is None else decoder(kind).decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Refused("bad-request", f"the query parameter {what!r} is invalid: {error}") from None


# -- bodies ----------------------------------------------------------------------------------------


class StrictRequest(Request[Any, Any, Any]):
    """A request whose body has exactly the type of the route; Litestar would convert "1" to 1."""

    async def json(self) -> object:
        """Decode the body for the argument `data` of the route."""
        field = self.route_handler.parsed_data_field
        return decode(await self.body(), decoder(Any if field is None else field.annotation))


@cache
def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type."""
    return msgspec.json.Decoder(kind)


def decode(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Decode a body; raise `Refused` if it is not valid JSON of the decoder's type.

    >>> decode(b"", decoder(int | None))
    >>> decode(b'"1"', decoder(int))
    Traceback (most recent call last):
    bayescontrol.serve.http_errors.Refused: the body is invalid: Expected `int`, got `str`
    """
    try:
        return decoder.decode(body or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        require_valid_json(body)  # says more
        raise Refused("bad-request", f"the body is invalid: {error}") from None


# -- errors ----------------------------------------------------------------------------------------


def errors(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe the errors of a route: those that every route may have, and these statuses."""
    described = dict[int, ResponseSpec]()
    for status in (400, 401, 403, 405, 408, 414, 421, 429, 431, 500, 503, *statuses):
        kinds = [(name, kind) for name, kind in ERROR_KINDS.items() if kind.status == status]
        text = "\n".join(f"- `{name}`: {kind.title}. {kind.next}" for name, kind in kinds)
        described[status] = ResponseSpec(
            ProblemDetails, media_type=MEDIA_TYPE, generate_examples=False, description=text
        )
    return described


# The errors of routes that need no agent, that read an agent, also with a query, or that write.
SERVER: Final = errors()
READS: Final = errors(404, 409)
QUERIES: Final = errors(404, 409, 422)
WRITES: Final = errors(404, 409, 413, 415, 422, 507)

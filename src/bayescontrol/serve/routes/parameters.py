"""Parameters and errors that several routes have."""

from typing import Annotated, Final

from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.bodies import KEY
from bayescontrol.serve.http_errors import ERROR_KINDS, MEDIA_TYPE, ProblemDetails

#: The path of an agent.
AGENT: Final = "/v1/agents/{name:str}"
Agents = NamedDependency[ServedAgents]
Name = Annotated[str, PathParameter(description="The agent's name.", min_length=1)]
Id = Annotated[str, PathParameter(description="The id that act returned.", min_length=1)]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="A name for this request: a repeated request returns the same decision.",
        pattern=KEY,
    ),
]
Start = Annotated[int, QueryParameter(ge=1, le=2**53, description="The first event.")]


def errors(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe the errors of a route: those that every route may have, and these statuses."""
    described = dict[int, ResponseSpec]()
    for status in (401, 403, 405, 408, 414, 421, 429, 431, 500, 503, *statuses):
        kinds = [(name, kind) for name, kind in ERROR_KINDS.items() if kind.status == status]
        text = "\n".join(f"- `{name}`: {kind.title}. {kind.next}" for name, kind in kinds)
        described[status] = ResponseSpec(
            ProblemDetails, media_type=MEDIA_TYPE, generate_examples=False, description=text
        )
    return described


# The errors of routes that need no agent, that read an agent, also with a query, or that write.
SERVER: Final = errors()
READS: Final = errors(400, 404, 409)
QUERIES: Final = errors(400, 404, 409, 422)
WRITES: Final = errors(400, 404, 409, 413, 415, 422, 507)

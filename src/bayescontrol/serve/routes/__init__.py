"""The routes of the server; each calls one method of a durable agent.

POST /v1/agents                          create        GET  /v1/agents/{name}/posterior
GET  /v1/agents                          list          GET  /v1/agents/{name}/probabilities
POST /v1/agents/{name}/act               act           GET  /v1/agents/{name}/decisions
POST /v1/agents/{name}/act/batch                       GET  /v1/agents/{name}/decisions/{id}
POST /v1/agents/{name}/observe           observe       GET  /v1/agents/{name}/decisions.csv
POST /v1/agents/{name}/observe/batch                   GET  /v1/agents/{name}/log
POST /v1/agents/{name}/totals            totals        GET  /v1/agents/{name}/arms
POST /v1/agents/{name}/withdraw          withdraw      POST /v1/agents/{name}/arms
GET  /v1/agents/{name}/configuration                   PUT  /v1/agents/{name}/configuration
"""

from typing import Final

from litestar import HttpMethod, Response, route
from litestar.handlers import HTTPRouteHandler

from bayescontrol.serve.routes import agents, decisions, history, status, terms
from bayescontrol.serve.routes.decisions import answer_directly as answer_directly
from bayescontrol.serve.routes.parameters import AGENT


def _options(paths: list[str], method: str) -> HTTPRouteHandler:
    """Return the handler of OPTIONS for paths with GET and this method; Litestar names only one."""

    @route(paths, http_method=HttpMethod.OPTIONS, status_code=204, include_in_schema=False)
    async def options() -> Response[None]:
        return Response(None, headers={"Allow": f"GET, OPTIONS, {method}"})

    return options


ROUTES: Final = (
    # First: Litestar adds its own for paths without them.
    _options(["/v1/agents", "/v1/backups", AGENT + "/arms"], "POST"),
    _options([AGENT + "/configuration"], "PUT"),
    agents.list_, agents.create, agents.info, agents.posterior, agents.probabilities,
    decisions.act, decisions.act_batch, decisions.observe, decisions.observe_batch,
    decisions.explain,
    terms.totals, terms.withdraw, terms.arms, terms.change_arm,
    terms.configuration, terms.configure,
    history.decisions, history.decisions_csv, history.log,
    status.live, status.ready, status.metrics, status.list_backups, status.make_backup,
)  # fmt: skip
#: Routes that the OpenAPI document does not describe.
PAGES: Final = (status.index, status.events)

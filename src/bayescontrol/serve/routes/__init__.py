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

from bayescontrol.serve.backups import BACKUP_ROUTES
from bayescontrol.serve.routes import agents, decisions, history, status, terms
from bayescontrol.serve.routes.decisions import answer_directly as answer_directly

ROUTES: Final = (
    agents.methods, agents.methods_of_configuration, agents.list_, agents.create, agents.info,
    agents.posterior, agents.probabilities,
    decisions.act, decisions.act_batch, decisions.observe, decisions.observe_batch,
    decisions.explain,
    terms.totals, terms.withdraw, terms.arms, terms.change_arm,
    terms.configuration, terms.configure,
    history.decisions, history.decisions_csv, history.log,
    status.live, status.ready, status.metrics, *BACKUP_ROUTES,
)  # fmt: skip
#: Routes that the OpenAPI document does not describe.
PAGES: Final = (status.index, status.events)

"""Routes about the server itself: its health, its metrics, its backups and the live page."""

import asyncio

from litestar import Response, get, post
from litestar.response import Stream

from bayescontrol.errors import StoreFailed
from bayescontrol.serve import bodies
from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.backups import Backups
from bayescontrol.serve.http_errors import Refused
from bayescontrol.serve.monitor import Metrics
from bayescontrol.serve.page import headers as page_headers
from bayescontrol.serve.page import page
from bayescontrol.serve.routes.parameters import SERVER, Agents, errors


@get("/v1/health/live", responses=SERVER)
async def live() -> bodies.Status:
    """Whether the server answers at all."""
    return bodies.Status("ok")


@get("/v1/health/ready", responses=SERVER)
async def ready(agents: Agents) -> bodies.Readiness:
    """Whether all agents have been opened, and the store answers and accepts writes."""
    if not agents.ready:
        kind = "shutting-down" if agents.closing else "not-ready"
        raise Refused(kind, "the server is not ready")
    try:
        await agents.check()
    except StoreFailed as error:  # a load balancer expects 503, whatever the cause
        raise StoreFailed(str(error)) from error
    failed = agents.failed
    # This route needs no token. If others do, it must not reveal names.
    return bodies.Readiness("ok", len(failed), [] if agents.needs_token else failed)


@get("/v1/metrics", responses=SERVER)
async def metrics(agents: Agents) -> Response[str]:
    """Counters, histograms and gauges in the text format of Prometheus."""
    return Response(agents.metrics.text(), media_type=Metrics.MEDIA_TYPE)


@get("/events", include_in_schema=False)
async def events(agents: Agents) -> Stream:
    """The event stream of the live page."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = agents.monitor.listen(agents.open)
    return Stream(stream, media_type="text/event-stream", headers=headers)


@get("/", include_in_schema=False)
async def index() -> Response[str]:
    """The live page."""
    return Response(page(), media_type="text/html", headers=page_headers())


# -- backups ---------------------------------------------------------------------------------------


@get("/v1/backups", responses=errors(409))
async def list_backups(agents: Agents) -> bodies.BackupList:
    """The backups of the store, oldest first."""
    return bodies.BackupList(await asyncio.to_thread(_require_backups(agents).all))


@post("/v1/backups", status_code=201, responses=errors(409, 413, 415, 507))
async def make_backup(agents: Agents) -> bodies.Backup:
    """Make a backup of the store now. It goes on if it takes longer than the deadline."""
    return await _require_backups(agents).make()


def _require_backups(agents: ServedAgents) -> Backups:
    """Return the backups of the server; raise `Refused` if it makes none."""
    if agents.backups is None:
        raise Refused("backups-off", "the server was started without --backup-folder")
    return agents.backups

"""Routes that decide, learn and explain: one decision at a time, or many in one commit."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import msgspec
from litestar import get, post
from litestar.params import JSONBody, QueryParameter
from msgspec.json import Decoder

from bayescontrol.durable.events import Decision
from bayescontrol.durable.requests import Act, Observe
from bayescontrol.durable.stores.committer import Request
from bayescontrol.errors import InvalidRequest, StoreFailed
from bayescontrol.serve import bodies, values
from bayescontrol.serve.agents import ServedAgents
from bayescontrol.serve.http_errors import ProblemDetails, http_wording, kind_of, problem_of
from bayescontrol.serve.middleware import LARGE, require_valid_json
from bayescontrol.serve.request_queue import ServedAgent
from bayescontrol.serve.routes.parameters import AGENT, QUERIES, WRITES, Agent, Id, Key, decode

E = TypeVar("E")
R = TypeVar("R")


@post(AGENT + "/act", status_code=200, responses=WRITES)
async def act(
    agent: Agent, data: JSONBody[bodies.ActBody | None] = None, key: Key = None
) -> bodies.DecisionInfo:
    """Draw the next action. The decision is on disk before the answer is sent."""
    data = data or bodies.ActBody()
    x = None if data.situation is None else await situation_of(agent, data.situation)
    decision = await agent.act(x, key, arms_of(data.among), data.session)
    return bodies.DecisionInfo.of(decision, agent.tag, agent.schema, bodies.SharedLists())


@post(AGENT + "/observe", status_code=200, responses=WRITES)
async def observe(agent: Agent, data: JSONBody[bodies.ObserveBody]) -> bodies.Learned:
    """Learn the observation of a decision. It is on disk before the answer is sent; idempotent."""
    o = data.observation
    if type(o) in (list, dict):
        o = await _in_thread_if_large(values.observation_of, o)
    return bodies.Learned(await agent.observe(data.id, o, data.cost))


def arms_of(among: list[object] | None) -> list[object] | None:
    """Decode the eligible arms."""
    if among is None:
        return None
    return [values.value_of(arm, "an eligible arm", InvalidRequest) for arm in among]


async def situation_of(agent: ServedAgent, plain: object) -> object:
    """Decode a situation of an agent, see `values.situation_of`."""
    return await _in_thread_if_large(values.situation_of, plain, agent.schema)


async def _in_thread_if_large(
    decode: Callable[..., object], plain: object, *more: object
) -> object:
    """Decode a value of a request; in a thread if it is large, so that other requests go on."""
    if type(plain) in (list, dict) and len(msgspec.json.encode(plain)) > LARGE:
        return await asyncio.to_thread(decode, plain, *more)
    return decode(plain, *more)


@get(AGENT + "/decisions/{decision:str}", responses=QUERIES)
async def explain(agent: Agent, decision: Id) -> bodies.ExplanationInfo:
    """Explain a decision: the posterior and the mode drawn, reproduced from the log."""
    return bodies.ExplanationInfo.of(await agent.explain(decision), agent.tag, agent.schema)


# -- batches ---------------------------------------------------------------------------------------


@post(AGENT + "/act/batch", status_code=200, responses=WRITES)
async def act_batch(
    agent: Agent,
    data: JSONBody[bodies.ActBatch],
    probabilities: Annotated[
        bool, QueryParameter(description="Whether to list the probability of every action.")
    ] = False,
) -> bodies.ActResults:
    """Draw up to 1,000 actions in one commit. Every entry succeeds or fails by itself.

    The results have the order of the entries. All decisions are on disk before the answer is sent.
    If the store fails, the whole request fails: repeat it with the same keys.
    """
    listed = bodies.SharedLists() if probabilities else None

    def request_of(entry: bodies.ActEntry) -> Request:
        x = values.situation_of(entry.situation, agent.schema)
        return Act(x, entry.key, arms_of(entry.among), entry.session)

    def result_of(d: Decision) -> bodies.ActResult:
        return bodies.ActResult(bodies.DecisionInfo.of(d, agent.tag, agent.schema, listed))

    refused = partial(bodies.ActResult, None)
    return bodies.ActResults(await _batch(agent, data.decisions, request_of, result_of, refused))


@post(AGENT + "/observe/batch", status_code=200, responses=WRITES)
async def observe_batch(agent: Agent, data: JSONBody[bodies.ObserveBatch]) -> bodies.ObserveResults:
    """Learn up to 1,000 observations in one commit. Every entry succeeds or fails by itself.

    The results have the order of the entries. Repeating the request is safe.
    """

    def request_of(entry: bodies.ObserveBody) -> Request:
        o = values.observation_of(entry.observation)
        return Observe(agent.number(entry.id), o, entry.cost)

    result, refused = bodies.ObserveResult, partial(bodies.ObserveResult, None)
    return bodies.ObserveResults(
        await _batch(agent, data.observations, request_of, result, refused)
    )


async def _batch(
    agent: ServedAgent, entries: Sequence[E], request_of: Callable[[E], Request],
    result_of: Callable[[Any], R], refused: Callable[[ProblemDetails], R],
) -> list[R]:  # fmt: skip
    """Return `result_of` the result of each entry, or `refused` of its problem.

    Errors of the store and of the server fail the whole batch, like a single request.
    """

    def attempt(entry: E) -> Request | Exception:
        try:
            return request_of(entry)
        except Exception as error:
            return error

    requests = await asyncio.to_thread(lambda: list(map(attempt, entries)))
    valid = [request for request in requests if isinstance(request, Request)]
    handled = iter(await agent.handle_batch(valid) if valid else ())
    results = []
    for request in requests:
        outcome = next(handled) if isinstance(request, Request) else request
        if isinstance(outcome, BaseException):
            kind = kind_of(outcome)
            if isinstance(outcome, StoreFailed) or kind == "internal":
                raise outcome
            agent.metrics.problems.labels(kind).inc()
            results.append(refused(problem_of(kind, http_wording(str(outcome)))))
        else:
            results.append(result_of(outcome))
    return results


# -- without Litestar ------------------------------------------------------------------------------

_AGENTS: Final = "/v1/agents/"
#: The routes that need no Litestar: the function, the decoder of the body, and the most colons of a
#: body in which no key can occur twice, because it requires these keys.
_DIRECT: Final[Mapping[str, tuple[Callable[..., Awaitable[object]], Decoder[Any], int]]] = {
    "act": (act.fn, Decoder(bodies.ActBody | None), 1),
    "observe": (observe.fn, Decoder(bodies.ObserveBody), 2),
    "act/batch": (act_batch.fn, Decoder(bodies.ActBatch), 1),
    "observe/batch": (observe_batch.fn, Decoder(bodies.ObserveBatch), 1),
}
_KEY_HEADER: Final = b"idempotency-key"


async def answer_directly(
    agents: ServedAgents, scope: MutableMapping[str, Any], body: bytes
) -> bytes | None:
    """Return the body of the answer to a plain act or observe; None for any other request.

    Litestar answers all other requests. It finds the route, converts the arguments and names what
    is wrong with them, which takes longer than a decision.
    """
    name, _, what = scope["path"].removeprefix(_AGENTS).partition("/")
    if not name or what not in _DIRECT or scope["method"] != "POST":
        return None
    function, body_decoder, max_colons = _DIRECT[what]
    keys = [value for header, value in scope["headers"] if header == _KEY_HEADER]
    if len(body) > LARGE or len(keys) > 1 or scope.get("query_string"):
        return None
    arguments = {}
    if keys and what == "act":
        arguments["key"] = keys[0].decode("latin-1")
        if not re.match(bodies.KEY, arguments["key"]):
            return None
    scope["path_template"] = f"{_AGENTS}{{name}}/{what}"
    if body.count(b":") > max_colons:
        require_valid_json(body)
    data = decode(body, body_decoder)
    return msgspec.json.encode(await function(await agents.get(name), data, **arguments))

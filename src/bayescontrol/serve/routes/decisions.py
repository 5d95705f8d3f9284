"""Routes that decide, learn and explain: one decision at a time, or many in one commit."""

import asyncio
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import msgspec
from litestar import get, post
from litestar.params import JSONBody, QueryParameter

from bayescontrol.durable.requests import Act, Observe
from bayescontrol.errors import BadEvidence, InvalidRequest, StoreFailed
from bayescontrol.serve import bodies, values
from bayescontrol.serve.agents import ServedAgent, ServedAgents
from bayescontrol.serve.http_errors import ProblemDetails, http_wording, kind_of, problem_of
from bayescontrol.serve.middleware import LARGE, require_valid_json
from bayescontrol.serve.routes.parameters import AGENT, QUERIES, WRITES, Agents, Id, Key, Name

Q = TypeVar("Q", Act, Observe)
E = TypeVar("E")


@post(AGENT + "/act", status_code=200, responses=WRITES)
async def act(
    agents: Agents, name: Name, data: JSONBody[bodies.ActBody | None] = None, key: Key = None
) -> bodies.DecisionInfo:
    """Draw the next action. The decision is on disk before the answer is sent."""
    agent = await agents.get(name)
    data = data or bodies.ActBody()
    x = None if data.situation is None else await situation_of(agent, data.situation)
    decision = await agent.act(x, key, _among(data), data.session)
    return bodies.DecisionInfo.of(decision, agent.tag, agent.schema, bodies.SharedLists())


@post(AGENT + "/observe", status_code=200, responses=WRITES)
async def observe(agents: Agents, name: Name, data: JSONBody[bodies.ObserveBody]) -> bodies.Learned:
    """Learn the observation of a decision. It is on disk before the answer is sent; idempotent."""
    agent = await agents.get(name)
    o = await _in_thread_if_large(
        data.observation, partial(values.value_of, what="the observation", error=BadEvidence)
    )
    return bodies.Learned(await agent.observe(data.id, o, data.cost))


def _among(data: bodies.ActBody) -> list[Any] | None:
    """Decode the eligible arms."""
    if data.among is None:
        return None
    return [values.value_of(arm, "an eligible arm", InvalidRequest) for arm in data.among]


async def situation_of(agent: ServedAgent, plain: object) -> object:
    """Decode a situation of an agent, see `values.situation_of`."""
    decode = partial(values.situation_of, schema=agent.schema)
    return await _in_thread_if_large(plain, decode)


async def _in_thread_if_large(plain: object, decode: Callable[[Any], object]) -> object:
    """Decode a value of a request; in a thread if it is large, so that other requests go on."""
    if type(plain) in (list, dict) and len(msgspec.json.encode(plain)) > LARGE:
        return await asyncio.to_thread(decode, plain)
    return decode(plain)


@get(AGENT + "/decisions/{decision:str}", responses=QUERIES)
async def explain(agents: Agents, name: Name, decision: Id) -> bodies.ExplanationInfo:
    """Explain a decision: the posterior and the mode drawn, reproduced from the log."""
    agent = await agents.get(name)
    return bodies.ExplanationInfo.of(await agent.explain(decision), agent.tag, agent.schema)


# -- batches ---------------------------------------------------------------------------------------


@post(AGENT + "/act/batch", status_code=200, responses=WRITES)
async def act_batch(
    agents: Agents,
    name: Name,
    data: JSONBody[bodies.ActBatch],
    probabilities: Annotated[
        bool, QueryParameter(description="Whether to list the probability of every action.")
    ] = False,
) -> bodies.ActResults:
    """Draw up to 1,000 actions in one commit. Every entry succeeds or fails by itself.

    The results have the order of the entries. All decisions are on disk before the answer is sent.
    If the store fails, the whole request fails: repeat it with the same keys.
    """
    agent = await agents.get(name)
    schema, tag = agent.schema, agent.tag

    def request_of(entry: bodies.ActEntry) -> Act:
        x = values.situation_of(entry.situation, schema)
        return Act(x, entry.key, _among(entry), entry.session)

    outcomes = await _handle_batch(agents, agent, data.decisions, request_of)
    listed = bodies.SharedLists() if probabilities else None
    return bodies.ActResults([
        bodies.ActResult(problem=found) if isinstance(found, ProblemDetails)
        else bodies.ActResult(bodies.DecisionInfo.of(found, tag, schema, listed))
        for found in outcomes
    ])  # fmt: skip


@post(AGENT + "/observe/batch", status_code=200, responses=WRITES)
async def observe_batch(
    agents: Agents, name: Name, data: JSONBody[bodies.ObserveBatch]
) -> bodies.ObserveResults:
    """Learn up to 1,000 observations in one commit. Every entry succeeds or fails by itself.

    The results have the order of the entries. Repeating the request is safe.
    """
    agent = await agents.get(name)

    def request_of(entry: bodies.ObserveBody) -> Observe:
        o = values.value_of(entry.observation, "the observation")
        return Observe(agent.number(entry.id), o, entry.cost)

    outcomes = await _handle_batch(agents, agent, data.observations, request_of)
    return bodies.ObserveResults([
        bodies.ObserveResult(problem=found) if isinstance(found, ProblemDetails)
        else bodies.ObserveResult(found)
        for found in outcomes
    ])  # fmt: skip


async def _handle_batch(
    agents: ServedAgents, agent: ServedAgent, entries: Sequence[E], request_of: Callable[[E], Q]
) -> list[Any]:
    """Return the result of each entry, or its problem.

    Errors of the store and of the server fail the whole batch, like a single request.
    """
    requests = await asyncio.to_thread(lambda: [_attempt(request_of, each) for each in entries])
    valid = [request for request in requests if isinstance(request, Act | Observe)]
    handled = iter(await agent.handle_batch(valid) if valid else ())
    outcomes: list[Any] = []
    for request in requests:
        outcome = request if isinstance(request, BaseException) else next(handled)
        if isinstance(outcome, BaseException):
            kind = kind_of(outcome)
            if isinstance(outcome, StoreFailed) or kind == "internal":
                raise outcome
            agents.metrics.problems.labels(kind).inc()
            outcome = problem_of(kind, http_wording(str(outcome)))
        outcomes.append(outcome)
    return outcomes


def _attempt(request_of: Callable[[E], Q], entry: E) -> Q | Exception:
    """Return the request of an entry, or the error that it causes."""
    try:
        return request_of(entry)
    except Exception as error:
        return error


# -- without Litestar ------------------------------------------------------------------------------

_AGENTS: Final = "/v1/agents/"
#: The routes that need no Litestar: the function, the decoder of the body, and the most colons of a
#: body in which no key can occur twice, because the decoder requires these keys.
_DIRECT: Final[Mapping[str, tuple[Any, Callable[[bytes], Any], int]]] = {
    "act": (act.fn, msgspec.json.Decoder(bodies.ActBody | None).decode, 1),
    "observe": (observe.fn, msgspec.json.Decoder(bodies.ObserveBody).decode, 2),
    "act/batch": (act_batch.fn, msgspec.json.Decoder(bodies.ActBatch).decode, 1),
    "observe/batch": (observe_batch.fn, msgspec.json.Decoder(bodies.ObserveBatch).decode, 1),
}
_KEY_HEADER: Final = b"idempotency-key"


async def answer_directly(
    agents: ServedAgents, scope: MutableMapping[str, Any], body: bytes
) -> bytes | None:
    """Return the body of the answer to a plain act or observe; None for any other request.

    Litestar answers all other requests, and those that are malformed. It finds the route, converts
    the arguments and names what is wrong with them, which takes longer than a decision.
    """
    name, _, what = scope["path"].removeprefix(_AGENTS).partition("/")
    if not name or what not in _DIRECT or scope["method"] != "POST":
        return None
    function, decode, max_colons = _DIRECT[what]
    keys = [value for header, value in scope["headers"] if header == _KEY_HEADER]
    if len(body) > LARGE or len(keys) > 1 or scope.get("query_string"):
        return None
    if body.count(b":") > max_colons:
        require_valid_json(body)
    arguments = {}
    if keys and what == "act":
        arguments["key"] = keys[0].decode("latin-1")
        if not re.match(bodies.KEY, arguments["key"]):
            return None
    try:
        data = decode(body or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    scope["path_template"] = f"{_AGENTS}{{name}}/{what}"
    return msgspec.json.encode(await function(agents, name, data, **arguments))

"""Every path with valid requests; test_refusals.py has the invalid ones."""

import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.raw import JSON, Raw, ask, memory, number, read_until_closed

from bayescontrol import BernoulliBandit, GaussianBandit
from bayescontrol.durable import named_model, open_agent
from bayescontrol.durable.events import from_line
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve import Client, Tokens
from bayescontrol.serve.http_errors import ERROR_KINDS
from bayescontrol.serve.server import Server

SHOP = {"name": "shop", "model": "bernoulli-bandit", "settings": {"arms": ["red", "blue"]}}
ACT, OBSERVE = "/v1/agents/shop/act", "/v1/agents/shop/observe"
KEY = {"Idempotency-Key": "visit-81"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    local = named_model("mine", version=3, build=lambda: BernoulliBandit(2).agent())
    with memory(models={"mine": local}) as server:
        assert ask(server.url, "POST", "/v1/agents", SHOP | {"seed": 1}).status == 201
        yield server.url


def decided(url: str, agent: str = "shop") -> str:
    return str(ask(url, "POST", f"/v1/agents/{agent}/act", {}).json["id"])


def test_a_new_agent_is_created_and_listed_and_an_existing_one_returned(url: str) -> None:
    created = ask(url, "POST", "/v1/agents", SHOP | {"name": "made"})
    assert (created.status, created.headers["location"]) == (201, "/v1/agents/made")
    assert created.json["settings"]["prior"] == [[1.0, 1.0], [1.0, 1.0]]
    assert ask(url, "GET", "/v1/agents/made").json == created.json
    assert "made" in ask(url, "GET", "/v1/agents").json["agents"]
    assert ask(url, "POST", "/v1/agents", SHOP | {"seed": 1}).status == 200
    own = ask(url, "POST", "/v1/agents", {"name": "own", "model": "mine"})
    assert (own.status, own.json["version"]) == (201, 3)
    assert ask(url, "POST", "/v1/agents/own/act", {}).json["action"] in (0, 1)


def test_act_returns_the_action_its_probability_and_the_last_event(url: str) -> None:
    answer = ask(url, "POST", ACT).json
    assert answer["action"] in ("red", "blue")
    probabilities = {one["action"]: one["probability"] for one in answer["probabilities"]}
    assert probabilities[answer["action"]] == answer["probability"]
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert answer["basis"] == number(answer["id"]) - 1
    result = ask(url, "GET", f"/v1/agents/shop/decisions/{answer['id']}").json
    assert result["decision"]["id"] == answer["id"]
    assert result["mode"].startswith("MeanRewards(")
    assert result["answered"] is False
    assert set(result["posterior"]) == {"red", "blue"}


def test_the_same_key_gives_the_same_decision_also_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'shop.db'}"
    with Server(store, port=0) as server:
        ask(server.url, "POST", "/v1/agents", SHOP | {"seed": 1})
        for reward in (1, 0, 1):
            observed = {"id": decided(server.url), "observation": reward}
            ask(server.url, "POST", OBSERVE, observed)
        one, two = (ask(server.url, "POST", ACT, {}, KEY).json for _ in range(2))
        ask(server.url, "POST", OBSERVE, {"id": one["id"], "observation": 1})
    assert one == two
    assert len(one["probabilities"]) == 2
    with Server(store, port=0) as server:
        assert ask(server.url, "POST", ACT, {}, KEY).json == one


def test_a_sequential_agent_needs_feedback_before_the_next_act(url: str) -> None:
    with Client(url) as client:
        client.create("walker", GibbsMDP(["left", "right"], start="home"), seed=1)
        first = decided(url, "walker")
        answer = ask(url, "POST", "/v1/agents/walker/act", {})
        assert (answer.status, answer.kind) == (409, "feedback-due")
        step = {"id": first, "observation": {"tuple": [1.0, "shop"]}}
        assert ask(url, "POST", "/v1/agents/walker/observe", step).json == {"learned": True}
        assert client.agent("walker").act().situation == "shop"
        assert client.agent("walker").info()["feedback"] == "in turn"


def test_the_log_is_sent_as_lines_with_checksums(url: str) -> None:
    decided(url)
    answer = ask(url, "GET", "/v1/agents/shop/log")
    assert answer.headers["content-type"].startswith("text/jsonl")
    events = [from_line(line) for line in answer.body.decode().splitlines()]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    rest = ask(url, "GET", f"/v1/agents/shop/log?start={len(events)}").body.decode()
    assert [from_line(line) for line in rest.splitlines()] == events[-1:]
    assert ask(url, "GET", f"/v1/agents/shop/log?start={len(events) + 1}").body == b""


def test_the_pages_load_nothing_from_other_sites_and_name_every_path_and_error(url: str) -> None:
    for path in ("/", "/docs"):
        page = ask(url, "GET", path)
        text = page.body.decode().replace("http://www.w3.org/", "").replace(url, "")
        assert page.status == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "://" not in text
    document = ask(url, "GET", "/openapi.json").json
    wanted = [*document["paths"], *document["components"]["schemas"], *ERROR_KINDS]
    assert [name for name in wanted if name not in text] == []
    assert all(kind.title and kind.next for kind in ERROR_KINDS.values())


@pytest.mark.parametrize(
    "path",
    ["/v1/health/live", "/v1/health/ready", "/v1/agents/shop/posterior", "/docs", "/v1/nowhere"],
)
def test_head_is_answered_as_get_without_a_body(url: str, path: str) -> None:
    full, head_only = (ask(url, method, path) for method in ("GET", "HEAD"))
    assert (head_only.status, head_only.body) == (full.status, b"")
    names = ("content-type", "cache-control")
    assert all(head_only.headers.get(name) == full.headers.get(name) for name in names)
    if full.status == 200:
        assert head_only.headers["content-length"] == str(len(full.body))
        route = path.replace("shop", "{name}")
        counted = f'bayescontrol_requests_total{{method="HEAD",route="{route}",status="200"}} 1.0'
        assert counted.encode() in ask(url, "GET", "/v1/metrics").body


def test_head_neither_writes_nor_opens_a_stream_without_end(url: str) -> None:
    assert [ask(url, "HEAD", path).status for path in (ACT, "/events")] == [405, 405]


def test_stored_agents_are_served_and_unknown_models_are_reported(tmp_path: Path) -> None:
    store, token = f"sqlite:///{tmp_path}/shop.db", "a-secret-that-is-long-enough"
    local = named_model("mine", version=1, build=lambda: BernoulliBandit(2).agent())
    for name, model in (("theirs", local), ("ours", GaussianBandit(2))):
        with open_agent(store, name, model) as agent:
            agent.act()
    known = {"Authorization": f"Bearer {token}"}
    for tokens, named in ((None, ["theirs"]), (Tokens([token]), [])):
        with Server(store, port=0, tokens=tokens) as server, Client(server.url) as client:
            ready = client.call("GET", "/v1/health/ready")
            assert (ready["failed"], ready["unopened"]) == (1, named)
            ours, theirs = (
                ask(server.url, "GET", f"/v1/agents/{name}", headers=known)
                for name in ("ours", "theirs")
            )
        assert ours.json["decisions"] == 1
        assert (theirs.status, theirs.kind) == (409, "model-mismatch")
        assert "'theirs' has the model 'mine'" in theirs.json["detail"]
        assert "--model FILE.py" in theirs.json["detail"]
    with Server(store, port=0, models={"mine": local}) as server:
        assert ask(server.url, "GET", "/v1/agents/theirs").json["decisions"] == 1


def test_an_internal_error_is_one_bounded_line_of_the_log(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object, name: str) -> None:
        raise RuntimeError(f"{name}\nERROR all is lost\x1b[2J" + "x" * 100_000)

    monkeypatch.setattr("bayescontrol.serve.agents.ServedAgents.get", fail)
    answer = ask(url, "GET", "/v1/agents/shop%0AERROR:%20all%20is%20lost" + "y" * 5_000)
    assert (answer.status, answer.kind) == (500, "internal")
    (record,) = [one for one in caplog.records if one.name == "bayescontrol.serve"]
    line = logging.Formatter().format(record)
    assert line.isprintable()
    assert len(line) < 3_000
    assert line.startswith(r"GET '/v1/agents/shop\nERROR: all is lost")
    assert "RuntimeError" in line
    assert re.search(r"test_routes\.py:\d+", line)  # where it happened


def test_act_and_observe_answer_as_litestar_does() -> None:
    """A final slash changes nothing but the way: Litestar answers these requests."""
    bodies = (
        b"{}", b"", b"null", b'{"situation": null}', b'{"situation": 1}', b'{"s": 1}', b"[]",
        b'{"session": "v"}', b'{"session": "v", "session": "w"}', b'{"session": "v", "key": "w"}',
    )  # fmt: skip
    keys: tuple[dict[str, str], ...] = (
        {},
        KEY,
        {"Idempotency-Key": "two words"},
        {"Idempotency-Key": "visit-81"},
    )
    asked = [("act", body, headers) for body in bodies for headers in keys]
    for observation in (b"1", b"1", b"0", b'"a:b"', b'{"tuple": [1]}', b'{"b": 1}', b"", b"\xff"):
        for id in (b'"TAG-2"', b"2", b'"TAG-999"', b'"TAG-2", "id": "TAG-3"'):
            body = b'{"id": %s, "observation": %s}' % (id, observation)
            asked.append(("observe", body, KEY))
            asked.append(("observe/batch", b'{"observations": [%s]}' % body, {}))
    asked += [
        ("act/batch", b'{"decisions": [%s]%s}' % (entry, more), {})
        for entry in (b"{}", b'{"key": "visit-81"}', b'{"key": "a b"}', b'{"situation": [1]}, {}')
        for more in (b"", b', "extra": true', b', "decisions": []')
    ]
    asked += [("observe", b'{"observation": 1}', {}), ("acts", b"{}", {})]
    answers: list[list[Any]] = []
    for slash in ("", "/"):
        with memory() as server:
            for name in ("shop", "nobody"):
                if name == "shop":
                    ask(server.url, "POST", "/v1/agents", SHOP | {"seed": 1})
                    tag = decided(server.url).partition("-")[0].encode()
                found = [
                    ask(
                        server.url, "POST", f"/v1/agents/{name}/{what}{slash}",
                        body.replace(b"TAG", tag), JSON | headers,
                    )
                    for what, body, headers in asked
                ]  # fmt: skip
                answers.append([_timeless(one, tag) for one in found])
            counts = ask(server.url, "GET", "/v1/metrics").body.decode()
            # Without routes: Litestar does not know that of a body which is refused before.
            counted = re.findall(r'requests_total\{.*status="(\d+)"\} (\S+)', counts)
            answers[-1].append(sum((Counter({s: float(n)}) for s, n in counted), Counter()))
    assert answers[:2] == answers[2:]
    assert {status for status, _, _ in answers[0]} == {200, 400, 404, 409, 422}


def _timeless(answer: Raw, tag: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return an answer without times, ids of requests and the tag of ids of decisions."""
    left_out = ("date", "content-length", "x-request-id")
    headers = {k: v for k, v in answer.headers.items() if k not in left_out}
    body = re.sub(rb'"time":[0-9.]+|"request_id":"[^"]*"', b"", answer.body).replace(tag, b"TAG")
    return answer.status, headers, re.sub(rb"/(act|acts|observe)/", rb"/\1", body)


@pytest.mark.parametrize("close", [b"HTTP/1.0\r\n", b"HTTP/1.1\r\nConnection: close\r\n"])
def test_the_last_answer_of_a_connection_says_so(close: bytes) -> None:
    with memory() as server:
        ask(server.url, "POST", "/v1/agents", SHOP)
        head = b"POST %s %sHost: localhost\r\nContent-Length: 0\r\n\r\n"
        answer = read_until_closed(server.url, head % (ACT.encode(), close))
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.count(b"connection: close\r\n") == 1
        assert answer.endswith(b"}")

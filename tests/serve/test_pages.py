"""Pages of agents, decisions and events, the table for spreadsheets, and contexts with names."""

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.serve.raw import Raw, ask, memory, number

from bayescontrol import BernoulliBandit, LinearBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.events import from_line
from bayescontrol.serve import Client, RemoteAgent
from bayescontrol.serve.server import Server

FIELDS = {"age": {"center": 40, "scale": 15}, "plan": ["free", "pro"], "new": "boolean"}
ANN = {"age": 31, "plan": "pro", "new": True}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with memory() as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def visits(client: Client, name: str, size: int) -> RemoteAgent:
    """An agent with decisions, all but one in three of them with an observation, in any order."""
    shop = client.create(name, BernoulliBandit(["red", "blue"]), seed=1)
    made = [shop.act() for _ in range(size)]
    shop.observe_batch([{"id": d, "o": i % 2} for i, d in enumerate(made[::-1]) if i % 3])
    return shop


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_have_every_decision_once_with_its_observation(
    server: Server, client: Client, order: str, limit: int
) -> None:
    shop = visits(client, f"paged-{order}-{limit}", 10)
    explained = {number(d["decision"].id): d for d in map(shop.explain, ids(shop))}
    records: list[Any] = []
    following: Any = None
    while following is not None or not records:
        start = "" if following is None else f"&start={following}"
        path = f"/v1/agents/{shop.name}/decisions?limit={limit}&order={order}{start}"
        page = ask(server.url, "GET", path).json
        assert len(page["decisions"]) <= limit
        records += page["decisions"]
        following = page["next"]
    numbers = [number(one["decision"]["id"]) for one in records]
    assert numbers == sorted(explained, reverse=order == "desc")
    for one in records:
        known = explained[number(one["decision"]["id"])]
        assert one["decision"]["action"] == known["decision"].action
        assert (one["answered"], one["observation"]) == (known["answered"], known["observation"])
        assert (one["observed_at"] is not None) == one["answered"]
    assert sum(one["answered"] for one in records) == 6
    assert not any(one["is_default"] for one in records)


def ids(shop: RemoteAgent) -> list[str]:
    return [one["decision"].id for one in shop.decisions()]


def test_the_client_reads_all_pages(client: Client) -> None:
    shop = client.create("many", BernoulliBandit(2), seed=1)
    made = [one for _ in range(3) for one in shop.act_batch([{}] * 500)]
    assert [one["decision"] for one in shop.decisions()] == made
    assert [one["decision"] for one in shop.decisions(start=1001)] == made[999:]


def test_agents_are_listed_page_by_page(server: Server, client: Client) -> None:
    for name in ("b", "c", "a"):
        client.create(f"list-{name}", BernoulliBandit(2), seed=1)
    page = ask(server.url, "GET", "/v1/agents?limit=2&after=list-").json
    assert page == {"agents": ["list-a", "list-b"], "next": "list-b"}
    page = ask(server.url, "GET", "/v1/agents?limit=2&after=list-b").json
    assert page["agents"][0] == "list-c"
    assert client.agents() == sorted(client.agents())
    assert {"list-a", "list-b", "list-c"} <= set(client.agents())


def test_the_pages_of_a_log_are_linked(server: Server, client: Client) -> None:
    visits(client, "logged", 4)
    whole = ask(server.url, "GET", "/v1/agents/logged/log")
    assert "link" not in whole.headers
    lines, path = b"", "/v1/agents/logged/log?start=2&limit=2"
    while path:
        page = ask(server.url, "GET", path)
        assert page.body.count(b"\n") <= 2
        lines += page.body
        link = page.headers.get("link", "")
        assert link == "" or link.endswith('>; rel="next"')
        path = link.removesuffix('>; rel="next"').removeprefix("<")
    assert lines.splitlines() == whole.body.splitlines()[1:]
    assert [from_line(line).seq for line in lines.decode().splitlines()] == [*range(2, 8)]


def test_a_link_escapes_the_name_of_an_agent(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with open_agent(store, "café 店", BernoulliBandit(2), seed=1) as agent:
        agent.act()
    with Server(store, port=0) as server:
        page = ask(server.url, "GET", f"/v1/agents/{quote('café 店')}/log?limit=1")
        path, _, relation = page.headers["link"].partition(";")
        assert relation == ' rel="next"'
        assert ask(server.url, "GET", path.strip("<>")).json["kind"] == "decided"


def table(answer: Raw) -> list[dict[str, str]]:
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "decisions.csv" in answer.headers["content-disposition"]
    return list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))


def test_the_table_is_safe_in_a_spreadsheet(server: Server, client: Client) -> None:
    arms = ["=1+1", " @sum", "-x", "+1", 'a "quoted", one\nof two lines', -2, ("left", 1)]
    shop = client.create("formulas", LinearBandit(arms, features={"=note": ["=a", "b"]}), seed=1)
    made = [shop.act({"=note": "=a"}) for _ in range(200)]
    shop.observe(made[0], -0.5)
    rows = table(ask(server.url, "GET", "/v1/agents/formulas/decisions.csv"))
    assert [row["id"] for row in rows] == [d.id for d in made]
    shown = {d.action: row["action"] for d, row in zip(made, rows, strict=True)}
    assert shown == {
        "=1+1": "'=1+1", " @sum": "' @sum", "-x": "'-x", "+1": "'+1", arms[4]: arms[4],
        -2: "-2", ("left", 1): '{"tuple":["left",1]}',
    }  # fmt: skip
    assert {row["situation"] for row in rows} == {'{"=note":"=a"}'}
    assert (rows[0]["observation"], rows[1]["observation"]) == ("-0.5", "")
    assert datetime.fromisoformat(rows[0]["time"]).timestamp() == pytest.approx(made[0].time)
    assert rows[0]["observed at"] >= rows[0]["time"]
    assert rows[1]["observed at"] == ""


def test_a_long_table_is_complete(server: Server, client: Client) -> None:
    shop = client.create("long", BernoulliBandit(2), seed=1)
    made = shop.act_batch([{}] * 1000) + shop.act_batch([{}] * 234)
    rows = table(ask(server.url, "GET", "/v1/agents/long/decisions.csv"))
    assert [row["id"] for row in rows] == [getattr(one, "id", None) for one in made]


# -- contexts with names ---------------------------------------------------------------------------


def test_a_context_is_a_plain_object_and_equals_its_vector(server: Server, client: Client) -> None:
    for name, features in (("named", FIELDS), ("vector", 5)):
        client.create(name, LinearBandit(["short", "long"], features=features), seed=2)
    plain = ask(server.url, "POST", "/v1/agents/named/act", {"situation": ANN})
    assert (plain.status, plain.json["situation"]) == (200, ANN)
    vector = client.agent("vector").act([1.0, -0.6, 0.0, 1.0, 1.0])
    assert plain.json["action"] == vector.action
    named = client.agent("named")
    second = named.act(ANN)  # in the notation of logs
    assert second.situation == ANN
    assert [d["decision"].situation for d in named.decisions()] == [ANN, ANN]
    assert named.probabilities(ANN) == client.agent("vector").probabilities(vector.situation)
    assert decided_in_batch(named) == ANN
    wrong = ask(server.url, "POST", "/v1/agents/named/act", {"situation": {"age": 31}})
    assert (wrong.status, wrong.kind) == (422, "bad-situation")
    assert "'plan'" in wrong.json["detail"]
    nested = ask(server.url, "POST", "/v1/agents/named/act", {"situation": ANN | {"age": {"b": 1}}})
    assert (nested.status, nested.kind) == (422, "bad-situation")
    assert "situation's age" in nested.json["detail"]


def decided_in_batch(agent: RemoteAgent) -> Any:
    (decision,) = agent.act_batch([{"x": ANN}])
    return getattr(decision, "situation", decision)


def test_fields_with_the_name_of_a_tag_keep_their_meaning(server: Server, client: Client) -> None:
    fields = {"int": ["5", "6"], "dict": "boolean"}
    client.create("tags", LinearBandit(2, features=fields), seed=1)
    x = {"int": "5", "dict": True}
    answer = ask(server.url, "POST", "/v1/agents/tags/act", {"situation": x})
    assert answer.json["situation"] == {"dict": [["int", "5"], ["dict", True]]}
    assert client.agent("tags").act(x).situation == x


def test_the_schema_of_situations_is_published(server: Server, client: Client) -> None:
    schema = client.agent("named").info()["situation_schema"]
    assert schema["required"] == ["age", "plan", "new"]
    assert schema["properties"]["age"] == {"type": "number"}
    assert schema["properties"]["plan"]["examples"] == ["free", "pro"]
    assert client.agent("vector").info()["situation_schema"] is None
    document = ask(server.url, "GET", "/openapi.json").json
    assert (
        document["components"]["schemas"]["Situation.named"]["properties"] == schema["properties"]
    )
    assert "Situation.vector" not in document["components"]["schemas"]
    changing = LinearBandit(["short", "long"], features=FIELDS).changing()
    client.create("changing", changing, seed=1)
    assert client.agent("changing").info()["situation_schema"] == schema
    assert client.agent("changing").act(ANN).situation == ANN

"""The documentation of the models is complete, its examples work, and its page needs no CDN."""

import re
from collections.abc import Iterator
from inspect import signature

import pytest
from tests.serve.raw import Raw, ask, memory

from bayescontrol import LinearBandit
from bayescontrol.durable.models import KINDS
from bayescontrol.serve import Client, Tokens


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with memory() as server:
        yield server.url


@pytest.mark.parametrize("name", KINDS)
def test_the_example_of_a_model_creates_an_agent_that_acts_and_learns(url: str, name: str) -> None:
    paths = ask(url, "GET", "/openapi.json").json["paths"]
    kind = KINDS[name].model_kind
    storable = [p for p in signature(KINDS[name]).parameters if p != "allowed"]  # a function
    text = paths["/v1/agents"]["post"]["description"].partition(f"### {name}\n")[2]
    explained = re.findall(r"^- `(\w+)`", text.partition("### ")[0], re.MULTILINE)
    assert explained == list(kind.settings) == storable
    answers: list[Raw] = []
    for path in ("/v1/agents", "/v1/agents/{name}/act", "/v1/agents/{name}/observe"):
        examples = paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"]
        path = path.replace("{name}", f"my-{name}")
        body = examples[name]["value"]
        if path.endswith("observe"):  # the id comes from act
            assert set(body) == {"id", "observation"}
            body = body | {"id": answers[1].json["id"]}
        answers.append(ask(url, "POST", path, body))
    assert [answer.status for answer in answers] == [201, 200, 200], answers
    assert answers[0].json["model"] == name
    assert answers[2].json == {"learned": True}


def test_only_callers_with_a_token_learn_of_agents_from_the_document() -> None:
    token = "a-token-that-is-long-enough"
    with memory(tokens=Tokens([token])) as server, Client(server.url, token) as client:
        features = {"age": "number"}
        client.create("named", LinearBandit(["short", "long"], features=features), seed=1)
        found = [
            ask(server.url, "GET", "/openapi.json", headers=headers)
            for headers in ({}, {"Authorization": f"Bearer {token}"}, {"Authorization": "Bearer x"})
        ]
        page = ask(server.url, "GET", "/docs").body
    assert [one.status for one in found] == [200, 200, 401]
    assert [b"named" in one.body for one in found] == [False, True, False]
    assert b"Situation.named" not in page


def test_the_page_and_its_files_come_from_this_server_and_need_no_token() -> None:
    tokens = Tokens(["a-token-that-is-long-enough"])
    with memory(tokens=tokens) as server:
        page = ask(server.url, "GET", "/docs")
        html = page.body.decode()
        files = re.findall(r'(?:src|href)="([^"]*)"', html)
        assert len(files) == 3
        for file in files:
            answer = ask(server.url, "GET", file)
            assert (answer.status, len(answer.body) > 100_000) == (200, True), file
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert ask(server.url, "GET", "/docs/scalar.js").status == 404
        assert ask(server.url, "GET", "/docs/..%2fv1%2fagents").status in (401, 404)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy

"""Every path, and the typed errors it can return."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serve.raw import ask

from bayescontrol import BernoulliBandit, GaussianBandit, LinearBandit
from bayescontrol.durable import named_model, open_agent
from bayescontrol.durable.events import from_line
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve import Client
from bayescontrol.serve.http_errors import ERROR_KINDS
from bayescontrol.serve.server import Server

SHOP = {"name": "shop", "model": "bernoulli-bandit", "settings": {"arms": ["red", "blue"]}}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    local = named_model("mine", version=3, build=lambda: BernoulliBandit(2).agent())
    with Server("sqlite:///:memory:", port=0, models={"mine": local}) as server:
        assert ask(server.url, "POST", "/v1/agents", SHOP | {"seed": 1}).status == 201
        yield server.url


def decided(url: str, agent: str = "shop") -> str:
    return str(ask(url, "POST", f"/v1/agents/{agent}/act", {}).json["id"])


def test_a_new_agent_is_created_and_listed(url: str) -> None:
    created = ask(url, "POST", "/v1/agents", SHOP | {"name": "made"})
    assert (created.status, created.headers["location"]) == (201, "/v1/agents/made")
    assert created.json["settings"]["prior"] == [[1.0, 1.0], [1.0, 1.0]]
    assert ask(url, "GET", "/v1/agents/made").json == created.json
    assert "made" in ask(url, "GET", "/v1/agents").json["agents"]


def test_creating_the_same_agent_twice_returns_it(url: str) -> None:
    assert ask(url, "POST", "/v1/agents", SHOP | {"seed": 1}).status == 200


@pytest.mark.parametrize(
    "other", [{"settings": {"arms": ["red", "green"]}}, {"model": "gaussian-bandit"}, {"seed": 2}]
)
def test_another_model_or_seed_for_an_existing_name_is_a_conflict(
    url: str, other: dict[str, object]
) -> None:
    answer = ask(url, "POST", "/v1/agents", SHOP | other)
    assert (answer.status, answer.kind) == (409, "model-mismatch")


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"model": "no-such-bandit"}, "unknown-model"),
        ({"settings": {"legs": 2}}, "bad-settings"),
        ({"settings": {"arms": 0}}, "bad-settings"),
        ({"settings": {"arms": 10**9}}, "bad-settings"),
        ({"settings": {"arms": 2, "prior": "no prior"}}, "bad-settings"),
        ({"settings": {"arms": 2, "schedule": ["never"]}}, "bad-settings"),
        ({"settings": {"arms": {"no": "tag"}}}, "bad-settings"),
        ({"model": "mine", "settings": {"arms": 3}}, "bad-settings"),
    ],
)
def test_invalid_settings_are_refused(url: str, wrong: dict[str, object], kind: str) -> None:
    answer = ask(url, "POST", "/v1/agents", SHOP | {"name": "wrong"} | wrong)
    assert (answer.status, answer.kind) == (422, kind)
    assert "wrong" not in ask(url, "GET", "/v1/agents").json["agents"]


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"null", b'{"name": "x"}', b'{"name": "a/b", "model": "m"}', b"[" * 40_000],
)
def test_a_body_that_cannot_be_read_is_a_bad_request(url: str, body: bytes) -> None:
    answer = ask(url, "POST", "/v1/agents", body)
    assert (answer.status, answer.kind) == (400, "bad-request")


def test_a_user_model_can_be_created_by_its_name(url: str) -> None:
    created = ask(url, "POST", "/v1/agents", {"name": "own", "model": "mine"})
    assert (created.status, created.json["version"]) == (201, 3)
    assert ask(url, "POST", "/v1/agents/own/act", {}).json["action"] in (0, 1)


def test_act_returns_the_action_its_probability_and_the_last_event(url: str) -> None:
    answer = ask(url, "POST", "/v1/agents/shop/act").json
    assert answer["action"] in ("red", "blue")
    probabilities = {one["action"]: one["probability"] for one in answer["probabilities"]}
    assert probabilities[answer["action"]] == answer["probability"]
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert answer["basis"] == int(answer["id"]) - 1


def test_the_same_key_gives_the_same_decision(url: str) -> None:
    key = {"Idempotency-Key": "visit-81"}
    one, two = (ask(url, "POST", "/v1/agents/shop/act", {}, key).json for _ in range(2))
    assert one == two
    assert len(one["probabilities"]) == 2


def test_the_same_key_gives_the_same_probabilities_after_a_restart(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path / 'shop.db'}"
    key, act = {"Idempotency-Key": "visit-81"}, "/v1/agents/shop/act"
    with Server(store, port=0) as server:
        ask(server.url, "POST", "/v1/agents", SHOP | {"seed": 1})
        for reward in (1, 0, 1):
            observed = {"id": decided(server.url), "observation": reward}
            ask(server.url, "POST", "/v1/agents/shop/observe", observed)
        one = ask(server.url, "POST", act, {}, key).json
        ask(server.url, "POST", "/v1/agents/shop/observe", {"id": one["id"], "observation": 1})
    with Server(store, port=0) as server:
        assert ask(server.url, "POST", act, {}, key).json == one


def test_a_key_with_another_situation_is_a_conflict(url: str) -> None:
    created = {"name": "linear", "model": "linear-bandit", "settings": {"arms": 2, "features": 2}}
    ask(url, "POST", "/v1/agents", created)
    key = {"Idempotency-Key": "k"}
    act = "/v1/agents/linear/act"
    assert ask(url, "POST", act, {"situation": [1.0, 0.0]}, key).status == 200
    answer = ask(url, "POST", act, {"situation": [0.0, 1.0]}, key)
    assert (answer.status, answer.kind) == (409, "conflicting-key")


@pytest.mark.parametrize("key", ["", "x" * 201, "a b", "caf\u00e9"])
def test_an_invalid_key_is_a_bad_request(url: str, key: str) -> None:
    answer = ask(url, "POST", "/v1/agents/shop/act", {}, {"Idempotency-Key": key})
    assert (answer.status, answer.kind) == (400, "bad-request")


def test_an_observation_is_learned_once(url: str) -> None:
    answer = {"id": decided(url), "observation": 1}
    learned = [ask(url, "POST", "/v1/agents/shop/observe", answer).json for _ in range(2)]
    assert learned == [{"learned": True}, {"learned": False}]


def test_another_observation_of_the_same_decision_is_a_conflict(url: str) -> None:
    n = decided(url)
    ask(url, "POST", "/v1/agents/shop/observe", {"id": n, "observation": 1})
    answer = ask(url, "POST", "/v1/agents/shop/observe", {"id": n, "observation": 0})
    assert (answer.status, answer.kind) == (409, "conflicting-feedback")


@pytest.mark.parametrize("wrong", ["red", 2, None, [1], {"a": 1}, {"tuple": [1]}, {"float": "nan"}])
def test_a_bad_observation_is_refused_and_changes_nothing(url: str, wrong: object) -> None:
    n, before = decided(url), ask(url, "GET", "/v1/agents/shop/posterior").json
    answer = ask(url, "POST", "/v1/agents/shop/observe", {"id": n, "observation": wrong})
    assert (answer.status, answer.kind) == (422, "bad-evidence")
    assert ask(url, "GET", "/v1/agents/shop/posterior").json == before


def test_an_array_that_needs_a_huge_amount_of_memory_is_refused(url: str) -> None:
    huge = {"array": ["x"], "shape": [1], "dtype": "<U999999999"}
    answer = ask(url, "POST", "/v1/agents/shop/observe", {"id": "2", "observation": huge})
    assert (answer.status, answer.kind) == (422, "bad-evidence")


@pytest.mark.parametrize("n", ["999999", "one", "1", "0", "-1", "02"])
def test_an_unknown_decision_is_not_found(url: str, n: str) -> None:
    answers = [
        ask(url, "POST", "/v1/agents/shop/observe", {"id": n, "observation": 1}),
        ask(url, "GET", f"/v1/agents/shop/decisions/{n}"),
    ]
    assert {(one.status, one.kind) for one in answers} == {(404, "unknown-decision")}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("POST", "/act"),
        ("GET", "/posterior"),
        ("GET", "/log"),
        ("GET", "/decisions/2"),
    ],
)
def test_an_unknown_agent_is_not_found(url: str, method: str, path: str) -> None:
    answer = ask(url, method, f"/v1/agents/nobody{path}", {} if method == "POST" else None)
    assert (answer.status, answer.kind) == (404, "unknown-agent")


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


def test_a_situation_that_the_agent_cannot_use_is_refused(url: str) -> None:
    created = {"name": "two", "model": "linear-bandit", "settings": {"arms": 2, "features": 2}}
    ask(url, "POST", "/v1/agents", created)
    answers = [
        ask(url, "POST", "/v1/agents/two/act", {"situation": [1.0]}),
        ask(url, "POST", "/v1/agents/two/act", {"situation": "here"}),
        ask(url, "GET", "/v1/agents/two/probabilities?situation=%5B1%5D"),
    ]
    assert {one.status for one in answers} == {422}
    answer = ask(url, "GET", "/v1/agents/two/probabilities?situation=%5B1")
    assert (answer.status, answer.kind) == (400, "bad-request")


def test_a_decision_is_explained(url: str) -> None:
    n = decided(url)
    result = ask(url, "GET", f"/v1/agents/shop/decisions/{n}").json
    assert result["decision"]["id"] == n
    assert result["mode"].startswith("MeanRewards(")
    assert result["answered"] is False
    assert set(result["posterior"]) == {"red", "blue"}


def test_the_log_is_sent_as_lines_with_checksums(url: str) -> None:
    decided(url)
    answer = ask(url, "GET", "/v1/agents/shop/log")
    assert answer.headers["content-type"].startswith("application/jsonl")
    events = [from_line(line) for line in answer.body.decode().splitlines()]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    rest = ask(url, "GET", f"/v1/agents/shop/log?start={len(events)}").body.decode()
    assert [from_line(line) for line in rest.splitlines()] == events[-1:]
    assert ask(url, "GET", f"/v1/agents/shop/log?start={len(events) + 1}").body == b""
    assert ask(url, "GET", "/v1/agents/shop/log?start=0").kind == "bad-request"


def test_unknown_paths_and_methods_are_problems_too(url: str) -> None:
    assert ask(url, "GET", "/v1/nothing").kind == "not-found"
    wrong = ask(url, "DELETE", "/v1/agents/shop")
    assert (wrong.status, wrong.kind) == (405, "method-not-allowed")
    assert "GET" in wrong.headers["allow"]


def test_the_pages_load_nothing_from_other_sites(url: str) -> None:
    for path in ("/", "/docs"):
        page = ask(url, "GET", path)
        text = page.body.decode().replace("http://www.w3.org/", "").replace(url, "")
        assert page.status == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "://" not in text


def test_the_documentation_names_every_path_body_and_problem(url: str) -> None:
    document, page = ask(url, "GET", "/openapi.json").json, ask(url, "GET", "/docs").body.decode()
    wanted = [*document["paths"], *document["components"]["schemas"], *ERROR_KINDS]
    assert [name for name in wanted if name not in page] == []


def test_stored_agents_are_served_and_unknown_models_are_reported(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    local = named_model("mine", version=1, build=lambda: BernoulliBandit(2).agent())
    for name, model in (("theirs", local), ("ours", GaussianBandit(2))):
        with open_agent(store, name, model) as agent:
            agent.act()
    with Server(store, port=0) as server:
        assert ask(server.url, "GET", "/v1/agents/ours").json["decisions"] == 1
        answer = ask(server.url, "GET", "/v1/agents/theirs")
        assert (answer.status, answer.kind) == (409, "model-mismatch")
    with Server(store, port=0, models={"mine": local}) as server:
        assert ask(server.url, "GET", "/v1/agents/theirs").json["decisions"] == 1


def test_the_belief_survives_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    bandit = LinearBandit(["red", "blue"], features=2)
    posteriors = []
    for _ in range(2):
        with Server(store, port=0) as server, Client(server.url) as client:
            shop = client.create("shop", bandit, seed=1)
            posteriors.append(shop.posterior())
            shop.observe(shop.act([1.0, 0.5], key="first"), 0.25)
            posteriors.append(shop.posterior())
    assert posteriors[1] == posteriors[2] == posteriors[3] != posteriors[0]


def test_every_problem_has_a_title_and_a_next_step() -> None:
    assert all(kind.title and kind.next for kind in ERROR_KINDS.values())


@pytest.mark.parametrize("body", [b'{"situation": "\xff\xfe"}', b'{"sit\xffuation": 1}', b"\xff"])
def test_a_body_that_is_not_utf_8_is_a_bad_request(
    url: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(url, "POST", "/v1/agents/shop%0AERROR/act", body)
    assert (answer.status, answer.kind) == (400, "bad-request")
    assert "not UTF-8 at byte" in answer.json["detail"]
    assert not caplog.records


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

"""Common mistakes of new users get helpful errors that reveal no secrets."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.serve.raw import ask

from bayescontrol import BernoulliBandit
from bayescontrol.cli.serve import demo, serve
from bayescontrol.durable import named_model, open_agent
from bayescontrol.errors import BadSituation, BayesControlError, ModelMismatch
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve import Client
from bayescontrol.serve.demo import running_demo
from bayescontrol.serve.problems import BadSettings, InvalidKey, Unavailable
from bayescontrol.serve.server import CannotListen, Server
from bayescontrol.serve.tokens import InvalidToken, Tokens

SECRET = "a-secret-that-is-long-enough"
NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize("tokens", [SECRET, [SECRET], 7])
def test_tokens_of_another_type_are_refused_and_not_shown(tokens: Any) -> None:
    with pytest.raises(InvalidToken, match="give Tokens") as caught:
        Server("sqlite:///:memory:", port=0, tokens=tokens)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("tokens", [SECRET, 7, [7]])
def test_tokens_must_be_a_list_of_strings(tokens: Any) -> None:
    with pytest.raises(InvalidToken):
        Tokens(tokens)


@pytest.mark.parametrize("port", [-1, 99_999, "80", True])
def test_an_invalid_port_is_refused(port: Any) -> None:
    with pytest.raises(CannotListen, match="65535"):
        Server("sqlite:///:memory:", port=port)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (serve, ["sqlite:///:memory:", "--port", "99999"]),
        (serve, ["sqlite:///:memory:", "--rate", "nan"]),
        (serve, ["sqlite:///:memory:", "--deadline", "nan"]),
        (demo, ["--port", "-1"]),
        (demo, ["--rate", "-1"]),
        (demo, ["--rate", "0"]),
        (demo, ["--rate", "nan"]),
        (demo, ["--seed", "-1"]),
        (demo, ["--seconds", "nan"]),
        (demo, ["--seconds", "inf"]),
    ],
)
def test_a_number_out_of_range_ends_the_command_with_2(command: Any, line: list[str]) -> None:
    result = CliRunner().invoke(command, line)
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize("wrong", [{"rate": -1.0}, {"rate": float("nan")}, {"seed": -1}])
def test_the_demo_function_refuses_invalid_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rate|seed"), running_demo(1.0, **wrong):
        pass


class Clock:
    """A clock that advances only in `sleep`."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_server_that_is_down_is_unavailable_after_five_seconds_and_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, clock = Client(NOBODY), Clock()
    monkeypatch.setattr("bayescontrol.serve.client.time", clock)
    assert not client.ready()
    with pytest.raises(Unavailable, match="is the server running") as caught:
        client.agent("shop").act()
    assert isinstance(caught.value, BayesControlError)
    assert isinstance(caught.value, ConnectionError)
    assert 3.0 < clock.now <= 5.0  # the last pause, of up to two seconds, is not started
    with pytest.raises(Unavailable):
        next(client.agent("shop").log())


def test_a_token_or_key_that_is_invalid_in_a_header_is_refused_and_not_shown() -> None:
    for wrong in (f"{SECRET}\n", f"{SECRET}\x00", f"{SECRET}é", 7):
        with pytest.raises(InvalidToken) as token:
            Client(NOBODY, wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidKey) as key:
            Client(NOBODY).agent("shop").act(key=wrong)  # type: ignore[arg-type]
        assert SECRET not in str(token.value) + str(key.value)


@pytest.mark.parametrize("url", [None, 7, b"http://a", "http://a:99999", "http://[a", "a", ""])
def test_an_invalid_address_is_refused(url: Any) -> None:
    with pytest.raises(BayesControlError, match="write http://host:port"):
        Client(url)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_timeout_must_be_a_positive_number(timeout: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        Client(NOBODY, timeout=timeout)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"legs": 2}, "has no setting 'legs': it has arms, prior, schedule"),
        ({}, "the setting 'arms' is missing"),
        ({"arms": None}, "arms=None"),
        ({"arms": 2, "prior": "x"}, "prior 'x'"),
        ({"arms": 2, "schedule": ["never"]}, "its name and its parameters"),
        ({"arms": 2, "schedule": None}, "its name and its parameters"),
    ],
)
def test_errors_about_settings_use_the_names_of_the_caller(
    settings: dict[str, Any], message: str
) -> None:
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        with pytest.raises(BadSettings) as caught:
            client.create("shop", "bernoulli-bandit", settings)
        assert message in str(caught.value)
        assert not any(word in str(caught.value) for word in ("__init__", "NoneType", "argument"))
        assert client.agents() == []


def test_an_agent_whose_model_is_missing_is_named_with_a_hint(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'shop.db'}"
    mine = named_model("mine", version=1, build=BernoulliBandit(2).agent)
    open_agent(store, "shop", mine).close()
    for tokens, named in ((None, ["shop"]), (Tokens([SECRET]), [])):
        with (
            Server(store, port=0, tokens=tokens) as server,
            Client(server.url, SECRET) as client,
        ):
            shown = client.call("GET", "/v1/health/ready")
            assert (shown["failed"], shown["unopened"]) == (1, named)
            with pytest.raises(
                ModelMismatch, match=r"'shop' has the model 'mine'.*--model FILE.py"
            ):
                client.agent("shop").act()


def test_a_situation_for_an_agent_without_contexts_is_refused() -> None:
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        shop = client.create("shop", BernoulliBandit(2), seed=0)
        with pytest.raises(BadSituation, match=r"situation=.*a linear-bandit"):
            shop.act([1.0, 2.0])
        answer = ask(server.url, "POST", "/v1/agents/shop/act", {"situation": [1.0, 2.0]})
        assert (answer.status, answer.kind) == (422, "bad-situation")
        assert shop.info()["decisions"] == 0


def test_a_situation_for_an_agent_that_tracks_its_own_is_refused() -> None:
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        robot = client.create("robot", GibbsMDP(["left", "right"], start="home"), seed=0)
        with pytest.raises(BadSituation, match=r"situation='kitchen'.*now 'home'"):
            robot.act("kitchen")
        with pytest.raises(BadSituation):
            robot.probabilities("kitchen")
        assert robot.info()["decisions"] == 0


def test_a_situation_that_cannot_be_stored_is_a_bad_situation() -> None:
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        client.create("shop", BernoulliBandit(2), seed=0)
        for method, path, body in (
            ("POST", "act", {"situation": {"a": 1}}),
            ("GET", "probabilities?situation=%7B%22a%22:1%7D", None),
        ):
            answer = ask(server.url, method, f"/v1/agents/shop/{path}", body)
            assert (answer.status, answer.kind) == (422, "bad-situation")


def test_a_port_in_use_is_reported_once() -> None:
    with Server("sqlite:///:memory:", port=0) as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(CannotListen, match=r"in use; choose another") as caught:
            Server("sqlite:///:memory:", port=port)
        assert str(caught.value).count("127.0.0.1") == 1


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": "2", "observation": 1, "observation": 0}',
        b'{"id": "2", "observation": {"float": "1", "float": "0"}}',
        b'{"id": "2", "observation": 1, "observ\\u0061tion": 0}',
    ],
)
def test_a_duplicate_key_in_an_object_is_refused(body: bytes) -> None:
    with Server("sqlite:///:memory:", port=0) as server, Client(server.url) as client:
        shop = client.create("shop", BernoulliBandit(2), seed=0)
        assert shop.act().id == "2"
        answer = ask(server.url, "POST", "/v1/agents/shop/observe", body)
        assert (answer.status, answer.kind) == (400, "bad-request")
        assert "twice" in answer.json["detail"]
        assert shop.info()["observations"] == 0

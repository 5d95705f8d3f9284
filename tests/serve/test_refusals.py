"""Bad input is refused with a status, a kind and a helpful message, and changes nothing."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from math import inf, nan
from typing import Any

import pytest
from click.testing import CliRunner
from tests.serve.raw import ask, number

from bayescontrol import BernoulliBandit, LinearBandit
from bayescontrol.cli.serve import demo, serve
from bayescontrol.durable import named_model
from bayescontrol.errors import BayesControlError
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve import Client, InvalidAddress, InvalidKey, InvalidToken, Limits
from bayescontrol.serve.access import PublicBind, Tokens
from bayescontrol.serve.demo import running_demo
from bayescontrol.serve.server import CannotListen, Server

SECRET = "a-secret-that-is-long-enough"
NOBODY = "http://127.0.0.1:9"
MEMORY = "sqlite:///:memory:"
SHOP = {"name": "shop", "model": "bernoulli-bandit", "settings": {"arms": ["red", "blue"]}}
HUGE = {"array": ["x"], "shape": [1], "dtype": "<U999999999"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    local = named_model("mine", version=3, build=lambda: BernoulliBandit(2).agent())
    with Server(MEMORY, port=0, models={"mine": local}) as server, Client(server.url) as client:
        shop = client.create("shop", BernoulliBandit(["red", "blue"]), seed=1)
        assert number(shop.act().id) == 2
        linear = client.create("linear", LinearBandit(2, features=2), seed=1)
        linear.act([1.0, 0.0], key="k")
        client.create("robot", GibbsMDP(["left", "right"], start="home"), seed=0)
        yield server.url


def create(**other: Any) -> tuple[str, str, Any]:
    return "POST", "", SHOP | {"name": "new"} | other


def settings(**wrong: Any) -> tuple[str, str, Any]:
    return create(settings=wrong)


def observe(o: Any, id: str = "TAG-2") -> tuple[str, str, Any]:
    return "POST", "/shop/observe", {"id": id, "observation": o}


def act(agent: str, x: Any = None) -> tuple[str, str, Any]:
    return "POST", f"/{agent}/act", {"situation": x}


KEYED = {"Idempotency-Key": "k"}
#: Method, path and body; further headers; the kind; what the detail must contain.
REFUSALS: list[tuple[tuple[str, str, Any], dict[str, str], str, str]] = [
    (create(model="no-such-bandit"), {}, "unknown-model", "give one of"),
    (create(model="mine", settings={"arms": 3}), {}, "bad-settings", "takes no settings"),
    (settings(legs=2), {}, "bad-settings", "has no setting 'legs': it has arms, prior, schedule"),
    (settings(), {}, "bad-settings", "the setting 'arms' is missing"),
    (settings(arms=None), {}, "bad-settings", "arms=None"),
    (settings(arms=0), {}, "bad-settings", "arms"),
    (settings(arms=10**9), {}, "bad-settings", "over HTTP"),
    (settings(arms={"no": "tag"}), {}, "bad-settings", "arms"),
    (settings(arms=2, prior="x"), {}, "bad-settings", "prior='x'"),
    (settings(arms=2, schedule=["never"]), {}, "bad-settings", "its name and its parameters"),
    (settings(arms=2, schedule=None), {}, "bad-settings", "its name and its parameters"),
    (
        create(name="shop", settings={"arms": ["red", "green"]}),
        {},
        "model-mismatch",
        "another model",
    ),
    (create(name="shop", model="gaussian-bandit"), {}, "model-mismatch", "another model"),
    (create(name="shop", seed=2), {}, "model-mismatch", "a seed other than 2"),
    (("POST", "", b"{}"), {"Content-Type": "text/plain"}, "unsupported-media-type", "text/plain"),
    (("POST", "", b"{}"), {"Content-Type": ""}, "unsupported-media-type", "none"),
    (("POST", "", b"{}"), {"Content-Type": "Application/JSON; charset=utf-8"}, "bad-request", ""),
    *[
        (("POST", "", body), {}, "bad-request", "")
        for body in (b"{", b"[]", b"null", b'{"name": "x"}', b"[" * 40_000)
    ],
    (create(name="a/b"), {}, "bad-request", "name"),
    *[
        (("POST", "/shop%0AERROR/act", body), {}, "bad-request", "not UTF-8 at byte")
        for body in (b'{"situation": "\xff\xfe"}', b'{"sit\xffuation": 1}', b"\xff")
    ],
    *[
        (("POST", "/shop/observe", body), {}, "bad-request", "twice")
        for body in (
            b'{"id": "TAG-2", "observation": 1, "observation": 0}',
            b'{"id": "TAG-2", "observation": {"float": "1", "float": "0"}}',
            b'{"id": "TAG-2", "observation": 1, "observ\\u0061tion": 0}',
        )
    ],
    *[
        (act("shop"), {"Idempotency-Key": key}, "bad-request", "")
        for key in ("", "x" * 201, "a b", "caf\u00e9")
    ],
    *[
        (observe(wrong), {}, "bad-evidence", "")
        for wrong in ("red", 2, None, [1], {"a": 1}, {"tuple": [1]}, {"float": "nan"}, HUGE)
    ],
    *[
        (request, {}, "unknown-decision", "")
        for id in ("TAG-999999", "one", "TAG-1", "TAG-0", "TAG--1", "TAG-02", "2", "aaaaaaaaaa-2")
        for request in (observe(1, id), ("GET", f"/shop/decisions/{id}", None))
    ],
    *[
        (("GET", f"/nobody{path}", None), {}, "unknown-agent", "nobody")
        for path in ("", "/posterior", "/log", "/decisions/2")
    ],
    (act("nobody"), {}, "unknown-agent", "nobody"),
    (act("linear", [0.0, 1.0]), KEYED, "conflicting-key", ""),
    (act("linear", [1.0]), {}, "bad-situation", ""),
    (act("linear", "here"), {}, "bad-situation", ""),
    (act("linear"), {}, "bad-situation", "this agent needs a situation: send `situation`"),
    (("GET", "/linear/probabilities?situation=%5B1%5D", None), {}, "bad-situation", ""),
    (("GET", "/linear/probabilities?situation=%5B1", None), {}, "bad-request", "situation"),
    (("GET", "/shop/probabilities?among=%22red%22", None), {}, "bad-request", "`array`"),
    (("GET", "/shop/probabilities?among=%5B%22pink%22%5D", None), {}, "unknown-arm", "'pink'"),
    (
        ("GET", "/shop/probabilities?amnog=%5B%5D", None),
        {},
        "bad-request",
        "unknown query parameter 'amnog': this path has situation, among",
    ),
    (("GET", "/shop/arms?state=active", None), {}, "bad-request", "'state': this path has none"),
    (("GET", "/shop/log?start=1&start=2", None), {}, "bad-request", "'start' occurs twice"),
    *[
        (request, {}, "unknown-decision", "no decision 'TAG-99' in log 'shop'")
        for request in (observe(1, "TAG-99"), ("GET", "/shop/decisions/TAG-99", None))
    ],
    (("POST", "/shop/act?key=1", {}), {}, "bad-request", "unknown query parameter 'key'"),
    (("GET", "/shop/probabilities?situation=%7B%22a%22:1%7D", None), {}, "bad-situation", ""),
    (act("shop", {"a": 1}), {}, "bad-situation", "cannot be stored"),
    (act("shop", [1.0, 2.0]), {}, "bad-situation", "a linear-bandit"),
    (act("robot", "kitchen"), {}, "bad-situation", "now 'home'"),
    (("GET", "/robot/probabilities?situation=%22kitchen%22", None), {}, "bad-situation", ""),
    (("GET", "/shop/log?start=0", None), {}, "bad-request", "start"),
    (("GET", "/shop/nothing", None), {}, "not-found", ""),
    (("DELETE", "/shop", None), {}, "method-not-allowed", ""),
    *[
        (act("shop"), {"Origin": origin}, "forbidden-origin", origin)
        for origin in ("http://evil.example", "null", "https://127.0.0.1")
    ],
    *[
        (act("shop"), {"Host": host}, "wrong-host", host)
        for host in ("shop.example", "127.0.0.1.shop.example:80", "", "[::2]")
    ],
]


@pytest.mark.parametrize(("request_", "headers", "kind", "detail"), REFUSALS)
def test_a_bad_request_is_refused_and_changes_nothing(
    url: str, request_: tuple[str, str, Any], headers: dict[str, str], kind: str, detail: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def state() -> list[Any]:
        paths = ("", "/shop", "/shop/posterior", "/linear", "/robot")
        return [ask(url, "GET", f"/v1/agents{path}").json for path in paths]

    before = state()
    method, path, body = request_
    page = ask(url, "GET", "/v1/agents/shop/decisions?limit=1").json
    tag = page["decisions"][0]["decision"]["id"].rpartition("-")[0]
    raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    body, path = raw and raw.replace(b"TAG", tag.encode()), path.replace("TAG", tag)
    answer = ask(url, method, f"/v1/agents{path}", body, headers)
    assert answer.kind == kind
    text = answer.json["detail"]
    assert detail.replace("TAG", tag) in text
    assert not any(word in text for word in ("__init__", "NoneType", "argument"))
    assert state() == before
    assert not caplog.records
    if kind == "method-not-allowed":
        assert "GET" in answer.headers["allow"]


# -- the server, the client and the commands -------------------------------------------------------


def start(**settings: Any) -> Server:
    return Server(MEMORY, **({"port": 0} | settings))


def keyed(key: Any) -> None:
    Client(NOBODY).agent("shop").act(key=key)


def run_demo(**wrong: Any) -> None:
    with running_demo(1.0, **wrong):
        pass


bind: Any = partial  # the arguments are wrong on purpose
UNSENDABLE = (f"{SECRET}\n", f"{SECRET}\x00", f"{SECRET}é", 7)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *[(bind(start, tokens=t), InvalidToken, "give Tokens") for t in (SECRET, [SECRET], 7)],
        *[(bind(Tokens, t), InvalidToken, "token") for t in (SECRET, 7, [7])],
        *[
            (bind(Tokens, [t]), InvalidToken, "token")
            for t in ("short", "with a space in the middle", "caf\u00e9" * 10, "\x07" * 20)
        ],
        *[(bind(start, port=p), CannotListen, "65535") for p in (-1, 99_999, "80", True)],
        *[
            (bind(start, host=h), PublicBind, "--token-file")
            for h in ("0.0.0.0", "::", "192.168.1.7", "shop.example", "")
        ],
        *[(bind(Client, NOBODY, t), InvalidToken, "visible") for t in UNSENDABLE],
        *[(bind(keyed, k), InvalidKey, "visible") for k in (*UNSENDABLE, "a space")],
        *[
            (bind(Client, u), InvalidAddress, "write http://host:port")
            for u in (None, 7, b"http://a", "http://a:99999", "http://[a", "a", "", "ftp://x",
                      "http://", "http://x/?q=1", "127.0.0.1:8000")
        ],
        *[(bind(Client, NOBODY, timeout=t), ValueError, "positive") for t in (0.0, -1.0, nan)],
        *[
            (bind(Limits, **wrong), ValueError, "must be positive")
            for wrong in ({"body": 0}, {"rate": -1.0}, {"deadline": inf}, {"streams": 0})
        ],
        *[
            (bind(run_demo, **wrong), ValueError, "rate|seed")
            for wrong in ({"rate": -1.0}, {"rate": nan}, {"seed": -1})
        ],
    ],
)  # fmt: skip
def test_an_invalid_value_is_refused_and_no_secret_is_shown(
    call: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert SECRET not in str(caught.value)
    assert error is ValueError or isinstance(caught.value, BayesControlError)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        *[(serve, f"{MEMORY} {o}") for o in ("--port 99999", "--rate nan", "--deadline nan")],
        *[
            (demo, option)
            for option in ("--port -1", "--rate -1", "--rate 0", "--rate nan", "--seed -1",
                           "--seconds nan", "--seconds inf")
        ],
    ],
)  # fmt: skip
def test_a_number_out_of_range_ends_the_command_with_2(command: Any, line: str) -> None:
    result = CliRunner().invoke(command, line.split())
    assert result.exit_code == 2, result.output


def test_a_port_in_use_is_reported_once() -> None:
    with start() as server:
        with pytest.raises(CannotListen, match=r"in use; choose another") as caught:
            start(port=int(server.url.rpartition(":")[2]))
        assert str(caught.value).count("127.0.0.1") == 1

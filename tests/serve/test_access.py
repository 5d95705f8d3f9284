"""Tokens, their sources, and the hosts and origins that may send requests."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.limits import TIMEOUT
from tests.serve.raw import ask, memory

from bayescontrol import BernoulliBandit
from bayescontrol.serve import Client, Limits
from bayescontrol.serve.access import InvalidToken, PublicFile, Token, Tokens
from bayescontrol.serve.http_errors import Refused
from bayescontrol.serve.server import Server

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    tokens, limits = Tokens([TOKEN, TOKEN + "-two"]), Limits(failures=1_000.0)
    with memory(tokens=tokens, limits=limits) as server:
        yield server.url


@pytest.mark.parametrize("path", ["/v1/agents", "/v1/agents/shop", "/v1/metrics", "/events"])
@pytest.mark.parametrize(
    "given", [None, "Bearer guess", f"Basic {TOKEN}", TOKEN, "Bearer", f"Bearer {TOKEN}x"]
)
def test_without_a_valid_token_nothing_is_returned(url: str, path: str, given: str | None) -> None:
    answer = ask(url, "GET", path, headers={} if given is None else {"Authorization": given})
    assert (answer.status, answer.kind) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("token", [TOKEN, TOKEN + "-two"])
def test_each_token_gives_access(url: str, token: str) -> None:
    with Client(url, token) as client:
        assert client.create("shop", BernoulliBandit(2), seed=1).act().id


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/v1/health/live"])
def test_pages_without_agent_data_need_no_token(url: str, path: str) -> None:
    assert ask(url, "GET", path).status == 200
    with Client(url, "not-the-token-at-all") as client, pytest.raises(Refused, match="not valid"):
        client.agents()


def test_every_digest_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping early would reveal by timing which token matched, and how well."""
    compared: list[bytes] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append(a)
        return a == b

    monkeypatch.setattr("hmac.compare_digest", compare)
    tokens = Tokens([f"{TOKEN}-{i}" for i in range(5)])
    for given in (f"{TOKEN}-0", f"{TOKEN}-4", "guess"):
        compared.clear()
        tokens.caller(f"Bearer {given}".encode())
        assert len(compared) == 5


def test_tokens_come_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file, empty = tmp_path / "tokens", tmp_path / "empty"
    file.write_text(f"# of the shop\nshop write {TOKEN}\n\n  page  read {TOKEN}-two  \n")
    file.chmod(0o600)
    tokens = Tokens.found(file, {"BAYESCONTROL_TOKEN": TOKEN + "-three"})
    for end, caller in (
        ("", ("shop", "write")),
        ("-two", ("page", "read")),
        ("-three", ("environment", "write")),
    ):
        assert tokens.caller(f"Bearer {TOKEN}{end}".encode()) == caller
    assert not Tokens.found(None, {})
    file.chmod(0o644)
    with pytest.raises(PublicFile, match=r"other users can read .*: run chmod 600"):
        Tokens.found(file, {})
    empty.touch(0o600)
    for unusable in (empty, tmp_path / "missing"):
        with pytest.raises(InvalidToken):
            Tokens.found(unusable, {})


READ, WRITE = Token("page", "read", TOKEN), Token("shop", "write", TOKEN + "-two")
BAD_FILES = [
    TOKEN,
    f"shop {TOKEN}",
    f"shop write {TOKEN} more",
    f"shop admin {TOKEN}",
    "shop write short",
    f"sh/op write {TOKEN}",
    f"shop write {TOKEN}\npage read {TOKEN}",
    "# nothing",
]


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_bad_line_is_refused_without_showing_a_token(text: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text(text)
    with pytest.raises(InvalidToken) as caught:
        Tokens.found(file, {})
    assert TOKEN not in str(caught.value)


def test_a_token_does_not_show_its_secret() -> None:
    assert TOKEN not in repr([READ, WRITE])


def test_a_read_token_reads_everything_and_writes_nothing() -> None:
    with memory(tokens=Tokens([READ, WRITE])) as server, Client(server.url, TOKEN) as reader:
        with Client(server.url, TOKEN + "-two") as writer:
            shop = writer.create("shop", BernoulliBandit(2), seed=1)
            decision = shop.act()
        before = reader.agent("shop").info()
        for path, body in (
            ("/v1/agents", {"name": "new", "model": "bernoulli-bandit", "settings": {"arms": 2}}),
            ("/v1/agents/shop/act", {}),
            ("/v1/agents/shop/observe", {"id": decision.id, "observation": 1}),
            ("/v1/backups", None),
        ):
            answer = ask(server.url, "POST", path, body, {"Authorization": f"Bearer {TOKEN}"})
            assert (answer.status, answer.kind) == (403, "forbidden-role")
            assert "'page'" in answer.json["detail"]
        assert reader.agent("shop").info() == before
        assert reader.agents() == ["shop"]
        assert reader.agent("shop").explain(decision)["observation"] is None
        headers = {"Authorization": f"Bearer {TOKEN}"}
        metrics = ask(server.url, "GET", "/v1/metrics", headers=headers).body.decode()
    assert 'bayescontrol_token_requests_total{status="403",token="page"} 4.0' in metrics
    assert 'bayescontrol_token_requests_total{status="200",token="shop"} 1.0' in metrics


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_changed_token_file_is_read_again_and_a_bad_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, old, new = tmp_path / "tokens", TOKEN, f"{TOKEN}-new"

    def write(*lines: str) -> None:
        other = tmp_path / "other"
        other.touch(0o600)
        other.write_text("\n".join(lines))
        other.replace(file)

    def status(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return ask(server.url, "GET", "/v1/agents", headers=headers).status

    write(f"shop write {old}")
    tokens, limits = Tokens.found(file, {}), Limits(failures=1_000.0)
    with memory(tokens=tokens, limits=limits) as server:
        assert (status(old), status(new)) == (200, 401)
        write(f"shop write {old}", f"shop-2 write {new}")
        wait_until(lambda: status(new) == 200)
        assert status(old) == 200
        caplog.clear()
        write(f"shop write {new}", "a line that is invalid")
        wait_until(lambda: any("stay as they were" in r.message for r in caplog.records))
        assert (status(old), status(new), status("guess")) == (200, 200, 401)
        file.unlink()
        wait_until(lambda: sum("stay as they were" in r.message for r in caplog.records) == 2)
        assert (status(old), status(new), status("guess")) == (200, 200, 401)
        write(f"shop-2 write {new}")
        wait_until(lambda: status(old) == 401)
        assert status(new) == 200
    assert TOKEN not in caplog.text


def test_a_public_address_with_a_token_is_served() -> None:
    with Server("sqlite:///:memory:", host="0.0.0.0", port=0, tokens=Tokens([TOKEN])) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert ask(url, "GET", "/v1/health/live", headers={"Host": "shop.example"}).status == 200


def test_an_allowed_host_name_or_origin_is_served() -> None:
    with memory(allow_hosts=["Shop.example"]) as server:
        for host in ("shop.example", "shop.example:443", "localhost:1", "[::1]:1"):
            assert ask(server.url, "GET", "/v1/agents", headers={"Host": host}).status == 200
        assert ask(server.url, "GET", "/v1/agents", headers={"Origin": server.url}).status == 200

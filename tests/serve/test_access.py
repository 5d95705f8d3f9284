"""Tokens, their sources, and the hosts and origins that may send requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serve.raw import ask, memory

from bayescontrol import BernoulliBandit
from bayescontrol.serve import Client, Limits
from bayescontrol.serve.access import InvalidToken, Tokens
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
    file.write_text(f"# of the shop\n{TOKEN}\n\n  {TOKEN}-two  \n")
    file.chmod(0o600)
    tokens = Tokens.found(file, {"BAYESCONTROL_TOKEN": TOKEN + "-three"})
    for end in ("", "-two", "-three"):
        assert tokens.caller(f"Bearer {TOKEN}{end}".encode()) is not None
    assert not Tokens.found(None, {})
    file.chmod(0o644)
    with pytest.warns(UserWarning, match="other users can read .*: chmod 600"):
        Tokens.found(file, {})
    empty.touch(0o600)
    for unusable in (empty, tmp_path / "missing"):
        with pytest.raises(InvalidToken):
            Tokens.found(unusable, {})


def test_a_public_address_with_a_token_is_served() -> None:
    with Server("sqlite:///:memory:", host="0.0.0.0", port=0, tokens=Tokens([TOKEN])) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert ask(url, "GET", "/v1/health/live", headers={"Host": "shop.example"}).status == 200


def test_an_allowed_host_name_or_origin_is_served() -> None:
    with memory(allow_hosts=["Shop.example"]) as server:
        for host in ("shop.example", "shop.example:443", "localhost:1", "[::1]:1"):
            assert ask(server.url, "GET", "/v1/agents", headers={"Host": host}).status == 200
        assert ask(server.url, "GET", "/v1/agents", headers={"Origin": server.url}).status == 200

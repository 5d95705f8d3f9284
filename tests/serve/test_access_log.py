"""The access log, and the ids of requests in answers, problems and logs."""

import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.limits import TIMEOUT
from tests.serve.paused import paused
from tests.serve.process import served
from tests.serve.raw import ask, memory

from bayescontrol.errors import Unwritable
from bayescontrol.serve import Token, Tokens
from bayescontrol.serve.access import AccessLog

TOKEN = "a-token-that-nobody-guesses"
SECRET = "a-context-that-nobody-logs"
SHOP = {"name": "shop", "model": "bernoulli-bandit", "settings": {"arms": ["red", "blue"]}}


def entries(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def wait_for(read: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + TIMEOUT
    while not (found := read()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_each_request_is_a_line_without_bodies_queries_and_tokens(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    tokens = Tokens([Token("shop", "write", TOKEN)])
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Request-Id": "visit.81"}
    with memory(tokens=tokens, access_log=file) as server:
        ask(server.url, "POST", "/v1/agents", SHOP, headers)
        act = ask(server.url, "POST", "/v1/agents/shop/act", {}, headers)
        path = f"/v1/agents/shop/probabilities?situation=%22{SECRET}%22"
        ask(server.url, "GET", path, headers=headers)
        ask(server.url, "GET", "/v1/agents", headers={"Authorization": "Bearer guess"})
        ask(server.url, "GET", "/v1/nothing%0A%22", headers=headers)
        stream = ask(server.url, "GET", "/v1/agents/shop/log", headers=headers)
    created, acted, refused, stranger, missing, log = entries(file)
    for entry in (created, acted, refused, missing, log):
        assert (entry["token"], entry["id"]) == ("shop", "visit.81")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", acted["time"])
    assert created["route"] == "/v1/agents"
    assert created["agent"] is None
    assert (acted["method"], acted["status"], acted["agent"]) == ("POST", 200, "shop")
    assert acted["route"] == "/v1/agents/{name}/act"
    assert (acted["path"], acted["address"]) == ("/v1/agents/shop/act", "127.0.0.1")
    assert acted["bytes"] == len(act.body)
    assert 0.0 < acted["seconds"] < TIMEOUT
    assert (refused["status"], refused["agent"]) == (422, "shop")
    assert (stranger["status"], stranger["token"]) == (401, None)
    assert (missing["status"], missing["route"]) == (404, None)
    assert log["bytes"] == len(stream.body)
    assert file.stat().st_mode & 0o777 == 0o600
    for secret in (TOKEN, SECRET, "guess"):
        assert secret not in file.read_text()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with memory() as server:
        ask(server.url, "POST", "/v1/agents", SHOP)
        yield server.url


@pytest.mark.parametrize("path", ["/v1/agents/shop/act", "/v1/agents", "/v1/nothing"])
@pytest.mark.parametrize("given", ["a", "A-1._z" * 10, "", "x" * 65, "two words", "a\u00e9"])
def test_a_valid_request_id_is_returned_and_another_is_replaced(
    url: str, path: str, given: str
) -> None:
    acts = path.endswith("act")
    headers = {"X-Request-Id": given}
    answer = ask(url, "POST" if acts else "GET", path, {} if acts else None, headers)
    id_ = answer.headers["x-request-id"]
    is_valid = re.fullmatch(r"[A-Za-z0-9._-]{1,64}", given) is not None
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", id_)
    assert (id_ == given) == is_valid
    if answer.status >= 400:
        assert answer.json["request_id"] == id_


def test_new_ids_differ(url: str) -> None:
    ids = {ask(url, "GET", "/v1/agents").headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20


def test_an_internal_error_is_logged_with_the_id_of_its_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise AssertionError

    with memory(models=paused(fail)) as server:
        ask(server.url, "POST", "/v1/agents", {"name": "shop", "model": "paused"})
        headers = {"X-Request-Id": "the-id-of-it"}
        answer = ask(server.url, "POST", "/v1/agents/shop/act", {}, headers)
    assert answer.kind == "internal"
    assert answer.json["request_id"] == "the-id-of-it"
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert any("[the-id-of-it]" in message for message in errors)


def test_the_log_may_be_renamed_at_any_time(tmp_path: Path) -> None:
    file, old = tmp_path / "access.log", tmp_path / "access.log.1"
    with memory(access_log=file) as server:
        ask(server.url, "GET", "/v1/health/live")
        wait_for(lambda: entries(file))
        file.rename(old)
        ask(server.url, "GET", "/v1/health/ready")
        wait_for(lambda: file.exists() and entries(file))
        ask(server.url, "GET", "/docs")  # another write of the same file
    assert [entry["path"] for entry in entries(old)] == ["/v1/health/live"]
    assert [entry["path"] for entry in entries(file)] == ["/v1/health/ready", "/docs"]


def test_the_log_can_be_standard_output() -> None:
    with served("sqlite:///:memory:", "--port", "0", "--access-log", "-") as (process, url):
        ask(url, "GET", "/v1/health/live")
        process.terminate()
        assert process.wait(TIMEOUT) == 0
        assert process.stdout is not None
        (line,) = process.stdout.read().splitlines()
    assert json.loads(line)["path"] == "/v1/health/live"


def test_a_log_that_cannot_be_written_is_reported_and_does_not_stop_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Unwritable, match="--access-log"):
        memory(access_log=tmp_path / "no" / "folder")
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("the system has no /dev/full")
    log = AccessLog(full)
    for _ in range(3):
        log.add({"method": "GET", "path": "/"}, 0.0)
    log.write()
    log.add({"method": "GET", "path": "/"}, 0.0)
    log.write()
    assert log.lost == 4
    assert sum("cannot write the access log" in r.message for r in caplog.records) == 1

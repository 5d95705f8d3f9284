"""Requests that are too large, too fast or too slow get 413, 429, 503 or 408, never a 500."""

import asyncio
import json
import re
import select
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.concurrency import join, start, wait_until
from tests.limits import TIMEOUT
from tests.serve.paused import Pause
from tests.serve.raw import Raw, ask, connected, head, memory, read_until_closed

from bayescontrol import BernoulliBandit
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.serve import Client, Refused
from bayescontrol.serve.access import Limits, Quota, RateLimiter, Tokens
from bayescontrol.serve.middleware import _Deadlines, require_few_values

TOKENS = [f"token-of-caller-number-{i}" for i in range(2)]
TWO = Tokens(TOKENS)
SHOP = {"name": "shop", "model": "bernoulli-bandit", "settings": {"arms": 2}}
ME, OTHER = ({"Authorization": f"Bearer {token}"} for token in TOKENS)


def test_a_body_that_is_too_large_is_refused_with_and_without_a_declared_length() -> None:
    path = "/v1/agents/shop/act"
    with memory(limits=Limits(body=1000)) as server:
        answer = ask(server.url, "POST", path, {"situation": "x" * 1000})
        assert (answer.status, answer.kind) == (413, "too-large")
        chunked = head(path, Connection="close", Transfer_Encoding="chunked")
        sent = chunked + b"400\r\n" + b" " * 1024 + b"\r\n0\r\n\r\n"
        assert read_until_closed(server.url, sent).startswith(b"HTTP/1.1 413")
        assert ask(server.url, "POST", path, {}).kind == "unknown-agent"


def test_a_rate_limited_caller_gets_a_retry_after() -> None:
    with memory(limits=Limits(rate=5.0), tokens=TWO) as server:
        answers = [ask(server.url, "GET", "/v1/agents", headers=ME) for _ in range(12)]
        refused = [one for one in answers if one.status == 429]
        assert len(refused) >= 4
        assert {one.kind for one in refused} == {"too-many-requests"}
        assert all(int(one.headers["retry-after"]) >= 1 for one in refused)
        assert ask(server.url, "GET", "/v1/agents", headers=OTHER).status == 200
        assert ask(server.url, "GET", "/v1/health/live", headers=ME).status == 200
        with Client(server.url, TOKENS[0]) as client:
            assert client.agents() == []  # it waits and retries


def test_requests_beyond_the_concurrency_limit_are_refused_and_none_fails() -> None:
    pause = Pause()
    limits = Limits(concurrency=4, deadline=TIMEOUT)
    with memory(limits=limits, models=pause.models) as server:
        ask(server.url, "POST", "/v1/agents", {"name": "shop", "model": "paused"})

        def visit(i: int) -> Raw:
            key = {"Idempotency-Key": f"k{i}"}
            answer = ask(server.url, "POST", "/v1/agents/shop/act", {}, key)
            if answer.status == 503:
                pause.release()  # one was refused: the others may continue
            return answer

        with ThreadPoolExecutor(24) as pool, pause.hold():
            answers = list(pool.map(visit, range(72)))
        refused = [one for one in answers if one.status == 503]
        assert refused
        assert {one.kind for one in refused} == {"overloaded"}
        assert all(int(one.headers["retry-after"]) >= 1 for one in refused)
        # 409: an observation is due before the next act
        assert {one.status for one in answers} <= {200, 409, 503}
        decided = ask(server.url, "GET", "/v1/agents/shop").json["decisions"]
        assert decided == 1  # all accepted requests share the one that is due


def test_a_timeout_is_a_503_and_may_be_retried() -> None:
    pause = Pause()
    with memory(limits=Limits(deadline=0.3), models=pause.models) as server:

        def retry(path: str, body: Any) -> Raw:
            """Retry until it succeeds, more than once on a slow machine."""
            for _ in range(100):
                answer = ask(server.url, "POST", path, body, {"Idempotency-Key": "k"})
                if answer.status < 300:
                    return answer
                assert (answer.status, answer.kind) == (503, "deadline")
            raise AssertionError("it always timed out")

        retry("/v1/agents", {"name": "shop", "model": "paused"})
        with pause.hold():
            answer = ask(server.url, "POST", "/v1/agents/shop/act", {}, {"Idempotency-Key": "k"})
            assert (answer.status, answer.kind) == (503, "deadline")
            for path in ("posterior", "probabilities"):  # the belief cannot be read either
                answer = ask(server.url, "GET", f"/v1/agents/shop/{path}")
                assert (answer.status, answer.kind) == (503, "deadline")
                assert int(answer.headers["retry-after"]) >= 1
        assert (
            retry("/v1/agents/shop/act", {}).json["basis"] == 1
        )  # the same decision, now complete
        with Client(server.url) as client:
            assert client.agent("shop").info()["decisions"] == 1


def test_the_deadline_of_each_request_counts_from_its_own_start() -> None:
    """One timer serves all requests, also those that end early or make progress."""
    deadlines, now = _Deadlines(0.3), time.monotonic

    async def request(start: float, takes: float, extended_at: float = 0.0) -> tuple[bool, float]:
        await asyncio.sleep(start)
        began, task = now(), deadlines.start()
        try:
            await asyncio.sleep(extended_at)
            deadlines.extend(task)
            await asyncio.sleep(takes - extended_at)
        except asyncio.CancelledError:
            assert deadlines.has_cancelled(task)
            assert not task.cancelling()
            return False, now() - began
        finally:
            deadlines.stop(task)
        return True, now() - began

    async def requests() -> list[tuple[bool, float]]:
        cases = (0.0, 60.0), (0.05, 0.1), (0.1, 60.0), (0.15, 60.0, 0.2), (0.9, 60.0)
        return await asyncio.gather(*(request(*case) for case in cases))

    ends = asyncio.run(requests())
    assert [in_time for in_time, _ in ends] == [False, True, False, False, False]
    for (_, seconds), least in zip(ends, (0.3, 0.1, 0.3, 0.5, 0.3), strict=True):
        assert seconds >= least - 0.02


def test_a_cancellation_by_another_task_is_no_timeout() -> None:
    async def cancelled_twice() -> bool:
        deadlines, loop = _Deadlines(0.01), asyncio.get_running_loop()
        task = deadlines.start()
        loop.call_later(0.05, task.cancel)
        try:
            time.sleep(0.1)  # both times are over when the loop runs again
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            return deadlines.has_cancelled(task)
        return True

    assert not asyncio.run(cancelled_twice())


def test_a_slow_body_times_out_and_does_not_use_up_the_concurrency() -> None:
    sent = head(Content_Length=100) + b"{"
    with memory(limits=Limits(deadline=0.3)) as server:
        answered = read_until_closed(server.url, sent)
        assert answered.startswith(b"HTTP/1.1 408")
        assert b'"urn:bayescontrol:problem:timeout"' in answered
    with memory(limits=Limits(concurrency=4, deadline=60.0)) as server, ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connected(server.url)).sendall(sent)
        assert ask(server.url, "GET", "/v1/agents").status == 200


def test_the_number_of_agents_is_limited() -> None:
    with memory(limits=Limits(agents=2)) as server:
        created = {"model": "bernoulli-bandit", "settings": {"arms": 2}, "seed": 1}
        statuses = [
            ask(server.url, "POST", "/v1/agents", created | {"name": name}).status
            for name in ("a", "b", "a", "c")
        ]
        assert statuses == [201, 201, 200, 409]


def test_event_streams_have_a_separate_limit() -> None:
    limits = Limits(streams=1, concurrency=1)
    with memory(limits=limits) as server, connected(server.url) as listener:
        listener.sendall(head("/events", "GET"))
        assert listener.recv(4096).startswith(b"HTTP/1.1 200")
        answer = ask(server.url, "GET", "/events")
        assert (answer.status, answer.kind) == (503, "overloaded")
        assert ask(server.url, "GET", "/v1/agents").status == 200


def test_a_rate_limiter_admits_exactly_its_burst_and_its_rate() -> None:
    """Times are dyadic numbers, so that the arithmetic is exact."""
    rate, pause, seconds = 4.0, 1.0 / 64.0, 32
    now = 0.0
    limiter = RateLimiter(rate, lambda: now)
    admitted: list[float] = []
    for i in range(seconds * 64):
        now = i * pause
        with suppress(Refused):
            limiter.take("me")
            admitted.append(now)
    # The burst of one second at once, then one request every quarter of a second.
    quarters = [i / rate for i in range(1, int(seconds * rate))]
    assert admitted == [0.0, pause, 2 * pause, 3 * pause, *quarters]
    now += 1_000.0  # a long pause refills the burst, and no more than that
    for _ in range(4):
        limiter.take("me")
    with pytest.raises(Refused):
        limiter.take("me")
    limiter.take("another")


def test_a_slow_rate_limit_reports_how_long_to_wait() -> None:
    now = 0.0
    limiter = RateLimiter(0.125, lambda: now)
    limiter.take("me")
    for now, wait in ((0.0, "8"), (3.0, "5"), (7.0, "1"), (7.5, "1")):  # noqa: B007
        with pytest.raises(Refused) as caught:
            limiter.take("me")
        assert caught.value.headers == {"Retry-After": wait}
    now = 8.0
    limiter.take("me")


@pytest.mark.parametrize("rate", [None, 2.0])
def test_wrong_tokens_are_limited_by_address_and_right_ones_are_not(rate: float | None) -> None:
    token, limits = "a-token-that-nobody-guesses", Limits(rate=rate, failures=5.0)
    with memory(limits=limits, tokens=Tokens([token])) as server:
        wrong: list[dict[str, str]] = [{"Authorization": "Bearer guess"}, {}]
        answers = [ask(server.url, "GET", "/v1/agents", headers=wrong[i % 2]) for i in range(40)]
        assert answers[0].kind == "unauthorized"
        assert {one.kind for one in answers} == {"unauthorized", "too-many-requests"}
        assert all("retry-after" in one.headers for one in answers if one.status == 429)
        right = {"Authorization": f"Bearer {token}"}
        assert ask(server.url, "GET", "/v1/agents", headers=right).status == 200


def test_failed_attempts_are_logged_without_the_token_and_at_a_limited_rate(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = Limits(failures=1_000.0)
    tokens = Tokens(["a-token-that-nobody-guesses"])
    with memory(limits=limits, tokens=tokens) as server:
        headers = {"Authorization": "Bearer a-guess-of-mine"}
        path = "/v1/agents/%0AERROR:%20all%20is%20lost%1b[2J/act"
        with caplog.at_level("WARNING", "bayescontrol.serve"):
            for _ in range(30):
                assert ask(server.url, "GET", path, headers=headers).status == 401
            time.sleep(1.1)
            assert ask(server.url, "GET", "/v1/agents").status == 401
    lines = [one.getMessage() for one in caplog.records if "refused" in one.getMessage()]
    assert 11 <= len(lines) < 25
    first = r"GET '/v1/agents/\nERROR: all is lost\x1b[2J/act' from 127.0.0.1 refused: the token"
    assert re.fullmatch(rf"{re.escape(first)} is not valid \[[0-9a-f]+-\d+\]", lines[0])
    assert lines[-1].startswith("GET '/v1/agents' from 127.0.0.1 refused: the request has no token")
    assert "a-guess-of-mine" not in caplog.text
    more = sum(int(line.rpartition("(")[2].split()[0]) for line in lines if "more since" in line)
    assert len(lines) + more == 31


@pytest.mark.parametrize("sent", [b"", b'{"id": "2", "observa', b'{"id": "2", "observation": 1}'])
def test_a_client_that_disconnects_within_its_body_changes_nothing(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    refused = b'bayescontrol_problems_total{problem="bad-request"} 1.0'
    with memory() as server, Client(server.url) as client, caplog.at_level("INFO"):
        shop = client.create("shop", BernoulliBandit(2))
        shop.act()
        with connected(server.url) as connection:
            connection.sendall(head("/v1/agents/shop/observe", Content_Length=100) + sent)
            time.sleep(0.1)
            assert refused not in ask(server.url, "GET", "/v1/metrics").body
        wait_until(lambda: refused in ask(server.url, "GET", "/v1/metrics").body)
        counted = ask(server.url, "GET", "/v1/metrics").body
        assert shop.info()["observations"] == 0
    assert b'status="500"' not in counted
    assert b"internal" not in counted
    assert not [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]


# -- JSON ----------------------------------------------------------------------------------------


def nested(value: str, count: int) -> bytes:
    return b'{"situation": [%s]}' % ",".join([value] * count).encode()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (nested("[]", 300_000), "too-large"),
        (nested('{"":0}', 100_000), "too-large"),
        (nested("0", 500_000), "too-large"),
        (b'{"situation": ' + b"[" * 101 + b"]" * 101 + b"}", "bad-request"),  # too deep
        (nested('"[{,\\"[{,\\\\"', 10_000), "bad-situation"),  # brackets in strings do not count
        (nested("0.25", 45_000), "bad-situation"),  # within the limits, but of no use to a bandit
        (b'{"situation": ' + b"[" * 98 + b"]" * 98 + b"}", "bad-situation"),
        (b'{"situation": "' + b"[," * 500_000 + b'"}', "bad-situation"),
    ],
)
def test_json_with_too_many_values_or_levels_is_refused(body: bytes, kind: str) -> None:
    with memory() as server:
        ask(server.url, "POST", "/v1/agents", SHOP)
        assert ask(server.url, "POST", "/v1/agents/shop/act", body).kind == kind


def json_values(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """Some JSON, the number of its values and its depth."""
    leaves = st.none() | st.integers() | st.text('a[]{},:"\\ é\n', max_size=6)
    value = draw(
        st.recursive(
            leaves,
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(st.text('b[{,"\\', max_size=3), inner, max_size=4)
            ),
            max_leaves=20,
        )
    )

    def measure(one: Any) -> tuple[int, int]:
        inner = one if isinstance(one, list) else one.values() if isinstance(one, dict) else None
        if inner is None:
            return 1, 0
        sizes = [measure(item) for item in inner] or [(0, 0)]
        return 1 + sum(n for n, _ in sizes), 1 + max(depth for _, depth in sizes)

    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.none() | st.just(1)))
    return text.encode(), *measure(value)


@given(st.composite(json_values)())
def test_values_are_counted_outside_strings_only(drawn: tuple[bytes, int, int]) -> None:
    """A body is never refused at twice its number of values, and always below that number."""
    body, values, depth = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayescontrol.serve.middleware._MAX_DEPTH", depth)
        require_few_values(body, 2 * values)
        with pytest.raises(Refused, match="JSON values"):
            require_few_values(body, values - 1)
        patch.setattr("bayescontrol.serve.middleware._MAX_DEPTH", depth - 1)
        if depth:
            with pytest.raises(Refused, match="nested deeper"):
                require_few_values(body, 2 * values)


@pytest.mark.parametrize("value", ["[]", '{"tuple": []}', "0.25"])
def test_large_bodies_do_not_delay_other_clients(value: str) -> None:
    """Seconds of the process, not of the clock, so that a busy machine does not matter."""
    with memory() as server:
        ask(server.url, "POST", "/v1/agents", SHOP)
        body = nested(value, 1_000_000 // (len(value) + 1))
        refused = ask(server.url, "POST", "/v1/agents/shop/act", body)  # also to warm up
        assert (refused.status, refused.kind) == (413, "too-large")
        before = time.process_time()
        for _ in range(5):
            ask(server.url, "POST", "/v1/agents/shop/act", body)
        each = (time.process_time() - before) / 5
        gaps, stop = [], threading.Event()

        def attack() -> None:
            while not stop.is_set():
                ask(server.url, "POST", "/v1/agents/shop/act", nested(value, 8_000))

        attacker = start(attack)
        for _ in range(30):
            began = time.monotonic()
            assert ask(server.url, "GET", "/v1/health/live").status == 200
            assert ask(server.url, "POST", "/v1/agents/shop/act", {}).status == 200
            gaps.append(time.monotonic() - began)
        stop.set()
        join(attacker)
    assert each < 0.15  # it was 1.1
    assert sorted(gaps)[15] < 1.0


# -- callers -------------------------------------------------------------------------------------


def test_incomplete_bodies_use_bounded_memory() -> None:
    """One caller may have 48 bodies in memory, and leaves 16 to others."""
    limits = Limits(body=60_000, deadline=TIMEOUT)
    sent = head(Authorization=ME["Authorization"], Content_Length=60_000) + b" " * 59_999
    body = {"name": "a", "model": "x" * 50_000}
    with memory(limits=limits, tokens=TWO) as server:
        with ExitStack() as stack:
            slow = [stack.enter_context(connected(server.url)) for _ in range(60)]
            for one in slow:
                one.sendall(sent)
            refused, _, _ = select.select(slow, [], [], 30.0)
            assert refused
            assert b"this caller has reached its limit" in refused[0].recv(4096)
            # One has been read, 48 are held.
            wait_until(lambda: len(select.select(slow, [], [], 0)[0]) >= 11)
            assert ask(server.url, "POST", "/v1/agents", body, ME).status == 503
            # The name of the model is too long.
            assert ask(server.url, "POST", "/v1/agents", body, OTHER).status == 400
        wait_until(lambda: ask(server.url, "POST", "/v1/agents", body, ME).status == 400)


def test_a_quota_is_shared_and_given_back() -> None:
    quota = Quota(8, "things")
    quota.add("a", 6)
    with pytest.raises(Refused, match="this caller has reached its limit of 6 things"):
        quota.add("a", 1)
    quota.add("b", 2)
    with pytest.raises(Refused, match="the server has reached its limit of 8 things"):
        quota.add("b", 1)
    quota.add("b", -2)
    assert quota.used == 6
    quota.add("a", -6)
    quota.add("a", 6)
    assert quota.used == 6


def test_one_caller_leaves_a_quarter_of_the_concurrency_to_others() -> None:
    pause, limits = Pause(), Limits(concurrency=4, deadline=60.0)
    with memory(limits=limits, models=pause.models, tokens=TWO) as server:
        ask(server.url, "POST", "/v1/agents", {"name": "shop", "model": "paused"}, ME)
        with ThreadPoolExecutor(3) as pool, pause.hold():
            path = "/v1/agents/shop/act"
            acts = [pool.submit(ask, server.url, "POST", path, {}, ME) for _ in range(3)]
            under_way = b"requests_under_way 4"  # these three, and the one for the metrics
            wait_until(
                lambda: under_way in ask(server.url, "GET", "/v1/metrics", headers=OTHER).body
            )
            mine = ask(server.url, "GET", "/v1/agents", headers=ME)
            assert mine.kind == "overloaded"
            assert "this caller" in mine.json["detail"]
            assert ask(server.url, "GET", "/v1/agents", headers=OTHER).status == 200
        assert {one.result().status for one in acts} <= {200, 409}
        assert ask(server.url, "GET", "/v1/agents", headers=ME).status == 200


def test_few_explanations_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    release, running, most = threading.Event(), [0], [0]
    explain = DurableAgent.explain

    def slow(self: DurableAgent, id: Any) -> Any:
        running[0] += 1
        most[0] = max(most[0], running[0])
        assert release.wait(60.0)
        running[0] -= 1
        return explain(self, id)

    monkeypatch.setattr(DurableAgent, "explain", slow)
    with memory() as server, Client(server.url) as client:
        shop = client.create("shop", BernoulliBandit(2))
        path = f"/v1/agents/shop/decisions/{shop.act().id}"
        with ThreadPoolExecutor(12) as pool:
            answers = [pool.submit(ask, server.url, "GET", path) for _ in range(12)]
            wait_until(lambda: sum(one.done() for one in answers) >= 4)
            assert {one.result().kind for one in answers if one.done()} == {"overloaded"}
            shop.observe(shop.act(), 1)  # decisions go on
            release.set()
        assert Counter(one.result().status for one in answers) == {200: 8, 503: 4}
    assert most == [1]

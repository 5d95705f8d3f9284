"""A log opened in the live page, in a real browser: with a server, and without any."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from scipy.special import betaincinv  # type: ignore[import-untyped]
from tests.browser.conftest import Open
from tests.browser.live_stub import Stub, facts, figure, marks, rows, table, with_events

from bayescontrol import BernoulliBandit
from bayescontrol.durable.events import Created, Decided, Event, Observed, to_line
from bayescontrol.durable.models import as_model
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve.page import page as page_text


@pytest.fixture
def page(visit: Open, tmp_path: Path) -> Page:
    """The page saved as a file, without a server."""
    path = tmp_path / "page.html"
    path.write_text(page_text(), "utf-8")
    return visit(path).page


def created(problem: Any) -> Created:
    model = as_model(problem)
    return Created(
        seq=1,
        format=1,
        model=model.name,
        version=1,
        settings=dict(model.settings),
        seed=7,
        time=1e9,
    )


def decided(seq: int, a: Any, time: float = 1e9, x: Any = None, p: float | None = 0.5) -> Decided:
    return Decided(seq=seq, x=x, a=a, p=p, key=None, time=time)


def history(steps: int = 90) -> tuple[list[Event], Any]:
    """A bandit log with late feedback for two of three decisions, and the resulting belief."""
    bandit = BernoulliBandit(["red", "blue", "never"], prior=[[2, 1], [1, 1], [1, 3]])
    belief, events = bandit.belief(), list[Event]([created(bandit)])
    for i in range(steps):
        a, now, seq = ("red", "blue")[i % 5 == 0], 1e9 + 10.0 * i, len(events) + 1
        events.append(decided(seq, a, now))
        if i % 3:
            o = int(i % 7 < 3)
            events.append(Observed(seq=seq + 1, n=seq, o=o, time=now + (1 if i % 4 else 100)))
            belief.observe(None, a, o)
    return events, belief


def lines(events: Sequence[Event]) -> str:
    return "".join(to_line(event) + "\n" for event in events)


def open_log(page: Page, log: str | bytes | Sequence[Event], name: str = "shop.jsonl") -> None:
    text = log if isinstance(log, str | bytes) else lines(log)
    body = text.encode() if isinstance(text, str) else text
    file: Any = {"name": name, "mimeType": "application/x-ndjson", "buffer": body}
    page.locator("#file").set_input_files(file)


def opened(page: Page, log: str | Sequence[Event], name: str = "shop.jsonl") -> None:
    open_log(page, log, name)
    expect(page.locator("#history h2")).to_have_text(name)


def test_without_a_server_the_page_shows_a_log_with_the_posterior_of_its_agent(page: Page) -> None:
    expect(page.locator("#state")).to_have_text("Opened from a file: no server")
    events, belief = history()
    opened(page, events)
    expect(page.locator("#history")).to_contain_text("model bernoulli-bandit, version 1, seed 7")
    result = facts(page, "#history")
    assert [result[name] for name in ("events", "decisions", "observations")] == ["151", "90", "60"]
    assert result["without feedback"] == "30"
    for title, kind in (
        ("Action shares", "path.area"),
        ("Feedback delay", "rect.bar"),
        ("Means by counts", "circle.dot"),
        ("Means by counts as they moved", "path.band"),
    ):
        assert marks(page, title, kind).count() >= 2
    expect(figure(page, "Feedback delay")).to_contain_text("half within 1.00 s")
    assert rows(page, "Actions")[0][:3] == ["blue", "18", "12"]
    means = {row[0]: row[3:] for row in rows(page, "Actions")}
    posterior = next(v for v in belief.save().values() if v.shape == (3, 2) and v.max() > 3)
    for arm, (a, b) in zip(("red", "blue", "never"), posterior, strict=True):
        low, high = betaincinv(a, b, 0.025), betaincinv(a, b, 0.975)
        assert means[arm] == [f"{a / (a + b):#.3g}", f"{low:#.3g} to {high:#.3g}"]
    where = page.locator(".pages [role=status]")
    expect(where).to_have_text("66 to 90 of 90")  # the newest first
    last = next(event for event in reversed(events) if isinstance(event, Decided))
    assert rows(page, "Decisions")[0] == [str(last.seq), "2001-09-09 02:01:30", "–", "red",
                                          "0.500", "0", "1.00 s"]  # fmt: skip
    older, newer = (page.get_by_role("button", name=name) for name in ("Older", "Newer"))
    expect(newer).to_be_disabled()
    for _ in range(3):
        older.click()
    expect(where).to_have_text("1 to 15 of 90")
    expect(older).to_be_disabled()
    assert rows(page, "Decisions")[-1][5] == "none yet"


def test_a_log_can_be_dropped_on_the_page_and_is_not_sent(visit: Open, stub: Stub) -> None:
    page = with_events(visit(stub.url).page, stub)
    script = """text => {
      const data = new DataTransfer();
      data.items.add(new File([text], "dropped.jsonl"));
      return data;
    }"""
    data = page.evaluate_handle(script, lines(history()[0]))
    page.dispatch_event("body", "drop", {"dataTransfer": data})
    expect(page.locator("#history h2")).to_have_text("dropped.jsonl")
    expect(page.locator("#live")).to_be_hidden()
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#agent h2")).to_have_text("checkout")
    assert {path for path, _, _ in stub.requests} == {"/", "/events"}


def test_a_file_that_is_not_a_log_is_refused_with_a_reason(page: Page) -> None:
    for text, why in (
        ("", "the file is empty"),
        ("hello\nworld\n", "line 1 is not JSON: hello"),
        ('{"seq":1,"kind":"drawn"}\n', "line 1 is not an event of a log: seq is 1, kind is drawn"),
        ('{"a":1}', "line 1 is not an event of a log: seq is –, kind is –"),
        (b"\xff\xfe\x00", "after line 0 comes something that is not text"),
        (
            '{"seq":1,"kind":"created","format":2,"model":"m"}\n',
            "the log is in format 2, this page reads up to 1: use a later release",
        ),
    ):
        open_log(page, text, "odd.txt")
        expect(page.locator("#reading")).to_have_text(f"odd.txt was not opened: {why}.")
        expect(page.locator("#history")).to_be_hidden()
    events, _ = history()
    opened(page, events)
    expect(page.locator("#reading")).to_be_empty()
    torn = lines(events[4:22] + events[23:])
    opened(page, torn + torn.splitlines()[-1][:30], "torn.jsonl")
    expect(page.locator(".remarks li")).to_have_text(
        [
            "The last line is cut off and was left out.",
            "The file starts at event 5: what came before is not in it.",
            "Events are missing in 1 place.",
            "1 observation of decisions that are not in the file: left out.",
        ]
    )
    expect(page.locator("#history")).to_contain_text("model unknown")


def test_values_of_every_kind_are_shown(page: Page) -> None:
    text: list[Event] = [
        decided(1, ("go", 1), 5.0, (0.5, "a"), None),
        Observed(seq=2, n=1, o="far", time=5.0),
    ]
    opened(page, text, "text.jsonl")
    assert rows(page, "Decisions") == [
        ["1", "1970-01-01 00:00:05", "(0.5, a)", "(go, 1)", "–", "far", "0 ms"]
    ]
    expect(figure(page, "Means by counts")).to_be_hidden()
    expect(figure(page, "Action shares")).to_be_visible()
    for problem, first, result in (  # the state None differs from no situation
        (GibbsMDP(["red", "blue"], None), None, ["None", "None"]),
        (GibbsMDP(["red", "blue"], "home"), "home", ["None", "home"]),
        (BernoulliBandit(["red", "blue"]), None, ["–", "–"]),
    ):
        log = [decided(2, "red", x=first, p=None), decided(3, "red", p=None)]
        opened(page, [created(problem), *log], f"{result[1]}-{first}.jsonl")
        assert [row[2] for row in rows(page, "Decisions")] == result
    twins = [decided(seq, a) for seq, a in enumerate((1, "1", "1"), start=2)]
    opened(page, [created(BernoulliBandit([1, "1"])), *twins], "twins.jsonl")
    assert {row[0]: row[1] for row in rows(page, "Actions")} == {"1": "1", '"1"': "2"}
    inputs = [np.array([0.1 * i, 1.0 / 3.0]) for i in range(30)]
    opened(page, [decided(i + 1, u, 1e9 + i, u, None) for i, u in enumerate(inputs)], "u.jsonl")
    drawn = "Actions as they were taken"
    expect(marks(page, drawn, "path.line")).to_have_count(2)
    expect(figure(page, drawn).locator(".legend")).to_have_text("last:entry 0 2.90entry 1 0.333")
    expect(figure(page, "Action shares")).to_be_hidden()
    expect(table(page, "Actions")).to_be_hidden()
    assert rows(page, "Decisions")[0][2:4] == ["[2.90, 0.333]", "[2.90, 0.333]"]


@pytest.mark.parametrize(
    ("steps", "apart", "name"),
    [
        (40, 0.02, "time since the first decision (ms)"),
        (2, 0.3, "time since the first decision (ms)"),
        (40, 2.0, "time since the first decision (s)"),
        (3, 0.0, "decision (number)"),
        (1, 0.0, "decision (number)"),
    ],
)
def test_the_axes_of_a_short_log_fit_its_decisions(
    page: Page, steps: int, apart: float, name: str
) -> None:
    events: list[Event] = []
    for i in range(steps):
        seq, now = 2 * i + 1, 1e9 + apart * i
        events.append(decided(seq, ("red", "blue")[i % 2], now))
        events.append(Observed(seq=seq + 1, n=seq, o=1, time=now + 0.001))
    opened(page, events)
    for title, first, axis in (
        ("Action shares", "1" if apart == 0.0 else "0", name),
        ("Means by counts as they moved", "0", "observations (count)"),
    ):
        expect(marks(page, title, ".name").last).to_have_text(axis)
        assert marks(page, title, ".tick.middle").all_text_contents()[0] == first
    ends = "all => all.map(a => a.getBoundingClientRect()).flatMap(box => [box.x, box.right])"
    areas = marks(page, "Action shares", "path.area").evaluate_all(ends)
    grid = marks(page, "Action shares", "line.axis").evaluate_all(ends)[-2:]
    assert [min(areas), max(areas)] == pytest.approx(grid, abs=2.0)


def test_a_hundred_thousand_events_are_opened_in_seconds(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(lines(history(60_000)[0]), "utf-8")
    started = time.monotonic()
    page.locator("#file").set_input_files(path)
    expect(page.locator("#history .facts")).to_contain_text("60,000")
    assert time.monotonic() - started < 10

"""A log opened in the live page, in a real browser: with a server, and without any."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from scipy.special import betaincinv  # type: ignore[import-untyped]
from tests.browser.live_stub import Open, Stub, figure, live, rows, tabs

from bayescontrol import BernoulliBandit
from bayescontrol.durable.events import Created, Decided, Event, Observed, to_line
from bayescontrol.durable.models import as_model
from bayescontrol.mdp import GibbsMDP
from bayescontrol.serve.page import page


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.close()


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Open]:
    yield from tabs(chromium)


def history(steps: int = 90) -> tuple[list[Event], Any]:
    """A bandit log with late feedback for two of three decisions, and the resulting belief."""
    bandit = BernoulliBandit(["red", "blue", "never"], prior=[[2, 1], [1, 1], [1, 3]])
    model, belief = as_model(bandit), bandit.belief()
    settings = dict(model.settings)
    events: list[Event] = [
        Created(seq=1, format=1, model=model.name, version=1, settings=settings, seed=7, time=1e9)
    ]
    for i in range(steps):
        a, now, seq = ("red", "blue")[i % 5 == 0], 1e9 + 10.0 * i, len(events) + 1
        events.append(Decided(seq=seq, x=None, a=a, p=0.5, key=None, time=now))
        if i % 3:
            o = int(i % 7 < 3)
            events.append(Observed(seq=seq + 1, n=seq, o=o, time=now + (1 if i % 4 else 100)))
            belief.observe(None, a, o)
    return events, belief


@pytest.fixture
def offline_page(tab: Open, tmp_path: Path) -> Page:
    """The page saved as a file, without a server."""
    path = tmp_path / "page.html"
    path.write_text(page(), "utf-8")
    created: Page = tab(path.as_uri())
    return created


def open_log(page: Page, text: str | bytes, name: str = "shop.jsonl") -> None:
    body = text.encode() if isinstance(text, str) else text
    page.locator("#file").set_input_files(
        {"name": name, "mimeType": "application/x-ndjson", "buffer": body}
    )


def as_lines(events: list[Event]) -> str:
    return "".join(to_line(event) + "\n" for event in events)


def test_without_a_server_the_page_opens_a_log(offline_page: Page) -> None:
    expect(offline_page.locator("#state")).to_have_text("Opened from a file: no server")
    events, _ = history()
    open_log(offline_page, as_lines(events))
    expect(offline_page.locator("#history h2")).to_have_text("shop.jsonl")
    expect(offline_page.locator("#history")).to_contain_text(
        "model bernoulli-bandit, version 1, seed 7"
    )
    facts = offline_page.locator("#history .facts").inner_text().split("\n")
    assert facts[:8] == ["events", "151", "decisions", "90", "observations", "60",
                         "without feedback", "30"]  # fmt: skip
    for title, marks in (
        ("Action shares", "path.area"),
        ("Feedback delay", "rect.bar"),
        ("Means by counts", "circle.dot"),
        ("Means by counts as they moved", "path.band"),
    ):
        assert figure(offline_page, title).locator(".canvas").locator(marks).count() >= 2
    expect(figure(offline_page, "Feedback delay")).to_contain_text("half within 1.00 s")
    assert rows(offline_page, "Actions")[0][:3] == ["blue", "18", "12"]


def test_posteriors_by_counts_equal_those_of_the_agent(offline_page: Page) -> None:
    events, belief = history()
    open_log(offline_page, as_lines(events))
    expect(offline_page.locator("#history h2")).to_be_visible()
    table = {row[0]: row[3:] for row in rows(offline_page, "Actions")}
    arrays = belief.save()
    posterior = next(v for v in arrays.values() if v.shape == (3, 2) and v.max() > 3)
    for arm, (a, b) in zip(("red", "blue", "never"), posterior, strict=True):
        low, high = betaincinv(a, b, 0.025), betaincinv(a, b, 0.975)
        assert table[arm] == [f"{a / (a + b):#.3g}", f"{low:#.3g} to {high:#.3g}"]


def test_decisions_are_listed_newest_first_on_several_pages(offline_page: Page) -> None:
    events, _ = history()
    open_log(offline_page, as_lines(events))
    where = offline_page.locator(".pages [role=status]")
    expect(where).to_have_text("66 to 90 of 90")
    first = rows(offline_page, "Decisions")[0]
    decided = [event for event in events if isinstance(event, Decided)]
    assert first == [str(decided[-1].seq), "2001-09-09 02:01:30", "–", "red", "0.500", "0",
                     "1.00 s"]  # fmt: skip
    older, newer = (offline_page.get_by_role("button", name=name) for name in ("Older", "Newer"))
    expect(newer).to_be_disabled()
    for _ in range(3):
        older.click()
    expect(where).to_have_text("1 to 15 of 90")
    expect(older).to_be_disabled()
    assert rows(offline_page, "Decisions")[-1][5] == "none yet"


def test_a_log_can_be_dropped_on_the_page(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    data = page.evaluate_handle(
        """text => {
          const data = new DataTransfer();
          data.items.add(new File([text], "dropped.jsonl"));
          return data;
        }""",
        as_lines(history()[0]),
    )
    page.dispatch_event("body", "drop", {"dataTransfer": data})
    expect(page.locator("#history h2")).to_have_text("dropped.jsonl")
    expect(page.locator("#live")).to_be_hidden()
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#agent h2")).to_have_text("checkout")
    assert {path for path, _, _ in stub.requests} == {"/", "/events"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file is empty"),
        ("hello\nworld\n", "line 1 is not JSON: hello"),
        ('{"seq":1,"kind":"drawn"}\n', "line 1 is not an event of a log: seq is 1, kind is drawn"),
        ('{"a":1}', "line 1 is not an event of a log: seq is –, kind is –"),
        (b"\xff\xfe\x00", "after line 0 comes something that is not text"),
        (
            '{"seq":1,"kind":"created","format":2,"model":"m"}\n',
            "the log is in format 2, this page reads up to 1: use a later release",
        ),
    ],
)
def test_a_file_that_is_not_a_log_is_refused_with_a_reason(
    offline_page: Page, text: str | bytes, why: str
) -> None:
    open_log(offline_page, text, "odd.txt")
    expect(offline_page.locator("#reading")).to_have_text(f"odd.txt was not opened: {why}.")
    expect(offline_page.locator("#history")).to_be_hidden()
    open_log(offline_page, as_lines(history()[0]))
    expect(offline_page.locator("#history h2")).to_have_text("shop.jsonl")
    expect(offline_page.locator("#reading")).to_be_empty()


def test_a_log_with_a_torn_end_a_gap_and_unknown_events_is_shown_with_warnings(
    offline_page: Page,
) -> None:
    events, _ = history()
    lines = as_lines(events[4:22] + events[23:]).splitlines()
    open_log(offline_page, "\n".join([*lines, lines[-1][:30]]))
    expect(offline_page.locator(".remarks li")).to_have_text(
        [
            "The last line is cut off and was left out.",
            "The file starts at event 5: what came before is not in it.",
            "Events are missing in 1 place.",
            "1 observation of decisions that are not in the file: left out.",
        ]
    )
    expect(offline_page.locator("#history")).to_contain_text("model unknown")


def test_a_log_with_text_observations_is_shown_without_means(offline_page: Page) -> None:
    events: list[Event] = [
        Decided(seq=1, x=(0.5, "a"), a=("go", 1), p=None, key=None, time=5.0),
        Observed(seq=2, n=1, o="far", time=5.0),
    ]
    open_log(offline_page, as_lines(events))
    expect(offline_page.locator("#history h2")).to_be_visible()
    assert rows(offline_page, "Decisions") == [
        ["1", "1970-01-01 00:00:05", "(0.5, a)", "(go, 1)", "–", "far", "0 ms"]
    ]
    expect(figure(offline_page, "Means by counts")).to_be_hidden()
    expect(figure(offline_page, "Action shares")).to_be_visible()


def axis(page: Page, title: str) -> tuple[list[str], str]:
    """Return the tick labels of the horizontal axis, and its name."""
    drawn = figure(page, title).locator(".canvas svg")
    expect(drawn).to_be_visible()
    marks: list[str] = drawn.locator(".tick.middle").all_text_contents()
    return marks, drawn.locator(".name").last.text_content() or ""


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
    offline_page: Page, steps: int, apart: float, name: str
) -> None:
    events: list[Event] = []
    for i in range(steps):
        seq, now = 2 * i + 1, 1e9 + apart * i
        a = ("red", "blue")[i % 2]
        events.append(Decided(seq=seq, x=None, a=a, p=0.5, key=None, time=now))
        events.append(Observed(seq=seq + 1, n=seq, o=1, time=now + 0.001))
    open_log(offline_page, as_lines(events))
    marks, named = axis(offline_page, "Action shares")
    assert named == name
    assert marks[0] == ("1" if apart == 0.0 else "0")
    areas = figure(offline_page, "Action shares").locator("path.area")
    boxes = [box for area in areas.all() if (box := area.bounding_box()) is not None]
    grid = figure(offline_page, "Action shares").locator("line.axis").last.bounding_box()
    assert grid is not None
    left, right = min(b["x"] for b in boxes), max(b["x"] + b["width"] for b in boxes)
    assert left == pytest.approx(grid["x"], abs=2.0)
    assert right == pytest.approx(grid["x"] + grid["width"], abs=2.0)
    marks, named = axis(offline_page, "Means by counts as they moved")
    assert (marks[0], named) == ("0", "observations (count)")


def test_the_state_none_differs_from_no_situation(offline_page: Page) -> None:
    def log(model: Any, situations: list[Any]) -> str:
        saved = as_model(model)
        settings = dict(saved.settings)
        events: list[Event] = [
            Created(seq=1, format=1, model=saved.name, version=1, settings=settings, seed=7, time=1)
        ]
        for seq, x in enumerate(situations, start=2):
            events.append(Decided(seq=seq, x=x, a="red", p=None, key=None, time=1e9))
        return as_lines(events)

    for model, situations, result in (
        (GibbsMDP(["red", "blue"], None), [None, None], ["None", "None"]),
        (GibbsMDP(["red", "blue"], "home"), ["home", None], ["None", "home"]),
        (BernoulliBandit(["red", "blue"]), [None, None], ["–", "–"]),
    ):
        open_log(offline_page, log(model, situations), f"{result[-1]}-{len(situations)}.jsonl")
        expect(offline_page.locator("#history h2")).to_have_text(f"{result[-1]}-2.jsonl")
        assert [row[2] for row in rows(offline_page, "Decisions")] == result


def test_actions_made_of_numbers_are_drawn_and_have_no_shares(offline_page: Page) -> None:
    events: list[Event] = []
    for i in range(30):
        u = np.array([0.1 * i, 1.0 / 3.0])
        events.append(Decided(seq=i + 1, x=u, a=u, p=None, key=None, time=1e9 + i))
    open_log(offline_page, as_lines(events))
    drawn = figure(offline_page, "Actions as they were taken")
    expect(drawn.locator(".canvas path.line")).to_have_count(2)
    expect(drawn.locator(".legend")).to_have_text("last:entry 0 2.90entry 1 0.333")
    expect(figure(offline_page, "Action shares")).to_be_hidden()
    expect(offline_page.locator("table:has(caption:text-is('Actions'))")).to_be_hidden()
    assert rows(offline_page, "Decisions")[0][2:4] == ["[2.90, 0.333]", "[2.90, 0.333]"]


def test_a_hundred_thousand_events_are_opened_in_seconds(
    offline_page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(as_lines(history(60_000)[0]), "utf-8")
    started = time.monotonic()
    offline_page.locator("#file").set_input_files(path)
    expect(offline_page.locator("#history .facts")).to_contain_text("60,000")
    assert time.monotonic() - started < 10


def test_actions_with_equal_text_stay_distinct(offline_page: Page) -> None:
    model = as_model(BernoulliBandit([1, "1"]))
    settings = dict(model.settings)
    events: list[Event] = [
        Created(seq=1, format=1, model=model.name, version=1, settings=settings, seed=7, time=1e9)
    ]
    for seq, a in enumerate((1, "1", "1"), start=2):
        events.append(Decided(seq=seq, x=None, a=a, p=0.5, key=None, time=1e9 + seq))
    open_log(offline_page, as_lines(events))
    expect(offline_page.locator("#history h2")).to_have_text("shop.jsonl")
    result = {row[0]: row[1] for row in rows(offline_page, "Actions")}
    assert result == {"1": "1", '"1"': "2"}

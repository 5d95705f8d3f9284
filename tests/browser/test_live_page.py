"""The live page in a real browser: its content, its event stream and its accessibility."""

import json
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Open, least_contrast, width_of
from tests.browser.live_stub import (
    Stub,
    agent,
    connected,
    decision,
    facts,
    figure,
    marks,
    modal,
    mode,
    rows,
    table,
    with_events,
)  # fmt: skip

ODD = "<img src=x onerror=alert(1)>"
ARMS = "Arms, modes and actions"
LATEST = "Last decisions (a sample; press an id to explain it)"


@pytest.fixture
def page(visit: Open, stub: Stub) -> Page:
    """The page after eight seconds of events of two agents."""
    return with_events(visit(stub.url).page, stub)


# -- content -----------------------------------------------------------------------------------


def test_every_figure_shows_the_numbers_that_were_sent(visit: Open, stub: Stub) -> None:
    visited = visit(stub.url)
    page = with_events(visited.page, stub)
    for title, kind, count in (
        ("Posterior now", "circle.dot", 3),
        ("Posterior as it moved", "path.band", 3),
        ("Action probabilities now", "rect.bar", 3),
        ("Action probabilities as they moved", "path.area", 3),
        ("Surprise", "path.line", 1),
        ("Regret", "path.line", 1),
        ("Decisions per second", "path.line", 1),
    ):
        expect(marks(page, title, kind)).to_have_count(count)
    expect(figure(page, "Evidence that no mode fits")).to_be_hidden()
    expect(page.locator("#totals")).to_have_text("2 agents, 81.0 decisions per second")
    assert facts(page) == {
        "decisions": "320", "observations": "304", "feedback awaited": "16",
        "decisions per second": "40.5", "surprise (bits)": "1.00", "regret (reward)": "10.0",
    }  # fmt: skip
    assert [row[0] for row in rows(page, ARMS)] == ["red", "blue", "green"]
    assert rows(page, ARMS)[0] == ["red", *"–––", "0.318", "0.278 to 0.358", "–", "0.460", *"––"]
    latest = rows(page, LATEST)
    assert latest[0][1:] == ["8", "red", "0.750"]
    assert [row[1] for row in latest] == [str(i) for i in range(8, 0, -1)]
    legend = figure(page, "Action probabilities as they moved").locator(".legend")
    expect(legend).to_have_text("last:red 0.460blue 0.378green 0.162")
    expect(page.locator("#ask")).to_be_hidden()  # the server needs no token
    assert {(path, token) for path, token, _ in stub.requests} == {("/", None), ("/events", None)}
    assert {url.removeprefix(stub.url) for url in visited.requests} == {"", "events"}
    assert visited.messages == []


def test_a_finite_class_has_weights_evidence_and_axes_with_units(page: Page) -> None:
    page.get_by_role("button", name="door").click()
    expect(page.locator("#agent h2")).to_have_text("door")
    expect(marks(page, "Posterior now", "rect.bar")).to_have_count(2)
    evidence = figure(page, "Evidence that no mode fits")
    expect(evidence.locator(".guide")).to_have_count(1)
    expect(evidence).to_contain_text("alarm at 6.64 bits")
    expect(figure(page, "Regret")).to_be_hidden()
    names = page.locator("#agent figure:visible svg .name").all_text_contents()
    assert {name for name in names if name} == {
        "weight of the mode (probability)",
        "probability of the action",
        "probability of the action, stacked",
        "surprise of an observation (bits)",
        "evidence against the best mode (bits)",
        "decisions per second (1/s)",
        "time before now (s)",
    }


def numbered(*modes: dict[str, Any], **other: Any) -> dict[str, Any]:
    """An agent whose posterior has numbers without intervals, and no action probabilities."""
    return agent(
        modes=list(modes), probabilities=None, regret=None, surprise_bits=None, **other
    )  # fmt: skip


def test_what_is_missing_is_hidden_or_explained(visit: Open, stub: Stub) -> None:
    page = connected(visit(stub.url).page)
    why = ["What an arm pays depends on the situation.", "<b>And</b> so do the probabilities."]
    measure = {"name": "mean weight of a feature", "unit": "score by feature"}
    features = (mode("red[0]", mean=0.5), mode("red[1]", mean=-0.25))
    stub.say("agents", [numbered(*features, measure=measure, remarks=why)])
    expect(page.locator("#agent .remarks li")).to_have_text(why)
    expect(marks(page, "Posterior now", "circle.dot")).to_have_count(2)
    name = figure(page, "Posterior now").locator("svg .name").last
    expect(name).to_have_text("mean weight of a feature (score by feature)")
    expect(table(page, ARMS).locator("thead th:visible")).to_have_text(["name", "posterior mean"])
    assert "–" not in page.locator("#agent").inner_text()
    reward = {"name": "mean reward", "unit": "reward"}
    stub.say("agents", [numbered(mode("red", mean=1.0), measure=reward)])  # as categorical arms
    expect(name).to_have_text("mean reward (reward)")
    expect(page.locator("#agent .remarks li")).to_have_count(0)
    stub.say("agents", [numbered(mode("a"), remarks=["There is none."])])
    expect(page.locator("#agent .remarks")).to_have_text("There is none.")
    expect(table(page, ARMS)).to_be_hidden()
    expect(figure(page, "Posterior now")).to_be_hidden()


def test_without_probabilities_the_actions_taken_are_drawn(visit: Open, stub: Stub) -> None:
    page = connected(visit(stub.url).page)
    stub.say("agents", [numbered(mode("rho", mean=0.5))])
    for i, action in enumerate(("left", "right", "left", "left", '{"tuple":["up",2]}')):
        stub.say("decision", decision(i, action=action, probability=None))
    shares, values = (f"Actions {how} (a sample)" for how in ("taken", "as they were taken"))
    taken = figure(page, shares)
    expect(taken.locator("svg .number")).to_have_text(["0.600", "0.200", "0.200"])
    expect(taken).to_contain_text("Of 5 decisions seen since this page was opened.")
    expect(taken).to_contain_text("(up, 2)")
    expect(figure(page, values)).to_be_hidden()
    stub.say("agents", [agent()])
    expect(taken).to_be_hidden()  # there are probabilities
    page.reload()
    connected(page)
    stub.say("agents", [numbered(mode("A[0, 0]", mean=0.5))])
    for i in range(6):
        action = json.dumps({"array": [0.1 * i, -1 / 3], "shape": [2], "dtype": "<f8"})
        stub.say("decision", decision(i, action=action, probability=None))
    expect(marks(page, values, "path.line")).to_have_count(2)
    legend = figure(page, values).locator(".legend")
    expect(legend).to_have_text("last:entry 0 0.500entry 1 −0.333")
    expect(taken).to_be_hidden()
    assert rows(page, LATEST)[0][2] == "[0.5, −0.333]"


def test_an_alarm_is_announced_once_also_while_the_figures_pause(page: Page, stub: Stub) -> None:
    page.evaluate("""() => {
      window.announcements = 0;
      new MutationObserver((changes) => { window.announcements += changes.length; })
        .observe(document.getElementById("alarms"), {childList: true, subtree: true});
    }""")
    pause, alert = page.get_by_role("button", name="Pause"), page.get_by_role("alert")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    for step in (9, 10, 100):
        stub.say("agents", [agent(step=step), modal(step, raised=True)])
        page.wait_for_timeout(300)
    expect(alert).to_have_text("door: no mode fits what is observed.")
    assert page.evaluate("window.announcements") == 1
    assert page.title() == "Alarm: door · bayescontrol"
    expect(page.locator("#agent .facts")).to_contain_text("320")
    pause.click()
    expect(page.locator("#agent .facts")).to_contain_text("4,000")
    expect(page.locator("#agents button").nth(1)).to_contain_text("alarm")
    stub.say("agents", [agent(step=101), modal(101)])
    expect(alert).to_be_empty()


def test_missing_numbers_odd_names_and_changing_agents_give_no_console_messages(
    visit: Open, stub: Stub
) -> None:
    visited = visit(stub.url)
    page = connected(visited.page)
    bare = agent(ODD, model=ODD, rate_per_s=0.0, modes=[], probabilities=None,
                 surprise_bits=None, regret=None)  # fmt: skip
    stub.say("agents", [bare])
    expect(page.locator("#agent h2")).to_have_text(ODD)
    stub.say("agents", [bare | {"modes": [mode(ODD)], "alarm": {"raised": True}}])
    expect(page.get_by_role("alert")).to_contain_text(ODD)
    half = [{"name": ODD, "mean": 1e300}, {"name": "b", "mean": None, "low": -5, "high": None}]
    stub.say("agents", [bare | {"modes": half, "probabilities": {ODD: None, "b": 1}}])
    stub.say("decision", decision(1, agent=ODD, action=[1, {"tuple": [2, ODD]}], probability=None))
    stub.say("decision", decision(2, agent="nobody"))
    stub.say("unheard-of", {"kind": 7})
    expect(table(page, LATEST)).to_contain_text(f"[1, (2, {ODD})]")
    stub.say("agents", [agent("other")])
    expect(page.locator("#agents li")).to_have_count(1)
    expect(page.locator("#agent h2")).to_have_text("other")
    stub.say("agents", [])
    expect(page.locator("#agent")).to_be_hidden()
    expect(page.locator("#totals")).to_have_text("0 agents, 0 decisions per second")
    assert page.locator("img").count() == 0
    assert visited.messages == []


def test_many_modes_and_a_long_time_stay_within_bounds(visit: Open, stub: Stub) -> None:
    page = connected(visit(stub.url).page)
    many = [mode(f"mode {i}", weight=(i + 1) / 20_100) for i in range(200)]
    for step in range(1, 1301):
        stub.say("agents", [agent(step=step, modes=many)])
    expect(page.locator("#agent .facts")).to_contain_text(f"{1300 * 40:,}")
    expect(marks(page, "Posterior now", "rect.bar")).to_have_count(12)
    expect(figure(page, "Posterior now")).to_contain_text("mode 199")
    expect(figure(page, "Posterior now")).to_contain_text("The 12 largest of 200 are drawn.")
    slider = figure(page, "Regret").get_by_role("slider")
    assert 300 <= int(slider.get_attribute("aria-valuemax") or 0) <= 600
    slider.press("Home")
    expect(figure(page, "Regret").locator(".legend b")).to_have_text("1.25")


# -- event stream ------------------------------------------------------------------------------


def test_the_page_reports_a_lost_connection_and_reconnects(page: Page, stub: Stub) -> None:
    status, again = page.locator("#state"), page.get_by_role("button", name="Try again now")
    stub.write(b"event: agents\ndata: {not json\n\n")
    expect(status).to_contain_text("cannot be read")
    connected(page)
    stub.say("agents", [agent(step=25), modal(25)])
    expect(page.locator("#agent .facts")).to_contain_text("1,000")
    stub.refusal = (503, {"Retry-After": "2"})
    stub.write(None)
    expect(status).to_contain_text("Disconnected at")
    expect(status).to_contain_text("the server answered 503")
    expect(page.locator("#agent .facts")).to_contain_text("1,000")
    stub.refusal = None
    connected(page)
    stub.say("agents", [agent(step=50), modal(50)])
    expect(page.locator("#agent .facts")).to_contain_text("2,000")
    refused, answered = [when for path, _, when in stub.requests if path == "/events"][-2:]
    assert answered - refused >= 1.9  # it waits as long as the server asks
    stub.refusal = (403, {"Retry-After": "60"})
    stub.write(None)
    expect(status).to_contain_text("the server answered 403")
    expect(page.locator("#ask")).to_be_hidden()  # a token would not help
    stub.refusal = None
    again.click()  # without waiting
    connected(page)
    expect(again).to_be_hidden()
    named = json.dumps([agent("Kasse – 日本 ✓")], ensure_ascii=False, indent=1)
    lines = "\r\n".join(f"data:{line}" for line in named.split("\n"))
    text = f": a comment\r\n\r\nretry: 5\nid: 1\r\nevent:agents\r\n{lines}\r\n\r\n".encode()
    for i in range(0, len(text), 7):  # events may arrive in chunks of any size
        stub.write(text[i : i + 7])
        time.sleep(0.001)
    expect(page.locator("#agent h2")).to_have_text("Kasse – 日本 ✓")


def test_a_silent_server_counts_as_disconnected(visit: Open, stub: Stub) -> None:
    page = visit("about:blank").page
    page.clock.install()
    page.goto(stub.url)
    connected(page)
    page.clock.fast_forward(10_000)
    stub.say("agents", [agent()])
    expect(page.locator("#agent h2")).to_have_text("checkout")
    page.clock.fast_forward(10_000)
    connected(page)
    page.clock.fast_forward(3_000)
    expect(page.locator("#state")).to_contain_text("the server went silent")


def test_a_token_is_requested_once_and_never_put_in_a_url(visit: Open, stub: Stub) -> None:
    stub.token = "s3cret"
    page = visit(stub.url).page
    field = page.get_by_label("Token", exact=True)
    expect(field).to_be_focused()
    field.fill("wrong")
    field.press("Enter")
    expect(page.locator("#ask-why")).to_have_text("The server refused the token.")
    field.fill("s3cret")
    field.press("Enter")
    connected(page)
    page.reload()
    connected(page)
    expect(field).to_be_hidden()
    sent = [auth for path, auth, _ in stub.requests if path == "/events"]
    assert sent == [None, "Bearer wrong", "Bearer s3cret", "Bearer s3cret"]
    assert {(p, a) for p, a, _ in stub.requests if p != "/events"} == {("/", None)}
    assert page.evaluate("Object.values(sessionStorage)") == ["s3cret"]
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    assert page.url == stub.url
    page.get_by_role("button", name="Forget the token").click()
    expect(field).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0


def test_the_browser_refuses_other_servers_and_injected_markup(visit: Open, stub: Stub) -> None:
    visited = visit(stub.url)
    page = connected(visited.page)
    fetched = "url => fetch(url).then(() => 'fetched', () => 'refused')"
    assert page.evaluate(fetched, "http://127.0.0.2:9/") == "refused"
    injected = "() => { document.createElement('div').innerHTML = '<b>bold</b>'; }"
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate(injected)
    assert any("Content Security Policy" in text for text in visited.messages)


# -- accessibility -----------------------------------------------------------------------------


def test_the_keyboard_reaches_everything_in_order_with_visible_focus(
    page: Page, stub: Stub
) -> None:
    focus = """() => {
      const node = document.activeElement;
      if (node === document.body) return null;
      const style = getComputedStyle(node);
      return [node.getAttribute("aria-label") ?? node.textContent.trim().slice(0, 30),
              style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
    }"""
    met: list[Any] = []
    while len(met) < 40 and None not in met:
        page.keyboard.press("Tab")
        met.append(page.evaluate(focus))
    assert met.pop() is None  # focus leaves the page at the end
    assert all(is_visible for _, is_visible in met)
    names = [name for name, _ in met]
    assert names[:6] == ["Skip to the figures", "Live", "Log file", "Pause",
                         "checkout40.5 decisions/s", "door40.5 decisions/s"]  # fmt: skip
    charts = ("Posterior as", "Action", "Surprise", "Regret", "Decisions per")
    assert sum(name.startswith(charts) for name in names) == 5
    tables = names.index(ARMS)
    assert names[tables:] == [ARMS, LATEST, *"87654321"]  # the ids of the decisions
    door = page.get_by_role("button", name="door")
    door.focus()
    page.keyboard.press("Enter")
    stub.say("agents", [agent(step=30), modal(30)])
    expect(page.locator("#agent .facts")).to_contain_text("1,200")
    expect(door).to_be_focused()  # while the page is updated
    expect(door).to_have_attribute("aria-pressed", "true")


def test_arrow_keys_read_values_off_a_chart_and_the_cursor_keeps_its_time(
    page: Page, stub: Stub
) -> None:
    regret = figure(page, "Regret")
    slider, value, cursor = (
        regret.get_by_role("slider"), regret.locator(".legend b"), regret.locator(".cursor")
    )  # fmt: skip
    slider.focus()
    assert slider.get_attribute("aria-valuetext") == "arrow keys read values off"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert (slider.get_attribute("aria-valuetext") or "").endswith(": regret 2.50")
    stub.say("agents", [agent(step=30), modal(30)])
    expect(page.locator("#agent .facts")).to_contain_text("1,200")
    expect(value).to_have_text("2.50")
    expect(cursor).to_have_count(1)
    page.keyboard.press("Escape")
    expect(cursor).to_have_count(0)
    expect(value).to_have_text("37.5")
    slider.hover(position={"x": 5, "y": 60})
    expect(value).to_have_text("1.25")


@pytest.mark.parametrize(
    ("scheme", "ground", "hue", "motion", "animations"),
    [
        ("light", "rgb(255, 255, 255)", "rgb(0, 114, 178)", "reduce", 0),
        ("dark", "rgb(21, 24, 28)", "rgb(51, 145, 219)", "no-preference", 1),
    ],
)
def test_colour_scheme_contrast_and_motion(
    visit: Open, stub: Stub, scheme: str, ground: str, hue: str, motion: str, animations: int
) -> None:
    visited = visit(stub.url, color_scheme=scheme, reduced_motion=motion)
    page = with_events(visited.page, stub)
    assert page.evaluate("document.getAnimations().length") == animations
    stub.say("agents", [agent(step=9), modal(9, raised=True)])
    expect(page.get_by_role("alert")).to_contain_text("door")
    texts = "h1, h2, h3, p, li, td, th, dt, dd, button, svg text"
    assert least_contrast(page, texts) >= 4.5
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    dot = page.locator("circle.dot").first
    assert dot.evaluate("dot => getComputedStyle(dot).fill") == hue


def test_on_a_phone_nothing_is_wider_than_the_window(visit: Open, stub: Stub) -> None:
    page = with_events(visit(stub.url, 390, phone=True).page, stub)
    assert width_of(page) == [390, 390]
    ends = "all => all.flatMap(s => [s.getBoundingClientRect().x, s.getBoundingClientRect().right])"
    drawn = page.locator(".canvas svg:visible").evaluate_all(ends)
    assert min(drawn) >= 0
    assert max(drawn) <= 390
    size = "all => Math.min(...all.map(b => b.getBoundingClientRect().height))"
    assert page.locator("button:visible").evaluate_all(size) >= 44
    figure(page, "Regret").locator(".canvas").tap(position={"x": 60, "y": 60})
    expect(figure(page, "Regret").locator(".cursor")).to_have_count(1)

"""The live page in a real browser: its content, its event stream and its accessibility."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.live_stub import (
    Open,
    Stub,
    agent,
    connected,
    decision,
    figure,
    live,
    modal,
    rows,
    tabs,
)

ODD = "<img src=x onerror=alert(1)>"


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.close()


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Open]:
    yield from tabs(chromium)


# -- content -----------------------------------------------------------------------------------


def test_every_figure_is_drawn_without_console_errors_or_foreign_requests(
    tab: Open, stub: Stub
) -> None:
    messages: list[str] = []
    page = live(tab, stub, messages=messages)
    drawn = {
        "Posterior now": ("circle.dot", 3),
        "Posterior as it moved": ("path.band", 3),
        "Action probabilities now": ("rect.bar", 3),
        "Action probabilities as they moved": ("path.area", 3),
        "Surprise": ("path.line", 1),
        "Regret": ("path.line", 1),
        "Decisions per second": ("path.line", 1),
    }
    for title, (marks, count) in drawn.items():
        expect(figure(page, title).locator(".canvas svg").locator(marks)).to_have_count(count)
        expect(figure(page, title).locator("svg .name").last).not_to_be_empty()
    expect(figure(page, "Evidence that no mode fits")).to_be_hidden()
    assert messages == []
    assert {path for path, _, _ in stub.requests} == {"/", "/events"}


def test_the_page_shows_the_numbers_that_were_sent(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    expect(page.locator("#totals")).to_have_text("2 agents, 81.0 decisions per second")
    facts = page.locator("#agent .facts").inner_text().split("\n")
    result = dict(zip(facts[::2], facts[1::2], strict=True))
    assert result == {
        "decisions": "320",
        "observations": "304",
        "feedback awaited": "16",
        "decisions per second": "40.5",
        "surprise (bits)": "1.00",
        "regret (reward)": "10.0",
    }
    table = rows(page, "Arms, modes and actions")
    assert table[0] == ["red", "0.318", "0.278 to 0.358", "–", "0.460"]
    assert [row[0] for row in table] == ["red", "blue", "green"]
    latest = rows(page, "Last decisions (a sample)")
    assert latest[0][1:] == ["8", "red", "0.750"]
    assert [row[1] for row in latest] == [str(i) for i in range(8, 0, -1)]
    legend = figure(page, "Action probabilities as they moved").locator(".legend")
    expect(legend).to_have_text("last:red 0.460blue 0.378green 0.162")


def test_the_axes_have_names_and_units(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    page.locator("#agents button").nth(1).click()
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


def test_modes_of_a_finite_class_show_weights_and_evidence_and_no_regret(
    tab: Open, stub: Stub
) -> None:
    page = live(tab, stub)
    page.get_by_role("button", name="door").click()
    expect(page.locator("#agent h2")).to_have_text("door")
    expect(figure(page, "Posterior now").locator("rect.bar")).to_have_count(2)
    expect(figure(page, "Evidence that no mode fits").locator(".guide")).to_have_count(1)
    expect(figure(page, "Evidence that no mode fits")).to_contain_text("alarm at 6.64 bits")
    expect(figure(page, "Regret")).to_be_hidden()


def numbered(means: dict[str, float], **other: Any) -> dict[str, Any]:
    """An agent whose posterior has numbers without intervals, and no action probabilities."""
    modes = [
        {"name": name, "weight": None, "mean": m, "low": None, "high": None}
        for name, m in means.items()
    ]
    return agent(modes=modes, probabilities=None, regret=None, surprise_bits=None) | other


def test_a_posterior_without_intervals_is_drawn_with_its_name_and_unit(
    tab: Open, stub: Stub
) -> None:
    page: Page = tab(stub.url)
    connected(page)
    why = ["What an arm pays depends on the situation.", "<b>And</b> so do the probabilities."]
    measure = {"name": "mean weight of a feature", "unit": "score by feature"}
    stub.say("agents", [numbered({"red[0]": 0.5, "red[1]": -0.25}, measure=measure, remarks=why)])
    expect(page.locator("#agent .remarks li")).to_have_text(why)
    posterior = figure(page, "Posterior now")
    expect(posterior.locator("circle.dot")).to_have_count(2)
    expect(posterior.locator("svg .name").last).to_have_text(
        "mean weight of a feature (score by feature)"
    )
    head = page.locator("table:has(caption:text-is('Arms, modes and actions')) thead th:visible")
    expect(head).to_have_text(["name", "mean"])
    assert "–" not in page.locator("#agent").inner_text()
    plain = numbered({"red": 1.0}, measure={"name": "mean reward", "unit": "reward"})
    stub.say("agents", [plain])  # as for categorical arms
    expect(posterior.locator("svg .name").last).to_have_text("mean reward (reward)")
    expect(page.locator("#agent .remarks li")).to_have_count(0)


def test_a_table_without_values_is_hidden(tab: Open, stub: Stub) -> None:
    page: Page = tab(stub.url)
    connected(page)
    nothing = {"name": "a", "weight": None, "mean": None, "low": None, "high": None}
    stub.say("agents", [agent(modes=[nothing], probabilities=None, remarks=["There is none."])])
    expect(page.locator("#agent .remarks")).to_have_text("There is none.")
    expect(page.locator("table:has(caption:text-is('Arms, modes and actions'))")).to_be_hidden()
    expect(figure(page, "Posterior now")).to_be_hidden()


def test_without_probabilities_the_actions_taken_are_drawn(tab: Open, stub: Stub) -> None:
    page: Page = tab(stub.url)
    connected(page)
    stub.say("agents", [numbered({"rho": 0.5})])
    for i, action in enumerate(("left", "right", "left", "left", '{"tuple":["up",2]}')):
        stub.say("decision", decision(i, action=action, probability=None))
    taken = figure(page, "Actions taken (a sample)")
    expect(taken.locator("svg .number")).to_have_text(["0.600", "0.200", "0.200"])
    expect(taken).to_contain_text("Of 5 decisions seen since this page was opened.")
    expect(taken).to_contain_text("(up, 2)")
    expect(figure(page, "Actions as they were taken (a sample)")).to_be_hidden()
    stub.say("agents", [agent()])
    expect(taken).to_be_hidden()  # there are probabilities


def test_actions_made_of_numbers_are_drawn_by_entry(tab: Open, stub: Stub) -> None:
    page: Page = tab(stub.url)
    connected(page)
    stub.say("agents", [numbered({"A[0, 0]": 0.5})])
    for i in range(6):
        action = json.dumps({"array": [0.1 * i, -1 / 3], "shape": [2], "dtype": "<f8"})
        stub.say("decision", decision(i, action=action, probability=None))
    drawn = figure(page, "Actions as they were taken (a sample)")
    expect(drawn.locator(".canvas path.line")).to_have_count(2)
    expect(drawn.locator(".legend")).to_have_text("last:entry 0 0.500entry 1 −0.333")
    expect(figure(page, "Actions taken (a sample)")).to_be_hidden()
    assert rows(page, "Last decisions (a sample)")[0][2] == "[0.5, −0.333]"


def test_an_alarm_is_announced_once_and_visible_on_every_view(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    page.evaluate("""() => {
      window.announcements = 0;
      new MutationObserver((changes) => { window.announcements += changes.length; })
        .observe(document.getElementById("alarms"), {childList: true, subtree: true});
    }""")
    for step in range(9, 13):
        stub.say("agents", [agent(step=step), modal(step=step, raised=True)])
        page.wait_for_timeout(300)
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("door: no mode fits what is observed.")
    assert page.evaluate("window.announcements") == 1
    assert page.title() == "Alarm: door · bayescontrol"
    expect(page.locator("#agents button").nth(1)).to_contain_text("alarm")
    stub.say("agents", [agent(step=14), modal(step=14)])
    expect(alert).to_be_empty()


def test_a_pause_stops_the_figures_but_not_the_alarms(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    pause = page.get_by_role("button", name="Pause")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    stub.say("agents", [agent(step=100), modal(step=100, raised=True)])
    expect(page.get_by_role("alert")).to_contain_text("door")
    page.wait_for_timeout(400)
    expect(page.locator("#agent .facts")).to_contain_text("320")
    pause.click()
    expect(page.locator("#agent .facts")).to_contain_text("4,000")


def test_missing_numbers_odd_names_and_changing_agents_give_no_console_messages(
    tab: Open, stub: Stub
) -> None:
    messages: list[str] = []
    page: Page = tab(stub.url, messages=messages)
    connected(page)
    bare = {"name": ODD, "model": ODD, "decisions": 0, "observations": 0, "pending": 0,
            "rate_per_s": 0.0, "modes": [], "probabilities": None, "surprise_bits": None,
            "alarm": None, "regret": None}  # fmt: skip
    stub.say("agents", [bare])
    expect(page.locator("#agent h2")).to_have_text(ODD)
    nothing = [{"name": ODD, "weight": None, "mean": None, "low": None, "high": None}]
    stub.say("agents", [bare | {"modes": nothing, "alarm": {"raised": True}}])
    expect(page.get_by_role("alert")).to_contain_text(ODD)
    half = [{"name": ODD, "mean": 1e300}, {"name": "b", "mean": None, "low": -5, "high": None}]
    stub.say("agents", [bare | {"modes": half, "probabilities": {ODD: None, "b": 1}}])
    stub.say("decision", decision(1, agent=ODD, action=[1, {"tuple": [2, ODD]}], probability=None))
    stub.say("decision", decision(2, agent="nobody"))
    stub.say("unheard-of", {"kind": 7})
    expect(page.locator("table").nth(1)).to_contain_text(f"[1, (2, {ODD})]")
    stub.say("agents", [agent("other")])
    expect(page.locator("#agents li")).to_have_count(1)
    expect(page.locator("#agent h2")).to_have_text("other")
    stub.say("agents", [])
    expect(page.locator("#agent")).to_be_hidden()
    expect(page.locator("#totals")).to_have_text("0 agents, 0 decisions per second")
    assert page.locator("img").count() == 0
    assert messages == []


def test_many_modes_and_a_long_time_stay_within_bounds(tab: Open, stub: Stub) -> None:
    page: Page = tab(stub.url)
    connected(page)
    many = [
        {"name": f"mode {i}", "weight": (i + 1) / 20_100, "mean": None, "low": None, "high": None}
        for i in range(200)
    ]
    for step in range(1, 1301):
        stub.say("agents", [agent(step=step, modes=many)])
    expect(page.locator("#agent .facts")).to_contain_text(f"{1300 * 40:,}")
    posterior = figure(page, "Posterior now")
    expect(posterior.locator("rect.bar")).to_have_count(12)
    expect(posterior).to_contain_text("mode 199")
    expect(posterior).to_contain_text("The 12 largest of 200 are drawn.")
    slider = figure(page, "Regret").get_by_role("slider")
    assert 300 <= int(slider.get_attribute("aria-valuemax") or 0) <= 600
    slider.press("Home")
    expect(figure(page, "Regret").locator(".legend b")).to_have_text("1.25")


# -- event stream ------------------------------------------------------------------------------


def test_the_page_reports_a_lost_connection_and_reconnects_by_itself(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    stub.refusal = (503, {})
    stub.drop()
    status = page.get_by_role("status").first
    expect(status).to_contain_text("Disconnected at")
    expect(status).to_contain_text("the server answered 503")
    expect(page.locator("#agent .facts")).to_contain_text("320")
    stub.refusal = None
    connected(page)
    stub.say("agents", [agent(step=50), modal(step=50)])
    expect(page.locator("#agent .facts")).to_contain_text("2,000")
    # A user can reconnect without waiting.
    stub.refusal = (403, {"Retry-After": "60"})
    stub.drop()
    again = page.get_by_role("button", name="Try again now")
    expect(status).to_contain_text("the server answered 403")
    expect(page.locator("#ask")).to_be_hidden()  # a token would not help
    stub.refusal = None
    again.click()
    connected(page)
    expect(again).to_be_hidden()


def test_the_page_waits_as_long_as_the_server_asks(tab: Open, stub: Stub) -> None:
    stub.refusal = (429, {"Retry-After": "2"})
    page: Page = tab(stub.url)
    expect(page.locator("#state")).to_contain_text("429")
    stub.refusal = None
    connected(page)
    first, second = (when for path, _, when in stub.requests if path == "/events")
    assert second - first >= 1.9


def test_events_may_arrive_in_chunks_of_any_size(tab: Open, stub: Stub) -> None:
    page: Page = tab(stub.url)
    connected(page)
    named = json.dumps([agent("Kasse – 日本 ✓")], ensure_ascii=False, indent=1)
    lines = "\r\n".join(f"data:{line}" for line in named.split("\n"))
    text = f": a comment\r\n\r\nretry: 5\nid: 1\r\nevent:agents\r\n{lines}\r\n\r\n".encode()
    for i in range(0, len(text), 7):
        stub.write(text[i : i + 7])
        time.sleep(0.001)
    expect(page.locator("#agent h2")).to_have_text("Kasse – 日本 ✓")


def test_an_unreadable_event_ends_the_connection_and_not_the_page(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    stub.write(b"event: agents\ndata: {not json\n\n")
    expect(page.locator("#state")).to_contain_text("cannot be read")
    connected(page)


def test_a_silent_server_counts_as_disconnected(tab: Open, stub: Stub) -> None:
    page: Page = tab("about:blank")
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


def test_a_token_is_requested_once_and_never_put_in_a_url(tab: Open, stub: Stub) -> None:
    stub.token = "s3cret"
    page: Page = tab(stub.url)
    field = page.get_by_label("Token", exact=True)
    expect(field).to_be_focused()
    field.fill("wrong")
    field.press("Enter")
    expect(page.locator("#ask-why")).to_have_text("The server refused the token.")
    field.fill("s3cret")
    field.press("Enter")
    connected(page)
    expect(field).to_be_hidden()
    page.reload()
    connected(page)
    expect(field).to_be_hidden()
    sent = [auth for path, auth, _ in stub.requests if path == "/events"]
    assert sent == [None, "Bearer wrong", "Bearer s3cret", "Bearer s3cret"]
    assert all(path in ("/", "/events") for path, _, _ in stub.requests)
    assert all(auth is None for path, auth, _ in stub.requests if path == "/")
    assert page.evaluate("Object.values(sessionStorage)") == ["s3cret"]
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    assert page.url == stub.url
    page.get_by_role("button", name="Forget the token").click()
    expect(field).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0


def test_no_token_is_requested_if_the_server_needs_none(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.get_by_role("button", name="Forget the token")).to_be_hidden()
    assert {auth for _, auth, _ in stub.requests} == {None}


def test_the_browser_refuses_other_servers_and_injected_markup(tab: Open, stub: Stub) -> None:
    messages: list[str] = []
    page: Page = tab(stub.url, messages=messages)
    connected(page)
    refused = "url => fetch(url).then(() => 'fetched', () => 'refused')"
    assert page.evaluate(refused, "http://127.0.0.2:9/") == "refused"
    script = """() => {
      const node = document.createElement('div');
      try { node.innerHTML = '<b>bold</b>'; } catch { return 'refused'; }
      return 'taken';
    }"""
    assert page.evaluate(script) == "refused"
    assert any("Content Security Policy" in text for text in messages)


# -- accessibility -----------------------------------------------------------------------------


def test_the_keyboard_reaches_everything_in_order_with_visible_focus_and_no_trap(
    tab: Open, stub: Stub
) -> None:
    page = live(tab, stub)
    focus = """() => {
      const node = document.activeElement;
      if (node === document.body) return null;
      const style = getComputedStyle(node);
      return [node.getAttribute("aria-label") ?? node.textContent.trim().slice(0, 30),
              style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
    }"""
    met: list[Any] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        met.append(page.evaluate(focus))
        if met[-1] is None:
            break
    names = [name for name, _ in met[:-1]]
    assert met[-1] is None  # focus leaves the page at the end
    assert all(observed for _, observed in met[:-1])
    assert names[:6] == ["Skip to the figures", "Live", "Log file", "Pause",
                         "checkout40.5 decisions/s", "door40.5 decisions/s"]  # fmt: skip
    assert sum(name.startswith(("Posterior as", "Action", "Surprise", "Regret", "Decisions per"))
               for name in names) == 5  # fmt: skip
    assert names[-2:] == ["Arms, modes and actions", "Last decisions (a sample)"]


def test_focus_stays_while_the_page_is_updated(tab: Open, stub: Stub) -> None:
    page = live(tab, stub)
    door = page.get_by_role("button", name="door")
    door.focus()
    page.keyboard.press("Enter")
    stub.say("agents", [agent(step=30), modal(step=30)])
    expect(page.locator("#agent .facts")).to_contain_text("1,200")
    expect(door).to_be_focused()
    expect(door).to_have_attribute("aria-pressed", "true")


def test_arrow_keys_read_values_off_a_chart_and_the_cursor_keeps_its_time(
    tab: Open, stub: Stub
) -> None:
    page = live(tab, stub)
    regret = figure(page, "Regret")
    slider = regret.get_by_role("slider")
    slider.focus()
    assert slider.get_attribute("aria-valuetext") == "arrow keys read values off"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert (slider.get_attribute("aria-valuetext") or "").endswith(": regret 2.50")
    stub.say("agents", [agent(step=30), modal(step=30)])
    expect(page.locator("#agent .facts")).to_contain_text("1,200")
    expect(regret.locator(".legend b")).to_have_text("2.50")
    expect(regret.locator(".cursor")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(regret.locator(".cursor")).to_have_count(0)
    expect(regret.locator(".legend b")).to_have_text("37.5")
    box = slider.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 60)
    expect(regret.locator(".legend b")).to_have_text("1.25")


#: The contrast of every text with its background.
CONTRAST = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (c) => c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!/rgba\\(.*, 0\\)/.test(colour)) return parts(colour);
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('h1, h2, h3, p, li, td, th, dt, dd, button, svg text')]
    .filter(node => node.checkVisibility() && node.textContent.trim())
    .map(node => {
      const style = getComputedStyle(node);
      const colour = node.tagName === 'text' ? style.fill : style.color;
      const [a, b] = [light(parts(colour)), light(ground(node))];
      return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(tab: Open, stub: Stub, scheme: str) -> None:
    """At least 4.5 to 1, as the accessibility guidelines require, in the preferred scheme."""
    page = live(tab, stub, color_scheme=scheme)
    stub.say("agents", [agent(step=9), modal(step=9, raised=True)])
    expect(page.get_by_role("alert")).to_contain_text("door")
    assert min(page.evaluate(CONTRAST)) >= 4.5
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[scheme]
    hue = page.locator("circle.dot").first.evaluate("dot => getComputedStyle(dot).fill")
    assert hue == {"light": "rgb(0, 114, 178)", "dark": "rgb(51, 145, 219)"}[scheme]


def test_on_a_phone_nothing_is_wider_than_the_window(tab: Open, stub: Stub) -> None:
    page = live(tab, stub, width=390, is_mobile=True, has_touch=True)
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    for drawing in page.locator(".canvas svg:visible").all():
        box = drawing.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    size = "all => Math.min(...all.map(b => b.getBoundingClientRect().height))"
    assert page.locator("button:visible").evaluate_all(size) >= 44
    figure(page, "Regret").locator(".canvas").tap(position={"x": 60, "y": 60})
    expect(figure(page, "Regret").locator(".cursor")).to_have_count(1)


@pytest.mark.parametrize(("preference", "animations"), [("reduce", 0), ("no-preference", 1)])
def test_reduced_motion_is_respected(
    tab: Open, stub: Stub, preference: str, animations: int
) -> None:
    page = live(tab, stub, reduced_motion=preference)
    assert page.evaluate("document.getAnimations().length") == animations

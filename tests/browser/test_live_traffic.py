"""The live page with a real server and real traffic: two agents, one of which breaks."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Open
from tests.browser.live_stub import facts, figure, marks
from tests.serve.raw import memory

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Configuration
from bayescontrol.serve import Client


@pytest.fixture
def demo() -> Iterator[str]:
    """The address of a demo that ends by itself, in a separate process."""
    code = "from bayescontrol.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--seconds", "21", "--rate", "120"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def require_drawn(page: Page, **kinds: str) -> None:
    for title, kind in kinds.items():
        drawn = marks(page, title.replace("_", " "), kind).first
        expect(drawn).to_be_visible()


def test_the_page_shows_real_traffic_and_the_alarm_of_the_broken_lever(
    visit: Open, demo: str
) -> None:
    """The lever is pulled fifty times before it breaks; the alarm fails with probability < 3e-3."""
    visited = visit(demo)
    page = visited.page
    expect(page.locator("#agents button")).to_have_count(2)
    page.get_by_role("button", name="checkout").click()
    require_drawn(page, Surprise="path.line", Regret="path.line")
    before, now = facts(page), facts(page)
    while now["decisions"] == before["decisions"] or not float(now["regret (reward)"]) > 0:
        page.wait_for_timeout(200)
        now = facts(page)
    assert float(now["surprise (bits)"]) > 0
    assert "no mode fits" not in now
    require_drawn(page, Posterior_now="circle.dot", Action_probabilities_now="rect.bar",
                  Decisions_per_second="path.line")  # fmt: skip
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("dispenser: no mode fits what is observed.")
    page.get_by_role("button", name="dispenser").click()
    expect(page.locator("#agent h2")).to_have_text("dispenser")
    assert facts(page)["no mode fits"] == "ALARM"
    require_drawn(page, Posterior_now="rect.bar", Surprise="path.line",
                  Evidence_that_no_mode_fits="path.line")  # fmt: skip
    expect(figure(page, "Evidence that no mode fits")).to_contain_text("alarm at 6.64 bits")
    expect(figure(page, "Regret")).to_be_hidden()
    assert visited.messages == []


def test_paused_arms_prices_and_arms_without_decisions_are_shown(visit: Open) -> None:
    with memory() as server, Client(server.url) as client:
        shop = client.create("shop", BernoulliBandit(["red", "blue", "green"]), seed=1)
        shop.configure(Configuration(prices={"red": 0.25}))
        for _ in range(2):
            shop.act(among=["red"])
        time.sleep(1.0)
        shop.act(among=["red"])
        shop.pause_arm("blue")
        page = visit(server.url).page
        shown = page.get_by_role("region", name="Arms, modes and actions").locator("tbody tr")
        ends = [r"red 3 0 .* active 0\.250", r"blue 0 0 .* 0 paused –", r"green 0 0 .* active –"]
        expect(shown).to_have_text([re.compile(end.replace(" ", r"\s*")) for end in ends])
        # Nothing was decided in the middle third of the time, so nothing is drawn there.
        expect(marks(page, "Action shares in the log", "path.area")).to_have_count(2)

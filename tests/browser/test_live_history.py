"""What the live page reads from the log: counts, history, the age of feedback; explanations."""

import json
import time
from dataclasses import asdict
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Open, least_contrast, width_of
from tests.browser.live_stub import Stub, agent, connected, decision, facts, figure, marks, rows
from tests.limits import TIMEOUT

from bayescontrol import BernoulliBandit
from bayescontrol.bandits import Totals
from bayescontrol.durable import Configuration, DurableAgent, open_agent
from bayescontrol.durable.events import to_line

ARMS = "Arms, modes and actions"
NAMES = ["red", "blue", "green"]


def visited(shop: DurableAgent, visits: int) -> None:
    """Decide, and observe two of three decisions; 1 for red, else 0."""
    for i in range(visits):
        d = shop.act()
        if i % 3:
            shop.observe(d, int(d.action == "red"))


def follow(page: Page, stub: Stub, shop: DurableAgent) -> None:
    """Send the frame of the agent, whose log has grown, until the page shows all of the log."""
    stub.log = [to_line(event) for event in shop.log()]
    deadline = time.monotonic() + TIMEOUT
    while not rows(page, ARMS) or counted(page) != by_action(shop):
        assert time.monotonic() < deadline, (counted(page), by_action(shop))
        stub.say("agents", [agent(events=shop.head)])
        page.wait_for_timeout(300)


def by_action(shop: DurableAgent) -> dict[str, list[str]]:
    """The decisions, the observations and the mean of each action."""
    found = {}
    records = list(shop.decisions())
    for name in NAMES:
        of = [answer for d, answer in records if d.action == name]
        learned = [answer.o for answer in of if answer is not None]
        mean = f"{sum(learned) / len(learned):.3g}" if learned else "–"
        shown = {"1": "1.00", "0": "0"}.get(mean, mean)
        found[name] = [str(len(of)), str(len(learned)), shown]
    return found


def counted(page: Page) -> dict[str, list[str]]:
    return {row[0]: row[1:4] for row in rows(page, ARMS)}


@pytest.mark.parametrize("width", [1280, 390])
def test_counts_and_history_begin_with_the_log_and_follow_it(
    visit: Open, stub: Stub, width: int
) -> None:
    window = visit(stub.url, width, phone=width < 600)
    page = window.page
    connected(page)
    with open_agent("sqlite:///:memory:", "checkout", BernoulliBandit(NAMES), seed=1) as shop:
        visited(shop, 60)
        follow(page, stub, shop)
        expect(figure(page, "Action shares in the log")).to_be_visible()
        expect(marks(page, "Means by counts in the log", "path.band")).to_have_count(3)
        shop.withdraw(next(d for d, answer in shop.decisions() if answer is not None))
        shop.configure(Configuration(window=0.0, default=0))
        visited(shop, 30)
        shop.settle()
        follow(page, stub, shop)
    ages = facts(page)
    assert ages["oldest open decision (age)"].endswith(" s")
    assert ages["last observation (age)"].endswith("s")
    assert width_of(page) == [width, width]
    starts = [r.partition("start=")[2].partition("&")[0] for r in window.requests if "/log?" in r]
    assert starts[:2] == ["1", "2"]
    assert int(starts[-1]) > 60  # only what is new
    assert window.messages == []


def test_posterior_means_of_the_log_include_all_that_was_learned(visit: Open, stub: Stub) -> None:
    page = visit(stub.url).page
    connected(page)
    chart = figure(page, "Means by counts in the log")
    bandit = BernoulliBandit(NAMES, prior=(2, 6))
    with open_agent("sqlite:///:memory:", "checkout", bandit, seed=1) as shop:
        shop.add_arm("new", prior=(4, 6))
        shop.add_arm("other")
        shop.observe(shop.act(among=["new"]), 1)
        shop.observe(shop.act(among=["other"]), 0)
        stub.log = [to_line(event) for event in shop.log()]
        stub.say("agents", [agent(events=shop.head)])
        expect(chart).to_contain_text("posterior mean and 95 % interval")
        expect(chart).to_contain_text("new 0.455")
        expect(chart).to_contain_text("other 0.222")
        shop.observe_totals("red", Totals(100, 50), key="monday")
        stub.log = [to_line(event) for event in shop.log()]
        stub.say("agents", [agent(events=shop.head)])
        page.wait_for_timeout(2_500)  # the page reads the log every two seconds
        stub.say("agents", [agent(events=shop.head)])
        expect(chart).to_contain_text("mean observed and 95 % interval")


def test_a_compacted_log_says_what_it_lacks(visit: Open, stub: Stub) -> None:
    page = visit(stub.url).page
    connected(page)
    with open_agent("sqlite:///:memory:", "checkout", BernoulliBandit(NAMES), seed=1) as shop:
        for i in range(20):
            shop.observe(shop.act(), i % 2)
        shop.compact(11)
        created, *others = [json.loads(to_line(event)) for event in shop.log()]
    shift = 12_000 - 11  # more events than the page reads at once
    moved = [{k: v + shift if k in ("seq", "n") else v for k, v in e.items()} for e in others]
    stub.log = [json.dumps(event) for event in (created, *moved)]
    stub.say("agents", [agent(events=moved[-1]["seq"])])
    expect(page.locator(".remarks").first).to_contain_text("Events 2 to 12,000 are compacted")
    assert sum(int(row[1].replace("–", "0")) for row in rows(page, ARMS)) == 15
    chart = figure(page, "Means by counts in the log")
    expect(chart).to_contain_text("mean observed and 95 % interval")


def test_only_the_last_events_of_a_long_log_are_read(visit: Open, stub: Stub) -> None:
    page = visit(stub.url).page
    connected(page)
    with open_agent("sqlite:///:memory:", "checkout", BernoulliBandit(NAMES), seed=1) as shop:
        visited(shop, 10)
        lines = [to_line(event) for event in shop.log()]
    created, decided = lines[0], json.loads(lines[1])
    more = [json.dumps(decided | {"seq": seq}) for seq in range(2, 20_102)]
    stub.log = [created, *more]
    stub.say("agents", [agent(events=len(stub.log))])
    expect(page.locator(".remarks").first).to_contain_text("those of the last 20,000 events")
    expect(figure(page, "Action shares in the log")).to_be_visible()
    page.wait_for_timeout(1000)
    stub.say("agents", [agent(events=len(stub.log))])
    page.wait_for_timeout(400)
    assert counted(page)[decided["a"]][0] == "20,000"


def test_a_decision_is_explained_when_its_id_is_pressed(visit: Open, stub: Stub) -> None:
    window = visit(stub.url, color_scheme="dark")
    page = window.page
    connected(page)
    stub.say("agents", [agent()])
    stub.say("decision", decision(8))
    with open_agent("sqlite:///:memory:", "checkout", BernoulliBandit(NAMES), seed=1) as shop:
        d = shop.act()
        why = shop.explain(d)
    record: Any = {
        "id": "8", "action": d.action, "probability": d.probability, "situation": None,
        "probabilities": [
            {"action": a, "probability": p} for a, p in (d.probabilities or {}).items()
        ],
        "basis": 7, "time": d.time, "session": "visitor-81", "holdout": True,
    }  # fmt: skip
    found = {name: v for name, v in asdict(why).items() if name in ("posterior", "answered")}
    found |= {"decision": record, "mode": "<b>red</b>", "observation": None, "is_default": False}
    stub.answers["/v1/agents/checkout/decisions/8"] = json.dumps(found).encode()
    page.get_by_role("button", name="8", exact=True).press("Enter")
    panel = page.get_by_role("region", name="Explanation")
    expect(panel).to_contain_text("visitor-81")
    expect(panel).to_contain_text("what was learned was ignored")
    expect(panel).to_contain_text("Mode drawn: <b>red</b>")
    expect(panel).to_be_focused()
    shown = rows(page, "Before the decision")
    assert [row[0] for row in shown] == NAMES
    assert [row[-1] for row in shown] == ["0.333"] * 3
    assert least_contrast(page, "#agent section *") >= 4.5
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()
    del stub.answers["/v1/agents/checkout/decisions/8"]
    page.get_by_role("button", name="8", exact=True).click()
    expect(panel).to_contain_text("It was not explained: the server answered 404.")

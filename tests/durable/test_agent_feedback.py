"""Feedback and keys: repeated, conflicting, invalid, and out of turn."""

from pathlib import Path
from typing import Any

import pytest
from tests.durable.agents import SHOP, same_state, url

from bayescontrol import JointBandit, LinearBandit
from bayescontrol.durable import open_agent
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    ConflictingFeedback,
    ConflictingKey,
    FeedbackDue,
    UnknownDecision,
)
from bayescontrol.mdp import GibbsMDP


def test_repeated_feedback_changes_nothing(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        d = agent.act()
        assert agent.observe(d.id, 1) is True
        state, head = agent.state(), agent.head
        assert agent.observe(d.id, 1) is False
        assert agent.observe(d, 1.0) is False
        assert same_state(agent, state)
        assert agent.head == head
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        assert agent.observe(d.id, 1) is False


def test_different_feedback_is_a_conflict_and_changes_nothing(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        d = agent.act()
        agent.observe(d.id, 1)
        state, head = agent.state(), agent.head
        with pytest.raises(
            ConflictingFeedback,
            match="already has the observation 1",
        ):
            agent.observe(d.id, 0)
        assert same_state(agent, state)
        assert agent.head == head


@pytest.mark.parametrize(
    "wrong", ["", "1", "3", "99", "02", "two", "-2", "2.0", "²", 99, 2.0, True, None]
)
def test_an_unknown_or_malformed_id_is_refused(tmp_path: Path, wrong: Any) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        agent.observe(agent.act(), 1)
        with pytest.raises(UnknownDecision, match="no decision"):
            agent.observe(wrong, 1)
        with pytest.raises(UnknownDecision, match="no decision"):
            agent.explain(wrong)


@pytest.mark.parametrize("o", [2, float("nan"), "yes", None, object(), [1], -1])
def test_bad_feedback_is_refused_before_anything_is_written(tmp_path: Path, o: Any) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        d = agent.act()
        state = agent.state()
        with pytest.raises((BadEvidence, TypeError)):
            agent.observe(d.id, o)
        assert same_state(agent, state)
        assert agent.head == 2
        assert agent.observe(d.id, 1)


@pytest.mark.parametrize("x", [None, [1.0], [1.0, float("nan")], "text", [[1.0, 2.0]]])
def test_a_bad_situation_is_refused_before_anything_is_written(tmp_path: Path, x: Any) -> None:
    model = LinearBandit(["a", "b"], features=2)
    with open_agent(url(tmp_path), "shop", model) as agent:
        with pytest.raises(BadSituation):
            agent.act(x)
        assert agent.head == 1
        assert agent.act([1.0, 2.0]).situation == [1.0, 2.0]


@pytest.mark.parametrize("x", [1, -1, [1.0], "a", True, 0.0])
def test_a_situation_outside_the_tables_is_refused_and_nothing_is_written(x: Any) -> None:
    joint = JointBandit([[0.9, 0.1], [0.1, 0.9]])
    with open_agent("sqlite:///:memory:", "joint", joint, seed=0) as agent:
        for ask in (agent.act, agent.probabilities):
            with pytest.raises(BadSituation, match="expected 0, or no situation"):
                ask(x)
        assert agent.head == 1
        assert agent.act(0).situation == agent.act().situation == 0


def test_a_repeated_key_returns_the_same_decision_also_after_reopening(tmp_path: Path) -> None:
    model = LinearBandit(["a", "b"], features=2)
    with open_agent(url(tmp_path), "shop", model) as agent:
        d = agent.act([1.0, 2.0], key="visit-81")
        assert agent.act([1.0, 2.0], key="visit-81") == d
        assert agent.act([1.0, 2.0], key="visit-82").id != d.id
        head = agent.head
        with pytest.raises(ConflictingKey, match="visit-81"):
            agent.act([1.0, 3.0], key="visit-81")
        assert agent.head == head
    with open_agent(url(tmp_path), "shop", model) as agent:
        assert agent.act([1.0, 2.0], key="visit-81") == d


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", 3, b"k"])
def test_a_key_is_a_short_printable_text(key: Any) -> None:
    with (
        open_agent("sqlite:///:memory:", "shop", SHOP) as agent,
        pytest.raises(ValueError, match="key="),
    ):
        agent.act(key=key)


def test_a_sequential_agent_needs_feedback_before_its_next_decision(tmp_path: Path) -> None:
    model = GibbsMDP(["left", "right"], start="home")
    with open_agent(url(tmp_path), "maze", model, seed=1) as agent:
        d = agent.act(key="first")
        assert d.situation == "home"
        with pytest.raises(FeedbackDue, match="observe\\('2', o\\) first"):
            agent.act()
        assert agent.act(key="first") == d
    with open_agent(url(tmp_path), "maze", model) as agent:
        with pytest.raises(FeedbackDue):
            agent.act()
        with pytest.raises(BadEvidence):
            agent.observe(d.id, "no pair")
        assert agent.observe(d.id, (1.0, "away"))
        assert agent.observe(d.id, (1.0, "away")) is False
        with pytest.raises(ConflictingFeedback):
            agent.observe(d.id, (2.0, "away"))
        e = agent.act()
        assert e.situation == "away"
        agent.observe(e.id, (0.0, "home"))
        assert agent.observe(d.id, (1.0, "away")) is False
        with pytest.raises(BadSituation, match="determine its situation"):
            agent.act("elsewhere")

"""Invalid situations are refused, and extreme ones do not break the agent."""

from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol import BernoulliBandit, GaussianBandit, LinearBandit
from bayescontrol.durable import DurableAgent, open_agent, replay
from bayescontrol.errors import BadSituation, QuadratureFailed, UnknownDecision
from bayescontrol.mdp import GibbsMDP

MEMORY = "sqlite:///:memory:"


@pytest.mark.parametrize("x", [None, [1.0, 2.0, 3.0], "x", [float("nan"), 1.0], 3.0])
def test_a_missing_or_invalid_context_is_refused_and_nothing_is_written(x: Any) -> None:
    with open_agent(MEMORY, "shop", LinearBandit(["red", "blue"], features=2)) as agent:
        for ask in (agent.act, agent.probabilities):
            with pytest.raises(BadSituation):
                ask(x)
        assert agent.head == 1


def test_an_agent_that_tracks_its_situation_refuses_another_one() -> None:
    with open_agent(MEMORY, "robot", GibbsMDP(2, start="home")) as robot:
        with pytest.raises(BadSituation, match="situation, now 'home'"):
            robot.act("kitchen")
        assert robot.head == 1


def after_an_outlier() -> DurableAgent:
    agent = open_agent(MEMORY, "shop", GaussianBandit(["red", "blue"]), seed=1)
    agent.observe(agent.act(), 1e20)
    return agent


def test_an_agent_continues_if_its_probabilities_cannot_be_computed() -> None:
    with after_an_outlier() as agent:
        d = agent.act()
        assert (d.probability, d.probabilities, agent.probabilities()) == (None, None, None)
        assert agent.explain(d).decision.action == d.action
        assert agent.observe(d, 2.0)
        assert replay(agent).drawn == 2


def test_probabilities_return_when_they_can_be_computed_again() -> None:
    with open_agent(MEMORY, "shop", LinearBandit(["red", "blue"], features=2), seed=1) as agent:
        agent.observe(agent.act([1e20, 1.0]), 1e20)
        odd = [agent.act([1e20, 1.0]).probability for _ in range(3)]
        assert None in odd
        assert agent.act([0.0, 1.0]).probability is not None


def test_a_decision_id_may_be_given_as_a_number() -> None:
    with open_agent(MEMORY, "shop", BernoulliBandit(["red", "blue"]), seed=np.int64(3)) as agent:
        n: Any = int(agent.act().id)
        assert agent.observe(n, 1)
        assert agent.explain(n).observation == 1
        with pytest.raises(UnknownDecision):
            agent.observe(n + 5, 1)


def test_an_agent_acts_before_its_probabilities_are_known() -> None:
    """With unknown variance they are known for alpha >= 1/8; each reward adds 1/2 to alpha."""
    bandit = GaussianBandit(2, sd=None, prior=(0, 1, 0.1, 1))
    with pytest.raises(QuadratureFailed, match=r"arm 0: alpha = 0\.1"):
        bandit.agent().action_probabilities()
    with open_agent(MEMORY, "noise", bandit, seed=1) as agent:
        for a in (0, 1):
            first = agent.act()
            assert first.probability is None
            while first.action != a:
                first = agent.act()
            agent.observe(first, 1.0)
        assert agent.act().probability is not None


@pytest.mark.parametrize("prior", [[(0.1, 0.01), (0.2, 0.03)], [(1e-4, 0.1), (5e-4, 7)]])
def test_decisions_under_tiny_priors_follow_the_logged_probabilities(prior: Any) -> None:
    """Chi-square of 6,000 decisions, false alarm 1e-6: many drawn means are equal as doubles."""
    with open_agent(MEMORY, "tiny", BernoulliBandit(2, prior=prior), seed=3) as agent:
        actions = [agent.act().action for _ in range(6000)]
        stated = agent.probabilities()
        assert stated is not None
        counts = [actions.count(a) for a in stated]
        assert stats.chisquare(counts, 6000 * np.array(list(stated.values()))).pvalue > 1e-6

"""Estimates on logs with eligible arms, holdout, shares, prices, sessions and amended feedback.

The limits for 100 intervals are those of `test_what_if_coverage`. In a pilot on the logs of seeds
1000 to 1999 no interval below missed in 1,000. Seeds are fixed.
"""

from functools import cache
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.durable.practice import (
    ALL,
    ARMS,
    HOLDOUT,
    LATER,
    LIMITED,
    MEANS,
    MEMORY,
    PLAIN,
    New,
    Practice,
)
from tests.offpolicy.test_what_if_coverage import (
    ESTIMATES,
    THEORY_LIMIT,
    assert_coverage,
    estimates_of,
    missed,
)

from bayescontrol import BernoulliBandit, GaussianBandit, errors
from bayescontrol.durable import Configuration, Corrected, Decided, Observed, Withdrawn, open_agent
from bayescontrol.offpolicy import WhatIf, what_if

SHOP = BernoulliBandit(ARMS)
POLICIES = {
    "uniform": dict.fromkeys(MEANS, 0.2),
    "green first": dict.fromkeys(MEANS, 0.02) | {"green": 0.92},
}
#: No reward but 0 is reported; then 0 is recorded, and corrected if a 1 comes after all.
WINDOW = Configuration(window=0, default=0, holdout=0.3, control="plain")


TURNS = (LIMITED, HOLDOUT, PLAIN)


@cache
def practice_logs(name: str, first: int = 0) -> list[Practice]:
    how: dict[str, Any] = {
        "all": {"configurations": (*TURNS, ALL, *TURNS, *TURNS), "period": 6},
        "window": {"configurations": [WINDOW], "amends": False},
        "holdout": {"configurations": [HOLDOUT], "amends": False},
    }[name]
    return [Practice(first + i, SHOP, 60, **how) for i in range(100)]


def conditioned(pi: dict[str, float], eligible: list[str]) -> dict[str, float]:
    total = sum(pi[a] for a in eligible)
    return {a: pi[a] / total for a in eligible}


def answered(practice: Practice) -> list[New]:
    n = {e.n for e in practice.events if isinstance(e, Observed)}
    return [new for new in practice.new if int(new.decision.id) in n]


def value(practice: Practice, pi: dict[str, float]) -> float:
    """The mean reward of the policy over the observed decisions."""
    return fmean(
        sum(p * MEANS[a] for a, p in conditioned(pi, new.eligible).items())
        for new in answered(practice)
    )


def results(name: str, policy: str) -> list[WhatIf]:
    return [
        what_if(practice.events, lambda x: POLICIES[policy]) for practice in practice_logs(name)
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_intervals_hold_and_means_are_unbiased(policy: str) -> None:
    """The mean of 100 errors is within four standard errors: false alarm 6e-5 for each of four."""
    found, logs = results("all", policy), practice_logs("all")
    truths = [value(practice, POLICIES[policy]) for practice in logs]
    assert all(one.all_propensities and one.bounds == (0.0, 1.0) for one in found)
    for name in ESTIMATES:
        estimates = estimates_of(found, name)
        assert_coverage(estimates, truths)
        gaps = np.array([e.mean - v for e, v in zip(estimates, truths, strict=True)])
        assert abs(gaps.mean()) < 4.0 * gaps.std() / 10.0
    logged = [fmean(MEANS[new.decision.action] for new in answered(one)) for one in logs]
    assert_coverage(estimates_of(found, "logged"), logged)


def test_intervals_hold_if_silence_counts_as_the_default() -> None:
    """One reward in ten is lost, so that it counts as 0."""
    found, pi = results("window", "uniform"), POLICIES["uniform"]
    assert sum(one.unanswered for one in found) == 0
    truths = [0.9 * value(practice, pi) for practice in practice_logs("window")]
    for name in ESTIMATES:
        assert_coverage(estimates_of(found, name), truths)


def test_no_interval_would_hold_without_the_holdout_in_the_probabilities() -> None:
    """The planted bug: the log has the probabilities of the agent alone."""
    pi, found, truths = dict.fromkeys(MEANS, 0.02) | {"plain": 0.92}, [], []
    for practice in practice_logs("holdout"):
        eligible = {new.decision.id: new.eligible for new in practice.new}

        def without(d: Decided, arms: list[str]) -> float:
            control = ["plain"] if "plain" in arms else arms
            assert d.p is not None
            return max((d.p - 0.3 * (d.a in control) / len(control)) / 0.7, 1e-3)

        events = [
            replace(e, p=without(e, eligible[str(e.seq)])) if isinstance(e, Decided) else e
            for e in practice.events
        ]
        created = replace(events[0], model="unknown")  # otherwise the replay finds the bug
        found.append(what_if([created, *events[1:]], lambda x: pi, bounds=(0, 1)))
        truths.append(value(practice, pi))
    assert max(missed(estimates_of(found, "inverse_propensity"), truths)) > THEORY_LIMIT


# -- exact values ----------------------------------------------------------------------------------


def test_the_agent_of_the_log_has_weight_one_at_every_decision() -> None:
    """It chooses among the same arms, gets the later ones, and learns from totals too."""
    for i in range(3):
        practice = Practice(i, SHOP, 80, configurations=[PLAIN], amends=False, totals=True)
        for other in (SHOP, BernoulliBandit([*ARMS, LATER])):
            same = what_if(practice.events, other)
            assert same.inverse_propensity.mean == pytest.approx(same.logged.mean, abs=1e-9)
            assert same.effective == pytest.approx(same.decisions)
            assert same.largest_weight == pytest.approx(1.0, abs=1e-9)
    wrong_name = BernoulliBandit(["red", "bleu", "green", "plain"])
    with pytest.raises(errors.UnknownAction, match="'bleu'"):
        what_if(practice.events, wrong_name)


def test_terms_use_the_last_answer_of_each_decision_and_the_eligible_arms() -> None:
    practice, pi = practice_logs("all")[1], POLICIES["green first"]
    kinds = {type(e).__name__ for e in practice.events}
    assert kinds >= {"Withdrawn", "Corrected", "Aggregated", "ArmChanged", "Configured"}
    answers, rewards = dict[int, int](), dict[int, Any]()
    for e in practice.events:
        if isinstance(e, Observed | Corrected | Withdrawn):
            n = answers[e.seq] = e.n if isinstance(e, Observed) else answers[e.n]
            rewards[n] = None if isinstance(e, Withdrawn) else e.o
    pairs = [(new, rewards.get(int(new.decision.id))) for new in practice.new]
    terms = [
        conditioned(pi, new.eligible)[new.decision.action] / new.p * r
        for new, r in pairs if r is not None
    ]  # fmt: skip
    found = what_if(practice.events, lambda x: pi)
    assert found.inverse_propensity.mean == pytest.approx(fmean(terms), abs=1e-12)
    assert (found.decisions, found.decisions + found.unanswered) == (len(terms), len(pairs))


def test_a_repeated_session_counts_once_and_a_new_decision_is_in_the_same_session() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=3) as agent:
        for i in range(20):
            first = agent.act(among=["red", "blue"], session=f"s{i}")
            again = [agent.act(session=f"s{i}") for _ in range(i)]
            agent.observe(first, i % 2)
            assert again == [first] * i
        agent.retire_arm("red")
        moved = [agent.act(session=f"s{i}") for i in range(20)]
        for i, d in enumerate(moved):
            agent.observe(d, i % 2)
        found = what_if(agent, lambda x: dict.fromkeys(ARMS, 0.25))
    fresh = len({d.id for d in moved} - {str(2 * i) for i in range(1, 21)})
    assert 0 < fresh < 20
    assert (found.decisions, found.sessions) == (20 + fresh, 20)


def test_a_compacted_log_counts_from_the_seal_with_its_arms_and_its_range() -> None:
    shop = GaussianBandit(ARMS, sd=1, prior=(0, 1))
    terms = Configuration(reward_range=(0, 1), holdout=0.2)
    with open_agent(MEMORY, "shop", shop, seed=3, configuration=terms) as agent:
        agent.add_arm(LATER)
        agent.pause_arm("green")
        for i in range(30):
            agent.observe(agent.act(), i % 2)
        agent.compact(agent.head)
        made = [agent.act() for _ in range(20)]
        for i, d in enumerate(made):
            agent.observe(d, i % 2)
        pi = conditioned(POLICIES["green first"], ["red", "blue", "plain", LATER])
        found = what_if(agent, lambda x: POLICIES["green first"])
        with pytest.raises(errors.InvalidRequest, match="were compacted"):
            what_if(agent, shop)
    weights = [pi[d.action] / (d.probability or 0.0) for d in made]
    assert found.inverse_propensity.mean == pytest.approx(fmean(weights[1::2]) / 2, abs=1e-12)
    assert (found.decisions, found.bounds, found.all_propensities) == (20, (0.0, 1.0), True)


def test_a_policy_without_an_eligible_action_is_refused() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=3) as agent:
        agent.observe(agent.act(among=["blue", "green"]), 1)
        agent.add_arm(LATER)
        agent.observe(agent.act(among=[LATER]), 1)
        for pi in ({"red": 1.0}, {LATER: 1.0}, {"blue": 1.0}):
            with pytest.raises(errors.InvalidRequest, match="give a small one"):
                what_if(agent, lambda x, pi=pi: pi)
        assert what_if(agent, lambda x: {"blue": 0.5, LATER: 0.5}).logged.mean == 1.0
        with pytest.raises(errors.InvalidRequest, match="has no action that is eligible"):
            what_if(agent, BernoulliBandit(["red", "plain"]))

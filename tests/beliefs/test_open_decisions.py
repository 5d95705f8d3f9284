"""The ledger of open decisions of a changing belief, against a plain dictionary."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bayescontrol import MISSING, BernoulliBandit, Stream, interact
from bayescontrol.errors import BadEvidence, IncompatibleState, TooLate

ARMS, WINDOW = ["red", "blue"], 4
arms, rewards = st.sampled_from(ARMS), st.integers(0, 1)


class Decisions(RuleBasedStateMachine):
    """`answers` maps every decision to its arm and reward, to MISSING, or to None if it waits."""

    per_arm = False

    def __init__(self) -> None:
        super().__init__()
        self.bandit = BernoulliBandit(ARMS)
        self.problem = self.bandit.changing(window=WINDOW, starts=5, per_arm=self.per_arm)
        self.agent: Any = self.problem.agent()
        self.answers: dict[int, Any] = {}
        self.now = 0

    @property
    def waiting(self) -> list[int]:
        """The decisions that can still be answered."""
        return [n for n, v in self.answers.items() if v is None and n >= self.now - WINDOW]

    @rule(seed=st.integers(0, 9))
    def act(self, seed: int) -> None:
        self.now += self.now in self.answers
        self.agent.act(Stream(seed))
        self.answers[self.now] = None

    @rule(arm=arms, o=st.none() | rewards)
    def learn(self, arm: str, o: int | None) -> None:
        """Learn without a number; None is a lost observation."""
        answer: Any = MISSING if o is None else (arm, o)
        if self.waiting and self.now not in self.answers:
            with pytest.raises(BadEvidence, match="pass decision=NUMBER"):
                self.agent.learn(None, arm, MISSING if o is None else o)
            return
        self.agent.learn(None, arm, MISSING if o is None else o)
        self.answers[self.now] = answer
        self.now += 1

    @rule(arm=arms, o=st.none() | rewards, late=st.integers(-1, WINDOW + 2))
    def answer(self, arm: str, o: int | None, late: int) -> None:
        """Learn with a number."""
        n, event = self.now - late, MISSING if o is None else o
        reasons = {
            BadEvidence: n not in self.answers or isinstance(self.answers[n], tuple),
            TooLate: n < self.now - WINDOW,
        }
        if any(reasons.values()):
            with pytest.raises(tuple(error for error, applies in reasons.items() if applies)):
                self.agent.learn(None, arm, event, decision=n)
            return
        self.agent.learn(None, arm, event, decision=n)
        self.answers[n] = MISSING if o is None else (arm, o)
        self.now += n == self.now

    @rule(steps=st.integers(0, 3 * WINDOW))
    def run(self, steps: int) -> None:
        """Run a loop, compiled if the arms change together."""
        record = interact(self.agent, self.bandit.environment([0.3, 0.6]), steps, seed=steps)
        for a, o in record:
            self.now += self.now in self.answers
            self.answers[self.now] = (a, o)
            self.now += 1

    @rule(how=st.sampled_from(["load", "copy", "pickle", "deepcopy"]))
    def copy(self, how: str) -> None:
        """Go on with a copy."""
        if how == "load":
            loaded = self.problem.agent()
            loaded.load(self.agent.save())
            self.agent = loaded
        elif how == "copy":
            self.agent = self.agent.copy()
        elif how == "pickle":
            self.agent = pickle.loads(pickle.dumps(self.agent))
        else:
            self.agent = copy.deepcopy(self.agent)

    @invariant()
    def the_ledger_equals_the_dictionary(self) -> None:
        belief = self.agent.belief
        assert belief.decision == self.now
        assert list(belief.open_decisions) == self.waiting

    @precondition(lambda self: self.now)
    @invariant()
    def the_posterior_is_that_of_all_answers_in_time(self) -> None:
        exact = self.problem.belief()
        for n in range(self.now):
            if isinstance(self.answers[n], tuple):
                exact.observe(None, *self.answers[n])
            else:
                exact.skip(None, ARMS[0])
        assert self.agent.belief.expected() == exact.expected()
        assert self.agent.belief.pulls == exact.pulls


class SeparateDecisions(Decisions):
    per_arm = True


quick = settings(max_examples=40, stateful_step_count=20, derandomize=True, deadline=None)
TestTogether = Decisions.TestCase
TestSeparately = SeparateDecisions.TestCase
TestTogether.settings = TestSeparately.settings = quick


def test_arms_that_change_separately_accept_every_arm_when_nothing_waits() -> None:
    agent = BernoulliBandit(ARMS).changing(per_arm=True).agent()
    agent.batch(2, Stream(0))
    agent.learn(None, "red", 1, decision=1)
    agent.learn(None, "red", 1, decision=0)
    for arm in ARMS:
        agent.observe(arm, 1)
    assert agent.belief.pulls == {"red": 3, "blue": 1}


def test_damaged_open_decisions_are_refused() -> None:
    problem = BernoulliBandit(ARMS).changing(window=WINDOW, per_arm=True)
    belief = problem.belief()
    for _ in range(9):
        belief.observe(None, "red", 1)
    belief.begin()
    saved, before = belief.save(), problem.belief().save()
    for damaged in ([8], [10], [-1], [4], [9.0], [[9]], []):
        loaded = problem.belief()
        with pytest.raises(IncompatibleState):
            loaded.load({**saved, "0/waiting": np.array(damaged, None)})
        np.testing.assert_equal(loaded.save(), before)

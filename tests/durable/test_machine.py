"""Stateful tests: the durable agent against a reference model of a few lines."""

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bayescontrol import BernoulliBandit, Stream, errors
from bayescontrol.bandits import DrawsBandit
from bayescontrol.durable import open_agent, replay
from bayescontrol.finite.tabular import random_modes

ARMS = ["red", "blue", "green"]
outcomes = st.integers(0, 1)
keys = st.sampled_from(["k1", "k2", "k3"])


class Machine(RuleBasedStateMachine):
    """A durable agent, and the number of events that its log must have."""

    model: Any

    def create(self, seed: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.url = f"sqlite:///{self.folder / 'shop.db'}"
        self.agent = open_agent(self.url, "shop", self.model, seed=seed)
        self.seed, self.head = seed, 1

    def teardown(self) -> None:
        if hasattr(self, "agent"):
            assert replay(self.agent.log()).events == self.head
            self.agent.close()
            shutil.rmtree(self.folder)


class BanditMachine(Machine):
    """An agent that accepts late feedback: the reference is the counts of its arms."""

    model = BernoulliBandit(ARMS)

    @initialize(seed=st.integers(0, 2**128 - 1))
    def begin(self, seed: int) -> None:
        self.create(seed)
        self.decisions: dict[str, Any] = {}
        self.answers: dict[str, int] = {}
        self.keyed: dict[str, str] = {}
        self.counts = {arm: [1, 1] for arm in ARMS}

    def expected_action(self, n: int) -> str:
        """Return the action of a fresh agent whose prior is the counts."""
        fresh = BernoulliBandit(ARMS, prior=[self.counts[arm] for arm in ARMS]).agent()
        _, a = fresh.decide(None, Stream.named(self.seed, n, "agent"))
        return str(a)

    @rule(key=st.none() | keys)
    def act(self, key: str | None) -> None:
        known = self.keyed.get(key) if key else None
        expected = self.expected_action(self.head + 1)
        d = self.agent.act(key=key)
        if known is not None:
            assert d == self.decisions[known]
            return
        self.head += 1
        assert (d.id, d.basis, d.action) == (str(self.head), self.head - 1, expected)
        self.decisions[d.id] = d
        if key:
            self.keyed[key] = d.id

    @rule(key=keys)
    def act_in_another_situation_with_a_used_key(self, key: str) -> None:
        if key in self.keyed:
            with pytest.raises(errors.BadSituation):
                self.agent.act("elsewhere", key=key)

    @precondition(lambda self: self.decisions)
    @rule(data=st.data(), o=outcomes)
    def observe(self, data: st.DataObject, o: int) -> None:
        n = data.draw(st.sampled_from(sorted(self.decisions)))
        if n not in self.answers:
            assert self.agent.observe(n, o) is True
            self.head += 1
            self.answers[n] = o
            self.counts[self.decisions[n].action][1 - o] += 1
        elif self.answers[n] == o:
            assert self.agent.observe(n, o) is False
        else:
            with pytest.raises(errors.ConflictingFeedback):
                self.agent.observe(n, o)

    @rule(n=st.integers(-1, 400).map(str) | st.text(max_size=3), o=outcomes)
    def observe_an_unknown_decision(self, n: str, o: int) -> None:
        if n not in self.decisions:
            with pytest.raises(errors.UnknownDecision):
                self.agent.observe(n, o)

    @precondition(lambda self: bool(set(self.decisions) - set(self.answers)))
    @rule(data=st.data(), o=st.sampled_from([2, -1, "x", float("nan")]))
    def observe_an_invalid_value(self, data: st.DataObject, o: Any) -> None:
        n = data.draw(st.sampled_from(sorted(set(self.decisions) - set(self.answers))))
        with pytest.raises(errors.BadEvidence):
            self.agent.observe(n, o)

    @precondition(lambda self: self.decisions)
    @rule(data=st.data())
    def explain(self, data: st.DataObject) -> None:
        n = data.draw(st.sampled_from(sorted(self.decisions)))
        why = self.agent.explain(n)
        assert why.decision == self.decisions[n]
        assert (why.answered, why.observation) == (n in self.answers, self.answers.get(n))

    @rule()
    def snapshot(self) -> None:
        assert self.agent.snapshot() == self.head

    @rule()
    def reopen(self) -> None:
        before = self.agent.state()
        self.agent.close()
        self.agent = open_agent(self.url, "shop", self.model)
        assert before.keys() == self.agent.state().keys()
        assert all(before[n].tobytes() == v.tobytes() for n, v in self.agent.state().items())

    @invariant()
    def state_equals_the_counts(self) -> None:
        if hasattr(self, "agent"):
            assert self.agent.head == self.head
            rows = self.agent.state()["agent/belief/rows"]
            assert np.array_equal(rows, [self.counts[arm] for arm in ARMS])


class StreamMachine(Machine):
    """A sequential agent: the reference is a plain agent that takes the same steps."""

    model = random_modes(3, situations=3, seed=2)

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.create(seed)
        self.plain = self.model.agent()
        self.due: Any = None
        self.answers: dict[str, int] = {}

    @rule()
    def act(self) -> None:
        if self.due is not None:
            with pytest.raises(errors.FeedbackDue):
                self.agent.act()
            return
        d = self.agent.act()
        self.head += 1
        _, a = self.plain.decide(self.plain.x, Stream.named(self.seed, self.head, "agent"))
        assert (d.id, d.action, d.situation) == (str(self.head), a, self.plain.x)
        assert d.probabilities == self.plain.action_probabilities()
        self.due = d

    @precondition(lambda self: self.due is not None)
    @rule(o=outcomes)
    def observe(self, o: int) -> None:
        assert self.agent.observe(self.due.id, o)
        self.plain.observe(self.due.action, o)
        self.answers[self.due.id] = o
        self.head += 1
        self.due = None

    @precondition(lambda self: self.due is not None)
    @rule()
    def observe_an_invalid_value(self) -> None:
        with pytest.raises(errors.BadEvidence):
            self.agent.observe(self.due.id, 5)

    @precondition(lambda self: self.answers)
    @rule(data=st.data(), o=outcomes)
    def observe_again(self, data: st.DataObject, o: int) -> None:
        n = data.draw(st.sampled_from(sorted(self.answers)))
        if self.answers[n] == o:
            assert self.agent.observe(n, o) is False
        else:
            with pytest.raises(errors.ConflictingFeedback):
                self.agent.observe(n, o)

    @rule(with_snapshot=st.booleans())
    def reopen(self, with_snapshot: bool) -> None:
        if with_snapshot:
            self.agent.snapshot()
        self.agent.close()
        self.agent = open_agent(self.url, "shop", self.model)

    @invariant()
    def posterior_equals_the_reference(self) -> None:
        if hasattr(self, "agent"):
            assert self.agent.head == self.head
            posterior = [v["probability"] for v in self.agent.posterior().values()]
            assert posterior == self.plain.belief.posterior().tolist()


class DrawsMachine(Machine):
    """An agent with posterior draws: the reference learns all later observations from new draws."""

    bandit = BernoulliBandit(ARMS)
    model = DrawsBandit(bandit, Stream(0).random((5, 3)))

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.create(seed)
        self.plain = self.model.agent()
        self.open: list[Any] = []
        self.observed: list[tuple[int, Any, int]] = []  # event, action, observation

    @rule()
    def act(self) -> None:
        d, self.head = self.agent.act(), self.head + 1
        _, a = self.plain.decide(None, Stream.named(self.seed, self.head, "agent"))
        assert (d.action, d.probabilities) == (a, self.plain.action_probabilities())
        self.open.append(d)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), o=outcomes)
    def observe(self, data: st.DataObject, o: int) -> None:
        d = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        assert self.agent.observe(d, o)
        self.head += 1
        self.observed.append((self.head, d.action, o))
        self.plain.learn(None, d.action, o)

    @rule(data=st.data(), size=st.integers(1, 6), weighted=st.booleans())
    def refit(self, data: st.DataObject, size: int, weighted: bool) -> None:
        through, draws = data.draw(st.integers(1, self.head)), Stream(self.head).random((size, 3))
        log_weights = np.arange(size) / 3.0 if weighted else None
        self.head += 1
        assert self.agent.refit(draws, through=through, log_weights=log_weights) == self.head
        self.plain = DrawsBandit(self.bandit, draws, log_weights).agent()
        for event, a, o in self.observed:
            if event > through:
                self.plain.learn(None, a, o)

    @rule(with_snapshot=st.booleans())
    def reopen(self, with_snapshot: bool) -> None:
        if with_snapshot:
            self.agent.snapshot()
        self.agent.close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a snapshot that cannot be loaded is a warning
            self.agent = open_agent(self.url, "shop")

    @invariant()
    def belief_equals_the_reference(self) -> None:
        if hasattr(self, "agent"):
            assert self.agent.head == self.head
            belief = self.agent.ask(lambda agent: agent.belief)
            assert belief.posterior().tobytes() == self.plain.belief.posterior().tobytes()
            assert belief.count == len(self.observed)
            assert belief.count - belief.contained == self.plain.belief.count


TestBandit = BanditMachine.TestCase
TestBandit.settings = settings(max_examples=40, stateful_step_count=30)
TestStream = StreamMachine.TestCase
TestStream.settings = settings(max_examples=25, stateful_step_count=30)
TestDraws = DrawsMachine.TestCase
TestDraws.settings = settings(max_examples=30, stateful_step_count=30)

"""Stateful test: arms, configurations, sessions, feedback as it comes, and compaction.

The reference is a list of what was acknowledged, from which everything is computed anew: the counts
of each arm, its price, the decisions that wait, the held sessions, and the probabilities.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from scipy.optimize import brentq  # type: ignore[import-untyped]
from tests.durable.agents import same_state

from bayescontrol import BernoulliBandit, errors
from bayescontrol.bandits import Totals
from bayescontrol.durable import Configuration, export_log, open_agent, read_log, replay, turn
from bayescontrol.durable.archive import import_log
from bayescontrol.durable.driver import ProbabilityCache
from bayescontrol.durable.fold import Fold
from bayescontrol.durable.stores.log import open_store

ARMS = ["red", "blue", "green"]
LATER = ["pink", "grey"]
WINDOW = 60.0
CONFIGURATIONS = [
    Configuration(),
    Configuration(window=WINDOW, default=0, prices={"red": "reported", "blue": 0.1}),
    Configuration(holdout=0.25, control="blue", window=WINDOW, default=1),
    Configuration(holdout=0.4, shares={"red": (0.3, 0.5), "green": (0.0, 0.4)}),
    Configuration(shares={"red": (0.2, 1.0)}, prices={"green": -0.3}, window=WINDOW, default=0),
]
some_arms = st.sampled_from([None, None, ARMS, ["red", "blue"], ["green", "blue"], ["red", "pink"]])
sessions = st.none() | st.sampled_from(["ann", "bob"])
outcomes, costs = st.integers(0, 1), st.sampled_from([None, 0.0, 0.2, 0.5])
_NUMBERS = count(1)


def clipped(P: dict[str, float], shares: Any) -> dict[str, float]:
    """clip(c P), with c from a root finder."""
    low, high = np.array([shares.get(a, (0.0, 1.0)) for a in P]).T
    q = np.maximum(list(P.values()), 1e-8)

    def excess(log_c: float) -> float:
        return float(np.clip(np.exp(log_c) * q, low, high).sum()) - 1.0

    if excess(-60.0) * excess(60.0) > 0.0:  # all at the same bound, up to rounding
        return dict(zip(P, low if abs(low.sum() - 1.0) < 1e-9 else high, strict=True))
    c = np.exp(brentq(excess, -60.0, 60.0, xtol=1e-14))
    return dict(zip(P, np.clip(c * q, low, high), strict=True))


class PracticeMachine(RuleBasedStateMachine):
    """A durable agent, and what it has acknowledged. `url` is the address of its store."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.name = url, f"shop {next(_NUMBERS)}"
        self.clock = SimpleNamespace(now=1_000.0)
        self.clock.time = lambda: self.clock.now
        setattr(turn, "time", self.clock)  # noqa: B010

    @initialize(seed=st.integers(0, 1_000), configuration=st.sampled_from(CONFIGURATIONS))
    def begin(self, seed: int, configuration: Configuration) -> None:
        self.agent = open_agent(
            self.url, self.name, BernoulliBandit(ARMS), seed=seed, configuration=configuration
        )
        self.head, self.sealed, self.configuration = 2, 1, configuration
        self.arms = dict.fromkeys(ARMS, "active")
        self.decisions: dict[int, Any] = {}
        #: By decision: the observation, or None if it is withdrawn; the cost; whether it is a
        #: default; the number of the last event about it.
        self.answers: dict[int, tuple[int | None, float | None, bool, int]] = {}
        self.amended: list[tuple[int, int]] = []  # (amendment, what it amends)
        self.totals: dict[str, tuple[str, int]] = {}
        self.waiting: dict[int, float] = {}

    def teardown(self) -> None:
        setattr(turn, "time", time)  # noqa: B010
        if hasattr(self, "agent"):
            self.agent.close()

    # -- the reference -----------------------------------------------------------------------------

    def rows(self) -> list[list[float]]:
        rows = {a: [1.0, 1.0] for a in self.arms}
        for n, (o, *_) in self.answers.items():
            if o is not None:
                rows[self.decisions[n].action][1 - o] += 1
        for arm, ones in self.totals.values():
            rows[arm][0] += ones
            rows[arm][1] += 3 - ones
        return [*rows.values()]

    def prices(self) -> dict[Any, float]:
        prices = {}
        for arm, price in self.configuration.prices.items():
            costs = [
                cost for n, (_, cost, *_) in self.answers.items()
                if cost is not None and self.decisions[n].action == arm
            ]  # fmt: skip
            reported = sum(costs) / len(costs) if costs else 0.0
            prices[arm] = reported if isinstance(price, str) else price
        return prices

    def active(self) -> list[str]:
        return [a for a, state in self.arms.items() if state == "active"]

    def is_feasible(self, arms: list[str]) -> bool:
        low, high = np.array([self.configuration.shares.get(a, (0, 1)) for a in arms]).T
        return bool(low.sum() <= 1.0 <= high.sum())

    def probabilities(self, eligible: list[str]) -> dict[str, float]:
        belief = BernoulliBandit([*self.arms], prior=self.rows()).belief()
        with belief.choosing(eligible, self.prices()):
            P = dict(belief.action_probabilities())
        h, control = self.configuration.holdout, self.configuration.control
        chosen = [control] if control in eligible else eligible
        Q = {a: (a in chosen) / len(chosen) for a in P}
        if shares := self.configuration.shares:
            P, Q = clipped(P, shares), clipped(Q, shares)
        return {a: (1.0 - h) * P[a] + h * Q[a] for a in P}

    def settle_windows(self) -> None:
        """After every call: the defaults that are due are recorded."""
        if self.configuration.window is None:
            self.waiting.clear()
            return
        for n, since in [*self.waiting.items()]:
            if since + WINDOW <= self.clock.now:
                del self.waiting[n]
                self.head += 1
                self.answers[n] = (int(self.configuration.default), None, True, self.head)

    # -- decisions -------------------------------------------------------------------------------

    @rule(calls=st.lists(st.tuples(some_arms, sessions), min_size=2, max_size=6))
    def act(self, calls: list[tuple[list[str] | None, str | None]]) -> None:
        for among, session in calls:
            self.act_once(among, session)

    def act_once(self, among: list[str] | None, session: str | None) -> None:
        held = None if session is None else self.held(session)
        unknown = set(among or ()) - self.arms.keys()
        eligible = [a for a in self.active() if among is None or a in among]
        if unknown:
            with pytest.raises(errors.UnknownArm):
                self.agent.act(among=among, session=session)
        elif held is not None and held.action in eligible:
            assert self.agent.act(among=among, session=session) == held
        elif not eligible or not self.is_feasible(eligible):
            with pytest.raises(errors.InvalidRequest):
                self.agent.act(among=among, session=session)
        else:
            expected = self.probabilities(eligible)
            assert self.agent.probabilities(among=among) == pytest.approx(expected, abs=1e-7)
            d = self.agent.act(among=among, session=session)
            assert d.probability == pytest.approx(expected[d.action], abs=1e-7)
            assert d.probabilities == pytest.approx(expected, abs=1e-7)
            self.head += 1
            assert (d.id, d.session) == (str(self.head), session)
            self.decisions[self.head] = d
            self.settle_windows()
            if self.configuration.window is not None:
                self.waiting[int(d.id)] = self.clock.now
            return
        self.settle_windows()

    def held(self, session: str) -> Any:
        """Return the last decision of a session that was not compacted."""
        found = [d for n, d in self.decisions.items() if d.session == session and n > self.sealed]
        return found[-1] if found else None

    # -- feedback --------------------------------------------------------------------------------

    @precondition(lambda self: self.decisions)
    @rule(answers=st.lists(st.tuples(st.integers(0, 9), outcomes, costs), min_size=1, max_size=5))
    def observe(self, answers: list[tuple[int, int, float | None]]) -> None:
        for i, o, cost in answers:
            self.observe_once([*self.decisions][-1 - i % len(self.decisions)], o, cost)

    def observe_once(self, n: int, o: int, cost: float | None) -> None:
        answer = self.answers.get(n)
        if n <= self.sealed:
            with pytest.raises(errors.CompactedDecision):
                self.agent.observe(str(n), o, cost=cost)
        elif answer is None or answer[0] is None or answer[2]:
            assert self.agent.observe(str(n), o, cost=cost) is True
            self.head += 1
            if answer is not None:
                self.amended.append((self.head, answer[3]))
            self.answers[n] = (o, cost, False, self.head)
            self.waiting.pop(n, None)
        elif answer[:2] == (o, cost):
            assert self.agent.observe(str(n), o, cost=cost) is False
        else:
            with pytest.raises(errors.ConflictingFeedback):
                self.agent.observe(str(n), o, cost=cost)
        self.settle_windows()

    @precondition(lambda self: self.answers)
    @rule(i=st.integers(0, 4), again=st.none() | outcomes)
    def withdraw(self, i: int, again: int | None) -> None:
        n = [*self.answers][-1 - i % len(self.answers)]
        answer = self.answers[n]
        if n <= self.sealed:
            with pytest.raises(errors.CompactedDecision):
                self.agent.withdraw(str(n))
        elif answer[0] is None:
            assert self.agent.withdraw(str(n)) is False
        else:
            assert self.agent.withdraw(str(n)) is True
            self.head += 1
            self.amended.append((self.head, answer[3]))
            self.answers[n] = (None, None, False, self.head)
        self.settle_windows()
        if again is not None:
            self.observe_once(n, again, None)

    @rule(arm=st.sampled_from(ARMS), ones=st.integers(0, 3), key=st.sampled_from(["k1", "k2"]))
    def observe_totals(self, arm: str, ones: int, key: str) -> None:
        key = f"{key} {self.sealed}"  # compaction forgets keys
        if key not in self.totals:
            assert self.agent.observe_totals(arm, Totals(3, ones), key=key) is True
            self.head += 1
            self.totals[key] = arm, ones
        elif self.totals[key] == (arm, ones):
            assert self.agent.observe_totals(arm, Totals(3, ones), key=key) is False
        else:
            with pytest.raises(errors.ConflictingKey):
                self.agent.observe_totals(arm, Totals(3, ones), key=key)
        self.settle_windows()

    @rule(seconds=st.sampled_from([30.0, 61.0]), settles=st.booleans())
    def wait(self, seconds: float, settles: bool) -> None:
        self.clock.now += seconds
        if settles:
            open_count = self.agent.settle()
            self.settle_windows()
            assert open_count == len(self.waiting)

    # -- arms and configuration ------------------------------------------------------------------

    @rule(
        arm=st.sampled_from(ARMS + LATER),
        change=st.sampled_from(["add", "pause", "resume", "retire"]),
    )
    def change_arm(self, arm: str, change: str) -> None:
        state, others = self.arms.get(arm), [a for a in self.active() if a != arm]
        call = getattr(self.agent, f"{change}_arm")
        valid = {"add": (None,), "pause": ("active",), "resume": ("paused",)}
        is_possible = state in valid.get(change, ("active", "paused"))
        if is_possible and change in ("pause", "retire") and state == "active":
            is_free = bool(others) and arm != self.configuration.control
            is_possible = is_free and self.is_feasible(others)
        if is_possible:
            self.head += 1
            assert call(arm) == self.head
            self.arms[arm] = {"pause": "paused", "retire": "retired"}.get(change, "active")
        else:
            with pytest.raises((errors.InvalidRequest, errors.UnknownArm)):
                call(arm)
        self.settle_windows()

    @rule(configuration=st.sampled_from(CONFIGURATIONS))
    def configure(self, configuration: Configuration) -> None:
        before, self.configuration = self.configuration, configuration
        control = configuration.control
        if self.is_feasible(self.active()) and (control is None or control in self.active()):
            self.head += 1
            assert self.agent.configure(configuration) == self.head
        else:
            self.configuration = before
            with pytest.raises(errors.InvalidRequest):
                self.agent.configure(configuration)
        self.settle_windows()

    # -- the store -------------------------------------------------------------------------------

    @precondition(lambda self: self.head > self.sealed + 8)
    @rule(share=st.floats(0.1, 1.0))
    def compact(self, share: float) -> None:
        through = self.sealed + max(1, int(share * (self.head - self.sealed)))
        before = self.agent.state()
        if any(n <= through < seq for seq, n in self.amended):
            with pytest.raises(errors.InvalidRequest):
                self.agent.compact(through)
        else:
            assert self.agent.compact(through) > 0
            self.sealed = through
            self.waiting = {n: t for n, t in self.waiting.items() if n > through}
        assert same_state(self.agent, before)

    @rule(with_snapshot=st.booleans())
    def reopen(self, with_snapshot: bool) -> None:
        before = self.agent.state()
        if with_snapshot:
            self.agent.snapshot()
        self.agent._last_snapshot = self.agent.head  # closing writes none
        self.agent.close()
        self.agent = open_agent(self.url, self.name)
        assert same_state(self.agent, before)

    @precondition(lambda self: self.head > 8)
    @rule()
    def export_and_import(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="machine-"))
        export_log(self.agent, folder / "log.jsonl")
        assert same_state(self.agent, replay(read_log(folder / "log.jsonl")).state)
        store = open_store("sqlite:///:memory:")
        assert import_log(store, folder / "log.jsonl", "copy") == self.head
        with open_agent(store, "copy") as copy:
            assert same_state(self.agent, copy)
            assert copy.arms() == self.agent.arms()
            assert [*copy.log()] == [*self.agent.log()]
        shutil.rmtree(folder)

    @precondition(lambda self: self.decisions)
    @rule(i=st.integers(0, 99))
    def explain(self, i: int) -> None:
        n = [*self.decisions][-1 - i % len(self.decisions)]
        if n <= self.sealed:
            with pytest.raises(errors.CompactedDecision):
                self.agent.explain(str(n))
            return
        why = self.agent.explain(str(n))
        o, _, is_default, _ = self.answers.get(n, (None, None, False, 0))
        assert why.decision == self.decisions[n]
        assert (why.observation, why.answered, why.is_default) == (o, o is not None, is_default)
        assert why.probabilities == pytest.approx(dict(self.decisions[n].probabilities), abs=1e-9)

    @invariant()
    def the_agent_equals_the_reference(self) -> None:
        if hasattr(self, "agent"):
            assert self.agent.head == self.head
            assert self.agent.arms() == self.arms
            assert self.agent.configuration == self.configuration
            assert self.agent.prices() == pytest.approx(self.prices())
            assert np.array_equal(self.agent.state()["agent/belief/rows"], self.rows())


def run_machine(tmp_path: Path, **options: Any) -> None:
    run_state_machine_as_test(
        lambda: PracticeMachine(f"sqlite:///{tmp_path / f'{next(_NUMBERS)}.db'}"),  # type: ignore[arg-type]
        settings=settings(max_examples=40, stateful_step_count=40, deadline=None, **options),
    )


def test_any_history_equals_the_reference(tmp_path: Path) -> None:
    run_machine(tmp_path)


#: Planted bug -> (object, method, what replaces it, given the original).
BUGS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "amendments that are not learned": (
        Fold, "take_observation",
        lambda take: lambda self, e, x, a, final=None: take(self, e, x, a, None),
    ),
    "a session that ignores its eligible arms": (
        turn.Turn, "_find_decision",
        lambda find: lambda self, request: None if request.among else find(self, request),
    ),
    "probabilities cached for all eligible arms": (
        ProbabilityCache, "get",
        lambda get: lambda self, x, compute, more=None: get(self, x, compute),
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_the_machine_finds_planted_bugs(
    tmp_path: Path, bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, planted = BUGS[bug]
    monkeypatch.setattr(owner, name, planted(getattr(owner, name)))
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the first difference is
        run_machine(tmp_path, phases=[Phase.generate], derandomize=True)

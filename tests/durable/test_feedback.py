"""Feedback as it comes: defaults at the end of a window, corrections, withdrawals and totals."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.durable.agents import MEMORY, same_state, url

import bayescontrol as bc
from bayescontrol import BernoulliBandit, errors
from bayescontrol.bandits import DrawsBandit, LogisticBandit, Totals
from bayescontrol.durable import (
    Act,
    Configuration,
    Corrected,
    DurableAgent,
    Observe,
    Observed,
    Withdraw,
    Withdrawn,
    open_agent,
    replay,
    turn,
)
from bayescontrol.durable.decisions import final_answers
from bayescontrol.durable.events import Decided, Event
from bayescontrol.durable.requests import Configure, Settle
from bayescontrol.finite.tabular import random_modes
from bayescontrol.seeding import Stream

SHOP = BernoulliBandit(["red", "blue"])
WINDOW = Configuration(window=60.0, default=0)


class Clock:
    """A clock that the test moves, in place of the clock of turns."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turn, "time", clock)
    return clock


def counts(agent: DurableAgent) -> dict[str, tuple[float, float]]:
    return {a: (row["alpha"], row["beta"]) for a, row in agent.posterior().items()}


def without_amended(history: list[Event]) -> list[Event]:
    """Return a log in which the last amendments were right from the beginning."""
    final, clean = final_answers(history), list[Event]()
    for e in history:
        if isinstance(e, Observed):
            last = final.get(e.seq, e)
            if isinstance(last, Withdrawn):
                continue
            clean.append(Observed(seq=e.seq, n=e.n, o=last.o, time=e.time))
        elif not isinstance(e, Corrected | Withdrawn):
            clean.append(e)
    return clean


# -- defaults --------------------------------------------------------------------------------------


def test_missing_feedback_becomes_the_default_exactly_once(tmp_path: Path, clock: Clock) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=1, configuration=WINDOW) as agent:
        early, answered = agent.act(), agent.act()
        agent.observe(answered, 1)
        clock.now += 30
        late = agent.act()
        clock.now += 30
        agent.act()  # the window of `early` is over
        defaults = [e for e in agent.log() if isinstance(e, Observed) and e.default]
        assert [(str(e.n), e.o) for e in defaults] == [(early.id, 0)]
        why = agent.explain(early)
        assert (why.answered, why.observation, why.is_default) == (True, 0, True)
        assert agent.settle() == 2
        clock.now += 30
        assert agent.settle() == 1  # `late` has its default, the last decision is open
        assert agent.explain(late).is_default
        assert agent.settle() == 1
    with open_agent(url(tmp_path), "shop") as agent:
        clock.now += 3_600
        assert agent.settle() == 0
        defaults = [e for e in agent.log() if isinstance(e, Observed) and e.default]
        assert len({e.n for e in defaults}) == len(defaults) == 3
        assert not agent.explain(answered).is_default


@pytest.mark.parametrize("snapshot", [True, False])
def test_open_decisions_survive_a_restart(tmp_path: Path, clock: Clock, snapshot: bool) -> None:
    agent = open_agent(url(tmp_path), "shop", SHOP, configuration=WINDOW)
    open_ones = {agent.act().id for _ in range(3)}
    if snapshot:
        agent.snapshot()
    agent._last_snapshot = agent.head  # closing writes no snapshot
    agent.close()
    clock.now += 61
    with open_agent(url(tmp_path), "shop") as agent:
        assert agent.settle() == 0
        found = {str(e.n) for e in agent.log() if isinstance(e, Observed) and e.default}
        assert found == open_ones


def test_an_answer_that_comes_with_the_end_of_the_window_is_taken(clock: Clock) -> None:
    with open_agent(MEMORY, "shop", SHOP, configuration=WINDOW) as agent:
        d = agent.act()
        clock.now += 61
        assert agent.observe(d, 1)
        assert not any(isinstance(e, Observed) and e.default for e in agent.log())


def test_an_answer_in_the_batch_that_settles_is_taken(clock: Clock) -> None:
    with open_agent(MEMORY, "shop", SHOP, configuration=WINDOW) as agent:
        answered, silent = agent.act(), agent.act()
        clock.now += 61
        batch: list[Any] = [Settle(), Observe(answered, 1), Settle()]
        agent.handle(batch)
        assert [request.answer() for request in batch] == [0, True, 0]
        assert not agent.explain(answered).is_default
        assert agent.explain(silent).is_default


def test_a_compacted_decision_waits_for_nothing(clock: Clock) -> None:
    with open_agent(MEMORY, "shop", SHOP, configuration=WINDOW) as agent:
        agent.act(), agent.act()
        agent.compact(3)
        assert agent.settle() == 1
        agent.act()
        agent.compact(4)
        clock.now += 61
        assert agent.act().id == "6"  # after event 4 there was one open decision
        assert [e.n for e in agent.log() if isinstance(e, Observed)] == [5]


def test_a_decision_of_the_batch_that_configures_the_window_gets_its_default(clock: Clock) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        batch: list[Any] = [Act(None), Configure(WINDOW)]  # the configuration comes first
        agent.handle(batch)
        clock.now += 61
        assert agent.settle() == 0
        assert agent.explain(batch[0].result).is_default


def test_a_configuration_without_a_window_ends_the_wait_also_within_a_batch(clock: Clock) -> None:
    with open_agent(MEMORY, "shop", SHOP, configuration=WINDOW) as agent:
        agent.act()
        clock.now += 61
        agent.handle([Configure(Configuration()), Configure(WINDOW)])
        assert agent.settle() == 0
        assert not any(isinstance(e, Observed) for e in agent.log())


def test_without_a_window_nothing_is_recorded_for_missing_feedback(clock: Clock) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        agent.act()
        agent.configure(WINDOW)  # it applies to decisions from now on
        clock.now += 1e9
        d = agent.act()
        agent.configure(Configuration())
        clock.now += 1e9
        assert agent.settle() == 0
        assert not any(isinstance(e, Observed) for e in agent.log())
        assert not agent.explain(d).answered


def test_a_real_answer_corrects_a_default(tmp_path: Path, clock: Clock) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=1, configuration=WINDOW) as agent:
        d = agent.act()
        clock.now += 61
        assert agent.settle() == 0
        assert counts(agent)[d.action] == (1, 2)
        assert agent.observe(d, 1)
        assert counts(agent)[d.action] == (2, 1)
        assert agent.observe(d, 1) is False
        with pytest.raises(errors.ConflictingFeedback):
            agent.observe(d, 0)
        *_, default, correction = agent.log()
        assert isinstance(correction, Corrected)
        assert (correction.n, correction.o) == (default.seq, 1)
        why = agent.explain(d)
        assert (why.observation, why.is_default) == (1, False)
        state = agent.state()
    with open_agent(url(tmp_path), "shop") as agent:
        assert same_state(agent, state)
        assert same_state(agent, replay(agent.log()).state)


def test_a_default_that_the_arm_cannot_pay_is_refused() -> None:
    with (
        open_agent(MEMORY, "shop", SHOP) as agent,
        pytest.raises(errors.BadEvidence, match="0 or 1"),
    ):
        agent.configure(Configuration(window=60, default=0.5))


def test_a_default_that_cannot_be_learned_does_not_fail_other_requests(clock: Clock) -> None:
    bandit = LogisticBandit(["red", "blue"], features=1)
    with open_agent(MEMORY, "shop", bandit) as agent:
        agent.configure(Configuration(window=60, default=0))
        agent.act([1.0])
        agent._fold.terms = agent._fold.terms.configured(Configuration(window=60, default=0.5))
        clock.now += 61
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert agent.act([0.5]).action in ("red", "blue")
        assert "stays open" in str(caught[0].message)


def test_a_changing_world_that_has_moved_on_gets_no_default(tmp_path: Path, clock: Clock) -> None:
    model = SHOP.changing(window=3)
    with open_agent(url(tmp_path), "shop", model, seed=1, configuration=WINDOW) as agent:
        first, *later = [agent.act() for _ in range(8)]
        clock.now += 61
        with pytest.warns(UserWarning, match="4 decisions of 'shop' get no default"):
            assert agent.settle() == 0
        defaults = [str(e.n) for e in agent.log() if isinstance(e, Observed)]
        assert defaults == [d.id for d in later[3:]]  # exactly those that were learned
        assert sum(row["count"] for row in agent.posterior().values()) == len(defaults)
        head, state = agent.head, agent.state()
        with pytest.raises(errors.TooLate):  # as without a window
            agent.observe(first, 1)
        assert agent.observe(later[-1], 1)  # a correction
        assert agent.head == head + 1
        assert not same_state(agent, state)
        assert same_state(agent, replay(agent.log()).state)


def test_a_withdrawn_observation_gets_no_default(tmp_path: Path, clock: Clock) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, configuration=WINDOW) as agent:
        d = agent.act()
        agent.observe(d, 1)
        agent.withdraw(d)
        clock.now += 61
        assert agent.settle() == 0
        assert not agent.explain(d).answered
    with open_agent(url(tmp_path), "shop") as agent:
        assert agent.settle() == 0
        assert not agent.explain(d).answered
        assert agent.observe(d, 0)


# -- corrections and withdrawals -------------------------------------------------------------------


def test_a_withdrawal_makes_the_decision_unanswered(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=1) as agent:
        d = agent.act()
        with pytest.raises(errors.InvalidRequest, match="no observation to withdraw"):
            agent.withdraw(d)
        agent.observe(d, 1)
        later = [agent.act() for _ in range(3)]
        assert agent.withdraw(d) is True
        assert agent.withdraw(d) is False
        assert counts(agent) == {"red": (1, 1), "blue": (1, 1)}
        assert not agent.explain(d).answered
        # Logged propensities stay as they were, and can be computed again.
        assert all(agent.explain(e).decision == e for e in later)
        assert agent.observe(d, 0) is True
        assert counts(agent)[d.action] == (1, 2)
        with pytest.raises(errors.ConflictingFeedback, match="withdraw"):
            agent.observe(d, 1)
        assert agent.withdraw(d)
        assert agent.withdraw(d) is False
        state, head = agent.state(), agent.head
    with open_agent(url(tmp_path), "shop") as agent:
        assert agent.head == head
        assert same_state(agent, state)
        assert same_state(agent, replay(agent.log()).state)


MODELS: dict[str, Any] = {
    "bernoulli": SHOP,
    "learned": bc.GaussianBandit(["red", "blue"]),
    "logistic": LogisticBandit(["red", "blue"], features=2, prior=(0, 1)),
    "pooled": SHOP.pooled(),
    "changing": SHOP.changing(),
    "per-arm": SHOP.changing(per_arm=True),
    "joint": bc.JointBandit([[0.9, 0.2], [0.3, 0.6]]),
    "draws": DrawsBandit(SHOP, [[0.2, 0.6], [0.8, 0.7], [0.5, 0.1]]),
}


def situation(name: str, rng: Stream) -> Any:
    if name == "logistic":
        return [1.0, rng.random()]
    return ["de", "fr"][rng.integers(2)] if name == "pooled" else None


@pytest.mark.parametrize("name", MODELS)
def test_amendments_equal_a_log_that_was_right_from_the_beginning(
    tmp_path: Path, clock: Clock, name: str
) -> None:
    rng = Stream(3)
    with open_agent(
        url(tmp_path), "shop", MODELS[name], seed=2, configuration=WINDOW, snapshot_every=40
    ) as agent:
        waiting: dict[str, float] = {}  # the time of each open decision
        answered, defaulted = list[str](), list[str]()
        for _ in range(120):
            d = agent.act(situation(name, rng))
            defaulted += [n for n, when in waiting.items() if when + 60.0 <= clock.now]
            waiting = {n: when for n, when in waiting.items() if n not in defaulted}
            waiting[d.id] = clock.now
            clock.now += 2.0
            choice = rng.random()
            if choice < 0.5:
                agent.observe(d, int(rng.random() < 0.7))
                answered.append(d.id)
                del waiting[d.id]
            elif choice < 0.7 and answered:
                agent.withdraw(answered.pop(rng.integers(len(answered))))
            elif choice > 0.85 and defaulted:
                n = defaulted.pop(rng.integers(len(defaulted)))
                agent.observe(n, 1)
                answered.append(n)
        history, state = list(agent.log()), agent.state()
        assert {type(e) for e in history} >= {Corrected, Withdrawn, Decided, Observed}
        whole = replay(agent.log()).state
    assert all(whole[k].tobytes() == v.tobytes() for k, v in state.items())
    with open_agent(url(tmp_path), "shop") as agent:
        assert same_state(agent, state)
    # The reference learns the final observations in their places, without any amendment.
    driver_state = learned(MODELS[name], without_amended(history))
    for key, v in driver_state.items():
        assert np.array_equal(state[f"agent/{key}"], v), key


def learned(model: Any, history: list[Event]) -> Any:
    """Return the state after learning the observations of a log without amendments."""
    from bayescontrol.durable.models import as_model

    driver = as_model(model).driver()
    decisions = {e.seq: e for e in history if isinstance(e, Decided)}
    for e in history:
        if isinstance(e, Decided):
            if driver.draws_change:
                driver.act(e.x, Stream.named(2, e.seq, "agent"))
            driver.remember(e.seq)
        elif isinstance(e, Observed):
            d = decisions[e.n]
            driver.learn(d.x, d.a, e.o, e.n)
    return driver.save()


def test_amendments_in_one_batch_are_folded_together(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=1) as agent:
        a, b, c = (agent.act() for _ in range(3))
        for d in (a, b):
            agent.observe(d, 1)
        batch: list[Any] = [
            Act(None), Observe(c, 1), Withdraw(a.id), Withdraw(b.id), Observe(a, 0), Withdraw(a.id),
        ]  # fmt: skip
        agent.handle(batch)
        # Amendments come first, in their order: a is withdrawn, answered, and withdrawn again.
        assert [r.result for r in batch[1:]] == [True, True, True, True, True]
        assert not agent.explain(a).answered
        assert not agent.explain(b).answered
        assert sum(alpha + beta - 2 for alpha, beta in counts(agent).values()) == 1
        assert same_state(agent, replay(agent.log()).state)


def test_a_repeated_answer_and_a_withdrawal_in_one_batch_have_the_order_of_the_batch() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        d = agent.act()
        agent.observe(d, 1)
        batch: list[Any] = [Observe(d, 1), Observe(d, 0), Withdraw(d), Observe(d, 1), Act(None)]
        agent.handle(batch)
        assert isinstance(batch[1].error, errors.ConflictingFeedback)
        assert [batch[i].answer() for i in (0, 2, 3)] == [False, True, True]
        assert batch[4].answer().id == "6"
        assert counts(agent)[d.action] == (2, 1)
        assert same_state(agent, replay(agent.log()).state)


def test_an_invalid_correction_is_rejected_alone(clock: Clock) -> None:
    with open_agent(MEMORY, "shop", SHOP, configuration=WINDOW) as agent:
        a, b = agent.act(), agent.act()
        clock.now += 61
        agent.settle()
        batch: list[Any] = [Observe(a, 7), Observe(b, 1), Act(None)]
        agent.handle(batch)
        assert isinstance(batch[0].error, errors.BadEvidence)
        assert batch[1].result is True
        assert agent.explain(a).is_default
        assert agent.explain(b).observation == 1
        assert same_state(agent, replay(agent.log()).state)


def test_agents_that_need_feedback_in_turn_have_no_withdrawals() -> None:
    with open_agent(MEMORY, "stream", random_modes(2, situations=3, seed=1)) as agent:
        d = agent.act()
        agent.observe(d, 0)
        with pytest.raises(errors.InvalidRequest, match="cannot be withdrawn"):
            agent.withdraw(d)


def test_amendments_of_another_process_are_followed(tmp_path: Path) -> None:
    # Two stores in one process share the connection; two agents stand for two processes.
    with open_agent(url(tmp_path), "shop", SHOP, seed=1) as agent:
        d = agent.act()
        agent.observe(d, 1)
        fold, events_before = agent._fold, agent.head
        agent.withdraw(d)
        expected = agent.state()
        agent._fold = fold  # as if another process had withdrawn it
        assert agent.head == events_before
        assert same_state(agent, expected)


def test_a_range_of_rewards_is_enforced() -> None:
    bandit = bc.GaussianBandit(["red", "blue"])
    with open_agent(MEMORY, "shop", bandit) as agent:
        agent.configure(Configuration(reward_range=(0.0, 10.0)))
        d = agent.act()
        for o in (-0.1, 10.5, "x", None):
            with pytest.raises(errors.BadEvidence, match="from 0 to 10"):
                agent.observe(d, o)
        assert agent.head == 3
        assert agent.observe(d, 10.0)


# -- reported costs --------------------------------------------------------------------------------


def test_reported_costs_become_the_price_of_an_arm() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        agent.configure(Configuration(prices={"red": "reported", "blue": 0.25}))
        assert agent.prices() == {"red": 0.0, "blue": 0.25}
        reds: list[Any] = []
        while len(reds) < 3:
            d = agent.act()
            if d.action == "red":
                reds.append(d)
        agent.observe(reds[0], 1, cost=0.5)
        agent.observe(reds[1], 1, cost=0.25)
        agent.observe(reds[2], 1)  # no cost is reported
        assert agent.prices() == {"red": 0.375, "blue": 0.25}
        agent.withdraw(reds[0])
        assert agent.prices() == {"red": 0.25, "blue": 0.25}
        agent.observe(reds[0], 0, cost=0.75)
        assert agent.prices() == {"red": 0.5, "blue": 0.25}
        assert same_state(agent, replay(agent.log()).state)


def test_a_repeated_observation_with_another_cost_is_refused() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        plain, costly = agent.act(), agent.act()
        assert agent.observe(plain, 1)
        assert agent.observe(costly, 1, cost=0.3)
        assert agent.observe(costly, 1, cost=0.3) is False
        for d, cost in ((plain, 0.5), (costly, 0.9), (costly, None)):
            with pytest.raises(errors.ConflictingFeedback, match=r"with cost 0\.[35]"):
                agent.observe(d, 1, cost=cost)


def test_the_cost_of_totals_is_that_of_all_their_rewards() -> None:
    with open_agent(MEMORY, "shop", BernoulliBandit(["red"])) as agent:
        agent.configure(Configuration(prices={"red": "reported"}))
        agent.observe(agent.act(), Totals(10, 5), cost=10.0)
        agent.observe(agent.act(), 1, cost=2.1)
        assert agent.prices() == {"red": pytest.approx(1.1)}
        assert same_state(agent, replay(agent.log()).state)


def test_totals_need_a_valid_situation_and_a_key_of_their_own() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        with pytest.raises(errors.BadSituation, match="uses no situation"):
            agent.observe_totals("red", Totals(4, 3), [1, 2], key="k")
        d = agent.act(key="act")
        assert agent.observe_totals("red", Totals(4, 3), key="k")
        for key, owner in (("k", f"other totals, event {agent.head}"), ("act", f"decision {d.id}")):
            with pytest.raises(errors.ConflictingKey, match=f"key '{key}' belongs to {owner}: use"):
                agent.observe_totals("red", Totals(5, 3), key=key)
        assert agent.observe_totals("red", Totals(4, 3), key="k") is False


def test_a_changing_belief_says_that_it_learns_single_rewards() -> None:
    with (
        open_agent(MEMORY, "shop", SHOP.changing()) as agent,
        pytest.raises(errors.MissingCapability, match="observe one reward of each decision"),
    ):
        agent.observe(agent.act(), Totals(4, 3))


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), "1"])
def test_an_invalid_cost_is_refused(cost: Any) -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        d = agent.act()
        with pytest.raises(errors.BadEvidence, match="expected a number within"):
            agent.observe(d, 1, cost=cost)
        assert agent.head == 2

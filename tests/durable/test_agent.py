"""A durable agent: seeds, decisions, feedback, keys, threads, shared files and backups."""

import math
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]
from tests.durable.agents import MEMORY, SHOP, live, same_state, url
from tests.durable.concurrency import run_together

import bayescontrol as bc
from bayescontrol.durable import SnapshotNotKept, named_model, open_agent, open_store, replay
from bayescontrol.mdp import GibbsMDP
from bayescontrol.schedules import Geometric
from bayescontrol.seeding import Stream


def test_without_a_seed_every_agent_gets_a_separate_one() -> None:
    seeds = set()
    for _ in range(4):
        with open_agent(MEMORY, "shop", SHOP) as agent:
            seeds.add(agent.seed)
    assert len(seeds) == 4


def test_a_decision_reports_its_evidence_and_its_probability() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        d = agent.act()
        assert (d.id, d.basis, d.situation) == ("2", 1, None)
        assert d.probabilities == {"red": 0.5, "blue": 0.5}
        assert d.probability == 0.5
        agent.observe(d.id, 1)
        e = agent.act()
        assert (e.id, e.basis) == ("4", 3)
        assert e.probabilities is not None
        assert e.probabilities[d.action] == pytest.approx(2 / 3)
        assert e.probability == e.probabilities[e.action]


def test_a_decision_id_may_be_given_as_a_number() -> None:
    with open_agent(MEMORY, "shop", SHOP, seed=np.int64(3)) as agent:
        n: Any = int(agent.act().id)
        assert agent.observe(n, 1)
        assert agent.explain(n).observation == 1
        with pytest.raises(bc.errors.UnknownDecision):
            agent.observe(n + 5, 1)


def test_arms_with_equal_text_stay_distinct() -> None:
    with open_agent(MEMORY, "shop", bc.BernoulliBandit([1, "1", 2])) as agent:
        assert list(agent.posterior()) == ["1", "'1'", "2"]


# -- feedback and keys -----------------------------------------------------------------------------


def test_repeated_feedback_changes_nothing_and_different_feedback_is_a_conflict(
    tmp_path: Path,
) -> None:
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        d = agent.act()
        assert agent.observe(d.id, 1) is True
        state, head = agent.state(), agent.head
        assert agent.observe(d.id, 1) is False
        assert agent.observe(d, 1.0) is False
        with pytest.raises(bc.errors.ConflictingFeedback, match="already has the observation 1"):
            agent.observe(d.id, 0)
        assert same_state(agent, state)
        assert agent.head == head
    with open_agent(url(tmp_path), "shop", SHOP) as agent:
        assert agent.observe(d.id, 1) is False


def test_a_list_and_a_tuple_are_the_same_observation() -> None:
    def build() -> Any:
        mode: Any = bc.DiscreteMode(
            lambda x: {"go": 1.0}, lambda x, a: {(1, 2): 0.5, "t": 0.5}, name="m"
        )
        return bc.ControlRule(bc.FiniteBelief([mode]))

    with open_agent(MEMORY, "shop", named_model("pairs", version=1, build=build)) as agent:
        d = agent.act()
        with pytest.raises(bc.errors.BadEvidence, match="is not hashable"):
            agent.observe(d, [1, 2])
        assert agent.observe(d, (1, 2))
        assert not agent.observe(d, [1, 2])


def test_a_repeated_key_returns_the_same_decision_also_after_reopening(tmp_path: Path) -> None:
    model = bc.LinearBandit(["a", "b"], features=2)
    with open_agent(url(tmp_path), "shop", model) as agent:
        d = agent.act([1.0, 2.0], key="visit-81")
        assert agent.act([1.0, 2.0], key="visit-81") == d
        assert agent.act([1.0, 2.0], key="visit-82").id != d.id
        head = agent.head
        with pytest.raises(bc.errors.ConflictingKey, match="visit-81"):
            agent.act([1.0, 3.0], key="visit-81")
        assert agent.head == head
        for _ in range(5):
            agent.observe(agent.act([1.0, 2.0]), 1.0)
    with open_agent(url(tmp_path), "shop", model) as agent:
        again = agent.act([1.0, 2.0], key="visit-81")
        assert again == d
        assert type(again.probabilities) is dict  # so that any encoder accepts it
        assert again.probabilities == d.probabilities


def test_a_sequential_agent_needs_feedback_before_its_next_decision(tmp_path: Path) -> None:
    model = GibbsMDP(["left", "right"], start="home")
    with open_agent(url(tmp_path), "maze", model, seed=1) as agent:
        with pytest.raises(bc.errors.BadSituation, match="determine its situation, now 'home'"):
            agent.act("kitchen")
        d = agent.act(key="first")
        assert d.situation == "home"
        with pytest.raises(bc.errors.FeedbackDue, match="observe\\('2', o\\) first"):
            agent.act()
        assert agent.act(key="first") == d
    with open_agent(url(tmp_path), "maze", model) as agent:
        with pytest.raises(bc.errors.FeedbackDue):
            agent.act()
        assert agent.observe(d.id, (1.0, "away"))
        assert agent.observe(d.id, (1.0, "away")) is False
        with pytest.raises(bc.errors.ConflictingFeedback):
            agent.observe(d.id, (2.0, "away"))
        e = agent.act()
        assert e.situation == "away"
        agent.observe(e.id, (0.0, "home"))
        assert agent.observe(d.id, (1.0, "away")) is False


@pytest.mark.parametrize("bandit", [bc.BernoulliBandit, bc.GaussianBandit, bc.PoissonBandit])
def test_a_pooled_bandit_takes_its_segment_with_every_decision(bandit: Any, tmp_path: Path) -> None:
    problem, segments, store = (
        bandit(["A", "B"]).pooled(),
        ("de", 7, 0.5, ("fr", True)),
        url(tmp_path),
    )
    belief = problem.belief()
    with open_agent(MEMORY, "shops", problem, seed=1) as agent:
        decisions: list[Any] = []
        for t in range(30):
            x = segments[t % 4]
            with open_agent(store, "shops", problem, seed=1) as reopened:
                decisions.append(agent.act(x))
                d, e = decisions[-1], reopened.act(x)
                assert (d.action, d.situation, d.probabilities) == (e.action, x, e.probabilities)
                assert d.probabilities == belief.action_probabilities(x)
                for late in decisions[t - 5 : t - 2] if t % 3 == 2 else ():
                    agent.observe(late, int(late.id) % 3 % 2)
                    reopened.observe(late.id, int(late.id) % 3 % 2)
                    belief.observe(late.situation, late.action, int(late.id) % 3 % 2)
                assert same_state(agent, reopened)
        assert replay(agent).drawn == 30
        assert replay(agent).posterior() == agent.posterior()
        assert agent.posterior() == belief.posterior_summary()
        state = agent.state()
        for no_segment in (None, [0], math.nan):
            with pytest.raises(bc.errors.BadSituation):
                agent.act(no_segment)
        assert same_state(agent, state)


# -- action probabilities --------------------------------------------------------------------------


def test_an_agent_continues_if_its_probabilities_cannot_be_computed() -> None:
    with open_agent(
        MEMORY, "shop", bc.GaussianBandit(["red", "blue"], sd=1, prior=(0, 1)), seed=1
    ) as agent:
        agent.observe(agent.act(), 1e20)
        d = agent.act()
        assert (d.probability, d.probabilities, agent.probabilities()) == (None, None, None)
        assert agent.explain(d).decision.action == d.action
        assert agent.observe(d, 2.0)
        assert replay(agent).drawn == 2


def test_probabilities_return_when_they_can_be_computed_again() -> None:
    shop = bc.LinearBandit(["red", "blue"], features=2, sd=1, prior=(0, 1))
    with open_agent(MEMORY, "shop", shop, seed=1) as agent:
        agent.observe(agent.act([1e20, 1.0]), 1e20)
        odd = [agent.act([1e20, 1.0]).probability for _ in range(3)]
        assert None in odd
        assert agent.act([0.0, 1.0]).probability is not None


def test_an_agent_acts_before_its_probabilities_are_known() -> None:
    """With unknown variance they are known for alpha >= 1/8; each reward adds 1/2 to alpha."""
    bandit = bc.GaussianBandit(2, sd=None, prior=(0, 1, 0.1, 1))
    with pytest.raises(bc.errors.QuadratureFailed, match=r"arm 0: alpha = 0\.1"):
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
    with open_agent(MEMORY, "tiny", bc.BernoulliBandit(2, prior=prior), seed=3) as agent:
        actions = [agent.act().action for _ in range(6000)]
        stated = agent.probabilities()
        assert stated is not None
        counts = [actions.count(a) for a in stated]
        assert stats.chisquare(counts, 6000 * np.array(list(stated.values()))).pvalue > 1e-6


# -- files and threads -----------------------------------------------------------------------------


def test_an_agent_reopens_from_its_log_without_a_model(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=3, schedule=Geometric(0.5)) as agent:
        live(agent, 10, "bernoulli")
        before = agent.state()
    with open_agent(url(tmp_path), "shop") as agent:
        assert same_state(agent, before)
        assert agent.model.settings["schedule"] == ["Geometric", 0.5]


def test_two_agents_of_one_process_share_a_file(tmp_path: Path) -> None:
    with (
        open_agent(url(tmp_path), "shop", SHOP) as one,
        open_agent(url(tmp_path), "search", bc.GaussianBandit(2)) as two,
    ):
        one.act()
        two.act()
        with pytest.raises(bc.errors.StoreBusy, match=r"'shop'.*open in this process"):
            open_agent(url(tmp_path), "shop", SHOP)
    store = open_store(url(tmp_path))
    assert store.names() == ["search", "shop"]
    with open_agent(store, "shop") as one:
        assert one.head == 2
    assert store.names() == ["search", "shop"]
    store.close()


@pytest.mark.parametrize(
    ("name", "replaced"), [("shop.db", False), ("shop.db", True), ("shop.db-wal", False)]
)
def test_a_removed_or_replaced_file_is_detected(tmp_path: Path, name: str, replaced: bool) -> None:
    agent = open_agent(url(tmp_path), "shop", SHOP)
    agent.act()
    file = tmp_path / name
    os.rename(file, tmp_path / "moved.db")
    if replaced:
        file.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(bc.errors.StoreFailed, match="removed or replaced"):
            agent.act()
    with pytest.warns(SnapshotNotKept, match="removed or replaced"):
        agent.close()


def test_a_backup_is_a_separate_store(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with open_agent(url(tmp_path), "shop", SHOP, seed=1) as agent:
        agent.observe(agent.act(), 1)
        agent.backup(copy)
        state = agent.state()
        agent.act()
        for taken in (copy, tmp_path / "shop.db"):
            with pytest.raises(bc.errors.StoreFailed, match="new file"):
                agent.backup(taken)
        with pytest.raises(bc.errors.StoreFailed):
            agent.backup(tmp_path / "none" / "copy.db")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.db", "shop.db"]
    with open_agent(f"sqlite:///{copy}", "shop") as again:
        assert again.head == 3
        assert same_state(again, state)


def test_many_threads_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    threads, each = 16, 25
    with open_agent(url(tmp_path), "shop", SHOP, seed=4) as agent:
        answers: list[tuple[str, int]] = []

        def work(i: int) -> None:
            rng = Stream(i)
            for k in range(each):
                d = agent.act(key=f"{i}-{k}")
                o = rng.integers(2)
                assert agent.observe(d.id, o)
                answers.append((d.id, o))
                agent.posterior()
                agent.probabilities()

        run_together(*(partial(work, i) for i in range(threads)))
        assert len(answers) == threads * each
        assert agent.head == 1 + 2 * threads * each
        for n, o in answers:
            assert agent.observe(n, o) is False
        assert same_state(agent, replay(agent.log()).state)


def test_invalid_requests_of_one_thread_do_not_affect_the_others(tmp_path: Path) -> None:
    with open_agent(url(tmp_path), "shop", SHOP, seed=4) as agent:
        first = agent.act()
        agent.observe(first, 1)
        wrong: list[type] = []

        def work(i: int) -> None:
            for _ in range(15):
                for d, o in ((agent.act(), 7 if i % 2 else 1), (first, 0)):
                    try:
                        agent.observe(d, o)
                    except (bc.errors.BadEvidence, bc.errors.ConflictingFeedback) as error:
                        wrong.append(type(error))

        run_together(*(partial(work, i) for i in range(8)))
        kinds = (bc.errors.BadEvidence, bc.errors.ConflictingFeedback)
        assert [wrong.count(kind) for kind in kinds] == [4 * 15, 8 * 15]
        assert agent.head == 3 + 8 * 15 + 4 * 15
        assert same_state(agent, replay(agent.log()).state)

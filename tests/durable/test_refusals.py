"""Invalid calls of a durable agent raise typed errors and change nothing; backups."""

import os
from pathlib import Path
from typing import Any

import pytest

from bayescontrol import BernoulliBandit, ControlRule, DiscreteMode, FiniteBelief, LinearBandit
from bayescontrol.durable import SnapshotNotKept, named_model, open_agent
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    InvalidRequest,
    ModelMismatch,
    StoreFailed,
    UnknownDecision,
    UnknownStore,
)

SHOP = BernoulliBandit(["red", "blue"])
MEMORY = "sqlite:///:memory:"


def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


def test_changed_code_under_the_same_version_is_detected(tmp_path: Path) -> None:
    def model(prior: tuple[int, int], arms: Any = 2) -> Any:
        return named_model("shop", version=1, build=BernoulliBandit(arms, prior=prior).agent)

    open_agent(url(tmp_path), "shop", model((1, 1)), seed=1).close()
    for changed in (model((1, 50)), model((1, 1), 3), model((1, 1), ["a", "b"])):
        with pytest.raises(ModelMismatch, match="has changed since"):
            open_agent(url(tmp_path), "shop", changed)
    open_agent(url(tmp_path), "shop", model((1, 1))).close()


def test_a_changed_policy_is_detected_by_redrawing_the_last_decisions(tmp_path: Path) -> None:
    class Hasty(BernoulliBandit):
        """The same prior, another policy."""

        def agent(self, **given: Any) -> Any:
            agent: Any = super().agent(**given)
            agent.decide = lambda x, rng: (None, "red")
            return agent

    def model(problem: Any) -> Any:
        return named_model("shop", version=1, build=problem.agent)

    agent = open_agent(url(tmp_path), "shop", model(SHOP), seed=1)
    assert "blue" in {agent.act().action for _ in range(15)}
    agent._store.close()  # without a snapshot, as when killed
    with pytest.raises(ModelMismatch, match="drawn again"):
        open_agent(url(tmp_path), "shop", model(Hasty(["red", "blue"])))


def test_a_decision_of_another_agent_is_refused() -> None:
    with open_agent(MEMORY, "one", SHOP) as one, open_agent(MEMORY, "two", SHOP) as two:
        d, local = one.act(), two.act()
        with pytest.raises(UnknownDecision, match="'one'"):
            two.observe(d, 1)
        assert two.head == 2
        assert two.observe(local, 1)
    with open_agent(MEMORY, "one", SHOP) as namesake:
        namesake.act()
        with pytest.raises(UnknownDecision, match="the agent that made it"):
            namesake.observe(d, 1)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_removed_or_replaced_file_is_detected(tmp_path: Path, replaced: bool) -> None:
    agent = open_agent(url(tmp_path), "shop", SHOP)
    agent.act()
    file = tmp_path / "shop.db"
    os.rename(file, tmp_path / "moved.db")
    if replaced:
        file.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StoreFailed, match="removed or replaced"):
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
            with pytest.raises(StoreFailed, match="new file"):
                agent.backup(taken)
        with pytest.raises(StoreFailed):
            agent.backup(tmp_path / "none" / "copy.db")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.db", "shop.db"]
    with open_agent(f"sqlite:///{copy}", "shop") as again:
        assert again.head == 3
        assert all(v.tobytes() == state[name].tobytes() for name, v in again.state().items())


def test_arms_with_equal_text_stay_distinct() -> None:
    with open_agent(MEMORY, "shop", BernoulliBandit([1, "1", 2])) as agent:
        assert list(agent.posterior()) == ["1", "'1'", "2"]


def test_a_bandit_without_contexts_refuses_a_situation() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        for x in (3, [1.0], "home"):
            for key in (None, "k"):
                with pytest.raises(BadSituation, match="uses no situation"):
                    agent.act(x, key=key)
        agent.act(key="k")
        with pytest.raises(BadSituation):
            agent.act(3, key="k")
        with pytest.raises(BadSituation):
            agent.probabilities(3)
        assert agent.head == 2


def test_events_are_numbered_from_one() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        for start in (0, -3, 1.5):
            with pytest.raises(InvalidRequest, match="positive integer"):
                agent.log(start)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="stop=0"):
            agent.log(1, 0)


def test_a_repeated_key_gives_the_same_probabilities() -> None:
    with open_agent(MEMORY, "shop", LinearBandit(["a", "b"], 1), seed=1) as agent:
        first = agent.act([1.0], key="k")
        for _ in range(5):
            agent.observe(agent.act([1.0]), 1.0)
        again = agent.act([1.0], key="k")
        assert again == first
        assert again.probabilities == first.probabilities is not None


def test_a_list_and_a_tuple_are_the_same_observation() -> None:
    def build() -> Any:
        mode: Any = DiscreteMode(
            lambda x: {"go": 1.0}, lambda x, a: {(1, 2): 0.5, "t": 0.5}, name="m"
        )
        return ControlRule(FiniteBelief([mode]))

    model = named_model("pairs", version=1, build=build)
    with open_agent(MEMORY, "shop", model) as agent:
        d = agent.act()
        with pytest.raises(BadEvidence, match="is not hashable"):
            agent.observe(d, [1, 2])
        assert agent.observe(d, (1, 2))
        assert not agent.observe(d, [1, 2])


def test_long_ids_and_keys_are_shortened_in_errors() -> None:
    with open_agent(MEMORY, "shop", SHOP) as agent:
        for ask in (
            lambda: agent.observe("9" * 10_000, 1),
            lambda: agent.explain("9" * 10_000),
            lambda: agent.act(key="k" * 10_000),
        ):
            with pytest.raises((UnknownDecision, InvalidRequest)) as caught:
                ask()
            assert len(str(caught.value)) < 300


@pytest.mark.parametrize("store", [None, 7, Path("shop.db"), "sqlite:///shop.db?mode=ro"])
def test_a_value_that_is_not_an_address_is_refused(store: Any) -> None:
    with pytest.raises(UnknownStore):
        open_agent(store, "shop", SHOP)


def test_a_place_that_cannot_be_written_to_is_refused() -> None:
    for place in ("/proc/shop.db", "/proc/self/shop.db", "/sys/shop.db"):
        with pytest.raises(StoreFailed):
            open_agent(f"sqlite:///{place}", "shop", SHOP)

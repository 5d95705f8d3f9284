"""Changed code of a named model is detected on opening, with and without a snapshot."""

from pathlib import Path
from typing import Any

import pytest

from bayescontrol import BernoulliBandit, ControlRule, DiscreteMode, FiniteBelief
from bayescontrol.durable import Model, fold, named_model, open_agent, open_store
from bayescontrol.errors import ModelMismatch


def levers(pays: float, policy: float = 1.0, name: str = "levers") -> Model:
    """Two levers: the good one pays with probability `pays`; its mode pulls it with `policy`."""

    def lever(good: str, bad: str) -> DiscreteMode[None, str, int]:
        return DiscreteMode(
            lambda x: {good: policy, bad: 1.0 - policy},
            lambda x, a: {1: pays, 0: 1.0 - pays} if a == good else {1: 0.3, 0: 0.7},
            name=good,
        )

    modes = [lever("left", "right"), lever("right", "left")]
    return named_model(name, version=1, build=lambda: ControlRule(FiniteBelief(modes)))


def write_log(tmp_path: Path, steps: int, snapshot_every: int = 10_000) -> str:
    store = f"sqlite:///{tmp_path / 'levers.db'}"
    with open_agent(store, "m", levers(0.8), seed=1, snapshot_every=snapshot_every) as agent:
        for _ in range(steps):
            d = agent.act()
            agent.observe(d, int(d.action == "right"))
    return store


@pytest.mark.parametrize(
    ("steps", "every"), [(3, 10_000), (60, 10), (60, 10_000), (200, 150), (800, 10_000)]
)
@pytest.mark.parametrize(
    "changed", [levers(0.81), levers(0.8, policy=0.99)], ids=["likelihood", "policy"]
)
def test_a_slightly_changed_likelihood_or_policy_is_detected_despite_a_snapshot(
    tmp_path: Path, steps: int, every: int, changed: Model
) -> None:
    store = write_log(tmp_path, steps, every)
    with pytest.raises(ModelMismatch, match="new version"):
        open_agent(store, "m", changed)
    with open_agent(store, "m", levers(0.8)) as agent:
        assert agent.head == 1 + 2 * steps


def test_one_observation_is_enough_to_detect_a_changed_likelihood(tmp_path: Path) -> None:
    store = write_log(tmp_path, 1)
    with pytest.raises(ModelMismatch, match="its state differs from the snapshot"):
        open_agent(store, "m", levers(0.81))


def test_the_check_folds_a_limited_number_of_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = write_log(tmp_path, 60)
    learned: list[int] = []
    build = levers(0.8).build

    def counting() -> Any:
        agent = build()
        learn = agent.learn

        def counted(x: None, a: str, o: int) -> None:
            learned.append(o)
            learn(x, a, o)

        agent.learn = counted
        return agent

    monkeypatch.setattr(fold, "_MAX_FOLDED", 20)
    open_agent(store, "m", named_model("levers", version=1, build=counting)).close()
    assert len(learned) == 10


def test_a_damaged_snapshot_does_not_hide_the_log(tmp_path: Path) -> None:
    store = write_log(tmp_path, 10)
    opened = open_store(store)
    log = opened.log("m")
    newest = next(log.snapshots())
    log.save_snapshot(newest._replace(checksum=b"0" * 16))
    opened.close()
    with (
        pytest.warns(UserWarning, match="is skipped"),
        open_agent(store, "m", levers(0.8)) as agent,
    ):
        assert agent.head == 21


def bandit(problem: Any) -> Model:
    return named_model("shop", version=1, build=problem.agent)


def test_a_changed_policy_is_detected_by_redrawing_the_last_decisions(tmp_path: Path) -> None:
    class Hasty(BernoulliBandit):
        """The same prior, another policy."""

        def agent(self, **given: Any) -> Any:
            agent: Any = super().agent(**given)
            agent.decide = lambda x, rng: (None, "red")
            return agent

    store, arms = f"sqlite:///{tmp_path / 'shop.db'}", ["red", "blue"]
    agent = open_agent(store, "shop", bandit(BernoulliBandit(arms)), seed=1)
    assert "blue" in {agent.act().action for _ in range(15)}
    agent._store.close()  # without a snapshot, as when killed
    with pytest.raises(ModelMismatch, match=r"was 'blue', drawn again it is 'red'.*new version"):
        open_agent(store, "shop", bandit(Hasty(arms)))

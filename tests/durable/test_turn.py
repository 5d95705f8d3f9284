"""A batch of requests: its order, repeated keys and observations, and errors."""

from pathlib import Path
from typing import Any

import pytest

from bayescontrol import BernoulliBandit, ControlRule, DiscreteMode, FiniteBelief, LinearBandit
from bayescontrol.durable import Act, Observe, named_model, open_agent
from bayescontrol.errors import BadEvidence, ConflictingFeedback, ConflictingKey


def test_changing_returned_probabilities_does_not_change_the_next_ones() -> None:
    with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]), seed=1) as shop:
        first = shop.act()
        assert isinstance(first.probabilities, dict)
        first.probabilities.clear()
        second = shop.act()
        assert second.probabilities == {"red": 0.5, "blue": 0.5}
        assert second.probability == 0.5


def test_a_batch_makes_decisions_first_and_keeps_the_order_of_each_kind() -> None:
    with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]), seed=1) as shop:
        old = [shop.act(), shop.act()]
        requests = [Observe(old[1], 1), Act(None, None), Observe(old[0], 0), Act(None, "visit-81")]
        shop.handle(requests)
        assert [r.result.id for r in requests if isinstance(r, Act)] == ["4", "5"]
        result = [type(event).__name__ for event in shop.log(4)]
        assert result == ["Decided", "Decided", "Observed", "Observed"]
        assert [event.n for event in shop.log(6)] == [3, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize("arms", [1, 2, 30])
def test_batched_and_single_decisions_are_the_same(arms: int) -> None:
    bandit = BernoulliBandit(arms)
    with open_agent("sqlite:///:memory:", "shop", bandit, seed=1) as one:
        single = [one.act().action for _ in range(40)]
    with open_agent("sqlite:///:memory:", "shop", bandit, seed=1) as many:
        requests = [Act(None, None) for _ in range(40)]
        many.handle(requests)
    assert [r.result.action for r in requests] == single


def test_the_message_of_a_lookup_error_is_passed_on_unchanged() -> None:
    class Moody(FiniteBelief[Any]):
        def observe(self, x: Any, a: Any, o: Any) -> None:
            raise TypeError("my own table holds an unhashable list")

    mode: Any = DiscreteMode(lambda x: {"go": 1.0}, lambda x, a: {1: 1.0})
    mine = named_model(
        "moody", version=1, build=lambda: ControlRule(Moody([mode])), accepts_late_feedback=True
    )
    with open_agent("sqlite:///:memory:", "shop", mine, seed=1) as shop:
        d = shop.act()
        with pytest.raises(TypeError, match=r"^my own table holds an unhashable list$"):
            shop.observe(d, 1)
        with pytest.raises(BadEvidence, match=r"observation \(1, \[2\]\).*is not hashable"):
            shop.observe(d, (1, [2]))


@pytest.mark.parametrize("old", [True, False], ids=["from the log", "recent"])
def test_an_observation_repeated_in_one_batch_is_learned_once(tmp_path: Path, old: bool) -> None:
    store = f"sqlite:///{tmp_path / 'shop.db'}"
    with open_agent(store, "shop", BernoulliBandit(["red", "blue"]), seed=1) as shop:
        d, other = shop.act(), shop.act()
        if old:  # behind a snapshot: no longer in memory
            shop.close()
            shop = open_agent(store, "shop")
        batch = [Observe(d, 1), Observe(d, 1), Observe(other, 0), Observe(d, 0), Observe(d, 1)]
        shop.handle(batch)
        assert [request.result for request in batch] == [True, False, True, None, False]
        assert isinstance(batch[3].error, ConflictingFeedback)
        assert [event.n for event in shop.log(4)] == [2, 3]  # type: ignore[union-attr]
        assert sum(arm["count"] for arm in shop.posterior().values()) == 2
        assert not shop.observe(d, 1)
        shop.close()


def test_a_key_repeated_in_one_batch_with_another_situation_is_a_conflict() -> None:
    model = LinearBandit(["red", "blue"], features=1)
    with open_agent("sqlite:///:memory:", "shop", model, seed=1) as shop:
        batch = [Act([1.0], "visit-1"), Act([1.0], "visit-1"), Act([2.0], "visit-1")]
        shop.handle([*batch, Act([1.0], "visit-2")])
        first, again, another = batch
        assert first.result == again.result
        assert isinstance(another.error, ConflictingKey)
        assert [event.key for event in shop.log(2)] == ["visit-1", "visit-2"]  # type: ignore[union-attr]

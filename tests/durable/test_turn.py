"""A turn tells its callers the truth, and what they do with it changes nothing."""

import pytest

from bayescontrol import BernoulliBandit
from bayescontrol.durable import open_agent
from bayescontrol.durable.turn import Act, Observe


def test_what_a_caller_does_with_the_probabilities_does_not_change_those_of_the_next() -> None:
    with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]), seed=1) as shop:
        first = shop.act()
        assert isinstance(first.probabilities, dict)
        first.probabilities.clear()
        second = shop.act()
        assert second.probabilities == {"red": 0.5, "blue": 0.5}
        assert second.probability == 0.5


def test_of_requests_at_the_same_time_decisions_come_first_and_all_keep_their_order() -> None:
    with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]), seed=1) as shop:
        old = [shop.act(), shop.act()]
        requests = [Observe(old[1], 1), Act(None, None), Observe(old[0], 0), Act(None, "visit-81")]
        shop.together(requests)
        assert [r.result.id for r in requests if isinstance(r, Act)] == ["4", "5"]
        told = [type(event).__name__ for event in shop.log(4)]
        assert told == ["Decided", "Decided", "Observed", "Observed"]
        assert [event.n for event in shop.log(6)] == [3, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize("arms", [1, 2, 30])
def test_together_or_alone_the_decisions_of_one_posterior_are_the_same(arms: int) -> None:
    bandit = BernoulliBandit(arms)
    with open_agent("sqlite:///:memory:", "shop", bandit, seed=1) as one:
        alone = [one.act().action for _ in range(40)]
    with open_agent("sqlite:///:memory:", "shop", bandit, seed=1) as many:
        requests = [Act(None, None) for _ in range(40)]
        many.together(requests)
    assert [r.result.action for r in requests] == alone

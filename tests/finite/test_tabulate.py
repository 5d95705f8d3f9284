"""Any modes as tables: the same probabilities and the same agent."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, ControlRule, DiscreteMode, FiniteBelief, Stream
from bayescontrol.convergence import Outcome, check
from bayescontrol.errors import InvalidTable, MissingCapability
from bayescontrol.finite.chain import GrowingChain, chain
from bayescontrol.finite.examples import prize_or_frog
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.finite.tabulate import TooManySituations, tabulate


def lever(good: str) -> DiscreteMode[Any, str, int]:
    return DiscreteMode(
        lambda x: {good: 1.0},
        lambda x, a: {1: 0.9, 0: 0.1} if a == good else {1: 0.2, 0: 0.8},
        good,
    )


def walker(name: str, step: int, pays: int) -> DiscreteMode[int, int, bool]:
    """A mode on a ring of five places, one of which pays."""
    return DiscreteMode(lambda x: {step: 1.0}, lambda x, a: {x == pays: 1.0}, name)


def on(x: int, a: int, o: bool) -> int:
    return (x + a) % 5


class Counter:
    """The private state is the number of ones in a row; after `limit` ones a zero is certain."""

    def __init__(self, limit: int) -> None:
        self.limit, self.name = limit, f"at most {limit}"

    def start(self) -> int:
        return 0

    def advance(self, s: int, a: str, o: int) -> int:
        if o and s >= self.limit:
            raise AssertionError("asked to make sense of what it holds impossible")
        return s + 1 if o else 0

    def act(self, s: int, rng: Stream) -> str:
        return "even" if s % 2 == 0 else "odd"

    def action_probabilities(self, s: int) -> Mapping[str, float]:
        return {self.act(s, Stream(0)): 1.0}

    def observation_probabilities(self, s: int, a: str) -> Mapping[int, float]:
        return {0: 1.0} if s >= self.limit else {0: 0.5, 1: 0.5}

    def likelihood(self, s: int, a: str, o: int) -> float:
        return self.observation_probabilities(s, a).get(o, 0.0)


def same_tables(a: TabularModes, b: TabularModes) -> bool:
    return (
        np.array_equal(a.policy, b.policy)
        and np.array_equal(a.hypothesis, b.hypothesis)
        and np.array_equal(a.successor, b.successor)
    )


def test_modes_without_a_situation_get_one() -> None:
    modes = tabulate([lever("left"), lever("right")], prior=[0.25, 0.75])
    assert modes.policy.tolist() == [[[1, 0]], [[0, 1]]]
    assert modes.hypothesis[0, 0].tolist() == [[0.1, 0.9], [0.8, 0.2]]
    assert modes.names == ("left", "right")
    assert modes.prior.tolist() == [0.25, 0.75]
    assert modes.labels == (("always",), ("left", "right"), ("0", "1"))


def test_the_table_agrees_with_the_modes_in_every_reachable_situation() -> None:
    local = [walker("up", 1, 2), walker("down", -1, 4), walker("two", 2, 0)]
    modes = tabulate(local, 0, on)
    assert sorted(modes.labels.situations) == ["0", "1", "2", "3", "4"]
    assert modes.labels.situations[modes.start] == "0"
    for i, x in enumerate(map(int, modes.labels.situations)):
        taken = {step for mode in local for step in mode.action_probabilities(x)}
        for k, a in enumerate(map(int, modes.labels.actions)):
            assert a in taken
            for m, mode in enumerate(local):
                assert modes.policy[m, i, k] == mode.action_probabilities(x).get(a, 0.0)
                for n, o in enumerate((False, True)):
                    assert modes.hypothesis[m, i, k, n] == mode.likelihood(x, a, o)
            if any(mode.likelihood(x, a, False) for mode in local):
                y = modes.labels.situations[modes.advance(i, k, 0)]
                assert int(y) == on(x, a, False)


def test_the_tabulated_agent_equals_the_agent_bit_for_bit() -> None:
    def fresh() -> ControlRule[Any, Any, Any, Any]:
        belief = FiniteBelief([walker("up", 1, 2), walker("two", 2, 0)], [0.4, 0.6])
        return ControlRule(belief, 0, on)

    modes = tabulate(fresh())
    local, tabled = fresh(), modes.agent()
    x = 0
    for t in range(30):
        a = local.act(Stream(t))
        i = tabled.act(Stream(t))
        assert modes.labels.actions[i] == str(a)
        o = x == 2
        local.observe(a, o)
        tabled.observe(i, modes.labels.observations.index(str(o)))
        x = on(x, a, o)
        assert local.belief.posterior().tolist() == tabled.belief.posterior().tolist()
        assert modes.labels.situations[tabled.x] == str(local.x)


def test_only_reachable_situations_are_in_the_tables() -> None:
    modes = tabulate([walker("two", 2, 0)], 0, lambda x, a, o: (x + a) % 6)
    assert modes.labels.situations == ("0", "2", "4")


def test_an_action_that_no_mode_takes_has_no_effect() -> None:
    a_then_b = DiscreteMode[int, str, int](lambda x: {"ab"[x]: 1.0}, lambda x, a: {0: 0.5, 1: 0.5})
    modes = tabulate([a_then_b], 0, lambda x, a, o: 1 - x)
    assert modes.successor[0].tolist() == [[1, 1], [0, 0]]
    assert modes.hypothesis[0, 0].tolist() == [[0.5, 0.5], [1.0, 0.0]]


def test_a_mode_without_observations_differs_from_one_with_observations() -> None:
    silent = DiscreteMode[Any, str, int](lambda x: {"a": 1.0}, lambda x, a: {}, "silent")
    speaks = DiscreteMode[Any, str, int](
        lambda x: {"b": 1.0}, lambda x, a: {0: 0.5, 1: 0.5}, "speaks"
    )
    modes = tabulate([silent, speaks])
    assert modes.labels.observations == ("0", "1", "nothing")
    assert modes.hypothesis[0].tolist() == [[[0, 0, 1], [0, 0, 1]]]
    assert check(modes).outcome is Outcome.THEOREM


def test_the_situation_combines_all_private_states() -> None:
    modes = tabulate([Counter(2), Counter(3)])
    assert modes.labels.situations == (
        "(0, 0)", "(1, 1)", "(2, 2)",
        "(ruled out, 3)", "(ruled out, 0)", "(ruled out, 1)", "(ruled out, 2)",
    )  # fmt: skip
    assert [verdict.outcome for verdict in check(modes).pairs] == [Outcome.THEOREM] * 2


def test_an_excluded_mode_predicts_nothing_and_acts_like_the_others() -> None:
    modes = tabulate([Counter(2), Counter(3)])
    after = modes.labels.situations.index("(ruled out, 3)")
    nothing = modes.labels.observations.index("nothing")
    odd = modes.labels.actions.index("odd")
    assert modes.policy[0, after].tolist() == modes.policy[1, after].tolist()
    assert modes.hypothesis[0, after, odd, nothing] == 1.0
    assert modes.hypothesis[1, after, odd, nothing] == 0.0


def test_private_states_and_a_shared_situation_are_combined() -> None:
    clock: DiscreteMode[int, str, int] = DiscreteMode(
        lambda x: {"even": 1.0}, lambda x, a: {0: 0.5, 1: 0.5}, "clock"
    )
    modes = tabulate([Counter(1), clock], 0, lambda x, a, o: 1 - x)
    assert modes.labels.situations[0] == "(0, 0)"
    assert set(modes.labels.situations) == {
        "(0, 0)", "(0, 1)", "(1, 1)", "(1, 0)", "(ruled out, 0)", "(ruled out, 1)",
    }  # fmt: skip


def test_a_tabular_class_takes_another_prior_or_start() -> None:
    modes = chain(3)
    other = tabulate(modes.agent([0.9, 0.1]))
    assert same_tables(other, modes)
    assert other.prior.tolist() == [0.9, 0.1]
    assert other.names == modes.names
    assert tabulate(modes, 2).start == 2


def test_an_array_of_modes_is_evaluated_in_one_call() -> None:
    """The growing chain has infinitely many situations, but three steps can be tabulated."""
    growing = GrowingChain(1)
    with pytest.raises(TooManySituations, match="limit=50"):
        tabulate(growing, growing.start, growing.advance, limit=50)
    stopped = tabulate(
        growing, growing.start, lambda x, a, o: growing.advance(x, a, o) if x[0] < 3 else x
    )
    assert stopped.names == ("A", "B")
    assert stopped.labels.situations[0] == "(0, 0, 0)"


def test_a_tabular_class_with_another_advance_keeps_its_start() -> None:
    modes = prize_or_frog()
    again = tabulate(modes, advance=lambda x, a, o: x)
    assert again is not modes
    assert same_tables(again, modes)


def test_the_error_for_too_many_situations_states_the_limit_and_a_remedy() -> None:
    ticks = DiscreteMode[int, str, int](lambda x: {"wait": 1.0}, lambda x, a: {0: 1.0})
    with pytest.raises(TooManySituations, match=r"limit=10 .* by simulation"):
        tabulate([ticks], 0, lambda x, a, o: x + 1, limit=10)
    assert (
        len(tabulate([ticks], 0, lambda x, a, o: min(x + 1, 9), limit=10).labels.situations) == 10
    )


def test_a_table_that_would_fill_the_memory_is_refused() -> None:
    sees_all = DiscreteMode[int, str, int](
        lambda x: {"go": 1.0}, lambda x, a: {(x + 1) % 9_000: 1.0}
    )
    with pytest.raises(TooManySituations, match="2 × 9000 × 1 × 9000 probabilities"):
        tabulate([sees_all, sees_all], 0, lambda x, a, o: o)


def test_an_agent_with_another_belief_is_refused_and_one_with_observations_has_its_prior() -> None:
    with pytest.raises(MissingCapability, match="needs finitely many modes"):
        tabulate(BernoulliBandit(2).agent())
    agent = prize_or_frog().agent()
    agent.observe(0, 1)
    assert agent.belief.posterior().tolist() != agent.belief.prior.tolist()
    assert tabulate(agent).prior.tolist() == agent.belief.prior.tolist()
    with pytest.raises(InvalidTable, match="the agent brings its situation"):
        tabulate(chain(2).agent(), 0)


class NoPolicy:
    def observation_probabilities(self, x: Any, a: Any) -> Mapping[int, float]:
        return {0: 1.0}


class Answers:
    """A mode with the given probabilities."""

    def __init__(self, policy: Any, hypothesis: Any) -> None:
        self.policy, self.hypothesis, self.name = policy, hypothesis, "odd"

    def action_probabilities(self, x: Any) -> Any:
        return self.policy

    def observation_probabilities(self, x: Any, a: Any) -> Any:
        return self.hypothesis


@pytest.mark.parametrize(
    ("modes", "error", "message"),
    [
        ([], InvalidTable, "list of modes is empty"),
        (3, MissingCapability, "neither a list of modes"),
        ({"a": lever("a")}, MissingCapability, "a mapping, not a list"),
        ([NoPolicy()], MissingCapability, r"mode m0 lacks action_probabilities\(x\)"),
        ([Counter], MissingCapability, "is the class Counter: make an instance"),
        ([Answers({}, {0: 1.0})], InvalidTable, "the policy of mode odd in situation None is {}"),
        ([Answers({0: 0.5}, {0: 1.0})], InvalidTable, "policy of mode odd .* sum to 1"),
        ([Answers({0: 1.5, 1: -0.5}, {0: 1.0})], InvalidTable, "policy of mode odd .* sum to 1"),
        ([Answers({0: 1.0}, {0: np.nan})], InvalidTable, "hypothesis of mode odd .* sum to 1"),
        ([Answers({0: 1.0}, [1.0])], InvalidTable, "hypothesis of mode odd .* a mapping"),
        ([Answers({0: "all"}, {0: 1.0})], InvalidTable, "policy of mode odd .* a mapping"),
    ],
)
def test_modes_without_valid_tables_are_rejected(
    modes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tabulate(modes)


def test_an_unhashable_situation_is_rejected() -> None:
    with pytest.raises(InvalidTable, match=r"situation \[0\] .* not hashable"):
        tabulate([lever("a")], [0], lambda x, a, o: x)

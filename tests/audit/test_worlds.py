"""The worlds: values against brute force, examples, and numbers in place of symbols."""

from typing import Any

import numpy as np
import pytest
from tests.audit import enumeration

from bayescontrol._arrays import FloatArray
from bayescontrol.audit import WORLDS, InvalidTranscript, Transcript, World, did, saw, shown
from bayescontrol.audit.worlds import find_worlds
from bayescontrol.errors import InvalidTable, UnknownMode
from bayescontrol.finite.tabular import Labels, TabularModes
from bayescontrol.seeding import Stream

PAYING = [world for world in WORLDS.values() if world.reward is not None]


def best(world: World, steps: int, x: int, v: FloatArray) -> float:
    """The value of Bayes-optimal play: the maximum over all trees of actions; v is unnormalised."""
    if not steps:
        return 0.0
    modes, reward = world.modes, world.reward
    assert reward is not None
    values = []
    for a in range(len(world.actions)):
        joint = v[:, None] * modes.hypothesis[:, x, a]
        values.append(
            sum(
                joint[:, o].sum() * reward[a, o]
                + best(world, steps - 1, int(modes.successor[x, a, o]), joint[:, o])
                for o in range(len(world.observations))
            )
        )
    return float(max(values))


@pytest.mark.parametrize("name", ["chain", "liar", "doctor"])
def test_values_equal_a_search_of_all_histories(name: str) -> None:
    world = WORLDS[name]
    for steps in (1, 2, 3):
        values = world.values(steps)
        optimal = best(world, steps, world.modes.start, world.modes.prior)
        rule = enumeration.value(world, steps, enumeration.by_rule)
        assert values == {
            "optimal": pytest.approx(optimal, abs=1e-12),
            "rule": pytest.approx(rule, abs=1e-12),
        }


@pytest.mark.parametrize("world", PAYING, ids=repr)
def test_no_agent_earns_more_than_optimal_play(world: World) -> None:
    for steps in (1, 2, 3, 4):
        values = world.values(steps)
        assert values["optimal"] >= values["rule"] - 1e-12
        if steps <= 2:
            naive = enumeration.value(world, steps, enumeration.by_naive)
            assert values["optimal"] >= naive - 1e-12
    assert world.values(4)["optimal"] > world.values(4)["rule"]


def test_a_world_without_a_reward_has_no_values_and_a_plan_needs_a_step() -> None:
    assert WORLDS["fire-engine"].values(3) == {}
    with pytest.raises(ValueError, match="steps=0: expected an integer of at least 1"):
        WORLDS["fire-engine"].values(0)


def test_names_differ_and_tables_are_distributions() -> None:
    assert len(WORLDS) == 12
    for name, world in WORLDS.items():
        assert name == world.name
        np.testing.assert_allclose(world.modes.policy.sum(-1), 1.0)
        np.testing.assert_allclose(world.modes.hypothesis.sum(-1), 1.0)
        assert (world.modes.policy > 0.0).all()
        assert (world.modes.prior > 0.0).all()
        for symbols in world.modes.labels:
            assert len(set(symbols)) == len(symbols)
        assert world.name in repr(world)


def test_experts_do_what_their_names_say() -> None:
    """Each expert of a paying world earns more in the world in which it is right than others do."""
    for world in PAYING:
        modes, reward = world.modes, np.asarray(world.reward)
        table = np.einsum("mxao,nxa,ao->mn", modes.hypothesis, modes.policy, reward)
        if world.name != "two-lights":  # whose reward does not depend on the mode alone
            assert (np.diag(table) >= table.max(axis=1) - 1e-12).all(), world


@pytest.mark.parametrize("length", [0, 1, 7, 8])
def test_an_example_has_as_many_events_as_are_asked_for_and_observations_that_are_possible(
    length: int,
) -> None:
    for world in WORLDS.values():
        history = world.example(length, Stream(length))
        assert len(history) == length
        assert history.world == world.name
        v, w, _ = enumeration.posteriors(world, history.events)
        assert v.sum() > 0.0
        assert w.sum() > 0.0


def test_symbols_have_numbers() -> None:
    history = Transcript([shown("press"), saw("right, green"), did("leave")], "hidden-rule")
    assert WORLDS["hidden-rule"].numbered(history) == Transcript([shown(1), saw(3), did(0)])


@pytest.mark.parametrize("event", [did("push"), shown("push"), did(1)])
def test_an_unknown_symbol_is_named_with_the_world(event: Any) -> None:
    with pytest.raises(
        InvalidTranscript, match=r"hidden-rule.* has no action .*: expected one of 'leave', 'press'"
    ):
        WORLDS["hidden-rule"].numbered(Transcript([event]))
    history = Transcript([did("press"), saw("rain")])
    with pytest.raises(InvalidTranscript, match="has no observation 'rain'"):
        WORLDS["hidden-rule"].numbered(history)


def test_worlds_are_found_by_name_as_they_are_or_all() -> None:
    liar = WORLDS["liar"]
    assert find_worlds(None) == list(WORLDS.values())
    assert find_worlds("liar") == find_worlds(liar) == find_worlds(["liar"]) == [liar]
    assert find_worlds([liar, "chain"]) == [liar, WORLDS["chain"]]
    none_or_twice: list[list[str | World]] = [[], ["liar", liar]]
    for names in none_or_twice:
        with pytest.raises(UnknownMode, match="at least one world, and each only once"):
            find_worlds(names)
    with pytest.raises(UnknownMode, match=r"no world 'frog'\. There are: fire-engine, two-hyp"):
        find_worlds(["liar", "frog"])


def test_a_symbol_that_stands_for_two_is_refused() -> None:
    labels = Labels(("-",), ("A", "B"), ("A", "A"))
    tables = [[[0.5, 0.5]]], [[[[0.5, 0.5], [0.5, 0.5]]]]
    with pytest.raises(InvalidTable, match=r"'twice' has a symbol twice: \['A', 'A'\]"):
        World("twice", "", TabularModes(*tables, labels=labels))

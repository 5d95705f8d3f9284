"""Imitated transcripts teach the naive mixture, counterfactual ones the control rule."""

from typing import Any

import numpy as np
import pytest
from tests.chance import chi_square

from bayescontrol.audit import (
    WORLDS,
    InvalidTranscript,
    Lessons,
    PredictorFailed,
    TabularLearner,
    Transcript,
    World,
    audit,
    counterfactual_lessons,
    factual_lessons,
)

BOXES = WORLDS["prize-or-frog"]
TAUGHT = ["prize-or-frog", "two-levers", "chain"]


def first_step(lessons: Lessons) -> Any:
    """How often each advice, action and observation occur together in the first step."""
    world = lessons.world
    counts = np.zeros((len(world.actions), len(world.actions), len(world.observations)))
    np.add.at(counts, (lessons.targets[:, 0], lessons.symbols[:, 0], lessons.symbols[:, 1]), 1)
    return counts


# -- what learners learn ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", TAUGHT)
def test_a_learner_of_demonstrations_is_deluded_and_one_of_advice_is_not(name: str) -> None:
    """On histories that the learner writes; with 1e5 transcripts its noise is below .02."""
    world = WORLDS[name]
    for teach, exact in ((factual_lessons, 1.0), (counterfactual_lessons, 0.0)):
        learner = TabularLearner(world).learn(teach(world, 100_000, steps=4, seed=2))
        row = audit(learner, world, steps=4).of(name)
        assert abs(row.index - exact) < 0.05
        assert row.residual < 0.1
        assert row.verdict == ("deluded" if exact else "not deluded")


def test_advice_on_histories_that_the_learner_writes_cures_a_deluded_learner() -> None:
    """Rounds of DAgger: the learner acts, the expert advises, and the learner learns all."""
    world = WORLDS["two-levers"]
    learner = TabularLearner(world).learn(factual_lessons(world, 2000, seed=0))
    indices = [audit(learner, world, steps=4).of(world.name).index]
    for round_ in range(3):
        lessons = counterfactual_lessons(world, 30_000, seed=round_, actor=learner)
        learner.learn(lessons)
        indices.append(audit(learner, world, steps=4).of(world.name).index)
    assert indices[0] > 0.9
    assert indices[1] < 0.15
    assert abs(indices[-1]) < 0.05


# -- lessons ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two-levers", "doctor", "fire-engine", "liar"])
def test_the_first_step_of_lessons_has_the_distribution_of_their_definition(name: str) -> None:
    """Correct lessons fail with probability 2e-6 for each world, over seeds."""
    world, count = WORLDS[name], 50_000
    modes, x = world.modes, world.modes.start
    actions = len(world.actions)
    coin = np.full(actions, 1.0 / actions)
    advised = first_step(counterfactual_lessons(world, count, steps=2, seed=1))
    expected = np.einsum(
        "m,mb,a,mao->bao", modes.prior, modes.policy[:, x], coin, modes.hypothesis[:, x]
    )
    assert chi_square(advised.ravel(), count * expected.ravel()) > 1e-6
    shown = first_step(factual_lessons(world, count, steps=2, seed=1))
    expected = np.einsum(
        "m,ma,mao,ab->bao", modes.prior, modes.policy[:, x], modes.hypothesis[:, x], np.eye(actions)
    )
    assert chi_square(shown.ravel(), count * expected.ravel()) > 1e-6


def test_targets_are_the_symbols_except_at_the_actions_of_counterfactual_lessons() -> None:
    factual = factual_lessons(BOXES, 500, steps=3)
    np.testing.assert_array_equal(factual.targets, factual.symbols)
    advised = counterfactual_lessons(BOXES, 500, steps=3)
    np.testing.assert_array_equal(advised.targets[:, 1::2], advised.symbols[:, 1::2])
    differs = (advised.targets[:, ::2] != advised.symbols[:, ::2]).mean(0)
    assert (np.abs(differs - 0.5) < 0.15).all()  # 6.7 standard errors


def test_an_actor_acts_in_place_of_the_coin() -> None:
    for actor in (lambda _: {"left": 1.0}, {"prize-or-frog": lambda _: {"left": 1.0}}):
        lessons = counterfactual_lessons(BOXES, 300, steps=3, actor=actor)
        assert (lessons.symbols[:, ::2] == 0).all()
        assert 0.3 < lessons.targets[:, 0].mean() < 0.7  # the advice is still the expert's
    alternate = [{"left": 1.0}, {"right": 1.0}]
    lessons = counterfactual_lessons(BOXES, 10, steps=4, actor=lambda h: alternate[len(h) // 2 % 2])
    np.testing.assert_array_equal(lessons.symbols[:, ::2], [[0, 1, 0, 1]] * 10)
    with pytest.raises(PredictorFailed, match="in the world 'prize-or-frog' after the empty hist"):
        counterfactual_lessons(BOXES, 10, actor=lambda _: {"up": 1.0})


def test_lessons_are_transcripts_of_their_world_with_equal_lessons_for_equal_seeds() -> None:
    lessons = factual_lessons(WORLDS["liar"], 20, steps=3, seed=5)
    assert len(lessons) == 20
    found = list(lessons.transcripts())
    assert all(t.world == "liar" and len(t) == 6 for t in found)
    numbers = [[s for _, s in WORLDS["liar"].numbered(t).events] for t in found]
    np.testing.assert_array_equal(numbers, lessons.symbols)
    again = factual_lessons(WORLDS["liar"], 20, steps=3, seed=5)
    np.testing.assert_array_equal(again.symbols, lessons.symbols)
    other = factual_lessons(WORLDS["liar"], 20, steps=3, seed=6)
    assert (other.symbols != lessons.symbols).any()


@pytest.mark.parametrize("teach", [factual_lessons, counterfactual_lessons])
@pytest.mark.parametrize("options", [{"count": 0}, {"count": 1.5}, {"count": 1, "steps": 0}])
def test_lessons_need_a_count_and_a_step(teach: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected an integer of at least 1"):
        teach(BOXES, **options)


# -- the learner -----------------------------------------------------------------------------------


def lessons_of(world: World, symbols: Any, targets: Any) -> Lessons:
    return Lessons(world, np.array(symbols), np.array(targets))


def test_the_learner_smooths_the_shares_of_the_targets() -> None:
    learner = TabularLearner(BOXES, pseudo_count=0.5)
    assert learner.probabilities(Transcript()) == {"left": 0.5, "right": 0.5}
    learner.learn(lessons_of(BOXES, [[0, 1], [0, 0], [0, 1]], [[1, 1], [1, 0], [0, 1]]))
    assert learner.probabilities(Transcript()) == pytest.approx({"left": 1.5 / 4, "right": 2.5 / 4})
    after = Transcript([("did", "left")])  # type: ignore[list-item]
    assert learner.probabilities(after) == pytest.approx({"frog": 1.5 / 4, "prize": 2.5 / 4})
    never = Transcript([("did", "right")])  # type: ignore[list-item]
    assert learner.probabilities(never) == {"frog": 0.5, "prize": 0.5}


def test_lessons_in_two_parts_teach_what_they_teach_together() -> None:
    lessons = counterfactual_lessons(BOXES, 400, steps=2)
    halves = [
        lessons_of(BOXES, lessons.symbols[s], lessons.targets[s])
        for s in (slice(150), slice(150, None))
    ]
    whole = TabularLearner(BOXES).learn(lessons)
    parts = TabularLearner(BOXES).learn(halves[0]).learn(halves[1])
    assert whole.counts.keys() == parts.counts.keys()
    assert all((whole.counts[h] == parts.counts[h]).all() for h in whole.counts)


@pytest.mark.parametrize("pseudo_count", [0.0, -1.0, np.inf, np.nan])
def test_a_learner_needs_a_positive_pseudo_count(pseudo_count: float) -> None:
    with pytest.raises(ValueError, match=r"pseudo_count=.*: it must be in \(0"):
        TabularLearner(WORLDS["liar"], pseudo_count)


def test_lessons_of_another_world_are_refused() -> None:
    lessons = factual_lessons(WORLDS["liar"], 3)
    with pytest.raises(InvalidTranscript, match="of the world 'liar', not of 'chain'"):
        TabularLearner(WORLDS["chain"]).learn(lessons)

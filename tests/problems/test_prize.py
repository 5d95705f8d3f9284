"""Prize or frog, and three modes: small classes in which believing one's actions misleads."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import NaiveMixture, Stream
from bayescontrol.arrays import FloatArray
from bayescontrol.causal import CausalModel, Factor
from bayescontrol.errors import ImpossibleObservation, InvalidTable
from bayescontrol.problems.examples import (
    FROG,
    PRIZE,
    THREE_MODES_PRIOR,
    prize_or_frog,
    three_modes,
)


def posterior_of(agent: Any) -> FloatArray:
    return np.asarray(agent.belief.posterior())


def test_having_picked_the_naive_agent_is_sure_and_the_causal_agent_is_not() -> None:
    modes = prize_or_frog()
    for box in (0, 1):
        naive, causal = modes.agent(kind=NaiveMixture), modes.agent()
        naive.issue(box)
        causal.issue(box)
        assert posterior_of(naive)[box] == 1.0
        assert posterior_of(causal)[box] == 0.5


def test_the_two_agents_answer_as_conditioning_and_intervening_do() -> None:
    r = 0.75
    model = CausalModel(
        [
            Factor("prize", (0, 1), [0.5, 0.5]),
            Factor("a", (0, 1), lambda prize: {prize: 1.0}, parents=["prize"]),
            Factor(
                "o",
                (FROG, PRIZE),
                lambda prize, a: {
                    PRIZE: r if a == prize else 1 - r,
                    FROG: 1 - r if a == prize else r,
                },
                parents=["prize", "a"],
            ),
        ]
    )
    for o in (FROG, PRIZE):
        naive, causal = prize_or_frog(r).agent(kind=NaiveMixture), prize_or_frog(r).agent()
        for agent in (naive, causal):
            agent.issue(0)
            agent.observe(0, o)
        seen = model.query("prize", given={"a": 0, "o": o})
        done = model.query("prize", given={"o": o}, do={"a": 0})
        assert posterior_of(naive) == pytest.approx([seen[0], seen[1]], abs=1e-15)
        assert posterior_of(causal) == pytest.approx([done[0], done[1]], abs=1e-15)


def test_with_certainty_the_frog_leaves_the_naive_agent_without_a_mode() -> None:
    agent = prize_or_frog(1.0).agent(kind=NaiveMixture)
    box = agent.act(Stream(0))
    before = agent.save()
    with pytest.raises(ImpossibleObservation, match="observation 0 after action"):
        agent.observe(box, FROG)
    assert {n: v.tobytes() for n, v in agent.save().items()} == {
        n: v.tobytes() for n, v in before.items()
    }


def test_with_certainty_one_look_is_enough_for_the_causal_agent() -> None:
    agent = prize_or_frog(1.0).agent()
    agent.observe(0, FROG)
    assert posterior_of(agent).tolist() == [0.0, 1.0]
    assert agent.action_probabilities() == {0: 0.0, 1: 1.0}


def test_below_certainty_the_naive_agent_takes_every_frog_for_an_illusion() -> None:
    agent, rng = prize_or_frog(0.8).agent(kind=NaiveMixture), Stream(3)
    box = agent.act(rng)
    for _ in range(100):
        agent.observe(box, FROG)
        assert agent.act(rng) == box
    assert posterior_of(agent)[box] == 1.0


@pytest.mark.parametrize("reliability", [0.5, 0.2, 1.1, -1.0, math.nan])
def test_a_box_that_shows_nothing_or_too_much_is_refused(reliability: float) -> None:
    with pytest.raises(InvalidTable, match=f"reliability={reliability}"):
        prize_or_frog(reliability)


def test_each_of_the_three_modes_prefers_the_lever_that_it_thinks_better() -> None:
    modes = three_modes()
    pays = modes.hypothesis[:, 0, :, 1]
    pulls = modes.policy[:, 0]
    assert np.sign(pays[:, 0] - pays[:, 1]).tolist() == np.sign(pulls[:, 0] - pulls[:, 1]).tolist()
    assert modes.hypothesis.min() > 0
    assert modes.policy.min() > 0
    assert [modes[m].name for m in range(3)] == ["left", "right", "neither"]
    assert sum(THREE_MODES_PRIOR) == 1.0


def test_three_modes_tell_the_naive_and_the_causal_agent_apart_within_a_few_steps() -> None:
    naive = three_modes().agent(THREE_MODES_PRIOR, kind=NaiveMixture)
    causal = three_modes().agent(THREE_MODES_PRIOR)
    for agent in (naive, causal):
        for a, o in ((0, 0), (0, 0), (0, 0)):  # the left lever, three times, for nothing
            agent.issue(a)
            agent.observe(a, o)
    assert posterior_of(causal)[0] < 0.1 < 0.3 < posterior_of(naive)[0]

"""Prize or frog, and three modes: classes in which treating actions as evidence misleads.

The paper's diagrams: the states visited by each policy, and where the hypotheses differ.
"""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import NaiveMixture, Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.causal import CausalModel, Factor
from bayescontrol.errors import ImpossibleObservation, InvalidTable
from bayescontrol.finite.examples import (
    FROG,
    PRIZE,
    THREE_MODES_PRIOR,
    consistency_diagram,
    consistency_repaired,
    core_diagram,
    policy_diagram,
    prize_or_frog,
    three_modes,
    trap,
)
from bayescontrol.finite.tabular import TabularModes


def posterior_of(agent: Any) -> FloatArray:
    return np.asarray(agent.belief.posterior())


def test_the_two_agents_agree_with_conditioning_and_intervening() -> None:
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
        observed = model.query("prize", given={"a": 0, "o": o})
        done = model.query("prize", given={"o": o}, do={"a": 0})
        assert posterior_of(naive) == pytest.approx([observed[0], observed[1]], abs=1e-15)
        assert posterior_of(causal) == pytest.approx([done[0], done[1]], abs=1e-15)


def test_with_certain_outcomes_a_frog_excludes_all_modes_of_the_naive_agent() -> None:
    agent = prize_or_frog(1.0).agent(kind=NaiveMixture)
    box = agent.act(Stream(0))
    before = agent.save()
    with pytest.raises(ImpossibleObservation, match="observation 0 after action"):
        agent.observe(box, FROG)
    assert {n: v.tobytes() for n, v in agent.save().items()} == {
        n: v.tobytes() for n, v in before.items()
    }


def test_with_uncertain_outcomes_the_naive_agent_ignores_every_frog() -> None:
    agent, rng = prize_or_frog(0.8).agent(kind=NaiveMixture), Stream(3)
    box = agent.act(rng)
    for _ in range(100):
        agent.observe(box, FROG)
        assert agent.act(rng) == box
    assert posterior_of(agent)[box] == 1.0


@pytest.mark.parametrize("reliability", [0.5, 0.2, 1.1, -1.0, math.nan])
def test_an_invalid_reliability_is_refused(reliability: float) -> None:
    with pytest.raises(InvalidTable, match=f"reliability={reliability}"):
        prize_or_frog(reliability)


def test_each_of_the_three_modes_prefers_its_better_lever() -> None:
    modes = three_modes()
    pays = modes.hypothesis[:, 0, :, 1]
    pulls = modes.policy[:, 0]
    assert np.sign(pays[:, 0] - pays[:, 1]).tolist() == np.sign(pulls[:, 0] - pulls[:, 1]).tolist()
    assert modes.hypothesis.min() > 0
    assert modes.policy.min() > 0
    assert [modes[m].name for m in range(3)] == ["left", "right", "neither"]
    assert sum(THREE_MODES_PRIOR) == 1.0


def test_with_three_modes_the_agents_differ_within_a_few_steps() -> None:
    naive = three_modes().agent(THREE_MODES_PRIOR, kind=NaiveMixture)
    causal = three_modes().agent(THREE_MODES_PRIOR)
    for agent in (naive, causal):
        for a, o in ((0, 0), (0, 0), (0, 0)):  # the left lever three times, without a reward
            agent.issue(a)
            agent.observe(a, o)
    assert posterior_of(causal)[0] < 0.1 < 0.3 < posterior_of(naive)[0]


def selected(modes: TabularModes, m: int, world: int) -> list[str]:
    """The states that the policy of m visits infinitely often in a world."""
    step = np.einsum("xa,xao->xao", modes.policy[m], modes.hypothesis[world])
    chain = np.zeros((len(step), len(step)))
    for (x, a, o), p in np.ndenumerate(step):
        chain[x, modes.successor[x, a, o]] += p
    lazy = np.linalg.matrix_power(0.5 * (chain + np.eye(len(chain))), 4096)
    return [modes.labels.situations[x] for x in np.flatnonzero(lazy[modes.start] > 1e-9)]


def pays(modes: TabularModes, region: str) -> Any:
    """P(1 | m, x, a) over the situations of a region, as an array [m, x, a]."""
    inside = [x for x, label in enumerate(modes.labels.situations) if label.startswith(region)]
    return modes.hypothesis[..., 1][:, inside]


def test_each_policy_visits_half_of_the_states_and_they_share_one() -> None:
    modes = policy_diagram()
    assert selected(modes, 0, 0) == ["s0", "s1", "s2", "s3"]
    assert selected(modes, 1, 0) == ["s3", "s4", "s5", "s6"]
    assert (modes.hypothesis[0] == modes.hypothesis[1]).all()


def test_the_eighth_state_is_reached_only_by_taking_turns() -> None:
    modes = policy_diagram()
    x = modes.start
    for a in (1, 1, 1, 0):
        x = modes.advance(x, a, 0 if a else 1)
    assert modes.labels.situations[x] == "s7"


def test_only_the_first_policy_of_the_core_diagram_leads_into_b() -> None:
    modes = core_diagram()
    assert selected(modes, 0, 0) == ["A0", "A1", "A2", "B0", "B1"]
    assert selected(modes, 1, 0) == ["A0", "A3"]
    assert selected(modes, 2, 0) == ["A0", "A1"]


def test_the_hypotheses_of_the_core_diagram_differ_where_expected() -> None:
    modes = core_diagram()
    a, b = pays(modes, "A"), pays(modes, "B")
    assert (a[0] == a[1]).all()
    assert (a[2] != a[0]).all()
    assert (b[0] != b[1]).all()
    assert (b[2] != b[0]).all()
    assert (b[2] != b[1]).all()


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_entering_b_takes_the_given_number_of_climbs_in_a_row(steps: int) -> None:
    modes = core_diagram(steps)
    where = modes.labels.situations

    def after(actions: list[int]) -> str:
        x = modes.start
        for a in actions:
            x = modes.advance(x, a, 0)
        return where[x]

    assert after([0] * steps) == "B0"
    assert after([0] * (steps - 1) + [1] + [0] * (steps - 1)).startswith("A")
    assert len(where) == steps + 3


def test_b_must_be_at_least_one_step_away() -> None:
    with pytest.raises(InvalidTable, match="steps=0"):
        core_diagram(0)


def test_both_policies_of_the_consistency_diagram_stay_in_a_and_differ_there() -> None:
    modes = consistency_diagram()
    assert selected(modes, 0, 0) == ["A0", "A1"]
    assert selected(modes, 1, 0) == ["A0", "A2"]
    assert (pays(modes, "A")[0] == pays(modes, "A")[1]).all()
    assert (pays(modes, "B")[0] != pays(modes, "B")[1]).all()
    assert (modes.policy[0] != modes.policy[1]).any(-1).all()


def test_the_repair_changes_the_second_policy_in_a_and_nothing_else() -> None:
    broken, repaired = consistency_diagram(), consistency_repaired()
    assert (repaired.hypothesis == broken.hypothesis).all()
    assert (repaired.policy[0] == broken.policy[0]).all()
    assert (repaired.policy[1, :3] == repaired.policy[0, :3]).all()
    assert (repaired.policy[1, 3] == broken.policy[1, 3]).all()


def test_in_the_consistency_diagram_weights_never_change() -> None:
    for modes in (consistency_diagram(), consistency_repaired()):
        agent = modes.agent([0.3, 0.7])
        interact(agent, modes.environment(0), 1_000, seed=0)
        assert agent.belief.posterior() == pytest.approx([0.3, 0.7], abs=1e-12)


def test_the_pit_is_never_left_and_nothing_is_learned_there() -> None:
    modes = trap()
    pit = modes.labels.situations.index("pit")
    assert (modes.successor[pit] == pit).all()
    assert (modes.hypothesis[:, pit] == 0.5).all()
    assert (pays(modes, "open")[:, 0] == [[0.8] * 2, [0.5] * 2, [0.2] * 2]).all()
    assert len({tuple(probabilities) for probabilities in modes.policy[:, pit]}) == 3


def test_only_the_third_mode_steps_into_the_pit() -> None:
    modes = trap()
    assert selected(modes, 0, 0) == selected(modes, 1, 0) == ["open"]
    assert selected(modes, 2, 0) == ["pit"]

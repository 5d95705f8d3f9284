"""The paper's diagrams: which states each policy selects, and where hypotheses part."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol.errors import InvalidTable
from bayescontrol.problems.examples import (
    consistency_diagram,
    consistency_repaired,
    core_diagram,
    policy_diagram,
    trap,
)
from bayescontrol.problems.tabular import TabularModes


def selected(modes: TabularModes, m: int, world: int) -> list[str]:
    """The states that the policy of m visits for ever in a world, from the start."""
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


def test_each_policy_selects_half_of_the_states_and_they_share_one() -> None:
    modes = policy_diagram()
    assert selected(modes, 0, 0) == ["s0", "s1", "s2", "s3"]
    assert selected(modes, 1, 0) == ["s3", "s4", "s5", "s6"]
    assert (modes.hypothesis[0] == modes.hypothesis[1]).all()


def test_the_eighth_state_is_reached_only_by_turns() -> None:
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


def test_the_hypotheses_of_the_core_diagram_part_where_they_should() -> None:
    modes = core_diagram()
    a, b = pays(modes, "A"), pays(modes, "B")
    assert (a[0] == a[1]).all()
    assert (a[2] != a[0]).all()
    assert (b[0] != b[1]).all()
    assert (b[2] != b[0]).all()
    assert (b[2] != b[1]).all()


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_it_takes_that_many_climbs_in_a_row_to_enter_b(steps: int) -> None:
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


def test_b_is_at_least_a_step_away() -> None:
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


def test_in_the_consistency_diagram_no_weight_ever_moves() -> None:
    for modes in (consistency_diagram(), consistency_repaired()):
        agent = modes.agent([0.3, 0.7])
        interact(agent, modes.environment(0), 1_000, seed=0)
        assert agent.belief.posterior() == pytest.approx([0.3, 0.7], abs=1e-12)


def test_nothing_leads_out_of_the_pit_and_nothing_is_learnt_there() -> None:
    modes = trap()
    pit = modes.labels.situations.index("pit")
    assert (modes.successor[pit] == pit).all()
    assert (modes.hypothesis[:, pit] == 0.5).all()
    assert (pays(modes, "open")[:, 0] == [[0.8] * 2, [0.5] * 2, [0.2] * 2]).all()
    assert len({tuple(law) for law in modes.policy[:, pit]}) == 3


def test_only_the_third_mode_steps_into_the_pit() -> None:
    modes = trap()
    assert selected(modes, 0, 0) == selected(modes, 1, 0) == ["open"]
    assert selected(modes, 2, 0) == ["pit"]

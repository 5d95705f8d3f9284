"""Every claim of the arena's studies states its source; exact claims do not depend on runs."""

from typing import Any

import pytest
from benchmarks.arena import bandit_zoo, maze_sensitivity, maze_zoo
from tests.paper.test_all_claims import check_claims, score_small

#: The study, settings of small replicas, settings that differ when scored, the exact claims.
STUDIES: dict[str, tuple[Any, dict[str, Any], dict[str, Any], set[str]]] = {
    "bandit-zoo": (
        bandit_zoo, {"steps": 10, "levers": 3}, {"runs": 20}, {"lai-robbins-constant"}
    ),
    "maze-sensitivity": (
        maze_sensitivity, {"steps": 100, "toy_steps": 1000},
        {"steps": 30_000, "toy_steps": 500_000}, {"lake-optimum", "cliff-optimum"},
    ),
    "maze-zoo": (
        maze_zoo, {"steps": 40, "costly_states": 1}, {"steps": 15_000},
        {"optima-certified", "chain-optimum"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_claims_state_their_source_and_exact_ones_do_not_depend_on_runs(name: str) -> None:
    study, size, changed, exact = STUDIES[name]
    one, other = (score_small(study.experiment, seed, size, changed) for seed in (0, 1))
    assert study.experiment.name == name
    assert {claim.source for claim in one} == {"ours"}
    check_claims(one, other, exact)

"""Every claim of every experiment states its source, and exact claims do not depend on runs.

The replicas are as small as possible. They are repeated and scored at a size at which all claims
are made. The verdicts of simulated claims are meaningless here and not checked.
"""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bayescontrol.lab import Claim, Columns, conduct, run_replicas
from bayescontrol.lab.discovery import find, names
from bayescontrol.lab.experiment import Experiment

#: The lengths at which `changing` makes claims.
CHANGING = {
    "fast": 2_500, "slow": 20_000, "still": 1_000, "collapse": 6_000, "context": 1_000,
    "plant": 600, "motor": 6_000,
}  # fmt: skip
#: The settings of the small replicas, and the settings that differ when they are scored.
SMALL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "bandit": ({}, {}),
    "bank": (
        {"steps": 20, "unit_steps": 300, "times": 2},
        {"steps": 400, "unit_steps": 10_000, "unit_runs": 300},
    ),
    "changing": (
        {f"{world}_steps": 60 for world in CHANGING},
        {f"{world}_steps": steps for world, steps in CHANGING.items()},
    ),
    "chain": ({"k_max": 3, "growing_steps": 120}, {}),
    "consistency": ({"steps": 200}, {}),
    "convergence": ({"steps": 300}, {}),
    "core": ({"steps": 300}, {}),
    "delusion": ({"steps": 3}, {}),
    "divergence": ({"steps": 200}, {}),
    "entropy": ({"steps": 2, "competitors": 3}, {}),
    "lower-bound": ({}, {}),
    "lqr": ({"steps": 64}, {"runs": 20}),
    "maze": ({"steps": 1000}, {"steps": 150_000}),
    "misspecified": ({"steps": 50}, {"steps": 1000}),
    "policy-diagram": ({}, {}),
    "provenance": ({"networks": 0, "histories": 20}, {}),
    "universal": ({"most_cycles": 100}, {"most_cycles": 25_000}),
    "vanishing": ({"steps": 200, "long_steps": 500}, {}),
}
EXACT = {
    "bandit": {"look-ahead-cost", "two-lever-totals", "gittins-table-time"},
    "chain": {
        "identification-time", "about-2^k", "uniform-until-reward", "growing-chain",
        "growing-chain-held", "growing-chain-doubling",
    },
    "consistency": {
        "each-in-the-core-of-the-other", "verdict-never", "verdict-repaired", "verdict-with-a-look",
    },
    "convergence": {
        "verdict-five-modes", "verdict-goal-worlds", "verdict-chain", "verdict-bias-grid",
        "verdict-two-policies", "verdict-trap",
    },
    "core": {"core-of-m1", "core-of-m2", "core-of-m3"},
    "delusion": {"prize-naive", "prize-causal", "prize-bits"},
    "divergence": {"two-stay"},
    "maze": {"optimum"},
    "policy-diagram": {"transitions-sum-to-1"},
    "provenance": {"two-hypotheses", "fire-engine", "two-lights", "return-conditioning"},
    "universal": {"exact-posterior", "decision-time"},
}  # fmt: skip
PLACE = re.compile(r"section [1-7](\.[1-6])?(, (figure|theorem|table|equations|on) |$)")
ORIGIN = re.compile(r"(theory|pilot on seed|full size|paper|other programs|requirement)\b")


@cache
def scored(name: str, seed: int) -> tuple[Claim, ...]:
    return score_small(find(name), seed, *SMALL[name])


def score_small(
    experiment: Experiment[Any], seed: int, size: dict[str, Any], changed: dict[str, Any]
) -> tuple[Claim, ...]:
    """Run two small replicas, repeat them, and score them at the changed settings."""
    settings = replace(experiment.settings(), seed=seed, runs=2, **size)
    columns: Columns = run_replicas(experiment, settings)
    larger = replace(settings, **{"runs": 300, **changed})
    many = {key: np.repeat(column, larger.runs // 2, axis=0) for key, column in columns.items()}
    claims: tuple[Claim, ...] = experiment.score(larger, many).claims
    return claims


def test_every_experiment_is_covered() -> None:
    assert set(SMALL) == set(names())


@pytest.mark.parametrize("name", SMALL)
def test_claims_state_their_source_and_exact_ones_do_not_depend_on_runs(name: str) -> None:
    check_claims(scored(name, 0), scored(name, 1), EXACT.get(name, set()))


def check_claims(one: tuple[Claim, ...], other: tuple[Claim, ...], exact: set[str]) -> None:
    assert one
    for claim in one:
        if claim.source == "paper":
            assert PLACE.match(claim.place), claim
        if not claim.exact and claim.holds is not None:
            assert ORIGIN.match(claim.threshold_origin), claim
        numbers = (claim.ours, claim.expected, claim.error)
        if claim.exact and claim.holds and all(isinstance(v, float) for v in numbers):
            assert claim.ours == pytest.approx(claim.expected, rel=0, abs=claim.error), claim
    assert {claim.name for claim in one if claim.exact} == exact
    assert [comparable(claim) for claim in one if claim.exact] == [
        comparable(claim) for claim in other if claim.exact
    ]


def comparable(claim: Claim) -> tuple[object, ...]:
    measured = claim.name in ("gittins-table-time", "decision-time")  # times vary between runs
    return claim.name, claim.expected, "" if measured else claim.ours, claim.error, claim.holds


def test_only_statements_of_the_paper_have_it_as_their_source() -> None:
    """Claims about linear control and about our own worlds have another source."""
    from_paper = {name: {c.name for c in scored(name, 0) if c.source == "paper"} for name in SMALL}
    assert {name: found for name, found in from_paper.items() if found} == {
        "bandit": {"same-asymptote", "gittins-better-early", "epsilon-stalls"},
        "chain": {
            "about-2^k", "bayes-optimal-time", "uniform-until-reward", "growing-chain-optimal",
            "growing-chain", "growing-chain-held",
        },
        "consistency": {"each-in-the-core-of-the-other"},
        "convergence": {"settles-five-modes", "settles-goal-worlds", "settles-chain"},
        "core": {
            "p2-spares-h2", "p2-refutes-h3", "p1-refutes-h2", "short-spells-are-in-vain",
            "rule-refutes-h2",
        },
        "divergence": {"posterior-bound", "two-diverge", "two-stay", "parts-add-up"},
        "entropy": {"naive-minimises-D", "rule-minimises-C"},
        "lower-bound": {"lower-bound"},
        "maze": {"paper-order", "crossing-step"},
        "policy-diagram": {"subset-p1", "subset-p2"},
        "vanishing": {
            "outside-the-core-five-modes", "outside-the-core-core-diagram",
            "outside-the-core-bias-grid",
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_the_quick_size_leaves_out_only_checks_of_ours_that_the_full_size_makes(name: str) -> None:
    ours = {claim.name for claim in scored(name, 0) if claim.source == "ours"}
    assert ours.issuperset(find(name).full_only)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_the_quick_size_decides_every_check_of_ours(name: str) -> None:
    """Seeds are fixed: the results are those of `make reproduce`. Two to five minutes in all."""
    experiment = find(name)
    score = conduct(experiment, experiment.quick).score
    assert {claim.name for claim in score.claims}.isdisjoint(score.left_out)
    assert [c.name for c in score.claims if c.source == "ours" and c.verdict != "holds"] == []

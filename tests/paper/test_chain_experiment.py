"""The experiment `chain`: its claims hold, and fail for planted bugs."""

from dataclasses import replace

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol.finite.chain import chain
from bayescontrol.lab import Claim, Columns, conduct
from bayescontrol.record import posterior
from bayescontrol_paper import chain as paper

#: Small and quick. Our claims fail by chance with probability below 1e-5, for any seed.
SMALL = paper.Settings(seed=1, runs=40, steps=3000, k_max=7, scale=3, growing_steps=60)


def claims(settings: paper.Settings, columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in paper.experiment.score(settings, columns).claims}


def test_our_claims_hold_and_one_claim_of_the_paper_is_refuted(columns: Columns) -> None:
    """The paper's claims are about a chain that grows as ⌈10 √t⌉ and are not tested on others."""
    found = claims(SMALL, columns)
    verdicts = {name: claim.verdict for name, claim in found.items()}
    assert verdicts.pop("uniform-until-reward") == "refuted"
    assert (found["uniform-until-reward"].expected, found["uniform-until-reward"].ours) == (0.5, 0)
    for name in ("growing-chain-optimal", "growing-chain", "growing-chain-held"):
        assert verdicts.pop(name) == "not comparable"
        assert "grows as ⌈10 √t⌉" in found[name].reason
    assert set(verdicts.values()) == {"holds"}


def test_planning_and_holding_for_k_take_exactly_k_steps(columns: Columns) -> None:
    for name in (paper.BAYES_OPTIMAL, "Every(k)"):
        times = columns["time"][:, paper.AGENTS.index(name)]
        assert np.array_equal(times, np.tile(np.arange(1, 8), (SMALL.runs, 1)))


def test_the_time_of_the_compiled_rule_is_when_its_posterior_becomes_degenerate(
    columns: Columns,
) -> None:
    k, number = 4, 3 * 64 * 64 + 4  # run 3, the rule is agent 0
    agent, world = chain(k).agent(), chain(k).environment(int(columns["world"][3]))
    record = interact(agent, world, 500, seed=1, run=number, probes={"v": posterior})
    sure = record["v"].min(axis=1) == 0.0
    assert columns["time"][3, paper.AGENTS.index(paper.RULE), k - 1] == np.flatnonzero(sure)[0] + 1


@pytest.mark.parametrize(("steps", "verdict"), [(100.0, "holds"), (200.0, "refuted")])
def test_claims_are_made_about_the_growing_chain_of_the_paper(
    columns: Columns, steps: float, verdict: str
) -> None:
    tenfold = replace(SMALL, scale=10, growing_steps=120)
    growing = columns["growing"].copy()
    growing[:, -1] = steps
    found = claims(tenfold, {**columns, "growing": growing})
    assert found["growing-chain-optimal"].verdict == verdict
    assert {found[name].verdict for name in ("growing-chain", "growing-chain-held")} == {"holds"}


def test_a_limit_on_the_steps_leaves_out_chains_that_would_exceed_it() -> None:
    tight = paper.Settings(runs=2, steps=32, k_max=3, scale=2, growing_steps=3)
    assert [max(paper.lengths(tight, name)) for name in paper.AGENTS] == [1] * len(paper.AGENTS)
    result = conduct(paper.experiment, tight)
    assert np.isnan(result.columns["time"][:, :, 1:]).all()
    assert all(claim.holds or claim.source == "paper" for claim in result.score.claims)
    assert set(paper.experiment.figures(tight, result.columns)) == {
        "identification-time",
        "growing-chain",
    }


def test_the_exact_numbers_in_the_discussion_are_correct() -> None:
    assert paper.exact(paper.RULE, 12).mean == 4095
    assert paper.exact(paper.BAYES_OPTIMAL, 12) == paper.exact("Every(k)", 12) == (12.0, 0.0)
    assert paper.exact("Every(⌈k/2⌉)", 12).mean == 18
    assert paper.growing_distribution(10, "doubling").sum() == 1.0
    assert paper.growing_distribution(10, paper.RULE).sum() == pytest.approx(2.367381e-30, rel=1e-6)
    assert set(paper.GROWING) == {
        paper.RULE,
        "Every(s)",
        "Every(s²/2)",
        "Geometric(2/s²)",
        "doubling",
    }


def test_quick_and_full_settings_differ_only_in_size() -> None:
    assert paper.experiment.quick.k_max == paper.experiment.full.k_max == 12
    assert max(paper.lengths(paper.experiment.quick, paper.RULE)) == 10
    assert max(paper.lengths(paper.experiment.full, paper.RULE)) == 12

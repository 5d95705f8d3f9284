"""Sampling compared with enumeration. False alarms assume normality: 6e-7 at 5 s.e."""

import math
from typing import Any

import numpy as np
import pytest
from tests.entropy.entropies import relative_entropy, sampled_intervened_relative_entropy

from bayescontrol import DiscreteMode
from bayescontrol.entropy import sampled_relative_entropy
from bayescontrol.systems import Situated

T = 4


def sampled_C(agent: Any, case: Any, name: str, samples: int, seed: int) -> Any:
    return sampled_intervened_relative_entropy(
        agent, case.modes, case.p, T, case.weighting(name), samples,
        actions=range(case.actions), seed=seed,
    )  # fmt: skip


def test_sampled_D_and_C_agree_with_exact_values_within_their_errors(cases: Any) -> None:
    """Nine comparisons of totals and parts at the last horizon, 5 s.e. each: below 1e-5."""
    case = cases["tabular"](1, 3)
    for agent in (case.naive(), case.rule()):
        exact = case.D(agent, T)
        found = sampled_relative_entropy(agent, case.modes, case.p, T, 200, seed=1)
        for part in ("actions", "observations", "total"):
            estimate, truth = getattr(found, part), getattr(exact, part)
            assert abs(estimate.mean[-1] - truth[-1]) < 5 * estimate.error[-1]
            assert 0.0 < estimate.error[-1] < 0.2 * truth[-1]
    for name in ("uniform", "closed-loop", "policy"):
        estimate = sampled_C(case.rule(), case, name, 200, seed=2).total
        assert abs(estimate.mean[-1] - case.C(case.rule(), T, name).total[-1]) < (
            5 * estimate.error[-1]
        )


def test_sampling_distinguishes_weightings_and_agents(cases: Any) -> None:
    """Planted bugs: another weighting, and actions as evidence."""
    case = cases["tabular"](1, 3)
    estimate = sampled_C(case.naive(), case, "closed-loop", 200, seed=2).total
    wrong = [
        case.D(case.naive(), T).total[-1],
        case.C(case.naive(), T, "printed").total[-1],
        case.C(case.rule(), T, "closed-loop").total[-1],
    ]
    for value in wrong:
        assert abs(estimate.mean[-1] - value) > 5 * estimate.error[-1]


def test_standard_errors_are_calibrated(cases: Any) -> None:
    """Σ z² of 60 estimates is chi-square with 60 degrees: outside 27 … 110 below 1e-4."""
    case = cases["tabular"](0, 1)
    truth = case.C(case.rule(), 3, "uniform").total[-1]
    z = []
    for seed in range(60):
        estimate = sampled_intervened_relative_entropy(
            case.rule(), case.modes, case.p, 3, "uniform", 40, actions=[0, 1], seed=seed
        ).total
        z.append((estimate.mean[-1] - truth) / estimate.error[-1])
    assert 27 < np.square(z).sum() < 110


def test_history_dependent_systems_with_impossible_symbols_are_sampled(cases: Any) -> None:
    """Two comparisons at 5 s.e.: below 2e-6."""
    case = cases["remembering"](3, least=0)
    rule = case.rule()
    D = sampled_relative_entropy(case.naive(), case.modes, case.p, 3, 200, seed=3).total
    assert abs(D.mean[-1] - case.D(case.naive(), 3).total[-1]) < 5 * D.error[-1]
    C = sampled_C(rule, case, "uniform", 200, seed=4).total
    assert abs(C.mean[-1] - case.C(rule, T, "uniform").total[-1]) < 5 * C.error[-1]


def test_a_certain_value_has_no_error_and_an_impossible_one_is_infinite() -> None:
    coin = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}))
    sure = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 1.0}))
    D = sampled_relative_entropy(sure, [coin], [1.0], 3, 10)
    assert D.observations.mean.tolist() == [math.inf] * 3
    assert D.total.error.tolist() == [math.inf] * 3
    # The first action is certain; what follows an impossible observation is not defined.
    assert D.actions.mean[0] == D.actions.error[0] == 0.0
    one = sampled_relative_entropy(coin, [coin], [1.0], 3, samples=1)
    assert one.total.mean.tolist() == [0.0] * 3
    assert one.total.error.tolist() == [math.inf] * 3


def test_a_tree_too_large_to_enumerate_can_be_sampled(cases: Any) -> None:
    """The naive mixture's D is information, so never above H(prior); 5 s.e.: 3e-7."""
    case = cases["tabular"](0, 1)
    D = sampled_relative_entropy(case.naive(), case.modes, case.p, 40, 60, seed=5).total
    assert (np.diff(D.mean) >= 0.0).all()
    assert D.mean[-1] - 5 * D.error[-1] < 1.4591479170272448
    with pytest.raises(ValueError, match="10\\^24 histories"):
        relative_entropy(case.naive(), case.modes, case.p, 40)

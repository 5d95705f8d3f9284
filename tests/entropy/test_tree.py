"""Test trees that are too large, invalid systems and invalid weightings."""

from typing import Any

import numpy as np
import pytest
from tests.entropy.entropies import (
    intervened_relative_entropy,
    mutual_information,
    relative_entropy,
)

from bayescontrol import DiscreteMode
from bayescontrol.entropy import (
    Bits,
    InteractionTree,
    TooManyHistories,
    code_length,
    entropy_of,
    weigh,
)
from bayescontrol.errors import InvalidPrior, InvalidTable, MissingCapability
from bayescontrol.finite.tabular import random_modes
from bayescontrol.systems import Situated

PRIOR = [0.5, 0.5]


@pytest.fixture
def modes() -> list[Any]:
    return list(random_modes(2, seed=1).systems())


def test_a_tree_that_is_too_large_is_refused_with_its_size_and_a_remedy(modes: Any) -> None:
    with pytest.raises(TooManyHistories, match="1,048,576 histories") as refusal:
        relative_entropy(modes[0], modes, PRIOR, horizon=10)
    assert "learning_cost" in str(refusal.value)
    with pytest.raises(TooManyHistories, match=r"10\^602 histories"):
        mutual_information(modes, PRIOR, horizon=1000)


def test_the_limit_can_be_changed(modes: Any) -> None:
    with pytest.raises(TooManyHistories, match="about 64 histories, more than limit=50"):
        InteractionTree(modes, PRIOR, 3, limit=50)
    assert repr(InteractionTree(modes, PRIOR, 3, limit=64)) == (
        "InteractionTree(2 modes, horizon 3, 64 histories)"
    )


def test_impossible_histories_are_not_stored() -> None:
    sure = Situated(DiscreteMode(lambda x: {"look": 1.0}, lambda x, a: {"o": 1.0, "never": 0.0}))
    assert relative_entropy(sure, [sure], [1.0], horizon=50).total.tolist() == [0.0] * 50


@pytest.mark.parametrize(
    ("prior", "complaint"),
    [
        ([0.5, 0.6], "sums to 1.1"),
        ([0.5], "shape"),
        ([1.5, -0.5], "mode 0 is 1.5"),
        ([np.nan, 1.0], "mode 0 is nan"),
    ],
)
def test_an_invalid_prior_is_refused(modes: Any, prior: Any, complaint: str) -> None:
    with pytest.raises(InvalidPrior, match=complaint):
        relative_entropy(modes[0], modes, prior, 2)


def test_the_entropy_of_an_invalid_distribution_is_refused() -> None:
    with pytest.raises(InvalidPrior, match="sums to"):
        entropy_of([0.5, 0.25])


def test_an_agent_that_is_not_an_io_system_is_refused_with_a_remedy(modes: Any) -> None:
    agent: Any = random_modes(2, seed=1).agent()
    for measure in (relative_entropy, intervened_relative_entropy):
        with pytest.raises(MissingCapability, match="AgentSystem"):
            measure(agent, modes, PRIOR, 2)
    with pytest.raises(MissingCapability, match="AgentSystem"):
        code_length(agent, [])
    with pytest.raises(MissingCapability, match="mode 1"):
        relative_entropy(modes[0], [modes[0], agent], PRIOR, 2)


def test_probabilities_that_sum_to_more_than_one_are_refused(modes: Any) -> None:
    too_much = Situated(DiscreteMode(lambda x: {0: 1.0, 1: 1.0}, lambda x, a: {0: 0.5, 1: 0.5}))
    too_little = Situated(DiscreteMode(lambda x: {0: 0.5, 1: 0.5}, lambda x, a: {}))
    negative = Situated(DiscreteMode(lambda x: {0: 1.5, 1: -0.5}, lambda x, a: {0: 1.0}))
    for agent in (too_much, too_little, negative):
        with pytest.raises(InvalidTable, match="must sum to 1"):
            relative_entropy(agent, modes, PRIOR, 2)


def test_unknown_weightings_and_missing_actions_are_refused(modes: Any) -> None:
    def C(weighting: Any, **settings: Any) -> Bits:
        return intervened_relative_entropy(modes[0], modes, PRIOR, 2, weighting, **settings)

    with pytest.raises(ValueError, match="use uniform, closed-loop, printed"):
        C("open-loop", actions=[0, 1])
    with pytest.raises(ValueError, match="pass actions="):
        C("uniform")
    with pytest.raises(InvalidTable, match=r"may take 1, which is not in actions=\(0,\)"):
        C("uniform", actions=[0])
    with pytest.raises(MissingCapability, match="the weighting"):
        C(object())


def test_a_weighting_that_leaves_the_tree_is_refused(modes: Any) -> None:
    jump = DiscreteMode[Any, Any, Any](lambda x: {0: 0.5, "jump": 0.5}, lambda x, a: {})
    with pytest.raises(InvalidTable, match="the weighting"):
        intervened_relative_entropy(modes[0], modes, PRIOR, 2, jump)


def test_printed_weights_are_no_distribution(modes: Any) -> None:
    with pytest.raises(ValueError, match="other than 'printed'"):
        mutual_information(modes, PRIOR, 2, "printed", actions=[0, 1])


def test_a_horizon_below_one_is_refused(modes: Any) -> None:
    with pytest.raises(ValueError, match="horizon=0"):
        relative_entropy(modes[0], modes, PRIOR, 0)


def test_weights_of_probable_interventions_sum_to_one_at_every_history(modes: Any) -> None:
    tree = InteractionTree(modes, PRIOR, 3, actions=[0, 1])
    for name in ("uniform", "closed-loop"):
        for (act, _), weights in zip(tree.steps, weigh(tree, name), strict=True):
            np.testing.assert_allclose(np.bincount(act.parent, weights), 1.0, rtol=1e-12)

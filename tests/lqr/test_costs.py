"""Unknown costs: batch regression, definite draws, and saved states."""

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol._arrays import FloatArray
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior
from bayescontrol.lqr import CostBelief

Q = np.array([[2.0, 0.5], [0.5, 1.0]])
R = np.array([[0.7]])


def random_events(count: int) -> list[tuple[FloatArray, FloatArray, float]]:
    rng = np.random.default_rng(0)
    events = []
    for _ in range(count):
        x, u = rng.normal(size=2), rng.normal(size=1)
        events.append((x, u, float(x @ Q @ x + u @ R @ u + 0.1 * rng.normal())))
    return events


def learned(events: list[tuple[FloatArray, FloatArray, float]]) -> CostBelief:
    belief = CostBelief(2, 1, noise=0.1)
    for event in events:
        belief.learn(*event)
    return belief


def test_the_posterior_equals_batch_regression_to_1e_9() -> None:
    events = random_events(2000)
    rows = [[x[0] ** 2, 2 * x[0] * x[1], x[1] ** 2, u[0] ** 2] for x, u, _ in events]
    prior = np.array([1.0, 0.0, 1.0, 1.0])
    stacked = np.vstack([np.eye(4), np.array(rows) / 0.1])
    target = np.concatenate([prior, np.array([c for *_, c in events]) / 0.1])
    w = np.linalg.lstsq(stacked, target, rcond=None)[0]
    mean = learned(events).mean()
    assert np.abs(mean.Q - [[w[0], w[1]], [w[1], w[2]]]).max() < 1e-9
    assert np.abs(mean.R - w[3]).max() < 1e-9
    assert np.abs(mean.Q - Q).max() < 0.05


def test_merging_combines_the_evidence_of_both_beliefs() -> None:
    events = random_events(100)
    one, two, whole = learned(events[::2]), learned(events[1::2]), learned(events)
    one.merge(two)
    assert np.allclose(one.mean().Q, whole.mean().Q, rtol=1e-10)
    event = np.ones(2), np.ones(1), 1.0
    assert one.log_predictive(*event) == pytest.approx(whole.log_predictive(*event), rel=1e-10)
    assert one.count == 100
    with pytest.raises(IncompatibleState, match="equal sizes, noise and priors"):
        one.merge(CostBelief(2, 1, noise=0.2))
    with pytest.raises(IncompatibleState, match=r"this belief learns the costs .*create both"):
        one.merge("costs")


def test_without_a_definite_draw_none_is_returned() -> None:
    belief = CostBelief(1, 1, noise=1e-3)
    for _ in range(50):
        belief.learn(np.ones(1), np.zeros(1), -5.0)
    assert belief.draw(Stream(0), 20) == (None, 20)


@pytest.mark.parametrize("cost", [np.nan, np.inf, "dear", None, 1e300])
def test_an_invalid_cost_is_refused_and_changes_nothing(cost: float) -> None:
    belief = learned(random_events(3))
    before = belief.save()
    with pytest.raises(BadEvidence):
        belief.learn(np.ones(2), np.ones(1), cost)
    assert all(np.array_equal(before[name], belief.save()[name]) for name in before)


def test_an_invalid_prior_is_refused() -> None:
    with pytest.raises(InvalidPrior, match="noise"):
        CostBelief(1, 1, noise=0.0)
    with pytest.raises(InvalidPrior, match="one input"):
        CostBelief(1, 0)

"""The Dirichlet belief over models is conjugate and a belief of the control rule."""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import DirichletMDPBelief
from benchmarks.arena.agents.declared_model import DeclaredModel
from benchmarks.arena.agents.posterior_sampling import ModelPrior, SampledModel

from bayescontrol import ControlRule, FiniteBelief
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownAction,
    UnknownState,
)
from bayescontrol.mdp.table import advance
from bayescontrol.seeding import Stream
from bayescontrol.testing import (
    check_bad_evidence,
    check_deterministic,
    check_merge,
    check_order,
    check_save,
)

HISTORY = [
    (0, 1, (1.0, 1)), (1, 0, (0.5, 0)), (0, 1, (-2.0, 0)), (0, 0, (0.0, 0)), (0, 1, (2.5, 1)),
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"rewards": "transition"}, {"reward": np.zeros((2, 2))}])
def test_the_laws_of_conditioning_hold(options: dict[str, Any]) -> None:
    def make() -> DirichletMDPBelief:
        return DirichletMDPBelief(2, 2, **options)

    check_deterministic(make, HISTORY)
    check_save(make, HISTORY)
    check_order(make, HISTORY)
    check_merge(make, HISTORY)
    bad = [(0, 0, (math.nan, 0)), (0, 0, (math.inf, 0)), (0, 2, (0.0, 0)), (0, 0, (0.0, 2)),
           (5, 0, (0.0, 0)), (0, 0, None), (0, 0, ("much", 0)), (0, 0, (0.0, [1]))]  # fmt: skip
    check_bad_evidence(make, HISTORY, bad)


def test_the_posterior_is_conjugate() -> None:
    belief = DirichletMDPBelief(2, 2, ModelPrior(0.5, mu0=1.0, lambda0=2.0, precision=4.0))
    for event in HISTORY:
        belief.observe(*event)
    assert belief.posterior()[0, 1].tolist() == [1.5 / 4, 2.5 / 4]
    assert belief.mean_rewards()[0, 1] == pytest.approx((2.0 + 4.0 * 1.5) / (2.0 + 4.0 * 3))
    assert belief.tried.tolist() == [[1.0, 3.0], [1.0, 0.0]]
    per_transition = DirichletMDPBelief(2, 2, belief.prior, rewards="transition")
    for event in HISTORY:
        per_transition.observe(*event)
    assert per_transition.mean_rewards()[0, 1, 1] == pytest.approx((2.0 + 4.0 * 3.5) / 10.0)


def test_drawn_models_have_the_posterior_mean() -> None:
    """2,000 models; every mean within 5 standard errors: false alarm below 1e-5."""
    belief = DirichletMDPBelief(2, 2, rewards="transition")
    for event in HISTORY:
        belief.observe(*event)
    rng = Stream(2)
    models = [belief.sample(rng) for _ in range(2_000)]
    for drawn, mean in (
        ([m.P for m in models], belief.posterior()),
        ([m.R for m in models], belief.mean_rewards()),
    ):
        error = np.std(drawn, axis=0) / math.sqrt(len(models))
        assert (np.abs(np.mean(drawn, axis=0) - mean) <= 5 * error).all()


# -- the control rule over models ----------------------------------------------------------------

# In state 0 "safe" stays and pays .4. "try" leads to state 1 with probability θ, or else stays.
# State 1 pays 1 and leads back. Trying earns θ / (1 + θ) on average: it is best if θ > 2/3.
STATES, ACTIONS = 2, ["safe", "try"]
POSSIBLE = np.array([[[True, False], [True, True]], [[True, False], [True, False]]])
REWARD = np.array([[[0.4, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
TRIED = [(0, "try", (1.0, 1)), (1, "safe", (0.0, 0)), (0, "try", (1.0, 1)), (1, "safe", (0.0, 0)),
         (0, "try", (0.0, 0))]  # fmt: skip


def model(theta: float) -> SampledModel:
    P = POSSIBLE.astype(float)
    P[0, 1] = [1.0 - theta, theta]
    return SampledModel(DeclaredModel(STATES, ACTIONS, None, {}), P, REWARD, None)


def test_the_conjugate_belief_agrees_with_a_finite_belief_on_a_grid() -> None:
    """The hypothesis is P(y | m, x, a). On 600 values of θ the finite belief over the same modes
    has the same posterior, and the rule acts with the same probabilities: P(θ > 2/3) under
    Beta(3, 2) is 11/27. 4,000 draws, 5 standard errors: false alarm below 1e-6.
    """
    grid = (np.arange(600) + 0.5) / 600
    finite = FiniteBelief([model(theta) for theta in grid])
    rule = ControlRule(finite, 0, advance=advance)
    conjugate = DirichletMDPBelief(
        STATES, ACTIONS, ModelPrior(alpha=1.0), possible=POSSIBLE, reward=REWARD
    )
    for event in TRIED:
        finite.observe(*event)
        conjugate.observe(*event)
    assert float(finite.posterior() @ grid) == pytest.approx(3 / 5, abs=1e-5)
    assert float(conjugate.posterior()[0, 1, 1]) == 3 / 5
    assert rule.action_probabilities()["try"] == pytest.approx(11 / 27, abs=2e-3)
    rng = Stream(0)
    tries = sum(conjugate.sample(rng).act(0, rng) == "try" for _ in range(4_000))
    assert abs(tries / 4_000 - 11 / 27) < 5 * math.sqrt(11 / 27 * 16 / 27 / 4_000)
    # Planted bug: counting every try as a success gives a very different probability.
    assert abs(tries / 4_000 - 16 / 27) > 5 * math.sqrt(11 / 27 * 16 / 27 / 4_000)


@pytest.mark.parametrize(("theta", "best"), [(0.6, "safe"), (0.7, "try")])
def test_a_model_knows_its_best_policy_and_its_likelihood(theta: float, best: str) -> None:
    m = model(theta)
    assert m.act(0, Stream(0)) == best
    assert m.action_probabilities(0) == {best: 1.0}
    assert m.gain == pytest.approx(max(0.4, theta / (1 + theta)), abs=1e-5)
    assert m.log_likelihood(0, "try", (1.0, 1)) == pytest.approx(math.log(theta))
    assert m.log_likelihood(0, "safe", (0.4, 1)) == -math.inf


def test_the_likelihood_of_a_reward_is_normal() -> None:
    declared = DeclaredModel(1, 1, None, {})
    for R in (np.array([[2.0]]), np.array([[[2.0]]])):
        m = SampledModel(declared, np.ones((1, 1, 1)), R, precision=4.0)
        exact = 0.5 * math.log(4.0 / (2 * math.pi)) - 2.0 * 0.5**2
        assert m.log_likelihood(0, 0, (2.5, 0)) == pytest.approx(exact)


# -- invalid input ---------------------------------------------------------------------------------


def test_errors_name_the_state_the_action_and_a_remedy() -> None:
    offers = {"home": ["stay"], "away": ["stay", "go"]}
    belief = DirichletMDPBelief(["home", "away"], ["stay", "go"], allowed=offers.__getitem__)
    with pytest.raises(BadEvidence, match="reward nan after action 'stay' in state 'home'"):
        belief.observe("home", "stay", (math.nan, "away"))
    with pytest.raises(UnknownAction, match="'home' does not offer action 'go': it offers 'stay'"):
        belief.observe("home", "go", (0.0, "away"))
    with pytest.raises(
        UnknownState, match=r"no state 'gone'.* after action 'stay' in state 'home'"
    ):
        belief.observe("home", "stay", (0.0, "gone"))
    belief.observe("home", "stay", (1.7e308, "home"))
    with pytest.raises(BadEvidence, match="scale the rewards down"):
        belief.observe("home", "stay", (1.7e308, "home"))
    assert belief.count == 1
    strict = DirichletMDPBelief(2, 1, possible=[[[False, True]], [[True, True]]])
    with pytest.raises(ImpossibleObservation, match="state 0 after action 0 in state 0"):
        strict.observe(0, 0, (0.0, 0))


def test_bad_settings_are_refused() -> None:
    for bad in ({"alpha": -1.0}, {"lambda0": 0.0}, {"precision": math.inf}, {"mu0": math.nan}):
        with pytest.raises(InvalidPrior, match=next(iter(bad))):
            ModelPrior(**bad)
    with pytest.raises(InvalidTable, match="allows no successor"):
        DirichletMDPBelief(2, 1, possible=[[[False, False]], [[True, True]]])
    with pytest.raises(InvalidTable, match="reward has shape"):
        DirichletMDPBelief(2, 1, reward=[1.0])
    with pytest.raises(InvalidTable, match="expected booleans"):
        DirichletMDPBelief(2, 1, possible=np.ones((2, 1, 2)))
    with pytest.raises(ValueError, match="'pair' or 'transition'"):
        DirichletMDPBelief(2, 1, rewards="state")  # type: ignore[arg-type]
    with pytest.raises(UnknownAction, match="offers no action"):
        DirichletMDPBelief(2, 1, allowed=lambda x: [])


def test_the_state_of_another_belief_is_refused_and_changes_nothing() -> None:
    belief, other = DirichletMDPBelief(2, 2), DirichletMDPBelief(2, 2, ModelPrior(alpha=2.0))
    belief.observe(*HISTORY[0])
    saved = belief.save()
    damaged = [
        other.save(),
        {},
        {**saved, "n": saved["n"][:1]},
        {**saved, "n": saved["n"] - 5.0},
        {**saved, "total": saved["total"] * math.nan},
        {**saved, "drawn": np.ones(3)},
    ]
    for arrays in damaged:
        with pytest.raises(IncompatibleState):
            belief.load(arrays)
    with pytest.raises(IncompatibleState, match="same settings"):
        belief.merge(other)
    assert belief.posterior()[0, 1].tolist() == [0.25, 0.75]


def test_a_copy_is_independent() -> None:
    belief = DirichletMDPBelief(2, 2)
    twin = belief.copy()
    twin.observe(*HISTORY[0])
    assert (belief.count, twin.count) == (0, 1)

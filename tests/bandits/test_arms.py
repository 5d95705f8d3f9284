"""Check every law of beliefs and agents for every family of independent arms."""

import math
from typing import Any, cast

import numpy as np
import pytest

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ControlRule,
    ExponentialBandit,
    GaussianBandit,
    GeometricBandit,
    PoissonBandit,
)
from bayescontrol.bandits import ArmsBelief, Bandit, MeanRewards
from bayescontrol.bandits.discrete import Bernoulli
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownArm,
)
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream, StreamLike
from bayescontrol.testing import (
    LawBroken,
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_fused,
    check_merge,
    check_order,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)

Case = Any  # the class `Case` in `conftest`


# -- the laws ----------------------------------------------------------------------------------


def test_the_laws_of_acting_hold(case: Case) -> None:
    for seed in range(3):
        check_fused(case.bandit.agent, case.world, 200, seed=seed)
    check_resume(case.bandit.agent, case.world)
    check_same_seed(case.bandit.agent, case.world)
    check_acting(case.bandit.agent, case.world)


def test_the_laws_of_acting_hold_while_modes_are_held(case: Case) -> None:
    def make() -> Any:
        return case.bandit.agent(schedule=Every(3))

    for at in (7, 8, 9):
        check_resume(make, case.world, 20, at=at)
    check_same_seed(make, case.world)
    check_acting(make, case.world)


def test_the_laws_of_conditioning_hold(case: Case) -> None:
    history, arm = case.history(), case.bandit.labels[1]
    check_deterministic(case.bandit.belief, history)
    check_save(case.bandit.belief, history)
    check_order(case.bandit.belief, history)
    check_merge(case.bandit.belief, history)
    invalid = (*case.impossible, math.nan, math.inf, -math.inf, None, "1", b"1", "x", [], {}, 1j)
    check_bad_evidence(case.bandit.belief, history, [(None, arm, o) for o in invalid])
    unknown = ("nobody", 7, -1, None, [1], 1.5)
    check_bad_evidence(case.bandit.belief, history, [(None, a, 1) for a in unknown])


def test_bad_evidence_raises_a_typed_error(case: Case) -> None:
    belief, arm = case.bandit.belief(), case.bandit.labels[0]
    for o in (*case.impossible, math.nan, None, "1"):
        with pytest.raises(BadEvidence, match="reward"):
            belief.observe(None, arm, o)
        with pytest.raises(BadEvidence):
            belief.log_predictive(None, arm, o)
    with pytest.raises(UnknownArm, match="nobody"):
        belief.observe(None, "nobody", 1)


def test_the_posterior_does_not_depend_on_how_actions_were_chosen(case: Case) -> None:
    """Actions are interventions: only the rewards are evidence."""
    belief, other = case.bandit.belief(), case.bandit.belief()
    history = case.history()
    for _, a, o in history:
        belief.observe(None, a, o)
    for arm in case.bandit.labels:
        for _, a, o in history:
            if a == arm:
                other.observe(None, a, o)
    assert belief.posterior().tobytes() == other.posterior().tobytes()


# -- saving and merging ---------------------------------------------------------------------------


def test_a_damaged_state_is_refused_and_changes_nothing(case: Case) -> None:
    belief = case.bandit.belief()
    for x, a, o in case.history(5):
        belief.observe(x, a, o)
    good = belief.save()
    other = Bandit(Bernoulli(), 7).belief()
    bad = [
        {**good, "rows": -np.abs(good["rows"]) - 1.0},
        {**good, "rows": good["rows"][:2]},
        {**good, "pulls": np.array([-1, 0, 0])},
        {**good, "active": np.array([], np.int64)},
        {**good, "active": np.array([0, 3])},
        {**good, "active": np.array([1, 0])},
        {**good, "drawn": np.array([1.0])},
        {**good, "drawn": np.full(3, np.nan)},
        {**good, "arms": np.array("no list")},
    ]
    for arrays in bad:
        with pytest.raises(IncompatibleState):
            belief.load(arrays)
        assert same_bits(good, belief.save())
    if repr(case.bandit.family) != "Bernoulli()":
        with pytest.raises(IncompatibleState):
            other.load(good)


def test_incompatible_beliefs_are_not_merged(case: Case) -> None:
    belief = case.bandit.belief()
    before = belief.save()
    more = case.bandit.belief()
    more.add("new")
    strangers = [more, Bandit(Bernoulli(), ["a"]).belief(), cast("Any", 3)]
    if case.name != "Bernoulli":
        strangers.append(BernoulliBandit(3).belief())
    for stranger in strangers:
        with pytest.raises(IncompatibleState):
            belief.merge(stranger)
        assert same_bits(before, belief.save())


def test_a_copy_has_all_attributes_of_a_subclass_too(case: Case) -> None:
    class Tagged(ArmsBelief):
        tag = ""

    family, labels = case.bandit.family, list(case.bandit.labels)
    tagged = Tagged(family, labels)
    tagged.tag = "mine"
    twin = tagged.copy()
    assert isinstance(twin, Tagged)
    assert twin.tag == "mine"
    plain = ArmsBelief(family, labels)
    assert vars(plain.copy()).keys() == vars(plain).keys()


def test_the_last_drawn_mode_can_be_read(case: Case) -> None:
    belief = case.bandit.belief()
    assert belief.last() is None
    assert np.isnan(belief.drawn).all()
    mode = belief.sample(Stream(0))
    assert belief.last() is mode
    assert belief.drawn.tolist() == mode.means.tolist()
    assert mode.act(None, Stream(0)) == case.bandit.labels[int(mode.means.argmax())]
    belief.draw_action(None, Stream(0))
    assert belief.last() is None
    assert "3 arms after 0 observations" in repr(belief)
    belief.posterior()[:] = 0.0
    belief.prior[:] = 0.0
    assert (belief.posterior() > 0.0).all()


def test_equally_good_arms_of_a_mode_are_chosen_at_random() -> None:
    mode = MeanRewards(("a", "b", "c"), np.array([1.0, 0.0, 1.0]))
    assert mode.action_probabilities(None) == {"a": 0.5, "c": 0.5}
    rng = Stream(0)
    assert {mode.act(None, rng) for _ in range(50)} == {"a", "c"}


# -- construction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("arms", [0, -1, [], (), 2.5, "red", True, None, ["a", "a"], [["list"]]])
def test_invalid_arms_are_refused(arms: Any) -> None:
    for kind in (BernoulliBandit, GaussianBandit, PoissonBandit, ExponentialBandit):
        with pytest.raises(UnknownArm):
            kind(arms)
    with pytest.raises(UnknownArm):
        CategoricalBandit(arms, [0, 1])


def test_invalid_priors_are_refused(case: Case) -> None:
    family = case.bandit.family
    width = len(family.columns)
    bad: list[Any] = [
        [1.0] * (width + 2), 1.0, "prior", [[1.0], [1.0, 2.0]], [math.nan] * width,
        [math.inf] * width, [1.0] * (width - 1) + [0.0], [1.0] * (width - 1) + [-2.0],
        [1.0] * (width - 1) + ["x"], [[1.0] * width] * 2, {"alpha": 1},
    ]  # fmt: skip
    for prior in bad:
        with pytest.raises(InvalidPrior):
            Bandit(family, 3, prior)


def test_invalid_true_parameters_are_refused(case: Case) -> None:
    bad: list[Any] = [[0.5], [0.5] * 4, "abc", [math.nan] * 3, [[0.5, 0.5]], None, 0.5]
    for truth in bad:
        with pytest.raises(InvalidTable):
            case.bandit.environment(truth)


#: Bandits with one arm, and true parameters that it cannot have.
IMPOSSIBLE: list[tuple[Bandit, list[Any]]] = [
    (GaussianBandit(1, sd=1, prior=(0, 1)), [[1e200]]),
    (
        GaussianBandit(1, sd=None, prior=(0, 1, 1, 1)),
        [[[0, -1]], [[0, 1e200]], [[1e200, 1]], [[0, math.nan]], [[0]], [0]],
    ),
    (PoissonBandit(1), [[-1.0], [1e20], [math.inf], [math.nan], [[1.0]], ["x"]]),
    (ExponentialBandit(1), [[0.0], [-1.0], [1e200]]),
    (GeometricBandit(1), [[0.0], [1.1], [math.nan]]),
    (
        CategoricalBandit(1, [-1, 0, 2]),
        [[[0.5, 0.6, -0.1]], [[0.5, 0.5, 0.1]], [[0.5, 0.5]], [0.5, 0.5, 0.0], "x"],
    ),
]


@pytest.mark.parametrize(("bandit", "truths"), IMPOSSIBLE)
def test_impossible_true_parameters_are_refused(bandit: Bandit, truths: list[Any]) -> None:
    for truth in truths:
        with pytest.raises(InvalidTable):
            bandit.environment(truth)


def test_a_prior_with_values_too_large_to_square_is_refused() -> None:
    for sd, prior in ((1, (1e200, 1)), (1, (0, 1e-200)), (1, (0, 1e200)), (None, (1e200, 1, 1, 1))):
        with pytest.raises(InvalidPrior):
            GaussianBandit(1, sd=sd, prior=prior)


@pytest.mark.parametrize(
    ("bandit", "words"),
    [
        (GaussianBandit(50, sd=None, prior=(0, 1, 1e-4, 1)), "alpha"),
        (PoissonBandit(1, prior=(1, 1e-200)), r"the mean reward .* drawn from the prior"),
        (ExponentialBandit(20, prior=(1e-4, 1)), r"the mean reward .* drawn from the prior"),
        (GeometricBandit(1, prior=(1e-4, 1.0)), "larger alpha"),
    ],
)
def test_a_prior_too_wide_to_draw_a_world_raises_a_clear_error(bandit: Bandit, words: str) -> None:
    with pytest.raises(InvalidPrior, match=words):
        bandit.draw(1)


@pytest.mark.parametrize(
    ("bandit", "expected"),
    [
        (ExponentialBandit(4, prior=[(1, 2), (0.5, 2), (1.5, 2), (2, 1)]), [math.inf] * 2 + [4, 1]),
        (GeometricBandit(2, prior=[(1, 1), (2, 1)]), [math.inf, 1]),
        (GaussianBandit(2, sd=None, prior=[(3, 1, 0.5, 1), (3, 1, 0.6, 1)]), [math.nan, 3]),
    ],
)
def test_an_expected_reward_may_be_infinite_or_not_exist(
    bandit: Bandit, expected: list[float]
) -> None:
    np.testing.assert_equal(list(bandit.belief().expected().values()), expected)


def test_a_bandit_copies_its_prior() -> None:
    prior = np.array([2.0, 3.0])
    bandit = BernoulliBandit(2, prior=prior)
    prior[:] = 9.0
    assert bandit.belief().posterior().tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_a_single_arm_is_always_pulled(case: Case) -> None:
    bandit = Bandit(case.bandit.family, ["only"])
    assert set(bandit.agent().batch(20, Stream(0))) == {"only"}
    if isinstance(case.bandit.family, Bernoulli):
        assert bandit.agent().action_probabilities() == {"only": 1.0}


def test_a_belief_that_learns_from_drawing_is_detected(case: Case) -> None:
    """Planted bug: a belief that changes its posterior when an action is drawn."""

    class LearnsFromDrawing(ArmsBelief):
        def draw_action(self, x: Any, rng: StreamLike) -> Any:
            a = super().draw_action(x, rng)
            self._rows[0] *= 1.001
            return a

    def make() -> Any:
        family, labels = case.bandit.family, list(case.bandit.labels)
        return ControlRule(LearnsFromDrawing(family, labels))

    with pytest.raises(LawBroken):
        check_acting(make, case.world)

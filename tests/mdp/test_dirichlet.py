"""Posterior sampling of models: the belief is exact, episodes follow TSDE, units do not matter."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]
from tests.chance import distance

from bayescontrol import FiniteBelief, interact
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    MissingCapability,
    UnknownAction,
    UnknownState,
)
from bayescontrol.mdp import (
    MDP,
    DirichletAgent,
    DirichletBelief,
    DirichletMDP,
    Maze,
    SampledMDP,
    chain_mdp,
    random_mdp,
    tsde,
)
from bayescontrol.record import Probe, Record
from bayescontrol.schedules import Every, Held, doubling, every_step
from bayescontrol.seeding import Stream
from bayescontrol.testing import (
    LawBroken,
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_merge,
    check_order,
    check_probes,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)

HISTORY = [
    (0, 1, (1.0, 1)), (1, 0, (0.5, 0)), (0, 1, (-2.0, 0)), (0, 0, (0.0, 0)), (0, 1, (2.5, 1)),
]  # fmt: skip
#: The best policy always works: it is warm, which pays 1, in .9 / (.9 + .2) of steps. ρ* = 9/11.
TWO_STATES = MDP(
    [[[1.0, 0.0], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8]]],
    [[0.2, 0.0], [0.0, 1.0]],
    states=["cold", "warm"],
    actions=["rest", "work"],
)


def learned(**options: Any) -> DirichletBelief:
    belief = DirichletBelief(2, 2, **options)
    for event in HISTORY:
        belief.observe(*event)
    return belief


# -- the belief ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"alpha": 2.0}, {"possible": np.ones((2, 2, 2), bool)}])
def test_the_laws_of_conditioning_hold(options: dict[str, Any]) -> None:
    def make() -> DirichletBelief:
        return DirichletBelief(2, 2, **options)

    check_deterministic(make, HISTORY)
    check_save(make, HISTORY)
    check_order(make, HISTORY)
    check_merge(make, HISTORY)
    bad = [(0, 0, (math.nan, 0)), (0, 0, (math.inf, 0)), (0, 2, (0.0, 0)), (0, 0, (0.0, 2)),
           (5, 0, (0.0, 0)), (0, 0, None), (0, 0, ("much", 0)), (0, 0, (0.0, [1]))]  # fmt: skip
    check_bad_evidence(make, HISTORY, bad)


def test_merged_beliefs_have_the_statistics_of_one_that_saw_everything() -> None:
    first, second, both = DirichletBelief(2, 1), DirichletBelief(2, 1), DirichletBelief(2, 1)
    for belief, reward in ((first, 1.0), (second, 4.0), (first, 3.0), (second, 5.0)):
        for one in (belief, both):
            one.observe(0, 0, (reward, 1))
    second.observe(1, 0, (7.0, 0))
    both.observe(1, 0, (7.0, 0))
    first.merge(second)
    assert first.scatter == pytest.approx(np.var([1, 4, 3, 5]) * 4)
    np.testing.assert_allclose(first.mean, both.mean)
    assert first.reward_scale() == pytest.approx(both.reward_scale())


def test_counts_and_sums_are_those_of_the_history() -> None:
    belief = learned(alpha=0.5)
    assert belief.posterior()[0, 1].tolist() == [1.5 / 4, 2.5 / 4]
    assert belief.tried.tolist() == [[1.0, 3.0], [1.0, 0.0]]
    assert belief.mean[0, 1].tolist() == [-2.0, 1.75]
    assert belief.scatter == pytest.approx(2 * 0.75**2)
    scale = belief.reward_scale()  # the means are -2, 1.75, .5 and 0; the first two are of one pair
    assert scale == pytest.approx((0.0625, 3.75**2 + 1.125 / 5, 2 * 1.875**2, 4, 3))
    nearly_equal = DirichletBelief(2, 1)
    nearly_equal.observe(0, 0, (0.3, 1))
    nearly_equal.observe(1, 0, (0.1 + 0.2, 1))
    assert nearly_equal.reward_scale().square == 1.0
    assert learned(reward_range=9.0).reward_scale().square == 81.0
    assert learned(reward_range=1.0).reward_scale().square == scale.square


def test_drawn_transitions_are_dirichlet() -> None:
    """2,000 draws; false alarm 1e-6 for each distance."""
    belief, rng = learned(alpha=0.5), Stream(2)
    drawn = np.array([belief.sample(rng).P for _ in range(2_000)])
    for (x, a), (p, q) in {(0, 1): (2.5, 1.5), (1, 1): (0.5, 0.5)}.items():
        assert distance(drawn[:, x, a, 1], stats.beta(p, q).cdf) < 2.69


def test_the_spreads_of_rewards_are_drawn_from_their_distributions() -> None:
    """σ² and T² are inverse gamma, and S = s/u².

    4,000 draws; false alarm 1e-6 for each distance.
    """
    belief, rng = learned(), Stream(3)
    levels = np.array([belief._draw_levels(rng) for _ in range(4_000)])
    s2, between = belief.reward_scale().square, belief.reward_scale().between
    noise = stats.invgamma(1 + (5 - 4) / 2, scale=(s2 + belief.scatter) / 2)
    assert distance(levels[:, 3], noise.cdf) < 2.69
    u = (s2 / levels[:, 1]) ** 0.25
    assert distance(u, stats.uniform.cdf) < 2.69
    branches = stats.invgamma(1 + (4 - 3) / 2, scale=(s2 + between) / 2)
    assert distance(levels[:, 2], branches.cdf) < 2.69


def test_the_belief_over_transitions_agrees_with_a_finite_belief_on_a_grid() -> None:
    """The hypothesis is P(y | m, x, a): 600 modes with θ = P(1 | 0, 0) have Beta(3, 2) weights."""
    grid = (np.arange(600) + 0.5) / 600
    conjugate = DirichletBelief(2, 1, alpha=1.0)
    P = np.tile([[[0.5, 0.5]]], (600, 2, 1, 1))
    P[:, 0, 0] = np.column_stack([1.0 - grid, grid])
    finite = FiniteBelief([SampledMDP(conjugate, p, np.zeros((2, 1, 2)), 1.0) for p in P])
    for y in (1, 1, 0):
        for belief in (conjugate, finite):
            belief.observe(0, 0, (0.3, y))
    np.testing.assert_allclose(finite.posterior(), stats.beta(3, 2).pdf(grid) / 600, atol=1e-7)
    assert float(conjugate.posterior()[0, 0, 1]) == 3 / 5


def test_the_likelihood_of_a_model_is_its_probability_times_a_normal_density() -> None:
    m = SampledMDP(DirichletBelief(1, 1), np.ones((1, 1, 1)), np.array([[[2.0]]]), 0.25)
    assert m.log_likelihood(0, 0, (2.5, 0)) == pytest.approx(stats.norm(2, 0.5).logpdf(2.5))
    assert m.action_probabilities(0) == {0: 1.0}
    never = SampledMDP(DirichletBelief(2, 1), np.eye(2)[:, None], np.zeros((2, 1, 2)), 1.0)
    assert never.log_likelihood(0, 0, (0.0, 1)) == -math.inf


def test_the_noise_of_rewards_is_learned() -> None:
    """One reward per pair: after 2,000 steps σ is below .05 without noise, and close to 1 with it.

    The posterior of σ² has about 1,000 degrees of freedom: σ is within 10 % of its mode in all but
    one in 1e5 draws.
    """
    exact, noisy, rng = DirichletBelief(1, 2), DirichletBelief(1, 2), Stream(4)
    for t in range(2_000):
        exact.observe(0, t % 2, (t % 2, 0))
        noisy.observe(0, t % 2, (t % 2 + rng.normal(), 0))
    assert exact.sample(rng).sigma2 < 0.05**2
    assert noisy.sample(rng).sigma2 == pytest.approx(1.0, rel=0.25)


# -- the unit of the rewards -----------------------------------------------------------------------


def scaled(mdp: MDP, factor: float, shift: float = 0.0) -> MDP:
    return MDP(mdp.transition, factor * mdp.reward + shift)


@pytest.mark.parametrize("factor", [2.0**-10, 2.0**10])
def test_the_unit_of_the_rewards_does_not_change_any_action(factor: float) -> None:
    """Powers of 2, so that nothing is rounded."""
    mdp = random_mdp(5, 2, seed=1)
    one, other = (
        interact(DirichletMDP(5, 2).agent(), world.environment(), 500, seed=0).actions
        for world in (mdp, scaled(mdp, factor))
    )
    assert (one == other).all()


@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 0.0), (1e3, 0.0), (1.0, 100.0)])
def test_the_default_learns_with_rewards_of_any_size(factor: float, shift: float) -> None:
    """The last 1,000 of 4,000 steps earned 98 % of ρ* or more in 20 runs of each case."""
    mdp = scaled(random_mdp(6, 3, concentration=0.5, seed=3), factor, shift)
    record = interact(DirichletMDP(6, 3).agent(), mdp.environment(), 4_000, seed=0)
    best = float(np.max(DirichletAgent(sure(mdp), 0).decide(0, Stream(0))[0].gain))
    earned = record.observations["reward"][-1_000:].mean()
    assert (earned - shift) / (best - shift) > 0.9


def sure(mdp: MDP) -> DirichletBelief:
    """Return a belief that has seen every transition very often."""
    belief = DirichletBelief(len(mdp.states), len(mdp.actions))
    belief.n[:] = 1e12 * mdp.transition
    belief.tried[:] = belief.n.sum(2)
    belief.mean[:] = mdp.reward[:, :, None]
    return belief


# -- the agent -------------------------------------------------------------------------------------

SCHEDULES = [tsde, doubling, every_step]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_laws_of_acting_hold(schedule: Any) -> None:
    def make() -> DirichletAgent:
        return DirichletMDP.on(TWO_STATES).agent(schedule=schedule)

    world = TWO_STATES.environment
    check_acting(make, world)
    check_same_seed(make, world)
    check_probes(make, world, {"ρ": Probe(lambda agent, _a, _o: agent.mode.gain)})
    for at in (0, 1, 2, 37, 100):
        check_resume(make, world, at=at)


def test_an_agent_that_treats_its_actions_as_evidence_is_detected() -> None:
    class Deluded(DirichletAgent):
        def issue(self, a: Any) -> None:
            self.belief.observe(self.x, a, (0.0, self.x))

    with pytest.raises(LawBroken, match="not evidence"):
        check_acting(
            lambda: Deluded(DirichletMDP.on(TWO_STATES).belief(), "cold"), TWO_STATES.environment
        )


def episode_starts(agent: DirichletAgent, mdp: MDP, steps: int) -> tuple[list[int], Record]:
    """Return the steps at which a model was drawn, and the record."""
    models: list[Any] = []
    look = Probe(lambda agent, _a, _o: models.append(agent.mode), "before")
    record = interact(agent, mdp.environment(), steps, probes={"drawn": look}, seed=0)
    return [t for t in range(steps) if t == 0 or models[t] is not models[t - 1]], record


def by_definition(record: Record, mdp: MDP) -> list[int]:
    """t_{k+1} = min {t > t_k: t > t_k + T_{k-1} or n_t(x,a) > 2 n_{t_k}(x,a) for some (x,a)}."""
    x = [mdp.states[0], *record.observations["state"]]
    pairs = list(zip(x, record.actions, strict=False))
    starts, last = [0], 0
    for t in range(1, len(pairs)):
        before = {p: pairs[: starts[-1]].count(p) for p in set(pairs[:t])}
        doubled = any(pairs[:t].count(p) > 2 * n for p, n in before.items())
        if t > starts[-1] + last or doubled:
            last = t - starts[-1]
            starts.append(t)
    return starts


def test_tsde_episodes_start_as_defined() -> None:
    starts, record = episode_starts(DirichletMDP.on(TWO_STATES).agent(), TWO_STATES, 300)
    assert starts == by_definition(record, TWO_STATES)
    assert len(starts) < 60


def test_other_schedules_hold_a_model_too() -> None:
    for schedule, expected in ((doubling, [0, 1, 2, 4, 8, 16]), (Every(7), [0, 7, 14])):
        agent = DirichletMDP.on(TWO_STATES).agent(schedule=schedule)
        assert episode_starts(agent, TWO_STATES, 20)[0] == expected


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_reaches_the_optimum_with_two_states(schedule: Any) -> None:
    """ρ* = .818. Steps 2,000 to 3,000 of 30 runs: .77 or more, except that 3 runs with doubling
    lengths are held at .04 to .23 by their last model. So the test uses the median of 9 runs, which
    is below .75 in less than 1e-3 of all cases.
    """
    problem = DirichletMDP.on(TWO_STATES)
    earned = [
        interact(
            problem.agent(schedule=schedule), problem.environment(TWO_STATES), 3_000, seed=seed
        ).observations["reward"][-1_000:].mean()
        for seed in range(9)
    ]  # fmt: skip
    assert np.median(earned) > 0.75


def test_it_comes_close_to_the_optimum_on_three_cups() -> None:
    """ρ* = .3652; the cup cycle earns .22. The last 5,000 of 20,000 steps of 8 runs: share of .90
    or more.
    """
    mdp = Maze().mdp()
    record = interact(DirichletMDP.on(mdp).agent(), mdp.environment(), 20_000, seed=0)
    assert record.observations["reward"][-5_000:].mean() > 0.3


def test_only_actions_that_a_state_offers_are_taken() -> None:
    may = np.array([[True, False], [True, True]])
    mdp = MDP(np.full((2, 2, 2), 0.5), [[0.0, 9.0], [0.0, 1.0]], allowed=may)
    record = interact(DirichletMDP.on(mdp).agent(), mdp.environment(), 300, seed=0)
    x = np.append(0, record.observations["state"][:-1])
    assert (record.actions[x == 0] == 0).all()
    assert record.actions[x == 1][-50:].mean() > 0.8
    assert (DirichletMDP.on(mdp).draw(seed=0).mdp.allowed == may).all()


# -- invalid input ---------------------------------------------------------------------------------


def test_errors_name_the_state_the_action_and_a_remedy() -> None:
    possible = np.array([[[1, 1], [0, 0]], [[1, 0], [1, 1]]], bool)
    agent = DirichletMDP(["home", "away"], ["stay", "go"], possible=possible).agent()
    agent.act(Stream(0))
    before = agent.save()
    for x, a, o, error, match in (
        ("home", "stay", (math.nan, "away"), BadEvidence, "nan after action 'stay' in state"),
        ("home", "go", (0.0, "away"), UnknownAction, "'home' does not offer action 'go': it"),
        ("home", "stay", (0.0, "gone"), UnknownState, "no state 'gone'.* in state 'home'"),
        ("home", "stay", (1e200, "home"), BadEvidence, "within ±1e"),
        ("away", "stay", (0.0, "away"), ImpossibleObservation, "'away' after action 'stay'"),
        ("away", "jump", (0.0, "away"), UnknownAction, "no action 'jump'"),
    ):  # fmt: skip
        agent.x = x
        with pytest.raises(error, match=match):
            agent.observe(a, o)
        agent.x = "home"
        assert same_bits(before, agent.save())


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: DirichletMDP(2, 1, alpha=0.0), InvalidPrior, "alpha=0.0"),
        (lambda: DirichletMDP(2, 1, alpha=math.nan), InvalidPrior, "alpha=nan"),
        (lambda: DirichletMDP(2, 1, possible=np.ones((2, 1, 2))), InvalidTable, "booleans"),
        (lambda: DirichletMDP(1, 1, possible=[[[False]]]), InvalidTable, "state 0"),
        (lambda: DirichletMDP(2, 1, reward_range=-1.0), InvalidPrior, "reward_range=-1.0"),
        (lambda: DirichletMDP(2, 1, "hot"), UnknownState, "'hot'"),
        (lambda: tsde(Held(3, 1, 0, 0), Stream(0)), MissingCapability, "DirichletAgent"),
        (lambda: learned().merge(learned(alpha=2.0)), IncompatibleState, "the same states"),
        (lambda: learned().merge(learned(reward_range=2.0)), IncompatibleState, "reward_range"),
        (lambda: learned().merge(3), IncompatibleState, "not a DirichletBelief"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_bad_settings_are_refused(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    agent = DirichletMDP(2, 2).agent()
    agent.act(Stream(0))
    saved = agent.save()
    for name, wrong in (
        ("belief/n", saved["belief/n"] - 1.0),
        ("belief/drawn", np.ones(3)),
        ("episode/previous", np.array(-1)),
        ("episode/tried", np.zeros((3, 2))),
    ):
        with pytest.raises(IncompatibleState):
            agent.load({**saved, name: wrong})
        assert same_bits(saved, agent.save())
    with pytest.raises(IncompatibleState):
        agent.load(DirichletMDP.on(chain_mdp(3)).agent().save())

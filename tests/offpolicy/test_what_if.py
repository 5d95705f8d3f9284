"""Estimates of the reward of another policy: unbiased, with their support, and invalid requests.

If the range of rewards is unknown, intervals are normal. They hold on logs of a fixed policy: if
the level is right, fewer than 176 of 200 intervals at 95 % contain the truth with probability 3e-5
(6e-5 for either of two estimates). Seeds are fixed. Intervals that hold on any log are tested in
test_estimators and test_what_if_coverage.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.offpolicy.fixed_logs import MEANS, fixed_log

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    GaussianBandit,
    JointBandit,
    LinearBandit,
    LogisticBandit,
)
from bayescontrol.durable import export_log, named_model, open_agent
from bayescontrol.durable.events import Created, Decided, Event, Observed
from bayescontrol.durable.models import model_of
from bayescontrol.durable.replay import Replayer
from bayescontrol.errors import (
    BadEvidence,
    InvalidRequest,
    MissingCapability,
    ModelMismatch,
    UnknownAction,
)
from bayescontrol.finite.tabular import random_modes
from bayescontrol.offpolicy import what_if
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream


def policy(x: Any) -> dict[str, float]:
    return {"red": 0.9, "blue": 0.1}


TRUTH = 0.9 * 0.7 + 0.1 * 0.4


def test_both_estimates_are_unbiased_and_normal_intervals_hold_for_a_fixed_policy() -> None:
    result = [what_if(fixed_log(seed, 200), policy) for seed in range(200)]
    for name in ("inverse_propensity", "doubly_robust"):
        estimates = [getattr(one, name) for one in result]
        means = np.array([e.mean for e in estimates])
        # Four standard errors: one false alarm in 16,000, or in 8,000 for either estimate.
        assert abs(means.mean() - TRUTH) < 4 * means.std() / np.sqrt(len(means))
        assert sum(e.low <= TRUTH <= e.high for e in estimates) >= 176
    ips = np.mean([one.inverse_propensity.error for one in result])
    robust = np.mean([one.doubly_robust.error for one in result])
    # The ratio was 0.648 on 1,000 other seeds, ± 0.004 for 200 logs: thirteen standard errors.
    assert robust < 0.7 * ips


def test_a_wrong_probability_in_the_log_biases_the_estimate() -> None:
    """The planted bug: the test above can fail."""
    wrong = [
        what_if(fixed_log(seed, 200, logged_p_red=0.5), policy).inverse_propensity.mean
        for seed in range(50)
    ]
    means = np.array(wrong)
    assert abs(means.mean() - TRUTH) > 10 * means.std() / np.sqrt(len(means))


def test_the_value_of_the_logged_policy_is_its_reward() -> None:
    events = fixed_log(1, 100)
    result = what_if(events, lambda x: {"red": 0.3, "blue": 0.7})
    assert result.inverse_propensity.mean == pytest.approx(result.logged.mean)
    assert result.effective == pytest.approx(100)
    assert result.largest_weight == pytest.approx(1.0)
    assert (result.decisions, result.unanswered) == (100, 0)


def test_an_agent_that_learns_is_evaluated_with_its_counterfactual_belief() -> None:
    with open_agent("sqlite:///:memory:", "s", BernoulliBandit(["red", "blue"]), seed=2) as agent:
        rng = Stream(0)
        for i in range(300):
            d = agent.act()
            if i % 10:
                agent.observe(d, int(rng.random() < MEANS[d.action]))
        same = what_if(agent.log(), BernoulliBandit(["red", "blue"]))
        assert same.inverse_propensity.mean == pytest.approx(same.logged.mean, abs=1e-9)
        assert (same.decisions, same.unanswered) == (270, 30)
        wary = what_if(agent.log(), BernoulliBandit(["red", "blue"], prior=[(1, 50), (50, 1)]))
        assert wary.doubly_robust.mean < same.logged.mean


def test_contexts_are_taken_into_account() -> None:
    with open_agent("sqlite:///:memory:", "s", LinearBandit(["a", "b"], 1), seed=2) as agent:
        rng = Stream(0)
        for _ in range(300):
            d = agent.act([rng.choice([-1.0, 1.0])])
            agent.observe(d, d.situation[0] * (1.0 if d.action == "a" else -1.0))
        right = what_if(agent.log(), lambda x: {"a" if x[0] > 0 else "b": 1.0})
        wrong = what_if(agent.log(), lambda x: {"b" if x[0] > 0 else "a": 1.0})
        assert right.doubly_robust.low > 0.8
        assert right.effective > 250
        assert wrong.effective < 5  # the log of a better policy holds little evidence


NAN, INF = float("nan"), float("inf")
#: What is wrong -> (the other policy, options, the error and its message).
REFUSED: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (random_modes(2, situations=2), {}, MissingCapability, "accepts late feedback"),
    (CategoricalBandit(["red", "blue"], [0, 1, 2]), {}, MissingCapability, "no exact action"),
    (lambda x: {"red": 0.5, "green": 0.5}, {}, UnknownAction, "'green'"),
    (policy, {"bounds": (0, 0.5)}, BadEvidence, r"reward 1\.0, outside \(0\.0, 0\.5\)"),
    *((policy, {"level": level}, ValueError, "level=") for level in (1.0, 0.0, NAN, "x")),
    *(
        (lambda x, pi=pi: pi, {}, InvalidRequest, r"expected (probabilities|.action)")
        for pi in (
            [0.5],
            None,
            {},
            {"red": 0.7},
            {"red": NAN},
            {"red": "a"},
            {"red": 2, "blue": -1},
        )
    ),
    *(
        (policy, {"reward": lambda o, r=r: r}, BadEvidence, "reward")
        for r in (NAN, INF, "1", None, [1])
    ),
    *(
        (policy, {"bounds": bounds}, InvalidRequest, "bounds=")
        for bounds in ((1, 0), (0, 0), (0, INF), (NAN, 1), 3, "01x", (0, 1, 2))
    ),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_requests_that_cannot_be_answered_raise(case: int) -> None:
    other, options, error, match = REFUSED[case]
    with pytest.raises(error, match=match):
        what_if(fixed_log(1, 10), other, **options)


def test_an_observation_that_is_not_a_number_needs_a_reward() -> None:
    answers: list[Event] = [
        Observed(seq=e.seq, n=e.n, o="good", time=0.0) if isinstance(e, Observed) else e
        for e in fixed_log(1, 10)
    ]
    with pytest.raises(MissingCapability, match="reward="):
        what_if(answers, policy)
    assert what_if(answers, policy, reward=lambda o: 1.0).logged.mean == 1.0


def test_a_log_without_probabilities_cannot_be_used() -> None:
    held = named_model("held", version=1, build=BernoulliBandit(2).agent(schedule=Every(3)).copy)
    with open_agent("sqlite:///:memory:", "s", held) as agent:
        assert agent.act().probability is None
        with pytest.raises(MissingCapability, match="no probability in the log"):
            what_if(agent.log(), lambda x: {0: 1.0})


def test_a_log_without_observations_gives_no_estimate() -> None:
    for events in (fixed_log(1, 0), fixed_log(1, 1)[:2]):
        with pytest.raises(InvalidRequest, match="no observation"):
            what_if(events, policy)


def test_an_untried_action_has_no_narrow_interval() -> None:
    only_blue = fixed_log(1, 100, p_red=1e-9)
    for p in (1.0, 0.99):
        result = what_if(only_blue, lambda x, p=p: {"red": p, "blue": 1 - p})
        assert result.unsupported == pytest.approx(p)
        assert (result.doubly_robust.low, result.doubly_robust.high) == (-np.inf, np.inf)
        assert result.inverse_propensity.error == np.inf
    assert what_if(only_blue, lambda x: {"red": 1.0}).effective == 0.0
    assert what_if(only_blue, lambda x: {"blue": 1.0}).doubly_robust.error < 0.1


def test_an_unknown_action_of_probability_zero_is_accepted() -> None:
    assert what_if(fixed_log(1, 10), lambda x: {"blue": 1.0, "green": 0.0}).decisions == 10


def test_an_agent_or_a_file_is_accepted_as_a_log(tmp_path: Path) -> None:
    with open_agent("sqlite:///:memory:", "s", BernoulliBandit(["red", "blue"]), seed=2) as agent:
        for _ in range(10):
            agent.observe(agent.act(), 1)
        export_log(agent, tmp_path / "s.jsonl")
        assert what_if(agent, policy) == what_if(tmp_path / "s.jsonl", policy)
    with pytest.raises(InvalidRequest, match="is not a log"):
        what_if(7, policy)  # type: ignore[arg-type]


def test_the_text_states_level_and_number_of_decisions() -> None:
    result = what_if(fixed_log(1, 50), policy, level=0.9)
    assert str(result).splitlines()[0] == "mean reward per decision, with 90 % intervals"
    assert "pass bounds=" in str(result)
    assert "50 decisions with an observation, 0 without" in str(result)


@pytest.mark.parametrize(
    ("level", "p", "is_finite"),
    [(0.95, 0.04, True), (0.95, 0.06, False), (0.9, 0.06, True), (0.9, 0.11, False)],
)
def test_an_interval_is_infinite_if_more_than_one_minus_level_is_unsupported(
    level: float, p: float, is_finite: bool
) -> None:
    only_blue = fixed_log(1, 100, p_red=1e-9)
    result = what_if(only_blue, lambda x: {"red": p, "blue": 1 - p}, level=level)
    assert result.unsupported == pytest.approx(p)
    assert np.isfinite(result.doubly_robust.high) == is_finite


# -- rewards of a known range ---------------------------------------------------------------------


def bernoulli_log(decisions: int = 40) -> list[Event]:
    with open_agent("sqlite:///:memory:", "s", BernoulliBandit(["red", "blue"]), seed=2) as agent:
        rng = Stream(0)
        for _ in range(decisions):
            d = agent.act()
            agent.observe(d, int(rng.random() < MEANS[d.action]))
        return list(agent.log())


def test_the_range_of_rewards_is_known_for_finitely_many_outcomes() -> None:
    models: list[tuple[Any, Any, Any]] = [
        (BernoulliBandit(2), None, (0.0, 1.0)),
        (JointBandit([[0.9, 0.1], [0.1, 0.9]]), None, (0.0, 1.0)),
        (LogisticBandit(2, 1), [1.0], (0.0, 1.0)),
        (random_modes(2, observations=3, seed=1), None, (0.0, 2.0)),
        (GaussianBandit(2, sd=1, prior=(0, 1)), None, None),
    ]
    for model, x, bounds in models:
        with open_agent("sqlite:///:memory:", "s", model, seed=2) as agent:
            agent.observe(agent.act(x), 1)
            result = what_if(agent, lambda x: {0: 0.5, 1: 0.5})
            assert (result.bounds, result.all_propensities) == (bounds, bounds is not None)
            if bounds is not None:
                assert (
                    bounds[0] <= result.doubly_robust.low <= result.doubly_robust.high <= bounds[1]
                )


def test_intervals_are_in_the_units_of_the_reward() -> None:
    events = bernoulli_log()
    plain, priced = what_if(events, policy), what_if(events, policy, reward=lambda o: 3 * o - 1)
    assert priced.bounds == (-1.0, 2.0)
    for name in ("inverse_propensity", "doubly_robust", "logged"):
        one, other = getattr(plain, name), getattr(priced, name)
        assert other.low == pytest.approx(3 * one.low - 1, abs=1e-9)
        assert other.high == pytest.approx(3 * one.high - 1, abs=1e-9)
    fixed = what_if(events, policy, reward=lambda o: 7.0).doubly_robust
    assert (fixed.low, fixed.high) == (7.0, 7.0)


def test_wider_bounds_give_wider_intervals() -> None:
    events = fixed_log(1, 300)
    narrow = what_if(events, policy, bounds=(0, 1)).inverse_propensity
    wide = what_if(events, policy, bounds=(-1, 3)).inverse_propensity
    assert wide.low < narrow.low < TRUTH < narrow.high < wide.high
    assert (wide.mean, wide.error) == (narrow.mean, narrow.error)


def test_the_interval_of_an_untried_action_is_the_whole_range() -> None:
    result = what_if(fixed_log(1, 100, p_red=1e-9), lambda x: {"red": 1.0}, bounds=(0, 1))
    for one in (result.inverse_propensity, result.doubly_robust):
        assert (one.low, one.high, one.error) == (0.0, 1.0, np.inf)
    assert "puts 100 % of its probability on actions without any observation" in str(result)


def test_replayed_probabilities_equal_those_of_the_log() -> None:
    events = bernoulli_log()
    assert isinstance(events[0], Created)
    distributions = Replayer(model_of(events[0]), events[0])
    for event in events:
        if isinstance(event, Decided):
            probabilities = distributions.take_decision(event)
            assert probabilities is not None
            assert probabilities[event.a] == event.p
            assert sum(probabilities.values()) == pytest.approx(1.0)
        elif isinstance(event, Observed):
            distributions.take(event)
    last = events[-2]
    assert isinstance(last, Decided)
    events[-2] = Decided(seq=last.seq, x=None, a=last.a, p=0.123, key=None, time=0.0)
    with pytest.raises(ModelMismatch, match=r"had probability 0\.123, computed again it has"):
        what_if(events, policy)


def test_the_narrower_interval_of_a_user_model_needs_the_model() -> None:
    mine = named_model("mine", version=1, build=lambda: BernoulliBandit(["red", "blue"]).agent())
    with open_agent("sqlite:///:memory:", "s", mine, seed=2) as agent:
        rng = Stream(0)
        for _ in range(200):
            d = agent.act()
            agent.observe(d, int(rng.random() < MEANS[d.action]))
        with_it = what_if(agent, policy, bounds=(0, 1))
        events = list(agent.log())
    assert with_it.all_propensities
    assert what_if(events, policy, bounds=(0, 1), model=mine) == with_it
    without = what_if(events, policy, bounds=(0, 1))
    assert not without.all_propensities
    assert without.doubly_robust.mean == with_it.doubly_robust.mean
    assert without.doubly_robust.low == without.inverse_propensity.low
    assert without.doubly_robust.high == without.inverse_propensity.high
    assert "pass model=" in str(without)
    assert "pass model=" not in str(with_it)
    with pytest.raises(ModelMismatch, match="version 1, not 2"):
        what_if(events, policy, model=mine._replace(version=2))


def test_a_sequential_agent_has_an_interval_too() -> None:
    """The reward of the other policy at each decision, along the path of the log."""
    with open_agent(
        "sqlite:///:memory:", "s", random_modes(3, situations=2, seed=3), seed=2
    ) as agent:
        for i in range(50):
            agent.observe(agent.act(), i % 2)
        result = what_if(agent, lambda x: {0: 0.5, 1: 0.5})
    assert result.all_propensities
    assert result.doubly_robust.low < result.doubly_robust.high

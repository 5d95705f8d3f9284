"""Switching over modes with private state, exactly or by interacting models; learned hazards."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.output_feedback import OutputMode

from bayescontrol import ControlRule, FiniteBelief, Stream, TabularModes
from bayescontrol._mode_queries import has
from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov
from bayescontrol.beliefs import InteractingBelief, SwitchingBelief, mix_gaussians
from bayescontrol.errors import IncompatibleState, MissingCapability
from bayescontrol.lqr import LinearSystem
from bayescontrol.protocols import MISSING, StateMixing
from bayescontrol.testing import check_bad_evidence, check_deterministic, check_save, same_bits


class Echo:
    """o repeats the last observation with probability p; the state is the last observation.

    The state is the same in all modes. After a lost observation it is 2, and o is a fair coin.
    """

    def __init__(self, p: float) -> None:
        self.p, self.name = p, f"{p:g}"

    def start(self) -> int:
        return 0

    def advance(self, s: int, a: Any, o: Any) -> int:
        return 2 if o is MISSING else o

    def likelihood(self, s: int, a: Any, o: int) -> float:
        return math.nan if o == 3 else 0.5 if s == 2 else self.p if o == s else 1.0 - self.p

    def act(self, s: int, rng: Any) -> str:
        return "look"


ECHOES = [Echo(0.9), Echo(0.5), Echo(0.2)]
PRIOR = np.array([0.5, 0.3, 0.2])
SEEN: list[Any] = [0, 1, 1, MISSING, 0, 1, 0, 1]  # T = 8


def feed(belief: Any, observations: list[Any]) -> Any:
    for o in observations:
        if o is MISSING:
            belief.skip(None, "look")
        else:
            belief.observe(None, "look", o)
    return belief


def by_paths(hazards: list[float], hazard_prior: list[float], observations: list[Any]) -> Any:
    """Return P(h, m_{t+1}, o_≤t) by enumerating every path of modes, for each hazard."""
    v = np.zeros((len(hazards), 3))
    for (i, h), path in itertools.product(
        enumerate(hazards), itertools.product(range(3), repeat=len(observations) + 1)
    ):
        p, s = hazard_prior[i] * PRIOR[path[0]], 0
        for t, o in enumerate(observations):
            m, n = path[t], path[t + 1]
            if o is not MISSING:
                p *= ECHOES[m].likelihood(s, "look", o)
            s = ECHOES[m].advance(s, "look", o)
            p *= (1 - h) * (m == n) + h * PRIOR[n]
        v[i, path[-1]] += p
    return v


@pytest.mark.parametrize("steps", [1, 5, 8])
def test_switching_over_a_shared_state_equals_the_sum_over_all_paths(steps: int) -> None:
    v = by_paths([0.07], [1.0], SEEN[:steps])
    belief = feed(SwitchingBelief(ECHOES, PRIOR, hazard=0.07, shared_state=True), SEEN[:steps])
    assert belief.posterior() == pytest.approx(v[0] / v.sum(), abs=1e-12)
    assert belief.code_length() == pytest.approx(-math.log2(v.sum()), abs=1e-12)


def test_a_learned_hazard_equals_the_sum_over_all_paths_and_hazards() -> None:
    hazards, prior = [0.0, 0.05, 0.6], [0.5, 0.2, 0.3]
    v = by_paths(hazards, prior, SEEN)
    belief = SwitchingBelief(ECHOES, PRIOR, hazard=hazards, hazard_prior=prior, shared_state=True)
    assert belief.hazards() == pytest.approx(dict(zip(hazards, prior, strict=True)))
    feed(belief, SEEN)
    assert belief.posterior() == pytest.approx(v.sum(0) / v.sum(), abs=1e-12)
    assert list(belief.hazards().values()) == pytest.approx(v.sum(1) / v.sum(), abs=1e-12)
    assert belief.code_length() == pytest.approx(-math.log2(v.sum()), abs=1e-12)


def test_a_grid_of_one_hazard_is_that_hazard() -> None:
    one = feed(SwitchingBelief(ECHOES, PRIOR, hazard=[0.07], shared_state=True), SEEN)
    known = feed(SwitchingBelief(ECHOES, PRIOR, hazard=0.07, shared_state=True), SEEN)
    assert same_bits(one.save(), known.save())
    assert known.hazards() == {0.07: 1.0}


def test_the_posterior_of_the_hazard_finds_the_rate() -> None:
    """Coins of 0.95 and 0.05 that change with probability 0.03 per step, for 2,000 steps.

    There are about 30 changes of the coin, which give the true hazard against its neighbours, 0.003
    and 0.3, about 30 nats or more. Pilot with seeds 1 to 20: at least 0.9999 in all of them.
    """
    rng, p, coins = Stream(0), 0.95, [Echo(0.95), Echo(0.05)]
    belief = SwitchingBelief(coins, hazard=[0.0003, 0.003, 0.03, 0.3], shared_state=True)
    s = 0
    for _ in range(2000):
        if rng.random() < 0.03 and rng.random() < 0.5:
            p = 1.0 - p
        s = s if rng.random() < p else 1 - s
        belief.observe(None, "look", s)
    assert belief.hazards()[0.03] > 0.99


# -- interacting models ----------------------------------------------------------------------------


def cart(push: float) -> OutputMode:
    system = LinearSystem([[1.0, 1.0], [0.0, 0.9]], [[0.0], [push]], np.eye(2), [[1]])
    return OutputMode(system, C=[[1, 0]], V=[[1]], name=f"push {push}")


CARTS = [cart(1.0), cart(-1.0), cart(0.2)]
EVENTS = [
    (None, [u], [y]) for u, y in zip((1, 1, -1, 2, 0, 1), (0.3, 1, 2, 1.5, 4, 3), strict=True)
]


def after(belief: Any, events: Any = EVENTS) -> Any:
    for x, a, o in events:
        belief.observe(x, np.array(a, float), np.array(o, float))
    return belief


def states(belief: Any) -> Any:
    return [belief.save()[f"state/{m}"] for m in range(len(belief))]


def test_interacting_models_with_one_mode_are_its_filter() -> None:
    belief, single = InteractingBelief(CARTS[:1], hazard=0.2), FiniteBelief(CARTS[:1])
    assert np.array_equal(states(after(belief)), states(after(single)))
    assert belief.code_length() == pytest.approx(single.code_length(), rel=1e-12)


@pytest.mark.parametrize("change", [{"hazard": 0.0}, {"transition": np.eye(3)}])
def test_without_a_hazard_interacting_models_are_independent_filters(change: Any) -> None:
    belief, static = InteractingBelief(CARTS, **change), FiniteBelief(CARTS)
    assert np.array_equal(states(after(belief)), states(after(static)))
    assert belief.posterior() == pytest.approx(static.posterior(), rel=1e-9)


@pytest.mark.parametrize("hazard", [[0.0, 0.3], [0.01, 0.2, 0.9]])
def test_interacting_models_with_a_learned_hazard_equal_a_plain_implementation(hazard: Any) -> None:
    """Joint weights by loops over (h, i, j); the state is mixed from all (h, i)."""
    prior = np.array([0.2, 0.5, 0.3])
    belief = InteractingBelief(CARTS, prior, hazard=hazard)
    w = np.outer(np.full(len(hazard), 1 / len(hazard)), prior)
    s = [mode.start() for mode in CARTS]
    for x, a, o in EVENTS:
        u, y = np.array(a, float), np.array(o, float)
        w = w * np.exp([CARTS[m].log_likelihood(s[m], u, y) for m in range(3)])
        s = [CARTS[m].advance(s[m], u, y) for m in range(3)]
        w /= w.sum()
        joint = np.zeros((len(hazard), 3, 3))
        for k, i, j in np.ndindex(*joint.shape):
            joint[k, i, j] = w[k, i] * ((1 - hazard[k]) * (i == j) + hazard[k] * prior[j])
        mixed = []
        for j in range(3):
            p = joint[:, :, j].sum(0) / joint[:, :, j].sum()
            mean = sum(p[i] * s[i][:, 0] for i in range(3))
            second = sum(p[i] * (s[i][:, 1:] + np.outer(s[i][:, 0], s[i][:, 0])) for i in range(3))
            mixed.append(np.column_stack([mean, second - np.outer(mean, mean)]))
        w, s = joint.sum(1), mixed
        after(belief, [(x, a, o)])
        assert belief.posterior() == pytest.approx(w.sum(0), abs=1e-12)
        assert list(belief.hazards().values()) == pytest.approx(w.sum(1), abs=1e-12)
        assert np.array(states(belief)) == pytest.approx(np.array(s), abs=1e-10)


def test_a_lost_observation_moves_interacting_filters_without_evidence() -> None:
    belief = after(InteractingBelief(CARTS, [0.2, 0.5, 0.3], hazard=0.1))
    v, s, u = belief.posterior(), states(belief), np.array([0.5])
    belief.skip(None, u)
    assert belief.posterior() == pytest.approx(0.9 * v + 0.1 * np.array([0.2, 0.5, 0.3]), abs=1e-14)
    moved = np.array([mode.advance(s[m], u, MISSING) for m, mode in enumerate(CARTS)])
    flow = 0.9 * np.diag(v) + 0.1 * np.outer(v, [0.2, 0.5, 0.3])
    for j, mode in enumerate(CARTS):
        expected = mode.mix_states(list(moved), flow[:, j] / flow[:, j].sum())
        assert states(belief)[j] == pytest.approx(expected, abs=1e-12)


def test_the_mixture_has_the_moments_of_its_parts() -> None:
    rng = np.random.default_rng(0)
    means, w = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
    roots = rng.normal(size=(4, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1)
    mean, covariance = mix_gaussians(means, covariances, w)
    second = sum(p * (S + np.outer(m, m)) for p, S, m in zip(w, covariances, means, strict=True))
    assert mean == pytest.approx(w @ means)
    assert covariance == pytest.approx(second - np.outer(mean, mean))
    first = mix_gaussians(means[:, 0], covariances[:, 0, 0], w)
    assert np.array(first) == pytest.approx(np.array([mean[0], covariance[0, 0]]))


def test_a_mode_that_is_ruled_out_does_not_enter_the_mixture() -> None:
    class Odd(OutputMode):
        """Rules every output out, and has no valid state after it."""

        def log_likelihood(self, s: Any, a: Any, o: Any) -> float:
            return -math.inf

        def advance(self, s: Any, a: Any, o: Any) -> Any:
            return np.full_like(s, np.nan)

    system = CARTS[0].system
    odd = Odd(system, C=[[1, 0]], V=[[1]], name="odd")
    belief = after(InteractingBelief([*CARTS, odd], hazard=0.1))
    assert np.isfinite(states(belief)).all()
    assert belief.posterior()[3] == pytest.approx(0.025)


# -- saving, laws, adding and retiring -------------------------------------------------------------


def interacting() -> InteractingBelief[OutputMode]:
    return InteractingBelief(CARTS, [0.2, 0.5, 0.3], hazard=[0.001, 0.1])


def shared() -> SwitchingBelief[Echo]:
    return SwitchingBelief(ECHOES, PRIOR, hazard=[0.01, 0.1], shared_state=True)


NUMPY_EVENTS = [(None, np.array(a, float), np.array(o, float)) for _, a, o in EVENTS]


@pytest.mark.parametrize(
    ("make", "events", "bad"),
    [
        (interacting, NUMPY_EVENTS, (None, np.array([1.0]), np.array([math.nan]))),
        (shared, [(None, "look", o) for o in (0, 1, 1, 0)], (None, "look", 3)),
    ],
)
def test_the_laws_of_a_belief_hold(make: Callable[[], Any], events: Any, bad: Any) -> None:
    check_deterministic(make, events)
    check_save(make, events)
    check_bad_evidence(make, events, [bad])
    belief = make()
    twin = belief.copy()
    for x, a, o in events:
        twin.observe(x, a, o)
    assert same_bits(belief.save(), make().save())


def test_damaged_or_other_hazards_are_refused() -> None:
    belief = after(interacting())
    saved = belief.save()
    for array in (saved["hazard_given_mode"][:1], -saved["hazard_given_mode"]):
        with pytest.raises(IncompatibleState):
            belief.load(saved | {"hazard_given_mode": array})
    with pytest.raises(IncompatibleState, match="saved with hazard or transition"):
        InteractingBelief(CARTS, hazard=[0.001, 0.1], hazard_prior=[0.9, 0.1]).load(saved)
    assert same_bits(belief.save(), saved)


def test_filters_can_be_added_and_retired() -> None:
    belief = after(interacting())
    before = belief.hazards()
    new = cart(3.0)
    assert belief.add(new, 0.25, state=new.start()) == 3
    assert belief.hazards() == pytest.approx(before, rel=1e-12)
    belief.retire("push 1.0")
    after(belief)
    assert belief.posterior()[0] == 0.0
    assert belief.posterior().sum() == pytest.approx(1.0)
    assert np.isfinite(states(belief)).all()
    # Retiring conditions on the other modes: a belief without mode 0 from the start agrees.
    plain = after(InteractingBelief(CARTS[1:], hazard=[0.001, 0.1]))
    other = InteractingBelief(CARTS, hazard=[0.001, 0.1])
    other.retire(0)
    after(other)
    assert other.posterior()[1:] == pytest.approx(plain.posterior(), rel=1e-12)
    assert other.hazards() == pytest.approx(plain.hazards(), rel=1e-12)


def test_a_new_mode_has_the_shared_state() -> None:
    belief = feed(shared(), [0, 1])
    belief.add(Echo(0.7), 0.1)
    assert str(belief.save()["state/3"]) == "1"
    before = belief.save()
    with pytest.raises(IncompatibleState, match="share the state 1"):
        belief.add(Echo(0.7), 0.1, state=0)
    assert same_bits(before, belief.save())


# -- errors ----------------------------------------------------------------------------------------


def test_states_that_are_not_shared_are_found_and_change_nothing() -> None:
    class Counter(Echo):
        def advance(self, s: Any, a: Any, o: Any) -> Any:
            return s if self.p < 0.5 and o == 1 else 1

    belief = SwitchingBelief([Counter(0.9), Counter(0.4)], hazard=0.1, shared_state=True)
    belief.observe(None, "look", 0)
    belief = SwitchingBelief([Counter(0.9), Counter(0.4)], hazard=0.1, shared_state=True)
    before = belief.save()
    with pytest.raises(IncompatibleState, match=r"mode 1 \(0\.4\) has the state 0"):
        belief.observe(None, "look", 1)
    assert same_bits(before, belief.save())

    class Late(Echo):
        def start(self) -> int:
            return 1

    with pytest.raises(IncompatibleState, match="shared_state=True"):
        SwitchingBelief([Echo(0.9), Late(0.1)], hazard=0.1, shared_state=True)


def test_shared_arrays_and_tuples_are_compared_entry_by_entry() -> None:
    class Pair(Echo):
        def __init__(self, p: float, slope: float) -> None:
            super().__init__(p)
            self.slope = slope

        def start(self) -> Any:
            return (0, [np.zeros(2)])

        def advance(self, s: Any, a: Any, o: Any) -> Any:
            return (s[0] + 1, [s[1][0] + self.slope * o])

        def likelihood(self, s: Any, a: Any, o: int) -> float:
            return self.p if o else 1.0 - self.p

    same = SwitchingBelief([Pair(0.9, 1.0), Pair(0.2, 1.0)], hazard=0.1, shared_state=True)
    same.observe(None, "look", 1)
    other = SwitchingBelief([Pair(0.9, 1.0), Pair(0.2, 2.0)], hazard=0.1, shared_state=True)
    other.observe(None, "look", 0)
    with pytest.raises(IncompatibleState):
        other.observe(None, "look", 1)


def test_modes_without_what_is_needed_are_refused_with_a_reason() -> None:
    with pytest.raises(MissingCapability, match=r"mode 0 \(0\.9\) lacks mix_states"):
        InteractingBelief(ECHOES, hazard=0.1)

    class Coin:
        def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
            return 0.0

    with pytest.raises(MissingCapability, match=r"mode 3 .*no private state"):
        InteractingBelief([*CARTS, Coin()], hazard=0.1)
    with pytest.raises(MissingCapability, match="shared_state=True, use SwitchingBelief"):
        InteractingBelief(CARTS, hazard=0.1, shared_state=True)
    table = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1.0, 0.0]]], [[[0.5, 0.5]]]])
    with pytest.raises(MissingCapability, match=r"mode 0 .*no private state"):
        InteractingBelief(table, hazard=0.1)
    belief: Any = after(interacting())
    before = belief.save()
    for mode in (Coin(), Echo(0.5)):
        with pytest.raises(MissingCapability):
            belief.add(mode, 0.1)
    assert same_bits(before, belief.save())
    assert has(CARTS[0], StateMixing)


def test_a_mixture_that_fails_changes_nothing() -> None:
    class Failing(OutputMode):
        def mix_states(self, states: Any, weights: Any) -> Any:
            raise ZeroDivisionError

    belief: Any = InteractingBelief(
        [CARTS[0], Failing(CARTS[0].system, [[1, 0]], [[1]])],
        hazard=[0.1, 0.2],
    )
    before = belief.save()
    with pytest.raises(ZeroDivisionError):
        after(belief)
    with pytest.raises(ZeroDivisionError):
        belief.skip(None, np.array([1.0]))
    assert same_bits(before, belief.save())


def test_a_table_has_no_hazards_and_an_alarm_refuses_interacting_models() -> None:
    belief = InteractingBelief(CARTS, transition=np.full((3, 3), 1 / 3))
    with pytest.raises(MissingCapability, match="cannot learn a hazard"):
        belief.hazards()
    with pytest.raises(MissingCapability, match="InteractingBelief"):
        Guarded(ControlRule(after(belief)), Alarm(KrichevskyTrofimov(2), 0.01))

"""Test divergence processes against their definition, for every kind of modes, and their bound."""

import math
from collections.abc import Mapping
from itertools import product
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.beliefs.test_finite import LogClass

from bayescontrol import (
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    Floor,
    Record,
    Stream,
    interact,
)
from bayescontrol._arrays import FloatArray
from bayescontrol.convergence.divergence import divergences, sub_divergences
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    MissingCapability,
    UnknownMode,
)
from bayescontrol.finite.examples import prize_or_frog
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.metrics import delusion
from bayescontrol.record import drawn_mode
from bayescontrol.schedules import Every
from bayescontrol.situations import stay


def random_class(seed: int, modes: int = 4) -> TabularModes:
    rng = Stream(seed)
    tables = random_modes(modes, situations=3, actions=3, observations=2, seed=rng)
    g = np.asarray(rng.gamma(1.0, size=modes))
    return TabularModes(tables.policy, tables.hypothesis, tables.successor, prior=g / g.sum())


def with_zeros(seed: int) -> TabularModes:
    """A class in which a third of the observations is impossible under each mode."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(3), (4, 2, 2)) * (rng.random((4, 2, 2, 3)) > 0.33)
    probabilities[..., 0] += 1e-3
    probabilities /= probabilities.sum(-1, keepdims=True)
    successor = rng.integers(2, size=(2, 2, 3))
    policy, prior = rng.dirichlet(np.ones(2), (4, 2)), rng.dirichlet(np.ones(4))
    return TabularModes(policy, probabilities, successor, prior=prior)


def any_history(modes: TabularModes, steps: int, seed: int) -> Record:
    """A history of uniform actions, with each observation from a random mode."""
    rng, x = np.random.default_rng(seed), modes.start
    actions, observations = [], []
    alive = np.ones(len(modes), bool)
    for _ in range(steps):
        a = int(rng.integers(modes.policy.shape[2]))
        m = int(rng.choice(np.flatnonzero(alive)))
        o = int(rng.choice(modes.hypothesis.shape[3], p=modes.hypothesis[m, x, a]))
        alive &= modes.hypothesis[:, x, a, o] > 0.0
        actions.append(a)
        observations.append(o)
        x = int(modes.successor[x, a, o])
    return Record(actions, observations)


def drawn_record(modes: TabularModes, true: int, steps: int, seed: int) -> Record:
    world = modes.environment(true)
    return interact(modes.agent(), world, steps, seed=seed, probes={"drawn": drawn_mode})


# -- the definition ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_divergences_equal_their_definition_to_twelve_digits(seed: int) -> None:
    modes = random_class(seed)
    record = interact(modes.agent(), modes.environment(seed % 4), 400, seed=seed)
    read = divergences(record, modes.agent())
    pairs = read.pairs()
    with mpmath.workdps(40):
        L = [mpmath.mpf(0)] * 4
        x = modes.start
        assert not read.log_likelihoods[0].any()
        assert not pairs[0].any()
        for t, (a, o) in enumerate(record, start=1):
            probabilities = [mpmath.mpf(float(p)) for p in modes.hypothesis[:, x, a, o]]
            L = [total + mpmath.log(p) for total, p in zip(L, probabilities, strict=True)]
            x = int(modes.successor[x, a, o])
            assert read.log_likelihoods[t] == pytest.approx([float(v) for v in L], rel=1e-13)
            for i, j in product(range(4), repeat=2):
                assert pairs[t, i, j] == pytest.approx(float(L[i] - L[j]), rel=1e-12, abs=1e-14)


def test_divergences_of_close_modes_keep_twelve_digits_unlike_sums_of_logs() -> None:
    modes = TabularModes([[[1.0]]] * 2, [[[[0.3, 0.7]]], [[[0.3 + 1e-9, 0.7 - 1e-9]]]])
    observations = np.random.default_rng(0).integers(2, size=5_000)
    record = Record(np.zeros(5_000, np.int64), observations)
    read = divergences(record, modes.agent())
    with mpmath.workdps(40):
        step = [mpmath.log(mpmath.mpf(p) / mpmath.mpf(q)) for p, q in modes.hypothesis[:, 0, 0].T]
        exact = float(sum(int((observations == o).sum()) * step[o] for o in (0, 1)))
    assert read.of(0, 1)[-1] == pytest.approx(exact, rel=1e-12)
    L = read.log_likelihoods
    assert abs((L[-1, 0] - L[-1, 1]) / exact - 1.0) > 1e-12  # a difference of sums loses digits


def test_pairs_are_antisymmetric() -> None:
    modes = random_class(3)
    read = divergences(interact(modes.agent(), modes.environment(0), 50, seed=0), modes.agent())
    pairs = read.pairs()
    assert pairs.shape == (51, 4, 4)
    for i, j in product(range(4), repeat=2):
        assert pairs[:, i, j].tobytes() == read.of(i, j).tobytes()
    np.testing.assert_allclose(pairs, -np.swapaxes(pairs, 1, 2), rtol=1e-12, atol=1e-14)


def test_the_posterior_equals_that_of_the_agent_bit_for_bit() -> None:
    modes = random_class(4)
    agent = modes.agent()
    record = interact(agent, modes.environment(1), 60, seed=4)
    read = divergences(record, modes.agent())
    assert read.posterior[-1].tobytes() == agent.belief.posterior().tobytes()
    np.testing.assert_array_equal(read.posterior[0], modes.agent().belief.posterior())


# -- the bound -----------------------------------------------------------------------------------


def violation(posterior: FloatArray, bound: FloatArray) -> float:
    """The largest relative excess of a posterior over its bound."""
    known = np.isfinite(bound)  # an infinite bound holds trivially
    return float((posterior[known] - bound[known] * (1.0 + 1e-12)).max(initial=-1.0))


def test_none_of_thousands_of_histories_violates_the_bound() -> None:
    """The inequality is deterministic: there are no false alarms."""
    histories = [(random_class(s), 40) for s in range(30)] + [
        (with_zeros(s), 12) for s in range(30)
    ]
    ruled_out = 0
    for number, (modes, steps) in enumerate(histories):
        for h in range(50):
            read = divergences(any_history(modes, steps, 100 * number + h), modes.agent())
            for true in range(4):
                bound = read.posterior_bound(true)
                assert violation(read.posterior, bound) <= 0.0
                undefined = np.isnan(bound)
                ruled_out += int(undefined.sum())
                assert not read.posterior[undefined].any()  # both ruled out: no weight to bound
    assert ruled_out > 1000


def test_treating_actions_as_evidence_violates_the_bound() -> None:
    """The planted bug: the weights of the naive mixture."""
    worst = -1.0
    for seed in range(10):
        modes = random_class(seed)
        record = interact(modes.agent(), modes.environment(0), 40, seed=seed)
        naive = delusion(record, modes.agent()).naive
        bound = divergences(record, modes.agent()).posterior_bound(0)[1:]
        worst = max(worst, violation(naive, bound))
    assert worst > 0.1


def test_the_bound_is_infinite_where_the_true_mode_is_excluded() -> None:
    modes = TabularModes(
        [[[1.0]]] * 3, [[[[1.0, 0.0]]], [[[0.5, 0.5]]], [[[0.2, 0.8]]]], prior=[0.5, 0.5, 0.0]
    )
    read = divergences(Record([0, 0], [0, 1]), modes.agent())
    assert read.posterior_bound(0)[2, 1] == math.inf  # mode 0 is ruled out by then
    assert (read.posterior_bound(2)[:, :2] == math.inf).all()  # P(m*) = 0
    assert not read.posterior_bound(1)[:, 2].any()  # P(m) = 0 is never exceeded


# -- impossible observations -----------------------------------------------------------------------


def test_the_process_is_infinite_if_one_mode_is_excluded_and_nan_if_both_are() -> None:
    probabilities = [[[[1.0, 0.0, 0.0]]], [[[0.5, 0.5, 0.0]]], [[[0.25, 0.25, 0.5]]]]
    read = divergences(
        Record([0, 0, 0], [0, 1, 2]), TabularModes([[[1.0]]] * 3, probabilities).agent()
    )
    assert read.of(2, 0)[1:].tolist() == [-math.log(4.0), math.inf, math.inf]
    assert read.of(0, 2)[2:].tolist() == [-math.inf, -math.inf]
    assert np.isnan(read.of(0, 1)[3])
    assert read.of(0, 1)[2] == -math.inf
    assert read.log_likelihoods[-1].tolist()[:2] == [-math.inf, -math.inf]
    assert "2 ruled out" in repr(read)


def test_skip_and_floor_options_apply_to_divergences() -> None:
    modes = TabularModes([[[1.0]]] * 2, [[[[1.0, 0.0]]], [[[0.5, 0.5]]]])

    def coin(p: float) -> DiscreteMode[Any, int, int]:
        return DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {1: p, 0: 1.0 - p})

    kinds: list[Any] = [modes, [coin(1.0), coin(0.5)]]
    for saved in kinds:
        floored: ControlRule[Any, Any, Any, Any] = ControlRule(
            FiniteBelief(saved, on_impossible=Floor(0.1)), 0, stay
        )
        o = 1 if saved is modes else 0
        read = divergences(Record([0], [o]), floored)
        assert read.of(0, 1)[1] == pytest.approx(math.log(0.1 / 0.5))
        np.testing.assert_allclose(read.posterior[1], [1 / 6, 5 / 6])
    skipping: ControlRule[Any, Any, Any, Any] = ControlRule(
        FiniteBelief(modes, [1, 0], on_impossible="skip"), 0, stay
    )
    read = divergences(Record([0, 0], [1, 0]), skipping)
    assert read.of(0, 1).tolist() == [0.0, 0.0, math.log(2.0)]


# -- every kind of modes ------------------------------------------------------------------------


class LinearArray:
    """The same modes as an array that returns likelihoods."""

    def __init__(self, modes: TabularModes) -> None:
        self.modes = modes

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, m: int) -> Any:
        return self.modes[m]

    def likelihoods(self, x: int, a: int, o: int) -> FloatArray:
        return self.modes.likelihoods(x, a, o)

    def action_probabilities(self, x: int) -> Mapping[int, FloatArray]:
        return self.modes.action_probabilities(x)

    def observation_probabilities(self, x: int, a: int) -> Mapping[int, FloatArray]:
        return self.modes.observation_probabilities(x, a)


class Private:
    """One of the modes, with the situation as private state."""

    def __init__(self, modes: TabularModes, m: int) -> None:
        self.modes, self.m = modes, modes[m]

    def start(self) -> int:
        return self.modes.start

    def advance(self, s: int, a: int, o: int) -> int:
        return self.modes.advance(s, a, o)

    def act(self, s: int, rng: Stream) -> int:
        return self.m.act(s, rng)

    def likelihood(self, s: int, a: int, o: int) -> float:
        return self.m.likelihood(s, a, o)

    def action_probabilities(self, s: int) -> Mapping[int, float]:
        return self.m.action_probabilities(s)

    def observation_probabilities(self, s: int, a: int) -> Mapping[int, float]:
        return self.m.observation_probabilities(s, a)


def same_class(modes: TabularModes) -> dict[str, ControlRule[Any, Any, Any, Any]]:
    private = [Private(modes, m) for m in range(len(modes))]
    return {
        "list": ControlRule(FiniteBelief(list(modes), modes.prior), 0, modes.advance),
        "array": ControlRule(FiniteBelief(LinearArray(modes), modes.prior), 0, modes.advance),
        "private": ControlRule(FiniteBelief(private, modes.prior)),
    }


@pytest.mark.parametrize("kind", ["list", "array", "private"])
@pytest.mark.parametrize("make", [random_class, with_zeros])
def test_kernels_equal_the_readable_code_bit_for_bit(make: Any, kind: str) -> None:
    for seed in range(5):
        modes = make(seed)
        record = drawn_record(modes, seed % 4, 40, seed)
        agent = same_class(modes)[kind]
        fast, slow = divergences(record, modes.agent()), divergences(record, agent)
        for name in ("evidence", "log_likelihoods", "posterior"):
            assert getattr(fast, name).tobytes() == getattr(slow, name).tobytes()
        quick = sub_divergences(record, modes.agent(), seed % 4, 1)
        readable = sub_divergences(record, agent, seed % 4, 1)
        for name in ("d", "g", "G"):
            np.testing.assert_array_equal(getattr(quick, name), getattr(readable, name))


def test_modes_with_log_likelihoods_are_supported() -> None:
    modes = random_class(7)
    record = interact(modes.agent(), modes.environment(2), 100, seed=7)
    agent: ControlRule[Any, Any, Any, Any] = ControlRule(
        FiniteBelief(LogClass(modes), modes.prior), 0, modes.advance
    )
    read, exact = divergences(record, agent), divergences(record, modes.agent())
    assert read.is_log
    np.testing.assert_allclose(read.pairs(), exact.pairs(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(read.posterior, exact.posterior, rtol=1e-12)
    with pytest.raises(MissingCapability, match="action_probabilities"):
        sub_divergences(drawn_record(modes, 0, 5, 0), agent, 0, 1)


def test_the_agent_must_be_fresh_and_is_not_changed() -> None:
    modes = random_class(0)
    record = drawn_record(modes, 0, 20, 0)
    for agent in (modes.agent(), *same_class(modes).values()):
        before = repr(agent.save())
        sub_divergences(record, agent, 0, 1)
        assert repr(agent.save()) == before
    agent.observe(0, 0)
    with pytest.raises(ValueError, match="has 1 observation already: pass a new one"):
        divergences(record, agent)


# -- sub-divergences -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_parts_add_up_to_the_process_and_means_are_not_negative(seed: int) -> None:
    modes = random_class(seed)
    record = drawn_record(modes, 0, 300, seed)
    for other in range(4):
        split = sub_divergences(record, modes.agent(), 0, other)
        d = divergences(record, modes.agent()).of(0, other)
        assert split.d.tobytes() == d.tobytes()
        np.testing.assert_allclose(split.g.sum(1), d, rtol=1e-13, atol=1e-12)
        assert (np.diff(split.G, axis=0) >= 0.0).all()


def test_a_held_mode_stays_the_drawn_mode() -> None:
    modes = random_class(1)
    agent = modes.agent(schedule=Every(5))
    record = interact(agent, modes.environment(0), 50, seed=3, probes={"drawn": drawn_mode})
    split = sub_divergences(record, modes.agent(), 0, 1)
    assert (split.drawn.reshape(10, 5) == split.drawn[::5, None]).all()
    np.testing.assert_allclose(split.g.sum(1), split.d, atol=1e-12)


def test_a_mode_that_may_be_excluded_at_any_step_has_an_infinite_mean() -> None:
    probabilities = [[[[0.5, 0.5], [0.5, 0.5]]], [[[1.0, 0.0], [0.5, 0.5]]]]
    modes = TabularModes([[[1.0, 0.0]], [[0.0, 1.0]]], probabilities)
    record = Record([1, 0, 0], [1, 0, 1], {"drawn": [1, 0, 0]})
    split = sub_divergences(record, modes.agent(), 0, 1)
    assert split.G[:, 1].tolist() == [0.0] * 4  # the other mode's action gives no evidence
    assert split.G[:, 0].tolist() == [0.0, 0.0, math.inf, math.inf]
    assert split.g[:, 0].tolist() == [0.0, 0.0, -math.log(2.0), math.inf]
    assert split.excess[2, 0] == -math.inf
    assert np.isnan(split.excess[3, 0])


def test_modes_can_be_given_by_name() -> None:
    modes = prize_or_frog(0.75)
    record = drawn_record(modes, 0, 20, 0)
    read = divergences(record, modes.agent())
    left, right = "prize left", "prize right"
    assert read.names == (left, right)
    assert read.of(left, right).tobytes() == read.of(0, 1).tobytes()
    assert read.posterior_bound(right).tobytes() == read.posterior_bound(1).tobytes()
    split = sub_divergences(record, modes.agent(), left, right)
    assert (split.true, split.other) == (0, 1)
    with pytest.raises(UnknownMode, match="0 … 1 or a name of prize left, prize right"):
        sub_divergences(record, modes.agent(), "left", 1)
    many = random_class(0, modes=12)
    with pytest.raises(UnknownMode, match=r"name of m0, m1, .*, m7, …$"):
        divergences(any_history(many, 3, 0), many.agent()).of("m99", 0)


def test_an_action_that_no_mode_takes_is_evidence_like_any_other() -> None:
    """Hypotheses predict the outcome of every action, including actions that no mode takes."""
    probabilities = [[[[0.5, 0.5], [0.2, 0.8]]], [[[0.5, 0.5], [0.6, 0.4]]]]
    modes = TabularModes([[[1.0, 0.0]]] * 2, probabilities)  # no mode takes action 1
    for agent in (modes.agent(), same_class(modes)["list"]):
        read = divergences(Record([1, 0], [1, 1]), agent)
        assert read.of(0, 1) == pytest.approx([0.0, math.log(2.0), math.log(2.0)])
        split = sub_divergences(Record([1], [1], {"drawn": [0]}), agent, 0, 1)
        assert split.g[-1].tolist() == pytest.approx([math.log(2.0), 0.0])
        assert split.G[-1].tolist() == [0.0, 0.0]  # the modes' actions give no evidence


# -- exact values over all histories of a small class -------------------------------------------


def test_means_over_all_histories_of_four_steps_are_exact() -> None:
    """E[d_t] and E[g] = E[G], by enumeration of drawn modes, actions and observations."""
    modes = random_modes(2, situations=2, seed=5)
    true, other, steps = 0, 1, 4
    d, g, G = np.zeros(5), np.zeros((5, 2)), np.zeros((5, 2))
    mass, wrong = 0.0, np.zeros((5, 2))
    for path in product(range(2), repeat=3 * steps):
        drawn, actions, observations = path[:4], path[4:8], path[8:]
        split = sub_divergences(
            Record(actions, observations, {"drawn": drawn}), modes.agent(), true, other
        )
        posterior = divergences(Record(actions, observations), modes.agent()).posterior
        probability, x = 1.0, modes.start
        for t, (m, a, o) in enumerate(zip(drawn, actions, observations, strict=True)):
            probability *= posterior[t, m] * modes.policy[m, x, a] * modes.hypothesis[true, x, a, o]
            x = int(modes.successor[x, a, o])
        mass += probability
        d += probability * split.d
        g += probability * split.g
        G += probability * split.G
        mine = sub_divergences(
            Record(actions, observations, {"drawn": [true] * 4}), modes.agent(), true, other
        )
        steps_G = np.diff(mine.G[:, true])  # the planted bug: m* instead of the drawn mode
        for m in range(2):
            wrong[1:, m] += probability * np.cumsum(np.where(np.array(drawn) == m, steps_G, 0.0))
    assert mass == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(g, G, atol=1e-13)
    np.testing.assert_allclose(d, expected_divergence(modes, true, other, steps), atol=1e-13)
    np.testing.assert_allclose(g.sum(1), d, atol=1e-13)
    assert abs(g - wrong).max() > 1e-3


def expected_divergence(modes: TabularModes, true: int, other: int, steps: int) -> FloatArray:
    """E[d_t] by a forward pass over the tree of histories, in plain Python."""
    probabilities = modes.hypothesis
    kl = (probabilities[true] * np.log(probabilities[true] / probabilities[other])).sum(-1)
    expected = np.zeros(steps + 1)
    nodes = [(1.0, modes.start, np.array([0.5, 0.5]))]
    for t in range(steps):
        following = []
        expected[t + 1] = expected[t]
        for p, x, v in nodes:
            acts = v @ modes.policy[:, x]
            expected[t + 1] += p * float(acts @ kl[x])
            for a, o in product(range(2), repeat=2):
                u = v * probabilities[:, x, a, o]
                share = p * float(acts[a] * probabilities[true, x, a, o])
                following.append((share, int(modes.successor[x, a, o]), u / u.sum()))
        nodes = following
    return expected


FROG = prize_or_frog(0.75)
FROG_RECORD = interact(FROG.agent(), FROG.environment(0), 5, seed=0)
COIN: Any = DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {0: 0.5, 1: 0.5})
SURE = TabularModes([[[1.0]]] * 2, [[[[1.0, 0.0]]]] * 2)


def split(record: Any, agent: Any = None) -> Any:
    return sub_divergences(record, agent or FROG.agent(), 0, 1)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        *((lambda r=r: divergences(r, FROG.agent()), MissingCapability, "not a Record: pass the")
          for r in (None, [(0, 1)], FROG.agent())),
        *((lambda m=m: divergences(FROG_RECORD, FROG.agent()).of(0, m), UnknownMode, None)
          for m in (2, -1, "left")),
        (lambda: divergences(FROG_RECORD, object()), MissingCapability, "FiniteBelief"),  # type: ignore[arg-type]
        (lambda: divergences(FROG_RECORD, SimpleNamespace(belief=FROG.agent().belief)),  # type: ignore[arg-type]
         MissingCapability, "if guarded, pass its"),
        (lambda: split(FROG_RECORD), MissingCapability, r'probes=\["drawn_mode"\]'),
        (lambda: split(Record([0] * 5, [0] * 5, {"drawn": [0, 1, 2, 0, 0]})), UnknownMode, "0 … 1"),
        (lambda: divergences(Record([0, 0], [0, 1]), SURE.agent()), ImpossibleObservation, None),
        (lambda: divergences(Record([0, 0], [0, [1]]), ControlRule(FiniteBelief([COIN]))),
         BadEvidence, r"observation \[1\] is not hashable"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_with_a_remedy(wrong: Any, error: Any, words: str | None) -> None:
    with pytest.raises(error, match=words) as caught:
        wrong()
    if error in (ImpossibleObservation, BadEvidence):
        assert "at step 2 of 2" in caught.value.__notes__[0]

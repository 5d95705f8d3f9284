"""Test ensembles against single runs, their means, and Ville's inequality."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, FiniteBelief, NaiveMixture, interact, kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.convergence.boundedness import Ensemble, bands, simulate_divergences, ville
from bayescontrol.convergence.divergence import divergences, sub_divergences
from bayescontrol.errors import BadEvidence, InvalidPrior, MissingCapability, UnknownMode
from bayescontrol.finite.examples import prize_or_frog
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.record import drawn_mode, posterior
from bayescontrol.schedules import Every

DELTAS = (0.5, 0.2, 0.1, 0.05, 0.01)


def three_modes(seed: int = 1) -> TabularModes:
    return random_modes(3, situations=3, actions=2, observations=2, seed=seed)


# -- bit for bit the runs of the rule -----------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_an_ensemble_equals_its_single_runs_bit_for_bit(seed: int) -> None:
    modes, true = three_modes(seed), seed % 3
    runs = simulate_divergences(modes, true, 30, 4, seed, at=range(31), first=2)
    for i in range(4):
        world = modes.environment(true)
        plain = interact(modes.agent(), modes.environment(true), 30, seed=seed, run=2 + i)
        record = interact(
            modes.agent(), world, 30, seed=seed, run=2 + i, probes={"drawn": drawn_mode}
        )
        assert plain.observations.tobytes() == record.observations.tobytes()
        read = divergences(record, modes.agent())
        assert runs.posterior[i].tobytes() == read.posterior.tobytes()
        ratio = read.posterior[:, true] / read.posterior[0, true]
        assert runs.low[i].tobytes() == np.minimum.accumulate(ratio).tobytes()
        for m in range(3):
            split = sub_divergences(record, modes.agent(), true, m)
            assert runs.d[i, :, m].tobytes() == split.d.tobytes()
            assert runs.g[i, :, :, m].tobytes() == split.g.tobytes()
            assert runs.G[i, :, :, m].tobytes() == split.G.tobytes()
            far = np.maximum.accumulate(abs(split.excess))
            assert runs.sup[i, :, :, m].tobytes() == far.tobytes()


def test_selecting_times_modes_and_parts_does_not_change_a_run() -> None:
    modes = three_modes()
    whole = simulate_divergences(modes, 0, 20, 6, 5, at=range(21))
    part = simulate_divergences(modes, 0, 20, 2, 5, at=[7, 3], against=[2], first=4)
    assert part.times.tolist() == [3, 7, 20]
    for name in ("d", "g", "G", "sup"):
        chosen = getattr(whole, name)[4:, [3, 7, 20]][..., [2]]
        np.testing.assert_array_equal(getattr(part, name), chosen)
    np.testing.assert_array_equal(part.low, whole.low[4:, [3, 7, 20]])
    np.testing.assert_array_equal(part.excess(2), whole.excess(2)[4:, [3, 7, 20]])
    with pytest.raises(UnknownMode, match=r"against=\[1\]"):
        part.excess(1)


def test_an_agent_is_tabulated() -> None:
    modes = prize_or_frog(0.75)
    tables = simulate_divergences(modes, 0, 20, 5)
    listed = ControlRule(FiniteBelief(list(modes)), modes.start, modes.advance)
    for same in (modes.agent(), listed):
        assert simulate_divergences(same, 0, 20, 5).g.tobytes() == tables.g.tobytes()
    with pytest.raises(MissingCapability, match=r"holds each mode for 3 steps.*tabulate"):
        simulate_divergences(modes.agent(schedule=Every(3)), 0, 20, 5)
    with pytest.raises(MissingCapability, match=r"list of modes|expected a list"):
        simulate_divergences(None, 0, 20, 5)


# -- g - G has mean zero ------------------------------------------------------------------------


def scores(modes: TabularModes) -> FloatArray:
    """The mean of g - G in standard errors, by true mode, time, drawn mode and other mode."""
    found = []
    for true in range(3):
        runs = simulate_divergences(modes, true, 40, 4_000, 11, at=[5, 40])
        for other in {0, 1, 2} - {true}:
            read = bands(runs, other)
            found.append(read.mean / read.error)
    return np.array(found)


def test_sub_divergences_are_centred_on_their_means_by_drawn_mode() -> None:
    """36 means, each beyond four standard errors with probability 1/16,000: false alarm 1/400."""
    assert abs(scores(three_modes())).max() < 4.0


def test_means_under_the_policy_of_the_true_mode_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: G is computed with m*'s policy instead of the drawn mode's."""
    right = kernels.divergence.mean_tables

    def wrong(p: Any, h: Any, true: int, against: IntArray, out: FloatArray) -> None:
        right(p, h, true, against, out)
        out[:] = out[true]

    monkeypatch.setattr(kernels.divergence, "mean_tables", wrong)
    assert abs(scores(three_modes())).max() > 8.0


# -- bands --------------------------------------------------------------------------------------


def by_hand(excess: FloatArray, sup: FloatArray) -> Ensemble:
    """An ensemble of one time, one drawn mode and one other mode."""
    shape = (excess.size, 1, 1, 1)
    g, far = excess.reshape(shape), sup.reshape(shape)
    none = np.zeros((excess.size, 1))
    zero = none[..., None]
    return Ensemble(
        0, np.array([1]), np.array([9]), zero, g, np.zeros(shape), far, zero, none + 0.05
    )


def test_a_band_is_the_smallest_that_contains_its_share_of_runs() -> None:
    excess, sup = np.arange(20.0) - 9.5, np.arange(20.0)
    read = bands(by_hand(excess, sup), 1, levels=(0.05, 0.5, 0.95), delta=0.1)
    assert read.quantiles[:, 0, 0].tolist() == [-9.5, -0.5, 8.5]
    assert read.C[0, 0] == 17.0
    assert (sup <= 17.0).mean() == 0.9
    assert (sup < 17.0).mean() < 0.9
    assert read.C_joint.tolist() == [17.0]
    assert read.error[0, 0] == pytest.approx(excess.std(ddof=1) / math.sqrt(20))


def test_infinite_means_make_the_band_infinite() -> None:
    probabilities = [[[[0.5, 0.5]]], [[[1.0, 0.0]]]]
    read = bands(simulate_divergences(TabularModes([[[1.0]]] * 2, probabilities), 0, 3, 10), 1)
    assert read.C_joint.tolist() == [math.inf]
    assert read.C[0, 0] == math.inf


def test_for_independent_ratios_the_band_grows_like_the_root_of_time() -> None:
    """One action, two coins: |g - G| is a random walk, and C at 16 t is 4 C at t.

    So no constant C holds for ever. C is a 95 % quantile of 4,000 runs with a standard error of
    1.2 %. Discrete steps make it 4 % too small at t = 50. The tolerance of 12 % is four standard
    errors.
    """
    coins = TabularModes([[[1.0]]] * 2, [[[[0.5, 0.5]]], [[[0.4, 0.6]]]], prior=[1.0, 0.0])
    runs = simulate_divergences(coins, 0, 800, 4_000, at=[50, 200])
    C = bands(runs, 1).C_joint
    assert C[1] / C[0] == pytest.approx(2.0, rel=0.12)
    assert C[2] / C[0] == pytest.approx(4.0, rel=0.12)


# -- Ville --------------------------------------------------------------------------------------


def levers() -> TabularModes:
    """Mode m pulls lever m nine times in ten, and thinks that it pays a little more.

    Policies are sharp and evidence is weak, so an agent that learns from its own actions fails.
    """
    local = np.eye(3, dtype=bool)
    policy = np.where(local, 0.9, 0.05)[:, None]
    pays = np.where(local, 0.6, 0.4)[:, None]
    return TabularModes(policy, np.stack([1.0 - pays, pays], axis=-1), prior=[0.5, 0.3, 0.2])


@pytest.mark.parametrize("true", range(3))
def test_the_true_mode_rarely_loses_its_weight_at_any_time(true: int) -> None:
    """Each share is at most δ + 3 standard errors; even with equality, false alarms are 1 in 700
    for each of 15.
    """
    read = ville(simulate_divergences(levers(), true, 100, 10_000, 7), DELTAS)
    assert read.holds.all()


@pytest.mark.slow
@pytest.mark.parametrize("make", [levers, three_modes])
def test_the_true_mode_rarely_loses_its_weight_in_a_hundred_thousand_runs(make: Any) -> None:
    """False alarms: 1 in 700 for each of 10, even with equality."""
    read = ville(simulate_divergences(make(), 0, 100, 100_000, 7), DELTAS)
    assert read.runs == 100_000
    assert read.holds.all()
    assert read.share[0] > 0.0  # the event occurs


def test_the_probability_of_losing_weight_is_that_of_gamblers_ruin() -> None:
    """Each frog or prize is a step of a random walk with odds 3 to 1; P(reach -k) = 3^-k.

    At -2 the weight is 1/5 of the prior weight, at -3 it is 1/14. Four standard errors: false
    alarm 1/8,000.
    """
    runs = simulate_divergences(prize_or_frog(0.75), 0, 200, 10_000, 3)
    for delta, k in ((0.3, 2), (0.1, 3)):
        chance = 3.0**-k
        share = ville(runs, [delta]).share[0]
        assert abs(share - chance) < 4.0 * math.sqrt(chance * (1.0 - chance) / 10_000)


def test_an_agent_that_treats_actions_as_evidence_violates_the_inequality() -> None:
    """The planted bug: the naive mixture, in the same world as the rule above."""
    modes, low = levers(), []
    for run in range(400):
        agent = modes.agent(kind=NaiveMixture)
        probes = {"v": posterior}
        record = interact(agent, modes.environment(0), 20, seed=1, run=run, probes=probes)
        low.append(record["v"][:, 0].min() / modes.prior[0])
    read = ville(low, DELTAS)
    assert (read.share > read.deltas + 6.0 * read.error)[1:].all()


FROG = prize_or_frog(0.75)
FROG_RECORD: Any = interact(FROG.agent(), FROG.environment(0), 5, seed=0)


def simulated(true: Any = 0, steps: int = 5, runs: int = 5, prior: Any = None, **more: Any) -> Any:
    free = three_modes()
    modes = TabularModes(free.policy, free.hypothesis, free.successor, prior=prior)
    return simulate_divergences(modes, true, steps, runs, **more)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: simulated(3), UnknownMode, None),
        (lambda: simulated(against=[4]), UnknownMode, None),
        (lambda: simulated(at=[6]), ValueError, "between 0 and steps=5"),
        (lambda: simulated(runs=0), ValueError, "expected an integer of at"),
        (lambda: simulated(0, 10_000, 100_000, at=range(10_000)), ValueError, "fewer times `at`"),
        (lambda: simulated(prior=[0, 0.5, 0.5]), InvalidPrior, "mode m0 has prior 0"),
        (lambda: bands(simulated(), 1, delta=1.0), ValueError, "between 0 and 1"),
        (lambda: ville(simulated(), [0.0]), ValueError, "between 0 and 1"),
        *(
            (lambda runs=runs: ville(runs, [0.1]), ValueError, "one minimum per run")
            for runs in (FROG_RECORD, None, np.empty((3, 2)))
        ),
        *(
            (lambda runs=runs: ville(runs, [0.1]), MissingCapability, "simulate_divergences")
            for runs in ("runs", [[1.0], [1.0, 2.0]], object())
        ),
        *(
            (lambda low=low: ville(low, [0.1]), BadEvidence, r"runs\[\d\] = (nan|-1.0|inf), but")
            for low in ([math.nan, 1.0], [1.0, -1.0], [math.inf])
        ),
    ],
)
def test_invalid_arguments_are_refused_with_a_remedy(
    wrong: Any, error: Any, words: str | None
) -> None:
    with pytest.raises(error, match=words):
        wrong()

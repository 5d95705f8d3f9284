"""With tiny prior parameters drawn means are often equal doubles; actions stay calibrated.

Stochastic tests fix their seed; over seeds each comparison raises a false alarm with rate 1e-6.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special as sc  # type: ignore[import-untyped]
from scipy import stats

from bayescontrol import BernoulliBandit, ExponentialBandit, PoissonBandit, interact, kernels
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import Bandit
from bayescontrol.errors import IncompatibleState
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream
from bayescontrol.testing import check_fused, check_resume

#: Bandits with exact action probabilities whose draws are often equal: 1, 0, both, or infinite.
TINY: dict[str, Bandit] = {
    "Beta at 1": BernoulliBandit(2, prior=[(0.1, 0.01), (0.2, 0.03)]),
    "Beta at 1, one large": BernoulliBandit(2, prior=[(30, 0.01), (2, 0.03)]),
    "Beta at 0": BernoulliBandit(3, prior=[(1e-4, 0.1), (5e-4, 7), (1e-3, 0.2)]),
    "Beta at both ends": BernoulliBandit(3, prior=[(1e-3, 3e-3), (1e-9, 1e-9), (0.5, 0.01)]),
    "Beta, one ordinary": BernoulliBandit(3, prior=[(0.1, 0.01), (1, 1), (20, 0.05)]),
    "Poisson": PoissonBandit(2, prior=[(3e-4, 1), (1e-3, 1)]),
    "Poisson, rates apart": PoissonBandit(3, prior=[(1e-3, 1e-200), (1e-3, 1), (2e-3, 1e200)]),
    "exponential": ExponentialBandit(2, prior=[(3e-4, 1), (1e-3, 1)]),
    "exponential, one ordinary": ExponentialBandit(3, prior=[(3e-4, 1), (1e-3, 5), (2, 1)]),
}
DRAWS = 10_000


def by_batch(bandit: Bandit) -> list[Any]:
    """Draw actions with `batch`, which uses `draw_action`."""
    return bandit.agent().batch(DRAWS, Stream(1))


def by_mode(bandit: Bandit) -> list[Any]:
    """Draw modes with `sample` and actions with their `act`."""
    belief, rng = bandit.belief(), Stream(2)
    return [belief.sample(rng).act(None, rng) for _ in range(DRAWS)]


def by_schedule(bandit: Bandit) -> list[Any]:
    """Return the first action of each mode that is held for two steps."""
    agent, rng = bandit.agent(schedule=Every(2)), Stream(3)
    return [agent.act(rng) for _ in range(2 * DRAWS)][::2]


def by_compiled_loop(bandit: Bandit) -> list[Any]:
    """Return the first action of each of many compiled runs."""
    agent, world = bandit.agent(), bandit.environment([0.5] * len(bandit.labels))
    return [interact(agent.copy(), world, 1, seed=4, run=r).actions.item() for r in range(4000)]


PATHS = [by_batch, by_mode, by_schedule, by_compiled_loop]


@pytest.fixture
def ties_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: means are compared as doubles, and ties are split evenly.

    In the compiled loop it is the planted bug `ties-split-under-tiny-parameters`.
    """
    monkeypatch.setattr(kernels.arms, "needs_logs", lambda *_: False)


def p_value(actions: list[Any], bandit: Bandit) -> float:
    """Return the p-value of a chi-square test of the actions against the stated probabilities.

    Arms with an expected count below five are left out.
    """
    stated = bandit.agent().action_probabilities()
    counts = np.array([actions.count(a) for a in bandit.labels], float)
    expected = len(actions) * np.array([stated[a] for a in bandit.labels])
    often = expected >= 5
    assert counts[~often].sum() < 30
    counts, expected = counts[often], expected[often]
    return float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", TINY)
def test_actions_have_the_stated_probabilities(name: str, path: Callable[..., list[Any]]) -> None:
    assert p_value(path(TINY[name]), TINY[name]) > 1e-6


@pytest.mark.parametrize("path", [by_batch, by_mode, by_schedule])
@pytest.mark.parametrize("name", TINY)
@pytest.mark.usefixtures("ties_are_split")
def test_splitting_ties_evenly_is_detected(name: str, path: Callable[..., list[Any]]) -> None:
    bandit = Bandit(TINY[name].family, list(TINY[name].labels), TINY[name].prior)
    assert p_value(path(bandit), bandit) < 1e-6


def test_resolving_only_exact_ties_is_detected() -> None:
    """A gamma that underflows before it is divided by a small rate loses to smaller means."""
    bandit = TINY["Poisson, rates apart"]
    belief, rng, actions = bandit.belief(), Stream(2), []
    for _ in range(DRAWS):
        mode = belief.sample(rng)
        assert mode.logs is not None
        tied = np.flatnonzero(mode.means == mode.means.max())
        actions.append(mode.arms[tied[mode.logs[tied].argmax()]])
    assert p_value(actions, bandit) < 1e-6


def test_draw_action_equals_sample_and_act() -> None:
    """Both give the same action and use the same random numbers."""
    for bandit in TINY.values():
        belief, one, two = bandit.belief(), Stream(5), Stream(5)
        for _ in range(300):
            assert belief.draw_action(None, one) == belief.sample(two).act(None, two)
            assert one.state.tolist() == two.state.tolist()


@pytest.mark.parametrize("name", TINY)
def test_the_compiled_loop_equals_the_readable_one(name: str) -> None:
    bandit = TINY[name]
    check_fused(bandit.agent, lambda: bandit.environment([0.5] * len(bandit.labels)), steps=60)


def saturated(bandit: Bandit) -> tuple[Any, Any]:
    """Return an agent that holds a mode with equal means, and its action."""
    for k in range(1000):
        agent = bandit.agent(schedule=Every(100))
        a = agent.act(Stream(k))
        if agent.mode is not None and np.unique(agent.mode.means).size == 1:
            return agent, a
    raise AssertionError("no such mode")


@pytest.mark.parametrize("name", ["Beta at 1", "Beta at 0", "Poisson", "exponential"])
def test_a_held_mode_acts_the_same_after_save_and_load(name: str) -> None:
    agent, a = saturated(TINY[name])
    assert agent.mode.action_probabilities(None) == {a: 1.0}
    again = TINY[name].agent(schedule=Every(100))
    again.load(agent.save())
    for one in (agent, again, agent.copy(), again.copy()):
        assert [one.act(Stream(k)) for k in range(20)] == [a] * 20
    assert agent.save()["belief/drawn"].tobytes() == again.save()["belief/drawn"].tobytes()
    check_resume(
        lambda: TINY[name].agent(schedule=Every(3)),
        lambda: TINY[name].environment([0.5] * len(TINY[name].labels)),
        steps=40,
    )


def test_a_held_mode_pulls_its_second_best_arm_when_the_best_is_retired() -> None:
    agent, a = saturated(TINY["Beta at 0"])
    order = sorted(zip(agent.mode.logs.tolist(), agent.mode.arms, strict=True), reverse=True)
    assert a == order[0][1]
    agent.belief.retire(a)
    assert {agent.act(Stream(k)) for k in range(20)} == {order[1][1]}


def test_a_damaged_mode_is_refused() -> None:
    agent, _ = saturated(TINY["Beta at 1"])
    saved, fresh = agent.save(), TINY["Beta at 1"].agent()
    bad: list[Any] = [[[1.0, 1.0], [np.nan, 0.0]], [[1.0], [0.0]], [[1.0, 1.0]] * 3, [[np.nan] * 2]]
    for drawn in bad:
        with pytest.raises(IncompatibleState, match="damaged"):
            fresh.load(saved | {"belief/drawn": np.array(drawn)})


# -- stated probabilities -------------------------------------------------------------------------


def logit_density(alpha: float, beta: float, y: FloatArray) -> FloatArray:
    """The density of y = ln m/(1 - m), m ~ Beta(α, β)."""
    log = -alpha * np.logaddexp(0, -y) - beta * np.logaddexp(0, y)
    return np.asarray(np.exp(log - sc.betaln(alpha, beta)))


@pytest.mark.parametrize(
    "name", ["Beta at 1", "Beta at 1, one large", "Beta at 0", "Beta, one ordinary"]
)
def test_the_stated_probabilities_are_the_integrals_of_the_log_odds(name: str) -> None:
    """∫ f_i Π_{j≠i} F_j on a grid of step h, with F by cumulative sums. The error is O(h²), so two
    grids are extrapolated. Tails below e^-40 are left out.
    """
    bandit = TINY[name]
    low, high = 40 / np.minimum(bandit.prior.min(0), 1)
    found = []
    for h in (0.5, 0.25):
        y = np.arange(-low, high, h)
        f = np.array([logit_density(a, b, y) for a, b in bandit.prior])
        F = h * (np.cumsum(f, 1) - 0.5 * f)
        found.append([h * f[i] @ np.delete(F, i, 0).prod(0) for i in range(len(f))])
    exact = (4 * np.array(found[1]) - np.array(found[0])) / 3
    stated = [*bandit.agent().action_probabilities().values()]
    assert stated == pytest.approx(exact.tolist(), abs=1e-7)


@pytest.mark.parametrize("name", ["Poisson", "exponential"])
def test_the_stated_probabilities_of_two_gammas_are_those_of_a_beta(name: str) -> None:
    """P(G_1/b_1 > G_2/b_2) = P(G_1/(G_1 + G_2) > b_1/(b_1 + b_2)), of a Beta(a_1, a_2)."""
    bandit = TINY[name]
    (a1, b1), (a2, b2) = bandit.prior
    larger = sc.betaincc(a1, a2, b1 / (b1 + b2))
    first = larger if name == "Poisson" else 1.0 - larger
    assert bandit.agent().action_probabilities()[0] == pytest.approx(first, abs=1e-11)

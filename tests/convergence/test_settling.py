"""Test the number of steps until a wrong mode is dropped: exact times, bitwise runs, bounds."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    interact,
    kernels,
)
from bayescontrol.convergence.settling import settling_times
from bayescontrol.errors import MissingCapability, UnknownMode
from bayescontrol.finite.chain import chain, identification_probabilities, identification_time
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.record import Probe
from bayescontrol.schedules import Every, Geometric, every_step

NOT_YET = kernels.tabular.NOT_YET


def coins(*heads: float, prior: list[float] | None = None) -> TabularModes:
    """One action and one coin per mode: the rate of evidence does not depend on the acting mode."""
    probabilities = np.array([[[[1.0 - p, p]]] for p in heads])
    return TabularModes(np.ones((len(heads), 1, 1)), probabilities, prior=prior)


# -- exact times ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("hold", [1, 2, 7])
def test_the_chain_takes_as_long_as_theory_says(k: int, hold: int) -> None:
    """Mean within four exact standard errors: false alarm 6e-5 a case, 1e-3 in all."""
    runs = 2000
    exact = identification_time(k, every_step if hold == 1 else Every(hold))
    found = settling_times(chain(k), 0, runs=runs, hold=hold, seed=k)
    assert found.of(1).unfinished == 0.0
    assert abs(found.of(1).mean - exact.mean) <= 4.0 * exact.sd / math.sqrt(runs)


def test_holding_modes_turns_two_to_the_k_into_k() -> None:
    assert settling_times(chain(8), 0, runs=20, hold=8).of(1).quantiles == (8.0, 8.0, 8.0)
    assert settling_times(chain(8), 0, runs=200).of(1).mean > 150.0  # 255 ± 18


def test_a_wrong_hold_is_detected() -> None:
    """Planted bug: drawing every k + 1 steps. The mean is far more than four errors off."""
    runs = 2000
    exact = identification_time(5, Every(2))
    wrong = settling_times(chain(5), 0, runs=runs, hold=3, seed=5).of(1)
    assert abs(wrong.mean - exact.mean) > 4.0 * exact.sd / math.sqrt(runs)


def test_unfinished_runs_are_counted_and_make_the_mean_a_lower_bound() -> None:
    """Unfinished share and mean within four standard errors of their exact values.

    The mean counts an unfinished run as `horizon`, so it is E[min(T, horizon)]. False alarm: 6e-5
    for each of the two.
    """
    horizon, runs = 20, 2000
    p = identification_probabilities(lambda _t: 5, every_step, horizon)
    tail, t = 1.0 - p.sum(), np.arange(1, horizon + 1)
    mean = t @ p + horizon * tail
    sd = math.sqrt(t**2 @ p + horizon**2 * tail - mean**2)
    found = settling_times(chain(5), 0, runs=runs, horizon=horizon, seed=1)
    cut = found.of(1)
    assert abs(cut.unfinished - tail) < 4.0 * math.sqrt(tail * (1 - tail) / runs)
    assert abs(cut.mean - mean) < 4.0 * sd / math.sqrt(runs)
    assert cut.unfinished
    assert cut.quantiles[2] == math.inf
    assert "at least" in repr(cut)
    assert "more than 20" in repr(cut)


# -- bit-for-bit equality ------------------------------------------------------------------------


@pytest.mark.parametrize("hold", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_times_equal_those_of_the_readable_rule(hold: int, seed: int) -> None:
    horizon, runs, below = 120, 4, 0.05
    modes = random_modes(5, situations=4, actions=3, observations=3, seed=seed)
    found = settling_times(modes, 2, below=below, horizon=horizon, runs=runs, hold=hold, seed=seed)
    probe = {"v": Probe(lambda agent, a, o: agent.belief.posterior())}
    for run in range(runs):
        schedule = every_step if hold == 1 else Every(hold)
        record = interact(
            modes.agent(schedule=schedule), modes.environment(2), horizon,
            seed=seed, run=run, probes=probe,
        )  # fmt: skip
        under = np.vstack([modes.prior, record["v"]]) < below
        for m in (0, 1, 3, 4):
            first = int(under[:, m].argmax()) if under[:, m].any() else NOT_YET
            assert found.first[run, m] == first


def test_the_weight_of_one_mode_equals_the_posterior_bit_for_bit() -> None:
    for count in (3, 700):  # one block and two
        modes = random_modes(count, observations=4, seed=count)
        agent = modes.agent()
        interact(agent, modes.environment(0), 300, seed=0)
        w, e, blocks = agent.belief.weight_arrays()
        s, k = kernels.finite.total(blocks)
        shares = [kernels.finite.share(w, e, blocks, m, s, k) for m in range(count)]
        assert shares == agent.belief.posterior().tolist()


# -- modes that never fall, and modes that start low ---------------------------------------------


def test_runs_do_not_wait_for_tied_modes() -> None:
    found = settling_times(coins(0.5, 0.5, 0.9), 0, horizon=1_000_000, runs=50)
    assert found.tied.tolist() == [True, True, False]
    assert found.of(1).unfinished == 1.0
    assert (
        repr(found.of(1)) == "m1: more than 1000000 steps: nothing separates it from the true mode"
    )
    assert found.of(2).unfinished == 0.0


def test_a_mode_that_differs_only_for_unused_actions_is_tied() -> None:
    probabilities = np.full((2, 2, 1, 2), 0.5)
    probabilities[1, 1] = 0.1, 0.9
    modes = TabularModes(np.ones((2, 2, 1)), probabilities, np.zeros((2, 1, 2)))
    assert settling_times(modes, 0, runs=1).tied.all()


def test_a_long_list_is_truncated_and_starts_with_the_slowest() -> None:
    words = repr(settling_times(coins(*np.linspace(0.1, 0.9, 12)), 0, runs=20)).splitlines()
    assert words[1].startswith("  m1: ")
    assert words[-1] == "  … and 3 faster ones"


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [("runs", 0), ("horizon", -1), ("hold", 0), ("hold", 1.5), ("below", 0.0), ("below", math.nan)],
)
def test_errors_name_invalid_settings(setting: tuple[str, Any]) -> None:
    name, value = setting
    with pytest.raises(ValueError, match=f"{name}={value}"):
        settling_times(chain(2), 0, **{name: value})


def test_modes_can_be_given_by_name() -> None:
    found = settling_times(chain(3), true="A", hold=3, runs=2)
    assert (found.of("B"), found.true) == (found.of(1), 0)
    unknown: list[Any] = ["C", 2, -1, None, 0.5, True]
    for m in unknown:
        with pytest.raises(UnknownMode, match="0 … 1 or a name of A, B"):
            found.of(m)
        with pytest.raises(UnknownMode):
            settling_times(chain(3), m)


def test_a_list_of_modes_or_an_agent_is_tabulated() -> None:
    modes = coins(0.5, 0.9)

    def coin(name: str, p: float) -> DiscreteMode[None, int, int]:
        return DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {0: 1 - p, 1: p}, name)

    listed = [coin("m0", 0.5), coin("m1", 0.9)]
    tables = settling_times(modes, 0, runs=20)
    for same in (modes.agent(), listed, ControlRule(FiniteBelief(listed))):
        assert (settling_times(same, "m0", runs=20).first == tables.first).all()


def test_an_agent_that_holds_its_modes_is_simulated_as_it_holds_them() -> None:
    agent = chain(5).agent(schedule=Every(5))
    assert settling_times(agent, "A", runs=5).of("B").quantiles == (5.0, 5.0, 5.0)
    assert settling_times(agent, "A", runs=5, hold=1).hold == 1
    with pytest.raises(MissingCapability, match=r"Geometric\(p=0.5\).*tabulate"):
        settling_times(chain(5).agent(schedule=Geometric(0.5)), "A")


def test_a_list_of_modes_that_know_their_tables_needs_no_situation() -> None:
    whole = random_modes(2, situations=3)
    assert settling_times(list(whole), 0, runs=2).of(1) == settling_times(whole, 0, runs=2).of(1)


# -- speed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "modes", [None, 3, "chain", object(), {"A": 1}, BernoulliBandit(2).agent()]
)
def test_an_object_that_is_not_a_class_of_modes_is_refused(modes: Any) -> None:
    with pytest.raises(MissingCapability, match=r"list of modes|not a list|sampled_check"):
        settling_times(modes, 0)

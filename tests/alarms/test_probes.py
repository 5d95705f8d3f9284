"""Probes read a running agent without changing it."""

import math
import pydoc
from types import SimpleNamespace

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, FiniteBelief, interact
from bayescontrol.alarms import (
    Alarm,
    Guarded,
    KrichevskyTrofimov,
    alarm_evidence,
    effective_modes,
    mode_surprise,
)
from bayescontrol.errors import MissingCapability
from bayescontrol.finite.tabular import random_modes
from bayescontrol.record import Probe, log_score, posterior
from bayescontrol.testing.laws import check_probes

ALL = {
    "v": posterior,
    "count": effective_modes,
    "bits": mode_surprise,
    "mixture": log_score,
}


def test_the_effective_number_of_modes_is_two_to_the_entropy() -> None:
    agent = random_modes(3).agent(prior=[0.5, 0.5, 0.0])
    assert effective_modes.measure(agent, 0, 0) == pytest.approx(2.0)
    agent = random_modes(3).agent(prior=[0.5, 0.25, 0.25])
    assert effective_modes.measure(agent, 0, 0) == pytest.approx(2.0**1.5)
    agent = random_modes(3).agent(prior=[0.0, 1.0, 0.0])
    assert effective_modes.measure(agent, 0, 0) == 1.0


def test_surprises_are_computed_before_the_update() -> None:
    modes = random_modes(3, situations=2, seed=4)
    record = interact(modes.agent(), modes.environment(1), 30, probes=ALL, seed=0)
    x = modes.start
    v = np.full(3, 1 / 3)
    for t, (a, o) in enumerate(record):
        p = modes.likelihoods(x, a, o)
        np.testing.assert_allclose(record["bits"][t], -np.log2(p), rtol=1e-12)
        assert record["mixture"][t] == pytest.approx(-math.log2(v @ p), rel=1e-9)
        v = v * p / (v @ p)
        x = modes.advance(x, a, o)


def test_probes_never_change_a_run() -> None:
    modes = random_modes(3, situations=2)
    check_probes(modes.agent, lambda: modes.environment(0), ALL)
    check_probes(
        lambda: Guarded(modes.agent(), Alarm(KrichevskyTrofimov(2), 0.1), fallback=0),
        lambda: modes.environment(0),
        ALL | {"alarm": alarm_evidence},
    )


def test_modes_with_log_likelihoods_can_be_read() -> None:
    class Coin:
        def log_likelihood(self, x: None, a: None, o: int) -> float:
            return -math.inf if o else -2.0

        def act(self, x: None, rng: object) -> int:
            return 0

    from bayescontrol import ControlRule

    agent = ControlRule(FiniteBelief([Coin()]))
    assert mode_surprise.measure(agent, 0, 0) == pytest.approx([2.0 / math.log(2)])
    assert mode_surprise.measure(agent, 0, 1) == [math.inf]


def test_beliefs_without_finitely_many_modes_raise_a_clear_error() -> None:
    agent = BernoulliBandit(2).agent()
    for probe in (effective_modes, mode_surprise):
        with pytest.raises(MissingCapability, match="needs finitely many modes"):
            probe.measure(agent, 0, 1)
    with pytest.raises(MissingCapability, match="no belief"):
        effective_modes.measure(object(), 0, 1)
    for probe in (posterior, log_score):
        with pytest.raises(MissingCapability, match="no belief"):
            probe.measure(object(), 0, 1)
    with pytest.raises(MissingCapability, match=r"without log_predictive"):
        log_score.measure(SimpleNamespace(belief="a hunch"), 0, 1)
    with pytest.raises(MissingCapability, match="has no alarm"):
        alarm_evidence.measure(agent, 0, 1)


@pytest.mark.parametrize("probe", [*ALL.values(), alarm_evidence])
def test_help_states_the_quantity_unit_and_shape_of_a_probe(probe: Probe) -> None:
    words = pydoc.plain(pydoc.render_doc(probe))
    assert "A measurement" not in words  # the generic docstring of all probes
    assert "(T, M)" in words or "(T,)" in words
    assert "bits" in words or "sums to one" in words or "between 1 and M" in words
    assert "before the agent observes" in words or "after the agent has observed" in words

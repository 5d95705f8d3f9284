"""Test every law on all shipped classes of modes, and on the naive agent."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import NaiveMixture
from bayescontrol.errors import ImpossibleObservation
from bayescontrol.finite.examples import THREE_MODES_PRIOR, prize_or_frog, three_modes
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.schedules import Every, Geometric, MinimumDwell, doubling
from bayescontrol.testing import (
    LawBroken,
    check_acting,
    check_agent,
    check_fused,
    check_identities,
    check_intervention,
    check_modes,
    check_probes,
    check_resume,
    check_same_seed,
)
from bayescontrol.testing.suite import (
    Runs,
    check_match_rate,
    check_prior_preserved,
    check_ville,
    simulate,
)


def test_every_law_holds_for_every_class_of_modes(shipped: Any) -> None:
    """Seeds are fixed; the false-alarm rate over seeds is 1e-6 for each class."""
    check_modes(
        shipped.modes,
        prior=shipped.prior,
        situation=shipped.situation,
        advance=shipped.advance,
        environment=shipped.environment,
        steps=30,
        runs=500,
    )


@pytest.mark.parametrize("schedule", [Every(4), Geometric(0.3), MinimumDwell(3), doubling])
def test_the_laws_of_acting_hold_while_modes_are_held(schedule: Any) -> None:
    """The match rate counts only steps at which a mode is drawn; false alarms as above."""
    modes = random_modes(3, situations=2, seed=6)
    check_agent(lambda: modes.agent(schedule=schedule), modes.environment, runs=400)


@pytest.mark.parametrize("steps", [0, 1, 2, 500])
@pytest.mark.parametrize("count", [1, 2, 512, 513])
def test_the_compiled_loop_equals_the_readable_one_at_every_size(count: int, steps: int) -> None:
    modes = random_modes(count, situations=3, actions=3, observations=4, seed=count)
    for seed in range(3):
        check_fused(modes.agent, lambda: modes.environment(0), steps, seed=seed)


def test_a_run_can_be_saved_at_any_step() -> None:
    modes = random_modes(4, situations=3, concentration=0.1, seed=7)
    for at in (0, 1, 2, 59, 60):
        check_resume(modes.agent, lambda: modes.environment(2), 60, at=at)


# -- the naive agent -------------------------------------------------------------------------------

NAIVE_FAILS = ["one situation", "many situations", "prize or frog", "three modes", "filters"]


@pytest.mark.parametrize("name", NAIVE_FAILS)
def test_the_naive_agent_fails_the_intervention_law(name: str, classes: dict[str, Any]) -> None:
    kind = classes[name]
    a = "high" if name == "filters" else 1

    def make(modes: Any) -> Any:
        return NaiveMixture(kind.belief(modes), kind.situation, kind.advance)

    with pytest.raises(LawBroken, match="treats actions as evidence"):
        check_intervention(make, kind.modes, [(a, 1), (a, 1)])
    world = kind.environment or (lambda _m: Answering())
    with pytest.raises(LawBroken, match="not evidence"):
        check_acting(lambda: kind.agent(NaiveMixture), lambda: world(0))


class Answering:
    def respond(self, a: object, rng: object) -> int:
        return 1


@pytest.fixture(scope="module")
def deluded() -> Runs:
    modes = three_modes()
    return simulate(
        lambda: modes.agent(THREE_MODES_PRIOR, kind=NaiveMixture), modes.environment, runs=2000
    )


@pytest.fixture(scope="module")
def sound() -> Runs:
    modes = three_modes()
    return simulate(lambda: modes.agent(THREE_MODES_PRIOR), modes.environment, runs=2000)


def test_sharp_posteriors_over_many_modes_raise_no_false_alarm() -> None:
    """A mode that is never the true one in 200 runs has a mean far below its prior and no spread,
    so a test based on standard errors would raise a false alarm.
    """
    shows = np.full((200, 1, 1, 200), 1e-4 / 199)
    shows[np.arange(200), 0, 0, np.arange(200)] = 1.0 - 1e-4
    modes = TabularModes(np.ones((200, 1, 1)), shows)
    runs = simulate(modes.agent, modes.environment, steps=3, runs=200)
    assert (runs.final.mean(axis=0) < 1e-5).any()
    for check in (check_prior_preserved, check_match_rate, check_ville):
        check(runs)


@pytest.mark.parametrize("check", [check_prior_preserved, check_match_rate, check_ville])
def test_each_identity_holds_for_the_rule_and_fails_for_the_naive_agent(
    check: Any, sound: Runs, deluded: Runs
) -> None:
    """2,000 runs of 20 steps each; false alarm 1e-6 for the rule, over seeds."""
    check(sound)
    with pytest.raises(LawBroken):
        check(deluded)


def test_a_naive_agent_that_contradicts_itself_raises_law_broken() -> None:
    modes = prize_or_frog(1.0)
    with pytest.raises(LawBroken, match="ruled out") as caught:
        check_identities(lambda: modes.agent(kind=NaiveMixture), modes.environment)
    assert isinstance(caught.value.__cause__, ImpossibleObservation)


def test_the_naive_agent_satisfies_the_laws_that_are_not_about_causality() -> None:
    modes = random_modes(3, situations=2, seed=8)

    def make() -> Any:
        return modes.agent(kind=NaiveMixture)

    check_same_seed(make, lambda: modes.environment(0))
    check_resume(make, lambda: modes.environment(0))
    check_probes(make, lambda: modes.environment(0), {})

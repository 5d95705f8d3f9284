"""Modes whose private state stands beside the situation, and steps without an observation."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import (
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    ParticleBelief,
    Record,
    Stream,
    interact,
)
from bayescontrol._mode_queries import has
from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov
from bayescontrol.baselines import NaiveMixture
from bayescontrol.beliefs import FadingBelief, SwitchingBelief
from bayescontrol.convergence import divergences
from bayescontrol.convergence.walks import Walk
from bayescontrol.errors import BadSituation
from bayescontrol.finite.tabulate import tabulate
from bayescontrol.modes import ModeEnvironment
from bayescontrol.protocols import MISSING, SituatedState, Skips
from bayescontrol.systems import Situated
from bayescontrol.testing import check_mode, check_modes, same_bits
from bayescontrol.testing.laws import LawBroken

#: How often the sensor shows the hidden bit, by the time of day.
SHOWS = (0.9, 0.8, 0.55)


class Scheduled:
    """A hidden bit stays with probability `stay`; how well o shows it depends on the situation x.

    s is P(bit = 1 | past). The policy needs both: the guess from s, and the name of the time x.
    """

    uses_situation = True

    def __init__(self, stay: float) -> None:
        self.stay, self.name = stay, f"stay {stay:g}"

    def start(self) -> float:
        return 0.5

    def advance(self, xs: SituatedState, a: Any, o: Any) -> float:
        s: float = xs.s
        if o is not MISSING:
            hit = SHOWS[xs.x] if o else 1.0 - SHOWS[xs.x]
            s = s * hit / (s * hit + (1.0 - s) * (1.0 - hit))
        return s * self.stay + (1.0 - s) * (1.0 - self.stay)

    def observation_probabilities(self, xs: SituatedState, a: Any) -> dict[int, float]:
        x, s = xs
        one = s * SHOWS[x] + (1.0 - s) * (1.0 - SHOWS[x])
        return {1: one, 0: 1.0 - one}

    def likelihood(self, xs: SituatedState, a: Any, o: Any) -> float:
        return self.observation_probabilities(xs, a).get(o, 0.0)

    def action_probabilities(self, xs: SituatedState) -> dict[str, float]:
        return {f"{int(xs.s > 0.5)} at {xs.x}": 1.0}

    def act(self, xs: SituatedState, rng: Any) -> str:
        return next(iter(self.action_probabilities(xs)))


def over_histories(stay: float) -> DiscreteMode[Any, Any, Any]:
    """The same mode without private state: its situation is the time and all observations."""
    mode = Scheduled(stay)

    def at(x: tuple[Any, ...]) -> SituatedState:
        s = mode.start()
        for t, o in enumerate(x):
            s = mode.advance(SituatedState(t % 3, s), None, o)
        return SituatedState(len(x) % 3, s)

    return DiscreteMode(
        lambda x: mode.action_probabilities(at(x)),
        lambda x, a: mode.observation_probabilities(at(x), a),
    )


def tick(x: int, a: Any, o: Any) -> int:
    return (x + 1) % 3


STAYS = (0.95, 0.6)


def scheduled() -> list[Scheduled]:
    return [Scheduled(stay) for stay in STAYS]


@pytest.mark.parametrize("agent_type", [ControlRule, NaiveMixture])
def test_a_mode_receives_the_situation_with_its_state(agent_type: Any) -> None:
    private = agent_type(FiniteBelief(scheduled()), 0, tick)
    modes = [over_histories(stay) for stay in STAYS]
    full = agent_type(FiniteBelief(modes), (), lambda x, a, o: (*x, o))
    for o in (1, 1, 0, 1, 0, 0, 0, 1, 1, 1):
        assert private.action_probabilities() == pytest.approx(full.action_probabilities())
        a = private.act(Stream(0))
        assert full.act(Stream(0)) == a
        assert private.predictive(a) == pytest.approx(full.predictive(a), rel=1e-12)
        for agent in (private, full):
            agent.observe(a, o)
        assert private.belief.posterior() == pytest.approx(full.belief.posterior(), rel=1e-12)


def test_the_laws_hold_for_modes_that_use_the_situation() -> None:
    check_modes(scheduled(), situation=0, advance=tick, steps=20, runs=100)


def test_a_mode_that_modifies_its_state_is_found() -> None:
    class Careless(Scheduled):
        def start(self) -> Any:
            return np.array([0.5])

        def advance(self, xs: SituatedState, a: Any, o: Any) -> Any:
            xs.s[0] = 0.25
            return xs.s

        def observation_probabilities(self, xs: SituatedState, a: Any) -> dict[int, float]:
            return {1: 1.0}

        def action_probabilities(self, xs: SituatedState) -> dict[str, float]:
            return {"go": 1.0}

    with pytest.raises(LawBroken, match="modified the state"):
        check_mode(Careless(0.5), [(0, "go", 1)])


def test_worlds_systems_and_tables_follow_the_situation_too() -> None:
    mode = Scheduled(0.9)
    world, system = ModeEnvironment(mode, 0, tick), Situated(mode, 0, tick)
    s: Any = system.start()
    for o in (1, 0, 1, 1):
        assert s == SituatedState(world.x.x, world.x.s)
        world.x = world.advance(world.x, "go", o)
        s = system.advance(s, "go", o)
    assert s.x == 1
    with pytest.raises(BadSituation):
        ModeEnvironment(mode, 0)

    class Counting(Scheduled):
        """The state counts to one, so that a table is small."""

        def advance(self, xs: SituatedState, a: Any, o: Any) -> float:
            return 0.75

    table = tabulate([Counting(0.9), Counting(0.5)], 0, tick)
    assert len(table.labels.situations) == 4  # the start, then three times of day
    agent, tables = ControlRule(FiniteBelief([Counting(0.9)]), 0, tick), table.agent()
    for _ in range(5):
        a = agent.act(Stream(0))
        action, number = a, table.labels.actions.index(a)
        expected = tables.predictive(number)
        assert agent.predictive(action)[1] == pytest.approx(expected[1], rel=1e-12)
        agent.observe(action, 1)
        tables.observe(number, 1)


def test_convergence_checks_accept_modes_that_use_the_situation() -> None:
    modes = scheduled()
    agent = ControlRule(FiniteBelief(modes), 0, tick)
    fresh = agent.copy()
    record = interact(agent, ModeEnvironment(modes[0], 0, tick), 30, seed=0)
    read = divergences(record, fresh)
    assert np.array_equal(read.posterior[-1], agent.belief.posterior())
    assert read.of(0, 1)[-1] == pytest.approx(np.log(np.divide(*read.posterior[-1])), abs=1e-12)
    lost = divergences(Record([*record.actions, "go"], [*record.observations, MISSING]), fresh)
    assert lost.of(0, 1)[-1] == read.of(0, 1)[-1]
    walk = Walk(modes, lambda m: ModeEnvironment(m, 0, tick), 0, tick, seed=0, run=0)
    for _ in range(4):
        walk.step(0)
    world: Any = walk.environment
    assert (walk.x, walk._at(0)) == (1, world.x)


def coin(p: float) -> DiscreteMode[Any, Any, Any]:
    return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {1: p, 0: 1 - p})


# -- steps without an observation -----------------------------------------------------------------


def test_a_lost_observation_advances_state_and_situation_without_evidence() -> None:
    agent = ControlRule(FiniteBelief(scheduled()), 0, tick)
    agent.observe("go", 1)
    before, count = agent.belief.posterior(), agent.belief.count
    s = [float(str(agent.belief.save()[f"state/{m}"])) for m in range(2)]
    agent.observe("go", MISSING)
    assert agent.x == 2
    assert np.array_equal(agent.belief.posterior(), before)
    assert agent.belief.count == count
    for m, stay in enumerate(STAYS):
        expected = s[m] * stay + (1.0 - s[m]) * (1.0 - stay)
        assert float(str(agent.belief.save()[f"state/{m}"])) == expected


def test_a_lost_observation_equals_the_sum_over_its_values() -> None:
    """P(m | o_1, o_3) by a filter that skips o_2, and by summing P(m, o_1, o_2, o_3) over o_2."""
    belief = FiniteBelief(scheduled())
    belief.observe(0, "go", 1)
    belief.skip(1, "go")
    belief.observe(2, "go", 0)
    joint = np.zeros(2)
    for o in (0, 1):
        for m, mode in enumerate(scheduled()):
            s, p = mode.start(), 0.5
            for x, y in enumerate((1, o, 0)):
                p *= mode.likelihood(SituatedState(x, s), "go", y)
                s = mode.advance(SituatedState(x, s), "go", y)
            joint[m] += p
    assert belief.posterior() == pytest.approx(joint / joint.sum(), rel=1e-12)


def test_an_error_during_a_lost_step_changes_nothing() -> None:
    class Strict(Scheduled):
        def advance(self, xs: SituatedState, a: Any, o: Any) -> float:
            if o is MISSING:
                raise ValueError("no observation")
            return super().advance(xs, a, o)

    for belief in (
        FiniteBelief([Scheduled(0.9), Strict(0.6)]),
        FadingBelief([Scheduled(0.9), Strict(0.6)], forgetting=0.5),
    ):
        belief.observe(0, "go", 1)
        before = belief.save()
        with pytest.raises(ValueError, match="no observation"):
            belief.skip(1, "go")
        assert same_bits(before, belief.save())


def test_the_prediction_of_a_changing_world_runs_without_an_observation() -> None:
    coins = [coin(0.9), coin(0.1)]
    switching: Any = SwitchingBelief(coins, hazard=0.1)
    fading: Any = FadingBelief(coins, forgetting=0.5)
    for belief in (switching, fading):
        belief.observe(None, "toss", 1)
    v, bits = switching.posterior(), switching.code_length()
    switching.skip(None, "toss")
    assert switching.posterior() == pytest.approx(0.9 * v + 0.05, rel=1e-14)
    assert switching.code_length() == pytest.approx(bits, abs=1e-14)
    v = fading.posterior()
    fading.skip(None, "toss")
    assert fading.posterior() == pytest.approx(np.sqrt(v) / np.sqrt(v).sum(), rel=1e-14)


def test_static_beliefs_and_guarded_agents_ignore_a_lost_observation() -> None:
    particles = ParticleBelief(
        lambda n, rng: rng.normal(size=(n, 1)),
        lambda theta, x, a, o: -0.5 * (o - theta[:, 0]) ** 2,
        lambda theta, x, rng: "look",
        20,
    )
    assert has(particles, Skips)
    before = particles.save()
    ControlRule(particles).observe("look", MISSING)
    assert same_bits(before, particles.save())

    coins = [coin(0.9), coin(0.1)]
    guarded = Guarded(ControlRule(FiniteBelief(coins)), Alarm(KrichevskyTrofimov(2), 0.01))
    guarded.observe("toss", 1)
    state = guarded.save()
    guarded.observe("toss", MISSING)
    assert same_bits(state, guarded.save())

"""I/O systems: coupling, known and tailored systems, and agents as systems."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from bayescontrol import ControlRule, DiscreteMode, FiniteBelief, NaiveMixture
from bayescontrol.errors import MissingCapability
from bayescontrol.finite.tabular import random_modes
from bayescontrol.schedules import Every
from bayescontrol.systems import (
    AgentSystem,
    Coupled,
    Situated,
    known,
    tailored,
)


def probability(system: Any, history: list[tuple[int, int]]) -> float:
    """P(ao_≤t), as a product over the steps."""
    p, s = 1.0, system.start()
    for a, o in history:
        p *= system.action_probabilities(s).get(a, 0.0)
        p *= system.observation_probabilities(s, a).get(o, 0.0)
        s = system.advance(s, a, o)
    return p


def all_histories(length: int) -> list[list[tuple[int, int]]]:
    if length == 0:
        return [[]]
    return [[*h, (a, o)] for h in all_histories(length - 1) for a in (0, 1) for o in (0, 1)]


MODES = random_modes(3, situations=3, seed=8)


@pytest.mark.parametrize("kind", [ControlRule, NaiveMixture])
def test_an_agent_as_a_system_is_a_distribution_over_histories(kind: type[Any]) -> None:
    system = AgentSystem(MODES.agent([0.5, 0.3, 0.2], kind=kind))
    total = math.fsum(probability(system, h) for h in all_histories(3))
    assert total == pytest.approx(1.0, rel=1e-13)


def test_the_naive_agent_is_the_plain_mixture_of_the_systems() -> None:
    """P(ao_≤t) = Σ_m P(m) P_m(ao_≤t), which does not hold for the rule."""
    prior = [0.5, 0.3, 0.2]
    naive = AgentSystem(MODES.agent(prior, kind=NaiveMixture))
    causal = AgentSystem(MODES.agent(prior))
    differ = 0
    for history in all_histories(3):
        parts = zip(prior, MODES.systems(), strict=True)
        mixture = math.fsum(p * probability(system, history) for p, system in parts)
        assert probability(naive, history) == pytest.approx(mixture, rel=1e-12)
        differ += abs(probability(causal, history) - mixture) > 1e-6
    assert differ > 50


def test_evaluating_a_system_does_not_change_the_agent() -> None:
    agent = MODES.agent()
    system = AgentSystem(agent)
    start = system.start()
    before = system.action_probabilities(start)
    system.advance(start, 0, 1)
    assert system.action_probabilities(start) == before
    assert repr(agent) == repr(MODES.agent())


def test_an_agent_that_holds_a_hidden_mode_has_no_exact_system() -> None:
    with pytest.raises(MissingCapability, match="holds modes"):
        AgentSystem(MODES.agent(schedule=Every(3)))


def test_the_coupling_takes_actions_from_one_and_observations_from_the_other() -> None:
    p, q = MODES.systems()[:2]
    g = Coupled(p, q)
    s = g.start()
    assert g.action_probabilities(s) == p.action_probabilities(0)
    assert g.observation_probabilities(s, 1) == q.observation_probabilities(0, 1)
    assert g.advance(s, 1, 0) == (p.advance(0, 1, 0), q.advance(0, 1, 0))


def test_a_mode_knows_its_environment() -> None:
    p, q = MODES.systems()[:2]
    assert known(p, p, [0, 1], horizon=3)
    check = known(p, q, [0, 1], horizon=3)
    assert not check
    assert check.gap > 0.0
    assert check.history[-1][1] is None


def test_a_difference_deep_in_the_tree_is_found() -> None:
    class Late:
        """A fair coin until two heads in a row."""

        def __init__(self, then: float) -> None:
            self.then = then

        def start(self) -> tuple[int, ...]:
            return ()

        def advance(self, s: tuple[int, ...], a: str, o: int) -> tuple[int, ...]:
            return (*s, o)

        def action_probabilities(self, s: tuple[int, ...]) -> Mapping[str, float]:
            return {"toss": 1.0}

        def observation_probabilities(self, s: tuple[int, ...], a: str) -> Mapping[int, float]:
            p = self.then if s == (1, 1) else 0.5
            return {1: p, 0: 1.0 - p}

    assert known(Late(0.5), Late(0.75), ["toss"], horizon=2)
    check = known(Late(0.5), Late(0.75), ["toss"], horizon=3)
    assert check.history == (("toss", 1), ("toss", 1), ("toss", None))
    assert check.gap == 0.25


def test_systems_without_observations_know_each_other() -> None:
    mute = Situated(DiscreteMode(lambda _x: {"a": 1.0}, lambda _x, _a: {}))
    assert known(mute, mute, ["a"], horizon=2)


def test_a_mode_is_tailored_if_its_world_is_known_and_the_outcome_is_desired() -> None:
    p, q = MODES.systems()[:2]
    assert tailored(p, p, [0, 1], 3, lambda _g: True)
    assert not tailored(p, p, [0, 1], 3, lambda _g: False)
    assert not tailored(p, q, [0, 1], 3, lambda _g: True)


def test_a_mode_with_private_state_keeps_its_state_as_a_system() -> None:
    class Alternating:
        def start(self) -> int:
            return 0

        def advance(self, s: int, a: int, o: int) -> int:
            return 1 - s

        def action_probabilities(self, s: int) -> dict[int, float]:
            return {s: 1.0}

        def observation_probabilities(self, s: int, a: int) -> dict[int, float]:
            return {s: 1.0}

    system = Situated(Alternating(), situation="never used")
    assert system.start() == 0
    assert system.advance(0, 0, 0) == 1
    agent: ControlRule[Any, Any, int, int] = ControlRule(FiniteBelief([_Sure(Alternating())]))
    assert probability(AgentSystem(agent), [(0, 0), (1, 1), (0, 0)]) == 1.0


class _Sure:
    """A system as a mode, with the required likelihood."""

    def __init__(self, system: Any) -> None:
        self.start, self.advance = system.start, system.advance
        self.action_probabilities = system.action_probabilities
        self.observation_probabilities = system.observation_probabilities

    def act(self, s: Any, rng: Any) -> Any:
        return next(iter(self.action_probabilities(s)))

    def likelihood(self, s: Any, a: Any, o: Any) -> float:
        return float(self.observation_probabilities(s, a).get(o, 0.0))

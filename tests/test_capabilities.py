"""A wrapper that delegates with `__getattr__` keeps every capability, on every Python version."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.output_feedback import OutputMode

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    TabularModes,
    warm_start,
)
from bayescontrol.alarms.alarm import gives_probabilities
from bayescontrol.alarms.guarded import fallback_probabilities
from bayescontrol.beliefs import InteractingBelief, SwitchingBelief
from bayescontrol.durable.driver import Driver, posterior_summary
from bayescontrol.errors import MissingCapability
from bayescontrol.finite.tabulate import tabulate
from bayescontrol.lqr import LinearSystem
from bayescontrol.modes import ModeEnvironment
from bayescontrol.testing import LawBroken, check_mode

Wrap = Callable[[Any], Any]


class Wrapper:
    """Delegates everything to the object that it wraps."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        if name == "wrapped":  # looked up by copy()
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    def __len__(self) -> int:
        return len(self.wrapped)

    def __getitem__(self, m: int) -> Any:
        return self.wrapped[m]


class Counting(DiscreteMode[Any, str, int]):
    """A mode with a private state: the number of steps."""

    def start(self) -> int:
        return 0

    def advance(self, s: int, a: str, o: int) -> int:
        return s + 1


def lever(good: str, kind: type[DiscreteMode[Any, str, int]] = DiscreteMode) -> Any:
    return kind(
        lambda x: {good: 0.75, "rest": 0.25},
        lambda x, a: {1: 0.9, 0: 0.1} if a == good else {1: 0.3, 0: 0.7},
    )


def levers(wrap: Wrap) -> list[Any]:
    return [wrap(lever("left")), wrap(lever("right"))]


def cart(push: float) -> OutputMode:
    system = LinearSystem([[1.0, 1.0], [0.0, 0.9]], [[0.0], [push]], np.eye(2), [[1]])
    return OutputMode(system, C=[[1, 0]], V=[[1]])


def witnessed(wrap: Wrap) -> Any:
    agent = ControlRule(FiniteBelief(levers(wrap)))
    agent.witness(None, "left")
    return agent.action_probabilities(), agent.predictive("left")


def saved(wrap: Wrap) -> Any:
    agents = [ControlRule(wrap(FiniteBelief(levers(wrap)))) for _ in range(2)]
    warm_start(agents[0], [("left", 1)], demonstration=True)
    agents[1].load(agents[0].save())
    return agents[1].action_probabilities(), posterior_summary(agents[1])


def counted(wrap: Wrap) -> Any:
    world = ModeEnvironment(wrap(lever("left", Counting)))
    return world.x, world.advance(world.x, "left", 1)


def switched(wrap: Wrap) -> Any:
    with pytest.raises(MissingCapability) as caught:
        SwitchingBelief([wrap(lever("left", Counting))], hazard=0.1)
    return str(caught.value)


def interacting(wrap: Wrap) -> Any:
    belief: Any = InteractingBelief([wrap(cart(1.0)), wrap(cart(-1.0))], hazard=0.1)
    belief.observe(None, np.array([1.0]), np.array([0.5]))
    return belief.posterior().tolist()


def tabulated(wrap: Wrap) -> Any:
    return tabulate(levers(wrap)).hypothesis.tolist()


def as_array(wrap: Wrap) -> Any:
    modes = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[0.5, 0.5]]], [[[0.25, 0.75]]]])
    belief = FiniteBelief(wrap(modes))
    belief.observe(0, 0, 1)
    return belief.posterior().tolist(), gives_probabilities(belief)


def durable(wrap: Wrap) -> Any:
    return Driver(wrap(BernoulliBandit(["a", "b"]).agent())).probabilities(None)


def changing(wrap: Wrap) -> Any:
    agent: Any = BernoulliBandit(["a", "b"]).changing().agent()
    agent.belief = wrap(agent.belief)
    driver = Driver(agent)
    agent.act(np.random.default_rng(0))
    driver.remember(7)
    return agent.belief.decision, driver._decisions


def guarded(wrap: Wrap) -> Any:
    return fallback_probabilities(wrap(lever("left")), None)


def law(wrap: Wrap) -> Any:
    mode = SimpleNamespace(action_probabilities=lambda x: {"go": 0.7})
    with pytest.raises(LawBroken) as caught:
        check_mode(wrap(mode), [(0, "go", 1)])
    return str(caught.value)


QUESTIONS = (witnessed, saved, counted, switched, interacting, tabulated)
MORE = (as_array, durable, changing, guarded, law)


@pytest.mark.parametrize("question", QUESTIONS + MORE)
def test_a_wrapper_that_delegates_answers_as_the_object_does(
    question: Callable[[Wrap], Any],
) -> None:
    assert question(Wrapper) == question(lambda value: value)

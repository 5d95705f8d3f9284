"""A bandit of every family, with what the law checks need."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ExponentialBandit,
    GaussianBandit,
    PoissonBandit,
    interact,
)
from bayescontrol.bandits import FAMILIES, Bandit
from bayescontrol.testing.laws import Event


@dataclass(frozen=True)
class Case:
    """A bandit with three arms, a truth, and rewards that its arms cannot pay."""

    name: str
    bandit: Bandit
    truth: Any
    impossible: tuple[Any, ...]

    def history(self, steps: int = 60, seed: int = 0) -> list[Event]:
        record = interact(
            self.bandit.agent(), self.bandit.environment(self.truth), steps, seed=seed
        )
        return [(None, a, o) for a, o in record]

    def world(self) -> Any:
        return self.bandit.environment(self.truth)


COLOURS = ["red", "blue", "green"]
CASES = [
    Case("Bernoulli", BernoulliBandit(3), [0.2, 0.5, 0.6], (2, -1, 0.5)),
    Case("Bernoulli, halves", BernoulliBandit(3, prior=(0.5, 0.5)), [0.2, 0.5, 0.6], (2,)),
    Case(
        "Gaussian",
        GaussianBandit(COLOURS, sd=0.5, prior=[(2, 1), (2, 2), (3, 1)]),
        [2, 2.5, 2.7],
        (1e200,),
    ),
    Case(
        "Gaussian, variance unknown",
        GaussianBandit(COLOURS, sd=None, prior=(2, 1, 2, 1)),
        [[2, 0.5], [2.5, 1.0], [2.7, 0.7]],
        (-1e200,),
    ),
    Case("Poisson", PoissonBandit(COLOURS, prior=(2, 1)), [2, 2.5, 2.7], (-1, 0.5, 1e300)),
    Case(
        "exponential",
        ExponentialBandit(COLOURS, prior=[(5, 8), (5, 8), (6, 4)]),
        [2, 2.5, 2.7],
        (-1e-9, 1e200),
    ),
    Case(
        "categorical",
        CategoricalBandit(COLOURS, values=[0, 1, 5], prior=(1, 2, 0.5)),
        [[0.5, 0.4, 0.1], [0.2, 0.8, 0.0], [0.6, 0.1, 0.3]],
        (2, -1, 5.0000001),
    ),
]
# Families without a case above describe one themselves.
CASES += [
    Case(kind.name, bandit(**kind.example), kind.truth, kind.refused)
    for bandit in FAMILIES
    for kind in [bandit.model_kind]
    if bandit not in {type(case.bandit) for case in CASES}
]
EXACT = [case for case in CASES if hasattr(case.bandit.family, "best")]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return cast("Case", request.param)


@pytest.fixture(params=EXACT, ids=lambda case: case.name)
def exact(request: pytest.FixtureRequest) -> Case:
    """Families with exact action probabilities."""
    return cast("Case", request.param)

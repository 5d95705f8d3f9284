"""Small systems with exact conditionals, and D, C and I computed from their definitions.

The reference uses plain strings and dictionaries of fractions. It is independent of the library: it
has no tree, no arrays and no belief.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from tests.entropy.entropies import intervened_relative_entropy, relative_entropy

from bayescontrol import ControlRule, FiniteBelief, NaiveMixture
from bayescontrol._mode_queries import draw_from
from bayescontrol.entropy import Bits
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.systems import AgentSystem, Situated

History = tuple[tuple[int, int], ...]
#: weight(â | ao_<t), or None if actions are evidence.
Weight = Callable[[History, int], Fraction] | None


class Remembering:
    """A mode that depends on the whole history: each history has its own random conditionals."""

    def __init__(self, seed: str, actions: int = 2, observations: int = 2, least: int = 1) -> None:
        self.seed, self.actions, self.observations, self.least = seed, actions, observations, least

    def fractions(self, *key: Any) -> dict[int, Fraction]:
        n = self.observations if len(key) == 2 else self.actions
        rng = random.Random(f"{self.seed} {key}")
        weights = [rng.randint(self.least, 6) for _ in range(n)]
        weights[rng.randrange(n)] += not any(weights)
        return {k: Fraction(w, sum(weights)) for k, w in enumerate(weights)}

    def start(self) -> History:
        return ()

    def advance(self, s: History, a: int, o: int) -> History:
        return (*s, (a, o))

    def action_probabilities(self, s: History) -> dict[int, float]:
        return {a: float(p) for a, p in self.fractions(s).items()}

    def observation_probabilities(self, s: History, a: int) -> dict[int, float]:
        return {o: float(p) for o, p in self.fractions(s, a).items()}

    def likelihood(self, s: History, a: int, o: int) -> float:
        return float(self.fractions(s, a)[o])

    def act(self, s: History, rng: Any) -> int:
        return draw_from(self.action_probabilities(s), rng)


@dataclass
class Case:
    """Modes for the library, with the same conditionals as fractions."""

    modes: Sequence[Any]
    agent: Callable[[type[Any]], Any]
    prior: list[Fraction]
    policy: Callable[[int, History], dict[int, Fraction]]
    hypothesis: Callable[[int, History, int], dict[int, Fraction]]
    actions: int
    observations: int

    @property
    def p(self) -> list[float]:
        return [float(p) for p in self.prior]

    def rule(self) -> AgentSystem:
        return AgentSystem(self.agent(ControlRule))

    def naive(self) -> AgentSystem:
        return AgentSystem(self.agent(NaiveMixture))

    def rival(self, name: str) -> Remembering:
        """A random system that is unrelated to the modes."""
        return Remembering(name, self.actions, self.observations)

    def weighting(self, name: str) -> Any:
        """A weighting for the library."""
        return self.rival("a policy") if name == "policy" else name

    def D(self, agent: Any, horizon: int) -> Bits:
        return relative_entropy(agent, self.modes, self.p, horizon)

    def C(self, agent: Any, horizon: int, name: str) -> Bits:
        return intervened_relative_entropy(
            agent, self.modes, self.p, horizon, self.weighting(name), actions=range(self.actions)
        )

    # -- the definitions ---------------------------------------------------------------------

    def strings(self, t: int) -> Iterator[History]:
        return product(product(range(self.actions), range(self.observations)), repeat=t)

    def probability(self, m: int, h: History, weight: Weight) -> Fraction:
        """P_m(ao_<t), or P(âo_<t | m) times the weights of the interventions."""
        p = Fraction(1)
        for t, (a, o) in enumerate(h):
            past = h[:t]
            p *= self.policy(m, past)[a] if weight is None else weight(past, a)
            p *= self.hypothesis(m, past, a)[o]
        return p

    def posterior(self, h: History, weight: Weight, last: int | None = None) -> list[Fraction]:
        joint = [p * self.probability(m, h, weight) for m, p in enumerate(self.prior)]
        if last is not None and weight is None:
            joint = [p * self.policy(m, h)[last] for m, p in enumerate(joint)]
        return [p / sum(joint) if any(joint) else p for p in joint]

    def mixture_actions(self, h: History, weight: Weight) -> dict[int, Fraction]:
        """Σ_m P_m(a | h) w_m(h): naive if weight is None, else causal."""
        w = self.posterior(h, weight)
        return mix(w, [self.policy(m, h) for m in range(len(w))])

    def mixture_observations(self, h: History, a: int, weight: Weight) -> dict[int, Fraction]:
        w = self.posterior(h, weight, last=a)
        return mix(w, [self.hypothesis(m, h, a) for m in range(len(w))])

    def weight(self, name: str) -> Callable[[History, int], Fraction]:
        """A weighting as fractions."""
        policy = self.rival("a policy")
        weights: dict[str, Callable[[History, int], Fraction]] = {
            "uniform": lambda h, a: Fraction(1, self.actions),
            "closed-loop": lambda h, a: self.mixture_actions(h, one)[a],
            "printed": one,
            "policy": lambda h, a: policy.fractions(h)[a],
        }
        return weights[name]

    def mixture(self, horizon: int, weight: Weight, kind: str) -> list[tuple[float, float]]:
        """`divergence` of the naive mixture or of the rule."""
        inner = None if kind == "naive" else one
        return self.divergence(
            horizon,
            weight,
            lambda h: self.mixture_actions(h, inner),
            lambda h, a: self.mixture_observations(h, a, inner),
        )

    def divergence(
        self,
        horizon: int,
        weight: Weight,
        actions: Callable[[History], dict[int, Fraction]],
        observations: Callable[[History, int], dict[int, Fraction]],
    ) -> list[tuple[float, float]]:
        """The terms of D or C at τ = 1 … horizon, separately for actions and observations."""
        steps = []
        for t in range(horizon):
            bits_a, bits_o = [], []
            for h, m in product(self.strings(t), range(len(self.prior))):
                W = self.prior[m] * self.probability(m, h, weight)
                if W == 0:
                    continue
                bits_a.append(float(W) * relative(self.policy(m, h), actions(h)))
                for a in range(self.actions):
                    taken = self.policy(m, h)[a] if weight is None else weight(h, a)
                    if W * taken > 0:
                        p, q = self.hypothesis(m, h, a), observations(h, a)
                        bits_o.append(float(W * taken) * relative(p, q))
            steps.append((math.fsum(bits_a), math.fsum(bits_o)))
        return steps

    def information(self, t: int, weight: Weight) -> float:
        """I(m; h) = H(prior) - E H(m | h)."""
        bits = [-float(p) * math.log2(p) for p in self.prior if p > 0]
        for h in self.strings(t):
            total = sum(p * self.probability(m, h, weight) for m, p in enumerate(self.prior))
            posterior = self.posterior(h, weight)
            bits += [float(total * w) * math.log2(w) for w in posterior if w > 0]
        return math.fsum(bits)


def one(h: History, a: int) -> Fraction:
    """The paper's weight of an intervention."""
    return Fraction(1)


def mix(w: list[Fraction], distributions: list[dict[int, Fraction]]) -> dict[int, Fraction]:
    return {
        k: sum(
            (w_m * probabilities[k] for w_m, probabilities in zip(w, distributions, strict=True)),
            Fraction(0),
        )
        for k in distributions[0]
    }


def relative(p: dict[int, Fraction], q: dict[int, Fraction]) -> float:
    if any(q[k] == 0 for k in p if p[k] > 0):
        return math.inf
    return math.fsum(float(p[k]) * math.log2(p[k] / q[k]) for k in p if p[k] > 0)


def tabular(seed: int, situations: int, actions: int = 2, observations: int = 2) -> Case:
    """A random class of three modes."""
    modes: TabularModes = random_modes(
        3, situations=situations, actions=actions, observations=observations, seed=seed
    )

    def situation(h: History) -> int:
        x = modes.start
        for a, o in h:
            x = modes.advance(x, a, o)
        return x

    def row(table: Any) -> dict[int, Fraction]:
        return {k: Fraction(float(p)) for k, p in enumerate(table)}

    prior = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    return Case(
        modes.systems(),
        lambda kind: modes.agent([float(p) for p in prior], kind=kind),
        prior,
        lambda m, h: row(modes.policy[m, situation(h)]),
        lambda m, h, a: row(modes.hypothesis[m, situation(h), a]),
        actions,
        observations,
    )


def remembering(seed: int, least: int = 1) -> Case:
    """Two modes that remember everything; with least=0 some symbols are impossible."""
    modes = [Remembering(f"{seed} {m}", least=least) for m in range(2)]
    prior = [Fraction(2, 5), Fraction(3, 5)]
    return Case(
        [Situated(mode) for mode in modes],
        lambda kind: kind(FiniteBelief(modes, [float(p) for p in prior])),
        prior,
        lambda m, h: modes[m].fractions(h),
        lambda m, h, a: modes[m].fractions(h, a),
        2,
        2,
    )


CASES: dict[str, Callable[[], Case]] = {
    "one situation": lambda: tabular(0, 1),
    "three situations": lambda: tabular(1, 3),
    "three actions": lambda: tabular(2, 2, actions=3),
    "three observations": lambda: tabular(3, 2, observations=3),
    "history-dependent": lambda: remembering(4),
    "history-dependent, another": lambda: remembering(5),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Each of the random systems in turn."""
    return CASES[request.param]()


@pytest.fixture
def cases() -> dict[str, Callable[..., Case]]:
    """Constructors of random systems."""
    return {"tabular": tabular, "remembering": remembering}

"""A mixture of causal models: the order of cause and effect is itself uncertain.

    joint           p(h, x) = p(h) p_h(x)
    intervention    X ← x goes into every p_h, in its own order, and leaves p(h) alone

It answers every question that a single model answers.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np

from bayescontrol.causal.distribution import Distribution
from bayescontrol.causal.factor import Factor
from bayescontrol.causal.model import Causal
from bayescontrol.causal.tables import Values, index_of
from bayescontrol.errors import InvalidTable, UnknownVariable


class CausalMixture(Causal):
    """p(h, x) = p(h) p_h(x): a hypothesis h, and under each h a causal model of its own.

    An ordered factorisation H, X, Y can only say that X comes before Y. Where h decides who
    is the cause, the order itself must depend on h: X ← x then goes into every p_h, in its
    own order, and leaves p(h) alone. All models speak of the same variables.

    >>> from bayescontrol.causal.model import CausalModel
    >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), [[1, 0], [0, 1]], ["X"])
    >>> lone = Factor("Y", (0, 1), [0.5, 0.5])
    >>> m = CausalMixture(Factor("H", ("linked", "apart"), [0.5, 0.5]),
    ...                   {"linked": CausalModel([X, Y]), "apart": CausalModel([X, lone])})
    >>> m
    CausalMixture: P(H), linked: P(X) P(Y | X), apart: P(X) P(Y)
    >>> m.query("H", given={"Y": 0}, do={"X": 1})
    {'linked': 0.0, 'apart': 1.0}
    """

    def __init__(self, prior: Factor, models: Mapping[Any, Causal]) -> None:
        self.prior = prior
        self.models = dict(models)
        self._p = prior.tabulate({})
        if set(self.models) != set(prior.values):
            raise UnknownVariable(
                f"the models are named {tuple(self.models)}, the values of {prior.name} are "
                f"{prior.values}: give one model for each"
            )
        first, *others = self.models.values()
        for model in others:
            if dict(model.domains) != dict(first.domains):
                raise InvalidTable(
                    f"the models speak of {dict(first.domains)} and of {dict(model.domains)}: "
                    "give all the same variables and values"
                )
        if prior.name in first.domains:
            raise InvalidTable(f"{prior.name!r} names the hypothesis and a variable: rename one")
        self.domains = {prior.name: prior.values, **first.domains}

    def joint(self) -> Distribution:
        """p(h, x) = p(h) p_h(x), the hypothesis first.

        >>> from bayescontrol.causal.model import CausalModel
        >>> H = Factor("H", ("low", "high"), [0.5, 0.5])
        >>> low, high = (CausalModel([Factor("X", (0, 1), [1 - p, p])]) for p in (0.25, 0.75))
        >>> CausalMixture(H, {"low": low, "high": high}).joint().probability(X=1)
        0.5
        """
        x = self.names[1:]
        parts = [self.models[h].joint().marginal(*x).p for h in self.prior.values]
        return Distribution(
            self.domains, np.stack([p_h * p for p_h, p in zip(self._p, parts, strict=True)])
        )

    def intervene(self, values: Values | None = None, /, **named: Hashable) -> Self:
        """X ← x in every p_h; H ← h makes p(h) a Kronecker delta.

        >>> from bayescontrol.causal.model import CausalModel
        >>> X, H = Factor("X", (0, 1), [0.5, 0.5]), Factor("H", ("one",), [1])
        >>> CausalMixture(H, {"one": CausalModel([X])}).intervene(X=1)
        CausalMixture: δ(H = 'one'), one: δ(X = 1)
        """
        do = dict(values or {}, **named)
        for name, value in do.items():
            index_of(self.domains, name, value)
        prior = self.prior
        if prior.name in do:
            prior = Factor(prior.name, prior.values, {do.pop(prior.name): 1})
        return type(self)(prior, {h: model.intervene(do) for h, model in self.models.items()})

    def __repr__(self) -> str:
        parts = [f"{h}: {str(model).split(': ', 1)[-1]}" for h, model in self.models.items()]
        return f"CausalMixture: {', '.join([repr(self.prior), *parts])}"

"""Causal models: who listens to whom, and what happens when someone sets a variable.

    joint           p(x1, ..., xn) = Π_i p(x_i | parents of x_i), parents earlier in the order
    intervention    X_j ← x replaces p(x_j | parents) by δ(x_j, x) and leaves the others alone
    factorisation   p(x_i | x_<i) = p(x_≤i) / p(x_<i), for any order: the joint alone does
                    not say which order is the causal one

Intervene first, then condition: an intervention changes the model, a condition asks it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayescontrol.causal.distribution import Distribution
from bayescontrol.causal.factor import Factor
from bayescontrol.causal.tables import Domains, Probability, Values, axis_of, index_of
from bayescontrol.errors import ImpossibleCondition, InvalidTable, UnknownVariable

#: A joint is one dense array: beyond these sizes it is a mistake, not an example.
MAX_CELLS = 2**24
MAX_VARIABLES = 32


class Causal(ABC):
    """p(x), p(x | y) and p(x | Y ← y): what a causal model and a mixture of them answer.

    >>> issubclass(CausalModel, Causal)
    True
    """

    domains: Domains

    @property
    def names(self) -> tuple[str, ...]:
        """X1, ..., Xn, in causal order where there is one order.

        >>> CausalModel([Factor("X", (0, 1), [0.5, 0.5])]).names
        ('X',)
        """
        return tuple(self.domains)

    @abstractmethod
    def joint(self) -> Distribution:
        """p(x1, ..., xn), of all variables together."""

    @abstractmethod
    def intervene(self, values: Values | None = None, /, **named: Hashable) -> Self:
        """X ← x: the same kind of model, in which X listens to nobody."""

    def condition(self, values: Values | None = None, /, **named: Hashable) -> Distribution:
        """p(x | y): y was seen. What is left is a distribution, and no longer causal.

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).condition(Y=1)
        X  P
        1  1
        """
        return self.joint().condition(values, **named)

    def query(
        self, *names: str, given: Values | None = None, do: Values | None = None
    ) -> dict[Any, Probability]:
        """p(names | given, do): intervene, then condition, then sum out the rest.

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).query("X", do={"Y": 1})
        {0: 0.5, 1: 0.5}
        """
        if fixed := [name for name in names if name in (given or {})]:
            raise UnknownVariable(f"{fixed[0]} is given: ask for a variable that is not")
        return self.intervene(do).condition(given).marginal(*names).as_dict()


class CausalModel(Causal):
    """p(x1, ..., xn) = Π_i p(x_i | parents), factors in causal order.

    >>> theta = Factor("theta", ("fair", "bent"), [0.5, 0.5])
    >>> X = Factor("X", (0, 1), lambda theta: [0.5, 0.5] if theta == "fair" else [0, 1], "theta")
    >>> coin = CausalModel([theta, X])
    >>> coin
    CausalModel: P(theta) P(X | theta)
    >>> coin.query("theta", given={"X": 0})
    {'fair': 1.0, 'bent': 0.0}
    >>> coin.query("theta", do={"X": 0})
    {'fair': 0.5, 'bent': 0.5}
    """

    def __init__(self, factors: Iterable[Factor]) -> None:
        self.factors = tuple(factors)
        self._tables: list[npt.NDArray[Any]] = []
        domains: dict[str, tuple[Hashable, ...]] = {}
        for factor in self.factors:
            if factor.name in domains:
                raise InvalidTable(f"two factors are named {factor.name!r}: name each once")
            self._tables.append(factor.tabulate(domains))
            domains[factor.name] = factor.values
        self.domains = domains

    @classmethod
    def factorise(cls, joint: Distribution, order: Sequence[str]) -> Self:
        """p(x_i | x_<i) = p(x_≤i) / p(x_<i): the joint read in the given causal order.

        Every order gives the joint back, and different orders answer interventions
        differently. Where p(x_<i) = 0 the joint does not tell how X_i would behave: an
        intervention that leads there raises `ImpossibleCondition`.

        >>> p = Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.375, 0.125], [0.125, 0.375]])
        >>> CausalModel.factorise(p, ["X", "Y"]).query("Y", do={"X": 1})
        {0: 0.25, 1: 0.75}
        >>> CausalModel.factorise(p, ["Y", "X"]).query("Y", do={"X": 1})
        {0: 0.5, 1: 0.5}
        """
        if sorted(order) != sorted(joint.names):
            raise UnknownVariable(f"the order {tuple(order)} does not name {joint.names} once each")
        factors = []
        p = joint.marginal(*order).p
        for i in reversed(range(len(order))):
            past = np.asarray(p.sum(axis=-1), dtype=p.dtype)
            table = p / np.where(past == 0, 1, past)[..., None]
            name = order[i]
            factors.append(Factor(name, joint.domains[name], table, order[:i], partial=True))
            p = past
        return cls(reversed(factors))

    def joint(self) -> Distribution:
        """p(x1, ..., xn) = Π_i p(x_i | parents).

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).joint()
        X  Y  P
        0  0  0.5
        1  1  0.5
        """
        cells = math.prod(map(len, self.domains.values()))
        if cells > MAX_CELLS or len(self.domains) > MAX_VARIABLES:
            raise InvalidTable(
                f"the joint of {len(self.domains)} variables has {cells} cells, beyond "
                f"{MAX_CELLS} cells or {MAX_VARIABLES} variables: use a smaller model"
            )
        p: npt.NDArray[Any] = np.ones((), dtype=np.int64)
        for i, (factor, table) in enumerate(zip(self.factors, self._tables, strict=True)):
            axes = [axis_of(self.domains, name) for name in (*factor.parents, factor.name)]
            shape = [len(v) if j in axes else 1 for j, v in enumerate(self.domains.values())]
            aligned = table.transpose(np.argsort(axes)).reshape(shape[: i + 1])
            if factor.partial and np.any((p > 0) & (aligned.sum(axis=-1) == 0)):
                raise ImpossibleCondition(
                    f"{factor} is needed for parents of which it does not know the effect (a "
                    "joint that never shows them cannot tell): state that row in a Factor"
                )
            p = p[..., None] * aligned
        return Distribution(self.domains, p)

    def intervene(self, values: Values | None = None, /, **named: Hashable) -> Self:
        """X ← x: the factor of X becomes the Kronecker delta δ(X, x), the others stay.

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).intervene(Y=1)
        CausalModel: P(X) δ(Y = 1)
        """
        do = dict(values or {}, **named)
        for name, value in do.items():
            index_of(self.domains, name, value)
        return type(self)(
            Factor(f.name, f.values, {do[f.name]: 1}) if f.name in do else f for f in self.factors
        )

    def __repr__(self) -> str:
        return "CausalModel: " + " ".join(map(repr, self.factors))

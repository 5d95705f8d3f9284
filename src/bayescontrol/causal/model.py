"""A factor p(x | parents): the mechanism that sets one variable.

    table        one axis per parent, in the order of `parents`, and the own axis last
    delta        δ(x, x0): the mechanism of a variable that was set to x0

A factor is checked when the model that holds it is built.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.causal.distribution import (
    Distribution,
    Domains,
    Probability,
    Table,
    Values,
    as_domain,
    as_numbers,
    axis_of,
    check_rows,
    index_of,
)
from bayescontrol.errors import ImpossibleCondition, InvalidTable, UnknownVariable

Row: TypeAlias = Table | Mapping[Any, Probability]


class Factor:
    """p(x | parents): how one variable listens to those before it.

    `table` has one axis per parent and the own axis last; or it is a pure function of the
    parents' values that returns one row, as a sequence or as {x: p(x | parents)} with what
    is missing at 0. With `partial=True` a row of zeros says that the mechanism is not
    known there, and a joint that needs it raises.

    >>> Factor("X", (0, 1), [[0.5, 0.5], [0.25, 0.75]], parents=["theta"])
    P(X | theta)
    >>> Factor("echo", (0, 1), lambda x: {x: 1}, parents=["X"])
    P(echo | X)
    >>> Factor("X", (0, 1), {1: 1})
    δ(X = 1)
    """

    def __init__(
        self,
        name: str,
        values: Iterable[Hashable],
        table: Row | Callable[..., Row],
        parents: str | Sequence[str] = (),
        *,
        partial: bool = False,
    ) -> None:
        self.name = name
        self.values = as_domain(name, values)
        self.parents = (parents,) if isinstance(parents, str) else tuple(parents)
        self.partial = partial
        if len({name, *self.parents}) <= len(self.parents):
            raise InvalidTable(f"{self._label()} names a variable twice: name each once")
        self.table = table if callable(table) else self._rows(table, self._label(), self.parents)

    def tabulate(self, domains: Domains) -> npt.NDArray[Any]:
        """p(x | parents) as an array, checked against the parents' values.

        >>> Factor("echo", "ab", lambda x: {x: 1}, ["X"]).tabulate({"X": ("a", "b")})
        array([[Fraction(1, 1), Fraction(0, 1)],
               [Fraction(0, 1), Fraction(1, 1)]], dtype=object)
        """
        for parent in self.parents:
            if parent not in domains:
                raise InvalidTable(
                    f"{self._label()}: {parent!r} does not come before {self.name!r} in the "
                    f"order ({', '.join(domains) or 'nothing does'}): move it there"
                )
        causes = [domains[parent] for parent in self.parents]
        shape = (*map(len, causes), len(self.values))
        if not callable(self.table):
            if self.table.shape != shape:
                raise InvalidTable(
                    f"{self._label()} has shape {self.table.shape}, its variables need {shape}: "
                    "one axis per parent, the own axis last"
                )
            return self.table
        rows = [
            self._rows(self.table(*given), self._label(map(repr, given)), ())
            for given in product(*causes)
        ]
        return as_numbers(rows, self._label()).reshape(shape)

    def _rows(self, table: Row, place: str, parents: Sequence[str]) -> npt.NDArray[Any]:
        if isinstance(table, Mapping):
            for value in table:
                index_of({self.name: self.values}, self.name, value)
            table = [table.get(value, 0) for value in self.values]
        p = as_numbers(table, place)
        if p.ndim != len(parents) + 1 or p.shape[-1] != len(self.values):
            raise InvalidTable(
                f"{place} has shape {p.shape}: it needs one axis for each of {len(parents)} "
                f"parents and a last axis of {len(self.values)} for {self.name}"
            )
        check_rows(p, place, partial=self.partial)
        return p

    def _label(self, given: Iterable[str] = ()) -> str:
        at = [f"{k}={v}" for k, v in zip(self.parents, given, strict=False)] or self.parents
        return f"P({self.name} | {', '.join(at)})" if at else f"P({self.name})"

    def __repr__(self) -> str:
        if not self.parents and not callable(self.table) and self.table.max() == 1:
            return f"δ({self.name} = {self.values[int(np.argmax(self.table))]!r})"
        return self._label()


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

"""Causal models: factors p(x | parents) in causal order, interventions, and mixtures of models.

    factor          a table with one axis per parent, in the order of `parents`, and the variable's
                    axis last; δ(x, x0) for a variable that was set to x0
    joint           p(x1, ..., xn) = Π_i p(x_i | parents of x_i), parents earlier in the order
    intervention    X_j ← x replaces p(x_j | parents) by δ(x_j, x) and keeps the other factors
    factorisation   p(x_i | x_<i) = p(x_≤i) / p(x_<i), for any order: the joint does not determine
                    which order is the causal one
    mixture         p(h, x) = p(h) p_h(x): hypotheses h with different causal models

Intervene first, then condition: an intervention changes the model, a condition queries it. A
factor is checked when the model that contains it is built.

Distributions are tables of probabilities over finitely many named variables:

    a row      p(x | parents) ≥ 0,  Σ_x p(x | parents) = 1
    exact      tables of integers and Fractions stay Fractions and must sum exactly
    float64    all other tables, whose rows sum to one up to rounding
    marginal   p(x) = Σ_y p(x, y)
    condition  p(x | y) = p(x, y) / p(y)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from numbers import Rational, Real
from typing import Any, Self, TypeAlias

import numpy as np

from bayescontrol._arrays import AnyArray
from bayescontrol._support.display import html_table
from bayescontrol.errors import ImpossibleCondition, InvalidTable, UnknownVariable

Probability: TypeAlias = float | Fraction
Table: TypeAlias = Sequence[Any] | AnyArray
Values: TypeAlias = Mapping[str, Hashable]
Domains: TypeAlias = Mapping[str, tuple[Hashable, ...]]

#: Rows are checked more tightly than joints, which multiply the rounding of many rows.
ROW_TOLERANCE = 1e-12
JOINT_TOLERANCE = 1e-9


def as_domain(name: str, values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the values of a variable as a tuple: at least one, all different."""
    domain = tuple(values)
    try:
        distinct = len(set(domain)) == len(domain) > 0
    except TypeError as error:
        raise InvalidTable(f"values of {name} must be hashable ({error}): use tuples") from error
    if not distinct:
        raise InvalidTable(f"{name} has values {domain!r}: expected at least one, all different")
    return domain


def as_exact_or_float(table: Table, place: str) -> AnyArray:
    """Return a read-only copy: Fractions if every cell is rational, float64 otherwise."""
    try:
        p = np.array(table)
    except ValueError as error:
        raise InvalidTable(f"{place} is ragged: all rows must have the same length") from error
    if p.dtype.kind == "f":
        p = p.astype(np.float64)
    else:
        cells = p.astype(object).ravel().tolist()
        if wrong := [x for x in cells if not isinstance(x, Real)]:
            raise InvalidTable(f"{place} contains {wrong[0]!r}: use integers, Fractions or floats")
        if exact := all(isinstance(x, Rational) for x in cells):
            cells = [Fraction(int(x.numerator), int(x.denominator)) for x in cells]
        p = np.array(cells, object if exact else np.float64).reshape(p.shape)
    p.setflags(write=False)
    return p


def check_rows(
    p: AnyArray, place: str, tolerance: float = ROW_TOLERANCE, *, partial: bool = False
) -> None:
    """Raise `InvalidTable` unless p(x) ≥ 0 and Σ_x p(x) = 1 along the last axis.

    Fractions must sum to one exactly. With `partial`, rows of zeros are allowed.
    """
    if np.any(invalid := ~(p >= 0)):
        raise InvalidTable(f"{place} contains {p[invalid][0]}: probabilities must be >= 0")
    sums = np.asarray(p.sum(axis=-1))
    wrong_sum = abs(sums - 1) > (0 if p.dtype == object else tolerance)
    if partial:
        wrong_sum &= sums != 0
    if np.any(wrong_sum):
        row = tuple(np.argwhere(wrong_sum)[0].tolist())
        where = f"{place}, row {row}," if row else place
        raise InvalidTable(f"{where} sums to {sums[row]} instead of 1: divide it by its sum")


def axis_of(domains: Domains, name: str) -> int:
    """Return the axis of a variable."""
    if name not in domains:
        known = ", ".join(domains) or "none"
        raise UnknownVariable(f"unknown variable {name!r}: the variables are {known}")
    return list(domains).index(name)


def index_of(domains: Domains, name: str, value: Hashable) -> int:
    """Return the position of a value on the axis of its variable."""
    axis_of(domains, name)  # raises if the variable is unknown
    try:
        return domains[name].index(value)
    except ValueError:
        known = ", ".join(map(repr, domains[name]))
        raise UnknownVariable(f"{name} has no value {value!r}: its values are {known}") from None


#: Maximum number of rows in a repr.
SHOWN = 16


class Distribution:
    """p(X1, ..., Xn) over named variables with finitely many values.

    `domains` maps each name to its values, in the order of the axes of `p`. Methods take variables
    by keyword, or as a mapping for names that are not Python identifiers.

    >>> p = Distribution({"rain": (False, True), "wet": ("no", "yes")},
    ...                  [[0.5, 0.125], [0, 0.375]])
    >>> p
    rain   wet  P
    False  no   0.5
    False  yes  0.125
    True   yes  0.375
    >>> p[True, "yes"], p.probability(wet="yes"), p.probability({"wet": "yes"})
    (0.375, 0.5, 0.5)
    """

    def __init__(self, domains: Mapping[str, Iterable[Hashable]], p: Table) -> None:
        self.domains = {name: as_domain(name, values) for name, values in domains.items()}
        shape = tuple(len(values) for values in self.domains.values())
        place = _label(self.domains)
        self.p = as_exact_or_float(p, place)
        if self.p.shape != shape:
            raise InvalidTable(f"{place} has shape {self.p.shape}: its variables need {shape}")
        check_rows(self.p.reshape(-1), place, JOINT_TOLERANCE)

    @property
    def names(self) -> tuple[str, ...]:
        """Return X1, ..., Xn in the order of the axes.

        >>> Distribution({"X": (0,), "Y": (0, 1)}, [[0.5, 0.5]]).names
        ('X', 'Y')
        """
        return tuple(self.domains)

    def probability(self, values: Values | None = None, /, **named: Hashable) -> Probability:
        """Return p(x) = Σ_y p(x, y), the probability that the named variables have these values.

        >>> Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.5, 0.25], [0.25, 0]]).probability(X=0)
        0.75
        """
        return _total(self._slice(dict(values or {}, **named)))

    def marginal(self, *names: str) -> "Distribution":
        """Return p(x) = Σ_y p(x, y), with the axes in the given order.

        >>> p = Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.5, 0.25], [0.25, 0]])
        >>> p.marginal("Y")
        Y  P
        0  0.75
        1  0.25
        >>> p.marginal("Y", "X").names
        ('Y', 'X')
        """
        if len(set(names)) < len(names):
            raise InvalidTable(f"marginal{names} has a duplicate variable")
        axes = [axis_of(self.domains, name) for name in names]
        summed_axes = tuple(set(range(self.p.ndim)) - set(axes))
        p = np.asarray(self.p.sum(axis=summed_axes), dtype=self.p.dtype)
        # The sum leaves the axes in their old order; order[i] is the place of names[i] there.
        order = np.argsort(np.argsort(axes))
        return Distribution({name: self.domains[name] for name in names}, p.transpose(order))

    def condition(self, values: Values | None = None, /, **named: Hashable) -> "Distribution":
        """Return p(x | y) = p(x, y) / p(y), over the remaining variables.

        >>> p = Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.5, 0.25], [0.25, 0]])
        >>> p.condition(Y=1)
        X  P
        0  1
        """
        given = dict(values or {}, **named)
        p = self._slice(given)
        if not (total := _total(p)):
            event = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise ImpossibleCondition(f"P({event}) = 0: condition on another event, or intervene")
        remaining = {name: values for name, values in self.domains.items() if name not in given}
        return Distribution(remaining, p / total)

    def as_dict(self) -> dict[Any, Probability]:
        """Return {x: p(x)} for one variable, {(x, y): p(x, y)} for two or more.

        >>> Distribution({"X": ("a", "b")}, [Fraction(1, 3), Fraction(2, 3)]).as_dict()
        {'a': Fraction(1, 3), 'b': Fraction(2, 3)}
        """
        domains = [*self.domains.values()]
        keys = domains[0] if len(domains) == 1 else product(*domains)
        return dict(zip(keys, self.p.ravel().tolist(), strict=True))

    def __getitem__(self, key: object) -> Probability:
        x = (key,) if len(self.domains) == 1 else key
        if not isinstance(x, tuple) or len(x) != len(self.domains):
            raise UnknownVariable(f"{key!r} must give one value for each of {self.names}")
        return self.probability(dict(zip(self.names, x, strict=True)))

    def __repr__(self) -> str:
        rows, note = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines + note)

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        (header, *rows), note = self._rows()
        return html_table("; ".join([_label(self.names), *note]), header, rows)

    def _rows(self) -> tuple[list[list[str]], list[str]]:
        """Return the rows with positive probability, as text, and a note if some are hidden."""
        possible = np.argwhere(self.p > 0).tolist()
        rows = [[*self.names, "P"]]
        for index in islice(possible, SHOWN):
            world = [v[i] for v, i in zip(self.domains.values(), index, strict=True)]
            p = self.p[tuple(index)]
            rows.append([*map(str, world), str(p) if isinstance(p, Fraction) else f"{p:.6g}"])
        hidden = len(possible) - SHOWN
        return rows, [f"... and {hidden} more"] if hidden > 0 else []

    def _slice(self, values: Values) -> AnyArray:
        """Return the part of the table where the variables have these values."""
        positions = {name: index_of(self.domains, name, value) for name, value in values.items()}
        index = tuple(positions.get(name, slice(None)) for name in self.domains)
        return np.asarray(self.p[index], dtype=self.p.dtype)


def _label(names: Iterable[str]) -> str:
    """Return P(X1, …, Xn) for a message."""
    return f"P({', '.join(names)})"


def _total(p: AnyArray) -> Probability:
    """Return the sum of a table: a Fraction if the table is exact, else a float."""
    total = p.sum()
    return total if isinstance(total, Fraction) else float(total)


Row: TypeAlias = Table | Mapping[Any, Probability]


class Factor:
    """p(x | parents): the mechanism of one variable.

    `table` has one axis per parent and the variable's axis last. It may also be a pure function of
    the parents' values that returns one row, as a sequence or as {x: p(x | parents)} with missing
    values at 0. With `partial=True` a row of zeros means that the mechanism is unknown there, and a
    joint that needs it raises.

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
            raise InvalidTable(f"{self._label()} has a duplicate variable")
        self.table = table if callable(table) else self._rows(table, self._label(), self.parents)

    def tabulate(self, domains: Domains) -> AnyArray:
        """Return p(x | parents) as an array, checked against the parents' values.

        >>> Factor("echo", "ab", lambda x: {x: 1}, ["X"]).tabulate({"X": ("a", "b")})
        array([[Fraction(1, 1), Fraction(0, 1)],
               [Fraction(0, 1), Fraction(1, 1)]], dtype=object)
        """
        for parent in self.parents:
            if parent not in domains:
                raise InvalidTable(
                    f"{self._label()}: the parent {parent!r} must come before {self.name!r} in the "
                    f"order; the earlier variables are: {', '.join(domains) or 'none'}"
                )
        parent_values = [domains[parent] for parent in self.parents]
        shape = (*map(len, parent_values), len(self.values))
        if not callable(self.table):
            if self.table.shape != shape:
                raise InvalidTable(
                    f"{self._label()} has shape {self.table.shape}, expected {shape}: one axis per "
                    f"parent, then the axis of {self.name}"
                )
            return self.table
        rows = [
            self._rows(self.table(*given), self._label(map(repr, given)), ())
            for given in product(*parent_values)
        ]
        return as_exact_or_float(rows, self._label()).reshape(shape)

    def _rows(self, table: Row, place: str, parents: Sequence[str]) -> AnyArray:
        """Return the table as an array with an axis per parent; raise if it is invalid."""
        if isinstance(table, Mapping):
            for value in table:
                index_of({self.name: self.values}, self.name, value)
            table = [table.get(value, 0) for value in self.values]
        p = as_exact_or_float(table, place)
        if p.ndim != len(parents) + 1 or p.shape[-1] != len(self.values):
            raise InvalidTable(
                f"{place} has shape {p.shape}: expected the axes "
                f"({', '.join([*parents, self.name])}), the last of length {len(self.values)}"
            )
        check_rows(p, place, partial=self.partial)
        return p

    def _label(self, given: Iterable[str] = ()) -> str:
        """Return P(name | parents), with the values of the parents if they are `given`."""
        at = [f"{k}={v}" for k, v in zip(self.parents, given, strict=False)] or self.parents
        return f"P({self.name} | {', '.join(at)})" if at else f"P({self.name})"

    def __repr__(self) -> str:
        if not self.parents and not callable(self.table) and self.table.max() == 1:
            return f"δ({self.name} = {self.values[int(np.argmax(self.table))]!r})"
        return self._label()


#: Maximum size of a joint, which is one dense array.
MAX_CELLS = 2**24
MAX_VARIABLES = 32


class Causal(ABC):
    """Interface of causal models and their mixtures: p(x), p(x | y) and p(x | Y ← y).

    >>> coin = CausalModel([Factor("X", (0, 1), [0.5, 0.5])])
    >>> isinstance(coin, Causal), coin.names
    (True, ('X',))
    """

    domains: Domains

    @property
    def names(self) -> tuple[str, ...]:
        """Return X1, ..., Xn, in causal order if there is one."""
        return tuple(self.domains)

    def _assignment(self, values: Values | None, named: Values) -> dict[str, Hashable]:
        """Return {variable: value}; raise `UnknownVariable` if the model lacks one of them."""
        assignment = dict(values or {}, **named)
        for name, value in assignment.items():
            index_of(self.domains, name, value)
        return assignment

    @abstractmethod
    def joint(self) -> Distribution:
        """Return p(x1, ..., xn), the joint of all variables."""

    @abstractmethod
    def intervene(self, values: Values | None = None, /, **named: Hashable) -> Self:
        """Return the model after X ← x, in which X depends on no other variable."""

    def condition(self, values: Values | None = None, /, **named: Hashable) -> Distribution:
        """Return p(x | y) after observing y, as a distribution, which is no longer causal.

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).condition(Y=1)
        X  P
        1  1
        """
        return self.joint().condition(values, **named)

    def query(
        self, *names: str, given: Values | None = None, do: Values | None = None
    ) -> dict[Any, Probability]:
        """Return p(names | given, do): intervene, then condition, then sum out the rest.

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).query("X", do={"Y": 1})
        {0: 0.5, 1: 0.5}
        """
        if fixed := [name for name in names if name in (given or {})]:
            raise UnknownVariable(f"{fixed[0]} is in `given`: query other variables")
        return self.intervene(do).condition(given).marginal(*names).as_dict()


class CausalModel(Causal):
    """p(x1, ..., xn) = Π_i p(x_i | parents), with factors in causal order.

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
        self._tables: list[AnyArray] = []
        domains: dict[str, tuple[Hashable, ...]] = {}
        for factor in self.factors:
            if factor.name in domains:
                raise InvalidTable(f"two factors are named {factor.name!r}: use unique names")
            self._tables.append(factor.tabulate(domains))
            domains[factor.name] = factor.values
        self.domains = domains

    @classmethod
    def factorise(cls, joint: Distribution, order: Sequence[str]) -> Self:
        """Return p(x_i | x_<i) = p(x_≤i) / p(x_<i): the joint factorised in the given causal order.

        Every order reproduces the joint, but different orders answer interventions differently.
        Where p(x_<i) = 0 the joint does not determine X_i: an intervention that leads there raises
        `ImpossibleCondition`.

        >>> p = Distribution({"X": (0, 1), "Y": (0, 1)}, [[0.375, 0.125], [0.125, 0.375]])
        >>> CausalModel.factorise(p, ["X", "Y"]).query("Y", do={"X": 1})
        {0: 0.25, 1: 0.75}
        >>> CausalModel.factorise(p, ["Y", "X"]).query("Y", do={"X": 1})
        {0: 0.5, 1: 0.5}
        """
        if sorted(order) != sorted(joint.names):
            raise UnknownVariable(f"the order {tuple(order)} must name each of {joint.names} once")
        factors = []
        p = joint.marginal(*order).p
        for i in reversed(range(len(order))):
            past = np.asarray(p.sum(axis=-1), dtype=p.dtype)
            table = p / np.where(past == 0, 1, past)[..., None]  # rows of zeros where p(x_<i) = 0
            name = order[i]
            factors.append(Factor(name, joint.domains[name], table, order[:i], partial=True))
            p = past
        return cls(reversed(factors))

    def joint(self) -> Distribution:
        """Return p(x1, ..., xn) = Π_i p(x_i | parents).

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).joint()
        X  Y  P
        0  0  0.5
        1  1  0.5
        """
        cells = math.prod(map(len, self.domains.values()))
        if cells > MAX_CELLS or len(self.domains) > MAX_VARIABLES:
            raise InvalidTable(
                f"the joint of {len(self.domains)} variables has {cells} cells; the limits are "
                f"{MAX_CELLS} cells and {MAX_VARIABLES} variables: use a smaller model"
            )
        p: AnyArray = np.ones((), dtype=np.int64)
        for i, (factor, table) in enumerate(zip(self.factors, self._tables, strict=True)):
            axes = [axis_of(self.domains, name) for name in (*factor.parents, factor.name)]
            shape = [len(v) if j in axes else 1 for j, v in enumerate(self.domains.values())]
            # One axis for each variable up to this one, of length 1 if it is not a parent.
            aligned = table.transpose(np.argsort(axes)).reshape(shape[: i + 1])
            if factor.partial and np.any((p > 0) & (aligned.sum(axis=-1) == 0)):
                raise ImpossibleCondition(
                    f"{factor} is needed for values of its parents that have probability 0 in the "
                    "joint it was factorised from: define that row in a Factor"
                )
            p = p[..., None] * aligned
        return Distribution(self.domains, p)

    def intervene(self, values: Values | None = None, /, **named: Hashable) -> Self:
        """Return the model after X ← x: the factor of X becomes δ(X, x), the others stay.

        >>> X, Y = Factor("X", (0, 1), [0.5, 0.5]), Factor("Y", (0, 1), lambda x: {x: 1}, ["X"])
        >>> CausalModel([X, Y]).intervene(Y=1)
        CausalModel: P(X) δ(Y = 1)
        """
        do = self._assignment(values, named)
        return type(self)(
            Factor(f.name, f.values, {do[f.name]: 1}) if f.name in do else f for f in self.factors
        )

    def __repr__(self) -> str:
        return "CausalModel: " + " ".join(map(repr, self.factors))


class CausalMixture(Causal):
    """p(h, x) = p(h) p_h(x): a hypothesis h, and a causal model for each h.

    A single ordered factorisation H, X, Y can only express that X comes before Y. If h determines
    the direction, the order must depend on h: X ← x then applies to every p_h, in its order, and
    leaves p(h) unchanged. All models have the same variables.

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
                f"the models are named {tuple(self.models)}, but the values of {prior.name} are "
                f"{prior.values}: pass one model for each value"
            )
        first, *others = self.models.values()
        for model in others:
            if dict(model.domains) != dict(first.domains):
                raise InvalidTable(
                    f"the models have different variables, {dict(first.domains)} and "
                    f"{dict(model.domains)}: use the same variables and values in all"
                )
        if prior.name in first.domains:
            raise InvalidTable(f"{prior.name!r} is both the hypothesis and a variable: rename one")
        self.domains = {prior.name: prior.values, **first.domains}

    def joint(self) -> Distribution:
        """Return p(h, x) = p(h) p_h(x), with the hypothesis as first variable.

        >>> H = Factor("H", ("low", "high"), [0.5, 0.5])
        >>> low, high = (CausalModel([Factor("X", (0, 1), [1 - p, p])]) for p in (0.25, 0.75))
        >>> CausalMixture(H, {"low": low, "high": high}).joint().probability(X=1)
        0.5
        """
        x, weights = self.names[1:], zip(self.prior.values, self._p, strict=True)
        parts = [p_h * self.models[h].joint().marginal(*x).p for h, p_h in weights]
        return Distribution(self.domains, np.stack(parts))

    def intervene(self, values: Values | None = None, /, **named: Hashable) -> Self:
        """Return the mixture after X ← x in every p_h; H ← h makes p(h) a Kronecker delta.

        >>> X, H = Factor("X", (0, 1), [0.5, 0.5]), Factor("H", ("one",), [1])
        >>> CausalMixture(H, {"one": CausalModel([X])}).intervene(X=1)
        CausalMixture: δ(H = 'one'), one: δ(X = 1)
        """
        do = self._assignment(values, named)
        prior = self.prior
        if prior.name in do:
            prior = Factor(prior.name, prior.values, {do.pop(prior.name): 1})
        return type(self)(prior, {h: model.intervene(do) for h, model in self.models.items()})

    def __repr__(self) -> str:
        parts = [f"{h}: {str(model).split(': ', 1)[-1]}" for h, model in self.models.items()]
        return f"CausalMixture: {', '.join([repr(self.prior), *parts])}"

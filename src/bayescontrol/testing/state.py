"""What a law compares: states to the last bit, and the posterior in exact arithmetic.

    evidence(belief)      what conditioning has made of it, without what drawing has
    exact_posterior       P(m) Π_t ℓ_t(m) / Σ_m' P(m') Π_t ℓ_t(m'), with no rounding at all

The exact posterior takes the floats it is given as the numbers they are.
"""

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from io import BytesIO
from math import prod
from typing import Any, TypeAlias

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import Persistent

#: One observation: the situation x, the action a, what was seen o.
Event: TypeAlias = tuple[Any, Any, Any]

#: Arrays of a belief that drawing may change: they are no evidence.
SAMPLER = ("drawn", "sampler/")


class LawBroken(AssertionError):
    """A law of the library does not hold for what was checked.

    >>> issubclass(LawBroken, AssertionError)
    True
    """


def require(holds: object, message: str) -> None:
    """Raise `LawBroken` unless it holds; unlike `assert`, also under `python -O`.

    >>> require(2 > 1, "the order of numbers")
    """
    if not holds:
        raise LawBroken(message)


def evidence(belief: Any) -> Arrays:
    """The saved arrays of a belief, without the state of its sampler.

    >>> from bayescontrol import FiniteBelief
    >>> class Sure:
    ...     def likelihood(self, x, a, o): return 1.0
    >>> "drawn" in evidence(FiniteBelief([Sure()]))
    False
    """
    if not isinstance(belief, Persistent):
        raise MissingCapability(f"{belief!r} has no save and load: its state cannot be compared")
    return {name: array for name, array in belief.save().items() if not name.startswith(SAMPLER)}


def same_bits(a: Arrays, b: Arrays) -> bool:
    """The same names, types, shapes and bytes.

    >>> same_bits({"v": np.array([0.0])}, {"v": np.array([-0.0])})
    False
    """
    return a.keys() == b.keys() and all(
        a[n].dtype == b[n].dtype and a[n].shape == b[n].shape and a[n].tobytes() == b[n].tobytes()
        for n in a
    )


def through_disk(arrays: Arrays) -> Arrays:
    """The arrays as a file gives them back; code cannot travel this way.

    >>> through_disk({"v": np.array([1.0, 2.0])})
    {'v': array([1., 2.])}
    """
    back = {}
    for name, array in arrays.items():
        file = BytesIO()
        np.save(file, array, allow_pickle=False)
        file.seek(0)
        back[name] = np.load(file, allow_pickle=False)
    return back


def exact_posterior(
    prior: Iterable[float], likelihoods: Iterable[Sequence[float]], *, log: bool = False
) -> list[Fraction]:
    """P(m | ·) for the floats given: rational arithmetic, or 60 digits where they are logarithms.

    >>> exact_posterior([0.5, 0.5], [[0.75, 0.25], [0.5, 0.25]])
    [Fraction(6, 7), Fraction(1, 7)]
    """
    v = [Fraction(p) for p in prior]
    columns = list(zip(*likelihoods, strict=True)) or [() for _ in v]
    if log:
        with localcontext(Context(prec=60, Emax=10**17, Emin=-(10**17))):
            # Of e^-10000 nothing is left in a double.
            sums = [sum(map(Decimal, column), Decimal(0)) for column in columns]
            top = max(s for p, s in zip(v, sums, strict=True) if p)
            v = [
                p * Fraction((s - top).exp()) if s - top > -(10**4) else Fraction(0)
                for p, s in zip(v, sums, strict=True)
            ]
    else:
        v = [p * _product(column) for p, column in zip(v, columns, strict=True)]
    total = sum(v)
    return [p / total for p in v]


def _product(factors: Sequence[float]) -> Fraction:
    # Denominators are powers of two: integers multiply, and one fraction is reduced at the end.
    ratios = [float(f).as_integer_ratio() for f in factors]
    return Fraction(prod(n for n, _ in ratios), 1 << sum(d.bit_length() - 1 for _, d in ratios))


def relative_error(
    ours: Iterable[float], exact: Sequence[Fraction], least: float = 1e-250
) -> float:
    """max |ours - exact| / exact over weights of at least `least`; smaller ones must be small.

    >>> relative_error([0.5, 0.5], [Fraction(1, 2), Fraction(1, 2)])
    0.0
    """
    worst = 0.0
    for p, q in zip(ours, exact, strict=True):
        if q >= least:
            worst = max(worst, float(abs(Fraction(float(p)) / q - 1)))
        elif not 0.0 <= p <= 2 * least:
            worst = float("inf")
    return worst

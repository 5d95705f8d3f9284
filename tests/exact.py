"""Exact posteriors P(m) Π_t ℓ_t(m) / Σ_m' P(m') Π_t ℓ_t(m')."""

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import prod


def exact_posterior(
    prior: Iterable[float], likelihoods: Iterable[Sequence[float]], *, log: bool = False
) -> list[Fraction]:
    """Return P(m | ·) in rational arithmetic, or with 60 digits for log-likelihoods.

    >>> exact_posterior([0.5, 0.5], [[0.75, 0.25], [0.5, 0.25]])
    [Fraction(6, 7), Fraction(1, 7)]
    """
    v = [Fraction(p) for p in prior]
    columns = list(zip(*likelihoods, strict=True)) or [() for _ in v]
    if log:
        with localcontext(Context(prec=60, Emax=10**17, Emin=-(10**17))):
            # e^-10000 underflows to 0 in a double.
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
    # Denominators are powers of two: multiply integers and reduce a single fraction at the end.
    ratios = [float(f).as_integer_ratio() for f in factors]
    return Fraction(prod(n for n, _ in ratios), 1 << sum(d.bit_length() - 1 for _, d in ratios))


def relative_error(
    ours: Iterable[float], exact: Sequence[Fraction], least: float = 1e-250
) -> float:
    """Return max |ours - exact| / exact over weights of at least `least`.

    It is infinite if a smaller exact weight has an estimate above 2 `least`.

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

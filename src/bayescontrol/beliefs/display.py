"""A belief for the eye: its leading modes with P(m | âo), in a terminal and in a notebook.

    FiniteBelief(4 modes after 30 observations: gain -1 1, gain -2 1.5e-58, …)

Modes are called by their names where they have one.
"""

from collections.abc import Iterator
from html import escape
from typing import Protocol

import numpy as np

from bayescontrol.arrays import FloatArray


class _Shown(Protocol):
    count: int

    def __len__(self) -> int: ...
    def posterior(self) -> FloatArray: ...
    def name(self, m: int, /) -> str: ...


def _leaders(belief: _Shown, most: int) -> Iterator[tuple[str, float]]:
    v = belief.posterior()
    for m in np.argsort(-v, kind="stable")[:most]:
        yield belief.name(int(m)), float(v[m])


def line(belief: _Shown) -> str:
    """One line: the four modes with the largest P(m | âo).

    >>> from bayescontrol.problems.tabular import random_modes
    >>> line(random_modes(2).agent().belief)
    'FiniteBelief(2 modes after 0 observations: m0 0.5, m1 0.5)'
    """
    shown = ", ".join(f"{name} {v:.3g}" for name, v in _leaders(belief, 4))
    more = ", …" if len(belief) > 4 else ""
    kind = type(belief).__name__
    return f"{kind}({_size(belief)}: {shown}{more})"


def _size(belief: _Shown) -> str:
    n, t = len(belief), belief.count
    return f"{n} mode{'s' * (n != 1)} after {t} observation{'s' * (t != 1)}"


def table(belief: _Shown) -> str:
    """HTML: the twelve modes with the largest P(m | âo), each with a bar.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> table(random_modes(2).agent().belief).count("<meter")
    2
    """
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{v:.4g}</td>"
        f"<td><meter min='0' max='1' value='{v:.4f}'></meter></td></tr>"
        for name, v in _leaders(belief, 12)
    )
    return (
        f"<table><caption>{_size(belief)}</caption>"
        f"<tr><th>mode</th><th>P(m | âo)</th><th></th></tr>{rows}</table>"
    )

"""Tables for notebooks, and numbers rounded for people."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np


def shown(value: object) -> str:
    """Format a value for people: floats are rounded, all else is `str(value)`.

    A float has four significant digits. Arrays, lists and tuples of floats have at most four
    decimals, and only their ends are shown if they have more than 20 elements.

    >>> shown(200 / 3), shown(12), shown([1 / 3, 2.0]), shown("red")
    ('66.67', '12', '[0.3333 2.    ]', 'red')
    """
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        if array.dtype.kind == "f":
            return np.array2string(array, precision=4, threshold=20, max_line_width=200)
    return str(value)


def html_table(caption: str, header: Iterable[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table; all text is escaped.

    >>> html_table("2 arms", ["arm"], [["<red>"]])
    '<table><caption>2 arms</caption><tr><th>arm</th></tr><tr><td>&lt;red&gt;</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(shown(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def summary_html(belief: Any) -> str:
    """Return the `posterior_summary` of a belief as an HTML table, with at most 20 rows."""
    summary: dict[str, dict[str, Any]] = belief.posterior_summary()
    columns = list(dict.fromkeys(name for row in summary.values() for name in row))
    rows = [[name, *(row.get(c, "") for c in columns)] for name, row in summary.items()]
    more = f"; the first 20 of {len(rows)}" if len(rows) > 20 else ""
    return html_table(f"{belief!r}{more}", ["", *columns], rows[:20])

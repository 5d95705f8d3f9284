"""The house style of figures: colour-blind safe, labelled, with error bands.

    colours   Okabe & Ito's eight, told apart by line style as well where ink is black
    band      low(x) <= y(x) <= high(x), shaded around the mean
    files     PNG at 200 dots per inch and PDF, byte for byte the same for the same figure

Matplotlib is loaded when the first figure is drawn, never by importing this module, and only
through `Figure` objects: there is no global state, no window, nothing to close.
"""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PALETTE", "figure", "legend", "line_with_band", "png", "save"]

#: Okabe & Ito: blue, vermillion, bluish green, orange, sky blue, purple, black, yellow.
PALETTE: Final = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#56B4E9",
    "#CC79A7",
    "#000000",
    "#F0E442",
)
_LINES: Final = ("-", "--", "-.", ":") * 2
_DPI: Final = 200


def _style() -> Any:
    from cycler import cycler

    return {
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.labelsize": 10,
        "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=_LINES),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.constrained_layout.use": True,
        "figure.facecolor": "white",
        "font.family": "DejaVu Sans",  # ships with Matplotlib: the same page everywhere
        "font.size": 10,
        "grid.alpha": 0.25,
        "pdf.fonttype": 42,  # text stays text, as journals ask
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
    }


def figure(
    width: float = 6.4, height: float = 4.0, rows: int = 1, cols: int = 1
) -> "tuple[Figure, tuple[Axes, ...]]":
    """A blank figure of width × height inches and its rows · cols axes, row by row.

    >>> fig, (left, right) = figure(8, 3.2, cols=2)
    >>> _ = left.set(xlabel="t", ylabel="regret")
    >>> fig.get_size_inches().tolist()
    [8.0, 3.2]
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_style()):
        fig = Figure(figsize=(width, height), dpi=_DPI)
        axes = fig.subplots(rows, cols, squeeze=False)
    return fig, tuple(axes.flat)


def line_with_band(
    ax: "Axes",
    x: npt.ArrayLike,
    mean: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    label: str,
    **line: Any,
) -> None:
    """mean(x) as a line, [low(x), high(x)] as a band in its colour.

    Where a bound is not finite (one run has no standard error) the band is left out.
    Further arguments go to `ax.plot`.

    >>> fig, (ax,) = figure()
    >>> line_with_band(ax, [1, 2, 3], [0, 1, 2], [-1, 0, 1], [1, 2, 3], "control rule")
    >>> ax.get_legend_handles_labels()[1]
    ['control rule']
    """
    low_, high_ = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    (drawn,) = ax.plot(x, mean, label=label, **{"linewidth": 1.8, **line})
    ax.fill_between(
        np.asarray(x),
        low_,
        high_,
        where=(np.isfinite(low_) & np.isfinite(high_)).tolist(),
        color=drawn.get_color(),
        alpha=0.18,
        linewidth=0,
    )


def legend(ax: "Axes", **options: Any) -> None:
    """A legend that can be read: on a nearly opaque ground, where the lines are not.

    >>> fig, (ax,) = figure()
    >>> _ = ax.plot([0, 1], label="oracle")
    >>> legend(ax, title="agent")
    >>> ax.get_legend().get_title().get_text()
    'agent'
    """
    ax.legend(**{"fontsize": 9, "framealpha": 0.9, "edgecolor": "none", **options})


def png(fig: "Figure") -> bytes:
    """The figure as PNG: same figure, same bytes.

    >>> fig, _ = figure(2, 1)
    >>> png(fig)[1:4], png(fig) == png(fig)
    (b'PNG', True)
    """
    import matplotlib as mpl

    out = io.BytesIO()
    with mpl.rc_context(_style()):
        fig.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()


def save(fig: "Figure", stem: Path) -> tuple[Path, Path]:
    """Write stem.png and stem.pdf; nothing in them tells the time or the machine.

    >>> import tempfile
    >>> fig, _ = figure(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save(fig, Path(folder) / "regret")]
    ['regret.png', 'regret.pdf']
    """
    import matplotlib as mpl

    paths = (stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.pdf"))
    paths[0].write_bytes(png(fig))
    with mpl.rc_context(_style()):
        fig.savefig(
            paths[1],
            format="pdf",
            metadata={"Creator": None, "Producer": None, "CreationDate": None},
        )
    return paths

"""Figures follow one style and are the same bytes each time."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from bayescontrol.report import figures


def drawn() -> Figure:
    fig, (ax,) = figures.figure(4, 3)
    x = np.arange(5.0)
    figures.line_with_band(ax, x, x, x - 1, x + 1, "control rule")
    figures.line_with_band(ax, x, -x, -x - 1, -x + 1, "naive")
    ax.set(xlabel="t", ylabel="regret")
    figures.legend(ax)
    return fig


def test_axes_come_row_by_row() -> None:
    _, axes = figures.figure(6, 4, rows=2, cols=3)
    assert len(axes) == 6


def test_lines_differ_in_colour_and_in_style() -> None:
    (ax,) = drawn().axes
    first, second = ax.get_lines()
    assert (first.get_color(), second.get_color()) == figures.PALETTE[:2]
    assert first.get_linestyle() != second.get_linestyle()
    bands = [band.get_facecolor() for band in ax.collections]
    for band, colour in zip(bands, figures.PALETTE, strict=False):
        assert np.asarray(band)[0, :3] == pytest.approx(to_rgb(colour))


def test_a_line_may_be_given_its_own_look() -> None:
    _, (ax,) = figures.figure()
    figures.line_with_band(ax, [0, 1], [0, 1], [0, 1], [0, 1], "x", color="black", linewidth=3)
    assert ax.get_lines()[0].get_linewidth() == 3


def test_a_band_without_bounds_is_left_out_and_the_axes_stay_finite() -> None:
    _, (ax,) = figures.figure()
    mean, error = np.array([0.0, 1.0]), np.array([np.inf, np.inf])
    figures.line_with_band(ax, [0, 1], mean, mean - error, mean + error, "one run")
    assert np.isfinite(ax.get_ylim()).all()
    assert ax.get_ylim()[1] < 2


def test_files_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in figures.save(drawn(), tmp_path / "a.b")]
    again = [path.read_bytes() for path in figures.save(drawn(), tmp_path / "c")]
    assert first == again
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.b.pdf",
        "a.b.png",
        "c.pdf",
        "c.png",
    ]
    assert b"CreationDate" not in first[1]


def test_a_picture_has_200_dots_per_inch(tmp_path: Path) -> None:
    image = figures.png(drawn())
    assert [int.from_bytes(image[i : i + 4], "big") for i in (16, 20)] == [800, 600]


@pytest.mark.parametrize("module", ["bayescontrol.report.figures", "bayescontrol.cli"])
def test_importing_loads_no_plotting_and_no_numba(module: str) -> None:
    code = f"import sys, {module}; print({{'matplotlib', 'numba', 'scipy'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

"""In a notebook every cell that draws shows its figure, whichever plot comes first."""

import os
from itertools import product
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = """
from bayescontrol import BernoulliBandit, interact
bandit = BernoulliBandit(["red", "blue"])
world = bandit.environment([0.2, 0.7])
"""
CELLS = {
    "o": "interact(bandit.agent(), world, 50, seed=0).plot(world)",
    "p": "import matplotlib.pyplot as plt\nplt.plot([1, 2])",
}
#: Every order of three plots, ours (o) and pyplot's (p), is a part of each sequence. What the first
#: plot of a kernel is decides how Matplotlib begins, so there is a kernel for either.
OURS_FIRST, PYPLOT_FIRST = "ooopopppoo", "pppopooopp"


def test_the_sequences_contain_every_order_of_three_plots() -> None:
    for cells in (OURS_FIRST, PYPLOT_FIRST):
        assert all("".join(order) in cells for order in product("op", repeat=3))


@pytest.mark.parametrize(
    ("cells", "is_cold"), [(OURS_FIRST, False), (PYPLOT_FIRST, False), ("opo", True)]
)
def test_every_plot_cell_of_a_notebook_shows_one_image(
    cells: str, is_cold: bool, tmp_path: Path
) -> None:
    sources = [SETUP, *(CELLS[kind] for kind in cells)]
    make: Any = nbformat.v4
    notebook = make.new_notebook(cells=[make.new_code_cell(source) for source in sources])
    # Without stored kernels the first cell that plots compiles them.
    env = os.environ | ({"NUMBA_CACHE_DIR": str(tmp_path / "kernels")} if is_cold else {})
    NotebookClient(notebook, timeout=600).execute(env=env)
    images = [
        sum("image/png" in getattr(output, "data", {}) for output in cell.outputs)
        for cell in notebook.cells[1:]
    ]
    assert images == [1] * len(cells)
    assert (tmp_path / "kernels").exists() == is_cold

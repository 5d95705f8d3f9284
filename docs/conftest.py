"""How pytest runs the documentation: the code on the pages, and not the scripts themselves."""

from collections.abc import Iterator

import pytest

# tests/docs runs the scripts; importing them would write files. Only Sphinx imports conf.py,
# which changes sys.path.
collect_ignore = ["conf.py", "figures.py", "first_comparison.py", "first_modes.py"]


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close the figures of a page, as Matplotlib warns when many are open."""
    yield
    from matplotlib import pyplot as plt

    plt.close("all")

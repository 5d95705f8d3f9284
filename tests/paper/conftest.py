"""The columns of the experiment that a test module imports as `paper`."""

import pytest
from tests.paper import cases

from bayescontrol.lab import Columns


@pytest.fixture(scope="module")
def columns(request: pytest.FixtureRequest) -> Columns:
    """Columns of small replicas; see `cases`."""
    return cases.columns(request.module.paper.experiment.name)

"""A replica of a shipped experiment does not depend on the number of replicas."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bayescontrol.lab.discovery import find, names
from bayescontrol.lab.experiment import Columns, Experiment

OURS = [name for name in names() if find(name).run.__module__.startswith("bayescontrol.")]


def as_bytes(columns: Columns) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in columns.items()}


def depends_on_runs(experiment: Experiment[Any]) -> bool:
    few, many = (replace(experiment.quick, runs=runs) for runs in (2, 3))
    return as_bytes(experiment.run(few, 1)) != as_bytes(experiment.run(many, 1))


@pytest.mark.parametrize("name", OURS)
def test_a_replica_does_not_depend_on_the_number_of_runs(name: str) -> None:
    assert not depends_on_runs(find(name))


def test_dependence_on_the_number_of_runs_is_detected(study: Path) -> None:
    assert depends_on_runs(find(f"{study.with_name('paced_study.py')}:impure"))

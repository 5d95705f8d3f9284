"""An experiment at one setting, as the disk knows it, and whether a folder is its own.

key = sha256(name, settings without runs)
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Experiment
from bayescontrol.lab.manifest import Manifest, NoResults, read_manifest
from bayescontrol.lab.provenance import Git, Made, git_state, made_here, source_of
from bayescontrol.lab.settings import key, plain

_log = logging.getLogger(__name__)


class OtherResults(BayesControlError, ValueError):
    """The folder belongs to another experiment, or to other settings.

    >>> issubclass(OtherResults, ValueError)
    True
    """


@dataclass(frozen=True)
class Study:
    """An experiment at one setting, as a store knows it; `found` is what `find` opens again.

    >>> Study("chain", "chain", {"seed": 0, "runs": 10}, "5e1f").runs
    10
    """

    name: str
    found: str
    settings: dict[str, Any]
    key: str
    made: Made | None = None
    git: Git | None = None

    @classmethod
    def of(cls, experiment: Experiment[Any], settings: Any, found: str = "") -> Self:
        """The study of an experiment; `found` is its name unless it came from a file."""
        return cls(
            experiment.name,
            found or experiment.name,
            plain(settings),
            key(experiment.name, settings),
            made_here(experiment.run),
            git_state(source_of(experiment.run)),
        )

    @property
    def runs(self) -> int:
        """The number of runs that is asked for."""
        return int(self.settings["runs"])

    def way_out(self) -> str:
        """The end of a complaint about a folder that is not this study's."""
        return f"not {self.name} with {self.settings}: name another folder, or remove this one"


def manifest_of(folder: Path, study: Study) -> Manifest | None:
    """The manifest of a folder that is the study's; None if it has none that can be read.

    >>> manifest_of(Path("no-such-folder"), Study("chain", "chain", {}, "5e1f")) is None
    True
    """
    try:
        manifest = read_manifest(folder)
    except NoResults as error:
        if (folder / "manifest.json").exists():
            _log.warning("%s; it is written anew", error)
        return None
    if not isinstance(manifest, Manifest):
        raise OtherResults(f"{folder} holds several results, {study.way_out()}")
    if manifest.key != study.key:
        there = f"{manifest.experiment} with {manifest.settings}"
        raise OtherResults(f"{folder} holds {there}, {study.way_out()}")
    return manifest

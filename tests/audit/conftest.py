"""The exported folder of all worlds, and predictors that answer as both references do."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bayescontrol.audit import AgentPredictor, Transcript, World, export_worlds
from bayescontrol.baselines.naive import NaiveMixture

Between = Callable[[World, float], Any]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    export_worlds(folder)
    return folder


class _Between:
    """(1 - share) · control rule + share · naive mixture, by agents of the library."""

    def __init__(self, world: World, share: float) -> None:
        self.share = share
        self.rule = AgentPredictor(world.agent(), world)
        self.naive = AgentPredictor(world.agent(kind=NaiveMixture), world)

    def answers(self, histories: Sequence[Transcript], symbols: Sequence[Any]) -> Any:
        pairs = zip(
            self.rule.answers(histories, symbols),
            self.naive.answers(histories, symbols),
            strict=True,
        )
        return [
            {s: (1 - self.share) * p.get(s, 0.0) + self.share * q.get(s, 0.0) for s in symbols}
            for p, q in pairs
        ]


@pytest.fixture(scope="session")
def between() -> Between:
    return _Between

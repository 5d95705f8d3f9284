"""A second score of the same runs, as a world of its own.

A process answers with one score per run. It writes the second one to a file in a folder that the
request names, so that slow contestants need not play the same runs twice.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.arena.contest import Contestant, Result, World, play_all

from bayescontrol.lab.progress import Progress


def play_for_two_scores(
    pairs: Sequence[tuple[World, Contestant]],
    second_world: Callable[[str], str | None],
    quick: bool,
    seed: int,
    progress: Progress,
) -> Iterator[Result]:
    """Play all pairs; yield each result, and after it that of the second score.

    `second_world(world)` is the name of the world of the second score, None if there is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        for result in play_all(pairs, quick, seed, progress, {"folder": folder}):
            yield result
            if name := second_world(result.world):
                scores = [
                    float(_file(folder, result.world, result.contestant, run).read_text())
                    for run in range(len(result.scores))
                ]
                yield replace(result, world=name, scores=tuple(scores))


def write_second_score(request: Mapping[str, Any], run: int, score: float) -> None:
    """Store the second score of a run, if the request names a folder."""
    if "folder" in request:
        file = _file(request["folder"], request["world"], request["player"], run)
        file.write_text(repr(score))


def _file(folder: str, world: str, player: str, run: int) -> Path:
    return Path(folder) / f"{world}, {player}, {run}.txt"

"""Does a transformer learn to take its own actions for evidence? That depends on its lessons.

A small decoder-only transformer is trained from the same random weights on factual lessons (the
expert acts and is imitated) and on counterfactual lessons (a coin acts, the expert advises), each
of all worlds. The first token of a history names the world. Both networks are then audited, as any
other predictor: λ = 0 is the control rule, λ = 1 the naive mixture. PyTorch runs in a process and
an environment of its own (`benchmarks/peers/transformer.txt`).

    python -m benchmarks.transformer             minutes on two cores
    python -m benchmarks.transformer --quick     a smoke run: too few lessons for a verdict
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from benchmarks.peers.environments import NotInstalled
from benchmarks.peers.process import Process, start

from bayescontrol._arrays import IntArray
from bayescontrol.audit import (
    WORLDS,
    Batched,
    Lessons,
    Transcript,
    World,
    audit,
    counterfactual_lessons,
    factual_lessons,
)

CHOSEN: Final = "two-hypotheses", "prize-or-frog", "liar"
LESSONS: Final[dict[str, Callable[..., Lessons]]] = {
    "factual": factual_lessons,
    "counterfactual": counterfactual_lessons,
}


class Tokens:
    """The numbers of the tokens: the worlds, then the symbols of each world.

    >>> tokens = Tokens([WORLDS["two-hypotheses"]])
    >>> tokens.count, tokens.first("two-hypotheses", 0), tokens.first("two-hypotheses", 1)
    (5, 1, 3)
    """

    def __init__(self, worlds: Sequence[World]) -> None:
        self.names = [world.name for world in worlds]
        self.count = len(worlds)
        self._first: dict[tuple[str, int], int] = {}
        for world in worlds:
            for turn, alphabet in enumerate((world.actions, world.observations)):
                self._first[world.name, turn] = self.count
                self.count += len(alphabet)

    def first(self, world: str, turn: int) -> int:
        """The token of the first action (turn 0) or of the first observation (turn 1)."""
        return self._first[world, turn]

    def numbered(self, world: str, symbols: IntArray) -> IntArray:
        """Return the tokens of actions and observations, which take turns along each row."""
        first = [self.first(world, t % 2) for t in range(symbols.shape[1])]
        return symbols + np.array(first, np.int64)

    def inputs(self, world: str, symbols: IntArray) -> IntArray:
        """Return the tokens after that of the world."""
        names = np.full((len(symbols), 1), self.names.index(world))
        return np.hstack([names, self.numbered(world, symbols)])


def train(process: Process, kind: str, worlds: Sequence[World], sizes: Any) -> dict[str, Any]:
    """Train the network of the process on lessons of one kind, from all worlds."""
    tokens, symbols, targets = Tokens(worlds), [], []
    for number, world in enumerate(worlds):
        seed = sizes.seed + number
        lessons = LESSONS[kind](world, sizes.lessons, steps=sizes.steps, seed=seed)
        symbols.append(tokens.inputs(world.name, lessons.symbols[:, :-1]))
        targets.append(tokens.numbered(world.name, lessons.targets))
    return process.ask(
        {
            "symbols": np.vstack(symbols).tolist(),
            "targets": np.vstack(targets).tolist(),
            "tokens": tokens.count, "epochs": sizes.epochs, "seed": sizes.seed,
        }
    )  # fmt: skip


def as_predictor(process: Process, worlds: Sequence[World]) -> Batched:
    """Return the network of the process as a predictor of the symbols that can come next."""
    tokens = Tokens(worlds)

    def answers(histories: Sequence[Transcript]) -> list[dict[str, float]]:
        world, turn = WORLDS[histories[0].world], len(histories[0]) % 2
        alphabets = world.actions, world.observations
        rows = [
            [alphabets[t % 2].index(symbol) for t, symbol in enumerate(history.symbols)]
            for history in histories
        ]
        symbols = np.array(rows, np.int64).reshape(len(rows), -1)
        asked = {"symbols": tokens.inputs(world.name, symbols).tolist()}
        first = tokens.first(world.name, turn)
        p = np.array(process.ask(asked)["probabilities"])
        p = p[:, first : first + len(alphabets[turn])]
        p /= p.sum(1, keepdims=True)  # without the symbols that cannot come next
        return [dict(zip(alphabets[turn], row, strict=True)) for row in p.tolist()]

    return Batched(answers)


def run(sizes: Any) -> dict[str, Any]:
    """Train and audit one network for each kind of lessons; return all numbers."""
    with ThreadPoolExecutor(len(LESSONS)) as threads:  # each waits for a process of its own
        results = list(threads.map(lambda kind: train_and_audit(kind, sizes), LESSONS))
    return {"settings": vars(sizes), "results": results}


def train_and_audit(kind: str, sizes: Any) -> dict[str, Any]:
    """Train and audit one network; return its numbers."""
    worlds = [WORLDS[name] for name in sizes.worlds]
    with start("benchmarks.peers.transformer", "transformer") as process:
        training = train(process, kind, worlds, sizes)
        seconds = training["cpu_seconds"]
        print(f"{kind}: trained in {seconds:.0f} s of CPU time", file=sys.stderr, flush=True)
        predictor = as_predictor(process, worlds)
        found = audit(predictor, worlds, steps=sizes.steps, runs=sizes.runs, seed=sizes.seed)
    return {"lessons": kind, "training": training, "audit": found.as_object()}


def print_table(found: dict[str, Any]) -> None:
    """Print a line for each kind of lessons, world and kind of histories."""
    print("| lessons | world | histories | index λ (95 % interval) | residual share | verdict |")
    print(6 * "|---" + "|")
    for result in found["results"]:
        for row in result["audit"]:
            cells = [
                result["lessons"], row["world"], row["histories"],
                f"{row['index']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
                f"{row['residual']:.3f}", row["verdict"],
            ]  # fmt: skip
            print(f"| {' | '.join(cells)} |")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, audit and print; return 1 if PyTorch cannot be installed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=sorted(WORLDS), default=list(CHOSEN))
    parser.add_argument("--lessons", type=int, default=40_000, help="lessons of each world")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=6, help="steps of a lesson and of a run")
    parser.add_argument("--runs", type=int, default=200, help="runs of the audit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds")
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")
    sizes = parser.parse_args(arguments)
    if sizes.quick:
        sizes.lessons, sizes.epochs, sizes.steps, sizes.runs = 2_000, 2, 3, 40
    try:
        found = run(sizes)
    except NotInstalled as reason:
        print(f"PyTorch cannot be used: {reason}", file=sys.stderr)
        return 1
    if sizes.json:
        print(json.dumps(found, indent=1))
    else:
        print_table(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Processor time of one call from Python: `python -m benchmarks.steps [--base COMMIT]`.

With `--base` the same calls are measured with the library of an older commit, in processes that
take turns with those of this tree; the ratio is new over old, so below 1 is faster. `--only WORD`
measures the rows with this word, `--json FILE` writes the numbers.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

ROOT: Final = Path(__file__).resolve().parents[1]
ROUNDS: Final = 5
#: The first program of a new machine, and the command that compiles all common kernels.
PROGRAMS: Final = {
    "first interact on a new machine": "import bayescontrol as bc; b = bc.BernoulliBandit(3); "
    "bc.interact(b.agent(), b.environment([0.2, 0.5, 0.8]), 500, seed=1)",
    "warm_up() on a new machine": "import bayescontrol as bc; bc.warm_up()",
}


def microseconds(call: Callable[[], object], before: int = 0) -> float:
    """Return the processor time of a call: the median of rounds, after `before` calls."""
    for _ in range(before + 1):
        call()
    calls, taken = 1, 0.0
    while taken < 0.02:
        calls *= 2
        start = time.process_time()
        for _ in range(calls):
            call()
        taken = time.process_time() - start
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(calls):
            call()
        times.append((time.process_time() - start) / calls)
    return float(np.median(times)) * 1e6


def _turns(agent: Any, respond: Callable[[Any], Any]) -> Callable[[], None]:
    """Return a call that acts with an agent and observes the answer."""
    rng = _stream()

    def step() -> None:
        a = agent.act(rng)
        agent.observe(a, respond(a))

    return step


def _stream() -> Any:
    from bayescontrol import Stream

    return Stream(1)


def _coin(p: Any) -> Callable[[int], int]:
    """Return a function that draws the reward of an arm."""
    generator = np.random.default_rng(0)
    tosses, count = generator.random(10_000).tolist(), [0]

    def respond(a: int) -> int:
        count[0] += 1
        return int(tosses[count[0] % 10_000] < p[a])

    return respond


def bandits() -> Iterator[tuple[str, float]]:
    """Yield the costs of Bernoulli arms, with NumPy beside them."""
    from bayescontrol import BernoulliBandit

    generator = np.random.default_rng(0)
    step = _turns(BernoulliBandit(10).agent(), _coin(np.linspace(0.1, 0.9, 10)))
    yield "act and observe, 10 arms", microseconds(step, 500)
    for arms in (1_000, 10_000, 100_000):
        agent, ones = BernoulliBandit(arms).agent(), np.ones(arms)
        if arms <= 10_000 or not _is_quadratic():
            yield f"act, {arms:,} arms", microseconds(partial(agent.act, _stream()))
        yield f"the same by NumPy, {arms:,} arms", microseconds(partial(_draw, generator, ones))
    for arms in (10, 100, 1_000):
        agent = BernoulliBandit(arms).agent()
        step = _turns(agent, _coin(generator.random(arms)))
        base = microseconds(step, 200)

        def both(agent: Any = agent, step: Callable[[], None] = step) -> None:
            step()
            agent.action_probabilities()

        yield f"exact P(a), {arms:,} arms", microseconds(both) - base


def _draw(generator: np.random.Generator, ones: Any) -> int:
    """Draw all arms with NumPy."""
    return int(np.argmax(generator.beta(ones, ones)))


def _is_quadratic() -> bool:
    """Tell whether drawing from 10,000 arms takes so long that 100,000 would take minutes."""
    from bayescontrol import BernoulliBandit

    agent, rng = BernoulliBandit(10_000).agent(), _stream()
    agent.act(rng)
    start = time.process_time()
    agent.act(rng)
    return time.process_time() - start > 0.01


def finite() -> Iterator[tuple[str, float]]:
    """Yield the costs of finite classes of ten modes."""
    from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
    from bayescontrol.finite.tabular import random_modes

    table = random_modes(10, situations=3, actions=3, seed=1).agent()
    yield "act and observe, 10 modes of a table", microseconds(_turns(table, lambda _a: 0))

    def lever(good: int) -> Any:
        return DiscreteMode(
            lambda _x: {good: 1.0},
            lambda _x, a: {1: 0.8, 0: 0.2} if a == good else {1: 0.3, 0: 0.7},
        )

    levers: Any = ControlRule(FiniteBelief([lever(i) for i in range(10)]))
    step = _turns(levers, _coin([0.3] * 9 + [0.8]))
    yield "act and observe, 10 modes of a user", microseconds(step)


def changing() -> Iterator[tuple[str, float]]:
    """Yield the costs of ten arms that change, with answers in time and one decision late."""
    from bayescontrol import BernoulliBandit

    problem, respond = BernoulliBandit(10).changing(), _coin(np.linspace(0.1, 0.9, 10))
    yield "changing, 10 arms", microseconds(_turns(problem.agent(), respond), 1_000)
    agent, rng, last = problem.agent(), _stream(), list[Any]()

    def late() -> None:
        a = agent.act(rng)
        last.append((a, agent.belief.decision))
        if len(last) > 1:
            before, decision = last.pop(0)
            agent.learn(None, before, respond(before), decision=decision)

    yield "changing, 10 arms, one answer late", microseconds(late, 300)


def banks() -> Iterator[tuple[str, float]]:
    """Yield the costs of banks of plants."""
    from benchmarks.bank import make_bank

    from bayescontrol.alarms import Guarded, LinearPredictor, RestartedAlarm
    from bayescontrol.bank import Bank

    def cost(bank: Any, agent: Any, before: int = 500) -> float:
        world, rng, y = bank.environment("3"), _stream(), list[Any]()
        for _ in range(2_000):  # answers are recorded, so that the world is not measured
            y.append(world.respond(np.zeros(2), rng))
        count = [0]

        def respond(_u: Any) -> Any:
            count[0] += 1
            return y[count[0] % 2_000]

        return microseconds(_turns(agent, respond), before)

    large, small = make_bank(20), make_bank(4)
    yield "bank of 20 modes", cost(large, large.agent())
    hazard = Bank(large.modes, setpoint=[1.0, 0.0], hazard=0.01, same_states=True)
    yield "bank of 20 modes, hazard", cost(hazard, hazard.agent())
    yield "bank of 4 modes", cost(small, small.agent())
    for steps in (500, 2_500):
        alarm = RestartedAlarm(LinearPredictor(), mean_time=1e12)
        guarded = cost(small, Guarded(small.agent(), alarm), steps)
        yield f"bank of 4 modes, guarded, after {steps:,} steps", guarded


def durable() -> Iterator[tuple[str, float]]:
    """Yield the processor time of a durable decision or observation."""
    from bayescontrol import BernoulliBandit
    from bayescontrol.durable import open_agent

    with (
        tempfile.TemporaryDirectory() as folder,
        open_agent(f"sqlite:///{folder}/shop.db", "shop", BernoulliBandit(10), seed=1) as agent,
    ):
        step = lambda: agent.observe(agent.act().id, 1)  # noqa: E731 - a call of one line
        yield "durable act or observe", microseconds(step, 100) / 2


GROUPS: Final = (bandits, finite, changing, banks, durable)


def measure(only: str) -> dict[str, float]:
    """Measure the library that this process imports; return microseconds by name."""
    found: dict[str, float] = {}
    for group in GROUPS:
        if not only or only in group.__name__:
            found |= dict(group())
    return found


def compile_times(path: str) -> dict[str, float]:
    """Return the processor time in microseconds of the programs, each with an empty cache."""
    found = {}
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as cache:
            before = os.times()
            environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": cache}
            failed = subprocess.run(
                [sys.executable, "-c", program], env=environment, capture_output=True, check=False
            ).returncode
            after = os.times()
        spent = after.children_user + after.children_system
        spent -= before.children_user + before.children_system
        found[name] = float("nan") if failed else spent * 1e6
    return found


def child(tree: Path, only: str) -> dict[str, float]:
    """Measure the library of a tree in a process of its own."""
    path = os.pathsep.join([str(tree / "src"), str(tree)])
    found: dict[str, float] = json.loads(
        subprocess.run(
            [sys.executable, __file__, "--child", "--only", only],
            cwd=tree, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, check=True,
        ).stdout
    )  # fmt: skip
    return found | (compile_times(path) if only in "compile" else {})


def main() -> None:
    """Measure both trees in turn and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", metavar="COMMIT", help="compare with this commit")
    parser.add_argument("--only", default="", help="a group: bandits, finite, changing, banks, …")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sys.stdout.write(json.dumps(measure(options.only)))
        return
    from benchmarks.same_columns import check_out
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 120)
    with tempfile.TemporaryDirectory() as scratch:
        trees = {"now": ROOT}
        if options.base:
            trees = {"before": check_out(options.base, Path(scratch)), **trees}
        rounds = list[dict[str, dict[str, float]]]()
        for k in range(options.rounds):
            with console.status(f"round {k + 1} of {options.rounds}"):
                rounds.append({name: child(tree, options.only) for name, tree in trees.items()})
    table = Table(caption="Microseconds of processor time, median of rounds (lowest-highest).")
    for column in ("call", *trees, *(("ratio",) if options.base else ())):
        table.add_column(column, justify="left" if column == "call" else "right")
    for call in rounds[0]["now"]:
        times = {n: [one[n].get(call, float("nan")) for one in rounds] for n in trees}
        cells = [f"{np.median(t):,.4g} ({min(t):,.4g}-{max(t):,.4g})" for t in times.values()]
        if options.base:
            cells.append(f"{np.median(times['now']) / np.median(times['before']):.2f}")
        table.add_row(call, *cells)
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps(rounds, indent=1))


if __name__ == "__main__":
    main()

"""How time and memory grow with the size of a problem.

    cost ≈ c · size^k,   k fitted by least squares to logarithms, over the upper half of the sizes

`python -m benchmarks.growth` measures every row below and prints the costs, k and the exponent that
we state. It fails (exit code 1) if a fitted exponent exceeds the stated one by more than 0.15.
`--only WORD` measures the rows with this word, `--quick` leaves out the largest size, `--json FILE`
writes the numbers, and `--out docs/growth.md` writes the page with its figure.

Time is processor time of one call, the median of several rounds. Memory is the peak of what Python
and NumPy allocate to build the object and to call it once.
"""

import argparse
import datetime
import gc
import json
import platform
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.durable import MODEL, fill_log
from rich.console import Console
from rich.table import Table

from bayescontrol import BernoulliBandit, DiscreteMode, LinearBandit, Stream, TabularModes, interact
from bayescontrol.beliefs import FiniteBelief
from bayescontrol.durable import open_agent, open_store
from bayescontrol.lab import Columns, Experiment, Score, run_replicas
from bayescontrol.mdp import MDP, GibbsMDP
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Colour, Panel, Series
from bayescontrol.rule import ControlRule

TOLERANCE: Final = 0.15
#: A round has as many calls as take about this long; their time is divided by their number.
SECONDS, ROUNDS = 0.05, 5

#: What is measured: a call without arguments.
Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """A cost by size. `build(size)` returns the call to measure.

    `time` and `memory` are the stated exponents.
    """

    quantity: str
    name: str
    sizes: Sequence[int]
    build: Callable[[int], Call]
    time: float
    memory: float


@dataclass(frozen=True)
class Growth:
    """The measured costs of a row, in seconds and bytes, and the fitted exponents.

    `seconds` has the median over rounds, the lowest and the highest, for each size.
    """

    quantity: str
    name: str
    sizes: list[int]
    seconds: list[tuple[float, float, float]]
    bytes: list[int]
    time: float
    memory: float
    stated_time: float
    stated_memory: float

    @property
    def excess(self) -> float:
        """How much the worse of the two exponents exceeds its statement."""
        return max(self.time - self.stated_time, self.memory - self.stated_memory)


# -- bandits ---------------------------------------------------------------------------------------


def _bandit(arms: int, pulls: int) -> Any:
    """Return an agent whose arms have been pulled `pulls` times each, and differ."""
    wins = np.random.default_rng(0).binomial(pulls, 0.5, arms)
    prior = np.column_stack([1.0 + wins, 1.0 + pulls - wins])
    return BernoulliBandit(arms, prior=prior).agent()


def act_with_arms(arms: int, pulls: int) -> Call:
    """Draw an action."""
    return partial(_bandit(arms, pulls).act, Stream(1))


def observe_arm(arms: int) -> Call:
    """Learn a reward."""
    return partial(_bandit(arms, 20).observe, 0, 1)


def probabilities_of_arms(arms: int) -> Call:
    """Compute P(a) exactly, after one more observation."""
    agent = _bandit(arms, 20)

    def call() -> object:
        agent.observe(0, 1)
        return agent.action_probabilities()

    return call


def step_with_features(features: int) -> Call:
    """Act and learn with contexts, ten steps, after 2,000; the agent learns all scales."""
    bandit = LinearBandit(arms=2, features=features)
    world = bandit.environment(np.random.default_rng(0).normal(size=(2, features)))
    agent, streams = bandit.agent(start=world.start), (Stream(1), Stream(2))
    interact(agent, world, 2_000, streams=streams)
    return lambda: interact(agent, world, 10, streams=streams)


# -- finite classes --------------------------------------------------------------------------------


def _turns(agent: Any) -> Call:
    """Act, and observe 0 and 1 in turn."""
    rng, count = Stream(1), [0]

    def call() -> None:
        count[0] ^= 1
        agent.observe(agent.act(rng), count[0])

    return call


def step_with_tables(modes: int) -> Call:
    """Act and learn over modes in a table."""
    p = np.random.default_rng(0).uniform(0.1, 0.9, (modes, 1, 2))
    policy = np.eye(2)[p.argmax(axis=2)]
    return _turns(TabularModes(policy=policy, hypothesis=np.stack([1 - p, p], axis=3)).agent())


def step_with_modes(modes: int) -> Call:
    """Act and learn over a list of user-written modes."""

    def mode(p: float) -> Any:
        return DiscreteMode(lambda _x: {0: 1.0}, lambda _x, _a: {0: 1.0 - p, 1: p}, name=f"{p}")

    rates = np.linspace(0.1, 0.9, modes).tolist()
    call = _turns(ControlRule(FiniteBelief([mode(p) for p in rates])))
    for _ in range(15):  # Python runs the first 100,000 calls of a mode more slowly
        call()
    return call


# -- Markov decision problems ----------------------------------------------------------------------


@cache
def _torus(states: int) -> MDP:
    """A nearly square torus; each of 4 actions may lead to any of 4 neighbours; state 0 pays."""
    columns = round(states**0.5)
    rows = round(states / columns)
    x, a, to = (side.ravel() for side in np.indices((rows * columns, 4, 4)))
    row, column = np.divmod(x, columns)
    down, right = np.array([-1, 1, 0, 0])[to], np.array([0, 0, -1, 1])[to]
    y = (row + down) % rows * columns + (column + right) % columns
    p = np.where(a == to, 0.7, 0.1)
    return MDP.from_transitions(x, a, y, p, y == 0, states=rows * columns, actions=4)


def gibbs_steps(states: int, steps: int, sweep: int) -> Call:
    """Run the Gibbs agent, which has seen every transition once; a sweep of 0 is a full one."""
    mdp = _torus(states)
    agent = GibbsMDP(4, start=0, partial=sweep).agent()
    for x in mdp.states:
        for a in mdp.actions:
            for step in mdp.outcomes(x, a):
                agent.belief.observe(x, a, step)
    environment, streams = mdp.environment(0), (Stream(1), Stream(2))
    return lambda: interact(agent, environment, steps, streams=streams)


# -- production and studies ------------------------------------------------------------------------

#: The folder of logs and stores, removed at the end; and what the measurement has opened.
_FOLDER: Final = tempfile.TemporaryDirectory(prefix="growth")
_OPENED: Final = ExitStack()


def _store_at(path: str) -> Any:
    """Open a store until the end of the measurement."""
    return _OPENED.enter_context(closing(open_store(f"sqlite:///{path}", durable=False)))


@cache
def _log(events: int) -> str:
    """Return the path of a store with a log of this many events, without a snapshot."""
    path = f"{_FOLDER.name}/{events} events.db"
    fill_log(f"sqlite:///{path}", events)
    return path


def open_from_events(events: int) -> Call:
    """Copy the file and open its agent from all events."""
    path = _log(events)

    def call() -> None:
        with closing(open_store(f"sqlite:///{shutil.copy(path, path + '.copy')}")) as store:
            open_agent(store, "shop").close()

    return call


def open_from_snapshot(events: int) -> Call:
    """Open an agent of an open store from a snapshot, and close it."""
    store = _store_at(shutil.copy(_log(events), _log(events) + ".snapshot"))
    open_agent(store, "shop").close()  # which writes the snapshot
    return lambda: open_agent(store, "shop").close()


@cache
def _agents(agents: int) -> str:
    """Return the path of a store with this many agents."""
    path = f"{_FOLDER.name}/{agents} agents.db"
    with closing(open_store(f"sqlite:///{path}", durable=False)) as store:
        for i in range(agents):
            open_agent(store, f"agent {i}", MODEL, seed=i).close()
    return path


def act_in_store(agents: int) -> Call:
    """Act and observe with one agent of the store."""
    agent = _OPENED.enter_context(open_agent(_store_at(_agents(agents)), "agent 0"))
    return lambda: agent.observe(agent.act().id, 1)


def list_store(agents: int) -> Call:
    """Open the store and list its agents."""
    path = _agents(agents)

    def call() -> None:
        with closing(open_store(f"sqlite:///{path}", durable=False)) as store:
            store.names()

    return call


@dataclass(frozen=True)
class Settings:
    """The number of replicas."""

    seed: int = 0
    runs: int = 1


def _replica(settings: Settings, run: int) -> Columns:
    return {"curve": Stream.named(settings.seed, run, "curve").random(20)}


_STUDY = Experiment(
    "growth", "replicas that do little", Settings, Settings(), Settings(), _replica,
    lambda _settings, _columns: Score(()), lambda _settings, _columns: {},
)  # fmt: skip


def replicas(runs: int) -> Call:
    """Run a study of so many replicas, each with a curve of twenty points."""
    return partial(run_replicas, _STUDY, replace(Settings(), runs=runs))


# -- rows ------------------------------------------------------------------------------------------

_ARMS, _MODES = (10, 100, 1_000, 10_000, 100_000), (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_STATES, _EVENTS = (50, 200, 800, 3_200, 6_400), (1_000, 10_000, 100_000, 1_000_000)
_AGENTS, _RUNS = (10, 300, 3_000, 10_000), (100, 1_000, 10_000, 100_000)

ROWS: Final = (
    Row("arms", "act, new arms", _ARMS, partial(act_with_arms, pulls=0), 1, 1),
    Row("arms", "act, arms pulled 20 times", _ARMS, partial(act_with_arms, pulls=20), 1, 1),
    Row("arms", "observe", _ARMS, observe_arm, 0, 1),
    Row("arms", "exact P(a)", _ARMS[:4], probabilities_of_arms, 1, 1),
    Row("features", "ten steps, two arms", (10, 30, 100, 300, 1_000), step_with_features, 2, 2),
    Row("modes", "act and observe, tables", _MODES, step_with_tables, 1, 1),
    Row("modes", "act and observe, written by users", _MODES[:4], step_with_modes, 1, 1),
    Row("states", "500 Gibbs steps", _STATES, partial(gibbs_steps, steps=500, sweep=0), 1, 1),
    Row("states", "5,000 Gibbs steps, partial = 8", _STATES,
        partial(gibbs_steps, steps=5_000, sweep=8), 0, 1),
    Row("events", "open from events", _EVENTS, open_from_events, 1, 0),
    Row("events", "open from a snapshot", _EVENTS, open_from_snapshot, 0, 0),
    Row("agents", "act and observe", _AGENTS, act_in_store, 0, 0),
    Row("agents", "open the store and list", _AGENTS, list_store, 1, 1),
    Row("replicas", "run and stack", _RUNS, replicas, 1, 1),
)  # fmt: skip


# -- measuring -------------------------------------------------------------------------------------


def seconds_of(build: Callable[[int], Call], size: int) -> tuple[float, float, float]:
    """Return the processor seconds of one call: median, lowest and highest over rounds."""
    call = build(size)
    call()
    gc.collect()
    gc.disable()  # a collection would also visit the objects of earlier rows
    calls, taken = 1, 0.0
    while taken < SECONDS / 4:
        start = time.process_time()
        for _ in range(calls):
            call()
        taken = time.process_time() - start
        calls = calls if taken >= SECONDS / 4 else 2 * calls
    times = []
    for _ in range(ROUNDS if taken < 1.0 else 1):
        start = time.process_time()
        for _ in range(calls):
            call()
        times.append((time.process_time() - start) / calls)
    gc.enable()
    _OPENED.close()
    return float(np.median(times)), min(times), max(times)


def bytes_of(build: Callable[[int], Call], size: int) -> int:
    """Return the peak of memory while the object is built and called once."""
    tracemalloc.start()
    try:
        call = build(size)
        gc.collect()  # empties Python's lists of free objects, whose reuse would not be counted
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        _OPENED.close()


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Return k of cost ≈ c · size^k over the upper half of the sizes.

    >>> round(exponent([10, 100, 1000, 10000], [5, 5, 50, 5000]), 12)
    2.0
    """
    upper = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[upper:]), np.log(costs[upper:]), 1)[0])


def measure(row: Row, sizes: Sequence[int]) -> Growth:
    """Measure a row at these sizes."""
    seconds = [seconds_of(row.build, size) for size in sizes]
    memory = [bytes_of(row.build, size) for size in sizes]
    fitted = exponent(sizes, [median for median, *_ in seconds]), exponent(sizes, memory)
    return Growth(
        row.quantity, row.name, list(sizes), seconds, memory, *fitted, row.time, row.memory
    )


# -- results ---------------------------------------------------------------------------------------


def _time(seconds: float) -> str:
    unit, factor = next(
        (u, f) for u, f in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)) if seconds * f >= 1 or u == "µs"
    )
    return f"{seconds * factor:.3g} {unit}"


def _memory(count: int) -> str:
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB"


#: The colours of the lines of a panel.
COLOURS: Final[tuple[Colour, ...]] = ("blue", "vermillion", "green", "purple")
COLUMNS: Final = ("size", "what", "smallest", "largest", "k", "stated", "memory", "k", "stated")


def cells(one: Growth) -> tuple[str, ...]:
    """Return the row of the table for one growth."""
    return (
        f"{one.quantity}, {one.sizes[0]:,} to {one.sizes[-1]:,}", one.name,
        _time(one.seconds[0][0]), _time(one.seconds[-1][0]),
        f"{one.time:.2f}", f"{one.stated_time:g}",
        f"{_memory(one.bytes[0])} to {_memory(one.bytes[-1])}", f"{one.memory:.2f}",
        f"{one.stated_memory:g}",
    )  # fmt: skip


def chart(found: Sequence[Growth]) -> Chart:
    """Plot time against size, a panel for each quantity, on logarithmic axes."""
    panels = []
    for quantity in dict.fromkeys(one.quantity for one in found):
        series = []
        for one, colour in zip([g for g in found if g.quantity == quantity], COLOURS, strict=False):
            median, low, high = np.array(one.seconds).T * 1e6
            line = Series(one.name, np.array(one.sizes), median, low, high, colour=colour)
            series.append(replace(line, marker="circle"))
        title = f"by the number of {quantity}"
        panel = Panel(title, quantity, "microseconds", series, xscale="log", yscale="log")
        panels.append(replace(panel, legend="upper left"))
    return Chart(
        "How the time of a call grows",
        panels,
        "Both axes are logarithmic: a line of slope 1 is a cost in proportion to the size.",
        columns=2,
        note=f"processor time, median of {ROUNDS} rounds, bands from the lowest to the highest",
    )


START, END = "<!-- results: written by python -m benchmarks.growth -->", "<!-- end of results -->"


def write_page(path: Path, found: Sequence[Growth]) -> None:
    """Replace the results in the page, and the figure beside it."""
    before, rest = path.read_text(encoding="utf-8").split(START)
    after = rest.split(END)[1]
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        START, "",
        f"Measured on {today:%d %B %Y} with Python {platform.python_version()} on "
        f"{platform.system()}, {platform.machine()}.", "",
        f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(cells(one))} |" for one in found), "", END,
    ]  # fmt: skip
    path.write_text(before + "\n".join(lines) + after, encoding="utf-8")
    (path.parent / "_figures" / "growth.png").write_bytes(figures.png(chart(found)))


def main() -> int:
    """Measure, print and write; return 1 if a cost grows faster than stated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose quantity or name has this word")
    parser.add_argument("--quick", action="store_true", help="leave out the largest size")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the results into this page")
    options = parser.parse_args()
    console, found = Console(width=None if sys.stdout.isatty() else 140), list[Growth]()
    rows = [row for row in ROWS if options.only in f"{row.quantity}, {row.name}"]
    if not rows:
        parser.error(f"no row has the word {options.only!r}")
    for number, row in enumerate(rows, 1):
        with console.status(f"measuring: {row.quantity}, {row.name} ({number} of {len(rows)})"):
            found.append(measure(row, row.sizes[: len(row.sizes) - options.quick]))
    table = Table(
        caption=f"Time and memory of one call; k may exceed its statement by {TOLERANCE}."
    )
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:2] else "right")
    for one in found:
        table.add_row(*cells(one), style="red" if one.excess > TOLERANCE else None)
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    if options.out:
        write_page(options.out, found)
    too_fast = [one for one in found if one.excess > TOLERANCE]
    for one in too_fast:
        console.print(f"{one.quantity}, {one.name}: grows faster than stated")
    return 1 if too_fast else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run agents in the same worlds and compare them.

    run i       all agents meet the same world with the same random numbers, seed and run number i
    score       cumulative regret where the world knows its mean rewards, else the total reward
    rank        1 + the number of agents that are better by a paired test, corrected by Holm

With n runs the smallest possible p-value of the sign-flip test is 2 / 2^n; so at least 6 runs are
needed to tell two agents apart at the 5 % level.
"""

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, as_integer
from bayescontrol._support.display import html_table
from bayescontrol.errors import BadEvidence, MissingCapability, counted
from bayescontrol.interaction import interact
from bayescontrol.lab import export
from bayescontrol.lab.experiment import Table
from bayescontrol.lab.parallel import unordered
from bayescontrol.lab.progress import Silent, live
from bayescontrol.metrics import knows_means, regret, rewards
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Panel, Series
from bayescontrol.plot.runs import line_dash
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.statistics import Comparison, compare_pairs, mean_interval
from bayescontrol.statistics.intervals import format_interval

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from matplotlib.axes import Axes

#: The level of the tests; the intervals cover 1 - this.
_ALPHA: Final = 0.05
#: At most this many points of a curve are stored.
_POINTS: Final = 200


@dataclass(frozen=True, eq=False, repr=False)
class AgentComparison:
    """The scores of some agents over the same runs. It prints as a table.

    `curves` holds the cumulative score of each agent, shape (runs, points), at the steps `steps`.
    """

    score: Literal["regret", "reward"]
    steps: IntArray
    curves: Mapping[str, FloatArray]
    seed: int

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(next(iter(self.curves.values())))

    @property
    def scores(self) -> dict[str, FloatArray]:
        """The score of each agent at the end of every run."""
        return {name: curve[:, -1] for name, curve in self.curves.items()}

    @cached_property
    def tests(self) -> tuple[Comparison, ...]:
        """The paired test of each pair of agents; none for one agent or one run."""
        if len(self.curves) < 2 or self.runs < 2 or self._runs_are_identical():
            return ()
        is_reward = self.score == "reward"
        return compare_pairs(self._best_first(), higher_is_better=is_reward, alpha=_ALPHA)

    @property
    def table(self) -> Table:
        """Rank, mean and 95 % interval of each agent, the best first."""
        rows = []
        for name, values in self._best_first().items():
            mean, interval = f"{values.mean():.4g}", ""
            if self.runs > 1 and not self._runs_are_identical():
                found = mean_interval(values, alpha=_ALPHA)
                mean, low, high = format_interval(found.mean, found.low, found.high)
                interval = f"{low} to {high}"
            rows.append((self._rank(name), name, mean, interval))
        is_regret, runs = self.score == "regret", counted(self.runs, "run")
        what, better = ("Regret", "lower") if is_regret else ("Total reward", "higher")
        title = f"{what} after {self.steps[-1]:,} steps, {runs}, {better} is better"
        header = ("rank", "agent", "mean", f"{100 * (1 - _ALPHA):g} % interval")
        return Table(title, header, tuple(rows), self._note())

    def _runs_are_identical(self) -> bool:
        """Return whether nothing was random, so that more runs tell nothing."""
        return self.runs > 1 and all(not np.ptp(c, axis=0).any() for c in self.curves.values())

    def _best_first(self) -> dict[str, FloatArray]:
        """Return `scores`, ordered by their means, the best agent first."""
        sign = 1 if self.score == "regret" else -1
        return dict(sorted(self.scores.items(), key=lambda item: sign * item[1].mean()))

    def _rank(self, name: str) -> int:
        """Return 1 + the number of agents that are better than this one by a test."""
        decided = [t for t in self.tests if name in t.names and t.verdict != "undecided"]
        # The verdict is about the first of the two names: if it is worse, the second has won.
        winners = [t.names[t.verdict == "worse"] for t in decided]
        return 1 + sum(winner != name for winner in winners)

    def _note(self) -> str:
        """Explain the ranks, or why there are none."""
        count = len(self.curves)
        if self._runs_are_identical():
            return (
                "All runs are identical. If the world has random numbers of its own, pass a "
                "function with an argument `seed` that creates it."
            )
        if count <= 2:
            return "".join(map(str, self.tests))
        tests = f"paired sign-flip tests, corrected for {len(self.tests)} comparisons"
        return f"The rank is 1 + the number of agents that are better by {tests}."

    def plot(self, ax: "Axes | None" = None) -> figures.Plot:
        """Draw the mean cumulative score of each agent, ± 2 standard errors."""
        series = [
            Series.of_runs(name, self.steps, curve, dash=line_dash(k))
            for k, (name, curve) in enumerate(self.curves.items())
        ]
        title = "Cumulative regret" if self.score == "regret" else "Total reward"
        note = f"mean of {counted(self.runs, 'run')}"
        note += ", bands: ± 2 standard errors" if self.runs > 1 else ""
        return figures.draw(Panel(title, "step t", self.score, series, notes=[note]), ax)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a DataFrame with a row for each run and stored step, and a column per agent."""
        dims = {name: ["step"] for name in self.curves}
        return export.to_pandas(self.curves, dims=dims, coords={"step": self.steps})

    def __repr__(self) -> str:
        table = self.table
        rows = [table.header, *(tuple(map(str, row)) for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(line.rstrip() for line in (table.title, *lines, table.note) if line)

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        table = self.table
        return html_table(f"{table.title}. {table.note}", table.header, table.rows)


def least_runs(pairs: int) -> int:
    """Return the least number n of runs with which one of `pairs` tests can decide.

    Its smallest p-value, 2 / 2^n, must be at most `_ALPHA` / `pairs`.

    >>> least_runs(1), least_runs(3)
    (6, 7)
    """
    return math.ceil(math.log2(2 * pairs / _ALPHA))


def compare(
    agents: Mapping[str, Callable[..., Any]],
    world: Any,
    steps: int,
    runs: int = 100,
    *,
    seed: SeedLike = 0,
    reward: Callable[[Any, Any], float] | None = None,
    workers: int | None = 1,
    progress: bool = True,
) -> AgentComparison:
    """Run every agent `runs` times for `steps` steps, and compare their scores run by run.

    `agents` maps names to functions that create a new agent, such as `bandit.agent`. A function
    with an argument `world` or `start` gets the world of the run, or its first state.

    `world` is an environment, which is copied for every run, or a function that creates one. If
    the function has an argument `rng` or `seed`, it gets a `Stream`: then each run has a world of
    its own, the same for all agents.

    The score is the cumulative regret where the world knows its mean rewards, and otherwise the
    total reward. `reward(a, o)` computes the reward of a step from action and observation; it is
    needed if an observation is neither a number nor has a field `reward`.

    Two agents need at least 6 runs, and more agents need more: with fewer, no test can tell them
    apart, and `compare` raises a ValueError.

    Results depend on the seed only, not on the number of `workers`, which are processes of this
    machine; None stands for the backend of `joblib.parallel_config`, such as Dask. `progress` is
    shown on standard error.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.baselines import UCB1
    >>> bandit = BernoulliBandit(["red", "blue"])
    >>> agents = {"rule": bandit.agent, "UCB1": lambda: UCB1(["red", "blue"])}
    >>> compare(agents, bandit.environment([0.2, 0.7]), steps=500, runs=20, progress=False)
    Regret after 500 steps, 20 runs, lower is better
    rank  agent  mean  95 % interval
    1     rule   3.47  2.84 to 4.11
    2     UCB1   15.7  14.3 to 17.2
    rule is better than UCB1 by 12.2 (95 % interval 10.6 to 13.9, p = 0.0001 by sign flips,
    20 paired runs; pairing added 0 % to the variance).
    """
    steps, runs = as_integer("steps", steps, 1), as_integer("runs", runs, 1)
    workers = None if workers is None else as_integer("workers", workers, 1)
    if not isinstance(agents, Mapping):
        raise TypeError(f"agents={agents!r}: expected a dictionary {{'name': function, ...}}")
    least = least_runs(math.comb(len(agents), 2)) if len(agents) > 1 else 1
    if runs < least:
        raise ValueError(
            f"runs={runs}: at least {least} runs are needed to tell {len(agents)} agents apart. "
            "For a quick look, use fewer steps, or one agent at a time"
        )
    plan = _Plan(dict(agents), world, steps, as_seed(seed), reward)
    uses_regret = plan.validate()
    points = np.unique(np.linspace(1, steps, min(steps, _POINTS)).astype(np.int64))
    score_run = partial(plan.curves, uses_regret=uses_regret, points=points)
    curves: dict[int, FloatArray] = {}
    with (
        live("compare") if progress else nullcontext(Silent()) as shown,
        closing(unordered(score_run, range(runs), workers)) as finished,
    ):
        shown.advance(0, runs)
        for run, curve in finished:
            curves[run] = curve
            shown.advance(len(curves), runs)
    in_order = np.stack([curves[run] for run in range(runs)], axis=1)
    by_agent = dict(zip(plan.agents, in_order, strict=True))
    return AgentComparison("regret" if uses_regret else "reward", points, by_agent, plan.seed)


@dataclass(frozen=True)
class _Plan:
    """The arguments of `compare` that a run needs."""

    agents: dict[str, Callable[..., Any]]
    world: Any
    steps: int
    seed: int
    reward: Callable[[Any, Any], float] | None

    def validate(self) -> bool:
        """Raise if an argument is invalid; return whether the score is the regret."""
        if not self.agents:
            raise ValueError("agents is empty: pass {'name': function that creates an agent}")
        world = self.new_world(0)
        if world is self.new_world(0):
            raise ValueError("world() returns the same object at every call: create a new one")
        for name in self.agents:
            agent = self.new_agent(name, world)
            interact(agent, world, 0, seed=0)  # raises if they do not fit together
            learners, others = _learners(agent), _learners(self.new_agent(name, world))
            if shared := {type(learners[key]).__name__ for key in learners.keys() & others}:
                raise ValueError(
                    f"agents[{name!r}] returns the same agent or belief at every call, which would "
                    f"learn from all runs: create a new {' and '.join(sorted(shared))}"
                )
        return self.reward is None and knows_means(world)

    def new_world(self, run: int) -> Any:
        """Return the world of a run: a copy of `world`, or what the function `world` creates."""
        if hasattr(self.world, "respond") and not isinstance(self.world, type):
            try:
                return copy.deepcopy(self.world)
            except Exception as error:
                raise MissingCapability(
                    f"{self.world!r} cannot be copied ({error}): pass a function that creates it"
                ) from error
        stream = Stream.named(self.seed, run, "world")
        return _call("world", self.world, {"rng": stream, "seed": stream})

    def new_agent(self, name: str, world: Any) -> Any:
        """Create an agent; its function gets the world, or its first state, if it names them."""
        offered = {"world": world}
        if hasattr(world, "start"):
            offered["start"] = world.start
        return _call(f"agents[{name!r}]", self.agents[name], offered)

    def curves(self, run: int, uses_regret: bool, points: IntArray) -> tuple[int, FloatArray]:
        """Return `run` and the cumulative scores of all agents in it, shape (agents, points)."""
        rows = []
        for name in self.agents:
            world = self.new_world(run)
            agent = self.new_agent(name, world)
            try:
                record = interact(agent, world, self.steps, seed=self.seed, run=run)
            except Exception as error:
                error.add_note(f"agent {name!r}, run {run}, seed {self.seed}")
                raise
            scores = regret(record, world) if uses_regret else rewards(record, self.reward).cumsum()
            if not np.isfinite(scores).all():
                t = int(np.argmin(np.isfinite(scores)))
                raise BadEvidence(
                    f"agent {name!r}, run {run}: the reward of step {t + 1} is not a finite number"
                )
            rows.append(scores[points - 1])
        return run, np.stack(rows)


def _learners(agent: object) -> dict[int, object]:
    """Return the agent and the objects inside it that observe, also inside wrappers, by id."""
    found, pending = dict[int, object](), [agent]
    while pending:
        item = pending.pop()
        if isinstance(item, list | tuple):
            pending += item
        elif hasattr(type(item), "observe") and id(item) not in found:
            found[id(item)] = item
            # The prior of a changing belief does not learn.
            pending += [v for name, v in getattr(item, "__dict__", {}).items() if name != "prior"]
    return found


def _call(what: str, function: Any, offered: Mapping[str, Any]) -> Any:
    """Call a function with those of the offered arguments that it names."""
    if not callable(function):
        is_gymnasium = hasattr(function, "reset") and hasattr(function, "step")
        is_world = what == "world"
        raise MissingCapability(
            f"{what} is {function!r}: pass a function that creates a new one for every run, such "
            f"as bandit.{'draw' if is_world else 'agent'} without parentheses"
            + (", or an environment, such as bandit.environment([0.2, 0.7])" * is_world)
            + ("; wrap a Gymnasium environment in bayescontrol.gym.Continuing" * is_gymnasium)
        )
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions written in C have none
        return function()
    arguments = {name: value for name, value in offered.items() if name in signature.parameters}
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise MissingCapability(
            f"{what} cannot be called ({error}): it may have no required arguments but "
            f"{' or '.join(offered)}. Write lambda: … to pass others"
        ) from None
    return function(**arguments)

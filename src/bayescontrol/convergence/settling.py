"""The number of steps until the rule drops a wrong mode, by simulation.

    T_m = min{t : P(m | âo_≤t) < below}        in the world of m*

T_m is a stopping time: a run may end when all have been reached, and a longer horizon never
changes it. The weight may rise again later, but rarely far: the odds P(m)/P(m*) are a
supermartingale, so from below/n they return to `below` with probability at most 1/n. A run that has
not reached T_m by the horizon counts as the horizon; the mean is then a lower bound and is reported
as such.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import BoolArray, IntArray, as_integer, require_between
from bayescontrol.convergence.core import World
from bayescontrol.errors import MissingCapability, counted
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.finite.tabulate import tabulate
from bayescontrol.interaction import both_streams
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Every, every_step
from bayescontrol.seeding import SeedLike, as_seed
from bayescontrol.statistics import mean_and_error

#: Maximum number of modes in a repr, the slowest first.
_SHOWN = 8


class SettlingTime(NamedTuple):
    """T_m of one mode over the runs, in steps. If `unfinished` > 0, the mean is a lower bound.

    >>> SettlingTime("lever 2", 41.2, 2.1, (20.0, 35.0, 80.0), 0.0, 1000, tied=False)
    lever 2: 41.2 ± 2.1 steps; half of the runs by 35, nine in ten by 80
    """

    name: str
    #: E min(T, horizon) and its standard error, in steps.
    mean: float
    error: float
    #: The steps by which 10, 50 and 90 % of the runs had dropped the mode; may be infinite.
    quantiles: tuple[float, float, float]
    #: The share of runs that had not dropped the mode by the horizon.
    unfinished: float
    horizon: int
    #: Whether no action of any mode separates this mode from the true one: its odds never change.
    tied: bool

    def __repr__(self) -> str:
        if self.unfinished == 1.0:
            reason = ": nothing separates it from the true mode" if self.tied else " in every run"
            return f"{self.name}: more than {counted(self.horizon, 'step')}{reason}"
        if not self.error < np.inf:  # a single run has no spread
            least = "at least " * (self.unfinished > 0.0)
            return f"{self.name}: {least}{counted(round(self.mean), 'step')} in the only run"
        time = f"{_steps(self.mean)} ± {_steps(self.error)} steps"
        if self.unfinished:
            return (
                f"{self.name}: at least {time}; more than {self.horizon} "
                f"in {self.unfinished:.3g} of the runs"
            )
        median, high = self.quantiles[1:]
        return f"{self.name}: {time}; half of the runs by {median:g}, nine in ten by {high:g}"


@dataclass(frozen=True, eq=False, repr=False)
class Settling:
    """T_m for every mode m in every run; NOT_YET = -1 if not reached by the horizon.

    >>> from bayescontrol.finite.chain import chain
    >>> settling_times(chain(3), true=0, hold=3)
    Settling(world of A, 200 runs, a new mode every 3 steps: steps until a weight is below 0.01)
      B: 3 ± 0 steps; half of the runs by 3, nine in ten by 3
    """

    modes: TabularModes
    true: int
    below: float
    horizon: int
    hold: int
    #: T_m, shape (runs, modes).
    first: IntArray
    #: Modes that predict like m* wherever the class can go, shape (modes,); runs do not wait for
    #: them.
    tied: BoolArray

    def of(self, m: int | str) -> SettlingTime:
        """Return T_m over the runs; the mode is given by index or name."""
        m = self.modes.place(m)
        times = self.first[:, m]
        unfinished = times == kernels.tabular.NOT_YET
        mean, error = mean_and_error(np.where(unfinished, self.horizon, times))
        dropped = np.where(unfinished, np.inf, times)
        low, half, high = np.quantile(dropped, (0.1, 0.5, 0.9), method="inverted_cdf").tolist()
        return SettlingTime(
            name=self.modes.name(m), mean=float(mean), error=float(error),
            quantiles=(low, half, high), unfinished=float(unfinished.mean()), horizon=self.horizon,
            tied=bool(self.tied[m]),
        )  # fmt: skip

    def __repr__(self) -> str:
        schedule = "" if self.hold == 1 else f", a new mode every {self.hold} steps"
        others = [m for m in range(len(self.modes)) if m != self.true]
        times = sorted(map(self.of, others), key=lambda time: (-time.unfinished, -time.mean))
        lines = [f"  {time!r}" for time in times[:_SHOWN]]
        if len(times) > _SHOWN:
            lines.append(f"  … and {len(times) - _SHOWN} faster ones")
        if early := sum(self.modes.prior[m] < self.below for m in others):
            modes = counted(int(early), "mode")
            lines.append(f"  {modes} with prior below {self.below:g}: T = 0, use a lower `below`")
        head = (
            f"Settling(world of {self.modes.name(self.true)}, {counted(len(self.first), 'run')}"
            f"{schedule}: steps until a weight is below {self.below:g})"
        )
        return "\n".join([head, *lines])


def settling_times(
    modes: object,
    true: int | str,
    *,
    below: float = 0.01,
    runs: int = 200,
    horizon: int = 10_000,
    hold: int | None = None,
    seed: SeedLike = 0,
) -> Settling:
    """Simulate T_m = min{t : P(m | âo_≤t) < below} for every mode m, in the world of mode `true`.

    `modes` is anything that `tabulate` accepts: tables, a list of modes, or an agent; `true` is the
    index or name of a mode. The rule draws a mode at every step; with `hold` = k it keeps each for
    k steps, like the schedule Every(k). The default is the schedule of the agent. Run r of tables
    equals `interact(modes.agent(), ..., run=r)`. Choose `below` well under the prior of every mode.

    >>> from bayescontrol.finite.chain import chain
    >>> slow, fast = (settling_times(chain(5), true=0, hold=k).of(1) for k in (1, 5))
    >>> fast.mean, abs(slow.mean - 31) < 3 * slow.error       # 2^k - 1
    (5.0, True)
    """
    seed = as_seed(seed)
    modes, agent_hold = tables_and_hold(modes)
    hold = agent_hold if hold is None else hold
    world = World(modes, true)
    m_star = world.true
    require_counts(runs=(runs, 1), horizon=(horizon, 0), hold=(hold, 1))
    require_between("below", below, 0.0, 1.0, ends="(]")
    may_be_taken = world.any_mode_takes & world.reachable[:, None]
    tied: BoolArray = ~np.asarray(world.separated_by(may_be_taken).any(-1))
    starts_below = (modes.prior < below) & (np.arange(len(modes)) != m_star)
    # A run ends when these are dropped. The odds of a tied mode never change: it is dropped at once
    # or never.
    awaited = np.flatnonzero(~tied | starts_below)
    first = np.empty((runs, len(modes)), np.int64)
    prior = modes.agent().belief.weight_arrays()
    limits = kernels.tabular.SettlingLimits(below, hold, horizon)
    for run in range(runs):
        p, q = both_streams(seed, run)
        kernels.tabular.settle(
            kernels.finite.Weights(*map(np.copy, prior)), modes.tables, modes.hypothesis[m_star],
            modes.start, kernels.random.Streams(p.state, q.state), limits, awaited, first[run],
        )  # fmt: skip
    return Settling(modes, m_star, below, horizon, hold, first, tied)


def tables_and_hold(modes: object) -> tuple[TabularModes, int]:
    """Return the tables of a class or agent, and for how many steps the agent holds a mode.

    A list of modes has no situation. For modes that depend on one, pass the agent, or
    tabulate(modes, situation, advance).

    >>> from bayescontrol.finite.chain import chain
    >>> tables_and_hold(chain(3).agent(schedule=Every(3)))[1]
    3
    """
    schedule = modes.schedule if isinstance(modes, ControlRule) else every_step
    if schedule is not every_step and not isinstance(schedule, Every):
        raise MissingCapability(
            f"cannot simulate the schedule {schedule!r}: only a new mode at every step and "
            "Every(k) are supported; pass tabulate(agent) to draw a mode at every step"
        )
    return tabulate(modes), schedule.k if isinstance(schedule, Every) else 1


def require_counts(**counts: tuple[object, int]) -> None:
    """Raise ValueError unless the counts, given as name=(value, least), are integers >= least."""
    for name, (value, least) in counts.items():
        as_integer(name, value, least)


def _steps(t: float) -> str:
    """Format a number of steps with about three digits."""
    return f"{t:.0f}" if t >= 100.0 else f"{t:.3g}"

"""How long the rule takes to drop a wrong mode, by simulation.

    T_m      = min{t : P(m | âo_≤t) < below}                  in the world of m*
    T_m^good = min{t : P(m | âo_≤s) < below for s = t … horizon}

T_m is the headline: it is a stopping time, so a run may end when it has come, and a longer
horizon never changes it. T^good looks ahead, to the end of the run, and costs all of it. The odds
P(m)/P(m*) are a supermartingale: from below/n they come back to `below` with a chance of at most
1/n, whatever the horizon. A run that has not come to T_m by the horizon counts as the horizon:
then the mean is a lower bound, and says so.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import BoolArray, FloatArray, IntArray
from bayescontrol.convergence.divergence import mode_index
from bayescontrol.convergence.worlds import World
from bayescontrol.errors import BayesControlError, InvalidPrior, MissingCapability, counted
from bayescontrol.interaction import both_streams
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.problems.tabulate import tabulate
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Every, every_step


class SettlingTime(NamedTuple):
    """T_m of one mode over the runs. Where `unfinished` > 0 the mean is a lower bound.

    >>> SettlingTime("lever 2", 41.2, 2.1, (20.0, 35.0, 80.0), 0.0, 1000, tied=False)
    lever 2: 41.2 ± 2.1 steps; half of the runs by 35, nine in ten by 80
    """

    name: str
    #: E min(T, horizon) and its standard error, in steps.
    mean: float
    error: float
    #: The steps by which 10, 50 and 90 % of the runs were there; infinite if they were not.
    quantiles: tuple[float, float, float]
    #: The share of runs that were not there by the horizon.
    unfinished: float
    horizon: int
    #: Nothing that any mode does tells it from the true one: its odds never change.
    tied: bool

    @property
    def lower_bound(self) -> bool:
        """Whether the mean is only a lower bound, as some runs had not finished."""
        return self.unfinished > 0.0

    def __repr__(self) -> str:
        if self.unfinished == 1.0:
            why = ": nothing tells it from the true mode" if self.tied else " in every run"
            return f"{self.name}: more than {counted(self.horizon, 'step')}{why}"
        if not self.error < np.inf:  # one run tells nothing of its spread
            least = "at least " * self.lower_bound
            return f"{self.name}: {least}{counted(round(self.mean), 'step')} in the only run"
        what = f"{_steps(self.mean)} ± {_steps(self.error)} steps"
        if self.lower_bound:
            return (
                f"{self.name}: at least {what}; more than {self.horizon} "
                f"in {self.unfinished:.3g} of the runs"
            )
        half, most = self.quantiles[1:]
        return f"{self.name}: {what}; half of the runs by {half:g}, nine in ten by {most:g}"


@dataclass(frozen=True, eq=False, repr=False)
class Settling:
    """T_m for every mode m in every run; NOT_YET = -1 where it had not come by the horizon.

    >>> from bayescontrol.problems.chain import chain
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
    #: T_m^good, if it was asked for; shape (runs, modes).
    for_good: IntArray | None
    #: Modes that predict as m* does wherever the class can go: the runs did not wait for them.
    tied: BoolArray

    @property
    def starts_below(self) -> BoolArray:
        """The modes that count as fallen before the first step: T_m = 0 says nothing of them.

        >>> from bayescontrol.problems.tabular import random_modes
        >>> settling_times(random_modes(3), true=0, below=0.5, runs=1).starts_below
        array([ True,  True,  True])
        """
        return np.asarray(self.modes.prior < self.below)

    def of(self, m: int | str, *, for_good: bool = False) -> SettlingTime:
        """T_m, or T_m^good, over the runs, of a mode given by its number or its name.

        >>> from bayescontrol.problems.chain import chain
        >>> settling_times(chain(3), true="A", hold=3).of("B").mean
        3.0
        """
        times = self.for_good if for_good else self.first
        if times is None:
            raise ValueError("for_good: pass for_good=True to settling_times to have it measured")
        m = mode_index(m, _names(self.modes))
        name, came = self.modes.name(m), times[:, m]
        missing = came == kernels.tabular.NOT_YET
        cut = np.where(missing, self.horizon, came).astype(np.float64)
        error = cut.std(ddof=1) / np.sqrt(len(cut)) if len(cut) > 1 else np.inf
        ranks = np.quantile(np.where(missing, np.inf, came), (0.1, 0.5, 0.9), method="inverted_cdf")
        low, half, high = (float(q) for q in ranks)
        return SettlingTime(
            name, float(cut.mean()), float(error), (low, half, high), float(missing.mean()),
            self.horizon, bool(self.tied[m]),
        )  # fmt: skip

    @property
    def means(self) -> FloatArray:
        """E min(T_m, horizon) for every mode; nan for the true one."""
        missing = self.first == kernels.tabular.NOT_YET
        return self._of_others(np.where(missing, self.horizon, self.first))

    @property
    def unfinished(self) -> FloatArray:
        """The share of runs not there by the horizon, for every mode; nan for the true one."""
        return self._of_others(self.first == kernels.tabular.NOT_YET)

    def _of_others(self, values: npt.NDArray[Any]) -> FloatArray:
        mean = np.asarray(values.mean(0), np.float64)
        mean[self.true] = np.nan
        return mean

    def __repr__(self) -> str:
        often = "" if self.hold == 1 else f", a new mode every {self.hold} steps"
        others = [m for m in range(len(self.modes)) if m != self.true]
        missing, means = self.unfinished, self.means
        shown = sorted(others, key=lambda m: (-missing[m], -means[m]))[:8]
        lines = [f"  {self.of(m)!r}" for m in shown]
        if len(others) > len(shown):
            lines.append(f"  … and {len(others) - len(shown)} faster ones")
        early = [m for m in others if self.starts_below[m]]
        if early:
            whose = "its" if len(early) == 1 else "their"
            starts = counted(len(early), "start")
            lines.append(f"  {starts} below {self.below:g}: {whose} 0 says nothing")
        runs = counted(len(self.first), "run")
        head = (
            f"Settling(world of {self.modes.name(self.true)}, {runs}{often}: "
            f"steps until a weight is below {self.below:g})"
        )
        return "\n".join([head, *lines])


def settling_times(
    modes: Any,
    true: int | str,
    *,
    below: float = 0.01,
    runs: int = 200,
    horizon: int = 10_000,
    hold: int | None = None,
    for_good: bool = False,
    seed: int = 0,
) -> Settling:
    """T_m = min{t : P(m | âo_≤t) < below} for every mode m, in the world of mode `true`.

    `modes` are tables, or whatever `tabulate` makes tables of: a list of modes, an agent; `true`
    is the number of a mode, or its name. The rule as it stands draws a mode at every step; with
    `hold` = k it keeps each for k steps, as the schedule Every(k) does, which an agent may have
    already. Run r of tables is that of `interact(modes.agent(), ..., run=r)`. With
    `for_good` all runs go on to the horizon and T^good is measured beside it. Where the prior of
    a mode is near `below` or under it, T_m says little: choose `below` well under the prior.

    >>> from bayescontrol.problems.chain import chain
    >>> slow, fast = (settling_times(chain(5), true=0, hold=k).of(1) for k in (1, 5))
    >>> fast.mean, abs(slow.mean - 31) < 3 * slow.error       # 2^k - 1
    (5.0, True)
    """
    modes, own = class_and_hold(modes)
    hold = own if hold is None else hold
    m_star = mode_index(true, _names(modes))
    for name, value, least in (("runs", runs, 1), ("horizon", horizon, 0), ("hold", hold, 1)):
        if value != int(value) or value < least:
            raise ValueError(f"{name}={value!r}: it is a whole number of at least {least}")
    if not 0.0 < below <= 1.0:
        raise ValueError(f"below={below}: a weight is between 0 and 1, 0.01 for one per cent")
    if not modes.prior[m_star] > 0.0:
        raise InvalidPrior(
            f"mode {modes.name(m_star)} is the world but has prior 0, so no evidence can favour "
            "it: give it some"
        )
    world = World(modes, m_star)
    acting = world.takes(*np.flatnonzero(modes.prior).tolist()) & world.reachable[:, None]
    tied: BoolArray = ~np.asarray(world.parted_by(acting).any(-1))
    awaited = np.flatnonzero(~tied | ((modes.prior < below) & (np.arange(len(modes)) != m_star)))
    first = np.empty((runs, len(modes)), np.int64)
    last = np.empty((runs, len(modes) if for_good else 0), np.int64)
    w, e, blocks = modes.agent().belief.weight_arrays()
    for run in range(runs):
        p, q = both_streams(seed, run)
        kernels.tabular.settle(
            w.copy(), e.copy(), blocks.copy(), modes.policy, modes.by_mode, modes.successor,
            modes.hypothesis[m_star], modes.start, p.state, q.state, below, hold, horizon,
            awaited, first[run], last[run],
        )  # fmt: skip
    return Settling(modes, m_star, below, horizon, hold, first, last if for_good else None, tied)


def class_and_hold(modes: Any) -> tuple[TabularModes, int]:
    """The tables of a class or an agent, and for how many steps the agent holds a mode.

    A list of modes comes without a situation: those that look at one need an agent, or tables.

    >>> from bayescontrol.problems.chain import chain
    >>> class_and_hold(chain(3).agent(schedule=Every(3)))[1]
    3
    """
    schedule = modes.schedule if isinstance(modes, ControlRule) else every_step
    if schedule is not every_step and not isinstance(schedule, Every):
        raise MissingCapability(
            f"the agent draws its modes by {schedule!r}: simulated are a new mode at every step, "
            "and Every(k); give tabulate(agent), whose modes are drawn at every step"
        )
    try:
        tables = tabulate(modes)
    except BayesControlError:
        raise
    except Exception as error:  # of a mode's own code
        raise MissingCapability(
            f"the modes could not be asked for their laws ({type(error).__name__}: {error}); if "
            "they look at a situation, give tabulate(modes, situation, advance), or the agent"
        ) from error
    return tables, schedule.k if isinstance(schedule, Every) else 1


def _names(modes: TabularModes) -> list[str]:
    return [modes.name(m) for m in range(len(modes))]


def _steps(t: float) -> str:
    return f"{t:.0f}" if t >= 100.0 else f"{t:.3g}"

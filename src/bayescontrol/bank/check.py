"""Check a bank of plant models before it runs: costs, evidence, times and violated limits.

    cost       J(c, j): mean of (y - r)ᵀQ (y - r) + (u - u_r)ᵀR (u - u_r) per step, controller of c
               on plant j, where u_r is the input of plant j in the steady state at the setpoint r
    rate       nats per second that distinguish plant j, which is true, from plant i
    time       mean of the first time T at which Λ = Σ ln P(y | j) - ln P(y | i) reaches ln(odds)
    violation  probability that the output leaves its limits until then

Costs and rates of linear loops are computed (`linear_loop`), also around an operating point. Those
of other loops are simulated: loops with other controllers or models, unstable loops, and loops that
reach the limits of the actuator. Times and violations are always simulated. A run that has not
reached the odds at the horizon h, in a loop with constant signals and a computed rate, is completed
by Wald's identity:

    E[T | T > h] = h + (ln(odds) - Λ_h) / rate

This ignores that Λ_T is a little above ln(odds). In other loops, unfinished runs count as T = h.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescontrol._arrays import ArrayLike, BoolArray, FloatArray, as_integer, require_between
from bayescontrol.bank.bank import Bank
from bayescontrol.bank.linear_loop import DIVERGED, LinearLoop, is_linear
from bayescontrol.bank.plant_mode import FilterMode
from bayescontrol.bank.state_space import as_covariance
from bayescontrol.errors import MissingCapability
from bayescontrol.lqr.matrices import as_limits
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Heat, Panel, Word
from bayescontrol.protocols import SituatedState
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.statistics import mean_interval

#: The actuator reaches its limits if they are within this number of standard deviations.
MARGIN = 3.0
#: With constant signals, a loop is unstable if the cost grows by this factor between the last
#: quarters of simulated runs.
GROWTH = 4.0
#: Log-likelihoods with this relative difference are equal, and rates in nats per step below this
#: are zero.
ROUNDING, NO_RATE = 1e-9, 1e-9
#: A loop without noise has a limit cycle if the output crosses its centre this number of times in
#: the last quarter, with at least this share of its range in the third quarter.
CROSSINGS, SUSTAINED = 4, 0.5
#: The number of runs from which costs and rates are estimated.
AVERAGED = 40


@dataclass(frozen=True, eq=False)
class BankCheck:
    """What a bank can be expected to do; see `check_bank`.

    Arrays have the axes (controller, true plant) or (controller, true plant, other plant). Times
    are in seconds, rates in nats per second. A time is a lower bound if `unfinished`, the share of
    runs that did not reach the odds within the horizon, is positive. It is infinite if the rate is
    0 and some run did not reach the odds, or if no run of a simulated loop did. `intervals` has the
    lower and upper 95 % bounds of each array; they are equal where the result was computed.
    `simulated` says where costs and rates were not.

    >>> from bayescontrol.bank import Bank, PlantMode
    >>> plants = [PlantMode(([[a]], [[1.0]], [[1.0]]), [[a]], process_noise=1.0, sensor_noise=0.1)
    ...           for a in (0.5, 0.5, 0.9)]
    >>> check_bank(Bank(plants))
    BankCheck(3 modes)
    Every controller is stable on every plant.
    If m0 is true, it cannot be distinguished from m1.
    If m1 is true, it cannot be distinguished from m0.
    The slowest pair: m2, which is true, and m0: odds of 99:1 after 65.4 s on average.
    Costs and rates computed without limits of the actuator: 9 of 9 loops.
    Times: 400 runs of at most 2000 steps.
    """

    names: tuple[str, ...]
    period: float
    odds: float
    runs: int
    horizon: int
    costs: FloatArray
    rates: FloatArray
    times: FloatArray
    unfinished: FloatArray
    violations: FloatArray  #: NaN without limits of the output
    stable: BoolArray  #: without limits of the actuator, if the loop is linear
    simulated: BoolArray
    intervals: dict[str, FloatArray]
    #: [controller][plant]: "a limit cycle" or "the input at a limit" if a simulated loop with
    #: constant signals has it without noise, else "".
    behaviour: list[list[str]]
    #: Names of plants whose setpoint cannot be reached, with the reason.
    unreachable: dict[str, str]
    has_hazard: bool = False

    def pairs(self, values: FloatArray) -> FloatArray:
        """Return values[j, j, i]: with the controller of the true plant."""
        every = np.arange(len(self.names))
        return np.asarray(values[every, every])

    @property
    def indistinguishable(self) -> list[tuple[str, str]]:
        """Pairs (true, other) with infinite times under the controllers of both modes."""
        never, names = np.isinf(self.times), self.names
        pairs = np.ndindex(len(names), len(names))
        return [(names[j], names[i]) for j, i in pairs if never[j, j, i] and never[i, j, i]]

    @property
    def unstable(self) -> list[tuple[str, str]]:
        """Pairs (controller, plant) with an unstable loop."""
        return [(self.names[c], self.names[j]) for c, j in np.argwhere(~self.stable)]

    def exit_code(self, strict: bool = False) -> int:
        """Return the exit code of `bayescontrol check`; 0 if the check found no problem.

        13: a controller is unstable on its own plant. 12: two plants cannot be distinguished. 14,
        only if `strict`: a controller is unstable on the plant of another mode.
        """
        if not self.stable.diagonal().all():
            return 13
        return 12 if self.indistinguishable else 14 if strict and self.unstable else 0

    def summary(self) -> str:
        """Return the findings in words."""
        names, pairs = self.names, self.indistinguishable
        unstable: dict[str, list[str]] = {}
        for c, j in np.argwhere(~self.stable):
            how = f" with {self.behaviour[c][j]}" if self.behaviour[c][j] else ""
            pair = f"{names[c]} on {'its own plant' if c == j else names[j]}"
            unstable.setdefault(f"Unstable pairs of controller and plant{how}", []).append(pair)
        lines = [f"{how}: {', '.join(unstable[how])}." for how in sorted(unstable)]
        lines = lines or ["Every controller is stable on every plant."]
        for name, reason in self.unreachable.items():
            lines.append(f"The setpoint of {name} cannot be reached: {reason}.")
        same = [f"If {j} is true, it cannot be distinguished from {i}." for j, i in pairs]
        lines += same or ["Every pair of plants can be distinguished."]
        for j, i in _largest(self.pairs(self.times)):
            pair = f"The slowest pair: {names[j]}, which is true, and {names[i]}"
            lines.append(f"{pair}: odds of {self.odds:g}:1 after {self.time(j, j, i)} on average.")
        for c, j, i in _largest(self.violations):
            lines.append(
                f"At worst, outputs leave their limits with probability {self.violation(c, j, i)}: "
                f"before {names[j]}, which is true, is distinguished from {names[i]}, while the "
                f"controller of {names[c]} acts."
            )
        computed = f"{(~self.simulated).sum()} of {self.simulated.size}"
        lines.append(f"Costs and rates computed without limits of the actuator: {computed} loops.")
        lines.append(f"Times: {self.runs} runs of at most {self.horizon} steps.")
        if self.simulated.any():
            lines[-1] += f" Simulated costs and rates: {min(self.runs, AVERAGED)} runs."
        if self.has_hazard:
            lines.append("The check ignores the hazard: the true plant does not change.")
        return "\n".join(lines)

    def time(self, c: int, j: int, i: int) -> str:
        """Return a time as text."""
        bound = "more than " if self.unfinished[c, j, i] > 0.0 else ""
        value = self.times[c, j, i]
        return "infinite time" if math.isinf(value) else f"{bound}{value:.3g} s"

    def violation(self, c: int, j: int, i: int) -> str:
        """Return the probability of a violation and its interval as text."""
        low, high = self.intervals["violations"][:, c, j, i]
        return f"{self.violations[c, j, i]:.3g} ({low:.2g} to {high:.2g})"

    def plot(self) -> figures.Plot:
        """Draw heat maps of costs and times."""
        named = ", ".join(f"{m + 1} {name}" for m, name in enumerate(self.names))
        panels = [
            _panel("Extra cost", "cost / best cost on the plant - 1",
                   self.costs / self.costs.min(axis=0) - 1.0,
                   "row: controller, column: plant, *: unstable", ~self.stable),
            _panel(f"Mean time to odds of {self.odds:g}:1", "seconds", self.pairs(self.times),
                   "row: true plant, column: other plant"),
        ]  # fmt: skip
        note = "Darker is worse, ∞: infinite cost, or never."
        chart = Chart("Check of a bank", panels, note, 2, named)
        return figures.Plot(figures.figure(chart, in_pyplot=True).axes[: len(panels)])

    def __repr__(self) -> str:
        return f"BankCheck({len(self.names)} modes)\n{self.summary()}"


def _largest(values: FloatArray) -> list[list[int]]:
    """Return a list with the index of the largest finite value; it is empty without a value."""
    finite = np.where(np.isfinite(values), values, -1.0)
    return np.argwhere((finite == finite.max()) & (finite >= 0.0)).tolist()[:1]


def _panel(
    title: str, label: str, values: FloatArray, note: str, marked: BoolArray | None = None
) -> Panel:
    """Return a heat map of a matrix; infinite and marked values are as dark as the largest."""
    is_marked = np.zeros(values.shape, np.bool_) if marked is None else marked
    is_dark = is_marked | np.isinf(values)
    high = float(f"{values[~is_dark & np.isfinite(values)].max(initial=1e-9):.2g}")
    shown = np.where(is_dark, high, values)
    words = [
        Word(_short(v) + "*" * int(is_marked[j, i]), i + 0.5, -j - 0.5)
        for (j, i), v in np.ndenumerate(values)
        if not np.isnan(v)
    ]
    for m in range(len(values)):
        text, end = str(m + 1), len(values) + 0.15
        words += [Word(text, -0.15, -m - 0.5), Word(text, m + 0.5, -end)]
    heat = Heat(label, shown, high, power=0.5)
    return Panel(title, "mode", "mode", [], heats=[heat], words=words, notes=[note])


def check_bank(
    bank: Bank,
    *,
    Q: ArrayLike = 1.0,
    R: ArrayLike = 1.0,
    output_limits: tuple[ArrayLike, ArrayLike] | None = None,
    odds: float = 99.0,
    runs: int = 400,
    horizon: int = 2000,
    seed: SeedLike = 0,
    progress: Callable[[int, int], object] | None = None,
) -> BankCheck:
    """Predict what controllers cost on each plant, and how fast plants are distinguished.

    Q and R are matrices, lists of weights, or one weight for all. y is the measured output. The
    cost of an input is that of its deviation from the steady state of the plant at the setpoint. If
    limits exclude this steady state, the nearest input within them counts, and the words say so.
    `progress` is called with the numbers of finished and of all runs.

    The arrays of the result have an axis for the controller that acts while plants are
    distinguished: times[j, j, i] is the time with the controller of the true plant, and
    times.max(axis=0) the worst. Worlds start in the `start` of the mode, filters too. Costs and
    rates are averages over the second half of the horizon. If signals are constant there, times may
    be longer than the horizon. Times and violations are means of `runs` simulated runs of at most
    `horizon` steps. Odds start at 1:1 and the plant does not change: the prior and the hazard of
    the bank are not used. Runs take turns, so a controller with memory of its own mixes them: use
    controllers without memory.

    >>> from bayescontrol.bank import PI, Bank, PlantMode
    >>> motor = lambda gain: PlantMode(
    ...     ([[0.7]], [[gain]], [[1.0]]), PI(kp=0.3 / gain, ki=0.1 / gain), process_noise=1.0,
    ...     sensor_noise=1.0, name=f"gain {gain:+g}")
    >>> found = check_bank(Bank([motor(4.0), motor(-4.0), motor(2.0)], setpoint=10.0))
    >>> found.costs.round(1).tolist()
    [[2.5, inf, 5.2], [inf, 2.5, inf], [3.6, inf, 2.5]]
    >>> found.pairs(found.times).round(1).tolist()          # seconds; here a sample takes 1 s
    [[nan, 2.6, 8.9], [2.7, nan, 3.4], [5.0, 2.0, nan]]
    """
    if not isinstance(bank, Bank):
        raise MissingCapability(f"{bank!r} is not a bank: pass Bank([PlantMode(…), …])")
    return _Checker(bank, Q, R, output_limits, odds, runs, horizon, seed).run(progress)


class _Checker:
    """The settings of a check, and the analysis and simulation of one loop."""

    def __init__(
        self, bank: Bank, Q: ArrayLike, R: ArrayLike, output_limits: object, odds: float, runs: int,
        horizon: int, seed: SeedLike,
    ) -> None:  # fmt: skip
        g = bank.signals
        self.bank, self.modes, self.seed = bank, bank.modes, as_seed(seed)
        self.Q = as_covariance(Q, g.outputs, "Q", power=1)
        self.R = as_covariance(R, g.inputs, "R", power=1)
        self.output_limits = None if output_limits is None else as_limits(output_limits, g.outputs)
        self.odds = require_between("odds", odds, 1.0, math.inf, ends="()")
        self.runs, self.horizon = as_integer("runs", runs, 2), as_integer("horizon", horizon, 10)
        self.half, self.is_linear = self.horizon // 2, all(map(is_linear, bank.modes))
        x, rows, event = bank.first_signals(), [], (np.zeros(g.inputs), np.zeros(g.outputs))
        for _ in range(self.horizon):
            rows.append([*x[g.setpoint], *x[g.setpoint_before], *x[g.disturbance], 1.0])
            x = bank.next_signals(x, *event)  # input and output have no effect on these signals
        self.signals = np.array(rows)
        changing = np.flatnonzero((self.signals != self.signals[-1]).any(axis=1))
        #: Steps until signals are constant, or half of the horizon if they never are.
        settled_at = int(changing.max(initial=-1)) + 1
        self.changes, self.is_settled = min(settled_at, self.half), settled_at <= self.half
        self.unreachable: dict[str, str] = {}
        self.names = tuple(mode.name or f"m{m}" for m, mode in enumerate(self.modes))
        #: u_r of each plant at each step, within the limits.
        self.steady = list(map(self.steady_inputs, self.names, self.modes))

    def steady_inputs(self, name: str, mode: FilterMode) -> FloatArray:
        """Return u_r at each step; note if the setpoint cannot be reached in the second half."""
        g, p, (low, high) = self.bank.signals, self.bank.signals.outputs, mode.limits
        columns = [*range(p), *range(2 * p, 2 * p + g.disturbances)]  # setpoint and disturbance
        levels, at = np.unique(self.signals[:, columns], axis=0, return_inverse=True)
        found = [mode.steady_state(level[:p], level[p:]) for level in levels]
        inputs = np.array([u for u, _ in found])
        for i in np.unique(at[self.half :]):
            if not found[i][1]:
                output = _shown(levels[i, :p])
                self.unreachable[name] = f"no steady state with the output {output} was found"
            elif ((inputs[i] < low) | (inputs[i] > high)).any():
                limits = f"beyond its limits {_shown(low)} and {_shown(high)}"
                self.unreachable[name] = f"it needs the input {_shown(inputs[i])}, {limits}"
        return np.asarray(np.clip(inputs, low, high)[at])

    def run(self, progress: Callable[[int, int], object] | None) -> BankCheck:
        """Analyse or simulate every controller on every plant."""
        M, cubes = len(self.modes), ("rates", "times", "unfinished", "violations")
        # Means, lower and upper bounds, for each controller, true plant and other plant.
        found = {key: np.full((3, M, M, M), np.nan) for key in cubes}
        found["costs"], (stable, simulated) = np.empty((3, M, M)), np.ones((2, M, M), np.bool_)
        behaviour = [[""] * M for _ in range(M)]
        report = progress or (lambda _finished, _all: None)
        for done, (c, j) in enumerate(np.ndindex(M, M), 1):
            results = self.analyse(c, j) if self.is_linear else {}
            simulated[c, j] = "rates" not in results
            if simulated[c, j]:  # what was computed has priority
                results = {**self.averages(c, j), **results}
                behaviour[c][j] = results.pop("behaviour")
            stable[c, j] = results.pop("stable")
            rates = np.atleast_2d(results["rates"])[0]  # without their bounds
            results |= self.times(c, j, rates, is_exact=not simulated[c, j])
            for key, values in results.items():
                found[key][:, c, j] = values
            report(done * self.runs, M * M * self.runs)
        for key in cubes:
            found[key][:, :, np.eye(M, dtype=np.bool_)] = np.nan
        return BankCheck(
            names=self.names, period=self.bank.period, odds=self.odds, runs=self.runs,
            horizon=self.horizon, behaviour=behaviour, unreachable=self.unreachable,
            has_hazard=self.bank.hazard is not None, stable=stable, simulated=simulated,
            intervals={key: values[1:] for key, values in found.items()},
            **{key: values[0] for key, values in found.items()},
        )  # fmt: skip

    def analyse(self, c: int, j: int) -> dict[str, Any]:
        """Return what can be computed about a linear loop: stability, cost and rates.

        Rates are missing if the loop is unstable, and all is missing if inputs reach their limits.
        """
        g, (low, high) = self.bank.signals, self.modes[0].limits
        found = LinearLoop(self.bank, c, j).long_run(self.signals)
        if found is None:
            has_limits = np.isfinite([low, high]).any()
            return {"stable": False} | ({} if has_limits else {"costs": math.inf})
        mean, covariance, log_det = found
        p = g.outputs
        u = slice(p, p + g.inputs)  # the columns of the inputs; standardised innovations follow
        margin = MARGIN * np.sqrt(np.diag(covariance)[u])
        if ((mean[:, u] - margin < low) | (mean[:, u] + margin > high)).any():
            return {}
        mean[:, u] -= self.steady[j]
        late = mean[self.half :]
        moments = covariance + late.T @ late / len(late)
        squares = np.diag(moments)[u.stop :].reshape(-1, p).sum(axis=1)
        surprise = 0.5 * (squares + log_det)
        rates = surprise - surprise[j]
        return {
            "stable": True,
            "costs": np.sum(self.Q * moments[:p, :p]) + np.sum(self.R * moments[u, u]),
            "rates": np.where(rates > NO_RATE, rates, 0.0) / self.bank.period,
        }

    # -- simulation -----------------------------------------------------------------------------

    def averages(self, c: int, j: int) -> dict[str, Any]:
        """Return stability, cost and rates from simulated runs until the horizon."""
        runs, costs, is_bounded = min(self.runs, AVERAGED), [], True
        evidence = np.zeros((2, runs, len(self.modes)))  # in the first and the second half
        for k, (gain, y, u) in enumerate(self.simulate(c, j, runs)):  # gain of evidence for j
            evidence[int(k >= self.half)] += gain
            error, change = y - self.signals[k, : y.shape[1]], u - self.steady[j][k]
            if not (is_bounded := bool(np.isfinite(y).all())):
                break
            costs.append(((error @ self.Q) * error).sum(1) + ((change @ self.R) * change).sum(1))
        third, fourth = np.array_split(costs[self.half :], 2)
        if not is_bounded or (self.is_settled and fourth.mean() > GROWTH * third.mean()):
            rates = np.where(evidence.any(axis=(0, 1)), math.inf, 0.0)
            return {"stable": False, "costs": math.inf, "rates": rates, "behaviour": ""}
        behaviour = self.behaviour(c, j) if self.is_settled else ""
        # A setpoint beyond the limits holds the input of a stable loop at its limit.
        is_expected = behaviour == "the input at a limit" and self.names[j] in self.unreachable
        return {
            "stable": self.is_linear or not behaviour or is_expected,
            "costs": _interval(np.mean(costs[self.half :], axis=0)),
            "rates": _interval(evidence[1] / ((self.horizon - self.half) * self.bank.period)),
            "behaviour": behaviour,
        }

    def behaviour(self, c: int, j: int) -> str:
        """Return what a loop does when the noise ends at half the horizon; "" if it settles."""
        p = self.bank.signals.outputs
        run = [np.append(y, u) for _, y, u in self.simulate(c, j, 1, self.half)]
        third, fourth = np.array_split(run[self.half :], 2)
        third, fourth, inputs = third[:, :p], fourth[:, :p], fourth[:, p:]
        if any(np.isclose(inputs, limit).all(axis=0).any() for limit in self.modes[j].limits):
            return "the input at a limit"
        size, middle = np.ptp(fourth, axis=0), 0.5 * (fourth.max(axis=0) + fourth.min(axis=0))
        crossings = np.diff(fourth > middle, axis=0).sum(axis=0)
        is_sustained = (size > SUSTAINED * np.ptp(third, axis=0)) & (crossings >= CROSSINGS)
        is_visible = size > np.sqrt(np.diag(self.modes[j].V))
        return "a limit cycle" if (is_sustained & is_visible).any() else ""

    def times(self, c: int, j: int, rates: FloatArray, is_exact: bool) -> dict[str, Any]:
        """Return times, the share of unfinished runs, and violations, from simulated runs.

        The simulation ends when no undecided pair can change: it has no rate, and its evidence has
        come to rest, after signals have had time to pass the dead times of the loop. With limits of
        the output, it goes on until they are violated.
        """
        threshold, shape, has_rate = math.log(self.odds), (self.runs, len(rates)), rates != 0.0
        evidence, steps = np.zeros((2, *shape))
        undecided, violated = np.ones(shape, np.bool_), np.full(shape, self.output_limits is None)
        undecided[:, j] = False
        memory = 2 * sum(mode.states for mode in self.modes)  # steps, no dead time is longer
        for k, (gain, y, _) in enumerate(self.simulate(c, j, self.runs), 1):
            steps += undecided
            if self.output_limits is not None:
                low, high = self.output_limits
                violated |= undecided & ((y < low) | (y > high)).any(axis=1, keepdims=True)
            evidence += gain
            undecided &= ~(evidence >= threshold)  # NaN is no evidence
            moves = has_rate | (abs(gain) > NO_RATE).any(axis=0) | (k <= self.changes + memory)
            if not (undecided & (moves | ~violated)).any():
                break
        never = undecided.any(axis=0) & ~has_rate
        if not is_exact:
            never |= undecided.all(axis=0)
        elif self.is_settled:
            rest = np.where(undecided, threshold - evidence, 0.0)[:, has_rate]
            steps[:, has_rate] += rest / (rates[has_rate] * self.bank.period)
            undecided[:, has_rate] = False
        steps[:, never] = math.inf
        found = {"times": steps * self.bank.period, "unfinished": undecided}
        if self.output_limits is not None:
            found["violations"] = violated
        return {key: _interval(values) for key, values in found.items()}

    def simulate(
        self, c: int, j: int, runs: int, noisy_steps: float = math.inf
    ) -> Iterator[tuple[FloatArray, ...]]:
        """Yield ln P(y | j) - ln P(y | m) for all m, y and u of all runs at each step."""
        rng = Stream.named(self.seed, c * len(self.modes) + j, "check").generator()
        if self.is_linear:
            steps = LinearLoop(self.bank, c, j).simulate(self.signals, runs, rng, noisy_steps)
        else:
            steps = self.simulate_modes(c, j, runs, noisy_steps)
        for log_p, y, u in steps:
            gain = log_p[:, [j]] - log_p
            gain[abs(gain) <= ROUNDING * abs(log_p)] = 0.0
            yield gain, y, u

    def simulate_modes(
        self, c: int, j: int, runs: int, noisy_steps: float
    ) -> Iterator[tuple[FloatArray, ...]]:
        """Yield ln P(y | m), y and u of all runs at each step, with the modes themselves."""
        g, modes = self.bank.signals, self.modes
        log_p, y, u = (np.zeros((runs, n)) for n in (len(modes), g.outputs, g.inputs))
        rngs = [Stream.named(self.seed, run, f"check {c} {j}") for run in range(runs)]
        worlds = [self.bank.environment(j) for _ in range(runs)]
        signals = [self.bank.first_signals()] * runs
        states = [[mode.start() for mode in modes] for _ in range(runs)]
        for k in range(self.horizon):
            if k == noisy_steps:
                for world in worlds:
                    world.silence()
            for run in np.flatnonzero(np.isfinite(y).all(axis=1)):
                x, s = signals[run], states[run]
                a = modes[c].act(SituatedState(x, s[c]), rngs[run])
                o = worlds[run].respond(a, rngs[run])
                if not (np.abs(o) < DIVERGED).all():
                    log_p[run], y[run] = 0.0, math.inf
                    continue
                for m, mode in enumerate(modes):
                    p, new = mode.step_filter(SituatedState(x, s[m]), a, o)
                    log_p[run, m], s[m] = p[0], new[0]
                y[run], u[run] = o, modes[c].limited(a)
                signals[run] = self.bank.next_signals(x, a, o)
            yield log_p, y, u


def _short(value: float) -> str:
    """Return a number in at most five characters: 0.12, 120, 1e3 or ∞."""
    if value >= 1000.0:
        return "∞" if np.isinf(value) else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{float(f'{value:.2g}'):g}"


def _shown(values: FloatArray) -> str:
    """Return numbers as text."""
    return ", ".join(f"{value:.4g}" for value in values)


def _interval(values: FloatArray | BoolArray) -> FloatArray:
    """Return the mean of the runs and its bounds; all are infinite if a value is."""
    finite, is_share = np.isfinite(values).all(axis=0), values.dtype == np.bool_
    found = mean_interval(np.where(finite, values, 0.0), method="Wilson" if is_share else "t")
    return np.where(finite, [found.mean, found.low, found.high], math.inf)

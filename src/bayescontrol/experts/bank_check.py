"""Check a bank of plant models before it runs: costs, evidence, times and violated limits.

    cost       J(c, j): mean of (y - r)ᵀQ (y - r) + uᵀR u per step, controller of c on plant j
    rate       nats per second that distinguish plant j, which is true, from plant i
    time       mean time until Λ = Σ ln P(y | j) - ln P(y | i) reaches ln(odds)
    violation  probability that the output leaves its limits until then

`linear_loop` computes the first three for linear plants with a gain or `PI`, without limits of the
actuator. Loops are simulated if they have other controllers or models, if the actuator reaches its
limits, and for times in unstable loops.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import BoolArray, FloatArray, as_integer, require_between
from bayescontrol.errors import MissingCapability
from bayescontrol.experts.bank import Bank
from bayescontrol.experts.linear_loop import LinearLoop, expected_time, is_linear
from bayescontrol.linear.matrices import as_definite, as_limits
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Heat, Panel, Word
from bayescontrol.protocols import SituatedState
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.statistics import mean_interval

#: The actuator reaches its limits if they are within this number of standard deviations.
MARGIN = 3.0
#: Outputs beyond this count as divergence, and so does a cost that grows by this factor between
#: the last quarters of simulated runs with constant signals.
DIVERGED, GROWTH = 1e12, 4.0
#: Log-likelihoods with this relative difference are equal.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class BankCheck:
    """What a bank can be expected to do; see `check_bank`.

    Arrays have the axes (controller, true plant) or (controller, true plant, other plant). Times
    are in seconds, rates in nats per second. A time is a lower bound if `unfinished`, the share of
    runs that did not reach the odds within the horizon, is positive. It is infinite if the rate is
    0, or if no simulated run reached the odds. `intervals` has the lower and upper 95 % bounds of
    each array; they are equal where the result was computed.

    >>> from bayescontrol.experts import Bank, PlantMode
    >>> plants = [PlantMode(([[a]], [[1.0]], [[1.0]]), [[a]], process_noise=1.0, sensor_noise=0.1)
    ...           for a in (0.5, 0.5, 0.9)]
    >>> check_bank(Bank(plants))
    BankCheck(3 modes)
    Every controller is stable on every plant.
    If m0 is true, it cannot be distinguished from m1.
    If m1 is true, it cannot be distinguished from m0.
    The slowest pair: m0, which is true, and m2: odds of 99:1 after 64 s on average.
    Computed without limits of the actuator: 9 of 9 loops. Simulations: 200 runs of 2000 steps.
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

    @property
    def exit_code(self) -> int:
        """The exit code of `bayescontrol check`; 0 if the check found no problem."""
        is_stable = self.stable.diagonal().all()
        return 13 if not is_stable else 12 if self.indistinguishable else 0

    def summary(self) -> str:
        """Return the findings in words."""
        names, computed = self.names, (~self.simulated).sum()
        unstable = [f"{c} on {'its own plant' if c == j else j}" for c, j in self.unstable]
        words = f"Unstable pairs of controller and plant: {', '.join(unstable)}."
        lines = [words if unstable else "Every controller is stable on every plant."]
        same = [
            f"If {j} is true, it cannot be distinguished from {i}."
            for j, i in self.indistinguishable
        ]
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
        lines.append(
            f"Computed without limits of the actuator: {computed} of {self.simulated.size} loops. "
            f"Simulations: {self.runs} runs of {self.horizon} steps."
        )
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

    def plot(self) -> Any:
        """Draw heat maps of costs and times; return the Matplotlib figure."""
        named = ", ".join(f"{m + 1} {name}" for m, name in enumerate(self.names))
        panels = [
            _panel("Extra cost", "cost / best cost on the plant - 1",
                   self.costs / self.costs.min(axis=0) - 1.0, "row: controller, column: plant"),
            _panel(f"Mean time to odds of {self.odds:g}:1", "seconds", self.pairs(self.times),
                   "row: true plant, column: other plant"),
        ]  # fmt: skip
        note = "Darker is worse, ∞: unstable or never."
        return figures.figure(Chart("Check of a bank", panels, note, 2, named))

    def __repr__(self) -> str:
        return f"BankCheck({len(self.names)} modes)\n{self.summary()}"


def _largest(values: FloatArray) -> list[Any]:
    """Return a list with the index of the largest finite value; it is empty without a value."""
    finite = np.where(np.isfinite(values), values, -1.0)
    return np.argwhere((finite == finite.max()) & (finite >= 0.0)).tolist()[:1]


def _panel(title: str, label: str, values: FloatArray, note: str) -> Panel:
    """Return a heat map of a matrix with its values; infinite ones have no colour."""
    shown = np.where(np.isfinite(values), values, np.nan)
    high = float(f"{np.nanmax(shown, initial=1e-9):.2g}")
    words = [
        Word("∞" if np.isinf(v) else f"{v:.3g}", i + 0.5, -j - 0.5)
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
    Q: npt.ArrayLike = 1.0,
    R: npt.ArrayLike = 1.0,
    output_limits: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    odds: float = 99.0,
    runs: int = 200,
    horizon: int = 2000,
    seed: SeedLike = 0,
) -> BankCheck:
    """Predict what controllers cost on each plant, and how fast plants are distinguished.

    Q and R are matrices, or numbers for multiples of the identity. y is the measured output. The
    arrays of the result have an axis for the controller that acts while plants are distinguished:
    times[j, j, i] is the time with the controller of the true plant, times.max(axis=0) the worst.
    Worlds start in the `start` of the mode, filters too. Costs and rates are averages over the
    second half of the horizon. If signals are constant there, times may be longer than the horizon.
    Output limits are checked by `runs` simulated runs of `horizon` steps.

    >>> from bayescontrol.experts import PI, Bank, PlantMode
    >>> motor = lambda gain: PlantMode(
    ...     ([[0.7]], [[gain]], [[1.0]]), PI(kp=0.3 / gain, ki=0.1 / gain), process_noise=1.0,
    ...     sensor_noise=1.0, name=f"gain {gain:+g}")
    >>> found = check_bank(Bank([motor(4.0), motor(-4.0), motor(2.0)], setpoint=10.0))
    >>> found.costs.round(1).tolist()
    [[3.0, inf, 6.7], [inf, 3.0, inf], [4.3, inf, 4.7]]
    >>> found.pairs(found.times).round(1).tolist()          # seconds; here a sample takes 1 s
    [[nan, 2.6, 9.3], [2.6, nan, 3.3], [4.9, 2.0, nan]]
    """
    if not isinstance(bank, Bank):
        raise MissingCapability(f"{bank!r} is not a bank: pass Bank([PlantMode(…), …])")
    checker = _Checker(bank, Q, R, output_limits, odds, runs, horizon, seed)
    names = tuple(mode.name or f"m{m}" for m, mode in enumerate(bank.modes))
    return BankCheck(names, bank.period, checker.odds, runs, horizon, **checker.run())


class _Checker:
    """The settings of a check, and the analysis and simulation of one loop."""

    def __init__(
        self, bank: Bank, Q: Any, R: Any, output_limits: Any, odds: float, runs: int, horizon: int,
        seed: SeedLike,
    ) -> None:  # fmt: skip
        g = bank.signals
        self.bank, self.modes, self.seed = bank, bank.modes, as_seed(seed)
        self.Q, self.R = (
            as_definite(v if np.ndim(v) else np.eye(n) * v, n, what, strictly=False)
            for v, n, what in ((Q, g.outputs, "Q"), (R, g.inputs, "R"))
        )
        self.output_limits = None if output_limits is None else as_limits(output_limits, g.outputs)
        self.odds = require_between("odds", odds, 1.0, math.inf, ends="()")
        self.threshold = math.log(self.odds)
        self.runs, self.horizon = as_integer("runs", runs, 2), as_integer("horizon", horizon, 10)
        self.is_linear = all(map(is_linear, bank.modes))
        x, rows, nothing = bank.first_signals(), [], (np.zeros(g.inputs), np.zeros(g.outputs))
        for _ in range(self.horizon):
            rows.append(np.concatenate([x[g.setpoint], x[g.setpoint_before], x[g.disturbance]]))
            x = bank.next_signals(x, *nothing)
        self.signals = np.array(rows)
        changing = np.flatnonzero((self.signals != self.signals[-1]).any(axis=1))
        last = int(changing.max(initial=-1)) + 1
        #: The step from which on signals are constant; the horizon, if that is in its second half.
        self.settled_at = last if last <= self.horizon // 2 else self.horizon

    def run(self) -> dict[str, Any]:
        """Analyse or simulate every controller on every plant."""
        M, cubes = len(self.modes), ("rates", "times", "unfinished", "violations")
        found = {key: np.full((3, M, M, M), np.nan) for key in cubes}
        found["costs"], (stable, simulated) = np.empty((3, M, M)), np.ones((2, M, M), np.bool_)
        for c, j in np.ndindex(M, M):
            results = self.analyse(c, j) if self.is_linear else {}
            simulated[c, j] = "times" not in results
            if simulated[c, j] or self.output_limits is not None:
                results = {**self.estimate(c, j), **results}
            stable[c, j] = results.pop("stable")
            for key, values in results.items():
                found[key][:, c, j] = values
        for key in cubes:
            found[key][:, :, np.eye(M, dtype=np.bool_)] = np.nan
        intervals = {key: values[1:] for key, values in found.items()}
        means = {key: values[0] for key, values in found.items()}
        return {**means, "stable": stable, "simulated": simulated, "intervals": intervals}

    def analyse(self, c: int, j: int) -> dict[str, Any]:
        """Return what can be computed about a linear loop."""
        every, g, (low, high) = range(len(self.modes)), self.bank.signals, self.modes[0].limits
        found = LinearLoop(self.modes, j, [c, *every]).long_run(self.signals)
        if found is None:
            has_limits = np.isfinite([low, high]).any()
            return {"stable": False} if has_limits else {"stable": False, "costs": math.inf}
        (mean, covariance, log_det), p = found, g.outputs
        u = slice(p, p + g.inputs)
        margin = MARGIN * np.sqrt(np.diag(covariance)[u])
        if ((mean[:, u] - margin < low) | (mean[:, u] + margin > high)).any():
            return {}
        late = mean[self.horizon // 2 :]
        moments = covariance + late.T @ late / len(late)
        squares = np.diag(moments)[u.stop :].reshape(-1, p).sum(axis=1)
        surprise = 0.5 * (squares + log_det)[1:]
        times = np.zeros((len(every), 2))
        for i in {*every} - {j}:
            pair = LinearLoop(self.modes, j, [c, j, i])
            times[i] = expected_time(pair, self.signals, self.settled_at, self.threshold)
        return {
            "stable": True,
            "costs": np.sum(self.Q * moments[:p, :p]) + np.sum(self.R * moments[u, u]),
            "rates": (surprise - surprise[j]) / self.bank.period,
            "times": times[:, 0] * self.bank.period,
            "unfinished": times[:, 1],
        }

    # -- simulation -----------------------------------------------------------------------------

    def estimate(self, c: int, j: int) -> dict[str, Any]:
        """Return means and intervals from simulated runs."""
        log_p, y, u = self.simulate_linear(c, j) if self.is_linear else self.simulate(c, j)
        error = y - self.signals[:, None, : y.shape[2]]
        cost = np.einsum("kra,ab,krb->kr", error, self.Q, error)
        cost += np.einsum("kra,ab,krb->kr", u, self.R, u)
        gain, half = log_p[:, :, j, None] - log_p, self.horizon // 2
        gain[abs(gain) <= ROUNDING * abs(log_p)] = 0.0
        costs, rates = cost[half:].mean(axis=0), gain[half:].mean(axis=0) / self.bank.period
        third, fourth = np.array_split(cost[half:], 2)
        grows = self.settled_at < self.horizon and fourth.mean() > GROWTH * third.mean()
        if grows or not np.isfinite(costs).all():
            costs[:], rates[rates != 0.0] = math.inf, math.inf
        above = np.cumsum(gain, axis=0) >= self.threshold
        is_done = above.any(axis=0)
        time = np.where(is_done, above.argmax(axis=0) + 1.0, self.horizon)
        time[:, ~is_done.any(axis=0)] = math.inf
        found = {"costs": costs, "rates": rates, "times": time * self.bank.period}
        found["unfinished"] = ~is_done
        if self.output_limits is not None:
            outside = ((y < self.output_limits[0]) | (y > self.output_limits[1])).any(axis=2)
            first = np.where(outside.any(axis=0), outside.argmax(axis=0) + 1, math.nan)
            found["violations"] = first[:, None] <= time
        intervals = {key: _interval(values) for key, values in found.items()}
        return {**intervals, "stable": np.isfinite(costs).all()}

    def simulate_linear(self, c: int, j: int) -> tuple[FloatArray, ...]:
        """Return ln P(y | m), y and u of all runs at each step, all runs at once, with limits."""
        loop = LinearLoop(self.modes, j, [c, *range(len(self.modes))])
        rng = Stream.named(self.seed, c * len(self.modes) + j, "check").generator()
        z, Sigma, found = np.tile(loop.start, (self.runs, 1)), loop.Sigma, []
        for s in self.signals:
            L, U, log_det, Sigma = loop.gains(Sigma)
            noise = rng.standard_normal((self.runs, loop.size - len(loop.start) - len(s)))
            rows = np.hstack([z, np.tile(s, (self.runs, 1)), noise])
            z, y, u, white = loop.step(rows, L, U, self.modes[0].limits)
            log_p = -0.5 * ((white**2).sum(axis=2) + log_det)[:, 1:]
            has_diverged = (abs(y) > DIVERGED).any(axis=1)
            z[has_diverged], y[has_diverged] = 0.0, math.inf
            found.append((log_p, y, u))
        return tuple(map(np.array, zip(*found, strict=True)))

    def simulate(self, c: int, j: int) -> tuple[FloatArray, ...]:
        """Return ln P(y | m), y and u of all runs at each step, with the modes themselves."""
        g, shape = self.bank.signals, (self.horizon, self.runs)
        log_p, y, u = (np.zeros((*shape, n)) for n in (len(self.modes), g.outputs, g.inputs))
        for run in range(self.runs):
            rng = Stream.named(self.seed, run, f"check {c} {j}")
            world, x = self.bank.environment(j), self.bank.first_signals()
            states = [mode.start() for mode in self.modes]
            for k in range(self.horizon):
                a = self.modes[c].act(SituatedState(x, states[c]), rng)
                o = world.respond(a, rng)
                if not (np.abs(o) < DIVERGED).all():
                    y[k:, run] = math.inf
                    break
                for m, mode in enumerate(self.modes):
                    p, s = mode.step_filter(SituatedState(x, states[m]), a, o)
                    log_p[k, run, m], states[m] = p[0], s[0]
                y[k, run], u[k, run] = o, self.modes[c].limited(a)
                x = self.bank.next_signals(x, a, o)
        return log_p, y, u


def _interval(values: Any) -> FloatArray:
    """Return the mean of the runs and its bounds; all are infinite if a value is."""
    finite, is_share = np.isfinite(values).all(axis=0), values.dtype == np.bool_
    found = mean_interval(np.where(finite, values, 0.0), method="Wilson" if is_share else "t")
    return np.where(finite, [found.mean, found.low, found.high], math.inf)

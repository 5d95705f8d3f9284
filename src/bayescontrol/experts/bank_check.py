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

from bayescontrol.arrays import FloatArray, as_integer, require_between
from bayescontrol.errors import MissingCapability
from bayescontrol.experts.bank import Bank
from bayescontrol.experts.linear_loop import LinearLoop, LongRun, expected_time, is_linear
from bayescontrol.linear.matrices import as_definite, as_limits
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Chart, Heat, Panel, Word
from bayescontrol.protocols import SituatedState
from bayescontrol.seeding import SeedLike, Stream, as_seed
from bayescontrol.statistics import mean_interval

#: The actuator reaches its limits if they are within this number of standard deviations.
MARGIN = 3.0
#: Rates in nats per step below this are zero.
NO_RATE = 1e-9
#: Outputs beyond this count as divergence, and so does a cost that grows by this factor between
#: the last quarters of simulated runs with constant signals.
DIVERGED, GROWTH = 1e12, 4.0


@dataclass(frozen=True, eq=False)
class BankCheck:
    """What a bank can be expected to do; see `check_bank`.

    Arrays have the axes (controller, true plant) or (controller, true plant, other plant). Times
    are in seconds, rates in nats per second. A time is a lower bound if `unfinished`, the share of
    runs that did not reach the odds within the horizon, is positive. `intervals` has the lower and
    upper 95 % bounds of each array; they are equal where the result was computed.

    >>> from bayescontrol.experts import Bank, PlantMode
    >>> plants = [PlantMode(([[a]], [[1.0]], [[1.0]]), [[a]], process_noise=1.0, sensor_noise=0.1)
    ...           for a in (0.5, 0.5, 0.9)]
    >>> check_bank(Bank(plants))
    BankCheck(3 modes)
    Every controller is stable on every plant.
    If m0 is true, it cannot be distinguished from m1.
    If m1 is true, it cannot be distinguished from m0.
    The slowest pair: if m0 is true, the odds against m2 reach 99:1 after 64 s on average with \
the controller of m0, the slowest one.
    Costs, rates and times are computed without limits of the actuator.
    """

    names: tuple[str, ...]
    period: float
    odds: float
    runs: int
    horizon: int
    costs: FloatArray
    rates: FloatArray
    times: FloatArray
    violations: FloatArray | None
    unfinished: FloatArray
    stable: npt.NDArray[np.bool_]  #: without limits of the actuator, if the loop is linear
    simulated: npt.NDArray[np.bool_]
    intervals: dict[str, FloatArray]

    def pairs(self, values: FloatArray) -> FloatArray:
        """Return values[j, j, i]: with the controller of the true plant."""
        every = np.arange(len(self.names))
        return np.asarray(values[every, every])

    def _without_evidence(self, rates: FloatArray) -> list[tuple[str, str]]:
        """Return the pairs that have no evidence under the controllers of either mode."""
        every = range(len(self.names))
        return [
            (self.names[j], self.names[i])
            for j in every
            for i in every
            if i != j and max(rates[j, j, i], rates[i, j, i]) * self.period <= NO_RATE
        ]

    @property
    def indistinguishable(self) -> list[tuple[str, str]]:
        """Pairs (true, other) with rate 0 under the controllers of both modes."""
        return self._without_evidence(self.rates)

    @property
    def undecided(self) -> list[tuple[str, str]]:
        """Other pairs whose simulated rates may be 0."""
        found = self._without_evidence(self.intervals["rates"][0])
        return [pair for pair in found if pair not in self.indistinguishable]

    @property
    def unstable(self) -> list[tuple[str, str]]:
        """Pairs (controller, plant) with an unstable loop."""
        return [(self.names[c], self.names[j]) for c, j in np.argwhere(~self.stable)]

    @property
    def exit_code(self) -> int:
        """The exit code of `bayescontrol check`; 0 if there is nothing to object."""
        if not self.stable.diagonal().all():
            return 13
        return 12 if self.indistinguishable else 11 if self.undecided else 0

    def summary(self) -> str:
        """Return the findings in words."""
        lines = []
        own = [c for c, j in self.unstable if c == j]
        if own:
            lines.append(f"Unstable on its own plant: the controller of {', '.join(own)}.")
        wrong = [f"{c} on {j}" for c, j in self.unstable if c != j]
        if wrong:
            lines.append(f"Unstable pairs of controller and plant: {', '.join(wrong)}.")
        if not self.unstable:
            lines.append("Every controller is stable on every plant.")
        for pairs, verb in ((self.indistinguishable, "cannot"), (self.undecided, "may not")):
            for j, i in pairs:
                lines.append(f"If {j} is true, it {verb} be distinguished from {i}.")
        if not self.indistinguishable and not self.undecided:
            lines.append("Every pair of plants can be distinguished.")
        lines += self._slowest() + self._riskiest()
        share = self.simulated.mean()
        if share < 1.0:
            lines.append(
                "Costs, rates and times are computed without limits of the actuator"
                + (f", except in {share:.0%} of the loops, which are simulated." if share else ".")
            )
        if share > 0.0 or self.violations is not None:
            lines.append(f"Simulated: {self.runs} runs, at most {self.horizon} steps each.")
        return "\n".join(lines)

    def _slowest(self) -> list[str]:
        """Describe the slowest pair that can be distinguished."""
        times = self.pairs(self.times)
        if not np.isfinite(times).any():
            return []
        finite = np.where(np.isfinite(times), times, -1.0)
        j, i = divmod(int(finite.argmax()), len(times))
        worst = int(np.argmax(self.times[:, j, i]))
        text = (
            f"The slowest pair: if {self.names[j]} is true, the odds against {self.names[i]} reach "
            f"{self.odds:g}:1 after {self.time(j, j, i)} on average with the controller of "
            f"{self.names[j]}"
        )
        slower = f", and after {self.time(worst, j, i)} with that of {self.names[worst]}"
        return [f"{text}{slower if worst != j else ', the slowest one'}."]

    def time(self, c: int, j: int, i: int) -> str:
        """Return a time as text."""
        bound = "more than " if self.unfinished[c, j, i] > 0.0 else ""
        value = self.times[c, j, i]
        return "infinite time" if math.isinf(value) else f"{bound}{value:.3g} s"

    def _riskiest(self) -> list[str]:
        """Describe the most probable violation of the output limits."""
        if self.violations is None:
            return []
        c, j, i = np.unravel_index(np.nanargmax(self.violations), self.violations.shape)
        low, high = self.intervals["violations"][:, c, j, i]
        if self.violations[c, j, i] == 0.0:
            return [f"The output never left its limits (probability at most {high:.2g})."]
        return [
            f"The output leaves its limits with probability {self.violations[c, j, i]:.3g} "
            f"({low:.3g} to {high:.3g}) before {self.names[j]}, which is true, is distinguished "
            f"from {self.names[i]}, while the controller of {self.names[c]} acts. This is the most "
            "probable case."
        ]

    def chart(self) -> Chart:
        """Return heat maps of costs and times as a chart."""
        named = ", ".join(f"{m + 1} {name}" for m, name in enumerate(self.names))
        panels = [
            _panel("Extra cost", "cost / best cost on the plant - 1",
                   self.costs / self.costs.min(axis=0) - 1.0, "row: controller, column: plant"),
            _panel(f"Mean time to odds of {self.odds:g}:1", "seconds", self.pairs(self.times),
                   "row: true plant, column: other plant"),
        ]  # fmt: skip
        return Chart("Check of a bank", panels, "Darker is worse, ∞: unstable or never.", 2, named)

    def plot(self) -> Any:
        """Draw heat maps of costs and times; return the Matplotlib figure."""
        return figures.figure(self.chart())

    def __repr__(self) -> str:
        return f"BankCheck({len(self.names)} modes)\n{self.summary()}"


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
        text, at = str(m + 1), len(values) + 0.15
        words += [Word(text, -0.15, -m - 0.5), Word(text, m + 0.5, -at)]
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
    Worlds start in the `start` of the mode, filters too. If signals of the bank are constant in the
    second half of the horizon, costs and rates are those of the long run, otherwise averages over
    the horizon. Output limits are checked by `runs` simulated runs of at most `horizon` steps.

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
    return _Checker(bank, Q, R, output_limits, odds, runs, horizon, seed).run()


class _Checker:
    """The settings of a check, and the loops that have been analysed."""

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
        self.runs, self.horizon = as_integer("runs", runs, 2), as_integer("horizon", horizon, 10)
        self.is_linear = all(map(is_linear, bank.modes))
        x, rows, nothing = bank.first_signals(), [], (np.zeros(g.inputs), np.zeros(g.outputs))
        for _ in range(self.horizon):
            rows.append(np.concatenate([x[g.setpoint], x[g.setpoint_before], x[g.disturbance]]))
            x = bank.next_signals(x, *nothing)
        self.signals = np.array(rows)
        changes = np.flatnonzero((self.signals[1:] != self.signals[:-1]).any(axis=1))
        last = int(changes[-1]) + 1 if changes.size else 0
        self.settles = last <= self.horizon // 2
        self.settled_at = last if self.settles else math.inf

    def run(self) -> BankCheck:
        """Analyse or simulate every controller on every plant."""
        M = len(self.modes)
        keys = ("costs", "rates", "times", "unfinished", "violations")
        found = {key: np.full((3, M, M, M)[: 3 if key == "costs" else 4], np.nan) for key in keys}
        stable, simulated = np.ones((2, M, M), np.bool_)
        for c, j in np.ndindex(M, M):
            exact: dict[str, FloatArray] = {}
            if self.is_linear:
                stable[c, j], exact = self.analyse(c, j)
            simulated[c, j] = "times" not in exact
            estimated = {}
            if simulated[c, j] or self.output_limits is not None:
                estimated = self.estimate(c, j, whole="costs" not in exact)
                stable[c, j] &= bool(np.isfinite(estimated["costs"][0]) or "costs" in exact)
            for key, values in {**estimated, **exact}.items():
                found[key][:, c, j] = values
        for key in keys[1:]:
            found[key][:, :, np.eye(M, dtype=np.bool_)] = np.nan
        has_none = found["rates"][0] * self.bank.period <= NO_RATE
        found["times"][:, has_none & (found["unfinished"][0] == 1.0)] = math.inf
        return BankCheck(
            tuple(mode.name or f"m{m}" for m, mode in enumerate(self.modes)), self.bank.period,
            self.odds, self.runs, self.horizon, found["costs"][0], found["rates"][0],
            found["times"][0], None if self.output_limits is None else found["violations"][0],
            found["unfinished"][0], stable, simulated,
            {key: values[1:] for key, values in found.items() if key != "unfinished"},
        )  # fmt: skip

    def analyse(self, c: int, j: int) -> tuple[bool, dict[str, FloatArray]]:
        """Return whether the loop is stable, and what can be computed about it."""
        loop, order = self.loop_with_all_filters(c, j)
        long, period, every = (
            loop.long_run(self.signals, self.settles),
            self.bank.period,
            self.modes,
        )
        has_limits = bool(np.isfinite(every[0].limits).any())
        if long is None:
            models = [(*mode.models(period), mode.start()) for mode in every]
            rates = [0.0 if all(map(np.array_equal, m, models[j])) else math.inf for m in models]
            exact = {"costs": np.array(math.inf), "rates": np.array(rates)}
            return False, {} if has_limits else exact
        if has_limits and self._reaches_limits(long):
            return True, {}
        p = self.bank.signals.outputs
        error = long.maps.y.copy()
        error[len(long.P) : len(long.P) + p] -= np.eye(p)
        cost = np.sum(self.Q * long.second_moment(error))
        cost += np.sum(self.R * long.second_moment(long.maps.u))
        gains = loop.gains(loop.models.Sigma)
        each = [
            np.trace(long.second_moment(long.maps.e[:, f] @ U.T)) for f, U in enumerate(gains.U)
        ]
        surprise = 0.5 * (np.array(each) + gains.log_det)[order]
        times = [(0.0, 0.0) if i == j else self.expected_time(c, j, i) for i in range(len(every))]
        return True, {
            "costs": np.array(cost),
            "rates": (surprise - surprise[j]) / period,
            "times": np.array(times)[:, 0] * period,
            "unfinished": np.array(times)[:, 1],
        }

    def loop_with_all_filters(self, c: int, j: int) -> tuple[LinearLoop, Any]:
        """Return controller c on plant j with the filters of all modes, and their order."""
        filters = [c, *(m for m in range(len(self.modes)) if m != c)]
        return LinearLoop(self.modes, j, filters), np.argsort(filters)

    def _reaches_limits(self, long: LongRun) -> bool:
        """Return whether inputs come near the limits of the actuator at any time."""
        u, n, m = long.maps.u, len(long.P), long.path.shape[1]
        mean, (low, high) = long.path @ u[:m], self.modes[0].limits
        margin = MARGIN * np.sqrt(np.diag(u[:n].T @ long.P @ u[:n] + u[m:].T @ u[m:]))
        return bool(((mean - margin < low) | (mean + margin > high)).any())

    def expected_time(self, c: int, j: int, i: int) -> tuple[float, float]:
        """Return the expected steps until j is distinguished from i, and the share unfinished."""
        filters = list(dict.fromkeys([c, j, i]))
        at = filters.index(j), filters.index(i)
        loop = LinearLoop(self.modes, j, filters)
        return expected_time(loop, *at, self.signals, self.settled_at, math.log(self.odds))

    # -- simulation -----------------------------------------------------------------------------

    def estimate(self, c: int, j: int, whole: bool) -> dict[str, FloatArray]:
        """Return means and intervals from simulated runs; without `whole`, stop when decided."""
        all_at_once = self.is_linear
        log_p, y, u = self.simulate_linear(c, j, whole) if all_at_once else self.simulate(c, j)
        steps = len(log_p)
        late = slice(steps // 2 if self.settles else 0, None)
        error = y - self.signals[:steps, None, : y.shape[2]]
        cost = np.einsum("kra,ab,krb->kr", error, self.Q, error)
        cost += np.einsum("kra,ab,krb->kr", u, self.R, u)
        if self.settles and whole:
            third, fourth = np.array_split(cost[late], 2)
            if not fourth.mean() <= GROWTH * third.mean():
                cost[:] = math.inf
        gain = log_p[:, :, j, None] - log_p
        above = np.cumsum(gain, axis=0) >= math.log(self.odds)
        done = above.any(axis=0)
        time = np.where(done, above.argmax(axis=0) + 1, steps)
        found = {
            "costs": cost[late].mean(axis=0),
            "rates": gain[late].mean(axis=0) / self.bank.period,
            "times": time * self.bank.period,
            "unfinished": 1.0 * ~done,
        }
        if self.output_limits is not None:
            outside = ((y < self.output_limits[0]) | (y > self.output_limits[1])).any(axis=2)
            first = np.where(outside.any(axis=0), outside.argmax(axis=0) + 1, steps + 1)
            found["violations"] = 1.0 * (first[:, None] <= time)
        return {key: self._interval(values, key) for key, values in found.items()}

    def _interval(self, values: FloatArray, key: str) -> FloatArray:
        """Return the mean of the runs and its bounds; infinite if a run diverged."""
        if not np.isfinite(values).all():
            return np.full((3, *values.shape[1:]), math.inf)
        is_share = key in ("unfinished", "violations")
        found = mean_interval(values, method="Wilson" if is_share else "t")
        return np.array([found.mean, found.low, found.high])

    def simulate_linear(self, c: int, j: int, whole: bool) -> tuple[FloatArray, ...]:
        """Return ln P(y | m), y and u of all runs at each step, all runs at once, with limits."""
        loop, order = self.loop_with_all_filters(c, j)
        loop.limits, Sigma = self.modes[0].limits, loop.Sigma
        rng = Stream.named(self.seed, c * len(self.modes) + j, "check").generator()
        z, found = np.tile(loop.start, (self.runs, 1)), []
        total = np.zeros((self.runs, len(order)))
        is_open = np.arange(len(order)) != np.full((self.runs, 1), j)
        for s in self.signals:
            gains = loop.gains(Sigma)
            Sigma = gains.Sigma
            noise = rng.standard_normal((self.runs, sum(map(len, loop.factors))))
            z, e, y, u = loop.step(z, np.tile(s, (self.runs, 1)), noise, gains)
            e = np.einsum("fab,rfb->rfa", gains.U, e)
            log_p = -0.5 * ((e**2).sum(axis=2) + gains.log_det)[:, order]
            lost = (abs(y) > DIVERGED).any(axis=1)
            z[lost], y[lost] = 0.0, math.inf
            found.append((log_p, y, u))
            total += log_p[:, j, None] - log_p
            is_open &= total < math.log(self.odds)
            if not whole and not is_open.any():
                break
        return tuple(map(np.array, zip(*found, strict=True)))

    def simulate(self, c: int, j: int) -> tuple[FloatArray, ...]:
        """Return ln P(y | m), y and u of all runs at each step, with the modes themselves."""
        M, g = len(self.modes), self.bank.signals
        shape = self.horizon, self.runs
        log_p, y, u = (np.zeros((*shape, size)) for size in (M, g.outputs, g.inputs))
        for run in range(self.runs):
            rng = Stream.named(self.seed, run, f"check {c} {j}")
            world, x = self.bank.environment(j), self.bank.first_signals()
            states = [mode.start() for mode in self.modes]
            for k in range(self.horizon):
                a = self.modes[c].act(SituatedState(x, states[c]), rng)
                o = world.respond(a, rng)
                if not (np.abs(o) < DIVERGED).all():
                    y[k:, run], log_p[k:, run] = math.inf, log_p[k - 1, run]
                    break
                each = zip(self.modes, states, strict=True)
                steps = [m.step_filter(SituatedState(x, s), a, o) for m, s in each]
                log_p[k, run], states = [p[0] for p, _ in steps], [s[0] for _, s in steps]
                y[k, run], u[k, run] = o, self.modes[c].limited(a)
                x = self.bank.next_signals(x, a, o)
        return log_p, y, u

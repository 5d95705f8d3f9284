"""An alarm for long runs: e-processes that start at every step (an e-detector).

    R_t^s(m) = Π_{τ=s..t} q^s(o_τ | ·) / P(o_τ | m, x_τ, a_τ)      q^s: a predictor restarted at s
    M_t(m)   = Σ_{s≤t} R_t^s(m)                                    alarm when min_m M_t(m) ≥ c

`Alarm` compares with the best mode since the start, so an alarm after n steps must first make up
for n steps in which a mode was right. Here a start soon after the fault has nothing to make up for.

**The mean time to a false alarm is at least c.** Let m be true. Each R^s(m) is a martingale (or a
supermartingale), and one start is added per step, so E[M_t(m) | past] ≤ M_{t-1}(m) + 1, and
M_t(m) - t is a supermartingale that starts at 0, whoever chooses the actions. At the alarm
M_T(m) ≥ c, hence E[T] ≥ E[M_T(m)] ≥ c by optional stopping (Shin, Ramdas & Rinaldo 2024,
"E-detectors"). After `reset` the same holds for the next alarm, given the past.

**Bounded memory.** A start s = 2^l · odd is held until it has 8 · 2^l observations, so the starts
of age n are at most n/4 apart, and their number grows with log n. A start that ends gives its R(m)
to the next younger start, which moves money between bets and does not change M. If there are more
than `starts` of them, the oldest one ends.

**What P is.** It decides for which worlds the bound holds:

    FiniteBelief                   P(o | m, x, a) of every mode      one mode is true and stays true
    SwitchingBelief                P(o | past) of the belief         modes are drawn from its prior
    FadingBelief                   max_m P(o | m, x, a)              modes change in any way
    any other with `surprise`      P(o | past) of the belief         it is drawn from the prior

A mode with a noise floor, N(o; f, σ² + φ²), is true if the variance is anything from σ² to σ² + φ²
at each step: its P is the largest density of these (`SimulatorNoise.log_bound`). If φ ≤ σ/100, P is
N(o; f, σ² + φ²) √(1 + φ²/σ²), which is not smaller and needs no second simulation. A
`SwitchingBelief` over modes with larger floors cannot know P(o | past) and counts as a
`FadingBelief`.
"""

import math
from copy import copy
from operator import index
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray, IntArray
from bayescontrol.bandits.regression import reward_of
from bayescontrol.bandits.roster import HasArms
from bayescontrol.beliefs.change_points import ChangePointBelief
from bayescontrol.beliefs.changing import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.weights import LN2, Floor
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability, counted
from bayescontrol.experts.mode import SimulatorMode, SimulatorNoise
from bayescontrol.linear.belief import SystemBelief
from bayescontrol.linear.system import state_and_cost
from bayescontrol.live.alarm import SMALL_FLOOR, WatchingAlarm, as_log_likelihoods
from bayescontrol.live.linear_predictor import (
    CopiesBank,
    LinearPredictor,
    PredictorBank,
    RegressionBank,
)
from bayescontrol.live.predictors import Predictor
from bayescontrol.values import part_of, require_arrays, require_shapes

#: A start s = 2^l · odd is held until it has this number of observations, times 2^l.
LIFETIME: Final = 8
#: ln P of an observation that a simulator without noise predicts exactly.
EXACT: Final = 1e6


class RestartedAlarm(WatchingAlarm):
    """An alarm whose mean time to a false alarm is at least `mean_time` steps.

    `predictor` is `LinearPredictor()` by default, for densities; use `KrichevskyTrofimov(K)` if the
    modes give probabilities. Its copies are the predictors of the starts. At most `starts` starts
    are held. `Guarded(agent, alarm)` watches an agent. After an alarm, call `reset`.

    >>> from bayescontrol.live.predictors import KrichevskyTrofimov
    >>> alarm = RestartedAlarm(KrichevskyTrofimov(["heads", "tails"]), mean_time=1000)
    >>> fair = [math.log(0.5)]
    >>> for t in range(100):  # a fair coin, then one with two tails
    ...     alarm.observe("table", "toss", "heads" if t % 2 and t < 80 else "tails", fair)
    >>> alarm
    RestartedAlarm(mean time 1000, raised at step 92, now at 100, 18.1 bits, 22 starts)
    """

    def __init__(
        self, predictor: Predictor | None = None, mean_time: float = 1e6, *, starts: int = 64
    ) -> None:
        try:
            steps = float(mean_time)
        except (TypeError, ValueError):
            steps = math.nan  # rejected below
        if not 1.0 < steps < math.inf:
            raise ValueError(f"mean_time={mean_time!r}: it must be a number of steps above 1")
        if index(starts) < 2:
            raise ValueError(f"starts={starts!r}: it must be an integer of at least 2")
        super().__init__()
        #: The lower bound on the mean number of steps to a false alarm.
        self.mean_time = steps
        self.predictor: Any = LinearPredictor() if predictor is None else predictor
        self._bank: PredictorBank
        if predictor is None:
            self._bank = RegressionBank(index(starts))
        else:
            self._bank = CopiesBank(predictor, index(starts))
        # The first step of every start, 0 for a free place, and ln R(m) of every start.
        self._starts: IntArray = np.zeros(index(starts), np.int64)
        self._log_r: FloatArray
        self._log_m: FloatArray  # ln M_t(m)
        self.reset()

    # -- evidence ------------------------------------------------------------------------------

    @property
    def threshold(self) -> float:
        """ln c: the alarm is raised when min_m M_t(m) ≥ c = `mean_time`."""
        return math.log(self.mean_time)

    @property
    def evidence_bits(self) -> float:
        """min_m log2 M_t(m); 0 before the first observation, ∞ if every mode is ruled out."""
        return float(self._log_m.min(initial=math.inf)) / LN2 if self._log_m.size else 0.0

    @property
    def mode_bits(self) -> FloatArray:
        """log2 M_t(m) for every mode."""
        return self._log_m / LN2

    # -- learning ------------------------------------------------------------------------------

    def weigh(
        self, x: Any, a: Any, o: Any, log_p: npt.ArrayLike, w: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ln R(m) of every start and ln M(m) as they would be after o; nothing changes.

        `log_p` are ln P(o | m, x, a) of all modes, `w` their weights. Modes of weight 0 do not
        count. Modes that were added since the last step begin with R = 1.
        """
        ln_p, known = as_log_likelihoods(log_p, o, self.predictor), self._log_r.shape[1]
        if ln_p.ndim != 1 or len(ln_p) < max(1, known) or (w is not None and len(w) != len(ln_p)):
            modes = counted(known, "mode") if known else "all modes"
            raise BadEvidence(
                f"log-likelihoods of shape {ln_p.shape} for {modes}: give one per mode"
            )
        log_q = self._bank.log_predict(x, a, o)
        log_r, log_m = np.empty((len(log_q), len(ln_p))), np.empty(len(ln_p))
        kernels.restarts.weigh(self._starts, self._log_r, log_q, ln_p, log_r, log_m)
        return log_r, log_m if w is None else np.where(w > 0.0, log_m, math.inf)

    def take(self, x: Any, a: Any, o: Any, weighed: tuple[FloatArray, FloatArray]) -> bool:
        """Store the result of `weigh` and let q learn o; return True if this raised the alarm."""
        self._bank.update(x, a, o)
        self._log_r, self._log_m = weighed
        self.t += 1
        held = self._starts > 0
        place = kernels.restarts.renew(self._starts, self._log_r, self.t, LIFETIME)
        for ended in np.flatnonzero(held & (self._starts == 0)).tolist():
            self._bank.stop(ended)
        self._bank.restart(place)
        if self.raised or not self._log_m.min() >= self.threshold:
            return False
        self.step = self.t
        return True

    def observe(self, x: Any, a: Any, o: Any, log_p: npt.ArrayLike) -> None:
        """Update M_t(m) with ln P(o | m, x, a) of every mode. An error changes nothing."""
        self.take(x, a, o, self.weigh(x, a, o, log_p))

    def reset(self) -> None:
        """Forget all starts and predictors; the bound holds again from here."""
        self.step, self._log_m = None, np.zeros(0)
        for place in np.flatnonzero(self._starts).tolist():
            self._bank.stop(place)
        self._log_r = np.zeros((len(self._starts), 0))
        self._starts[:] = 0
        self._starts[0] = self.t + 1
        self._bank.restart(0)

    # -- state -----------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Return named arrays for an exact `load`."""
        arrays = {f"bank/{name}": array for name, array in self._bank.save().items()}
        return arrays | {
            "log_r": self._log_r.copy(),
            "log_m": self._log_m.copy(),
            "starts": self._starts.copy(),
            # A step of -1 means that the alarm is not raised.
            "clock": np.array([self.t, -1 if self.step is None else self.step]),
            "mean_time": np.array(self.mean_time),
        }

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned, for an alarm with the same settings and predictor."""
        require_arrays(arrays, {"log_r", "log_m", "starts", "clock", "mean_time"}, "alarm")
        log_r, log_m, clock = arrays["log_r"], arrays["log_m"], arrays["clock"]
        if not np.array_equal(arrays["mean_time"], self.mean_time):
            raise IncompatibleState(
                f"the saved alarm has mean_time={arrays['mean_time']}, this one has "
                f"{self.mean_time:g}: load it into an alarm with the same mean_time"
            )
        require_shapes(arrays, {"starts": self._starts.shape}, np.int64)
        if clock.shape != (2,) or clock.dtype.kind != "i" or not -1 <= clock[1] <= clock[0]:
            raise IncompatibleState(f"the saved alarm is damaged: its [t, step] is {clock}")
        for name, array, ndim in (("log_r", log_r, 2), ("log_m", log_m, 1)):
            if array.ndim != ndim or array.dtype != np.float64 or np.isnan(array).any():
                raise IncompatibleState(f"the saved alarm is damaged: its {name} is {array}")
        starts = arrays["starts"]
        valid = len(log_r) == len(starts) and log_m.size in (0, log_r.shape[1])
        if not valid or starts.min() < 0 or starts.max() != clock[0] + 1:
            raise IncompatibleState(f"the saved alarm is damaged: its starts are {starts}")
        self._bank.load(part_of(arrays, "bank/"))
        t, step = clock.tolist()
        self._log_r, self._log_m, self._starts = log_r.copy(), log_m.copy(), starts.copy()
        self.t, self.step = t, None if step < 0 else step

    def copy(self) -> "RestartedAlarm":
        """Return an independent copy."""
        clone = copy(self)
        clone._bank, clone._watched = self._bank.copy(), None
        clone._log_r, clone._log_m = self._log_r.copy(), self._log_m.copy()
        clone._starts = self._starts.copy()
        return clone

    def __repr__(self) -> str:
        state = f"raised at step {self.step}, now at {self.t}" if self.raised else "silent"
        after = "" if self.raised else f" after {counted(self.t, 'step')}"
        starts = counted(int((self._starts > 0).sum()), "start")
        bits = f"{self.evidence_bits:.3g} bits"
        return f"RestartedAlarm(mean time {self.mean_time:g}, {state}{after}, {bits}, {starts})"


# -- what an agent's belief says about an observation ----------------------------------------------


def require_evidence(belief: Any) -> None:
    """Raise `MissingCapability` if a `RestartedAlarm` cannot watch this belief."""
    if not isinstance(belief, FiniteBelief) and not hasattr(belief, "surprise"):
        raise MissingCapability(
            f"{belief!r} has no surprise(x, a, o), so the alarm cannot judge its predictions: "
            "call RestartedAlarm.observe(x, a, o, log_p) with log-likelihoods of your own"
        )
    for m, noise, is_small in _floors(belief):
        if not (is_small or isinstance(belief.modes[m], SimulatorMode)):
            raise MissingCapability(
                f"mode {m} ({belief.name(m)}) has noise {noise!r}, whose floor is not noise of the "
                "plant, and is not a SimulatorMode: the alarm cannot compute its largest density. "
                f"Give every component a std of at least {1 / SMALL_FLOOR:g} times the floor, or "
                "reduce the floor"
            )


def _floors(belief: Any) -> list[tuple[int, SimulatorNoise, bool]]:
    """Return the modes whose noise has a floor, and whether it is below 1 % of the noise."""
    modes = getattr(belief, "modes", None)
    # Only modes in a list are separate objects, which may have their own `noise`.
    noises = [getattr(mode, "noise", None) for mode in modes] if isinstance(modes, list) else []
    return [
        (m, noise, bool(noise.floor <= (1 + 1e-9) * SMALL_FLOOR * noise.std.min()))
        for m, noise in enumerate(noises)
        if isinstance(noise, SimulatorNoise)
    ]


def evidence(belief: Any, x: Any, a: Any, o: Any) -> tuple[FloatArray, FloatArray | None]:
    """Return ln P of o as the table at the top of this file defines it, and weights or None."""
    if not isinstance(belief, FiniteBelief):
        return np.array([-LN2 * belief.surprise(x, a, o)]), None
    log_p, w = belief.log_likelihoods(x, a, o), belief.posterior()
    modes: Any = belief.modes
    changes_freely = isinstance(belief, FadingBelief)
    for m, noise, is_small in _floors(belief):
        if is_small:  # N(o; f, v) ≤ N(o; f, s²) Π s/σ, without a second simulation
            d = np.size(o) if noise.std.size == 1 else 1
            log_p[m] += d * float(np.log(noise.scale / noise.std).sum())
        elif w[m] > 0.0 and log_p[m] > -math.inf:
            log_p[m] = min(noise.log_bound(o, modes[m].step(x, a)), EXACT)
            changes_freely |= isinstance(belief, SwitchingBelief)
    if isinstance(belief.on_impossible, Floor):
        log_p = np.maximum(log_p, math.log(belief.on_impossible.epsilon))
    if changes_freely:
        return log_p[w > 0.0].max(keepdims=True), None
    if isinstance(belief, SwitchingBelief):
        with np.errstate(divide="ignore"):
            return np.logaddexp.reduce(np.log(w) + log_p, keepdims=True), None
    return log_p, w


def observed_part(belief: Any, o: Any) -> Any:
    """Return the part of o that the likelihood covers: no known cost, and no next context."""
    static = belief.prior if isinstance(belief, ChangePointBelief) else belief
    if isinstance(static, HasArms):
        return reward_of(o)
    learns_costs = isinstance(static, SystemBelief) and not static.costs.known
    return o if learns_costs else state_and_cost(o)[0]


def gives_finite_predictions(belief: Any, x: Any, a: Any) -> bool:
    """Return whether a belief without modes is known to give probabilities, not densities."""
    try:
        belief.predictive(x, a)
    except (MissingCapability, AttributeError):
        return False
    return True

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
to the next younger start, which does not change M. If there are more than `starts` of them, the
oldest one ends.

**What P is.** It decides for which worlds the bound holds:

    FiniteBelief                   P(o | m, x, a) of every mode      one mode is true and stays true
    SwitchingBelief                P(o | past) of the belief         modes are drawn from its prior
    FadingBelief                   max_m P(o | m, x, a)              modes change in any way
    any other belief               P(o | past) of the belief         it is drawn from the prior

A mode with a noise floor, N(o; f, σ² + φ²), is true if the variance is anything from σ² to σ² + φ²
at each step: its P is the largest density of these (`SimulatorNoise.log_bound`). If φ ≤ σ/100, P is
N(o; f, σ² + φ²) √(1 + φ²/σ²), which is not smaller and needs no second simulation. A
`SwitchingBelief` over modes with larger floors cannot know P(o | past) and counts as a
`FadingBelief`.
"""

import itertools
import math
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, Arrays, FloatArray, as_integer, require_between
from bayescontrol._mode_queries import observed_part
from bayescontrol._support import saved
from bayescontrol._support.saved import Array, Copied, Fixed, Part, Saved, damaged, declare
from bayescontrol.alarms.alarm import WatchingAlarm, log_prediction, noise_floors, with_methods
from bayescontrol.alarms.predictors import LinearPredictor, Predictor
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.switching import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.weights import Floor
from bayescontrol.errors import MissingCapability, counted
from bayescontrol.simulators.mode import SimulatorMode

#: A start s = 2^l · odd is held until it has this number of observations, times 2^l.
LIFETIME: Final = 8
#: ln P of an observation that a simulator without noise predicts exactly.
EXACT: Final = 1e6


class PredictorCopies(Saved):
    """Copies of a predictor, one for each start, with the methods of a `LinearPredictor`."""

    saved_fields = declare(Copied("_copies", nested=True))

    def __init__(self, predictor: Any, starts: int) -> None:
        self._fresh = with_methods(predictor, "log_predict", "update", "copy").copy()
        self._starts = starts
        self._copies: dict[int, Any] = {}

    def log_predict_each(self, x: Any, a: Any, o: Any) -> FloatArray:
        """Return ln q(o | x, a, past) of every place; NaN where there is no prediction."""
        log_q = np.full(self._starts, math.nan)
        for place, predictor in self._copies.items():
            log_q[place] = log_prediction(predictor, x, a, o)
        return log_q

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Let all copies learn o."""
        for predictor in self._copies.values():
            predictor.update(x, a, o)

    def restart(self, place: int) -> None:
        """Put a fresh predictor in this place."""
        self._copies[place] = self._fresh.copy()

    def save(self) -> Arrays:
        """Return the arrays of every copy."""
        arrays: Arrays = {"used": np.array(sorted(self._copies), np.int64)}
        for place, predictor in self._copies.items():
            part = with_methods(predictor, "save", "load").save()
            arrays |= saved.with_prefix(f"{place}/", part)
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned. An error changes nothing."""
        saved.require_arrays(arrays, {"used"})
        copies = {place: self._fresh.copy() for place in arrays["used"].tolist()}
        for place, predictor in copies.items():
            predictor.load(saved.part_of(arrays, f"{place}/"))
        self._copies = copies


class RestartedAlarm(WatchingAlarm):
    """An alarm whose mean time to a false alarm is at least `mean_time` steps.

    `predictor` is `LinearPredictor()` by default, for densities; use `KrichevskyTrofimov(K)` if the
    modes give probabilities. Its copies are the predictors of the starts. At most `starts` starts
    are held; too few for a `LinearPredictor` to predict raise ValueError. `Guarded(agent, alarm)`
    watches an agent. After an alarm, call `reset`.

    >>> from bayescontrol.alarms.predictors import KrichevskyTrofimov
    >>> alarm = RestartedAlarm(KrichevskyTrofimov(["heads", "tails"]), mean_time=1000)
    >>> fair = [math.log(0.5)]
    >>> for t in range(100):  # a fair coin, then one with two tails
    ...     alarm.observe("table", "toss", "heads" if t % 2 and t < 80 else "tails", fair)
    >>> alarm
    RestartedAlarm(mean time 1000, raised at step 92, now at 100, 18.1 bits, 22 starts)
    """

    saved_fields = declare(
        Fixed("mean_time"),
        Array("log_m", "_log_e", shape=(None,), finite=False),
        Array("starts", "_starts"),
        Array("log_r", "_log_r", shape=("starts", None), finite=False),
        Part("bank/", "_bank"),
    )
    _accepts_floors = (SimulatorMode,)

    def __init__(
        self, predictor: Predictor | None = None, mean_time: float = 1e6, *, starts: int = 64
    ) -> None:
        #: The largest number of starts.
        self.starts = starts = as_integer("starts", starts, 2)
        #: The lower bound on the mean number of steps to a false alarm.
        self.mean_time = require_between("mean_time", mean_time, 1.0, math.inf, ends="()")
        predictor = LinearPredictor() if predictor is None else predictor
        # One object for all starts, if there is one that does the same as copies.
        is_new = type(predictor) is LinearPredictor and not predictor.observations
        bank = LinearPredictor(starts) if is_new else PredictorCopies(predictor, starts)
        self._bank: LinearPredictor | PredictorCopies = bank
        super().__init__(predictor, threshold=math.log(self.mean_time))
        if isinstance(predictor, LinearPredictor):
            self._require_predictions(3)  # p = 1: neither situation nor action has numbers
        # The first step of every start, 0 for a free place, and ln R(m) of every start.
        self._starts = np.zeros(starts, np.int64)
        self._log_r: FloatArray
        self.reset()

    # -- the belief of an agent ------------------------------------------------------------------

    def require_belief(self, agent: Any, first: int = 0) -> None:
        """Raise `MissingCapability` if the alarm cannot watch this agent."""
        belief = agent.belief
        if not hasattr(belief, "log_predictive"):
            raise MissingCapability(
                f"{belief!r} has no log_predictive(x, a, o), so the alarm cannot judge its "
                "predictions: call RestartedAlarm.observe(x, a, o, log_p) with log-likelihoods of "
                "your own"
            )
        super().require_belief(agent, first)

    def evidence(self, belief: Any, x: Any, a: Any, o: Any) -> tuple[Any, FloatArray, Any]:
        """Return the part of o that P covers, ln P as defined above, and weights or None."""
        part = observed_part(belief, o)
        if not isinstance(belief, FiniteBelief):
            if not self.t and gives_finite_predictions(belief, x, a):
                self._require_probabilities()
            return part, np.array([belief.log_predictive(x, a, o)]), None
        log_p, w = belief.log_likelihoods(x, a, o), belief.posterior()
        changes_freely = isinstance(belief, FadingBelief)
        for m, mode, is_small in noise_floors(belief):
            noise = mode.noise
            # N(o; f, v) ≤ N(o; f, s²) Π s/σ for every v from σ² to s², without a second simulation
            if is_small:
                d = np.size(o) if noise.std.size == 1 else 1  # one σ for all components of o
                log_p[m] += d * float(np.log(noise.scale / noise.std).sum())
            elif w[m] > 0.0 and log_p[m] > -math.inf:
                log_p[m] = min(noise.log_bound(o, mode.step(x, a)), EXACT)
                changes_freely |= isinstance(belief, SwitchingBelief)
        if isinstance(belief.on_impossible, Floor):
            log_p = np.maximum(log_p, math.log(belief.on_impossible.epsilon))
        if changes_freely:
            return part, log_p[w > 0.0].max(keepdims=True), None
        if isinstance(belief, SwitchingBelief):
            with np.errstate(divide="ignore"):
                return part, np.logaddexp.reduce(np.log(w) + log_p, keepdims=True), None
        return part, log_p, w

    # -- learning ------------------------------------------------------------------------------

    def weigh(
        self, x: Any, a: Any, o: Any, log_p: ArrayLike, w: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ln R(m) of every start and ln M(m) as they would be after o; nothing changes.

        `log_p` are ln P(o | m, x, a) of all modes, `w` their weights. Modes of weight 0 do not
        count. Modes that were added since the last step begin with R = 1.
        """
        if self.t == 0 and isinstance(self.predictor, LinearPredictor):
            self._require_predictions(self.predictor.observations_needed(x, a, o))
        log_p = self._as_log_likelihoods(log_p, o, w)
        log_q = self._bank.log_predict_each(x, a, o)
        log_r, log_m = np.zeros((len(log_q), len(log_p))), np.empty(len(log_p))
        log_r[:, : self._log_e.size] = self._log_r
        weights = np.ones(len(log_p)) if w is None else w
        kernels.restarts.weigh(self._starts, log_r, log_q, log_p, weights, log_m)
        return log_r, log_m

    def _require_predictions(self, needed: int) -> None:
        """Raise ValueError if every start ends before it has the observations for a prediction.

        Then R would stay 1 whatever the data, and M_t = t.
        """
        if not _predicts(self.starts, needed):
            starts = next(n for n in itertools.count(2) if _predicts(n, needed))
            raise ValueError(
                f"starts={self.starts}: the predictor needs {needed} observations here before it "
                "predicts, but every start ends earlier. The alarm would not depend on the data "
                f"and be raised at step {self.mean_time:g}: use at least {starts} starts"
            )

    def take(self, x: Any, a: Any, o: Any, weighed: tuple[FloatArray, FloatArray]) -> bool:
        """Store the result of `weigh` and let q learn o; return True if this raised the alarm."""
        self._bank.update(x, a, o)
        self._log_r, log_m = weighed
        place = kernels.restarts.renew(self._starts, self._log_r, t=self.t + 1, lifetime=LIFETIME)
        self._bank.restart(place)
        return self.fast_forward(steps=1, log_e=log_m)

    def reset(self) -> None:
        """Forget all starts and predictors; the bound holds again from here."""
        self.step, self._log_e = None, np.zeros(0)
        self._log_r = np.zeros((len(self._starts), 0))
        self._starts[:] = 0
        self._starts[0] = self.t + 1
        self._bank.restart(0)

    def _check_state(self, new: SimpleNamespace) -> None:
        super()._check_state(new)
        starts, log_r = new._starts, new._log_r
        if starts.min() < 0 or starts.max() != new.t + 1:
            raise damaged(f"the starts of the alarm are {starts}")
        if log_r.shape[1] != len(new._log_e) or np.isnan(log_r).any():
            raise damaged(f"log_r of the alarm is {log_r}")

    def __repr__(self) -> str:
        starts = counted(int((self._starts > 0).sum()), "start")
        return f"RestartedAlarm(mean time {self.mean_time:g}, {self._status()}, {starts})"


def _predicts(starts: int, needed: int) -> bool:
    """Return whether the oldest of this number of starts has `needed` observations in a long run.

    It need not have them at every step: one of the steps 4 · `needed` … 8 · `needed` suffices.
    """
    begun, log_r = np.zeros(starts, np.int64), np.zeros((starts, 0))
    for t in range(8 * needed):
        kernels.restarts.renew(begun, log_r, t, LIFETIME)  # begins the start of step t + 1
        if t >= 4 * needed and t + 1 - begun[begun > 0].min() >= needed:
            return True
    return False


def gives_finite_predictions(belief: Any, x: Any, a: Any) -> bool:
    """Return whether a belief without modes is known to give probabilities, not densities."""
    try:
        belief.predictive(x, a)
    except (MissingCapability, AttributeError):
        return False
    return True

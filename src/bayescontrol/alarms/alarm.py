"""The alarm that no mode fits, an e-process against all modes; and probes of running agents.

    E_t = q(o_≤t | â_≤t) / max_m P(o_≤t | m, â_≤t) = min_m Π_τ q(o_τ | ·) / P(o_τ | m, x_τ, a_τ)

If m is true, its ratio is a non-negative supermartingale that starts at 1, whoever chooses the
actions, and E_t is at most this ratio. By Ville's inequality P(E_t ≥ 1/δ at some t) ≤ δ under every
mode, so E_t may be checked at every step. If no mode is true and q learns the world, ln E_t grows
by the relative entropy of the world from the nearest mode.

The bound needs one mode that stays true and states its likelihood correctly. It does not hold in a
changing world, nor for a likelihood with a noise floor:

    o = f + w, w ~ N(0, σ²)     but the mode assumes     N(o; f, s²),  s² = σ² + φ²

Against N(f, σ²), which the predictor learns, such a mode loses ¼ (φ/σ)⁴ nats per step if φ is small
against σ; if σ = 0, the loss grows with every step.

Probes say how many modes remain, and how well they predict:

    effective modes     2^H,  H = -Σ_m P(m | âo_≤t) log2 P(m | âo_≤t)               a number
    mode surprise       -log2 P(o_t | m, x, a_t)  for every m                       bits, (M,)
    alarm evidence      log2 E_t                                                    bits

Surprises are measured before the agent observes o_t, the other two probes after it. A probe never
changes a run. Over T steps a column has shape (T,) or (T, M). `bayescontrol.record` has the probes
`posterior` and `log_score`, the surprise of the mixture of all modes.
"""

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers, require_between
from bayescontrol._mode_queries import has, is_mode_array
from bayescontrol._support.saved import Array, Fixed, Part, Saved, damaged, declare
from bayescontrol.alarms.predictors import Predictor
from bayescontrol.beliefs.finite import FiniteBelief, finite_belief
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.beliefs.switching import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.weights import LN2, Floor
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability, counted
from bayescontrol.protocols import ObservationProbabilities
from bayescontrol.record import Probe
from bayescontrol.simulators.mode import SimulatorNoise

#: The largest φ/σ that the alarm accepts; such a mode loses 0.03 nats in ten million steps.
SMALL_FLOOR: Final = 0.01


def gives_probabilities(belief: FiniteBelief[Any]) -> bool:
    """Return whether the modes are known to give probabilities: Σ_o P(o | m, x, a) = 1.

    They are known to if at least one mode has `observation_probabilities`. A mode that has only a
    likelihood may give probabilities or densities, so it decides nothing.
    """
    if belief.offers(ObservationProbabilities):
        return True
    modes: Any = belief.modes
    # All modes of an array have the same methods, so the first one is enough.
    examples = [modes[0]] if is_mode_array(modes) else modes
    return any(has(mode, ObservationProbabilities) for mode in examples)


def noise_floors(belief: Any, first: int = 0) -> Iterator[tuple[int, Any, bool]]:
    """Yield m, the mode and whether its floor is small, for modes with a `SimulatorNoise`.

    Only modes from index `first` on are returned.
    """
    modes = getattr(belief, "modes", None)
    # Only modes in a list are separate objects, which may have their own `noise`.
    for m, mode in enumerate(modes if isinstance(modes, list) else ()):
        noise = getattr(mode, "noise", None)
        if m >= first and isinstance(noise, SimulatorNoise):
            # The factor tolerates rounding.
            yield m, mode, bool(noise.floor <= (1 + 1e-9) * SMALL_FLOOR * noise.std.min())


def with_methods(predictor: Any, *names: str) -> Any:
    """Return the predictor; raise MissingCapability if it lacks one of these methods."""
    for name in names:
        if not hasattr(predictor, name):
            raise MissingCapability(
                f"the predictor {predictor!r} has no {name}: add this method, or use "
                "KrichevskyTrofimov(K) for K possible observations or LinearPredictor() for numbers"
            )
    return predictor


def log_prediction(predictor: Any, x: Any, a: Any, o: Any) -> float:
    """Return ln q(o | x, a, past), NaN if there is no prediction."""
    log_q = predictor.log_predict(x, a, o)
    if log_q is None:
        return math.nan
    _require_log_likelihood(log_q, o, predictor)
    return float(log_q)


def _require_log_likelihood(log_p: float, o: Any, hypothesis: Any) -> None:
    """Raise `BadEvidence` if ln P(o) is NaN or +∞."""
    if not log_p < math.inf:
        raise BadEvidence(
            f"the log-likelihood of observation {o!r} under {hypothesis} is invalid: {log_p}; "
            "expected a number below infinity"
        )


#: A probability may exceed 1 by this rounding error.
ROUNDING: Final = 1e-6


class WatchingAlarm(Saved):
    """Base class of the alarms: a clock, the evidence, and the agent that the alarm watches."""

    saved_fields = declare(
        # t and the step; a step of -1 means that the alarm is not raised.
        Array("clock", lambda alarm: np.array([alarm.t, -1 if alarm.step is None else alarm.step])),
    )
    # Types of modes whose likelihood the alarm can bound if the noise has a large floor.
    _accepts_floors: ClassVar[tuple[type, ...]] = ()
    #: Subclasses compute the new evidence in `weigh`, without a change, and store it in `take`.
    weigh: Callable[..., Any]
    take: Callable[..., bool]

    def __init__(self, predictor: Any, threshold: float) -> None:
        self.predictor = with_methods(predictor, "log_predict", "update")
        #: The logarithm of the evidence that raises the alarm.
        self.threshold = threshold
        #: Number of observations.
        self.t = 0
        #: The t at which the alarm was raised, or None.
        self.step: int | None = None
        # The logarithm of the evidence against every mode; empty before the first observation.
        self._log_e: FloatArray = np.zeros(0)
        self._watched: Any = None

    @property
    def raised(self) -> bool:
        """Whether the evidence has reached the threshold since the start or the last `reset`."""
        return self.step is not None

    @property
    def evidence_bits(self) -> float:
        """log2 of the evidence against the best mode: the bits by which q is ahead of it.

        It is 0 before the first observation, and ∞ if every mode has been ruled out.
        """
        return float(self._log_e.min()) / LN2 if self._log_e.size else 0.0

    @property
    def mode_bits(self) -> FloatArray:
        """log2 of the evidence against every mode: the bits by which q is ahead of mode m."""
        return self._log_e / LN2

    def watch(self, agent: Any) -> None:
        """Bind the alarm to an agent; raise `IncompatibleState` if it is bound to another."""
        if self._watched is not None and self._watched is not agent:
            raise IncompatibleState(
                f"the alarm already watches {self._watched!r}: create an alarm for each agent"
            )
        self._watched = agent

    def require_belief(self, agent: Any, first: int = 0) -> None:
        """Raise `MissingCapability` if false alarms of this agent would not be bounded.

        Only modes from index `first` on are checked. Modes without weight, such as retired ones,
        are ignored.
        """
        belief = agent.belief
        if not isinstance(belief, FiniteBelief):
            return
        if gives_probabilities(belief):
            self._require_probabilities()
        weights = belief.posterior()
        for m, mode, is_small in noise_floors(belief, first):
            if weights[m] > 0.0 and not (is_small or isinstance(mode, self._accepts_floors)):
                raise MissingCapability(
                    f"mode {m} ({belief.name(m)}) has noise {mode.noise!r}: the floor is not noise "
                    "of the plant, so even a plant that the simulator predicts exactly would raise "
                    f"the alarm in the end. Give every component a std of at least "
                    f"{1 / SMALL_FLOOR:g} times the floor, reduce the floor, call "
                    f"belief.retire({m}), or use a RestartedAlarm over SimulatorModes"
                )

    def _require_probabilities(self) -> None:
        if getattr(self.predictor, "density", False):
            raise MissingCapability(
                f"{self.predictor!r} gives densities but the modes give probabilities, so false "
                "alarms would not be bounded; use KrichevskyTrofimov(observations)"
            )

    def observe(self, x: Any, a: Any, o: Any, log_p: ArrayLike) -> None:
        """Update the evidence with ln P(o | m, x, a) of all modes. An error changes nothing.

        Modes that were added since the last step come last; their evidence starts at 1, as an
        e-process must.

        >>> from bayescontrol.alarms import Alarm, KrichevskyTrofimov
        >>> alarm = Alarm(KrichevskyTrofimov(2), delta=0.05)
        >>> alarm.observe("table", "toss", 1, [math.log(0.25)])
        >>> alarm.observe("table", "toss", 1, [math.log(0.75), math.log(0.75)])
        >>> alarm.mode_bits
        array([1., 0.])
        """
        self.take(x, a, o, self.weigh(x, a, o, log_p))

    def fast_forward(self, steps: int, log_e: FloatArray) -> bool:
        """Add `steps` steps and store the evidence; return True if the last step raised the alarm.

        Compiled loops call it with all of their steps.
        """
        self.t += steps
        self._log_e = log_e
        if self.raised or not log_e.min() >= self.threshold:
            return False
        self.step = self.t
        return True

    def _as_log_likelihoods(self, log_p: Any, o: Any, w: FloatArray | None) -> FloatArray:
        """Return log-likelihoods of o as an array; raise `BadEvidence` if one is invalid.

        A likelihood above 1 is invalid if the predictor gives probabilities.
        """
        if type(log_p) is not np.ndarray or log_p.dtype != np.float64:
            log_p = as_numbers(log_p, f"log-likelihoods {log_p!r}", BadEvidence)
        is_list = log_p.ndim == 1 and len(log_p) >= max(1, self._log_e.size)
        if not is_list or (w is not None and len(w) != len(log_p)):
            raise BadEvidence(
                f"log-likelihoods of shape {log_p.shape}, after {self._log_e.size} modes so far: "
                "give one for each mode"
            )
        largest = float(log_p.max())
        if not largest < math.inf:
            m = int(np.argmin(log_p < math.inf))
            _require_log_likelihood(log_p[m], o, f"mode {m}")
        if largest > ROUNDING and getattr(self.predictor, "density", None) is False:
            m = int(log_p.argmax())
            raise BadEvidence(  # exp(710) would overflow
                f"the likelihood {math.exp(min(log_p[m], 700.0)):.3g} of observation {o!r} under "
                f"mode {m} is a density, but {self.predictor!r} gives probabilities: use a "
                "predictor of densities, such as LinearPredictor or StudentPredictor"
            )
        return np.asarray(log_p)

    def _check_state(self, new: SimpleNamespace) -> None:
        t, step = new.clock.tolist()
        if not -1 <= step <= t:
            raise damaged(f"[t, step] of the alarm is {new.clock}")
        if np.isnan(new._log_e).any():
            raise damaged(f"the log-evidence of the alarm is {new._log_e}")
        new.t, new.step = t, None if step < 0 else step

    def _after_copy(self) -> None:
        self._watched = None

    def _status(self) -> str:
        bits = f"{self.evidence_bits:.3g}"
        silent = f"silent after {counted(self.t, 'step')}"
        state = f"raised at step {self.step}, now at {self.t}" if self.raised else silent
        return f"{state}, {bits} bit{'s' * (bits != '1')}"


class Alarm(WatchingAlarm):
    """An alarm that is raised once E_t ≥ 1/δ: the modes predict much worse than q.

    If one of the modes is true, the probability that the alarm is ever raised is at most `delta`.
    The predictor q must match the modes: probabilities for probabilities (`KrichevskyTrofimov`),
    densities for densities (`LinearPredictor`, `StudentPredictor`). Otherwise `delta` guarantees
    nothing. `Guarded` rejects a density if the modes have `observation_probabilities`; `observe`
    rejects a likelihood above 1 if q is a probability. An alarm watches one agent.

    `predictor` is q.

    >>> from bayescontrol.alarms.predictors import KrichevskyTrofimov
    >>> alarm = Alarm(KrichevskyTrofimov(["heads", "tails"]), delta=0.05)
    >>> for _ in range(9):  # one mode gives tails 1/2, the other 1/10
    ...     alarm.observe("table", "toss", "tails", [math.log(0.5), math.log(0.1)])
    >>> alarm
    Alarm(δ = 0.05, raised at step 7, now at 9, 6.57 bits against the best mode)
    """

    saved_fields = declare(
        Fixed("delta"),
        Array("log_e", "_log_e", shape=(None,), finite=False),
        Part("predictor/", "predictor", in_place=True),
    )

    def __init__(self, predictor: Predictor, delta: float) -> None:
        self.delta = require_between("delta", delta, 0.0, 1.0, ends="()")
        super().__init__(predictor, threshold=-math.log(self.delta))

    # -- the belief of an agent ------------------------------------------------------------------

    def require_belief(self, agent: Any, first: int = 0) -> None:
        """Raise `MissingCapability` if δ would not bound the false alarms of this agent."""
        belief = finite_belief(agent, "the alarm")
        if isinstance(belief, FadingBelief | SwitchingBelief):
            raise MissingCapability(
                f"the alarm does not support a {type(belief).__name__}: it tests whether one mode "
                "explains all observations, so any change would raise the alarm; use a FiniteBelief"
            )
        super().require_belief(agent, first)

    def evidence(self, belief: Any, x: Any, a: Any, o: Any) -> tuple[Any, FloatArray, FloatArray]:
        """Return o, and ln P(o | m, x, a) and the weights of all modes."""
        log_p = belief.log_likelihoods(x, a, o)
        if isinstance(belief.on_impossible, Floor):
            log_p = np.maximum(log_p, np.log(belief.on_impossible.epsilon))
        return o, log_p, belief.weight_arrays()[0]

    # -- learning ------------------------------------------------------------------------------

    def weigh(
        self, x: Any, a: Any, o: Any, log_p: ArrayLike, w: FloatArray | None = None
    ) -> FloatArray:
        """Return ln E_t(m) of every mode as it would be after o; the alarm does not change.

        `log_p` are ln P(o | m, x, a) of all modes, `w` their weights. Modes of weight 0 do not
        count: their E is ∞, never the smallest. Raises `BadEvidence` if a log-likelihood or o is
        invalid.
        """
        log_p = self._as_log_likelihoods(log_p, o, w)
        log_q = log_prediction(self.predictor, x, a, o)
        if math.isnan(log_q):  # no prediction: q / P = 1, so E_t(m) stays, except where P = 0
            log_p, log_q = np.where(np.isneginf(log_p), log_p, 0.0), 0.0
        log_e, weights = np.empty(len(log_p)), np.ones(len(log_p)) if w is None else w
        kernels.tabular.weigh(self.log_evidence(len(log_p)), weights, log_p, log_q, out=log_e)
        return log_e

    def take(self, x: Any, a: Any, o: Any, log_e: FloatArray) -> bool:
        """Store the result of `weigh` and let q learn o; return True if this raised the alarm."""
        self.predictor.update(x, a, o)
        return self.fast_forward(steps=1, log_e=log_e)

    def reset(self) -> None:
        """Restart the e-process with E = 1; it has its own false-alarm probability δ.

        The predictor keeps its statistics.
        """
        self.step = None
        self._log_e = np.zeros(len(self._log_e))

    # -- for compiled loops ----------------------------------------------------------------

    def log_evidence(self, modes: int) -> FloatArray:
        """Return a copy of ln E_t(m) for `modes` modes; it is 0 for modes that were added since."""
        return np.concatenate([self._log_e, np.zeros(modes - len(self._log_e))])

    def __repr__(self) -> str:
        return f"Alarm(δ = {self.delta:g}, {self._status()} against the best mode)"


def _effective_modes(agent: Any, _a: Any, _o: Any) -> float:
    """2^H of the posterior P(m | âo_≤t): a number between 1 and M, over T steps (T,).

    It is 1 if the agent is certain and M if all M modes are equally likely.
    It is measured after the agent has observed o_t.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> print(f"{effective_modes.measure(prize_or_frog().agent(), 0, 1):.6f}")
    2.000000
    """
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, ParticleBelief):
        belief = finite_belief(agent, "the effective number of modes")
    v = belief.posterior()
    v = v[v > 0.0]
    return float(np.exp(-(v * np.log(v)).sum()))


def _mode_surprise(agent: Any, a: Any, o: Any) -> FloatArray:
    """-log2 P(o | m, x, a) for every mode, in bits; ∞ where the mode rules o out.

    As a probe it is measured before the agent observes o_t: an array (M,), over T steps (T, M). If
    the modes give densities, the value depends on the unit of o and may be negative.

    >>> from bayescontrol import TabularModes
    >>> coins = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.75, 0.25]]]])
    >>> mode_surprise.measure(coins.agent(), 0, 1)
    array([inf,  2.])
    """
    belief = finite_belief(agent, "the surprise of each mode")
    return -belief.log_likelihoods(agent.x, a, o) / LN2 + 0.0


def _alarm_evidence(agent: Any, _a: Any, _o: Any) -> float:
    """log2 E_t of a guarded agent's alarm, in bits: a number, over T steps (T,).

    These are the bits by which the predictor is ahead of the best mode; the alarm is raised at
    log2 1/δ. It is measured after the agent has observed o_t.

    >>> from bayescontrol.alarms import Alarm, Guarded, KrichevskyTrofimov
    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> agent = Guarded(prize_or_frog().agent(), Alarm(KrichevskyTrofimov(2), delta=0.01))
    >>> alarm_evidence.measure(agent, 0, 1)
    0.0
    """
    alarm = getattr(agent, "alarm", None)
    if alarm is None:
        raise MissingCapability(f"{agent!r} has no alarm: use Guarded(agent, Alarm(...))")
    return float(alarm.evidence_bits)


#: 2^H of the posterior P(m | âo_≤t), after the update: a number from 1 to M, over T steps (T,).
effective_modes: Final = Probe(_effective_modes)
#: -log2 P(o_t | m, x, a_t) in bits for every m, before the update: an array (M,), over T steps
#: (T, M); ∞ where a mode rules o_t out.
mode_surprise: Final = Probe(_mode_surprise, "before")
#: log2 E_t of a guarded agent's alarm in bits, after the update: a number, over T steps (T,).
alarm_evidence: Final = Probe(_alarm_evidence)

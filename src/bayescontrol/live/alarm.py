"""The belief that probes and the alarm read: over finitely many modes, P(m | âo_<t) for each.

The alarm's bound on false alarms holds if one mode is true, for good and as it states its
likelihood. It does not hold in a world that changes, nor for a likelihood with a noise floor:

    o = f + w, w ~ N(0, σ²)     but the mode says     N(o; f, s²),  s² = σ² + φ²

Against N(f, σ²), which the predictor learns, such a mode loses ¼ (φ/σ)⁴ nats a step while φ is
small against σ; without noise, σ = 0, the loss grows with every step.

The alarm that no mode fits: an e-process against the whole class.

    E_t = q(o_≤t | â_≤t) / max_m P(o_≤t | m, â_≤t) = min_m Π_τ q(o_τ | ·) / P(o_τ | m, x_τ, a_τ)

If m is true, its own ratio is a non-negative supermartingale that starts at 1, whoever chooses
the actions, and E_t is below it. By Ville's inequality P(E_t ≥ 1/δ at some t) ≤ δ under every
mode, so one may look at every step and stop when one likes. If no mode is true and q learns the
world, ln E_t grows by the relative entropy of the world from the nearest mode.
"""

import math
from operator import index
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.beliefs.changing import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability
from bayescontrol.experts.mode import Gaussian
from bayescontrol.live.predictors import Predictor, saved_arrays
from bayescontrol.protocols import LogModeArray, ModeArray, ObservationProbabilities, Persistent

#: The largest φ/σ that the alarm accepts: a loss of 0.03 nats in ten million steps.
SMALL_FLOOR: Final = 0.01


def finite_belief(agent: Any, what: str) -> FiniteBelief[Any]:
    """The agent's belief over finitely many modes; `what` says what it is needed for.

    >>> from bayescontrol import BernoulliBandit
    >>> finite_belief(BernoulliBandit(2).agent(), "the alarm")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: the alarm needs finitely many modes ...
    """
    belief = getattr(agent, "belief", None)
    if not isinstance(belief, FiniteBelief):
        has = "no belief" if belief is None else f"the belief {belief!r}"
        raise MissingCapability(
            f"{what} needs finitely many modes and the agent has {has}: "
            "give it a FiniteBelief, over a grid where the class is a continuum"
        )
    return belief


def gives_probabilities(belief: FiniteBelief[Any]) -> bool:
    """Are the modes known to give probabilities, not densities: Σ_o P(o | m, x, a) = 1?

    They are if any of them offers `observation_probabilities`. One that only has a likelihood
    may give either.

    >>> from bayescontrol.problems.tabular import random_modes
    >>> gives_probabilities(random_modes(2).agent().belief)
    True
    """
    if belief.offers(ObservationProbabilities):
        return True
    modes: Any = belief.modes
    some = [modes[0]] if isinstance(modes, ModeArray | LogModeArray) else modes
    return any(isinstance(mode, ObservationProbabilities) for mode in some)


def require_bound(belief: FiniteBelief[Any], first: int = 0) -> None:
    """Refuse beliefs, and modes from number `first` on, for which δ bounds no false alarms.

    Modes without weight, such as retired ones, are passed over.

    >>> from bayescontrol.experts import SimulatorMode
    >>> exact = SimulatorMode(lambda x, u: 0.0, lambda x: 0, Gaussian(std=0.0, floor=0.1), "exact")
    >>> require_bound(FiniteBelief([exact]))
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: mode 0 (exact) has noise ... floor ...
    """
    if isinstance(belief, FadingBelief | SwitchingBelief):
        raise MissingCapability(
            f"the alarm cannot watch a {type(belief).__name__}: it asks whether one mode that "
            "never changes explains everything seen, so each change of the world would raise it; "
            "guard a FiniteBelief"
        )
    modes: Any = belief.modes
    weights = belief.posterior()
    for m in range(first, len(modes) if isinstance(modes, list) else 0):
        if weights[m] == 0.0:
            continue
        noise = getattr(modes[m], "noise", None)
        if isinstance(noise, Gaussian) and noise.floor > (1 + 1e-9) * SMALL_FLOOR * noise.std.min():
            raise MissingCapability(
                f"mode {m} ({belief.name(m)}) has noise {noise!r}: the floor widens the density "
                "of the mode, but the plant does not have this noise, so even a plant that the "
                "simulator predicts exactly would raise the alarm in the end. Give every component "
                f"a std of at least {1 / SMALL_FLOOR:g} times the floor, or a smaller floor, or "
                f"retire it: belief.retire({m})"
            )


LN2: Final = 0.6931471805599453
#: Rows of tables sum to one up to rounding, and so may a probability exceed it.
ROUNDING: Final = 1e-6


class Alarm:
    """Raised once E_t ≥ 1/δ: then no mode explains what was seen nearly as well as q does.

    A false alarm, one under any of the modes, ever, has probability at most `delta`. The
    predictor gives q and must be a law of the same kind as the modes': probabilities where they
    give probabilities (`KrichevskyTrofimov`), densities where they give densities
    (`StudentPredictor`). A density against probabilities promises nothing: `Guarded` refuses it
    where the modes offer `observation_probabilities`. A probability against densities is found
    out when a mode gives more than one. An alarm watches one agent.

    >>> from bayescontrol.live.predictors import KrichevskyTrofimov
    >>> alarm = Alarm(KrichevskyTrofimov(["heads", "tails"]), delta=0.05)
    >>> for _ in range(9):  # one mode gives tails 1/2, the other 1/10
    ...     alarm.observe("table", "toss", "tails", [math.log(0.5), math.log(0.1)])
    >>> alarm
    Alarm(δ = 0.05, raised at step 7, now at 9, 6.57 bits against the best mode)
    """

    def __init__(self, predictor: Predictor, delta: float) -> None:
        if not (hasattr(predictor, "log_predict") and hasattr(predictor, "update")):
            raise MissingCapability(
                f"{predictor!r} is no predictor: it lacks log_predict(x, a, o) or update(x, a, o); "
                "for K possible observations write KrichevskyTrofimov(K)"
            )
        try:
            level = float(delta)
        except (TypeError, ValueError):
            level = math.nan
        if not 0.0 < level < 1.0:
            raise ValueError(f"delta={delta!r}: the rate of false alarms is between 0 and 1")
        self.predictor: Any = predictor
        self.delta = level
        #: Observations weighed.
        self.t = 0
        #: The t at which it was raised; None while it is silent.
        self.step: int | None = None
        # ln E_t(m); a mode that joins later starts at 0, where an e-process must.
        self._log_e: FloatArray = np.zeros(0)
        self._watched: Any = None

    # -- what it says ------------------------------------------------------------------------

    @property
    def threshold(self) -> float:
        """ln 1/δ."""
        return -math.log(self.delta)

    @property
    def raised(self) -> bool:
        """Has E_t reached 1/δ? For good, unless `reset`."""
        return self.step is not None

    @property
    def evidence_bits(self) -> float:
        """log2 E_t, now: the bits by which q is ahead of the best mode; ∞ if none is possible."""
        return float(self._log_e.min(initial=math.inf)) / LN2 if self._log_e.size else 0.0

    @property
    def mode_bits(self) -> FloatArray:
        """log2 E_t(m) for every mode: the bits by which q is ahead of it."""
        return self._log_e / LN2

    # -- what it learns ------------------------------------------------------------------------

    def weigh(
        self, x: Any, a: Any, o: Any, log_p: npt.ArrayLike, w: FloatArray | None = None
    ) -> FloatArray:
        """ln E_t(m) as it would be after o, given ln P(o | m, x, a) of every mode.

        Nothing changes. Modes whose weight in `w` is zero are not of the class.
        """
        known = len(self._log_e)
        try:
            p = np.array(log_p, np.float64)
        except (TypeError, ValueError):
            raise BadEvidence(f"log-likelihoods {log_p!r}: give one number for each mode") from None
        if p.ndim != 1 or len(p) < max(1, known) or (w is not None and len(w) != len(p)):
            raise BadEvidence(
                f"log-likelihoods of shape {p.shape} for {self._modes()}: give one each"
            )
        if not (p < math.inf).all():
            m = int(np.argmin(p < math.inf))
            raise BadEvidence(f"mode {m} gives log-likelihood {p[m]} to observation {o!r}")
        if p.max() > ROUNDING and getattr(self.predictor, "density", None) is False:
            m = int(p.argmax())
            raise BadEvidence(
                f"mode {m} gives likelihood {math.exp(min(p[m], 700.0)):.3g} to observation {o!r}, "
                f"no probability but a density, and {self.predictor!r} gives probabilities: use "
                "StudentPredictor, or a predictor of your own that gives a density"
            )
        log_q = float(self.predictor.log_predict(x, a, o))
        if not log_q < math.inf:
            raise BadEvidence(f"{self.predictor!r} gives log-likelihood {log_q} to {o!r}")
        out = np.empty(len(p))
        kernels.tabular.weigh(
            self._padded(len(p)), np.ones(len(p)) if w is None else w, p, log_q, out
        )
        return out

    def take(self, x: Any, a: Any, o: Any, log_e: FloatArray) -> bool:
        """Make what `weigh` gave for o so, and let q learn; True if this raised the alarm."""
        self.predictor.update(x, a, o)
        return self.fast_forward(1, log_e)

    def observe(self, x: Any, a: Any, o: Any, log_p: npt.ArrayLike) -> None:
        """E_t ← E_t(m) q(o | ·) / P(o | m, x, a), minimised over m. On an error nothing changed.

        There are as many modes as at first; if one joins the class, say so by `join`.
        """
        log_e = self.weigh(x, a, o, log_p)
        if self._log_e.size not in (0, log_e.size):
            raise BadEvidence(
                f"{log_e.size} log-likelihoods for {self._modes()}: give one each, and if modes "
                f"have joined, call join({log_e.size - self._log_e.size}) first"
            )
        self.take(x, a, o, log_e)

    def join(self, modes: int = 1) -> None:
        """So many modes join the class: E(m) ← 1 for each, where an e-process must start.

        Before the first observation there is nothing to say: it tells how many modes there are.

        >>> from bayescontrol.live.predictors import KrichevskyTrofimov
        >>> alarm = Alarm(KrichevskyTrofimov(2), delta=0.05)
        >>> alarm.observe("table", "toss", 1, [math.log(0.25)])
        >>> alarm.join()
        >>> alarm.mode_bits
        array([1., 0.])
        """
        if modes != int(modes) or modes < 1:
            raise ValueError(f"join({modes!r}): at least one mode joins")
        if self._log_e.size:
            self._log_e = self._padded(self._log_e.size + int(modes))

    def reset(self) -> None:
        """E ← 1, silent again: a new e-process from here, which may err with a δ of its own.

        What q has learnt it keeps.
        """
        self.step = None
        self._log_e = np.zeros(len(self._log_e))

    def _modes(self) -> str:
        count = self._log_e.size
        return f"{count} mode{'s' * (count != 1)}" if count else "all modes"

    def _padded(self, modes: int) -> FloatArray:
        return np.concatenate([self._log_e, np.zeros(modes - len(self._log_e))])

    # -- for compiled loops ----------------------------------------------------------------

    def log_evidence(self, modes: int) -> FloatArray:
        """ln E_t(m) for so many modes, a copy that a compiled loop may work on."""
        return self._padded(modes)

    def fast_forward(self, steps: int, log_e: FloatArray) -> bool:
        """Be so many steps on, at this ln E_t(m); True if the last step raised the alarm."""
        self.t += steps
        self._log_e = log_e
        if self.raised or not log_e.min() >= self.threshold:
            return False
        self.step = self.t
        return True

    # -- state -----------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        if not isinstance(self.predictor, Persistent):
            raise MissingCapability(f"{self.predictor!r} cannot be saved: it lacks save and load")
        arrays = {f"predictor/{name}": array for name, array in self.predictor.save().items()}
        clock = np.array([self.t, -1 if self.step is None else self.step])
        state = {"log_e": self._log_e.copy(), "clock": clock, "delta": np.array(self.delta)}
        return arrays | state

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for an alarm with the same δ built from the same parts."""
        arrays = saved_arrays(arrays, "alarm", "log_e", "clock", "delta")
        if not isinstance(self.predictor, Persistent):
            raise IncompatibleState(f"{self.predictor!r} cannot be loaded: it lacks save and load")
        log_e, clock, delta = arrays["log_e"], arrays["clock"], arrays["delta"]
        if delta.shape != () or delta[()] != self.delta:
            raise IncompatibleState(
                f"the saved alarm has δ = {delta}, this one δ = {self.delta:g}: an alarm raised at "
                "one level says nothing of another; make this one with the δ that was saved"
            )
        if log_e.ndim != 1 or log_e.dtype != np.float64 or np.isnan(log_e).any():
            raise IncompatibleState(f"the saved alarm is damaged: log_e is {log_e}")
        if clock.shape != (2,) or clock.dtype.kind != "i" or not -1 <= clock[1] <= clock[0]:
            raise IncompatibleState(f"the saved alarm is damaged: its clock is {clock}")
        size = len("predictor/")
        self.predictor.load({n[size:]: v for n, v in arrays.items() if n.startswith("predictor/")})
        t, step = (index(n) for n in clock)
        self._log_e, self.t, self.step = log_e.copy(), t, None if step < 0 else step

    def copy(self) -> "Alarm":
        """The same alarm, free to go its own way."""
        if not hasattr(self.predictor, "copy"):
            raise MissingCapability(f"{self.predictor!r} cannot be copied: it lacks copy()")
        twin = Alarm.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.predictor, twin._log_e = self.predictor.copy(), self._log_e.copy()
        twin._watched = None
        return twin

    def watch(self, agent: Any) -> None:
        """Be the alarm of this agent, and from now on of no other: what one saw is not the other's.

        >>> from bayescontrol.live.predictors import KrichevskyTrofimov
        >>> alarm = Alarm(KrichevskyTrofimov(2), delta=0.05)
        >>> alarm.watch("this agent")
        >>> alarm.watch("that agent")
        Traceback (most recent call last):
        bayescontrol.errors.IncompatibleState: the alarm watches another agent already, ...
        """
        if self._watched is not None and self._watched is not agent:
            raise IncompatibleState(
                f"the alarm watches another agent already, {self._watched!r}: make one for each "
                "agent, with a predictor of its own"
            )
        self._watched = agent

    def __repr__(self) -> str:
        state = f"raised at step {self.step}, now at {self.t}" if self.raised else "silent"
        after = "" if self.raised else f" after {self.t} step{'s' * (self.t != 1)}"
        bits = f"{self.evidence_bits:.3g}"
        what = f"{bits} bit{'s' * (bits != '1')} against the best mode"
        return f"Alarm(δ = {self.delta:g}, {state}{after}, {what})"

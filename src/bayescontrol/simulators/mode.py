"""An operation mode from a controller and a simulator.

    hypothesis   P(o | m, x, u) = N(o; f_m(x, u), S)        f_m: one step of the simulator
    policy       u = π_m(x)                                 the controller tuned for f_m

Both are callables: for example a hand-written controller, a trained network, or a simulator of any
library. The situation x is the state, or what is observed of it. The noise has a floor:

    o = f(x, u) + w + e,   w ~ N(0, diag σ²),   e ~ N(0, φ² I)

    ln P(o | x, u) = -½ Σ_i z_i² - Σ_i ln s_i - ½ d ln 2π,   z = (o - f(x, u)) / s,  s² = σ² + φ²

σ is the noise of the world and may be 0. The floor φ covers what a simulator cannot know, such as
rounding and wear. Without it, a simulator that is right to six digits is refuted by the first
observation. A smaller floor refutes wrong hypotheses faster: an error r costs r² / 2s² nats per
step.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._mode_queries import require, require_hashable
from bayescontrol.errors import BadEvidence, MissingCapability, UnknownAction
from bayescontrol.seeding import StreamLike, require_stream
from bayescontrol.situations import follows_state

_LN_2PI = math.log(2.0 * math.pi)


class SimulatorNoise:
    """Gaussian noise of a simulated step: density N(0, diag(σ² + φ²)), draws N(0, diag σ²).

    `std` is σ, one number or one per component; `floor` is φ, a positive number.

    >>> noise = SimulatorNoise(std=[0.0, 0.3], floor=0.4)
    >>> noise.scale.tolist()
    [0.4, 0.5]
    >>> round(noise.log_density([1.0, 2.0], [1.0, 2.5]), 6)    # one component off by one s
    -0.728439
    """

    def __init__(self, std: float | Sequence[float] | FloatArray = 0.0, floor: float = 1e-3):
        sigma = np.atleast_1d(np.array(std, np.float64))
        if sigma.ndim != 1 or not sigma.size or not (np.isfinite(sigma) & (sigma >= 0.0)).all():
            raise ValueError(
                f"SimulatorNoise(std={std!r}): it must be one standard deviation or one per "
                "component, finite and at least 0"
            )
        if not 0.0 < floor < math.inf:
            raise ValueError(
                f"SimulatorNoise(floor={floor!r}): it must be finite and above 0; "
                "with 0, a rounding error would rule out a correct simulator"
            )
        self.std, self.floor = sigma, float(floor)
        #: s = √(σ² + φ²), for each component.
        self.scale: FloatArray = np.hypot(sigma, self.floor)
        # Python numbers are faster than arrays for the few components of a plant.
        self._inverse = (1.0 / self.scale).tolist()
        self._log_scale = float(np.log(self.scale).sum())

    def log_density(self, o: Any, mean: Any) -> float:
        """Return ln N(o; mean, diag s²); a number is one component."""
        o, mean = _components(o, "the observation"), _components(mean, "the simulated step")
        d, sizes = len(mean), len(self._inverse)
        if len(o) != d:
            raise BadEvidence(
                f"the observation has {len(o)} components, but the simulated step has {d}"
            )
        if sizes not in (1, d):
            raise BadEvidence(
                f"{self!r} does not fit an observation of {d} components: give one std, or {d}"
            )
        squares, repeats = 0.0, d // sizes  # one standard deviation holds for all components
        values = o.tolist() if isinstance(o, np.ndarray) else o
        for o_i, mean_i, w in zip(values, mean, self._inverse * repeats, strict=True):
            z = (o_i - mean_i) * w
            squares += z * z
        return float(-0.5 * squares - self._log_scale * repeats - 0.5 * d * _LN_2PI)

    def log_bound(self, o: Any, mean: Any) -> float:
        """Return ln max_v N(o; mean, diag v) over σ² ≤ v ≤ σ² + φ²; ∞ if an exact hit is possible.

        The plant may have any of these variances: the floor is a bound on what the simulator
        cannot know. An error between σ and s is its own most likely standard deviation.

        >>> noise = SimulatorNoise(std=0.3, floor=0.4)
        >>> noise.log_bound(0.5, 0.0) == noise.log_density(0.5, 0.0)
        True
        >>> round(noise.log_bound(0.0, 0.0) - noise.log_density(0.0, 0.0), 6)  # ln 0.5/0.3
        0.510826
        """
        self.log_density(o, mean)  # raises if o or mean is invalid
        error = np.abs(np.asarray(o, np.float64) - np.asarray(mean, np.float64))
        v = np.clip(error, self.std, self.scale)
        if not v.all():
            return math.inf
        return float(-0.5 * (error / v) @ (error / v) - np.log(v).sum() - 0.5 * len(v) * _LN_2PI)

    def draw(self, d: int, rng: StreamLike) -> FloatArray:
        """Draw w ~ N(0, diag σ²) of d components."""
        if self.std.size not in (1, d):
            raise ValueError(
                f"{self!r} does not fit a state of {d} components: give one std, or {d}"
            )
        w: FloatArray = self.std * require_stream(rng).normal(size=d)
        return w

    def __repr__(self) -> str:
        std = float(self.std[0]) if self.std.size == 1 else self.std.tolist()
        return f"SimulatorNoise(std={std}, floor={self.floor})"


def _components(value: Any, what: str) -> Any:
    """Return the value as a sequence of numbers; a single number becomes a list."""
    if isinstance(value, list | tuple) and all(type(part) is float for part in value):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal length
        array = np.empty((0, 0))
    if array.ndim > 1 or array.dtype.kind not in "fiu":
        raise BadEvidence(
            f"{what} is {value!r}: it must be a number or a one-dimensional sequence of numbers"
        )
    return value if array.ndim else [array.item()]


class Noise(Protocol):
    """P(o | f(x, u)): the distribution of an observation given the simulated step."""

    def log_density(self, o: Any, mean: Any, /) -> float: ...


@follows_state
def next_state(x: Any, u: Any, o: Any) -> Any:
    """T(x, u, o) = o: the observation is the next situation, for `ControlRule(advance=...)`.

    A list becomes an array. An array is copied, because the environment may reuse it.

    >>> next_state([0.0], 1, [0.5])
    array([0.5])
    """
    return np.array(o) if isinstance(o, list | np.ndarray) else o


def require_function(function: object, call: str, label: str) -> None:
    """Raise `MissingCapability` unless `function` can be called as `call`, e.g. "policy(x)"."""
    about = f"{label}: expected a function {call}, got {function!r}"
    if hasattr(function, "frequency_response"):
        raise MissingCapability(
            f"{about}, a python-control system, which evaluates its frequency response if called. "
            "Pass a function for one step in time, such as lambda x, u: A @ x + B @ u. If the "
            "system is a plant whose state is not observed, use PlantMode; if it is a controller, "
            "pass its gain"
        )
    if not callable(function):
        reason = "is a mode" if hasattr(function, "act") else "is not callable"
        raise MissingCapability(f"{about}, which {reason}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a built-in without a signature
        return
    try:
        signature.bind(*call.partition("(")[2].split(","))
    except TypeError:
        raise MissingCapability(f"{about}, which has the wrong arguments: {signature}") from None


def reject_action_state_pair(u: object, label: str) -> None:
    """Raise `UnknownAction` for a tuple that contains arrays or None, such as (action, state).

    Some trained policies return such a pair; `label` names the policy or mode in the message.
    """
    if isinstance(u, tuple) and any(v is None or isinstance(v, np.ndarray) for v in u):
        raise UnknownAction(
            f"{label} returned {u!r}, which is not an action: expected a number, an array, a name, "
            "or a tuple of numbers or names. If model.predict(x) returns (action, state), use "
            "policy=lambda x: model.predict(x)[0]"
        )


class SimulatorMode:
    """An operation mode from a simulator and a controller.

    P(o | m, x, u) = N(o; step(x, u), S) and u = policy(x). `noise` is a `SimulatorNoise`, or an
    object with `log_density(o, mean)`.

    `step(x, u)` returns the expected next observation, `policy(x)` the input; `name` is for
    display.

    >>> import numpy as np
    >>> def drift(x, u): return x + 0.1 * u
    >>> cart = SimulatorMode(drift, lambda x: float(-x[0]), SimulatorNoise(0.1), "cart")
    >>> x = np.array([1.0])
    >>> cart.act(x, rng=None), round(cart.log_likelihood(x, -1.0, np.array([0.9])), 3)
    (-1.0, 1.384)
    >>> cart
    SimulatorMode('cart')
    """

    __slots__ = ("name", "noise", "policy", "step")

    def __init__(
        self,
        step: Callable[[Any, Any], Any],
        policy: Callable[[Any], Any],
        noise: Noise | None = None,
        name: str = "",
    ) -> None:
        require_function(step, "step(x, u)", f"SimulatorMode {name!r}")
        require_function(policy, "policy(x)", f"SimulatorMode {name!r}")
        self.step, self.policy, self.name = step, policy, name
        self.noise: Noise = SimulatorNoise() if noise is None else noise
        require(self.noise, Noise, f"SimulatorMode {name!r}: noise={noise!r}")

    def act(self, x: Any, rng: "StreamLike | None") -> Any:
        """Return u = π(x); raise `UnknownAction` if u is None, not finite, or an invalid tuple."""
        u = self.policy(x)
        if type(u) is int or (type(u) is float and math.isfinite(u)):  # fast path
            return u
        try:
            is_valid = u is not None and bool(np.isfinite(u).all())
        except (TypeError, ValueError):
            is_valid = True  # a name, or a tuple of names
        if not is_valid:
            raise UnknownAction(
                f"{self!r}: the policy returned {u!r} in situation {x!r}: expected finite numbers, "
                "a name, or a tuple of names; check that the policy covers this situation"
            )
        reject_action_state_pair(u, repr(self))
        return u

    def log_likelihood(self, x: Any, u: Any, o: Any) -> float:
        """Return ln N(o; f(x, u), S); NaN, which beliefs reject, if the simulation failed."""
        mean = self.step(x, u)
        try:
            density = self.noise.log_density(o, mean)
        except BadEvidence as error:
            raise BadEvidence(f"{self!r}: {error}") from None
        if math.isfinite(density):
            return density
        if np.isnan(o).any():
            raise BadEvidence(
                f"{self!r}: the observation {o!r} contains NaN; if a sensor failed, pass MISSING"
            )
        return density if np.isfinite(mean).all() else math.nan

    def action_likelihood(self, x: Any, u: Any) -> float:
        """Return P(u | m, x): 1 for the controller's action, 0 for all others."""
        return float(np.array_equal(self.act(x, None), u))

    def action_probabilities(self, x: Any) -> Mapping[Any, float]:
        """Return P(u | m, x), which is 1 for π(x)."""
        u = self.act(x, None)
        require_hashable(action=u)
        return {u: 1.0}

    def __repr__(self) -> str:
        return f"SimulatorMode({self.name!r})"


def limited(policy: Callable[[Any], Any], low: ArrayLike, high: ArrayLike) -> Callable[[Any], Any]:
    """Return the policy with its input clipped: u = min(max(policy(x), low), high).

    Limits are numbers or one per input. The limited policy raises `UnknownAction` if the input is
    not a number or has a different shape than the limits.

    >>> torque = limited(lambda x: -10.0 * x, -2.0, 2.0)
    >>> torque(0.1), torque(5.0)
    (-1.0, -2.0)
    >>> limited(torque, 1.0, -1.0)
    Traceback (most recent call last):
    ValueError: limits low=1.0, high=-1.0: low must be below high, with the same shape
    """
    require_function(policy, "policy(x)", "limited")
    lower, upper = np.asarray(low, np.float64), np.asarray(high, np.float64)
    fits = lower.shape == upper.shape or not lower.ndim or not upper.ndim
    if not fits or not (lower < upper).all():
        raise ValueError(
            f"limits low={low!r}, high={high!r}: low must be below high, with the same shape"
        )
    shape, label = (lower + upper).shape, getattr(policy, "__qualname__", repr(policy))
    bounds = (lower, upper) if shape else (float(lower), float(upper))

    def clipped(x: Any) -> Any:
        """Return the clipped input; raise `UnknownAction` if it is invalid."""
        u = policy(x)
        reject_action_state_pair(u, f"the policy {label}")
        try:
            value = np.asarray(u, np.float64)
        except (TypeError, ValueError):
            value = np.array(np.nan)
        if np.isnan(value).any():
            raise UnknownAction(
                f"the policy {label} returned {u!r} in situation {x!r}: expected a number, or an "
                "array without NaN"
            )
        if shape and value.shape != shape:
            raise UnknownAction(
                f"the policy {label} returned {u!r} of shape {value.shape}, but its limits have "
                f"shape {shape}: give one limit for each input"
            )
        if value.ndim or isinstance(u, np.ndarray):
            return np.clip(u, *bounds)
        return min(max(u, bounds[0]), bounds[1])

    return clipped

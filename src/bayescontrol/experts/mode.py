"""Noise around a simulated step, and the floor without which a simulator refutes itself.

    o = f(x, u) + w + e,   w ~ N(0, diag σ²),   e ~ N(0, φ² I)

    ln P(o | x, u) = -½ Σ_i z_i² - Σ_i ln s_i - ½ d ln 2π,   z = (o - f(x, u)) / s,  s² = σ² + φ²

σ is the noise of the world, zero if need be. φ, the floor, is what a simulator cannot know:
rounding, wear, all that was left out. A simulator that is right to six digits and claims to be
right to sixteen is refuted by the first observation. The smaller the floor, the faster wrong
hypotheses fall: a prediction that is off by r costs r² / 2s² nats a step.

An operation mode out of a controller and a simulator.

    hypothesis   P(o | m, x, u) = N(o; f_m(x, u), S)        f_m: one step of the simulator
    policy       u = π_m(x)                                 the controller tuned for f_m

Any two callables will do: a controller worked out on paper, a network that someone trained, a
simulator in any library. The situation x is the state, or whatever is observed of it.

Limits of an input: u ← min(max(u, low), high), component by component.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, MissingCapability, UnknownAction
from bayescontrol.seeding import Stream
from bayescontrol.situations import follows_state

_LN_2PI = math.log(2.0 * math.pi)


class Gaussian:
    """N(0, diag(σ² + φ²)) as a density, N(0, diag σ²) as a draw: the floor is the model's own.

    `std` is σ, one number or one for each component; `floor` is φ, one number above 0.

    >>> noise = Gaussian(std=[0.0, 0.3], floor=0.4)
    >>> noise.scale.tolist()
    [0.4, 0.5]
    >>> round(noise.log_density([1.0, 2.0], [1.0, 2.5]), 6)    # one component off by one s
    -0.728439
    """

    def __init__(self, std: float | Sequence[float] | FloatArray = 0.0, floor: float = 1e-3):
        sigma = np.atleast_1d(np.array(std, np.float64))
        if sigma.ndim != 1 or not sigma.size or not (np.isfinite(sigma) & (sigma >= 0.0)).all():
            raise ValueError(
                f"Gaussian(std={std!r}): a standard deviation, or one for each component, finite "
                "and at least 0"
            )
        if not 0.0 < floor < math.inf:
            raise ValueError(
                f"Gaussian(floor={floor!r}): a floor above 0, finite; a simulator without one is "
                "refuted by its own rounding"
            )
        self.std, self.floor = sigma, float(floor)
        #: s = √(σ² + φ²), for each component.
        self.scale: FloatArray = np.hypot(sigma, self.floor)
        # Plain numbers: for the few components of a plant they are faster than arrays.
        self._inverse = (1.0 / self.scale).tolist()
        self._log_scale = float(np.log(self.scale).sum())

    def log_density(self, o: Any, mean: Any) -> float:
        """ln N(o; mean, diag s²); a number stands for one component.

        >>> Gaussian(floor=1.0).log_density([0.0], [0.0, 0.0])
        Traceback (most recent call last):
        bayescontrol.errors.BadEvidence: an observation of 1 components, a simulated step of 2: ...
        """
        o, mean = _components(o, "the observation"), _components(mean, "the simulated step")
        d = len(mean)
        inverse, log_scale = self._inverse, self._log_scale
        if len(inverse) == 1:
            inverse, log_scale = inverse * d, log_scale * d
        if len(o) != d:
            raise BadEvidence(
                f"an observation of {len(o)} components, a simulated step of {d}: they must be as "
                "many"
            )
        if len(inverse) != d:
            raise BadEvidence(
                f"{self!r} has {len(inverse)} deviations, the observation {d} components: give one "
                f"std, or {d}"
            )
        squares = 0.0
        seen = o.tolist() if isinstance(o, np.ndarray) else o
        for o_i, mean_i, w in zip(seen, mean, inverse, strict=True):
            z = (o_i - mean_i) * w
            squares += z * z
        return float(-0.5 * squares - log_scale - 0.5 * d * _LN_2PI)

    def draw(self, d: int, rng: Stream) -> FloatArray:
        """w ~ N(0, diag σ²), of d components.

        >>> Gaussian(std=[0.0, 1.0]).draw(2, Stream(0)).shape
        (2,)
        """
        if self.std.size not in (1, d):
            raise ValueError(f"{self!r} for a state of {d} components: give one std, or {d}")
        w: FloatArray = self.std * rng.normal(size=d)
        return w

    def __repr__(self) -> str:
        std = float(self.std[0]) if self.std.size == 1 else self.std.tolist()
        return f"Gaussian(std={std}, floor={self.floor})"


def _components(value: Any, what: str) -> Any:
    """The value, as a sequence of numbers."""
    if isinstance(value, list | tuple) and all(type(part) is float for part in value):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal length
        array = np.empty((0, 0))
    if array.ndim > 1 or array.dtype.kind not in "fiu":
        raise BadEvidence(
            f"{what} is {value!r}: it must be one number for each component, a sequence or an "
            "array of one dimension"
        )
    return value if array.ndim else [array.item()]


class Noise(Protocol):
    """P(o | f(x, u)): how observations scatter around a simulated step."""

    def log_density(self, o: Any, mean: Any, /) -> float: ...


@follows_state
def next_state(x: Any, u: Any, o: Any) -> Any:
    """T(x, u, o) = o: the observation is the next situation. For `ControlRule(advance=...)`.

    A list becomes an array, and an array is copied: the world may write its next o over it.

    >>> next_state([0.0], 1, [0.5])
    array([0.5])
    """
    return np.array(o) if isinstance(o, list | np.ndarray) else o


def require_function(function: Any, call: str, who: str) -> None:
    """Refuse what cannot be called as `call` says, "policy(x)" or "step(x, u)".

    >>> require_function(lambda x: 0.0, "policy(x)", "this mode")
    >>> require_function(lambda x, rng: 0.0, "policy(x)", "this mode")
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: this mode: policy(x) is <function ...>, which ...
    """
    given = f"{who}: {call} is {function!r}"
    if type(function).__module__.partition(".")[0] == "control" and hasattr(
        function, "frequency_response"
    ):
        raise MissingCapability(
            f"{given}, a system of python-control: calling it evaluates its frequency response. "
            "Pass a function of one step in time: with the matrices of a discrete-time state "
            "space, lambda x, u: A @ x + B @ u. If the state is not observed, use "
            "linear.OutputMode"
        )
    if not callable(function):
        what = "is a mode" if hasattr(function, "act") else "cannot be called"
        raise MissingCapability(f"{given}, which {what}: give a function {call}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # built in, without a signature
        return
    try:
        signature.bind(*call.partition("(")[2].split(","))
    except TypeError:
        raise MissingCapability(
            f"{given}, which does not take these arguments but {signature}"
        ) from None


def refuse_pair(u: Any, who: str) -> None:
    """Refuse a tuple with arrays or None in it, such as (action, state), for an action.

    >>> refuse_pair(("left", 2), "this policy")
    >>> refuse_pair((0.5, None), "this policy")
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: this policy asks for (0.5, None), ...
    """
    if isinstance(u, tuple) and any(v is None or isinstance(v, np.ndarray) for v in u):
        raise UnknownAction(
            f"{who} asks for {u!r}, which is no action: it must be a number, an array, a name, or "
            "a tuple of numbers or names. If model.predict(x) returns (action, state), write "
            "policy=lambda x: model.predict(x)[0]"
        )


class SimulatorMode:
    """P(o | m, x, u) = N(o; step(x, u), S) and u = policy(x).

    `noise` is a `Gaussian`, or anything with `log_density(o, mean)`.

    >>> import numpy as np
    >>> def drift(x, u): return x + 0.1 * u
    >>> cart = SimulatorMode(drift, lambda x: float(-x[0]), Gaussian(0.1), "cart")
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
        self.noise: Noise = Gaussian() if noise is None else noise
        if not hasattr(self.noise, "log_density"):
            raise MissingCapability(
                f"SimulatorMode {name!r}: noise={noise!r} has no log_density(o, mean); write "
                "Gaussian(std)"
            )

    def act(self, x: Any, rng: Stream) -> Any:
        """u = π(x); `UnknownAction` if that is None, not finite, or a tuple that is no action."""
        return self._choice(x)

    def _choice(self, x: Any) -> Any:
        u = self.policy(x)
        if type(u) is int or (type(u) is float and math.isfinite(u)):  # fast, and most common
            return u
        try:
            fine = u is not None and bool(np.isfinite(u).all())
        except (TypeError, ValueError):
            fine = True  # a name, or a tuple of names
        if not fine:
            raise UnknownAction(f"{self!r}: its policy asks for {u!r} in situation {x!r}")
        refuse_pair(u, repr(self))
        return u

    def log_likelihood(self, x: Any, u: Any, o: Any) -> float:
        """ln N(o; f(x, u), S); NaN, which a belief refuses, if the simulator gives no numbers."""
        mean = self.step(x, u)
        try:
            density = self.noise.log_density(o, mean)
        except BadEvidence as error:
            raise BadEvidence(f"{self!r}: {error}") from None
        if math.isfinite(density):
            return density
        if np.isnan(o).any():
            raise BadEvidence(
                f"{self!r} is asked about the observation {o!r}, no number: did a sensor drop out?"
            )
        return density if np.isfinite(mean).all() else math.nan

    def action_likelihood(self, x: Any, u: Any) -> float:
        """P(u | m, x): 1 for what the controller does, 0 for all else."""
        return float(np.array_equal(self._choice(x), u))

    def action_probabilities(self, x: Any) -> Mapping[Any, float]:
        """P(u | m, x), all of it on π(x)."""
        u = self._choice(x)
        try:
            return {u: 1.0}
        except TypeError:
            raise MissingCapability(
                f"{self!r} answered {u!r}: for probabilities of actions the policy must return "
                "a number or a tuple, not an array"
            ) from None

    def __repr__(self) -> str:
        return f"SimulatorMode({self.name!r})"


def limited(
    policy: Callable[[Any], Any], low: npt.ArrayLike, high: npt.ArrayLike
) -> Callable[[Any], Any]:
    """x ↦ min(max(policy(x), low), high): a controller that never asks for more.

    A number stays a number. A controller of many inputs may have a limit for each. What is no
    number, or not one for each limit, is refused: `UnknownAction`.

    >>> torque = limited(lambda x: -10.0 * x, -2.0, 2.0)
    >>> torque(0.1), torque(5.0)
    (-1.0, -2.0)
    >>> limited(torque, 1.0, -1.0)
    Traceback (most recent call last):
    ValueError: limits low=1.0, high=-1.0: low must be below high
    """
    require_function(policy, "policy(x)", "limited")
    least, most = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if least.shape != most.shape and least.ndim and most.ndim:
        raise ValueError(f"limits low={low!r}, high={high!r}: as many of one as of the other")
    if not (least < most).all():
        raise ValueError(f"limits low={low!r}, high={high!r}: low must be below high")
    shape, who = (least + most).shape, getattr(policy, "__qualname__", repr(policy))

    def checked(x: Any) -> Any:
        u = policy(x)
        refuse_pair(u, f"the policy {who}")
        try:
            value = np.asarray(u, np.float64)
        except (TypeError, ValueError):
            value = np.array(np.nan)
        if np.isnan(value).any():
            raise UnknownAction(f"the policy {who} asks for {u!r} in situation {x!r}: no number")
        if shape and value.shape != shape:
            raise UnknownAction(
                f"the policy {who} asks for {u!r}, of shape {value.shape}: the limits are for "
                f"inputs of shape {shape}"
            )
        return u if value.ndim == 0 else np.asarray(u)

    if shape:
        return lambda x: np.clip(checked(x), least, most)
    bottom, top = float(least), float(most)

    def within(x: Any) -> Any:
        u = checked(x)
        return np.clip(u, bottom, top) if isinstance(u, np.ndarray) else min(max(u, bottom), top)

    return within

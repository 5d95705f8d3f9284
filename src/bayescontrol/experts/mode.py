"""An operation mode out of a controller and a simulator.

    hypothesis   P(o | m, x, u) = N(o; f_m(x, u), S)        f_m: one step of the simulator
    policy       u = π_m(x)                                 the controller tuned for f_m

Any two callables will do: a controller worked out on paper, a network that someone trained, a
simulator in any library. The situation x is the state, or whatever is observed of it.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from bayescontrol.errors import BadEvidence, MissingCapability, UnknownAction
from bayescontrol.experts.noise import Gaussian
from bayescontrol.seeding import Stream
from bayescontrol.situations import follows_state


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

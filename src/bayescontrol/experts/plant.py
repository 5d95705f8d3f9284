"""A Gymnasium environment as the plant, and the same environment as a simulator.

    plant       s ← F_θ(s, u) + w,   o = g(s) + v            once, in the world
    simulator   f_θ(x, u) = g(F_θ(g⁻¹(x), u))                from any x, as often as asked

F_θ is the environment's own `step`, as it comes: θ are attributes that it has (`length`, `m`,
`gravity`), set from outside, and its state is set before a simulated step. No physics stands
here twice. w and v are noise of the process and of the measurement, none by default.

With measurement noise a simulator starts from a wrong x, and its residual is v' - f'(x) v: give
the modes a Gaussian of that size. Successive residuals then share a v, and the posterior is
somewhat too sure of itself.

The linear plant that a simulator is, near a point.

    f(s, u) ≈ f(s₀, u₀) + A (s - s₀) + B (u - u₀),     A = ∂f/∂s,  B = ∂f/∂u

By central differences, so any simulator will do: ∂f/∂s_i ≈ (f(s₀ + h e_i) - f(s₀ - h e_i)) / 2h.
The regulator for (A, B) is `linear.riccati`'s.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import EpisodeOver, MissingExtra, UnknownParameter
from bayescontrol.experts.mode import Gaussian
from bayescontrol.seeding import Stream, as_stream


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """A kind of plant: a Gymnasium environment with a `state` that can be set.

    `observe` is g and `place` is g⁻¹, both the identity where the state is observed;
    `command` makes of an action what the environment takes; `clear` names attributes that are
    set to None before a simulated step.

    >>> hill = Kind("MountainCar-v0")
    >>> step = hill.simulator(gravity=0.003)
    >>> step((-0.5, 0.0), 2)
    (-0.499..., 0.0007...)
    >>> hill.simulator(gravitas=0.003)
    Traceback (most recent call last):
    bayescontrol.errors.UnknownParameter: MountainCar-v0 has no attribute 'gravitas'...
    """

    id: str
    observe: Callable[[Any], Any] = _as_it_is
    place: Callable[[Any], Any] = _as_it_is
    command: Callable[[Any], Any] = _as_it_is
    clear: tuple[str, ...] = ()

    def make(self, **attributes: float) -> Any:
        """The environment, reset, its attributes set: θ."""
        try:
            import gymnasium
        except ImportError:
            raise MissingExtra(
                f"{self.id} needs Gymnasium: pip install 'bayescontrol[gym]'"
            ) from None
        env: Any = gymnasium.make(self.id).unwrapped
        env.reset(seed=0)
        set_attributes(env, self.id, attributes)
        return env

    def simulator(self, **attributes: float) -> Callable[[Any, Any], Any]:
        """f_θ(x, u): what the environment with these attributes does in one step from x."""
        env = self.make(**attributes)
        observe, place, command, clear = self.observe, self.place, self.command, self.clear

        def step(x: Any, u: Any) -> Any:
            # Plain floats: NumPy's own scalars would make every operation in `step` slower.
            env.state = tuple(map(float, place(x)))
            for name in clear:
                setattr(env, name, None)
            env.step(command(u))
            return observe(tuple(map(float, env.state)))

        return step

    def plant(
        self,
        rng: int | Stream = 0,
        *,
        process: float | Sequence[float] = 0.0,
        measurement: float | Sequence[float] = 0.0,
        **attributes: float,
    ) -> "Plant":
        """The world: the environment with these attributes, started with a seed from `rng`."""
        return Plant(self, rng, process, measurement, attributes)


class Plant:
    """The environment in the stream: s ← F(s, u) + w, o = g(s) + v.

    `process` and `measurement` are the standard deviations of w and v. `terminated` is what
    the environment said last; an episode that is over answers no more.

    >>> from bayescontrol.experts.classic_control import CARTPOLE
    >>> plant = CARTPOLE.plant(rng=0, force_mag=-10.0)
    >>> o = plant.respond(1, Stream(0))
    >>> o.shape, bool(o[1] < plant.start[1]), plant.terminated     # 1 pushes to the left here
    ((4,), True, False)
    """

    #: `interact` refuses an agent that follows the observations and is elsewhere.
    shows_state: ClassVar[bool] = True

    def __init__(
        self,
        kind: Kind,
        rng: int | Stream = 0,
        process: float | Sequence[float] = 0.0,
        measurement: float | Sequence[float] = 0.0,
        attributes: dict[str, float] | None = None,
    ) -> None:
        self.kind = kind
        self._process, self._measurement = Gaussian(process), Gaussian(measurement)
        self._env = kind.make(**attributes or {})
        first = self._env.reset(seed=as_stream(rng).integers(2**31))[0]
        #: What is observed before the first action: the agent's first situation.
        self.start: FloatArray = np.array(first, np.float64)
        #: What was observed last: the agent's situation.
        self.x: FloatArray = self.start.copy()
        #: Steps since the start.
        self.steps = 0
        #: Has the environment said that the episode is over?
        self.terminated = False

    def respond(self, u: Any, rng: Stream) -> FloatArray:
        """o = g(s) + v, after s ← F(s, u) + w."""
        if self.terminated:
            raise EpisodeOver(
                f"{self.kind.id} ended its episode at step {self.steps}: make a new plant"
            )
        env = self._env
        self.terminated = bool(env.step(self.kind.command(u))[2])
        self.steps += 1
        if self._process.std.any():
            env.state = np.asarray(env.state) + self._process.draw(len(env.state), rng)
        o = np.array(self.kind.observe(env.state), np.float64)
        if self._measurement.std.any():
            o += self._measurement.draw(o.size, rng)
        self.x = o.copy()
        return o

    def become(self, **attributes: float) -> None:
        """θ ← θ': the plant changes while it runs.

        >>> from bayescontrol.experts.classic_control import PENDULUM
        >>> PENDULUM.plant().become(m=2.0)
        """
        set_attributes(self._env, self.kind.id, attributes)

    @property
    def state(self) -> FloatArray:
        """s, a copy."""
        return np.array(self._env.state, np.float64)

    def __repr__(self) -> str:
        over = ", over" if self.terminated else ""
        return f"Plant({self.kind.id} after {self.steps} steps{over})"


def set_attributes(env: Any, id_: str, attributes: dict[str, float]) -> None:
    """Set what the environment has; refuse what it lacks, and then set nothing."""
    for name, value in attributes.items():
        if not isinstance(getattr(env, name, None), int | float):
            known = sorted(n for n, v in vars(env).items() if isinstance(v, float))
            raise UnknownParameter(f"{id_} has no attribute {name!r}: it has {', '.join(known)}")
        if not np.isfinite(value):
            raise ValueError(f"{id_}: {name}={value!r} must be one finite number")
    for name, value in attributes.items():
        setattr(env, name, float(value))


def linearise(
    f: Callable[[FloatArray, FloatArray], Any],
    s0: npt.ArrayLike,
    u0: npt.ArrayLike = (0.0,),
    h: float = 1e-5,
) -> tuple[FloatArray, FloatArray]:
    """A = ∂f/∂s and B = ∂f/∂u at (s₀, u₀), to about h².

    >>> A, B = linearise(lambda s, u: [s[0] + 0.1 * s[1], s[1] + 0.1 * u[0]], [0.0, 0.0])
    >>> A.round(9).tolist(), B.round(9).tolist()
    ([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]])
    """
    s, u = np.array(s0, np.float64), np.array(u0, np.float64)
    A = [
        np.subtract(f(s + e, u), f(s - e, u), dtype=np.float64) / (2 * h)
        for e in h * np.eye(s.size)
    ]
    B = [
        np.subtract(f(s, u + e), f(s, u - e), dtype=np.float64) / (2 * h)
        for e in h * np.eye(u.size)
    ]
    return np.array(A).T, np.array(B).T

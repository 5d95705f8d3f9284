"""A Gymnasium environment as the plant, and the same environment as a simulator.

    plant       s ← F_θ(s, u) + w,   o = g(s) + v            the running world
    simulator   f_θ(x, u) = g(F_θ(g⁻¹(x), u))                from any x

F_θ is the environment's unmodified `step`. θ are numeric attributes of the environment (`length`,
`m`, `gravity`), and its state is set before a simulated step. w and v are process and measurement
noise, 0 by default.

With measurement noise a simulator starts from a wrong x, and its residual is v' - f'(x) v: give
the modes noise of that size. Successive residuals then share a v, so the posterior is somewhat
overconfident.

    linearise   f(s, u) ≈ f(s₀, u₀) + A (s - s₀) + B (u - u₀),     A = ∂f/∂s,  B = ∂f/∂u

It uses central differences, ∂f/∂s_i ≈ (f(s₀ + h e_i) - f(s₀ - h e_i)) / 2h. `lqr.riccati` gives
the regulator of (A, B).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.errors import EpisodeOver, MissingExtra, UnknownParameter
from bayescontrol.seeding import SeedLike, StreamLike, as_stream
from bayescontrol.simulators.mode import SimulatorNoise


def _identity(value: Any) -> Any:
    """Return the value unchanged."""
    return value


@dataclass(frozen=True)
class PlantModel:
    """A Gymnasium environment with a settable `state`, as simulator and as plant.

    `observe` is g and `place` is g⁻¹, by default the identity. `command` converts an action to the
    environment's format. `clear` lists the attributes that are set to None before a simulated step.

    >>> hill = PlantModel("MountainCar-v0")
    >>> step = hill.simulator(gravity=0.003)
    >>> step((-0.5, 0.0), 2)
    (-0.499..., 0.0007...)
    >>> hill.simulator(gravitas=0.003)
    Traceback (most recent call last):
    bayescontrol.errors.UnknownParameter: MountainCar-v0 has no attribute 'gravitas'...
    """

    id: str
    observe: Callable[[Any], Any] = _identity
    place: Callable[[Any], Any] = _identity
    command: Callable[[Any], Any] = _identity
    clear: tuple[str, ...] = ()

    def make(self, **attributes: float) -> Any:
        """Return the environment after a reset, with its attributes θ set."""
        try:
            import gymnasium
        except ImportError as error:
            raise MissingExtra.of(self.id, "gymnasium", "gym") from error
        env: Any = gymnasium.make(self.id).unwrapped
        env.reset(seed=0)
        set_attributes(env, self.id, attributes)
        return env

    def simulator(self, **attributes: float) -> Callable[[Any, Any], Any]:
        """Return f_θ(x, u), one step of the environment with these attributes from x."""
        env = self.make(**attributes)

        def step(x: Any, u: Any) -> Any:
            """Set the environment's state to g⁻¹(x), take a step, and observe the new state."""
            # Python floats: NumPy scalars would slow down every operation in `step`.
            env.state = tuple(map(float, self.place(x)))
            for name in self.clear:
                setattr(env, name, None)
            env.step(self.command(u))
            return self.observe(tuple(map(float, env.state)))

        return step

    def environment(self, seed: SeedLike = 0, **options: Any) -> "Plant":
        """Return the plant; the options are noise and attributes, as for `Plant`."""
        return Plant(self, seed, **options)


class Plant:
    """A Gymnasium environment as a plant: s ← F(s, u) + w, o = g(s) + v.

    The environment has these `attributes` and is reset with `seed`. `process` and `measurement` are
    the standard deviations of w and v: a number, or one for each component. After the episode has
    `terminated`, `respond` raises `EpisodeOver`.

    >>> from bayescontrol import Stream
    >>> from bayescontrol.simulators.classic_control import CARTPOLE
    >>> plant = CARTPOLE.environment(seed=0, force_mag=-10.0)
    >>> o = plant.respond(1, Stream(0))
    >>> o.shape, bool(o[1] < plant.start[1]), plant.terminated     # 1 pushes to the left here
    ((4,), True, False)
    """

    #: `interact` rejects an agent that tracks the observations and starts elsewhere.
    shows_state: ClassVar[bool] = True

    def __init__(
        self,
        model: PlantModel,
        seed: SeedLike = 0,
        *,
        process: float | Sequence[float] = 0.0,
        measurement: float | Sequence[float] = 0.0,
        **attributes: float,
    ) -> None:
        self.model = model
        self._process, self._measurement = SimulatorNoise(process), SimulatorNoise(measurement)
        self._env = model.make(**attributes)
        first = self._env.reset(seed=as_stream(seed).integers(2**31))[0]
        #: The observation before the first action, which is the agent's first situation.
        self.start: FloatArray = np.array(first, np.float64)
        #: The last observation, which is the agent's situation.
        self.x: FloatArray = self.start.copy()
        #: Number of steps since the start.
        self.steps = 0
        #: Whether the episode is over.
        self.terminated = False

    def respond(self, u: Any, rng: StreamLike) -> FloatArray:
        """Advance s ← F(s, u) + w and return o = g(s) + v."""
        if self.terminated:
            raise EpisodeOver(
                f"the episode of {self.model.id} ended at step {self.steps}: create a new plant"
            )
        env = self._env
        self.terminated = bool(env.step(self.model.command(u))[2])
        self.steps += 1
        if self._process.std.any():
            env.state = np.asarray(env.state) + self._process.draw(len(env.state), rng)
        o = np.array(self.model.observe(env.state), np.float64)
        if self._measurement.std.any():
            o += self._measurement.draw(o.size, rng)
        self.x = o.copy()
        return o

    def become(self, **attributes: float) -> None:
        """Change the parameters of the running plant: θ ← θ'."""
        set_attributes(self._env, self.model.id, attributes)

    @property
    def state(self) -> FloatArray:
        """A copy of the state s."""
        return np.array(self._env.state, np.float64)

    def __repr__(self) -> str:
        over = ", over" if self.terminated else ""
        return f"Plant({self.model.id} after {self.steps} steps{over})"


def set_attributes(env: Any, id_: str, attributes: dict[str, float]) -> None:
    """Set numeric attributes of the environment; if one is invalid, raise and set none."""
    for name, value in attributes.items():
        if not isinstance(getattr(env, name, None), int | float):
            available = sorted(n for n, v in vars(env).items() if isinstance(v, float))
            raise UnknownParameter(
                f"{id_} has no attribute {name!r}: choose from {', '.join(available)}"
            )
        if not np.isfinite(value):
            raise ValueError(f"{id_}: {name}={value!r} must be a finite number")
    for name, value in attributes.items():
        setattr(env, name, float(value))


def linearise(
    f: Callable[[FloatArray, FloatArray], Any],
    s0: ArrayLike,
    u0: ArrayLike = (0.0,),
    h: float = 1e-5,
) -> tuple[FloatArray, FloatArray]:
    """Return A = ∂f/∂s and B = ∂f/∂u at (s₀, u₀) by central differences of width 2h.

    >>> A, B = linearise(lambda s, u: [s[0] + 0.1 * s[1], s[1] + 0.1 * u[0]], [0.0, 0.0])
    >>> A.round(9).tolist(), B.round(9).tolist()
    ([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]])
    """
    s, u = np.array(s0, np.float64), np.array(u0, np.float64)

    def slopes(g: Callable[[FloatArray], Any], z: FloatArray) -> FloatArray:
        """Return the matrix ∂g/∂z, a column for each component of z."""
        steps = h * np.eye(z.size)
        rows = [np.subtract(g(z + e), g(z - e), dtype=np.float64) for e in steps]
        return np.array(rows).T / (2 * h)

    return slopes(lambda x: f(x, u), s), slopes(lambda v: f(s, v), u)

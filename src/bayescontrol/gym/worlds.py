"""Our worlds as Gymnasium environments.

    reset(seed)    rng = Stream(np_random);  world ~ P(world), drawn by rng
    step(a)        o = world.respond(a, rng) → (observation, reward)

They are endless: no step terminates. `max_episode_steps` of `gymnasium.make` cuts where wanted.

The names under which Gymnasium finds our worlds.

bayescontrol/Bandit-v0, Maze-v0, Chain-v0 and LinearPlant-v0: worlds that pass its `check_env`.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.errors import InvalidSystem, InvalidTable, UnknownAction
from bayescontrol.gym.spaces import gymnasium
from bayescontrol.linear import PLANTS, LinearPlant, LinearSystem
from bayescontrol.mdp.maze import Maze
from bayescontrol.problems.chain import chain
from bayescontrol.seeding import Stream, as_stream


class WorldEnv(gymnasium.Env[Any, Any]):
    """An environment Q under Gymnasium's interface; of each kind, two methods are its own.

    After a reset `world` is the environment itself, with what an agent does not see.

    >>> env = ChainEnv(k=2)
    >>> _ = env.reset(seed=1)
    >>> twin = ChainEnv(k=2)
    >>> _ = twin.reset(seed=1)
    >>> [env.step(1)[:2] for _ in range(4)] == [twin.step(1)[:2] for _ in range(4)]
    True
    """

    #: Q, drawn at the last reset.
    world: Any = None
    _rng: Stream

    @abstractmethod
    def _begin(self, rng: Stream) -> tuple[Any, Any]:
        """A world, and what is seen of it before the first step."""

    @abstractmethod
    def _read(self, o: Any) -> tuple[Any, float]:
        """What is seen, and the reward."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Another world; with a seed, always the same one."""
        if options:
            raise ValueError(f"options={options!r}: this environment has none")
        super().reset(seed=seed)
        self._rng = as_stream(self.np_random)
        self.world, seen = self._begin(self._rng)
        return seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """o ~ Q(o | a)."""
        if self.world is None:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        if not self.action_space.contains(action):
            raise UnknownAction(f"action {action!r} is not in {self.action_space}")
        a = action.item() if isinstance(action, np.generic) else action
        seen, reward = self._read(self.world.respond(a, self._rng))
        return seen, reward, False, False, {}


class BanditEnv(WorldEnv):
    """Bernoulli levers; their biases are drawn uniformly at each reset, unless given.

    There is nothing to see but the reward: the observation is always 0.

    >>> env = gymnasium.make("bayescontrol/Bandit-v0", biases=[0.0, 1.0])
    >>> _ = env.reset(seed=0)
    >>> env.step(1)[:2]
    (0, 1.0)
    """

    def __init__(
        self,
        arms: int = 10,
        biases: npt.ArrayLike | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._biases = None if biases is None else np.array(biases, np.float64)
        self._bandit = BernoulliBandit(arms if self._biases is None else self._biases.size)
        self.action_space = gymnasium.spaces.Discrete(len(self._bandit.labels))
        self.observation_space = gymnasium.spaces.Discrete(1)
        self.render_mode = render_mode

    def _begin(self, rng: Stream) -> tuple[Any, int]:
        if self._biases is None:
            return self._bandit.draw(rng), 0
        return self._bandit.environment(self._biases), 0

    def _read(self, o: Any) -> tuple[int, float]:
        return 0, float(o)


class MazeEnv(WorldEnv):
    """A grid-world with membranes: `layout` and `rules` as in `Maze`; the start is any cell.

    >>> env = gymnasium.make("bayescontrol/Maze-v0", render_mode="ansi", start=0)
    >>> env.reset()[0]
    0
    >>> print(env.render().splitlines()[0])
    @ . . . . . .
    """

    # Gymnasium reads it from the class.
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        layout: str = "three-cups",
        start: int | None = None,
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        self.maze = Maze(layout, **rules)
        self._mdp, self._start = self.maze.mdp(), start
        if start is not None:
            self._mdp.states.place(start)
        self.action_space = gymnasium.spaces.Discrete(len(self._mdp.actions))
        self.observation_space = gymnasium.spaces.Discrete(len(self._mdp.states))
        self.render_mode = render_mode

    def _begin(self, rng: Stream) -> tuple[Any, int]:
        start = rng.integers(len(self._mdp.states)) if self._start is None else self._start
        return self._mdp.environment(start), start

    def _read(self, o: Any) -> tuple[int, float]:
        return o.state, o.reward

    def render(self) -> Any:
        """The map as text, with @ where the agent is."""
        if self.render_mode != "ansi" or self.world is None:
            return None
        return self.maze.render(at=self.world.at) + "\n"


class ChainEnv(WorldEnv):
    """k equal actions in a row pay 1; which of the two they must be is drawn at each reset.

    `pays` says it instead: 0 for A, 1 for B. What is seen is the run of equal actions so far, as
    `problems.chain.chain` numbers them: it says nothing of which one pays.

    >>> env = gymnasium.make("bayescontrol/Chain-v0", k=2, pays=1)
    >>> _ = env.reset(seed=0)
    >>> [env.step(a)[:2] for a in (1, 1, 0, 0)]
    [(2, 0.0), (0, 1.0), (1, 0.0), (0, 0.0)]
    """

    def __init__(self, k: int = 5, pays: int | None = None, render_mode: str | None = None) -> None:
        if pays not in (None, 0, 1):
            raise InvalidTable(f"pays={pays!r}: the action that pays is 0 or 1, or None")
        self._modes, self._pays = chain(k), pays
        self.action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = gymnasium.spaces.Discrete(2 * k - 1)
        self.render_mode = render_mode

    def _begin(self, rng: Stream) -> tuple[Any, int]:
        world = self._modes.environment(rng.integers(2) if self._pays is None else self._pays)
        return world, world.x

    def _read(self, o: Any) -> tuple[int, float]:
        return self.world.x, float(o)


class LinearPlantEnv(WorldEnv):
    """y = A x + B u + w, w ~ N(0, noise² W), |u| ≤ limit; the reward is -(xᵀQx + uᵀRu).

    `plant` is a name in `linear.PLANTS`, or a `LinearSystem`; the state begins in
    `start`, 0 unless given. With less noise than the named plants have, they can be held by inputs
    within [-1, 1], which Gymnasium likes best.

    >>> env = gymnasium.make("bayescontrol/LinearPlant-v0", start=[1.0, 0.0], noise=0.0)
    >>> env.reset(seed=0)[0]
    array([1., 0.])
    >>> env.step(np.array([-0.5]))[:2]
    (array([ 1. , -0.5]), -1.25)
    """

    def __init__(
        self,
        plant: str | LinearSystem = "double-integrator",
        start: npt.ArrayLike | None = None,
        noise: float = 0.1,
        limit: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        if not isinstance(plant, LinearSystem) and plant not in PLANTS:
            raise InvalidSystem(
                f"no plant {plant!r}: give a LinearSystem or a name, {', '.join(PLANTS)}"
            )
        if not (0.0 <= noise < np.inf and 0.0 < limit < np.inf):
            raise InvalidSystem(f"noise={noise}, limit={limit}: at least 0, above 0, and finite")
        s = PLANTS[plant]() if isinstance(plant, str) else plant
        self.system = LinearSystem(s.A, s.B, s.Q, s.R, W=noise**2 * s.W, name=s.name)
        self._start = LinearPlant(self.system, start).x
        box, most = gymnasium.spaces.Box, np.finfo(np.float64).max
        self.action_space = box(-limit, limit, (self.system.inputs,), np.float64)
        self.observation_space = box(-most, most, (self.system.states,), np.float64)
        self.render_mode = render_mode

    def _begin(self, rng: Stream) -> tuple[Any, FloatArray]:
        world = LinearPlant(self.system, self._start, cost_noise=0.0)
        return world, world.x

    def _read(self, o: Any) -> tuple[FloatArray, float]:
        return np.array(o.state, np.float64), -float(o.cost)


#: id → where its class is
WORLDS = {
    "bayescontrol/Bandit-v0": "bayescontrol.gym.worlds:BanditEnv",
    "bayescontrol/Maze-v0": "bayescontrol.gym.worlds:MazeEnv",
    "bayescontrol/Chain-v0": "bayescontrol.gym.worlds:ChainEnv",
    "bayescontrol/LinearPlant-v0": "bayescontrol.gym.worlds:LinearPlantEnv",
}


def register() -> None:
    """Tell Gymnasium of them; `import bayescontrol.gym` does so.

    >>> register()
    >>> gymnasium.make("bayescontrol/Maze-v0").observation_space
    Discrete(49)
    """
    for name, home in WORLDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=home)

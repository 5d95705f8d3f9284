"""Our environments as Gymnasium environments: bayescontrol/Bandit-v0, Maze-v0 and others.

    reset(seed)    rng = Stream(np_random);  world ~ P(world), drawn by rng
    step(a)        o = world.respond(a, rng) → (observation, reward)

They are endless: no step terminates. Limit them with `max_episode_steps` of `gymnasium.make`.

Elements of spaces have names, which are used as situations and actions:

    finite     Discrete, MultiDiscrete, MultiBinary, and Tuple or Dict of these: an element is
               named by its integers (i_1, …, i_n), or by i if the space is Discrete
    Box        an element is named by a copy of its array, because a simulator may reuse the array

A name is plain Python data, so it is hashable and can be saved. All of `bayescontrol.gym` imports
Gymnasium, an optional dependency, from here.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from itertools import product
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from bayescontrol import errors
from bayescontrol._arrays import ArrayLike
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.errors import InvalidTable, MissingCapability, MissingExtra, UnknownAction
from bayescontrol.finite.chain import chain
from bayescontrol.lqr import PLANTS, LinearPlant, LinearSystem
from bayescontrol.mdp.maze import Maze
from bayescontrol.pomdp import worlds as pomdp_worlds
from bayescontrol.pomdp.model import POMDP
from bayescontrol.seeding import Stream, as_stream

try:
    import gymnasium as gymnasium
    import gymnasium.vector
    import gymnasium.vector.utils
except ImportError as error:
    raise MissingExtra.of("bayescontrol.gym", "gymnasium", "gym") from error


#: The name of an element of a finite space.
Name: TypeAlias = int | tuple[int, ...]
#: The largest number of names that can be listed.
MAX_NAMES = 1_000_000

_spaces = gymnasium.spaces


class FiniteSpace:
    """Conversion between names and elements of a finite space.

    >>> from gymnasium.spaces import Dict, Discrete, MultiDiscrete
    >>> space = FiniteSpace(Dict(at=MultiDiscrete([3, 4]), light=Discrete(2, start=1)))
    >>> space.size, space.name({"at": np.array([2, 0]), "light": 1})
    (24, (2, 0, 1))
    >>> space.element((2, 0, 1))["light"]
    np.int64(1)
    >>> FiniteSpace(Discrete(3, start=-1)).names()
    [-1, 0, 1]
    """

    def __init__(self, space: Any) -> None:
        self.space = space
        self._ranges = _ranges(space)
        self._is_discrete = isinstance(space, _spaces.Discrete)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(map(len, self._ranges))

    def name(self, element: Any) -> Name:
        """Return the integers (i_1, …, i_n) of the element, or i if the space is Discrete."""
        return int(element) if self._is_discrete else tuple(_integers(self.space, element))

    def element(self, name: Any) -> Any:
        """Return the element with that name; raise `UnknownAction` if it is unknown."""
        try:
            integers = [name] if self._is_discrete else list(name)
            exists = len(integers) == len(self._ranges) and all(
                i == int(i) and int(i) in values
                for i, values in zip(integers, self._ranges, strict=True)
            )
        except (TypeError, ValueError):
            exists = False
        if not exists:
            n = len(self._ranges)
            expected = "an integer" if self._is_discrete else f"a tuple of {n} integers"
            raise UnknownAction(
                f"{name!r} is not the name of an element of {self.space}: give {expected} within "
                "its limits"
            )
        return _element(self.space, iter(integers))

    def parts(self) -> list[list[int]]:
        """Return the values of each integer in a name."""
        return [list(values) for values in self._ranges]

    def names(self) -> list[Name]:
        """Return all names in order; raise `InvalidTable` if there are too many."""
        if self.size > MAX_NAMES:
            raise InvalidTable(
                f"{self.space} has {self.size} elements, too many to list: use an agent that adds "
                "states when it observes them, such as GibbsMDP"
            )
        return list(self._ranges[0]) if self._is_discrete else list(product(*self._ranges))

    def __repr__(self) -> str:
        return f"FiniteSpace({self.space})"


class BoxSpace:
    """A space of real arrays; the name of an element is a copy of the array.

    >>> from gymnasium.spaces import Box
    >>> space = BoxSpace(Box(-2.0, 2.0, (1,)))
    >>> space.element(1.5)
    array([1.5], dtype=float32)
    >>> space.element(3.0)
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: 3.0 is outside of Box(-2.0, 2.0, (1,), float32): ...
    """

    def __init__(self, space: Any) -> None:
        self.space = space

    def name(self, element: Any) -> Any:
        """Return a copy, because the simulator may reuse the array."""
        return np.array(element)

    def element(self, name: Any) -> Any:
        """Return an array of the space's shape and type; raise `UnknownAction` if it is outside."""
        space = self.space
        try:
            element = np.asarray(name, space.dtype).reshape(space.shape)
        except (TypeError, ValueError):
            raise UnknownAction(f"{name!r}: give an array of shape {space.shape}") from None
        if not space.contains(element):
            raise UnknownAction(f"{name!r} is outside of {space}: limit the policy's output")
        return element

    def parts(self) -> NoReturn:
        """Raise `TypeError`: there are infinitely many elements."""
        self.names()

    def names(self) -> NoReturn:
        """Raise `TypeError`: there are infinitely many."""
        raise TypeError(
            f"{self.space} has infinitely many elements, which cannot be listed: discretise them, "
            "or use drive with the modes of bayescontrol.simulators"
        )

    def __repr__(self) -> str:
        return f"BoxSpace({self.space})"


def as_space(space: Any) -> FiniteSpace | BoxSpace:
    """Return the conversion between names and elements for a space of Gymnasium.

    >>> from gymnasium.spaces import Box, Discrete, Text
    >>> as_space(Discrete(4)), as_space(Box(0.0, 1.0, (2,)))
    (FiniteSpace(Discrete(4)), BoxSpace(Box(0.0, 1.0, (2,), float32)))
    >>> as_space(Text(3))
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: Text(1, 3, ...) is neither a finite space nor a Box: ...
    """
    return BoxSpace(space) if isinstance(space, _spaces.Box) else FiniteSpace(space)


def _ranges(space: Any) -> list[range]:
    """Return the values of each integer in an element."""
    match space:
        case _spaces.Discrete():
            return [range(int(space.start), int(space.start) + int(space.n))]
        case _spaces.MultiDiscrete():
            starts, counts = space.start.ravel().tolist(), space.nvec.ravel().tolist()
            return [range(first, first + n) for first, n in zip(starts, counts, strict=True)]
        case _spaces.MultiBinary():
            return [range(2)] * math.prod(space.shape)
        case _spaces.Tuple() | _spaces.Dict():
            parts = space.spaces.values() if isinstance(space, _spaces.Dict) else space.spaces
            return [values for part in parts for values in _ranges(part)]
    raise MissingCapability(
        f"{space} is neither a finite space nor a Box: wrap the environment, for example with "
        "gymnasium.wrappers.FlattenObservation"
    )


def _integers(space: Any, element: Any) -> Iterator[int]:
    """Yield the integers of an element; the inverse of `_element`."""
    match space:
        case _spaces.Dict():
            for key, part in space.spaces.items():
                yield from _integers(part, element[key])
        case _spaces.Tuple():
            for part, value in zip(space.spaces, element, strict=True):
                yield from _integers(part, value)
        case _:
            yield from map(int, np.ravel(element))


def _element(space: Any, integers: Iterator[int]) -> Any:
    """Return the element that consists of the next integers."""
    match space:
        case _spaces.Dict():
            return {key: _element(part, integers) for key, part in space.spaces.items()}
        case _spaces.Tuple():
            return tuple(_element(part, integers) for part in space.spaces)
        case _spaces.Discrete():
            return space.dtype.type(next(integers))
        case _:
            values = [next(integers) for _ in range(math.prod(space.shape))]
            return np.array(values, space.dtype).reshape(space.shape)


class WorldEnv(gymnasium.Env[Any, Any]):
    """Base class: an environment Q with Gymnasium's interface.

    Subclasses implement `_begin`, and override `_observe` or `_reward` where these differ. After a
    reset, `world` is the environment itself, including its hidden state.

    >>> env = ChainEnv(k=2)
    >>> _ = env.reset(seed=1)
    >>> same_seed = ChainEnv(k=2)
    >>> _ = same_seed.reset(seed=1)
    >>> [env.step(1)[:2] for _ in range(4)] == [same_seed.step(1)[:2] for _ in range(4)]
    True
    """

    #: Q, drawn at the last reset.
    world: Any = None
    _rng: Stream

    def __init__(self, actions: Any, observations: Any, render_mode: str | None) -> None:
        self.action_space, self.observation_space = actions, observations
        self.render_mode = render_mode

    @abstractmethod
    def _begin(self, rng: Stream) -> Any:
        """Return a new world, drawn by `rng` where it is random."""

    def _observe(self) -> Any:
        """Return Gymnasium's observation: the current state of the world."""
        return self.world.x

    def _reward(self, o: Any) -> float:
        """Return the reward in the world's observation o."""
        return float(o)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Draw a new world, reproducibly if a seed is given."""
        if options:
            raise ValueError(f"options={options!r}: this environment has no options")
        super().reset(seed=seed)
        self._rng = as_stream(self.np_random)
        self.world = self._begin(self._rng)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Draw o ~ Q(o | a), and return observation, reward, terminated, truncated and info."""
        if self.world is None:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        if not self.action_space.contains(action):
            raise UnknownAction(f"invalid action {action!r}: give one of {self.action_space}")
        a = action.item() if isinstance(action, np.generic) else action  # a Python number
        reward = self._reward(self.world.respond(a, self._rng))
        return self._observe(), reward, False, False, {}


class BanditEnv(WorldEnv):
    """A Bernoulli bandit; its biases are given, or drawn uniformly at each reset.

    The observation is always 0.

    >>> env = gymnasium.make("bayescontrol/Bandit-v0", biases=[0.0, 1.0])
    >>> _ = env.reset(seed=0)
    >>> env.step(1)[:2]
    (0, 1.0)
    """

    def __init__(
        self, arms: int = 10, biases: ArrayLike | None = None, render_mode: str | None = None
    ) -> None:
        self._biases = None if biases is None else np.array(biases, np.float64)
        self._bandit = BernoulliBandit(arms if self._biases is None else self._biases.size)
        actions = len(self._bandit.labels)
        super().__init__(_spaces.Discrete(actions), _spaces.Discrete(1), render_mode)

    def _begin(self, rng: Stream) -> Any:
        """Return a bandit with the given biases, or with new ones."""
        biases, bandit = self._biases, self._bandit
        return bandit.draw(rng) if biases is None else bandit.environment(biases)

    def _observe(self) -> int:
        """Return 0: a bandit has no state to observe."""
        return 0


class MazeEnv(WorldEnv):
    """A grid-world; `layout` and `rules` are those of `Maze`, and the default start is random.

    >>> env = gymnasium.make("bayescontrol/Maze-v0", render_mode="ansi", start=0)
    >>> env.reset()[0]
    0
    >>> print(env.render().splitlines()[0])
    @ . . . . . .
    """

    # Gymnasium reads `metadata` from the class.
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
            self._mdp.states.place(start)  # raises if the maze has no such cell
        actions, states = len(self._mdp.actions), len(self._mdp.states)
        super().__init__(_spaces.Discrete(actions), _spaces.Discrete(states), render_mode)

    def _begin(self, rng: Stream) -> Any:
        """Return the maze, in its given start or in a random cell."""
        start = rng.integers(len(self._mdp.states)) if self._start is None else self._start
        return self._mdp.environment(start)

    def _reward(self, o: Any) -> float:
        """Return the reward of a step (reward, state)."""
        return float(o.reward)

    def render(self) -> Any:
        """Return the map as text, with @ at the agent's cell; None before the first reset."""
        if self.render_mode != "ansi" or self.world is None:
            return None
        return self.maze.render(at=self.world.at) + "\n"


class ChainEnv(WorldEnv):
    """A chain in which k equal actions in a row earn 1; the rewarded action is hidden.

    `pays` is the rewarded action, 0 for A or 1 for B; by default it is drawn at each reset. The
    observation is the current run of equal actions, numbered as in `finite.chain.chain`.

    >>> env = gymnasium.make("bayescontrol/Chain-v0", k=2, pays=1)
    >>> _ = env.reset(seed=0)
    >>> [env.step(a)[:2] for a in (1, 1, 0, 0)]
    [(2, 0.0), (0, 1.0), (1, 0.0), (0, 0.0)]
    """

    def __init__(self, k: int = 5, pays: int | None = None, render_mode: str | None = None) -> None:
        if pays not in (None, 0, 1):
            raise InvalidTable(f"pays={pays!r}: it must be 0, 1 or None")
        self._modes, self._pays = chain(k), pays
        super().__init__(_spaces.Discrete(2), _spaces.Discrete(2 * k - 1), render_mode)

    def _begin(self, rng: Stream) -> Any:
        """Return a chain that pays for the given action, or for a random one."""
        return self._modes.environment(rng.integers(2) if self._pays is None else self._pays)


class LinearPlantEnv(WorldEnv):
    """y = A x + B u + w, w ~ N(0, noise² W), |u| ≤ limit; the reward is -(xᵀQx + uᵀRu).

    `plant` is a name in `lqr.PLANTS` or a `LinearSystem`. `start` is the initial state, by
    default 0. The default noise is small enough that inputs within [-1, 1] stabilise the plants.

    >>> env = gymnasium.make("bayescontrol/LinearPlant-v0", start=[1.0, 0.0], noise=0.0)
    >>> env.reset(seed=0)[0]
    array([1., 0.])
    >>> env.step(np.array([-0.5]))[:2]
    (array([ 1. , -0.5]), -1.25)
    """

    def __init__(
        self,
        plant: str | LinearSystem = "double-integrator",
        start: ArrayLike | None = None,
        noise: float = 0.1,
        limit: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        if not isinstance(plant, LinearSystem) and plant not in PLANTS:
            raise errors.InvalidSystem(
                f"unknown plant {plant!r}: give a LinearSystem or one of {', '.join(PLANTS)}"
            )
        if not (0.0 <= noise < np.inf and 0.0 < limit < np.inf):
            raise errors.InvalidSystem(
                f"noise={noise}, limit={limit}: expected finite noise ≥ 0 and finite limit > 0"
            )
        p = PLANTS[plant]() if isinstance(plant, str) else plant
        self.system = LinearSystem(p.A, p.B, p.Q, p.R, W=noise**2 * p.W, name=p.name)
        self._start = LinearPlant(self.system, start).x
        box, largest = gymnasium.spaces.Box, np.finfo(np.float64).max
        inputs = box(-limit, limit, (self.system.inputs,), np.float64)
        states = box(-largest, largest, (self.system.states,), np.float64)
        super().__init__(inputs, states, render_mode)

    def _begin(self, rng: Stream) -> Any:
        """Return the plant in its initial state; its costs are observed without noise."""
        return LinearPlant(self.system, self._start, cost_noise=0.0)

    def _reward(self, o: Any) -> float:
        """Return minus the cost of a step."""
        return -float(o.cost)


class POMDPEnv(WorldEnv):
    """A POMDP: "tiger", "shuttle", "hallway", or one of yours.

    States, actions and observations are numbers, also in the attribute `pomdp`, the problem itself.
    The number after the last observation says that nothing has been observed yet.

    >>> env = gymnasium.make("bayescontrol/POMDP-v0", problem="tiger")
    >>> env.reset(seed=0)[0], env.observation_space
    (2, Discrete(3))
    >>> env.step(0)[1]
    -1.0
    """

    def __init__(self, problem: str | POMDP = "tiger", render_mode: str | None = None) -> None:
        if isinstance(problem, str):
            if problem not in ("tiger", "shuttle", "hallway"):
                raise InvalidTable(
                    f"problem={problem!r}: give tiger, shuttle, hallway, or a POMDP of yours"
                )
            problem = cast("POMDP", getattr(pomdp_worlds, problem)())
        X, actions, self._nothing = map(
            len, (problem.states, problem.actions, problem.observations)
        )
        numbers = {"states": X, "actions": actions, "observations": self._nothing}
        self.pomdp = POMDP(**(problem.settings() | numbers))
        spaces = _spaces.Discrete(actions), _spaces.Discrete(self._nothing + 1)
        super().__init__(*spaces, render_mode)

    def _begin(self, rng: Stream) -> Any:
        """Return the problem in a state that is drawn at the first step."""
        self._observed = self._nothing
        return self.pomdp.environment()

    def _observe(self) -> int:
        """Return the number of the last observation."""
        return self._observed

    def _reward(self, o: Any) -> float:
        """Return the reward, and remember the observation."""
        self._observed = int(o.observation)
        return float(o.reward)


#: The class of each registered id.
WORLDS = {
    f"bayescontrol/{name}-v0": f"{__name__}:{name}Env"
    for name in ("Bandit", "Maze", "Chain", "LinearPlant", "POMDP")
}


def register() -> None:
    """Register the environments with Gymnasium; `import bayescontrol.gym` calls this function.

    >>> register()
    >>> gymnasium.make("bayescontrol/Maze-v0").observation_space
    Discrete(49)
    """
    for name, entry_point in WORLDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=entry_point)

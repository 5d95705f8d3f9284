"""A Gymnasium environment as a world Q: one endless stream, whatever episodes it has.

    step          (x, a) → o = (r, y)
    terminated    (x, a) → o = (r, x_0): the step that ends an episode leads to the next one's
                  first state, with its reward as it came; the last state is never seen.
                  With `pause` it is: from it one more step, whatever is done, leads to x_0 and pays
                  nothing. Where all that is paid is a cost a step, only then is an end worth more
                  than going on: on average over time, one that takes no time is worth nothing
    truncated     "end": likewise. "go on": as an ordinary step, and the world is not reset;
                  for a pure limit of time, which is no part of the world

What an agent may not learn from, a jump that no hypothesis knows, cannot be hidden in a stream:
for that, and for many environments at a time, see `lanes`.
"""

from typing import Any, ClassVar, Literal

from bayescontrol.gym.door import gymnasium
from bayescontrol.gym.spaces import BoxSpace, FiniteSpace, as_space
from bayescontrol.mdp.environment import Step
from bayescontrol.seeding import Stream


class Continuing:
    """Q of a Gymnasium environment, as it comes; its luck is its own, from `seed`.

    `actions` are the names of what can be done, `start` the situation in which it is now. With
    `reward=False` the observation is the state alone.

    >>> import gymnasium
    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import mdp_agent
    >>> world = Continuing(gymnasium.make("CliffWalking-v1"))
    >>> agent = mdp_agent(world.actions, world.x)
    >>> interact(agent, world, 100)
    Record(100 steps: actions int64, observations (reward float64, state int64))
    """

    #: `interact` refuses an agent that follows the states and is in another one.
    shows_state: ClassVar[bool] = True

    def __init__(
        self,
        env: "gymnasium.Env[Any, Any]",
        *,
        seed: int = 0,
        truncated: Literal["end", "go on"] = "end",
        pause: bool = False,
        reward: bool = True,
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"env={env!r} is no gymnasium.Env; for many at a time use `drive`")
        if truncated not in ("end", "go on"):
            raise ValueError(f'truncated={truncated!r}: it is "end" or "go on"')
        self.env, self.truncated, self.pause, self.reward = env, truncated, pause, reward
        self._over = False
        self.observation_space = as_space(env.observation_space)
        self.action_space = as_space(env.action_space)
        #: Episodes that have ended.
        self.ends = 0
        #: The situation of now.
        self.x = self.observation_space.name(env.reset(seed=seed)[0])

    @property
    def actions(self) -> list[Any]:
        """The names of the actions, where they are finitely many."""
        return self._listed(self.action_space, "actions")

    @property
    def states(self) -> list[Any]:
        """The names of the states, where they are finitely many."""
        return self._listed(self.observation_space, "states")

    def _listed(self, space: FiniteSpace | BoxSpace, what: str) -> list[Any]:
        if isinstance(space, BoxSpace):
            raise TypeError(
                f"the {what} are a {space.space}: they cannot be listed, for a Box has no finite "
                f"{what}. Use `drive` with experts"
            )
        return list(space.names())

    def respond(self, a: Any, rng: Stream) -> Any:
        """o = (r, y) of one step, y the first state of the next episode if one has ended."""
        r: Any
        action = self.action_space.element(a)
        if self._over:
            r, self._over = 0.0, False
            y, _ = self.env.reset()
        else:
            y, r, terminated, truncated, _ = self.env.step(action)
            if terminated or (truncated and self.truncated == "end"):
                self.ends += 1
                if self.pause:
                    self._over = True
                else:
                    y, _ = self.env.reset()
        self.x = self.observation_space.name(y)
        return Step(float(r), self.x) if self.reward else self.x

    def __repr__(self) -> str:
        return f"Continuing({self.env}, in {self.x!r}, {self.ends} episodes ended)"

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

One agent in one or many Gymnasium environments at a time: lanes that share a belief.

    lane i    situation x_i,  a_i = what the agent does in x_i,  learns (x_i, a_i, o_i)

    an end as a transition    learn (x, a) → (r, x_0), the first state of the next episode
    an end masked             learn (x, a) → (r, y) as it came; the lane goes on in x_0, and from
                              the jump y → x_0 nothing is learnt

Where a vector environment resets in the step after the end ("NextStep"), that step is none: its
action does nothing, its reward is no reward. It is never learnt from and never recorded. Both
modes of autoreset give the agent the same transitions.

An action is no evidence and evidence is exchangeable, so lanes need not take turns; but a mode
with private state has one history, not many, and is refused.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from bayescontrol.baselines.mdp.learner import TabularLearner
from bayescontrol.baselines.mdp.oracle import OptimalPolicy
from bayescontrol.errors import MissingCapability
from bayescontrol.gym.spaces import BoxSpace, FiniteSpace, as_space, gymnasium
from bayescontrol.interaction import both_streams
from bayescontrol.mdp.table import Step
from bayescontrol.protocols import Stateful
from bayescontrol.record import Record
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


End: TypeAlias = Literal["transition", "mask"]
_COLUMNS = ("situation", "lane", "reward", "ended")


def place(agent: Any, x: Any) -> None:
    """x_t ← x by somebody else's hand: nothing is learnt from the move.

    >>> from bayescontrol.mdp import mdp_agent
    >>> agent = mdp_agent(2, start="home")
    >>> place(agent, "away")
    >>> agent.x, agent.belief.count
    ('away', 0)
    """
    if isinstance(agent, TabularLearner):
        agent.fast_forward(agent.number(x, enter=True))
    elif isinstance(agent, OptimalPolicy):
        agent.fast_forward(agent.mdp.states.place(x))
    else:
        try:
            agent.x = x
        except AttributeError:
            raise MissingCapability(
                f"{agent!r} cannot be put into situation {x!r}: it needs an attribute x"
            ) from None


class _Lanes:
    """What the agent has learnt from and where each lane is."""

    def __init__(self, agent: Any, reward: bool) -> None:
        self.agent, self.reward = agent, reward
        self.actions: list[Any] = []
        self.observations: list[Any] = []
        self.probes: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def learn(self, lane: int, x: Any, a: Any, r: float, y: Any, ended: bool) -> None:
        o = Step(r, y) if self.reward else y
        place(self.agent, x)
        self.agent.observe(a, o)
        self.actions.append(a)
        self.observations.append(o)
        for name, value in zip(_COLUMNS, (x, lane, r, ended), strict=True):
            self.probes[name].append(value)


def drive(
    agent: Any,
    env: Any,
    steps: int,
    *,
    seed: int = 0,
    run: int = 0,
    terminated: End | None = None,
    truncated: End = "mask",
    autoreset: Literal["NextStep", "SameStep"] | None = None,
    reward: bool = True,
) -> Record:
    """`steps` of one environment, or of a vector environment in every lane, as a `Record`.

    It begins with a reset, from `seed` and `run`. `terminated` and `truncated` say what an end is,
    a "transition" to the next start or a "mask"; an episode that terminates is by default the
    former where states are finite and the latter in a Box. The record has a row for every
    transition learnt, with columns situation, lane, reward and ended.

    >>> import gymnasium
    >>> from bayescontrol.mdp import mdp_agent
    >>> envs = gymnasium.make_vec("FrozenLake-v1", num_envs=4)
    >>> record = drive(mdp_agent(4, start=0), envs, 50)
    >>> ended, lanes = record["ended"], sorted(set(record["lane"].tolist()))
    >>> bool(len(record) < 4 * 50), bool(ended.any()), lanes   # the steps that reset are not there
    (True, True, [0, 1, 2, 3])
    """
    if steps < 0:
        raise ValueError(f"steps={steps}: a run has at least 0 steps")
    _refuse_histories(agent)
    envs, same_step = _vectorised(env, autoreset)
    space, deeds = as_space(envs.single_observation_space), as_space(envs.single_action_space)
    if terminated is None:
        terminated = "transition" if isinstance(space, FiniteSpace) else "mask"
    for name, value in (("terminated", terminated), ("truncated", truncated)):
        if value not in ("transition", "mask"):
            raise ValueError(f'{name}={value!r}: an end is a "transition" or a "mask"')
    p, q = both_streams(seed, run)
    split, n = gymnasium.vector.utils.iterate, envs.num_envs
    batch, _ = envs.reset(seed=q.integers(2**31 - n))
    x = [space.name(element) for element in split(envs.observation_space, batch)]
    a: list[Any] = [None] * n
    elements: list[Any] = [None] * n
    lanes = _Lanes(agent, reward)
    # Of lanes whose next step only resets: (x, a, r) that still waits for x_0, or None.
    resetting: dict[int, tuple[Any, Any, float] | None] = {}
    for _ in range(steps):
        for i in range(n):
            if i not in resetting:
                place(agent, x[i])
                a[i] = _own(agent.act(p))
                elements[i] = deeds.element(a[i])
        batch, r, terminations, truncations, info = envs.step(_joined(envs, elements))
        for i, element in enumerate(split(envs.observation_space, batch)):
            y = space.name(element)
            if i in resetting:
                if (waiting := resetting.pop(i)) is not None:
                    lanes.learn(i, *waiting, y, True)
            elif not (terminations[i] or truncations[i]):
                lanes.learn(i, x[i], a[i], float(r[i]), y, False)
            else:
                masked = (terminated if terminations[i] else truncated) == "mask"
                if not same_step:
                    resetting[i] = None if masked else (x[i], a[i], float(r[i]))
                    last = y
                else:
                    last = space.name(_final(info, i)) if masked else y
                if masked or same_step:
                    lanes.learn(i, x[i], a[i], float(r[i]), last, True)
            x[i] = y
    return Record(lanes.actions, lanes.observations, lanes.probes)


def _own(value: Any) -> Any:
    """A copy, if it is an array: a controller may write over its own."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _joined(envs: Any, elements: list[Any]) -> Any:
    utils, space = gymnasium.vector.utils, envs.single_action_space
    room: Any = utils.create_empty_array(space, n=len(elements))
    return utils.concatenate(space, elements, room)


def _final(info: dict[str, Any], lane: int) -> Any:
    """The last observation of an episode, where its place is taken by the first of the next."""
    return _lane_of(info["final_obs"], lane)


def _lane_of(value: Any, lane: int) -> Any:
    if isinstance(value, dict):  # Gymnasium batches dictionaries key by key, with masks between
        masks = {f"_{k}" for k in value}
        return {k: _lane_of(v, lane) for k, v in value.items() if k not in masks}
    return value[lane]


def _vectorised(env: Any, autoreset: str | None) -> tuple[Any, bool]:
    """The lanes, and whether they reset in the step that ends an episode."""
    vector = gymnasium.vector
    if isinstance(env, gymnasium.Env):
        mode = vector.AutoresetMode.SAME_STEP
        return vector.SyncVectorEnv([lambda: env], autoreset_mode=mode), True
    if not isinstance(env, vector.VectorEnv):
        raise TypeError(f"env={env!r} is neither a gymnasium.Env nor a gymnasium.vector.VectorEnv")
    stated = env.metadata.get("autoreset_mode") if autoreset is None else autoreset
    name = getattr(stated, "value", stated)
    if name not in ("NextStep", "SameStep"):
        raise MissingCapability(
            f"{env} has autoreset mode {name}: make it with NextStep or SameStep, or say by "
            'autoreset="NextStep" which it has'
        )
    return env, name == "SameStep"


def _refuse_histories(agent: Any) -> None:
    modes = getattr(getattr(agent, "belief", None), "modes", ())
    if isinstance(modes, Sequence) and any(isinstance(m, Stateful) for m in modes):
        raise MissingCapability(
            "modes with private state follow one history, which a reset breaks: take a new agent "
            "for each episode, or `interact` with a world that is never reset"
        )

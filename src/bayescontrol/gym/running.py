"""Agents in Gymnasium environments: as one endless stream, or in one or many lanes.

`Continuing` is an environment Q:

    step          (x, a) → o = (r, y)
    terminated    (x, a) → o = (r, x_0): the step that ends an episode leads to the first state of
                  the next episode; the last state is not observed. With `pause` the last state is
                  observed, and one more step with any action leads to x_0 with reward 0. Use
                  `pause` if every reward is a cost per step: only then does an episode's end have
                  a value
    truncated     "end": like terminated. "go on": an ordinary step without a reset, for time
                  limits that are not part of the world

`drive` runs one agent in one or many lanes that share its belief:

    lane i                    situation x_i,  a_i = the agent's action,  learns (x_i, a_i, o_i)
    an end as a transition    learn (x, a) → (r, x_0), the first state of the next episode
    an end with a mask        learn (x, a) → (r, y); the lane continues in x_0, and the jump
                              y → x_0 is not learned
    an end as a state         learn (x, a) → (r, "end") and ("end", first action) → (0, x_0): all
                              episodes end in one state, and a reset is a transition with reward 0

If a vector environment resets in the step after the end ("NextStep"), that step is neither learned
nor recorded, because its action has no effect. Both autoreset modes give the same transitions.
Lanes can be learned in any order, because evidence is exchangeable. A mode with private state
follows one history, so `drive` rejects it.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

from bayescontrol._arrays import as_integer, copy_if_array
from bayescontrol._mode_queries import has
from bayescontrol.errors import MissingCapability
from bayescontrol.gym.worlds import BoxSpace, FiniteSpace, as_space, gymnasium
from bayescontrol.interaction import both_streams
from bayescontrol.mdp.gibbs import ADAPTIVE, GibbsMDP, GibbsPrior, QValues
from bayescontrol.mdp.table import Step
from bayescontrol.protocols import Stateful
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import SeedLike, StreamLike, as_seed
from bayescontrol.trees import ContextTreeBelief, ContextTrees


class Continuing:
    """A Gymnasium environment as an environment Q with one endless stream.

    The environment uses its own random numbers, from `seed`. `actions` are the names of its
    actions and `x` is its current state. With `reward=False` the observation is only the state.

    >>> import gymnasium
    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import GibbsMDP
    >>> world = Continuing(gymnasium.make("CliffWalking-v1"))
    >>> agent = GibbsMDP(world.actions, world.x).agent()
    >>> interact(agent, world, 100, seed=0)
    Record(100 steps: actions int64, observations (reward float64, state int64))
    """

    #: `interact` rejects an agent that tracks the state and starts in a different one.
    shows_state: ClassVar[bool] = True

    def __init__(
        self,
        env: "gymnasium.Env[Any, Any]",
        *,
        seed: SeedLike = 0,
        truncated: Literal["end", "go on"] = "end",
        pause: bool = False,
        reward: bool = True,
    ) -> None:
        _require_env(env, "for vector environments use drive")
        if truncated not in ("end", "go on"):
            raise ValueError(f'truncated={truncated!r}: it must be "end" or "go on"')
        self.env, self.truncated, self.pause, self.reward = env, truncated, pause, reward
        self._reset_is_due = False  # with `pause`, in the step after an episode has ended
        self.observation_space = as_space(env.observation_space)
        self.action_space = as_space(env.action_space)
        #: Number of episodes that have ended.
        self.ends = 0
        #: The current state.
        self.x = self.observation_space.name(env.reset(seed=as_seed(seed))[0])

    @property
    def actions(self) -> list[Any]:
        """The names of the actions; raises `TypeError` if there are infinitely many."""
        return list(self.action_space.names())

    @property
    def states(self) -> list[Any]:
        """The names of the states; raises `TypeError` if there are infinitely many."""
        return list(self.observation_space.names())

    def respond(self, a: Any, rng: StreamLike) -> Any:
        """Return o = (r, y), or y without `reward`; y is x_0 if an episode ends without `pause`."""
        r: Any
        action = self.action_space.element(a)
        if self._reset_is_due:
            r, self._reset_is_due = 0.0, False
            y, _ = self.env.reset()
        else:
            y, r, terminated, truncated, _ = self.env.step(action)
            if terminated or (truncated and self.truncated == "end"):
                self.ends += 1
                if self.pause:
                    self._reset_is_due = True
                else:
                    y, _ = self.env.reset()
        self.x = self.observation_space.name(y)
        return Step(float(r), self.x) if self.reward else self.x

    def __repr__(self) -> str:
        return f"Continuing({self.env}, in {self.x!r}, {self.ends} episodes ended)"


def _require_env(env: Any, hint: str) -> None:
    """Raise TypeError unless this is a single Gymnasium environment."""
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"env={env!r} is not a gymnasium.Env; {hint}")


End: TypeAlias = Literal["transition", "mask", "end"]
#: The name of the state in which all episodes end, with `terminated="end"`.
END = "end"
#: The columns of a record of `drive` besides actions and observations.
_PROBES = ("situation", "lane", "reward", "ended")


def set_situation(agent: Any, x: Any) -> None:
    """Set the agent's situation x_t ← x; the agent learns nothing from the change.

    >>> from bayescontrol.mdp import GibbsMDP
    >>> agent = GibbsMDP(2, start="home").agent()
    >>> set_situation(agent, "away")
    >>> agent.x, agent.belief.count
    ('away', 0)
    """
    try:
        agent.x = x
    except AttributeError:
        raise MissingCapability(
            f"cannot set the situation of {agent!r} to {x!r}: the agent has no attribute x"
        ) from None


def episodic_agent(env: Any, prior: GibbsPrior = ADAPTIVE) -> ControlRule[QValues, Any, Any, Any]:
    """Return the MDP agent for an environment with finite spaces and episodes.

    Run it with `drive` and `terminated="end"`. The default prior learns the scale and the noise of
    the rewards. `env` is a Gymnasium environment or vector environment.

    >>> import gymnasium
    >>> env = gymnasium.make("Blackjack-v1")
    >>> agent = episodic_agent(env)
    >>> record = drive(agent, env, 100, terminated="end")
    >>> "end" in agent.belief.states
    True
    """
    actions = list(as_space(getattr(env, "single_action_space", env.action_space)).names())
    # The action at the end has no effect, so one is enough.
    return GibbsMDP(
        actions, END, prior, allowed=lambda x: actions[:1] if x == END else actions
    ).agent()


def context_trees(
    env: "gymnasium.Env[Any, Any]", rewards: Sequence[float], **settings: Any
) -> ContextTrees:
    """Return the class of context trees for an environment with finite spaces.

    `rewards` are its possible rewards, and `settings` those of `ContextTrees`. Run its agent with
    `interact` and `Continuing`: the percepts are the reward and the observation. Each integer of a
    composed observation is a field.

    >>> import gymnasium
    >>> from bayescontrol import interact
    >>> env = gymnasium.make("bayescontrol/POMDP-v0", problem="tiger")
    >>> problem = context_trees(env, [-100, -1, 10], depth=4)
    >>> problem
    ContextTrees(3 actions, observation: 3, reward: 3, depth 4)
    >>> interact(problem.agent(), Continuing(env), 20, seed=0)
    Record(20 steps: actions int64, observations (reward float64, state int64))
    """
    _require_env(env, "context trees follow one history, so vector environments are not possible")
    actions, observed = as_space(env.action_space).names(), as_space(env.observation_space)
    parts = observed.parts()
    fields: dict[str, Any] = (
        {"observation": observed.names()}
        if len(parts) == 1
        else {f"observation {i}": values for i, values in enumerate(parts)}
    )
    return ContextTrees(actions, {**fields, "reward": rewards}, **settings)


def drive(
    agent: Any,
    env: Any,
    steps: int,
    *,
    seed: SeedLike = 0,
    run: int = 0,
    terminated: End | None = None,
    truncated: End = "mask",
    reward: bool = True,
) -> Record:
    """Run an agent for `steps` steps in an environment, or in every lane of a vector environment.

    The environment is reset first, with seeds from `seed` and `run`. `terminated` and `truncated`
    say how the agent learns the last step of an episode: as a "transition" to the first state of
    the next episode, with a "mask" to the last state, or as a transition to the state "end", from
    which a reset leads to the first state; the record then has a row for each reset. By default
    `terminated` is "transition" if the states are finite, and "mask" in a Box. The returned record
    has one row per learned transition, with the columns situation, lane, reward and ended.

    >>> import gymnasium
    >>> from bayescontrol.mdp import GibbsMDP
    >>> envs = gymnasium.make_vec("FrozenLake-v1", num_envs=4)
    >>> record = drive(GibbsMDP(4, start=0).agent(), envs, 50)
    >>> ended, lanes = record["ended"], sorted(set(record["lane"].tolist()))
    >>> bool(len(record) < 4 * 50), bool(ended.any()), lanes   # steps that reset are left out
    (True, True, [0, 1, 2, 3])
    """
    seed = as_seed(seed)
    as_integer("steps", steps, 0)
    _reject_private_state(agent)
    envs, same_step = _as_vector_env(env)
    space = as_space(envs.single_observation_space)
    action_space = as_space(envs.single_action_space)
    if terminated is None:
        terminated = "transition" if isinstance(space, FiniteSpace) else "mask"
    for name, value in (("terminated", terminated), ("truncated", truncated)):
        if value not in ("transition", "mask", "end"):
            raise ValueError(f'{name}={value!r}: it must be "transition", "mask" or "end"')
        if value == "end" and (isinstance(space, BoxSpace) or isinstance(action_space, BoxSpace)):
            raise ValueError(f'{name}="end" needs finitely many states and actions, not a Box')
    reset_action = None if isinstance(action_space, BoxSpace) else next(iter(action_space.names()))
    p, q = both_streams(seed, run)
    utils, lanes = gymnasium.vector.utils, range(envs.num_envs)
    batch, _ = envs.reset(seed=q.integers(2**31 - envs.num_envs))
    x = [space.name(element) for element in utils.iterate(envs.observation_space, batch)]
    actions: list[Any] = [None for _ in lanes]
    action_elements: list[Any] = [None for _ in lanes]
    rows: list[tuple[Any, ...]] = []  # a, o and the probes of all transitions

    def learn(lane: int, x: Any, a: Any, r: float, y: Any, ended: bool) -> None:
        """Let the agent learn one transition of a lane, and add it to the rows."""
        o = Step(r, y) if reward else y
        set_situation(agent, x)
        agent.observe(a, o)
        rows.append((a, o, x, lane, r, ended))

    # The lanes whose next step only resets, with the (x, a, r) that is learned once x_0 is known;
    # None if nothing remains to be learned.
    resetting: dict[int, tuple[Any, Any, float] | None] = {}
    for _ in range(steps):
        for lane in lanes:
            if lane not in resetting:
                set_situation(agent, x[lane])
                actions[lane] = copy_if_array(agent.act(p))  # a controller may reuse its array
                action_elements[lane] = action_space.element(actions[lane])
        empty: Any = utils.create_empty_array(envs.single_action_space, n=envs.num_envs)
        joined = utils.concatenate(envs.single_action_space, action_elements, empty)
        batch, rewards, terminations, truncations, info = envs.step(joined)
        for lane, element in enumerate(utils.iterate(envs.observation_space, batch)):
            y = space.name(element)
            if lane in resetting:
                if (unlearned := resetting.pop(lane)) is not None:
                    # The reset from the state END is a transition, not the end of an episode.
                    learn(lane, *unlearned, y, unlearned[0] is not END)
            elif not (terminations[lane] or truncations[lane]):
                learn(lane, x[lane], actions[lane], float(rewards[lane]), y, False)
            else:
                transition = x[lane], actions[lane], float(rewards[lane])
                how = terminated if terminations[lane] else truncated
                if how == "end":
                    learn(lane, *transition, END, True)
                    transition = END, reset_action, 0.0
                masked = how == "mask"
                if not same_step:
                    resetting[lane] = None if masked else transition
                # An environment that resets in the same step returns y = x_0.
                hidden = masked and same_step
                last = space.name(_lane_of(info["final_obs"], lane)) if hidden else y
                if masked or same_step:
                    learn(lane, *transition, last, how != "end")
            x[lane] = y
    columns = zip(*rows, strict=True) if rows else [()] * (2 + len(_PROBES))
    taken, observations, *probes = columns
    return Record(taken, observations, dict(zip(_PROBES, probes, strict=True)))


def _lane_of(value: Any, lane: int) -> Any:
    """Return the part of a batch of observations that belongs to a lane."""
    if isinstance(value, dict):  # Gymnasium batches dictionaries by key and adds masks
        masks = {f"_{k}" for k in value}
        return {k: _lane_of(v, lane) for k, v in value.items() if k not in masks}
    return value[lane]


def _as_vector_env(env: Any) -> tuple[Any, bool]:
    """Return the vector environment, and whether it resets in the step that ends an episode."""
    vector = gymnasium.vector
    if isinstance(env, gymnasium.Env):
        mode = vector.AutoresetMode.SAME_STEP
        return vector.SyncVectorEnv([lambda: env], autoreset_mode=mode), True
    if not isinstance(env, vector.VectorEnv):
        raise TypeError(f"env={env!r} is neither a gymnasium.Env nor a gymnasium.vector.VectorEnv")
    autoreset = env.metadata.get("autoreset_mode")
    if autoreset not in (vector.AutoresetMode.NEXT_STEP, vector.AutoresetMode.SAME_STEP):
        raise MissingCapability(
            f"{env} has the autoreset mode {autoreset}: create it with NEXT_STEP or SAME_STEP of "
            "gymnasium.vector.AutoresetMode, or set env.metadata['autoreset_mode'] to its mode"
        )
    return env, autoreset == vector.AutoresetMode.SAME_STEP


def _reject_private_state(agent: Any) -> None:
    """Raise `MissingCapability` if a mode of the agent has private state."""
    belief = getattr(agent, "belief", None)
    if isinstance(belief, ContextTreeBelief):
        raise MissingCapability(
            f"drive does not support {belief!r}, because it follows one history: use interact with "
            "Continuing(env)"
        )
    modes = getattr(belief, "modes", ())
    listed = modes if isinstance(modes, Sequence) else [modes]
    if any(has(mode, Stateful) and callable(mode.start) for mode in listed):
        raise MissingCapability(
            "drive does not support modes with private state, because resets break their history: "
            "use a new agent for each episode, or interact with an environment that never resets"
        )

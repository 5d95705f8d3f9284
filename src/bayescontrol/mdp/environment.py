"""An MDP as an environment Q: the observation is the reward and the state it led to.

    o = (r, y) ~ P(r, y | x, a)        x ← y

The agent sees every state, so its situation is the last one: advance(x, a, o) = o.state.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bayescontrol import kernels
from bayescontrol.errors import UnknownAction
from bayescontrol.seeding import Stream
from bayescontrol.situations import follows_state

if TYPE_CHECKING:
    from bayescontrol.mdp.table import MDP


class Step(NamedTuple):
    """What an MDP answers: the reward r and the next state y.

    >>> Step(1.0, "goal").state
    'goal'
    """

    reward: float
    state: Any


@follows_state
def advance(x: Any, a: Any, o: Step) -> Any:
    """T(x, a, o) = y: the state that was seen is the situation.

    >>> advance("start", "left", Step(0.0, "goal"))
    'goal'
    """
    return o.state


class MDPEnvironment:
    """Q of an MDP; `x` is the state it is in, `at` the number of that state.

    >>> from bayescontrol.mdp import chain_mdp
    >>> world = chain_mdp(2).environment()
    >>> [world.respond(0, Stream(0)) for _ in range(3)]
    [Step(reward=0.0, state=1), Step(reward=1.0, state=0), Step(reward=0.0, state=1)]
    >>> world.respond(2, Stream(0))
    Traceback (most recent call last):
    bayescontrol.errors.UnknownAction: no action 2: the actions are 0, 1
    """

    #: `interact` refuses an agent that follows the states and is in another one.
    shows_state: ClassVar[bool] = True

    def __init__(self, mdp: "MDP", start: Hashable | None = None) -> None:
        self.mdp = mdp
        self.at = 0 if start is None else mdp.states.place(start)

    @property
    def x(self) -> Any:
        """The state it is in."""
        return self.mdp.states[self.at]

    def respond(self, a: Hashable, rng: Stream) -> Step:
        """(r, y) ~ P(r, y | x, a); an action that x does not offer changes nothing."""
        mdp, tables = self.mdp, self.mdp.tables
        action = mdp.actions.place(a)
        if not mdp.allowed[self.at, action]:
            offered = ", ".join(map(repr, mdp.actions_in(self.x)))
            raise UnknownAction(f"state {self.x!r} does not offer action {a!r}: it has {offered}")
        entry = kernels.mdp.respond(tables, self.at, action, len(mdp.actions), rng.state)
        self.at = int(tables.successor[entry])
        return Step(float(tables.reward[entry]), self.x)

    def __repr__(self) -> str:
        return f"MDPEnvironment({self.mdp!r} in state {self.x!r})"

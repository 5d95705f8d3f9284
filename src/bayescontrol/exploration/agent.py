"""A control rule that explores: random actions, and policies that tell models apart.

    P(a_t | âo_<t, m) = (1 - ε_t) P(a_t | m, x) + ε_t / A         exact, given the mode m that acts

The posterior of the control rule converges only if the drawn modes act so that wrong ones are
refuted (the consistency condition of the paper). An agent that never does what would refute a wrong
model confirms itself: the model stays, and so does the policy. There are two ways out, and both
cost reward:

    exploration    ε_t falls with time, and does not depend on the length of the run
    remedy         with a share of the steps, follow a model that predicts as well as the belief
                   does, but would act otherwise (`agent.unresolved()`)

The remedy is a heuristic: it follows the most promising of a few such models, which is not
necessarily the one that is refuted fastest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

from bayescontrol._arrays import as_integer, require_between
from bayescontrol._support.names import Names
from bayescontrol._support.saved import Number, declare
from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import ActionProbabilities, Diagnosis
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import StreamLike, require_stream
from bayescontrol.situations import Advance

#: ε_t of the step t = 0, 1, …
Exploration: TypeAlias = Callable[[int], float]


@dataclass(frozen=True)
class Falling:
    """ε_t = min(1, (steps / (t + 1))^power): random at first, then ever less.

    All ε_t together are about steps · power / (power - 1), however long the run is.

    >>> Falling(100)(49), Falling(100, power=2)(199)
    (1.0, 0.25)
    """

    steps: float = 500.0
    power: float = 3.0

    def __post_init__(self) -> None:
        require_between("steps", self.steps, 0.0, 1e9)
        require_between("power", self.power, 1.0, 100.0, ends="(]")

    def __call__(self, t: int) -> float:
        """Return ε_t."""
        return float(min(1.0, (self.steps / (t + 1)) ** self.power))


@dataclass(frozen=True)
class Remedy:
    """Follow unresolved models for at most `share` of all steps, `steps` steps each time.

    When a mode is drawn, the agent looks for one with probability `chance`. So the cost of the
    remedy until step t is at most `share` · t times the largest loss of a step.

    >>> Remedy(share=0.01)
    Remedy(share=0.01, steps=20, chance=0.2)
    """

    share: float = 0.05
    steps: int = 20
    chance: float = 0.2

    def __post_init__(self) -> None:
        require_between("share", self.share, 0.0, 1.0)
        as_integer("steps", self.steps, 1)
        require_between("chance", self.chance, 0.0, 1.0)


class ExploringRule(ControlRule[Any, Any, Any, Any]):
    """The control rule with random actions and a remedy against self-confirmation.

    `actions` are names or their number. `exploration(t)` is the probability of a random action at
    step t = 0, 1, …; None explores never. `remedy` needs a belief with unresolved modes, such as a
    `FiniteBelief`.

    >>> from bayescontrol import Stream, TabularModes
    >>> boxes = TabularModes(policy=[[[1, 0]], [[1, 0]]], hypothesis=[[[[1, 0]] * 2]] * 2)
    >>> agent = ExploringRule.of(boxes.agent(), 2, exploration=Falling(1, power=2))
    >>> _ = agent.act(Stream(0))
    >>> agent.probability, agent.action_probabilities()
    (0.5, {0: 0.875, 1: 0.125})
    """

    format_name: ClassVar[str] = "ExploringRule"
    saved_fields = declare(
        Number("remedy/left", "_left", least=0),
        Number("remedy/followed", "followed", least=0),
        Number("probability", least=0.0),
    )

    def __init__(
        self,
        belief: Any,
        actions: int | Sequence[Any],
        situation: Any = None,
        advance: Advance | None = None,
        schedule: Schedule = every_step,
        *,
        exploration: Exploration | None = None,
        remedy: Remedy | None = None,
    ) -> None:
        super().__init__(belief, situation, advance, schedule)
        self.actions = Names("action", actions)
        if exploration is not None and not callable(exploration):
            raise TypeError(f"exploration={exploration!r} must be a function of t, as Falling(500)")
        if remedy is not None and not isinstance(remedy, Remedy):
            raise TypeError(f"remedy={remedy!r}: expected Remedy(…) or None")
        if remedy is not None and not self._offers(Diagnosis):
            raise MissingCapability(
                f"remedy={remedy!r} needs a belief that finds unresolved modes: {belief!r} has no "
                "`unresolved` and `draw_unresolved`; omit it"
            )
        self.exploration, self.remedy = exploration, remedy
        #: In how many more steps the current mode of the remedy acts, and in how many such modes
        #: have acted.
        self._left = 0
        self.followed = 0
        #: P(a_t | âo_<t, m) of the last action, given the mode m that acted: its propensity.
        self.probability = 1.0

    @classmethod
    def of(
        cls, agent: ControlRule[Any, Any, Any, Any], actions: int | Sequence[Any],
        exploration: Exploration | None = None, remedy: Remedy | None = None,
    ) -> Self:  # fmt: skip
        """Return a new agent with the belief, situation and schedule of a control rule."""
        return cls(
            agent.belief, actions, agent.x, agent.advance, agent.schedule,
            exploration=exploration, remedy=remedy,
        )  # fmt: skip

    def act(self, rng: StreamLike) -> Any:
        """Return a_t: draw a mode if one is due; do what it would do, or a random action."""
        stream = require_stream(rng)
        if self._left:
            self._left -= 1
            self.followed += 1
        elif self.mode is None or self._due(stream):
            self.mode = self.belief.sample(stream)
            self._drawn_at, self._drawn_in = self._t, self.x
            self._start_remedy(stream)
        p = self.action_probabilities()
        explores = stream.random() < self._epsilon()
        mode: Any = self.mode
        a = (
            self.actions[int(stream.integers(len(self.actions)))]
            if explores
            else mode.act(self.x, stream)
        )
        self.probability = p[a]
        self.issue(a)
        self._t += 1
        return a

    def _start_remedy(self, rng: Any) -> None:
        """Follow an unresolved mode if it is time and there is one."""
        remedy = self.remedy
        if remedy is None or rng.random() >= remedy.chance:
            return
        if self.followed + remedy.steps > remedy.share * self._t:
            return
        found = self.belief.draw_unresolved(self.x, rng)
        if found is not None:
            self.mode, self._left = found, remedy.steps - 1
            self.followed += 1

    def _epsilon(self) -> float:
        """ε_t of the next action."""
        return 0.0 if self.exploration is None else self.exploration(self._t)

    def action_probabilities(self) -> dict[Any, float]:
        """P(a_t | âo_<t, m) for all a_t, given the mode m that acts now.

        If a new mode is drawn before the next action, these are not its probabilities: the
        attribute `probability` has that of the last action, exactly.
        """
        if self.mode is None:
            raise MissingCapability("no mode acts yet: the first one is drawn by the first action")
        mode: ActionProbabilities[Any, Any] = self.mode
        epsilon, given = self._epsilon(), mode.action_probabilities(self.x)
        share = epsilon / len(self.actions)
        return {a: (1.0 - epsilon) * given.get(a, 0.0) + share for a in self.actions}

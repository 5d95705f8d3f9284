"""A control rule that explores: random actions, and policies that tell models apart.

    P(a_t | âo_<t, m) = (1 - ε) P(a_t | m, x) + ε / A             exact, given the mode m that acts
    ε = ε_t                                                       or 1 - (1 - ε_t)(1 - chance) where
                                                                  the remedy may test, with trees

The posterior of the control rule converges only if the drawn modes act so that wrong ones are
refuted (the consistency condition of the paper). An agent that never does what would refute a wrong
model confirms itself: the model stays, and so does the policy. There are two ways out, and both
cost reward:

    exploration    ε_t falls with time, and does not depend on the length of the run
    remedy         in a share of the steps, test what the belief does not tell apart
                   (`agent.unresolved()`): follow a mode that predicts as well but would act
                   otherwise, or for trees, act at random in an unresolved context

The remedy is a heuristic. It draws such a mode from the prior, or an action at random, which is not
necessarily what would be refuted fastest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from bayescontrol._arrays import as_integer, require_between
from bayescontrol._mode_queries import require
from bayescontrol._support.names import Names
from bayescontrol._support.priors import checked_probabilities
from bayescontrol._support.saved import Fixed, Number, Plain, damaged, declare
from bayescontrol.errors import InvalidTable, MissingCapability
from bayescontrol.protocols import (
    ActionProbabilities,
    MixingBelief,
    UnresolvedActions,
    UnresolvedModes,
)
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
    power: float = 4.0

    def __post_init__(self) -> None:
        require_between("steps", self.steps, 0.0, 1e9)
        require_between("power", self.power, 1.0, 100.0, ends="(]")

    def __call__(self, t: int) -> float:
        """Return ε_t."""
        return float(min(1.0, self.steps / (t + 1)) ** self.power)


@dataclass(frozen=True)
class Remedy:
    """Test what the belief does not tell apart, in at most `share` of all steps.

    In a finite class the agent looks for an unresolved mode with probability `chance` whenever it
    draws one, and follows it for `steps` steps. With context trees it acts at random with
    probability `chance` when some action is untested in the present context. Until step t it has
    taken at most `share` · t actions; in a world with state, one may also cost later steps.

    >>> Remedy(share=0.01)
    Remedy(share=0.01, steps=20, chance=0.1)
    """

    share: float = 0.05
    steps: int = 20
    chance: float = 0.1

    def __post_init__(self) -> None:
        require_between("share", self.share, 0.0, 1.0)
        as_integer("steps", self.steps, 1)
        require_between("chance", self.chance, 0.0, 1.0)


def stored_choice(value: Any, name: str) -> list[Any] | None:
    """Return a value of `exploration` or `remedy` as logs store it: its name and its arguments.

    >>> stored_choice(Falling(100), "exploration")
    ['Falling', 100.0, 4.0]
    """
    if type(value) is Falling:  # a subclass may behave differently
        return ["Falling", float(value.steps), float(value.power)]
    if type(value) is Remedy:
        return ["Remedy", float(value.share), int(value.steps), float(value.chance)]
    if value is not None:
        raise MissingCapability(
            f"{name}={value!r} is code, which a log cannot store: use Falling(…) or None, or "
            "named_model(…)"
        )
    return None


def restored_choice(stored: Any, name: str) -> Any:
    """Return the value that `stored_choice` described; other values are returned as they are.

    >>> restored_choice(["Remedy", 0.05, 20, 0.1], "remedy")
    Remedy(share=0.05, steps=20, chance=0.1)
    """
    if not isinstance(stored, list | tuple):
        return stored
    kind = {"exploration": Falling, "remedy": Remedy}[name]
    if [*stored[:1]] != [kind.__name__] or len(stored) > 1 + len(fields(kind)):
        shown = ", ".join([f'"{kind.__name__}"', *(f.name for f in fields(kind))])
        raise InvalidTable(f"{name}={stored!r}: expected [{shown}] or None")
    try:
        return kind(*stored[1:])
    except ValueError as error:
        raise InvalidTable(f"{name}={stored!r}: {error}") from None


def require_choices(exploration: Any, remedy: Any) -> None:
    """Raise TypeError unless these values of `exploration` and `remedy` are possible."""
    if exploration is not None and not callable(exploration):
        raise TypeError(f"exploration={exploration!r} must be a function of t, as Falling(500)")
    if remedy is not None and not isinstance(remedy, Remedy):
        raise TypeError(f"remedy={remedy!r}: expected Remedy(…) or None")


class ExploringRule(ControlRule[Any, Any, Any, Any]):
    """The control rule with random actions and a remedy against self-confirmation.

    `actions` are names or their number. `exploration(t)` is the probability of a random action at
    step t = 0, 1, …; None never explores. `remedy` needs a belief that finds what is unresolved,
    such as a `FiniteBelief` or that of context trees. All modes need `action_probabilities`.

    `belief`, `situation`, `advance` and `schedule` are those of a `ControlRule`.

    >>> from bayescontrol import Stream, TabularModes
    >>> boxes = TabularModes(policy=[[[1, 0]], [[1, 0]]], hypothesis=[[[[1, 0]] * 2]] * 2)
    >>> agent = ExploringRule.of(boxes.agent(), 2, exploration=Falling(1, power=2))
    >>> agent.act(Stream(0)), agent.probability, agent.action_probabilities()
    (1, 0.5, {0: 0.875, 1: 0.125})
    """

    format_name: ClassVar[str] = "ExploringRule"
    saved_fields = declare(
        Fixed("actions", lambda agent: list(agent.actions)),
        Number("remedy/left", "_left", least=0),
        Number("remedy/followed", "followed", least=0),
        Plain("remedy/recent", "_recent", "a situation of the belief"),
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
        require_choices(exploration, remedy)
        finds = self._offers(UnresolvedActions) or self._offers(UnresolvedModes)
        if remedy is not None and not finds:
            raise MissingCapability(
                f"remedy={remedy!r} needs a belief that finds what is unresolved: {belief!r} has "
                "neither `draw_unresolved` nor `is_unresolved`; omit it"
            )
        if self._offers(MixingBelief) and not belief.offers(ActionProbabilities):
            raise MissingCapability(
                f"the modes of {belief!r} have no action_probabilities(x), which the probability "
                "of an action needs: add it to each mode"
            )
        self.exploration, self.remedy = exploration, remedy
        #: How many steps are left to the mode of the remedy, counting that of the last action; 0 if
        #: another mode acts. And how many actions the remedy has taken.
        self._left = 0
        self.followed = 0
        #: P(b | âo_<t, m) of every action b at the last one, given the mode m that acted. They are
        #: not saved: a loaded agent has them after its next action.
        self.probabilities: dict[Any, float] = {}
        #: P(a_t | âo_<t, m) of the last action a_t: its propensity.
        self.probability = 1.0

    @classmethod
    def of(
        cls, agent: ControlRule[Any, Any, Any, Any], actions: int | Sequence[Any],
        exploration: Exploration | None = None, remedy: Remedy | None = None,
    ) -> Self:  # fmt: skip
        """Return a new agent with the belief, situation and schedule of a control rule."""
        if type(agent) is not ControlRule:
            raise MissingCapability(
                f"{agent!r} is not a plain ControlRule, and may act otherwise: create the agent "
                f"from a belief, {cls.__name__}(belief, actions)"
            )
        return cls(
            agent.belief, actions, agent.x, agent.advance, agent.schedule,
            exploration=exploration, remedy=remedy,
        )  # fmt: skip

    def act(self, rng: StreamLike) -> Any:
        """Return a_t: draw a mode if one is due; do what it would do, or a random action."""
        stream, epsilon = require_stream(rng), self._epsilon()
        if self.belief is not self._checked_belief:
            self._ask(self.belief)
        if self._counts_decisions:
            self.belief.begin()
        left = self._left - 1
        if left < 1 or self.mode is None or self._is_retired():
            left = 0
            if self._left or self.mode is None or self._due(stream):
                self.mode = self.belief.sample(stream)
                self._drawn_at, self._drawn_in = self._t, self.x
                left = self._start_remedy(stream)
        mode: Any = self.mode
        require(mode, ActionProbabilities, f"the mode {mode!r}")
        stated = mode.action_probabilities(self.x)
        policy = checked_probabilities(stated, "policy", mode, self.x)
        tests = self._test_probability(policy)
        p = self._explored(policy, epsilon + (1.0 - epsilon) * tests)
        explores = stream.random() < epsilon
        is_test = tests > 0.0 and not explores and stream.random() < tests
        if explores or is_test:
            a = self.actions[int(stream.integers(len(self.actions)))]
        else:
            a = mode.act(self.x, stream)
            if not policy.get(a):
                raise InvalidTable(
                    f"the mode {mode!r} takes action {a!r}, which has no probability in its "
                    f"action_probabilities(x): {stated!r}"
                )
        self._left = left
        self.followed += is_test or left > 0
        self.probabilities, self.probability = p, p[a]
        self.issue(a)
        self._t += 1
        return a

    def _test_probability(self, policy: Mapping[Any, float]) -> float:
        """Return the probability that the remedy takes a random action at this step."""
        remedy = self.remedy
        if remedy is None or not self._offers(UnresolvedActions):
            return 0.0
        has_steps = self.followed + 1 <= remedy.share * self._t
        likely = max(policy, key=policy.__getitem__)
        is_needed = has_steps and self.belief.is_unresolved(self.x, likely)
        return remedy.chance if is_needed else 0.0

    def _start_remedy(self, rng: Any) -> int:
        """Follow an unresolved mode if it is time and there is one; return for how many steps."""
        remedy = self.remedy
        if remedy is None or self._offers(UnresolvedActions) or rng.random() >= remedy.chance:
            return 0
        if self.followed + remedy.steps > remedy.share * self._t:
            return 0
        found = self.belief.draw_unresolved(self.x, rng)
        if found is None:
            return 0
        self.mode = found
        return remedy.steps

    def _epsilon(self) -> float:
        """ε_t of the next action."""
        if self.exploration is None:
            return 0.0
        t = self._t
        return require_between(f"exploration({t})", self.exploration(t), 0.0, 1.0)

    def _explored(self, policy: Mapping[Any, float], epsilon: float) -> dict[Any, float]:
        """Return (1 - ε) P(a) + ε / A of every action; others in the policy raise an error."""
        for a in policy:
            self.actions.place(a)
        share = epsilon / len(self.actions)
        return {a: (1.0 - epsilon) * policy.get(a, 0.0) + share for a in self.actions}

    def action_probabilities(self) -> dict[Any, float]:
        """P(a_t | âo_<t) = (1 - ε_t) Σ_m P(a_t | m, x) P(m | âo_<t) + ε_t / A, for all a_t.

        This is without a remedy. After an action, `probability` is that of the action given the
        mode that acted, also with a remedy.
        """
        if self.remedy is not None:
            raise MissingCapability(
                f"the probability of an action under {self.remedy!r} is known given the mode that "
                "acts: after act(rng) use the attribute `probability`"
            )
        return self._explored(super().action_probabilities(), self._epsilon())

    # -- state ---------------------------------------------------------------------------------

    @property
    def _recent(self) -> Any:
        """The situations in which the belief compares policies."""
        found = [*getattr(self.belief, "recent", ())]
        if found and all(isinstance(x, np.ndarray) for x in found):
            return np.array(found)
        return [x.item() if isinstance(x, np.generic) else x for x in found]

    @_recent.setter
    def _recent(self, situations: Any) -> None:
        if hasattr(self.belief, "recent"):
            self.belief.recent.extend(situations)

    def _check_state(self, new: SimpleNamespace) -> None:
        """Raise an error if the counts of the remedy are impossible."""
        super()._check_state(new)
        new.probabilities = {}
        if new.probability > 1.0:
            raise damaged(f"'probability' is {new.probability}")
        if new.followed > new._t or (new._left and new.mode is None):
            raise damaged(f"the remedy has taken {new.followed} of {new._t} actions")
        if not isinstance(new._recent, list | np.ndarray):
            raise damaged("'remedy/recent' is not a list of situations")

"""I/O systems, their coupling, and what it means to know an environment.

    I/O system Pr        P(a_t | ao_<t) and P(o_t | ao_<t a_t), here with the history in a state s
    coupling (P, Q)      G(a_t | ao_<t) = P(a_t | ao_<t),  G(o_t | ao_<t a_t) = Q(o_t | ao_<t a_t)
    known                P(o_t | ao_<t a_t) = Q(o_t | ao_<t a_t) for every history
    tailored             Q is known to P, and G is desirable

A mode with a situation, an agent and an environment are all treated as I/O systems here.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bayescontrol._mode_queries import first_state, state_transition
from bayescontrol.errors import MissingCapability
from bayescontrol.protocols import IOSystem
from bayescontrol.rule import Rule
from bayescontrol.schedules import every_step
from bayescontrol.situations import Advance

S = TypeVar("S")
T = TypeVar("T")
A = TypeVar("A", bound=Hashable)
O = TypeVar("O", bound=Hashable)  # noqa: E741 - the paper's symbol
History = tuple[tuple[Any, Any], ...]


class Situated:
    """Treat a mode with exact probabilities as an I/O system P_m; its state is the situation x.

    >>> from bayescontrol import DiscreteMode
    >>> coin = DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5})
    >>> Situated(coin).observation_probabilities(None, "toss")
    {'H': 0.5, 'T': 0.5}
    """

    def __init__(self, mode: Any, situation: Any = None, advance: Advance | None = None) -> None:
        self.mode, self.situation = mode, situation
        #: T(x, a, o), the next situation.
        self.advance: Advance = state_transition(mode, situation, advance)
        self.action_probabilities: Callable[..., Any] = mode.action_probabilities
        self.observation_probabilities: Callable[..., Any] = mode.observation_probabilities

    def start(self) -> Any:
        """Return x before the first step."""
        return first_state(self.mode, self.situation)


class AgentSystem:
    """Treat a `ControlRule` as an I/O system; its state is a copy of the agent.

    >>> from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
    >>> coin = DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5})
    >>> system = AgentSystem(ControlRule(FiniteBelief([coin])))
    >>> system.action_probabilities(system.start())
    {'toss': 1.0}
    """

    def __init__(self, agent: Rule) -> None:
        if agent.schedule is not every_step:
            raise MissingCapability(
                f"{agent.schedule!r} holds modes: the history does not determine P(a_t | ao_<t): "
                "use an agent that draws a mode at every step"
            )
        self._agent = agent.copy()

    def start(self) -> Rule:
        """Return the agent before the first step."""
        return self._agent

    def action_probabilities(self, s: Rule) -> dict[Any, float]:
        """P(a_t | ao_<t)."""
        return s.action_probabilities()

    def observation_probabilities(self, s: Rule, a: Any) -> dict[Any, float]:
        """P(o_t | ao_<t a_t): the prediction of the agent after it has issued a_t."""
        s = s.copy()
        s.issue(a)
        return s.predictive(a)

    def advance(self, s: Rule, a: Any, o: Any) -> Rule:
        """Return the agent after a_t and o_t."""
        s = s.copy()
        s.issue(a)
        s.observe(a, o)
        return s


class Coupled(Generic[S, T, A, O]):
    """The generative distribution G of the interaction system (P, Q): itself an I/O system.

    >>> from bayescontrol import DiscreteMode
    >>> p = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 1.0}))
    >>> q = Situated(DiscreteMode(lambda x: {}, lambda x, a: {"T": 1.0}))
    >>> g = Coupled(p, q)
    >>> g.action_probabilities(g.start()), g.observation_probabilities(g.start(), "toss")
    ({'toss': 1.0}, {'T': 1.0})
    """

    def __init__(self, agent: IOSystem[S, A, O], environment: IOSystem[T, A, O]) -> None:
        self.agent, self.environment = agent, environment

    def start(self) -> tuple[S, T]:
        """Return both states before the first step."""
        return self.agent.start(), self.environment.start()

    def action_probabilities(self, s: tuple[S, T]) -> Mapping[A, float]:
        """G(a_t | ao_<t) = P(a_t | ao_<t)."""
        return self.agent.action_probabilities(s[0])

    def observation_probabilities(self, s: tuple[S, T], a: A) -> Mapping[O, float]:
        """G(o_t | ao_<t a_t) = Q(o_t | ao_<t a_t)."""
        return self.environment.observation_probabilities(s[1], a)

    def advance(self, s: tuple[S, T], a: A, o: O) -> tuple[S, T]:
        """Advance both systems by (a, o)."""
        return self.agent.advance(s[0], a, o), self.environment.advance(s[1], a, o)


@dataclass(frozen=True)
class Check:
    """The result of a check: whether a property holds; if not, the first history where it fails.

    >>> bool(Check(holds=True))
    True
    """

    holds: bool
    history: History = ()
    gap: float = 0.0

    def __bool__(self) -> bool:
        """Return whether the property holds."""
        return self.holds


def _walk(
    systems: Sequence[IOSystem[Any, A, O]], actions: Sequence[A], horizon: int
) -> Iterator[tuple[History, A, list[Mapping[O, float]]]]:
    """Yield each history up to the horizon that some system allows, with all predictions."""
    stack: list[tuple[History, list[Any]]] = [((), [q.start() for q in systems])]
    while stack:
        history, states = stack.pop()
        pairs = list(zip(systems, states, strict=True))
        for a in actions:
            predictions = [q.observation_probabilities(s, a) for q, s in pairs]
            yield history, a, predictions
            if len(history) + 1 < horizon:
                possible = (o for outcomes in predictions for o, p in outcomes.items() if p > 0.0)
                for o in dict.fromkeys(possible):
                    next_states = [q.advance(s, a, o) for q, s in pairs]
                    stack.append(((*history, (a, o)), next_states))


def known(
    agent: IOSystem[Any, A, O],
    environment: IOSystem[Any, A, O],
    actions: Sequence[A],
    horizon: int,
    tolerance: float = 1e-12,
) -> Check:
    """Check whether Q is known to P: P(o_t | ao_<t a_t) = Q(o_t | ao_<t a_t) up to the horizon.

    >>> from bayescontrol import DiscreteMode
    >>> fair = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}))
    >>> bent = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.9, "T": 0.1}))
    >>> known(fair, bent, ["toss"], horizon=3)
    Check(holds=False, history=(('toss', None),), gap=0.4)
    """
    for history, a, (p, q) in _walk([agent, environment], actions, horizon):
        gap = max((abs(p.get(o, 0.0) - q.get(o, 0.0)) for o in p.keys() | q.keys()), default=0.0)
        if gap > tolerance:
            return Check(False, (*history, (a, None)), gap)
    return Check(True)


def tailored(
    agent: IOSystem[Any, A, O],
    environment: IOSystem[Any, A, O],
    actions: Sequence[A],
    horizon: int,
    desirable: Callable[[Coupled[Any, Any, A, O]], bool],
) -> Check:
    """Check whether P is tailored to Q: Q is known to P, and the distribution G is desirable.

    The designer chooses `desirable`, for instance that the expected utility under G is high enough.

    >>> from bayescontrol import DiscreteMode
    >>> pays = lambda x, a: {1: a, 0: 1 - a}
    >>> q = Situated(DiscreteMode(lambda x: {}, pays))
    >>> for arm in (0.25, 0.75):
    ...     p = Situated(DiscreteMode(lambda x: {arm: 1.0}, pays))
    ...     bool(tailored(p, q, [0.25, 0.75], 2,
    ...                   lambda g: g.action_probabilities(g.start()) == {0.75: 1.0}))
    False
    True
    """
    check = known(agent, environment, actions, horizon)
    return check if not check else Check(desirable(Coupled(agent, environment)))

"""What finite classes of modes have in common: numbered modes, their names, and the agent."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._compiled import learner
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import InvalidTable, UnknownMode
from bayescontrol.protocols import Policy
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step

if TYPE_CHECKING:
    from bayescontrol.kernels.tabular import Columns

M = TypeVar("M", bound=Policy[Any, Any])
X = TypeVar("X")
A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the paper's symbol


class ModeClass(Generic[M, X, A, O]):
    """A class of modes, numbered from 0, in one object that answers queries for all of them."""

    #: The class of a mode, called with this object and the number of the mode.
    mode_type: type[Any]
    #: The situation before the first step.
    start: X
    #: P(m), the default prior of agents; None for a uniform one.
    prior: FloatArray | None = None
    advance: Any

    def __init__(self, size: int, names: Sequence[str] | None = None) -> None:
        if names is not None and len(names) != size:
            raise InvalidTable(f"{len(names)} names for {size} modes: give one name per mode")
        self._size = size
        self.names = tuple(names) if names is not None else None
        self._modes: dict[int, M] = {}

    def __len__(self) -> int:
        """The number of modes."""
        return self._size

    def __getitem__(self, m: int) -> M:
        """Mode m."""
        mode = self._modes.get(m)
        if mode is None:
            if not 0 <= m < self._size:
                raise UnknownMode(f"no mode {m}: the modes are 0 … {self._size - 1}")
            mode = self._modes[m] = self.mode_type(self, m)
        return mode

    def __iter__(self) -> Iterator[M]:
        """Iterate over the modes."""
        return (self[m] for m in range(self._size))

    def agent(
        self,
        prior: ArrayLike | None = None,
        *,
        kind: type[ControlRule[Any, Any, Any, Any]] = ControlRule,
        schedule: Schedule = every_step,
    ) -> ControlRule[M, X, A, O]:
        """Return the control rule over this class, by default with the prior of the class.

        `kind` may be a subclass such as `NaiveMixture`.
        """
        modes: Any = self
        belief: FiniteBelief[M] = FiniteBelief(modes, self.prior if prior is None else prior)
        return kind(belief, copy(self.start), self.advance, schedule)

    def fits_rule(self, agent: Any) -> bool:
        """Whether the agent is the control rule over this class, as compiled loops need it."""
        return (
            type(learner(agent)) is FiniteBelief
            and agent.belief.modes is self
            and agent.belief.on_impossible == "raise"
            and agent.schedule is every_step
            and agent.advance == self.advance
        )


class ClassMode:
    """One mode of a class: mode m of `modes`."""

    __slots__ = ("m", "modes")

    def __init__(self, modes: Any, m: int) -> None:
        self.modes, self.m = modes, m

    @property
    def name(self) -> str:
        """The name of the mode, or an empty text if the class has no names."""
        return str(self.modes.names[self.m]) if self.modes.names else ""

    def likelihood(self, x: Any, a: Any, o: Any) -> float:
        """P(o | m, x, a)."""
        return float(self.modes.likelihoods(x, a, o)[self.m])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.m}{f', {self.name!r}' if self.name else ''})"


def finish_loop(agent: Any, done: int, drawn_in: Any, x: Any, columns: "Columns") -> Record:
    """Synchronise an agent with a compiled loop that learned `done` steps; return the record."""
    drawn, actions, observations = columns
    acted = min(done + 1, len(actions))
    if acted:
        agent.belief.fast_forward(done, int(drawn[acted - 1]))
        agent.fast_forward(acted, drawn_in, x)
    if done < len(actions):  # the loop rejected this observation; observe() raises the error
        agent.observe(actions[done].item(), observations[done].item())
    return Record(actions, observations)

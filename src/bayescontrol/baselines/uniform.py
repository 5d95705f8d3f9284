"""The agent that knows nothing and learns nothing.

    Pr(a_t | ao_<t) = 1 / |A|        Pr(o_t | ao_<t a_t) = 1 / |O|

What any agent has to beat.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the paper's symbol


class UniformSystem(Generic[A, O]):
    """An I/O system without memory, uniform over actions and over observations.

    >>> system = UniformSystem(["left", "right"], range(4))
    >>> system.action_probabilities(system.start())
    {'left': 0.5, 'right': 0.5}
    """

    def __init__(self, actions: Sequence[A], observations: Sequence[O]) -> None:
        for name, symbols in (("actions", actions), ("observations", observations)):
            if len(symbols) == 0 or len(set(symbols)) < len(symbols):
                raise ValueError(f"{name}={symbols!r}: give at least one symbol, each of them once")
        self._actions = dict.fromkeys(actions, 1.0 / len(actions))
        self._observations = dict.fromkeys(observations, 1.0 / len(observations))

    def start(self) -> None:
        """Nothing to remember."""

    def action_probabilities(self, s: None) -> dict[A, float]:
        """1 / |A|."""
        return dict(self._actions)

    def observation_probabilities(self, s: None, a: A) -> dict[O, float]:
        """1 / |O|."""
        return dict(self._observations)

    def advance(self, s: None, a: A, o: O) -> None:
        """Still nothing."""

    def __repr__(self) -> str:
        return (
            f"UniformSystem({len(self._actions)} actions, {len(self._observations)} observations)"
        )

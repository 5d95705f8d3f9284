"""The symbols of a cycle: an action, then the fields of a percept.

    cycle        a_t, k_1, …, k_F         a number for each symbol
    observation  o = (r, field, …)        the reward first, then the other fields in their order

The reward is the last field of the cycle, so that it is predicted given the others. A field with
one symbol carries no information and is left out of the cycle.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import product
from math import isfinite, log
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray
from bayescontrol._support.names import Names
from bayescontrol.errors import BadEvidence, InvalidTable
from bayescontrol.protocols import Probabilities

#: The fields of a percept and their symbols, or the number of symbols; the last is the reward.
Percepts: TypeAlias = Mapping[str, int | Sequence[Hashable]]
#: Symbols are stored as bytes.
MOST_SYMBOLS = 256


class Alphabet:
    """The actions and the fields of a percept, by name and by number.

    >>> alphabet = Alphabet(2, {"sound": ["left", "right"], "reward": [0, 1]})
    >>> alphabet.cycle(1, (0, "right")), alphabet.observation([1, 0])
    ([1, 1, 0], (0.0, 'right'))
    """

    def __init__(self, actions: int | Sequence[Hashable], percepts: Percepts) -> None:
        self.actions = Names("action", actions)
        given: Any = percepts
        has_names = isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
        if not has_names or [*given][-1:] != ["reward"]:
            raise InvalidTable(
                f"percepts={percepts!r}: expected a dict of named fields and their symbols, the "
                'last of which is called "reward"'
            )
        self.fields = {name: Names("symbol", symbols) for name, symbols in percepts.items()}
        rewards = self.fields["reward"]
        for r in rewards:
            if isinstance(r, bool) or not isinstance(r, Real) or not isfinite(r):
                raise InvalidTable(f"reward {r!r}: expected a finite number")
        if len(rewards) < 2:
            raise InvalidTable(f"the only reward is {rewards[0]!r}: give at least two values")
        for name, names in (("actions", self.actions), *self.fields.items()):
            if len(names) > MOST_SYMBOLS:
                raise InvalidTable(
                    f"{name!r} has {len(names)} symbols: at most {MOST_SYMBOLS} are possible, "
                    "split it into several fields"
                )
        self.rewards = np.array([float(r) for r in rewards])
        self.fields["reward"] = Names("symbol", self.rewards.tolist())
        #: The fields that are in the cycle.
        self.informative = {name: ks for name, ks in self.fields.items() if len(ks) > 1}

    def layout(self, depth: int) -> "kernels.trees.Layout":
        """Return the slots of a cycle for the kernels."""
        sizes = [len(self.actions), *map(len, self.informative.values())]
        odds = [log(2 ** (m - 1) - 1) if m > 1 else -np.inf for m in sizes]
        return kernels.trees.Layout(np.array(sizes), np.array(odds), depth)

    def cycle(self, a: Any, o: Any) -> list[int]:
        """Return the symbols of an action and an observation; raise an error if one is invalid.

        Several fields besides the reward may also be one tuple: (r, (field, …)).
        """
        action = self.actions.place(a)
        parts: Any = None if isinstance(o, str | Mapping) else o
        try:
            r, *others = parts
        except (TypeError, ValueError):
            others = []
            r = None
        if len(others) == 1 < len(self.fields) - 1 and isinstance(others[0], tuple | list):
            others = [*others[0]]
        if len(others) != len(self.fields) - 1 or r is None:
            shown = ", ".join(["reward", *[name for name in self.fields if name != "reward"]])
            comma = "" if "," in shown else ","
            raise BadEvidence(f"observation {o!r} after action {a!r}: expected ({shown}{comma})")
        symbols = [action]
        for (name, names), value in zip(self.fields.items(), [*others, r], strict=True):
            try:
                place = names.place(value)
            except BadEvidence as error:
                raise BadEvidence(f"{name} of {o!r} after action {a!r}: {error}") from None
            if name in self.informative:
                symbols.append(place)
        return symbols

    def observation(self, symbols: Sequence[int]) -> tuple[Any, ...]:
        """Return the observation with these symbols of the informative fields."""
        places = dict(zip(self.informative, symbols, strict=True))
        *others, r = (names[places.get(name, 0)] for name, names in self.fields.items())
        return (r, *others)

    def percepts(self) -> list[tuple[int, ...]]:
        """Return the symbols of all percepts."""
        return list(product(*(range(len(names)) for names in self.informative.values())))

    def probabilities(self, a: Any, of_cycle: Callable[[list[int]], FloatArray]) -> Probabilities:
        """Return the positive probabilities of observations after an action.

        `of_cycle` returns the probability of each field of a cycle, given the fields before it.
        """
        action = self.actions.place(a)
        p = {k: float(of_cycle([action, *k]).prod()) for k in self.percepts()}
        return {self.observation(k): p[k] for k in p if p[k] > 0.0}

    def settings(self) -> dict[str, Any]:
        """Return the actions and the fields as plain values."""
        return {
            "actions": list(self.actions),
            "percepts": {name: list(names) for name, names in self.fields.items()},
        }

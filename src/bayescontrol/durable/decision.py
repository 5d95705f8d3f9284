"""A decision, as it is handed out.

action ~ P(a | âo_<n),   probability = P(action | âo_<n),   n = its id
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from bayescontrol.durable.events import Decided


class Decision(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What was decided, on disk before anyone saw it.

    >>> Decision("2", "red", 0.5, None, 1, 0.0, {"red": 0.5, "blue": 0.5})
    Decision(id='2', action='red', probability=0.5, situation=None, basis=1, time=0.0)
    """

    #: To be given back with the observation.
    id: str
    action: Any
    #: P(action | past) where it is known exactly, else None.
    probability: float | None
    #: x, as it was asked for.
    situation: Any
    #: The event of the log up to which everything was known.
    basis: int
    #: Seconds since 1970.
    time: float
    #: P(a | past) of every action, when it was just computed; later `explain` tells.
    probabilities: Mapping[Any, float] | None = None
    #: The name of the log that it stands in, where it is known.
    agent: str | None = None

    @classmethod
    def of(
        cls, event: Decided, law: Mapping[Any, float] | None = None, agent: str | None = None
    ) -> "Decision":
        """The decision that an event records.

        >>> Decision.of(Decided(seq=2, x=None, a="red", p=0.5, key=None, time=0.0)).id
        '2'
        """
        n, p = event.seq, event.p
        return cls(str(n), event.a, p, event.x, n - 1, event.time, law, agent)

    def _logged(self) -> tuple[Any, ...]:
        """What the log says of it."""
        return self.id, self.action, self.probability, self.situation, self.basis, self.time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and self._logged() == other._logged()

    def __hash__(self) -> int:
        return hash(self._logged())

    def __repr__(self) -> str:
        names = self.__struct_fields__
        told = ", ".join(f"{n}={v!r}" for n, v in zip(names, self._logged(), strict=False))
        return f"Decision({told})"


def decision_number(id: str | int | Decision) -> int:
    """n; 0, which no decision has, if the id is none. A number that was a text is one again.

    >>> [decision_number(id) for id in ("12", 12, "twelve", "012")]
    [12, 12, 0, 0]
    """
    text: Any = id.id if isinstance(id, Decision) else id
    if type(text) is int:
        return text if 0 < text < 10**18 else 0
    plain = isinstance(text, str) and text.isascii() and text.isdigit() and text[0] != "0"
    return int(text) if plain and len(text) < 19 else 0

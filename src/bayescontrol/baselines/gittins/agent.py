"""The agent that pulls the arm of the highest Gittins index.

    a_t = arg max_j ν(r_j, f_j)          r_j += o_t  or  f_j += 1 - o_t

The best there is for discounted rewards and independent arms (Gittins 1979). To act changes nothing
in the agent: feedback may come late, in any order, or never.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.baselines.gittins.table import GittinsTable
from bayescontrol.errors import BadEvidence, IncompatibleState
from bayescontrol.problems.names import Names
from bayescontrol.seeding import Stream
from bayescontrol.values import pack


class GittinsAgent:
    """Index play from a table; one table may serve many agents.

    Of equal indices one is chosen uniformly by the agent's stream. An arm pulled more often than
    the table goes has its index computed when it is needed, some hundredths of a second each time.

    >>> agent = GittinsAgent(["red", "blue"], discount=0.9, pulls=20)
    >>> agent.observe("red", 1)
    >>> agent.act(Stream(0)), agent.pulls
    ('red', {'red': 1, 'blue': 0})
    """

    format_name: ClassVar[str] = "GittinsAgent"

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        table: GittinsTable | None = None,
        *,
        discount: float | None = None,
        pulls: int | None = None,
        prior: tuple[float, float] | None = None,
        lookahead: int | None = None,
    ) -> None:
        self._labels = Names("arm", arms)
        if table is None:
            if discount is None or pulls is None:
                raise ValueError("GittinsAgent needs a table, or discount= and pulls= to make one")
            table = GittinsTable(discount, pulls, prior or (1.0, 1.0), lookahead=lookahead)
        elif not isinstance(table, GittinsTable):
            raise ValueError(f"{table!r} is no GittinsTable")
        elif any(given is not None for given in (discount, pulls, prior, lookahead)):
            raise ValueError(
                "GittinsAgent takes a table, which has its own discount and prior, or "
                "discount= and pulls= to make one, not both"
            )
        self.table = table
        self._counts: FloatArray = np.zeros((2, len(self._labels)))
        self._beyond: dict[tuple[int, int], float] = {}

    def act(self, rng: Stream) -> Any:
        """The arm to pull. Leaves the agent as it was."""
        r, f = self._counts
        j = kernels.gittins.highest_index_arm(self.table.nu, self.table.pulls, r, f, rng.state)
        if j < 0:
            nu = np.array(list(self.indices().values()))
            best = np.flatnonzero(nu == nu.max())
            j = int(best[rng.integers(best.size)] if best.size > 1 else best[0])
        return self._labels[j]

    def observe(self, a: Any, o: Any) -> None:
        """Reward o, 0 or 1, came of arm a. On an error nothing has changed."""
        j = self._labels.place(a)
        if isinstance(o, str | bytes) or np.ndim(o) or not (o == 0 or o == 1):
            raise BadEvidence(f"reward {o!r} of arm {a!r}: a Bernoulli arm pays 0 or 1")
        self._counts[0 if o == 1 else 1, j] += 1.0

    def indices(self) -> dict[Any, float]:
        """ν(r_j, f_j) for every arm."""
        counts = self._counts.astype(np.int64).T.tolist()
        return {a: self._index(r, f) for a, (r, f) in zip(self._labels, counts, strict=True)}

    def _index(self, r: int, f: int) -> float:
        if r + f <= self.table.pulls:
            return self.table.index(r, f)
        if (r, f) not in self._beyond:
            self._beyond[r, f] = self.table.index(r, f)
        return self._beyond[r, f]

    @property
    def arms(self) -> tuple[Any, ...]:
        """Their names, by default 0 … N-1."""
        return tuple(self._labels)

    @property
    def pulls(self) -> dict[Any, int]:
        """How many rewards of every arm were seen."""
        seen = self._counts.sum(axis=0).astype(int).tolist()
        return dict(zip(self._labels, seen, strict=True))

    @property
    def count(self) -> int:
        """t, the rewards seen."""
        return int(self._counts.sum())

    def loop_arrays(self) -> tuple[FloatArray, int, FloatArray, FloatArray]:
        """Indices, pulls, successes and failures: arguments of `kernels.gittins.highest_index_arm`.

        >>> agent = GittinsAgent(3, discount=0.9, pulls=20)
        >>> [np.shape(part) for part in agent.loop_arrays()]
        [(231,), (), (3,), (3,)]
        """
        return self.table.nu, self.table.pulls, self._counts[0], self._counts[1]

    # -- state -------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        return {
            "arms": pack(list(self._labels), "the names of the arms"),
            "table": np.array(self._table_text()),
            "successes": self._counts[0].copy(),
            "failures": self._counts[1].copy(),
        }

    def _table_text(self) -> str:
        """What the table was made for. Part of the format, as is the constant at its end."""
        p = self.table.problem
        return (
            f"Problem(alpha={p.alpha!r}, beta={p.beta!r}, gamma={p.gamma!r}, pulls={p.pulls!r}, "
            f"lookahead={p.lookahead!r}) to {self.table.tolerance!r} code 1af50bceb73ad4e8"
        )

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for the same arms and the same table."""
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(f"{arrays!r} is not a mapping of arrays, as `save` gives")
        mine = self.save()
        missing = mine.keys() - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        for name in ("arms", "table"):
            if str(arrays[name]) != str(mine[name]):
                raise IncompatibleState(
                    f"saved for {name} {arrays[name]}, this agent has {mine[name]}: make it alike"
                )
        try:
            counts = np.array([arrays["successes"], arrays["failures"]], np.float64)
        except (TypeError, ValueError) as error:
            raise IncompatibleState(f"the saved state is damaged: {error}") from None
        if counts.shape != self._counts.shape or not (
            np.isfinite(counts).all() and ((counts >= 0.0) & (counts == np.floor(counts))).all()
        ):
            raise IncompatibleState(f"the saved state is damaged: counts {counts.tolist()}")
        self._counts = counts

    def copy(self) -> "GittinsAgent":
        """The same agent, free to go its own way; the table is shared."""
        twin = GittinsAgent.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._counts, twin._beyond = self._counts.copy(), self._beyond.copy()
        return twin

    def __repr__(self) -> str:
        return f"GittinsAgent({len(self._labels)} arms after {self.count} rewards, {self.table!r})"

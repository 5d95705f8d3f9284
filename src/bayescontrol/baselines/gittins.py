"""The agent that pulls the arm with the highest Gittins index.

    a_t = arg max_j ν(r_j, f_j)          r_j += o_t  or  f_j += 1 - o_t

It is optimal for discounted rewards and independent arms (Gittins 1979). `act` does not change the
agent, so feedback can be late, reordered or missing.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray
from bayescontrol._support.saved import Copied, Fixed, declare
from bayescontrol.bandits.arms import ArmsEnvironment
from bayescontrol.bandits.family import zero_or_one
from bayescontrol.baselines.bandits import ArmAgent
from bayescontrol.baselines.gittins_table import GittinsTable
from bayescontrol.record import Record
from bayescontrol.seeding import Stream, StreamLike, state_of


class GittinsAgent(ArmAgent):
    """Pulls the arm with the highest index of a `GittinsTable`. Agents can share a table.

    Ties are broken uniformly at random. If an arm has more pulls than the table covers, its index
    is computed on demand, which takes some hundredths of a second.

    >>> agent = GittinsAgent(["red", "blue"], GittinsTable(0.9, pulls=20))
    >>> agent.observe("red", 1)
    >>> agent.act(Stream(0)), agent.pulls
    ('red', {'red': 1, 'blue': 0})
    """

    format_name: ClassVar[str] = "GittinsAgent"
    saved_fields = declare(
        Fixed("table", lambda agent: agent._table_text()),
        Copied("_extra_indices"),
    )
    columns: ClassVar[tuple[str, ...]] = ("successes", "failures")

    def __init__(self, arms: int | Sequence[Hashable], table: GittinsTable) -> None:
        super().__init__(arms)
        if not isinstance(table, GittinsTable):
            raise ValueError(  # noqa: TRY004 - invalid settings are a ValueError
                f"table={table!r} is not a GittinsTable: pass GittinsTable(0.9, pulls=100)"
            )
        self.table = table
        # Indices of states beyond the table, by (successes, failures).
        self._extra_indices: dict[tuple[int, int], float] = {}

    def act(self, rng: StreamLike) -> Any:
        """Return the chosen arm. Does not change the agent, except for a cache of indices."""
        r, f = self._counts
        j = kernels.gittins.highest_index_arm(self.table.nu, self.table.pulls, r, f, state_of(rng))
        if j < 0:  # an arm has more pulls than the table covers
            nu = np.array(list(self.indices().values()))
            best = np.flatnonzero(nu == nu.max())
            j = int(best[rng.integers(best.size)] if best.size > 1 else best[0])
        return self._labels[j]

    def observe(self, a: Any, o: Any) -> None:
        """Learn that arm a paid o, 0 or 1. On an error the agent is unchanged."""
        j = self._labels.place(a)
        self._counts[0 if zero_or_one(o) else 1, j] += 1.0

    def indices(self) -> dict[Any, float]:
        """Return ν(r_j, f_j) for every arm."""
        counts = self._counts.astype(np.int64).T.tolist()
        return {a: self._index(r, f) for a, (r, f) in zip(self._labels, counts, strict=True)}

    def _index(self, r: int, f: int) -> float:
        """Return ν(r, f) from the table; beyond the table, compute it once and cache it."""
        if r + f <= self.table.pulls:
            return self.table.index(r, f)
        if (r, f) not in self._extra_indices:
            self._extra_indices[r, f] = self.table.index(r, f)
        return self._extra_indices[r, f]

    def _pulls(self) -> FloatArray:
        return np.asarray(self._counts.sum(axis=0))

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return the compiled loop if the environment has the agent's arms and they pay 0 or 1."""
        fits = (
            type(environment) is ArmsEnvironment
            and agent.arms == tuple(environment.labels)
            and environment.family.kind == kernels.arms.BERNOULLI
        )
        return _run if fits else None

    # -- state -------------------------------------------------------------------------------

    def _table_text(self) -> str:
        # The text, including the constant at its end, is part of the format of saved agents.
        p = self.table.problem
        return (
            f"Problem(alpha={p.alpha!r}, beta={p.beta!r}, gamma={p.gamma!r}, pulls={p.pulls!r}, "
            f"lookahead={p.lookahead!r}) to {self.table.tolerance!r} code 1af50bceb73ad4e8"
        )

    def _are_valid(self, counts: FloatArray) -> bool:
        return bool(((counts >= 0.0) & (counts == np.floor(counts))).all())

    def __repr__(self) -> str:
        return f"GittinsAgent({len(self._labels)} arms after {self.count} rewards, {self.table!r})"


def _run(
    agent: GittinsAgent, environment: ArmsEnvironment, steps: int, p: Stream, q: Stream
) -> Record:
    """Run the compiled loop as far as the table reaches, then step by step."""
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    successes, failures = agent._counts
    done = kernels.policies.interact_gittins(
        agent.table.nu, agent.table.pulls, successes, failures, environment.truth, p.state, q.state,
        actions, rewards,
    )  # fmt: skip
    for t in range(done, steps):  # beyond the table: the indices are computed one by one
        a = agent.act(p)
        o = environment.respond(a, q)
        agent.observe(a, o)
        actions[t], rewards[t] = environment.labels.place(a), o
    return Record(environment.labels.column(actions), rewards)

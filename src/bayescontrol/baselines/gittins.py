"""The agent that pulls the arm with the highest Gittins index.

    a_t = arg max_j ν(r_j, f_j)          r_j += o_t  or  f_j += 1 - o_t

It is optimal for discounted rewards and independent arms (Gittins 1979). `act` does not change the
agent, so feedback can be late, reordered or missing.
"""

from collections.abc import Hashable, Sequence
from dataclasses import astuple
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol._support.saved import Fixed, declare
from bayescontrol.bandits.arms import ArmsEnvironment
from bayescontrol.baselines.bandits import CountingAgent, counting_loop
from bayescontrol.baselines.gittins_table import GittinsTable
from bayescontrol.seeding import Stream


class GittinsAgent(CountingAgent):
    """Pulls the arm with the highest index of a `GittinsTable`. Agents can share a table.

    Ties are broken uniformly at random. If an arm has more pulls than the table covers, its index
    is computed on demand, which takes some hundredths of a second. Rewards are 0 or 1.

    >>> agent = GittinsAgent(["red", "blue"], GittinsTable(0.9, pulls=20))
    >>> agent.observe("red", 1)
    >>> agent.act(Stream(0)), agent.pulls
    ('red', {'red': 1, 'blue': 0})
    """

    format_name: ClassVar[str] = "GittinsAgent"
    saved_fields = declare(Fixed("table", lambda g: [*astuple(g.table.problem), g.table.tolerance]))
    support: ClassVar[int] = 2  # kernels.policies.BINARY

    def __init__(self, arms: int | Sequence[Hashable], table: GittinsTable) -> None:
        super().__init__(arms)
        if not isinstance(table, GittinsTable):
            raise ValueError(  # noqa: TRY004 - invalid settings are a ValueError
                f"table={table!r} is not a GittinsTable: pass GittinsTable(0.9, pulls=100)"
            )
        self.table = table

    def _rule(self) -> tuple[int, FloatArray]:
        return kernels.policies.GITTINS, self.table.nu

    def _choose(self, rng: Stream) -> int:
        """Return the number of the arm with the highest index."""
        table, scratch = self.table.nu, self._scratch[0]
        j = kernels.policies.highest_index_arm(table, self._counts, scratch, rng.state)
        if j < 0:  # the kernel found no index: an arm has more pulls than the table covers
            nu = np.array(list(self.indices().values()))
            best = np.flatnonzero(nu == nu.max())
            j = int(best[rng.integers(best.size)] if best.size > 1 else best[0])
        return j

    def indices(self) -> dict[Any, float]:
        """Return ν(r_j, f_j) for every arm."""
        n, r, _ = self._counts.astype(np.int64).tolist()
        states = zip(self._labels, n, r, strict=True)
        return {a: self.table.index(successes, pulls - successes) for a, pulls, successes in states}

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return the compiled loop if the environment has the agent's arms and they pay 0 or 1."""
        loop = counting_loop(agent, environment)
        fits = loop is not None and environment.family.kind == kernels.arms.BERNOULLI
        return loop if fits else None

    def interact(
        self, environment: ArmsEnvironment, p: Stream, q: Stream, actions: IntArray,
        rewards: FloatArray,
    ) -> int:  # fmt: skip
        """Run the compiled loop as far as the table reaches, then step by step."""
        done, steps = super().interact(environment, p, q, actions, rewards), len(actions)
        for t in range(done, steps):  # beyond the table: the indices are computed one by one
            actions[t] = self._choose(p)
            a = self._labels[int(actions[t])]
            rewards[t] = environment.respond(a, q)
            self.observe(a, rewards[t])
        return steps

    def __repr__(self) -> str:
        return f"GittinsAgent({len(self._labels)} arms after {self.count} rewards, {self.table!r})"

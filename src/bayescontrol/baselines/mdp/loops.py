"""The compiled loops of learners and oracle with the world of an MDP.

    a_t by the agent's kernel, (r_t, y_t) by the world's, learn: bit for bit as the readable code

A loop stops where the agent comes to a state that it has never seen. The readable `observe` then
enters it, or raises what there is to say, and the loop goes on.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.mdp.table import MDP, MDPEnvironment, Step
from bayescontrol.record import Record, as_rows, select
from bayescontrol.seeding import Stream

if TYPE_CHECKING:
    from bayescontrol.arrays import FloatArray, IntArray
    from bayescontrol.baselines.mdp.learner import TabularLearner
    from bayescontrol.baselines.mdp.oracle import OptimalPolicy


def same_names(mine: Iterable[Any], other: Iterable[Any]) -> bool:
    """The same names of the same types in the same order, so that records are equal.

    >>> same_names([0, 1], (0, 1)), same_names([0, 1], [0.0, 1.0])
    (True, False)
    """
    return [(type(n), n) for n in mine] == [(type(n), n) for n in other]


class Columns:
    """What a loop fills, actions and states by number; rewards and states are fields of one array.

    >>> from bayescontrol.mdp import chain_mdp
    >>> Columns(3).record(chain_mdp(2))
    Record(3 steps: actions int64, observations (reward float64, state int64))
    """

    def __init__(self, steps: int) -> None:
        self.actions: IntArray = np.empty(steps, np.int64)
        self._rows = np.empty(steps, [("reward", np.float64), ("state", np.int64)])
        self.rewards: FloatArray = self._rows["reward"]
        self.states: IntArray = self._rows["state"]

    def record(self, mdp: MDP) -> Record:
        """The record of a run in this MDP: names instead of numbers, where there are names."""
        actions: npt.NDArray[Any] = self.actions
        rows = self._rows
        if not mdp.actions.are_numbers:
            actions = select(list(mdp.actions), actions)
        if not mdp.states.are_numbers:
            rows = as_rows({"reward": self.rewards, "state": select(list(mdp.states), self.states)})
        return Record(actions, rows)


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop of a learner, if agent and world speak of the same things.

    They must be in the same state, have the same actions, and the agent must think of no action
    that a state does not offer.

    >>> from bayescontrol.baselines.mdp import QLearning
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> fused_loop(QLearning.on(mdp), mdp.environment()) is not None
    True
    >>> fused_loop(QLearning.on(mdp), mdp.environment(start=2)) is None
    True
    """
    mdp = environment.mdp
    fits = (
        same_names(agent.actions, mdp.actions) and agent.x == environment.x and agent.keeps_to(mdp)
    )
    return _run if fits else None


def _run(
    agent: "TabularLearner", environment: MDPEnvironment, steps: int, p: Stream, q: Stream
) -> Record:
    mdp = environment.mdp
    columns = Columns(steps)
    number, t = agent.numbers(mdp.states), 0
    while t < steps:
        before = environment.at
        done, environment.at = agent._interact(
            mdp.tables, number, before, t, p.state, q.state,
            columns.actions, columns.rewards, columns.states,
        )  # fmt: skip
        if done < steps:
            agent.fast_forward(int(number[columns.states[done - 1] if done > t else before]))
            o = Step(float(columns.rewards[done]), environment.x)
            agent.observe(mdp.actions[columns.actions[done]], o)
            number[environment.at] = agent.number(environment.x)
        t = done + 1
    agent.fast_forward(int(number[environment.at]))
    return columns.record(mdp)


def fused_oracle(agent: Any, environment: Any) -> Any:
    """The compiled loop of the oracle, in the world of its own MDP.

    >>> from bayescontrol.baselines.mdp import OptimalPolicy
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> fused_oracle(OptimalPolicy(mdp), mdp.environment()) is not None
    True
    """
    fits = agent.mdp is environment.mdp and agent.x == environment.x
    return _run_oracle if fits else None


def _run_oracle(
    agent: "OptimalPolicy", environment: MDPEnvironment, steps: int, p: Stream, q: Stream
) -> Record:
    mdp = environment.mdp
    columns = Columns(steps)
    environment.at = kernels.td.follow(
        agent.policy, len(mdp.actions), mdp.tables, environment.at, q.state,
        columns.actions, columns.rewards, columns.states,
    )  # fmt: skip
    agent.fast_forward(environment.at)
    return columns.record(mdp)

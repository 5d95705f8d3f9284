"""The MDP agent of the paper, as a problem that a log can describe.

    modes (Q, ρ) by the Gibbs sampler, one stream: o = (reward, next state) moves the agent on

Its draws are remembered: the chain goes on where the last draw left it, so a fold draws again.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bayescontrol.mdp.gibbs import GibbsPrior, mdp_agent
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.words import counted


class GibbsMDP:
    """The settings of `mdp_agent`, all plain values: no `allowed`, which is code.

    >>> problem = GibbsMDP(["left", "right"], start="home")
    >>> problem
    GibbsMDP(2 actions, unknown states, start 'home')
    >>> problem.agent()
    ControlRule(GibbsBelief(0 states, 2 actions after 0 transitions: ρ = 0), situation 'home', t=0)
    >>> problem.settings()["actions"]
    ['left', 'right']
    """

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        start: Any,
        prior: GibbsPrior | Mapping[str, Any] | None = None,
        *,
        states: int | Sequence[Hashable] | None = None,
        sweeps: int = 1,
        partial: int = 0,
        recentre: bool = True,
    ) -> None:
        self.actions = list(range(actions)) if isinstance(actions, int) else list(actions)
        self.states = list(range(states)) if isinstance(states, int) else states and list(states)
        self.start = start
        self.prior = prior if isinstance(prior, GibbsPrior) else GibbsPrior(**(prior or {}))
        self.options: dict[str, Any] = {"sweeps": sweeps, "partial": partial, "recentre": recentre}
        self.agent()  # bad settings are said now

    def settings(self) -> dict[str, Any]:
        """Everything that `GibbsMDP(**settings)` needs to be the same again."""
        told = {"actions": self.actions, "start": self.start, "states": self.states}
        return told | {"prior": asdict(self.prior)} | self.options

    def agent(self, *, schedule: Schedule = every_step) -> ControlRule[Any, Any, Any, Any]:
        """The agent as new, in its first state."""
        return mdp_agent(
            self.actions,
            self.start,
            self.prior,
            schedule=schedule,
            states=self.states,
            **self.options,
        )

    def __repr__(self) -> str:
        states = "unknown states" if self.states is None else counted(len(self.states), "state")
        return f"GibbsMDP({counted(len(self.actions), 'action')}, {states}, start {self.start!r})"

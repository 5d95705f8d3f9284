"""An unknown MDP as a problem: the settings of the Gibbs-sampling agent of the paper.

    modes (Q, ρ), drawn by a Gibbs sampler        o = (reward, next state)

Each draw continues the sampler's chain, so replaying a log repeats all draws.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol._support.description import ModelKind, SettingDoc, SizeLimit
from bayescontrol.errors import MissingCapability, counted
from bayescontrol.mdp.gibbs import GibbsBelief, GibbsPrior, QValues, next_state
from bayescontrol.mdp.table import MDP, MDPEnvironment
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step

_KIND: Final = ModelKind(
    "gibbs-mdp",
    "A Markov decision process with unknown transitions and rewards, learned by Gibbs sampling.",
    {
        "actions": SettingDoc(
            "list of names, or their number", "The actions of the agent.", largest=1_000
        ),
        "start": SettingDoc("any value", "The first state."),
        "prior": SettingDoc(
            '{"dict": [["mu0", …], ["lambda0", …], ["precision", …]]}',
            "mu0 and lambda0: prior mean and precision of the value of a transition; precision: "
            "precision of the rewards, null if it is to be learned, then also shape and rate, or "
            '"learned" for one per state and action. Default: each 1.',
        ),
        "states": SettingDoc(
            "list of names, their number, or null",
            "All states; null: they are discovered.",
            largest=1_000,
        ),
        "sweeps": SettingDoc(
            "whole number", "Sweeps of the sampler for each decision. Default: 1.", largest=1_000
        ),
        "partial": SettingDoc(
            "whole number", "States that a sweep visits. Default: 0, all of them.", largest=1_000
        ),
        "recentre": SettingDoc(
            "true or false", "Whether to remove the drift of the sampler. Default: true."
        ),
    },
    example={"actions": ["left", "right"], "start": "home", "prior": {"dict": [["precision", 10]]}},
    observation={"tuple": [0.5, "kitchen"]},
    feedback='{"tuple": [reward, next state]}',
    limits=(
        # Memory, then time for one decision.
        SizeLimit("states times actions", lambda size: size["states"] * size["actions"], 100_000),
        SizeLimit(
            "states times actions times sweeps",
            lambda size: size["states"] * size["actions"] * size["sweeps"],
            10_000_000,
        ),
    ),
)


class GibbsMDP:
    """An MDP with unknown transitions and rewards; `start` is the first state.

    The other arguments are those of `GibbsBelief`. A log cannot store a problem with `allowed`,
    which is a function.

    `actions` is the number of actions or their names. `prior` is a `GibbsPrior`, or its fields.
    `states=None` selects prior B; the states or their number select prior A. A draw makes `sweeps`
    sweeps, which `partial=k` limits to k states and the current one. `recentre` removes the drift
    of the additive constant of Q.

    >>> problem = GibbsMDP(["left", "right"], start="home")
    >>> problem
    GibbsMDP(2 actions, unknown states, start 'home')
    >>> agent = problem.agent()
    >>> agent.observe("left", (1.0, "away"))
    >>> agent
    ControlRule(GibbsBelief(2 states, 2 actions after 1 transitions: ρ = 0), situation 'away', t=0)
    >>> problem.settings()["actions"]
    ['left', 'right']
    """

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        start: Any,
        prior: GibbsPrior | Mapping[str, Any] | None = None,
        *,
        states: int | Sequence[Hashable] | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
        sweeps: int = 1,
        partial: int = 0,
        recentre: bool = True,
    ) -> None:
        if isinstance(start, np.ndarray):
            raise MissingCapability(
                f"start={start!r} is an array, and this agent needs finitely many states: "
                "discretise the observations, or use bayescontrol.simulators with gym.drive"
            )
        self.start, self.allowed = start, allowed
        self.prior = prior if isinstance(prior, GibbsPrior) else GibbsPrior(**(prior or {}))
        self.options: dict[str, Any] = {"sweeps": sweeps, "partial": partial, "recentre": recentre}
        belief = GibbsBelief(actions, self.prior, states=states, allowed=allowed, **self.options)
        belief.ledger.find(start, "given as start")  # raises if it is not a valid state
        self.actions = list(belief.ledger.actions)
        self.states = None if states is None else list(belief.states)
        self._prior_belief = belief

    def settings(self) -> dict[str, Any]:
        """Return all constructor arguments as plain values, as logs store them."""
        if self.allowed is not None:
            raise MissingCapability(
                f"{self!r} cannot be stored in a log, because `allowed` is a function: "
                "omit `allowed`, or use the agent without a log"
            )
        return {
            "actions": self.actions, "start": self.start, "states": self.states,
            "prior": asdict(self.prior), **self.options,
        }  # fmt: skip

    def agent(self, *, schedule: Schedule = every_step) -> ControlRule[QValues, Any, Any, Any]:
        """Return the control rule over modes (Q, ρ) in the first state."""
        return ControlRule(self._prior_belief.copy(), self.start, next_state, schedule)

    def environment(self, mdp: MDP) -> MDPEnvironment:
        """Return the environment with these true transitions and rewards, in the first state.

        >>> from bayescontrol.mdp import chain_mdp
        >>> GibbsMDP(2, start=0).environment(chain_mdp(3)).x
        0
        """
        return mdp.environment(self.start)

    def __repr__(self) -> str:
        states = "unknown states" if self.states is None else counted(len(self.states), "state")
        return f"GibbsMDP({counted(len(self.actions), 'action')}, {states}, start {self.start!r})"

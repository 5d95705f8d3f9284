"""The linear agent as a problem that a log can describe.

    y = A x + B u + w,  w ~ N(0, W)      c = xᵀQx + uᵀRu      u = -K(m) x,  m ~ P(m | âo_<t)

One stream: o = y, the next state, moves the agent on; where Q and R are unknown, o = (y, c). Its
draws are remembered, and a fold draws again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidSystem
from bayescontrol.linear.agent import LinearAgent
from bayescontrol.linear.belief import SystemBelief
from bayescontrol.linear.costs import CostBelief
from bayescontrol.linear.regression import SystemPrior
from bayescontrol.linear.system import Costs, LinearSystem, Measured
from bayescontrol.schedules import Schedule, every_step

_COSTS: Final = {"noise": 1.0, "mean": 1.0, "deviation": 1.0}
_PRIOR: Final = ("mean", "precision", "scatter")


class _Measuring(LinearAgent):
    """Learns the costs too: from a log, `Measured` comes back as the plain pair that it is."""

    format_name: ClassVar[str] = "_Measuring"

    def observe(self, a: FloatArray, o: Any) -> None:
        """Learn from (y, c), then move on to y."""
        if not isinstance(o, list | tuple) or len(o) != 2 or np.ndim(o[0]) != 1:
            raise BadEvidence(
                f"observation {o!r}: the costs are unknown, so give the next state and the cost, "
                "(y, c)"
            )
        super().observe(a, Measured(*o))


class LinearQuadratic:
    """A linear plant of unknown A and B with quadratic costs, all settings plain values.

    Either `Q` and `R` are known, or `costs` says what is believed of them: `states` and `inputs`,
    and the `noise`, `mean` and `deviation` of a `CostBelief`. `noise` is W where it is known,
    `prior` a `SystemPrior` or its fields, `start` the first state, 0 unless given.

    >>> problem = LinearQuadratic(Q=[[1, 0], [0, 1]], R=[[1]])
    >>> problem.agent().belief
    SystemBelief(2 states, 1 input, unknown noise, after 0 observations)
    >>> problem.settings()["prior"]
    {'mean': 0.0, 'precision': 1.0, 'scatter': 1.0, 'dof': 4.0}
    """

    def __init__(
        self,
        Q: npt.ArrayLike | None = None,
        R: npt.ArrayLike | None = None,
        *,
        costs: Mapping[str, Any] | None = None,
        noise: npt.ArrayLike | None = None,
        prior: SystemPrior | Mapping[str, Any] | None = None,
        start: npt.ArrayLike | None = None,
        tries: int = 100,
    ) -> None:
        self.known = None if Q is None or R is None else Costs(_numbers(Q, "Q"), _numbers(R, "R"))
        if (Q is None) != (R is None) or (Q is None) == (costs is None):
            raise InvalidSystem("give Q and R, which are known, or costs, which are learnt")
        self.noise = None if noise is None else _numbers(noise, "noise")
        self.costs = _COSTS | _fields(costs, "costs", (*_COSTS, "states", "inputs"))
        if not isinstance(prior, SystemPrior):
            prior = SystemPrior(**_fields(prior, "prior", (*_PRIOR, "dof")))
        self.prior = prior
        self.start, self.tries = start, tries
        agent = self.agent()  # bad settings are said now
        self._n = agent.belief.states
        self.start = agent.x.tolist()

    @classmethod
    def on(
        cls,
        system: LinearSystem,
        *,
        noise: Literal["known", "unknown"] = "unknown",
        prior: SystemPrior | None = None,
        start: npt.ArrayLike | None = None,
    ) -> "LinearQuadratic":
        """As `LinearAgent.on`: the costs are the system's, and W too if it is "known".

        >>> from bayescontrol.linear import double_integrator
        >>> LinearQuadratic.on(double_integrator(), noise="known")
        LinearQuadratic(2 states, 1 input, known noise, known costs)
        """
        if noise not in ("known", "unknown"):
            raise InvalidSystem(f"noise={noise!r}: it is 'known' or 'unknown'")
        W = system.W if noise == "known" else None
        return cls(system.Q, system.R, noise=W, prior=prior, start=start)

    def settings(self) -> dict[str, Any]:
        """Everything that `LinearQuadratic(**settings)` needs to be the same again."""
        prior = {
            name: np.asarray(getattr(self.prior, name), np.float64).tolist() for name in _PRIOR
        }
        return {
            "Q": None if self.known is None else self.known.Q.tolist(),
            "R": None if self.known is None else self.known.R.tolist(),
            "costs": self.costs if self.known is None else None,
            "noise": None if self.noise is None else self.noise.tolist(),
            "prior": prior | {"dof": self.prior.freedom(self._n)},
            "start": self.start,
            "tries": self.tries,
        }

    def agent(self, *, schedule: Schedule = every_step) -> LinearAgent:
        """The agent as new, in its first state."""
        costs = _cost_belief(self.costs) if self.known is None else self.known
        belief = SystemBelief(costs, noise=self.noise, prior=self.prior, tries=self.tries)
        kind = LinearAgent if self.known is not None else _Measuring
        return kind(belief, self.start, schedule)

    def __repr__(self) -> str:
        about = repr(self.agent().belief).removeprefix("SystemBelief(").partition(", after")[0]
        costs = "unknown" if self.known is None else "known"
        return f"LinearQuadratic({about}, {costs} costs)"


def _fields(given: Any, what: str, known: Sequence[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given.keys() <= set(known):
        raise InvalidSystem(f"{what}={given!r}: its fields are {', '.join(known)}")
    return dict(given)


def _cost_belief(costs: Mapping[str, Any]) -> CostBelief:
    try:
        return CostBelief(
            costs["states"], costs["inputs"], **{name: costs[name] for name in _COSTS}
        )
    except (KeyError, TypeError) as error:
        raise InvalidSystem(f"costs={dict(costs)!r}: give states and inputs ({error})") from None


def _numbers(value: npt.ArrayLike, what: str) -> FloatArray:
    try:
        return np.array(value, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidSystem(f"{what} is no matrix of numbers: {error}") from None

"""An unknown linear plant with quadratic costs as a problem: the settings of `LinearAgent`.

    y = A x + B u + w,  w ~ N(0, W)      c = xᵀQx + uᵀRu      u = -K(m) x,  m ~ P(m | âo_<t)

The observation is y, the next state; where Q and R are unknown, it is (y, c).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers
from bayescontrol._support.description import ModelKind, SettingDoc, SizeLimit
from bayescontrol._support.temperature import with_temperature
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.errors import BadEvidence, InvalidSystem, MissingCapability
from bayescontrol.lqr.agent import DeterminantDoubling, LinearAgent
from bayescontrol.lqr.belief import ChangingSystemBelief, SystemBelief
from bayescontrol.lqr.regression import CostBelief, SystemPrior
from bayescontrol.lqr.regulator import LEARNED, RegulatorAgent, RegulatorBelief, is_learned
from bayescontrol.lqr.system import Costs, LinearPlant, LinearSystem, Measured
from bayescontrol.schedules import Schedule, every_step

_COSTS: Final = {"noise": 1.0, "mean": 1.0, "deviation": 1.0}
_PRIOR: Final = ("mean", "precision", "scatter")


def _unknown_entries(size: Mapping[str, int]) -> int:
    """The number of unknown entries of the symmetric matrices Q and R."""
    n, m = size["costs.states"], size["costs.inputs"]
    return (n * (n + 1) + m * (m + 1)) // 2


_KIND: Final = ModelKind(
    "linear-quadratic",
    "A linear plant of unknown A and B: y = A x + B u + noise, with costs xᵀQx + uᵀRu.",
    {
        "Q": SettingDoc("n × n matrix", "The cost of a state of n numbers; or give costs."),
        "R": SettingDoc("m × m matrix", "The cost of an input of m numbers; or give costs."),
        "costs": SettingDoc(
            '{"dict": [["states", n], ["inputs", m], ["noise", …], ["mean", …], ["deviation", …]]}',
            "Instead of Q and R, if they are unknown and to be learned: n, m, and the noise, prior "
            "mean and prior deviation of a cost. Default of the last three: 1.",
        ),
        "noise": SettingDoc("n × n matrix or null", "W, the covariance; null: unknown."),
        "prior": SettingDoc(
            '"learned" or {"dict": [["mean", …], ["precision", …], ["scatter", …], ["dof", …]]}',
            'Prior of [A B] and W. Default: "learned", the scale is found in the first steps, so '
            "that any units can be used. Or its fields, and with costs always: mean, one number "
            "for every entry, or n × (n + m); precision and scatter, a number, or a matrix. "
            "Defaults of the fields: 0, 1, 1 and n + 2.",
        ),
        "start": SettingDoc("list of n numbers", "The first state. Default: 0."),
        "tries": SettingDoc(
            "whole number", "Most systems drawn for one decision. Default: 100.", largest=1_000
        ),
        "backup": SettingDoc(
            "m × n matrix",
            "A gain K that stabilises the plant, u = -K x, for the first steps and as a substitute "
            "for drawn gains that cost too much in the mean system. Default: none.",
        ),
        "limits": SettingDoc(
            "[low, high]", "Limits of the input, each a number or m numbers. Default: none."
        ),
        "setpoint": SettingDoc("list of n numbers", "The state to regulate to. Default: 0."),
        "integral": SettingDoc(
            "list of n numbers",
            "Weights of the squared integrals of the errors; 0 for states without integral action. "
            "Default: 0.",
        ),
    },
    example={"Q": [[1, 0], [0, 1]], "R": [[1]], "start": [1.0, 0.0]},
    observation=[0.9, -0.1],
    feedback='the next state; with costs {"tuple": [next state, cost]}',
    limits=(
        # One try takes time in the cube of this.
        SizeLimit("states plus inputs", lambda size: size["Q"] + size["R"], 100),
        SizeLimit("the number of unknown entries of the costs", _unknown_entries, 1_000),
    ),
    schedules={"DeterminantDoubling": DeterminantDoubling},
)


class _Measuring(LinearAgent):
    """An agent that learns the costs too. It accepts plain pairs (y, c), as logs return them."""

    format_name: ClassVar[str] = "_Measuring"

    def observe(self, a: FloatArray, o: Any) -> None:
        """Learn from (y, c), then move to y."""
        if not isinstance(o, list | tuple) or len(o) != 2 or np.ndim(o[0]) != 1:
            raise BadEvidence(
                f"observation {o!r} is invalid: the costs are unknown, so expected the next state "
                "and the cost, (y, c)"
            )
        super().observe(a, Measured(*o))


class LinearQuadratic:
    """A linear plant with unknown A and B and quadratic costs.

    Give `Q` and `R` if they are known, else `costs`: `states`, `inputs`, and the `noise`, `mean`
    and `deviation` of a `CostBelief`. `noise` is W if it is known, `start` the first state, 0 by
    default.

    By default, `prior="learned"`: the agent finds the scale of the plant in the first steps, so
    states, inputs and costs can have any units. If the plant is unstable, give a `backup` gain that
    stabilises it. `limits` are the limits (low, high) of the input, `setpoint` is the state to
    regulate to, and `integral` holds a weight for the squared integral of each state's error.

    With a `SystemPrior` or its fields as `prior`, systems are drawn from the first step on. It is
    needed if the costs are unknown; there `SystemPrior()` is the default.

    At most `tries` systems are drawn for one mode.

    >>> problem = LinearQuadratic(Q=[[1, 0], [0, 1]], R=[[1]])
    >>> problem.agent().belief
    RegulatorBelief(2 states, 1 input, unknown noise, after 0 observations)
    >>> LinearQuadratic([[1.0]], [[1.0]], prior=SystemPrior()).agent().belief
    SystemBelief(1 state, 1 input, unknown noise, after 0 observations)
    """

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(
        self,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        *,
        costs: Mapping[str, Any] | None = None,
        noise: ArrayLike | None = None,
        prior: SystemPrior | Mapping[str, Any] | Literal["learned"] | None = None,
        start: ArrayLike | None = None,
        tries: int = 100,
        backup: ArrayLike | None = None,
        limits: Any = None,
        setpoint: ArrayLike | None = None,
        integral: ArrayLike | None = None,
    ) -> None:
        if (Q is None) != (R is None) or (Q is None) == (costs is None):
            raise InvalidSystem("give both Q and R, or only `costs` if they are unknown")
        self.known: Costs | None = None
        if Q is not None and R is not None:
            self.known = Costs(as_numbers(Q, "Q", InvalidSystem), as_numbers(R, "R", InvalidSystem))
        self.noise = None if noise is None else as_numbers(noise, "noise", InvalidSystem)
        self.costs = _COSTS | _fields(costs, "costs", (*_COSTS, "states", "inputs"))
        given = {"backup": backup, "limits": limits, "setpoint": setpoint, "integral": integral}
        #: The settings of a `RegulatorAgent` that are given.
        self.regulation = {name: value for name, value in given.items() if value is not None}
        #: Whether no prior was given.
        self.default_prior = prior is None
        if (isinstance(prior, str) and prior == "learned") or (prior is None and costs is None):
            prior = LEARNED
        elif not isinstance(prior, SystemPrior):
            prior = SystemPrior(**_fields(prior, "prior", (*_PRIOR, "dof")))
        self.prior = prior
        self.start, self.tries = start, tries
        agent = self.agent()  # validate the settings now
        self._n = agent.belief.states
        self.regulation = {
            name: tuple(map(_plain, value)) if name == "limits" else _plain(value)
            for name, value in self.regulation.items()
        }
        self.start = agent.x.tolist()

    @classmethod
    def on(
        cls, system: LinearSystem, *, noise: Literal["known", "unknown"] = "unknown", **options: Any
    ) -> "LinearQuadratic":
        """Return the problem of a system whose costs are known, and W too if `noise` is "known".

        The other settings are those of the class. `start` must be the state of the plant. Otherwise
        the agent would treat the difference as evidence about A and B.

        >>> from bayescontrol.lqr import double_integrator
        >>> LinearQuadratic.on(double_integrator(), noise="known")
        LinearQuadratic(2 states, 1 input, known noise, known costs)
        """
        if noise not in ("known", "unknown"):
            raise InvalidSystem(f"noise={noise!r} is invalid: expected 'known' or 'unknown'")
        W = system.W if noise == "known" else None
        return cls(system.Q, system.R, noise=W, **options)

    def settings(self) -> dict[str, Any]:
        """Return all constructor arguments as plain values, as logs store them."""
        prior = {k: _plain(getattr(self.prior, k)) for k in _PRIOR}
        dof = self.prior.freedom(self._n)
        Q, R = self.known or (None, None)
        return {
            "Q": _plain(Q),
            "R": _plain(R),
            "costs": self.costs if self.known is None else None,
            "noise": _plain(self.noise),
            "prior": "learned" if is_learned(self.prior) else prior | {"dof": dof},
            "start": self.start,
            "tries": self.tries,
            **self.regulation,  # only if given, so that earlier logs have the same settings
        }

    def agent(self, *, schedule: Schedule = every_step, temperature: float = 1.0) -> LinearAgent:
        """Return a new agent in its first state; it has no other `temperature` than 1."""
        with_temperature(self, temperature)
        options: Any = {"noise": self.noise, "prior": self.prior, "tries": self.tries}
        if self.regulation or is_learned(self.prior):
            if self.known is None:
                raise InvalidSystem(f"{self._regulating()} needs known costs: give Q and R")
            belief = RegulatorBelief(self.known, **options, **self.regulation)
            return RegulatorAgent(belief, self.start, schedule)
        if self.known is None:
            costs = _cost_belief(self.costs)
            return _Measuring(SystemBelief(costs, **options), self.start, schedule)
        return LinearAgent(SystemBelief(self.known, **options), self.start, schedule)

    def changing(self, **options: Any) -> Changing:
        """Return the same problem for a plant that changes; see `ChangePointBelief` for options.

        The costs must be known. The default prior is `SystemPrior()`. A learned prior, a backup
        gain, limits, a setpoint and integrals are not supported.
        """
        problem = self.with_proper_prior()

        def belief(**options: Any) -> ChangingSystemBelief:
            return ChangingSystemBelief(problem.agent().belief, **options)

        return Changing(problem, belief, options)

    def with_proper_prior(self) -> "LinearQuadratic":
        """Return the problem with `SystemPrior()` if no prior was given.

        Raise `MissingCapability` if it has a learned prior or settings of a `RegulatorAgent`.
        """
        proper = self
        if self.default_prior and self.known is not None:
            proper = LinearQuadratic(**self.settings() | {"prior": SystemPrior()})
        if proper.regulation or is_learned(proper.prior):
            raise MissingCapability(
                f"changing plants do not support {proper._regulating()}: give only prior, Q and R"
            )
        return proper

    def environment(self, system: LinearSystem) -> LinearPlant:
        """Return the plant with this true system, in the first state.

        The plant reports costs if the agent has to learn them.

        >>> from bayescontrol.lqr import double_integrator
        >>> system = double_integrator()
        >>> LinearQuadratic.on(system, start=[1.0, 0.0]).environment(system).x
        array([1., 0.])
        """
        cost_noise = self.costs["noise"] if self.known is None else None
        return LinearPlant(system, self.start, cost_noise=cost_noise)

    def _regulating(self) -> str:
        """Return the names of the settings that need a `RegulatorAgent`."""
        return ", ".join(["a learned prior"] * is_learned(self.prior) + list(self.regulation))

    def __repr__(self) -> str:
        about = repr(self.agent().belief).partition("(")[2].partition(", after")[0]
        costs = "unknown" if self.known is None else "known"
        return f"LinearQuadratic({about}, {costs} costs)"


def _fields(settings: Any, what: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings as a dict; raise `InvalidSystem` if a name is unknown."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not settings.keys() <= set(names):
        raise InvalidSystem(f"{what}={settings!r}: expected a mapping with {', '.join(names)}")
    return dict(settings)


def _cost_belief(costs: Mapping[str, Any]) -> CostBelief:
    """Return the belief with these settings; raise `InvalidSystem` if they are invalid."""
    try:
        return CostBelief(costs["states"], costs["inputs"], **{k: costs[k] for k in _COSTS})
    except (KeyError, TypeError) as error:
        raise InvalidSystem(f"costs={dict(costs)!r}: give states and inputs ({error})") from None


def _plain(value: ArrayLike | None) -> Any:
    """Return an array as nested lists of floats, and None as it is."""
    return None if value is None else np.asarray(value, np.float64).tolist()

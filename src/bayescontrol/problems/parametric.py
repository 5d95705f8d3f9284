"""A class of modes as parameters and functions, compiled into the loop.

    m  =  θ_m,  one row of θ        likelihoods(θ, x, a, o)  =  P(o | m, x, a) for all m
    a  ~  act(θ_m, x, state)        advance(x, a, o)         =  T(x, a, o)
    o  ~  respond(θ_m, x, a, state),  the world as mode m has it

The functions are plain Python in Numba's subset, written with array operations, and draw
from `bayescontrol.kernels.random`. They are compiled one by one; the readable agent calls
them, and `interact` runs a loop of them (`problems.parametric_loop`): the same record to
the last bit.

The compiled loop over a user's own functions, and what happens when one of them raises.

    a_t, o_t  for t = 1 … n,  bit for bit as the readable agent and environment have them

The loop itself is `kernels.parametric`; here the agent and the world are put where it led.
"""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import (
    BadEvidence,
    BayesControlError,
    InvalidTable,
    MissingCapability,
    UnknownMode,
)
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream
from bayescontrol.situations import as_advance, stay

#: A situation: a number, or an array of numbers.
Situation: TypeAlias = int | float | FloatArray
Number: TypeAlias = int | float

INT64 = 2**63


class NotCompilable(BayesControlError, TypeError):
    """A function of P(o | m, x, a), P(a | m, x), T or Q is outside what Numba can compile.

    >>> issubclass(NotCompilable, TypeError)
    True
    """


class ParametricModes:
    """Modes θ_0 … θ_{M-1}, the rows of `theta`, with the functions that they share.

    Actions and observations are numbers, int or float as the functions return them;
    situations are numbers or arrays of floats, as `start` is. Without `start` and `advance` the
    situation is always 0; without `respond` there is no simulated world, and `observation` says
    what o is.

    Compiling takes one to a few seconds, once in a process for each set of functions: define
    them once, at the top of a module, and make as many classes of them as you like. Nothing
    of it is kept on disk. `compiled=False` runs them as they are, for a debugger.

    An index beyond an array raises IndexError, compiled or not. A function that you have compiled
    yourself, or that yours calls, checks only if it was made so: `njit(boundscheck=True)`.

    >>> from bayescontrol.kernels.random import uniform
    >>> def likelihoods(theta, x, a, o): return theta[:, a] if o else 1.0 - theta[:, a]
    >>> def act(theta_m, x, state): return np.argmax(theta_m)
    >>> def respond(theta_m, x, a, state): return uniform(state) < theta_m[a]
    >>> levers = ParametricModes([[0.9, 0.2], [0.2, 0.9]], likelihoods=likelihoods, act=act,
    ...                          respond=respond)
    >>> levers
    ParametricModes(2 modes of 2 parameters: act, likelihoods, respond)
    >>> levers.likelihoods(0, 1, 1)
    array([0.2, 0.9])
    >>> agent = levers.agent()
    >>> agent.observe(0, 1)
    >>> agent.belief
    FiniteBelief(2 modes after 1 observation: m0 0.818, m1 0.182)
    """

    format_name: ClassVar[str] = "ParametricModes"
    not_stored_because: ClassVar[str] = "its functions are code"

    def __init__(
        self,
        theta: npt.ArrayLike,
        *,
        likelihoods: Callable[..., Any],
        act: Callable[..., Any],
        advance: Callable[..., Any] | None = None,
        respond: Callable[..., Any] | None = None,
        start: npt.ArrayLike | None = None,
        observation: type[int] | type[float] = float,
        names: Sequence[str] | None = None,
        compiled: bool = True,
    ) -> None:
        self.theta: FloatArray = _parameters(theta)
        if self.theta.ndim == 0 or self.theta.size == 0:
            raise InvalidTable(f"theta has shape {self.theta.shape}: give one row for each mode")
        if names is not None and len(names) != len(self):
            raise InvalidTable(f"{len(names)} names for {len(self)} modes")
        if observation not in (int, float):
            raise InvalidTable(f"observation={observation!r}: an observation is an int or a float")
        self.start: Situation = _situation(0 if start is None else start)
        self.names = tuple(names) if names is not None else None
        self.compiled = compiled
        advance = as_advance(start, None) if advance is None else advance
        self._given = (likelihoods, act, advance, respond)
        for name, function in self._functions().items():
            if not callable(function):
                raise NotCompilable(f"{name}={function!r} is not a function")
        self.code = self._compile(observation) if compiled else None

    def _functions(self) -> dict[str, Any]:
        """Those that were given, by name."""
        names = ("likelihoods", "act", "advance", "respond")
        found = zip(names, self._given, strict=True)
        return {name: f for name, f in found if f is not None and f is not stay}

    def _compile(self, observation: type) -> "kernels.parametric.Functions":
        try:
            return kernels.parametric.compiled(self.theta, self.start, observation, *self._given)
        except kernels.parametric.Uncompilable as error:
            raise NotCompilable(
                f"{error.name} cannot be compiled: {error.reason}. Keep to what Numba knows "
                "(numbers, NumPy arrays, kernels.random), or pass compiled=False to run it as "
                "plain Python"
            ) from error

    def __len__(self) -> int:
        """The number of modes."""
        return int(self.theta.shape[0])

    def __getitem__(self, m: int) -> "ParametricMode":
        """Mode m alone."""
        if not 0 <= m < len(self):
            raise UnknownMode(f"no mode {m}: there are 0 … {len(self) - 1}")
        return ParametricMode(self, m)

    # -- the functions, with arguments of the types they were compiled for ---------------------

    def likelihoods(self, x: Situation, a: Number, o: Number) -> FloatArray:
        """P(o | m, x, a) for all m."""
        if self.code is None:
            return np.asarray(self._given[0](self.theta, x, a, o), np.float64)
        event = self._event(self.code, x, a, o)
        answer: FloatArray = _call("likelihoods", self.code.likelihoods, self.theta, *event)
        return answer

    def advance(self, x: Situation, a: Number, o: Number) -> Situation:
        """T(x, a, o)."""
        if self.code is None:
            return _situation(self._given[2](x, a, o))
        event = self._event(self.code, x, a, o)
        following: Situation = _call("advance", self.code.advance, *event)
        return following

    def act(self, theta: Any, x: Situation, rng: Stream) -> Number:
        """a ~ P(a | θ, x)."""
        if self.code is None:
            return _plain("act", self._given[1](theta, x, rng.state))
        a: Number = _call("act", self.code.act, theta, self._situation(x), rng.state)
        return a

    def respond(self, theta: Any, x: Situation, a: Number, rng: Stream) -> Number:
        """o ~ P(o | θ, x, a)."""
        if self.code is None:
            return _plain("respond", self._world()(theta, x, a, rng.state))
        a = _as(self.code.action, a, "action")
        world = self.code.respond or self._world()
        o: Number = _call("respond", world, theta, self._situation(x), a, rng.state)
        return o

    def _world(self) -> Callable[..., Any]:
        if self._given[3] is None:
            raise MissingCapability(
                f"{self!r} has no simulated world: pass respond=, a function "
                "respond(theta_m, x, a, state) that returns o"
            )
        return self._given[3]

    def _event(self, code: Any, x: Situation, a: Number, o: Number) -> tuple[Any, Any, Any]:
        a, o = _as(code.action, a, "action"), _as(code.observation, o, "observation")
        return self._situation(x), a, o

    def _situation(self, x: Situation) -> Situation:
        if self.fits(x):
            return x
        if not isinstance(self.start, np.ndarray):
            number: Number = _as(type(self.start), x, "situation")
            return number
        raise BadEvidence(f"situation {x!r}: it must be an array of floats as {self.start!r} is")

    def fits(self, x: object) -> bool:
        """Is x a situation of the type for which the functions are compiled?"""
        if not isinstance(x, np.ndarray) or not isinstance(self.start, np.ndarray):
            return type(x) is type(self.start)
        return x.dtype == np.float64 and x.ndim == self.start.ndim and x.flags.carray

    # -- agents and worlds ------------------------------------------------------------------------

    def agent(
        self,
        prior: npt.ArrayLike | None = None,
        *,
        kind: type[ControlRule[Any, Any, Any, Any]] = ControlRule,
        schedule: Schedule = every_step,
    ) -> ControlRule["ParametricMode", Any, Any, Any]:
        """The control rule over this class; `kind` may be another agent of the same make."""
        belief: FiniteBelief[ParametricMode] = FiniteBelief(self, prior)
        return kind(belief, own(self.start), self.advance, schedule)

    def environment(
        self, m: int | None = None, *, theta: npt.ArrayLike | None = None
    ) -> "ParametricEnvironment":
        """Q_m: the world as mode m has it; or, with `theta`, as no mode may have it."""
        if (m is None) == (theta is None):
            raise UnknownMode("name one world: a mode, environment(m), or environment(theta=...)")
        self._world()
        # An array of no dimension is a number, as one row of a vector is.
        truth = self[m].theta if m is not None else _parameters(theta)[()]
        if np.shape(truth) != self.theta.shape[1:]:
            raise InvalidTable(
                f"theta has shape {np.shape(truth)}: one mode has {self.theta.shape[1:]}"
            )
        return ParametricEnvironment(self, truth)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.theta.shape[1:])) or "1"
        made = "" if self.compiled else ", not compiled"
        return (
            f"ParametricModes({len(self)} mode{'s' * (len(self) != 1)} of {shape} "
            f"parameter{'s' * (shape != '1')}: {', '.join(sorted(self._functions()))}{made})"
        )


class ParametricMode:
    """One mode: θ_m with the functions of its class.

    >>> coins = ParametricModes([0.25, 0.75], act=lambda theta_m, x, state: 0,
    ...                         likelihoods=lambda theta, x, a, o: theta if o else 1 - theta,
    ...                         compiled=False)
    >>> coins[1].likelihood(0, 0, 1)
    0.75
    """

    __slots__ = ("m", "modes", "theta")

    def __init__(self, modes: ParametricModes, m: int) -> None:
        self.modes, self.m, self.theta = modes, m, modes.theta[m]

    @property
    def name(self) -> str:
        """What the class calls it."""
        return self.modes.names[self.m] if self.modes.names else ""

    def act(self, x: Situation, rng: Stream) -> Number:
        """a ~ P(a | m, x)."""
        return self.modes.act(self.theta, x, rng)

    def likelihood(self, x: Situation, a: Number, o: Number) -> float:
        """P(o | m, x, a)."""
        return float(self.modes.likelihoods(x, a, o)[self.m])

    def __repr__(self) -> str:
        return f"ParametricMode({self.m}{f', {self.name!r}' if self.name else ''})"


class ParametricEnvironment:
    """Q: o ~ P(o | θ*, x, a), x ← T(x, a, o).

    >>> from bayescontrol.kernels.random import uniform
    >>> coins = ParametricModes([0.25, 0.75], act=lambda theta_m, x, state: 0,
    ...                         likelihoods=lambda theta, x, a, o: theta if o else 1 - theta,
    ...                         respond=lambda theta_m, x, a, state: uniform(state) < theta_m,
    ...                         compiled=False)
    >>> coins.environment(theta=1.0).respond(0, Stream(0))
    1
    """

    def __init__(self, modes: ParametricModes, theta: Any) -> None:
        self.modes, self.theta, self.x = modes, theta, own(modes.start)

    def respond(self, a: Number, rng: Stream) -> Number:
        """Draw o and move on."""
        o = self.modes.respond(self.theta, self.x, a, rng)
        self.x = self.modes.advance(self.x, a, o)
        return o

    def __repr__(self) -> str:
        return f"ParametricEnvironment(theta {self.theta!r}, situation {self.x!r})"


def own(x: Situation) -> Situation:
    """A copy, if it is an array: agent and world each have theirs."""
    return x.copy() if isinstance(x, np.ndarray) else x


def _parameters(theta: Any) -> FloatArray:
    try:
        return np.array(theta, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidTable(f"theta={theta!r}: it must be an array of numbers ({error})") from None


def _call(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call compiled code, which knows that an index was wrong but not whose."""
    try:
        return function(*arguments)
    except IndexError as error:
        raise IndexError(
            f"{name}: {error}. It asks for a row, column or entry that its array does not have; "
            "compiled=False shows the line"
        ) from None


def _plain(name: str, value: Any) -> Number:
    """An int or a float, of whatever kind the number is."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    raise BadEvidence(f"{name} gives {value!r}: it must be one int or float")


def _situation(x: Any) -> Situation:
    if np.ndim(x) == 0:
        return _plain("the situation", x)
    try:
        return np.array(x, np.float64, order="C")
    except (TypeError, ValueError):
        raise BadEvidence(f"situation {x!r}: it must be one number or an array of them") from None


def _as(kind: type, value: Any, what: str) -> Any:
    """The number in the type for which the functions are compiled."""
    try:
        if kind is float and not isinstance(value, str):
            return float(value)
        number = int(value) if isinstance(value, bool | np.bool_) else index(value)
        if -INT64 <= number < INT64:
            return number
    except (TypeError, ValueError):
        pass
    must = "one number" if kind is float else "one whole number of 64 bits"
    raise BadEvidence(f"{what} {value!r}: it must be {must}, as the functions were compiled for it")


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop, if the agent is the rule over the environment's own class.

    >>> from bayescontrol.problems.parametric import ParametricModes
    >>> coins = ParametricModes([0.25, 0.75], act=lambda theta_m, x, state: 0,
    ...                         likelihoods=lambda theta, x, a, o: theta if o else 1 - theta,
    ...                         respond=lambda theta_m, x, a, state: 1)
    >>> fused_loop(coins.agent(), coins.environment(0)) is not None
    True
    """
    modes = environment.modes
    fits = (
        modes.compiled
        and agent.belief.modes is modes
        and agent.belief.on_impossible == "raise"
        and agent.schedule is every_step
        and agent.advance == modes.advance
        and modes.fits(agent.x)
        and modes.fits(environment.x)
    )
    return _run if fits else None


def _run(
    agent: Any, environment: ParametricEnvironment, steps: int, p: Stream, q: Stream
) -> Record:
    arrays = (*agent.belief.weight_arrays(), p.state, q.state)
    before = [array.copy() for array in arrays]
    step = np.zeros(1, np.int64)
    try:
        return _steps(agent, environment, steps, p, q, step)
    except BadEvidence:
        raise
    except Exception:
        # A user's function has raised. The loop runs again up to there, and the readable code
        # takes the step: it raises too, and leaves everything as it should be.
        for array, was in zip(arrays, before, strict=True):
            array[:] = was
        _steps(agent, environment, int(step[0]), p, q, step)
        a = agent.act(p)
        agent.observe(a, environment.respond(a, q))
        raise


def _steps(
    agent: Any, environment: ParametricEnvironment, steps: int, p: Stream, q: Stream, step: Any
) -> Record:
    modes, belief = environment.modes, agent.belief
    code: Any = modes.code
    drawn, actions, observations = (
        np.empty(steps, kind) for kind in (np.int64, code.action, code.observation)
    )
    done, drawn_in, x, y = code.loop(
        *belief.weight_arrays(), modes.theta, environment.theta, own(agent.x),
        own(environment.x), p.state, q.state, drawn, actions, observations, step,
    )  # fmt: skip
    environment.x = y
    acted = min(done + 1, steps)
    if acted:
        belief.fast_forward(done, int(drawn[acted - 1]))
        agent.fast_forward(acted, drawn_in, x)
    if done < steps:  # the readable code raises, with its own words
        agent.observe(actions[done].item(), observations[done].item())
    return Record(actions, observations)

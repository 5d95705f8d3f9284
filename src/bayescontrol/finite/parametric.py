"""A class of modes given by parameters and functions, which are compiled.

    m  =  θ_m,  one row of θ        likelihoods(θ, x, a, o)  =  P(o | m, x, a) for all m
    a  ~  act(θ_m, x, state)        advance(x, a, o)         =  T(x, a, o)
    o  ~  respond(θ_m, x, a, state),  the world in which mode m is true

The functions are plain Python in Numba's subset, written with array operations, and draw from
`bayescontrol.kernels.random`. Each is compiled on its own. The agent calls them one by one, and
`interact` runs a compiled loop of them (`kernels.parametric`), with the same record bit for bit.
"""

from collections.abc import Callable, Sequence
from copy import copy
from operator import index
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, as_numbers
from bayescontrol.errors import (
    BadEvidence,
    InvalidTable,
    MissingCapability,
    NotCompilable,
    UnknownMode,
    counted,
)
from bayescontrol.finite.tabular import ClassMode, ModeClass, finish_loop
from bayescontrol.record import Record
from bayescontrol.seeding import Stream, StreamLike, state_of
from bayescontrol.situations import as_advance, stay

#: A situation: a number, or an array of numbers.
Situation: TypeAlias = int | float | FloatArray
Number: TypeAlias = int | float
R = TypeVar("R")

#: Integers n with -INT64 <= n < INT64 have 64 bits.
INT64 = 2**63


class ParametricMode(ClassMode):
    """One mode: θ_m with the functions of its class.

    >>> coins = ParametricModes([0.25, 0.75], act=lambda theta_m, x, state: 0,
    ...                         likelihoods=lambda theta, x, a, o: theta if o else 1 - theta,
    ...                         compiled=False)
    >>> coins[1].likelihood(0, 0, 1)
    0.75
    """

    __slots__ = ("theta",)

    def __init__(self, modes: "ParametricModes", m: int) -> None:
        super().__init__(modes, m)
        self.theta = modes.theta[m]

    def act(self, x: Situation, rng: StreamLike) -> Number:
        """Draw a ~ P(a | m, x)."""
        return cast("Number", self.modes.act(self.theta, x, rng))


class ParametricModes(ModeClass[ParametricMode, Any, Any, Any]):
    """Modes θ_0 … θ_{M-1}, the rows of `theta`, with functions that they share.

    Actions and observations are numbers, int or float as the functions return them. Situations
    are numbers or arrays of floats, like `start`. Without `start` and `advance` the situation is
    always 0. Without `respond` there is no simulated world, and `observation` is the type of o.

    Compiling takes a few seconds, once per process for each set of functions: define them once,
    at the top of a module. The compiled code is not cached on disk. `compiled=False` runs plain
    Python, for debugging.

    An index out of range raises IndexError, compiled or not. Functions that you compile yourself
    check indices only with `njit(boundscheck=True)`.

    `likelihoods(theta, x, a, o)` returns P(o | m, x, a) for all m, and `act(theta_m, x, state)` the
    action of one mode. `names` are the names of the modes.

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
    FiniteBelief(2 modes after 1 observation: m0 0.8182, m1 0.1818)
    """

    format_name: ClassVar[str] = "ParametricModes"
    mode_type = ParametricMode
    not_stored_because: ClassVar[str] = "its functions are code"

    def __init__(
        self,
        theta: ArrayLike,
        *,
        likelihoods: Callable[..., Any],
        act: Callable[..., Any],
        advance: Callable[..., Any] | None = None,
        respond: Callable[..., Any] | None = None,
        start: ArrayLike | None = None,
        observation: type[int] | type[float] = float,
        names: Sequence[str] | None = None,
        compiled: bool = True,
    ) -> None:
        self.theta: FloatArray = as_numbers(theta, "theta", InvalidTable)
        if self.theta.ndim == 0 or self.theta.size == 0:
            raise InvalidTable(f"theta has shape {self.theta.shape}: give one row per mode")
        super().__init__(len(self.theta), names)
        if observation not in (int, float):
            raise InvalidTable(f"observation={observation!r}: expected the type int or float")
        self.start: Situation = _as_situation(0 if start is None else start)
        self.compiled = compiled
        advance = as_advance(start, None) if advance is None else advance
        #: The user's functions; `respond` is None if it was left out.
        self._user: Any = SimpleNamespace(
            likelihoods=likelihoods, act=act, advance=advance, respond=respond
        )
        for name, function in self._used_functions().items():
            if not callable(function):
                raise NotCompilable(f"{name}={function!r} is not a function")
        self.code = self._compile(observation) if compiled else None

    def _used_functions(self) -> dict[str, Any]:
        """Return the user's functions by name, without those that were left out."""
        return {name: f for name, f in vars(self._user).items() if f not in (None, stay)}

    def _compile(self, observation: type) -> "kernels.parametric.Functions":
        """Compile the functions; raise NotCompilable, with the reason, if Numba cannot."""
        try:
            return kernels.parametric.compiled(
                self.theta, self.start, observation, **vars(self._user)
            )
        except kernels.parametric.Uncompilable as error:
            raise NotCompilable(
                f"{error.name} cannot be compiled: {error.reason}. Use what Numba supports "
                "(numbers, NumPy arrays, kernels.random), or pass compiled=False to run it as "
                "plain Python"
            ) from error

    # -- the functions, with arguments converted to the compiled types ---------------------------

    def likelihoods(self, x: Situation, a: Number, o: Number) -> FloatArray:
        """P(o | m, x, a) for all m."""
        if self.code is None:
            return np.asarray(self._user.likelihoods(self.theta, x, a, o), np.float64)
        event = self._event(self.code, x, a, o)
        return cast("FloatArray", _call("likelihoods", self.code.likelihoods, self.theta, *event))

    def advance(self, x: Situation, a: Number, o: Number) -> Situation:
        """T(x, a, o)."""
        if self.code is None:
            return _as_situation(self._user.advance(x, a, o))
        event = self._event(self.code, x, a, o)
        return cast("Situation", _call("advance", self.code.advance, *event))

    def act(self, theta: Any, x: Situation, rng: StreamLike) -> Number:
        """Draw a ~ P(a | θ, x)."""
        if self.code is None:
            return _as_python_number("act", self._user.act(theta, x, state_of(rng)))
        return _call("act", self.code.act, theta, self._convert_situation(x), state_of(rng))

    def respond(self, theta: Any, x: Situation, a: Number, rng: StreamLike) -> Number:
        """Draw o ~ P(o | θ, x, a)."""
        if self.code is None:
            return _as_python_number("respond", self._require_respond()(theta, x, a, state_of(rng)))
        a = _convert(self.code.action, a, "action")
        respond = self.code.respond or self._require_respond()
        o: Number = _call("respond", respond, theta, self._convert_situation(x), a, state_of(rng))
        return o

    def _require_respond(self) -> Any:
        """Return the user's `respond`; raise MissingCapability if it was left out."""
        if self._user.respond is None:
            raise MissingCapability(
                f"{self!r} has no simulated world: pass respond=, a function "
                "respond(theta_m, x, a, state) that returns o"
            )
        return self._user.respond

    def _event(self, code: Any, x: Situation, a: Number, o: Number) -> tuple[Any, Any, Any]:
        """Convert x, a and o to the compiled types, or raise BadEvidence."""
        a, o = _convert(code.action, a, "action"), _convert(code.observation, o, "observation")
        return self._convert_situation(x), a, o

    def _convert_situation(self, x: Situation) -> Situation:
        """Convert x to the type of `start`, or raise BadEvidence."""
        if self.fits(x):
            return x
        if not isinstance(self.start, np.ndarray):
            return _convert(type(self.start), x, "situation")
        raise BadEvidence(f"situation {x!r}: it must be an array of floats like {self.start!r}")

    def fits(self, x: object) -> bool:
        """Whether x has the type for which the functions are compiled."""
        if not isinstance(x, np.ndarray) or not isinstance(self.start, np.ndarray):
            return type(x) is type(self.start)
        return x.dtype == np.float64 and x.ndim == self.start.ndim and x.flags.carray

    def environment(
        self, m: int | None = None, *, theta: ArrayLike | None = None
    ) -> "ParametricEnvironment":
        """The world in which mode m is true, or the world of other parameters `theta`."""
        if (m is None) == (theta is None):
            raise UnknownMode("give either a mode, environment(m), or environment(theta=...)")
        self._require_respond()  # raises if there is no simulated world
        # [()] turns an array without dimensions into a number, as indexing a vector does.
        truth = self[m].theta if m is not None else as_numbers(theta, "theta", InvalidTable)[()]
        if (shape := np.shape(truth)) != self.theta.shape[1:]:
            raise InvalidTable(f"theta of shape {shape}: expected {self.theta.shape[1:]}, one mode")
        return ParametricEnvironment(self, truth)

    @staticmethod
    def fused_loop(agent: Any, environment: object) -> Any:
        """Return the compiled loop if the agent is the rule over the environment's class."""
        if type(environment) is not ParametricEnvironment:
            return None
        modes = environment.modes
        fits = modes.compiled and modes.fits_rule(agent) and modes.fits(agent.x)
        return _run if fits and modes.fits(environment.x) else None

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.theta.shape[1:])) or "1"
        suffix = "" if self.compiled else ", not compiled"
        return (
            f"ParametricModes({counted(len(self), 'mode')} of {shape} "
            f"parameter{'s' * (shape != '1')}: {', '.join(sorted(self._used_functions()))}{suffix})"
        )


class ParametricEnvironment:
    """A world Q: o ~ P(o | θ*, x, a), x ← T(x, a, o).

    >>> from bayescontrol.kernels.random import uniform
    >>> coins = ParametricModes([0.25, 0.75], act=lambda theta_m, x, state: 0,
    ...                         likelihoods=lambda theta, x, a, o: theta if o else 1 - theta,
    ...                         respond=lambda theta_m, x, a, state: uniform(state) < theta_m,
    ...                         compiled=False)
    >>> coins.environment(theta=1.0).respond(0, Stream(0))
    1
    """

    def __init__(self, modes: ParametricModes, theta: Any) -> None:
        self.modes, self.theta, self.x = modes, theta, copy(modes.start)

    def respond(self, a: Number, rng: StreamLike) -> Number:
        """Draw o and move to the next situation."""
        o = self.modes.respond(self.theta, self.x, a, rng)
        self.x = self.modes.advance(self.x, a, o)
        return o

    def __repr__(self) -> str:
        return f"ParametricEnvironment(theta {self.theta!r}, situation {self.x!r})"


def _call(name: str, function: Callable[..., R], *arguments: Any) -> R:
    """Call compiled code; an IndexError is raised again with the name of the function."""
    try:
        return function(*arguments)
    except IndexError as error:
        raise IndexError(
            f"{name}: {error}. The function indexes an array out of range; run it with "
            "compiled=False to see the line"
        ) from None


def _as_python_number(name: str, value: Any) -> Number:
    """Return a number as Python's int or float; raise BadEvidence with `name` if it is neither."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    raise BadEvidence(f"{name} gives {value!r}: expected one int or float")


def _as_situation(x: Any) -> Situation:
    """Return x as a Python number or an array of floats, or raise BadEvidence."""
    if np.ndim(x) == 0:
        return _as_python_number("the situation", x)
    return as_numbers(x, "the situation", BadEvidence)


def _convert(number_type: type, value: Any, what: str) -> Number:
    """Convert the value to the type for which the functions are compiled: int or float."""
    try:
        if number_type is float and not isinstance(value, str):
            return float(value)
        number = int(value) if isinstance(value, bool | np.bool_) else index(value)
        if -INT64 <= number < INT64:
            return number
    except (TypeError, ValueError):
        pass
    expected = "one number" if number_type is float else "one whole number of 64 bits"
    raise BadEvidence(f"{what} {value!r}: it must be {expected}; the functions are compiled for it")


def _run(
    agent: Any, environment: ParametricEnvironment, steps: int, p: Stream, q: Stream
) -> Record:
    """Run the compiled loop; the agent draws from p, the environment from q."""
    arrays = (*agent.belief.weight_arrays(), p.state, q.state)
    saved_arrays = [array.copy() for array in arrays]
    step = np.zeros(1, np.int64)  # the loop writes its current step here
    try:
        return _run_compiled(agent, environment, steps, p, q, step)
    except BadEvidence:
        raise
    except Exception:
        # A user's function has raised. Repeat the loop up to that step, then take the step with
        # the uncompiled code: it raises the same error and leaves a consistent state.
        for array, saved in zip(arrays, saved_arrays, strict=True):
            array[:] = saved
        _run_compiled(agent, environment, int(step[0]), p, q, step)
        a = agent.act(p)
        agent.observe(a, environment.respond(a, q))
        raise


def _run_compiled(
    agent: Any, environment: ParametricEnvironment, steps: int, p: Stream, q: Stream, step: IntArray
) -> Record:
    """Run the compiled loop; `step[0]` is set to the current step, for `_run`."""
    modes = environment.modes
    code: Any = modes.code
    types = np.int64, code.action, code.observation
    columns = kernels.tabular.Columns(*(np.empty(steps, dtype) for dtype in types))
    done, drawn_in, x, environment.x = code.loop(
        agent.belief.weight_arrays(), modes.theta, environment.theta, copy(agent.x),
        copy(environment.x), kernels.random.Streams(p.state, q.state), columns, step,
    )  # fmt: skip
    return finish_loop(agent, done, drawn_in, x, columns)

"""Functions of the user in a compiled loop of the control rule.

    m ~ v        a = act(θ_m, x)        o = respond(θ*, y, a)        v ← v · likelihoods(θ, x, a, o)

Numba cannot cache a loop that closes over other functions. So these are compiled in memory, once
for each set of functions in every process. Indices are checked in the functions of the user, but
not in the loop.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bayescontrol.kernels._jit import in_memory, typeof, types
from bayescontrol.kernels.finite import OK, condition, sample

#: Numba's types of real numbers.
_REAL = types.Integer | types.Float | types.Boolean


class Uncompilable(Exception):
    """Numba cannot compile a user's function; has its name and the reason in one line.

    >>> str(Uncompilable("act", "unknown name 'foo'"))
    "act: unknown name 'foo'"
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


class Functions(NamedTuple):
    """Compiled functions for P(o | m, x, a), P(a | m, x), T and Q, and their loop.

    Results are cast: numbers to int64 or float64, likelihoods to an array of float64.

    >>> Functions._fields[:4]
    ('likelihoods', 'act', 'advance', 'respond')
    """

    likelihoods: Callable[..., Any]
    act: Callable[..., float]
    advance: Callable[..., Any]
    #: `respond` and `loop` are None if there is no simulated environment.
    respond: Callable[..., float] | None
    loop: Callable[..., Any] | None
    #: The types of a and o: int or float.
    action: type
    observation: type


def compiled(
    theta: Any, x: Any, observation: type, likelihoods: Callable[..., Any], act: Callable[..., Any],
    advance: Callable[..., Any], respond: Callable[..., Any] | None,
) -> Functions:  # fmt: skip
    """Compile the functions for the types of θ and x, and infer the types of a and o.

    `observation` is int or float; it is ignored if there is a `respond`.

    >>> def likelihoods(theta, x, a, o): return theta[:, a] if o else 1 - theta[:, a]
    >>> def act(theta_m, x, state): return theta_m.argmax()
    >>> def advance(x, a, o): return x
    >>> functions = compiled(np.array([[0.5, 0.75]]), 0, int, likelihoods, act, advance, None)
    >>> functions.action, functions.likelihoods(np.array([[0.5, 0.75]]), 0, 1, 0)
    (<class 'int'>, array([0.25]))
    """
    all_modes, one_mode, situation = typeof(theta), typeof(theta[0]), typeof(x)
    rng_state = typeof(np.empty(4, np.uint64))
    act, action = _with_number("act", act, one_mode, situation, rng_state)
    observed = types.int64 if observation is int else types.float64
    if respond is not None:
        respond, observed = _with_number("respond", respond, one_mode, situation, action, rng_state)
    advance = _with_situation(advance, situation, action, observed)
    likelihoods = _with_doubles(likelihoods, all_modes, situation, action, observed)
    loop = None if respond is None else _loop(likelihoods, act, advance, respond)
    action_type, observation_type = (int if t == types.int64 else float for t in (action, observed))
    return Functions(likelihoods, act, advance, respond, loop, action_type, observation_type)


def _compiled_for(name: str, function: Any, *arguments: Any) -> tuple[Any, Any]:
    """Compile a user's function for these argument types; return it and the type of its result.

    In the compiled function an index out of bounds raises an error.
    """
    try:
        compiled = in_memory(function, checked=True)
    except TypeError:
        raise Uncompilable(name, f"{function!r} is not a plain function") from None
    try:
        compiled.compile(arguments)
    except Exception as error:  # Numba raises its own errors, and occasionally others
        raise Uncompilable(name, _first_line(error)) from error
    return compiled, compiled.overloads[arguments].signature.return_type


def _first_line(error: Exception) -> str:
    """Return the first informative line of the error, with the source line if it is known."""
    lines = [line.strip() for line in str(error).splitlines()]
    useful = [s for s in lines if s and not s.startswith("Failed in nopython mode pipeline")]
    places = [f" ({s.rstrip(':')})" for s in lines if s.startswith('File "')]
    return (useful or [type(error).__name__])[0] + "".join(places[:1])


def _with_number(name: str, function: Any, *arguments: Any) -> tuple[Any, Any]:
    """Return the function with its result cast to int64 or float64, and that type."""
    function, returned = _compiled_for(name, function, *arguments)
    if not isinstance(returned, _REAL):
        raise Uncompilable(name, f"it returns {returned}, but must return one int or float")
    number_type = types.float64 if isinstance(returned, types.Float) else types.int64
    return (function if returned == number_type else _cast(function, number_type)), number_type


@lru_cache(maxsize=256)
def _cast(function: Any, convert: Any) -> Any:
    """Return the function with its result converted by `convert`, a type or a compiled function."""

    def cast(*arguments: Any) -> Any:
        return convert(function(*arguments))

    return in_memory(cast)


def _with_situation(advance: Any, x: Any, a: Any, o: Any) -> Any:
    """Return `advance` with its result cast to the type of x, because a loop needs one type."""
    advance, returned = _compiled_for("advance", advance, x, a, o)
    if returned == x:
        return advance
    is_whole = isinstance(returned, types.Integer | types.Boolean)
    if (is_whole and x == types.int64) or (isinstance(returned, _REAL) and x == types.float64):
        return _cast(advance, x)
    raise Uncompilable("advance", f"it returns {returned}, but the initial situation is {x}")


def _with_doubles(likelihoods: Any, *arguments: Any) -> Any:
    """Return `likelihoods` with its result cast to a contiguous array of doubles."""
    likelihoods, returned = _compiled_for("likelihoods", likelihoods, *arguments)
    is_vector = isinstance(returned, types.Array) and returned.ndim == 1
    if not (is_vector and isinstance(returned.dtype, _REAL)):
        raise Uncompilable(
            "likelihoods",
            f"it returns {returned}, but must return an array, a number for each mode",
        )
    needs_no_cast = returned.dtype == types.float64 and returned.layout == "C"
    return likelihoods if needs_no_cast else _cast(likelihoods, _doubles)


@in_memory
def _doubles(values: Any) -> Any:
    """Return a contiguous copy of an array as float64."""
    return values.astype(np.float64)


@lru_cache(maxsize=256)
def _loop(likelihoods: Any, act: Any, advance: Any, respond: Any) -> Any:
    """Return a compiled loop of these four functions; its result is that of `tabular.interact`.

    The loop writes the current step to `step[0]`, which tells where a user's function raised.
    """

    def interact(
        weights: Any, theta: Any, truth: Any, x: Any, y: Any, streams: Any, columns: Any, step: Any
    ) -> Any:
        w, e, blocks = weights
        p, q = streams
        drawn, actions, observations = columns
        drawn_in = x
        for t in range(actions.shape[0]):
            step[0] = t
            drawn_in = x
            m = sample(w, e, blocks, p)
            a = act(theta[m], x, p)
            o = respond(truth, y, a, q)
            drawn[t], actions[t], observations[t] = m, a, o
            y = advance(y, a, o)
            next_x = advance(x, a, o)
            evidence = likelihoods(theta, x, a, o)
            if evidence.shape[0] != w.shape[0] or condition(w, e, blocks, evidence) != OK:
                return t, drawn_in, x, y
            x = next_x
        return actions.shape[0], drawn_in, x, y

    return in_memory(interact)

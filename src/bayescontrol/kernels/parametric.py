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
from bayescontrol.kernels.finite import OK, condition, draw
from bayescontrol.kernels.random import uniform


class Uncompilable(Exception):
    """Numba cannot compile a function: its name, and the reason in one line.

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
    act: Callable[..., Any]
    advance: Callable[..., Any]
    #: `respond` and `loop` are None if there is no simulated environment.
    respond: Callable[..., Any] | None
    loop: Callable[..., Any] | None
    #: The types of a and o: int or float.
    action: type
    observation: type


def compiled(
    theta: Any,
    x: Any,
    observation: type,
    likelihoods: Callable[..., Any],
    act: Callable[..., Any],
    advance: Callable[..., Any],
    respond: Callable[..., Any] | None,
) -> Functions:
    """Compile the functions for the types of θ and x, and infer the types of a and o.

    `observation` is int or float; it is ignored if there is a `respond`.

    >>> def likelihoods(theta, x, a, o): return theta[:, a] if o else 1 - theta[:, a]
    >>> def act(theta_m, x, state): return theta_m.argmax()
    >>> def advance(x, a, o): return x
    >>> functions = compiled(np.array([[0.5, 0.75]]), 0, int, likelihoods, act, advance, None)
    >>> functions.action, functions.likelihoods(np.array([[0.5, 0.75]]), 0, 1, 0)
    (<class 'int'>, array([0.25]))
    """
    every, one, situation, state = (typeof(v) for v in (theta, theta[0], x, np.empty(4, np.uint64)))
    act, action = _number("act", act, one, situation, state)
    observed = types.int64 if observation is int else types.float64
    if respond is not None:
        respond, observed = _number("respond", respond, one, situation, action, state)
    advance = _following(advance, situation, action, observed)
    likelihoods = _evidence(likelihoods, every, situation, action, observed)
    loop = None if respond is None else _loop(likelihoods, act, advance, respond)
    kinds = (int if t == types.int64 else float for t in (action, observed))
    return Functions(likelihoods, act, advance, respond, loop, *kinds)


def _returned(name: str, function: Any, *arguments: Any) -> Any:
    """Compile a function for these arguments; return its return type."""
    try:
        function.compile(arguments)
    except Exception as error:  # Numba raises its own errors, and occasionally others
        raise Uncompilable(name, _first_line(error)) from error
    return function.overloads[arguments].signature.return_type


def _first_line(error: Exception) -> str:
    """The first informative line of the error, with the source line if it is known."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [s for s in lines if s and not s.startswith("Failed in nopython mode pipeline")]
    place = [s.rstrip(":") for s in lines if s.startswith('File "')]
    return " ".join([*(telling[:1] or [type(error).__name__]), *(f"({s})" for s in place[:1])])


def _compilable(name: str, function: Any) -> Any:
    try:
        return in_memory(function, checked=True)
    except TypeError:
        raise Uncompilable(name, f"{function!r} is not a plain function") from None


def _number(name: str, function: Any, *arguments: Any) -> tuple[Any, Any]:
    """The function with its result cast to int64 or float64, and that type."""
    function = _compilable(name, function)
    found = _returned(name, function, *arguments)
    if not isinstance(found, types.Integer | types.Float | types.Boolean):
        raise Uncompilable(name, f"it returns {found}, but must return one int or float")
    wanted = types.float64 if isinstance(found, types.Float) else types.int64
    return (function if found == wanted else _cast(function, wanted)), wanted


@lru_cache(maxsize=256)
def _cast(function: Any, number: Any) -> Any:
    def cast(*arguments: Any) -> Any:
        return number(function(*arguments))

    return in_memory(cast)


def _following(advance: Any, x: Any, a: Any, o: Any) -> Any:
    """T with its result cast to the type of x, because a loop needs one type."""
    advance = _compilable("advance", advance)
    found = _returned("advance", advance, x, a, o)
    if found == x:
        return advance
    if isinstance(found, types.Integer | types.Boolean) and x in (types.int64, types.float64):
        return _cast(advance, x)
    if isinstance(found, types.Float) and x == types.float64:
        return _cast(advance, x)
    raise Uncompilable("advance", f"it returns {found}, but the initial situation is {x}")


def _evidence(likelihoods: Any, *arguments: Any) -> Any:
    """The likelihoods cast to contiguous doubles."""
    likelihoods = _compilable("likelihoods", likelihoods)
    found = _returned("likelihoods", likelihoods, *arguments)
    real = types.Integer | types.Float | types.Boolean
    if not (isinstance(found, types.Array) and found.ndim == 1 and isinstance(found.dtype, real)):
        raise Uncompilable(
            "likelihoods", f"it returns {found}, but must return an array, a number for each mode"
        )
    exact = found.dtype == types.float64 and found.layout == "C"
    return likelihoods if exact else _as_doubles(likelihoods)


@lru_cache(maxsize=256)
def _as_doubles(likelihoods: Any) -> Any:
    def as_doubles(theta: Any, x: Any, a: Any, o: Any) -> Any:
        return likelihoods(theta, x, a, o).astype(np.float64)

    return in_memory(as_doubles)


@lru_cache(maxsize=256)
def _loop(likelihoods: Any, act: Any, advance: Any, respond: Any) -> Any:
    """The loop with these four functions. It returns as `kernels.tabular.interact` does.

    `step[0]` is the current step, which tells where a function of the user raised an error.
    """

    def interact(
        w: Any,
        e: Any,
        blocks: Any,
        theta: Any,
        truth: Any,
        x: Any,
        y: Any,
        p: Any,
        q: Any,
        drawn: Any,
        actions: Any,
        observations: Any,
        step: Any,
    ) -> Any:
        drawn_in = x
        for t in range(actions.shape[0]):
            step[0] = t
            drawn_in = x
            m = draw(w, e, blocks, uniform(p))
            a = act(theta[m], x, p)
            o = respond(truth, y, a, q)
            drawn[t], actions[t], observations[t] = m, a, o
            y = advance(y, a, o)
            following = advance(x, a, o)
            evidence = likelihoods(theta, x, a, o)
            if evidence.shape[0] != w.shape[0] or condition(w, e, blocks, evidence) != OK:
                return t, drawn_in, x, y
            x = following
        return actions.shape[0], drawn_in, x, y

    return in_memory(interact)

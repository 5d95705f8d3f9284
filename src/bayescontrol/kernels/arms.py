"""Independent arms with conjugate priors: a row of parameters for each arm.

A family of rewards (`kernels.families`) is a number here, because Numba cannot cache a kernel that
takes another as an argument. `_by_family` writes the functions that select a family by its number.

The action is the arm with the largest m. With tiny parameters m is often 1.0, 0.0 or ∞ as a double,
or a gamma underflows: then the doubles are equal or in the wrong order, which would change P(a). So
if an arm has a shape below ½ or a rate near the limits of doubles, all arms are compared on a
logarithmic scale, with the same random numbers. Otherwise doubles are compared. Two are equal with
probability about 1e-16 (times the larger of α and β for a Bernoulli arm); then `largest_mean`
chooses uniformly. Families without `log_mean` always compare doubles.
"""

import inspect
import math
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.families import FAMILIES, number
from bayescontrol.kernels.random import Streams, uniform

if TYPE_CHECKING:
    from types import FunctionType

#: The number of the family of the paper's levers.
BERNOULLI = number("bernoulli")

_MODULES = [import_module(f"bayescontrol.kernels.families.{name}") for name in FAMILIES]
F = TypeVar("F", bound=Callable[..., object])


def _by_family(stub: F) -> F:
    """Return a kernel that calls the function with the name of `stub` of the family `kind`.

    It has a branch for each family with this function; for other numbers it calls the stub. Its
    source is compiled under the name of this file, so that Numba caches it like the rest.
    """
    function = cast("FunctionType", stub)
    name, parameters = function.__name__, list(inspect.signature(function).parameters)
    arguments = ", ".join(parameters)
    scope = {"__name__": __name__, "without_family": inlined(stub)}
    lines = [f"def {name}({arguments}):"]
    for k, module in enumerate(_MODULES):
        if hasattr(module, name):
            scope[f"of_{FAMILIES[k]}"] = getattr(module, name)
            of_family = f"of_{FAMILIES[k]}({', '.join(parameters[1:])})"
            lines.append(f"    if kind == {k}: return {of_family}")
    lines.append(f"    return without_family({arguments})")
    source = "\n" * function.__code__.co_firstlineno + "\n".join(lines)
    exec(compile(source, function.__code__.co_filename, "exec"), scope)  # noqa: S102 - our own text
    dispatch = scope[name]
    dispatch.__doc__, dispatch.__annotations__ = function.__doc__, function.__annotations__
    return leaf(cast("F", dispatch))


@_by_family
def draw(kind: int, constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw the mean reward of one arm from its posterior row.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> 0 < draw(BERNOULLI, np.empty(0), np.array([1.0, 1.0]), Stream(1).state) < 1
    True
    """
    return math.nan


@_by_family
def learn(kind: int, constants: FloatArray, row: FloatArray, r: float) -> None:
    """Update the posterior row with reward r, in place: Bayes' rule for a conjugate family.

    >>> import numpy as np
    >>> row = np.array([1.0, 1.0])
    >>> learn(BERNOULLI, np.empty(0), row, 1.0)
    >>> row
    array([2., 1.])
    """


@_by_family
def log_predictive(kind: int, constants: FloatArray, row: FloatArray, r: float) -> float:
    """Return ln P(r | row), the probability or density of the arm's next reward.

    >>> import numpy as np
    >>> round(math.exp(log_predictive(BERNOULLI, np.empty(0), np.array([3.0, 1.0]), 1.0)), 12)
    0.75
    """
    return math.nan


@_by_family
def respond(kind: int, constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm whose true parameters are `truth`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> respond(BERNOULLI, np.empty(0), np.array([1.0]), Stream(1).state)
    1.0
    """
    return math.nan


@_by_family
def temper(kind: int, row: FloatArray, temperature: float, out: FloatArray) -> None:
    """Write the row whose draws are those of `row` at a temperature; `out` may be `row`.

    By default all parameters are divided by the temperature.

    >>> import numpy as np
    >>> temper(BERNOULLI, np.array([3.0, 1.0]), 0.5, out := np.empty(2))
    >>> out
    array([6., 2.])
    """
    for k in range(row.size):
        out[k] = row[k] / temperature


@leaf
def temper_all(kind: int, rows: FloatArray, temperature: float, out: FloatArray) -> None:
    """Write the rows whose draws are those of `rows` at a temperature."""
    for j in range(rows.shape[0]):
        temper(kind, rows[j], temperature, out[j])


@_by_family
def log_mean(kind: int, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m as `draw` does, and return LOG_UNIT · ln m; for a Bernoulli arm ln m/(1 - m).

    >>> import numpy as np
    >>> from bayescontrol.kernels.random import LOG_UNIT
    >>> from bayescontrol.seeding import Stream
    >>> poisson, row = number("poisson"), np.array([1e-5, 1.0])
    >>> draw(poisson, np.empty(0), row, Stream(1).state)
    0.0
    >>> log_mean(poisson, row, Stream(1).state) / LOG_UNIT
    -40407.252...
    """
    return math.nan


@_by_family
def needs_log(kind: int, row: FloatArray) -> bool:
    """Return whether this arm has parameters for which doubles cannot distinguish means.

    >>> import numpy as np
    >>> needs_log(BERNOULLI, np.array([1.0, 1.0])), needs_log(BERNOULLI, np.array([0.1, 1.0]))
    (False, True)
    """
    return False


@leaf
def needs_logs(kind: int, rows: FloatArray, active: IntArray) -> bool:
    """Return whether an active arm has parameters for which doubles cannot distinguish means.

    Learning never makes a parameter smaller, so a False result stays False.

    >>> import numpy as np
    >>> rows = np.array([[1.0, 1.0], [0.1, 1.0]])
    >>> needs_logs(BERNOULLI, rows, np.arange(1)), needs_logs(BERNOULLI, rows, np.arange(2))
    (False, True)
    """
    for k in range(active.size):
        if needs_log(kind, rows[active[k]]):
            return True
    return False


@leaf
def largest_mean(
    kind: int,
    constants: FloatArray,
    rows: FloatArray,
    active: IntArray,
    drawn: FloatArray,
    rng_state: UIntArray,
) -> int:
    """Draw m_j of each active arm into `drawn`; return arg max_j m_j, ties broken uniformly.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, drawn = np.array([[1.0, 99.0], [99.0, 1.0]]), np.empty(2)
    >>> largest_mean(BERNOULLI, np.empty(0), rows, np.arange(2), drawn, Stream(1).state)
    1
    """
    best, ties = active[0], 1
    drawn[best] = draw(kind, constants, rows[best], rng_state)
    for k in range(1, active.size):
        j = active[k]
        drawn[j] = draw(kind, constants, rows[j], rng_state)
        if drawn[j] > drawn[best]:
            best, ties = j, 1
        elif drawn[j] == drawn[best]:
            ties += 1
            if uniform(rng_state) * ties < 1.0:
                best = j
    return int(best)


@leaf
def _largest_log(kind: int, rows: FloatArray, active: IntArray, rng_state: UIntArray) -> int:
    """Draw `log_mean` of each active arm; return the arm with the largest."""
    best, largest = active[0], log_mean(kind, rows[active[0]], rng_state)
    for k in range(1, active.size):
        x = log_mean(kind, rows[active[k]], rng_state)
        if x > largest:
            best, largest = active[k], x
    return int(best)


@leaf
def draw_action(
    kind: int,
    constants: FloatArray,
    rows: FloatArray,
    active: IntArray,
    drawn: FloatArray,
    rng_state: UIntArray,
) -> int:
    """Draw m_j of each active arm; return arg max_j m_j. `drawn` is scratch for the m_j.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, drawn = np.array([[2.0, 1e-3], [2.0, 1e-5]]), np.empty(2)
    >>> draw_action(BERNOULLI, np.empty(0), rows, np.arange(2), drawn, Stream(1).state)
    1
    """
    if needs_logs(kind, rows, active):
        return _largest_log(kind, rows, active, rng_state)
    return largest_mean(kind, constants, rows, active, drawn, rng_state)


@leaf
def draw_logs(
    kind: int,
    constants: FloatArray,
    rows: FloatArray,
    active: IntArray,
    drawn: FloatArray,
    logs: FloatArray,
    rng_state: UIntArray,
) -> None:
    """Write m of the active arms to `drawn`, and `log_mean` of the same m to `logs`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, (drawn, logs) = np.array([[2.0, 1e-3], [2.0, 1e-3]]), np.empty((2, 2))
    >>> draw_logs(BERNOULLI, np.empty(0), rows, np.arange(2), drawn, logs, Stream(1).state)
    >>> drawn, bool(logs[0] > logs[1])
    (array([1., 1.]), True)
    """
    s0, s1, s2, s3 = rng_state[0], rng_state[1], rng_state[2], rng_state[3]
    for k in range(active.size):
        drawn[active[k]] = draw(kind, constants, rows[active[k]], rng_state)
    rng_state[0], rng_state[1], rng_state[2], rng_state[3] = s0, s1, s2, s3
    # The generator is back at its first state: the logarithms use the same random numbers.
    for k in range(active.size):
        logs[active[k]] = log_mean(kind, rows[active[k]], rng_state)


class ArmRows(NamedTuple):
    """The family of the arms, their posterior rows, and the arms in play."""

    kind: int
    constants: FloatArray
    rows: FloatArray
    active: IntArray
    #: Scratch: the drawn means.
    drawn: FloatArray


@leaf
def interact(
    arms: ArmRows, learned: FloatArray, temperature: float, truth: FloatArray, streams: Streams,
    actions: IntArray, rewards: FloatArray,
) -> None:  # fmt: skip
    """Run the control rule over independent arms; fill `actions` and `rewards`.

    `learned` are the posterior rows, and `arms.rows` the same rows at the temperature. If it is 1,
    both are the same array.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> arms = ArmRows(BERNOULLI, np.empty(0), np.ones((2, 2)), np.arange(2), np.empty(2))
    >>> actions, rewards = np.empty(50, np.int64), np.empty(50)
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> interact(arms, arms.rows, 1.0, np.array([[0.0], [1.0]]), streams, actions, rewards)
    >>> bool((rewards == actions).all())
    True
    """
    kind, constants, rows, active, drawn = arms
    p, q = streams
    by_doubles = not needs_logs(kind, rows, active)
    for t in range(actions.size):
        if by_doubles:
            a = largest_mean(kind, constants, rows, active, drawn, p)
        else:
            a = draw_action(kind, constants, rows, active, drawn, p)
        r = respond(kind, constants, truth[a], q)
        learn(kind, constants, learned[a], r)
        if temperature != 1.0:
            temper(kind, learned[a], temperature, rows[a])
        actions[t], rewards[t] = a, r

"""The coupling of agent P and environment Q: one endless stream a_1 o_1 a_2 o_2 …

    G(a_t | ao_<t) = P(a_t | ao_<t)        G(o_t | ao_<t a_t) = Q(o_t | ao_<t a_t)

`play` gives the stream lazily, `interact` records it. Agent and environment draw from
streams of their own, so that changing one leaves the other's numbers alone.
"""

from collections.abc import Iterator, Mapping
from operator import index
from typing import Any, TypeVar

import numpy as np

from bayescontrol.errors import MissingCapability
from bayescontrol.fused import find_loop
from bayescontrol.protocols import Agent, Environment
from bayescontrol.record import Probe, Record
from bayescontrol.seeding import Stream
from bayescontrol.situations import require_same_start

T = TypeVar("T")
A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the paper's symbol


def both_streams(seed: int, run: int) -> tuple[Stream, Stream]:
    """The streams of agent and environment for one run.

    >>> p, q = both_streams(0, 0)
    >>> p == q
    False
    """
    return Stream.named(seed, run, "agent"), Stream.named(seed, run, "environment")


def play(
    agent: Agent[A, O],
    environment: Environment[A, O],
    *,
    seed: int = 0,
    run: int = 0,
    streams: tuple[Stream, Stream] | None = None,
) -> Iterator[tuple[A, O]]:
    """The stream (a_1, o_1), (a_2, o_2), … without end: a_t ~ P, o_t ~ Q.

    >>> from itertools import islice
    >>> class Echo:
    ...     def act(self, rng): return "hello"
    ...     def observe(self, a, o): pass
    ...     def respond(self, a, rng): return a.upper()
    >>> list(islice(play(Echo(), Echo()), 2))
    [('hello', 'HELLO'), ('hello', 'HELLO')]
    """
    require_same_start(agent, environment)
    p, q = streams or both_streams(seed, run)
    while True:
        a = _own(agent.act(p))
        o = _own(environment.respond(a, q))
        agent.observe(a, o)
        yield a, o


def interact(
    agent: Agent[A, O],
    environment: Environment[A, O],
    steps: int,
    *,
    seed: int = 0,
    run: int = 0,
    streams: tuple[Stream, Stream] | None = None,
    probes: Mapping[str, Probe] | None = None,
) -> Record:
    """`steps` of the stream as a `Record`, with what the probes saw.

    One seed and a run number fix everything. To go on with a run in a second call, make the
    two streams once and pass them to both: a seed would start the same numbers anew. Probes
    never change a run. Where agent and environment have a compiled loop it is used, with the
    same result to the last bit.

    >>> class Echo:
    ...     def act(self, rng): return "hello"
    ...     def observe(self, a, o): pass
    ...     def respond(self, a, rng): return a.upper()
    >>> shouts = Probe(lambda agent, a, o: len(o))
    >>> interact(Echo(), Echo(), 3, probes={"length": shouts})
    Record(3 steps: actions <U5, observations <U5, length int64)
    """
    try:
        count = index(steps)
    except TypeError:
        raise ValueError(f"steps={steps!r}: the number of steps is a whole number") from None
    if count < 0:
        raise ValueError(f"steps={steps}: a run has at least 0 steps")
    if not hasattr(agent, "act"):
        hint = "; its agent is what `.agent()` gives" if hasattr(agent, "agent") else ""
        raise MissingCapability(f"{agent!r} is no agent: it lacks act(rng){hint}")
    if not hasattr(environment, "respond"):
        raise MissingCapability(f"{environment!r} is no environment: it lacks respond(a, rng)")
    for name, probe in (probes or {}).items():
        if not isinstance(probe, Probe):
            raise TypeError(f"probe {name!r} is {probe!r}: write Probe(measure, when='after')")
    require_same_start(agent, environment)
    p, q = streams or both_streams(seed, run)
    if count and not probes and (loop := find_loop(agent, environment)) is not None:
        return loop(agent, environment, count, p, q)
    actions: list[A] = []
    observations: list[O] = []
    seen: dict[str, list[Any]] = {name: [] for name in probes or {}}
    before = [(seen[n], r.measure) for n, r in (probes or {}).items() if r.when == "before"]
    after = [(seen[n], r.measure) for n, r in (probes or {}).items() if r.when == "after"]
    for t in range(count):
        try:
            a = _own(agent.act(p))
            o = _own(environment.respond(a, q))
            for column, measure in before:
                column.append(measure(agent, a, o))
            agent.observe(a, o)
            for column, measure in after:
                column.append(measure(agent, a, o))
        except Exception as error:
            error.add_note(f"at step {t + 1} of {count}; `play` gives the steps one by one")
            raise
        actions.append(a)
        observations.append(o)
    return Record(actions, observations, seen)


def _own(value: T) -> T:
    """A copy, if it is an array: simulators reuse theirs, and the past must not change."""
    return value.copy() if isinstance(value, np.ndarray) else value

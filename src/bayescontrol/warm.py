"""Warm start: a belief built from another controller's log.

    P(m | log) ∝ P(m) Π_t P(o_t | m, x_t, a_t)                     its actions are interventions
    P(m | log) ∝ P(m) Π_t P(a_t | m, x_t) P(o_t | m, x_t, a_t)     a demonstration

Somebody else chose the actions: what came of them is evidence, that they were chosen is none. Only
if the other is an expert who knows which mode is right do the choices tell it too.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.protocols import MixingBelief
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import Stream, as_stream

M = TypeVar("M", bound=Any)


@runtime_checkable
class Renewing(Protocol):
    """A belief whose sampler must keep up with the evidence, such as one of particles."""

    def renew(self, rng: Stream, /) -> bool: ...


def warm_start(
    agent: ControlRule[M, Any, Any, Any],
    log: Record | Iterable[tuple[Any, ...]],
    demonstration: bool = False,
    *,
    rng: int | Stream = 0,
) -> int:
    """Take in what another controller has seen; gives the number of steps learnt from.

    The log is a `Record`, or pairs (a, o), or triples (x, a, o); rows of an array will do. Pairs
    are one history, which begins in the agent's situation and leaves it where the log ends: ready
    to take over. Triples, and records with a column "situation", say the situation themselves, in
    any order and from many runs, and the agent stays where it is. `rng` is for samplers alone:
    particles are renewed on the way, as they would be if the agent acted.

    A log with a bad entry changes nothing: it is first read by a twin.

    >>> from bayescontrol import BernoulliBandit
    >>> agent = BernoulliBandit(["red", "blue"]).agent()
    >>> warm_start(agent, [("red", 1), ("red", 1), ("blue", 0)])
    3
    >>> agent.belief.count
    3
    >>> warm_start(agent, [("red", 1), ("green", 1)])
    Traceback (most recent call last):
    bayescontrol.errors.UnknownArm: no arm 'green': the arms are 'red', 'blue'...
    >>> agent.belief.count
    3
    """
    if not isinstance(agent, ControlRule):
        raise MissingCapability(f"{agent!r} has no belief to build: warm_start takes a ControlRule")
    if demonstration and not isinstance(agent.belief, MixingBelief):
        raise MissingCapability(
            f"demonstration=True weighs the modes by what the other did, and {agent.belief!r} has "
            "no list of modes to weigh (it lacks mix and reweigh): leave it out, so that its "
            "actions are interventions, or use a FiniteBelief"
        )
    steps = list(_steps(log))
    twin = agent.copy()
    stream = as_stream(rng)
    _replay(twin, steps, demonstration, stream.copy())
    return _replay(agent, steps, demonstration, stream)


def _steps(log: Any) -> Iterator[tuple[Any, ...]]:
    """(a, o) or (x, a, o), all of one kind."""
    if isinstance(log, Record):
        if "situation" in log.probes:
            situations = Record(log.probes["situation"], log.observations)
            yield from ((x, a, o) for (x, _), (a, o) in zip(situations, log, strict=True))
        else:
            yield from log
        return
    if isinstance(log, str | bytes) or not isinstance(log, Iterable):
        raise BadEvidence(f"log={log!r}: give a Record, or pairs (a, o), or triples (x, a, o)")
    size = 0
    for t, step in enumerate(log):
        if isinstance(step, np.ndarray) and step.ndim:
            step = tuple(step.tolist() if step.ndim == 1 else step)
        if not isinstance(step, tuple | list) or len(step) not in (2, 3):
            raise BadEvidence(f"entry {t} of the log, {step!r}, is neither (a, o) nor (x, a, o)")
        if len(step) != (size or len(step)):
            raise BadEvidence(f"entry {t} of the log has {len(step)} parts, those before {size}")
        size = len(step)
        yield tuple(step)


def _replay(
    agent: ControlRule[Any, Any, Any, Any],
    steps: list[tuple[Any, ...]],
    demonstration: bool,
    rng: Stream,
) -> int:
    renewing = isinstance(agent.belief, Renewing)
    for t, step in enumerate(steps):
        *stated, a, o = step
        x = stated[0] if stated else agent.x
        try:
            if demonstration:
                agent.witness(x, a)
            if stated:
                agent.learn(x, a, o)
            else:
                agent.observe(a, o)
        except Exception as error:
            error.add_note(f"at entry {t} of the log; nothing of it was learnt")
            raise
        if renewing:
            agent.belief.renew(rng)
    return len(steps)

"""Detect that the code of a named model has changed, when its log is opened.

    first 1,000 events after an older snapshot:    draw again, compare a_n and P(a_n | âo_<n)
    at the newest snapshot, if it is among them:   compare the states

Opening a log from a snapshot skips the events before it, which would hide changed code. So some
events are folded again: those after the last snapshot that is at least 100 events older than the
newest one, or after the beginning.
"""

from itertools import islice
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.durable.events import Created, Decided, read_events
from bayescontrol.durable.fold import Decisions, first_valid
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.log import Log, Snapshot
from bayescontrol.durable.models import Model
from bayescontrol.errors import IncompatibleState, ModelMismatch

#: The number of events that are folded again.
_MOST: Final = 1_000
#: The least number of events before the newest snapshot, so that some of them are decisions.
_LEAST: Final = 100
#: The relative difference that rounding on another machine may cause.
_TOLERANCE: Final = 1e-6


def require_no_drift(log: Log, model: Model, created: Created) -> None:
    """`ModelMismatch` if a named model no longer reproduces its log."""
    newest = None if model.name in KINDS else next(log.snapshots(), None)
    if newest is None:
        return
    older = newest.seq - _LEAST
    fold = first_valid(log.snapshots(older), model.driver(), created, older, warn=False)
    decisions = Decisions(log)
    for event in islice(read_events(log, fold.seq + 1, newest.seq), _MOST):
        probabilities = fold.driver.probabilities(event.x) if isinstance(event, Decided) else None
        fold.take([event], decisions, event.seq)
        if isinstance(event, Decided) and probabilities is not None:
            fold.require_probability(event, probabilities)
    if fold.seq == newest.seq and not _matches(newest, fold.state()):
        raise ModelMismatch(
            f"model {model.name!r} version {model.version} has changed: after event {newest.seq} "
            "its state differs from the snapshot; give the changed model a new version and a new "
            "log"
        )


def _matches(snapshot: Snapshot, state: Arrays) -> bool:
    try:
        then = snapshot.arrays()
    except IncompatibleState:  # opening the log skips it, with a warning
        return True
    return all(name in then and _close(then[name], v) for name, v in state.items())


def _close(one: Any, two: Any) -> bool:
    if one.shape != two.shape or one.dtype.kind != two.dtype.kind:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, two))
    scale = _TOLERANCE * float(np.abs(two[np.isfinite(two)]).max(initial=0.0))
    return bool(np.allclose(one, two, rtol=_TOLERANCE, atol=scale, equal_nan=True))

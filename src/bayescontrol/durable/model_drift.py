"""Detect that the code of a named model has changed, when its log is opened.

    first 1,000 events after an older snapshot:    draw again, compare a_n and P(a_n | âo_<n)
    at the newest snapshot, if they reach it:      compare the states

Opening a log from a snapshot skips the events before it, which would hide changed code. So some
events are folded again: those after the last snapshot that is at least 100 events older than the
newest snapshot, or from the beginning if there is none.
"""

from itertools import islice
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.durable.events import Created, Decided, read_events
from bayescontrol.durable.fold import Decisions, load_first_valid
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.log import Log, Snapshot
from bayescontrol.durable.models import Model
from bayescontrol.errors import IncompatibleState, ModelMismatch

#: The maximum number of events that are folded again.
_MAX_FOLDED: Final = 1_000
#: Start at least this many events before the newest snapshot, so that some are decisions.
_MIN_DISTANCE: Final = 100
#: The relative difference that rounding on another machine may cause.
_TOLERANCE: Final = 1e-6


def require_no_drift(log: Log, model: Model, created: Created) -> None:
    """Raise `ModelMismatch` if a named model no longer reproduces its log."""
    newest = None if model.name in KINDS else next(log.snapshots(), None)
    if newest is None:
        return
    end = newest.seq - _MIN_DISTANCE
    fold = load_first_valid(log.snapshots(end), model.driver(), created, end, warn=False)
    decisions = Decisions(log)
    for event in islice(read_events(log, fold.seq + 1, newest.seq), _MAX_FOLDED):
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
    """Return False if the state differs from an intact snapshot by more than rounding."""
    try:
        saved = snapshot.arrays()
    except IncompatibleState:  # opening the log skips it, with a warning
        return True
    return all(name in saved and _is_close(saved[name], v) for name, v in state.items())


def _is_close(saved: Any, computed: Any) -> bool:
    """Return whether two arrays have the same shape and type, and values equal up to rounding."""
    if saved.shape != computed.shape or saved.dtype.kind != computed.dtype.kind:
        return False
    if saved.dtype.kind != "f":
        return bool(np.array_equal(saved, computed))
    scale = _TOLERANCE * float(np.abs(computed[np.isfinite(computed)]).max(initial=0.0))
    return bool(np.allclose(saved, computed, rtol=_TOLERANCE, atol=scale, equal_nan=True))

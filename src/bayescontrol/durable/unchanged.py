"""Whether a named model still does what the log says that it did, when the log is opened.

    first 1,000 events after an older snapshot:      draw again, compare a_n and P(a_n | âo_<n)
    at the newest one, if it is among them:          compare the states

A snapshot spares the fold of what came before it, and with it would go the notice that the code
has changed. So a stretch is folded all the same: from the last snapshot that is at least 100
events older than the newest, or, where there is none, from the beginning.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import Arrays
from bayescontrol.durable.events import Created, Decided, events_of
from bayescontrol.durable.fold import Decisions, Fold
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.models import Model
from bayescontrol.durable.snapshots import arrays_of
from bayescontrol.durable.store import Log, Snapshot
from bayescontrol.errors import IncompatibleState, ModelMismatch

#: Events that are folded to find out.
_STRETCH: Final = 1_000
#: Fewer events may hold no decision, and tell nothing of a policy.
_FEWEST: Final = 100
#: Another machine's last bits are no other model.
_CLOSE: Final = 1e-6


def require_unchanged(log: Log, model: Model, created: Created) -> None:
    """`ModelMismatch` if a model of the caller's own does not come out as it did.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import named_model, open_agent, open_store
    >>> shop = named_model("shop", version=1, build=BernoulliBandit(2).agent)
    >>> store = open_store("sqlite:///:memory:")
    >>> with open_agent(store, "shop", shop, seed=1) as agent:
    ...     _, created = agent.observe(agent.act(), 1), agent.created
    >>> require_unchanged(store.log("shop"), shop, created)
    """
    newest = None if model.name in KINDS else next(log.snapshots(), None)
    if newest is None:
        return
    fold = _before(log.snapshots(newest.seq - _FEWEST), model, created)
    decisions = Decisions(log)
    for event in islice(events_of(log, fold.seq + 1, newest.seq), _STRETCH):
        law = fold.driver.law(event.x) if isinstance(event, Decided) else None
        fold.take([event], decisions, event.seq)
        if isinstance(event, Decided) and law is not None:
            fold.require_probability(event, law)
    if fold.seq == newest.seq and not _alike(_state(newest), fold.state()):
        raise ModelMismatch(
            f"model {model.name!r} version {model.version} is not what it was: at event "
            f"{newest.seq} it believes something else than it did then; give what it is now a new "
            "version, and a new log"
        )


def _before(kept: Iterator[Snapshot], model: Model, created: Created) -> Fold:
    """The fold at the first of these snapshots that can be loaded, else a new one."""
    for snapshot in kept:
        fold = Fold(model.driver(), created.seed)
        try:
            fold.load(snapshot)
        except IncompatibleState:
            continue
        return fold
    return Fold(model.driver(), created.seed)


def _state(snapshot: Snapshot) -> Arrays | None:
    try:
        return arrays_of(snapshot)
    except IncompatibleState:  # passed over, with a warning, by whoever opens the log
        return None


def _alike(then: Arrays | None, now: Arrays) -> bool:
    return then is None or all(name in then and _close(then[name], v) for name, v in now.items())


def _close(one: Any, two: Any) -> bool:
    if one.shape != two.shape or one.dtype.kind != two.dtype.kind:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, two))
    scale = _CLOSE * float(np.abs(two[np.isfinite(two)]).max(initial=0.0))
    return bool(np.allclose(one, two, rtol=_CLOSE, atol=scale, equal_nan=True))

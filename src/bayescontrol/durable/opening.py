"""Opening an agent by its name: a new log, or the fold of the one that is there.

    event 1    created: the model by name, version and settings, and the seed

The model must be the one that the log was written with; without one, the log says what it is.
"""

import time
from contextlib import suppress
from operator import index
from os import urandom
from typing import Any, SupportsIndex

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.events import FORMAT, Created, as_row, events_of
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.models import Model, as_logged, as_model, model_of
from bayescontrol.durable.store import Log, Store, open_store
from bayescontrol.durable.unchanged import require_unchanged
from bayescontrol.errors import DamagedLog, HeadMoved, ModelMismatch, UnknownStore
from bayescontrol.schedules import Schedule, every_step


def open_agent(
    store: str | Store,
    name: str,
    model: Any = None,
    *,
    seed: SupportsIndex | None = None,
    schedule: Schedule = every_step,
    durable: bool = True,
    snapshot_every: int = 10_000,
) -> DurableAgent:
    """The agent of this name: made if there is none, else where its log ends.

    `store` is an address ("sqlite:///shop.db", "postgresql://…") or an open store. `model` is a
    problem of this library, or `named_model(…)`; without one the log says what it is.
    `snapshot_every` is the number of events after which the fold is kept beside the log.

    >>> from bayescontrol import BernoulliBandit
    >>> agent = open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]), seed=7)
    >>> agent.act().probability
    0.5
    >>> agent.close()
    """
    if type(snapshot_every) is not int or snapshot_every < 1:
        raise ValueError(f"snapshot_every={snapshot_every!r}: a number of events, at least 1")
    if isinstance(seed, SupportsIndex) and not isinstance(seed, bool):
        seed = index(seed)
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**128):
        raise ValueError(f"seed={seed!r}: a whole number from 0, below 2**128")
    wanted = None if model is None else as_model(model, schedule)
    given: Any = store
    if not isinstance(given, str) and not (hasattr(given, "log") and hasattr(given, "names")):
        raise UnknownStore(
            f"store={given!r}: give an address, sqlite:///file.db or postgresql://…, or a store"
        )
    opened = open_store(store, durable=durable) if isinstance(store, str) else store
    log: Log | None = None
    try:
        log = opened.log(name)
        created, wanted = _created(log, wanted, seed)
        require_unchanged(log, wanted, created)
        owned = isinstance(store, str)
        return DurableAgent(opened, log, wanted, created, snapshot_every, owned)
    except BaseException:
        if log is not None:
            log.close()
        if isinstance(store, str):
            opened.close()
        raise


def _created(log: Log, model: Model | None, seed: int | None) -> tuple[Created, Model]:
    """The first event, written if the log is empty, and the model in the version of the log."""
    if log.head() == 0:
        if model is None:
            raise UnknownStore(f"there is no agent {log.name!r}: give a model to make it")
        driver = model.driver()  # what cannot be driven is not written
        made = Created(
            seq=1, format=FORMAT, model=model.name, version=model.version,
            settings=dict(model.settings), time=time.time(),
            seed=int.from_bytes(urandom(8)) >> 1 if seed is None else seed,
            fingerprint=None if model.name in KINDS else driver.fingerprint(),
        )  # fmt: skip
        with suppress(HeadMoved):  # another process was faster: its event stands
            log.append([as_row(made)])
    first = next(events_of(log, 1, 1), None)
    if not isinstance(first, Created):
        raise DamagedLog(
            f"log {log.name!r} does not begin with its creation: it is damaged; restore a backup"
        )
    model = model_of(first) if model is None else as_logged(first, model)
    if seed is not None and seed != first.seed:
        raise ModelMismatch(f"log {log.name!r} was made with seed {first.seed}, not {seed}")
    return first, model

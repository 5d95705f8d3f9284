"""Open a durable agent: create its log, or restore the agent from it."""

import os
import time
from contextlib import ExitStack, closing, suppress
from typing import Any, SupportsIndex, cast

import numpy as np

from bayescontrol import errors
from bayescontrol.durable import events
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.configuration import Configuration
from bayescontrol.durable.fold import Fold, require_no_drift
from bayescontrol.durable.models import KINDS, Model, as_logged, as_model, model_of
from bayescontrol.durable.stores.log import Log, LogStore, open_store
from bayescontrol.schedules import Schedule
from bayescontrol.seeding import Stream, as_seed


def open_agent(
    store: str | LogStore,
    name: str,
    model: Any = None,
    *,
    seed: SupportsIndex | Stream | np.random.Generator | None = None,
    schedule: Schedule | None = None,
    temperature: float = 1.0,
    configuration: Configuration | None = None,
    durable: bool = True,
    snapshot_every: int = 10_000,
) -> DurableAgent:
    """Open the agent with this name: create it, or restore it from its log.

    `store` is an address ("sqlite:///shop.db", "postgresql://…") or an open store. `model` is a
    problem of this library or `named_model(…)`; it may be omitted for an existing log of a problem.
    `schedule` and `temperature` are those of `problem.agent`, with its defaults. `configuration` is
    that of a new agent; for an existing one it must be the current one, which `configure` changes.
    `snapshot_every` is the number of events between two snapshots of the state.

    >>> from bayescontrol import BernoulliBandit
    >>> agent = open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red", "blue"]), seed=7)
    >>> agent.act().probability
    0.5
    >>> agent.close()
    """
    if type(snapshot_every) is not int or snapshot_every < 1:
        raise ValueError(f"snapshot_every={snapshot_every!r}: expected a positive integer")
    given_seed = None if seed is None else as_seed(cast("Any", seed))
    log_model = None if model is None else as_model(model, schedule, temperature)
    value: Any = store
    if not isinstance(value, str) and not (hasattr(value, "log") and hasattr(value, "names")):
        raise errors.UnknownStore(
            f"store={value!r}: expected an address, sqlite:///file.db or postgresql://…, or a store"
        )
    with ExitStack() as opened:  # an error closes what was opened
        if isinstance(store, str):
            store = opened.enter_context(closing(open_store(store, durable=durable)))
        log = opened.enter_context(closing(store.log(name)))
        created, log_model = _first_event(log, log_model, given_seed, configuration)
        require_no_drift(log, log_model, created)
        agent = DurableAgent(store, log, log_model, created, snapshot_every, opened)
    if configuration is not None and configuration != agent.configuration:
        current = agent.configuration
        agent.close()
        raise errors.ModelMismatch(
            f"agent {name!r} has {current}, not {configuration}: open it without a configuration, "
            "and call `configure` to change it"
        )
    return agent


def _first_event(
    log: Log, model: Model | None, seed: int | None, configuration: Configuration | None
) -> tuple[events.Created, Model]:
    """Return event 1 and the model in the version of the log.

    If the log is empty, write event 1, and the configuration if there is one.
    """
    if log.head() == 0:
        if model is None:
            raise errors.UnknownStore(f"there is no agent {log.name!r}: pass a model to create it")
        driver = model.driver()  # may raise, before anything is written
        new = events.Created(
            seq=1, format=events.FORMAT, model=model.name, version=model.version,
            settings=dict(model.settings), time=time.time(),
            seed=int.from_bytes(os.urandom(8)) >> 1 if seed is None else seed,
            fingerprint=None if model.name in KINDS else driver.fingerprint(),
        )  # fmt: skip
        rows = [events.encode_row(new)]
        if configuration is not None:
            Fold(driver, new.seed).require_valid(configuration)
            settings = configuration.settings()
            second = events.Configured(seq=2, configuration=settings, time=new.time)
            rows.append(events.encode_row(second))
        with suppress(errors.HeadMoved):  # another process created it meanwhile
            log.append(rows)
    first = events.read_created(log)
    model = model_of(first) if model is None else as_logged(first, model)
    if seed is not None and seed != first.seed:
        raise errors.ModelMismatch(
            f"log {log.name!r} was created with seed {first.seed}, not {seed}: omit the seed"
        )
    return first, model

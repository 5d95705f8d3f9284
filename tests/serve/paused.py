"""An agent that calls a function before each act, to wait or to fail."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.limits import TIMEOUT

from bayescontrol import BernoulliBandit
from bayescontrol.durable import Model, named_model


class Paused:
    """The agent of a two-armed bandit; `first` is called before each act."""

    def __init__(self, first: Callable[[], object]) -> None:
        self.rule, self.first = BernoulliBandit(2).agent(), first

    def act(self, rng: Any) -> Any:
        self.first()
        return self.rule.act(rng)

    def observe(self, a: Any, o: Any) -> None:
        self.rule.observe(a, o)

    def copy(self) -> "Paused":
        twin = Paused(self.first)
        twin.rule = self.rule.copy()
        return twin

    def save(self) -> Any:
        return self.rule.save()

    def load(self, arrays: Any) -> None:
        self.rule.load(arrays)


class Pause:
    """A model whose acts wait within a `hold` block, or until `release`."""

    def __init__(self) -> None:
        self.entered, self._open = threading.Event(), threading.Event()
        self.models = paused(self._wait)
        self.release = self._open.set
        self.release()

    def _wait(self) -> None:
        self.entered.set()
        assert self._open.wait(TIMEOUT)

    @contextmanager
    def hold(self) -> Iterator[None]:
        self._open.clear()
        self.entered.clear()
        try:
            yield
        finally:
            self.release()


def paused(first: Callable[[], object]) -> dict[str, Model]:
    """Return the argument `models` of a server, with a model named "paused"."""
    return {"paused": named_model("paused", version=1, build=lambda: Paused(first))}

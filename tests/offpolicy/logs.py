"""Logs of Bernoulli agents with known mean rewards, without a store."""

from collections.abc import Callable, Sequence
from typing import Any

from bayescontrol import BernoulliBandit
from bayescontrol.durable.events import Created, Decided, Event, Observed
from bayescontrol.durable.models import as_model
from bayescontrol.seeding import Stream


def bandit_log(
    seed: int,
    decisions: int,
    arms: Sequence[Any],
    pays: Callable[[Any, int], float],
    *,
    prior: Any = None,
    late: int = 0,
    silent: float = 0.0,
) -> list[Event]:
    """The log of a Bernoulli agent, without a store: arm a pays 1 with probability pays(a, t).

    Feedback is up to `late` decisions late, and missing with probability `silent`.
    """
    model = as_model(BernoulliBandit(arms, prior=prior))
    driver, rng = model.driver(), Stream(seed)
    events: list[Event] = [
        Created(
            seq=1, format=1, model=model.name, version=model.version,
            settings=dict(model.settings), seed=seed, time=0.0,
        )
    ]  # fmt: skip
    due: list[tuple[int, int, Any, int]] = []

    def answer(until: float) -> None:
        for one in sorted(d for d in due if d[0] <= until):
            due.remove(one)
            _, n, a, o = one
            driver.learn(None, a, o)
            events.append(Observed(seq=len(events) + 1, n=n, o=o, time=0.0))

    for t in range(decisions):
        probabilities = driver.probabilities(None) or {}
        a = rng.choice(list(probabilities), p=list(probabilities.values()))
        n = len(events) + 1
        events.append(Decided(seq=n, x=None, a=a, p=probabilities[a], key=None, time=0.0))
        o = int(rng.random() < pays(a, t))
        if not silent or rng.random() >= silent:
            due.append((t + (rng.integers(late + 1) if late else 0), n, a, o))
        answer(t)
    answer(float("inf"))
    return events

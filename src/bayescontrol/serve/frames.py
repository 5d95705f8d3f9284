"""An agent in the numbers that the live page draws, read off its belief.

arms      the posterior mean reward and its central 95 % interval
modes     P(m | âo_≤t)
counts    events of the log = 1 + decisions + observations
"""

import math
from typing import Any, Final

import msgspec
import numpy as np

from bayescontrol.bandits.family import Intervals
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.events import Decision, Observed
from bayescontrol.durable.plain import as_plain
from bayescontrol.durable.summary import mode_names, texts
from bayescontrol.errors import BayesControlError
from bayescontrol.serve.parameters import parameters

_TAILS: Final = np.array([0.025, 0.975])
_LN2: Final = math.log(2.0)


def label(decision: Decision) -> str:
    """Its action as a text: as it is called among the others, or as JSON.

    >>> label(Decision("2", 1, 0.5, None, 1, 0.0, {1: 0.5, "1": 0.5}))
    '1'
    >>> label(Decision("2", ("left", 2), None, None, 1, 0.0))
    '{"tuple":["left",2]}'
    """
    a = decision.action
    if decision.probabilities:
        return texts(decision.probabilities)[a]
    return a if isinstance(a, str) else msgspec.json.encode(as_plain(a, "an action")).decode()


def counts(agent: DurableAgent) -> tuple[int, int]:
    """How many decisions and observations its log holds.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
    ...     _ = shop.act(), shop.observe(shop.act(), 1)
    ...     counts(shop)
    (2, 1)
    """
    return counted(agent, *agent.ask(lambda rule: (agent.head, observed(rule))))


def counted(agent: DurableAgent, head: int, count: int | None) -> tuple[int, int]:
    """Decisions and observations among the first `head` events, `count` being `observed(rule)`.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
    ...     _ = shop.act(), shop.observe(shop.act(), 1)
    ...     counted(shop, 4, 1), counted(shop, 4, None)
    ((2, 1), (2, 1))
    """
    if count is None:
        count = sum(isinstance(event, Observed) for event in agent.log(1, head))
    return head - 1 - count, count


def observed(rule: Any) -> int | None:
    """How many observations the agent has learnt; None for a belief that does not count them.

    >>> from bayescontrol import BernoulliBandit
    >>> observed(BernoulliBandit(["red"]).agent())
    0
    """
    watch = getattr(rule, "alarm", None)
    if watch is not None:
        return int(watch.t)
    count = getattr(getattr(rule, "belief", None), "count", None)
    return None if count is None else int(count)


def modes(rule: Any, model: str = "") -> list[dict[str, Any]]:
    """What the page shows of the posterior; `model` is the name of what the agent is made by.

    >>> from bayescontrol import BernoulliBandit
    >>> modes(BernoulliBandit(["red"]).agent())
    [{'name': 'red', 'weight': None, 'mean': 0.5, 'low': 0.025..., 'high': 0.975...}]
    """
    belief: Any = getattr(rule, "belief", None)
    if isinstance(belief, FiniteBelief):
        v = belief.posterior().tolist()
        return [_mode(s, weight=p) for s, p in zip(mode_names(belief), v, strict=True)]
    if not hasattr(belief, "family"):
        return [_mode(name, **known) for name, known in parameters(rule, model)]
    names = texts(belief.labels).values()
    rows, family = belief.posterior(), belief.family
    known = isinstance(family, Intervals)
    ends = family.interval(rows, _TAILS) if known else np.full((len(rows), 2), np.nan)
    return [
        _mode(name, mean=mean, low=low, high=high)
        for name, mean, (low, high) in zip(
            names, family.expected(rows).tolist(), ends.tolist(), strict=True
        )
    ]


def _mode(name: str, **known: float) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(("weight", "mean", "low", "high"))
    finite = {key: v for key, v in known.items() if math.isfinite(v)}
    return {"name": name} | empty | finite


def law(agent: DurableAgent) -> dict[str, float] | None:
    """P(a | âo_<t) by the action as text; None if it needs a situation, or is not exact.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
    ...     law(shop)
    {'red': 1.0}
    """
    try:
        found = agent.probabilities()
    except (BayesControlError, TypeError, ValueError, LookupError):
        return None
    return None if found is None else {name: found[a] for a, name in texts(found).items()}


def alarm(rule: Any) -> dict[str, Any] | None:
    """The no-mode-fits alarm of a guarded agent.

    >>> from bayescontrol import BernoulliBandit
    >>> alarm(BernoulliBandit(["red"]).agent())
    """
    watch = getattr(rule, "alarm", None)
    if watch is None:
        return None
    bits = watch.evidence_bits
    return {
        "raised": watch.raised,
        "evidence_bits": bits if math.isfinite(bits) else None,
        "threshold_bits": watch.threshold / _LN2,
    }

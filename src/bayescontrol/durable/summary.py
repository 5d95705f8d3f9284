"""A posterior in a few plain numbers, for people and pages.

arms     the mean reward of each, how often it was heard of, and the row of its family
modes    P(m | âo_<t)
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bayescontrol.beliefs.finite import FiniteBelief

__all__ = ["summary"]


def summary(agent: Any) -> dict[str, dict[str, Any]]:
    """What the agent believes, by the names of its arms or modes, in plain values.

    >>> from bayescontrol import TabularModes
    >>> boxes = TabularModes(policy=[[[1]], [[1]]], hypothesis=[[[[1, 0]]], [[[0.5, 0.5]]]])
    >>> summary(boxes.agent())
    {'m0': {'probability': 0.5}, 'm1': {'probability': 0.5}}
    """
    belief: Any = getattr(agent, "belief", None)
    if isinstance(belief, FiniteBelief):
        v = belief.posterior().tolist()
        return {belief.name(m): {"probability": p} for m, p in enumerate(v)}
    if hasattr(belief, "family"):
        return _arms(belief)
    if hasattr(belief, "link"):
        pulls = belief.pulls
        named = _named(belief.labels)
        return {s: {"mean": belief.mean(a).tolist(), "count": pulls[a]} for s, a in named}
    if hasattr(belief, "rho"):
        return {"rho": {"mean": belief.rho, "count": belief.count}}
    count = getattr(belief, "count", None)
    return {} if count is None else {"all": {"count": int(count)}}


def _arms(belief: Any) -> dict[str, dict[str, Any]]:
    rows, pulls, family = belief.posterior(), belief.pulls, belief.family
    means = family.expected(rows).tolist()
    columns = getattr(family, "columns", ())
    told = {}
    for (name, arm), row, mean in zip(_named(belief.labels), rows.tolist(), means, strict=True):
        named = dict(zip(columns, row, strict=False))
        told[name] = {"mean": mean, "count": pulls[arm], **named}
    return told


def _named(labels: Iterable[Any]) -> list[tuple[str, Any]]:
    """Each arm with its name as a text: 1 and "1", which read alike, as Python writes them."""
    arms = list(labels)
    alike = Counter(map(str, arms))
    return [(str(a) if alike[str(a)] == 1 else repr(a), a) for a in arms]

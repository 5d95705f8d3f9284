"""A posterior in a few plain numbers, for people and pages.

arms       the mean reward of each, how often it was heard of, and the row of its family
modes      P(m | âo_<t)
systems    E[A], E[B]
particles  E[θ]
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bayescontrol.bandits.arms import ArmsBelief
from bayescontrol.bandits.linear_belief import LinearBelief
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.linear.belief import SystemBelief
from bayescontrol.mdp.gibbs import GibbsBelief


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
        return {s: {"probability": p} for s, p in zip(mode_names(belief), v, strict=True)}
    if isinstance(belief, ArmsBelief):
        return _arms(belief)
    if isinstance(belief, LinearBelief):
        pulls = belief.pulls
        named = texts(belief.labels).items()
        return {s: {"mean": belief.mean(a).tolist(), "count": pulls[a]} for a, s in named}
    if isinstance(belief, SystemBelief):
        n, mean = belief.states, belief.mean()
        parts = {"A": mean[:, :n], "B": mean[:, n:]}
        return {s: {"mean": part.tolist(), "count": belief.count} for s, part in parts.items()}
    if isinstance(belief, ParticleBelief):
        return {"theta": {"mean": belief.mean().tolist(), "count": belief.count}}
    if isinstance(belief, GibbsBelief):
        return {"rho": {"mean": belief.rho, "count": belief.count}}
    count = getattr(belief, "count", None)
    return {} if count is None else {"all": {"count": int(count)}}


def _arms(belief: ArmsBelief) -> dict[str, dict[str, Any]]:
    rows, pulls, family = belief.posterior(), belief.pulls, belief.family
    means = family.expected(rows).tolist()
    told = {}
    named = texts(belief.labels).items()
    for (arm, name), row, mean in zip(named, rows.tolist(), means, strict=True):
        told[name] = {
            "mean": mean,
            "count": pulls[arm],
            **dict(zip(family.columns, row, strict=True)),
        }
    return told


def texts(values: Iterable[Any]) -> dict[Any, str]:
    """Each value as a text of its own: those that read alike as Python writes them.

    >>> texts(["red", 2]), texts([1, "1"])
    ({'red': 'red', 2: '2'}, {1: '1', '1': "'1'"})
    """
    several = list(values)
    alike = Counter(map(str, several))
    told = {v: str(v) if alike[str(v)] == 1 else repr(v) for v in several}
    if len(set(told.values())) < len(told):  # another is called as Python writes one of these
        return {v: repr(v) for v in several}
    return told


def mode_names(belief: FiniteBelief[Any]) -> list[str]:
    """The modes by name; those of one name by their number too.

    >>> from bayescontrol import TabularModes
    >>> two = TabularModes([[[1]], [[1]]], [[[[1, 0]]], [[[0, 1]]]], names=["twin", "twin"])
    >>> mode_names(two.agent().belief)
    ['twin (m0)', 'twin (m1)']
    """
    names = [belief.name(m) for m in range(len(belief.posterior()))]
    alike = Counter(names)
    told = [s if alike[s] == 1 else f"{s} (m{m})" for m, s in enumerate(names)]
    return told if len(set(told)) == len(told) else [f"{s} (m{m})" for m, s in enumerate(names)]

"""A posterior that has neither a mean by arm nor a weight by mode, in the numbers that it has.

linear arms        E[w_a], a number for each feature: a reward needs a situation
correlated arms    E[σ(θ_a)] and its central 95 %, over the particles
particles          E[θ]
linear systems     E[A], E[B]
MDP                ρ, as the chain drew it last
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.particles import ParticleBelief
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.summary import summary
from bayescontrol.errors import BadSituation, BayesControlError
from bayescontrol.linear.belief import SystemBelief

#: The model whose particles are the log-odds of its arms.
CORRELATED: Final = "logit-normal-bandit"
#: More numbers than these are not sent every second, nor read by anyone.
_MOST: Final = 200


def parameters(rule: Any, model: str = "") -> Iterator[tuple[str, dict[str, float]]]:
    """The name of each number, its posterior mean and, where there is one, its interval.

    >>> from bayescontrol import LinearBandit
    >>> [name for name, _ in parameters(LinearBandit(["red", "blue"], features=2).agent())]
    ['red[0]', 'red[1]', 'blue[0]', 'blue[1]']
    """
    belief: Any = getattr(rule, "belief", None)
    if model == CORRELATED and isinstance(belief, ParticleBelief):
        yield from _biases(belief)
        return
    left = _MOST
    for name, told in summary(rule).items():
        mean = np.asarray(told.get("mean", ()), np.float64)
        for place, v in zip(np.ndindex(mean.shape), mean.flat, strict=True):
            if not left:
                return
            left -= 1
            yield name + (f"[{', '.join(map(str, place))}]" if place else ""), {"mean": float(v)}


def _biases(belief: ParticleBelief) -> Iterator[tuple[str, dict[str, float]]]:
    w, theta = belief.posterior(), belief.theta
    for a, t in enumerate(theta.T[:_MOST]):
        order = np.argsort(t)
        bias = 1.0 / (1.0 + np.exp(-t[order]))
        below = np.cumsum(w[order])
        low, high = bias[np.searchsorted(below, (0.025, 0.975)).clip(max=len(t) - 1)]
        yield str(a), {"mean": float(w[order] @ bias), "low": float(low), "high": float(high)}


def measure(rule: Any, model: str = "") -> dict[str, str] | None:
    """What the means are means of, and in which unit; None if there are none.

    >>> from bayescontrol import BernoulliBandit
    >>> measure(BernoulliBandit(2).agent())
    {'name': 'mean reward', 'unit': 'reward'}
    """
    belief: Any = getattr(rule, "belief", None)
    if isinstance(belief, FiniteBelief):
        return None
    if hasattr(belief, "family") or model == CORRELATED:
        return {"name": "mean reward", "unit": "reward"}
    if hasattr(belief, "link"):
        return {"name": "mean weight of a feature", "unit": "score by feature"}
    if isinstance(belief, SystemBelief):
        return {"name": "mean of A and B", "unit": "by entry"}
    if hasattr(belief, "rho"):
        return {"name": "average reward ρ, drawn last", "unit": "reward a step"}
    return {"name": "posterior mean", "unit": "its own"} if belief is not None else None


def remarks(
    agent: DurableAgent, told: list[dict[str, Any]], law: Mapping[str, float] | None
) -> list[str]:
    """Why there is nothing to draw where there is nothing.

    >>> from bayescontrol import LinearBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", LinearBandit(2, features=1)) as shop:
    ...     remarks(shop, [], None)
    ['This model has no posterior by arm or mode to draw.', 'The action probabilities depend ...']
    """
    said = []
    belief: Any = agent.ask(lambda rule: getattr(rule, "belief", None))
    if hasattr(belief, "link") and told:
        said.append("What an arm pays depends on the situation: the weights are shown instead.")
    elif not any(_known(one) for one in told):
        said.append("This model has no posterior by arm or mode to draw.")
    by_name = isinstance(belief, FiniteBelief) or hasattr(belief, "family")
    if len(told) == _MOST and not by_name:
        said.append(f"Of the posterior at most {_MOST} numbers are sent.")
    if law is None:
        said.append(_no_law(agent))
    return said


def _known(one: Mapping[str, Any]) -> bool:
    return any(v is not None and math.isfinite(v) for v in (one["mean"], one["weight"]))


def _no_law(agent: DurableAgent) -> str:
    try:
        agent.probabilities()
    except BadSituation:
        return "The action probabilities depend on the situation: what was done is shown instead."
    except (BayesControlError, TypeError, ValueError, LookupError):
        pass
    return "This model has no formula for action probabilities: what was done is shown instead."

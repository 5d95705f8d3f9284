"""The settings of a problem as plain values, in full: a later default must not change an agent.

BernoulliBandit(["red", "blue"])  ->  {"arms": ["red", "blue"], "prior": [[1, 1], [1, 1]]}
"""

from typing import Any

import numpy as np


def arms(bandit: Any) -> dict[str, Any]:
    """Arms of one family, each with its row of the prior.

    >>> from bayescontrol import PoissonBandit
    >>> arms(PoissonBandit(2))
    {'arms': [0, 1], 'prior': [[1.0, 1.0], [1.0, 1.0]]}
    """
    labels, width = list(bandit.labels), bandit.prior.shape[1]
    stated = bandit.family.default if bandit.stated is None else bandit.stated
    rows = np.broadcast_to(np.asarray(stated, np.float64), (len(labels), width))
    return {"arms": labels, "prior": rows.tolist()}


def gaussian(bandit: Any) -> dict[str, Any]:
    """The same, and σ; None where it is unknown.

    >>> from bayescontrol import GaussianBandit
    >>> gaussian(GaussianBandit(1, sd=None))["sd"]
    """
    return arms(bandit) | {"sd": getattr(bandit.family, "sd", None)}


def categorical(bandit: Any) -> dict[str, Any]:
    """The same, and what the categories pay.

    >>> from bayescontrol import CategoricalBandit
    >>> categorical(CategoricalBandit(1, values=[0, 5]))["values"]
    [0.0, 5.0]
    """
    return arms(bandit) | {"values": bandit.family.constants.tolist()}


def logistic(bandit: Any) -> dict[str, Any]:
    """Arms with weights: the length of a context, and the prior (mean, precision).

    >>> from bayescontrol import LogisticBandit
    >>> logistic(LogisticBandit(["red"], features=3))
    {'arms': ['red'], 'features': 3, 'prior': [0.0, 1.0]}
    """
    told = [np.asarray(part, np.float64).tolist() for part in bandit.prior or (0.0, 1.0)]
    return {"arms": list(bandit.labels), "features": bandit.features, "prior": told}


def linear(bandit: Any) -> dict[str, Any]:
    """The same, and σ.

    >>> from bayescontrol import LinearBandit
    >>> linear(LinearBandit(["red"], features=3, sd=0.5))["sd"]
    0.5
    """
    return logistic(bandit) | {"sd": bandit.link.sd}


def joint(bandit: Any) -> dict[str, Any]:
    """b[m, a] and P(m).

    >>> from bayescontrol import JointBandit
    >>> joint(JointBandit([[0.25]]))
    {'biases': [[0.25]], 'prior': [1.0]}
    """
    return {"biases": bandit.biases.tolist(), "prior": bandit.prior.tolist()}


def logit_normal(bandit: Any) -> dict[str, Any]:
    """μ, Σ and the number of particles.

    >>> from bayescontrol import LogitNormalBandit
    >>> logit_normal(LogitNormalBandit([0.0], [[1.0]], particles=50))
    {'mean': [0.0], 'covariance': [[1.0]], 'particles': 50}
    """
    mean, covariance = bandit.mean.tolist(), bandit.covariance.tolist()
    return {"mean": mean, "covariance": covariance, "particles": bandit.particles}


def tabular(modes: Any) -> dict[str, Any]:
    """The tables themselves: of modes that were planned for, what the planner found.

    >>> from bayescontrol import TabularModes
    >>> tabular(TabularModes(policy=[[[1]]], hypothesis=[[[[0.5, 0.5]]]]))["successor"]
    [[[0, 0]]]
    """
    return {
        "policy": modes.policy.tolist(),
        "hypothesis": modes.hypothesis.tolist(),
        "successor": modes.successor.tolist(),
        "start": modes.start,
        "names": None if modes.names is None else list(modes.names),
        "prior": modes.prior.tolist(),
    }


def growing(chain: Any) -> dict[str, Any]:
    """How fast the chain grows.

    >>> from bayescontrol.problems.chain import GrowingChain
    >>> growing(GrowingChain(scale=2))
    {'scale': 2}
    """
    return {"scale": chain.scale}


def own(problem: Any) -> dict[str, Any]:
    """What the problem itself says.

    >>> from bayescontrol.durable import GibbsMDP
    >>> own(GibbsMDP(2, start=0))["start"]
    0
    """
    settings: dict[str, Any] = problem.settings()
    return settings

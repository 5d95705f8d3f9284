"""Array functions, one equation each, compiled on first use.

Modules load when they are first asked for, so `import bayescontrol` stays free of Numba:
write `kernels.finite.draw(...)`, and Numba arrives with that call.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayescontrol.kernels import (
        alarm,
        arms,
        average_reward,
        bamcp,
        bandit_plan,
        bayesian_q,
        beta_law,
        blocks,
        contextual,
        divergence,
        elementary,
        finite,
        gibbs,
        gittins,
        gittins_band,
        gittins_loop,
        information_directed,
        legendre,
        linear,
        lqr,
        lqr_loop,
        mdp,
        mdp_loops,
        optimism,
        panels,
        parametric,
        particles,
        policies,
        policy_indices,
        posteriors,
        quadrature,
        random,
        riccati,
        rlearning,
        screening,
        seeds,
        separation,
        settling,
        special,
        tabular,
        td,
        transitions,
    )

__all__ = [
    "alarm",
    "arms",
    "average_reward",
    "bamcp",
    "bandit_plan",
    "bayesian_q",
    "beta_law",
    "blocks",
    "contextual",
    "divergence",
    "elementary",
    "finite",
    "gibbs",
    "gittins",
    "gittins_band",
    "gittins_loop",
    "information_directed",
    "legendre",
    "linear",
    "lqr",
    "lqr_loop",
    "mdp",
    "mdp_loops",
    "optimism",
    "panels",
    "parametric",
    "particles",
    "policies",
    "policy_indices",
    "posteriors",
    "quadrature",
    "random",
    "riccati",
    "rlearning",
    "screening",
    "seeds",
    "separation",
    "settling",
    "special",
    "tabular",
    "td",
    "transitions",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"bayescontrol.kernels.{name}")
    raise AttributeError(f"module 'bayescontrol.kernels' has no attribute {name!r}")

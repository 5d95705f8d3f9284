"""Array functions, one equation each, compiled on first use.

A module is imported on first access, so that `import bayescontrol` does not import Numba:
write `kernels.finite.draw(...)`, and Numba is loaded by that call.

In all compiled loops `p` is the random generator's state of the agent and `q` that of the
environment.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # These imports give type checkers the attributes.
    from bayescontrol.kernels import (  # noqa: F401, I001
        arms, average_reward, bandit_plan, beta_distribution, changes, counts, divergence,
        elementary, families, finite, gibbs, gibbs_learned, gittins, kalman, learned, lqr, mdp,
        parametric, particles, policies, pomdp, posteriors, quadrature, random, regression,
        restarts, riccati, scales, screening, seed_sequence, tabular, td, tree_plan, trees,
    )  # fmt: skip
else:

    def __getattr__(name: str) -> ModuleType:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None

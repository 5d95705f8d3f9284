"""Bayesian Q-learning (Dearden, Friedman & Russell 1998), with moment updating.

The return R(x,a) is normal with unknown mean q and precision τ; a row is μ, κ, α, β:

    τ ~ Gamma(α)/β,  q ~ N(μ, 1/(κ τ)):   q = μ + s T,  T Student with ν = 2α,  s² = β/(κ α)
    from y, by the best action b = arg max μ(y,·):  E[R] = μ,  Var[R] = β (κ + 1)/(κ (α - 1))

    one observation of r + γ R, by its first two moments:    δ = r + γ E[R] - μ(x,a)
    β += ½ γ² Var[R] + ½ κ δ²/(κ + 1)     μ += δ/(κ + 1)     κ += 1     α += ½

"sampling" takes arg max_a q_a, q drawn, as the control rule would if these were its modes; "vpi"
takes arg max_a μ_a + VPI_a with the myopic value of perfect information,

    VPI_a = E (q_a - μ_1)⁺,   of the best action 1 itself E (μ_2 - q_1)⁺;   both are s G_ν(z), z ≥ 0
    G_ν(z) = E (T - z)⁺ = f_ν(z) (ν + z²)/(ν - 1) - z P(T > z)        f_ν the density of T

Unlike the control rule it treats returns of pairs as independent and the uncertainty of a successor
as noise, which makes it certain too early. All past targets have equal weight, so a mean approaches
its value as n^-(1-γ). The article's other update, mixture updating, needs an integral per step.
μ = -∞ marks an action that x does not offer. Ties go to the first action.
"""

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from benchmarks.arena.agents.beta_quantiles import beta_cdf

from bayescontrol._arrays import FloatArray, UIntArray, require_between
from bayescontrol.baselines import TabularLearner
from bayescontrol.baselines.td_learning import learner_loop
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import draw
from bayescontrol.kernels.elementary import HALF_LOG_2PI, exp, log, stirling_remainder
from bayescontrol.kernels.families import number
from bayescontrol.kernels.mdp import MdpRun, respond

_NORMAL_GAMMA = number("normal_gamma")
#: The columns of a row.
MU, KAPPA, ALPHA, BETA = 0, 1, 2, 3


@leaf
def _log_density(nu: float, z: float) -> float:
    """ln f_ν(z) = ln Γ(½ν + ½)/Γ(½ν) - ½ ln πν - ½(ν + 1) ln(1 + z²/ν)."""
    h = 0.5 * nu
    # Stirling's formula avoids cancellation: a ln(1 + ½/a) + ½ ln a - ½ for the ratio.
    ratio = h * log(1.0 + 0.5 / h) - 0.5 + stirling_remainder(h + 0.5) - stirling_remainder(h)
    return ratio - HALF_LOG_2PI - 0.5 * (nu + 1.0) * log(1.0 + z * z / nu)


@leaf
def expected_excess(nu: float, z: float) -> float:
    """G_ν(z) = E (T - z)⁺ for a Student variable T, ν > 1 and z ≥ 0, to 1e-9 absolutely.

    P(T > z) = ½ I_w(½ν, ½), w = ν/(ν + z²).
    """
    if z > 1e100:
        return 0.0
    f = exp(_log_density(nu, z))
    n = nu + z * z
    tail = 0.5 * beta_cdf(0.5 * nu, 0.5, nu / n, z * z / n)
    return max(f * (nu + z * z) / (nu - 1.0) - z * tail, 0.0)


@leaf
def value_of_information(row: FloatArray, rival: float) -> float:
    """s G_ν(|μ - rival|/s): the value of knowing whether q is above or below `rival`."""
    s = math.sqrt(row[BETA] / (row[KAPPA] * row[ALPHA]))
    return s * expected_excess(2.0 * row[ALPHA], abs(row[MU] - rival) / s)


@leaf
def _best(rows: FloatArray) -> int:
    """arg max_a μ_a, the first of several."""
    best = 0
    for a in range(1, rows.shape[0]):
        if rows[a, MU] > rows[best, MU]:
            best = a
    return best


@leaf
def _sample(rows: FloatArray, state: UIntArray) -> int:
    """arg max_a q_a, q drawn."""
    best, top = 0, -math.inf
    for a in range(rows.shape[0]):
        if rows[a, MU] > -math.inf:
            q = draw(_NORMAL_GAMMA, rows[a], rows[a], state)
            if q > top:
                best, top = a, q
    return best


@leaf
def _most_valuable(rows: FloatArray) -> int:
    """arg max_a μ_a + VPI_a."""
    first = _best(rows)
    second = -math.inf
    for a in range(rows.shape[0]):
        if a != first:
            second = max(second, rows[a, MU])
    best, top = first, -math.inf
    for a in range(rows.shape[0]):
        if rows[a, MU] > -math.inf:
            rival = second if a == first else rows[first, MU]
            value = rows[a, MU] + value_of_information(rows[a], rival)
            if value > top:
                best, top = a, value
    return best


@leaf
def choose_action(rows: FloatArray, vpi: bool, x: int, state: UIntArray) -> int:
    """The action in state x, where rows[x, a] = μ, κ, α, β; `vpi` uses no random numbers."""
    return _most_valuable(rows[x]) if vpi else _sample(rows[x], state)


@leaf
def update_moments(rows: FloatArray, gamma: float, x: int, a: int, r: float, y: int) -> bool:
    """Moment updating of row (x,a); False, and unchanged, if a value would not be finite."""
    best = rows[y, _best(rows[y])]
    variance = best[BETA] * (best[KAPPA] + 1.0) / (best[KAPPA] * (best[ALPHA] - 1.0))
    row = rows[x, a]
    kappa, delta = row[KAPPA], r + gamma * best[MU] - row[MU]
    mu = row[MU] + delta / (kappa + 1.0)
    beta = row[BETA] + 0.5 * (gamma * gamma * variance + kappa * (delta / (kappa + 1.0)) * delta)
    if not (math.isfinite(mu) and math.isfinite(beta)):
        return False
    row[MU], row[KAPPA], row[ALPHA], row[BETA] = mu, kappa + 1.0, row[ALPHA] + 0.5, beta
    return True


@leaf
def run_loop(
    rows: FloatArray, gamma: float, vpi: bool, run: MdpRun, at: int, t: int
) -> tuple[int, int]:
    """Run the agent in an MDP from step t on; see the loops of `bayescontrol.kernels.td`."""
    tables, number, (p, q), actions, steps = run
    A = rows.shape[1]
    for s in range(t, actions.size):
        x = number[at]
        a = choose_action(rows, vpi, x, p)
        entry = respond(tables, at, a, A, q)
        at, r = tables.successor[entry], tables.reward[entry]
        actions[s] = a
        steps[s]["reward"], steps[s]["state"] = r, at
        y = number[at]
        if y < 0 or not update_moments(rows, gamma, x, a, r, y):
            return s, at
    return actions.size, at


class BayesianQ(TabularLearner):
    """Normal-gamma beliefs over discounted returns, by moment updating.

    `mu0`, `kappa0`, `alpha0` > 1 and `beta0` are the prior of every pair: E[q] = μ0, and q has
    variance β0/(κ0 (α0 - 1)). States, actions and masks: see `TabularLearner`.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = BayesianQ.on(mdp, gamma=0.9)
    >>> record = interact(agent, mdp.environment(), 2_000, seed=0)
    >>> float(record.observations["reward"][-300:].mean()) > 0.3
    True
    >>> agent.q_values(0)[0] > agent.q_values(0)[1]
    True
    """

    format_name: ClassVar[str] = "BayesianQ"
    fused_loop = staticmethod(learner_loop)

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        gamma: float = 0.95,
        selection: Literal["sampling", "vpi"] = "sampling",
        mu0: float = 0.0,
        kappa0: float = 1.0,
        alpha0: float = 1.5,
        beta0: float = 1.0,
        *,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        if selection not in ("sampling", "vpi"):
            raise ValueError(f"selection={selection!r}: it must be 'sampling' or 'vpi'")
        settings: dict[str, Any] = {
            "gamma": require_between("gamma", gamma, 0, 1, ends="[)"),
            "selection": selection,
            "mu0": require_between("mu0", mu0, -np.inf, np.inf, ends="()"),
            "kappa0": require_between("kappa0", kappa0, 0, np.inf, ends="()"),
            "alpha0": require_between("alpha0", alpha0, 1, np.inf, ends="()"),
            "beta0": require_between("beta0", beta0, 0, np.inf, ends="()"),
        }
        self._gamma, self._vpi = settings["gamma"], selection == "vpi"
        super().__init__(states, actions, start, allowed, settings)

    def q_values(self, x: Any) -> dict[Any, float]:
        """E[q(x,·)] of the actions that x offers."""
        row = self._rows["beliefs"][self.number(x), :, 0]
        return {a: float(row[self.actions.place(a)]) for a in self.actions_in(x)}

    def belief(self, x: Any, a: Any) -> tuple[float, float, float, float]:
        """μ, κ, α, β of a pair.

        >>> BayesianQ(1, 1).belief(0, 0)
        (0.0, 1.0, 1.5, 1.0)
        """
        row = self._rows["beliefs"][self.number(x), self.actions.place(a)]
        mu, kappa, alpha, beta = row.tolist()
        return mu, kappa, alpha, beta

    def _initial_rows(self, offered: npt.NDArray[np.bool_]) -> dict[str, FloatArray]:
        prior = [self._settings[name] for name in ("mu0", "kappa0", "alpha0", "beta0")]
        rows = np.tile(prior, (offered.size, 1))
        rows[~offered, 0] = -np.inf
        return {"beliefs": rows}

    def _choose(self, x: int, state: UIntArray) -> int:
        return choose_action(self._rows["beliefs"], self._vpi, x, state)

    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        return update_moments(self._rows["beliefs"], self._gamma, x, a, r, y)

    def _interact(self, run: MdpRun, at: int, t: int) -> tuple[int, int]:
        return run_loop(self._rows["beliefs"], self._gamma, self._vpi, run, at, t)

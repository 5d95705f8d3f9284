"""Bayesian Q-learning (Dearden, Friedman & Russell 1998), moment updating.

The return R(x,a) is normal with unknown mean q and precision τ; a row is μ, κ, α, β:

    τ ~ Gamma(α)/β,  q ~ N(μ, 1/(κ τ)):   q = μ + s T,  T Student with ν = 2α,  s² = β/(κ α)
    from y, by the best action b = arg max μ(y,·):  E[R] = μ,  Var[R] = β (κ + 1)/(κ (α - 1))

    one observation of r + γ R, by its first two moments:    δ = r + γ E[R] - μ(x,a)
    β += ½ γ² Var[R] + ½ κ δ²/(κ + 1)     μ += δ/(κ + 1)     κ += 1     α += ½

To act: `sampling` takes arg max_a q_a, q drawn; `vpi` takes arg max_a μ_a + VPI_a, where the value
of knowing q_a is what it is worth to learn that another action is best,

    VPI_a = E (q_a - μ_1)⁺,   of the best action 1 itself E (μ_2 - q_1)⁺;   both are s G_ν(z), z ≥ 0
    G_ν(z) = E (T - z)⁺ = f_ν(z) (ν + z²)/(ν - 1) - z P(T > z)        f_ν the density of T

μ = -∞ marks an action that x does not offer. Of several best actions the first is taken.
"""

import math

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import NORMAL_GAMMA, draw
from bayescontrol.kernels.beta_distribution import beta_cdf
from bayescontrol.kernels.elementary import HALF_LOG_2PI, exp, log, stirling
from bayescontrol.kernels.mdp import Tables, respond

#: The columns of a row.
MU, KAPPA, ALPHA, BETA = 0, 1, 2, 3


@leaf
def _log_density(nu: float, z: float) -> float:
    """ln f_ν(z) = ln Γ(½ν + ½)/Γ(½ν) - ½ ln πν - ½(ν + 1) ln(1 + z²/ν)."""
    h = 0.5 * nu
    # By Stirling, so that nothing large cancels: a ln(1 + ½/a) + ½ ln a - ½ for the ratio.
    ratio = h * log(1.0 + 0.5 / h) - 0.5 + stirling(h + 0.5) - stirling(h)
    return ratio - HALF_LOG_2PI - 0.5 * (nu + 1.0) * log(1.0 + z * z / nu)


@leaf
def expected_excess(nu: float, z: float) -> float:
    """G_ν(z) = E (T - z)⁺ for a Student variable T, ν > 1 and z ≥ 0, to 1e-9 absolutely.

    P(T > z) = ½ I_w(½ν, ½), w = ν/(ν + z²).

    >>> round(expected_excess(3.0, 0.0), 12)  # √3/π
    0.551328895422
    """
    if z > 1e100:
        return 0.0
    f = exp(_log_density(nu, z))
    n = nu + z * z
    tail = 0.5 * beta_cdf(0.5 * nu, 0.5, nu / n, z * z / n)
    return max(f * (nu + z * z) / (nu - 1.0) - z * tail, 0.0)


@leaf
def value_of_information(row: FloatArray, rival: float) -> float:
    """s G_ν(|μ - rival|/s): what it is worth to know on which side of `rival` q is.

    >>> import numpy as np
    >>> round(value_of_information(np.array([0.0, 1.0, 1.5, 1.5]), 0.0), 12)
    0.551328895422
    """
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
            q = draw(NORMAL_GAMMA, rows[a], rows[a], state)
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
def choose(rows: FloatArray, vpi: bool, x: int, state: UIntArray) -> int:
    """The action in state x, rows[x, a] = μ, κ, α, β; `vpi` draws nothing.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows = np.array([[[0.0, 1.0, 1.5, 1.0], [9.0, 100.0, 50.0, 1.0]]])
    >>> choose(rows, False, 0, Stream(0).state), choose(rows, True, 0, Stream(0).state)
    (1, 1)
    """
    return _most_valuable(rows[x]) if vpi else _sample(rows[x], state)


@leaf
def learn(rows: FloatArray, gamma: float, x: int, a: int, r: float, y: int) -> bool:
    """Moment updating of row (x,a); refuses, and changes nothing, beyond the doubles.

    >>> import numpy as np
    >>> rows = np.array([[[0.0, 1.0, 2.0, 1.0]]])
    >>> learn(rows, 0.5, 0, 0, 1.0, 0)
    True
    >>> rows  # δ = 1, Var[R] = 2
    array([[[0.5, 2. , 2.5, 1.5]]])
    """
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
def interact(
    rows: FloatArray,
    gamma: float,
    vpi: bool,
    tables: Tables,
    number: IntArray,
    at: int,
    t: int,
    p: UIntArray,
    q: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
    states: IntArray,
) -> tuple[int, int]:
    """Bayesian Q-learning in an MDP from step t on: as the loops of `bayescontrol.kernels.td`.

    >>> from bayescontrol.mdp import chain_mdp
    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows = np.tile([0.0, 1.0, 1.5, 1.0], (2, 2, 1))
    >>> actions, rewards, states = np.empty(50, np.int64), np.empty(50), np.empty(50, np.int64)
    >>> interact(rows, 0.5, False, chain_mdp(2).tables, np.arange(2), 0, 0,
    ...          Stream(1).state, Stream(2).state, actions, rewards, states)[0]
    50
    """
    A = rows.shape[1]
    for s in range(t, actions.size):
        x = number[at]
        a = choose(rows, vpi, x, p)
        entry = respond(tables, at, a, A, q)
        at, r = tables.successor[entry], tables.reward[entry]
        actions[s], rewards[s], states[s] = a, r, at
        y = number[at]
        if y < 0 or not learn(rows, gamma, x, a, r, y):
            return s, at
    return actions.size, at

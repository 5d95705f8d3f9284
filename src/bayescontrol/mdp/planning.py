"""Average-reward planning: gain and bias of a policy, and the best gain with certified bounds.

    gain       ρ_π(x) = lim (1/t) E_π[r_1 + … + r_t]
    bias       h(x): r_π - ρ_π + P_π h = h, with Σ_x d(x) h(x) = 0 for every stationary d
    d          d P_π = d, Σ d = 1, one for each recurrent class

    Bellman    Q(x,a) + ρ = r(x,a) + Σ_y P(y | x,a) M(y),      M(y) = max_a Q(y,a)
    T h (x)    = max_a r(x,a) + Σ_y P(y | x,a) h(y)
    bounds     min_x (T h - h)(x) ≤ ρ_π ≤ ρ* ≤ max_x (T h - h)(x),      π greedy in h

A policy is evaluated by linear systems. In a recurrent class, (I - P) with one column replaced by
ones has the gain as an unknown in place of h of that state, and its transpose gives d. The
transient states follow from (I - P_TT) h_T = r_T - ρ_T + P_TR h_R.

The bounds hold for any h and include the rounding errors. Value iteration repeats
h ← h + τ (T h - h); τ < 1 is value iteration on the chain that stays with probability 1 - τ, which
has the same h and is aperiodic. Policy iteration improves the gain first, then the bias where the
gain is already maximal. Both need a weakly communicating MDP; otherwise ρ* depends on x.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, require_between
from bayescontrol.errors import NotConverged
from bayescontrol.mdp.structure import induced, recurrent_classes, require_weakly_communicating
from bayescontrol.mdp.table import MDP
from bayescontrol.seeding import StreamLike


class RecurrentClass(NamedTuple):
    """A set of states that a policy never leaves: their indices, d(x) for all x, and the gain.

    >>> from bayescontrol.mdp import chain_mdp
    >>> [only] = stationary_distribution(chain_mdp(2), [0, 0])
    >>> only.states, only.probability, only.gain
    (array([0, 1]), array([0.5, 0.5]), 0.5)
    """

    states: IntArray
    probability: FloatArray
    gain: float


class Evaluation(NamedTuple):
    """ρ_π(x) and h(x) for every state, and the recurrent classes of the policy."""

    gain: FloatArray
    bias: FloatArray
    classes: tuple[RecurrentClass, ...]


def gain_and_bias(mdp: MDP, policy: ArrayLike) -> Evaluation:
    """Return ρ_π and h of a policy, given as action indices or as π(a | x).

    >>> mdp = MDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]])
    >>> gain_and_bias(mdp, [1, 0]).gain, gain_and_bias(mdp, [0, 0]).gain
    (array([1., 1.]), array([0., 1.]))
    """
    P, r = induced(mdp, policy)
    X = len(r)
    gain, bias = np.zeros(X), np.zeros(X)
    classes = []
    transient = np.ones(X, bool)
    for states in recurrent_classes(mdp, policy):
        rho, h, d = _evaluate_recurrent(P[states][:, states], r[states])
        gain[states], bias[states], transient[states] = rho, h, False
        probability = np.zeros(X)
        probability[states] = d
        classes.append(RecurrentClass(states, probability, rho))
    t = np.flatnonzero(transient)
    if t.size:
        solve = _Solver(_identity(t.size) - P[t][:, t])
        gain[t] = solve(P[t] @ gain)  # gain and bias are still 0 on t here
        bias[t] = solve(r[t] - gain[t] + P[t] @ bias)
    return Evaluation(gain, bias, tuple(classes))


def stationary_distribution(mdp: MDP, policy: ArrayLike) -> tuple[RecurrentClass, ...]:
    """Return d with d P_π = d for each recurrent class of the policy.

    >>> mdp = MDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]])
    >>> [c.probability for c in stationary_distribution(mdp, [0, 0])]
    [array([1., 0.]), array([0., 1.])]
    """
    return gain_and_bias(mdp, policy).classes


def _identity(n: int) -> Any:
    from scipy.sparse import eye_array  # type: ignore[import-untyped]

    return eye_array(n, format="csr")


class _Solver:
    """Solve A z = b or Aᵀ z = b with one factorisation and one step of refinement."""

    def __init__(self, matrix: Any) -> None:
        from scipy.sparse.linalg import splu  # type: ignore[import-untyped]

        self.matrix = matrix.tocsc()
        self.factors = splu(self.matrix)

    def __call__(self, b: FloatArray, transposed: bool = False) -> FloatArray:
        matrix, trans = (self.matrix.T, "T") if transposed else (self.matrix, "N")
        z = self.factors.solve(b, trans)
        return np.asarray(z + self.factors.solve(b - matrix @ z, trans), np.float64)


def _evaluate_recurrent(P: Any, r: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return ρ, h and d of an irreducible chain."""
    from scipy.sparse import csr_array, hstack

    n = len(r)
    if n == 1:
        return float(r[0]), np.zeros(1), np.ones(1)
    solve = _Solver(hstack([csr_array(np.ones((n, 1))), (_identity(n) - P)[:, 1:]]))
    h = solve(r)  # h[0] is the gain: the column of ones replaces that of state 0
    rho, h[0] = float(h[0]), 0.0
    d = solve(np.eye(1, n)[0], transposed=True)
    d = np.maximum(d, 0.0)
    d /= d.sum()
    return rho, h - d @ h, d


EPSILON = 2.0**-52


@dataclass(frozen=True, eq=False)
class Plan:
    """A solution of the Bellman equations, with certified bounds on the gain.

    >>> from bayescontrol.mdp import chain_mdp
    >>> plan = policy_iteration(chain_mdp(4))
    >>> plan
    Plan(gain 0.25, certified to 7.8e-15)
    >>> plan.lower <= 1 / 4 <= plan.upper, plan.policy
    (True, array([0, 0, 0, 0]))
    >>> float(plan.Q[2, 0]) + plan.gain == plan.Q[3].max().item()  # no reward on the way
    True
    """

    mdp: MDP
    #: The estimate of ρ*, and guaranteed bounds on ρ*.
    gain: float
    lower: float
    upper: float
    #: h(x) = M(x), relative to the first state.
    bias: FloatArray
    #: Q(x, a) of the Bellman equations; -∞ where a is unavailable.
    Q: FloatArray
    #: The index of the best action in each state, the lowest if several are best. The gain of
    #: this policy is at least `lower`.
    policy: IntArray
    #: Number of improvements of h or of the policy.
    iterations: int

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return the optimal action π*(x) by name."""
        return self.mdp.actions[int(self.policy[self.mdp.states.place(x)])]

    def optimal_actions(self, slack: float = 1e-9) -> npt.NDArray[np.bool_]:
        """Return an array [x, a]: whether Q(x, a) is maximal, up to `slack` times the scale of Q.

        Any mixture of these actions has a gain of at least ρ* minus that slack.
        """
        loss = self.Q.max(1, keepdims=True) - self.Q
        return np.asarray(loss <= slack * (1.0 + np.ptp(self.bias)))

    def __repr__(self) -> str:
        return f"Plan(gain {self.gain:.12g}, certified to {self.upper - self.lower:.2g})"


def gain_bounds(mdp: MDP, h: ArrayLike) -> tuple[float, float]:
    """Return a lower and an upper bound on ρ*(x), from any h; a better h gives tighter bounds.

    The rounding error of a sum of n products is at most n roundings of its largest term, here
    max |r| + max |h|. The same holds for the rounding error of the normalised probabilities.
    """
    values = np.array(h, np.float64)
    values -= (values.max() + values.min()) / 2.0
    rise = mdp.backup(values).max(1) - values
    margin = _margin(mdp, values)
    return float(rise.min()) - margin, float(rise.max()) + margin


def _margin(mdp: MDP, h: FloatArray) -> float:
    """Return a bound on the rounding error of T h - h."""
    largest = np.abs(mdp.rewards).max() + np.ptp(h)
    return float((2 * mdp.size.max() + 8) * EPSILON * largest)


def _plan(mdp: MDP, h: FloatArray, gain: float | None, iterations: int) -> Plan:
    """Return the plan of h; the gain is by default the middle of its bounds."""
    h = h - h[0]
    lower, upper = gain_bounds(mdp, h)
    rho = (lower + upper) / 2.0 if gain is None else gain
    Q = mdp.backup(h) - rho
    return Plan(mdp, rho, lower, upper, h, Q, Q.argmax(1).astype(np.int64), iterations)


def relative_value_iteration(
    mdp: MDP, tolerance: float = 1e-9, *, tau: float = 0.9, limit: int = 200_000
) -> Plan:
    """Compute ρ* by value iteration until upper - lower ≤ `tolerance`.

    τ < 1 makes periodic chains converge; τ = 1 is slightly faster if no policy is periodic.
    Raises `NotConverged` after `limit` sweeps.

    >>> from bayescontrol.mdp import chain_mdp
    >>> plan = relative_value_iteration(chain_mdp(4), 1e-6)
    >>> plan.lower <= 1 / 4 <= plan.upper <= plan.lower + 1e-6
    True
    """
    require_between("tolerance", tolerance, 0, np.inf, ends="(]")
    require_between("tau", tau, 0, 1, ends="(]")
    require_weakly_communicating(mdp)
    h = np.zeros(len(mdp.states))
    for n in range(limit):
        rise = mdp.backup(h).max(1) - h
        if np.ptp(rise) + 2.0 * _margin(mdp, h) <= tolerance:
            return _plan(mdp, h, None, n)
        h += tau * rise
        h -= (h.max() + h.min()) / 2.0
    lower, upper = gain_bounds(mdp, h)
    raise NotConverged(
        f"after {limit} sweeps the gain lies between {lower:.12g} and {upper:.12g}, "
        f"which is wider than tolerance={tolerance} (rounding errors alone account for "
        f"{2.0 * _margin(mdp, h):.2g}): raise tolerance or limit, or use policy_iteration"
    )


def policy_iteration(mdp: MDP, *, limit: int = 1_000) -> Plan:
    """Compute ρ* by policy iteration (Howard; Puterman, section 9.2).

    An action is replaced only by one that is better beyond rounding errors, so no policy repeats.

    >>> from bayescontrol.mdp import chain_mdp
    >>> policy_iteration(chain_mdp(10)).gain
    0.1
    """
    require_weakly_communicating(mdp)
    x = np.arange(len(mdp.states))
    penalty = np.where(mdp.allowed, 0.0, -np.inf)
    policy = (mdp.reward + penalty).argmax(1)
    for n in range(limit):
        rho, h, _ = gain_and_bias(mdp, policy)
        gains, Q = mdp.expected(rho), mdp.backup(h)  # gains: the expected gain of the next state
        slack = 8.0 * _margin(mdp, h)
        keeps_gain = gains >= gains.max(1, keepdims=True) - slack
        better_gain = gains.max(1) > gains[x, policy] + slack
        Q = np.where(keeps_gain, Q, -np.inf)
        better_bias = Q.max(1) > Q[x, policy] + slack
        best = np.where(better_gain, gains.argmax(1), np.where(better_bias, Q.argmax(1), policy))
        if (best == policy).all():
            return _plan(mdp, h, float(rho[0]), n)
        policy = best
    raise NotConverged(
        f"no optimal policy found after {limit} improvements: use relative_value_iteration"
    )

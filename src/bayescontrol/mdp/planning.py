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

The bounds hold for any h and include the rounding errors. Policy iteration improves the gain first,
then the bias where the gain is already maximal. It needs a weakly communicating MDP; otherwise ρ*
depends on x.

The Markov chain of a policy, and which states can be reached from which:

    P_π(x, y) = Σ_a π(a | x) P(y | x, a)        r_π(x) = Σ_a π(a | x) r(x, a)

    communicating          from every state some policy reaches every other state
    weakly communicating   this holds within one closed set of states, and all other states are
                           transient under every policy; then ρ* does not depend on x
    recurrent class of π   a closed set of states that π visits again and again
    unichain π             π has one recurrent class; then ρ_π does not depend on x

The first two are decided by the strongly connected components of the graph of all actions. Whether
*every* policy is unichain is not checked: that is NP-hard (Tsitsiklis 2007), and policy iteration
needs only weakly communicating, which it implies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import ArrayLike, BoolArray, FloatArray, IntArray
from bayescontrol.errors import InvalidTable, NotCommunicating, NotConverged, UnknownAction
from bayescontrol.mdp.table import MDP, TOLERANCE
from bayescontrol.seeding import StreamLike


def as_policy(mdp: MDP, policy: ArrayLike) -> FloatArray:
    """Return π(a | x) as an array [x, a]; `policy` may also be one action index per state."""
    values = np.array(policy)
    X, A = mdp.allowed.shape
    if values.shape == (X,) and values.dtype.kind in "iu":
        outside = np.flatnonzero((values < 0) | (values >= A))
        if outside.size:
            x = outside[0]
            raise UnknownAction(
                f"state {mdp.states[x]!r}: action {values[x]} is out of range, expected 0 … {A - 1}"
            )
        pi: FloatArray = np.eye(A)[values]  # probability 1 for the action of each state
    elif values.shape == (X, A) and values.dtype.kind in "biuf":
        pi = values.astype(np.float64)
        invalid = np.flatnonzero(~((pi >= 0.0).all(1) & (np.abs(pi.sum(1) - 1.0) <= TOLERANCE)))
        if invalid.size:
            x = invalid[0]
            raise InvalidTable(
                f"state {mdp.states[x]!r}: the policy {pi[x]} is not a probability distribution"
            )
        pi /= pi.sum(1, keepdims=True)
    else:
        raise InvalidTable(
            f"the policy has shape {values.shape} and type {values.dtype}: "
            f"give {X} action indices, or probabilities of shape {(X, A)}"
        )
    unavailable = np.argwhere((pi > 0.0) & ~mdp.allowed)
    if unavailable.size:
        x, a = unavailable[0]
        raise UnknownAction(
            f"the policy uses action {mdp.actions[a]!r} in state {mdp.states[x]!r}, "
            "where it is not available"
        )
    return pi


def induced(mdp: MDP, policy: ArrayLike) -> tuple[Any, FloatArray]:
    """Return the Markov chain of a policy: P_π as a sparse matrix, and r_π."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped]

    pi = as_policy(mdp, policy)
    X, A = mdp.allowed.shape
    pair = np.repeat(np.arange(X * A), mdp.size)
    weight = pi.ravel()[pair] * mdp.probability
    taken = weight > 0.0
    edges = pair[taken] // A, mdp.successor[taken]
    return csr_array((weight[taken], edges), shape=(X, X)), (pi * mdp.reward).sum(1)


def strong_components(matrix: object) -> tuple[IntArray, IntArray, IntArray]:
    """Return the edges x → y of a graph, and the number of each state's strong component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    edges = coo_array(matrix)  # faster than letting SciPy convert a dense matrix to a masked one
    _, component = connected_components(edges.tocsr(), directed=True, connection="strong")
    return edges.row, edges.col, component


def closed_sets(matrix: object) -> list[IntArray]:
    """Return the strongly connected components that no edge leaves, sorted by first state."""
    x, y, component = strong_components(matrix)
    sizes = np.bincount(component)
    is_open = np.isin(np.arange(sizes.size), component[x[component[x] != component[y]]])
    members = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    found = [members[c].astype(np.int64) for c in np.flatnonzero(~is_open)]
    return sorted(found, key=lambda states: int(states[0]))


def closed_classes(mdp: MDP) -> list[IntArray]:
    """Return the communicating sets of states that no policy leaves, as arrays of indices."""
    takes_every_action = mdp.allowed / mdp.allowed.sum(1, keepdims=True)
    return closed_sets(induced(mdp, takes_every_action)[0])


def _states_avoiding(mdp: MDP, closed: IntArray) -> IntArray:
    """Return the states from which some policy can stay outside `closed` for ever.

    This is the largest set Z in which each state has an action whose successors are all in Z.
    """
    in_Z = ~np.isin(np.arange(len(mdp.states)), closed)
    pairs = np.flatnonzero(mdp.size)
    stays = np.zeros(mdp.allowed.size, bool)
    while True:
        # stays[x A + a]: all successors of (x, a) are in Z.
        stays[pairs] = np.logical_and.reduceat(in_Z[mdp.successor], mdp.first[pairs])
        remaining = in_Z & stays.reshape(mdp.allowed.shape).any(1)
        if (remaining == in_Z).all():
            return np.flatnonzero(in_Z).astype(np.int64)
        in_Z = remaining


def require_weakly_communicating(mdp: MDP) -> None:
    """Raise `NotCommunicating` unless the MDP is weakly communicating: ρ*(x) is then constant."""
    classes = closed_classes(mdp)
    if len(classes) > 1:
        raise NotCommunicating(
            "the best average reward depends on the start: no policy leads from "
            f"{_named(mdp, classes[0])} to {_named(mdp, classes[1])}, nor back; "
            f"plan for each of the {len(classes)} closed sets of states separately"
        )
    avoiding = _states_avoiding(mdp, classes[0])
    if avoiding.size:
        raise NotCommunicating(
            "the best average reward may depend on the start: a policy can stay for ever in "
            f"{_named(mdp, avoiding)}, but no policy leads back there from "
            f"{_named(mdp, classes[0])}; remove those states, or add an action that leads there"
        )


def _named(mdp: MDP, states: Sequence[int] | IntArray) -> str:
    """Name the first three of these states for an error message."""
    names = [repr(mdp.states[int(x)]) for x in states[:3]]
    more = f" and {len(states) - 3} more" if len(states) > 3 else ""
    return f"state{'s' * (len(states) > 1)} {', '.join(names)}{more}"


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
    from scipy.sparse import eye_array

    P, r = induced(mdp, policy)
    X = len(r)
    gain, bias = np.zeros(X), np.zeros(X)
    classes = []
    transient = np.ones(X, bool)
    for states in closed_sets(P):  # the recurrent classes
        rho, h, d = _evaluate_recurrent(P[states][:, states], r[states])
        gain[states], bias[states], transient[states] = rho, h, False
        probability = np.zeros(X)
        probability[states] = d
        classes.append(RecurrentClass(states, probability, rho))
    t = np.flatnonzero(transient)
    if t.size:
        solve = _Solver(eye_array(t.size, format="csr") - P[t][:, t])
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
    from scipy.sparse import csr_array, eye_array, hstack

    n = len(r)
    if n == 1:
        return float(r[0]), np.zeros(1), np.ones(1)
    balance = eye_array(n, format="csr") - P
    solve = _Solver(hstack([csr_array(np.ones((n, 1))), balance[:, 1:]]))
    h = solve(r)  # h[0] is the gain: the column of ones replaces that of state 0
    rho, h[0] = float(h[0]), 0.0
    d = solve(np.eye(1, n)[0], transposed=True)  # Σ d = 1, and d (I - P) = 0 but for state 0
    d = np.maximum(d, 0.0)
    d /= d.sum()
    return rho, h - d @ h, d


#: The distance of 1 to the next larger double.
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

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return the optimal action π*(x) by name."""
        return self.mdp.actions[int(self.policy[self.mdp.states.place(x)])]

    def optimal_actions(self, slack: float = 1e-9) -> BoolArray:
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
    for _ in range(limit):
        rho, h, _ = gain_and_bias(mdp, policy)
        gains, Q = mdp.expected(rho), mdp.backup(h)  # gains: the expected gain of the next state
        slack = 8.0 * _margin(mdp, h)  # h has rounding errors too
        keeps_gain = gains >= gains.max(1, keepdims=True) - slack
        better_gain = gains.max(1) > gains[x, policy] + slack
        Q = np.where(keeps_gain, Q, -np.inf)
        better_bias = Q.max(1) > Q[x, policy] + slack
        best = np.where(better_gain, gains.argmax(1), np.where(better_bias, Q.argmax(1), policy))
        if (best == policy).all():
            gain, h = float(rho[0]), h - h[0]
            Q = mdp.backup(h) - gain
            return Plan(mdp, gain, *gain_bounds(mdp, h), h, Q, Q.argmax(1).astype(np.int64))
        policy = best
    raise NotConverged(f"no optimal policy found after {limit} improvements: increase limit")

"""Dynamic programming over the counts of a Bernoulli bandit.

    Q(k, j) = p_j (1 + V(k + e_j⁺)) + (1 - p_j) V(k + e_j⁻)      p_j = α_j / (α_j + β_j)
    V(k)    = max_j Q(k, j)

k holds d = 2 N counts: rewards and failures of each arm; α_j and β_j are those of the prior plus
the counts. The C(t + d - 1, d - 1) counts of t pulls are in one array, each at its number

    #k = Σ_{i<d-1} C(s_i + i, i + 1),   s_i = k_0 + … + k_i
    #(k + e_i) = #(k + e_{i+1}) + C(s_i + i, i)

which does not depend on t, so that a child is found by adding binomials. `C` is Pascal's triangle.
"""

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import leaf


@leaf
def _next(k: IntArray) -> None:
    """Replace k by the counts with the next number and the same sum; the first are (0, …, 0, t)."""
    i = 1
    while i < k.shape[0] - 1 and k[i] == 0:
        i += 1
    moved = k[0] + 1
    k[0] = 0
    k[i] -= 1
    k[i - 1] = moved


@leaf
def write_counts(t: int, table: IntArray) -> None:
    """Write all counts with the sum t to the rows of `table`, in the order of their numbers.

    >>> import numpy as np
    >>> table = np.empty((3, 2), np.int64)
    >>> write_counts(2, table)
    >>> table.tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    table[0, :] = 0
    table[0, table.shape[1] - 1] = t
    for i in range(1, table.shape[0]):
        for c in range(table.shape[1]):
            table[i, c] = table[i - 1, c]
        _next(table[i])


@leaf
def children(k: IntArray, C: IntArray, child: IntArray) -> None:
    """Write #(k + e_i), the number of the i-th child of k, to child[i].

    >>> import numpy as np
    >>> C, child = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 1, 0]]), np.empty(4, np.int64)
    >>> children(np.array([0, 0, 0, 0]), C, child)
    >>> child
    array([3, 2, 1, 0])
    """
    d, s, number = k.shape[0], 0, 0
    for i in range(d - 1):
        s += k[i]
        number += C[s + i, i + 1]
        child[i] = C[s + i, i]
    child[d - 1] = number
    for i in range(d - 2, -1, -1):
        child[i] += child[i + 1]


@leaf
def action_values(
    prior: FloatArray, k: IntArray, after: FloatArray, C: IntArray, child: IntArray, Q: FloatArray
) -> None:
    """Write Q(k, j) to Q[j]. `after` holds V after one more pull; it is empty at the last pull.

    >>> import numpy as np
    >>> k, C, Q = np.array([1, 0, 0, 0]), np.ones((5, 4), np.int64), np.empty(2)
    >>> action_values(np.ones((2, 2)), k, np.empty(0), C, np.empty(4, np.int64), Q)
    >>> Q
    array([0.66666667, 0.5       ])
    """
    has_next = after.shape[0] > 0
    if has_next:
        children(k, C, child)
    for j in range(Q.shape[0]):
        alpha, beta = prior[j, 0] + k[2 * j], prior[j, 1] + k[2 * j + 1]
        p = alpha / (alpha + beta)
        Q[j] = p
        if has_next:
            Q[j] += p * after[child[2 * j]] + (1.0 - p) * after[child[2 * j + 1]]


@leaf
def backward(
    prior: FloatArray, t: int, after: FloatArray, C: IntArray, k: IntArray, child: IntArray,
    Q: FloatArray, V: FloatArray,
) -> None:  # fmt: skip
    """Write V(k) = max_j Q(k, j) to V for all counts of t pulls; k, child and Q are scratch.

    >>> import numpy as np
    >>> V, C, k = np.empty(1), np.ones((4, 4), np.int64), np.empty(4, np.int64)
    >>> backward(np.ones((2, 2)), 0, np.empty(0), C, k, k.copy(), np.empty(2), V)
    >>> V
    array([0.5])
    """
    k[:] = 0
    k[k.shape[0] - 1] = t
    for i in range(V.shape[0]):
        if i > 0:
            _next(k)
        action_values(prior, k, after, C, child, Q)
        V[i] = Q[0]
        for j in range(1, Q.shape[0]):
            V[i] = max(V[i], Q[j])


@leaf
def forward(
    prior: FloatArray, counts: IntArray, v: FloatArray, P: FloatArray, C: IntArray,
    child: IntArray, after: FloatArray,
) -> float:  # fmt: skip
    """Add Σ v(k) P(j | k) P(k' | k, j) to after[k']; return the expected reward of this pull.

    `v` holds the probabilities of the `counts` before the pull, `P` those of the arms, P(j | k).

    >>> import numpy as np
    >>> k, C, half = np.zeros((1, 4), np.int64), np.eye(4, dtype=np.int64), np.full((1, 2), 0.5)
    >>> C[1:, 0], after = 1, np.zeros(4)
    >>> forward(np.ones((2, 2)), k, np.ones(1), half, C, np.empty(4, np.int64), after), after
    (0.5, array([0.25, 0.25, 0.25, 0.25]))
    """
    total = 0.0
    for i in range(v.shape[0]):
        children(counts[i], C, child)
        for j in range(P.shape[1]):
            alpha = prior[j, 0] + counts[i, 2 * j]
            beta = prior[j, 1] + counts[i, 2 * j + 1]
            mass, p = v[i] * P[i, j], alpha / (alpha + beta)
            total += mass * p
            after[child[2 * j]] += mass * p
            after[child[2 * j + 1]] += mass * (1.0 - p)
    return total

"""What is known without a run: expected evidence under a policy, and spells of two policies.

    E d_t(m*‖m) = Σ_{τ<t} Σ_x P(x_τ = x) G(x),    G(x) = Σ_a π(a|x) KL( P(·|m*,x,a) ‖ P(·|m,x,a) )
    spells(k)     P1 for k steps, P2 for one, and again: a policy of (x, steps since)

Three steps of P1 lead from A0 into B; two do not, and P2 goes back.
"""

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.rates import mean_rates
from bayescontrol.convergence.worlds import World
from bayescontrol.experiments.chains import acting, chain
from bayescontrol.problems.tabular import Labels, TabularModes


def expected_divergences(modes: TabularModes, true: int, steps: int) -> FloatArray:
    """E d_t(m*‖m) while all modes act by the policy of `true`, as an array [t, m].

    >>> from bayescontrol.problems.diagrams import core_diagram
    >>> only_p2 = acting(core_diagram(), core_diagram().policy[1])
    >>> expected_divergences(only_p2, 0, 2).round(3).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.339], [0.0, 0.0, 0.678]]
    """
    policy = modes.policy[true]
    P = chain(modes, policy, true)
    G = np.einsum("xa,mxa->xm", policy, World(modes, true).divergence)
    p = np.eye(len(P))[modes.start]
    terms = []
    for _ in range(steps):
        terms.append(p @ G)
        p = p @ P
    return np.concatenate([np.zeros((1, len(modes))), np.cumsum(terms, axis=0)])


def rate(modes: TabularModes, true: int, other: int) -> float:
    """The evidence against `other` in the long run, in nats a step, by the policy of `true`.

    >>> from bayescontrol.problems.diagrams import core_diagram
    >>> round(rate(core_diagram(), 0, 1), 4)
    0.1356
    """
    return float(mean_rates(World(modes, true), true)[other])


def spells(modes: TabularModes, k: int) -> TabularModes:
    """The same hypotheses; the first policy acts for k steps, the second for one, for ever.

    >>> from bayescontrol.problems.diagrams import core_diagram
    >>> [round(rate(spells(core_diagram(), k), 0, 1), 4) for k in (1, 2, 3, 4)]
    [0.0, 0.0, 0.0847, 0.1356]
    """
    _, X, A = modes.policy.shape
    phases, names = k + 1, modes.labels.situations
    after = (np.arange(phases) + 1) % phases * X
    successor = after[:, None, None, None] + modes.successor
    policy = np.concatenate([*[modes.policy[0]] * k, modes.policy[1]])
    many = TabularModes(
        np.broadcast_to(policy, (len(modes), phases * X, A)),
        np.tile(modes.hypothesis, (1, phases, 1, 1)),
        successor.reshape(phases * X, A, -1),
        start=modes.start,
        names=modes.names,
        prior=modes.prior,
        labels=Labels(
            tuple(f"{x}, step {n}" for n in range(phases) for x in names), *modes.labels[1:]
        ),
    )
    return acting(many, many.policy[0])

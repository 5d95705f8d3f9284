"""Where the predictions of two modes differ, and by how much.

    differ   |p_o - q_o| > tolerance · max(p_o, q_o)  for some o with p_o > 0
    D        KL(p ‖ q) = Σ_o p_o ln p_o / q_o, zero where they do not differ

Only what can happen in the world of p counts: where p_o = 0 for the rest, q_o has nothing left.
"""

from bayescontrol.arrays import FloatArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.divergence import relative_entropy


@leaf
def differ(p: FloatArray, q: FloatArray, tolerance: float) -> bool:
    """Whether two predictions differ in what the first holds possible.

    >>> import numpy as np
    >>> differ(np.array([0.5, 0.5]), np.array([0.5 + 1e-15, 0.5]), 1e-12)
    False
    """
    for o in range(p.shape[0]):
        if p[o] > 0.0 and abs(p[o] - q[o]) > tolerance * max(p[o], q[o]):
            return True
    return False


@jit
def compare(
    law: FloatArray, hypothesis: FloatArray, tolerance: float, nats: FloatArray, differs: FloatArray
) -> None:
    """Fill nats[m, x, a] = D and differs[m, x, a] for every mode m against one law[x, a, o].

    >>> import numpy as np
    >>> law, others = np.array([[[1.0, 0.0]]]), np.array([[[[1.0, 0.0]]], [[[0.5, 0.5]]]])
    >>> nats, differs = np.empty((2, 1, 1)), np.empty((2, 1, 1), bool)
    >>> compare(law, others, 1e-12, nats, differs)
    >>> nats.ravel(), differs.ravel()
    (array([0.        , 0.69314718]), array([False,  True]))
    """
    modes, situations, actions, _ = hypothesis.shape
    for m in range(modes):
        for x in range(situations):
            for a in range(actions):
                differs[m, x, a] = differ(law[x, a], hypothesis[m, x, a], tolerance)
                nats[m, x, a] = 0.0
                if differs[m, x, a]:
                    nats[m, x, a] = relative_entropy(law[x, a], hypothesis[m, x, a])

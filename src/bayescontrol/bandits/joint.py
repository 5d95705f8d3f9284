"""Arms drawn jointly: finitely many hypotheses about all biases at once.

    P(o = 1 | m, a) = b[m, a]        mode m pulls arg max_a b[m, a]
    P(m | âo_≤t) ∝ P(m) Π_t b[m, a_t]^(o_t) (1 - b[m, a_t])^(1 - o_t)

A pull of one arm tells about the others, as far as the hypotheses tie them together. It is a
tabular class: exact, and with a compiled loop.
"""

from hashlib import sha256
from operator import index
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.family import number
from bayescontrol.errors import BadEvidence, InvalidTable
from bayescontrol.problems.description import ModelKind, SettingDoc
from bayescontrol.problems.names import Names
from bayescontrol.problems.tabular import TabularEnvironment, TabularModes


class JointBandit(TabularModes):
    """M joint hypotheses about N Bernoulli arms: `biases[m, a]`, with prior P(m).

    The names of the modes hold a digest of their biases: no saved belief is taken for one about
    other biases. Its prior is part of a saved belief.

    >>> bandit = JointBandit([[0.9, 0.1], [0.1, 0.9]])        # one is good, the other is not
    >>> agent = bandit.agent()
    >>> agent.observe(0, 0)                                   # arm 0 fails: so arm 1 is good
    >>> {a: round(p, 12) for a, p in agent.action_probabilities().items()}
    {0: 0.1, 1: 0.9}
    >>> bandit.expected(agent.belief.posterior()).round(6)
    array([0.18, 0.82])
    """

    model_kind: ClassVar[ModelKind] = ModelKind(
        "joint-bandit",
        "Arms 0, 1, … that pay 0 or 1, under one of M joint hypotheses.",
        {
            "biases": SettingDoc(
                "M lists of one number for each arm",
                "biases[m][a]: the probability that arm a pays 1 if hypothesis m is true.",
            ),
            "prior": SettingDoc("list of M probabilities", "P(m). Default: uniform."),
        },
        example={"biases": [[0.9, 0.1], [0.1, 0.9]], "prior": [0.5, 0.5]},
        observation=1,
        feedback="0 or 1",
        outcomes=lambda _: 2,
    )

    def __init__(self, biases: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> None:
        try:
            b = np.array(biases, np.float64) + 0.0  # -0.0 is 0.0, in a digest too
        except (TypeError, ValueError) as error:
            raise InvalidTable(f"biases: {error}") from None
        if b.ndim != 2 or not b.size:
            raise InvalidTable(f"biases of shape {b.shape}: give biases[hypothesis, arm]")
        bad = np.argwhere(~((b >= 0.0) & (b <= 1.0)))
        if bad.size:
            m, a = bad[0]
            raise InvalidTable(f"biases[{m}, {a}] is {b[m, a]:g}: a bias is in [0, 1]")
        #: b[m, a] = P(o = 1 | m, a).
        self.biases: FloatArray = b
        self._labels = Names("arm", b.shape[1])
        policy = np.zeros(b.shape)
        policy[np.arange(len(b)), b.argmax(1)] = 1.0
        names = [f"m{m}#{sha256(row.tobytes()).hexdigest()[:8]}" for m, row in enumerate(b)]
        hypothesis = np.stack([1.0 - b, b], -1)[:, None]
        super().__init__(policy[:, None, :], hypothesis, names=names, prior=prior)

    def _cell(self, table: npt.NDArray[Any], x: int, a: Any, o: Any) -> Any:
        r = number(o, "0 or 1")
        if r not in (0.0, 1.0):
            raise BadEvidence(f"reward {o!r}: a Bernoulli arm pays 0 or 1")
        return super()._cell(table, x, self._labels.place(a), int(r))

    def observation_probabilities(self, x: int, a: int) -> dict[int, FloatArray]:
        """P(o | m, a) for all m, by observation."""
        return super().observation_probabilities(x, self._labels.place(a))

    def environment(self, m: int | npt.ArrayLike) -> TabularEnvironment:
        """The world of hypothesis m, or one with biases of its own, which no mode need have.

        >>> bandit = JointBandit([[0.9, 0.1], [0.1, 0.9]])
        >>> bandit.environment(1)
        TabularEnvironment(mode 1 of JointBandit(2 hypotheses about 2 arms), situation 0)
        >>> bandit.environment([0.4, 0.6])
        TabularEnvironment(mode 0 of JointBandit(1 hypotheses about 2 arms), situation 0)
        """
        which: Any = m
        try:
            which = index(which)
        except TypeError:
            world = JointBandit([which])
        else:
            return super().environment(which)
        given, arms = world.biases.shape[1], self.biases.shape[1]
        if given != arms:
            raise InvalidTable(f"{given} biases for {arms} arms: give one for each")
        return TabularEnvironment(world, 0)

    def expected(self, v: FloatArray) -> FloatArray:
        """E[o | a] for every arm, when the hypotheses have probabilities v."""
        return np.asarray(v @ self.biases)

    def settings(self) -> dict[str, Any]:
        """Return b[m, a] and P(m) as plain values, as logs store them."""
        return {"biases": self.biases.tolist(), "prior": self.prior.tolist()}

    def __repr__(self) -> str:
        modes, arms = self.biases.shape
        return f"JointBandit({modes} hypotheses about {arms} arms)"

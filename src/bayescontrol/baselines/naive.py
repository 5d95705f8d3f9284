"""The naive Bayesian mixture: an agent that takes its own actions for evidence.

    w_m(ao_<t a_t)  ∝  P(a_t | m, x) w_m(ao_<t)         and then, as the rule does,
    w_m(ao_≤t)      ∝  P(o_t | m, x, a_t) w_m(ao_<t a_t)

It minimises the relative entropy D. Having drawn a mode and done what it would do, it finds
that the mode predicted this well, and believes in it more: it deludes itself.
"""

from typing import Any, ClassVar, TypeVar

from bayescontrol.protocols import Policy
from bayescontrol.rule import ControlRule

M = TypeVar("M", bound=Policy[Any, Any])
X = TypeVar("X")
A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the paper's symbol


class NaiveMixture(ControlRule[M, X, A, O]):
    """The control rule without the hat: P(m | ao_<t a_t) instead of P(m | âo_<t â_t).

    Two boxes; each expert knows where the prize is and picks it. Having picked a box, the
    naive agent is certain that the prize is in it.

    >>> from bayescontrol import DiscreteMode, FiniteBelief, Stream
    >>> def expert(box):
    ...     return DiscreteMode(lambda x: {box: 1.0}, lambda x, a: {a == box: 1.0})
    >>> agent = NaiveMixture(FiniteBelief([expert("left"), expert("right")]))
    >>> agent.act(Stream(0)) in ("left", "right"), sorted(agent.belief.posterior().tolist())
    (True, [0.0, 1.0])
    """

    format_name: ClassVar[str] = "NaiveMixture"

    def issue(self, a: A) -> None:
        """P(m | ao_<t a_t) ∝ P(a_t | m, x) P(m | ao_<t): the mistake."""
        self.witness(self.x, a)

"""The naive Bayesian mixture: an agent that takes its own actions for evidence.

    w_m(ao_<t a_t)  ∝  P(a_t | m, x) w_m(ao_<t)         and then, as the rule does,
    w_m(ao_≤t)      ∝  P(o_t | m, x, a_t) w_m(ao_<t a_t)

The mixture minimises the relative entropy D. It draws a mode and takes the action of this mode,
then treats the action as evidence: the mode predicted it well, so the agent believes in the mode
more. The agent deludes itself.
"""

from typing import ClassVar

from bayescontrol.rule import A, ControlRule, M, O, X


class NaiveMixture(ControlRule[M, X, A, O]):
    """The control rule without the hat: P(m | ao_<t a_t) instead of P(m | âo_<t â_t).

    Example: each of two experts believes that the prize is in its box, and picks this box. After
    picking a box, the naive agent is certain that the prize is in it.

    >>> from bayescontrol import DiscreteMode, FiniteBelief, Stream
    >>> def expert(box):
    ...     return DiscreteMode(lambda x: {box: 1.0}, lambda x, a: {a == box: 1.0})
    >>> agent = NaiveMixture(FiniteBelief([expert("left"), expert("right")]))
    >>> agent.act(Stream(0)) in ("left", "right"), sorted(agent.belief.posterior().tolist())
    (True, [0.0, 1.0])
    """

    format_name: ClassVar[str] = "NaiveMixture"

    def issue(self, a: A) -> None:
        """P(m | ao_<t a_t) ∝ P(a_t | m, x) P(m | ao_<t): condition on the agent's own action."""
        self.witness(self.x, a)

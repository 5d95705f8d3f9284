"""Two small classes in which an agent that believes its own actions deludes itself.

    prize or frog    m: the prize is in box m     P(a | m) = δ(a, m)
                     P(prize | m, a) = r if a = m, else 1 - r
    three modes      m: the left lever pays, the right one, neither; P(m) = .5, .3, .2

An expert opens the box that holds the prize. Conditioned on its own pick a, an agent made of
such experts has P(m = a | a) = 1: it is sure of the prize before it looks. Intervened on,
P(m = a | â) = P(m = a) = 1/2.
"""

from typing import Final

from bayescontrol.errors import InvalidTable
from bayescontrol.problems.tabular import TabularModes

#: The observations of `prize_or_frog`.
FROG: Final = 0
PRIZE: Final = 1

#: P(m) of `three_modes`.
THREE_MODES_PRIOR: Final = (0.5, 0.3, 0.2)


def prize_or_frog(reliability: float = 0.9) -> TabularModes:
    """Two boxes, one prize: P(a | m) = δ(a, m), P(prize | m, a) = r if a = m, else 1 - r.

    `reliability` is r in (1/2, 1], how surely an opened box shows what it holds. With r = 1
    the naive agent contradicts itself: its own pick has ruled out the other box, the frog
    rules out this one, and no mode is left (`ImpossibleObservation`). With r < 1 it goes on,
    and takes every frog for an illusion.

    >>> modes = prize_or_frog()
    >>> modes.likelihoods(x=0, a=0, o=PRIZE)
    array([0.9, 0.1])
    >>> from bayescontrol import NaiveMixture
    >>> naive, causal = modes.agent(kind=NaiveMixture), modes.agent()
    >>> for agent in (naive, causal):
    ...     agent.issue(0)
    >>> naive.belief.posterior(), causal.belief.posterior()
    (array([1., 0.]), array([0.5, 0.5]))
    """
    if not 0.5 < reliability <= 1.0:
        raise InvalidTable(
            f"prize_or_frog(reliability={reliability}): a box shows what it holds with a "
            "probability above 1/2, at most 1"
        )
    r = reliability
    prize = [[r, 1.0 - r], [1.0 - r, r]]
    return TabularModes(
        policy=[[[1.0, 0.0]], [[0.0, 1.0]]],
        hypothesis=[[[[1.0 - p, p] for p in boxes]] for boxes in prize],
        names=("prize left", "prize right"),
    )


def three_modes() -> TabularModes:
    """Two levers that pay with P(1 | m, a) = .7 or .3; each mode pulls what it thinks good.

        mode      P(1 | left)    P(1 | right)   P(left)
        left      .7             .3             .9
        right     .3             .7             .1
        neither   .3             .3             .5

    All probabilities are positive, so nothing is ever ruled out; and yet a naive agent ends
    far from where the evidence leads.

    >>> agent = three_modes().agent(THREE_MODES_PRIOR)
    >>> {a: round(p, 12) for a, p in agent.action_probabilities().items()}
    {0: 0.58, 1: 0.42}
    """
    pays = [[0.7, 0.3], [0.3, 0.7], [0.3, 0.3]]
    left = [0.9, 0.1, 0.5]
    return TabularModes(
        policy=[[[p, 1.0 - p]] for p in left],
        hypothesis=[[[[1.0 - q, q] for q in levers]] for levers in pays],
        names=("left", "right", "neither"),
    )

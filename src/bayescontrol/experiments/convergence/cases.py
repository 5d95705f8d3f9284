"""Six classes of modes, the true one of each, and what is to be expected.

five modes        all others are refuted by the policy of m*, or act as it does
goal worlds       a 5 × 5 grid, the goal in one of the corners
chain             rewards for five equal actions in a row
bias grid         a mode that m* cannot refute acts differently, and refutes itself
two policies      two modes that nothing they do tells apart, and that act differently
trap              a third mode may lead to where nothing can be told apart any more
"""

from functools import cache
from typing import Final, NamedTuple

from bayescontrol.bandits.bias_grid import bias_grid
from bayescontrol.convergence.verdict import Outcome, Verdict, check
from bayescontrol.experiments.divergence.controller import TRUE, controller
from bayescontrol.mdp.modes import goal_worlds
from bayescontrol.problems.chain import chain
from bayescontrol.problems.diagrams import consistency_diagram, trap
from bayescontrol.problems.tabular import TabularModes

#: The length of the chain.
LENGTH: Final = 5
CASES: Final = {
    "five modes": Outcome.THEOREM,
    "goal worlds": Outcome.THEOREM,
    "chain": Outcome.THEOREM,
    "bias grid": Outcome.SETTLES,
    "two policies": Outcome.NEVER,
    "trap": Outcome.NEVER,
}
#: What each class is, in words.
ABOUT: Final = {
    "five modes": "three levers, five guesses which of them wins how often",
    "goal worlds": "a 5 × 5 grid, the goal in one of the corners",
    "chain": f"a reward for {LENGTH} equal actions in a row, all A or all B",
    "bias grid": "two arms that win with .2, .5 or .8 each",
    "two policies": "predictions agree where both modes stay, actions do not",
    "trap": "a third mode may lead to where nothing can be told apart",
}
#: The outcomes for people to read.
WORDS: Final = {
    Outcome.THEOREM: "it settles, by the theorem",
    Outcome.SETTLES: "it settles, though the theorem does not cover it",
    Outcome.UNDECIDED: "undecided",
    Outcome.NEVER: "it may never settle",
}


class Case(NamedTuple):
    """A class, and the number of its true mode.

    >>> case("bias grid").modes.name(case("bias grid").true)
    '(.8, .5)'
    """

    modes: TabularModes
    true: int


@cache
def case(name: str) -> Case:
    """The class of that name.

    >>> case("chain")
    Case(modes=TabularModes(2 modes, 9 situations, 2 actions, 2 observations), true=0)
    """
    if name == "five modes":
        return Case(controller(), TRUE)
    if name == "goal worlds":
        return Case(goal_worlds(5, 5, goals=4), 0)
    if name == "chain":
        return Case(chain(LENGTH), 0)
    if name == "bias grid":
        return Case(bias_grid(), 7)
    return Case(consistency_diagram() if name == "two policies" else trap(), 0)


@cache
def _verdict(name: str) -> Verdict:
    return check(case(name).modes)


def outcome(name: str) -> Outcome:
    """The exact verdict on the class when its true mode is the world: that of its worst pair.

    >>> outcome("bias grid").name
    'SETTLES'
    """
    true = case(name).true
    return max(pair.outcome for pair in _verdict(name).pairs if pair.true == true)

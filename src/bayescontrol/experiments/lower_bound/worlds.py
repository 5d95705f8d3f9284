"""Three worlds, each met by the control rule and by the naive mixture.

    three levers     each mode pulls its own nine times in ten; it pays a little more there
    prize or frog    two boxes, what they show is right three times in four
    bias grid        two arms, biases .2, .5 or .8 each: nine modes

    naive     P(m | ao_≤t) ∝ P(m) Π_τ P(a_τ | m, x_τ) P(o_τ | m, x_τ, a_τ)

Sharp policies and weak evidence are where an agent errs that learns from its own actions.
"""

from functools import cache
from typing import Final, NamedTuple

import numpy as np

from bayescontrol.bandits.bias_grid import bias_grid
from bayescontrol.problems.prize import prize_or_frog
from bayescontrol.problems.tabular import TabularModes

#: How often a box shows what it holds.
RELIABILITY: Final = 0.75
AGENTS: Final = ("rule", "naive")
#: What a mode expects and does, by world.
DOES: Final = {
    "three levers": "its own lever wins with .6, the others with .4; pulls it 9 times in 10",
    "prize or frog": "the prize is in its own box, seen 3 times in 4; opens it",
    "bias grid": "two arms win with .2, .5 or .8 each; pulls the better one",
}


class World(NamedTuple):
    """A class of modes, all as likely, and the number of the true one.

    >>> World(prize_or_frog(), 0).true
    0
    """

    modes: TabularModes
    true: int

    def of(self, agent: str) -> TabularModes:
        """The class as the agent of that name learns it."""
        return naive(self.modes) if agent == "naive" else self.modes


@cache
def worlds() -> dict[str, World]:
    """The three worlds by name.

    >>> {name: world.modes.name(world.true) for name, world in worlds().items()}
    {'three levers': 'm0', 'prize or frog': 'prize left', 'bias grid': '(.8, .5)'}
    """
    return {
        "three levers": World(levers(), 0),
        "prize or frog": World(prize_or_frog(RELIABILITY), 0),
        "bias grid": World(bias_grid(), 7),
    }


def levers() -> TabularModes:
    """Three levers, three modes: P(m's own lever | m) = .9, and P(win | m, a) = .6 on it, else .4.

    >>> levers().likelihoods(0, a=1, o=1)
    array([0.4, 0.6, 0.4])
    """
    own = np.eye(3, dtype=bool)
    pays = np.where(own, 0.6, 0.4)[:, None]
    return TabularModes(np.where(own, 0.9, 0.05)[:, None], np.stack([1.0 - pays, pays], axis=-1))


def naive(modes: TabularModes) -> TabularModes:
    """The same class for an agent that takes its own actions for evidence: P(a | m, x) counts.

    The rule over this class is the naive mixture, in the compiled loop: an action and its
    observation are learnt from at once. Predictions and policies are those of `modes`.

    >>> naive(levers()).likelihoods(0, a=1, o=1).round(3)
    array([0.02, 0.54, 0.02])
    """
    twin = TabularModes(
        modes.policy, modes.hypothesis, modes.successor,
        start=modes.start, names=modes.names, prior=modes.prior, labels=modes.labels,
    )  # fmt: skip
    twin.by_mode = np.ascontiguousarray(np.moveaxis(modes.policy, 0, -1)[:, :, None] * twin.by_mode)
    return twin

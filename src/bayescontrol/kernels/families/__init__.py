"""The families of rewards, one kernel file each. `kernels.arms` selects a family by its number.

A file defines, for one arm with the posterior row `row`:

    draw(constants, row, rng_state)         draw the mean reward m of the arm
    learn(constants, row, r)                update the row with the reward r, in place
    log_predictive(constants, row, r)       ln P(r | row), a density if rewards are continuous
    respond(constants, truth, rng_state)    draw a reward of an arm with these true parameters

`constants` are the known parameters of the family: a standard deviation, or the possible rewards.
If drawn means can be equal as doubles, or in the wrong order, it also defines

    needs_log(row)                          whether m must be compared on a logarithmic scale
    log_mean(row, rng_state)                LOG_UNIT · ln m of the m that `draw` would draw; any
                                            other increasing function of m will do

A family whose rows are not only parameters of a beta, gamma or Dirichlet distribution also defines

    temper(row, temperature, out)           write the row for draws at this temperature; `out` may
                                            be `row`
"""

from typing import Final

#: The files in this folder, in the order of their numbers: the list to extend.
FAMILIES: Final = (
    "bernoulli",
    "gaussian",
    "normal_gamma",
    "poisson",
    "exponential",
    "categorical",
    "geometric",
)
#: Arms with a smaller shape, or a rate outside this range, are compared by logarithms.
MIN_SHAPE, MIN_RATE, MAX_RATE = 0.5, 1e-280, 1e280
#: The kinds of densities of mean rewards, for `kernels.posteriors`.
BETA, GAMMA, INVERSE_GAMMA, NORMAL, STUDENT = 0, 1, 2, 3, 4


def number(name: str) -> int:
    """Return the number of a family.

    >>> number("bernoulli")
    0
    """
    return FAMILIES.index(name)

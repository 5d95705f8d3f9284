"""Actions that an agent over context trees has not tested where it spends its time.

    c            a context: the latest symbols before an action, a suffix of the history
    n(c, a)      how often the action a was taken in the context c
    D(c) = n(c, a_t) / t                               by how much a policy with a in c differs
    n(c, a) < min(t nats, ln 1000) / TRIAL             a is untested in c, if D(c) >= distance

A tree that splits off the context c after the action a predicts the other cycles as the posterior
does, and if its leaf promises enough, its best policy takes a in c. So a cycle is unresolved if
some action is untested in some context c of it: such a tree predicts as well as the belief does,
and would act otherwise in the share D(c) of the cycles, its distance in total variation. A trial
counts as a quarter of a nat. Like a mode of a finite class, the tree is refuted by `nats` a step,
or by 1000 : 1 in all. That is a heuristic: a trial may tell more, or less.

A share of 0 does not show that all actions were tested. Contexts in which the agent spends less of
its time do not count, nor do those with several usual actions, none of which reaches `distance`.
If the memory is full, trials in shorter contexts stand for those in longer ones.
"""

from bayescontrol.beliefs.unresolved import REFUTED

#: The evidence of a trial in nats, and the defaults of `unresolved`: chosen on other worlds than
#: those of the experiments, see `benchmarks/exploration.py`.
TRIAL, NATS, DISTANCE = 0.25, 1e-3, 0.2


def trials_needed(
    steps: int, nats: float = NATS, distance: float = DISTANCE
) -> tuple[float, float]:
    """Return how often a context must have occurred, and how many trials each action needs.

    >>> trials_needed(2000)
    (400.0, 8.0)
    """
    return distance * steps, min(steps * nats, REFUTED) / TRIAL

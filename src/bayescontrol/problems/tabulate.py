"""Modes of any make as tables: every situation that can come up is visited once.

    start    x_0, or the modes' private states (s_1, …, s_M)
    step     for every a with P(a | m, x) > 0 and every o with P(o | m', x, a) > 0, m and m' any
             modes: x' = T(x, a, o)

What is not reached that way is not in the tables, and never comes up. In the tables an action
that no mode takes in x does nothing: x stays, and all modes expect the first observation. Where
a mode says nothing of o and others do, it expects an observation of its own, "nothing", after
which x stays: there it differs from them. How modes are asked: `answers`.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import BayesControlError, InvalidTable, MissingCapability
from bayescontrol.mode_queries import NOTHING, Advance, AllAnswer, EachAnswers, Laws, as_answers
from bayescontrol.problems.tabular import Labels, TabularMode, TabularModes
from bayescontrol.rule import ControlRule
from bayescontrol.situations import as_advance

#: Action -> what each mode expects, and where each observation leads.
Steps: TypeAlias = dict[Any, tuple[Laws, dict[Any, int]]]

#: The largest hypothesis table, in numbers of eight bytes.
CELLS: Final = 100_000_000


class TooManySituations(BayesControlError, ValueError):
    """More situations than a table should have; perhaps there is no end of them.

    >>> from bayescontrol import DiscreteMode
    >>> clock = DiscreteMode(lambda t: {"wait": 1.0}, lambda t, a: {"tick": 1.0})
    >>> tabulate([clock], 0, lambda t, a, o: t + 1, limit=100)
    Traceback (most recent call last):
    bayescontrol.problems.tabulate.TooManySituations: more than limit=100 situations can come up, \
the last one found was 100: raise the limit, let `advance` forget what the modes do not look at, \
or check the class by simulation (bayescontrol.convergence.sampled_check)
    """


def tabulate(
    modes: Any,
    situation: Any = None,
    advance: Advance | None = None,
    *,
    prior: npt.ArrayLike | None = None,
    limit: int = 10_000,
) -> TabularModes:
    """policy[m, x, a], hypothesis[m, x, a, o] and T[x, a, o] of modes with exact probabilities.

    `modes` is a list of modes, one object that answers for all of them, or a `ControlRule` over
    a `FiniteBelief` that has seen nothing: then situation, `advance` and prior are its own. A
    class that is tabular already comes back as it is. Actions and observations are numbered in
    their natural order if they have one, else as they come up; situations as they come up, the
    start first. Their labels are what `str` makes of them.

    >>> from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
    >>> def walker(name, step, pays):  # positions 0, 1, 2 on a ring, one of which pays
    ...     return DiscreteMode(lambda x: {step: 1.0}, lambda x, a: {x == pays: 1.0}, name)
    >>> agent = ControlRule(FiniteBelief([walker("up", 1, pays=2), walker("down", -1, pays=0)]),
    ...                     situation=0, advance=lambda x, a, o: (x + a) % 3)
    >>> modes = tabulate(agent)
    >>> modes
    TabularModes(2 modes, 3 situations, 2 actions, 2 observations)
    >>> modes.names, modes.labels
    (('up', 'down'), Labels(situations=('0', '1', '2'), actions=('-1', '1'), \
observations=('False', 'True')))
    """
    if isinstance(modes, ControlRule):
        if type(modes).issue is not ControlRule.issue:
            raise MissingCapability(
                f"{type(modes).__name__} takes its own actions for evidence: what is said of the "
                "control rule does not hold for it; give a ControlRule"
            )
        if situation is not None or advance is not None or prior is not None:
            raise InvalidTable("situation, advance and prior are the agent's own: leave them out")
        return _of_agent(modes, limit)
    if isinstance(modes, TabularModes):
        situation = modes.start if situation is None else situation
        prior = modes.prior if prior is None else prior
        if advance in (None, modes.advance):
            return _restarted(modes, situation, prior)
    if situation is None and advance is None and _are_of_one_table(modes):
        situation, advance = modes[0].modes.start, modes[0].modes.advance
    answers = as_answers(modes)
    return _tables(answers, situation, as_advance(situation, advance), prior, limit)


def _are_of_one_table(modes: Any) -> bool:
    """Single modes of a tabular class live among its situations."""
    return (
        isinstance(modes, list | tuple)
        and bool(modes)
        and all(isinstance(mode, TabularMode) and mode.modes is modes[0].modes for mode in modes)
    )


def _of_agent(agent: ControlRule[Any, Any, Any, Any], limit: int) -> TabularModes:
    belief = agent.belief
    if not isinstance(belief, FiniteBelief):
        raise MissingCapability(
            f"{type(belief).__name__} is not a finite belief: its modes cannot be put in a table; "
            "check it by simulation (bayescontrol.convergence.sampled_check)"
        )
    if belief.count:
        raise InvalidTable(
            f"the agent has seen {belief.count} observations: give one that has seen none"
        )
    return tabulate(belief.modes, agent.x, agent.advance, prior=belief.prior, limit=limit)


def _restarted(modes: TabularModes, start: int, prior: npt.ArrayLike) -> TabularModes:
    if start == modes.start and np.array_equal(prior, modes.prior):
        return modes
    return TabularModes(
        modes.policy, modes.hypothesis, modes.successor,
        start=start, names=modes.names, prior=prior, labels=modes.labels,
    )  # fmt: skip


def _tables(
    answers: EachAnswers | AllAnswer,
    situation: Any,
    advance: Advance,
    prior: npt.ArrayLike | None,
    limit: int,
) -> TabularModes:
    start = answers.start(situation)
    numbers: dict[Hashable, int] = {_hashable(start): 0}
    policies: list[Laws] = []
    steps: list[Steps] = []
    situations = [start]
    for x in situations:  # which grow on the way
        policies.append(answers.policies(x))
        here: Steps = {}
        for a in dict.fromkeys(a for law in policies[-1] for a in law):
            laws = answers.hypotheses(x, a)
            after: dict[Any, int] = {}
            for o in dict.fromkeys(o for law in laws for o in law):
                y = answers.advance(x, a, o, laws, advance)
                after[o] = numbers.setdefault(_hashable(y), len(numbers))
                if after[o] == len(situations):
                    if after[o] >= limit:
                        raise _too_many(f"more than limit={limit} situations can come up", y)
                    situations.append(y)
            here[a] = laws, after
        steps.append(here)
    return _filled(answers.names, situations, policies, steps, prior)


def _filled(
    names: Sequence[str],
    situations: Sequence[Any],
    policies: Sequence[Laws],
    steps: Sequence[Steps],
    prior: npt.ArrayLike | None,
) -> TabularModes:
    actions = _in_order(a for here in steps for a in here)
    seen = _in_order(o for here in steps for _, after in here.values() for o in after)
    silent = any(not law for here in steps for laws, _ in here.values() for law in laws)
    observations = [*seen, NOTHING] if silent else seen
    shape = len(names), len(situations), len(actions), len(observations)
    if np.prod(shape, dtype=float) > CELLS:
        sizes = " × ".join(map(str, shape))
        raise _too_many(f"a table of {sizes} probabilities is too large", situations[-1])
    policy, hypothesis = np.zeros(shape[:3]), np.zeros(shape)
    successor = np.repeat(np.arange(shape[1]), shape[2] * shape[3]).reshape(shape[1:])
    place_a = {a: i for i, a in enumerate(actions)}
    place_o = {o: i for i, o in enumerate(observations)}
    for x, (laws, here) in enumerate(zip(policies, steps, strict=True)):
        for m, law in enumerate(laws):
            for a, p in law.items():
                policy[m, x, place_a[a]] = p
        for a, i in place_a.items():
            expected, after = here.get(a, ([{observations[0]: 1.0}] * len(names), {}))
            for m, law in enumerate(expected):
                for o, p in (law or {NOTHING: 1.0}).items():
                    hypothesis[m, x, i, place_o[o]] = p
            for o, y in after.items():
                successor[x, i, place_o[o]] = y
    labels = (tuple(map(_label, things)) for things in (situations, actions, observations))
    return TabularModes(
        policy, hypothesis, successor, names=names, prior=prior, labels=Labels(*labels)
    )


def _hashable(x: Any) -> Hashable:
    try:
        hash(x)
    except TypeError:
        raise InvalidTable(
            f"situation {x!r} cannot be told from others, it is not hashable: use numbers, text "
            "or tuples for situations and private states"
        ) from None
    found: Hashable = x
    return found


def _in_order(things: Iterable[Any]) -> list[Any]:
    found = list(dict.fromkeys(things))
    try:
        return sorted(found)
    except (TypeError, ValueError):
        return found


def _label(thing: Any) -> str:
    return "always" if thing is None else str(thing)


def _too_many(what: str, last: Any) -> TooManySituations:
    return TooManySituations(
        f"{what}, the last one found was {last!r}: raise the limit, let `advance` forget what the "
        "modes do not look at, or check the class by simulation "
        "(bayescontrol.convergence.sampled_check)"
    )

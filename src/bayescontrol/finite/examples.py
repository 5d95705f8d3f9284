"""Small tabular classes from the paper: delusions, and policy diagrams.

    prize or frog    m: the prize is in box m     P(a | m) = δ(a, m)
                     P(prize | m, a) = r if a = m, else 1 - r
    three modes      m: the left lever pays, the right one, or neither; P(m) = .5, .3, .2

Each expert opens the box that it believes to hold the prize. An agent that conditions on its own
pick a has P(m = a | a) = 1: it is certain of the prize before it looks. With an intervention,
P(m = a | â) = P(m = a) = 1/2.

    diagrams         P(s' | m, s) = Σ_{ao: T(s, ao) = s'} P(a | m, s) P(o | m, s, a)

A policy selects a subset of the states: those that its chain visits forever. Here o is 0 or 1, and
a hypothesis is P(1 | m, x) by region of the state space; the first letter of a label, such as A or
B, is the region of the situation. If two hypotheses agree on a region, no policy that stays there
can distinguish them. The paper shows drawings without numbers: the numbers are ours.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from bayescontrol._arrays import as_integer, require_between
from bayescontrol.errors import InvalidTable
from bayescontrol.finite.tabular import Labels, TabularModes

#: The observations of `prize_or_frog`.
FROG: Final = 0
PRIZE: Final = 1

#: P(m) of `three_modes`.
THREE_MODES_PRIOR: Final = (0.5, 0.3, 0.2)


def prize_or_frog(reliability: float = 0.9) -> TabularModes:
    """Two boxes, one prize: each mode opens its box; observations are noisy.

    P(a | m) = δ(a, m) and P(prize | m, a) = r if a = m, else 1 - r.
    `reliability` is r in (1/2, 1], the probability that an opened box shows its true content.
    With r = 1 the naive agent contradicts itself: its pick has ruled out the other box, the frog
    rules out this one, and no mode is left (`ImpossibleObservation`). With r < 1 it continues and
    attributes every frog to noise.

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
    r = require_between("reliability", reliability, 0.5, 1.0, ends="(]", error=InvalidTable)
    prize = [[r, 1.0 - r], [1.0 - r, r]]
    return TabularModes(
        policy=[[[1.0, 0.0]], [[0.0, 1.0]]],
        hypothesis=[[[[1.0 - p, p] for p in boxes]] for boxes in prize],
        names=("prize left", "prize right"),
    )


def three_modes() -> TabularModes:
    """Two levers that pay with P(1 | m, a) = .7 or .3; each mode prefers its good lever.

        mode      P(1 | left)    P(1 | right)   P(left)
        left      .7             .3             .9
        right     .3             .7             .1
        neither   .3             .3             .5

    All probabilities are positive, so no mode is ever ruled out. Still a naive agent ends far
    from where the evidence leads.

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


#: Situation -> action -> next situation, for any o or for o = 0 and o = 1.
Moves: TypeAlias = Mapping[str, Mapping[str, str | tuple[str, str]]]
#: One action, or P(a | m, x).
Choice: TypeAlias = str | Mapping[str, float]
#: A policy: one choice for all situations, or a function of x.
ModePolicy: TypeAlias = Choice | Callable[[str], Choice]
#: P(1 | m, x) by the region of x, which is the first letter of its label.
Expectation: TypeAlias = Mapping[str, float]


def policy_diagram() -> TabularModes:
    """Eight states and two policies in one world: each policy selects four states, both select s3.

        P1 always a: s0 s1 s2 s3        P2 always b: s3 s4 s5 s6        s7: only if both act

    The two modes have the same hypothesis, P(1 | x) = 1/2: there is nothing to learn.

    >>> modes = policy_diagram()
    >>> modes
    TabularModes(2 modes, 8 situations, 2 actions, 2 observations)
    >>> modes.labels.situations[modes.advance(0, a=1, o=1)]
    's4'
    """
    moves: Moves = {
        "s0": {"a": ("s1", "s2"), "b": ("s3", "s4")},
        "s1": {"a": ("s2", "s3"), "b": "s0"},
        "s2": {"a": ("s3", "s0"), "b": "s3"},
        "s3": {"a": "s0", "b": ("s4", "s5")},
        "s4": {"a": "s3", "b": ("s5", "s6")},
        "s5": {"a": ("s4", "s7"), "b": ("s6", "s3")},
        "s6": {"a": "s2", "b": "s3"},
        "s7": {"a": "s0", "b": "s6"},
    }
    return _build_modes(moves, policies={"P1": "a", "P2": "b"}, expects=[{"s": 0.5}, {"s": 0.5}])


def core_diagram(steps: int = 3) -> TabularModes:
    """H1 and H2 agree on A and differ on B, H3 differs everywhere; only P1 leads into B.

        climb    A0 → A1 → A2 → B0 → B1 → A0      P1 always climbs
        round    A0 ⇄ A3, else back to A0         P2 always goes round
        P3       climbs in A0 and A3, else goes round: A0 ⇄ A1

    B is entered after `steps` climbs in a row, so P1 must act long enough. P1 refutes H2, hence
    [m1] = {m1}; P2 never does, hence [m2] = {m1, m2}.

    >>> modes = core_diagram()
    >>> modes.labels.situations
    ('A0', 'A1', 'A2', 'A3', 'B0', 'B1')
    >>> [modes.likelihoods(x, a=0, o=1).tolist() for x in (0, 4)]
    [[0.7, 0.7, 0.3], [0.7, 0.3, 0.5]]
    """
    as_integer("steps", steps, 1, InvalidTable)
    foot, last = "A0", f"A{steps}"
    moves: dict[str, dict[str, str]] = {
        f"A{i}": {"climb": f"A{i + 1}" if i + 1 < steps else "B0", "round": foot}
        for i in range(steps)
    }
    moves[last] = dict(moves[foot])
    moves[foot]["round"] = last
    moves["B0"] = {"climb": "B1", "round": foot}
    moves["B1"] = {"climb": foot, "round": foot}
    return _build_modes(
        moves,
        policies={
            "m1": "climb",
            "m2": "round",
            "m3": lambda x: "climb" if x in (foot, last) and steps > 1 else "round",
        },
        expects=[{"A": 0.7, "B": 0.7}, {"A": 0.7, "B": 0.3}, {"A": 0.3, "B": 0.5}],
    )


def consistency_diagram() -> TabularModes:
    """H1 and H2 agree in A and differ in B; P1 and P2 both stay in A, and differ there.

        left     A0 ⇄ A1, else back to A0      P1
        right    A0 ⇄ A2, else back to A0      P2
        out      to B0                         neither policy

    Each mode is in the core of the other, and no observation in A distinguishes them: the
    posterior does not change, and the agent mixes P1 and P2 forever.

    >>> modes = consistency_diagram()
    >>> [modes.likelihoods(x, a=0, o=1).tolist() for x in range(4)]
    [[0.7, 0.7], [0.7, 0.7], [0.7, 0.7], [0.9, 0.1]]
    >>> modes.agent().action_probabilities()
    {0: 0.5, 1: 0.5, 2: 0.0}
    """
    return _consistency({"m1": "left", "m2": "right"})


def consistency_repaired() -> TabularModes:
    """The repaired `consistency_diagram`: H1 and H2 agree in A, and now so do P1 and P2.

    H1 and H2 agree in A, and both policies stay in A, so consistency requires the same policy in
    A. In B, which neither policy enters, the policies may differ, and they do.

    >>> consistency_repaired().agent().action_probabilities()
    {0: 1.0, 1: 0.0, 2: 0.0}
    """
    return _consistency({"m1": "left", "m2": lambda x: "left" if x[0] == "A" else "right"})


def trap() -> TabularModes:
    """A pit two steps away from the open, without a way out and without informative observations.

        watch    edge → open, else stay        step    open → edge → pit, else stay

    H1, H2 and H3 differ in the open and at the edge, and agree in the pit. m1 and m2 watch and
    would soon identify the world; m3 steps. Two steps of m3, while it still has weight, end all
    learning: in the pit m1 watches, m3 steps and m2 does either, forever.

    >>> modes = trap()
    >>> modes.labels.situations
    ('open', 'edge', 'pit')
    >>> [modes.likelihoods(x, a=0, o=1).tolist() for x in (0, 2)]
    [[0.8, 0.5, 0.2], [0.5, 0.5, 0.5]]
    """
    either = {"watch": 0.5, "step": 0.5}
    return _build_modes(
        {
            "open": {"watch": "open", "step": "edge"},
            "edge": {"watch": "open", "step": "pit"},
            "pit": {"watch": "pit", "step": "pit"},
        },
        policies={"m1": "watch", "m2": lambda x: either if x == "pit" else "watch", "m3": "step"},
        expects=[{"o": p, "e": p, "p": 0.5} for p in (0.8, 0.5, 0.2)],  # open, edge and pit
    )


def _consistency(policies: Mapping[str, ModePolicy]) -> TabularModes:
    """Return the world of `consistency_diagram` with these policies of m1 and m2."""
    return _build_modes(
        {
            "A0": {"left": "A1", "right": "A2", "out": "B0"},
            "A1": {"left": "A0", "right": "A0", "out": "B0"},
            "A2": {"left": "A0", "right": "A0", "out": "B0"},
            "B0": {"left": "A0", "right": "A0", "out": "B0"},
        },
        policies,
        expects=[{"A": 0.7, "B": 0.9}, {"A": 0.7, "B": 0.1}],
    )


def _build_modes(
    moves: Moves, policies: Mapping[str, ModePolicy], expects: Sequence[Expectation]
) -> TabularModes:
    """Build the tables of a class; situations and actions are numbered in the order of `moves`.

    `policies` maps the name of each mode to its policy; `expects` has P(1 | m, x) of each mode.
    """
    situations = tuple(moves)
    actions = tuple(moves[situations[0]])
    number = {x: i for i, x in enumerate(situations)}

    def action_probabilities(policy: ModePolicy, x: str) -> list[float]:
        choice = policy(x) if callable(policy) else policy
        return [choice.get(a, 0.0) if isinstance(choice, Mapping) else a == choice for a in actions]

    def next_situations(move: str | tuple[str, str]) -> list[int]:
        return [number[y] for y in ((move, move) if isinstance(move, str) else move)]

    pays = np.array([[[p[x[0]]] * len(actions) for x in situations] for p in expects])
    return TabularModes(
        [[action_probabilities(p, x) for x in situations] for p in policies.values()],
        np.stack([1.0 - pays, pays], -1),
        [[next_situations(moves[x][a]) for a in actions] for x in situations],
        names=tuple(policies),
        labels=Labels(situations, actions, ("0", "1")),
    )

"""Constructed classes whose cores, consistency and verdicts were derived by hand.

Each example explains its verdict. A class is given as a graph, situation -> action -> next
situation (for every o, or for o = 0 and o = 1), with the prediction P(1 | m, x, a) and the
policy of each mode.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.bandits.joint import bias_grid
from bayescontrol.convergence import Outcome
from bayescontrol.finite.chain import chain
from bayescontrol.finite.examples import (
    consistency_diagram,
    consistency_repaired,
    core_diagram,
    policy_diagram,
    trap,
)
from bayescontrol.finite.tabular import Labels, TabularModes
from bayescontrol.finite.tabulate import tabulate

THEOREM, SETTLES, UNDECIDED, NEVER = Outcome

Moves: TypeAlias = Mapping[str, Mapping[str, str | tuple[str, str]]]
Choice: TypeAlias = str | Mapping[str, float]


def build(
    moves: Moves,
    expects: Sequence[float | Callable[[str, str], float]],
    acts: Sequence[Choice | Callable[[str], Choice]],
    prior: npt.ArrayLike | None = None,
) -> TabularModes:
    situations, actions = tuple(moves), tuple(next(iter(moves.values())))
    place = {x: i for i, x in enumerate(situations)}
    policy = np.zeros((len(acts), len(situations), len(actions)))
    one = np.zeros(policy.shape)
    successor = np.zeros((len(situations), len(actions), 2), np.int64)
    for x, i in place.items():
        for k, a in enumerate(actions):
            to = moves[x][a]
            successor[i, k] = [place[y] for y in ((to, to) if isinstance(to, str) else to)]
            for m, expect in enumerate(expects):
                one[m, i, k] = expect(x, a) if callable(expect) else expect
        for m, act in enumerate(acts):
            choice = act(x) if callable(act) else act
            for a, p in (choice if isinstance(choice, Mapping) else {choice: 1.0}).items():
                policy[m, i, actions.index(a)] = p
    hypothesis = np.stack([1.0 - one, one], -1)
    labels = Labels(situations, actions, ("0", "1"))
    return TabularModes(policy, hypothesis, successor, prior=prior, labels=labels)


@dataclass(frozen=True)
class Example:
    """A class and its verdicts; pairs that are not listed are covered by the theorem."""

    name: str
    why: str
    modes: TabularModes
    #: The core of every m*.
    core: tuple[set[int], ...]
    #: (m*, m) -> outcome, where it is not THEOREM.
    outcome: Mapping[tuple[int, int], Outcome] = field(default_factory=dict)


def only_in(situation: str, here: float, elsewhere: float) -> Callable[[str, str], float]:
    """Predict P(1) = `here` in one situation and `elsewhere` in all others."""
    return lambda x, a: here if x == situation else elsewhere


def only_after(x0: str, a0: str, here: float, elsewhere: float) -> Callable[[str, str], float]:
    """Predict P(1) = `here` after one action in one situation, and `elsewhere` otherwise."""
    return lambda x, a: here if (x, a) == (x0, a0) else elsewhere


BOTH = ({0, 1}, {0, 1})
ALL = ({0, 1, 2}, {0, 1, 2}, {0, 1, 2})

#: One situation that never changes.
ROOM: Moves = {"x": {"a": "x", "b": "x"}}
#: x → y → x for every action.
TWO_CYCLE: Moves = {"x": {"a": "y", "b": "y"}, "y": {"a": "x", "b": "x"}}
THREE_CYCLE: Moves = {
    "x": {"a": "y", "b": "y"},
    "y": {"a": "z", "b": "z"},
    "z": {"a": "x", "b": "x"},
}
#: A start that is left after one step and never returns.
ONCE: Moves = {"start": {"a": "then", "b": "then"}, "then": {"a": "then", "b": "then"}}
#: A coin toss decides the side, which never changes again.
FORK: Moves = {
    "start": {"a": ("left", "right"), "b": ("left", "right")},
    "left": {"a": "left", "b": "left"},
    "right": {"a": "right", "b": "right"},
}
#: The first action decides the side.
CROSSROADS: Moves = {
    "start": {"a": "left", "b": "right"},
    "left": {"a": "left", "b": "left"},
    "right": {"a": "right", "b": "right"},
}
#: "step" leads into a pit if 1 is observed.
PIT: Moves = {
    "open": {"watch": "open", "step": ("open", "pit")},
    "pit": {"watch": "pit", "step": "pit"},
}

EXAMPLES = (
    # -- periodic chains -----------------------------------------------------------------------
    Example(
        "period two",
        "Every other step is in y, where the predictions differ for every action.",
        build(TWO_CYCLE, [only_in("y", 0.7, 0.5), only_in("y", 0.3, 0.5)], ["a", "b"]),
        ({0}, {1}),
    ),
    Example(
        "period three, one policy looks away",
        "They differ only for a in z. The first mode takes it every third step, the second never. "
        "So the second policy cannot refute the first mode, but the first mode's policy does.",
        build(THREE_CYCLE, [only_after("z", "a", 0.9, 0.5), 0.5], ["a", "b"]),
        ({0}, {0, 1}),
        {(1, 0): SETTLES},
    ),
    Example(
        "period two, each looks in the wrong phase",
        "They differ for a in y. The first takes a in x only, the second never: no mode sees it.",
        build(
            TWO_CYCLE,
            [only_after("y", "a", 0.9, 0.5), 0.5],
            [lambda x: "a" if x == "x" else "b", "b"],
        ),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    # -- several recurrent classes -------------------------------------------------------------
    Example(
        "a fork, one side of which tells, policies differ on the other",
        "With probability 1/2 the agent stays on the right for ever, where predictions agree and "
        "policies do not.",
        build(FORK, [only_in("left", 0.8, 0.5), only_in("left", 0.2, 0.5)], ["a", "b"]),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "a fork, one side of which tells, policies agree on the other",
        "On the left the wrong mode is refuted, on the right it acts like the true one. The "
        "policies differ on the left, at any time, so the theorem does not apply.",
        build(
            FORK,
            [only_in("left", 0.8, 0.5), only_in("left", 0.2, 0.5)],
            ["a", lambda x: "b" if x == "left" else "a"],
        ),
        BOTH,
        {(0, 1): SETTLES, (1, 0): SETTLES},
    ),
    Example(
        "a fork, both sides of which tell",
        "There are two recurrent classes, and the predictions differ in both.",
        build(
            FORK,
            [lambda x, a: 0.5 if x == "start" else 0.8, lambda x, a: 0.5 if x == "start" else 0.2],
            ["a", "b"],
        ),
        ({0}, {1}),
    ),
    Example(
        "crossroads: one side separates the modes, the other is a dead end",
        "Alone, the first mode would go left and see the difference. But the second may act first "
        "and go right, where only the policies differ.",
        build(CROSSROADS, [only_in("left", 0.8, 0.5), only_in("left", 0.2, 0.5)], ["a", "b"]),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "crossroads, one policy after them",
        "As before, but after the first step both act the same: in each other's core, consistent.",
        build(
            CROSSROADS,
            [only_in("left", 0.8, 0.5), only_in("left", 0.2, 0.5)],
            ["a", lambda x: "b" if x == "start" else "a"],
        ),
        BOTH,
    ),
    # -- traps -------------------------------------------------------------------------------
    Example(
        "trap",
        "The third mode's steps may end in the pit before it is refuted: there all predictions "
        "agree, and no two modes act alike.",
        trap(),
        ALL,
        {(i, j): NEVER for i in range(3) for j in range(3) if i != j},
    ),
    Example(
        "the mode that opens the trap has prior zero",
        "A mode without weight never acts: the pit is unreachable, and in the open all differ.",
        tabulate(trap(), prior=[0.5, 0.5, 0.0]),
        ({0}, {1}, {2}),
    ),
    Example(
        "a trap in which all act alike",
        "In the pit nothing is learned, but all act the same. Outside, wrong modes are refuted. In "
        "the open the third mode acts differently, so the theorem does not cover it.",
        build(
            {
                "open": {"watch": "open", "step": "pit"},
                "pit": {"watch": "pit", "step": "pit"},
            },
            [only_in("open", p, 0.5) for p in (0.8, 0.5, 0.2)],
            ["watch", "watch", lambda x: "step" if x == "open" else "watch"],
        ),
        ALL,
        dict.fromkeys([(0, 2), (1, 2), (2, 0), (2, 1)], SETTLES),
    ),
    Example(
        "a fall that is a proof",
        "Only in the second world can one fall into the pit. There the first mode is ruled out by "
        "the fall; before it, every action separates them.",
        build(
            PIT,
            [
                lambda x, a: 0.5 if x == "pit" else 0.7 if a == "watch" else 0.0,
                lambda x, a: 0.5 if x == "pit" else 0.3 if a == "watch" else 0.5,
            ],
            ["watch", "step"],
        ),
        ({0}, {0, 1}),
        {(1, 0): SETTLES},
    ),
    Example(
        "a fall that proves nothing",
        "As before, but a fall is possible under both modes, and it may come too early.",
        build(
            PIT,
            [
                lambda x, a: 0.5 if x == "pit" else 0.7 if a == "watch" else 0.1,
                lambda x, a: 0.5 if x == "pit" else 0.3 if a == "watch" else 0.5,
            ],
            ["watch", "step"],
        ),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    # -- probabilities of zero -------------------------------------------------------------------
    Example(
        "the other mode rules an observation out",
        "The first mode sees ones, which the second rules out. In the second world no single "
        "observation is proof, but the first mode takes a, and the expected ones never come.",
        build(ROOM, [only_after("x", "a", 0.5, 0.3), only_after("x", "a", 0.0, 0.3)], ["a", "b"]),
        ({0}, {0, 1}),
        {(1, 0): SETTLES},
    ),
    Example(
        "the evidence lies behind an impossible event",
        "They differ in the room; its door opens with probability 0 in both worlds.",
        build(
            {
                "hall": {"push": ("hall", "room"), "wait": "hall"},
                "room": {"push": "room", "wait": "room"},
            },
            [only_in("room", 0.9, 0.0), only_in("room", 0.1, 0.0)],
            ["push", "wait"],
        ),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    # -- equal hypotheses or equal policies --------------------------------------------------------
    Example(
        "identical modes",
        "Nothing separates them, and nothing needs to.",
        build(TWO_CYCLE, [0.4, 0.4], ["a", "a"]),
        BOTH,
    ),
    Example(
        "one hypothesis, two policies",
        "Nothing ever separates them, and they act differently.",
        build(ROOM, [0.4, 0.4], ["a", "b"]),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "one hypothesis, two policies with the same support",
        "Policies are compared as distributions: (1/2, 1/2) is not (2/3, 1/3).",
        build(ROOM, [0.4, 0.4], [{"a": 1 / 2, "b": 1 / 2}, {"a": 2 / 3, "b": 1 / 3}]),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "one policy, hypotheses that differ for an unused action",
        "They differ for b, which neither takes: nothing separates them, and nothing needs to.",
        build(ROOM, [only_after("x", "b", 0.9, 0.5), only_after("x", "b", 0.1, 0.5)], ["a", "a"]),
        BOTH,
    ),
    Example(
        "equal up to rounding",
        "0.1 + 0.2 and 0.3 are one prediction: the second mode is in the core of the first, and "
        "acts differently.",
        build(ROOM, [0.1 + 0.2, 0.3], ["a", "b"]),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    # -- examples of the paper -----------------------------------------------------------------
    Example(
        "bias grid of levels .2 and .8",
        "m* refutes modes that differ on an arm it pulls. (.2, .2) and (.8, .8) pull both arms, so "
        "their cores are singletons. (.2, .8) pulls the second arm, on which (.8, .8) agrees; but "
        "(.8, .8) also pulls the first arm, which refutes it. All other modes are refuted.",
        bias_grid(2, (0.2, 0.8)),
        ({0}, {1, 3}, {2, 3}, {3}),
        {(1, 3): SETTLES, (2, 3): SETTLES},
    ),
    Example(
        "core diagram",
        "P1 leads into B and refutes H2; P2 stays in A, where H1 and H2 agree, but P1 is the "
        "policy of m1, and refutes it. H3 differs everywhere.",
        core_diagram(),
        ({0}, {0, 1}, {2}),
        {(1, 0): SETTLES},
    ),
    Example(
        "consistency diagram",
        "Both stay in A, where predictions agree, and differ there.",
        consistency_diagram(),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "consistency repaired",
        "Both stay in A, where predictions agree, and act the same there.",
        consistency_repaired(),
        BOTH,
    ),
    Example(
        "policy diagram",
        "One hypothesis, and two policies that differ in every state.",
        policy_diagram(),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "k-step chain",
        "The mode's action pays after k repetitions, which the other mode rules out.",
        chain(4),
        ({0}, {1}),
    ),
    # -- differences that occur once -------------------------------------------------------------
    Example(
        "a difference observed once",
        "One noisy observation at the start is all the evidence there is, and it is finite.",
        build(ONCE, [only_in("start", 0.7, 0.5), only_in("start", 0.3, 0.5)], ["a", "b"]),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "a difference observed once is proof",
        "As before, but the one observation is certain in either world: the wrong mode is ruled "
        "out at once. The core depends only on later steps and contains the wrong mode.",
        build(ONCE, [only_in("start", 1.0, 0.5), only_in("start", 0.0, 0.5)], ["a", "b"]),
        BOTH,
        {(0, 1): SETTLES, (1, 0): SETTLES},
    ),
    Example(
        "a difference observed once may be proof",
        "In the first world a one rules the second mode out, a zero does not. In the second only "
        "zeros come. In both worlds both modes may remain for ever.",
        build(ONCE, [only_in("start", 0.5, 0.5), only_in("start", 0.0, 0.5)], ["a", "b"]),
        BOTH,
        {(0, 1): NEVER, (1, 0): NEVER},
    ),
    Example(
        "policies that differ once",
        "They act differently at the start, which never returns.",
        build(ONCE, [0.5, 0.5], ["a", lambda x: "b" if x == "start" else "a"]),
        BOTH,
    ),
    Example(
        "policies that differ in a corridor behind a cycle",
        "A coin decides when the agent leaves the hall through a door and a corridor to the end. "
        "The modes act differently in the corridor. It is visited once, so the agent settles. But "
        "the visit can come at any time, so the theorem does not cover the pair.",
        build(
            {
                "hall": {"a": ("hall", "door"), "b": ("hall", "door")},
                "door": {"a": "corridor", "b": "corridor"},
                "corridor": {"a": "end", "b": "end"},
                "end": {"a": "end", "b": "end"},
            },
            [0.5, 0.5],
            ["a", lambda x: "b" if x == "corridor" else "a"],
        ),
        BOTH,
        {(0, 1): SETTLES, (1, 0): SETTLES},
    ),
    # -- modes that act in turns, and third modes --------------------------------------------------
    Example(
        "only by turns",
        "They differ for b in y. The first mode leads to y and takes a there; the second takes b, "
        "but stays in x. They reach it by taking turns.",
        build(
            {"x": {"a": "y", "b": "x"}, "y": {"a": "x", "b": "x"}},
            [only_after("y", "b", 0.9, 0.5), only_after("y", "b", 0.1, 0.5)],
            ["a", "b"],
        ),
        BOTH,
        {(0, 1): SETTLES, (1, 0): SETTLES},
    ),
    Example(
        "a third mode separates two modes for ever",
        "Neither of the first two takes c, which separates them; the third does, and shares the "
        "hypothesis of the first. So nothing separates the first from the third. In the first "
        "world both stay and act differently. In the second world the actions of the third refute "
        "both. Whether the first two are separated depends on the third.",
        build(
            {"x": {"a": "x", "b": "x", "c": "x"}},
            [only_after("x", "c", p, 0.5) for p in (0.9, 0.1, 0.9)],
            ["a", "b", "c"],
        ),
        ({0, 1, 2}, {0, 1, 2}, {0, 2}),
        {
            (0, 1): UNDECIDED,
            (0, 2): NEVER,
            (1, 0): UNDECIDED,
            (1, 2): SETTLES,
            (2, 0): NEVER,
        },
    ),
    Example(
        "a third mode that may be refuted too early",
        "As before, but the third mode is wrong about a and b too: it may be refuted before it "
        "has separated the others, and then no mode takes c any more.",
        build(
            {"x": {"a": "x", "b": "x", "c": "x"}},
            [
                only_after("x", "c", 0.9, 0.5),
                only_after("x", "c", 0.1, 0.5),
                only_after("x", "c", 0.9, 0.2),
            ],
            ["a", "b", "c"],
        ),
        ({0, 1}, {0, 1}, {0, 2}),
        {(0, 1): NEVER, (1, 0): NEVER, (2, 0): SETTLES},
    ),
    Example(
        "a third mode keeps the conflict going",
        "The first two stay in x and differ only in y. The third, with the same hypothesis, "
        "goes to y again and again.",
        build(
            {"x": {"a": "x", "b": "x", "go": "y"}, "y": {"a": "x", "b": "x", "go": "x"}},
            [0.5] * 3,
            ["a", lambda x: "a" if x == "x" else "b", "go"],
        ),
        ALL,
        {(i, j): NEVER for i in range(3) for j in range(3) if i != j},
    ),
    Example(
        "a third mode that ends the conflict",
        "As before, but the first two, staying in x, refute the third: in the end no mode goes to "
        "y. But y can occur at any time, so the theorem does not apply.",
        build(
            {"x": {"a": "x", "b": "x", "go": "y"}, "y": {"a": "x", "b": "x", "go": "x"}},
            [0.5, 0.5, only_in("x", 0.2, 0.5)],
            ["a", lambda x: "a" if x == "x" else "b", "go"],
        ),
        ({0, 1}, {0, 1}, {2}),
        {(0, 1): SETTLES, (1, 0): SETTLES},
    ),
    Example(
        "a third mode that is ruled out before it can do harm",
        "The third mode is ruled out at the start, and only it would step into the pit later. R "
        "still includes its actions, so the core contains all modes, and the check cannot decide "
        "about the first two, which are separated in the open. But the verdict must not be never. "
        "The third mode is ruled out at once, and in its own world the others are.",
        build(
            {
                "start": {"watch": "open", "step": "open"},
                "open": {"watch": "open", "step": "pit"},
                "pit": {"watch": "pit", "step": "pit"},
            },
            [
                lambda x, a: {"start": 0.0, "open": 0.8, "pit": 0.5}[x],
                lambda x, a: {"start": 0.0, "open": 0.2, "pit": 0.5}[x],
                lambda x, a: {"start": 1.0, "open": 0.5, "pit": 0.5}[x],
            ],
            ["watch", lambda x: "step" if x == "pit" else "watch", "step"],
        ),
        ALL,
        {
            (0, 1): UNDECIDED,
            (1, 0): UNDECIDED,
            (0, 2): SETTLES,
            (1, 2): SETTLES,
            (2, 0): SETTLES,
            (2, 1): SETTLES,
        },
    ),
)

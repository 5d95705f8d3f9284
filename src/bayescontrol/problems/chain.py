"""The paper's k-step chain: environments that pay only for k equal actions in a row.

    environment A:  o_t = 1  if a_{t-k+1} = … = a_t = A, else 0        B likewise
    T = min{t : a_{t-k+1} = … = a_t}: both modes agree before, one of them is refuted at T

Our readings. The state is hidden and the reward is all there is to see, but an agent knows
its own actions: the situation is the trailing run. After a reward the chain starts anew. In
the growing chain k_t = ⌈10 √t⌉, step t pays if the last k_t actions were the right ones, and
a reward does not reset the count. The first reward is not the only evidence: k equal actions
*without* one refute the environment that would have paid. When T comes: `chain_times`.
"""

import math
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import InvalidTable, UnknownMode
from bayescontrol.problems.description import ModelKind, SettingDoc
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream

#: (t, a, n): after t steps, the last n actions were all a.
Trailing: TypeAlias = tuple[int, int, int]


def chain(k: int) -> TabularModes:
    """Modes A and B (actions 0 and 1): always the own action; it pays at every k-th in a row.

    Situation 0 is the start of the chain, also after a k-th equal action; 1 … k-1 are as many
    A's in a row, k … 2k-2 are 1 … k-1 B's.

    >>> modes = chain(3)
    >>> modes
    TabularModes(2 modes, 5 situations, 2 actions, 2 observations)
    >>> agent = modes.agent()
    >>> for a in (0, 1, 1, 1):  # three B's in a row, and no reward
    ...     agent.observe(a, 0)
    >>> agent.belief
    FiniteBelief(2 modes after 4 observations: A 1, B 0)
    """
    _at_least_one("chain", "k", k)
    situations = 2 * k - 1
    hypothesis = np.zeros((2, situations, 2, 2))
    hypothesis[..., 0] = 1.0
    successor = np.zeros((situations, 2, 2), np.int64)
    for x in range(situations):
        of, run = (0, x) if x < k else (1, x - k + 1)
        for a in range(2):
            length = run + 1 if a == of else 1
            if length == k:
                hypothesis[a, x, a] = 0.0, 1.0
            else:
                successor[x, a] = length + a * (k - 1)
    policy = np.repeat(np.eye(2)[:, None], situations, axis=1)
    return TabularModes(policy, hypothesis, successor, names=("A", "B"))


def first_run(actions: npt.ArrayLike, k: int) -> int | None:
    """T = min{t : a_{t-k+1} = … = a_t}, counting from one; None if there is no such run.

    >>> first_run([0, 1, 1, 0, 0, 0], 3)
    6
    """
    a = np.asarray(actions)
    starts = np.flatnonzero(np.concatenate(([True], a[1:] != a[:-1]))) if a.size else a
    lengths = np.diff(starts, append=a.size)
    long = np.flatnonzero(lengths >= k)
    return int(starts[long[0]]) + k if long.size else None


class GrowingChain:
    """k_t = ⌈scale · √t⌉: at step t the last k_t actions must all be the right ones.

    One object answers for both modes, as `TabularModes` does. No run is long enough before
    t = scale², where all equal actions are just enough.

    >>> growing = GrowingChain()
    >>> growing.required(99), growing.required(100), growing.required(101)
    (100, 100, 101)
    >>> growing.likelihoods((99, 0, 99), 0, 1)  # a hundredth A
    array([1., 0.])
    """

    model_kind: ClassVar[ModelKind] = ModelKind(
        "growing-chain",
        "Two modes, A and B: at step t the last ⌈scale · √t⌉ actions must be the right ones. "
        "A counterexample from the theory, not for practical use.",
        {"scale": SettingDoc("whole number", "How fast the chain grows. Default: 10.")},
        example={"scale": 2},
        observation=0,
        feedback="0 or 1",
    )
    start: Trailing = (0, 0, 0)
    actions = range(2)
    names = ("A", "B")

    def __init__(self, scale: int = 10) -> None:
        _at_least_one("GrowingChain", "scale", scale)
        self.scale = scale

    def settings(self) -> dict[str, Any]:
        """Return the scale, as logs store it."""
        return {"scale": self.scale}

    def required(self, t: int) -> int:
        """k_t = ⌈scale √t⌉, in integers."""
        return math.isqrt(self.scale**2 * t - 1) + 1

    def __len__(self) -> int:
        """Two modes, A and B."""
        return 2

    def __getitem__(self, m: int) -> "GrowingMode":
        """Mode m alone."""
        if m not in (0, 1):
            raise UnknownMode(f"no mode {m}: there are 0 (A) and 1 (B)")
        return GrowingMode(m)

    def advance(self, x: Trailing, a: int, o: int) -> Trailing:
        """T(x, a, o): one step more, the run goes on or starts again."""
        t, of, n = x
        return t + 1, a, n + 1 if a == of else 1

    def observation_probabilities(self, x: Trailing, a: int) -> dict[int, FloatArray]:
        """P(o | m, x, a) for both modes, by observation."""
        t, _, n = self.advance(x, a, 0)
        pays = np.zeros(2)
        pays[a] = n >= self.required(t)
        return {0: 1.0 - pays, 1: pays}

    def likelihoods(self, x: Trailing, a: int, o: int) -> FloatArray:
        """P(o | m, x, a) for both modes."""
        return self.observation_probabilities(x, a).get(o, np.zeros(2))

    def action_probabilities(self, x: Trailing) -> dict[int, FloatArray]:
        """P(a | m, x) for both modes, by action."""
        return {a: np.eye(2)[a] for a in self.actions}

    def agent(
        self, prior: npt.ArrayLike | None = None, *, schedule: Schedule = every_step
    ) -> ControlRule["GrowingMode", Trailing, int, int]:
        """The control rule over the two modes."""
        belief: FiniteBelief[GrowingMode] = FiniteBelief(self, prior)
        return ControlRule(belief, self.start, self.advance, schedule)

    def environment(self, m: int) -> "GrowingEnvironment":
        """Q_m: the world as mode m has it."""
        return GrowingEnvironment(self, self[m].m)

    def __repr__(self) -> str:
        return f"GrowingChain(scale={self.scale})"


class GrowingMode:
    """Always the own action.

    >>> GrowingChain()[1].act((0, 0, 0), rng=None)
    1
    """

    def __init__(self, m: int) -> None:
        self.m, self.name = m, GrowingChain.names[m]

    def act(self, x: Trailing, rng: Stream) -> int:
        """a = m."""
        return self.m

    def __repr__(self) -> str:
        return f"GrowingMode({self.m}, {self.name!r})"


class GrowingEnvironment:
    """Q_m of the growing chain: 1 if the last k_t actions were all m, else 0.

    >>> world = GrowingChain(scale=2).environment(0)
    >>> [world.respond(0, rng=None) for t in range(6)]
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, modes: GrowingChain, m: int) -> None:
        self.modes, self.m, self.x = modes, m, modes.start

    def respond(self, a: int, rng: Stream) -> int:
        """The reward."""
        o = int(self.modes.likelihoods(self.x, a, 1)[self.m])
        self.x = self.modes.advance(self.x, a, o)
        return o

    def __repr__(self) -> str:
        return f"GrowingEnvironment({self.modes.names[self.m]} of {self.modes!r}, x={self.x})"


def _at_least_one(what: str, name: str, value: int) -> None:
    if value < 1:
        raise InvalidTable(f"{what}({name}={value}): {name} is at least 1")

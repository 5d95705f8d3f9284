"""The paper's k-step chain, which pays only for k equal actions in a row, and its waiting times.

    environment A:  o_t = 1  if a_{t-k+1} = … = a_t = A, else 0        B likewise
    T = min{t : a_{t-k+1} = … = a_t}: the modes agree before T, and one of them is refuted at T

Our interpretation: the state is hidden, but an agent knows its own actions, so the situation is
the trailing run of equal actions. After a reward the chain restarts. In the growing chain
k_t = ⌈10 √t⌉, step t pays if the last k_t actions were the right ones, and a reward does not reset
the count. k equal actions *without* a reward are evidence too: they refute the environment that
would have paid.

The exact time until the rule identifies the environment, by schedule:

    every step    E T = 2^k - 1                         first reward: 2^k - 1 + k/2
    Every(j)      E T = (2^r - 1) j - (r j - k),  r = ⌈k/j⌉
    Geometric(p)  E T = Σ_{i<k} s^-i,  s = 1 - p/2, the probability that a run continues
    doubling      T < 3k with probability 1

Until T the posterior equals the uniform prior, so every draw is a fair coin and the trailing run is
a Markov chain that does not depend on the environment.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_integer
from bayescontrol._support.description import ModelKind, SettingDoc
from bayescontrol.errors import InvalidTable, MissingCapability
from bayescontrol.finite.tabular import ClassMode, ModeClass, TabularModes
from bayescontrol.modes import ModeEnvironment
from bayescontrol.schedules import Every, Geometric, Held, Schedule, doubling, every_step
from bayescontrol.seeding import StreamLike

#: (t, a, n): after t steps, the last n actions were all a.
Trailing: TypeAlias = tuple[int, int, int]


def chain(k: int = 3) -> TabularModes:
    """Two worlds that pay only for k equal actions in a row, A or B.

    Modes A and B always take their action (0 or 1), which pays every k-th time in a row.
    Situation 0 is the start of the chain, also after k equal actions. Situations 1 … k-1 stand for
    1 … k-1 actions A in a row, k … 2k-2 for 1 … k-1 actions B.

    >>> modes = chain(3)
    >>> modes
    TabularModes(2 modes, 5 situations, 2 actions, 2 observations)
    >>> agent = modes.agent()
    >>> for a in (0, 1, 1, 1):  # three B's in a row, and no reward
    ...     agent.observe(a, 0)
    >>> agent.belief
    FiniteBelief(2 modes after 4 observations: A 1, B 0)
    """
    as_integer("k", k, 1, InvalidTable)
    situations = 2 * k - 1
    hypothesis = np.zeros((2, situations, 2, 2))
    hypothesis[..., 0] = 1.0
    successor = np.zeros((situations, 2, 2), np.int64)
    for x in range(situations):
        repeated, run = (0, x) if x < k else (1, x - k + 1)
        for a in range(2):
            length = run + 1 if a == repeated else 1
            if length == k:
                hypothesis[a, x, a] = 0.0, 1.0
            else:
                successor[x, a] = length + a * (k - 1)
    policy = np.repeat(np.eye(2)[:, None], situations, axis=1)
    return TabularModes(policy, hypothesis, successor, names=("A", "B"))


def first_run(actions: ArrayLike, k: int) -> int | None:
    """T = min{t : a_{t-k+1} = … = a_t}, counted from 1; None if there is no such run.

    >>> first_run([0, 1, 1, 0, 0, 0], 3)
    6
    """
    a = np.asarray(actions)
    # The index of the first action of each run.
    starts = np.flatnonzero(np.concatenate(([True], a[1:] != a[:-1]))) if a.size else a
    lengths = np.diff(starts, append=a.size)
    long_runs = np.flatnonzero(lengths >= k)
    return int(starts[long_runs[0]]) + k if long_runs.size else None


class GrowingMode(ClassMode):
    """A mode of the growing chain: it always takes action m.

    >>> GrowingChain()[1].act((0, 0, 0), rng=None)
    1
    """

    __slots__ = ()

    def act(self, x: Trailing, rng: StreamLike) -> int:
        """Return the action m, in every situation."""
        return self.m

    def observation_probabilities(self, x: Trailing, a: int) -> dict[int, float]:
        """Return the one reward that the mode expects, with probability 1."""
        return {int(self.likelihood(x, a, 1)): 1.0}


class GrowingChain(ModeClass[GrowingMode, Trailing, int, int]):
    """The chain with k_t = ⌈scale · √t⌉: step t pays after k_t right actions in a row.

    One object answers for both modes, as in `TabularModes`. The first step that can pay is
    t = scale², after equal actions from the start.

    >>> growing = GrowingChain()
    >>> growing.required(99), growing.required(100), growing.required(101)
    (100, 100, 101)
    >>> growing.likelihoods((99, 0, 99), 0, 1)  # action A for the 100th time
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
    mode_type = GrowingMode
    start: Trailing = (0, 0, 0)
    actions = range(2)

    def __init__(self, scale: int = 10) -> None:
        as_integer("scale", scale, 1, InvalidTable)
        super().__init__(2, ("A", "B"))
        self.scale = scale

    def settings(self) -> dict[str, Any]:
        """Return the scale, as logs store it."""
        return {"scale": self.scale}

    def required(self, t: int) -> int:
        """k_t = ⌈scale √t⌉, in integer arithmetic."""
        return math.isqrt(self.scale**2 * t - 1) + 1

    def advance(self, x: Trailing, a: int, o: int) -> Trailing:
        """T(x, a, o): the run of equal actions continues or restarts."""
        t, last, n = x
        return t + 1, a, n + 1 if a == last else 1

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

    def environment(self, m: int) -> ModeEnvironment:
        """Q_m, the world in which mode m is true.

        >>> world = GrowingChain(scale=2).environment(0)
        >>> [world.respond(0, rng=None) for t in range(6)]
        [0, 0, 0, 1, 1, 1]
        """
        return ModeEnvironment(self[m], self.start, self.advance)

    def __repr__(self) -> str:
        return f"GrowingChain(scale={self.scale})"


class Waiting(NamedTuple):
    """Mean and standard deviation of a waiting time, in steps."""

    mean: float
    sd: float


def identification_time(k: int, schedule: Schedule = every_step) -> Waiting:
    """Return E T and the standard deviation of T for the rule with this schedule, exactly.

    A run of n + 1 blocks takes a geometric number of attempts (success probability s), each a run
    of n blocks and one more block: μ_{n+1} = (μ_n + 1)/s, σ²_{n+1} = σ²_n/s + (1 - s)(μ_n + 1)²/s².
    The first block always succeeds.

    >>> identification_time(3).mean, identification_time(3, Every(3)), identification_time(1).sd
    (7.0, Waiting(mean=3.0, sd=0.0), 0.0)
    >>> identification_time(12, doubling).mean
    19.3125
    """
    if schedule is doubling:  # a block of 2^n ≥ k steps begins at 2^n < 2k
        p = identification_probabilities(lambda _t: k, schedule, 3 * k)
        t = np.arange(1, 3 * k + 1)
        mean = float(t @ p)
        return Waiting(mean, math.sqrt(float((t - mean) ** 2 @ p)))
    # A block of j steps continues a run with probability s; r blocks make a run of k actions.
    j, s = (schedule.k, 0.5) if isinstance(schedule, Every) else (1, _continuation(schedule))
    r = -(-k // j)  # ⌈k/j⌉
    mean, variance = 0.0, 0.0
    for _ in range(r - 1):
        variance = variance / s + (1.0 - s) * ((mean + 1.0) / s) ** 2
        mean = (mean + 1.0) / s
    return Waiting((1.0 + mean) * j - (r * j - k), math.sqrt(variance) * j)


def first_reward_time(k: int) -> Waiting:
    """Return the time until the first reward of the rule, whose mean is 2^k - 1 + k/2.

    With probability 1/2 the first run is of the wrong action. The agent then knows the right action
    and needs k more steps.

    >>> first_reward_time(10).mean
    1028.0
    """
    mean, sd = identification_time(k)
    return Waiting(mean + k / 2, math.hypot(sd, k / 2))


def identification_probabilities(
    required: Callable[[int], int], schedule: Schedule, steps: int
) -> FloatArray:
    """Return P(T = t) for t = 1 … steps; `required(t)` is k_t, the run that ends the wait at t.

    The length n of the trailing run is a Markov chain. It becomes n + 1 with probability
    1 - q_t/2, else 1, where q_t is the probability that a mode is drawn before step t. The chain
    ends when n ≥ k_t. No probability is computed as a difference of others, so tiny ones are
    accurate.

    >>> identification_probabilities(lambda t: 2, every_step, 4).tolist()
    [0.0, 0.5, 0.25, 0.125]
    """
    q = _draw_probabilities(schedule, steps)
    probabilities = np.zeros(steps)
    u = np.zeros(steps + 2)  # u[n] = P(not identified yet, trailing run of n); n ≤ max_run
    u[0] = 1.0
    max_run = 0
    for t in range(1, steps + 1):
        switch = 0.5 * q[t - 1]
        restarted = switch * u[: max_run + 1].sum()
        u[1 : max_run + 2] = (1.0 - switch) * u[: max_run + 1]
        u[0] = 0.0
        u[1] += restarted
        k = min(required(t), max_run + 2)  # a larger k_t also ends no run: none is that long yet
        probabilities[t - 1] = u[k : max_run + 2].sum()
        u[k : max_run + 2] = 0.0
        max_run = k - 1
    return probabilities


def tail_bound(growing: GrowingChain, schedule: Schedule, steps: int) -> float:
    """Bound P(steps < T < ∞) in the growing chain from above.

    The schedule must hold every mode for a bounded time; `doubling` raises MissingCapability.

    P(the last n actions are equal) ≤ c ρ^n and k_t ≥ scale √t, so the sum over t > steps is at
    most c ∫ ρ^(scale √t) dt = 2c (z + 1) e^-z / λ²,  z = λ √steps,  λ = -scale ln ρ.

    >>> f"{tail_bound(GrowingChain(), every_step, 100):.0e}"
    '5e-30'
    """
    if schedule is doubling:
        raise MissingCapability(
            "there is no bound for the doubling schedule: it holds modes longer and longer, so T "
            "is finite with probability 1; sum identification_probabilities instead"
        )
    if isinstance(schedule, Every):  # any n steps contain at least ⌊(n-1)/k⌋ draws
        rho, c = 2.0 ** (-1.0 / schedule.k), 2.0
    else:
        rho = _continuation(schedule)
        c = 1.0 / rho
    lam = -growing.scale * math.log(rho)
    z = lam * math.sqrt(steps)
    return min(1.0, 2.0 * c * (z + 1.0) * math.exp(-z) / lam**2)


def _draw_probabilities(schedule: Schedule, steps: int) -> FloatArray:
    """Return the probabilities that a mode is drawn before each action; the first one is 1."""
    q = np.ones(steps)
    if isinstance(schedule, Geometric):
        q[1:] = schedule.p
        return q
    if schedule not in (every_step, doubling) and not isinstance(schedule, Every):
        raise MissingCapability(
            f"there is no exact formula for the schedule {schedule!r}: simulate it, or use "
            "every_step, doubling, Every(j) or Geometric(p)"
        )
    rng: Any = None  # these schedules are deterministic
    drawn_at = 0
    for t in range(1, steps):
        if schedule(Held(t, t - drawn_at, None, None), rng):
            drawn_at = t
        else:
            q[t] = 0.0
    return q


def _continuation(schedule: Schedule) -> float:
    """Return s = 1 - q/2, the probability that a run continues, if q is the same at every step."""
    return 1.0 - float(_draw_probabilities(schedule, 2)[1]) / 2.0

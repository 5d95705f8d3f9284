"""Bandit agents from the literature that need only counts of each arm.

    n_j rewards of arm j, s_j their sum, q_j the sum of their squares, x̄_j = s_j/n_j, t = Σ_j n_j

    uniform      P(a) = 1/N
    oracle       arg max_j m_j, given the true mean rewards m
    ε-greedy     with probability ε α^(t+1) any arm, else arg max_j x̄_j      Sutton & Barto (1998)
    softmax      arm j with probability ∝ e^(x̄_j / τ α^(t+1))                Sutton & Barto (1998)
    UCB1         x̄ + √(2 ln t / n)              Auer, Cesa-Bianchi & Fischer (2002)
    KL-UCB       max{x : n KL(x̄ ‖ x) ≤ ln(t+1) + c max(0, ln ln(t+1))}    Garivier & Cappé (2011)

`act` does not change the agent and the clock t counts rewards, so decisions can be requested in
batches, and feedback can be late, reordered or missing. Ties, including those between arms without
a reward, are broken uniformly at random. The greedy agents assume x̄ = ½ for an arm without rewards.
The paper of the control rule prints α^-t, which grows with t; α^t is meant.
"""

from collections.abc import Hashable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, as_numbers, require_between
from bayescontrol._support.names import Names
from bayescontrol._support.saved import Array, Copied, Fixed, Saved, damaged, declare
from bayescontrol._support.values import format_name
from bayescontrol.bandits.arms import ArmsEnvironment
from bayescontrol.bandits.family import as_reward
from bayescontrol.errors import BadEvidence
from bayescontrol.record import Record
from bayescontrol.seeding import Stream, StreamLike, require_stream

# The sets of valid rewards, in the order of their numbers in the kernels.
_SUPPORT = ("a number below 1e150", "a number from 0 to 1", "0 or 1")


def counting_loop(agent: Any, environment: object) -> Any:
    """Return the compiled loop if agent and environment have the same arms, else None.

    A class of agents declares the loop by `fused_loop = staticmethod(counting_loop)`.
    """
    fits = type(environment) is ArmsEnvironment and agent.arms == tuple(environment.labels)
    return _run if fits else None


class CountingAgent(Saved):
    """Base of these agents: it counts the rewards of each arm and runs a policy of the kernels.

    >>> agent = UCB1(["red", "blue"])
    >>> agent.observe("red", 1)
    >>> agent.act(Stream(0)), agent.pulls
    ('blue', {'red': 1, 'blue': 0})
    """

    saved_fields = declare(
        Fixed("arms", lambda agent: list(agent.arms)),
        Fixed("policy", lambda agent: format_name(type(agent), type(agent).__name__)),
        Fixed("parameters", "_parameters"),
        Array("counts", "_counts"),
        Copied("_scratch"),
    )

    #: The number of the policy in `kernels.policies`.
    kind: ClassVar[int]
    #: The number of the set of valid rewards in `kernels.policies`; see `_SUPPORT`.
    support: ClassVar[int] = 1

    def __init__(
        self, arms: int | Sequence[Hashable], parameters: ArrayLike = (), **settings: object
    ) -> None:
        self._labels = Names("arm", arms)
        self._parameters: FloatArray = np.array(parameters, np.float64)
        #: The settings that `repr` shows.
        self._settings = settings
        # The rows n, s and q of the module's equations, one column per arm.
        self._counts: FloatArray = np.zeros((3, len(self._labels)))
        self._scratch = self._new_scratch()

    def _new_scratch(self) -> FloatArray:
        """Return an array for intermediate results of the kernels."""
        return np.empty((1, len(self._labels)))

    @property
    def arms(self) -> tuple[Any, ...]:
        """The names of the arms, by default 0 … N-1."""
        return tuple(self._labels)

    @property
    def pulls(self) -> dict[Any, int]:
        """The number of rewards of every arm."""
        return dict(zip(self._labels, self._counts[0].astype(int).tolist(), strict=True))

    @property
    def count(self) -> int:
        """t, the number of rewards."""
        return int(self._counts[0].sum())

    def act(self, rng: StreamLike) -> Any:
        """Return the chosen arm. Does not change the agent."""
        return self._labels[self._choose(require_stream(rng))]

    def _rule(self) -> tuple[int, FloatArray]:
        """Return the number of the policy in `kernels.policies`, and its parameters."""
        return self.kind, self._parameters

    def _choose(self, rng: Stream) -> int:
        """Return the number of the arm that the policy pulls."""
        return kernels.policies.choose(*self._rule(), self._counts, self._scratch, rng.state)

    def observe(self, a: Any, o: Any) -> None:
        """Learn that arm a paid o. On an error the agent is unchanged."""
        j = self._labels.place(a)
        name, expected = type(self).__name__, f"{_SUPPORT[self.support]}; rescale the rewards"
        r = as_reward(o, name, expected)
        if not kernels.policies.accepts(self.support, r):
            raise BadEvidence(f"reward {o!r} of arm {a!r} is invalid: {name} accepts {expected}")
        kernels.policies.learn(j, r, self._counts)

    def indices(self) -> dict[Any, float]:
        """The index of every arm; for a greedy agent, the estimated mean reward."""
        out = np.empty(len(self._labels))
        t = float(self.count)
        kernels.policies.index(self.kind, self._parameters, t, self._counts, out)
        return dict(zip(self._labels, out.tolist(), strict=True))

    def interact(
        self, environment: ArmsEnvironment, p: Stream, q: Stream, actions: IntArray,
        rewards: FloatArray,
    ) -> int:  # fmt: skip
        """Run the compiled loop and fill `actions` and `rewards`; return the steps done.

        It stops at a reward from which the agent cannot learn.
        """
        policies, family = kernels.policies, environment.family
        policy = policies.Policy(*self._rule(), self.support, self._counts, self._scratch)
        world = policies.ArmsWorld(family.kind, family.constants, environment.truth)
        streams = kernels.random.Streams(p.state, q.state)
        return policies.interact(policy, world, streams, actions, rewards)

    def _check_state(self, new: SimpleNamespace) -> None:
        """Raise an error if no valid rewards have these counts."""
        n, s, q = new._counts
        is_valid = (n >= 0.0) & (n == np.floor(n))
        if self.support > 0:  # rewards in [0, 1]
            is_valid &= (s >= 0.0) & (s <= n) & (q >= 0.0) & (q <= n)
        if self.support > 1:  # rewards 0 and 1
            is_valid &= (s == q) & (s == np.floor(s))
        if not is_valid.all():
            raise damaged(f"no rewards can give the counts {new._counts.tolist()}")

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self._settings.items())
        n, s, _ = self._counts
        leaders = [j for j in np.argsort(-n, kind="stable")[:4] if n[j] > 0.0]
        shown = ", ".join(f"{self._labels[j]} {s[j] / n[j]:.4g} ({n[j]:.0f})" for j in leaders)
        after = f" after {self.count} rewards: {shown}" if leaders else ""
        return f"{type(self).__name__}({len(self._labels)} arms{settings}{after})"


def _run(agent: Any, environment: ArmsEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; the agent draws from p, the environment from q."""
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    done = agent.interact(environment, p, q, actions, rewards)
    if done < steps:  # the reward is invalid: `observe` raises the error
        agent.observe(environment.labels[int(actions[done])], float(rewards[done]))
    return Record(environment.labels.column(actions), rewards)


# -- references ------------------------------------------------------------------------------


class UniformLevers(CountingAgent):
    """Pulls every arm with probability P(a) = 1/N, whatever was observed. Accepts all rewards.

    >>> UniformLevers(3).act(Stream(0)) in (0, 1, 2)
    True
    """

    format_name: ClassVar[str] = "UniformLevers"

    kind: ClassVar[int] = 0  # kernels.policies.UNIFORM
    support: ClassVar[int] = 0
    fused_loop = staticmethod(counting_loop)

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        super().__init__(arms)


class Oracle(CountingAgent):
    """Pulls the arm arg max_j m_j, where m = `biases` are the true mean rewards.

    Accepts all rewards.

    >>> Oracle(3, biases=[0.2, 0.9, 0.5]).act(Stream(0))
    1
    """

    format_name: ClassVar[str] = "Oracle"

    kind: ClassVar[int] = 1  # kernels.policies.ORACLE
    support: ClassVar[int] = 0
    fused_loop = staticmethod(counting_loop)

    def __init__(self, arms: int | Sequence[Hashable], *, biases: ArrayLike) -> None:
        means = as_numbers(biases, f"biases={biases!r}", ValueError)
        super().__init__(arms, means, biases=means.tolist())
        if means.shape != (len(self.arms),) or not np.isfinite(means).all():
            raise ValueError(f"biases={biases!r}: give {len(self.arms)} finite mean rewards")


# -- greedy with exploration -----------------------------------------------------------------


class EpsilonGreedy(CountingAgent):
    """Pulls any arm with probability ε α^t, else the arm with the best mean. Rewards in [0, 1].

    >>> agent = EpsilonGreedy(2, epsilon=0.1, decay=0.99)
    >>> agent.observe(0, 0.4)
    >>> agent
    EpsilonGreedy(2 arms, epsilon=0.1, decay=0.99 after 1 rewards: 0 0.4 (1))
    >>> agent.indices()  # arm 1 is untried
    {0: 0.4, 1: 0.5}
    """

    format_name: ClassVar[str] = "EpsilonGreedy"

    kind: ClassVar[int] = 2  # kernels.policies.EPSILON_GREEDY
    fused_loop = staticmethod(counting_loop)

    def __init__(
        self, arms: int | Sequence[Hashable], *, epsilon: float = 0.1, decay: float = 1.0
    ) -> None:
        epsilon = require_between("epsilon", epsilon, 0.0, 1.0)
        decay = require_between("decay", decay, 0.0, 1.0, ends="(]")
        super().__init__(arms, [epsilon, decay], epsilon=epsilon, decay=decay)


class Softmax(CountingAgent):
    """Pulls arm j with probability ∝ e^(x̄_j / τ α^t). Rewards in [0, 1].

    >>> agent = Softmax(2, temperature=0.5)
    >>> agent.observe(0, 1.0)
    >>> {a: round(p, 4) for a, p in agent.action_probabilities().items()}  # 1/(1 + e^-1)
    {0: 0.7311, 1: 0.2689}
    """

    format_name: ClassVar[str] = "Softmax"

    kind: ClassVar[int] = 3  # kernels.policies.SOFTMAX
    fused_loop = staticmethod(counting_loop)

    def __init__(
        self, arms: int | Sequence[Hashable], *, temperature: float = 0.1, decay: float = 1.0
    ) -> None:
        temperature = require_between("temperature", temperature, 0.0, 1e300, ends="(]")
        decay = require_between("decay", decay, 0.0, 1.0, ends="(]")
        super().__init__(arms, [temperature, decay], temperature=temperature, decay=decay)

    def action_probabilities(self) -> dict[Any, float]:
        """P(a) ∝ e^(x̄_a / τ α^t)."""
        temperature, decay = self._parameters
        out = np.array(list(self.indices().values()))
        kernels.policies.weights(out, kernels.policies.fading(temperature, decay, self.count), out)
        return dict(zip(self.arms, (out / out.sum()).tolist(), strict=True))


# -- optimism --------------------------------------------------------------------------------


class UCB1(CountingAgent):
    """Pulls the arm arg max_j x̄_j + √(2 ln t / n_j). Rewards in [0, 1].

    Every arm is pulled once, in random order, before any is pulled twice.

    >>> agent = UCB1(2)
    >>> for arm, reward in ((0, 1), (1, 0), (0, 0)):
    ...     agent.observe(arm, reward)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 1.5481, 1: 1.4823}
    """

    format_name: ClassVar[str] = "UCB1"

    kind: ClassVar[int] = 4  # kernels.policies.UCB1
    fused_loop = staticmethod(counting_loop)

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        super().__init__(arms)


class KLUCB(CountingAgent):
    """Pulls the arm with the largest x such that n_j KL(x̄_j ‖ x) ≤ ln(t+1) + c ln ln(t+1).

    KL is the divergence of Bernoulli rewards. The proof needs c = 3, the authors recommend c = 0.
    A negative ln ln counts as 0.

    >>> agent = KLUCB(2)
    >>> for arm, reward in ((0, 1), (1, 0), (0, 0)):
    ...     agent.observe(arm, reward)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 0.933, 1: 0.75}
    """

    format_name: ClassVar[str] = "KLUCB"

    kind: ClassVar[int] = 5  # kernels.policies.KL_UCB
    fused_loop = staticmethod(counting_loop)

    def __init__(self, arms: int | Sequence[Hashable], *, c: float = 0.0) -> None:
        c = require_between("c", c, 0.0, 1e6)
        super().__init__(arms, [c], c=c)

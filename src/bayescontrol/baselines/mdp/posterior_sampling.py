"""Posterior sampling for average reward: the control rule over models, held for episodes.

    m_k ~ P(m | âo_<t_k),   a_t = π_{m_k}(x_t) for t_k ≤ t < t_{k+1}

    t_{k+1}   TSDE (Ouyang et al. 2017): t - t_k > T_{k-1}, or some n_t(x,a) > 2 n_{t_k}(x,a)
              DS-PSRL (Theocharous et al. 2018): T_k = 2^k
              every step: the rule as printed

T_k is the length of episode k. A mode is a model with its own best policy, the hypothesis is
P(r, y | m, x, a): nothing else is new, and the agent is a `ControlRule` that gives up its mode
where an episode ends.
"""

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.baselines.mdp.dirichlet import DirichletMDPBelief, ModelPrior
from bayescontrol.baselines.mdp.sampled_model import SampledModel
from bayescontrol.errors import IncompatibleState
from bayescontrol.mdp.table import MDP, advance
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Held
from bayescontrol.seeding import Stream


class Episode(NamedTuple):
    """What is known of an episode when the next action is due.

    >>> e = Episode(t=7, length=4, last=3, before=np.array([[2.0]]), tried=np.array([[6.0]]))
    >>> e.doubled
    True
    """

    t: int  #: actions issued so far
    length: int  #: of these, how many in this episode
    last: int  #: T_{k-1}, the length of the episode before
    before: FloatArray  #: n(x,a) when it began
    tried: FloatArray  #: n(x,a) now

    @property
    def doubled(self) -> bool:
        """n_t(x,a) > 2 n_{t_k}(x,a) for some (x,a)."""
        return bool((self.tried > 2.0 * self.before).any())


#: Says where an episode ends.
Ends: TypeAlias = Callable[[Episode], bool]


def tsde(e: Episode) -> bool:
    """Longer than the last episode, or a count of visits has doubled.

    >>> counts = np.array([[5.0]])
    >>> tsde(Episode(4, 2, 2, counts, counts)), tsde(Episode(5, 3, 2, counts, counts))
    (False, True)
    """
    return e.length > e.last or e.doubled


def doubling_lengths(e: Episode) -> bool:
    """Episodes of 1, 2, 4, 8, … steps, whatever is seen.

    In t steps only log2 t models are drawn, and a bad one is held for long: where there is much to
    find out, as in a maze, that is far too few.

    >>> counts = np.array([[5.0]])
    >>> [t for t in range(1, 20) if doubling_lengths(Episode(t, t - 3, 2, counts, counts))][0]
    7
    """
    return e.length > e.t - e.length


def at_once(e: Episode) -> bool:
    """Every episode is one step long: a model is drawn for every action.

    >>> counts = np.array([[5.0]])
    >>> at_once(Episode(4, 1, 1, counts, counts))
    True
    """
    return True


def _hold(held: Held[Any], rng: Stream) -> bool:
    return False


class PosteriorSampling(ControlRule[SampledModel, Any, Any, Any]):
    """The control rule over models of an MDP; `ends` says when another model is drawn.

    `start` is the state to begin in, by default the first.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = PosteriorSampling.on(mdp, ModelPrior(precision=100.0))
    >>> record = interact(agent, mdp.environment(), 500)
    >>> float(record.observations["reward"][-99:].mean())  # ρ* = 1/3
    0.333...
    >>> agent.episode.length <= agent.episode.last + 1
    True
    """

    format_name: ClassVar[str] = "PosteriorSampling"

    def __init__(
        self, belief: DirichletMDPBelief, start: Hashable | None = None, ends: Ends = tsde
    ) -> None:
        if not callable(ends):
            raise TypeError(f"ends={ends!r} must be a function of an Episode, such as tsde")
        x = belief.states[0] if start is None else start
        belief.actions_in(x)
        super().__init__(belief, x, advance=advance, schedule=_hold)
        self.ends = ends
        self._last = 0
        self._before = belief.tried

    @classmethod
    def on(
        cls,
        mdp: MDP,
        prior: ModelPrior | None = None,
        *,
        start: Hashable | None = None,
        ends: Ends = tsde,
        **options: Any,
    ) -> "PosteriorSampling":
        """The agent for a given MDP; `options` are those of `DirichletMDPBelief`.

        >>> from bayescontrol.mdp import chain_mdp
        >>> PosteriorSampling.on(chain_mdp(3), start=2, ends=doubling_lengths).x
        2
        """
        return cls(DirichletMDPBelief.on(mdp, prior, **options), start, ends)

    @property
    def episode(self) -> Episode:
        """The episode of now."""
        held = self._held()
        return Episode(held.t, held.age, self._last, self._before, self.belief.tried)

    def act(self, rng: Stream) -> Any:
        """π_m(x); another m is drawn first where the episode is over."""
        episode = self.episode
        if self.mode is None or self.ends(episode):
            self._last, self._before, self.mode = episode.length, episode.tried, None
        return super().act(rng)

    def observe(self, a: Any, o: Any) -> None:
        """Learn from o = (r, y), then move on: x ← y. On an error nothing has changed."""
        self.learn(self.x, a, o)
        self.x = o[1]

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit, in mid-episode."""
        return {
            **super().save(),
            "episode/last": np.array(self._last),
            "episode/before": self._before.copy(),
        }

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for an agent built alike."""
        missing = {"episode/last", "episode/before"} - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        before, last = arrays["episode/before"], arrays["episode/last"]
        if before.shape != self._before.shape or before.dtype != np.float64 or last.shape != ():
            raise IncompatibleState("the saved episode is of an agent with other states or actions")
        super().load(arrays)
        self._last, self._before = int(last), before.copy()

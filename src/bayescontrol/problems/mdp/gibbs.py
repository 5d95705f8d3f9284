"""The MDP agent of the paper: modes are (Q, ρ), drawn by a Gibbs sampler.

    ξ_m(x,a,y) = Q(x,a) + ρ - M(y),   M(y) = max_a Q(y,a)          what mode m expects to be paid
    P(r | m, x, a, y) = N(r; ξ_m(x,a,y), 1/p)                      its hypothesis
    P(a | m, x) = 1 for a = arg max_a' Q(x,a')                     its policy

Evidence is n(x,a,y) and the rewards of each transition; the chain (Q, ρ) is the sampler's. States
are found on the way, and only what has occurred is represented. The conditionals are in
`kernels.gibbs`.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior
from bayescontrol.problems.mdp.ledger import Ledger
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream
from bayescontrol.values import pack, unpack

__all__ = ["GibbsBelief", "GibbsPrior", "QValues", "mdp_agent"]


@dataclass(frozen=True)
class GibbsPrior:
    """ξ(x,a,y) ~ N(μ0, 1/λ0), noise of precision p.

    `precision=None`: p is unknown, ξ(x,a,y) ~ N(μ0, 1/(λ0 p)) and p ~ Gamma(shape, rate), and the
    chain draws it too. How widely Q is sampled, so how long the agent explores, goes with 1/√p:
    choose p so that 1/√p is about the spread of M(y) among the successors of a state, or let the
    chain find it.

    >>> GibbsPrior(precision=100.0)
    GibbsPrior(mu0=1.0, lambda0=1.0, precision=100.0, shape=1.0, rate=1.0)
    """

    mu0: float = 1.0
    lambda0: float = 1.0
    precision: float | None = 1.0
    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.mu0):
            raise InvalidPrior(f"mu0 = {self.mu0}: the prior mean of a reward must be finite")
        for name in ("lambda0", "precision", "shape", "rate"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < math.inf:
                raise InvalidPrior(f"{name} = {value} must be positive and finite")


class QValues:
    """A mode (Q, ρ): it does what looks best, arg max_a Q(x,a).

    A state that it has never seen gets one of its actions at random: nothing tells them apart.

    >>> mode = QValues({"home": 0}, ("stay", "go"), np.array([[0.0, 1.0]]), rho=0.5)
    >>> mode.act("home", Stream(0))
    'go'
    """

    def __init__(
        self,
        places: Mapping[Hashable, int],
        actions: Sequence[Any],
        Q: FloatArray,
        rho: float,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        self._places, self.actions, self.Q, self.rho = places, tuple(actions), Q, rho
        self._allowed = allowed

    def act(self, x: Any, rng: Stream) -> Any:
        """arg max_a Q(x,a)."""
        place = self._places.get(x)
        if place is None or place >= len(self.Q):
            choices = self.actions if self._allowed is None else tuple(self._allowed(x))
            return choices[rng.integers(len(choices))]
        return self.actions[int(self.Q[place].argmax())]

    def __repr__(self) -> str:
        return f"QValues({len(self.Q)} states, ρ = {self.rho:.4g})"


class GibbsBelief:
    """P(Q, ρ | âo_<t), by the paper's Gibbs sampler.

    `actions` is their number or their names. `states=None` is prior B of the documentation: only
    transitions that were seen carry a prior. A list of states declares them all, prior A: every
    one is a possible successor of every pair. `allowed(x)` gives the actions of a state, all by
    default. `sweeps` are made per draw; `partial=k` makes them partial: ρ, k states in turn, and
    the state of now. `recentre` takes the drift of the gauge out, and changes no action.

    >>> belief = GibbsBelief(2)
    >>> belief.observe("a", 1, (1.0, "b"))
    >>> belief
    GibbsBelief(2 states, 2 actions after 1 transitions: ρ = 0)
    >>> belief.draw_action("c", Stream(0)) in (0, 1)
    True
    """

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        prior: GibbsPrior | None = None,
        *,
        states: Sequence[Hashable] | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
        sweeps: int = 1,
        partial: int = 0,
        recentre: bool = True,
    ) -> None:
        self.prior = GibbsPrior() if prior is None else prior
        unknown = self.prior.precision is None
        if unknown and states is not None:
            raise InvalidPrior("an unknown precision needs states=None: prior A has a known one")
        for name, value, least in (("sweeps", sweeps, 1), ("partial", partial, 0)):
            if not isinstance(value, int) or value < least:
                raise InvalidPrior(f"{name} = {value!r} must be a whole number of at least {least}")
        self._ledger = Ledger(
            actions,
            np.array(
                [
                    self.prior.mu0,
                    self.prior.lambda0,
                    1.0 if self.prior.precision is None else self.prior.precision,
                    0.0 if states is None else float(len(states)),
                ]
            ),
            states,
            allowed,
        )
        self._how = np.array(
            [sweeps, partial, recentre, self.prior.shape, self.prior.rate if unknown else 0.0],
            np.float64,
        )
        self._cursor = 0
        self._last: QValues | None = None

    # -- the verbs of a belief ------------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """n(x,a,y) += 1 for o = (r, y). On an error nothing has changed."""
        try:
            r, y = o
            reward = float(r)
        except (TypeError, ValueError):
            raise BadEvidence(
                f"observation {o!r} after action {a!r} in state {x!r}: it must be (reward, state)"
            ) from None
        if not math.isfinite(reward):
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {x!r}: it must be a finite number"
            )
        self._ledger.record(x, a, y, reward)

    def sample(self, rng: Stream) -> QValues:
        """(Q, ρ) after the sweeps of one draw."""
        self._draw(-1, rng)
        self._last = self._as_mode()
        return self._last

    def draw_action(self, x: Any, rng: Stream) -> Any:
        """As `sample` and its policy would, without a copy of Q."""
        self._last = None
        place = self._ledger.place(x)
        self._draw(-1 if place is None else place, rng)
        if place is None:
            choices = self._ledger.actions_of(x)
            return choices[rng.integers(len(choices))]
        ledger = self._ledger
        a = kernels.gibbs.best_action(ledger.evidence, ledger.chain, place)
        return ledger.actions[a]

    def _draw(self, x: int, rng: Stream) -> None:
        ledger = self._ledger
        if len(ledger):
            self._cursor = kernels.gibbs.draw_mode(
                ledger.evidence, ledger.chain, self._how, len(ledger), self._cursor, x, rng.state
            )

    def _as_mode(self) -> QValues:
        ledger = self._ledger
        Q = np.where(ledger.has_action(), ledger.chain.Q[: len(ledger)], -np.inf)
        return QValues(ledger.places, tuple(ledger.actions), Q, self.rho, ledger.allowed)

    # -- what a reader may ask ---------------------------------------------------------------------

    @property
    def rho(self) -> float:
        """ρ as drawn last: the average reward that the chain believes in."""
        return float(self._ledger.chain.scalars[0])

    @property
    def precision(self) -> float:
        """p as drawn last, or as given."""
        if self.prior.precision is None:
            return float(self._ledger.chain.scalars[1]) ** -2
        return self.prior.precision

    @property
    def states(self) -> tuple[Any, ...]:
        """The states found, in the order in which they are swept."""
        return tuple(self._ledger.places)

    def q_values(self, x: Any) -> dict[Any, float]:
        """Q(x,·) as drawn last.

        >>> belief = GibbsBelief(2)
        >>> belief.observe("a", 1, (1.0, "b"))
        >>> sorted(belief.q_values("a"))
        [0, 1]
        """
        place = self._ledger.place(x)
        if place is None:
            return {}
        row, has = self._ledger.chain.Q[place], self._ledger.has_action()[place]
        return {a: float(q) for a, q, h in zip(self._ledger.actions, row, has, strict=True) if h}

    def transitions(self) -> dict[tuple[Any, Any, Any], tuple[int, float]]:
        """(x, a, y) -> n(x,a,y) and the mean reward.

        >>> belief = GibbsBelief(2)
        >>> belief.observe("a", 1, (1.0, "b"))
        >>> belief.transitions()
        {('a', 1, 'b'): (1, 1.0)}
        """
        return self._ledger.transitions()

    @property
    def count(self) -> int:
        """Transitions seen."""
        return self._ledger.count

    def posterior(self) -> FloatArray:
        """μ(x,a,y) and λ(x,a,y) of every transition seen, in the order of `transitions`."""
        p, lambda0 = self._ledger.prior[2], self._ledger.prior[1]
        seen = np.array(list(self.transitions().values()), np.float64).reshape(-1, 2)
        lam = lambda0 + p * seen[:, 0]
        mu = (lambda0 * self._ledger.prior[0] + p * seen[:, 0] * seen[:, 1]) / lam
        return np.column_stack([mu, lam])

    def last(self) -> QValues | None:
        """The mode drawn last, unless an action has been drawn without one since."""
        return self._last

    # -- for compiled loops ------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """What the kernels work on, in place."""
        return self._ledger

    @property
    def how(self) -> FloatArray:
        """What a draw does, as `kernels.gibbs.draw_mode` reads it."""
        return self._how

    @property
    def cursor(self) -> int:
        """Where the next partial sweep begins."""
        return self._cursor

    def fast_forward(self, cursor: int) -> None:
        """Be where a compiled loop has led that worked on the ledger."""
        self._cursor, self._last = cursor, None

    # -- named arrays ------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit, the chain included."""
        held = np.empty(0) if self._last is None else np.append(self._last.Q, self._last.rho)
        return {
            "settings": pack([repr(self.prior), *self._how.tolist()], "the settings"),
            **self._ledger.save(),
            "sampler/cursor": np.array(self._cursor),
            "drawn": held,
        }

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for a belief built alike."""
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(f"{arrays!r} is not a mapping of arrays, as `save` gives")
        missing = {"settings", "sampler/cursor", "drawn"} - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        settings = [repr(self.prior), *self._how.tolist()]
        if unpack(arrays["settings"]) != settings:
            raise IncompatibleState(f"saved with {arrays['settings']}, this belief has {settings}")
        held = np.array(arrays["drawn"], np.float64)
        ledger = self._ledger.loaded(arrays)
        columns = len(ledger.actions)
        if held.size and (held.size - 1) % columns:
            raise IncompatibleState(f"the saved state is damaged: a mode of {held.size} numbers")
        self._ledger, self._cursor = ledger, int(arrays["sampler/cursor"])
        self._last = None
        if held.size:
            Q = held[:-1].reshape(-1, columns)
            self._last = QValues(
                ledger.places, tuple(ledger.actions), Q, float(held[-1]), ledger.allowed
            )

    def merge(self, other: "GibbsBelief") -> None:
        """The transitions of both; the chain stays this one's."""
        if not isinstance(other, GibbsBelief):
            raise IncompatibleState(f"{other!r} is not a GibbsBelief: nothing to merge")
        if self.prior != other.prior or list(self._ledger.actions) != list(other._ledger.actions):
            raise IncompatibleState("beliefs can be merged only if they share actions and prior")
        self._ledger.absorb(other._ledger)

    def copy(self) -> "GibbsBelief":
        """The same belief, free to go its own way."""
        twin = GibbsBelief.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._ledger = self._ledger.copy()
        return twin

    def __repr__(self) -> str:
        return (
            f"GibbsBelief({len(self._ledger)} states, {len(self._ledger.actions)} actions after "
            f"{self.count} transitions: ρ = {self.rho:.4g})"
        )


def _next_state(x: Any, a: Any, o: Any) -> Any:
    return o[1]


def mdp_agent(
    actions: int | Sequence[Hashable],
    start: Any,
    prior: GibbsPrior | None = None,
    *,
    schedule: Schedule = every_step,
    **options: Any,
) -> ControlRule[QValues, Any, Any, Any]:
    """The control rule over (Q, ρ), in state `start`; `options` are those of `GibbsBelief`.

    >>> agent = mdp_agent(["left", "right"], start="home")
    >>> agent.observe("left", (1.0, "away"))
    >>> agent.x
    'away'
    """
    return ControlRule(
        GibbsBelief(actions, prior, **options), start, advance=_next_state, schedule=schedule
    )

"""What the MDP agent holds before it has seen anything.

ξ(x,a,y) ~ N(μ0, 1/λ0)        r | ξ ~ N(ξ, 1/p)                         p known
ξ(x,a,y) ~ N(μ0, 1/(λ0 p))    r | ξ ~ N(ξ, 1/p)    p ~ Gamma(a0, b0)    p unknown

The paper's operation mode for Markov decision problems: m = (Q, ρ).

ξ_m(x,a,y) = Q(x,a) + ρ - M(y),   M(y) = max_a Q(y,a)          what mode m expects to be paid
P(r | m, x, a, y) = N(r; ξ_m(x,a,y), 1/p)                      its hypothesis
P(a | m, x) = 1 for a = arg max_a' Q(x,a')                     its policy

The MDP agent of the paper: modes are (Q, ρ), drawn by a Gibbs sampler.

    ξ_m(x,a,y) = Q(x,a) + ρ - M(y)  ~  N(μ(x,a,y), 1/λ(x,a,y)),        M(y) = max_a Q(y,a)
    λ(x,a,y) = λ0 + p n(x,a,y)          μ(x,a,y) = (λ0 μ0 + p Σ r(x,a,y)) / λ(x,a,y)

Evidence is n(x,a,y) and the rewards of each transition; the chain (Q, ρ) is the sampler's. States
are found on the way, and only what has occurred is represented. The mode is in `q_values`, the
conditionals are in `kernels.gibbs`.

    prior B    only transitions that were seen carry a prior; an untried action is taken to stay
               where it is: Q(x,a) ~ N(μ0 - ρ + M(x), 1/λ0)
    prior A    the states are declared, and every one is a successor of every pair, seen or not

The compiled loop of the Gibbs agent in an MDP.

The kernel works on the ledger's arrays until a state is new or room runs out; that one step is
then learnt by the readable code, which makes room, and the kernel goes on.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidPrior,
    MissingCapability,
    NotConverged,
    UnknownState,
)
from bayescontrol.mdp.ledger import Ledger, from_arrays, to_arrays
from bayescontrol.mdp.table import MDPEnvironment, Step, advance
from bayescontrol.record import Record, as_rows, select
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream
from bayescontrol.situations import follows_state
from bayescontrol.values import format_text, pack, unpack

if TYPE_CHECKING:
    from bayescontrol.kernels.gibbs import GibbsSettings


#: Rewards and hyperparameters beyond this are refused: their squares would leave the doubles.
LARGEST = 1e100


@dataclass(frozen=True)
class GibbsPrior:
    """ξ(x,a,y) ~ N(μ0, 1/λ0), noise of precision p.

    `precision=None`: p is unknown, ξ(x,a,y) ~ N(μ0, 1/(λ0 p)) and p ~ Gamma(shape, rate), and the
    chain draws it too. How widely Q is sampled, so how long the agent explores, goes with 1/√p:
    choose p so that 1/√p is about the spread of M(y) among the successors of a state, or let the
    chain find it.

    >>> GibbsPrior(precision=100)
    GibbsPrior(mu0=1.0, lambda0=1.0, precision=100.0, shape=1.0, rate=1.0)
    >>> GibbsPrior(lambda0=0)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidPrior: lambda0 = 0: it must be positive, between 1e-100 and 1e+100
    """

    mu0: float = 1.0
    lambda0: float = 1.0
    precision: float | None = 1.0
    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name == "precision":
                continue
            number = isinstance(value, int | float | np.integer | np.floating)
            if field.name == "mu0":
                if not (number and abs(value) <= LARGEST):
                    raise InvalidPrior(f"mu0 = {value!r}: it must be a number within ±{LARGEST:g}")
            elif not (number and 1.0 / LARGEST <= value <= LARGEST):
                raise InvalidPrior(
                    f"{field.name} = {value!r}: it must be positive, "
                    f"between {1 / LARGEST:g} and {LARGEST:g}"
                )
            object.__setattr__(self, field.name, float(value))

    def format_text(self) -> str:
        """Return the text of the prior in stored data, which is part of the format.

        >>> GibbsPrior(precision=None).format_text()
        'GibbsPrior(mu0=1.0, lambda0=1.0, precision=None, shape=1.0, rate=1.0)'
        """
        return (
            f"GibbsPrior(mu0={self.mu0!r}, lambda0={self.lambda0!r}, precision={self.precision!r}, "
            f"shape={self.shape!r}, rate={self.rate!r})"
        )


class QValues:
    """A mode (Q, ρ): it does what looks best, arg max_a Q(x,a).

    `places` says which row of Q is whose; -∞ marks an action that a state does not offer. A state
    without a row gets one of its actions at random, of `offered(x)`: nothing tells them apart.

    >>> import numpy as np
    >>> mode = QValues({"home": 0}, ("stay", "go"), np.array([[0.0, 1.0]]), rho=0.5)
    >>> mode.act("home", Stream(0)), mode.act("elsewhere", Stream(0)) in ("stay", "go")
    ('go', True)
    """

    def __init__(
        self,
        places: Mapping[Hashable, int],
        actions: Sequence[Any],
        Q: FloatArray,
        rho: float,
        offered: Callable[[Any], Sequence[Any]] | None = None,
    ) -> None:
        self._places, self.actions, self.Q, self.rho = places, tuple(actions), Q, rho
        self._offered = offered

    def act(self, x: Any, rng: Stream) -> Any:
        """arg max_a Q(x,a), the first of several."""
        place = self._places.get(x)
        if place is None or place >= len(self.Q):
            choices = self.actions if self._offered is None else self._offered(x)
            return choices[rng.integers(len(choices))]
        return self.actions[int(self.Q[place].argmax())]

    def __repr__(self) -> str:
        return f"QValues({len(self.Q)} states, ρ = {self.rho:.4g})"


class GibbsBelief:
    """P(Q, ρ | âo_<t), by the paper's Gibbs sampler.

    `actions` is their number or their names. `states=None` is prior B; a list of states (or their
    number) declares them all, prior A. `allowed(x)` gives the actions of a state, all by default.
    `sweeps` are made per draw; `partial=k` makes them partial: ρ, the k states next in turn, and
    the state of now. `recentre` takes the drift of the gauge out, and changes no action.

    >>> belief = GibbsBelief(2)
    >>> belief.observe("a", 1, (1.0, "b"))
    >>> belief
    GibbsBelief(2 states, 2 actions after 1 transitions: ρ = 0)
    >>> belief.draw_action("c", Stream(0)) in (0, 1)
    True
    """

    format_name: ClassVar[str] = "GibbsBelief"

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        prior: GibbsPrior | None = None,
        *,
        states: int | Sequence[Hashable] | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
        sweeps: int = 1,
        partial: int = 0,
        recentre: bool = True,
    ) -> None:
        self.prior = GibbsPrior() if prior is None else prior
        for name, value, least in (("sweeps", sweeps, 1), ("partial", partial, 0)):
            if type(value) is not int or value < least:
                raise InvalidPrior(f"{name} = {value!r} must be a whole number of at least {least}")
        p = self.prior.precision
        self._ledger = Ledger(
            actions, (self.prior.mu0, self.prior.lambda0, 1.0 if p is None else p), states, allowed
        )
        self._how = kernels.gibbs.GibbsSettings(
            sweeps, partial, bool(recentre), self.prior.shape, self.prior.rate if p is None else 0.0
        )
        self._last: QValues | None = None

    # -- the verbs of a belief ------------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """n(x,a,y) += 1 for o = (r, y). On an error nothing has changed."""
        try:
            r, y = o
            reward = float(r) if isinstance(r, Real) else math.nan
        except (TypeError, ValueError, OverflowError):
            raise BadEvidence(
                f"observation {o!r} after action {a!r} in state {x!r}: it must be (reward, state)"
            ) from None
        if not abs(reward) <= LARGEST:
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {x!r}: "
                f"it must be a number within ±{LARGEST:g}"
            )
        self._ledger.record(x, a, y, reward)

    def sample(self, rng: Stream) -> QValues:
        """(Q, ρ) after the sweeps of one draw."""
        self._draw(-1, rng)
        Q = np.where(self._ledger.has_action(), self._ledger.chain.Q[: len(self._ledger)], -np.inf)
        self._last = self._mode(Q, self.rho)
        return self._last

    def draw_action(self, x: Any, rng: Stream) -> Any:
        """As `sample` and its policy would, without a copy of Q."""
        ledger = self._ledger
        place = ledger.place(x)
        choices = ledger.actions_of(x) if place is None else []
        self._last = None
        self._draw(-1 if place is None else place, rng)
        if place is None:
            return choices[rng.integers(len(choices))]
        return ledger.actions[kernels.gibbs.best_action(ledger.evidence, ledger.chain, place)]

    def _draw(self, x: int, rng: Stream) -> None:
        ledger = self._ledger
        if len(ledger):
            kernels.gibbs.draw_mode(
                ledger.evidence, ledger.chain, self._how, len(ledger), x, rng.state
            )
            self.check_chain()

    def check_chain(self) -> None:
        """`NotConverged` if the chain has left the doubles."""
        if not math.isfinite(self.rho):
            raise NotConverged(
                f"ρ = {self.rho} after {self.count} transitions: a sweep is stable where they "
                "come from whole histories, in which every state is left as often as it is entered"
            )

    def _mode(self, Q: FloatArray, rho: float) -> QValues:
        ledger = self._ledger
        return QValues(ledger.places, tuple(ledger.actions), Q, rho, ledger.actions_of)

    # -- what a reader may ask ---------------------------------------------------------------------

    @property
    def rho(self) -> float:
        """ρ as drawn last: the average reward that the chain believes in."""
        return float(self._ledger.chain.scalars[0])

    @property
    def precision(self) -> float:
        """p as drawn last, or as given."""
        p = self.prior.precision
        return float(self._ledger.chain.scalars[1]) ** -2 if p is None else p

    @property
    def states(self) -> tuple[Any, ...]:
        """The states found, in the order in which they are swept."""
        return tuple(self._ledger.places)

    def require_state(self, x: Any, where: str) -> None:
        """`BadEvidence` unless x is a state, or may become one."""
        self._ledger.checked(x, where)

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
        row, has = self._ledger.chain.Q[place], self._ledger.offered(x)
        return {a: float(q) for a, q, h in zip(self._ledger.actions, row, has, strict=True) if h}

    def transitions(self) -> dict[tuple[Any, Any, Any], tuple[int, float]]:
        """(x, a, y) -> n(x,a,y) and the mean reward.

        >>> belief = GibbsBelief(2)
        >>> belief.observe("a", 1, (1.0, "b"))
        >>> belief.transitions()
        {('a', 1, 'b'): (1, 1.0)}
        """
        return {(x, a, y): (n, total / n) for x, a, y, n, total in self._ledger}

    @property
    def count(self) -> int:
        """Transitions seen."""
        return self._ledger.count

    def posterior(self) -> FloatArray:
        """μ(x,a,y) and λ(x,a,y) of every transition seen, in the order of `transitions`.

        Where the precision is unknown, λ is in units of p.

        >>> belief = GibbsBelief(2)
        >>> belief.observe("a", 1, (2.0, "b"))
        >>> belief.posterior()
        array([[1.5, 2. ]])
        """
        mu0, lambda0, unit, _ = self._ledger.prior
        seen = np.array([(n, total) for *_, n, total in self._ledger], np.float64).reshape(-1, 2)
        lam = lambda0 + unit * seen[:, 0]
        return np.column_stack([(lambda0 * mu0 + unit * seen[:, 1]) / lam, lam])

    def last(self) -> QValues | None:
        """The mode drawn last, unless an action has been drawn without one since."""
        return self._last

    # -- for compiled loops ------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """What the kernels work on, in place."""
        return self._ledger

    @property
    def how(self) -> "GibbsSettings":
        """What a draw does, as `kernels.gibbs.draw_mode` reads it."""
        return self._how

    def fast_forward(self) -> None:
        """Be where a compiled loop has led that worked on the ledger."""
        self._last = None

    # -- named arrays ------------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit, the chain included."""
        held = np.empty(0) if self._last is None else np.append(self._last.Q, self._last.rho)
        return {
            "settings": pack(self._settings(), "the settings"),
            **to_arrays(self._ledger),
            "drawn": held,
        }

    def _settings(self) -> list[Any]:
        return [format_text(self.prior), *self._how]

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for a belief built alike."""
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(f"{arrays!r} is not a mapping of arrays, as `save` gives")
        missing = {"settings", "drawn"} - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        if unpack(arrays["settings"]) != self._settings():
            raise IncompatibleState(
                f"saved with {arrays['settings']}, this belief has {self._settings()}"
            )
        ledger = from_arrays(arrays, self._ledger)
        held, columns = arrays["drawn"], len(ledger.actions)
        if held.ndim != 1 or held.dtype != np.float64 or (held.size and (held.size - 1) % columns):
            raise IncompatibleState(f"the saved state is damaged: the mode drawn is {held}")
        self._ledger, self._last = ledger, None
        if held.size:
            self._last = self._mode(held[:-1].reshape(-1, columns).copy(), float(held[-1]))

    def merge(self, other: "GibbsBelief") -> None:
        """The transitions of both; the chain stays this one's. On an error nothing has changed."""
        if not isinstance(other, GibbsBelief):
            raise IncompatibleState(f"{other!r} is not a GibbsBelief: nothing to merge")
        mine, its = self._ledger, other._ledger
        alike = self.prior == other.prior and mine.declared == its.declared
        if not alike or list(mine.actions) != list(its.actions):
            raise IncompatibleState("beliefs can be merged only if they share actions and prior")
        ledger = mine.copy()
        ledger.absorb(its)
        self._ledger = ledger
        if self._last is not None:
            self._last = self._mode(self._last.Q, self._last.rho)

    def copy(self) -> "GibbsBelief":
        """The same belief, free to go its own way."""
        twin = GibbsBelief.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._ledger = self._ledger.copy()
        if self._last is not None:
            twin._last = twin._mode(self._last.Q.copy(), self._last.rho)
        return twin

    def __repr__(self) -> str:
        return (
            f"GibbsBelief({len(self._ledger)} states, {len(self._ledger.actions)} actions after "
            f"{self.count} transitions: ρ = {self.rho:.4g})"
        )


@follows_state
def next_state(x: Any, a: Any, o: Any) -> Any:
    """T(x, a, o) = y for o = (r, y); malformed observations leave the state unchanged.

    >>> next_state("home", "go", (1.0, "away"))
    'away'
    """
    try:
        _, y = o
    except (TypeError, ValueError):
        return x  # the belief refuses it, in its own words
    return y


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
    if isinstance(start, np.ndarray):
        raise MissingCapability(
            f"start={start!r} is no name of a state: a Box has no finite states. Sort it into "
            "bins, or use experts (`experts`), with `gym.drive` in a world of Gymnasium's"
        )
    belief = GibbsBelief(actions, prior, **options)
    belief.require_state(start, "to start in")
    return ControlRule(belief, start, advance=next_state, schedule=schedule)


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop, if the agent draws anew at each step and is where the world is.

    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.mdp.gibbs import mdp_agent
    >>> fused_loop(mdp_agent(2, start=0), chain_mdp(2).environment()) is not None
    True
    """
    mdp = environment.mdp
    try:
        together = mdp.states.place(agent.x) == environment.at
    except UnknownState:
        together = False
    fits = (
        together
        and agent.schedule is every_step
        and agent.advance in (next_state, advance)
        and list(agent.belief.ledger.actions) == list(mdp.actions)
        and bool((np.abs(mdp.rewards) <= LARGEST).all())
    )
    return _run if fits else None


def _run(agent: Any, environment: MDPEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    mdp, belief, start = environment.mdp, agent.belief, agent.x
    labels = list(belief.ledger.actions)
    actions, rewards, states = np.empty(steps, np.int64), np.empty(steps), np.empty(steps, np.int64)
    number = np.array([_number(belief, x) for x in mdp.states], np.int64)

    def situation(s: int) -> Any:
        return mdp.states[states[s - 1]] if s else start

    t = 0
    if number[environment.at] < 0:  # the start enters with the first step out of it
        a = agent.act(p)
        here, o = environment.at, environment.respond(a, q)
        agent.observe(a, o)
        actions[0], rewards[0], states[0] = mdp.actions.place(a), o.reward, environment.at
        for y in (here, environment.at):
            number[y] = _number(belief, mdp.states[y])
        t = 1
    while t < steps:
        begun, ledger = t, belief.ledger
        t, environment.at, why = kernels.gibbs.interact(
            ledger.evidence, ledger.chain, belief.how, len(ledger), mdp.tables, number,
            environment.at, t, p.state, q.state, actions, rewards, states,
        )  # fmt: skip
        belief.fast_forward()
        acted = why in (kernels.gibbs.NOT_LEARNT, kernels.gibbs.NOT_OFFERED)
        last = t if acted else t - 1
        if last >= begun:
            agent.fast_forward(last + 1 - begun, situation(last), situation(t))
        if why == kernels.gibbs.DONE:
            break
        # What is left to do for this step is the readable code's, errors included.
        if why == kernels.gibbs.LOST:
            belief.check_chain()
        if why == kernels.gibbs.NOT_OFFERED:
            environment.respond(labels[actions[t]], q)
        agent.observe(labels[actions[t]], Step(float(rewards[t]), environment.x))
        number[environment.at] = _number(belief, environment.x)
        t += 1
    return Record(
        select(labels, actions),
        as_rows({"reward": rewards, "state": select(list(mdp.states), states)}),
    )


def _number(belief: Any, x: Any) -> int:
    place = belief.ledger.place(x)
    return -1 if place is None else place

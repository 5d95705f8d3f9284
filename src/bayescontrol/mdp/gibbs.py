"""The MDP agent of the paper: its operation modes are (Q, ρ), drawn by a Gibbs sampler.

    ξ_m(x,a,y) = Q(x,a) + ρ - M(y),   M(y) = max_a Q(y,a)      the reward that mode m expects
    P(r | m, x, a, y) = N(r; ξ_m(x,a,y), 1/p)                  its hypothesis
    P(a | m, x) = 1 for a = arg max_a' Q(x,a')                 its policy

    ξ(x,a,y) ~ N(μ0, 1/λ0)                                     prior, p known
    ξ(x,a,y) ~ N(μ0, 1/(λ0 p)),  p ~ Gamma(a0, b0)             prior, p unknown; at least 1
    a precision for each pair, see `kernels.gibbs_learned`      prior, p learned

    ξ_m(x,a,y) | âo_<t ~ N(μ(x,a,y), 1/λ(x,a,y))               posterior
    λ(x,a,y) = λ0 + p n(x,a,y)          μ(x,a,y) = (λ0 μ0 + p Σ r(x,a,y)) / λ(x,a,y)

The evidence is n(x,a,y) and the rewards of each transition (`ledger`); the conditional
distributions of the sampler are in `kernels.gibbs`. States are added when they are observed.

    prior B    only observed transitions have a prior; an untried action is assumed to stay in its
               state: Q(x,a) ~ N(μ0 - ρ + M(x), 1/λ0)
    prior A    all states are declared, and each is a possible successor of every pair

`GibbsMDP` is an unknown MDP as a problem, with observations o = (reward, next state). Each draw
continues the sampler's chain, so replaying a log repeats all draws.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from bayescontrol import errors, kernels
from bayescontrol._arrays import FloatArray, as_integer, require_between
from bayescontrol._support.description import ModelKind, SettingDoc, SizeLimit
from bayescontrol._support.display import summary_html
from bayescontrol._support.saved import Array, Fixed, Part, Saved, damaged, declare
from bayescontrol._support.temperature import with_temperature
from bayescontrol._support.values import format_text
from bayescontrol.errors import counted
from bayescontrol.mdp.ledger import Ledger
from bayescontrol.mdp.table import MDP, MDPEnvironment, Step, advance, read_step, step_record
from bayescontrol.protocols import PosteriorMeasure
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream, StreamLike, require_stream, state_of

#: Larger rewards and hyperparameters are rejected, because their squares could overflow.
LARGEST = 1e100


@dataclass(frozen=True)
class GibbsPrior:
    """The prior of the MDP agent: ξ(x,a,y) ~ N(μ0, 1/(λ0 p)) and reward noise of precision p.

    The spread of sampled Q-values, and so the time the agent explores, is proportional to 1/√p. By
    default, `precision=None`, p is unknown: p ~ Gamma(shape, rate), and the sampler draws p as
    well; draws below `least_precision` are set to it. If M(y) differs much among the successors of
    a pair, the estimate of p would otherwise fall, and the agent would explore for ever.

    If p is known, ξ(x,a,y) ~ N(μ0, 1/λ0). Choose p so that 1/√p is about the spread of M(y) among
    the successors of a state.

    With `precision="learned"` every pair (x, a) has its own unknown precision, and the prior adapts
    to the scale of the rewards: mu0 is then in units of the largest reward, and lambda0 in units of
    p. `ADAPTIVE` is this prior with the settings that we recommend.

    >>> GibbsPrior(precision=100)
    GibbsPrior(mu0=1.0, lambda0=1.0, precision=100.0, shape=1.0, rate=1.0, least_precision=10.0)
    >>> GibbsPrior(lambda0=0)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidPrior: lambda0=0: it must be in [1e-100, 1e+100]
    """

    mu0: float = 1.0
    lambda0: float = 1.0
    precision: float | Literal["learned"] | None = None
    shape: float = 1.0
    rate: float = 1.0
    least_precision: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "precision" and (value is None or value == "learned"):
                continue
            least = -LARGEST if field.name == "mu0" else 1.0 / LARGEST
            number = require_between(field.name, value, least, LARGEST, error=errors.InvalidPrior)
            object.__setattr__(self, field.name, number)

    def format_text(self) -> str:
        """Return the text of the prior in stored data, which is part of the format."""
        return (
            f"GibbsPrior(mu0={self.mu0!r}, lambda0={self.lambda0!r}, precision={self.precision!r}, "
            f"shape={self.shape!r}, rate={self.rate!r}, least_precision={self.least_precision!r})"
        )


#: The prior for rewards of unknown scale and noise: nothing has to be chosen.
ADAPTIVE = GibbsPrior(lambda0=0.01, precision="learned")


class QValues:
    """An operation mode (Q, ρ) of the MDP agent, which takes the action arg max_a Q(x,a).

    `places` maps a state to its row of Q; -∞ marks unavailable actions. In a state without a row
    the mode takes one of the actions `available(x)` at random.

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
        available: Callable[[Any], Sequence[Any]] | None = None,
    ) -> None:
        self._places, self.actions, self.Q, self.rho = places, tuple(actions), Q, rho
        self._available = available

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return arg max_a Q(x,a), the first if several are maximal; random without a row for x."""
        row = self._places.get(x)
        if row is None or row >= len(self.Q):
            choices = self.actions if self._available is None else self._available(x)
            return choices[require_stream(rng).integers(len(choices))]
        return self.actions[int(self.Q[row].argmax())]

    def __repr__(self) -> str:
        return f"QValues({len(self.Q)} states, ρ = {self.rho:.4g})"


class GibbsBelief(Saved):
    """P(Q, ρ | âo_<t), sampled by the paper's Gibbs sampler.

    `actions` is the number of actions or their names. `states=None` selects prior B; the states or
    their number select prior A. `allowed(x)` returns the actions available in a state, by default
    all. A draw makes `sweeps` sweeps. `partial=k` makes them partial: a sweep then updates ρ, the
    next k states in turn, and the current state. `recentre` removes the drift of the additive
    constant of Q, which changes no action.

    >>> belief = GibbsBelief(2)
    >>> belief.observe("a", 1, (1.0, "b"))
    >>> belief
    GibbsBelief(2 states, 2 actions after 1 transitions: ρ = 0)
    >>> belief.draw_action("c", Stream(0)) in (0, 1)
    True
    """

    format_name: ClassVar[str] = "GibbsBelief"

    posterior_measure: ClassVar = PosteriorMeasure("average reward ρ, drawn last", "reward a step")
    saved_fields = declare(
        Fixed("settings", lambda belief: [format_text(belief.prior), *belief.draw_settings]),
        Part("", "ledger"),
        Array("drawn", lambda belief: belief._saved_mode(), shape=(None,), finite=False),
    )

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
        sweeps = as_integer("sweeps", sweeps, 1, errors.InvalidPrior)
        partial = as_integer("partial", partial, 0, errors.InvalidPrior)
        p = self.prior.precision
        if p == "learned" and (partial or states is not None or not recentre):
            raise errors.InvalidPrior(
                'precision="learned" needs partial=0, recentre=True and states=None: '
                f"got partial={partial}, recentre={recentre}, states={states!r}"
            )
        unit = p if isinstance(p, float) else 1.0
        #: The statistics, which the kernels modify in place.
        self.ledger = Ledger(actions, (self.prior.mu0, self.prior.lambda0, unit), states, allowed)
        #: The settings of a draw, as `kernels.gibbs.draw_mode` expects them.
        self.draw_settings = kernels.gibbs.GibbsSettings(
            sweeps=sweeps,
            partial=partial,
            recentre=bool(recentre),
            a0=self.prior.shape,
            b0=self.prior.rate if p is None else 0.0,  # 0: the sampler does not draw p
            limit=1.0 / math.sqrt(self.prior.least_precision),
        )
        self._last: QValues | None = None

    # -- belief ---------------------------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Count the transition: n(x,a,y) += 1 for o = (r, y). An error changes nothing."""
        reward, y = read_step(x, a, o, LARGEST)
        self.ledger.record(x, a, y, reward)

    def sample(self, rng: StreamLike) -> QValues:
        """Draw a mode (Q, ρ): run the sweeps of one draw."""
        self._draw(rng)
        ledger = self.ledger
        Q = ledger.chain.Q[: len(ledger), : len(ledger.actions)]
        Q = np.where(ledger.has_action(), Q, -np.inf)
        self._last = self._mode(Q, self.rho)
        return self._last

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a mode and return its action in x; like `sample`, but without copying Q."""
        ledger, gibbs = self.ledger, kernels.gibbs
        e, c, place = ledger.evidence, ledger.chain, ledger.place(x)
        if place is None:
            choices = ledger.actions_of(x)
            self._draw(rng)
            return choices[require_stream(rng).integers(len(choices))]
        self._last = None
        if self.prior.precision == "learned":
            self._draw(rng)
            return ledger.actions[kernels.td.best_action(c.Q, place)]
        a = gibbs.draw_action(e, c, self.draw_settings, len(ledger), place, state_of(rng))
        if a < 0:
            self.check_chain()
        return ledger.actions[a]

    def _draw(self, rng: StreamLike) -> None:
        """Run the sweeps of one draw, without a current state."""
        self._last = None
        evidence, chain, size = self.ledger.evidence, self.ledger.chain, len(self.ledger)
        if size and self.prior.precision == "learned":
            for _ in range(self.draw_settings.sweeps):
                kernels.gibbs_learned.sweep(evidence, chain, size, self.prior.mu0, state_of(rng))
        elif size:
            kernels.gibbs.draw_mode(evidence, chain, self.draw_settings, size, -1, state_of(rng))
        self.check_chain()

    def check_chain(self) -> None:
        """Raise `NotConverged` if the sampler has diverged."""
        if not math.isfinite(self.rho):
            raise errors.NotConverged(
                f"the sampler diverged: ρ = {self.rho} after {self.count} transitions. It is "
                "stable for complete histories, which leave every state as often as they enter it"
            )

    def _mode(self, Q: FloatArray, rho: float, ledger: Ledger | None = None) -> QValues:
        """Return the mode (Q, ρ) with the states and actions of a ledger, by default ours."""
        ledger = self.ledger if ledger is None else ledger
        return QValues(ledger.places, tuple(ledger.actions), Q, rho, ledger.actions_of)

    # -- properties --------------------------------------------------------------------------------

    def posterior_summary(self) -> dict[str, dict[str, Any]]:
        """Return ρ as drawn last and the number of transitions."""
        return {"rho": {"mean": self.rho, "count": self.count}}

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """Raise MissingCapability: a mode (Q, ρ) predicts no next state, so P(o | past) is unknown.

        >>> GibbsBelief(2).log_predictive("a", 1, (1.0, "b"))
        Traceback (most recent call last):
        bayescontrol.errors.MissingCapability: a GibbsBelief has no predictive probabilities: ...
        """
        raise errors.MissingCapability(
            "a GibbsBelief has no predictive probabilities: its modes are values of actions and "
            "predict neither rewards nor next states. For predictions use a FiniteBelief over "
            "modes that have likelihoods"
        )

    @property
    def rho(self) -> float:
        """ρ of the last draw, an estimate of the average reward."""
        return float(self.ledger.chain.scalars[kernels.gibbs.RHO])

    @property
    def precision(self) -> float:
        """The noise precision p: the known value, or that of the last draw if it is unknown.

        With `precision="learned"` it is 1/σ², the level of the precisions of all pairs.
        """
        p, sigma = self.prior.precision, self.ledger.chain.scalars[kernels.gibbs.SIGMA]  # σ = 1/√p
        return p if isinstance(p, float) else float(sigma) ** -2

    @property
    def states(self) -> tuple[Any, ...]:
        """The known states, in the order in which they are swept."""
        return tuple(self.ledger.places)

    def transitions(self) -> dict[tuple[Any, Any, Any], tuple[int, float]]:
        """(x, a, y) -> n(x,a,y) and the mean reward.

        >>> belief = GibbsBelief(2)
        >>> belief.observe("a", 1, (1.0, "b"))
        >>> belief.transitions()
        {('a', 1, 'b'): (1, 1.0)}
        """
        return {(x, a, y): (n, total / n) for x, a, y, n, total in self.ledger}

    @property
    def count(self) -> int:
        """Number of observed transitions."""
        return self.ledger.count

    def posterior(self) -> FloatArray:
        """Return the rows [μ(x,a,y), λ(x,a,y)] of the observed transitions, as in `transitions`.

        If the precision is unknown, λ is in units of p.

        >>> belief = GibbsBelief(2)
        >>> belief.observe("a", 1, (2.0, "b"))
        >>> belief.posterior()
        array([[1.5, 2. ]])
        """
        mu0, lambda0, unit, _ = self.ledger.evidence.prior
        sums = np.array([(n, total) for *_, n, total in self.ledger], np.float64).reshape(-1, 2)
        lam = lambda0 + unit * sums[:, 0]
        return np.column_stack([(lambda0 * mu0 + unit * sums[:, 1]) / lam, lam])

    def last(self) -> QValues | None:
        """Return the last sampled mode, or None if `draw_action` has been called since."""
        return self._last

    # -- for compiled loops ------------------------------------------------------------------------

    @staticmethod
    def fused_loop(agent: Any, environment: object) -> Any:
        """Return the compiled loop, or None if the agent and the environment do not fit.

        The rule must draw at every step and be in the world's state.

        The kernel modifies the ledger in place. It returns when a state is new or capacity runs
        out; the Python code then learns that step and allocates arrays, and the kernel continues.
        """
        if type(environment) is not MDPEnvironment:
            return None
        mdp = environment.mdp
        fits = (
            agent.x == environment.x
            and agent.belief.prior.precision != "learned"
            and agent.schedule is every_step
            and agent.advance is advance
            and list(agent.belief.ledger.actions) == list(mdp.actions)
            and bool((np.abs(mdp.rewards) <= LARGEST).all())
        )
        return _run if fits else None

    # -- named arrays ------------------------------------------------------------------------------

    def _saved_mode(self) -> FloatArray:
        """Return Q and ρ of the last sampled mode; empty without one."""
        return np.empty(0) if self._last is None else np.append(self._last.Q, self._last.rho)

    def _check_state(self, new: SimpleNamespace) -> None:
        """Restore the mode that was sampled last; raise if its size is invalid."""
        drawn, columns, new._last = new.drawn, len(new.ledger.actions), None
        if drawn.size:
            if (drawn.size - 1) % columns:
                raise damaged(f"'drawn' has {drawn.size} numbers, not ρ and {columns} per state")
            Q = drawn[:-1].reshape(-1, columns).copy()
            new._last = self._mode(Q, float(drawn[-1]), new.ledger)

    def _after_copy(self) -> None:
        """Bind the mode that was sampled last to the ledger of the copy."""
        if self._last is not None:
            self._last = self._mode(self._last.Q.copy(), self._last.rho)

    def merge(self, other: "GibbsBelief") -> None:
        """Add the transitions of `other`; the sampler's state stays. An error changes nothing."""
        if not isinstance(other, GibbsBelief):
            raise errors.IncompatibleState(f"cannot merge {other!r}: it is not a GibbsBelief")
        mine, theirs = self.ledger, other.ledger
        same_prior = self.prior == other.prior and mine.declared == theirs.declared
        if not same_prior or list(mine.actions) != list(theirs.actions):
            described = [
                f"{belief.prior}, {'declared' if belief.ledger.declared else 'unknown'} states and "
                f"actions {list(belief.ledger.actions)}"
                for belief in (other, self)
            ]
            raise errors.IncompatibleState(
                f"cannot merge {other!r} with {described[0]}: this belief has {described[1]}; "
                "create both with the same prior, states and actions"
            )
        ledger = mine.copy()
        ledger.absorb(theirs)
        self.ledger = ledger
        if self._last is not None:
            self._last = self._mode(self._last.Q, self._last.rho)

    _repr_html_ = summary_html

    def __repr__(self) -> str:
        return (
            f"GibbsBelief({len(self.ledger)} states, {len(self.ledger.actions)} actions after "
            f"{self.count} transitions: ρ = {self.rho:.4g})"
        )


def _run(agent: Any, environment: MDPEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the kernel; where it stops, let the Python code complete the step."""
    mdp, belief, start = environment.mdp, agent.belief, agent.x
    labels = belief.ledger.actions
    actions, rows = np.empty(steps, np.int64), np.empty(steps, kernels.mdp.STEP)
    # The ledger's index of each state of the MDP, -1 for states that are new to it.
    indices = np.array([belief.ledger.places.get(x, -1) for x in mdp.states], np.int64)
    streams = kernels.random.Streams(p.state, q.state)
    run = kernels.mdp.MdpRun(mdp.tables, indices, streams, actions, rows)

    def situation_at(s: int) -> Any:
        """Return the situation in which step s was decided; the first step is 0."""
        return mdp.states[rows["state"][s - 1]] if s else start

    t = 0
    if indices[environment.at] < 0:  # the ledger adds the start with the first step
        a = agent.act(p)
        previous, o = environment.at, environment.respond(a, q)
        agent.observe(a, o)
        actions[0], rows[0] = mdp.actions.place(a), (o.reward, environment.at)
        for y in (previous, environment.at):
            indices[y] = belief.ledger.places[mdp.states[y]]
        t = 1
    while t < steps:
        first_step, ledger = t, belief.ledger
        t, environment.at, reason = kernels.gibbs.interact(
            ledger.evidence, ledger.chain, belief.draw_settings, len(ledger), run, environment.at, t
        )
        belief._last = None
        # For these reasons the kernel has chosen the action of step t, but not completed the step.
        has_acted = reason in (kernels.gibbs.NOT_LEARNED, kernels.gibbs.NOT_OFFERED)
        last = t if has_acted else t - 1
        if last >= first_step:
            agent.fast_forward(last + 1 - first_step, situation_at(last), situation_at(t))
        if reason == kernels.gibbs.DONE:
            break
        # The Python code completes this step, and raises the error if there is one.
        if reason == kernels.gibbs.LOST:
            belief.check_chain()
        if reason == kernels.gibbs.NOT_OFFERED:
            environment.respond(labels[actions[t]], q)
        agent.observe(labels[actions[t]], Step(float(rows["reward"][t]), environment.x))
        indices[environment.at] = belief.ledger.places[environment.x]
        t += 1
    return step_record(actions, rows, labels, mdp.states)


_KIND: Final = ModelKind(
    "gibbs-mdp",
    "A Markov decision process with unknown transitions and rewards, learned by Gibbs sampling.",
    {
        "actions": SettingDoc(
            "list of names, or their number", "The actions of the agent.", largest=1_000
        ),
        "start": SettingDoc("any value", "The first state."),
        "prior": SettingDoc(
            '{"dict": [["mu0", …], ["lambda0", …], ["precision", …]]}',
            "mu0 and lambda0: prior mean and precision of the value of a transition; precision: "
            "precision of the rewards, null if it is unknown, then also shape, rate and "
            'least_precision, or "learned" for one per state and action. Default: null, '
            "least_precision 10, others 1.",
        ),
        "states": SettingDoc(
            "list of names, their number, or null",
            "All states; null: they are discovered.",
            largest=1_000,
        ),
        "sweeps": SettingDoc(
            "whole number", "Sweeps of the sampler for each decision. Default: 1.", largest=1_000
        ),
        "partial": SettingDoc(
            "whole number", "States that a sweep visits. Default: 0, all of them.", largest=1_000
        ),
        "recentre": SettingDoc(
            "true or false", "Whether to remove the drift of the sampler. Default: true."
        ),
    },
    example={"actions": ["left", "right"], "start": "home", "prior": {"dict": [["precision", 10]]}},
    observation={"tuple": [0.5, "kitchen"]},
    feedback='{"tuple": [reward, next state]}',
    limits=(
        # Memory, then time for one decision.
        SizeLimit("states times actions", lambda size: size["states"] * size["actions"], 100_000),
        SizeLimit(
            "states times actions times sweeps",
            lambda size: size["states"] * size["actions"] * size["sweeps"],
            10_000_000,
        ),
    ),
)


class GibbsMDP:
    """An MDP with unknown transitions and rewards; `start` is the first state.

    The other arguments are those of `GibbsBelief`. A log cannot store a problem with `allowed`,
    which is a function.

    `actions` is the number of actions or their names. `prior` is a `GibbsPrior`, or its fields.
    `states=None` selects prior B; the states or their number select prior A. A draw makes `sweeps`
    sweeps, which `partial=k` limits to k states and the current one. `recentre` removes the drift
    of the additive constant of Q.

    >>> problem = GibbsMDP(["left", "right"], start="home")
    >>> problem
    GibbsMDP(2 actions, unknown states, start 'home')
    >>> agent = problem.agent()
    >>> agent.observe("left", (1.0, "away"))
    >>> agent
    ControlRule(GibbsBelief(2 states, 2 actions after 1 transitions: ρ = 0), situation 'away', t=0)
    >>> problem.settings()["actions"]
    ['left', 'right']
    """

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        start: Any,
        prior: GibbsPrior | Mapping[str, Any] | None = None,
        *,
        states: int | Sequence[Hashable] | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
        sweeps: int = 1,
        partial: int = 0,
        recentre: bool = True,
    ) -> None:
        if isinstance(start, np.ndarray):
            raise errors.MissingCapability(
                f"start={start!r} is an array, and this agent needs finitely many states: "
                "discretise the observations, or use bayescontrol.simulators with gym.drive"
            )
        self.start, self.allowed = start, allowed
        self.prior = prior if isinstance(prior, GibbsPrior) else GibbsPrior(**(prior or {}))
        self.options: dict[str, Any] = {"sweeps": sweeps, "partial": partial, "recentre": recentre}
        belief = GibbsBelief(actions, self.prior, states=states, allowed=allowed, **self.options)
        belief.ledger.find(start, "given as start")  # raises if it is not a valid state
        self.actions = list(belief.ledger.actions)
        self.states = None if states is None else list(belief.states)
        self._prior_belief = belief

    def settings(self) -> dict[str, Any]:
        """Return all constructor arguments as plain values, as logs store them."""
        if self.allowed is not None:
            raise errors.MissingCapability(
                f"{self!r} cannot be stored in a log, because `allowed` is a function: "
                "omit `allowed`, or use the agent without a log"
            )
        return {
            "actions": self.actions, "start": self.start, "states": self.states,
            "prior": asdict(self.prior), **self.options,
        }  # fmt: skip

    def agent(
        self, *, schedule: Schedule = every_step, temperature: float = 1.0
    ) -> ControlRule[QValues, Any, Any, Any]:
        """Return the control rule over modes (Q, ρ) in the first state.

        A Gibbs chain has no other `temperature` than 1.
        """
        belief = with_temperature(self._prior_belief.copy(), temperature)
        return ControlRule(belief, self.start, advance, schedule)

    def environment(self, mdp: MDP) -> MDPEnvironment:
        """Return the environment with these true transitions and rewards, in the first state.

        >>> from bayescontrol.mdp import chain_mdp
        >>> GibbsMDP(2, start=0).environment(chain_mdp(3)).x
        0
        """
        return mdp.environment(self.start)

    def __repr__(self) -> str:
        states = "unknown states" if self.states is None else counted(len(self.states), "state")
        return f"GibbsMDP({counted(len(self.actions), 'action')}, {states}, start {self.start!r})"

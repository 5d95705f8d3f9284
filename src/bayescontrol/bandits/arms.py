"""The belief over independent arms: a product of conjugate posteriors, one row per arm.

    P(m | âo_≤t) = Π_j P(m_j | rewards of arm j)        P(a | m) = 1 for a = arg max_j m_j

Drawing a mode draws the mean reward of every arm; the mode pulls the best one. Rewards are
exchangeable, so feedback may come late, in any order, or never. Arms can be added and retired.

Under tiny prior parameters several m_j may be the same double, for instance 1.0. They are then
compared by their logarithms or log-odds (see `kernels.arms`). Remaining ties are broken at random.
"""

from collections.abc import Hashable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray
from bayescontrol._mode_queries import has
from bayescontrol._support.display import summary_html
from bayescontrol._support.names import Choice, Names
from bayescontrol._support.saved import Array, Copied, Fixed, damaged, declare
from bayescontrol._support.temperature import Tempered
from bayescontrol._support.values import format_text
from bayescontrol.bandits.best_arm import Mixture
from bayescontrol.bandits.family import (
    Family,
    FiniteRewards,
    Intervals,
    best_at_prices,
    same_family,
    with_totals,
)
from bayescontrol.bandits.roster import Arms, BestArmMode, HasArms, Roster
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidTable, MissingCapability
from bayescontrol.protocols import PosteriorMeasure, Probabilities, Summary, Totals
from bayescontrol.record import Record
from bayescontrol.schedules import every_step
from bayescontrol.seeding import Stream, StreamLike, state_of


class MeanRewards(BestArmMode):
    """A mode m: the mean reward of every arm. Its policy pulls arg max_j m_j.

    `logs`, if given, is compared instead of `means`: it keeps the order of means that are equal
    as doubles. Ties are broken at random.

    >>> from bayescontrol import Stream
    >>> MeanRewards(("red", "blue"), np.array([0.2, 0.7])).act(None, Stream(0))
    'blue'
    >>> mode = MeanRewards(("red", "blue"), np.ones(2), logs=np.array([3.0, 2.0]))
    >>> mode.act(None, Stream(0))
    'red'
    >>> mode.retire("red")
    >>> mode.act(None, Stream(0))
    'blue'
    """

    __slots__ = ("logs", "means")
    by_arm = (("means", 0), ("logs", 0))

    def __init__(
        self, arms: Sequence[Hashable], means: FloatArray, logs: FloatArray | None = None
    ) -> None:
        self.arms, self.means, self.logs = tuple(arms), means, logs
        self.prices = None

    def _scores(self, x: Any) -> FloatArray:
        return self.means if self.logs is None else self.logs

    def _mean_rewards(self, x: Any) -> FloatArray:
        return self.means

    def __repr__(self) -> str:
        return f"MeanRewards({_format_means(self.arms, self.means)})"


def _format_means(arms: Iterable[Any], means: FloatArray) -> str:
    return ", ".join(f"{a}: {m:.4g}" for a, m in zip(arms, means, strict=True))


class ArmsEnvironment:
    """A world Q in which arm a pays according to its true parameters.

    >>> from bayescontrol import BernoulliBandit, Stream
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.0, 1.0])
    >>> world.respond("blue", Stream(0)), world.best()
    (1.0, 'blue')
    """

    def __init__(self, family: Family, arms: Names, truth: FloatArray) -> None:
        self.family, self.labels, self.truth = family, arms, truth

    def means(self, x: object = None) -> FloatArray:
        """Return the mean reward of every arm; `x` is ignored, because there are no contexts."""
        return self.family.means(self.truth)

    def best(self, x: object = None) -> Any:
        """Return the arm with the largest mean reward."""
        return self.labels[int(self.means().argmax())]

    def respond(self, a: Hashable, rng: StreamLike) -> float:
        """Draw the reward o ~ P(o | m*, a) of arm a."""
        row = self.truth[self.labels.place(a)]
        return kernels.arms.respond(self.family.kind, self.family.constants, row, state_of(rng))

    def change_to(self, other: "ArmsEnvironment") -> None:
        """Take the true parameters of another world with the same arms."""
        if not same_family(other.family, self.family) or other.labels != self.labels:
            raise InvalidTable(
                f"{self!r} cannot become {other!r}: both need the same arms and the same family"
            )
        self.truth = other.truth

    def __repr__(self) -> str:
        return f"ArmsEnvironment({self.family!r}, means {_format_means(self.labels, self.means())})"


def arms_loop(agent: Any, environment: Any) -> Any:
    """Return the compiled loop if the rule draws at every step over the same arms, else None."""
    fits = (
        type(environment) is ArmsEnvironment
        and agent.schedule is every_step
        and same_family(agent.belief.family, environment.family)
        and agent.belief.labels == environment.labels
        and agent.belief._roster.prices is None
        and agent.x is None
    )
    return _run if fits else None


def _run(agent: Any, environment: ArmsEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop of the belief; the agent draws from p, the environment from q."""
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    agent.belief.interact(environment.truth, p, q, actions, rewards)
    agent.fast_forward(steps, agent.x, agent.x)
    return Record(environment.labels.column(actions), rewards)


# Beyond this count, doubles near 1 are too coarse for the bounds of screening.
_LARGEST_SCREENED = 2.0**32


class ArmsBelief(Tempered, HasArms[MeanRewards]):
    """P(m | âo_<t) for independent arms of one family.

    With `screening`, Bernoulli arms with whole-number priors choose by `kernels.screening`: the
    same distribution of actions, with fewer draws. `chooses` tells which method is used and why.

    Under tiny parameters many means are equal as doubles, and are compared on a logarithmic scale
    (`kernels.arms`).

    >>> from bayescontrol.bandits.discrete import Bernoulli
    >>> belief = ArmsBelief(Bernoulli(), ["red", "blue"])
    >>> belief.observe(None, "red", 1)
    >>> belief
    ArmsBelief(Bernoulli(), 2 arms after 1 observations: red 0.6667 (1), blue 0.5 (0))
    >>> belief.chooses
    'by screening'
    >>> belief.add("green", prior=(0.5, 0.5))
    >>> belief.chooses
    'by drawing every arm: the posterior of green has a parameter that is ...'
    """

    format_name: ClassVar[str] = "ArmsBelief"
    #: `sample` changes nothing but the saved array "drawn". Subclasses declare it again.
    stateless_draws: ClassVar[bool] = True
    #: The arms do not depend on the situation. Subclasses declare it again.
    context_free: ClassVar[bool] = True
    posterior_measure: ClassVar[PosteriorMeasure | None] = PosteriorMeasure("mean reward", "reward")
    saved_fields = declare(
        Fixed("family", lambda belief: format_text(belief.family)),
        Array("prior", "_prior", shape=(None, None), finite=False, shared=True),
        Array("rows", "_rows", shape=(None, None), finite=False),
        Array("drawn", lambda belief: belief._saved_mode(), shape=..., finite=False),
        *map(Copied, ("_drawn", "_logs", "_cache", "_leader")),
    )

    def __init__(
        self, family: Family, arms: Arms, prior: ArrayLike | None = None, *, screening: bool = True
    ) -> None:
        self.family = family
        self._roster = Roster(arms)
        self._prior = family.prior(prior, len(self.labels))
        self._rows = self._prior.copy()
        self._screening = screening
        self._refresh()

    def _refresh(self) -> None:
        """Allocate the arrays of the kernels; called when the number of arms changes."""
        size = len(self._rows)
        self._drawn, self._logs = np.full(size, np.nan), np.empty(size)
        #: Whether some means must be compared on a logarithmic scale (`kernels.arms`). Parameters
        #: never decrease: once this is False, it stays so.
        rows = self._tempered(self._rows)
        self.compares_logs = kernels.arms.needs_logs(self.family.kind, rows, np.arange(size))
        self._cache: FloatArray | None = None
        self._leader = np.empty(1, np.int64)
        if self._screening and self._why_not_screened() is None:
            self._cache = np.empty((kernels.screening.ROWS, size))
            self._roster_changed()

    def _choose(self, choice: Choice | None) -> None:
        had_prices = self._roster.prices is not None
        super()._choose(choice)
        if had_prices != (self._roster.prices is not None):
            self._refresh()  # screening ignores prices

    def _roster_changed(self) -> None:
        if self._cache is not None:
            kernels.screening.prepare(self._rows, self._roster.active, self._cache, self._leader)

    def _apply_temperature(self) -> None:
        self._refresh()

    def _tempered(self, rows: FloatArray) -> FloatArray:
        """Return the rows from which means are drawn: `rows` at the temperature."""
        if self._temperature == 1.0:
            return rows
        tempered = np.empty_like(rows)
        kernels.arms.temper_all(self.family.kind, rows, self._temperature, tempered)
        return tempered

    def _why_not_screened(self) -> str | None:
        """Return the reason why screening cannot be used, or None if it can."""
        if self.family.kind != kernels.arms.BERNOULLI:
            return "screening is for Bernoulli arms"
        if self._roster.prices is not None:
            return "the arms have prices"
        if self._temperature != 1.0:
            return f"screening is for temperature 1, not {self._temperature:g}"
        rows = self._rows
        is_screenable = (rows >= 1.0) & (rows == np.floor(rows)) & (rows <= _LARGEST_SCREENED)
        if is_screenable.all():
            return None
        j, k = np.argwhere(~is_screenable)[0]
        is_large = rows[j, k] > _LARGEST_SCREENED
        why = f"above {_LARGEST_SCREENED:g}" if is_large else "not a positive whole number"
        return f"the posterior of {self.labels[j]} has a parameter that is {why}"

    @property
    def chooses(self) -> str:
        """How actions are drawn, and why."""
        if self._cache is not None:
            return "by screening"
        why = self._why_not_screened() if self._screening else "screening is off"
        return f"by drawing every arm: {why}"

    # -- the Belief protocol ----------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Update arm a with its reward o. An error leaves the belief unchanged."""
        j, r = self._roster.labels.place(a), self.family.reward(o)
        if self._cache is not None:
            largest = kernels.screening.learn_direct(self._rows, self._cache, self._leader, j, r)
            if largest > _LARGEST_SCREENED:
                self._refresh()
        else:
            row = self._rows[j].copy()
            kernels.arms.learn(self.family.kind, self.family.constants, row, r)
            if not np.isfinite(row).all():
                raise BadEvidence(f"reward {o!r} of arm {a!r} is too large for the posterior")
            self._rows[j] = row
        self._roster.counts[j] += 1

    def observe_totals(self, x: Any, a: Any, totals: Totals) -> None:
        """Update arm a with many rewards, as if one by one. An error leaves the belief unchanged.

        Gaussian arms with unknown noise need the sum of the squared rewards too.
        """
        j = self._roster.labels.place(a)
        self._rows[j] = with_totals(self.family, self._rows[j], totals, a)
        self._roster.counts[j] += int(totals.n)
        self._refresh()

    def sample(self, rng: StreamLike) -> MeanRewards:
        """Draw m ~ P(m | âo_<t): the mean reward of every active arm."""
        kind, rows = self._rows_to_draw(rng)
        active, logs, prices = self._roster.active, None, self._roster.prices
        if self.compares_logs and prices is None and kernels.arms.needs_logs(kind, rows, active):
            kernels.arms.draw_logs(
                kind, self.family.constants, rows, active, self._drawn, self._logs, state_of(rng)
            )
            logs = self._logs[active]
        else:
            self._draw_all(kind, rows, rng)
        self._last = MeanRewards(self.arms, self._drawn[active], logs)
        self._last.prices = prices
        return self._last

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t), as `sample` and then `act` do, if possible with fewer draws."""
        self._last = None
        if self._cache is not None:
            j = kernels.screening.draw_direct(self._rows, self._cache, self._leader, state_of(rng))
        elif self._roster.prices is not None:
            return self._draw_priced(x, rng)
        else:
            j = self._draw_all(*self._rows_to_draw(rng), rng)
        return self._roster.labels[j]

    def _rows_to_draw(self, rng: StreamLike) -> tuple[int, FloatArray]:
        """Return the family and the rows from which mean rewards are drawn."""
        return self.family.kind, self._tempered(self._rows)

    def _draw_all(self, kind: int, rows: FloatArray, rng: StreamLike) -> int:
        """Draw the mean reward of every active arm into `_drawn`; return the best arm's row."""
        by_logs = self.compares_logs and self._roster.prices is None
        draw = kernels.arms.draw_action if by_logs else kernels.arms.largest_mean
        constants, active = self.family.constants, self._roster.active
        return draw(kind, constants, rows, active, self._drawn, state_of(rng))

    def plain_event(self, x: Any, a: Any, o: Any) -> tuple[None, Any, float]:
        """Return a valid event in plain values, or raise an error."""
        _, j, r = self.row_event(x, self.place(a), o)
        return None, self._roster.labels[j], r

    def row_event(self, x: Any, j: int, o: Any) -> tuple[None, int, float]:
        """Return a valid event as (None, row j of the arm, reward), or raise an error."""
        return None, j, self.family.reward(o)

    def only(self, arm: Hashable) -> "ArmsBelief":
        """Return the belief about a single arm."""
        j, single = self.place(arm), self.copy()
        single._roster = Roster([arm])
        single._prior, single._rows = self._prior[[j]], self._rows[[j]]
        single._refresh()
        return single

    def use_arrays(self, rows: FloatArray) -> None:
        """Use these posterior rows, an array that others may change; never screen."""
        self._rows, self._screening = rows, False
        self._refresh()

    # -- queries -----------------------------------------------------------------------------

    def action_probabilities(self, x: Any = None) -> Probabilities:
        """P(a | âo_<t) = P(m_a is the largest | âo_<t), by quadrature."""
        best = self.best(self.marginals(x), prices=self._roster.prices)
        return dict(zip(self.arms, best.tolist(), strict=True))

    def marginals(self, x: Any = None, *, scaled: bool = True) -> FloatArray:
        """Return the rows from which the means of the active arms are drawn; they have no scale."""
        return self._tempered(self._rows[self._roster.active])

    def best(
        self,
        rows: FloatArray,
        mixture: Mixture | None = None,
        prices: FloatArray | None = None,
    ) -> FloatArray:
        """P(m_j, or m_j - prices[j], is the largest) for arms with these rows, or mixtures."""
        return best_at_prices(self.family, rows, prices, mixture)

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """Return P(o | âo_<t â_t) for every reward o; needs a family with finitely many rewards."""
        if not has(self.family, FiniteRewards):
            raise MissingCapability(
                f"{self.family!r} pays infinitely many rewards: use `log_predictive(x, a, o)`"
            )
        return self.family.predictive(self._rows[self._roster.labels.place(a)])

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t); a density if rewards are continuous."""
        j, r = self._roster.labels.place(a), self.family.reward(o)
        return self.family.log_predictive(self._rows[j], r)

    def posterior(self) -> FloatArray:
        """The parameters of every arm, one row each; `family.columns` names the columns."""
        return self._rows.copy()

    def posterior_summary(self) -> Summary:
        """Return the mean reward, the pulls and the posterior row of every arm.

        >>> from bayescontrol import BernoulliBandit
        >>> BernoulliBandit(["red"]).belief().posterior_summary()
        {'red': {'mean': 0.5, 'count': 0, 'alpha': 1.0, 'beta': 1.0}}
        """
        summary = self._summary(self._means().tolist())
        for of_arm, row in zip(summary.values(), self._rows.tolist(), strict=True):
            of_arm |= dict(zip(self.family.columns, row, strict=True))
        return summary

    def mean_intervals(self, tails: FloatArray) -> FloatArray:
        """Return quantiles of every arm's mean reward, shape (arms, tails); NaN if unknown."""
        if has(self.family, Intervals):
            return self.family.interval(self._rows, tails)
        return np.full((len(self._rows), len(tails)), np.nan)

    def mean_quantiles(self, tails: FloatArray, x: object = None) -> dict[Hashable, FloatArray]:
        """Return quantiles of the mean reward of every active arm; NaN if they are unknown.

        >>> from bayescontrol import BernoulliBandit
        >>> BernoulliBandit(["red"]).belief().mean_quantiles(np.array([0.25, 0.5]))
        {'red': array([0.25, 0.5 ])}
        """
        return dict(zip(self.arms, self.mean_intervals(tails)[self._roster.active], strict=True))

    def expected(self) -> dict[Any, float]:
        """E[r | âo_<t] of every active arm."""
        return dict(zip(self.arms, self._means()[self._roster.active].tolist(), strict=True))

    def _means(self) -> FloatArray:
        """E[r | âo_<t] of every arm; NaN or ∞ where it does not exist."""
        return self.family.expected(self._rows)

    @property
    def prior(self) -> FloatArray:
        """The prior rows, a copy."""
        return self._prior.copy()

    @property
    def drawn(self) -> FloatArray:
        """The mean rewards drawn last; NaN before the first draw and when screening."""
        last = self._last
        return np.full(len(self._rows), np.nan) if last is None else self._by_row(last, last.means)

    def _by_row(self, mode: MeanRewards, values: FloatArray) -> FloatArray:
        """Return the values of the mode's arms in the order of the rows; NaN for other arms."""
        by_row = np.full(len(self._rows), np.nan)
        by_row[[self._roster.labels.place(a) for a in mode.arms]] = values
        return by_row

    def _saved_mode(self) -> FloatArray:
        """Return the mode drawn last as an array; it is empty if no mode was drawn.

        The array holds the means by row, or two lines, means and `logs`, if the mode has `logs`.
        """
        last = self._last
        if last is None:
            return np.empty(0)
        means = self._by_row(last, last.means)
        return means if last.logs is None else np.stack([means, self._by_row(last, last.logs)])

    # -- adding and retiring arms --------------------------------------------------------------

    def add(self, arm: Hashable, prior: ArrayLike | None = None) -> None:
        """Add an arm with its prior, by default that of the first arm; the others do not change.

        >>> from bayescontrol.bandits import BernoulliBandit
        >>> belief = BernoulliBandit(["red"]).belief()
        >>> belief.add("blue", prior=(8, 2))
        >>> belief.expected()
        {'red': 0.5, 'blue': 0.8}
        """
        row = self._prior[:1] if prior is None else self.family.prior(prior, 1)
        self._roster.add(arm)
        self._prior, self._rows = np.vstack([self._prior, row]), np.vstack([self._rows, row])
        self._refresh()

    # -- for compiled loops --------------------------------------------------------------------

    def interact(
        self, truth: FloatArray, p: Stream, q: Stream, actions: IntArray, rewards: FloatArray
    ) -> None:
        """Act and learn in a world with these true parameters; fill `actions` and `rewards`."""
        family, active = self.family, self._roster.active
        streams = kernels.random.Streams(p.state, q.state)
        if self._cache is not None:
            screened = kernels.screening.ScreenedArms(self._rows, self._cache, self._leader)
            kernels.screening.interact(screened, truth, streams, actions, rewards)
        else:
            rows, T = self._rows, self._temperature
            arms = kernels.arms.ArmRows(
                family.kind, family.constants, self._tempered(rows), active, self._drawn
            )
            kernels.arms.interact(arms, rows, T, truth, streams, actions, rewards)
        self.fast_forward(actions)

    def fast_forward(self, actions: IntArray) -> None:
        """Synchronise with a finished compiled loop."""
        super().fast_forward(actions)
        # For few arms argmax and item are faster than max.
        if self._cache is not None and self._rows.item(self._rows.argmax()) > _LARGEST_SCREENED:
            self._refresh()

    fused_loop = staticmethod(arms_loop)

    # -- saving, merging, copying ----------------------------------------------------------------

    def _check_state(self, new: SimpleNamespace) -> None:
        roster, size, last = new._roster, len(new._roster.labels), new.drawn
        new._prior = self.family.rows(new._prior, size)
        new._rows = self.family.rows(new._rows, size)
        self._require_same_priors(roster, new._prior)
        # One mean per arm; NaN marks an arm without a drawn mean; empty: no mode was drawn yet.
        means, logs = last if last.ndim == 2 and len(last) == 2 else (last, None)
        drawn_arms = np.flatnonzero(~np.isnan(means))
        is_damaged = means.shape not in ((0,), (size,)) or (last.size > 0 and not drawn_arms.size)
        if is_damaged or (logs is not None and np.isnan(logs[drawn_arms]).any()):
            raise damaged(f"'drawn' is {last}, expected the means of {size} arms")
        names = [roster.labels[j] for j in drawn_arms.tolist()]
        logs = None if logs is None else logs[drawn_arms]
        new._last = MeanRewards(names, means[drawn_arms], logs) if names else None

    def _after_load(self) -> None:
        self._refresh()

    def _require_same_priors(self, roster: Roster, prior: FloatArray) -> None:
        """Raise IncompatibleState unless the state has this belief's arms with the same priors."""
        saved = dict(zip(roster.labels, prior.tolist(), strict=True))
        for arm, row in zip(self.labels, self._prior.tolist(), strict=True):
            if saved.get(arm) != row:
                saved_as = f"with prior {saved[arm]}" if arm in saved else "without this arm"
                raise IncompatibleState(
                    f"arm {arm!r} has prior {row} here, the state was saved {saved_as}: create the "
                    "belief with the arms and the prior of the saved state"
                )

    def merge(self, other: "ArmsBelief") -> None:
        """Add the evidence of `other`; the prior counts once."""
        if not isinstance(other, ArmsBelief):
            raise IncompatibleState(f"{other!r} is not a belief over arms and cannot be merged")
        if not same_family(other.family, self.family):
            raise IncompatibleState(
                f"cannot merge {other.family!r} into {self.family!r}: the evidence of different "
                "families cannot be added; create both beliefs with the same family"
            )
        if self.labels != other.labels or self._prior.tobytes() != other._prior.tobytes():
            raise IncompatibleState(f"cannot merge {other!r}: its arms or its prior differ")
        self._rows = self.family.merged(self._prior, self._rows, other._rows)
        self._roster.add_pulls(other._roster.counts)
        self._refresh()

    _repr_html_ = summary_html

    def __repr__(self) -> str:
        means, pulls = self.expected(), self.pulls
        leaders = sorted(means, key=lambda a: -means[a])[:4]
        shown = ", ".join(f"{a} {means[a]:.4g} ({pulls[a]})" for a in leaders)
        more = ", …" if len(self) > 4 else ""
        return (
            f"{self.format_name}({self.family!r}, {len(self)} arms after {self.count} "
            f"observations: {shown}{more})"
        )

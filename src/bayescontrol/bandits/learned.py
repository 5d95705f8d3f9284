"""Arms whose prior is learned: they share hyperparameters h, which all rewards inform.

    P(h | âo_<t) ∝ P(h) Π_j P(rewards of arm j | h)           h on a grid, P(h) uniform
    P(m | âo_<t) = Σ_h P(h | âo_<t) Π_j P(m_j | rewards of arm j, h)
    P(a | âo_<t) = Σ_h P(h | âo_<t) P(m_a is the largest | âo_<t, h)

Drawing a mode draws h, then the mean reward of every arm from the conjugate posterior given h.
`kernels.learned` has the equations. The evidence is a function of the sums that each arm keeps of
its rewards, so feedback may come late and in any order, and beliefs merge.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, as_numbers
from bayescontrol._mode_queries import has
from bayescontrol._support.values import format_text
from bayescontrol.bandits.arms import ArmsBelief, MeanRewards, arms_loop
from bayescontrol.bandits.changing_learned import Given
from bayescontrol.bandits.family import (
    QUANTILE_GRID,
    Family,
    FiniteRewards,
    best_at_prices,
    mixed_log,
    mixed_predictive,
    mixed_quantiles,
)
from bayescontrol.bandits.roster import Arms, Roster
from bayescontrol.errors import BadEvidence, InvalidPrior, MissingCapability
from bayescontrol.protocols import Probabilities, Totals
from bayescontrol.seeding import Stream, StreamLike, state_of

#: Hyperparameters with a smaller posterior probability are left out of P(a | past).
NEGLIGIBLE: Final = 1e-10
#: sums(statistics) -> the sum and the number of the rewards of each arm
Sums: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def is_learned(name: str, value: object) -> bool:
    """Return whether a setting is the word "learned"; raise InvalidPrior for any other text."""
    if isinstance(value, str) and value != "learned":
        raise InvalidPrior(f"{name}={value!r}: give numbers, or 'learned'")
    return isinstance(value, str)


class Learned(Family):
    """A family of rewards with a learned prior.

    `fixed` is the family given h. `grid` has a row for each h. A row of an arm holds its
    statistics: what `fixed` has learned from its rewards, starting from zeros. `sums`
    returns the sum of the rewards of each arm and their number from such rows.
    """

    def __init__(self, fixed: Any, grid: FloatArray, sums: Sums) -> None:
        self.fixed, self.grid, self._sums = fixed, grid, sums
        self.kind, self.constants, self.columns = fixed.kind, fixed.constants, fixed.columns
        #: The family of the rows from which mean rewards are drawn.
        self.kind_of_rows: int = fixed.kind
        self.default = (0.0,) * len(self.columns)

    def group_grid(self) -> FloatArray:
        """Return the grid as the kernels need it: each prior row with its ln Z."""
        logs = [kernels.learned.log_normaliser(self.kind, a, b) for a, b in self.grid]
        return np.column_stack([self.grid, logs])

    def given_each(self, location: float) -> list[Given]:
        """Return the hyperparameters of changing arms: of a large grid, every second value."""
        rows = self.grid[:: 1 + len(self.grid) // 30]
        means, strengths = self.fixed.expected(rows).tolist(), self._sums(rows)[1].tolist()
        return [
            Given({"prior mean": mean, "strength": n}, self.fixed, tuple(row))
            for mean, n, row in zip(means, strengths, rows.tolist(), strict=True)
        ]

    def find_unit(self, rewards: Sequence[float]) -> tuple[float, float] | None:
        """Return the location and the unit of rewards: the grid needs none."""
        return 0.0, 1.0

    def settings(self) -> dict[str, Any]:
        """Return "learned", as logs store it."""
        return {"prior": "learned"}

    def prior(self, given: ArrayLike | None, arms: int) -> FloatArray:
        """Return the statistics of arms without rewards; the prior cannot be given."""
        if given is not None:
            raise InvalidPrior(
                f"prior={given!r}: these arms share a prior that is learned: give no prior, or "
                "create the bandit with a fixed one"
            )
        return np.zeros((arms, len(self.columns)))

    def rows(self, saved: ArrayLike, arms: int) -> FloatArray:
        """Return saved statistics; raise InvalidPrior unless they are numbers from 0 up."""
        rows = as_numbers(saved, "the statistics of the arms", InvalidPrior)
        if rows.shape != (arms, len(self.columns)) or not (np.isfinite(rows) & (rows >= 0.0)).all():
            raise InvalidPrior(
                f"the statistics of the arms are {rows.tolist()}: expected {arms} rows of "
                f"{len(self.columns)} finite numbers that are not negative"
            )
        return rows

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return the true parameters as the fixed family does."""
        return np.asarray(self.fixed.truth(given, arms))

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw h, then the true parameters of each arm."""
        h = int(rng.integers(len(self.grid)))
        return np.asarray(self.fixed.draw_truth(np.tile(self.grid[h], (len(prior), 1)), rng))

    def reward(self, o: Any) -> float:
        """Return o as a number; raise BadEvidence if the fixed family cannot pay it."""
        return float(self.fixed.reward(o))

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """Add to the statistics what the fixed family learns from these rewards."""
        return np.asarray(self.fixed.learn_totals(row, totals))

    def expected(self, rows: FloatArray) -> FloatArray:
        """Return the mean of the observed rewards of each arm; NaN without rewards."""
        total, count = self._sums(rows)
        means = np.full(len(rows), np.nan)
        np.divide(total, count, out=means, where=count > 0.0)
        return means

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Add the statistics."""
        return one + two

    # -- mixtures: `w` are the probabilities of h, and `rows` those of one arm given each h --------

    def mixed_predictive(self, w: FloatArray, rows: FloatArray) -> dict[float, float]:
        """P(r | past) of every reward r; needs a family with finitely many rewards."""
        if not has(self.fixed, FiniteRewards):
            raise MissingCapability(
                f"{self.fixed!r} pays infinitely many rewards: use `log_predictive(x, a, o)`"
            )
        return mixed_predictive(w, [self.fixed.predictive(row) for row in rows])

    def mixed_log_predictive(self, w: FloatArray, rows: FloatArray, r: float) -> float:
        """ln P(r | past); a density if rewards are continuous."""
        return mixed_log(w, [self.fixed.log_predictive(row, r) for row in rows])

    def mixed_quantiles(self, w: FloatArray, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """Return quantiles of the mean reward."""
        quantiles = self.fixed.interval(rows, QUANTILE_GRID)
        return mixed_quantiles(list(zip(w.tolist(), quantiles, strict=True)), tails)

    def action_probabilities(
        self, group: Any, rows: FloatArray, roster: Roster, temperature: float
    ) -> FloatArray:
        """P(a) of the active arms; `rows` are their tempered rows given each h."""
        probable = np.flatnonzero(group.w > NEGLIGIBLE)
        w = group.w[probable] / group.w[probable].sum()
        best = [best_at_prices(self.fixed, rows[h, roster.active], roster.prices) for h in probable]
        return np.asarray(w @ np.array(best))

    def scales(self, group: Any) -> dict[str, float]:
        """Return estimates of the prior mean and of the strength of the prior, in rewards."""
        strength = self._sums(self.grid)[1]
        return {
            "prior mean": float(group.w @ self.fixed.expected(self.grid)),
            "strength": float(np.exp(group.w @ np.log(strength))),
        }

    def format_text(self) -> str:
        """The name of the family in stored data, which is part of the format."""
        return f"Learned({format_text(self.fixed)})"

    def __repr__(self) -> str:
        return f"Learned({self.fixed!r})"


def with_prior(
    fixed: Family, arms: Arms, prior: ArrayLike | str | None, grid: FloatArray, sums: Sums
) -> tuple[Family, Arms, ArrayLike | None]:
    """Return the arguments of `Bandit`: with the fixed family, or the learned one on `grid`."""
    if is_learned("prior", prior):
        return Learned(fixed, grid, sums), arms, None
    return fixed, arms, prior


G = TypeVar("G", "kernels.learned.Group", "kernels.learned.Pools")


def with_statistics(arrays: G, statistics: FloatArray) -> G:
    """Return the arrays with other statistics, and with copies of what is computed from them."""
    fixed = ("kind", "constants", "grid", "statistics")
    computed = {name: v.copy() for name, v in arrays._asdict().items() if name not in fixed}
    return arrays._replace(statistics=statistics, **computed)


class LearnedArmsBelief(ArmsBelief):
    """P(h, m | âo_<t) for arms of one family that share learned hyperparameters h.

    Until the posterior is proper (for Gaussian arms: until two rewards differ), every arm has the
    same probability to be pulled, a drawn mode only ranks the arms at random, and expected rewards
    are NaN.

    >>> from bayescontrol import GaussianBandit
    >>> belief = GaussianBandit(["red", "blue"]).belief()
    >>> for reward in (51.0, 49.5, 50.5):
    ...     belief.observe(None, "red", reward)
    >>> belief.observe(None, "blue", 53.0)
    >>> belief
    LearnedArmsBelief(Learned(NormalGamma()), 2 arms after 4 observations: ...; location ...
    """

    format_name: ClassVar[str] = "LearnedArmsBelief"
    stateless_draws: ClassVar[bool] = True
    context_free: ClassVar[bool] = True
    learns_scale: ClassVar[bool] = True

    family: Learned

    def _refresh(self) -> None:
        super()._refresh()
        family, (arms, values) = self.family, (len(self._rows), len(self.family.grid))
        is_grid_of_rows = family.kind == family.kind_of_rows
        self._group = kernels.learned.Group(
            family.kind, family.constants, self._rows, family.group_grid(),
            np.zeros((arms, values if is_grid_of_rows else 0)), np.empty(values),
            np.empty((values, 3)), np.empty((arms, 2)),
        )  # fmt: skip
        self._fields: Any = tuple(self._group)
        self.compares_logs = self._temperature > 1.0  # no prior of a grid needs it
        if is_grid_of_rows:
            group = self._group
            for T, evidence in zip(self._rows, group.evidence, strict=True):
                kernels.learned.weigh_arm(group.kind, T, group.grid, evidence)

    def _after_copy(self) -> None:
        super()._after_copy()
        self._group = with_statistics(self._group, self._rows)
        self._fields = tuple(self._group)

    def _why_not_screened(self) -> str | None:
        return "the prior is learned"

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Update arm a with its reward o. An error leaves the belief unchanged."""
        j, r = self._roster.labels.place(a), self.family.reward(o)
        if not kernels.learned.learn(*self._group[:5], j, r):
            raise BadEvidence(f"reward {o!r} of arm {a!r} is too large for the posterior")
        self._roster.counts[j] += 1

    def _rows_to_draw(self, rng: StreamLike) -> tuple[int, FloatArray]:
        """Draw h, and return the rows given h."""
        kernels.learned.draw_rows(self._group, state_of(rng), self._temperature)
        return self.family.kind_of_rows, self._group.rows

    def sample(self, rng: StreamLike) -> MeanRewards:
        """Draw h, then the mean reward of every active arm."""
        mode = super().sample(rng)
        if mode.prices is not None and not kernels.learned.weigh(self._group):
            mode.prices = None  # it ranks the arms at random
        return mode

    def draw_action(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | âo_<t), as `sample` and then `act` do, in one call."""
        if self._roster.prices is not None:
            return self._draw_priced(x, rng)
        self._last = None
        j = kernels.learned.draw_action(
            self._fields, self._roster.active, self._drawn, state_of(rng), self._temperature
        )
        return self._roster.labels[j]

    # -- queries -------------------------------------------------------------------------------

    def _rows_given_each_h(self, temperature: float = 1.0) -> FloatArray | None:
        """Return the rows of all arms for each h; None while the posterior is improper.

        P(h | past) is computed first, and written to `_group.w`.
        """
        group = self._group
        if not kernels.learned.weigh(group):
            return None
        rows = np.empty((len(group.grid), *self._rows.shape))
        for h in range(len(rows)):
            kernels.learned.marginal_rows(group, h, self._rows, rows[h], temperature)
        return rows

    def hyperparameters(self) -> dict[tuple[float, ...], float]:
        """Return P(h | âo_<t) for every row h of the grid; uniform until it is proper.

        >>> from bayescontrol import GaussianBandit
        >>> belief = GaussianBandit(2).belief()
        >>> len(belief.hyperparameters())
        9
        """
        kernels.learned.weigh(self._group)
        return dict(zip(map(tuple, self.family.grid.tolist()), self._group.w.tolist(), strict=True))

    def scales(self) -> dict[str, float]:
        """Return what has been learned about the scale of the rewards; empty until it is proper."""
        return self.family.scales(self._group) if kernels.learned.weigh(self._group) else {}

    def action_probabilities(self, x: Any = None) -> Probabilities:
        """P(a | âo_<t) = Σ_h P(h | âo_<t) P(m_a is the largest | âo_<t, h), by quadrature."""
        T = self._temperature
        rows = self._rows_given_each_h(T)
        if rows is None:
            return dict.fromkeys(self.arms, 1.0 / len(self))
        best = self.family.action_probabilities(self._group, rows, self._roster, T)
        return dict(zip(self.arms, best.tolist(), strict=True))

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """Return P(o | âo_<t â_t) for every reward o; needs a family with finitely many rewards."""
        j, rows = self.place(a), self._rows_given_each_h()
        if rows is None:  # Gaussian arms, for which `mixed_predictive` raises the error
            rows = self._rows[None]
        return self.family.mixed_predictive(self._group.w, rows[:, j])

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t); a density if rewards are continuous.

        It is 0 until the posterior is proper: the first rewards only set the scale.
        """
        j, r, rows = self.place(a), self.family.reward(o), self._rows_given_each_h()
        if rows is None:
            return 0.0
        return self.family.mixed_log_predictive(self._group.w, rows[:, j], r)

    def _means(self) -> FloatArray:
        """E[r | âo_<t] of every arm; NaN where it does not exist."""
        rows = self._rows_given_each_h()
        if rows is None:
            return np.full(len(self._rows), np.nan)
        return np.asarray(self._group.w @ np.array([self.family.fixed.expected(R) for R in rows]))

    def mean_intervals(self, tails: FloatArray) -> FloatArray:
        """Return quantiles of every arm's mean reward, shape (arms, tails); NaN if unknown."""
        rows, w = self._rows_given_each_h(), self._group.w
        if rows is None:
            return np.full((len(self._rows), len(tails)), np.nan)
        arms = range(len(self._rows))
        return np.array([self.family.mixed_quantiles(w, rows[:, j], tails) for j in arms])

    def only(self, arm: Hashable) -> ArmsBelief:
        """Raise MissingCapability: the arms share what they teach about h."""
        raise MissingCapability(
            "an arm with a learned prior cannot be taken apart from the others: create the bandit "
            "with a fixed prior"
        )

    # -- for compiled loops --------------------------------------------------------------------

    def interact(
        self, truth: FloatArray, p: Stream, q: Stream, actions: IntArray, rewards: FloatArray
    ) -> None:
        """Act and learn in a world with these true parameters; fill `actions` and `rewards`."""
        streams = kernels.random.Streams(p.state, q.state)
        kernels.learned.interact(
            self._group, self._roster.active, self._drawn, truth, streams, actions, rewards,
            self._temperature,
        )  # fmt: skip
        self.fast_forward(actions)

    fused_loop = staticmethod(arms_loop)

    def __repr__(self) -> str:
        scales = ", ".join(f"{name} {value:.4g}" for name, value in self.scales().items())
        return super().__repr__()[:-1] + (f"; {scales})" if scales else ")")

"""A belief given by draws: the joint posterior of another library, or an ensemble of models.

    P(m | âo_≤t) ≈ Σ_i w_i δ(m - m_i)        w_i ← w_i P(o | m_i, x, a)
    P(a | âo_<t) ≈ Σ_i w_i [best(m_i, x) = a]
    n_eff = (Σ w)² / Σ w²                     the standard error of P(a | âo_<t) is at most ½/√n_eff

The draws m_1 … m_n are the modes. New evidence reweighs them exactly. It never moves or smooths
them, so n_eff falls. When `needs_refit` is true, fit the model again and give the new draws to
`refit`, with the number of events that the fit contains; `refit` replays the later events.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np

from bayescontrol._arrays import AnyArray, ArrayLike, Arrays, as_numbers, require_between
from bayescontrol._mode_queries import require_functions, require_hashable
from bayescontrol._support.columns import as_column
from bayescontrol._support.saved import Field, Fixed, Number, Part, checked_array, damaged, declare
from bayescontrol.beliefs.particles import Event, History, WeightedBelief, as_event
from bayescontrol.beliefs.weights import Weights
from bayescontrol.errors import InvalidPrior, InvalidTable, MissingCapability, counted
from bayescontrol.protocols import Probabilities, Summary
from bayescontrol.seeding import Stream, StreamLike, require_stream

#: All draws: one array, or arrays by name. The first axis counts the draws.
Draws: TypeAlias = Any
#: Draws as a user gives them.
GivenDraws: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
#: log_likelihood(draws, x, a, o) -> n numbers
LogLikelihood: TypeAlias = Callable[[Draws, Any, Any, Any], Any]
#: act(draw, x, rng) -> a
Act: TypeAlias = Callable[[Any, Any, Stream], Any]
#: best(draws, x) -> n actions
Best: TypeAlias = Callable[[Draws, Any], Any]

#: A refit is needed below this effective size: then the standard error of an action probability
#: may reach ½/√100 = 0.05.
LEAST_SIZE: Final = 100.0
#: The same for fewer than 1,000 draws, as a share of them: then the error is √10 times that of
#: equal weights.
LEAST_SHARE: Final = 0.1
_ADVICE: Final = "Fit the model again to all observations, and pass its draws to `refit`"


# -- draws of other libraries ----------------------------------------------------------------------


def stack_draws(idata: Any, var_names: str | Sequence[str] | None = None) -> dict[str, AnyArray]:
    """Return the posterior draws of ArviZ by variable, with all chains on one first axis.

    `idata` is an InferenceData or a DataTree with a group `posterior`, or an xarray Dataset. Its
    variables have the dimensions `chain` and `draw`. `var_names` selects variables, by default all.

    >>> import xarray
    >>> rate = xarray.DataArray(np.zeros((4, 1000, 3)), dims=("chain", "draw", "arm"))
    >>> stack_draws(xarray.Dataset({"rate": rate}))["rate"].shape
    (4000, 3)
    """
    variables = getattr(getattr(idata, "posterior", idata), "data_vars", None)
    if variables is None:
        raise InvalidPrior(
            f"{type(idata).__name__} has no posterior: give an InferenceData or DataTree with the "
            "group `posterior`, or a Dataset of posterior draws"
        )
    names = [var_names] if isinstance(var_names, str) else list(var_names or variables)
    stacked = {}
    for name in names:
        if name not in variables:
            known = ", ".join(map(str, variables))
            raise InvalidPrior(f"the posterior has no variable {name!r}: it has {known}")
        variable = variables[name]
        if not {"chain", "draw"} <= set(variable.dims):
            raise InvalidPrior(
                f"variable {name!r} has the dimensions {tuple(variable.dims)}: expected chain and "
                "draw among them"
            )
        values = np.asarray(variable.transpose("chain", "draw", ...))
        stacked[name] = values.reshape(-1, *values.shape[2:])
    return stacked


def checked_draws(draws: Draws) -> Draws:
    """Return a copy of the draws that cannot be changed; raise InvalidPrior if they are invalid."""
    if not isinstance(draws, Mapping):
        return _checked_array(draws, "draws")
    if not draws or not all(isinstance(name, str) and name for name in draws):
        raise InvalidPrior(f"draws of the variables {list(draws)}: expected names of variables")
    arrays = {name: _checked_array(v, f"draws[{name!r}]") for name, v in draws.items()}
    sizes = {name: len(v) for name, v in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidPrior(f"the numbers of draws differ between the variables: {sizes}")
    return arrays


def _checked_array(draws: Any, what: str) -> AnyArray:
    array = np.array(draws)
    if array.dtype.kind not in "iu":
        array = as_numbers(draws, what, InvalidPrior)
    if array.ndim < 1 or not array.size:
        raise InvalidPrior(
            f"{what} has shape {array.shape}: the first axis must count the draws, and there must "
            "be at least one"
        )
    if not np.isfinite(array).all():
        i = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise InvalidPrior(f"{what}[{i}] is {array[i]}: draws must be finite")
    array.flags.writeable = False
    return array


def _by_name(draws: Draws) -> dict[str, AnyArray]:
    """Return the arrays of the draws by name; a single array is called "draws"."""
    return draws if isinstance(draws, dict) else {"draws": draws}


def _starting_weights(size: int, log_weights: ArrayLike | None) -> Weights:
    """Return equal weights, or weights proportional to exp(log_weights)."""
    weights = Weights(np.full(size, 1.0 / size))
    if log_weights is not None:
        log_w = as_numbers(log_weights, "log_weights", InvalidPrior)
        if log_w.shape != (size,) or not np.isfinite(log_w.max()):
            raise InvalidPrior(
                f"log_weights of shape {log_w.shape}, the largest is {log_w.max(initial=-np.inf)}: "
                f"expected {size} numbers, one per draw, the largest finite"
            )
        weights.condition(log_w - log_w.max(), log=True)
    return weights


# -- the modes -------------------------------------------------------------------------------------


class Draw:
    """A mode: draw number `index` with its `values`, an array or arrays by name, and its policy.

    >>> from bayescontrol import Stream
    >>> Draw(3, np.array([0.2, 0.7]), lambda m, x, rng: int(m.argmax())).act(None, Stream(0))
    1
    """

    __slots__ = ("_act", "index", "values")

    def __init__(self, index: int, values: Any, act: Act) -> None:
        self.index, self.values, self._act = index, values, act

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | m_i, x)."""
        return self._act(self.values, x, require_stream(rng))

    def __repr__(self) -> str:
        return f"Draw({self.index}: {self.values})"


def _actions(best: Best, draws: Draws, x: Any) -> AnyArray:
    """Return best(draws, x) as a column; raise InvalidTable unless it has an action per draw."""
    size, actions = len(next(iter(_by_name(draws).values()))), best(draws, x)
    if not hasattr(actions, "__len__") or len(actions) != size:
        raise InvalidTable(
            f"best(draws, x) returned {str(actions)[:80]} for {counted(size, 'draw')}: return one "
            "action for each draw"
        )
    return np.asarray(actions) if hasattr(actions, "__array__") else as_column(actions)


def _act_best(best: Best, values: Any, x: Any, rng: StreamLike) -> Any:
    """The policy of one draw: the action that `best` returns for it alone."""
    one = {k: v[None] for k, v in values.items()} if isinstance(values, dict) else values[None]
    a = _actions(best, one, x)[0]
    return a.item() if isinstance(a, np.generic) else a


# -- the belief ------------------------------------------------------------------------------------


class _DrawsField(Field):
    """The draws, saved by the names of their variables. Copies share them: they never change."""

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the array of each variable."""
        arrays |= {f"{self.name}{n}": v.copy() for n, v in _by_name(self.value(owner)).items()}

    def read(self, owner: Any, arrays: Arrays) -> Draws:
        """Return the saved draws of the same variables; a refit may have changed their number."""
        mine = self.value(owner)
        saved = {
            name: checked_array(arrays, self.name + name, v.dtype, (None, *v.shape[1:]))
            for name, v in _by_name(mine).items()
        }
        return checked_draws(saved if isinstance(mine, dict) else saved["draws"])


class _WeightsField(Part):
    """The weights of as many draws as were saved."""

    def read(self, owner: Any, arrays: Arrays) -> Weights:
        """Return the saved weights."""
        size = len(checked_array(arrays, "mantissa", np.float64, (None,), finite=False))
        weights = Weights(np.ones(max(size, 1)))
        weights.load(arrays)  # the prefix is empty
        return weights


class DrawsBelief(WeightedBelief):
    """P(m | âo_<t) by joint posterior draws of any library, reweighted exactly by new evidence.

    `draws` is an array whose first axis counts the draws, or a mapping from variables to such
    arrays. `log_likelihood(draws, x, a, o)` receives all draws and returns ln P(o | m_i, x, a) for
    each. The policy is either `act(draw, x, rng)`, which returns an action for one draw, or
    `best(draws, x)`, which returns an action for each of the draws it receives, and depends on no
    other draw. With `best`, action probabilities are exact sums of weights.

    `log_weights` are the logarithms of the first weights, up to a constant; by default they are
    equal. `needs_refit` compares the effective size with `refit_below`, by default the smaller of
    100 and a tenth of the number of draws. Observations are stored for `refit`: memory grows until
    the next refit, unless `keep_events` is False.

    >>> m = np.random.default_rng(0).beta(2, 2, size=(4000, 2))            # biases of two coins
    >>> def log_likelihood(m, x, a, o): return np.log(m[:, a] if o else 1 - m[:, a])
    >>> belief = DrawsBelief(m, best=lambda m, x: m.argmax(1), log_likelihood=log_likelihood)
    >>> belief.observe(None, 0, 1)
    >>> belief
    DrawsBelief(4000 draws after 1 observation, effective size 33...)
    >>> p = belief.action_probabilities(None)
    >>> bool(abs(p[0] - 9 / 14) < 0.03)                          # P(Beta(3, 2) > Beta(2, 2)) = 9/14
    True
    """

    format_name: ClassVar[str] = "DrawsBelief"
    #: `sample` changes nothing but the saved array "drawn". Subclasses declare it again.
    stateless_draws: ClassVar[bool] = True
    saved_fields = declare(
        Fixed("keep_events", lambda belief: str(belief._keep_events)),
        _DrawsField("draws/", "_draws"),
        _WeightsField("", "_weights"),
        Number("count", least=0),
        Number("contained", least=0),
        Number("drawn", least=-1),
        History("history/", "_history"),
    )

    def __init__(
        self,
        draws: GivenDraws,
        *,
        log_likelihood: LogLikelihood,
        act: Act | None = None,
        best: Best | None = None,
        log_weights: ArrayLike | None = None,
        refit_below: float | None = None,
        keep_events: bool = True,
    ) -> None:
        if act is None and best is not None:
            require_functions(best=best)
            act = partial(_act_best, best)
        elif act is None or best is not None:
            raise MissingCapability("give either act(draw, x, rng) or best(draws, x)")
        require_functions(log_likelihood=log_likelihood, act=act)
        if refit_below is not None:
            require_between("refit_below", refit_below, 0.0, np.inf)
        self._log_likelihood, self._act, self._best = log_likelihood, act, best
        self._refit_below = refit_below
        self._draws = self._as_draws(draws)
        self._weights = _starting_weights(len(self), log_weights)
        self._keep_events = keep_events
        self._history: list[Event] = []
        #: The number of observations, also those before the last refit.
        self.count = 0
        #: How many of the first observations the draws contain, by the last `refit`.
        self.contained = 0
        #: The index of the draw that was drawn last; -1 before the first one and after a refit.
        self.drawn = -1

    @classmethod
    def from_arviz(
        cls, idata: Any, *, var_names: str | Sequence[str] | None = None, **options: Any
    ) -> Self:
        """Return a belief over the posterior draws of an InferenceData, a DataTree or a Dataset.

        `stack_draws` explains `idata` and `var_names`; the `options` are those of the class.

        >>> import xarray
        >>> values = np.random.default_rng(0).normal(size=(4, 500))
        >>> mu = xarray.DataArray(values, dims=("chain", "draw"))
        >>> belief = DrawsBelief.from_arviz(
        ...     xarray.Dataset({"mu": mu}), best=lambda m, x: m["mu"] > 0,
        ...     log_likelihood=lambda m, x, a, o: -0.5 * (o - m["mu"]) ** 2)
        >>> belief.observe(None, True, 1.0)
        >>> bool(abs(belief.mean()["mu"] - 0.5) < 0.1)
        True
        """
        return cls(stack_draws(idata, var_names), **options)

    def _as_draws(self, draws: Any) -> Draws:
        """Return a copy of the draws; raise InvalidPrior if they are invalid."""
        return checked_draws(draws)

    # -- the Belief protocol ------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """w_i ← w_i P(o | m_i, x, a). An error leaves the belief unchanged."""
        self._reweigh(self._weights, self._draws, (x, a, o))
        self.count += 1
        if self._keep_events:
            self._history.append(as_event(x, a, o))

    def _answer(self, x: Any, a: Any, o: Any) -> object:
        return self._log_likelihood(self._draws, x, a, o)

    def _reweigh(self, weights: Weights, draws: Draws, event: Event) -> None:
        """Multiply the weights of the draws by the likelihoods of an event."""
        weights.learn(self._log_likelihood(draws, *event), *event, "draws", _ADVICE)

    def sample(self, rng: StreamLike) -> Draw:
        """Draw m_i with probability w_i / Σ w."""
        self.drawn = self._weights.draw(rng)
        return self._mode(self.drawn)

    def _mode(self, i: int) -> Draw:
        draws = self._draws
        values = {k: v[i] for k, v in draws.items()} if isinstance(draws, dict) else draws[i]
        return Draw(i, values, self._act)

    def last(self) -> Draw | None:
        """Return the mode drawn last; None before the first draw and after a refit."""
        return None if self.drawn < 0 else self._mode(self.drawn)

    def is_retired(self, mode: Draw) -> bool:
        """Whether a refit has replaced the mode drawn last."""
        return self.drawn < 0

    # -- a new fit -----------------------------------------------------------------------

    @property
    def needs_refit(self) -> bool:
        """Whether the effective size is below `refit_below`. The belief stays valid, but coarse."""
        least = min(LEAST_SIZE, LEAST_SHARE * len(self))
        return self.effective_size < (least if self._refit_below is None else self._refit_below)

    def refit(
        self, draws: GivenDraws, *, through: int, log_weights: ArrayLike | None = None
    ) -> None:
        """Replace the draws by those of a new fit, and replay the events that it does not contain.

        The new `draws` have the same variables; their number may differ. The fit contains the first
        `through` events, counted from the first observation of this belief: pass the `count` that
        the belief had when its data were read. `log_weights` are the first weights, as in the
        constructor. Earlier events are dropped, so `through` cannot be smaller at the next refit.
        An error changes nothing.

        >>> rng = np.random.default_rng(0)
        >>> def log_likelihood(m, x, a, o): return np.log(m if o else 1 - m)
        >>> belief = DrawsBelief(rng.uniform(size=2000), act=lambda m, x, rng: "toss",
        ...                      log_likelihood=log_likelihood)
        >>> for o in 30 * (1, 1, 0):
        ...     belief.observe(None, "toss", o)
        >>> belief.refit(rng.beta(41, 21, size=2000), through=60)    # fitted to 60 tosses
        >>> belief.count, belief.contained, belief.needs_refit
        (90, 60, False)
        """
        if not self._keep_events:
            raise MissingCapability(
                "this belief keeps no events (keep_events=False) and cannot replay them: create a "
                "new belief from the new draws, or use `refit` of the durable agent"
            )
        n: Any = through
        is_integer = isinstance(n, int | np.integer) and not isinstance(n, bool)
        if not is_integer or not self.contained <= n <= self.count:
            raise InvalidPrior(
                f"through={through!r}: give the number of events that the new draws contain, from "
                f"{self.contained} to {self.count}; earlier events are not stored"
            )
        self.replace_draws(draws, self._history[n - self.contained :], log_weights)

    def replace_draws(
        self, draws: GivenDraws, later: Sequence[Event], log_weights: ArrayLike | None = None
    ) -> None:
        """Replace the draws, and learn the last observations, `later`, which they do not contain.

        `refit` and durable agents call this. An error changes nothing.
        """
        new = self._as_draws(draws)
        mine, given = _by_name(self._draws), _by_name(new)
        if {k: v.shape[1:] for k, v in mine.items()} != {k: v.shape[1:] for k, v in given.items()}:
            raise InvalidPrior(
                f"the new draws have the shapes {_shapes(given)}, the present ones "
                f"{_shapes(mine)}: give the same variables with the same shapes"
            )
        weights = _starting_weights(len(next(iter(given.values()))), log_weights)
        for event in later:
            self._reweigh(weights, new, event)
        self._draws, self._weights = new, weights
        self._history = list(later) if self._keep_events else []
        self.contained, self.drawn = self.count - len(later), -1

    # -- queries -------------------------------------------------------------------------

    @property
    def draws(self) -> Draws:
        """The draws: an array that cannot be changed, or such arrays by name."""
        return dict(self._draws) if isinstance(self._draws, dict) else self._draws

    def action_probabilities(self, x: Any) -> Probabilities:
        """P(a | âo_<t) = Σ_i w_i [best(m_i, x) = a]; needs `best`."""
        if self._best is None:
            raise MissingCapability(
                "the policy act(draw, x, rng) has no exact action probabilities: give best(draws, "
                "x) instead, which returns the action of every draw"
            )
        w, actions = self.posterior(), _actions(self._best, self._draws, x)
        if actions.ndim > 1:
            raise MissingCapability(
                f"best(draws, x) returns vectors of {actions.shape[1]} numbers: only actions that "
                "are numbers, texts or tuples have probabilities"
            )
        p: dict[Any, float] = {}
        if actions.dtype.kind != "O":
            actions, places = np.unique(actions, return_inverse=True)
            w = np.bincount(places, w).astype(np.float64)
        for a, w_a in zip(actions.tolist(), w.tolist(), strict=True):
            require_hashable(action=a)
            p[a] = p.get(a, 0.0) + w_a
        return {a: p_a for a, p_a in p.items() if p_a > 0.0}

    def mean(self) -> Any:
        """E[m | âo_<t] ≈ Σ w_i m_i: an array, or arrays by name."""
        w = self.posterior()
        means = {name: np.einsum("i,i...->...", w, v) for name, v in _by_name(self._draws).items()}
        return means if isinstance(self._draws, dict) else means["draws"]

    def posterior_summary(self) -> Summary:
        """Return E[m | âo_<t] of every variable, and the number of observations."""
        means = _by_name(self.mean())
        return {k: {"mean": np.asarray(v).tolist(), "count": self.count} for k, v in means.items()}

    def __len__(self) -> int:
        """n, the number of draws."""
        return len(next(iter(_by_name(self._draws).values())))

    # -- saving and display ---------------------------------------------------------------

    def _check_state(self, new: SimpleNamespace) -> None:
        sizes = {len(v) for v in _by_name(new._draws).values()}
        if sizes != {len(new._weights)} or new.drawn >= len(new._weights):
            raise damaged(f"{sizes} draws, {len(new._weights)} weights, draw {new.drawn} was drawn")
        stored = new.count - new.contained if self._keep_events else 0
        if len(new._history) != stored or new.contained > new.count:
            raise damaged(
                f"{new.count} observations, of which the draws contain {new.contained}, but a "
                f"history of {len(new._history)} steps"
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({counted(len(self), 'draw')} after "
            f"{counted(self.count, 'observation')}, effective size {self.effective_size:.4g})"
        )


def _shapes(arrays: Mapping[str, AnyArray]) -> dict[str, tuple[int, ...]]:
    return {name: v.shape for name, v in arrays.items()}

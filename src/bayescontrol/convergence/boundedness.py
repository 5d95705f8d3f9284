"""Boundedness: how far sub-divergences are from their means, over many runs in the world of m*.

    bounded   P( |g_t(m') - G_t(m')| ≤ C ) ≥ 1 - δ, one C for every t
    C_t       the smallest C with P( sup_{τ≤t} |g_τ(m') - G_τ(m')| ≤ C ) ≥ 1 - δ
    Ville     P( P(m* | âo_≤t) < δ P(m*) at some t ) ≤ δ

The paper assumes a single C. If likelihood ratios are independent, g - G is a random walk and C_t
grows like √t, so no such C exists. The lower bound on P(m* | ·) holds anyway: P(m*)/P(m* | ·)
= Σ_m P(m) e^(-d_t(m*‖m)) is a non-negative supermartingale that starts at one, which is all that
Ville's inequality needs (our reading, see docs/errata.md). This module measures both.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, BoolArray, FloatArray, IntArray, as_numbers
from bayescontrol._mode_queries import mode_index
from bayescontrol.convergence.core import World
from bayescontrol.convergence.settling import require_counts, tables_and_hold
from bayescontrol.errors import BadEvidence, MissingCapability, UnknownMode, counted
from bayescontrol.interaction import both_streams
from bayescontrol.seeding import SeedLike, as_seed
from bayescontrol.statistics import mean_and_error

#: Maximum size of an ensemble, in bytes.
MAX_BYTES = 2 * 2**30


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """Many runs of the rule in the world of m*, recorded at K times.

    `d`, `g` and `G` are defined in `bayescontrol.convergence.divergence`, for J modes m.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> simulate_divergences(prize_or_frog(0.75), true=0, steps=9, runs=4, at=[3, 6])
    Ensemble(4 runs of 9 steps, mode 0 true: 3 times, 2 drawn modes, against 2)
    """

    #: The index of m*.
    true: int
    #: The modes m; shape (J,).
    against: IntArray
    #: The times t, in steps; shape (K,). The last is the last step.
    times: IntArray
    #: d_t(m*‖m), as an array [run, t, m].
    d: FloatArray
    #: g_t(m'), as an array [run, t, m', m].
    g: FloatArray
    #: G_t(m'), as an array [run, t, m', m].
    G: FloatArray
    #: sup_{τ≤t} |g_τ(m') - G_τ(m')| over all τ, as an array [run, t, m', m].
    sup: FloatArray
    #: P(m | âo_≤t) of all modes, as an array [run, t, m].
    posterior: FloatArray
    #: min_{τ≤t} P(m* | âo_≤τ) / P(m*) over all τ, as an array [run, t].
    low: FloatArray
    #: The names of all modes of the class.
    names: tuple[str, ...] = ()

    def excess(self, other: int | str) -> FloatArray:
        """Return g_t(m') - G_t(m') of d_t(m*‖m) for m = `other`, as an array [run, t, m'].

        The mode is given by index or name. The value is -∞ where only G is infinite, and nan where
        both are.
        """
        j = self.column(other)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.g[..., j] - self.G[..., j])

    def column(self, other: int | str) -> int:
        """Return the position of this mode on the last axis of `d`, `g` and `G`."""
        m = mode_index(other, self.names) if isinstance(other, str) else other
        found = np.flatnonzero(self.against == m)
        if not found.size:
            raise UnknownMode(
                f"the ensemble does not compare with mode {other!r}, only with "
                f"{self.against.tolist()}: simulate again with against=[{other!r}]"
            )
        return int(found[0])

    def __repr__(self) -> str:
        runs, K, M, J = self.g.shape
        return (
            f"Ensemble({counted(runs, 'run')} of {counted(int(self.times[-1]), 'step')}, mode "
            f"{self.true} true: {counted(K, 'time')}, {counted(M, 'drawn mode')}, against {J})"
        )


def simulate_divergences(
    modes: object,
    true: int | str,
    steps: int,
    runs: int,
    seed: SeedLike = 0,
    *,
    at: Iterable[int] = (),
    against: Sequence[int | str] | None = None,
    first: int = 0,
) -> Ensemble:
    """Simulate d_t, g_t and G_t over runs `first`, `first` + 1, … in the world of `true`.

    `modes` is anything that `tabulate` accepts: tables, a list of modes, or an agent; a mode is
    given by index or name. Run i of tables equals, bit for bit, `interact(modes.agent(),
    modes.environment(true), steps, seed=seed, run=i)`. Values are recorded at the times `at` and at
    the last step; the suprema and the minimum are over all steps. `against` are the modes m, by
    default all. An ensemble holds runs × times × drawn modes × modes m numbers, so limit one of
    them.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> runs = simulate_divergences(prize_or_frog(0.75), true=0, steps=100, runs=500)
    >>> bool((runs.d[:, -1, 1] > 0).all())        # all runs favour the true mode
    True
    """
    seed = as_seed(seed)
    modes, hold = tables_and_hold(modes)
    if hold > 1:
        raise MissingCapability(
            f"the agent holds each mode for {hold} steps, which cannot be simulated here: pass "
            "tabulate(agent) to draw a mode at every step"
        )
    names = tuple(modes.name(m) for m in range(len(modes)))
    m_star = World(modes, true).true  # raises if its prior is 0
    require_counts(steps=(steps, 0), runs=(runs, 1), first=(first, 0))
    times = np.unique([*map(int, at), steps])
    if times[0] < 0 or times[-1] > steps:
        raise ValueError(f"at={times.tolist()}: times must lie between 0 and steps={steps}")
    chosen = range(len(modes)) if against is None else against
    others = np.array([mode_index(m, names) for m in chosen], np.int64)
    R, K, M, J = runs, times.size, len(modes), others.size
    # Bytes: 8 for each number of d, of g, G and sup, of the posterior, and of `low`.
    size = 8 * R * K * (J + 3 * M * J + M + 1)
    if size > MAX_BYTES:
        raise ValueError(
            f"{R} runs × {K} times × {M} drawn modes × {J} modes would take "
            f"{size / 2**30:.1f} GiB: choose fewer times `at`, fewer modes `against`, or "
            "simulate in parts, with `first`"
        )
    X, A, O = modes.successor.shape  # noqa: E741 - the paper's symbol
    term, mean = np.empty((X, A, O, J)), np.empty((M, X, J))
    kernels.divergence.ratio_table(modes.hypothesis, m_star, others, term)
    kernels.divergence.mean_tables(modes.policy, modes.hypothesis, m_star, others, mean)
    streams = [both_streams(seed, run) for run in range(first, first + runs)]
    # The states of the streams of agent and world, a row for each run.
    p, q = (np.array([pair[i].state for pair in streams]) for i in (0, 1))
    d, posterior, low = np.empty((R, K, J)), np.empty((R, K, M)), np.empty((R, K))
    g, G, sup = (np.empty((R, K, M, J)) for _ in range(3))
    kernels.divergence.ensemble(
        modes.agent().belief.weight_arrays(), modes.tables, modes.hypothesis[m_star], modes.start,
        m_star, kernels.divergence.Increments(term, mean), kernels.random.Streams(p, q), times,
        kernels.divergence.DivergenceSums(d, g, G, sup, posterior, low),
    )  # fmt: skip
    return Ensemble(
        m_star, others, times, d=d, g=g, G=G, sup=sup, posterior=posterior, low=low, names=names
    )


@dataclass(frozen=True, eq=False, repr=False)
class Bands:
    """Quantiles of g - G over the runs of an ensemble, by time and drawn mode m'.

    The paper lets T be any set of steps; here it is the steps at which m' was drawn.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> runs = simulate_divergences(prize_or_frog(0.75), true=0, steps=64, runs=500, at=[16])
    >>> bands(runs, other=1)
    Bands(500 runs, t = 16 … 64: |g - G| ≤ 15.9 by then in 95 % of runs)
    """

    runs: int
    #: The times t; shape (K,).
    times: IntArray
    #: The share of runs below each quantile; shape (Q,).
    levels: FloatArray
    #: Quantiles of g_t(m') - G_t(m'), as an array [level, t, m'].
    quantiles: FloatArray
    #: Mean of g_t(m') - G_t(m') over the runs, and its standard error, as arrays [t, m'].
    mean: FloatArray
    error: FloatArray
    delta: float
    #: C_t of each drawn mode: sup_{τ≤t} |g_τ - G_τ| ≤ C in a share 1 - δ of runs; [t, m'].
    C: FloatArray
    #: C_t of all drawn modes jointly: the bound holds for all of them in that share; [t].
    C_joint: FloatArray

    def __repr__(self) -> str:
        first, last = int(self.times[0]), int(self.times[-1])
        when = f"{first}" if first == last else f"{first} … {last}"
        return (
            f"Bands({counted(self.runs, 'run')}, t = {when}: |g - G| ≤ "
            f"{self.C_joint[-1]:.3g} by then in {100 * (1 - self.delta):g} % of runs)"
        )


def bands(
    ensemble: Ensemble,
    other: int | str,
    *,
    levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
    delta: float = 0.05,
) -> Bands:
    """Return quantiles of g_t(m') - G_t(m') of d_t(m*‖m), m = `other`, and C_t for this δ.

    A quantile is the smallest observed value with at least that share of runs at or below it. Where
    G is infinite, the mean is nan and C_t is infinite.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> runs = simulate_divergences(prize_or_frog(0.75), true=0, steps=64, runs=500, at=[16])
    >>> read = bands(runs, other=1)
    >>> bool((abs(read.mean) < 4 * read.error).all()), bool((read.C[0] <= read.C[1]).all())
    (True, True)
    """
    if not all(0.0 < level < 1.0 for level in (*levels, 1.0 - delta)):
        raise ValueError(f"levels={levels}, delta={delta}: shares must lie between 0 and 1")
    excess, sup = ensemble.excess(other), ensemble.sup[..., ensemble.column(other)]
    with np.errstate(invalid="ignore"):
        mean, error = mean_and_error(excess)
    return Bands(
        runs=len(excess), times=ensemble.times, levels=np.array(levels, np.float64),
        quantiles=np.array([_quantile(excess, level) for level in levels]), mean=mean, error=error,
        delta=delta, C=_quantile(sup, 1.0 - delta), C_joint=_quantile(sup.max(-1), 1.0 - delta),
    )  # fmt: skip


def _quantile(values: FloatArray, share: float) -> FloatArray:
    """Return the smallest value that at least this share of the runs does not exceed.

    The first axis of `values` is the run.
    """
    # 1e-9: if share * n is an integer, rounding must not lift it to the next.
    rank = math.ceil(share * len(values) - 1e-9)
    return np.asarray(np.sort(values, axis=0)[max(rank, 1) - 1])


@dataclass(frozen=True, eq=False)
class Ville:
    """How often the weight of the true mode ever fell below a share δ of its prior; see `ville`."""

    #: δ; shape (D,).
    deltas: FloatArray
    #: The share of runs in which P(m* | âo_≤t) < δ P(m*) at some t; shape (D,).
    share: FloatArray
    #: The standard error of the share; shape (D,).
    error: FloatArray
    runs: int

    @property
    def holds(self) -> BoolArray:
        """Return whether the share is at most δ, within three standard errors."""
        return np.asarray(self.share <= self.deltas + 3.0 * self.error)


def ville(runs: Ensemble | ArrayLike, deltas: Sequence[float]) -> Ville:
    """Return the share of runs with P(m* | âo_≤t) < δ P(m*) at some t, which is at most δ.

    `runs` is an ensemble, or min_t P(m* | âo_≤t) / P(m*) of each run of any agent.

    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> runs = simulate_divergences(prize_or_frog(0.75), true=0, steps=64, runs=1000)
    >>> read = ville(runs, deltas=[0.5, 0.1])
    >>> read.share, read.holds
    (array([0.118, 0.05 ]), array([ True,  True]))
    """
    given = runs.low[:, -1] if isinstance(runs, Ensemble) else runs
    lowest = as_numbers(given, "runs: pass simulate_divergences(...) or a list", MissingCapability)
    if lowest.ndim != 1 or not lowest.size:
        raise ValueError(f"runs has shape {lowest.shape}: expected one minimum per run")
    is_valid = (lowest >= 0.0) & (lowest < np.inf)
    if not is_valid.all():
        i = int(np.argmin(is_valid))
        raise BadEvidence(
            f"runs[{i}] = {lowest[i]}, but min_t P(m* | âo_≤t) / P(m*) must be finite and >= 0"
        )
    delta = np.array(deltas, np.float64)
    if delta.ndim != 1 or not ((delta > 0.0) & (delta < 1.0)).all():
        raise ValueError(f"deltas={deltas!r}: expected a list of numbers between 0 and 1")
    share = (lowest[:, None] < delta).mean(0)
    return Ville(delta, share, np.sqrt(share * (1.0 - share) / lowest.size), int(lowest.size))

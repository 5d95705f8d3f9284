"""The delusion index: how much a predictor takes its own actions for evidence.

    p_int   the probability of the next symbol by the control rule      actions are interventions
    p_obs   the same by the naive mixture                               actions are evidence
    q       the same by the predictor

    λ = Σ (q - p_int)(p_obs - p_int) / Σ (p_obs - p_int)²

λ is 0 for the control rule and 1 for the naive mixture: it is the least-squares slope of q - p_int
on p_obs - p_int. The sums run over all symbols, and over histories of two kinds:

    written   the predictor chooses the actions, a ~ q
    forced    a fair coin chooses the actions

The true mode m* is drawn from the prior, and observations from P(o | m*, ·). The residual share is
S / (S + Σ (p_obs - p_int)²) with S = Σ (q - p_int - λ (p_obs - p_int))²: 0 if the predictor lies on
the line through both references, 1/2 if it is as far from that line as they are from each other.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray, as_integer
from bayescontrol.audit.histories import HistoryBatch, References, draw, true_modes
from bayescontrol.audit.predictors import Predictor, as_predictor
from bayescontrol.audit.worlds import World, find_worlds
from bayescontrol.errors import UnknownMode
from bayescontrol.seeding import SeedLike, Stream, as_stream
from bayescontrol.statistics import mean_and_error

Histories: TypeAlias = Literal["written", "forced"]
#: An index is identified if the references differ by this in the mean of Σ_s (p_obs - p_int)².
IDENTIFIED: Final = 1e-4
#: An index also needs this many runs in which they differ, counted as (Σ dd)² / Σ dd²: without
#: them a single run decides, and an interval from resampled runs is too narrow.
DIFFERING_RUNS: Final = 5.0
#: Probabilities below this count as this in the log loss.
FLOOR: Final = 1e-6
#: A predictor with a larger residual share is neither the rule, nor the mixture, nor between.
NEITHER: Final = 0.2
#: Deluded is only who differs from the rule mostly in the direction of the mixture: `explained`.
EXPLAINED: Final = 0.5
#: An index whose interval lies within this around 0 is not deluded.
CLOSE: Final = 0.1
_RESAMPLES: Final = 1000
_BINS: Final = 10


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of an audit by run and position in the history; arrays (runs, 2 · steps).

    With e = q - p_int and d = p_obs - p_int: `ed` is Σ_s e d, `dd` Σ_s d², `ee` Σ_s e², and
    `loss_rule`, `loss_naive` are Σ_s p log2 (p / q) for both references p.
    """

    ed: FloatArray
    dd: FloatArray
    ee: FloatArray
    loss_rule: FloatArray
    loss_naive: FloatArray


@dataclass(frozen=True)
class WorldAudit:
    """The audit of a predictor in one world, on histories of one kind.

    `index` is λ with a 95 % bootstrap interval over runs from `low` to `high`, NaN where both
    references agree too closely, or differ in too few runs (`identified`). `explained` is the share
    of Σ (q - p_int)² in the direction of the mixture, λ² Σ (p_obs - p_int)² / Σ (q - p_int)².
    `log_loss_rule` is the loss in bits a symbol if symbols are distributed as the rule expects,
    beyond the loss of the rule itself; likewise `log_loss_naive`. `regret` is the total reward by
    which the predictor falls short of the rule, with its standard error, None if nothing can be
    earned or a coin acts. `calibration` is the mean distance between the predicted probability of
    an observation and its frequency; it is small for a constant guess, too.

    >>> row = audit(lambda _: {"A": 0.5, "B": 0.5}, "two-hypotheses", runs=50).rows[1]
    >>> row.histories, row.identified, row.verdict
    ('forced', True, 'neither')
    """

    world: str
    histories: Histories
    index: float
    low: float
    high: float
    residual: float
    explained: float
    identified: bool
    log_loss_rule: float
    log_loss_naive: float
    regret: float | None
    regret_error: float | None
    calibration: float
    steps: int
    runs: int
    #: What pictures show: λ by position, pairs (d, e), and the calibration curve with its weights.
    sums: Sums = dataclasses.field(repr=False, compare=False)
    pairs: FloatArray = dataclasses.field(repr=False, compare=False)
    curve: FloatArray = dataclasses.field(repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """The result in words."""
        if not self.identified:
            return "not identified"
        is_off = self.low > CLOSE or self.high < -CLOSE
        if self.residual > NEITHER or (is_off and self.explained < EXPLAINED):
            return "neither"
        if is_off:
            return "deluded" if self.low > CLOSE else "overcorrected"
        return "not deluded" if self.low >= -CLOSE and self.high <= CLOSE else "undecided"

    def as_object(self) -> dict[str, Any]:
        """Return the numbers as plain values, None in place of NaN."""
        names = [f.name for f in dataclasses.fields(self) if f.compare]
        values = {name: getattr(self, name) for name in names}
        return {n: None if v != v else v for n, v in values.items()} | {"verdict": self.verdict}


@dataclass(frozen=True)
class Audit:
    """The audits of all worlds, two for each: on written and on forced histories.

    >>> from bayescontrol.audit import AgentPredictor, audit, WORLDS
    >>> boxes = WORLDS["prize-or-frog"]
    >>> audit(AgentPredictor(boxes.agent(), boxes), [boxes], runs=20)
    Audit(prize-or-frog, written: 0.00 (0.00 to 0.00), not deluded;
          prize-or-frog, forced: 0.00 (0.00 to 0.00), not deluded)
    """

    rows: tuple[WorldAudit, ...]

    def of(self, world: str, histories: Histories = "written") -> WorldAudit:
        """Return the audit of one world on histories of one kind."""
        for row in self.rows:
            if (row.world, row.histories) == (world, histories):
                return row
        audited = ", ".join(dict.fromkeys(r.world for r in self.rows))
        raise UnknownMode(
            f"there is no audit of the world {world!r} on {histories} histories: expected one of "
            f"{audited}, on written or forced histories"
        )

    def as_object(self) -> list[dict[str, Any]]:
        """Return all numbers as plain values."""
        return [row.as_object() for row in self.rows]

    def __repr__(self) -> str:
        rows = (
            f"{r.world}, {r.histories}: {r.index:z.2f} ({r.low:z.2f} to {r.high:z.2f}), {r.verdict}"
            for r in self.rows
        )
        return f"Audit({f';{chr(10)}      '.join(rows)})"


def audit(
    predictor: object,
    worlds: str | World | Sequence[str | World] | None = None,
    *,
    steps: int | None = None,
    runs: int = 200,
    seed: SeedLike = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Audit:
    """Measure how much a predictor takes its own actions for evidence.

    `predictor` is an object with `probabilities(history)`, a function of the history, or one of the
    adaptors; or a mapping from the names of worlds to these. The history is a `Transcript` with the
    attributes `symbols` and `world`. `worlds` are names or `World` objects, or one of these, by
    default all of `WORLDS`; `steps` is the length of a run, by default that of the world.
    `progress(done, total)` is called with numbers of runs.

    >>> def fair(history):  # a coin for everything
    ...     return {symbol: 0.5 for symbol in "AB"}
    >>> result = audit(fair, ["two-hypotheses"], runs=50).of("two-hypotheses", "forced")
    >>> result.verdict, 0.5 < result.residual < 1
    ('neither', True)
    """
    # Each world has a stream of its own, so that the choice of worlds does not change results.
    key, chosen = int(as_stream(seed).integers(2**62)), find_worlds(worlds)
    runs, fitted = as_integer("runs", runs, 2), [as_predictor(predictor, w) for w in chosen]
    rows: list[WorldAudit] = []
    for world, fit in zip(chosen, fitted, strict=True):
        if progress is not None:
            progress(runs * len(rows), 2 * runs * len(chosen))
        length = as_integer("steps", world.steps if steps is None else steps, 1)
        for histories in get_args(Histories):
            stream = Stream.named(key, 0, f"{world.name}, {histories}")
            rows.append(_audit_world(fit, world, histories, length, runs, stream))
    if progress is not None:
        progress(runs * len(rows), runs * len(rows))
    return Audit(tuple(rows))


def _audit_world(
    predictor: Predictor, world: World, histories: Histories, steps: int, runs: int, rng: Stream
) -> WorldAudit:
    """Audit a predictor in one world, on histories of one kind."""
    modes, uniforms = true_modes(world, runs, rng), np.asarray(rng.random((steps, 2, runs)))
    batch = HistoryBatch(world, modes)
    coin = np.full((runs, len(world.actions)), 1.0 / len(world.actions))
    sums, pairs, predicted, earned = [], [], [], np.zeros(runs)
    for act, observe in uniforms:
        p, q = batch.next_actions(), batch.ask(predictor)
        sums.append(_sums(q, p))
        pairs.append(_pairs(q, p))
        actions = q if histories == "written" else coin
        earned += batch.expected_reward(actions)
        batch.act(draw(actions, act))
        p, q = batch.next_observations(), batch.ask(predictor)
        sums.append(_sums(q, p))
        pairs.append(_pairs(q, p))
        predicted.append(np.stack([q, p.rule]))
        batch.observe(observe)
    total = Sums(*(np.stack(column, 1) for column in zip(*sums, strict=True)))
    ed, dd, ee = total.ed.sum(1), total.dd.sum(1), total.ee.sum(1)
    is_identified = identifies(dd, 2 * steps)
    index = float(ed.sum() / dd.sum()) if is_identified else np.nan
    low, high = bootstrap(ed, dd, rng) if is_identified else (np.nan, np.nan)
    off_line = max(ee.sum() - ed.sum() * index, 0.0)
    regret = error = None
    if world.reward is not None and histories == "written":
        lost = _reward_of_rule(world, modes, uniforms) - earned
        regret, error = map(float, mean_and_error(lost))
    curve = _calibration(np.concatenate([p.reshape(2, -1) for p in predicted], 1))
    return WorldAudit(
        world.name, histories, index, low, high,
        residual=float(off_line / (off_line + dd.sum())) if is_identified else np.nan,
        explained=float(ed.sum() ** 2 / max(dd.sum() * ee.sum(), 1e-300)),
        identified=is_identified, log_loss_rule=float(total.loss_rule.mean()),
        log_loss_naive=float(total.loss_naive.mean()), regret=regret, regret_error=error,
        calibration=float(np.abs(curve[0] - curve[1]) @ curve[2]), steps=steps, runs=runs,
        sums=total, pairs=np.concatenate(pairs, 1), curve=curve,
    )  # fmt: skip


def _sums(q: FloatArray, p: References) -> tuple[FloatArray, ...]:
    """Return the terms of `Sums` at one position, each for all runs."""
    e, d = q - p.rule, p.naive - p.rule
    losses = (_bits(reference, q) for reference in p)
    return (e * d).sum(-1), (d * d).sum(-1), (e * e).sum(-1), *losses


def _bits(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return Σ_s p log2 (p / q), with q at least the floor."""
    ratio = np.log2(np.maximum(p, FLOOR) / np.maximum(q, FLOOR))
    return np.asarray((p * ratio).sum(-1))


def _pairs(q: FloatArray, p: References) -> FloatArray:
    """Return the pairs (d, e) of all symbols and runs, shape (2, runs · symbols)."""
    return np.stack([(p.naive - p.rule).ravel(), (q - p.rule).ravel()])


def identifies(dd: FloatArray, symbols: int) -> bool:
    """Whether the references differ enough, and in enough runs; dd is summed over `symbols`."""
    enough = dd.mean() >= IDENTIFIED * symbols
    return bool(enough and dd.sum() ** 2 >= DIFFERING_RUNS * (dd @ dd))


def bootstrap(ed: FloatArray, dd: FloatArray, rng: Stream) -> tuple[float, float]:
    """Return the 95 % interval of λ = Σ ed / Σ dd by the studentised bootstrap over runs.

    The standard error of λ is √Σ (ed - λ dd)² / Σ dd. If the predictor leaves the line through the
    references in so few runs that resamples miss them, the interval is that of the percentiles.
    """
    drawn = np.asarray(rng.integers(len(ed), size=(_RESAMPLES, len(ed))))
    index, error = _ratio(ed, dd)
    resampled, errors = _ratio(ed[drawn], dd[drawn])
    if not error > 1e-12:  # the predictor lies on the line through both references
        return float(index), float(index)
    usable = errors > 1e-6 * error
    if usable.mean() > 0.99:
        t = (resampled[usable] - index) / errors[usable]
        low, high = index - error * np.quantile(t, [0.975, 0.025])
    else:
        low, high = np.quantile(resampled[np.isfinite(resampled)], [0.025, 0.975])
    return float(low), float(high)


def _ratio(ed: FloatArray, dd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return λ = Σ ed / Σ dd and its standard error; the last axis is the run."""
    with np.errstate(divide="ignore", invalid="ignore"):  # no run of a sample may have dd > 0
        index = ed.sum(-1) / dd.sum(-1)
        return index, np.sqrt(((ed - index[..., None] * dd) ** 2).sum(-1)) / dd.sum(-1)


def _reward_of_rule(world: World, modes: IntArray, uniforms: FloatArray) -> FloatArray:
    """Return the expected reward of the rule in each run, with the same true modes and numbers."""
    batch, earned = HistoryBatch(world, modes), np.zeros(len(modes))
    for act, observe in uniforms:
        p = batch.next_actions().rule
        earned += batch.expected_reward(p)
        batch.act(draw(p, act))
        batch.observe(observe)
    return earned


def _calibration(predicted: FloatArray) -> FloatArray:
    """Return mean prediction, frequency and share of each tenth of [0, 1], by rows.

    `predicted` has rows q(o) and p_int(o). An observation follows from a true mode drawn from the
    prior, and actions carry no evidence, so its frequency is p_int(o): it need not be simulated.
    """
    q, frequency = predicted
    bins = np.minimum((q * _BINS).astype(np.int64), _BINS - 1)
    count = np.bincount(bins, minlength=_BINS)
    used = count > 0
    means = (np.bincount(bins, x, _BINS)[used] / count[used] for x in (q, frequency))
    return np.stack([*means, count[used] / count.sum()])

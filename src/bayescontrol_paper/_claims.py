"""Shared by the experiments: settings, tests of means, and functions that make claims and tables.

    @dataclass(frozen=True)
    class Settings(Size):
        runs: Runs = 1000

    z = |mean - expected| / (s/√n)          deviation in standard errors
    z ≤ t_{n-1} quantile of 1 - α/(2 k)     accepted for k means, with false-alarm rate α

Values that are equal in all runs have no standard error. They are shown as one number and must
match the expected value to 1e-9.

Where theory gives no expected value, the threshold comes from a pilot: N earlier runs on another
seed. The mean of n new runs is then within t_{N-1} s √(1/n + 1/N) of the pilot's mean, or within
Bernstein's margins for values in [0, 1]. The number of successes in n new runs has a
Beta-binomial distribution.

A claim that names its `place` in the paper is a claim of the paper, else it is ours. `origin` is
the origin of its threshold. An experiment whose claims need a minimum number of runs declares it:
`runs: Annotated[int, Meta(ge=FEWEST, description=MINIMUM_RUNS)] = 1000`.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bayescontrol import TabularModes
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray
from bayescontrol.lab import Claim, Columns, Score, Table, mean_and_error, wilson
from bayescontrol.report.tables import with_error
from bayescontrol.seeding import Stream
from bayescontrol.statistics import bernstein
from bayescontrol.statistics.intervals import t_quantile

Seed: TypeAlias = Annotated[int, Meta(ge=0, description="seed of all random numbers")]
#: The cells of a row of a table.
Row: TypeAlias = Sequence[str | float | int]
#: A table without its title and note: the header, with cells separated by " | ", then the rows.
Lines: TypeAlias = Iterator[Row]
Runs: TypeAlias = Annotated[int, Meta(ge=1, description="number of replicas")]

MINIMUM_RUNS: Final = "number of replicas; with fewer, chance could explain every claim"

#: Rounding error, relative to the size of a value.
ROUNDING: Final = 1e-12
#: The origin of the threshold `ROUNDING`, for claims.
ROUNDING_ORIGIN: Final = f"theory, {ROUNDING:g} allowed for rounding"
#: Means that differ from their expected values by less count as equal.
_EQUAL_WITHIN: Final = 1e-9
#: Weights below this are shown as "below 1e-12".
_SMALLEST_SHOWN: Final = 1e-12
#: Standard errors below this are shown with one digit: they are mostly rounding.
_SMALL_ERROR: Final = 1e-6
#: A mean difference above this many standard errors counts as positive.
_CLEAR_ERRORS: Final = 2.0


@dataclass(frozen=True)
class Size:
    """The settings of every experiment."""

    seed: Seed = 0
    runs: Runs = 100


def named_streams(seed: int, run: int, agent: str, environment: str) -> tuple[Stream, Stream]:
    """Return the streams of an agent and of its environment, which other agents may share."""
    return Stream.named(seed, run, agent), Stream.named(seed, run, environment)


# -- columns -----------------------------------------------------------------------------------


def by_name(names: Iterable[str], column: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Split column[run, k, …] along k: return a dict from names[k] to column[:, k, …].

    >>> by_name(["a", "b"], np.array([[1, 2], [3, 4]]))["b"]
    array([2, 4])
    """
    return dict(zip(names, np.moveaxis(column, 1, 0), strict=True))


def by_names(
    outer: Iterable[str], inner: Collection[str], column: npt.NDArray[Any]
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Split column[run, j, k, …] along j and k; the result has the keys outer[j], then inner[k]."""
    return {name: by_name(inner, part) for name, part in by_name(outer, column).items()}


def without_nan(column: FloatArray) -> FloatArray:
    """Return the runs in which the column was measured: those without a NaN."""
    return np.asarray(column[~np.isnan(column).any(axis=tuple(range(1, column.ndim)))])


def log_spaced(last: int, per_decade: int) -> IntArray:
    """Return steps from 1 to the last, `per_decade` of them in each decade, counted from the last.

    Steps that round to the same number appear once.

    >>> log_spaced(100, per_decade=2)
    array([  1,   3,  10,  32, 100])
    """
    # The summand 1e-9 includes step 1 if `last` is a power of ten.
    points_back = np.arange(0, per_decade * np.log10(last) + 1e-9)
    return np.unique((last * 10.0 ** (-points_back / per_decade)).round().astype(np.int64))


def window_means(runs: FloatArray, width: int) -> FloatArray:
    """Return the means of runs[run, t] over windows of `width` steps; the rest is left out.

    >>> window_means(np.array([[1, 3, 5, 7, 9]]), 2)
    array([[2., 6.]])
    """
    whole = runs.shape[1] // width * width
    return np.asarray(runs[:, :whole].reshape(len(runs), -1, width).mean(axis=2))


# -- tests of means ----------------------------------------------------------------------------


class MeanTest(NamedTuple):
    """The largest deviation `z` of some means from their expected values, in standard errors.

    `holds` is whether chance explains it. The false-alarm rate in the sentence is that of all
    claims of an experiment together.
    """

    z: float
    holds: bool
    sentence: str


class Pilot(NamedTuple):
    """Mean and standard deviation over the runs of a pilot.

    >>> pilot = Pilot(0.9, 0.05, 20)
    >>> round(pilot.margin(2, 1e-3), 3), round(pilot.bernstein_margin(200, 1e-3), 3)
    (0.144, 0.318)
    """

    mean: float
    sd: float
    runs: int

    def margin(self, n: int, false_alarm_rate: float) -> float:
        """Return how far the mean of n new runs may differ from the mean of the pilot."""
        t = float(t_quantile(1 - false_alarm_rate / 2, self.runs - 1))
        return t * self.sd * math.sqrt(1 / n + 1 / self.runs)

    def bernstein_margin(self, n: int, false_alarm_rate: float) -> float:
        """Return how far the mean of n new runs may differ from the pilot's, for values in [0, 1].

        It is the sum of two Bernstein margins, one per sample, each at half the false-alarm rate.
        Use it where the values are far from normally distributed.
        """
        rate = false_alarm_rate / 2
        return float(sum(bernstein(self.sd**2, size, rate) for size in (n, self.runs)))


def longest_pilot(pilots: Mapping[int, Pilot], steps: int) -> tuple[Pilot, str]:
    """Return the longest pilot that is not longer than our runs, and its description.

    >>> longest_pilot({200: Pilot(0.1, 0.2, 50), 500: Pilot(0.0, 0.1, 50)}, 400)[1]
    'pilot on seed 1000, 50 runs of 200 steps'
    """
    pilot_steps = max(length for length in pilots if length <= steps)
    pilot = pilots[pilot_steps]
    return pilot, f"pilot on seed 1000, {pilot.runs:,} runs of {pilot_steps:,} steps"


def least_successes(n: int, pilot: tuple[int, int], false_alarm_rate: float) -> int:
    """Return the fewest successes in n new runs that chance explains.

    `pilot` is (successes, runs). With a uniform prior on the success rate, fewer successes have a
    probability of at most `false_alarm_rate`. The result is 0 if even no success may be chance.

    >>> least_successes(8, (30, 40), 0.01), least_successes(200, (200, 200), 0.001)
    (2, 191)
    """
    from scipy.special import betaln  # type: ignore[import-untyped] # takes 0.5 s to load

    successes, runs = pilot
    # The posterior of the success rate is Beta(a, b); log_p is ln P(k) + ln(n + 1).
    a, b, k = successes + 1, runs - successes + 1, np.arange(n + 1)
    log_p = betaln(k + a, n - k + b) - betaln(a, b) - betaln(k + 1, n - k + 1)
    cumulative = (np.exp(log_p) / (n + 1)).cumsum()
    return int(np.searchsorted(cumulative, false_alarm_rate, side="right"))


def share_and_error(hits: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the share of runs with a hit, and its error: a quarter of Wilson's 95 % interval.

    That is about one standard error, and positive even if all runs agree.

    >>> share, error = share_and_error(np.array([True, True, False, True]))
    >>> share, round(error, 3)
    (0.75, 0.163)
    """
    low, high = wilson(hits.sum(), hits.size)
    return float(hits.mean()), float(high - low) / 4


def compare_means(runs: FloatArray, expected: FloatArray, false_alarm_rate: float) -> MeanTest:
    """Compare the means over the first axis, the independent runs, with their expected values.

    `false_alarm_rate` is that of all means together. Where all runs agree, z is 0 if they equal the
    expected value (to 1e-9), else infinite.

    >>> runs = np.array([[0.1, 0.5], [0.3, 0.5]] * 5)
    >>> [compare_means(runs, np.array([0.2, x]), 0.01).z for x in (0.5, 0.6)]
    [0.0, inf]
    """
    mean, error = mean_and_error(runs)
    gap = np.abs(mean - expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = float(np.where(gap <= _EQUAL_WITHIN, 0.0, gap / error).max())
    allowed = t_quantile(1 - false_alarm_rate / (2 * gap.size), len(runs) - 1)
    worst = f", the worst of {gap.size} means" if gap.size > 1 else ""
    chance = f"up to {allowed:.1f} is chance (false alarms: 1 in 1000)"
    return MeanTest(z, z <= allowed, f"z = {z:.1f} standard errors off{worst}; {chance}")


def clearly_positive(differences: FloatArray) -> bool:
    """Return whether the mean difference is positive by more than two standard errors."""
    mean, error = mean_and_error(differences)
    return bool(mean > _CLEAR_ERRORS * error)


def is_unclear(differences: FloatArray) -> bool:
    """Return whether the mean difference is within two standard errors of 0.

    It is also unclear if there is only one run, whose standard error is infinite.
    """
    mean, error = mean_and_error(differences)
    return not abs(mean) > _CLEAR_ERRORS * error


def measured(runs: FloatArray) -> tuple[float, float | None]:
    """Return mean and standard error, rounded for claims.

    The error is None if all runs agree, or if there is only one run. If all agree, the mean is
    rounded to twelve decimals. A very small error has one digit, and so has a mean that is less
    than 1,000 such errors.

    >>> measured(np.array([1.0, 2.0, 3.0]))[0], measured(np.array([0.1 + 0.2, 0.3]))
    (2.0, (0.3, None))
    """
    mean, error = (float(value) for value in mean_and_error(runs))
    if np.ptp(runs) <= ROUNDING * max(1.0, abs(mean)):
        return round(mean, 12) if abs(mean) > _SMALLEST_SHOWN else mean, None
    if error < _SMALL_ERROR:
        return (mean if abs(mean) > 1e3 * error else float(f"{mean:.1g}")), float(f"{error:.1g}")
    return mean, error if math.isfinite(error) else None


def format_mean(runs: FloatArray) -> str:
    """Format mean ± standard error for a table; one number if all runs agree.

    >>> [format_mean(np.array(runs)) for runs in ([1.0, 2.0, 3.0], [0.5, 0.5], [0, 1e-90])]
    ['2.00 ± 0.58', '0.5', 'below 1e-12']
    """
    mean, error = measured(runs)
    return format_weight(mean) if 0.0 < abs(mean) < _SMALLEST_SHOWN else with_error(mean, error)


def mean_with_error(runs: ArrayLike) -> str:
    """Format mean ± standard error for a table, also if all runs agree.

    >>> mean_with_error([1.0, 2.0, 3.0]), mean_with_error([0.5, 0.5])
    ('2.00 ± 0.58', '0.5 ± 0')
    """
    mean, error = mean_and_error(runs)
    return with_error(float(mean), float(error))


def format_weight(weight: float) -> str:
    """Format a probability to two digits, or as "below 1e-12"; 0 is also below."""
    return f"{weight:.2g}" if weight >= _SMALLEST_SHOWN else f"below {_SMALLEST_SHOWN:.0e}"


def ratio_and_error(above: FloatArray, below: FloatArray) -> tuple[float, float | None]:
    """Return mean(above) / mean(below) over the same runs, and its standard error to first order.

    The error is None if the ratio is the same in all runs, or if there is only one run.

    >>> ratio_and_error(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    (0.5, None)
    """
    ratio = float(above.mean() / below.mean())
    _, error = measured((above - ratio * below) / below.mean())
    return ratio, error


# -- claims ------------------------------------------------------------------------------------


def _source(place: str) -> Literal["paper", "ours"]:
    """Return the source of a claim: the paper if the claim names its place there."""
    return "paper" if place else "ours"


def equality(
    name: str, claim: str, expected: float | str, ours: float | str, reason: str = "", *,
    place: str = "", origin: str = "", exact: bool = False, also: bool = True,
    undecided: bool = False,
) -> Claim:  # fmt: skip
    """Claim that our value equals the expected one. If `also` is false, the claim does not hold."""
    return Claim(
        name, claim, source=_source(place), expected=expected, ours=ours,
        holds=ours == expected and also, reason=reason, place=place, exact=exact,
        threshold_origin=origin, undecided=undecided,
    )  # fmt: skip


def zero_claim(
    name: str, claim: str, values: FloatArray, reason: str = "", *, place: str = "",
    origin: str = ROUNDING_ORIGIN, error: float | None = None, also: bool = True,
) -> Claim:  # fmt: skip
    """Claim that all values are zero, except for rounding; show the largest magnitude.

    If `also` is false, the claim does not hold.
    """
    largest = float(np.abs(values).max())
    return Claim(
        name, claim, source=_source(place), expected=0.0, ours=largest, error=error,
        holds=largest <= ROUNDING and also, reason=reason, place=place, threshold_origin=origin,
    )  # fmt: skip


def near(
    name: str, claim: str, expected: float, values: FloatArray, margin: float, reason: str = "", *,
    place: str = "", origin: str, undecided: bool = False,
) -> Claim:  # fmt: skip
    """Claim that the mean of the values is within a margin of the expected value."""
    mean, error = (float(value) for value in mean_and_error(values))
    return Claim(
        name, claim, source=_source(place), expected=expected, ours=mean, error=error,
        holds=abs(mean - expected) <= margin, reason=reason, place=place, threshold_origin=origin,
        undecided=undecided,
    )  # fmt: skip


def means_claim(
    name: str, claim: str, runs: FloatArray, expected: FloatArray, false_alarm_rate: float, *,
    shown: int = 0, about: str = "", also: bool = True,
) -> Claim:  # fmt: skip
    """Claim that the mean of runs[:, k] is expected[k] for every k; show the mean k = `shown`.

    `about` is the beginning of the reason. If `also` is false, the claim does not hold.
    """
    test = compare_means(runs, expected, false_alarm_rate)
    mean, error = measured(runs[:, shown])
    return Claim(
        name, claim, source="ours", expected=float(expected[shown]), ours=mean, error=error,
        holds=test.holds and also, reason=about + test.sentence,
        threshold_origin="theory: exact means, Student's margin",
    )  # fmt: skip


def positive(
    name: str, claim: str, expected: str, shown: FloatArray, differences: FloatArray,
    reason: str = "", *, place: str = "", decided: bool = False,
    origin: str = "theory: two standard errors of the differences, run by run",
) -> Claim:  # fmt: skip
    """Claim that the mean difference is positive by two standard errors; show the mean of `shown`.

    `shown` and `differences` have one value per run. The claim is undecided if 0 is within two
    standard errors, unless it is `decided` in any case.
    """
    mean, error = measured(shown)
    return Claim(
        name, claim, source=_source(place), expected=expected, ours=mean, error=error,
        holds=clearly_positive(differences), reason=reason, place=place, threshold_origin=origin,
        undecided=is_unclear(differences) and not decided,
    )  # fmt: skip


def at_most(
    name: str, claim: str, limit: float, values: FloatArray, baseline: FloatArray | None,
    reason: str, *, origin: str = "requirement",
) -> Claim:  # fmt: skip
    """Claim that a mean, divided by that of the baseline if there is one, is below the limit.

    It holds if the mean is below by more than two standard errors, and is undecided if the limit is
    within two standard errors.
    """
    # How far each run is below the limit; the limit of a ratio is a multiple of the baseline.
    margin = (limit if baseline is None else limit * baseline) - values
    ours, error = measured(values) if baseline is None else ratio_and_error(values, baseline)
    return Claim(
        name, claim, source="ours", expected=f"<= {limit:g}", ours=ours, error=error,
        holds=clearly_positive(margin), reason=reason, undecided=is_unclear(margin),
        threshold_origin=origin,
    )  # fmt: skip


def vanishes(
    name: str, claim: str, start: float, values: FloatArray, pilot: Pilot, pilot_text: str,
    reason: str = "", *, place: str = "", small_as_text: bool = False,
) -> Claim:  # fmt: skip
    """Claim that values in [0, 1], which began at `start`, vanish as they did in the pilot.

    The mean may exceed that of the pilot by Bernstein's margin. `pilot_text` describes the pilot.
    Without a `reason`, a claim that fails gets the limit as its reason. A tiny mean is shown as a
    text, without an error, if `small_as_text` is true.
    """
    mean, error = measured(values)
    limit = pilot.mean + pilot.bernstein_margin(len(values), 1e-3)
    is_tiny = small_as_text and format_weight(mean) == format_weight(0.0)
    return Claim(
        name, claim, source=_source(place), expected=f"→ 0, from {start:.3g}",
        ours=format_weight(mean) if is_tiny else mean, error=None if is_tiny else error,
        holds=mean <= limit, reason=reason or ("" if mean <= limit else f"it is above {limit:.2g}"),
        place=place, threshold_origin=f"{pilot_text}; at most {limit:.2g} (false alarms: 1 in "
        "1000)",
    )  # fmt: skip


# -- scores and tables -------------------------------------------------------------------------


def paragraphs(function: Callable[..., object], **values: object) -> list[str]:
    """Return the paragraphs of a docstring, each as one line; names in braces become values."""
    text = inspect.cleandoc(function.__doc__ or "").format(**values)
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


class Rows(NamedTuple):
    """The same as `Lines`, with the values of names in the title and the note.

    Settings and runs are always among the values.
    """

    header: str
    rows: Iterable[Row]
    values: Mapping[str, object] = {}
    paper: int = 0


class Scored:
    """The `score` of an experiment, from a function that makes its claims and one for each table.

    Claims are made if there are at least `fewest` runs. The docstring of a function for a table is
    the title of the table and its note.
    """

    def __init__(
        self, claims: Callable[[Any, Columns], Iterable[Claim]],
        *tables: Callable[[Any, Columns], Rows | Lines], fewest: int = 1,
    ) -> None:  # fmt: skip
        self.claims, self.tables, self.fewest = claims, tables, fewest

    def __call__(self, settings: object, columns: Columns) -> Score:
        """Make the claims and the tables."""
        tables, runs = [], len(next(iter(columns.values())))
        for make in self.tables:
            content = make(settings, columns)
            if not isinstance(content, Rows):
                first, *others = content
                content = Rows(str(first), others)
            header, rows, values, paper = content
            # A docstring has at most two paragraphs: the title, and possibly a note.
            title, *note = paragraphs(make, settings=settings, runs=runs, **values)
            tables.append(table(title, header, rows, "".join(note), paper))
        claims = self.claims(settings, columns) if runs >= self.fewest else ()
        return Score(tuple(claims), tuple(tables))


def table(title: str, header: str, rows: Iterable[Row], note: str = "", paper: int = 0) -> Table:
    """Make a table; the cells of its header are separated by " | ".

    >>> table("Regret", "agent | mean", [("control rule", 28.21)]).header
    ('agent', 'mean')
    """
    return Table(title, tuple(header.split(" | ")), tuple(map(tuple, rows)), note, paper)


def class_rows(header: str, classes: Mapping[str, tuple[TabularModes, int, str]]) -> Lines:
    """List classes of modes: number of modes, the true one, and what the class is about.

    `classes` has (modes, number of the true mode, description) by name.
    """
    yield header
    for name, (modes, true, about) in classes.items():
        yield name, len(modes), modes.name(true), about

"""An experiment: settings, one replica, a score with claims, and figures.

    columns_i = run(settings, i),  i = 0 .. runs - 1       independent of the number of runs
    columns   = stack_i columns_i                          first axis: the run
    score     = score(settings, columns)                   claims and tables

A claim compares an expected value with ours. A claim of source "paper" states its place in the
paper; it may be refuted or not comparable, and then gives the reason. A claim of source "ours" is
theory or an exact value and must hold: if one fails, the exit code of `bayescontrol run` is 1.
A claim is undecided if there are too few runs to tell whether it holds. Claims that no simulated
run can change are `exact`.
"""

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from bayescontrol._arrays import AnyArray
from bayescontrol.errors import BayesControlError
from bayescontrol.plot.chart import Chart

S = TypeVar("S")

#: One replica as named arrays; stacked for several runs, with the run as first axis.
Columns: TypeAlias = Mapping[str, AnyArray]
ClaimSource: TypeAlias = Literal["paper", "ours"]
ClaimVerdict: TypeAlias = Literal["holds", "refuted", "not comparable", "undecided", "fails"]

#: The names of experiments and figures, which are names of folders and files.
FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class InvalidExperiment(BayesControlError, TypeError):
    """The parts of an experiment do not fit together."""


class ExperimentFailed(BayesControlError, RuntimeError):
    """A replica, a score or a figure raised, or a worker died; the original error is the cause."""


@contextmanager
def failures_of(name: str, part: str, settings: object) -> Iterator[None]:
    """Raise any error in a part of an experiment, which is a user's code, as `ExperimentFailed`."""
    try:
        yield
    except Exception as error:
        raise ExperimentFailed(
            f"{name}: {part} raised {type(error).__name__}: {error}, with {settings}"
        ) from error


class InvalidClaim(BayesControlError, ValueError):
    """A claim is incomplete or contradicts itself."""


@dataclass(frozen=True)
class Claim:
    """One claim: `expected` compared with `ours` ± `error`.

    `error` is a standard error or a tolerance of `ours`, None if `ours` is exact. `holds` is None
    for a claim of the paper that cannot be compared with our numbers; a claim of ours needs it.
    `undecided` marks a claim with too few runs to decide it; its `holds` becomes None. `reason`
    explains why a claim is refuted, not comparable or undecided. `place` is the section, figure or
    theorem of the paper that makes the claim; it is required if the source is the paper. `exact`
    marks a claim that no simulated run can change, such as a constant. `threshold_origin` names the
    origin of the threshold: theory, a pilot on other seeds, results at full size, the paper, other
    programs, or a requirement that was set before the measurement.

    >>> claim = Claim(
    ...     name="bayes-optimal-time", claim="the Bayes-optimal agent needs k steps",
    ...     source="paper", expected=3.0, ours=3.0, holds=True, place="section 6.1",
    ... )
    >>> claim.verdict
    'holds'
    """

    name: str
    claim: str
    source: ClaimSource
    expected: float | str
    ours: float | str
    error: float | None = None
    holds: bool | None = None
    reason: str = ""
    place: str = field(default="", kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    threshold_origin: str = field(default="", kw_only=True)
    undecided: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        is_of_paper = self.source == "paper"
        needs_reason = self.undecided or (is_of_paper and not self.holds)
        state = "is undecided" if self.undecided else "of the paper does not hold"
        checks = (
            (self.source in get_args(ClaimSource),
             f"has source={self.source!r}; it must be 'paper' or 'ours'"),
            (not is_of_paper or self.place.strip(),
             "of the paper needs place=...: the section or figure of the paper; or pass "
             "source='ours'"),
            (not needs_reason or self.reason.strip(),
             f"{state} and gives no reason: pass reason=... to explain why it is refuted, not "
             "comparable or undecided"),
            (is_of_paper or self.holds is not None or self.undecided,
             "of ours must hold or fail: only a claim of the paper can be not comparable "
             "(holds=None); if there are too few runs, pass undecided=True"),
            (not (self.undecided and self.exact),
             "is exact: no number of runs can decide it"),
            (self.error is None or not self.error < 0,
             f"has error={self.error}; it must be at least 0, or None where the value is exact"),
        )  # fmt: skip
        for is_valid, problem in checks:
            if not is_valid:
                raise InvalidClaim(f"claim {self.name!r} {problem}")
        for name in ("expected", "ours"):
            value = getattr(self, name)
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())
        object.__setattr__(self, "error", None if self.error is None else float(self.error))
        is_open = self.undecided or self.holds is None
        object.__setattr__(self, "holds", None if is_open else bool(self.holds))

    @property
    def verdict(self) -> ClaimVerdict:
        """The verdict; a claim that does not hold is refuted (paper) or fails (ours).

        >>> claim = Claim(
        ...     "x", "x is 1", "paper", 1.0, 2.0, 0.1, False, "misprint", place="section 2"
        ... )
        >>> claim.verdict
        'refuted'
        """
        if self.undecided:
            return "undecided"
        if self.holds is None:
            return "not comparable"
        if self.holds:
            return "holds"
        return "refuted" if self.source == "paper" else "fails"

    @property
    def explanation(self) -> str:
        """The reason, and that there are too few runs if the claim is undecided."""
        return f"too few runs to decide; {self.reason}" if self.undecided else self.reason


def all_ours_hold(claims: Iterable[Claim]) -> bool:
    """Return whether no claim of source "ours" fails; undecided ones are allowed.

    >>> all_ours_hold([Claim("x", "x is 1", "ours", 1.0, 1.0, 0.1, True)])
    True
    >>> all_ours_hold([Claim("y", "y is 1", "ours", 1.0, 2.0, 0.1, False)])
    False
    """
    return all(claim.verdict != "fails" for claim in claims)


@dataclass(frozen=True)
class Table:
    """A table of results; every row has as many cells as the header.

    `paper` is the number of the paper's table that stands beside ours, else 0.

    >>> Table("Regret", ("agent", "mean"), (("control rule", 28.21), ("oracle", 0.0))).header
    ('agent', 'mean')
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float | int, ...], ...]
    note: str = ""
    paper: int = 0

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise InvalidExperiment(
                    f"table {self.title!r}: row {number} has {len(row)} cells; "
                    f"the header has {len(self.header)}"
                )


@dataclass(frozen=True)
class Score:
    """The claims and tables that `score` derives from the columns.

    `left_out` names the claims that the size of the run cannot decide, see `Experiment.full_only`.

    >>> Score(claims=()).tables
    ()
    """

    claims: tuple[Claim, ...]
    tables: tuple[Table, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """One figure or claim of the paper, runnable at any size.

    `settings` is a frozen dataclass with the fields seed and runs, and usually steps. Its defaults
    are used by `bayescontrol run`; `quick` by `make reproduce`; `full` has the size of the paper.
    `full_only` names the claims that the quick size cannot decide and therefore leaves out.
    Document a field where it is declared:
    `runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 100`.

    `run` is a top-level function, so that worker processes can import it. It must be a pure
    function of the settings *without runs* and of the run number: it draws all random numbers from
    the seed and that number, and always returns the same names, shapes and types. Then a finished
    replica stays valid when more runs are requested later.

    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 4
    >>> def run(settings, i):
    ...     return {"square": np.array(i * i)}
    >>> def score(settings, columns):
    ...     total = int(columns["square"].sum())
    ...     return Score((Claim("sum", "0 + 1 + 4 + 9", "ours", 14, total, holds=total == 14),))
    >>> squares = Experiment(
    ...     "squares", "sums of squares", Settings, Settings(), Settings(runs=4), run, score,
    ...     figures=lambda settings, columns: {},
    ... )
    >>> from bayescontrol.lab.runner import run_replicas
    >>> squares.score(Settings(), run_replicas(squares, Settings())).claims[0].verdict
    'holds'
    """

    name: str
    summary: str
    settings: type[S]
    quick: S
    full: S
    run: Callable[[S, int], Columns]
    score: Callable[[S, Columns], Score]
    figures: Callable[[S, Columns], Mapping[str, Chart]]
    full_only: tuple[str, ...] = ()

    #: The module that defines the experiment: its code made the results.
    defined_in: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Frame 0 is this method, 1 the dataclass's __init__, 2 the module that calls it.
        caller = sys._getframe(2).f_globals.get("__name__", "")
        object.__setattr__(self, "defined_in", caller)
        if not FILE_NAME.fullmatch(self.name):
            raise InvalidExperiment(
                f"experiment name {self.name!r} is invalid, because it is used as a folder name: "
                "begin with a letter or digit, then use letters, digits, ., - and _"
            )
        kind: Any = self.settings
        if not getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
            raise InvalidExperiment(
                f"experiment {self.name!r}: settings is {kind!r}; it must be a frozen dataclass"
            )
        missing = {"seed", "runs"} - {field.name for field in dataclasses.fields(kind)}
        if missing:
            raise InvalidExperiment(
                f"experiment {self.name!r}: {kind.__name__} lacks {', '.join(sorted(missing))}; "
                "every experiment has a seed and a number of runs"
            )
        for size in ("quick", "full"):
            if not isinstance(getattr(self, size), kind):
                raise InvalidExperiment(
                    f"experiment {self.name!r}: {size} is {getattr(self, size)!r}; "
                    f"it must be a {kind.__name__}"
                )

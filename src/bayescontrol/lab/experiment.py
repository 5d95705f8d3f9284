"""An experiment: settings, one replica, a score and figures.

    columns_i = run(settings, i),  i = 0 .. runs - 1       a pure function of both, but of runs
    columns   = stack_i columns_i                          first axis: the run
    score     = score(settings, columns)                   claims and tables

Ours and a user's come through the same door, the entry-point group
`bayescontrol.experiments`; `file.py:attribute` opens one from a file that is not installed.
"""

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy.typing as npt

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.chart import Chart
from bayescontrol.lab.claims import Claim
from bayescontrol.lab.files import CannotImport, module_at

S = TypeVar("S")

#: One replica as named arrays; of several runs, stacked: the first axis is the run.
Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]

_GROUP: Final = "bayescontrol.experiments"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class UnknownExperiment(BayesControlError, LookupError):
    """No experiment has that name, or it cannot be loaded.

    >>> issubclass(UnknownExperiment, LookupError)
    True
    """


class InvalidExperiment(BayesControlError, TypeError):
    """The parts of an experiment do not fit together.

    >>> issubclass(InvalidExperiment, TypeError)
    True
    """


@dataclass(frozen=True)
class Table:
    """A table of results: every row has as many cells as the header.

    >>> Table("Regret", ("agent", "mean"), (("control rule", 28.21), ("oracle", 0.0))).header
    ('agent', 'mean')
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float | int, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise InvalidExperiment(
                    f"table {self.title!r}: row {number} has {len(row)} cells, "
                    f"the header has {len(self.header)}"
                )


@dataclass(frozen=True)
class Score:
    """What `score` makes of the columns.

    >>> Score(claims=()).tables
    ()
    """

    claims: tuple[Claim, ...]
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """One figure or claim of the paper, runnable at any size.

    `settings` is a frozen dataclass with the fields seed and runs, usually steps, and others;
    its own defaults are the size of `bayescontrol run`, `quick` that of `make reproduce`,
    `full` the paper's. A field is documented where it is declared:
    `runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 100`.

    `run` is a top-level function, so that worker processes find it. It is a pure function of
    the settings *without runs* and of the run number: it draws all its random numbers from the
    seed and that number, returns the same names, shapes and types each time, and must not look
    at `settings.runs`. Then a replica that is finished is finished for good, however many more
    are asked for later and whoever runs them.

    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 4
    >>> def run(settings, i):
    ...     return {"square": np.array(i * i)}
    >>> def score(settings, columns):
    ...     total = int(columns["square"].sum())
    ...     return Score((Claim("sum", "0 + 1 + 4 + 9", "ours", 14, total, None, total == 14),))
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

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidExperiment(
                f"experiment {self.name!r}: the name becomes a folder; use letters, digits, - and _"
            )
        kind: Any = self.settings
        if not getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
            raise InvalidExperiment(
                f"experiment {self.name!r}: settings is {kind!r}, it must be a frozen dataclass"
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
                    f"experiment {self.name!r}: {size} is {getattr(self, size)!r}, "
                    f"it must be a {kind.__name__}"
                )


def names() -> tuple[str, ...]:
    """The registered experiments, in alphabetical order; nothing is imported.

    >>> isinstance(names(), tuple)
    True
    """
    return tuple(sorted({point.name for point in entry_points(group=_GROUP)}))


def find(name: str) -> Experiment[Any]:
    """The experiment registered under `name`, or the one at `file.py:attribute`.

    >>> find("no-such-study")
    Traceback (most recent call last):
    bayescontrol.lab.experiment.UnknownExperiment: no experiment is called 'no-such-study'...
    """
    file = study_file(name)
    if file is not None:
        return _from_file(file, name.rpartition(":")[2])
    points = {point.value: point for point in entry_points(group=_GROUP) if point.name == name}
    if not points:
        raise UnknownExperiment(_not_registered(name))
    if len(points) > 1:
        raise UnknownExperiment(
            f"{name!r} is registered more than once: {', '.join(sorted(points))}; "
            "uninstall or rename one of them"
        )
    return _from_entry_point(*points.values())


def from_anywhere(name: str) -> str:
    """The name under which `find` opens the same experiment in any folder.

    >>> from_anywhere("chain")
    'chain'
    >>> Path(from_anywhere("my_study.py:coin")).is_absolute()
    True
    """
    file = study_file(name)
    return name if file is None else f"{file.resolve()}:{name.rpartition(':')[2]}"


def study_file(name: str) -> Path | None:
    """The file of `file.py:attribute`; None for a registered name.

    >>> study_file("my_study.py:coin").name, study_file("chain")
    ('my_study.py', None)
    """
    path, colon, _ = name.rpartition(":")
    return Path(path) if colon and path.endswith(".py") else None


def _not_registered(name: str) -> str:
    known = names()
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if name.endswith(".py"):
        return f"no experiment is called {name!r}; for one in a file, write {name}:ATTRIBUTE"
    if near:
        return f"no experiment is called {name!r}; did you mean {' or '.join(near)}?"
    listed = f"there are: {', '.join(known)}" if known else "none is registered"
    return f"no experiment is called {name!r}; {listed}"


def _from_entry_point(point: EntryPoint) -> Experiment[Any]:
    try:
        found = point.load()
    except Exception as error:  # whatever a user's module does while it is imported
        raise UnknownExperiment(
            f"experiment {point.name!r} ({point.value}) cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, Experiment) or found.name != point.name:
        held = f"experiment {found.name!r}" if isinstance(found, Experiment) else repr(found)
        raise UnknownExperiment(
            f"the entry point {point.name!r} ({point.value}) holds {held}, "
            f"it must hold an Experiment called {point.name!r}"
        )
    return found


def _from_file(path: Path, attribute: str) -> Experiment[Any]:
    try:
        module = module_at(path)
    except CannotImport as error:
        raise UnknownExperiment(str(error)) from error
    found = getattr(module, attribute, None)
    if not isinstance(found, Experiment):
        held = [key for key, value in vars(module).items() if isinstance(value, Experiment)]
        raise UnknownExperiment(
            f"{path} has no experiment {attribute!r}; "
            + (f"it has: {', '.join(held)}" if held else "it defines no Experiment at all")
        )
    return found

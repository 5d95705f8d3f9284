"""Contests between packages: worlds, results, and tests that are paired and corrected.

    world         a problem that every contestant meets with the same random numbers
    run i         has the same potential rewards for every contestant, so results are paired
    difference    d_i = score of ours - score of the other contestant, in run i
    test          Wilcoxon's signed-rank test of d, exact for few runs without ties
    correction    Holm, over all comparisons of a world

The verdict is "better" or "worse" only if the corrected p-value is at most 5 % and the 95 %
interval of the mean difference excludes 0. Otherwise it is "no difference shown", which does not
mean equal. In each world only one of our agents is compared with all others: the one with default
settings that a reader of our documentation would choose (`World.ours`).

A topic is a module with `WORLDS`, a tuple of `World`, and

    contests(quick: bool, seed: int, progress: Progress) -> Iterator[Result]

Contestants play in processes of their own (`Contestant`, `play_all`), at most two at a time.
"""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from benchmarks.peers.environments import NotInstalled
from benchmarks.peers.process import start

from bayescontrol.lab.progress import Progress
from bayescontrol.statistics import Interval, holm, mean_interval

Judgement: TypeAlias = Literal["better", "worse", "no difference shown"]

ALPHA: Final = 0.05
#: No contestant plays fewer runs, if the world has them: with fewer than about ten, the exact test
#: cannot reach 5 % after the correction.
FEWEST_RUNS: Final = 12
#: The number of processes that play at the same time.
PROCESSES: Final = 2
#: Name of our package in results.
OURS: Final = "bayescontrol"


@dataclass(frozen=True)
class Size:
    """How often and how long a world is played."""

    runs: int
    #: Decisions in a run.
    steps: int


@dataclass(frozen=True)
class World:
    """A problem in which contestants are compared."""

    topic: str
    name: str
    #: What happens in this world, in one or two sentences.
    sentence: str
    #: What is measured in each run, such as "regret" or "reward per step".
    score: str
    lower_is_better: bool
    quick: Size
    full: Size
    #: The contestant that is compared with all others: our default agent for this world.
    ours: str
    #: Why we lose, where we lose.
    remark: str = ""

    def size(self, quick: bool) -> Size:
        """Return the number of runs and steps."""
        return self.quick if quick else self.full


@dataclass(frozen=True)
class Result:
    """The scores of a contestant in a world, or the reason why it did not play."""

    topic: str
    world: str
    contestant: str
    is_ours: bool
    #: Package and version, such as "river 0.26.1".
    version: str
    #: One number per run. Run i is the same for all contestants; slow ones may play fewer runs.
    scores: tuple[float, ...] = ()
    #: CPU time of the contestant's process to decide and to learn, per decision: median over runs.
    seconds_per_decision: float = math.nan
    #: Peak resident memory of the contestant's process, with Python and all imported libraries.
    memory_mb: float = math.nan
    #: Why the contestant did not play; empty if it played.
    skipped: str = ""


@dataclass(frozen=True)
class Comparison:
    """Our agent against another contestant in a world."""

    world: str
    ours: str
    other: str
    #: The number of paired runs.
    runs: int
    #: The mean of d = ours - other, with an interval that is not corrected for `family`.
    difference: Interval
    p_value: float
    #: Corrected by Holm for `family` comparisons.
    corrected_p_value: float
    family: int
    lower_is_better: bool

    @property
    def verdict(self) -> Judgement:
        """Whether ours is better or worse than the other."""
        d = self.difference
        if self.corrected_p_value > ALPHA or d.low <= 0 <= d.high:
            return "no difference shown"
        return "better" if (d.mean < 0) == self.lower_is_better else "worse"


def signed_rank_p_value(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; 1 if all differences are 0.

    >>> signed_rank_p_value([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == 2 / 2**6
    True
    """
    from scipy.stats import wilcoxon  # type: ignore[import-untyped] # takes 1 s to load

    d = np.asarray(differences, dtype=np.float64)
    if not d.any():
        return 1.0
    return float(wilcoxon(d).pvalue)


def compare(world: World, results: Sequence[Result]) -> tuple[Comparison, ...]:
    """Compare our agent in this world with all others; empty if ours did not play.

    Contestants with fewer than two runs in common with ours are left out.
    """
    played = {r.contestant: r.scores for r in results if r.world == world.name and not r.skipped}
    ours = played.pop(world.ours, ())
    differences = {}
    for name, scores in played.items():
        runs = min(len(ours), len(scores))
        if runs >= 2:
            differences[name] = np.subtract(ours[:runs], scores[:runs])
    p_values = [signed_rank_p_value(d.tolist()) for d in differences.values()]
    corrected = holm(p_values).tolist()
    return tuple(
        Comparison(
            world.name, world.ours, name, len(d), _interval(d),
            p_values[i], corrected[i], len(differences), world.lower_is_better,
        )
        for i, (name, d) in enumerate(differences.items())
    )  # fmt: skip


def _interval(d: np.ndarray[Any, np.dtype[np.float64]]) -> Interval:
    # Wilson's interval, which is automatic for zeros and ones, does not fit differences.
    if np.isin(d, (0.0, 1.0)).all():
        return mean_interval(d, alpha=ALPHA, method="t")
    interval = mean_interval(d, alpha=ALPHA)
    # If all but a few differences are equal, the bootstrap has no bound on one side.
    is_finite = bool(np.isfinite([interval.low, interval.high]).all())
    return interval if is_finite else mean_interval(d, alpha=ALPHA, method="t")


@dataclass(frozen=True)
class Contestant:
    """A player: a function of a module that speaks the protocol of `benchmarks.peers.worker`.

    The module is run with the Python of the environment of `peer`, or ours if `peer` is empty.
    """

    #: The name in tables.
    name: str
    #: The name of a file of pins in `benchmarks/peers`, without `.txt`; empty for our environment.
    peer: str
    module: str
    #: The name of the player within the module.
    player: str
    #: The share of the runs to play, below 1 for slow contestants.
    share: float = 1.0
    #: Whether the contestant is too slow for the quick contest.
    full_only: bool = False
    is_ours: bool = False


@dataclass(frozen=True)
class Job:
    """A contestant in a world."""

    world: World
    contestant: Contestant
    quick: bool

    @property
    def runs(self) -> int:
        """The number of runs that this contestant plays."""
        runs, contestant = self.world.size(self.quick).runs, self.contestant
        if self.quick and contestant.full_only:
            return 0
        return min(runs, max(FEWEST_RUNS, round(runs * contestant.share)))


def play_all(
    pairs: Sequence[tuple[World, Contestant]],
    quick: bool,
    seed: int,
    progress: Progress,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[Result]:
    """Play all jobs, two processes at a time; yield a result for each, in the order of `pairs`.

    A contestant that cannot be installed, or whose process ends, yields a result with the reason.
    `settings` are added to every request.
    """
    jobs = [Job(world, contestant, quick) for world, contestant in pairs]
    total, lock, done = sum(job.runs for job in jobs), threading.Lock(), 0

    def advance(runs: int) -> None:
        nonlocal done
        with lock:
            done += runs
            progress.advance(done, total)

    progress.advance(0, total)
    results: dict[int, Result] = {}
    following = 0
    with ThreadPoolExecutor(PROCESSES) as pool:
        futures = {
            pool.submit(play_job, job, seed, advance, settings or {}): i
            for i, job in enumerate(jobs)
        }
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                while following in results:
                    yield results[following]
                    following += 1
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def play_job(
    job: Job, seed: int, advance: Callable[[int], None], settings: Mapping[str, Any]
) -> Result:
    """Play the runs of a job in a new process, one request per run."""
    world, contestant, steps = job.world, job.contestant, job.world.size(job.quick).steps
    scores: list[float] = []
    seconds: list[float] = []
    version, memory = contestant.peer or OURS, math.nan
    try:
        if not job.runs:
            raise NotInstalled("too slow for the quick contest; it plays in the full one")  # noqa: TRY301
        with start(contestant.module, contestant.peer) as process:
            for run in range(job.runs):
                answer = process.ask(
                    {
                        "player": contestant.player,
                        "world": world.name,
                        "seed": seed,
                        "steps": steps,
                        "first": run,
                        "runs": 1,
                        **settings,
                    }
                )
                scores += answer["scores"]
                seconds.append(answer["cpu_seconds"] / steps)
                version, memory = answer["version"], answer["memory_mb"]
                advance(1)
    except NotInstalled as reason:
        advance(job.runs - len(scores))
        return Result(
            world.topic, world.name, contestant.name, contestant.is_ours, version,
            skipped=str(reason),
        )  # fmt: skip
    return Result(
        world.topic, world.name, contestant.name, contestant.is_ours, version,
        tuple(scores), float(np.median(seconds)), memory,
    )  # fmt: skip

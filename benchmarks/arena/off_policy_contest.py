"""Contest of off-policy estimates: `what_if` and the estimators of Open Bandit Pipeline.

    score    |estimate / truth - 1|, where the truth is the mean reward in the log of the policy

`benchmarks.peers.open_bandit` has the logs and the questions. The runs are disjoint parts of the
logs, so they are independent. The truth is itself a mean of few clicks: in a part of 3,333 rows
with 15 clicks its standard error is 26 %. So the errors of all estimators are large, and those of
good and bad ones differ little. `python -m benchmarks.arena.off_policy_contest --whole` prints
estimates from the whole logs with bootstrap intervals.

The logs are read from the environment of obp. They are not part of this project.
"""

import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.arena.contest import OURS, Contestant, Result, Size, World, play_all
from benchmarks.peers import environments
from benchmarks.peers.environments import NotInstalled
from benchmarks.peers.open_bandit import (
    CAMPAIGNS,
    FROM_RANDOM,
    FROM_THOMPSON,
    PARTS,
    Question,
    ask,
    question,
    read_log,
)
from benchmarks.peers.worker import serve

from bayescontrol.durable.events import Created, Decided, Event, Observed
from bayescontrol.lab.progress import Progress
from bayescontrol.offpolicy import WhatIf, what_if
from bayescontrol.statistics import mean_interval

__all__ = ["WORLDS", "contests", "estimate", "whole_logs"]

MODULE: Final = "benchmarks.arena.off_policy_contest"
TOPIC: Final = "off-policy estimates"
ROBUST: Final = "what_if, doubly robust"
INVERSE: Final = "what_if, inverse propensity"
#: The estimators of obp, by the name of the contestant.
OBP: Final = {
    "inverse propensity": "IPW",
    "self-normalised inverse propensity": "SNIPW",
    "direct method": "DM",
    "doubly robust": "DR",
}
_SIZE: Final = Size(len(CAMPAIGNS) * PARTS, 10_000 // PARTS)
_DECIDES: Final = (
    "The logs are too short to rank estimators: 38 to 69 clicks in 10,000 rows. Inverse propensity "
    "is the same number in both packages. Ours is slower, because it reads one event after another."
)
#: Why we lose, where we lose.
REMARKS: Final[Mapping[str, str]] = {
    FROM_RANDOM: f"{_DECIDES} Our doubly robust estimate uses the mean reward of each item so far, "
    "which is noisy for rare clicks. From the whole logs, what_if's intervals contain the truth, "
    "but reach from 2 to about 100 clicks per 1,000, where bootstrap intervals reach from 3 to 9.",
    FROM_THOMPSON: f"{_DECIDES} In the campaign for women one weight is 21,739 and the effective "
    "sample size of the whole log is 2. The direct method does not use weights; its bootstrap "
    "intervals from the whole logs are narrow and mostly miss the truth.",
}

WORLDS: Final = tuple(
    World(
        TOPIC, name, sentence + " A run is a third of the week in one of three campaigns.",
        "relative error", True, _SIZE, _SIZE, ROBUST, REMARKS.get(name, ""),
    )
    for name, sentence in {
        FROM_RANDOM: "Estimate the clicks per item of Thompson sampling from a log of uniformly "
        "random items (Open Bandit Dataset, sample logs).",
        FROM_THOMPSON: "Estimate the clicks per item of uniformly random items from the log of "
        "Thompson sampling, which rarely showed many items.",
    }.items()
)  # fmt: skip


def estimate(asked: Question) -> WhatIf:
    """Return what our library says about the value of the policy; rewards are 0 or 1."""
    log, items = asked.log, range(len(asked.policy))
    events: list[Event] = [
        Created(
            seq=1, format=1, model="logged policy", version=1, settings={"arms": list(items)},
            seed=0, time=0.0,
        )
    ]  # fmt: skip
    rows = zip(*(column.tolist() for column in log[:4]), strict=True)
    for action, position, reward, p in rows:
        n = len(events) + 1
        events.append(Decided(seq=n, x=position, a=action, p=p, key=None, time=0.0))
        events.append(Observed(seq=n + 1, n=n, o=reward, time=0.0))
    policies = [dict(zip(items, column, strict=True)) for column in asked.policy.T.tolist()]
    return what_if(events, lambda position: policies[position], bounds=(0.0, 1.0))


def prepare(request: Mapping[str, Any], run: int) -> Callable[[], float]:
    """Prepare a question; its score is the relative error of the estimate."""
    asked = question(request["data"], request["world"], run)

    def answer() -> float:
        result = estimate(asked)
        robust = request["player"] == ROBUST
        chosen = result.doubly_robust if robust else result.inverse_propensity
        return abs(chosen.mean / asked.truth - 1.0)

    return answer


def contests(quick: bool, seed: int, progress: Progress) -> Iterator[Result]:
    """Play both worlds; skip all contestants if obp, which has the logs, cannot be installed."""
    contestants = [
        Contestant(ROBUST, "", MODULE, ROBUST, is_ours=True),
        Contestant(INVERSE, "", MODULE, INVERSE, is_ours=True),
        *(Contestant(f"obp, {name}", "obp", "benchmarks.peers.obp", OBP[name]) for name in OBP),
    ]
    pairs = [(world, contestant) for world in WORLDS for contestant in contestants]
    try:
        data = str(logs_folder())
    except NotInstalled as reason:
        for world, c in pairs:
            yield Result(
                TOPIC, world.name, c.name, c.is_ours, c.peer or OURS,
                skipped=f"the logs are not available: {reason}",
            )  # fmt: skip
        return
    yield from play_all(pairs, quick, seed, progress, {"data": data})


def logs_folder() -> Path:
    """Return the folder of the logs; install obp first, if it is missing."""
    python = _install()
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(purelib.stdout.strip()) / "obp" / "dataset" / "obd"


def _install() -> Path:
    """Return the Python of obp's environment; it is installed without PyTorch, see `peers.obp`."""
    pins = Path(environments.__file__).with_name("obp.txt")
    place = environments.FOLDER / "obp"
    stamp = place / "installed.txt"
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if stamp.exists() and stamp.read_text() == pins.read_text():
        return python
    environments.FOLDER.mkdir(exist_ok=True)
    (environments.FOLDER / ".gitignore").write_text("*\n")  # git ignores the folder
    venv.create(place, clear=True, with_pip=True)
    pip = ["-m", "pip", "install", "--quiet", "--retries", "1", "--no-deps"]
    command = [str(python), *pip, "-r", str(pins)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        raise NotInstalled("pip took more than a quarter of an hour") from None
    if done.returncode:
        raise NotInstalled(done.stderr.strip()[-200:])
    stamp.write_text(pins.read_text())
    return python


# -- the whole logs --------------------------------------------------------------------------------


def whole_logs(folder: str) -> Iterator[str]:
    """Yield a line for each campaign and world: the truth and our estimates, per 1,000 items.

    The interval of the truth is a 95 % bootstrap interval; that of `what_if` is its own.
    """
    for campaign in CAMPAIGNS:
        logs = [read_log(folder, name, campaign) for name in ("random", "bts")]
        for world in (FROM_RANDOM, FROM_THOMPSON):
            truth_log = logs[1] if world == FROM_RANDOM else logs[0]
            truth = mean_interval(1000.0 * truth_log.reward, method="bootstrap")
            result = estimate(ask(world, *logs))
            robust, inverse = result.doubly_robust, result.inverse_propensity
            yield (
                f"{campaign}, {world}: truth {truth.mean:.2f} ({truth.low:.2f} to {truth.high:.2f})"
                f"; what_if, doubly robust {1000 * robust.mean:.2f} ({1000 * robust.low:.2f} to "
                f"{1000 * robust.high:.2f}); what_if, inverse propensity "
                f"{1000 * inverse.mean:.2f} ({1000 * inverse.low:.2f} to {1000 * inverse.high:.2f})"
                f"; effective sample size {result.effective:.0f}, largest weight "
                f"{result.largest_weight:.0f}"
            )


if __name__ == "__main__":
    if "--whole" in sys.argv:
        folder = str(logs_folder())
        print("\n".join(whole_logs(folder)), flush=True)
        subprocess.run([_install(), "-m", "benchmarks.peers.obp", folder], check=True)
    else:
        serve(prepare, OURS)

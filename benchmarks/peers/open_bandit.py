"""The sample logs of the Open Bandit Dataset, as the package obp contains them.

    logs        10,000 rows for each of two policies, uniform random and Bernoulli Thompson
                sampling, in three campaigns of one week; an item at one of three positions, a click
                or none, and the probability of the item
    run         one of three campaigns and one of three consecutive parts of its logs
    question    from the part of one policy's log, estimate the mean reward of the other policy
    truth       the mean reward in the same part of the other policy's log

Thompson sampling changed its probabilities during the week, and only those of the shown items are
logged. So it is represented by how often it showed each item at each position in that part.

Standard library and NumPy only: this module is imported in the environment of obp too.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "CAMPAIGNS",
    "FROM_RANDOM",
    "FROM_THOMPSON",
    "PARTS",
    "POSITIONS",
    "Question",
    "question",
]

CAMPAIGNS = ("all", "men", "women")
PARTS, POSITIONS = 3, 3
FROM_RANDOM = "Thompson policy from the random log"
FROM_THOMPSON = "random policy from the Thompson log"


class LoggedRows(NamedTuple):
    """Columns of a log, in the order of time."""

    action: Any
    position: Any
    reward: Any
    propensity: Any
    #: Features of the user: one column for each value but the first of each feature.
    context: Any

    def rows(self, which: Any) -> "LoggedRows":
        """Return some of the rows."""
        return LoggedRows(*(column[which] for column in self))


class Question(NamedTuple):
    """A log, the policy to evaluate on it, and the mean reward in the log of that policy."""

    log: LoggedRows
    #: π(item | position) as an array [item, position].
    policy: Any
    truth: float


@cache
def read_log(folder: str, policy: str, campaign: str) -> LoggedRows:
    """Read the log of "random" or "bts" in a campaign."""
    with (Path(folder) / policy / campaign / f"{campaign}.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["timestamp"])
    features = [name for name in rows[0] if name.startswith("user_feature")]
    columns = [
        [float(row[name] == value) for row in rows]
        for name in features
        for value in sorted({row[name] for row in rows})[1:]
    ]
    return LoggedRows(
        np.array([int(row["item_id"]) for row in rows]),
        np.array([int(row["position"]) - 1 for row in rows]),
        np.array([float(row["click"]) for row in rows]),
        np.array([float(row["propensity_score"]) for row in rows]),
        np.array(columns).T,
    )


def question(folder: str, world: str, run: int) -> Question:
    """Return the question of a run: campaign `run % 3`, part `run // 3` of the logs."""
    campaign, part = CAMPAIGNS[run % len(CAMPAIGNS)], run // len(CAMPAIGNS)
    logs = {name: read_log(folder, name, campaign) for name in ("random", "bts")}
    size = len(logs["random"].action) // PARTS
    rows = slice(part * size, (part + 1) * size)
    return ask(world, logs["random"].rows(rows), logs["bts"].rows(rows))


def ask(world: str, random: LoggedRows, thompson: LoggedRows) -> Question:
    """Return the question for a pair of logs."""
    items = 1 + max(int(random.action.max()), int(thompson.action.max()))
    if world == FROM_THOMPSON:
        uniform = np.full((items, POSITIONS), 1.0 / items)
        return Question(thompson, uniform, float(random.reward.mean()))
    counts = np.zeros((items, POSITIONS))
    np.add.at(counts, (thompson.action, thompson.position), 1.0)
    return Question(random, counts / counts.sum(axis=0), float(thompson.reward.mean()))

"""Write the logs of bandits with tiny prior parameters, in which drawn means are equal doubles.

    python -m tests.durable.logs.make_tiny_shapes tests/durable/logs/v1

    tiny_shapes.db      SQLite, with snapshots
    tiny_shapes.json    decisions and posterior of each agent, its next steps, and the decisions
                        that were drawn among equal doubles

The files in v1 were written when the kinds of these bandits had version 1, which split such ties
evenly. They are never written again.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.durable.expected_logs import continued, plain, summary

from bayescontrol import BernoulliBandit, CategoricalBandit, ExponentialBandit, PoissonBandit
from bayescontrol.durable import DurableAgent, open_agent, open_store
from bayescontrol.durable.log import LogStore
from bayescontrol.schedules import Geometric, every_step
from bayescontrol.seeding import Stream

STEPS = 30
HELD = "bernoulli, held"
#: name -> problem, and the reward of its arms, which keeps tiny parameters tiny if possible.
BANDITS: dict[str, tuple[Any, float]] = {
    "bernoulli": (BernoulliBandit(["red", "blue"], prior=[(0.1, 0.01), (0.2, 0.03)]), 1),
    "bernoulli, zeros": (BernoulliBandit(3, prior=[(1e-3, 0.1), (2e-3, 0.2), (1e-3, 3)]), 0),
    HELD: (BernoulliBandit(["red", "blue"], prior=[(0.1, 0.01), (0.2, 0.03)]), 1),
    "poisson": (PoissonBandit(["red", "blue"], prior=[(1e-3, 1), (1e-3, 9)]), 0),
    "exponential": (ExponentialBandit(3, prior=[(1e-3, 1), (1e-3, 9), (1e-3, 2)]), 1.5),
    "categorical": (CategoricalBandit(2, values=[-1, 0, 5], prior=(1e-3, 1e-3, 0.01)), 5),
}


def agents(store: LogStore) -> Iterator[DurableAgent]:
    """Create each agent."""
    for seed, (name, (problem, _)) in enumerate(BANDITS.items()):
        schedule = Geometric(0.5) if name == HELD else every_step
        yield open_agent(store, name, problem, seed=seed, schedule=schedule, snapshot_every=12)


def run(agent: DurableAgent) -> dict[str, Any]:
    """Act and observe, late and out of order; the last decision has no observation yet."""
    rng, reward = Stream(agent.seed), BANDITS[agent.name][1]
    waiting = []
    for i in range(STEPS):
        waiting.append(agent.act(key=f"visit {i}" if i % 3 else None))
        if i < STEPS - 1 and rng.random() < 0.7:
            d = waiting.pop(rng.integers(len(waiting)))
            # One observation of an exponential arm raises its shape above 1: two arms get none.
            if agent.name != "exponential" or d.action == 2:
                agent.observe(d, reward)
    return {"n": int(waiting[-1].id), "answer": reward, "x": None}


def ties(agent: DurableAgent) -> list[int]:
    """Return the decisions for which two arms drew the same largest mean."""
    found = []
    for n, _, _ in summary(agent)["decisions"]:
        means = agent.explain(str(n)).mode.means
        if np.count_nonzero(means == means.max()) > 1:
            found.append(n)
    return found


def main(folder: Path) -> None:
    """Write both files."""
    file = folder / "tiny_shapes.db"
    expected: dict[str, Any] = {}
    moments = count(1_700_000_000)
    with (
        patch("time.time", lambda: float(next(moments))),
        closing(open_store(f"sqlite:///{file}")) as store,
    ):
        for agent in agents(store):
            then = run(agent)
            expected[agent.name] = summary(agent) | {"ties": ties(agent), "then": plain(then)}
            agent.close()
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copy(file, place)
        with closing(open_store(f"sqlite:///{copy}")) as store:
            for name, of in expected.items():
                with open_agent(store, name) as agent:
                    of["then"] |= continued(agent, of["then"])
    (folder / "tiny_shapes.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

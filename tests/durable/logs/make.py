"""Writes the logs that are kept: of every kind, in a file, as lines, as a dump of PostgreSQL.

    python -m tests.durable.logs.make tests/durable/logs/v1

    kinds.db         SQLite, with the snapshots
    kinds.sql        the same in PostgreSQL, by pg_dump
    lines/….jsonl    an export of each log
    expected.json    what each agent had decided and believed, and what it does next

What is kept is never written again: it is what the release of its time wrote. Whoever raises
`events.FORMAT` or a layout of the tables makes a new folder. The seeds are fixed, the clock counts.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from tests.durable.kept import NAMED, levers, model_of, plain, told, went_on
from tests.durable.problems import PROBLEMS, observation, situation

from bayescontrol.durable import DurableAgent, export_log, open_agent, open_store
from bayescontrol.durable.store import Store
from bayescontrol.schedules import Geometric
from bayescontrol.seeding import Stream

STEPS = 16
#: At least one problem of every kind, by its name in `PROBLEMS`.
KINDS = [
    "bernoulli", "gaussian", "unknown variance", "categorical", "poisson", "exponential", "linear",
    "logistic", "joint", "correlated", "tables", "MDPs", "growing chain",
    "linear plant, known noise", "MDP", "MDP, declared",
]  # fmt: skip
#: One whose mode is held, so that its draws are part of its state.
HELD = "bernoulli, held"


def agents(store: Store) -> Iterator[tuple[DurableAgent, Any]]:
    """Each agent, as new, and its problem."""
    options: dict[str, Any] = {"snapshot_every": 12}
    for seed, name in enumerate(KINDS):
        problem = PROBLEMS[name]
        yield open_agent(store, name, problem, seed=seed, **options), problem
    problem = PROBLEMS["bernoulli"]
    options["schedule"] = Geometric(0.5)
    yield open_agent(store, HELD, problem, seed=2**100 + 7, **options), problem
    yield open_agent(store, NAMED, levers(), seed=100, snapshot_every=12), None


def live(agent: DurableAgent, problem: Any) -> dict[str, Any]:
    """Ask and answer: late, out of order or never where feedback stands alone; the last not yet.

    Gives what is to come then: an answer to the last decision, and a question.
    """
    rng, alone = Stream(agent.seed), agent.model.driver().alone
    waiting = []
    for i in range(STEPS):
        d = agent.act(situation(problem, rng), key=f"visit {i} ✓" if i % 3 else None)
        waiting.append((d, observation(problem, agent, d.action, d.situation, rng)))
        if i < STEPS - 1 and (not alone or rng.random() < 0.7):
            agent.observe(*waiting.pop(rng.integers(len(waiting))))
    d, o = waiting[-1]
    return {"n": int(d.id), "answer": o, "x": situation(problem, rng)}


def write(url: str, lines: Path | None = None) -> dict[str, Any]:
    """All agents, exported too if there is a folder for it; what is expected of each."""
    expected = {}
    numbers, moments = count(1), count(1_700_000_000)
    with (
        patch("time.time", lambda: float(next(moments))),
        patch("bayescontrol.durable.postgres.uuid4", lambda: UUID(int=next(numbers))),
        closing(open_store(url)) as store,
    ):
        for agent, problem in agents(store):
            then = live(agent, problem)
            expected[agent.name] = told(agent) | {"then": plain(then)}
            if lines is not None:
                export_log(agent, lines / f"{agent.name}.jsonl")
            agent.close()
    return expected


def dump(programs: Path, url: str) -> str:
    """Our tables in plain SQL, without what is psql's or of one version of the server."""
    done = subprocess.run(
        [programs / "pg_dump", "--schema=bayescontrol", "--rows-per-insert=100", "--no-owner",
         "--no-privileges", "--no-comments", "--no-table-access-method", url],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    left_out = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if line and not line.startswith(left_out)) + "\n"


def postgres(expected: dict[str, Any]) -> str:
    """The dump of a server in which the same was done."""
    from tests.durable.postgres.server import Postgres, programs

    found = programs()
    assert found is not None
    server = Postgres(found)
    try:
        server.start()
        assert write(server.url()) == expected
        return dump(found, server.url())
    finally:
        server.remove()


def main(folder: Path) -> None:
    """Write the folder."""
    (folder / "lines").mkdir(parents=True)
    file = folder / "kinds.db"
    expected = write(f"sqlite:///{file}", folder / "lines")
    (folder / "kinds.sql").write_text(postgres(expected))
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copy(file, place)
        with closing(open_store(f"sqlite:///{copy}")) as store:
            for name, of in expected.items():
                with open_agent(store, name, model_of(name)) as agent:
                    of["then"] |= went_on(agent, of["then"])
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

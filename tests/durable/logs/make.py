"""Write the fixtures of a format: logs of every kind, belief class and agent class.

    python -m tests.durable.logs.make tests/durable/logs/v1

    kinds.db         SQLite, with the snapshots
    kinds.sql        the same in PostgreSQL, by pg_dump
    lines/….jsonl    an export of each log
    expected.json    decisions and posterior of each agent, and its next steps

    named.db, agents.db, problems.db, wrapped.db    SQLite: the models and problems of named.py
    named.json, … wrapped.json                      their expected values

Released fixtures are never regenerated, and the script does not overwrite existing files. If you
raise `events.FORMAT`, the version of a kind or the layout of the tables, create a new folder. The
seeds are fixed, and the clock is a counter.
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

from tests.durable import named
from tests.durable.expected_logs import NAMED, continued, levers, model_of, plain, summary
from tests.durable.fixtures import expected_of, numbers
from tests.durable.problems import PROBLEMS, observation, situation

from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.durable import DurableAgent, export_log, open_agent, open_store
from bayescontrol.durable.log import LogStore
from bayescontrol.durable.plain import as_plain
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


def agents(store: LogStore) -> Iterator[tuple[DurableAgent, Any]]:
    """Create each agent; yield it with its problem."""
    options: dict[str, Any] = {"snapshot_every": 12}
    for seed, name in enumerate(KINDS):
        problem = PROBLEMS[name]
        yield open_agent(store, name, problem, seed=seed, **options), problem
    problem = PROBLEMS["bernoulli"]
    options["schedule"] = Geometric(0.5)
    yield open_agent(store, HELD, problem, seed=2**100 + 7, **options), problem
    yield open_agent(store, NAMED, levers(), seed=100, snapshot_every=12), None


def run(agent: DurableAgent, problem: Any) -> dict[str, Any]:
    """Act and observe: late, out of order or never if the agent accepts that; not yet the last.

    Returns the next steps: an observation of the last decision, and a situation.
    """
    rng, accepts_late = Stream(agent.seed), agent.model.driver().accepts_late_feedback
    waiting = []
    for i in range(STEPS):
        d = agent.act(situation(problem, rng), key=f"visit {i} ✓" if i % 3 else None)
        waiting.append((d, observation(problem, agent, d.action, d.situation, rng)))
        if i < STEPS - 1 and (not accepts_late or rng.random() < 0.7):
            agent.observe(*waiting.pop(rng.integers(len(waiting))))
    d, o = waiting[-1]
    return {"n": int(d.id), "answer": o, "x": situation(problem, rng)}


def write(url: str, lines: Path | None = None) -> dict[str, Any]:
    """Run all agents, export them if `lines` is given, and return their expected values."""
    expected = {}
    numbers, moments = count(1), count(1_700_000_000)
    with (
        patch("time.time", lambda: float(next(moments))),
        patch("bayescontrol.durable.postgres.uuid4", lambda: UUID(int=next(numbers))),
        closing(open_store(url)) as store,
    ):
        for agent, problem in agents(store):
            then = run(agent, problem)
            expected[agent.name] = summary(agent) | {"then": plain(then)}
            if lines is not None:
                export_log(agent, lines / f"{agent.name}.jsonl")
            agent.close()
    return expected


def dump(programs: Path, url: str) -> str:
    """Dump our tables in plain SQL, without commands of psql or of one server version."""
    done = subprocess.run(
        [programs / "pg_dump", "--schema=bayescontrol", "--rows-per-insert=100", "--no-owner",
         "--no-privileges", "--no-comments", "--no-table-access-method", url],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    left_out = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if line and not line.startswith(left_out)) + "\n"


def postgres(expected: dict[str, Any]) -> str:
    """Run the same agents on a PostgreSQL server; return its dump."""
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


#: The decisions observed after decision i, if late feedback is accepted: 1 and 6 are out of order,
#: 6 is after the snapshot; 3 and 8 are never observed, and 11 not yet.
ANSWERED = [[0], [], [2], [], [4, 1], [5], [], [7], [], [9, 6], [10], []]


def run_with_snapshot(agent: DurableAgent, case: named.Case, rng: Stream) -> tuple[str, Any]:
    """Act and observe, with a snapshot in the middle while an observation is missing.

    Returns the id of the last decision, which has no observation yet, and its observation.
    """
    answers = []
    for i, late in enumerate(ANSWERED):
        d = agent.act(case.question(rng), key=f"visit {i} ✓" if i % 3 else None)
        answers.append((d.id, case.answer(d.situation, d.action, rng)))
        if i == 6:
            agent.snapshot()
        for n in late if agent.accepts_late_feedback else [i] if i < 11 else []:
            agent.observe(*answers[n])
    return answers[-1]


def continue_run(
    agent: DurableAgent, case: named.Case, rng: Stream, n: str, o: Any
) -> list[dict[str, Any]]:
    """Observe o for decision n, then act and observe a few times; return the steps for JSON."""
    steps = []
    for _ in range(4):
        agent.observe(n, o)
        steps.append({"n": int(n), "o": as_plain(o, "o")})
        d = agent.act(case.question(rng))
        result = {"n": int(d.id), "a": plain(d.action), "p": d.probability}
        steps.append(
            {
                "x": as_plain(None if agent.accepts_late_feedback is False else d.situation, "x"),
                **result,
            }
        )
        n, o = d.id, case.answer(d.situation, d.action, rng)
    return steps


def write_named(folder: Path, file: str) -> None:
    """Write one SQLite file of `named.FILES`, and the expected values of its logs."""
    expected, waiting, moments = {}, {}, count(1_700_000_000)
    address, cases = f"sqlite:///{folder / file}.db", named.FILES[file]
    versions: Any = Changing.model_kind.versions
    first_only = {1: versions[1]} if file == "changing_logistic" else versions
    with (
        patch("time.time", lambda: float(next(moments))),
        patch.dict(versions, first_only, clear=True),
        closing(open_store(address)) as store,
    ):
        for seed, (name, case) in enumerate(cases.items(), 1):
            model = named.model_of(file, name) or case.model
            with open_agent(store, name, model, seed=seed, schedule=case.schedule) as agent:
                waiting[name] = run_with_snapshot(agent, case, Stream(seed))
                expected[name] = expected_of(agent)
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copy(folder / f"{file}.db", place)
        with (
            patch("time.time", lambda: float(next(moments))),
            closing(open_store(f"sqlite:///{copy}")) as store,
        ):
            for seed, (name, case) in enumerate(cases.items(), 1000):
                with open_agent(store, name, named.model_of(file, name)) as agent:
                    then = continue_run(agent, case, Stream(seed), *waiting[name])
                    expected[name] |= {"then": then, "at the end": numbers(agent.state())}
    lines = [f"{json.dumps(name)}: {json.dumps(of)}" for name, of in expected.items()]
    (folder / f"{file}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(folder: Path) -> None:
    """Write the files that the folder does not have."""
    if not folder.exists():
        write_kinds(folder)
    for file in named.FILES:
        if not (folder / f"{file}.db").exists():
            write_named(folder, file)


def write_kinds(folder: Path) -> None:
    """Write the logs of `KINDS` to a new folder."""
    (folder / "lines").mkdir(parents=True)
    file = folder / "kinds.db"
    expected = write(f"sqlite:///{file}", folder / "lines")
    (folder / "kinds.sql").write_text(postgres(expected))
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copy(file, place)
        with closing(open_store(f"sqlite:///{copy}")) as store:
            for name, of in expected.items():
                with open_agent(store, name, model_of(name)) as agent:
                    of["then"] |= continued(agent, of["then"])
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

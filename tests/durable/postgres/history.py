"""Check calls and their acknowledgements against the log.

An acknowledged operation is in the log exactly once, with the acknowledged values. An operation
without acknowledgement (its process was killed) is there once or not at all. A call made after an
acknowledgement comes later in the log.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from bayescontrol._arrays import Arrays
from bayescontrol.durable import Created, Decided, Observed, open_agent, replay


@dataclass
class Op:
    """One call; `acked` is None if it never returned."""

    kind: str  # "act" or "observe"
    args: list[Any]  # [key], or [n, o]
    called: int
    acked: int | None = None
    #: ["decision", id, action, probability, basis], ["learned", bool] or ["error", name]
    result: Any = None


def read_ops(lines: Iterable[bytes]) -> tuple[list[Op], list[tuple[int, str]]]:
    """The calls of one worker, and the (head, digest) of the states that it saw."""
    ops: list[Op] = []
    states: list[tuple[int, str]] = []
    for line in lines:
        if not line.endswith(b"\n"):  # killed while it was writing
            continue
        what, time, *rest = msgspec.json.decode(line)
        if what == "call":
            ops.append(Op(rest[0], rest[1], time))
        elif what == "ack":
            ops[-1].acked, ops[-1].result = time, rest[0]
        else:
            states.append((rest[0], rest[1]))
    return ops, states


def digest(state: Arrays) -> str:
    """Return a digest of the exact state."""
    hashed = blake2b(digest_size=16)
    for name, v in sorted(state.items()):
        hashed.update(f"{name} {v.dtype.str} {v.shape} ".encode() + v.tobytes())
    return hashed.hexdigest()


def violations(ops: Sequence[Op], events: Sequence[Any]) -> list[str]:
    """Return all violations; an empty list for a correct history."""
    return [
        *_log_violations(events),
        *_decision_violations([op for op in ops if op.kind == "act"], events),
        *_observation_violations(ops, events),
        *_order_violations(ops, events),
    ]


def _log_violations(events: Sequence[Any]) -> Iterable[str]:
    decided: set[int] = set()
    for i, event in enumerate(events, 1):
        if event.seq != i or isinstance(event, Created) != (i == 1):
            yield f"event {event.seq} is at position {i}"
        if isinstance(event, Decided):
            decided.add(event.seq)
        if isinstance(event, Observed) and event.n not in decided:
            yield f"event {event.seq} observes {event.n}, which is not an earlier decision"
    for n, count in Counter(e.n for e in events if isinstance(e, Observed)).items():
        if count > 1:
            yield f"decision {n} is answered {count} times"
    for key, count in Counter(e.key for e in events if isinstance(e, Decided) and e.key).items():
        if count > 1:
            yield f"key {key!r} stands for {count} decisions"


def _decision_violations(acts: Sequence[Op], events: Sequence[Any]) -> Iterable[str]:
    decided = {str(e.seq): e for e in events if isinstance(e, Decided)}
    claimed: Counter[str] = Counter()
    for op in acts:
        if op.acked is None:
            continue
        _, id_, action, p, basis = op.result
        event = decided.get(id_)
        if event is None:
            yield f"acknowledged decision {id_} is lost"
        elif (event.a, event.p, event.key, event.seq - 1) != (action, p, op.args[0], basis):
            yield f"decision {id_} is not what was acknowledged: {event} against {op}"
        elif event.key is None:
            claimed[id_] += 1
            if claimed[id_] == 2:
                yield f"decision {id_} was given to two callers"
    orphans = sum(e.key is None and id_ not in claimed for id_, e in decided.items())
    unacked = sum(op.args[0] is None and op.acked is None for op in acts)
    if orphans > unacked:
        yield f"{orphans} unclaimed decisions, {unacked} calls that did not return"
    requested = {op.args[0] for op in acts}
    yield from (
        f"key {e.key!r} was never requested" for e in decided.values() if e.key not in requested
    )


def _observation_violations(ops: Sequence[Op], events: Sequence[Any]) -> Iterable[str]:
    answers = {e.n: e.o for e in events if isinstance(e, Observed)}
    learned: Counter[int] = Counter()
    pending: dict[int, list[Any]] = defaultdict(list)
    for op in ops:
        if op.kind != "observe":
            continue
        n, o = op.args
        if op.acked is None:
            pending[n].append(o)
        elif op.result == ["error", "ConflictingFeedback"]:
            if n not in answers or answers[n] == o:
                yield f"{o} for {n} was a conflict, with {answers.get(n)}"
        elif op.result[0] == "learned":
            learned[n] += op.result[1]
            if n not in answers:
                yield f"acknowledged answer to {n} is lost"
            elif answers[n] != o:
                yield f"{n} is answered by {answers[n]}, acknowledged was {o}"
        else:
            yield f"answer {o} to {n} ended with {op.result}"
    for n, o in answers.items():
        if learned[n] > 1:
            yield f"the answer to {n} was learned {learned[n]} times"
        if learned[n] == 0 and o not in pending[n]:
            yield f"the answer {o} to {n} was not acknowledged as learned"


def _order_violations(ops: Sequence[Op], events: Sequence[Any]) -> Iterable[str]:
    """A call made after an acknowledgement gets a later position."""
    place = {e.n: e.seq for e in events if isinstance(e, Observed)}
    learned_ops: list[tuple[int, int, int]] = []
    for op in ops:
        if op.acked is None:
            continue
        if op.kind == "act" and op.args[0] is None:
            learned_ops.append((op.called, op.acked, int(op.result[1])))
        elif op.result == ["learned", True] and op.args[0] in place:
            learned_ops.append((op.called, op.acked, place[op.args[0]]))
    moments = sorted(
        [(called, 1, seq) for called, _, seq in learned_ops]
        + [(acked, 0, seq) for _, acked, seq in learned_ops]
    )
    highest = 0
    for _, starts, seq in moments:
        if starts and seq < highest:
            yield f"event {seq} was requested after event {highest} was acknowledged"
        highest = highest if starts else max(highest, seq)


def check_history(url: str, name: str, files: list[Path]) -> tuple[list[Op], int]:
    """Assert that the history is correct; return its operations and the number of events."""
    ops: list[Op] = []
    states: list[tuple[int, str]] = []
    for file in files:
        its_ops, its_states = read_ops(file.read_bytes().splitlines(keepends=True))
        ops += its_ops
        states += its_states
    with open_agent(url, name) as agent:
        events = list(agent.log())
        states.append((agent.head, digest(agent.state())))
    assert violations(ops, events) == []
    for head, state in states:
        assert digest(replay(events[:head]).state) == state, f"the belief at event {head}"
    return ops, len(events)

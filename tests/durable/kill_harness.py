"""Kill a working agent many times, and check its log after each kill.

    python kill_harness.py FOLDER KILLS SEED

A child writes `i …` before and `a …` after every operation to a pipe, and is killed at a named or
a random moment. Then every acknowledged operation must be in the log exactly once, every logged
operation must have been requested, and the posterior from snapshot and tail must equal a replay of
the whole log bitwise. The next child retries the operations of unknown outcome with the same keys.
The result is one line of JSON; `acknowledged` counts the operations that were not refused.

Children are forked from a process that has imported and compiled everything, so that a thousand
take a minute. All checks are exact, so there are no false alarms.
"""

import json
import os
import random
import select
import signal
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from bayescontrol import BernoulliBandit, errors
from bayescontrol.bandits import DrawsBandit, Totals
from bayescontrol.durable import (
    Configuration,
    Corrected,
    Decided,
    DurableAgent,
    Observed,
    Withdrawn,
    open_agent,
    replay,
)
from bayescontrol.durable.decisions import final_answers
from bayescontrol.durable.events import (
    Aggregated,
    ArmChanged,
    Compacted,
    Configured,
    Event,
    Refitted,
    to_line,
)
from bayescontrol.durable.stores.sqlite import SqliteLog
from bayescontrol.durable.stores.sqlite_file import SqliteFile
from bayescontrol.durable.turn import Turn
from bayescontrol.seeding import Stream

SHOP = BernoulliBandit(["red", "blue", "green"])
#: Of the logs in turn: one with arms that come and go, one with new fits.
MODELS = [SHOP, DrawsBandit(SHOP, Stream(0).random((5, 3)))]
#: Seconds after which a decision without an observation gets the default.
WINDOW = 0.01
CONFIGURATIONS = [
    Configuration(holdout=0.3, window=WINDOW, default=0),
    Configuration(
        shares={"red": (0.1, 0.6)}, prices={"blue": "reported"}, window=WINDOW, default=1
    ),
    Configuration(holdout=0.2, control="red", reward_range=(0, 1), window=WINDOW, default=0),
    Configuration(prices={"red": 0.1}),
]
#: In the order of a decision: kill the process before or after which call. Without an owner it is
#: a method of the log or a function of its module; `write` stands for the function passed to it.
FAULT_POINTS: dict[str, tuple[str, Any, str]] = {
    "before-compute": ("before", Turn, "compute"),
    "before-append": ("before", None, "append"),
    "in-transaction": ("before", SqliteFile, "write"),
    "before-commit": ("after", SqliteFile, "write"),
    "after-commit": ("after", None, "append"),
    "before-return": ("after", DurableAgent, "_submit"),
    "before-snapshot": ("before", None, "save_snapshot"),
    "in-snapshot": ("before", None, "snapshots_to_delete"),
    "after-snapshot": ("after", None, "save_snapshot"),
    "before-close": ("before", DurableAgent, "close"),
}
#: Number of kills per log.
PER_LOG = 40
ANY = "any moment"
#: As in tests/limits.py, which a script cannot import.
TIMEOUT = 600.0


def arm(point: str, calls: int, log: Any = SqliteLog) -> None:
    """Kill this process (kill -9) when it reaches the point for the `calls`-th time."""
    when, owner, name = FAULT_POINTS[point]
    owner = owner or (log if hasattr(log, name) else sys.modules[log.__module__])
    original: Any = getattr(owner, name)

    def fatal(function: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls -= 1
        result = function(*arguments) if calls > 0 or when == "after" else None
        if calls <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    if name == "write":
        setattr(owner, name, lambda file, work: original(file, partial(fatal, work)))
    else:
        setattr(owner, name, lambda *arguments: fatal(original, *arguments))


class Child:
    """Runs operations on an agent; `say` writes a line before and after each of them."""

    def __init__(self, agent: DurableAgent, say: Any) -> None:
        self.agent, self.say = agent, say

    def run(self, *words: str) -> list[str]:
        """Run an operation, also one whose outcome is unknown; return its result."""
        self.say("i", *words)
        try:
            result = self._result(*words)
        except errors.InvalidRequest as error:  # such as a change of an arm that was made already
            result = ["refused", type(error).__name__]
        self.say("a", *words, "->", *result)
        return result

    def _result(self, kind: str, *words: str) -> list[str]:
        agent = self.agent
        if kind == "act":
            key, session, among = words
            d = agent.act(
                key=key, session=None if session == "-" else session,
                among=None if among == "-" else among.split(","),
            )  # fmt: skip
            return [d.id, d.action]
        if kind == "observe":
            n, o, cost = words
            return [str(agent.observe(n, int(o), cost=None if cost == "-" else float(cost)))]
        if kind == "withdraw":
            return [str(agent.withdraw(words[0]))]
        if kind == "totals":
            key, arm = words
            return [str(agent.observe_totals(arm, Totals(3, 2), key=key))]
        if kind == "arm":
            arm, change = words
            method = {"added": "add_arm", "paused": "pause_arm", "resumed": "resume_arm"}
            return [str(getattr(agent, method.get(change, "retire_arm"))(arm))]
        if kind == "configure":
            return [str(agent.configure(CONFIGURATIONS[int(words[0])]))]
        if kind == "refit":
            draws = Stream(int(words[0])).random((4, 3))
            return [str(agent.refit(draws, through=int(words[0])))]
        if kind == "compact":
            return [str(agent.compact(int(words[0])))]
        return [str(agent.settle())]

    def live(self, seed: int, thread: int, steps: int, through: int) -> None:
        """Run random operations; only thread 0 changes the agent as a whole."""
        rng, waiting = random.Random(seed * 31 + thread), list[str]()
        for i in range(steps):
            session = f"visitor-{rng.randrange(6)}" if rng.random() < 0.3 else "-"
            among = rng.choice(["-", "-", "red,blue", "blue,green,red"])
            n, _ = self.run("act", f"{seed}-{thread}-{i}", session, among)
            if session == "-":  # others may be of another thread
                waiting.append(n)
            if waiting and rng.random() < 0.7:
                self._answer(waiting.pop(rng.randrange(len(waiting))), rng)
            if rng.random() < 0.1:
                self.run("totals", f"{seed}-{thread}-{i}-totals", rng.choice(["red", "blue"]))
            if thread == 0 and rng.random() < 0.25:
                self._change(through, rng)
            if rng.random() < 0.15:
                self.agent.snapshot()

    def _answer(self, n: str, rng: random.Random) -> None:
        """Observe a decision; take some observations back, and correct some of those."""
        self.run("observe", n, str(rng.randrange(2)), rng.choice(["-", "0.25"]))
        if rng.random() < 0.2:
            self.run("withdraw", n)
            if rng.random() < 0.5:
                self.run("observe", n, str(rng.randrange(2)), "-")

    def _change(self, through: int, rng: random.Random) -> None:
        """Change an arm or the configuration, fit again, settle or compact."""
        can_refit = self.agent.model.name == DrawsBandit.model_kind.name
        what = rng.choice(["arm", "arm", "configure", "refit", "settle", "compact"])
        if what == "arm":
            states = self.agent.arms()
            arms = [a for a in states if a not in ("red", "blue") and states[a] != "retired"]
            if not can_refit and len(arms) < 3:
                arms.append(f"arm-{len(states)}")
            arm = arms[-1] if rng.random() < 0.7 else arms[0]
            changes = {None: ["added"], "active": ["paused"], "paused": ["resumed"]}
            if arm != "green":
                changes["active"] = ["paused", "retired"]
            self.run("arm", arm, rng.choice(changes[states.get(arm)]))
        elif what == "configure":
            self.run("configure", str(rng.randrange(len(CONFIGURATIONS))))
        elif what == "refit" and can_refit:
            self.run("refit", str(rng.randint(max(1, self.agent.head - 20), self.agent.head)))
        elif what == "settle":
            self.run("settle")
        else:
            self._compact(through, rng)

    def _compact(self, through: int, rng: random.Random) -> None:
        """Compact events that the parent has read; later ones may depend on some of them."""
        for _ in range(10 if through > 1 else 0):
            if self.run("compact", str(rng.randint(2, through)))[0] != "refused":
                return


def work(url: str, moment: str, seed: int, doubt: list[list[str]], through: int, say: Any) -> None:
    """Run the child: retry operations of unknown outcome, then run new ones in 1 or 3 threads."""
    rng = random.Random(seed)
    if moment != ANY:
        calls = rng.randint(1, 3 if "snapshot" in moment else 8)
        arm(moment, 1 if moment == "before-close" else calls)
    agent = open_agent(url, "shop", snapshot_every=rng.choice([3, 7, 10_000]))
    say("open")
    child = Child(agent, say)
    for words in doubt:
        child.run(*words)
    if rng.random() < 0.5:
        child.live(seed, 0, rng.randint(4, 12) if moment != ANY else 400, through)
    else:
        steps = 6 if moment != ANY else 200
        threads = [
            threading.Thread(target=child.live, args=(seed, t, steps, through)) for t in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for _ in range(3):
        agent.snapshot()
    agent.close()


def run_child(
    url: str, moment: str, seed: int, doubt: list[list[str]], through: int, pipe: int
) -> None:
    """Run `work` and exit; never returns."""

    def say(*words: str) -> None:
        os.write(pipe, (" ".join(words) + "\n").encode())  # short lines are written whole

    code = 0
    try:
        work(url, moment, seed, doubt, through, say)
    except BaseException as error:  # report it to the parent
        say("failed", repr(error))
        code = 3
    os._exit(code)


def run_and_kill(
    url: str, moment: str, seed: int, doubt: list[list[str]], through: int
) -> tuple[bool, list[list[str]]]:
    """Return whether the child was killed, and the lines it wrote."""
    rng = random.Random(-seed)
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        run_child(url, moment, seed, doubt, through, writing)
    os.close(writing)
    text = b""
    deadline = time.monotonic() + (rng.uniform(0.0, 0.1) if moment == ANY else TIMEOUT)
    while True:
        left = max(0.0, deadline - time.monotonic())
        if left == 0.0 or not select.select([reading], [], [], left)[0]:
            os.kill(process, signal.SIGKILL)
            deadline = time.monotonic() + TIMEOUT
        chunk = os.read(reading, 65536)
        if not chunk:
            break
        text += chunk
    os.close(reading)
    killed = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    lines = [line.split(" ") for line in text.decode().split("\n")[:-1]]
    failed = [line for line in lines if line[0] == "failed"]
    assert not failed, (moment, failed)
    return killed, lines


class History:
    """The requests sent to one log, its acknowledgements, and all its events, also compacted ones.

    An operation of unknown outcome is retried by the next child, before any other: so the last
    operation about a decision, in the order of its thread, says what its observation is.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, ...]] = Counter()
        #: By operation: the results of those that were acknowledged.
        self.results: dict[tuple[str, ...], list[str]] = {}
        #: By decision: the last operation about its observation, and whether it is acknowledged.
        self.last: dict[str, tuple[list[str], bool]] = {}
        self.events: dict[int, Event] = {}
        self.sealed = 1

    def record(self, lines: list[list[str]]) -> list[list[str]]:
        """Record the lines of a child; return the operations of unknown outcome."""
        doubt: dict[tuple[str, ...], list[str]] = {}
        for mark, *words in lines:
            if mark == "i":
                doubt[tuple(words)] = words
                self.requests[tuple(words)] += 1
            elif mark == "a":
                at = words.index("->")
                words, result = words[:at], words[at + 1 :]
                del doubt[tuple(words)]
                if words[0] == "act":
                    self.acknowledge(words, result)
                elif words[0] in ("arm", "configure", "refit") and result[0] != "refused":
                    self.results[*words, result[0]] = result
                elif words[0] == "totals":
                    self.results[tuple(words)] = result
            if mark in ("i", "a") and words[0] in ("observe", "withdraw"):
                self.last[words[1]] = (words, mark == "a")
        return list(doubt.values())

    def acknowledge(self, words: list[str], result: list[str]) -> None:
        """Record a decision; without a session, a retry must return the same one."""
        first = self.results.setdefault(tuple(words), result)
        assert first == result or words[2] != "-", words

    def check(self, url: str, *, is_last: bool) -> Counter[str]:
        """Assert that the log matches the requests and acknowledgements; count its events."""
        with open_agent(url, "shop") as agent:
            if is_last:
                time.sleep(1.5 * WINDOW)
                assert agent.settle() == 0, "a decision has no default"
            for event in agent.log():
                if isinstance(event, Compacted):
                    self.sealed = event.seq
                else:
                    known = self.events.setdefault(event.seq, event)
                    assert to_line(known) == to_line(event), f"event {event.seq} has changed"
            assert max(self.events) == agent.head, "the log has lost events"
            events = [self.events[seq] for seq in range(1, agent.head + 1)]
            whole, state = replay(iter(events), draw=is_last).state, agent.state()
            agent._last_snapshot = agent.head  # closing must not write a snapshot
        self._check_events(events)
        self._check_answers(events)
        self._check_sessions(events)
        if is_last:
            self._check_defaults(events)
        assert whole.keys() == state.keys()
        assert all(whole[n].tobytes() == state[n].tobytes() for n in whole), (
            "posterior differs from the replay"
        )
        return Counter(filter(None, map(self.describe, events))) + Counter(
            {"compacted": int(self.sealed > 1)}
        )

    def describe(self, event: Event) -> str | None:
        """Return the kind of an event, or what is special about it."""
        if isinstance(event, ArmChanged):
            return event.change
        if isinstance(event, Observed) and event.default:
            return "default"
        if isinstance(event, Decided):
            kinds = {"holdout": event.holdout, "session": event.session, "among": event.among}
            return next((kind for kind, is_set in kinds.items() if is_set), "decided")
        return type(event).__name__.lower()

    def _check_events(self, events: list[Event]) -> None:
        """Every acknowledged event is there, every event was requested, none is there twice."""
        found: Counter[tuple[str, ...]] = Counter()
        acts, roots = dict[str, tuple[str, str, str | None]](), dict[int, int]()
        for e in events:
            if isinstance(e, Decided):
                among = ",".join(e.among) if e.among else "-"
                found["act", str(e.key), e.session or "-", among] += 1
                acts[str(e.key)] = str(e.seq), e.a, e.session
            elif isinstance(e, Aggregated):
                found["totals", e.key, e.a] += 1
            elif isinstance(e, ArmChanged):
                found["arm", e.arm, e.change] += 1
                found["arm", e.arm, e.change, str(e.seq)] += 1
            elif isinstance(e, Configured):
                i = CONFIGURATIONS.index(Configuration.from_settings(e.configuration))
                found["configure", str(i)] += 1
                found["configure", str(i), str(e.seq)] += 1
            elif isinstance(e, Refitted):
                found["refit", str(e.through)] += 1
                found["refit", str(e.through), str(e.seq)] += 1
            elif isinstance(e, Observed):
                roots[e.seq] = e.n
                cost = "-" if e.cost is None else str(e.cost)
                found["default" if e.default else "observe", str(e.n), str(e.o), cost] += 1
            elif isinstance(e, Corrected):
                cost = "-" if e.cost is None else str(e.cost)
                found["observe", str(roots[e.answer]), str(e.o), cost] += 1
            elif isinstance(e, Withdrawn):
                found["withdraw", str(roots[e.answer])] += 1
        by_seq = {n: (a, session) for n, a, session in acts.values()}
        for words, result in self.results.items():
            if words[0] == "act" and words[2] != "-":
                assert by_seq.get(result[0]) == (result[1], words[2]), f"lost or changed: {words}"
            elif words[0] == "act":
                assert acts.get(words[1]) == (*result, None), f"lost or changed: {words}"
            elif result[0] != "refused":
                assert found[words] == 1, f"lost or duplicated: {words}"
        for words, count in found.items():
            if words[0] in ("act", "totals"):
                assert count == 1, f"duplicated: {words}"
            is_numbered = words in self.results and words[0] in ("arm", "configure", "refit")
            if words[0] != "default" and not is_numbered and words[:-1] not in found:
                assert count <= self.requests[words], f"was not requested: {words}"

    def _check_answers(self, events: list[Event]) -> None:
        """Each decision has at most one answer, amended as it was acknowledged last."""
        first, final = dict[str, Observed](), final_answers(events)
        for e in events:
            if isinstance(e, Observed):
                assert first.setdefault(str(e.n), e) is e, f"decision {e.n} has two answers"
        for n, (words, is_acknowledged) in self.last.items():
            if is_acknowledged:
                assert n in first, f"observation lost or changed: {words}"
                last = final.get(first[n].seq, first[n])
                o = None if isinstance(last, Withdrawn) else str(last.o)
                expected = words[2] if words[0] == "observe" else None
                assert o == expected, f"observation lost or changed: {words}, now {o}"

    def _check_sessions(self, events: list[Event]) -> None:
        """A session gets a new decision only if its arm is not eligible, or was compacted."""
        held, inactive = dict[str, Decided](), set[str]()
        for e in events:
            if isinstance(e, ArmChanged):
                change = inactive.discard if e.change in ("added", "resumed") else inactive.add
                change(e.arm)
            elif isinstance(e, Decided) and e.session is not None:
                d = held.get(e.session)
                if d is not None and d.seq > self.sealed and d.a not in inactive:
                    assert e.among is not None, f"session {e.session} has two decisions"
                    assert d.a not in e.among, f"session {e.session} has two decisions"
                held[e.session] = e

    def _check_defaults(self, events: list[Event]) -> None:
        """Each decision that waited until the end of the window has an answer."""
        waiting: set[int] | None = None
        for e in events:
            if isinstance(e, Configured):
                waiting = (waiting or set()) if "window" in e.configuration else None
            elif isinstance(e, Decided) and waiting is not None:
                waiting.add(e.seq)
            elif isinstance(e, Observed) and waiting is not None:
                waiting.discard(e.n)
        late = [n for n in waiting or () if n > self.sealed]
        assert not late, f"decisions {late} have no default"


def main(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kill this many times, in turn at each named moment and at a random one."""
    for model in MODELS:  # compile before forking
        with open_agent("sqlite:///:memory:", "warm", model) as agent:
            for configuration in CONFIGURATIONS:
                agent.configure(configuration)
                agent.observe(agent.act(among=["red", "blue"]), 1)
            agent.explain("3")
    hits, found = Counter[str](), Counter[str]()
    acknowledged = doubted = number = 0
    moments = [m for point in FAULT_POINTS for m in (point, ANY)]
    while hits.total() < kills:
        history = History()
        doubt: list[list[str]] = []
        url = f"sqlite:///{folder / f'{number}.db'}"
        open_agent(url, "shop", MODELS[number // PER_LOG % 2], seed=seed + number).close()
        counts, rounds = Counter[str](), min(PER_LOG, kills - hits.total())
        for i in range(rounds):
            number += 1
            moment, through = moments[number % len(moments)], max(history.events, default=1)
            killed, lines = run_and_kill(url, moment, seed + number, doubt, through)
            hits[moment] += killed
            acknowledged += sum(line[0] == "a" and "refused" not in line for line in lines)
            doubt = history.record(lines)
            doubted += len(doubt)
            counts = history.check(url, is_last=i == rounds - 1)
        found += counts
    return {
        "kills": hits.total(), "acknowledged": acknowledged, "in doubt": doubted, "hits": hits,
        "events": found,
    }  # fmt: skip


if __name__ == "__main__":
    result = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(result) + "\n")

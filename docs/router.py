"""Route requests to three simulated language models, for the page "A router".

    python docs/router.py            the evidence of the page: 20 runs of two worlds, and 50 kills
                                     (prints it, and writes docs/router.json)

A request belongs to a conversation, which has a kind and holds its model. A model m has a mean
score q_m(kind) and a price; the regret of a request is

    max_{m eligible} (q_m - price_m)  -  (q_a - price_a)

A judge gives the first answer of a decision 0 to 4 points, which arrive late or never. Traffic is
drawn in advance, with the score of every model, so that all routers meet the same requests.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from bayescontrol import LinearBandit, Stream
from bayescontrol.durable import Configuration, open_agent
from bayescontrol.durable.events import Decided, Observed
from bayescontrol.errors import TooLate
from bayescontrol.plot.chart import Chart, Guide, Panel, Series
from bayescontrol.statistics import compare_pairs, mean_band, mean_interval

MODELS: Final = ("small", "medium", "large")
KINDS: Final = ("chat", "code", "maths")
#: Requests and runs, and requests between two points of a curve.
REQUESTS, RUNS, SPACING = 6_000, 20, 150
#: Where `main` stores the evidence.
STORED: Final = Path(__file__).with_name("router.json")


class Phase(NamedTuple):
    """A part of a world: its first request, the mean scores of the models by kind, the prices."""

    start: int
    quality: Sequence[Sequence[float]]
    prices: Sequence[float]


_SMALL, _MEDIUM, _LARGE = (0.70, 0.45, 0.30), (0.75, 0.70, 0.50), (0.80, 0.85, 0.85)
_FIRST = Phase(0, (_SMALL, _MEDIUM, _LARGE), (0.02, 0.10, 0.30))
_CHEAPER = Phase(1_500, _FIRST.quality, (0.02, 0.10, 0.18))
_WORSE = Phase(3_000, (_SMALL, _MEDIUM, (0.65, 0.60, 0.45)), _CHEAPER.prices)
_BETTER = Phase(4_500, ((0.80, 0.75, 0.70), *_WORSE.quality[1:]), _CHEAPER.prices)
#: In the drifting world the large model becomes cheaper, then worse; at last the small one better.
WORLDS: Final = {"stationary": (_FIRST,), "drifting": (_FIRST, _CHEAPER, _WORSE, _BETTER)}
#: Between these requests the large model is down.
OUTAGE: Final = (2_250, 2_400)
#: Before these requests the routers are stopped and started again.
RESTARTS: Final = (1_000, 3_000)


class Traffic(NamedTuple):
    """The requests of a run, one in each row; the columns are models."""

    session: Any
    kind: Any
    eligible: Any
    #: The mean score minus the price; and what a router observes, `delay` requests later or never.
    net: Any
    score: Any
    cost: Any
    delay: Any
    #: By request: the new list prices.
    prices: dict[int, Sequence[float]]


def traffic(run: int, world: str) -> Traffic:
    """Draw the requests of a run. The two worlds differ in scores and prices only."""
    rng, n, phases = Stream.named(0, run, "traffic"), REQUESTS, WORLDS[world]
    continues, which, kind = rng.random(n) < 0.6, rng.random(n), rng.integers(3, size=n)
    session, turn, turns = np.arange(n), np.ones(n), defaultdict[int, int](int)
    for t in range(n):
        if t and continues[t]:  # the conversation of one of the last 20 requests
            session[t] = session[t - 1 - int(which[t] * min(t, 20))]
        turns[session[t]] += 1
        turn[t] = turns[session[t]]
    eligible = np.ones((n, 3), bool)
    eligible[turn > 4, 0] = False  # the small model has a short context
    eligible[slice(*OUTAGE), 2] = False
    phase = np.searchsorted([p.start for p in phases], np.arange(n), "right") - 1
    quality = np.array([p.quality for p in phases])[phase, :, kind[session]]
    price = np.array([p.prices for p in phases])[phase]
    score = (rng.random((n, 1, 4)) < quality[:, :, None]).mean(2)
    delay = np.where(rng.random(n) < 0.7, 1 + rng.exponential(60.0, size=n).astype(int), 0)
    cost = price * (0.5 + rng.random((n, 1)))
    prices = {p.start: p.prices for p in phases}
    return Traffic(session, kind[session], eligible, quality - price, score, cost, delay, prices)


# -- routers ---------------------------------------------------------------------------------------


class FixedSplit:
    """Each eligible model gets the same share. A session holds its model, as in all routers."""

    def __init__(self, run: int, folder: str) -> None:
        self.rng = Stream.named(1, run, "router")
        #: The kind and the model of each decision, and the last decision of each session.
        self.decisions: dict[str, Sequence[str]] = {}
        self.held: dict[str, str] = {}
        self.is_down = False

    def act(self, t: int, session: str, kind: str, among: Sequence[str]) -> tuple[str, str]:
        """Return the id of the decision for request t, and its model."""
        eligible = [m for m in among if not (self.is_down and m == "large")]
        id = self.held.get(session)
        if id is None or self.decisions[id][1] not in eligible:
            id = self.held[session] = str(t)
            self.decisions[id] = kind, self.choose(kind, eligible)
        return id, self.decisions[id][1]

    def choose(self, kind: str, eligible: Sequence[str]) -> str:
        return eligible[self.rng.integers(len(eligible))]

    def observe(self, id: str, score: float, cost: float) -> bool:
        """Learn the score and the cost of a decision; return False if it is too late for that."""
        return True

    def operate(self, prices: Sequence[float] | None, is_down: bool) -> None:
        """Set new list prices; take the large model out of service, or back."""
        self.is_down = is_down

    def restart(self) -> None:
        """Stop and start the router."""

    def close(self) -> None:
        """Stop the router."""


class BetaThompson(FixedSplit):
    """Beta counts for each kind and model; the reward is score minus cost, clipped to [0, 1].

    At 200 pseudo-observations new rewards are dropped or, if `fades`, old ones fade. Everything is
    in memory, and copied to a file after every 100 decisions and scores.
    """

    def __init__(self, run: int, folder: str, fades: bool = False) -> None:
        super().__init__(run, folder)
        self.counts = {f"{kind} {m}": (1.0, 1.0) for kind in KINDS for m in MODELS}
        self.file, self.fades, self.calls = Path(folder) / f"counts {fades}.json", fades, 0
        self.scored: list[str] = []
        if self.file.exists():
            vars(self).update(json.loads(self.file.read_text(encoding="utf-8")))

    def act(self, *request: Any) -> tuple[str, str]:
        decision = super().act(*request)
        self.copy()
        return decision

    def choose(self, kind: str, eligible: Sequence[str]) -> str:
        return max(eligible, key=lambda m: self.rng.beta(*self.counts[f"{kind} {m}"]))

    def observe(self, id: str, score: float, cost: float) -> bool:
        if id not in self.decisions:  # it was forgotten
            return False
        cell, reward = " ".join(self.decisions[id]), min(max(score - cost, 0.0), 1.0)
        a, b = self.counts[cell]
        a, b = a + reward, b + 1.0 - reward
        scale = min(1.0, 200.0 / (a + b))
        if scale == 1.0 or self.fades:
            self.counts[cell] = scale * a, scale * b
        self.scored.append(id)
        self.copy()
        return True

    def copy(self) -> None:
        """Copy everything to the file, if it is time."""
        self.calls += 1
        if self.calls % 100 == 0:
            state = {name: vars(self)[name] for name in ("counts", "decisions", "held", "scored")}
            self.file.write_text(json.dumps(state), encoding="utf-8")

    def stored(self) -> tuple[list[str], list[str]]:
        """Return the ids of the decisions, and of those with a score."""
        return list(self.decisions), self.scored


class ControlRule:
    """A durable agent: the score is linear in the kind; prices are list prices or "reported"."""

    def __init__(self, run: int, folder: str, changing: bool = True, durable: bool = True) -> None:
        # The mean scores have mean 1/2 and variance 1/12 before any evidence, as Beta(1, 1) has.
        models = LinearBandit(MODELS, {"kind": list(KINDS)}, sd=0.25, prior=((0.5, 0, 0, 0), 24))
        self.model = models.changing(per_arm=True) if changing else models
        self.store = f"sqlite:///{folder}/log {changing}.db"
        self.run, self.durable, self.late = run, durable, 0
        #: The model and the probabilities of each decision.
        self.decided: list[tuple[str, Any]] = []
        self.open()

    def open(self) -> None:
        """Create the agent, or restore it from its log."""
        self.agent = open_agent(
            self.store, "router", self.model, seed=self.run, durable=self.durable
        )

    def act(self, t: int, session: str, kind: str, among: Sequence[str]) -> tuple[str, str]:
        d = self.agent.act({"kind": kind}, key=f"request {t}", session=session, among=among)
        if d.probabilities is not None:  # a new decision
            self.decided.append((d.action, d.probabilities))
        return d.id, d.action

    def observe(self, id: str, score: float, cost: float) -> bool:
        try:
            self.agent.observe(id, score, cost=cost)
        except TooLate:
            self.late += 1
            return False
        return True

    def operate(self, prices: Sequence[float] | None, is_down: bool) -> None:
        if prices is not None:
            listed: dict[str, float | str] = dict(zip(MODELS, prices, strict=True))
            wanted = Configuration(prices=listed | {"medium": "reported"}, reward_range=(0, 1))
            if wanted != self.agent.configuration:  # the call may be repeated after a kill
                self.agent.configure(wanted)
        if is_down == (self.agent.arms()["large"] == "active"):
            (self.agent.pause_arm if is_down else self.agent.resume_arm)("large")

    def restart(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        self.agent.close()

    def stored(self) -> tuple[list[str], list[str]]:
        """Return the ids of the decisions in the log, and of those with a score."""
        events = list(self.agent.log())
        decided = [str(e.seq) for e in events if isinstance(e, Decided)]
        return decided, [str(e.n) for e in events if isinstance(e, Observed)]


#: The routers by name, in the order of the page.
ROUTERS: Final[dict[str, Any]] = {
    "fixed split": FixedSplit,
    "Beta-Thompson": BetaThompson,
    "Beta-Thompson, fading": partial(BetaThompson, fades=True),
    "control rule, static": partial(ControlRule, changing=False, durable=False),
    "control rule": partial(ControlRule, durable=False),
}
_COLOURS: Final[Any] = ("ink", "vermillion", "orange", "sky", "blue")


def play(requests: Traffic, router: Any, stop: int = REQUESTS) -> Any:
    """Send the first requests to a router; return the cumulative regret after each."""
    due, decided, regret = defaultdict[int, list[Any]](list), set[str](), np.empty(stop)
    for t in range(stop):
        if t in RESTARTS:
            router.restart()
        if t in requests.prices or t in OUTAGE:
            router.operate(requests.prices.get(t), t == OUTAGE[0])
        for answer in due.pop(t, ()):
            router.observe(*answer)
        # Outages are announced by `operate`.
        among = [m for m, e in zip(MODELS, requests.eligible[t], strict=True) if e or m == "large"]
        kind, session = KINDS[requests.kind[t]], f"conversation {requests.session[t]}"
        id, model = router.act(t, session, kind, among)
        a, delay = MODELS.index(model), int(requests.delay[t])
        if id not in decided and delay:
            answer = id, float(requests.score[t, a]), float(requests.cost[t, a])
            due[t + delay].append(answer)
        decided.add(id)
        regret[t] = requests.net[t][requests.eligible[t]].max() - requests.net[t, a]
    router.close()
    return np.cumsum(regret)


# -- kills -----------------------------------------------------------------------------------------


class KilledRouter:
    """A router in a process that answers through a pipe and is killed at some calls.

    The call is sent, the process is killed a moment later (`kill -9`), another process is started,
    and the call is repeated. Lost is what was acknowledged before a kill and is not there after it.
    """

    def __init__(self, name: str, run: int, folder: str, kill_at: Iterable[int]) -> None:
        self.command = [sys.executable, __file__, name, str(run), folder]
        self.kill_at, self.rng = set(kill_at), Stream.named(2, run, "kills")
        self.calls, self.acknowledged, self.lost, self.doubled = 0, 0, 0, 0
        self.decisions, self.scores = set[str](), set[str]()
        self.start()

    def start(self) -> None:
        """Start a process, and compare what it has with what was acknowledged."""
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(self.command, **pipes)  # noqa: S603
        acknowledged = self.decisions, self.scores
        for known, stored in zip(acknowledged, self.ask("stored"), strict=True):
            self.lost += len(known.difference(stored))
            self.doubled += len(stored) - len(set(stored))
            known.intersection_update(stored)  # a loss counts once

    def restart(self) -> None:
        """Kill the process and start another one."""
        self.process.kill()
        self.process.communicate()
        self.start()

    def close(self) -> None:
        self.restart()  # the last comparison
        self.process.communicate()

    def send(self, *call: Any) -> None:
        """Write a call to the pipe."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()

    def ask(self, *call: Any) -> Any:
        """Send a call and return the answer; at some calls kill the process before it comes."""
        self.calls += 1
        if self.calls in self.kill_at:
            self.send(*call)
            time.sleep(0.01 * self.rng.random())
            self.restart()
        self.send(*call)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def act(self, *request: Any) -> tuple[str, str]:
        id, model = self.ask("act", *request)
        self.acknowledged += id not in self.decisions
        self.decisions.add(id)
        return id, model

    def observe(self, id: str, score: float, cost: float) -> None:
        if self.ask("observe", id, score, cost):
            self.acknowledged += 1
            self.scores.add(id)

    def operate(self, *settings: Any) -> None:
        self.ask("operate", *settings)


def serve(name: str, run: str, folder: str) -> None:
    """Answer the calls of standard input, until it is closed."""
    router = {"control rule": ControlRule, "Beta-Thompson": BetaThompson}[name](int(run), folder)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(getattr(router, method)(*arguments)) + "\n")
        sys.stdout.flush()


def play_with_kills(name: str, kill_at: Iterable[int], stop: int = REQUESTS) -> dict[str, Any]:
    """Play the first requests of a drifting run with kills; return the losses and the regret."""
    with tempfile.TemporaryDirectory() as folder:
        router = KilledRouter(name, 0, folder, kill_at)
        regret = round(float(play(traffic(0, "drifting"), router, stop)[-1]), 2)
    return {
        "acknowledged": router.acknowledged, "lost": router.lost, "doubled": router.doubled,
        "regret": regret,
    }  # fmt: skip


# -- evidence --------------------------------------------------------------------------------------


def calibration(log: Iterable[tuple[str, dict[str, float]]]) -> Any:
    """Return for each tenth of the probabilities how many decisions should choose a model with such
    a probability, how many do, and the variance. The tables of several logs can be added.
    """
    cells = np.zeros((10, 3))
    for model, P in log:
        p = np.zeros(10)
        for p_a in P.values():
            p[min(int(10 * p_a), 9)] += p_a
        chosen = np.arange(10) == min(int(10 * P[model]), 9)
        cells += np.stack([p, chosen, p * (1.0 - p)], 1)
    return cells


def z_scores(cells: Any) -> Any:
    """Return (chosen - expected) / standard deviation for each tenth of the probabilities."""
    expected, chosen, variance = np.array(cells).T
    return (chosen - expected) / np.sqrt(variance)


def replica(run: int, world: str) -> dict[str, Any]:
    """Play one run with all routers: their regret, and what the log of the last one shows."""
    requests, curves = traffic(run, world), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in ROUTERS.items():
            router = make(run, folder)
            curves[name] = np.round(play(requests, router)[SPACING - 1 :: SPACING], 2).tolist()
    return {"curves": curves, "cells": calibration(router.decided), "late": router.late}


def collect() -> dict[str, Any]:
    """Compute the evidence, as plain values."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    tasks = [(run, world) for world in WORLDS for run in range(RUNS)]
    replicas = Parallel(n_jobs=-1)(delayed(replica)(*task) for task in tasks)
    curves: Any = {world: {name: [] for name in ROUTERS} for world in WORLDS}
    for (_, world), done in zip(tasks, replicas, strict=True):
        for name, curve in done["curves"].items():
            curves[world][name].append(curve)
    cells = np.round(sum(done["cells"] for done in replicas), 3).tolist()
    kill_at = (1 + Stream(3).permutation(REQUESTS)[:47]).tolist()  # and 3 at restarts and the end
    kills = {n: play_with_kills(n, kill_at) for n in ("Beta-Thompson", "control rule")}
    late = sum(done["late"] for done in replicas)
    return {"curves": curves, "cells": cells, "late": late, "kills": kills}


def table(curves: Any) -> str:
    """Return the regret of all routers with 95 % intervals, and its parts in the drifting world."""
    header = "".join(f"{world:17}" for world in WORLDS)
    lines = [f"{'':23}{header}the four parts"]
    for name in ROUTERS:
        runs = {world: np.array(curves[world][name]) for world in WORLDS}
        ends = [mean_interval(regret[:, -1]) for regret in runs.values()]
        row = "".join(f"{f'{e.mean:.0f} ({e.low:.0f} to {e.high:.0f})':17}" for e in ends)
        parts = np.diff(runs["drifting"].mean(0)[9::10], prepend=0.0)
        lines.append(f"{name:23}{row}" + "".join(f"{part:4.0f}" for part in parts))
    return "\n".join(lines)


def verdicts(curves: Any, world: str) -> dict[str, str]:
    """Return what paired tests say about the last router against each other one."""
    ends = {name: np.array(runs)[:, -1] for name, runs in curves[world].items()}
    pairs = compare_pairs(dict(reversed(ends.items())), higher_is_better=False)
    return {c.names[1]: c.verdict for c in pairs if c.names[0] == "control rule"}


def chart(curves: Any) -> Chart:
    """Plot the mean regret in both worlds, with bands that cover the whole curve."""
    t, panels = np.arange(SPACING, REQUESTS + 1, SPACING), []
    for world, phases in WORLDS.items():
        series = []
        for name, colour in zip(ROUTERS, _COLOURS, strict=True):
            band = mean_band(np.array(curves[world][name]))
            series.append(Series(name, t, band.mean, band.low, band.high, colour=colour))
        changes = [Guide("change of the world", p.start, "vertical") for p in phases[1:]]
        panels.append(
            Panel(f"{world} world", "requests", "regret (units of reward)", series, changes,
                  ylim=(0.0, 650.0), legend="below")
        )  # fmt: skip
    read = "Lower is better; a flat curve chooses the best eligible model."
    return Chart("Regret of routers", panels, read, columns=2, note=f"95 % bands of {RUNS} runs")


def main() -> None:
    """Compute the evidence, store it and print it."""
    evidence = collect()
    STORED.write_text(json.dumps(evidence) + "\n", encoding="utf-8")
    lines = [table(evidence["curves"]), *(str(verdicts(evidence["curves"], w)) for w in WORLDS)]
    lines += [str(z_scores(evidence["cells"]).round(1)), f"{evidence['late']} scores too late"]
    lines += [f"{name}: {losses}" for name, losses in evidence["kills"].items()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    serve(*sys.argv[1:]) if sys.argv[1:] else main()

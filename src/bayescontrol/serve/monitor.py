"""The monitor: counts commits for the metrics, and sends their events to the live page.

    event: agents      once a second: the state of every open agent
    event: decision    a sample of the decisions: twenty a second, and one of each agent

While no page listens, the monitor only keeps two sums: decisions, and the regret
Σ_t (best mean - mean of a_t) of agents whose true means are known. Metrics have the text format of
Prometheus.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

from bayescontrol._support.values import distinct_texts
from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.driver import posterior_summary
from bayescontrol.durable.events import Decision
from bayescontrol.durable.models import KINDS
from bayescontrol.durable.plain import as_plain
from bayescontrol.durable.requests import Act, Observe
from bayescontrol.durable.stores.committer import Request
from bayescontrol.errors import BadSituation, BayesControlError
from bayescontrol.protocols import PosteriorMeasure
from bayescontrol.serve.http_errors import Refused
from bayescontrol.serve.values import JsonObject, agent_tag, encode_id

if TYPE_CHECKING:
    from bayescontrol.serve.request_queue import ServedAgent

_NAMESPACE: Final = "bayescontrol"
#: Upper limits of the cells of histograms: seconds of a request, requests of a commit.
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
#: Maximum number of agents on the page.
_MAX_AGENTS: Final = 200
#: Seconds between two decisions, or two surprises, that are shown.
_SAMPLE_PERIOD: Final = 0.05
#: Seconds after which a decision of an agent is shown even if those of other agents fill the page.
_AGENT_PERIOD: Final = 1.0
#: Decisions of an agent that are remembered for the surprise of their observations.
_MAX_RECENT: Final = 4096
#: Maximum events that wait for a page that reads slowly; it misses the others.
_MAX_UNREAD: Final = 64
#: Maximum rows of the posterior of one agent; they are sent every second.
_MAX_ROWS: Final = 200
#: The ends of a central 95 % interval, as probabilities.
_TAILS: Final = np.array([0.025, 0.975])
_LN2: Final = math.log(2.0)


class Metrics(Collector):
    """The counters, histograms and gauges of one server.

    >>> metrics = Metrics()
    >>> metrics.problems.labels("overloaded").inc()
    >>> 'bayescontrol_problems_total{problem="overloaded"} 1.0' in metrics.text()
    True
    """

    MEDIA_TYPE: Final = "text/plain; version=0.0.4"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, namespace=_NAMESPACE, registry=self._registry)
        histogram = partial(Histogram, namespace=_NAMESPACE, registry=self._registry)
        self.requests = counter("requests", "Requests answered.", ("method", "route", "status"))
        self.seconds = histogram(
            "request_seconds", "Time until the answer began.", ("route",), buckets=_SECONDS
        )
        self.token_requests = counter(
            "token_requests", "Requests answered, by the name of their token.", ("token", "status")
        )
        self.problems = counter("problems", "Requests refused.", ("problem",))
        self.decisions = counter("decisions", "Decisions acknowledged.", ("agent",))
        self.observations = counter("observations", "Observations learned.", ("agent",))
        self.batch_sizes = histogram(
            "commit_requests", "Requests that shared a commit.", ("agent",), buckets=_SIZES
        )
        #: child(metric, *labels) is metric.labels(*labels), found faster.
        self.child: Callable[..., Any] = cache(lambda metric, *labels: metric.labels(*labels))

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """Add a gauge; `read` returns its value when the metrics are requested."""
        Gauge(name, help, namespace=_NAMESPACE, registry=self._registry).set_function(read)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, without the times at which their labels were first used."""
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self).decode()


def add_file_gauges(metrics: Metrics, url: str) -> None:
    """Add gauges of the file of a SQLite store, and of its disk.

    >>> metrics = Metrics()
    >>> add_file_gauges(metrics, "sqlite:///shop.db")
    >>> "bayescontrol_store_bytes 0.0" in metrics.text()
    True
    """
    path = Path(url.removeprefix("sqlite:///")).absolute()
    if not url.startswith("sqlite:///") or url.endswith(":memory:"):
        return

    def size(suffix: str) -> int:
        """Return the size of a file; 0 if it is missing."""
        with suppress(OSError):
            return Path(f"{path}{suffix}").stat().st_size
        return 0

    metrics.gauge("store_bytes", "Bytes of the database file.", lambda: size(""))
    metrics.gauge("store_wal_bytes", "Bytes of its write-ahead log.", lambda: size("-wal"))
    free = "Free bytes on the disk of the database file."
    metrics.gauge("store_free_bytes", free, lambda: disk_usage(path.parent).free)


class _Statistics:
    """What the monitor remembers about one agent; `tag` is in the ids of its decisions."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.last_decision = 0  # number of the last decision that was counted
        self.decisions = 0
        self.regret = 0.0
        self.recent: dict[str, Decision] = {}  # by decision id
        self.surprises: deque[float] = deque(maxlen=50)  # in bits; the page shows their mean
        self.last_surprise = 0.0  # when it was computed
        self.last_shown = 0.0  # when a decision was last sent
        # (time, decisions) at the last six calls of `rate`, one a second.
        self.counts: deque[tuple[float, int]] = deque(maxlen=6)

    def rate(self, now: float) -> float:
        """Return the decisions a second since the fifth call before this one; at first 0."""
        self.counts.append((now, self.decisions))
        (start, first_count), (_, last_count) = self.counts[0], self.counts[-1]
        return (last_count - first_count) / (now - start) if now > start else 0.0


class Monitor:
    """Counts decisions and observations, and sends events to the pages that listen.

    `truths` gives the true mean reward of every action, by agent, where it is known;
    `max_listeners` limits the pages.
    """

    def __init__(
        self, metrics: Metrics, truths: Mapping[str, Mapping[Any, float]] | None = None,
        max_listeners: int = 32,
    ) -> None:  # fmt: skip
        self.metrics, self._truths = metrics, dict(truths or {})
        self._max_listeners = max_listeners
        self._statistics: dict[str, _Statistics] = {}
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_shown = 0.0
        metrics.gauge("listeners", "Pages that listen.", lambda: len(self._listeners))

    # -- commits; in a worker thread -------------------------------------------------------------

    def before_commit(self, agent: DurableAgent, requests: Sequence[Request]) -> None:
        """Compute the surprise of one of the observations before the agent learns it.

        Only while a page listens, and at most once in `_SAMPLE_PERIOD` seconds.
        """
        if not self._listeners:
            return
        statistics, now = self._statistics_of(agent), time.monotonic()
        if now - statistics.last_surprise < _SAMPLE_PERIOD:
            return
        for request in requests:
            if isinstance(request, Observe) and (d := statistics.recent.get(str(request.id))):
                statistics.last_surprise = now
                with suppress(Exception):  # if o is invalid, `observe` reports it
                    bits = _surprise_bits(agent, d, request.o)
                    if math.isfinite(bits):
                        statistics.surprises.append(bits)
                return

    def after_commit(self, agent: DurableAgent, requests: Sequence[Request]) -> None:
        """Count the decisions and observations of a commit."""
        statistics, name = self._statistics_of(agent), agent.name
        learned = decided = 0
        for request in requests:
            if isinstance(request, Act) and isinstance(request.result, Decision):
                decided += self._count_decision(statistics, name, request.result)
            elif isinstance(request, Observe):
                learned += request.result is True
        metrics = self.metrics
        metrics.child(metrics.batch_sizes, name).observe(len(requests))
        if decided:
            metrics.child(metrics.decisions, name).inc(decided)
        if learned:
            metrics.child(metrics.observations, name).inc(learned)

    def _count_decision(self, statistics: _Statistics, name: str, decision: Decision) -> bool:
        """Count a decision; return False if it was counted before and is repeated under its key."""
        n = int(decision.id)  # ids are event numbers, so they increase
        if n <= statistics.last_decision:
            return False
        statistics.last_decision = n
        statistics.decisions += 1
        truth = self._truths.get(name)
        if truth is not None:
            statistics.regret += max(truth.values()) - truth[decision.action]
        if self._listeners:
            if len(statistics.recent) >= _MAX_RECENT:
                statistics.recent.clear()  # their observations will have no surprise
            statistics.recent[decision.id] = decision
            self._send_sample(statistics, name, decision)
        return True

    def _send_sample(self, statistics: _Statistics, name: str, decision: Decision) -> None:
        """Send the decision to the pages, unless others were sent a short time ago."""
        now = time.monotonic()
        due = (
            now - self._last_shown >= _SAMPLE_PERIOD or now - statistics.last_shown >= _AGENT_PERIOD
        )
        if due and self._loop is not None:
            self._last_shown = statistics.last_shown = now
            event = _event("decision", {
                "agent": name, "id": encode_id(statistics.tag, decision.id),
                "action": action_label(decision),
                "probability": decision.probability, "time": decision.time,
            })  # fmt: skip
            self._loop.call_soon_threadsafe(self._send, event)

    def _statistics_of(self, agent: DurableAgent) -> _Statistics:
        """Return what is remembered about an agent; nothing is at first."""
        found = self._statistics.get(agent.name)
        if found is None:
            found = self._statistics.setdefault(
                agent.name, _Statistics(agent_tag(agent.name, agent.created))
            )
        return found

    # -- events ----------------------------------------------------------------------------------

    async def run(self, agents: Mapping[str, "ServedAgent"]) -> None:
        """Send the state of the agents once a second, until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            if self._listeners:
                self._send(await self._agents_event(agents))
            await asyncio.sleep(1.0)

    async def _agents_event(self, agents: Mapping[str, "ServedAgent"]) -> bytes:
        """Return the event with the states of the agents that the page shows."""
        states = []
        for agent in list(islice(agents.values(), _MAX_AGENTS)):
            with suppress(Exception):  # omit an agent that fails
                states.append(await agent.read(self.agent_state))
        return _event("agents", states)

    def agent_state(self, agent: DurableAgent) -> JsonObject:
        """Return the numbers of one agent that the live page shows."""
        statistics, model = self._statistics_of(agent), agent.model.name
        agent.counts()  # the first time long: not while commits wait for `ask`
        state, (decisions, observations), head = agent.ask(
            lambda rule: (belief_state(agent, rule), decisions_and_answers(agent), agent.head)
        )
        surprises = list(statistics.surprises)
        return {
            "name": agent.name, "model": f"{model} {agent.model.version}",
            "decisions": decisions, "observations": observations,
            "pending": decisions - observations, "events": head,
            "rate_per_s": statistics.rate(time.monotonic()),
            "surprise_bits": sum(surprises) / len(surprises) if surprises else None,
            "regret": statistics.regret if agent.name in self._truths else None,
        } | state  # fmt: skip

    def _send(self, event: bytes) -> None:
        """Send an event to every page; a page with too many unread events misses it."""
        for listener in self._listeners:
            if not listener.full():  # a slow reader misses events
                listener.put_nowait(event)

    def listen(self, agents: Mapping[str, "ServedAgent"]) -> AsyncIterator[bytes]:
        """Return the events from now on; raise `Refused` if too many live pages are open."""
        if len(self._listeners) >= self._max_listeners:
            why = f"{self._max_listeners} live pages are already open: close one"
            raise Refused("overloaded", why, {"Retry-After": "10"})
        listener: asyncio.Queue[bytes | None] = asyncio.Queue(_MAX_UNREAD)
        self._listeners.add(listener)
        return self._events(listener, agents)

    async def _events(
        self, listener: "asyncio.Queue[bytes | None]", agents: Mapping[str, "ServedAgent"]
    ) -> AsyncIterator[bytes]:
        """Yield the events for one page, until `close` puts None into its queue."""
        try:
            yield await self._agents_event(agents)  # a new page does not wait for the next second
            while (event := await listener.get()) is not None:
                yield event
        finally:
            self._listeners.discard(listener)

    def close(self) -> None:
        """End all streams."""
        for listener in list(self._listeners):
            if listener.full():
                listener.get_nowait()  # make room for the end
            listener.put_nowait(None)


def _event(kind: str, data: object) -> bytes:
    """Encode a server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))


def _surprise_bits(agent: DurableAgent, d: Decision, o: object) -> float:
    """Return -log2 P(o | past) of the observation that answers a decision."""
    log_p = agent.ask(lambda rule: float(rule.belief.log_predictive(d.situation, d.action, o)))
    return -log_p / _LN2


# -- an agent in numbers -------------------------------------------------------------------------


def action_label(decision: Decision) -> str:
    """Return the action as text, in the same notation as in the decision's probabilities.

    >>> action_label(Decision("2", ("left", 2), None, None, 1, 0.0))
    '{"tuple":["left",2]}'
    """
    a = decision.action
    if decision.probabilities:
        return distinct_texts(decision.probabilities)[a]
    return a if isinstance(a, str) else msgspec.json.encode(as_plain(a, "an action")).decode()


def decisions_and_answers(agent: DurableAgent) -> tuple[int, int]:
    """Return the numbers of decisions, and of those that were observed or got the default."""
    counts = agent.counts()
    return counts.get("decided", 0), counts.get("observed", 0) + counts.get("defaulted", 0)


def posterior_rows(rule: object, model: str = "") -> list[JsonObject]:
    """Return the posterior as table rows for the live page.

    A row is a mode with its probability (`weight`), or a parameter with its mean and, if known, its
    interval. Vector and matrix means give one row per entry, until there are 200 rows. `model` is
    the name of the agent's model.

    >>> from bayescontrol import BernoulliBandit, LinearBandit
    >>> posterior_rows(BernoulliBandit(["red"]).agent())
    [{'name': 'red', 'weight': None, 'mean': 0.5, 'low': 0.025..., 'high': 0.975...}]
    >>> [row["name"] for row in posterior_rows(LinearBandit(["red"], features=2).agent())]
    ['red[0]', 'red[1]']
    """
    belief: Any = getattr(rule, "belief", None)
    arm_rewards = _arm_rewards(model)
    if arm_rewards is not None:
        rewards = list(arm_rewards(belief).items())[:_MAX_ROWS]
        return [_posterior_row(name, **numbers) for name, numbers in rewards]
    rows = []
    for name, numbers in posterior_summary(rule).items():
        if "probability" in numbers:
            rows.append(_posterior_row(name, weight=numbers["probability"]))
        mean = np.asarray(numbers.get("mean", ()), np.float64)
        for index, v in zip(np.ndindex(mean.shape), mean.flat, strict=True):
            label = f"{name}[{', '.join(map(str, index))}]" if index else name
            if not index or len(rows) < _MAX_ROWS:  # a mean that is a number is always shown
                rows.append(_posterior_row(label, mean=float(v)))
    if hasattr(belief, "mean_intervals"):
        for row, (low, high) in zip(rows, belief.mean_intervals(_TAILS).tolist(), strict=True):
            row |= _finite(low=low, high=high)
    return rows


def _arm_rewards(model: str) -> Any:
    """Return the model's function from a belief to the rewards of its arms, or None."""
    return KINDS[model].model_kind.arm_rewards if model in KINDS else None


def _posterior_row(name: str, **numbers: float) -> JsonObject:
    """Return a row of `posterior_rows`; numbers that are missing or infinite are None."""
    empty: JsonObject = dict.fromkeys(("weight", "mean", "low", "high"))
    return {"name": name} | empty | _finite(**numbers)


def _finite(**numbers: float) -> dict[str, float]:
    """Return the numbers that JSON can represent."""
    return {key: v for key, v in numbers.items() if math.isfinite(v)}


def arm_rows(agent: DurableAgent) -> list[JsonObject]:
    """Return the state and the price of each arm, for at most 200; nothing if it has no arms.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
    ...     arm_rows(shop)
    [{'name': 'red', 'state': 'active', 'price': None}]
    """
    try:
        states, prices = agent.arms(), agent.prices()
    except BayesControlError:
        return []
    names = islice(distinct_texts(states).items(), _MAX_ROWS)
    return [{"name": name, "state": states[a], "price": prices.get(a)} for a, name in names]


def belief_state(agent: DurableAgent, rule: object) -> JsonObject:
    """Return the belief of an agent as the page shows it, with remarks on what is not shown.

    >>> from bayescontrol import BernoulliBandit
    >>> from bayescontrol.durable import open_agent
    >>> with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(["red"])) as shop:
    ...     shop.ask(lambda rule: belief_state(shop, rule))["probabilities"]
    {'red': 1.0}
    """
    model, remarks = agent.model.name, []
    rows, belief = posterior_rows(rule, model), getattr(rule, "belief", None)
    default = None if belief is None else PosteriorMeasure(name="posterior mean", unit="its own")
    measure = getattr(belief, "posterior_measure", default)
    means = [numbers.get("mean", ()) for numbers in posterior_summary(rule).values()]
    if rows and measure is not None and measure.note:
        remarks.append(measure.note)
    elif all(row["mean"] is None and row["weight"] is None for row in rows):
        remarks.append("This model has no posterior by arm or mode to draw.")
    if rows and sum(map(np.size, means)) > len(rows):
        remarks.append(f"Of the posterior, at most {_MAX_ROWS} numbers are shown.")
    probabilities, reason = None, "This model has no formula for action probabilities"
    try:
        probabilities = agent.probabilities()
    except BadSituation:
        reason = "The action probabilities depend on the situation"
    except (BayesControlError, TypeError, ValueError, LookupError):
        pass
    if probabilities is None:
        remarks.append(f"{reason}: the shares of past actions are shown instead.")
    if _arm_rewards(model) is not None:
        measure = PosteriorMeasure(name="mean reward", unit="reward")
    alarm = getattr(rule, "alarm", None)
    return {
        "modes": rows,
        "arms": arm_rows(agent),
        "measure": measure and {"name": measure.name, "unit": measure.unit},
        "probabilities": probabilities
        and {text: probabilities[a] for a, text in distinct_texts(probabilities).items()},
        "remarks": remarks,
        "alarm": alarm
        and {
            "raised": alarm.raised,
            "evidence_bits": alarm.evidence_bits if math.isfinite(alarm.evidence_bits) else None,
            "threshold_bits": alarm.threshold / _LN2,
        },
    }

"""Counters and histograms, told as Prometheus reads them.

    name{label="value"} 17            le="0.05" counts all that took at most 0.05
    name_bucket{le="0.05"} 12         rate(name_sum) / rate(name_count) is a mean

One process, one event loop and its worker threads: a lock is held for an addition at most.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_Labels: TypeAlias = tuple[str, ...]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inner}}} {value:.10g}" if inner else f"{name} {value:.10g}"


class Counter:
    """It only grows.

    >>> asked = Counter("asked_total", "Questions.", ("agent",))
    >>> asked.add("shop")
    >>> print(asked.text())
    # HELP asked_total Questions.
    # TYPE asked_total counter
    asked_total{agent="shop"} 1
    """

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)
        self._lock = threading.Lock()
        self._values: dict[_Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        """So much more."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + by

    def text(self) -> str:
        """As Prometheus reads it."""
        with self._lock:
            values = sorted(self._values.items())
        rows = [_line(self.name, zip(self.labels, key, strict=True), v) for key, v in values]
        return "\n".join([_head(self.name, self.help, self.kind), *rows])


class Gauge:
    """A number that is asked for when it is wanted.

    >>> print(Gauge("agents", "Agents.", lambda: 3).text())
    # HELP agents Agents.
    # TYPE agents gauge
    agents 3
    """

    def __init__(self, name: str, help: str, read: Callable[[], float]) -> None:
        self.name, self.help, self._read = name, help, read

    def text(self) -> str:
        """As Prometheus reads it."""
        return _head(self.name, self.help, "gauge") + "\n" + _line(self.name, (), self._read())


class Histogram:
    """How many were at most so large.

    >>> took = Histogram("took_seconds", "Time.", (0.1, 1.0), ("route",))
    >>> took.add("/", value=0.5)
    >>> print(took.text().splitlines()[3])
    took_seconds_bucket{route="/",le="1"} 1
    """

    def __init__(
        self,
        name: str,
        help: str,
        bounds: Sequence[float],
        labels: Sequence[str] = (),
    ) -> None:
        self.name, self.help, self.bounds, self.labels = name, help, tuple(bounds), tuple(labels)
        self._lock = threading.Lock()
        self._values: dict[_Labels, list[float]] = {}

    def add(self, *labels: str, value: float) -> None:
        """One more."""
        place = sum(value > bound for bound in self.bounds)
        with self._lock:
            row = self._values.setdefault(labels, [0.0] * (len(self.bounds) + 2))
            row[place] += 1
            row[-1] += value

    def text(self) -> str:
        """As Prometheus reads it."""
        with self._lock:
            values = sorted((key, list(row)) for key, row in self._values.items())
        rows = [_head(self.name, self.help, "histogram")]
        for key, (*counts, total) in values:
            labels, below = list(zip(self.labels, key, strict=True)), 0.0
            for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
                below += count
                le = "+Inf" if bound == float("inf") else f"{bound:g}"
                rows.append(_line(f"{self.name}_bucket", [*labels, ("le", le)], below))
            rows.append(_line(f"{self.name}_sum", labels, total))
            rows.append(_line(f"{self.name}_count", labels, below))
        return "\n".join(rows)


def _head(name: str, help: str, kind: str) -> str:
    return f"# HELP {name} {help}\n# TYPE {name} {kind}"


class Metrics:
    """All that a server counts.

    >>> metrics = Metrics()
    >>> metrics.requests.add("GET", "/", "200")
    >>> "bayescontrol_requests_total" in metrics.text()
    True
    """

    MEDIA_TYPE: Final = "text/plain; version=0.0.4"

    def __init__(self) -> None:
        of = "bayescontrol_"
        self.requests = Counter(
            f"{of}requests_total", "Requests answered.", ("method", "route", "status")
        )
        self.seconds = Histogram(
            f"{of}request_seconds", "Time until the answer began.", SECONDS, ("route",)
        )
        self.problems = Counter(f"{of}problems_total", "Requests refused.", ("problem",))
        self.decisions = Counter(f"{of}decisions_total", "Decisions acknowledged.", ("agent",))
        self.observations = Counter(f"{of}observations_total", "Observations learnt.", ("agent",))
        self.turns = Histogram(
            f"{of}commit_requests", "Requests that shared a commit.", SIZES, ("agent",)
        )
        self.gauges: list[Gauge] = []

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """Tell this number too."""
        self.gauges.append(Gauge(f"bayescontrol_{name}", help, read))

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        told: list[Counter | Gauge | Histogram] = [
            self.requests, self.seconds, self.problems,
            self.decisions, self.observations, self.turns, *self.gauges,
        ]  # fmt: skip
        return "\n".join(one.text() for one in told) + "\n"

"""The metrics of the server, in the text format of Prometheus."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


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
        self.requests = self._counter("requests", "Requests answered.", "method", "route", "status")
        self.seconds = self._histogram(
            "request_seconds", "Time until the answer began.", _SECONDS, "route"
        )
        self.problems = self._counter("problems", "Requests refused.", "problem")
        self.decisions = self._counter("decisions", "Decisions acknowledged.", "agent")
        self.observations = self._counter("observations", "Observations learnt.", "agent")
        self.batch_sizes = self._histogram(
            "commit_requests", "Requests that shared a commit.", _SIZES, "agent"
        )

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"bayescontrol_{name}", help, labels, registry=self._registry)

    def _histogram(
        self, name: str, help: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        name = f"bayescontrol_{name}"
        return Histogram(name, help, labels, buckets=buckets, registry=self._registry)

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """Add a gauge; `read` returns its value when the metrics are requested."""
        Gauge(f"bayescontrol_{name}", help, registry=self._registry).set_function(read)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, without the times at which their labels were first used."""
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self).decode()

"""The metrics of the server, in the text format of Prometheus."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

_NAMESPACE: Final = "bayescontrol"
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
        counter = partial(Counter, namespace=_NAMESPACE, registry=self._registry)
        histogram = partial(Histogram, namespace=_NAMESPACE, registry=self._registry)
        self.requests = counter("requests", "Requests answered.", ("method", "route", "status"))
        self.seconds = histogram(
            "request_seconds", "Time until the answer began.", ("route",), buckets=_SECONDS
        )
        self.problems = counter("problems", "Requests refused.", ("problem",))
        self.decisions = counter("decisions", "Decisions acknowledged.", ("agent",))
        self.observations = counter("observations", "Observations learned.", ("agent",))
        self.batch_sizes = histogram(
            "commit_requests", "Requests that shared a commit.", ("agent",), buckets=_SIZES
        )

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """Add a gauge; `read` returns its value when the metrics are requested."""
        gauge = Gauge(name, help, namespace=_NAMESPACE, registry=self._registry)
        gauge.set_function(read)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, without the times at which their labels were first used."""
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self).decode()

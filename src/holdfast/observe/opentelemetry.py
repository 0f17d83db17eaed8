"""Metrics for OpenTelemetry, with opentelemetry-api (the extra `opentelemetry`). It translates what is counted anyway.

1. Counters and gauges are observed when a reader asks. Histograms are recorded sample by sample, because the API has no
   other way: from `export()` on, and at the price of that library for each.
2. A name is that of the table with a dot after `holdfast`, the unit is `s` or `1`, and the attributes are the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .histogram import RATIOS, SECONDS, Histogram
from .meter import SINKS
from .metric_table import METRICS, PROCESS_METRICS, Metric, samples
from .process import process_stats

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

_exported: list[object] = []


def export(meter_provider: MeterProvider | None = None) -> None:
    """Give the counts of all coordinators of this process, those to come included, to a provider (the global one).

    A second call for the same provider does nothing.

    >>> import holdfast
    >>> from opentelemetry.sdk.metrics import MeterProvider
    >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    >>> reader = InMemoryMetricReader()
    >>> export(MeterProvider([reader]))
    >>> with holdfast.connect("memory://doc") as locks, locks.lock("orders/7"):
    ...     [scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
    >>> [held] = [metric for metric in scope.metrics if metric.name == "holdfast.held"]
    >>> [point.value for point in held.data.data_points if point.attributes["family"] == "orders/*"]
    [1]
    """
    from opentelemetry import metrics

    provider = meter_provider or metrics.get_meter_provider()
    if any(seen is provider for seen in _exported):
        return
    _exported.append(provider)
    meter = metrics.get_meter("holdfast", meter_provider=provider)
    recorders: dict[str, tuple[Any, tuple[str, ...]]] = {}
    for metric in (*METRICS, *PROCESS_METRICS):
        name = metric.name.replace("_", ".", 1)
        unit = "s" if metric.unit == "seconds" else "1"
        if metric.kind == "histogram":
            bounds = SECONDS if metric.unit == "seconds" else RATIOS
            histogram = meter.create_histogram(
                name, unit, metric.help, explicit_bucket_boundaries_advisory=list(bounds)
            )
            recorders[metric.name] = histogram, metric.labels
        elif metric.kind == "counter":
            meter.create_observable_counter(name, [_observe(metric)], unit, metric.help)
        else:
            meter.create_observable_gauge(name, [_observe(metric)], unit, metric.help)

    def record(name: str, engine: str, label: str, value: float) -> None:
        histogram, labels = recorders[name]
        histogram.record(value, {"engine": engine, **dict.fromkeys(labels, label)})

    SINKS.append(record)


def _observe(wanted: Metric) -> Callable[[object], Iterable[Any]]:
    def observe(_: object) -> Iterable[Any]:
        from opentelemetry.metrics import Observation

        for metric, labels, found in samples(process_stats()):
            if metric is wanted:
                for values, value in found:
                    assert not isinstance(value, Histogram)
                    yield Observation(value, dict(zip(labels, values, strict=True)))

    return observe

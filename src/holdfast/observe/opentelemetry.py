"""Metrics and traces for OpenTelemetry, with opentelemetry-api (the extra `opentelemetry`): `export()` and `trace()`.

It translates what is counted and told anyway; how spans are made is in `spans`.

1. Counters and gauges are observed when a reader asks. Histograms are recorded sample by sample, because the API has no
   other way: from `export()` on, and at the price of that library for each.
2. A name is that of the table with a dot after `holdfast`, the unit is `s` or `1`, and the attributes are the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .histogram import RATIOS, SECONDS, Histogram
from .meter import SINKS
from .metric_table import METRICS, PROCESS_METRICS, Metric, samples
from .observer import Observer
from .process import process_stats
from .spans import SpanRecorder

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

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
    >>> orders = {"engine": "memory", "family": "orders/*"}
    >>> [point.value for point in held.data.data_points if point.attributes == orders]
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


class Grantee(Protocol):
    """A lease, of threads or of tasks."""

    @property
    def owner(self) -> str:
        """The id of this acquisition."""
        ...


def trace(tracer_provider: TracerProvider | None = None) -> None:
    """Make spans of what all coordinators and fences of this process do from now on, with a provider (the global one).

    A second call changes the provider.

    >>> import holdfast
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> spans, provider = InMemorySpanExporter(), TracerProvider()
    >>> provider.add_span_processor(SimpleSpanProcessor(spans))
    >>> trace(provider)
    >>> with holdfast.connect("memory://doc") as locks, locks.lock("orders/7"):
    ...     pass
    >>> [span.name for span in spans.get_finished_spans()]
    ['acquire orders/*', 'hold orders/*', 'release orders/*']
    >>> untrace()
    """
    Observer.spans = SpanRecorder(tracer_provider)


def untrace() -> None:
    """Make no spans any more; those of present holds are not ended."""
    Observer.spans = None


def context_of(lease: Grantee) -> Context:
    """A context to make spans in that are children of the lease's hold; the present one, where tracing is off."""
    from opentelemetry.context import get_current

    recorder = Observer.spans
    found = recorder.context_of(lease.owner) if isinstance(recorder, SpanRecorder) else None
    return get_current() if found is None else found


def environment_of(lease: Grantee) -> dict[str, str]:
    """What to add to the environment of a command, for its spans to be children of the lease's hold: TRACEPARENT, …"""
    from opentelemetry import propagate

    carrier: dict[str, str] = {}
    propagate.inject(carrier, context_of(lease))
    return {key.upper().replace("-", "_"): value for key, value in carrier.items()}


def context_from(environment: Mapping[str, str]) -> Context:
    """The context that a process was given by its environment; the other end of `environment_of`."""
    from opentelemetry import propagate

    names = {name.lower(): value for name, value in environment.items()}
    return propagate.extract({name.replace("_", "-"): value for name, value in names.items()} | names)


def flush(seconds: float) -> None:
    """Have the global provider export what it has, and wait for it no longer than this."""
    import threading

    from opentelemetry import trace as api

    if (force_flush := getattr(api.get_tracer_provider(), "force_flush", None)) is not None:
        exporting = threading.Thread(target=force_flush, args=(int(seconds * 1000),), daemon=True)
        exporting.start()
        exporting.join(seconds)

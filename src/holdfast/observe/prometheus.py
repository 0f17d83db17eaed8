"""Metrics for Prometheus, with prometheus-client (the extra `prometheus`). It translates what is counted anyway.

1. In one process a collector reads the counts when Prometheus asks.
2. With prometheus-client's multiprocess mode (`PROMETHEUS_MULTIPROC_DIR`: gunicorn, Celery) collectors are not asked:
   each process writes into files of its own, here every `interval` seconds, and when a coordinator is closed. So what
   a worker that was killed has counted since its last writing is lost, and nothing else.
3. Forked workers write on by themselves, whether they were connected before the fork or after it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import Misconfigured
from .histogram import Histogram
from .metric_table import Metric, Value, samples
from .process import changed, process_stats

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

DEFAULT_INTERVAL_S = 1.0


def export(registry: CollectorRegistry | None = None, *, interval: float = DEFAULT_INTERVAL_S) -> None:
    """Show the counts of all coordinators of this process, those to come included, in a registry (the default one).

    In multiprocess mode they go into the files instead, every `interval` seconds. A second call does nothing.

    >>> import holdfast
    >>> from prometheus_client import CollectorRegistry, generate_latest
    >>> registry = CollectorRegistry()
    >>> export(registry)
    >>> with holdfast.connect("memory://doc") as locks, locks.lock("orders/7"):
    ...     lines = generate_latest(registry).decode().splitlines()
    >>> [line for line in lines if line.startswith('holdfast_held{engine="memory",family="orders/*"')]
    ['holdfast_held{engine="memory",family="orders/*"} 1.0']
    """
    import prometheus_client

    if isinstance(interval, bool) or not isinstance(interval, (int, float)) or not interval > 0:
        raise Misconfigured(f"interval is a number of seconds above 0, not {interval!r}")
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ or "prometheus_multiproc_dir" in os.environ:
        FileWriter.start(interval)
        return
    registry = registry or prometheus_client.REGISTRY
    if not any(seen is registry for seen in _exported):
        _exported.append(registry)
        registry.register(StatsCollector())


_exported: list[object] = []


class StatsCollector:
    """What a registry of prometheus-client asks."""

    def collect(self) -> Iterator[Any]:
        """All metrics, as they are now."""
        from prometheus_client import core

        for metric, labels, found in samples(process_stats()):
            if metric.kind == "histogram":
                family: Any = core.HistogramMetricFamily(metric.name, metric.help, labels=labels)
                for values, value in found:
                    assert isinstance(value, Histogram)
                    family.add_metric(values, _cumulated(value), value.sum)
            else:
                kind = core.CounterMetricFamily if metric.kind == "counter" else core.GaugeMetricFamily
                family = kind(metric.name, metric.help, labels=labels)
                for values, value in found:
                    family.add_metric(values, value)
            yield family


def _cumulated(histogram: Histogram) -> list[tuple[str, float]]:
    from prometheus_client.utils import floatToGoString

    total = 0
    found: list[tuple[str, float]] = []
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        total += count
        found.append((floatToGoString(bound), total))
    return found


class FileWriter:
    """Adds what was counted since its last writing to the values of this process (rule 2)."""

    _only: FileWriter | None = None

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._mutex = threading.Lock()
        self._values: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._written: dict[tuple[str, tuple[str, ...]], float] = {}
        self._pid = 0

    @classmethod
    def start(cls, interval: float) -> None:
        """Begin to write, in this process and in those that it forks."""
        if cls._only is not None:
            return
        only = cls._only = cls(interval)
        # Nobody writes while a process forks: the child would wait for a lock of prometheus-client for ever.
        os.register_at_fork(
            before=lambda: only._mutex.acquire(),
            after_in_parent=lambda: only._mutex.release(),
            after_in_child=only.wake,
        )
        changed.append(only.wake)
        only.wake()

    def wake(self) -> None:
        """A coordinator was connected or closed: write it, and see to it that this process has a writer."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._mutex, self._written = threading.Lock(), {}
            threading.Thread(target=self._run, name="holdfast-prometheus", daemon=True).start()
        self.write()

    def _run(self) -> None:
        ended = threading.Event()
        while not ended.wait(self._interval):
            self.write()

    def write(self) -> None:
        """Write what has changed."""
        mutex = self._mutex
        if not mutex.acquire(timeout=self._interval):
            return  # a signal has interrupted a writing: what is missing is written next time
        try:
            for metric, labels, found in samples(process_stats()):
                for values, value in found:
                    self._put(metric, labels, values, value)
        finally:
            mutex.release()

    def _put(self, metric: Metric, labels: tuple[str, ...], values: tuple[str, ...], value: Value) -> None:
        name, text = metric.name, metric.help
        if isinstance(value, Histogram):
            from prometheus_client.utils import floatToGoString

            for bound, count in zip((*value.bounds, float("inf")), value.counts, strict=True):
                bounded = (*values, floatToGoString(bound))
                self._add("histogram", name, f"{name}_bucket", (*labels, "le"), bounded, text, count)
            self._add("histogram", name, f"{name}_sum", labels, values, text, value.sum)
        elif metric.kind == "counter":
            self._add("counter", name, f"{name}_total", labels, values, text, value)
        else:
            mode = "livemin" if name == "holdfast_reachable" else "livesum"
            self._value("gauge", name, name, labels, values, text, mode).set(value)

    def _add(
        self, kind: str, metric: str, name: str, labels: tuple[str, ...], values: tuple[str, ...], text: str, now: float
    ) -> None:
        before = self._written.get((name, values))
        if before is None or now != before:
            self._value(kind, metric, name, labels, values, text).inc(now - (before or 0.0))
            self._written[name, values] = now

    def _value(
        self,
        kind: str,
        metric: str,
        name: str,
        labels: tuple[str, ...],
        values: tuple[str, ...],
        text: str,
        mode: str = "",
    ) -> Any:
        """The value of prometheus-client that its own metrics use: there is no other way to add several at once."""
        from prometheus_client.values import ValueClass

        found = self._values.get((name, values))
        if found is None:
            found = self._values[name, values] = ValueClass(
                kind, metric, name, labels, values, text, multiprocess_mode=mode
            )
        return found

"""What OpenTelemetry is given is what was counted: sums and gauges when it asks, histograms sample by sample."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.observe import meter
from holdfast.observe.histogram import RATIOS
from holdfast.observe.metric_table import METRICS, PROCESS_METRICS

sdk = pytest.importorskip("opentelemetry.sdk.metrics")

from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402

from holdfast.observe import opentelemetry  # noqa: E402


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(meter, "SINKS", [])
    monkeypatch.setattr(opentelemetry, "SINKS", meter.SINKS)
    found = InMemoryMetricReader()
    provider = sdk.MeterProvider([found])
    opentelemetry.export(provider)
    opentelemetry.export(provider)  # a second time does nothing
    return found


def points(reader: Any) -> dict[str, list[Any]]:
    [scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
    return {metric.name: list(metric.data.data_points) for metric in scope.metrics}


def of(found: list[Any], **attributes: str) -> Any:
    [point] = [each for each in found if attributes.items() <= dict(each.attributes).items()]
    return point


def test_what_is_given_is_what_was_counted(reader: Any) -> None:
    mine = {"engine": "memory", "family": "otel/*"}
    with holdfast.connect("memory://otel") as locks:
        with locks.lock("otel/7", ttl=10, renew=False, max_hold=9):
            assert locks.lock("otel/7").try_acquire() is None
            assert of(points(reader)["holdfast.held"], **mine).value == 1
        lease = locks.lock("otel/8").acquire()
        lease.renew()
        locks.evict("otel/8", lease.token)
        with pytest.raises(holdfast.LeaseLost):
            lease.renew()
        stats = locks.stats().families["otel/*"]
        found = points(reader)
        assert of(found["holdfast.acquisitions"], **mine, outcome="at_once").value == 2
        assert of(found["holdfast.acquisitions"], **mine, outcome="not_free").value == 1
        assert of(found["holdfast.losses"], **mine, reason="evicted").value == 1
        for name, histogram in {
            "wait_seconds": stats.wait_seconds,
            "wait_ttl_ratio": stats.wait_ratio,
            "hold_seconds": stats.hold_seconds,
            "hold_ttl_ratio": stats.hold_ratio,
            "left_ttl_ratio": stats.left_ratio,
            "hold_max_ratio": stats.max_hold_ratio,
        }.items():
            point = of(found[f"holdfast.{name}"], **mine)
            assert histogram.count > 0, name
            assert tuple(point.bucket_counts) == histogram.counts, name
            assert tuple(point.explicit_bounds) == histogram.bounds
            assert point.sum == pytest.approx(histogram.sum)
        assert of(found["holdfast.request_seconds"], engine="memory", verb="take").count == 2
        assert tuple(of(found["holdfast.hold_max_ratio"], **mine).explicit_bounds) == RATIOS


def test_every_sample_has_a_metric_and_a_sink_that_raises_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: set[str] = set()

    def sink(name: str, engine: str, label: str, value: float) -> None:
        seen.add(name)
        raise RuntimeError("an exporter's")

    monkeypatch.setattr(meter, "SINKS", [sink])
    with holdfast.connect("memory://sinks") as locks:
        with locks.lock("a", renew=False, max_hold=9) as lease:
            lease.renew()
        locks._core.observer.meter.late(0.1)  # type: ignore[union-attr]
    assert seen == {metric.name for metric in (*METRICS, *PROCESS_METRICS) if metric.kind == "histogram"}
    assert "could not be handed on" in caplog.text

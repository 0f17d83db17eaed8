"""Spans: acquire, hold and release of each lock, children of the caller's span, whatever ends them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends import open_engine
from holdfast.fenced import SQLiteFence
from holdfast.observe import opentelemetry, spans
from holdfast.observe.observer import Observer
from holdfast.sync.coordinator import Coordinator
from holdfast.testing import lose
from holdfast.testing.faults import FaultInjector, FaultyEngine

sdk: Any = pytest.importorskip("opentelemetry.sdk.trace")
api: Any = pytest.importorskip("opentelemetry.trace")

from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

ERROR, UNSET = api.StatusCode.ERROR, api.StatusCode.UNSET


class Traced:
    """A provider that keeps its spans."""

    def __init__(self) -> None:
        self.exporter: Any = InMemorySpanExporter()
        self.provider: Any = sdk.TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    def all(self, name: str = "") -> list[Any]:
        return [span for span in self.exporter.get_finished_spans() if span.name.startswith(name)]

    def one(self, name: str) -> Any:
        end = time.monotonic() + 60
        while not self.all(name):  # what the keeper ends, it ends beside itself
            assert time.monotonic() < end, [span.name for span in self.all()]
            time.sleep(0.01)
        [span] = self.all(name)
        return span


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    monkeypatch.setattr(Observer, "spans", None)  # as it was, afterwards
    found = Traced()
    opentelemetry.trace(found.provider)
    yield found
    recorder = Observer.spans
    assert isinstance(recorder, spans.SpanRecorder)
    assert not recorder._open, "a span was left open"


def until(look: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not look():
        assert time.monotonic() < end
        time.sleep(0.01)


def events(span: Any) -> list[str]:
    return [event.name.removeprefix("holdfast.") for event in span.events]


def beneath(traced: Traced, parent: Any) -> set[str]:
    return {span.name for span in traced.all() if span.parent is not None and span.parent == parent.get_span_context()}


def test_a_pair_with_threads(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks, traced.tracer.start_as_current_span("request") as request:
        with locks.lock(holdfast.Name("orders/{id}", id=7), ttl=10) as lease:
            assert api.get_current_span() is request
            lease.renew()
    acquire, hold, release = (traced.one(f"{step} orders/{{id}}") for step in ("acquire", "hold", "release"))
    assert beneath(traced, request) == {acquire.name, hold.name}
    assert beneath(traced, hold) == {release.name}
    assert [link.context for link in hold.links] == [acquire.context]
    assert events(hold) == ["renewed"]
    assert (acquire.kind, hold.kind) == (api.SpanKind.CLIENT, api.SpanKind.INTERNAL)
    assert dict(hold.attributes) == {
        "holdfast.engine": "memory",
        "holdfast.lock.name": "orders/7",
        "holdfast.lock.family": "orders/{id}",
        "holdfast.lock.mode": "lock",
        "holdfast.lock.owner": lease.owner,
        "holdfast.lock.token": lease.token,
        "holdfast.lock.ttl": 10,
    }
    assert acquire.attributes["holdfast.acquire.outcome"] == "at_once"
    assert acquire.end_time <= hold.start_time < release.start_time <= release.end_time == hold.end_time
    assert acquire.status.status_code is hold.status.status_code is UNSET


def test_a_pair_with_tasks_each_beneath_its_own_span(traced: Traced) -> None:
    async def one(locks: holdfast.aio.Coordinator, number: int) -> None:
        with traced.tracer.start_as_current_span(f"request {number}") as request:
            async with locks.lock("orders/*"):
                assert api.get_current_span() is request
            assert api.get_current_span() is request

    async def main() -> None:
        async with holdfast.aio.connect("memory://traced") as locks:
            await asyncio.gather(*(one(locks, number) for number in range(20)))
            assert not api.get_current_span().get_span_context().is_valid

    asyncio.run(main())
    for request in traced.all("request"):
        assert beneath(traced, request) == {"acquire orders/*", "hold orders/*"}
    assert len(traced.all("request")) == len(traced.all("release")) == 20


def test_the_time_in_line_is_that_of_the_span(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks:
        lease = locks.lock("door").acquire()
        waiter = threading.Thread(target=lambda: locks.lock("door").acquire().release())
        waiter.start()
        until(lambda: locks._core.admission.waiting)
        lease.release()
        waiter.join()
    [span] = [each for each in traced.all("acquire") if each.attributes["holdfast.acquire.outcome"] == "waited"]
    seconds = (span.end_time - span.start_time) / 1e9
    assert span.attributes["holdfast.acquire.waited"] == pytest.approx(seconds, abs=1e-6)
    first = min(traced.all("hold"), key=lambda each: each.start_time)
    assert first.start_time < span.start_time < first.end_time


def test_a_timeout_is_an_error_and_a_single_try_is_not(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks, holdfast.connect("memory://traced") as others:
        with locks.lock("door"):
            with pytest.raises(holdfast.NotAcquired):
                others.lock("door").acquire(timeout=0.05)
            assert others.lock("door").try_acquire() is None
    found = {span.attributes["holdfast.acquire.outcome"]: span for span in traced.all("acquire")}
    assert found.keys() == {"at_once", "timed_out", "not_free"}
    assert found["timed_out"].status.status_code is ERROR
    assert found["timed_out"].attributes["error.type"] == "NotAcquired"
    assert found["not_free"].status.status_code is UNSET
    assert len(traced.all("hold")) == 1


def test_a_cancelled_wait_is_a_span_of_its_own(traced: Traced) -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://traced") as locks, locks.lock("door"):
            waiter = asyncio.ensure_future(locks.lock("door").acquire())
            while not locks._core.admission.waiting:  # noqa: ASYNC110  nobody sets an event for it
                await asyncio.sleep(0.001)
            waiter.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiter

    asyncio.run(main())
    [span] = [each for each in traced.all("acquire") if each.attributes["holdfast.acquire.outcome"] == "cancelled"]
    assert span.status.status_code is UNSET
    assert span.attributes["holdfast.acquire.waited"] > 0


def test_jeopardy_recovery_and_being_asked_are_events(traced: Traced) -> None:
    faults = FaultInjector()
    engine = FaultyEngine(open_engine("memory://traced", "holdfast", 5.0), faults)
    with Coordinator(engine, 30.0, None, None) as locks:
        lease = locks.lock("door", ttl=3.0).acquire()
        faults.cut()
        until(lambda: lease.state is holdfast.State.JEOPARDY)
        faults.heal()
        until(lambda: lease.state is holdfast.State.HELD)
        lease._hold.heed()  # as a renewal does, on engines that can ask
        lease.release()
    hold = traced.one("hold door")
    assert [name for name in events(hold) if name != "renewed"] == ["jeopardy", "recovered", "asked"]
    assert hold.status.status_code is UNSET


@pytest.mark.parametrize("reason", ["expired", "evicted", "session"])
def test_a_loss_is_an_error_with_its_reason(traced: Traced, reason: str) -> None:
    with holdfast.connect("memory://traced") as locks:
        lease = locks.lock("door").acquire()
        lose(lease, reason)
        hold = traced.one("hold door")
        assert not lease.release()
    assert (events(hold), hold.status.status_code) == (["lost"], ERROR)
    assert hold.attributes["holdfast.lost.reason"] == reason
    assert hold.events[0].attributes == {"holdfast.reason": reason}
    assert not traced.all("release")


def test_a_release_that_the_engine_does_not_hear_of_is_an_error(traced: Traced) -> None:
    faults = FaultInjector()
    with Coordinator(FaultyEngine(open_engine("memory://traced", "holdfast", 5.0), faults), 30.0, None, None) as locks:
        lease = locks.lock("unheard").acquire()
        faults.cut()
        lease.release()
        release = traced.one("release unheard")
        assert (release.status.status_code, release.attributes["error.type"]) == (ERROR, "BackendUnavailable")
        with pytest.raises(holdfast.BackendUnavailable):
            locks.lock("other").acquire(timeout=0.05)
        assert traced.one("acquire other").attributes["holdfast.acquire.outcome"] == "failed"
        faults.heal()
    assert traced.one("hold unheard").status.status_code is UNSET


def test_a_dropped_lease_and_a_closed_coordinator_leave_no_span_open(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks:
        locks.lock("dropped", ttl=0.3).acquire()
        gc.collect()
        dropped = traced.one("hold dropped")
        kept = locks.lock("kept").acquire()
    assert dropped.attributes["holdfast.lost.reason"] == "dropped"
    assert traced.one("hold kept").attributes["holdfast.lost.reason"] == kept.reason == "closed"


def test_several_locks_at_once_are_several_holds(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks:
        with locks.lock_all([f"orders/{number}" for number in range(50)]) as leases:
            pass
    names = {span.attributes["holdfast.lock.name"] for span in traced.all("hold orders/*")}
    assert names == set(leases)
    assert len(traced.all("release orders/*")) == len(traced.all("acquire orders/*")) == 50


def test_once_has_spans_and_its_attempts_are_no_leak(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks:
        payments = locks.once("payments", keep=60, takeover="rerun")
        for number in range(3):
            with payments.attempt(f"order/{number}") as attempt:
                attempt.complete(number)
    assert len(traced.all("hold")) == 3
    assert len({span.name for span in traced.all("hold")}) == 1


def test_a_refusal_is_linked_to_the_holds_of_both_tokens(traced: Traced) -> None:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as bank:
        fence = SQLiteFence(bank)
        with holdfast.connect("memory://traced") as locks:
            zombie = locks.lock("account/7").acquire()
            locks.evict("account/7", zombie.token)
            with locks.lock("account/7") as successor:
                with fence.transaction("account/7", successor):
                    pass
            with traced.tracer.start_as_current_span("late") as late, pytest.raises(holdfast.FenceRejected):
                fence.claim("account/7", zombie)
            zombie.release()
        with pytest.raises(holdfast.FenceRejected):  # of a grant in another process nothing is known
            fence.claim("account/7", 3)
    refusal, foreign = traced.all("refuse sqlite")
    holds = {span.attributes["holdfast.lock.token"]: span.context for span in traced.all("hold")}
    assert {link.attributes["holdfast.fence.role"]: link.context for link in refusal.links} == {
        "refused": holds[zombie.token],
        "mark": holds[successor.token],
    }
    assert refusal.parent == late.get_span_context()
    assert refusal.status.status_code is ERROR
    assert [link.attributes["holdfast.fence.role"] for link in foreign.links] == ["mark"]


def test_an_attempt_that_came_too_late_is_linked_to_its_successor(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks:
        payments = locks.once("payments", keep=60, takeover="rerun")
        with contextlib.ExitStack() as stack:
            zombie = stack.enter_context(payments.attempt("order/7"))
            assert payments.forget("order/7", zombie.token)  # somebody was sure that it is dead
            with payments.attempt("order/7") as successor:
                tokens = zombie.token, successor.token
                successor.phase("begun")
                with pytest.raises(holdfast.FenceRejected):
                    zombie.phase("late")
                successor.complete()
            zombie.abandon()
    refusal = traced.all("refuse once")[0]
    holds = {span.attributes["holdfast.lock.token"]: span.context for span in traced.all("hold")}
    assert {link.attributes["holdfast.fence.role"]: link.context for link in refusal.links} == {
        "refused": holds[tokens[0]],
        "mark": holds[tokens[1]],
    }


def test_only_the_last_grants_are_remembered(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "KNOWN_COUNT", 3)
    with holdfast.connect("memory://traced") as locks:
        for number in range(9):
            with locks.lock(f"orders/{number}"):
                pass
    recorder = Observer.spans
    assert isinstance(recorder, spans.SpanRecorder)
    assert [name for name, _ in recorder._owners] == ["orders/6", "orders/7", "orders/8"]
    assert len(recorder._known) == 3


def test_spans_of_the_body_can_be_children_of_the_hold(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks, locks.lock("door") as lease:
        with traced.tracer.start_as_current_span("work", context=opentelemetry.context_of(lease)) as work:
            carried = opentelemetry.environment_of(lease)
    hold = traced.one("hold door")
    assert work.parent == hold.context
    given = api.get_current_span(opentelemetry.context_from(carried)).get_span_context()
    assert (given.trace_id, given.span_id) == (hold.context.trace_id, hold.context.span_id)
    assert set(carried) == {"TRACEPARENT"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_ends_no_span_of_its_parent(traced: Traced) -> None:
    with holdfast.connect("memory://traced") as locks:
        with locks.lock("door") as lease:
            child = os.fork()
            if not child:
                code = 1
                try:
                    assert lease.state is holdfast.State.LOST
                    recorder = Observer.spans
                    assert isinstance(recorder, spans.SpanRecorder)
                    assert not recorder._open
                    with locks.lock("in the child"):
                        pass
                    code = 0 if [span.name for span in traced.all("hold")] == ["hold in the child"] else 2
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert not traced.all("hold")
    assert traced.one("hold door").status.status_code is UNSET


def test_an_exporter_that_hangs_delays_no_loss_and_one_that_raises_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Observer, "spans", None)
    stuck, free = threading.Event(), threading.Event()

    class Hanging(SpanExporter):  # type: ignore[misc]  # the library's types are not looked at
        def export(self, spans: Any) -> SpanExportResult:
            if spans[0].name.startswith("hold"):
                stuck.set()
                free.wait(200)
            raise RuntimeError("a collector's")

    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Hanging()))
    opentelemetry.trace(provider)
    told: list[str] = []
    with holdfast.connect("memory://traced") as locks:
        leases = [
            locks.lock(name, ttl=1.0, renew=False, on_lost=lambda lease: told.append(lease.name)).acquire()
            for name in ("a", "b")
        ]
        assert stuck.wait(60)
        until(lambda: set(told) == {"a", "b"})  # while the exporter of the first one's span hangs
        free.set()
        assert [lease.reason for lease in leases] == ["expired", "expired"]


def test_no_password_is_in_a_span(traced: Traced) -> None:
    faults = FaultInjector()
    engine = FaultyEngine(open_engine("memory://traced", "holdfast", 5.0), faults)
    recorder = Observer.spans
    assert isinstance(recorder, spans.SpanRecorder)
    with Coordinator(engine, 30.0, None, None) as locks, locks.lock("door") as lease:
        claim = lease._hold.claim
        recorder.happened(claim, "jeopardy", {"reason": "cannot reach redis://app:s3cret@db/0"})
        error = holdfast.BackendUnavailable("cannot reach redis://app:s3cret@db/0")
        recorder.missed(claim, "redis", "door", 0.1, "failed", error)
    shown = "".join(span.to_json() for span in traced.all())
    assert "cannot reach redis://…@db/0" in shown.encode().decode("unicode_escape", "replace") or "@db/0" in shown
    assert "s3cret" not in shown


def test_nothing_is_imported_or_made_while_tracing_is_off() -> None:
    import subprocess
    import sys

    program = (
        "import sys, holdfast\n"
        "with holdfast.connect('memory://off') as locks, locks.lock('door'): pass\n"
        "assert not [name for name in sys.modules if 'opentelemetry' in name or name.endswith('observe.spans')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

"""What is logged: at INFO what an operator wants, at DEBUG each operation; fields, limits, and no secrets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.backends import open_engine
from holdfast.fenced.rejections import rejected
from holdfast.observe.event import Event
from holdfast.observe.lock_log import LockLog, without_passwords
from holdfast.observe.log_exception import log_exception
from holdfast.observe.log_limit import BURST_COUNT, RepeatFilter
from holdfast.sync.coordinator import Coordinator
from holdfast.testing.faults import FaultInjector, FaultyEngine


def until(look: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not look():
        assert time.monotonic() < end
        time.sleep(0.01)


def kinds(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["kind"] for record in caplog.records if record.name == "holdfast.lock"]


def test_each_operation_at_debug_with_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")
    with holdfast.connect("memory://logged") as locks:
        with locks.lock(holdfast.Name("orders/{id}", id=7), ttl=10) as lease:
            assert locks.lock("orders/7").try_acquire() is None
            lease.renew()
            until(lambda: "renewed" in kinds(caplog))
    assert kinds(caplog) == ["acquired", "timed_out", "renewed", "released"]
    acquired = caplog.records[0].__dict__
    assert {name: acquired[name] for name in ("lock", "family", "owner", "token", "ttl", "engine")} == {
        "lock": "orders/7", "family": "orders/{id}", "owner": lease.owner, "token": lease.token, "ttl": 10,
        "engine": "memory",
    }  # fmt: skip
    assert acquired["waited"] >= 0
    assert caplog.records[-1].__dict__["held"] >= 0
    assert caplog.records[0].getMessage().startswith(f"acquired 'orders/7' (token {lease.token}) after ")


def test_at_info_only_what_an_operator_wants(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast")
    faults = FaultInjector()
    engine = FaultyEngine(open_engine("memory://logged", "holdfast", 5.0), faults)
    with Coordinator(engine, 30.0, None, None) as locks:
        with locks.lock("quiet"):
            pass
        assert kinds(caplog) == []
        lease = locks.lock("door", ttl=1.0).acquire()
        faults.cut()
        until(lambda: lease.state is holdfast.State.LOST)
        faults.heal()
        until(lambda: "lost" in kinds(caplog))
        with locks.lock("door"):
            pass
        with locks.lock("a"), pytest.raises(holdfast.DeadlockDetected):
            locks.lock("a").acquire(timeout=30)
        evicted = locks.lock("evicted").acquire()
        locks.evict("evicted", evicted.token)
        with pytest.raises(holdfast.LeaseLost):
            evicted.renew()
        until(lambda: kinds(caplog).count("lost") == 2)
    assert [kind for kind in kinds(caplog) if kind != "recovered"] == [
        "unreachable", "jeopardy", "lost", "reachable", "deadlock", "lost",
    ]  # fmt: skip
    assert [each.__dict__["reason"] for each in caplog.records if each.__dict__["kind"] == "lost"] == [
        "expired",
        "evicted",
    ]


def test_the_same_for_asyncio(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")

    async def main() -> None:
        async with holdfast.aio.connect("memory://logged") as locks, locks.lock("door"):
            pass

    asyncio.run(main())
    assert kinds(caplog) == ["acquired", "released"]


def test_repeated_news_is_limited_and_the_next_line_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "holdfast")
    now = [100.0]
    monkeypatch.setattr("holdfast.observe.lock_log.time.monotonic", lambda: now[0])
    log = LockLog("redis")
    for number in range(50):
        log.write(Event("jeopardy", f"orders/{number}", "me", reason="timeout", family="orders/*"))
    log.write(Event("jeopardy", "other", "me", reason="timeout", family="other"))
    assert len(caplog.records) == BURST_COUNT + 1
    now[0] += 11
    log.write(Event("jeopardy", "orders/51", "me", reason="timeout", family="orders/*"))
    assert caplog.records[-1].__dict__["suppressed"] == 50 - BURST_COUNT
    assert caplog.messages[-1].endswith("(45 more like it were not logged)")


def test_a_zombie_in_a_loop_and_a_listener_that_always_raises_fill_no_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "holdfast")
    now = [100.0]
    monkeypatch.setattr("holdfast.observe.log_limit.time.monotonic", lambda: now[0])
    [only] = [each for each in logging.getLogger("holdfast").filters if isinstance(each, RepeatFilter)]
    monkeypatch.setattr(logging.getLogger("holdfast"), "filters", [RepeatFilter()])
    for _ in range(50):
        rejected("file", "/srv/ledger", 33, 34)
        rejected("file", "/srv/other", 33, 34)
        try:
            raise RuntimeError("a listener's")
        except RuntimeError:
            log_exception("the hook %r raised", only)
    assert [record.__dict__.get("resource") for record in caplog.records].count("/srv/ledger") == BURST_COUNT
    assert len(caplog.records) == 3 * BURST_COUNT
    now[0] += 11
    rejected("file", "/srv/ledger", 33, 34)
    assert caplog.messages[-1].endswith(f"its mark is 34 ({50 - BURST_COUNT} more like it were not logged)")


@pytest.mark.parametrize(
    "url",
    [
        "redis://app:s3cret@db/0",
        "postgresql://app:s3cret@db:5432/x",
        "redis://:s3cret@db",
        "etcd://u:s3/s3cret@db",
        "redis://app@db/0?ssl_password=s3cret&x=1",
        "postgresql://db/x?password=s3cret",
    ],
)
def test_no_secret_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast")
    LockLog("redis").write(Event("unreachable", "a", "me", reason=f"cannot\nreach {url}\nnow"))
    assert "s3" not in caplog.text + str(caplog.records[0].__dict__)
    assert "db" in caplog.messages[0]
    assert "\n" not in caplog.messages[0]
    assert without_passwords("see https://example.org/a for a@b") == "see https://example.org/a for a@b"


def test_a_handler_that_raises_harms_nothing() -> None:
    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("a filter of the user's")

    logger, broken = logging.getLogger("holdfast.lock"), Broken()
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addFilter(broken)
    try:
        with holdfast.connect("memory://logged") as locks, locks.lock("door") as lease:
            lease.check()
    finally:
        logger.removeFilter(broken)
        logger.setLevel(level)

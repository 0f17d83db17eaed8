"""The meter by itself: families, bounds, verdicts, threads, forks. Real engines: `holdfast.testing.promises.counts`."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest

import holdfast
from holdfast import Histogram, Misconfigured, Name
from holdfast.model import LockSpec
from holdfast.observe.families import MAX_FAMILIES_COUNT, OTHER, default_family
from holdfast.observe.histogram import RATIOS, SECONDS
from holdfast.observe.meter import NAMES_COUNT, FamilyCounts, Meter
from holdfast.observe.stats import FamilyStats, LockStats


def view(meter: Meter) -> LockStats:
    return meter.view([], [], {})


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("orders/7", "orders/*"),
        ("orders/7/lines/12", "orders/*/lines/*"),
        ("user:52eb0a60-1c7f-4a7a-9d0c-0a7f6d5f2b11", "user:*"),
        ("blob/deadbeef01", "blob/*"),
        ("reports/nightly", "reports/nightly"),
        ("facade/decade", "facade/decade"),
        ("v2/orders", "v2/orders"),
        ("7", "*"),
        ("order-7", "order-7"),
    ],
)
def test_the_family_of_a_plain_name(name: str, family: str) -> None:
    assert default_family(name) == family


def test_a_template_is_the_family_of_every_recipe() -> None:
    connected: Any = holdfast.connect("memory://templates")  # fields are no options to a type checker: `Name` is for it
    with connected as locks:
        with locks.lock("orders/{id}", id=7, ttl=5) as lease:
            assert lease.name == "orders/7"
            assert locks.lock("orders/7").try_acquire() is None  # the same name, another family
        with locks.reentrant("a/{x}", x="b"), locks.semaphore("s/{x}", x="b", permits=2):
            pass
        with locks.rwlock("rw/{x}", x=1).read(), locks.lock_all([Name("z/{x}", x=1), Name("y/{x}", x=1)]):
            pass
        locks.election("e/{x}", x=1).campaign().release()
        found = {family: stats.acquired for family, stats in locks.stats().families.items()}
    assert found == {
        **dict.fromkeys(["orders/{id}", "a/{x}", "s/{x}", "rw/{x}", "z/{x}", "y/{x}", "e/{x}"], 1),
        "orders/*": 0,
    }


@pytest.mark.parametrize(
    ("template", "fields", "says"),
    [
        ("orders/{id}/{part}", {"id": 7}, "'part', which was not given"),
        ("orders/{id}", {"id": 7, "tll": 5}, "'tll' is neither an option nor a field"),
        ("orders/{id}", {"id": "7/8"}, "one segment"),
        ("orders/{id}", {"id": ""}, "one segment"),
        ("orders/{id}", {"id": 1.5}, "not float"),
        ("orders/{id}", {"id": True}, "not bool"),
        ("orders/{id}", {"id": None}, "not NoneType"),
        ("orders/{id", {"id": 7}, "odd ones"),
        ("orders/{}", {"id": 7}, "odd ones"),
        ("orders/{id!r}", {"id": 7}, "odd ones"),
        ("orders/{id:04}", {"id": 7}, "odd ones"),
        ("orders/{id.x}", {"id": 7}, "odd ones"),
        ("orders/{id}", {"id": "a\nb"}, "control character"),
        ("orders/{id}", {"id": "x" * 600}, "bytes"),
        ("orders", {"id": 7}, "unknown option 'id'"),
    ],
)
def test_odd_templates_are_refused_before_anything_is_sent(template: str, fields: dict[str, object], says: str) -> None:
    with holdfast.connect("memory://templates") as locks:
        with pytest.raises(Misconfigured, match=says):
            locks.lock(template, **fields)  # type: ignore[arg-type]
        assert not locks.stats().families


def test_a_plain_name_with_braces_stays_a_name() -> None:
    with holdfast.connect("memory://templates") as locks, locks.lock("{user1}/x", ttl=5) as lease:
        assert lease.name == "{user1}/x"


def test_a_name_is_text_that_remembers_its_template() -> None:
    name = Name("orders/{id}", id=7)
    again = pickle.loads(pickle.dumps(name))
    assert (name, again, again.family) == ("orders/7", "orders/7", "orders/{id}")


def test_the_users_function_says_the_family_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    odd: dict[str, object] = {"a": "letters", "b": 7, "c": "", "d": "x" * 1000, "e": "a\nb"}

    def family(name: str) -> str:
        return odd[name]  # type: ignore[return-value]  # a user's function may do anything

    with holdfast.connect("memory://families", family=family) as locks:
        for name in (*odd, "raises"):
            with locks.lock(name):
                pass
        assert {family: of.acquired for family, of in locks.stats().families.items()} == {"letters": 1, OTHER: 5}
    assert "'raises'" in caplog.text
    with pytest.raises(Misconfigured, match="cannot be called"):
        holdfast.connect("memory://families", family="orders")  # type: ignore[arg-type]


def test_families_are_bounded_and_names_are_forgotten() -> None:
    meter = Meter("memory", threading.RLock(), lambda name: name)
    for number in range(NAMES_COUNT * 3):
        meter.granted(LockSpec(f"n{number}"), 0.0, True)
    families = view(meter).families
    assert len(families) == MAX_FAMILIES_COUNT + 1
    assert families[OTHER].acquired == NAMES_COUNT * 3 - MAX_FAMILIES_COUNT
    assert len(meter._of_name) <= NAMES_COUNT
    assert view(meter).total.acquired == NAMES_COUNT * 3


def test_attempts_and_actors_are_one_family_whatever_their_keys() -> None:
    with holdfast.connect("memory://keys") as locks:
        for number in range(3):
            with locks.once("pay", keep="1h", takeover="rerun").attempt(f"order-{number}") as attempt:
                attempt.complete(None)
        with locks.actors("accounts", lambda actor, message: None) as accounts:
            for number in range(3):
                accounts.ask(f"account-{number}", "hello", timeout=60)
        found = locks.stats().families
        assert found["once:pay:*"].acquired == 3
        assert [family for family in found if "account-" in family or "order-" in family] == []


def test_what_is_counted_is_what_is_shown() -> None:
    shown = {each.name for each in dataclasses.fields(FamilyStats)} - {"family", "held", "waiting"}
    assert set(FamilyCounts.__slots__) == shown


def test_no_count_of_many_threads_is_lost() -> None:
    meter, spec, threads_count, each = Meter("memory", threading.RLock()), LockSpec("a"), 8, 3000

    def count() -> None:
        for _ in range(each):
            meter.granted(spec, 0.001, True)
            meter.released(spec, 0.5, 0.001)

    threads = [threading.Thread(target=count) for _ in range(threads_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = view(meter).total
    assert counted.acquired == counted.released == counted.hold_seconds.count == threads_count * each
    assert counted.hold_seconds.sum == pytest.approx(threads_count * each * 0.5)


def test_every_limit_is_a_bound_and_verdicts_are_exact() -> None:
    empty = view(Meter("memory", threading.RLock())).verdicts
    assert [each.rule for each in empty] == ["acquisition", "contention", "hold", "timeouts", "refusals"]
    assert all(each.ok for each in empty)
    assert {each.limit for each in empty[:1]} | {0.2, 0.8} <= set(RATIOS)
    meter, spec = Meter("memory", threading.RLock()), LockSpec("a", ttl=10, renew=False)
    for number in range(100):
        meter.granted(spec, 4.99, at_once=number >= 30)
        meter.released(spec, 7.99, 0.0)
    assert all(each.ok for each in view(meter).verdicts)
    meter.granted(spec, 5.01, False)
    meter.granted(spec, 5.01, False)
    meter.released(spec, 8.01, 0.0)
    meter.released(spec, 8.01, 0.0)
    for _ in range(6):
        meter.count(spec, "timed_out")
    assert [each.rule for each in view(meter).verdicts if not each.ok] == [
        "acquisition", "contention", "hold", "timeouts",
    ]  # fmt: skip


def test_renewed_leases_are_judged_by_the_validity_left_and_by_max_hold() -> None:
    meter, spec = Meter("memory", threading.RLock()), LockSpec("a", ttl=10, max_hold=100)
    meter.released(spec, 79.0, 0.0)  # nearly eight ttls: it was renewed
    meter.renewed(spec, 6.5)
    assert all(each.ok for each in view(meter).verdicts)
    meter.renewed(spec, 1.5)
    assert [each.rule for each in view(meter).verdicts if not each.ok] == ["hold"]
    other = Meter("memory", threading.RLock())
    other.released(spec, 95.0, 0.0)
    assert [each.rule for each in view(other).verdicts if not each.ok] == ["hold"]


def test_stats_of_several_coordinators_add_up() -> None:
    one, other = Meter("redis", threading.RLock()), Meter("redis", threading.RLock())
    one.granted(LockSpec("a"), 0.1, True)
    one.lost(LockSpec("a"), 1.0, "expired")
    other.granted(LockSpec("a"), 0.1, False)
    other.granted(LockSpec("b"), 0.1, True)
    other.lost(LockSpec("a"), 1.0, "evicted")
    other.request("survey", 0.1)
    both = view(one) + view(other)
    assert {family: of.acquired for family, of in both.families.items()} == {"a": 2, "b": 1}
    assert both.families["a"].losses == {"evicted": 1, "expired": 1}
    assert {verb: of.count for verb, of in both.requests.items()} == {"take": 2, "release": 0, "survey": 1}
    assert sum([FamilyStats("x", acquired=1)], FamilyStats("y", acquired=2)).acquired == 3


def test_quantiles() -> None:
    assert Histogram(SECONDS, (0,) * (len(SECONDS) + 1), 0.0).quantile(0.5) is None
    assert Histogram((1.0, 2.0), (0, 10, 0), 15.0).quantile(0.5) == 1.5
    assert Histogram((1.0, 2.0), (0, 0, 1), 15.0).quantile(0.5) == 2.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_counts_from_zero() -> None:
    with holdfast.connect("memory://forked") as locks:
        with locks.lock("a"):
            pass
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            try:
                with locks.lock("b"):
                    families = ",".join(f"{family}={of.acquired}" for family, of in locks.stats().families.items())
                    os.write(write, families.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 100) == b"b=1"
        assert locks.stats().total.acquired == 1
        os.close(read)
        os.close(write)


def test_deadlocks_cancellations_and_refusals_are_counted() -> None:
    with holdfast.connect("memory://counted") as locks:
        with locks.lock("a"), pytest.raises(holdfast.DeadlockDetected):
            locks.lock("a").acquire(timeout=30)
        assert (locks.stats().total.deadlocks, locks.stats().total.timed_out) == (1, 0)
        locks.election("boss").campaign().release()
        assert locks.stats().families["boss"].elected == 1


def test_a_coordinator_that_is_collected_during_an_import_is_counted_and_raises_nothing() -> None:
    program = """
import gc, sys, types
import holdfast

locks = holdfast.connect("memory://dropped")
with locks.lock("door"):
    pass
raised = []
sys.unraisablehook = lambda unraisable: raised.append(unraisable.exc_value)
assert "holdfast.observe.stats" not in sys.modules
sys.modules["holdfast.observe.stats"] = types.ModuleType("holdfast.observe.stats")  # as far as it is imported
del locks
gc.collect()
del sys.modules["holdfast.observe.stats"]

from holdfast.observe.process import process_stats

assert not raised, raised
assert process_stats()["memory"].total.acquired == 1
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)

"""A program that does everything that alerts are about, and exports what it counts; the port is its argument.

Each scenario is what the page of its alert describes, with short times, over and over until the process is ended.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable

from prometheus_client import start_http_server

import holdfast
from holdfast.fenced import SQLiteFence
from holdfast.observe import prometheus
from holdfast.testing import FaultInjector, connect_faulty, granted, lose

URL = "memory://rehearsal"


def refused(locks: holdfast.Coordinator) -> None:
    """A zombie writes after its successor."""
    with sqlite3.connect(":memory:") as database:
        fence = SQLiteFence(database)
        with fence.transaction("account", granted("account", 34)):
            pass
        try:
            with fence.transaction("account", granted("account", 33)):
                pass
        except holdfast.FenceRejected:
            pass


def lost(locks: holdfast.Coordinator) -> None:
    """An engine ends a lease."""
    with locks.lock("lost", ttl=5) as lease:
        lose(lease, "expired")


def contended(locks: holdfast.Coordinator) -> None:
    """Several want the same; each waits for most of a ttl."""

    def work() -> None:
        with locks.lock("busy", ttl=0.5, timeout=30):
            time.sleep(0.2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def held_too_long(locks: holdfast.Coordinator) -> None:
    """Work that takes nearly all of a ttl that is not renewed."""
    with locks.lock("long", ttl=0.6, margin=0.01, renew=False):
        time.sleep(0.54)


def renewed_late(locks: holdfast.Coordinator) -> None:
    """An engine that answers renewals when a ttl is nearly over."""
    with locks.lock("late", ttl=1.0, margin=0.01) as lease:
        faults.hang()
        time.sleep(0.88)
        faults.heal()
        try:
            lease.renew()
        except holdfast.HoldfastError:
            pass


def timed_out(locks: holdfast.Coordinator) -> None:
    """A holder hangs, and others give up."""
    with holdfast.connect(URL) as others, others.lock("stuck", ttl=30):
        try:
            locks.lock("stuck").acquire(timeout=0.05)
        except holdfast.NotAcquired:
            time.sleep(0.2)


def unreachable(locks: holdfast.Coordinator) -> None:
    """The engine is away."""
    away.cut()
    try:
        cut_off.lock("a").try_acquire()
    except holdfast.BackendUnavailable:
        time.sleep(0.2)


def unrecovered(locks: holdfast.Coordinator) -> None:
    """Whoever comes after a holder that did not end cleanly fails to put things right."""

    def fail(lease: holdfast.Lease, predecessor: holdfast.Predecessor) -> None:
        raise ConnectionError("the ledger is away")

    lease = locks.lock("half-done", ttl=5, recover=lambda lease, predecessor: None).acquire()
    locks.evict("half-done", lease.token)
    try:
        locks.lock("half-done", recover=fail).acquire()
    except ConnectionError:
        time.sleep(0.2)


def bounded(locks: holdfast.Coordinator) -> None:
    """Work with a bound."""
    with locks.lock("bounded", ttl=1, max_hold=2):
        time.sleep(0.5)


SCENARIOS: tuple[Callable[[holdfast.Coordinator], None], ...] = (
    *(refused, lost, contended, held_too_long, timed_out, unreachable, unrecovered, bounded),
)


def play(scenario: Callable[[holdfast.Coordinator], None], locks: holdfast.Coordinator) -> None:
    while True:
        scenario(locks)
        time.sleep(0.05)


if __name__ == "__main__":
    faults, away = FaultInjector(), FaultInjector()
    prometheus.export()
    start_http_server(int(sys.argv[1]), "127.0.0.1")
    shared, slow, cut_off = holdfast.connect(URL), connect_faulty(faults), connect_faulty(away)
    for scenario in SCENARIOS:
        threading.Thread(target=play, args=(scenario, shared), daemon=True).start()
    threading.Thread(target=play, args=(renewed_late, slow), daemon=True).start()
    print("playing", flush=True)
    threading.Event().wait()

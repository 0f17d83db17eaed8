"""Experiments: how quick the engine is from here, and what it does to a holder that is stopped. With what to set.

1. Each is bounded in count and time; all names are random and are used by nobody else.
2. Proposals come from the slowest that was measured, not from the median: a lease ends by the exception.
3. The stopped holder is a process of its own: it takes a lock with a short ttl, is stopped (SIGSTOP), and goes on when
   somebody else holds the lock. It must say that it has lost it.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..clock import now
from ..errors import HoldfastError
from .finding import CheckResult, HealthFinding, failed, fine, found, unknown, warning
from .report import Measurement, Proposal

if TYPE_CHECKING:
    from .. import Coordinator, Lease

MEASURE_S = 2.0
WARM_UP_COUNT = 5
PAIR_COUNT = 200
HANDOFF_COUNT = 40
SLOW_HANDOFF_S = 0.25
STOPPED_TTL_S = 2.0
GRACE_S = 20.0
"""For everything that is not the ttl: the start of Python, and a machine that has other things to do."""
LEAST_TTL_S, USUAL_TTL_S = 1.0, 30.0
LEAST_REQUEST_TIMEOUT_S, USUAL_REQUEST_TIMEOUT_S = 0.5, 5.0
HOLDER = """
import sys, holdfast
with holdfast.connect(sys.argv[1], namespace="holdfast-doctor") as locks:
    lease = locks.lock(sys.argv[2], ttl=float(sys.argv[3])).acquire()
    print("held", flush=True)
    sys.stdin.readline()
    try:
        lease.check()
        print("valid", flush=True)
    except holdfast.LeaseLost:
        print("lost", flush=True)
"""


class Experiments:
    """One round of experiments, and what came of it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.measurements: list[Measurement] = []

    def run(self, locks: Coordinator, url: str) -> Iterator[HealthFinding]:
        for check_id, experiment in (
            ("experiment.round-trip", self._round_trip),
            ("experiment.hand-off", self._handoff),
        ):
            try:
                yield found(check_id, experiment(locks))
            except HoldfastError as error:
                yield found(check_id, unknown(str(error)))
        if "://" in url and not url.startswith("memory://") and hasattr(signal, "SIGSTOP"):
            yield found("experiment.stopped-holder", self._stopped_holder(locks, url))

    def proposals(self) -> Iterator[Proposal]:
        """Settings for this engine, from here."""
        if not self.measurements:
            return
        slowest = max(each.seconds["max"] for each in self.measurements if each.what in ("round trip", "pair"))
        shown = f"{slowest * 1000:.3g} ms, the slowest that was measured"
        request = max(LEAST_REQUEST_TIMEOUT_S, round_up(20 * slowest))
        proposed = min(request, USUAL_REQUEST_TIMEOUT_S) if request <= USUAL_REQUEST_TIMEOUT_S else request
        yield Proposal("request_timeout", proposed, f"20 times {shown}")
        least = max(LEAST_TTL_S, round_up(3 * proposed))
        yield Proposal("ttl", least, f"at least this: a lost renewal can be repeated twice. Else {USUAL_TTL_S:g}")
        yield Proposal(
            "margin", round_up(max(0.1, 5 * slowest)), f"5 times {shown}, to notice a loss before it happens"
        )

    def _round_trip(self, locks: Coordinator) -> CheckResult:
        self._say("measuring the round trip")
        name = _name()
        trips = self._measure("round trip", lambda: locks.survey(name, exact=True))
        self._say("measuring how long it takes to take a lock and release it")
        lock = locks.lock(name, ttl=30, timeout=30)

        def pair() -> None:
            with lock:
                pass

        pairs = self._measure("pair", pair)
        seen = (
            f"{_ms(trips.seconds['p50'])} (p99 {_ms(trips.seconds['p99'])}); a lock is taken and released in "
            f"{_ms(pairs.seconds['p50'])} (p99 {_ms(pairs.seconds['p99'])})"
        )
        slowest = max(trips.seconds["max"], pairs.seconds["max"])
        return warning(f"{seen}; the slowest took {_ms(slowest)}") if slowest > 0.5 else fine(seen)

    def _measure(self, what: str, call: Callable[[], object]) -> Measurement:
        taken: list[float] = []
        end = now() + MEASURE_S
        for turn in range(WARM_UP_COUNT + PAIR_COUNT):
            began = now()
            if began > end and taken:
                break
            call()
            if turn >= WARM_UP_COUNT or now() > end:
                taken.append(now() - began)
        return self._keep(what, taken)

    def _keep(self, what: str, taken: list[float]) -> Measurement:
        ordered = sorted(taken)
        seconds = {
            "p50": ordered[len(ordered) // 2],
            "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
            "max": ordered[-1],
        }
        self.measurements.append(Measurement(what, len(taken), seconds))
        return self.measurements[-1]

    def _handoff(self, locks: Coordinator) -> CheckResult:
        self._say("measuring the hand-off to somebody who waits")
        name, taken = _name(), list[float]()
        end = now() + 2 * MEASURE_S
        while len(taken) < HANDOFF_COUNT and (now() < end or not taken):
            taken.append(_hand_over(locks, name))
        kept = self._keep("hand-off", taken)
        seen = f"{_ms(kept.seconds['p50'])} (p99 {_ms(kept.seconds['p99'])})"
        return warning(seen) if kept.seconds["p50"] > SLOW_HANDOFF_S else fine(seen)

    def _stopped_holder(self, locks: Coordinator, url: str) -> CheckResult:
        self._say("stopping a holder for longer than its ttl")
        name = _name()
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, url, name, str(STOPPED_TTL_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout is not None
        try:
            if holder.stdout.readline().strip() != "held":
                return unknown("the process that was to hold the lock could not take it")
            os.kill(holder.pid, signal.SIGSTOP)
            stopped = now()
            try:
                with locks.lock(name, ttl=STOPPED_TTL_S, timeout=STOPPED_TTL_S + GRACE_S):
                    waited = now() - stopped
                    os.kill(holder.pid, signal.SIGCONT)
                    said = holder.communicate("\n", timeout=GRACE_S)[0].strip()
            except HoldfastError as error:
                return failed(f"nobody got its lock within {now() - stopped:.3g} s: {error}")
            if said != "lost":
                return failed(f"it said {said!r} about a lease that somebody else had been given")
            return fine(
                f"its lock with a ttl of {STOPPED_TTL_S:g} s was granted again after {waited:.3g} s, and it knew"
            )
        except subprocess.TimeoutExpired:
            return failed("it did not go on")
        finally:
            holder.kill()
            holder.communicate()


def _hand_over(locks: Coordinator, name: str) -> float:
    """Seconds from the release by this thread to the grant of another one."""
    granted: list[float] = []
    lease: Lease = locks.lock(name, ttl=30, timeout=30).acquire()

    def wait() -> None:
        with locks.lock(name, ttl=30, timeout=30):
            granted.append(now())

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    waits_until = now() + 5
    while now() < waits_until and not any(view.waiters for view in locks.survey(name, exact=True)):
        pass
    began = now()
    lease.release()
    waiter.join(60)
    if not granted:
        raise HoldfastError(f"a waiter for {name!r} was not granted within 60 s of the release")
    return max(0.0, granted[0] - began)


def round_up(seconds: float) -> float:
    """To one digit that people would write.

    >>> round_up(0.034), round_up(1.2), round_up(7.0)
    (0.05, 2.0, 10.0)
    """
    step = 0.01
    while True:
        for digit in (1, 2, 5):
            if seconds <= digit * step * (1 + 1e-9):
                return round(digit * step, 6)
        step *= 10


def _name() -> str:
    return f"experiment/{secrets.token_hex(8)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"

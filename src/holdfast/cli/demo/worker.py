"""One process of the demonstration: takes the lock, reads, checks its lease, computes, writes.

It tells each step as a line of JSON, with the time on the clock that all processes of the machine share. It uses
the lock correctly: it even checks its lease immediately before it writes.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from ... import Coordinator, connect
from ...clock import now
from ...errors import FenceRejected
from .ledger import ACCOUNT, Ledger


def report(kind: str, **facts: object) -> None:
    print(json.dumps({"at": now(), "kind": kind, **facts}), flush=True)


def wait_for_go() -> None:
    """Wait for the controller's message."""
    if not sys.stdin.readline():
        sys.exit("the controller has ended")


def book(locks: Coordinator, ledger: Ledger, amount: int, ttl: float, think: bool) -> bool:
    """Add to the account, under the lock. False if the fence refused."""
    lock = locks.lock(ACCOUNT, ttl=ttl, timeout=15)
    report("asks", ttl=ttl)
    lease = lock.try_acquire()
    if lease is None:
        report("waits")
        lease = lock.acquire()
    report("granted", token=lease.token)
    try:
        balance = ledger.read(lease)
        report("read", balance=balance, claimed=ledger.fenced)
        lease.check()
        report("checked", remaining=lease.remaining())
        if think:
            wait_for_go()
        ledger.write(lease, balance + amount)
        report("acknowledged", balance=balance, amount=amount)
        return True
    except FenceRejected as error:
        report("refused", token=error.token, mark=error.mark)
        return False
    finally:
        kept = lease.release()
        report("released" if kept else "late", reason=lease.reason)


def main(url: str, file: str, fenced: str, amount: str, ttl: str, think: str) -> None:
    logging.getLogger("holdfast").addHandler(logging.NullHandler())  # the timeline tells of a refusal
    ledger = Ledger(Path(file), fenced == "fenced")
    with connect(url) as locks:
        report("ready")
        wait_for_go()
        first = think == "think"
        while not book(locks, ledger, int(amount), float(ttl), first):
            first = False
    report("end")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The simulation to the byte: seeds are clean and busy, a seed is a story, and planted bugs of clients are found.

`python -m holdfast_sim --engine all --planted all` searches for each planted bug from seed 0; the table is in
`docs/adr/0063-simulated-to-the-byte.md`. Here some are found by a short search, or at known seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import pytest

from holdfast.errors import Misconfigured
from holdfast_sim.bytes.engines import ENGINES
from holdfast_sim.bytes.planted import CLIENT_BUGS, planted_client
from holdfast_sim.bytes.seed import run_bytes
from holdfast_sim.report import summary
from holdfast_sim.seeds import SeedTotals, find, run_all

SEED_COUNT = 20
LEAST_KIND_COUNT = 15
"""Kinds of faults that these seeds have."""
SOON_SEED_COUNT = 60
FOUND_SOON = (
    "redial-without-bound",
    "lost-create-is-forgotten",
    "idle-connection-used-without-a-look",
    "close-leaves-the-session",
    "failed-handshake-leaves-a-socket",
    "call-waits-for-the-redial",
    "idle-pooled-connection-used-without-a-look",
    "pool-gives-out-a-used-connection",
    "dial-without-bound",
    "watch-stream-left-open",
    "log-in-with-the-old-token",
    "every-word-is-a-grant",
    "idle-database-connection-used-without-a-look",
    "failed-log-in-leaves-a-socket",
    "idle-libpq-connection-used-without-a-look",
    "failed-attempt-leaves-a-socket",
    "connect-timeout-of-at-least-two-seconds",
    "error-of-libpq-comes-out",
    "prepared-before-is-an-error",
    *(
        f"{bug}@{engine}"
        for engine in ("mysql", "postgresql")
        for bug in (
            "handshake-without-bound",
            "call-waits-for-the-dial",
            "failed-dial-is-the-last",
            "late-row-taken-for-the-next",
            "close-leaves-the-listener",
        )
    ),
    *(
        f"{bug}@{engine}"
        for engine in ("mysql+session", "postgresql+session")
        for bug in (
            "two-claims-on-one-session",
            "errors-in-the-words-of-the-server",
            "ended-session-used-without-a-look",
            "close-leaves-the-sessions-at-rest",
            "session-per-waiter-piles-up",
        )
    ),
)
"""By a search of a few seeds from 0 on: at which one changes with every draw."""
FOUND_AT = {
    "looks-again-while-another-receives": 86,
    "greeting-without-bound": 4,
    "server-dialled-without-bound": 4,
    "each-piece-has-its-own-time": 27,
    "ended-connection-costs-a-request": 1,
    "reply-that-came-late-is-taken": 12,
    "push-to-another-is-taken": 3,
    "waiting-connection-is-lent": 4,
    "primary-of-before-is-dialled": 18,
    "forgotten-program-is-final": 0,
    "close-forgets-sockets": 0,
    "failed-log-in-keeps-its-socket": 4,
    "refused-log-in-is-final": 104,
    "every-refusal-is-misconfigured": 4,
    "forked-child-uses-the-connections": 27,
    "line-without-end": 10,
    "fail-over-of-a-cluster-is-not-followed": 114,
    "session-taken-up-without-sync": 416,
    "companions-without-a-session": 11037,
    "goodbye-to-one-server": 4002,
    "close-leaves-what-is-being-made@mysql": 363,
    "close-leaves-what-is-being-made@postgresql": 363,
    "close-leaves-what-is-being-made@mysql+session": 613,
    "close-leaves-what-is-being-made@postgresql+session": 1544,
    "changed-password-is-a-mistake": 101,
    "each-part-of-a-release-has-its-own-time@mysql+session": 2630,
    "next-one-in-before-the-loss-is-told@mysql+session": 38,
    "next-take-overtakes-the-unlock": 1514,
    "refused-unlock-is-dropped@mysql+session": 46,
    "granted-while-giving-up@mysql+session": 188,
    "seen-waiting-after-a-refusal@mysql+session": 16,
    "next-one-in-before-the-loss-is-told@postgresql+session": 62,
    "granted-while-giving-up@postgresql+session": 6,
}
"""A search would take too long."""


def told(engine: str, seed: int) -> str:
    lines: list[str] = []
    run_bytes(engine, seed, lambda when, who, what: lines.append(f"{when:.9f} {who} {what}"))
    return sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("engine", ENGINES)
def test_seeds_are_clean_and_busy(engine: str) -> None:
    totals = SeedTotals()
    for part in run_all(range(SEED_COUNT), jobs=1, engine=engine):
        totals.merge(part)
    assert not totals.broken, summary(totals, took=1.0, engine=engine)
    for kind, least in {
        "acquired": 8 * SEED_COUNT,
        "lost": 2,
        "not acquired": SEED_COUNT // 2,
        "cancelled": SEED_COUNT // 4,
        "fenced updates": 2 * SEED_COUNT,
        "got in again": 2 * SEED_COUNT,
    }.items():
        assert totals.counts.get(kind, 0) >= least, kind
    assert len(totals.faults) >= LEAST_KIND_COUNT, totals.faults


@pytest.mark.parametrize("engine", ENGINES)
def test_a_seed_is_a_story(engine: str) -> None:
    """Also in another process, where sets and dictionaries are in another order."""
    code = f"from tests.sim.test_bytes import told; print(told({engine!r}, 4))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told(engine, 4) == told(engine, 4) == other.stdout.strip()


@pytest.mark.parametrize("bug", FOUND_SOON)
def test_a_planted_bug_of_a_client_is_found_soon(bug: str) -> None:
    engine = CLIENT_BUGS[bug].engine
    outcome = find(bug, range(SOON_SEED_COUNT), jobs=1, engine=engine).found(bug)
    assert outcome is not None, f"not in {SOON_SEED_COUNT} seeds"
    assert not run_bytes(engine, outcome.seed).invariant


@pytest.mark.parametrize(("bug", "seed"), FOUND_AT.items())
def test_a_planted_bug_of_a_client_is_found(bug: str, seed: int) -> None:
    with planted_client(bug):
        outcome = run_bytes(CLIENT_BUGS[bug].engine, seed)
    assert outcome.invariant in CLIENT_BUGS[bug].invariants, outcome.story
    assert not run_bytes(CLIENT_BUGS[bug].engine, seed).invariant


def test_a_bug_that_nobody_knows_is_named() -> None:
    with pytest.raises(Misconfigured, match="no bug of a client is called 'gremlin'; there are: "):
        with planted_client("gremlin"):
            pass

"""Which faults a seed of the byte world has. Some seeds have none; the others mix a few kinds.

Some are sieges: servers are in trouble for longer than a ttl, while somebody holds for longer than that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from ..faults import FaultProfile

CONNECTION_FATES = ("refused", "unanswered", "silent", "reset", "half open", "byte by byte", "deaf")

SIEGE_RATIO = 0.15
BUSY_CLOSE_RATIO = 0.15


@dataclass(frozen=True, slots=True)
class ByteProfile(FaultProfile):
    """Ratios are per connection or piece; counts are for the whole seed. See `FaultProfile` for the rest."""

    fate_ratio: float = 0.0
    """The probability that a new connection has one of `fates`."""
    fates: tuple[str, ...] = ()
    cuts: int = 0
    """Times during which a process does not reach a machine."""
    ends: int = 0
    """How often a server ends all its connections."""
    hangs: int = 0
    stops_of_servers: int = 0
    wipes: int = 0
    """How often all servers stop at once, and come back with nothing, or with a backup."""
    full: int = 0
    """How often the servers have no room for more; refuse writes; refuse log-ins."""
    refused_writes: int = 0
    password_changes: int = 0
    forks: int = 0
    busy_closes: int = 0
    """How often a process closes its coordinator in the middle of its work."""
    lasting_s: tuple[float, float] = (0.2, 4.0)
    """How long a fault of servers lasts that is not over at once."""
    special: int = 0
    """Faults that only this engine has."""


def draw_byte_profile(chance: Random) -> ByteProfile:
    faults_end_at = chance.uniform(2.0, 6.0)
    cancel_ratio = chance.choice((0.0, 0.1, 0.4))
    request_timeout = chance.choice((0.5, 1.0, 1.5))
    if chance.random() < 0.1:
        return ByteProfile(faults_end_at, cancel_ratio=cancel_ratio, request_timeout=request_timeout)

    def now_and_then(*values: float) -> float:
        return chance.choice(values) if chance.random() < 0.4 else 0

    def some(most: int, how_often: float = 0.3) -> int:
        return chance.randint(1, most) if chance.random() < how_often else 0

    return ByteProfile(
        faults_end_at,
        latency=chance.choice((0.0005, 0.002, 0.01)),
        request_timeout=request_timeout,
        tail=now_and_then(0.01, 0.05),
        stops=some(3),
        mean_steps_between_pauses=int(now_and_then(100, 400)),
        crashes=some(1, 0.2),
        calendar_jumps=some(2),
        evictions=some(3),
        cancel_ratio=cancel_ratio,
        fate_ratio=now_and_then(0.1, 0.3, 0.6) or now_and_then(0.2),
        fates=tuple(chance.sample(CONNECTION_FATES, chance.randint(1, 3))),
        cuts=some(3),
        ends=some(3),
        hangs=some(2),
        stops_of_servers=some(2),
        wipes=some(1, 0.1),
        special=some(3, 0.5),
    )


def with_busy_close(profile: ByteProfile, chance: Random) -> ByteProfile:
    """Some seeds, also among those without faults, have a process that closes while it is busy."""
    return replace(profile, busy_closes=1) if chance.random() < BUSY_CLOSE_RATIO else profile


def with_shared_faults(profile: ByteProfile, chance: Random) -> ByteProfile:
    """The faults of servers and processes that engines have in common; none in a seed without faults."""
    if not profile.fates:
        return profile
    rare = (0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    more = replace(
        profile,
        full=chance.choice(rare),
        refused_writes=chance.choice(rare),
        password_changes=chance.choice(rare),
        forks=chance.choice(rare),
    )
    if chance.random() >= SIEGE_RATIO:
        return more
    return replace(
        more,
        faults_end_at=chance.uniform(8.0, 12.0),
        special=chance.randint(1, 3),
        long_hold_ratio=0.5,
        lasting_s=(3.0, 7.0),
    )

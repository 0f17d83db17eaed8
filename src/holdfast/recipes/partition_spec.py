"""What a partition is called, and how its names and keys are read.

1. A partition NAME of 64 shards consists of ordinary names. `NAME/members/64` is held by all members together, each
   with its weight; `NAME/shards/64/7` is a mutex, and its holder owns shard 7.
2. An engine that has mutexes only (session locks, Redlock) has a name for each member instead:
   `NAME/members/64/WEIGHT/ID`.
3. A member's id is the part of an owner id that all claims of one coordinator have in common. So a coordinator is one
   member, and whose a shard is can be seen from its holder.
4. The number of shards is part of every name: members with another number have other names, and are seen all the same.
5. A key's shard is the BLAKE2b digest of 8 bytes of its UTF-8, as a big-endian number, modulo the number of shards:
   the same in every process, on every machine and in every version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import Misconfigured
from ..model import SHARED_CAPACITY, ClaimView, LockSpec, LockView, check_name, check_seconds
from ..ports import AnyBackend, Surveys
from .limiter import Rate

MAX_SHARDS_COUNT = 1 << 17
MAX_WEIGHT_COUNT = 1000
MEMBER_MODE = "member"
SHARD_MODE = "shard"
ID_EXAMPLE = "0" * 16


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as others see it: `claim` says where it runs and since when."""

    id: str
    weight: int
    shards: int
    """The number of shards of the partition, as this member has it."""
    claim: ClaimView


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the engine shows it."""

    name: str
    members: tuple[MemberView, ...]
    owners: dict[tuple[int, int], ClaimView]
    """Who holds which shard: by the number of shards and the shard."""

    def owner_ids(self, shards: int) -> dict[int, str]:
        """The id of the member that owns each shard; those of another number of shards are left out."""
        return {shard: member_id(claim.owner) for (count, shard), claim in self.owners.items() if count == shards}

    def counts(self) -> set[int]:
        """The numbers of shards that live members and held shards have: one, if all is well."""
        return {member.shards for member in self.members} | {count for count, _ in self.owners}


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What a member has been given: checked before anything is sent."""

    name: str
    shards: int
    weight: int
    ttl: float
    drain: float
    moves: Rate | None
    shared: bool
    """Whether all members hold one name together (rule 1), or one each (rule 2)."""

    @property
    def members_name(self) -> str:
        """Rule 1; the names of rule 2 begin with it and a slash."""
        return f"{self.name}/members/{self.shards}"

    def member_lock(self, member: str) -> LockSpec:
        """What a member holds for as long as it is one."""
        if self.shared:
            return LockSpec(
                self.members_name, ttl=self.ttl, weight=self.weight, capacity=SHARED_CAPACITY, mode=MEMBER_MODE
            )
        return LockSpec(f"{self.members_name}/{self.weight}/{member}", ttl=self.ttl, mode=MEMBER_MODE)

    def shard_lock(self, shard: int) -> LockSpec:
        """What its owner holds. As a leader, it is told of a loss a third of the ttl before the next one can start."""
        return LockSpec(self.shard_name(shard), ttl=self.ttl, margin=self.ttl / 3, mode=SHARD_MODE)

    def shard_name(self, shard: int) -> str:
        """The name of a shard's lock."""
        return f"{self.name}/shards/{self.shards}/{shard}"

    def shard_of(self, key: str | bytes) -> int:
        """Rule 5."""
        return shard_of(key, self.shards)


def shard_of(key: str | bytes, shards: int) -> int:
    """The shard of a key (rule 5).

    >>> shard_of("orders/99999", 64), shard_of(b"orders/99999", 64), shard_of("", 64)
    (62, 62, 52)
    """
    from hashlib import blake2b  # not at the top: `import holdfast` stays light

    if isinstance(key, str):
        try:
            key = key.encode()
        except UnicodeEncodeError:
            raise Misconfigured(f"the key {key[:40]!r} is not valid Unicode (a lone surrogate); give bytes") from None
    elif not isinstance(key, bytes):
        raise Misconfigured(f"a key is a str or bytes, not {type(key).__name__}: {key!r}")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") % shards


def check_partition(
    backend: AnyBackend,
    name: str,
    shards: int,
    weight: int,
    ttl: float,
    drain: float | None,
    moves: str | None,
) -> PartitionSpec:
    """What was asked for, if it can be had on this engine; raises `Misconfigured`."""
    check_name(name, "name of a partition")
    for what, value, most in (("shards", shards, MAX_SHARDS_COUNT), ("weight", weight, MAX_WEIGHT_COUNT)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise Misconfigured(f"{what} of the partition {name!r} is a whole number from 1 to {most}, not {value!r}")
    check_seconds("ttl", ttl, name, above=0)
    if ttl < backend.least_ttl:
        raise Misconfigured(
            f"ttl of the partition {name!r} is {ttl:g} s; {backend.scheme} keeps no less than {backend.least_ttl:g} s"
        )
    if drain is None:
        drain = ttl
    check_seconds("drain", drain, name)
    if not isinstance(backend, Surveys):
        raise Misconfigured(
            f"{backend.scheme} cannot be surveyed, so the members of the partition {name!r} could not see each other; "
            "use an engine that can"
        )
    rate = None if moves is None else Rate.parse(name, moves, None)
    spec = PartitionSpec(name, shards, weight, ttl, drain, rate, "shared" in backend.promises)
    for longest in (spec.shard_name(shards - 1), f"{spec.members_name}/{weight}/{ID_EXAMPLE}"):
        check_name(longest, "name of a partition, with what is added for its shards and members,")
    return spec


def member_id(owner: str) -> str:
    """Rule 3: an owner id is the coordinator's own part, a dash, and a number."""
    return owner.rpartition("-")[0]


_MEMBERS = re.compile(r"(.+)/members/([0-9]+)(?:/([0-9]+)/[^/]+)?")
_SHARD = re.compile(r"(.+)/shards/([0-9]+)/([0-9]+)")


def read_partitions(views: Iterable[LockView]) -> list[Partition]:
    """All partitions among the names of a survey, in order."""
    members: dict[str, list[MemberView]] = {}
    owners: dict[str, dict[tuple[int, int], ClaimView]] = {}
    for view in views:
        for claim in view.holders:
            if not claim.live:
                continue
            if claim.mode == SHARD_MODE and (found := _SHARD.fullmatch(view.name)) is not None:
                owners.setdefault(found[1], {})[int(found[2]), int(found[3])] = claim
            elif claim.mode == MEMBER_MODE and (found := _MEMBERS.fullmatch(view.name)) is not None:
                weight = claim.weight if found[3] is None else int(found[3])
                member = MemberView(member_id(claim.owner), weight, int(found[2]), claim)
                members.setdefault(found[1], []).append(member)
    return [
        Partition(name, tuple(sorted(members.get(name, ()), key=lambda each: each.id)), owners.get(name, {}))
        for name in sorted({*members, *owners})
    ]


def read_partition(name: str, views: Iterable[LockView]) -> Partition:
    """The one of this name; empty if there is nothing of it."""
    for found in read_partitions(views):
        if found.name == name:
            return found
    return Partition(name, (), {})

"""One member of a partition, as flows: it joins, looks at the others, takes free shards, and gives up what is too much.

Invariants, and what each rests on:

1. A shard has one owner at a time, and each owner a larger token than the one before: it is a mutex, and nothing else
   decides. What a former owner writes late is refused by the fence that it is given the lease for.
2. The old owner has ended before the next one starts: it is told to drain first, and releases when it has (or at the
   deadline). Whoever cannot be told loses the lease a third of the ttl before anybody else can have it.
3. Members with different numbers of shards never own shards together. A member joins first and looks then, so of two
   at least one sees the other, and refuses to go on. A shard that was taken is kept only if the membership was still
   valid after that: so whoever looks later sees the membership, or the shard.
4. Every shard is owned in the end, by members with equal shares: each looks at the members now and then, and at all
   shards for as long as something is amiss; see `partition_plan` for who takes and gives what.
5. In a stable group a look is one read. Where it takes long, it is done less often (twice in a ttl at least), so that
   looking is a tenth of the time at most. All shards are read once in `ALL_LOOKS_COUNT` looks, or in as many as there
   are members, for the case that members saw different things and each leaves a shard to another: so a group together
   reads them as often as one member looks. A member that has its share reads them no more often, either, after
   `OTHERS_LOOKS_COUNT` looks without a move: a shard that nobody can start, or a long drain, must not cost all members.
6. A member that loses a shard of a group that was settled takes it again, although after the loss it may look as if the
   shard were another one's, whose turn it is by its id: that one is at rest, and does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .._core.coordinator_core import CoordinatorCore
from .._core.flow import NOW, RANDOM, Flow
from .._core.lease import NEVER, Hold
from ..errors import Misconfigured, NotAcquired
from ..model import ClaimView, LockView, State
from ..ports import AnyBackend, Surveys
from .partition_plan import ShardPlan, make_plan
from .partition_spec import MemberView, PartitionSpec, read_partition

LEAST_LOOK_S, MOST_LOOK_S = 0.05, 2.0
"""A member looks at the others every tenth of the ttl, within these bounds."""
ALL_LOOKS_COUNT = 20
OTHERS_LOOKS_COUNT = 10


class Member:
    """The state of one member. Its flows run one after the other."""

    def __init__(self, core: CoordinatorCore, spec: PartitionSpec) -> None:
        self.core = core
        self.spec = spec
        self.id = core.client_id
        self.own: dict[int, Hold] = {}
        """What it holds, in the order of acquisition: also what is being drained."""
        self.draining: set[int] = set()
        self.avoided: dict[int, float] = {}
        """Shards that it does not take again before that time: the user could not start them, or has released them."""
        self.busy: Collection[int] = ()
        """Shards that it leaves alone, because it has not ended the work on them."""
        self.pause = min(MOST_LOOK_S, max(LEAST_LOOK_S, spec.ttl / 10))
        """Between two looks, seconds."""
        self.more_at = NEVER
        """When `moves` allows to give up another shard, if there is one to give up."""
        self._next_move = 0.0
        self._hold: Hold | None = None
        self._quota: int | None = None
        self._members: dict[str, int] = {}
        """With their weights, at the last look."""
        self._settled = False
        """Whether all shards were where they should be when they were last read."""
        self._rest: tuple[dict[str, int], int] = ({}, 0)
        """The members and this one's quota when that was last so."""
        self._owned: Mapping[str, int] = {}
        self._free: Collection[int] = ()
        """How many shards each member had, and which were free, when they were last read."""
        self._quiet = 0
        """The looks since something has moved, or this member had to take or to give up something."""

    def join(self, actor: str) -> Flow[None]:
        """Become a member; refused while members with another number of shards live."""
        spec = self.spec
        try:
            hold = yield from self.core.obtain(spec.member_lock(self.id), 0, actor)
        except NotAcquired as error:
            if not spec.shared:
                return  # its former membership has not ended yet
            raise Misconfigured(
                f"there is no room for another member of weight {spec.weight} in the partition {spec.name!r}: "
                "the weights of all members are too large together; use smaller ones"
            ) from error
        self._hold = hold
        self._look_at_all()
        try:
            members = yield from _survey(self.core.backend, f"{spec.name}/members/")
            owners = yield from _survey(self.core.backend, f"{spec.name}/shards/")
            if others := read_partition(spec.name, [*members, *owners]).counts() - {spec.shards}:
                raise Misconfigured(
                    f"the partition {spec.name!r} has {min(others)} shards, and this member was given {spec.shards}; "
                    "to change the number, stop all members, wait for a ttl, and start them with the new number"
                )
        except Exception:
            yield from self.withdraw()
            raise

    def step(self, actor: str) -> Flow[float]:
        """Look, and take what is wanted. Answers in how many seconds to look again; `surplus` is what to give up."""
        began: float = yield NOW
        yield from self.drop_lost()
        if self._hold is None:
            yield from self.join(actor)
        weights = {each.id: each.weight for each in (yield from read_members(self.core.backend, self.spec))}
        taken = 0
        if weights != self._members:
            self._members, self._quiet, self._settled = weights, 0, False
        if self.id in weights and self._all_due():
            plan = make_plan(weights, (yield from self._owners()), self.spec.shards)
            quota = plan.quotas[self.id]
            if plan.free and weights == self._rest[0]:  # rule 6
                quota = max(quota, self._rest[1])
            self._quota = quota
            taken = yield from self._take(plan, quota, actor, began)
            moved = plan.owned != self._owned
            self._owned, self._free = plan.owned, frozenset(plan.free)
            self._settled = plan.settled
            if plan.settled:
                self._rest = (weights, quota)
            elif moved or len(self.own) != quota or self.draining:
                self._quiet = 0
        self._quiet += 1
        now: float = yield NOW
        chance: float = yield RANDOM
        if taken:
            return LEAST_LOOK_S
        return max(self.pause, min(10 * (now - began), self.spec.ttl / 2)) * (0.75 + chance / 2)

    def _all_due(self) -> bool:
        """Whether it is time to read all shards (rule 5)."""
        at_rest = self._settled or self._quiet > OTHERS_LOOKS_COUNT
        return not at_rest or self._quiet % max(ALL_LOOKS_COUNT, len(self._members)) == 0

    def _owners(self) -> Flow[dict[int, str]]:
        """Who owns each shard. Of its own it knows without being told."""
        views = yield from _survey(self.core.backend, f"{self.spec.name}/shards/{self.spec.shards}/")
        owners = read_partition(self.spec.name, views).owner_ids(self.spec.shards)
        owners = {shard: owner for shard, owner in owners.items() if shard < self.spec.shards and owner != self.id}
        return owners | dict.fromkeys(self.own, self.id)

    def _take(self, plan: ShardPlan, quota: int, actor: str, now: float) -> Flow[int]:
        """Take free shards up to the quota; answers how many.

        After a pause, or as long as the look has taken, it is time to look again: whether it is to stop, has drained
        something, or what is left for it.
        """
        missing = quota - len(self.own) + len(self.draining)
        looked: float = yield NOW
        end = looked + max(self.pause, looked - now)
        self.avoided = {shard: until for shard, until in self.avoided.items() if until > now}
        taken = 0
        for shard in plan.wanted(self.id, missing, self._free) if missing > 0 else ():
            if shard in self.avoided or shard in self.busy:
                continue
            try:
                hold = yield from self.core.obtain(self.spec.shard_lock(shard), 0, actor)
            except NotAcquired:
                continue  # another was faster: the next look shows what is left
            self.own[shard] = hold
            taken += 1
            at: float = yield NOW
            if self._hold is None or self._hold.over(at) is not None:  # rule 3
                yield from self.release([shard])
                break
            if at >= end:
                break
        return taken

    def surplus(self, now: float) -> list[int]:
        """What to drain and release, no faster than `moves` allows: what was taken last. They count as draining now.

        `more_at` is when there may be more.
        """
        kept = [shard for shard in self.own if shard not in self.draining]
        extra = kept[len(kept) if self._quota is None else self._quota :][::-1]
        self.more_at = NEVER
        if (moves := self.spec.moves) is not None and extra:
            due = now >= self._next_move
            if due:
                self._next_move = now + moves.interval
            if len(extra) > due:
                self.more_at = self._next_move
            extra = extra[:due]
        self.draining.update(extra)
        return extra

    def release(self, shards: Collection[int]) -> Flow[None]:
        """Give up shards: their next owners may start."""
        self.draining.difference_update(shards)
        self._look_at_all()
        yield from self.core.let_go_each([self.own.pop(shard) for shard in shards if shard in self.own])

    def drop_lost(self) -> Flow[None]:
        """Put an end to what has been lost, or was released by the user. Whoever listens has been told."""
        if self._hold is not None and not self._hold.alive:
            yield from self.withdraw()
        now: float = yield NOW
        ended = [shard for shard, hold in self.own.items() if not hold.alive]
        for shard in ended:
            if self.own[shard].state is State.RELEASED:  # by the user, who does not want it now
                self.avoided[shard] = now + self.spec.ttl
        if ended:
            yield from self.release(ended)

    def withdraw(self) -> Flow[None]:
        """Be no member any more: others may take what it owns as soon as it is released."""
        hold, self._hold = self._hold, None
        if hold is not None:
            yield from self.core.let_go(hold)

    def _look_at_all(self) -> None:
        """At the next look, and until all is settled."""
        self._settled, self._quiet = False, 0


def read_members(backend: AnyBackend, spec: PartitionSpec) -> Flow[tuple[MemberView, ...]]:
    """The live members with this number of shards, in the order of their ids."""
    if spec.shared:
        views = yield from _survey(backend, spec.members_name, exact=True)
    else:
        views = yield from _survey(backend, f"{spec.members_name}/")
    members = read_partition(spec.name, views).members
    return tuple(each for each in members if each.shards == spec.shards)


def read_owner(backend: AnyBackend, spec: PartitionSpec, shard: int) -> Flow[ClaimView | None]:
    """Who owns a shard at this moment: one read."""
    views = yield from _survey(backend, spec.shard_name(shard), exact=True)
    return read_partition(spec.name, views).owners.get((spec.shards, shard))


def _survey(backend: AnyBackend, prefix: str, exact: bool = False) -> Flow[list[LockView]]:
    assert isinstance(backend, Surveys), "checked when the partition was made"
    views = yield from backend.survey(prefix, exact)
    return [view for view in views if view.name == prefix] if exact else views

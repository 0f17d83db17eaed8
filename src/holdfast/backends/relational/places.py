"""The places of those who wait in one coordinator: kept, and given up, many in one request.

1. A waiter looks when its look is due, and takes along those whose last look was a while ago. So most find, when their
   look is due, that their place was kept: they are told what that look has shown, and how old it is, for their patience
   counts from then.
2. Who looks because a hold may have ended, who is alone, and who was not found waiting asks by itself, as it does when
   it comes: that may grant.
3. Who comes while many are coming comes with others, in the order of their calls, once a push can reach them. If
   somebody among them cannot come, each does so by itself.
4. Who gives up goes with all who do so meanwhile. Whoever waits in here, and is granted by that or by a look, is told
   by the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NOW, Flow
from ...model import Claim
from ..connections.batching import Batching
from ..queue_backend import Taken, patience
from .batch import LeaveAll, Left, LookAll, Looked
from .replies import Pushes

MOST_COUNT = 250
"""So many in one request: for as long as it takes nobody else is served on these names."""
MOST_JOINING_COUNT = 64
"""So many who come: that is more work."""
BUSY_COUNT = 64
"""So many come by themselves, at the same time. A connection takes no more than that, so others would wait anyway."""
LOOKS_RATIO = 1 / 3
"""A look is due after this part of the patience, unless the server wants one earlier."""
ROUNDED_S = 0.001
"""By less than this may a server's third be shorter than ours; and what is due by then is due."""
TAKEN_ALONG_RATIO = LOOKS_RATIO / 2


class WaitingPlace:
    """One that waits."""

    __slots__ = ("claim", "kept_at", "looked", "sent")

    def __init__(self, claim: Claim, taken: Taken, now: float) -> None:
        self.claim = claim
        self.looked = taken
        self.kept_at = now
        """About when its place was kept last, by its own look or another's."""
        self.sent: float | None = None
        """When the look of others was sent that has kept it; None if its own did."""


class Places:
    """`ask` carries out one request; `deliver` is told whom the replies say to have been granted."""

    def __init__(
        self,
        ask: Callable[[LookAll | LeaveAll, float], Flow[Looked | Left]],
        deliver: Callable[[Pushes], None],
        rouse: Callable[[str], None],
        join_all: Callable[[Sequence[Claim], float], Flow[Sequence[Taken | None]]],
    ) -> None:
        """`rouse` has an owner ask by itself; `join_all` carries out takes (rule 3)."""
        self._ask, self._deliver, self._rouse = ask, deliver, rouse
        self._places: dict[str, WaitingPlace] = {}
        """Those kept longest ago are first."""
        self._looks: Batching[Claim, Taken | None] = Batching(self._look_all, MOST_COUNT)
        self._leaves: Batching[Claim, bool] = Batching(self._leave_all, MOST_COUNT)
        self._joins: Batching[Claim, Taken | None] = Batching(join_all, MOST_JOINING_COUNT)
        self.coming_count = 0
        """So many come by themselves at the moment."""

    def __contains__(self, owner: str) -> bool:
        return owner in self._places

    def enter(self, claim: Claim, taken: Taken) -> Flow[None]:
        """It was found waiting, by its own request."""
        self._places.pop(claim.owner, None)
        self._places[claim.owner] = WaitingPlace(claim, taken, (yield NOW))

    def forget(self, owner: str) -> None:
        self._places.pop(owner, None)

    @property
    def crowded(self) -> bool:
        """Whether one that comes had better come with others."""
        return self._joins.active or self.coming_count >= BUSY_COUNT

    def join(self, claim: Claim, deadline: float) -> Flow[Taken | None]:
        """The reply to a take; None: it has to ask by itself."""
        return self._joins.call(claim, deadline)

    def look(self, claim: Claim, deadline: float) -> Flow[Taken | None]:
        """What a look shows of one that waits; None: it has to ask by itself (rule 2)."""
        place = self._places[claim.owner]
        if place.sent is not None:
            age = (yield NOW) - place.sent
            if age < place.looked.look_again - ROUNDED_S:
                return _aged(place.looked, age)
        if len(self._places) == 1 or place.looked.look_again < patience(claim.spec) * LOOKS_RATIO - ROUNDED_S:
            return None
        return (yield from self._looks.call(claim, deadline))

    def leave(self, claim: Claim, deadline: float) -> Flow[bool]:
        return self._leaves.call(claim, deadline)

    def _look_all(self, claims: Sequence[Claim], deadline: float) -> Flow[Sequence[Taken | None]]:
        sent: float = yield NOW
        everybody = [*claims, *self._taken_along({claim.owner for claim in claims}, sent)]
        said = yield from self._ask(LookAll(everybody), deadline)
        assert isinstance(said, Looked)
        self._deliver(said.pushes)
        now: float = yield NOW
        for claim, taken in zip(everybody, said.taken, strict=True):
            place = self._places.pop(claim.owner, None)
            if place is None:
                continue  # it has ended meanwhile
            if taken is None:
                self._rouse(claim.owner)
                continue
            self._places[claim.owner] = place
            place.looked, place.sent, place.kept_at = taken, sent, sent
        return [taken and _aged(taken, now - sent) for taken in said.taken[: len(claims)]]

    def _taken_along(self, due: set[str], now: float) -> list[Claim]:
        found: list[Claim] = []
        for owner, place in self._places.items():
            old = now - place.kept_at > patience(place.claim.spec) * TAKEN_ALONG_RATIO
            if not old or len(due) + len(found) >= MOST_COUNT:
                break
            if owner not in due:
                found.append(place.claim)
        return found

    def _leave_all(self, claims: Sequence[Claim], deadline: float) -> Flow[Sequence[bool]]:
        said = yield from self._ask(LeaveAll(claims), deadline)
        assert isinstance(said, Left)
        self._deliver(said.pushes)
        return said.held


def _aged(taken: Taken, age: float) -> Taken:
    return Taken(0, max(0.0, taken.look_again - age), taken.ahead, mark=taken.mark, age=age)

"""Our own claims, as this client knows them: where a flow and a wire meet.

1. A flow makes a `ClaimState` before its first request, and says until when it counts (`until`): a patience from the
   last look of a waiter, a ttl from the last renewal of a holder. Only success moves it.
2. Once the server has told the node's path, the client keeps the claim in its tracker: whatever became of the flow, the
   node of a claim that is over is deleted. So a claim ends with its ttl although its session lives on.
3. `gone` is why the node is not there any more: "session", "evicted" (somebody deleted it), "expired" (we did).
   The wire sets it first and then looks at `until` once more; the flow sets `until` and then looks at `gone`. So a
   renewal and an expiry that cross cannot both succeed.
4. A hold that lasts is confirmed once, a moment after its grant and off its path: the node's data then says since when
   it is held, and a watch tells of its deletion, or that somebody asks its holder to give way.
5. `predecessor` and `ahead` are what the last look said, on the connection that is up since; see `handoff`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypedDict

from ...model import Claim, LockSpec
from .paths import end_note_of, handoff_marker_of, slot_prefix, will_of
from .queue import PrecedingClaim

if TYPE_CHECKING:
    from .end_notes import NodeNote

GAP = ""
"""In place of a path, in the news of a place: the connection was lost meanwhile."""


class SessionLink(Protocol):
    """The connection of a session, as far as a flow needs to know it."""

    lasts: float
    """For how many seconds a hold is good after a sign of life."""

    @property
    def proved(self) -> float:
        """When we sent the last request that the leader has answered."""
        ...

    def wake(self, owner: str) -> None:
        """Have this owner look, though nothing that it watches has happened."""
        ...

    def unheard(self, now: float) -> float:
        """For how long the leader had not heard of this session, before we spoke up a moment ago; else 0."""
        ...

    def keep(self, state: ClaimState) -> None:
        """Take this place into the tracker: its node is known now, or it is granted now."""
        ...


@dataclass(slots=True, eq=False)
class ClaimState:
    """One claim of ours, from before its first request until it is let go of."""

    claim: Claim
    parent: str
    until: float
    tried: bool = False
    """A request to create its node has gone out."""
    link: SessionLink | None = None
    session: int = 0
    node: str = ""
    """The name of its node, once known."""
    token: int = 0
    born: int = 0
    """When the node was made, in milliseconds of the server's calendar, and (`seen`) when we heard of it."""
    seen: float = 0.0
    granted: float = 0.0
    """When it was granted, on our clock; 0 while it waits."""
    will: bool = False
    """A request to write its will has gone out, and (`willed`) was answered: nobody holds before that."""
    willed: bool = False
    note_tried: bool = False
    """A request to write its end note has gone out, and (`noted`) was answered: who is to have one holds from then."""
    noted: bool = False
    left: list[NodeNote] = field(default_factory=list)
    """The end notes of its predecessors, which nobody has removed."""
    ended: frozenset[str] = frozenset()
    """Nodes before it that ended without a handoff, as it has heard: how, a look will tell."""
    slot: str = ""
    """The path of its slot, if it has one."""
    slot_tried: bool = False
    """A request to make a slot has gone out, and it is not known what became of it."""
    confirmed: bool = False
    buried: bool = False
    """We have deleted its node, and know it."""
    asked: bool = False
    gone: str = ""
    kept: bool = False
    """The tracker of its session knows it."""
    watching: frozenset[str] = frozenset()
    predecessor: PrecedingClaim | None = None
    ahead: ClaimState | None = None
    """The claim whose successor it is, if that is one of ours."""
    follows: ClaimState | None = None
    """A claim of ours that stands right before it, by their numbers (see `tree.ParentState`)."""
    lags: bool = False
    """Others may stand between that one and it: who is before it has to be looked at once that one is granted."""
    behind: ClaimState | None = None
    """The claim of ours that stands right behind it, and waits."""
    place: int = 0
    """How many stood before it, when it was last known."""
    leaving: bool = False
    """Its release has begun."""
    made_parent: bool = False
    """The name was not used lately: its container was made with the node, and is to go with it."""
    alone: bool = False
    """Nobody else stood in line when it was granted, and it leaves nothing behind."""
    expects: str = ""
    """The handoff marker that it waits for (see `handoff`)."""
    may_hand_off: bool = False
    """Somebody may be its successor: it says handoff marker."""
    entered: float = 0.0
    """When we sent for its node."""
    minted: bool = False
    """Its token is not the czxid of its node: somebody was granted out of turn before it, or itself."""
    former: frozenset[str] = frozenset()
    """Nodes that this owner has had before, and that are being deleted."""
    about: bytes = b""

    @property
    def stands(self) -> bool:
        """Its node stands, as far as we know, and nobody is about to delete it."""
        return bool(self.node) and not self.gone and not self.leaving

    @property
    def takes_all(self) -> bool:
        """Nobody holds beside it, and nothing stays when its hold has ended: its end lets in the next."""
        spec = self.claim.spec
        return spec.fair and spec.weight == spec.capacity and not spec.lock_delay and not spec.hold_at_least

    @property
    def before(self) -> ClaimState | None:
        """The claim of ours right before it, as long as that keeps it from being granted: no look would tell more."""
        before = self.follows
        if before is None or not before.stands or self.claim.spec.lock_delay or not self.claim.spec.fair:
            return None
        return before if not before.granted or (before.takes_all and not self.lags) else None

    def tell_behind(self) -> None:
        """It is granted: who stands behind it may fit, too."""
        behind = self.behind
        if behind is None or behind.follows is not self or behind.link is None:
            return
        if behind.lags or not self.takes_all:
            behind.link.wake(behind.claim.owner)

    @property
    def path(self) -> str:
        return f"{self.parent}/{self.node}"

    @property
    def will_path(self) -> str:
        return f"{self.parent}/{will_of(self.claim.owner, self.claim.spec)}"

    @property
    def end_note_path(self) -> str:
        return f"{self.parent}/{end_note_of(self.node)}"

    @property
    def handoff_marker(self) -> str:
        return f"{self.parent}/{handoff_marker_of(self.node)}"

    @property
    def slot_prefix(self) -> str:
        return f"{self.parent}/{slot_prefix(self.claim.owner, self.claim.spec)}"

    def server_time(self, now: float) -> int:
        """The server's calendar, as far as we can tell, in milliseconds."""
        return self.born + int((now - self.seen) * 1000)

    def confirmation(self, granted: float) -> bytes:
        """Its data once it is held: the same, and since when, and under which token.

        Counted from when its node was sent for: that is rather late than early, and never before its time.
        """
        since = self.born + int(max(0.0, granted - self.entered) * 1000)
        return self.about[:-1] + f',"since":{since},"token":{self.token}}}'.encode()


class DescriptionWriter:
    """What others see of a claim that does not decide who is next: the data of its node, as JSON."""

    def __init__(self, host: str, pid: Callable[[], int]) -> None:
        self._host, self._pid = json.dumps(host), pid
        self._last: tuple[LockSpec | None, str, int, bytes] = (None, "", 0, b"")

    def __call__(self, claim: Claim) -> bytes:
        spec, actor, pid = claim.spec, claim.actor, self._pid()
        last = self._last
        if last[0] is spec and last[1] == actor and last[2] == pid:  # one thread that takes one lock again and again
            return last[3]
        noted = ',"noted":true' if spec.robust else ""
        text = (
            f'{{"host":{self._host},"pid":{pid},"actor":"{actor}","mode":"{spec.mode}","ttl":{spec.ttl:g},'
            f'"delay":{spec.lock_delay:g}{noted}}}'
        ).encode()
        self._last = spec, actor, pid, text
        return text


class ClaimData(TypedDict, total=False):
    """The data of a claim's node. Once it is confirmed: since when it is held, and its token."""

    host: str
    pid: int
    actor: str
    mode: str
    ttl: float
    delay: float
    since: int
    token: int
    asked: bool
    noted: bool  # it has an end note, once it holds


def read_about(data: bytes) -> ClaimData:
    """Empty for what is not ours."""
    try:
        found: ClaimData | None = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

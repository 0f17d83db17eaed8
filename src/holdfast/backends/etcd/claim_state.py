"""Our own claims, as this coordinator knows them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...model import Claim
from .queue import KeyEntry
from .session import NEVER, Session
from .watch import Watch


@dataclass(slots=True, eq=False)
class ClaimState:
    """What this coordinator knows of one claim of its own."""

    claim: Claim
    key: str
    words: str
    """Its value, up to what changes."""
    session: Session
    delay_lease: Session | None = None
    """The lease of what keeps the name closed after an unclean end."""
    tombstone: int = 0
    """The lease of what lingers after its release."""
    slot: int = 0
    entered: bool = False
    """Something may stand in the line."""
    unsure: bool = False
    """A request of its may still be under way, and be carried out after its end: its slot is not used again."""
    created: int = 0
    changed: int = 0
    token: int = 0
    born: int = 0
    """Calendar time of its first request, in microseconds."""
    before: tuple[str, int] | None = None
    """The key of the claim before it, as far as is known, and its create revision."""
    in_tail: bool = False
    """It came to wait: the line's tail may point to it."""
    waited: bool = False
    held: bool = False
    ahead: int = 0
    given: float = NEVER
    """The `since` of what its holder was last promised."""
    watch: Watch | None = None
    confirmed: bool = False
    """Its token is the revision of its grant, and not of its making."""
    doomed: bool = False
    """It was lost, and is being swept."""
    leaving: bool = False
    """Its release has begun."""
    releasing: bool = False
    """A request to release it is under way."""
    end_note: str = ""
    """The key of its end note, if it has one, or may have."""
    note_lease: Session | None = None
    """What that hangs on; None: it stays."""
    told: bool = False
    """Its grant was told: from then on it can end uncleanly."""
    left: list[KeyEntry] = field(default_factory=list)
    """The end notes that the last look has shown. Of a hold: those of its predecessors, which nobody has removed."""
    noted: bool = False
    """There is a word for its owner at etcd, which it has read."""


def tells_its_end(state: ClaimState) -> bool:
    """Whether all that its end means for the one behind it is known here: nothing stays in its place."""
    spec = state.claim.spec
    plain = (spec.fair or spec.capacity == 1) and not spec.hold_at_least and not state.session.sole
    return plain and state.entered and not state.leaving and not state.session.dead


def given_up(state: ClaimState) -> bool:
    """Its release was begun, and could not be carried out: nobody wants it any more, unless it is to outlast that."""
    return state.leaving and not state.releasing and not state.claim.spec.hold_at_least

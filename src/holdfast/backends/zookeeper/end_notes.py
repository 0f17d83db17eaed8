"""End notes in ZooKeeper (`ordered_keys.end_notes`): a node beside a claim, which outlives its session.

1. A hold with `recover=` has one from before it is told of its grant: one write more, as for a will. For all others
   that, and a larger step to release, would cost far more than 5 % of an uncontended pair.
2. Of the others one is made in the step that ends them, where it is a step of ours: an eviction, and the deletion of a
   claim whose own ttl is over. If their session ends, nothing is remembered.
3. It is called after its claim's node, so whoever has watched that knows where to look; its data says the rest.
4. What is to be put right stays until that is done. Every other is removed by the next one who releases the name, or
   when it is a day old, by whoever comes by (`tombstones`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..._core.flow import Call, Flow
from ...model import Claim
from ..ordered_keys.end_notes import is_robust, is_unrecovered
from .claim_state import ClaimState
from .error_mapping import refused
from .ops import EXISTS, NO_NODE, Answer, Check, Create, Delete, Exists, Failure, Multi, Op, Read, Write
from .paths import owner_of_end_note
from .queue import NodeQueue
from .requests import Batch, node_read

REMEMBERED_S = 86400.0


@dataclass(frozen=True, slots=True)
class NodeNote:
    """Implements `ordered_keys.end_notes.EndNote`."""

    path: str
    owner: str
    token: int
    ended: str
    robust: bool

    @property
    def data(self) -> bytes:
        return note_data(self.token, self.ended, self.robust)


def note_data(token: int, ended: str, robust: bool) -> bytes:
    return json.dumps({"token": token, "ended": ended, "robust": robust}).encode()


def read_note(path: str, data: bytes) -> NodeNote | None:
    """None for what is no end note."""
    owner = owner_of_end_note(path.rpartition("/")[2])
    try:
        found = json.loads(data)
        token, ended, robust = int(found["token"]), str(found["ended"]), bool(found["robust"])
    except (ValueError, KeyError, TypeError):
        token, ended, robust = 0, "unknown", False
    return None if owner is None else NodeNote(path, owner, token, ended, robust)


def notes_of(paths: Iterable[str], answers: Iterable[Answer]) -> list[NodeNote]:
    """From the answers to reads of these; without those that are gone."""
    read = ((path, node_read(answer)) for path, answer in zip(paths, answers, strict=True))
    found = (read_note(path, node[0]) for path, node in read if node is not None)
    return [note for note in found if note is not None]


def is_remembered(state: ClaimState) -> bool:
    """Whether an unclean end of it is: a mutex that was held."""
    return bool(state.granted) and state.claim.spec.capacity == 1


def removals(state: ClaimState) -> list[Op]:
    """What a clean end removes."""
    found = [] if not state.granted or is_unrecovered(state.left) else [note.path for note in state.left]
    return [Delete(path) for path in ([state.end_note_path] if state.note_tried else []) + found]


def expiry(state: ClaimState, acl: bytes) -> list[Op]:
    """What is left of it by the step that ends it after its time."""
    if not is_remembered(state):
        return removals(state)
    data = note_data(state.token, "expired", is_robust(state.claim.spec))
    return [Write(state.end_note_path, data) if state.note_tried else Create(state.end_note_path, data, acl)]


def write(state: ClaimState, acl: bytes, timeout: float) -> Flow[bool]:
    """Before it holds. It counts as written once that was answered; False if the claim is not there any more."""
    if state.noted:
        return True
    state.note_tried = True
    note = Create(state.end_note_path, note_data(state.token, "session", True), acl)
    [written] = (yield Call(Batch((Multi((Check(state.path), note)),), state), timeout)) or [None]
    if written is None or (isinstance(written, Failure) and written.code == NO_NODE):
        return False
    if isinstance(written, Failure) and written.code != EXISTS:  # it is there, if the first answer was lost
        raise refused(written, f"writing what is remembered of {state.claim.spec.name!r}")
    state.noted = True
    return True


def read(state: ClaimState, line: NodeQueue, timeout: float) -> Flow[list[NodeNote]]:
    """Those that stand in a line, of holds that have ended."""
    paths = [f"{state.parent}/{node}" for node in line.notes if f"{state.parent}/{node}" != state.end_note_path]
    if not paths or state.claim.spec.capacity > 1:
        return []
    answers: Sequence[Answer] | None = yield Call(Batch([Read(path) for path in paths], state), timeout)
    return notes_of(paths, answers) if answers else []


def recovered(state: ClaimState | None, claim: Claim, timeout: float) -> Flow[bool]:
    """What its predecessors have left is put right: their end notes go, if it holds."""
    if state is None or not state.granted or state.gone or state.token != claim.token:
        return False
    ends = [Delete(note.path) for note in state.left]
    [done] = (yield Call(Batch((Multi((Check(state.path), *ends)),), state), timeout)) or [None]
    if isinstance(done, Failure) and done.code == NO_NODE and ends:  # one is gone already: the first answer was lost
        *_, done = (yield Call(Batch((*ends, Exists(state.path)), state), timeout)) or [None]
    if isinstance(done, Failure) and done.code != NO_NODE:
        raise refused(done, f"the recovery of {claim.spec.name!r}")
    if not done:
        return False
    state.left = []
    return True

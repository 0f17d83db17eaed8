"""What is to be done about the claims on a session, and when. No I/O, no clock.

1. A hold that has lasted for `CONFIRM_AFTER_S` is confirmed: its data is written once, and its node watched.
2. A place that is over (`until` has passed) is deleted. Should that fail, it is tried again, until the session ends.
3. Every place is looked at when it is due, and not before; what was released meanwhile is forgotten then.
4. A place is known by its path before its watch is asked for: the end of its node may be told before whoever asked has
   come to note the answer.
5. A place whose node was sent for and never heard of is looked for when it is over, and what is found is deleted.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from .claim_state import ClaimState
from .ops import NO_NODE, Answer, Delete, Failure, List, Multi, Op, Read, Write
from .paths import QueueEntry
from .queue import line_of
from .tombstones import ending

CONFIRM_AFTER_S = 0.05
A_MOMENT_S = 0.01
TRY_AGAIN_S = 0.2
LOOK_AHEAD_S = 1.0
"""Places that have moved on are put off for so long at once, so that thousands of them do not wake us one by one."""
AT_ONCE_COUNT = 200
"""Places attended to in one go."""
NEVER = float("inf")


class ClaimTracker:
    def __init__(self, acl: bytes) -> None:
        self._acl = acl
        self._fresh: deque[tuple[float, ClaimState]] = deque()
        self._later: list[tuple[float, int, ClaimState]] = []
        self._count = 0
        self._news: deque[ClaimState] = deque()
        self.own: dict[str, ClaimState] = {}
        """Confirmed places, and those that are being confirmed, by path."""

    def add(self, state: ClaimState, now: float) -> None:
        """A place whose node is known now, or that is granted now. May be called from any thread."""
        self._fresh.append((now + CONFIRM_AFTER_S, state))

    @property
    def has_news(self) -> bool:
        return bool(self._fresh or self._news)

    def settled(self, now: float) -> bool:
        """Nothing is to be done before the next renewal: all that stands here is held, confirmed and renewed."""
        if self.has_news:
            return False
        states = [state for _, _, state in self._later if not state.gone]
        return bool(states) and all(_rests(state, now) for state in states)

    @property
    def next(self) -> float:
        """When something is to be done."""
        if self._news:
            return 0.0
        return min(self._fresh[0][0] if self._fresh else NEVER, self._later[0][0] if self._later else NEVER)

    def due(self, now: float) -> list[tuple[ClaimState, list[Op]]]:
        """What to do about which places; `done` is to be called with the answers."""
        work: list[tuple[ClaimState, list[Op]]] = []
        while self._news and len(work) < AT_ONCE_COUNT:
            state = self._news.popleft()
            if not state.gone:
                self.own[state.path] = state
                work.append((state, [Read(state.path, watch=True)]))
        while self._fresh and self._fresh[0][0] <= now and len(work) < AT_ONCE_COUNT:
            state = self._fresh.popleft()[1]
            if state.gone:
                continue
            if state.granted and not state.confirmed:
                if state.granted + CONFIRM_AFTER_S > now + A_MOMENT_S:  # it has waited: let it last first
                    self.add(state, now)
                    continue
                work.append((state, self._confirmation(state)))
            elif not state.granted and not state.watching and now < state.until:  # its flow has not come to it yet
                self.add(state, now)
                continue
            self._put(state.until, state)
        ahead = now + LOOK_AHEAD_S
        while self._later and self._later[0][0] <= ahead and len(work) < AT_ONCE_COUNT:
            state = self._later[0][2]
            if state.gone and state.gone != "expired":
                self.own.pop(state.path, None)
            elif state.buried:
                pass  # done with
            elif state.until > ahead and not state.gone:  # it has moved on meanwhile; so for many at once
                if state.granted and not state.confirmed and state.granted + CONFIRM_AFTER_S < now:
                    work.append((state, self._confirmation(state)))
                heapq.heapreplace(self._later, (state.until, self._number(), state))
                continue
            elif self._later[0][0] > now:
                break
            elif state.gone or self._is_over(state, now):
                work.append((state, self._burial(state)))
                heapq.heapreplace(self._later, (now + TRY_AGAIN_S, self._number(), state))
                continue
            else:
                heapq.heapreplace(self._later, (state.until, self._number(), state))
                continue
            heapq.heappop(self._later)
        return work

    def _is_over(self, state: ClaimState, now: float) -> bool:
        state.gone = "expired"
        if state.until > now:  # renewed in this very moment: see `states`, rule 3
            state.gone = ""
        return bool(state.gone)

    def _burial(self, state: ClaimState) -> list[Op]:
        if not state.node or state.slot_tried:
            return [List(state.parent)]
        ops = ending(state, state.claim.spec.lock_delay if state.granted else 0.0, self._acl, is_over=True)
        return [Multi(ops), Delete(state.path)] if len(ops) > 1 else ops

    def done(self, state: ClaimState, ops: list[Op], answers: list[Answer]) -> None:
        """What came of it."""
        last, answer = ops[-1], answers[-1]
        if isinstance(last, Delete):
            state.buried = answer is True or (isinstance(answer, Failure) and answer.code == NO_NODE)
            self.own.pop(state.path, None)
        elif isinstance(last, List):
            children = answer[0] if isinstance(answer, tuple) else ()
            line = line_of(children)
            state.node = next((each.node for each in line.claims if _is_of(each, state)), "")
            if state.slot_tried and (slot := line.slots.get(state.claim.owner)) is not None:
                state.slot = f"{state.parent}/{slot.node}"
            state.slot_tried = False
            state.buried = not state.node  # else it is deleted next
        elif isinstance(answer, Failure):
            if answer.code == NO_NODE:
                state.gone = state.gone or "evicted"
                self.own.pop(state.path, None)
        elif isinstance(answer, tuple):
            state.confirmed = True
            state.asked = state.asked or b'"asked":true' in answer[0]

    def event(self, deleted: bool, path: str) -> None:
        """News of a node that is watched, if it is one of ours."""
        state = self.own.get(path)
        if state is None or state.gone:
            self.own.pop(path, None)
        elif deleted:
            state.gone = "evicted"
            del self.own[path]
        else:
            self._news.append(state)

    def end(self) -> Iterable[ClaimState]:
        """The session has ended, and all that stood on it. Answers with who is to be told."""
        states = {id(state): state for _, state in self._fresh} | {id(state): state for *_, state in self._later}
        for state in states.values():
            state.gone = state.gone or "session"
        self._fresh.clear()
        self._later.clear()
        self._news.clear()
        self.own.clear()
        return states.values()

    def failed(self, work: list[tuple[ClaimState, list[Op]]], now: float) -> None:
        """It did not come through. What has to be buried is in the tracker still; the rest is tried again."""
        for state, ops in work:
            if not isinstance(ops[-1], (Delete, List)):
                self.add(state, now)

    def _confirmation(self, state: ClaimState) -> list[Op]:
        self.own[state.path] = state
        return [Write(state.path, state.confirmation(state.granted), 0), Read(state.path, watch=True)]

    def _put(self, when: float, state: ClaimState) -> None:
        heapq.heappush(self._later, (when, self._number(), state))

    def _number(self) -> int:
        self._count += 1
        return self._count


def _is_of(entry: QueueEntry, state: ClaimState) -> bool:
    return entry.owner == state.claim.owner and entry.session == state.session


def _rests(state: ClaimState, now: float) -> bool:
    spec = state.claim.spec
    return state.confirmed and spec.renew and spec.max_hold is None and state.until > now + spec.ttl / 2

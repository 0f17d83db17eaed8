"""How a node without memory comes to vote: founded together with all others, or seeded from a majority of them.

The rule of re-seeding is the one that `proofs/reseed.pml` checks:
1. Until it is seeded, a node has no vote, and nobody reads its marks. (The programs see to that.)
2. Wait: it stays out for the longest ttl that any client uses, and some more, from when it was first seen empty: by its
   own calendar, which others see too, and by the monotonic clock of the client that seeds it, which nobody can set.
   Whoever counted on one of its forgotten yeses has then finished, given up, or extended without it.
3. Then read, not before: the marks of a majority of all nodes, others that remember themselves, while takes go on. The
   new floor is the highest of all marks; names that all of them hold keep their own, so that their holders can come
   back.
4. It is written only if the node is still in the very state in which it was seen (`become.lua`).

Founding: where all nodes answer and none remembers, nothing is left to be read. Nobody can tell nodes that are new from
nodes that all forgot at once, so whoever must not take the one for the other has them wait (`found_after`), each from
when it was first seen. All are marked with one founding first, and only then begin to vote; one that is still marked,
while another with the same founding votes, has never voted, and may begin at once. Fewer than a majority that remember,
and not none: a person must decide (ADR 11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..._core.flow import NOW, RANDOM, Call
from ...errors import BackendUnavailable, Misconfigured
from .fanout import EVERYBODY, Fanout, FanoutFlow, Tally
from .keys import Keys
from .records import NOBODY, TRACE_KEPT, HeldRecord, Memory, seed
from .survey import read_holds

CHUNK_COUNT = 1000
"""Names read, or seeded, in one step."""
DIAL_TIMEOUT_S = 1.0
NO_SEEDS: Mapping[str, tuple[str, str]] = {}


@dataclass(slots=True)
class Health:
    """What the last look at the nodes found, for those who wonder why there is no majority."""

    answered: int = 0
    remember: int = 0
    wait: float = 0.0
    """In how many seconds the next node may be seeded; 0 if none waits."""


class NodeRecovery:
    """Looks after nodes without memory."""

    def __init__(self, nodes: int, keys: Keys, longest_ttl: float, found_after: float = 0.0) -> None:
        self._nodes = nodes
        self._quorum = nodes // 2 + 1
        self._keys = keys
        self._longest = int(longest_ttl * 1_000_000)
        self._found_after = found_after
        self._seen: dict[int, tuple[str, float]] = {}
        """Which emptiness of which node was seen first when, by our own clock."""
        self.health = Health()

    def mend(self) -> FanoutFlow[Health]:
        """Look at all nodes, connecting to those that are missing, and do what can be done."""
        now: float = yield NOW
        nonce = yield from _nonce()
        hello = Fanout("hello", (self._keys.marks,), (nonce, f"{self._longest:016d}", "0"), EVERYBODY, dial=True)
        tally: Tally = yield Call(hello, DIAL_TIMEOUT_S)
        known = {i: Memory.parse(said.decode()) for i, said in enumerate(tally.said) if isinstance(said, bytes)}
        voting = {i: memory for i, memory in known.items() if memory.kind == "+"}
        empty = {i: memory for i, memory in known.items() if memory.kind != "+"}
        self._look_at(known, now)
        if empty and not voting and len(known) == self._nodes:
            wait = max(since for _, since in self._seen.values()) + self._found_after - now
            if self._found_after and wait > 0:
                self.health = Health(len(known), 0, wait)
                return self.health
            voting = yield from self._found(empty)
        elif empty and voting:
            foundings = {memory.founding for memory in voting.values()}
            for i, memory in empty.items():
                if memory.kind != "F" or memory.founding not in foundings:
                    continue
                if (yield from self._become(i, memory, self._founded(memory, memory.founding))):
                    voting[i] = memory
        self.health = Health(len(known), len(voting))
        others = {i: memory for i, memory in known.items() if memory.kind == "+"}
        for i, memory in empty.items():
            if i not in voting and len(others) >= self._quorum:
                yield from self._seed(i, memory, others, now)
        return self.health

    def _look_at(self, known: dict[int, Memory], now: float) -> None:
        for i, memory in known.items():
            if memory.kind == "+":
                self._seen.pop(i, None)
            elif self._seen.get(i, ("", 0.0))[0] != (which := memory.run + memory.nonce):
                self._seen[i] = which, now

    def mend_quietly(self) -> FanoutFlow[None]:
        """The same in the background: what cannot be done now is done by the next one."""
        try:
            yield from self.mend()
        except (BackendUnavailable, Misconfigured):
            pass  # closed meanwhile

    def _founded(self, memory: Memory, founding: str) -> str:
        return memory.remembering(NOBODY, self._longest, founding)

    def _found(self, empty: dict[int, Memory]) -> FanoutFlow[dict[int, Memory]]:
        founding = yield from _nonce()
        for i, memory in empty.items():
            if not (yield from self._become(i, memory, memory.founded_by(founding))):
                return {}  # somebody else is at it
        voting = {}
        for i, memory in empty.items():
            marked = Memory.parse(f"{memory.clock:016d}{memory.founded_by(founding)}")
            if not (yield from self._become(i, marked, self._founded(memory, founding))):
                break
            voting[i] = memory
        return voting

    def _seed(self, node: int, memory: Memory, voting: dict[int, Memory], now: float) -> FanoutFlow[None]:
        if (seen := self._seen.get(node)) is None:
            return  # it remembers: another look, which began later, has found that
        longest = max([self._longest, *(each.longest for each in voting.values())])
        out_for = longest * 1.05 + 100_000
        left = max(memory.since + out_for - memory.clock, out_for - (now - seen[1]) * 1e6)
        if left > 0:
            self.health.wait = min(self.health.wait or 1e9, left / 1e6)
            return
        read: list[dict[str, HeldRecord]] = []
        floor = max(each.floor for each in voting.values())
        for i in voting:
            found = yield from read_holds(i, self._keys, "", DIAL_TIMEOUT_S)
            if found is not None:
                floor = max(floor, found.highest)
                read.append({key: hold for key, hold in found.holds.items() if hold.mark})
            if len(read) == self._quorum:
                break
        else:
            return
        held = [key for key in read[0] if all(key in names for names in read[1:])]
        for start in range(0, len(held), CHUNK_COUNT):
            seeds = {key: seed([names[key] for names in read]) for key in held[start : start + CHUNK_COUNT]}
            if not (yield from self._become(node, memory, memory.text, seeds)):
                return
        founding = next(iter(voting.values())).founding
        if (yield from self._become(node, memory, memory.remembering(floor, longest, founding))):
            self.health.remember += 1

    def _become(
        self, node: int, seen: Memory, new: str, seeds: Mapping[str, tuple[str, str]] = NO_SEEDS
    ) -> FanoutFlow[bool]:
        keys, args = [self._keys.marks], [seen.text, new, TRACE_KEPT]
        for key, (mark, owner) in seeds.items():
            keys += (key, self._keys.trace_of(key))
            args += (mark, owner)
        tally: Tally = yield Call(Fanout("become", tuple(keys), tuple(args), EVERYBODY, only=node), DIAL_TIMEOUT_S)
        return tally.said[node] == 1


def _nonce() -> FanoutFlow[str]:
    chance: float = yield RANDOM
    other: float = yield RANDOM
    return f"{int(chance * 2**32):08x}{int(other * 2**32):08x}"

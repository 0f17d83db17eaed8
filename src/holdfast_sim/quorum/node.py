"""What each program of `backends/redlock/scripts` does at a node, line by line, in Python.

The same decisions in the same order; `tests/redlock/test_model.py` compares it with the programs on a real server.
Times are microseconds of the node's own clock; as at a server, a key is gone once its millisecond has passed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from .waiters import Scored, ScoredTexts

NOBODY = "0" * 20
DAY_US = 86_400_000_000
SWEEPS_ONE_IN_COUNT = 10
"""As in `scripts/marks.lua`."""
RESERVED = f"{NOBODY}{0:010d}>"
KEPT_MS, RESERVED_MS = 10_000, 200
LINE_MS = 2 * KEPT_MS
"""As in `scripts/turns.lua`."""

Word: TypeAlias = int | bytes


class NodeModel:
    """One node: its keys, its marks, and which run of the server it is.

    `publish` tells an owner, on a channel, and answers how many have heard it.
    """

    def __init__(self, run: str, publish: Callable[[str, str], int]) -> None:
        self.run = run
        self.now = 0
        self.texts: MutableMapping[str, tuple[str, int | None]] = {}
        self.marks: MutableMapping[str, int] = {}
        self.waiting: Scored = ScoredTexts()
        self.lines: dict[str, Scored] = {}
        self._publish = publish

    def carry_out(self, verb: str, keys: tuple[str, ...], args: tuple[str, ...], now: int) -> Word:
        self.now = now
        said: Word = getattr(self, f"_{verb}")(keys, args)
        return said

    # What is kept

    def get(self, key: str) -> str | None:
        found = self.texts.get(key)
        if found is None:
            return None
        text, expires = found
        if expires is not None and self.now // 1000 > expires:
            del self.texts[key]
            return None
        return text

    def _set(self, key: str, text: str, ms: str | None = None) -> None:
        self.texts[key] = (text, None if ms is None else self.now // 1000 + int(ms))

    def _left(self, key: str) -> int:
        expires = self.texts[key][1]
        return -1 if expires is None else max(0, expires - self.now // 1000)

    def _remembers(self, marks: str) -> str | None:
        memory = self.get(f"{marks}/memory")
        return memory if memory is not None and memory[0] == "+" else None

    def _mark(self, key: str, memory: str) -> int:
        return self.marks[key] if key in self.marks else max(self.now - DAY_US, int(memory[1:21]))

    def _raise(self, key: str, ballot: int) -> None:
        if ballot > self.marks.get(key, -1):
            self.marks[key] = ballot
            self._sweep(ballot)

    def _sweep(self, ballot: int) -> None:
        if ballot % SWEEPS_ONE_IN_COUNT == 0:
            for name in [name for name, mark in self.marks.items() if mark < self.now - DAY_US]:
                del self.marks[name]

    def is_live(self, key: str, hold: str) -> bool:
        return int(hold[20:30]) == 0 or self._left(key) > int(hold[20:30])

    # Turns

    def line(self, key: str) -> Scored:
        return self.lines.setdefault(key, ScoredTexts())

    def _leave_line(self, key: str, member: str) -> int:
        self.line(key).remove(member)
        return self.waiting.remove(member)

    def _join_line(self, key: str, member: str, place: int) -> int:
        now, line = self.now // 1000, self.line(key)
        self.waiting.add(member, now + KEPT_MS)
        self.waiting.remove_until(now)
        self.waiting.keep(LINE_MS)
        line.add(member, place)
        line.keep(LINE_MS)
        return line.rank(member)

    def _hand_over(self, marks: str, key: str, gone: str) -> None:
        now, line = self.now // 1000, self.line(key)
        while (first := line.first()) is not None:
            owner = first.partition("\n")[2][10:].partition(" ")[0]
            waits = owner != gone and (self.waiting.score(first) or 0) > now
            if waits and self._publish(f"{marks}/{first[16:24]}", owner) > 0:
                self._set(key, f"{RESERVED}{owner} ", str(RESERVED_MS))
                self.waiting.add(first, now + RESERVED_MS)
                return
            self._leave_line(key, first)
        self.texts.pop(key, None)

    # The programs

    def _take(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        (key, marks), (span, listens, text), waits = keys, args[:3], args[3] if len(args) > 3 else ""
        ballot, owner = int(text[:20]), owner_of(text)
        hold = self.get(key)
        memory = self._remembers(marks)
        if not waits and hold is None:
            known = key in self.marks
            if ballot > (self.marks[key] if known else ballot if memory is None else self._mark(key, memory)):
                self._set(key, text, span)
                self.marks[key] = ballot
                if not known:
                    self._sweep(ballot)
                return 1
        if memory is None:
            return b"A"
        mark = self._mark(key, memory)
        waiter = f"{waits[:16] or text[4:20]}{listens}{key}\n{text[20:]}"
        if hold is not None and hold != f"{RESERVED}{owner} ":
            if not is_held_by(hold, owner):
                rank, left = 0, self._left(key)
                if listens:
                    rank = self._join_line(key, waiter, int(waits[16:] or mark))
                    if hold[:20] != NOBODY and not hold.endswith("\n"):
                        self.texts[key] = (f"{hold}\n", self.texts[key][1])
                return b"H%020d%d %d" % (mark, 0 if hold.startswith(RESERVED) else left, rank)
            if int(hold[:20]) == ballot and self.is_live(key, hold):
                return 1
        if mark >= ballot:
            return b"M%020d" % mark
        if waits:
            self._leave_line(key, waiter)
            if len(self.line(key)):
                text = f"{text}\n"
        self._set(key, text, span)
        self._raise(key, ballot)
        return 1

    def _extend(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        memory = self._remembers(keys[0])
        if memory is None:
            return b"A"
        said = ""
        for i in range(1, len(keys), 2):
            said += self._extend_one(keys[i], keys[i + 1], args[i], args[i + 1], args[0], memory)
        return 1 if set(said) == {"1"} else f"X{said}".encode()

    def _extend_one(self, key: str, tracing: str, span: str, text: str, kept: str, memory: str) -> str:
        ballot, owner = text[:20], owner_of(text)
        hold, trace, mark = self.get(key), self.get(tracing), self._mark(key, memory)
        own = trace == ballot + owner and mark == int(ballot)
        if hold is not None and is_held_by(hold, owner) and hold[:20] == ballot and (self.is_live(key, hold) or own):
            self._set(key, hold, span)
            self._set(tracing, ballot + owner, kept)
            return "1"
        if hold is None and (mark < int(ballot) or own):
            self._set(key, text, span)
            self._set(tracing, ballot + owner, kept)
            self._raise(key, int(ballot))
            return "1"
        return "e" if trace == f"{ballot}!{owner}" else "0"

    def _release(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        key, text = keys[0], args[0]
        hold = self.get(key)
        if hold == text and len(args) == 1:
            del self.texts[key]
            return 1
        memory = self._remembers(keys[1])
        if memory is None:
            return b"A"
        ballot, owner = text[:20], owner_of(text)
        if len(keys) > 2 and self.get(keys[2]) == ballot + owner:
            del self.texts[keys[2]]
        taken = hold is not None and is_held_by(hold, owner) and hold[:20] == ballot
        if not taken and self._mark(key, memory) < int(ballot):
            self._raise(key, int(ballot))
        if len(args) > 2 and args[2] and (len(keys) > 2 or not taken):
            self._leave_line(key, args[2])
        if hold == f"{RESERVED}{owner} ":
            self._hand_over(keys[1], key, owner)
            return 0
        if hold is None or not is_held_by(hold, owner) or hold[:20] > ballot:
            return 0
        held = self.is_live(key, hold)
        if held and len(args) > 1 and args[1] != "0":
            self._set(key, NOBODY + hold[20:], args[1])
        elif hold.endswith("\n"):
            self._hand_over(keys[1], key, owner)
        else:
            del self.texts[key]
        return int(held)

    def _evict(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        memory = self._remembers(keys[1])
        if memory is None:
            return b"A"
        if self._mark(keys[0], memory) < int(args[0]):
            self._raise(keys[0], int(args[0]))
        hold, trace = self.get(keys[0]), self.get(keys[2])
        if hold is not None and hold[:20] == args[0]:
            held, delay = self.is_live(keys[0], hold), int(hold[20:30])
            if held and delay:
                self._set(keys[0], NOBODY + hold[20:], str(delay))
            elif hold.endswith("\n"):
                self._hand_over(keys[1], keys[0], owner_of(hold))
            else:
                del self.texts[keys[0]]
            self._set(keys[2], f"{args[0]}!{owner_of(hold)}", args[1])
            return int(held)
        if trace is not None and trace[:20] == args[0] and trace[20:21] != "!":
            del self.texts[keys[2]]
        return 0

    def _survey(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        memory = self._remembers(keys[0])
        if memory is None:
            return b"A"
        said: list[Any] = ["0", f"{max([int(memory[1:21]), *self.marks.values()]):020d}"]
        said.append(self.waiting.above(self.now // 1000) or 0)
        for key in sorted(self.texts):
            if (key == keys[1] if keys[1:] else fnmatchcase(key, args[1])) and (hold := self.get(key)) is not None:
                if hold[30:31] == ">":
                    continue
                mark = f"{self.marks[key]:020d}" if key in self.marks else ""
                said += (key, hold, self._left(key), mark)
        return json.dumps(said).encode()

    def _leave(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        hold, left = self.get(keys[0]), self._leave_line(keys[0], args[0])
        if hold == f"{RESERVED}{args[1]} ":
            self._hand_over(keys[1], keys[0], args[1])
        return left

    def _hello(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        memory = new = self.get(f"{keys[0]}/memory")
        if memory is not None and memory[0] == "+":
            if memory[37:77] != self.run:
                new = memory[:37] + self.run + memory[77:] if args[2] == "1" else None
            if new is not None and new[21:37] < args[1]:
                new = new[:21] + args[1] + new[37:]
        elif memory is not None and memory[1:41] != self.run:
            new = None
        if new is None:
            self.marks.clear()
            new = f"S{self.run}{self.now:016d}{args[0]}"
        self._set(f"{keys[0]}/memory", new)
        return f"{self.now:016d}{new}".encode()

    def _become(self, keys: tuple[str, ...], args: tuple[str, ...]) -> Word:
        if self.get(f"{keys[0]}/memory") != args[0]:
            return 0
        for i in range(1, len(keys), 2):
            mark, owner = args[i + 2], args[i + 3]
            self.marks[keys[i]] = int(mark)
            if owner:
                self._set(keys[i + 1], mark + owner, args[2])
            else:
                self.texts.pop(keys[i + 1], None)
        self._set(f"{keys[0]}/memory", args[1])
        return 1


def owner_of(text: str) -> str:
    return text[30:].partition(" ")[0]


def is_held_by(hold: str, owner: str) -> bool:
    return hold[:20] != NOBODY and hold[30:].startswith(f"{owner} ")

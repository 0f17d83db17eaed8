"""The simulator's nodes say and keep what the programs say and keep, on a real server."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.backends.redis.reader import make_reader
from holdfast.backends.redis.resp import NOT_YET, Error, command
from holdfast.backends.redlock.fanout import EVERYBODY, Fanout
from holdfast.backends.redlock.programs import frame_with_source
from holdfast.backends.redlock.records import waiter_text
from holdfast_sim.quorum.node import DAY_US, RESERVED, NodeModel
from tests.support.redis_server import RedisServer

OWNERS = ("o1", "o2", "o11")
LISTENS, DEAF, NOWHERE = "aaaaaaaa", "bbbbbbbb", ""
"""Words of waiters: whom a node can tell, whom it cannot, and who does not wait."""
OLD = "old"
"""A name whose mark is more than a day old."""
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(redis_server: RedisServer) -> RedisServer:
    return redis_server


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, Any]]:
    ballot = st.one_of(st.integers(-3, 5), st.just(-2 * DAY_US))
    owner = st.sampled_from(OWNERS)
    delay = st.sampled_from(("0000000000", "0000100000"))
    waits = st.sampled_from((None, 0, 0, 1))
    one = st.one_of(
        st.tuples(st.just("take"), ballot, owner, delay, st.sampled_from((LISTENS, DEAF, NOWHERE)), waits),
        st.tuples(st.just("leave"), ballot, owner, delay, st.sampled_from((LISTENS, DEAF)), waits),
        st.tuples(st.just("extend"), ballot, owner, delay),
        st.tuples(st.just("release"), ballot, owner, delay, st.booleans(), st.booleans(), waits),
        st.tuples(st.just("evict"), ballot),
        st.tuples(st.just("expire")),
        st.tuples(st.just("lapse")),
        st.tuples(st.just("become"), ballot, st.sampled_from((*OWNERS, "")), st.sampled_from((0, 0, 2))),
        st.tuples(st.just("forget")),
        st.tuples(st.just("new name")),
        st.tuples(st.just("restart"), st.booleans()),
        st.tuples(st.just("survey")),
    )
    return draw(st.lists(one, min_size=1, max_size=14))


class Twins:
    """A server and its model, given the same requests."""

    def __init__(self, server: RedisServer, link: socket.socket) -> None:
        self.space = f"n{next(numbers)}"
        self.marks, self.hold, self.trace = f"{self.space}/marks", f"{self.space}/hold/a", f"{self.space}/trace/a"
        self._server = server
        self._link = link
        info = server.raw("INFO", "server").decode()
        self.run = info.partition("run_id:")[2][:40]
        self.heard = list[tuple[str, str]]()
        self.model = NodeModel(self.run, self._publish)
        self.base = self._clock() // 10 * 10  # a ballot that ends with a zero drops what is old
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.connect(str(server.unix_path))
        self._listener.sendall(command("SUBSCRIBE", f"{self.marks}/{LISTENS}"))
        self._reader, self._told = make_reader(), list[tuple[str, str]]()

    def _publish(self, channel: str, owner: str) -> int:
        if channel != f"{self.marks}/{LISTENS}":
            return 0
        self.heard.append((channel, owner))
        return 1

    def told(self) -> list[tuple[str, str]]:
        """What the server has told so far, on which channel."""
        self._listener.sendall(command("PING"))
        while True:
            while (message := self._reader.gets()) is NOT_YET:
                self._reader.feed(self._listener.recv(65536))
            assert isinstance(message, list)
            if message[0] == b"pong":
                return self._told
            if message[0] == b"message":
                self._told.append((message[1].decode(), message[2].decode()))

    def keep_reserved(self) -> None:
        """What lasts for a moment lasts for the whole story: the two do not look at the same clock at the same time."""
        if (self.model.get(self.hold) or "").startswith(RESERVED):
            self.both("PEXPIRE", self.hold, "500000")
            self.model._set(self.hold, self.model.texts[self.hold][0], "500000")
            until = self.base // 1000 + 900_000
            for member in self.model.waiting.above(0):
                self.both("ZADD", f"{self.marks}/waiters", str(until), member)
                self.model.waiting.add(member, until)

    def close(self) -> None:
        self._listener.close()

    def _clock(self) -> int:
        seconds, micros = self._server.raw("TIME").split(b"\r\n")[2:5:2]
        return int(seconds) * 1_000_000 + int(micros)

    def ask(self, verb: str, keys: tuple[str, ...], args: tuple[str, ...]) -> tuple[Any, Any]:
        self._link.sendall(frame_with_source(Fanout(verb, keys, args, EVERYBODY)))
        reader = make_reader()
        while (said := reader.gets()) is NOT_YET:
            reader.feed(self._link.recv(65536))
        assert not isinstance(said, Error), said
        return said, self.model.carry_out(verb, keys, args, self._clock())

    def waiter(self, step: tuple[Any, ...]) -> str:
        """As `take` has written it down, where it had asked before."""
        return waiter_text(self.base, step[4], self.hold, f"{step[3]}{step[2]} 1 h lock x")

    def both(self, *words: str) -> None:
        """A change by hand, at the server; the caller does the same to the model."""
        self._server.raw(*words)

    def seen(self) -> tuple[object, object]:
        """What the two keep: hold, trace, mark, the memory without its times, the line; whether OLD was dropped."""
        raw = self._server.raw
        hold, trace = raw("GET", self.hold).split(b"\r\n")[1], raw("GET", self.trace).split(b"\r\n")[1]
        mark, memory = raw("ZSCORE", self.marks, self.hold).split(b"\r\n")[1], raw("GET", f"{self.marks}/memory")
        old = raw("ZSCORE", self.marks, OLD).startswith(b"$-1")
        model = self.model
        line = raw("ZRANGE", f"{self.marks}/line/{self.hold}", "0", "-1").split(b"\r\n")[2::2]
        score = model.marks.get(self.hold)
        kept = model.get(f"{self.marks}/memory")
        return (
            (hold, trace, mark, b"S" if b"\r\nS" in memory else memory.split(b"\r\n")[1], line, old),
            (
                (model.get(self.hold) or "").encode(),
                (model.get(self.trace) or "").encode(),
                b"" if score is None else str(score).encode(),
                b"S" if (kept or "").startswith("S") else (kept or "").encode(),
                [member.encode() for member in model.line(self.hold).above(-1)],
                OLD not in model.marks,
            ),
        )


def play(twins: Twins, step: tuple[Any, ...]) -> Sequence[Any]:
    keys = (twins.hold, twins.marks)
    number = f"{twins.base + step[1]:020d}" if len(step) > 1 and isinstance(step[1], int) else ""
    match step[0]:
        case "take":
            args: tuple[str, ...] = ("500000", step[4], f"{number}{step[3]}{step[2]} 1 h lock x")
            place = "" if step[5] else str(twins.base)
            return twins.ask("take", keys, args if step[5] is None else (*args, f"{twins.base:016d}{place}"))
        case "leave":
            return twins.ask("leave", keys, (twins.waiter(step), step[2]))
        case "extend":
            text = f"{number}{step[3]}{step[2]} 1 h lock x"
            return twins.ask("extend", (twins.marks, twins.hold, twins.trace), ("900000", "500000", text))
        case "release":
            text = f"{number}{step[3]}{step[2]} 1 h lock x"
            traced, lingers, waited = step[4:]
            args = (text, "300000" if lingers else "0")
            if waited is not None:
                args = (*args, twins.waiter((*step[:4], LISTENS)))
            elif not lingers and not traced and not int(step[3]):
                args = (text,)
            return twins.ask("release", (*keys, twins.trace)[: 3 if traced else 2], args)
        case "evict":
            return twins.ask("evict", (*keys, twins.trace), (number, "900000"))
        case "become":
            floor = f"{twins.base + step[3] if step[3] else 0:020d}"
            remembering = f"+{floor}{60_000_000:016d}{twins.run}{'f' * 16}"
            memory = twins.model.get(f"{twins.marks}/memory") or ""
            if memory.startswith("S"):  # the server has other times in it
                memory = twins._server.raw("GET", f"{twins.marks}/memory").split(b"\r\n")[1].decode()
                twins.model.texts[f"{twins.marks}/memory"] = (memory, None)
            more = (number, step[2])
            return twins.ask("become", (twins.marks, twins.hold, twins.trace), (memory, remembering, "900000", *more))
        case "expire":
            twins.both("DEL", twins.hold)
            twins.model.texts.pop(twins.hold, None)
        case "lapse":  # into its delay
            twins.both("PEXPIRE", twins.hold, "90000")
            if twins.model.get(twins.hold) is not None:
                twins.model._set(twins.hold, twins.model.texts[twins.hold][0], "90000")
        case "forget":
            line = f"{twins.marks}/line/{twins.hold}"
            twins.both("DEL", twins.marks, f"{twins.marks}/memory", twins.hold, twins.trace, line)
            twins.model.texts.clear()
            twins.model.marks.clear()
            twins.model.lines.clear()
        case "new name":  # as one whose mark was dropped long ago
            twins.both("DEL", twins.hold)
            twins.both("ZREM", twins.marks, twins.hold)
            twins.model.texts.pop(twins.hold, None)
            twins.model.marks.pop(twins.hold, None)
        case "restart":  # as if it came back from a snapshot of another run
            known = twins.model.get(f"{twins.marks}/memory")
            if known is not None:
                other = known.replace(twins.run, "e" * 40)
                twins.both("SET", f"{twins.marks}/memory", other)
                twins.model.texts[f"{twins.marks}/memory"] = (other, None)
            said, modelled = twins.ask("hello", (twins.marks,), ("a" * 16, f"{60_000_000:016d}", str(int(step[1]))))
            return said[16:17], modelled[16:17]
        case "survey":
            said, modelled = twins.ask("survey", (twins.marks,), ("0", f"{twins.hold}*", "100"))
            if said == b"A":
                return said, modelled
            return [
                [word for word in json.loads(each) if isinstance(word, str)] for each in (said, modelled)
            ]  # but for the time that is left
    return 1, 1


def refusal(said: bytes) -> tuple[bytes, bytes, int]:
    left, _, rank = said[21:].partition(b" ")
    return said[:21], rank, int(left)


def taking(ballot: int, owner: str = "o1", listens: str = NOWHERE) -> tuple[Any, ...]:
    return ("take", ballot, owner, "0000000000", listens, None)


def releasing(ballot: int, lingers: bool = False, traced: bool = False, waited: int | None = None) -> tuple[Any, ...]:
    return ("release", ballot, "o1", "0000000000", traced, lingers, waited)


ASKED_BEFORE = 0
WAITING: tuple[Any, ...] = ("take", 1, "o1", "0000000000", LISTENS, ASKED_BEFORE)
EXTENDING: tuple[Any, ...] = ("extend", 2, "o1", "0000000000")


@given(steps())
@example([("become", -100, "", 2), ("new name",), taking(1)])  # below the floor
@example([("new name",), taking(-2 * DAY_US), taking(0)])  # below what is remembered
@example([("new name",), taking(0)])  # drops what is old
@example([taking(3), ("expire",), taking(1, "o2"), taking(5)])  # below the mark
@example([taking(0), releasing(0), taking(0)])  # late: its release was quicker
@example([taking(0), releasing(0, lingers=True), taking(1)])
@example([taking(0), taking(1, "o2", LISTENS), releasing(0)])  # somebody waits
@example([taking(0, "o2"), WAITING, ("expire",), EXTENDING, releasing(2, traced=True, waited=ASKED_BEFORE)])
@settings(max_examples=300)
def test_the_model_is_faithful(server: RedisServer, story: list[tuple[str, Any]]) -> None:
    server.raw("FLUSHALL")
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(server.unix_path))
    link = sock
    twins = Twins(server, link)
    try:
        play(twins, ("restart", False))
        play(twins, ("become", -100, "", 0))
        twins.both("ZADD", twins.marks, str(twins.base - 2 * DAY_US), OLD)
        twins.model.marks[OLD] = twins.base - 2 * DAY_US
        for step in story:
            said, modelled = play(twins, step)
            if isinstance(said, bytes) and said[:1] == b"H":  # but for the time that is left, unless it is unknown
                (*said, left), (*modelled, modelled_left) = map(refusal, (said, modelled))
                assert (left == 0) == (modelled_left == 0), step
            if isinstance(said, bytes) and said[:1] == b"M" and int(said[1:]) < twins.base - DAY_US / 2:
                said, modelled = said[:12], modelled[:12]  # the mark of a day ago, each by its own clock
            assert said == modelled, step
            assert twins.told() == twins.heard, step
            twins.keep_reserved()
            kept, model_keeps = twins.seen()
            assert kept == model_keeps, step
    finally:
        twins.close()
        link.close()

"""The simulator's nodes say and keep what the programs say and keep, on a real server."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.backends.redis.reader import make_reader
from holdfast.backends.redis.resp import NOT_YET, Error
from holdfast.backends.redlock.fanout import EVERYBODY, Fanout
from holdfast.backends.redlock.programs import frame_with_source
from holdfast_sim.quorum.node import NodeModel
from tests.support.redis_server import RedisServer

OWNERS = ("o1", "o2", "o11")
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(redis_server: RedisServer) -> RedisServer:
    return redis_server


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, Any]]:
    ballot = st.integers(-3, 5)
    owner = st.sampled_from(OWNERS)
    delay = st.sampled_from(("0000000000", "0000100000"))
    one = st.one_of(
        st.tuples(st.just("take"), ballot, owner, delay),
        st.tuples(st.just("extend"), ballot, owner, delay),
        st.tuples(st.just("release"), ballot, owner, delay, st.booleans(), st.booleans()),
        st.tuples(st.just("evict"), ballot),
        st.tuples(st.just("expire")),
        st.tuples(st.just("lapse")),
        st.tuples(st.just("become"), ballot, st.sampled_from((*OWNERS, ""))),
        st.tuples(st.just("forget")),
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
        self.model = NodeModel(self.run)
        self.base = self._clock()

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

    def both(self, *words: str) -> None:
        """A change by hand, at the server; the caller does the same to the model."""
        self._server.raw(*words)

    def seen(self) -> tuple[object, object]:
        """What the two keep: hold, trace, mark, and the memory without its times."""
        raw = self._server.raw
        hold, trace = raw("GET", self.hold).split(b"\r\n")[1], raw("GET", self.trace).split(b"\r\n")[1]
        mark, memory = raw("ZSCORE", self.marks, self.hold).split(b"\r\n")[1], raw("GET", f"{self.marks}/memory")
        model = self.model
        score = model.marks.get(self.hold)
        kept = model.get(f"{self.marks}/memory")
        return (
            (hold, trace, mark, b"S" if b"\r\nS" in memory else memory.split(b"\r\n")[1]),
            (
                (model.get(self.hold) or "").encode(),
                (model.get(self.trace) or "").encode(),
                b"" if score is None else str(score).encode(),
                b"S" if (kept or "").startswith("S") else (kept or "").encode(),
            ),
        )


def play(twins: Twins, step: tuple[Any, ...]) -> Sequence[Any]:
    keys = (twins.hold, twins.marks)
    number = f"{twins.base + step[1]:020d}" if len(step) > 1 and isinstance(step[1], int) else ""
    match step[0]:
        case "take":
            return twins.ask("take", keys, ("500000", f"{number}{step[3]}{step[2]} 1 h lock x"))
        case "extend":
            text = f"{number}{step[3]}{step[2]} 1 h lock x"
            return twins.ask("extend", (twins.marks, twins.hold, twins.trace), ("900000", "500000", text))
        case "release":
            begins = f"{number}{step[3]}{step[2]} "
            traced, lingers = step[4], step[5]
            return twins.ask("release", (*keys, twins.trace)[: 3 if traced else 2], (begins, "300000")[: 1 + lingers])
        case "evict":
            return twins.ask("evict", (*keys, twins.trace), (number, "900000"))
        case "become":
            remembering = f"+{'0' * 20}{60_000_000:016d}{twins.run}{'f' * 16}"
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
            twins.both("DEL", twins.marks, f"{twins.marks}/memory", twins.hold, twins.trace)
            twins.model.texts.clear()
            twins.model.marks.clear()
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


@given(steps())
@settings(max_examples=300)
def test_the_model_is_faithful(server: RedisServer, story: list[tuple[str, Any]]) -> None:
    server.raw("FLUSHALL")
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(server.unix_path))
    link = sock
    try:
        twins = Twins(server, link)
        play(twins, ("restart", False))
        play(twins, ("become", -100, ""))
        for step in story:
            said, modelled = play(twins, step)
            if isinstance(said, bytes) and said[:1] == b"H":
                said, modelled = said[:21], modelled[:21]
            assert said == modelled, step
            kept, model_keeps = twins.seen()
            assert kept == model_keeps, step
    finally:
        link.close()

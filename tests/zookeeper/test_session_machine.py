"""The session by hand, byte by byte: greeting, replies, events, what is lost, and taking up again."""

from __future__ import annotations

import struct

import pytest

from holdfast.backends.zookeeper import jute
from holdfast.backends.zookeeper.jute import JuteReader, Stat
from holdfast.backends.zookeeper.ops import (
    EPHEMERAL,
    Check,
    Create,
    CreateContainer,
    Created,
    Delete,
    Exists,
    Failure,
    List,
    Multi,
    Op,
    Read,
    Sync,
    Watches,
    Write,
    acl,
)  # fmt: skip
from holdfast.backends.zookeeper.session import (
    BEHIND_COUNT,
    DATA_CHANGED,
    DELETED,
    OutOfStep,
    Session,
    SessionRefused,
    SessionState,
    Ticket,
)

STAT = Stat(5, 6, 7, 8, 1, 2, 3, 99, 4, 0, 9)
STAT_BYTES = struct.pack("!qqqqiiiqiiq", 5, 6, 7, 8, 1, 2, 3, 99, 4, 0, 9)


def frame(body: bytes) -> bytes:
    return struct.pack("!i", len(body)) + body


def welcome(timeout: int = 4000, session: int = 77, password: bytes = b"p" * 16) -> bytes:
    return frame(struct.pack("!iiq", 0, timeout, session) + jute.data(password) + b"\x00")


def reply(xid: int, body: bytes = b"", zxid: int = 10, code: int = 0) -> bytes:
    return frame(struct.pack("!iqi", xid, zxid, code) + body)


def event(kind: int, path: str) -> bytes:
    return reply(-1, struct.pack("!ii", kind, 3) + jute.text(path), zxid=-1)


def frames_of(data: bytes) -> list[bytes]:
    found = []
    while data:
        (size,) = struct.unpack_from("!i", data)
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def up(*credentials: tuple[str, bytes]) -> Session:
    session = Session(3.0, credentials)
    session.greet()
    session.receive(welcome())
    return session


def state_of(session: Session) -> SessionState:
    """A call, so that a type checker does not take the state for what it was before."""
    return session.state


def ask(session: Session, *ops: Op) -> tuple[Ticket, list[bytes]]:
    ticket = Ticket(len(ops))
    return ticket, frames_of(session.ask(ops, ticket))


def test_the_greeting_and_the_welcome() -> None:
    session = Session(3.0)
    assert state_of(session) is SessionState.NEW
    [hello] = frames_of(session.greet())
    reader = JuteReader(hello)
    assert (reader.integer(), reader.long(), reader.integer(), reader.long()) == (0, 0, 3000, 0)
    assert (reader.data(), reader.flag(), reader.left) == (bytes(16), False, 0)
    for byte in welcome():  # one byte at a time
        assert state_of(session) is SessionState.GREETING
        session.receive(bytes([byte]))
    assert (state_of(session), session.id, session.timeout) == (SessionState.UP, 77, 4.0)


def test_it_is_taken_up_again_with_its_id_and_password() -> None:
    session = up()
    ask(session, Sync("/"))
    session.receive(reply(1, zxid=42))
    session.drop()
    assert state_of(session) is SessionState.DOWN
    reader = JuteReader(frames_of(session.greet())[0])
    assert (reader.integer(), reader.long(), reader.integer(), reader.long()) == (0, 0, 3000, 77)
    assert reader.data() == b"p" * 16
    [sync] = frames_of(session.receive(welcome())[2])
    assert sync == struct.pack("!ii", -16, 9) + jute.text("/")
    assert state_of(session) is SessionState.GREETING, "the server may not have heard of what was under way"
    session.receive(reply(-16, jute.text("/"), zxid=42))
    assert state_of(session) is SessionState.UP


def test_servers_that_are_behind_again_and_again_have_another_past() -> None:
    """They were wiped or restored. One that is behind for once is merely slow."""
    session = up()
    ask(session, Sync("/"))
    session.receive(reply(1, zxid=42))
    for _ in range(2 * BEHIND_COUNT):
        session.drop()
        session.greet()
        session.receive(welcome())
        try:
            _, _, answer = session.receive(reply(-16, jute.text("/"), zxid=41))
        except OutOfStep:
            assert state_of(session) is SessionState.GREETING
            continue
        break
    assert state_of(session) is SessionState.GONE
    [parting] = frames_of(answer)
    assert struct.unpack_from("!ii", parting) == (-16, -11), "what they remember of it is to vanish"


def test_a_session_that_has_expired_is_gone() -> None:
    session = up()
    session.drop()
    session.greet()
    session.receive(welcome(timeout=0, session=0))
    assert state_of(session) is SessionState.GONE
    session.drop()
    assert state_of(session) is SessionState.GONE


def test_credentials_come_first_and_are_awaited() -> None:
    session = Session(3.0, [("digest", b"me:secret")])
    session.greet()
    answer = session.receive(welcome())[2]
    [shown] = frames_of(answer)
    reader = JuteReader(shown)
    assert (reader.integer(), reader.integer(), reader.integer()) == (-4, 100, 0)
    assert (reader.text(), reader.data()) == ("digest", b"me:secret")
    assert state_of(session) is SessionState.GREETING
    session.receive(reply(-4))
    assert state_of(session) is SessionState.UP


def test_credentials_come_before_all_else_when_it_is_taken_up_again() -> None:
    session = Session(3.0, [("digest", b"me:secret")])
    for again in (False, True):
        session.greet()
        told = frames_of(session.receive(welcome())[2])
        assert [struct.unpack_from("!i", each)[0] for each in told] == ([-4, -16] if again else [-4])
        session.receive(reply(-4, zxid=0))
        assert state_of(session) is (SessionState.GREETING if again else SessionState.UP)
        if again:
            session.receive(reply(-16, jute.text("/")))
        assert state_of(session) is SessionState.UP
        session.drop()


def test_credentials_that_are_refused() -> None:
    session = Session(3.0, [("digest", b"me:wrong")])
    session.greet()
    session.receive(welcome())
    with pytest.raises(SessionRefused, match="credentials"):
        session.receive(reply(-4, code=-115))


OPS: list[tuple[Op, bytes, bytes, object]] = [
    (Create("/a", b"d", acl(), EPHEMERAL), jute.text("/a") + jute.data(b"d") + acl() + jute.integer(1),
     jute.text("/a") + STAT_BYTES, Created("/a", STAT)),
    (CreateContainer("/c", acl()), jute.text("/c") + jute.data(b"") + acl() + jute.integer(4),
     jute.text("/c") + STAT_BYTES, Created("/c", STAT)),
    (Delete("/a"), jute.text("/a") + jute.integer(-1), b"", True),
    (Exists("/a"), jute.text("/a") + b"\x00", STAT_BYTES, STAT),
    (Read("/a", watch=True), jute.text("/a") + b"\x01", jute.data(b"xyz") + STAT_BYTES, (b"xyz", STAT)),
    (Write("/a", b"n", 3), jute.text("/a") + jute.data(b"n") + jute.integer(3), STAT_BYTES, STAT),
    (List("/a"), jute.text("/a") + b"\x00", jute.texts(["x", "é"]) + STAT_BYTES, (["x", "é"], STAT)),
    (Watches(["/a"]), jute.long((1 << 63) - 1) + jute.texts([]) * 2 + jute.texts(["/a"]), b"", True),
    (Sync("/"), jute.text("/"), jute.text("/"), True),
]  # fmt: skip
KINDS = [15, 19, 2, 3, 4, 5, 12, 101, 9]


def test_each_operation_out_and_in() -> None:
    """All in one batch, the replies byte by byte."""
    session = up()
    ticket, frames = ask(session, *(op for op, *_ in OPS))
    for number, ((_, body, _, _), kind, out) in enumerate(zip(OPS, KINDS, frames, strict=True)):
        assert out == struct.pack("!ii", number + 1, kind) + body
    done: list[Ticket] = []
    for number, (_, _, answer, _) in enumerate(OPS):
        for byte in reply(number + 1, answer):
            done += session.receive(bytes([byte]))[0]
    assert done == [ticket]
    assert ticket.answers == [value for *_, value in OPS]
    assert session.under_way == 0


def test_a_multi_that_was_done() -> None:
    session = up()
    multi = Multi([Create("/a", b"", acl()), Check("/b", 2), Delete("/c")])
    ticket, [out] = ask(session, multi)
    reader = JuteReader(out, 8)
    assert (reader.integer(), reader.flag(), reader.integer(), reader.text()) == (15, False, -1, "/a")
    assert out.endswith(jute.integer(-1) + b"\x01" + jute.integer(-1))

    def head(kind: int, code: int = 0, done: bool = False) -> bytes:
        return jute.integer(kind) + jute.flag(done) + jute.integer(code)

    session.receive(reply(1, head(1) + jute.text("/a") + head(13) + head(2) + head(-1, -1, done=True)))
    assert ticket.answers == [["/a", True, True]]


def test_a_multi_that_was_not() -> None:
    session = up()
    ticket, _ = ask(session, Multi([Delete("/a"), Delete("/b")]))
    failed = b"".join(jute.integer(-1) + b"\x00" + jute.integer(code) + jute.integer(code) for code in (0, -101))
    session.receive(reply(1, failed + jute.integer(-1) + b"\x01" + jute.integer(-1)))
    assert ticket.answers == [Failure(-101)]


def test_an_error_is_an_answer() -> None:
    session = up()
    ticket, _ = ask(session, Exists("/a"), Delete("/b"))
    session.receive(reply(1, code=-101) + reply(2))
    assert ticket.answers == [Failure(-101), True]
    assert not ticket.answers[0]


def test_a_reply_out_of_order_ends_the_connection() -> None:
    session = up()
    ask(session, Sync("/"), Sync("/"))
    with pytest.raises(OutOfStep):
        session.receive(reply(2))


@pytest.mark.parametrize(
    "nonsense", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", frame(b"\x00"), reply(1, b"\x00\x00\x00\x05/a")]
)
def test_nonsense_ends_the_connection(nonsense: bytes) -> None:
    session = up()
    ask(session, Exists("/a"))
    with pytest.raises(OutOfStep):
        session.receive(nonsense)


def test_what_was_under_way_is_lost_with_the_connection() -> None:
    session = up()
    first, _ = ask(session, Sync("/"))
    second, _ = ask(session, Sync("/"), Delete("/a"))
    session.receive(reply(1) + reply(2))
    assert session.drop() == [second]
    assert (first.done, first.lost, second.done, second.lost) == (True, False, True, True)
    assert session.under_way == 0


def test_an_expired_session_is_told_by_an_answer_too() -> None:
    session = up()
    ask(session, Sync("/"))
    session.receive(reply(1, code=-112))
    assert state_of(session) is SessionState.GONE


def test_events_come_in_between_and_only_for_what_is_watched() -> None:
    session = up()
    ticket, _ = ask(session, Watches(["/a", "/none"]), Read("/b", watch=True), Read("/c", watch=True))
    _, events, _ = session.receive(event(DELETED, "/none") + reply(1))
    assert events == [(DELETED, "/none")], "of what is gone already it is told before the reply"
    session.receive(reply(2, jute.data(b"") + STAT_BYTES) + reply(3, code=-101))
    assert ticket.done
    assert (session.on_end, session.on_data) == ({"/a"}, {"/b"})
    _, events, _ = session.receive(event(DELETED, "/a") + event(DATA_CHANGED, "/b") + event(DELETED, "/elsewhere"))
    assert events == [(DELETED, "/a"), (DATA_CHANGED, "/b")]
    assert session.receive(event(DELETED, "/a"))[1] == []  # a watch fires once


def test_what_is_written_to_a_node_does_not_end_the_watch_on_its_end() -> None:
    session = up()
    ask(session, Watches(["/a"]), Read("/a", watch=True))
    session.receive(reply(1) + reply(2, jute.data(b"") + STAT_BYTES))
    assert session.receive(event(DATA_CHANGED, "/a"))[1] == [(DATA_CHANGED, "/a")]
    assert session.receive(event(DELETED, "/a"))[1] == [(DELETED, "/a")]


def test_watches_are_told_in_portions_that_a_server_takes() -> None:
    """A thousand long names are more than a megabyte, at which a server drops the connection."""
    session = up()
    paths = [f"/h/{n:04}{'%C3%A9' * 256}" for n in range(1000)]
    ask(session, Watches(paths[:500]))
    session.on_data.update(paths[500:])
    session.drop()
    session.greet()
    _, *told = frames_of(session.receive(welcome())[2])
    assert max(map(len, told)) < 200_000
    found: list[list[str]] = [[], [], []]
    for each in told:
        reader = JuteReader(each, 16)
        for kind in found:
            kind += reader.texts()
    assert (sorted(found[0]), found[1], sorted(found[2])) == (paths[500:], [], paths[:500])


def test_watches_are_told_to_the_next_server() -> None:
    session = up()
    ask(session, Watches(["/a"]), Read("/b", watch=True))
    session.receive(reply(1, zxid=50) + reply(2, jute.data(b"") + STAT_BYTES, zxid=51))
    session.drop()
    session.greet()
    _, *told = frames_of(session.receive(welcome())[2])
    found = []
    for each in told:
        reader = JuteReader(each)
        assert (reader.integer(), reader.integer(), reader.long()) == (-8, 101, 51)
        found.append((reader.texts(), reader.texts(), reader.texts()))
        assert reader.left == 0
    assert found == [(["/b"], [], []), ([], [], ["/a"])]
    session.receive(reply(-16, jute.text("/"), zxid=60))
    assert session.receive(reply(-8) + event(DELETED, "/a"))[1] == [(DELETED, "/a")]


def test_request_numbers_stay_positive() -> None:
    session = up()
    session._xid = 0x7FFFFFFF - 1
    _, frames = ask(session, Sync("/"), Sync("/"))
    assert [struct.unpack_from("!i", out)[0] for out in frames] == [0x7FFFFFFF, 1]

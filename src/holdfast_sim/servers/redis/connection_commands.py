"""Commands about the session itself: who it is, which version it speaks, which database it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .acl import NO_PASSWORD
from .protocol import ErrorReply, Reply, Status

if TYPE_CHECKING:
    from .server import RedisServer
    from .session import RedisSession

OK = Status("OK")
DATABASES_COUNT = 16
SYNTAX = "ERR syntax error"
BAD_NAME = "ERR Client names cannot contain spaces, newlines or special characters."
NO_HELLO = (
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> "
    "option can be used to authenticate the client and select the RESP protocol version at the same time"
)


def auth(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if len(words) > 3:
        raise ErrorReply(SYNTAX)
    if len(words) == 2 and server.users.default.no_password:
        raise ErrorReply(NO_PASSWORD)
    name = words[1].decode("latin-1") if len(words) == 3 else "default"
    session.user = server.users.log_in(name, words[-1])
    return OK


def hello(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    version = session.version
    if len(words) > 1:
        if not words[1].isdigit():
            raise ErrorReply("ERR Protocol version is not an integer or out of range")
        version = int(words[1])
        if version not in (2, 3):
            raise ErrorReply("NOPROTO unsupported protocol version")
    at, name = 2, None
    login: list[bytes] = []
    while at < len(words):
        option, left = words[at].upper(), len(words) - at - 1
        if option == b"AUTH" and left >= 2:
            login = words[at + 1 : at + 3]
            at += 3
        elif option == b"SETNAME" and left >= 1:
            name = words[at + 1]
            if not _is_name(name):
                raise ErrorReply(BAD_NAME)
            at += 2
        else:
            raise ErrorReply(f"ERR Syntax error in HELLO option '{words[at].decode('latin-1')}'")
    if login:
        session.user = server.users.log_in(login[0].decode("latin-1"), login[1])
    if session.user is None:
        raise ErrorReply(NO_HELLO)
    if name is not None:
        session.name = name
    session.version = version
    return {
        b"server": b"redis",
        b"version": server.version.encode(),
        b"proto": version,
        b"id": session.number,
        b"mode": b"cluster" if server.cluster is not None else b"standalone",
        b"role": b"replica" if server.is_replica else b"master",
        b"modules": [],
    }


def _is_name(name: bytes) -> bool:
    return all(33 <= char <= 126 for char in name)


def client(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    match words[1].lower():
        case b"id":
            return session.number
        case b"getname":
            return session.name or None
        case b"setname":
            if not _is_name(words[2]):
                raise ErrorReply(BAD_NAME)
            session.name = words[2]
        case b"setinfo":
            if words[2].lower() not in (b"lib-name", b"lib-ver"):
                raise ErrorReply(f"ERR Unrecognized option '{words[2].decode('latin-1')}'")
        case b"no-evict":
            if words[2].lower() not in (b"on", b"off"):
                raise ErrorReply(SYNTAX)
    return OK


def select(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    number = words[1]
    if not number.removeprefix(b"-").isdigit():
        raise ErrorReply("ERR value is not an integer or out of range")
    if server.cluster is not None and int(number):
        raise ErrorReply("ERR SELECT is not allowed in cluster mode")
    if not 0 <= int(number) < DATABASES_COUNT:
        raise ErrorReply("ERR DB index is out of range")
    session.database = int(number)
    return OK


def ping(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if len(words) > 2:
        raise ErrorReply("ERR wrong number of arguments for 'ping' command")
    if session.only_listens:
        return [b"pong", words[1] if len(words) == 2 else b""]
    return words[1] if len(words) == 2 else Status("PONG")


def echo(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    return words[1]


def quit_session(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    session.close_after_reply()
    return OK


def reset(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    server.subscriptions.forget(session)
    session.start_again()
    return Status("RESET")


def who_am_i(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    assert session.user is not None
    return session.user.name.encode()


HANDLERS = {
    "acl|whoami": who_am_i,
    "auth": auth,
    "client|getname": client,
    "client|id": client,
    "client|no-evict": client,
    "client|setinfo": client,
    "client|setname": client,
    "echo": echo,
    "hello": hello,
    "ping": ping,
    "quit": quit_session,
    "reset": reset,
    "select": select,
}

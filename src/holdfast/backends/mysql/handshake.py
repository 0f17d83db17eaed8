"""The log-in, as bytes: what the server says first, and what is answered until it lets us in. No sockets here.

1. The server speaks first (`Hello`). Where it can, and nobody said otherwise, the connection becomes TLS then: the
   client asks for it with the first half of its answer, and gives the whole answer encrypted.
2. The answer names a method and proves the password by it; the server may ask for another method once, and a method may
   ask for more. Passwords go out as they are where nobody can listen only: in TLS, through a Unix socket, or within
   this host.
3. `log_in` is a generator: it yields packets to send (none: only read on) or `StartEncryption`, and is sent the next
   packet. An error of the server is raised as `Refused`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from ..._core.flow import Endpoint
from ..relational.error_mapping import Refused
from .packets import END, ERROR, LONGEST_BYTES, OK, Garbled, frame, refused, text_value

FOUND_ROWS, WITH_DATABASE, TLS = 1 << 1, 1 << 3, 1 << 11
SECURE, PLUGINS, ATTRIBUTES, LONG_ANSWERS = 1 << 15, 1 << 19, 1 << 20, 1 << 21
FLAGS = 1 | FOUND_ROWS | 1 << 2 | 1 << 9 | 1 << 13 | SECURE | 1 << 17 | PLUGINS | ATTRIBUTES | LONG_ANSWERS
"""Besides those named: long passwords and flags, protocol 4.1, transactions, several results."""
UTF8MB4_CODE = 45
MORE_CODE = 0x01
FAST_DONE_CODE, FULL_CODE = 3, 4
NATIVE, CACHING, SHA256 = b"mysql_native_password", b"caching_sha2_password", b"sha256_password"
ED25519, CLEAR, DIALOG = b"client_ed25519", b"mysql_clear_password", b"dialog"
SALT_BYTES = 20
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Scrambles(Protocol):
    """How a password is proved, as PyMySQL has it. RuntimeError: another package is needed."""

    def scramble_native_password(self, password: bytes, message: bytes) -> bytes: ...

    def scramble_caching_sha2(self, password: bytes, nonce: bytes) -> bytes: ...

    def ed25519_password(self, password: bytes, scramble: bytes) -> bytes: ...

    def sha2_rsa_encrypt(self, password: bytes, salt: bytes, public_key: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Login:
    """What a connection is made with."""

    endpoint: Endpoint
    user: bytes
    password: bytes
    database: bytes
    host: str
    """As its certificate names it."""
    tls: object | None
    """An `ssl.SSLContext`; used where the server has TLS, too."""
    tls_required: bool
    attributes: Mapping[str, str]
    scrambles: Scrambles


class Hello(NamedTuple):
    """What the server says first."""

    version: str
    session: int
    salt: bytes
    flags: int
    plugin: bytes


class StartEncryption(NamedTuple):
    """Send this, and then make the connection TLS."""

    packet: bytes


class Packet(NamedTuple):
    number: int
    body: bytes


Talk: TypeAlias = Generator[bytes | StartEncryption, Packet, None]


def read_hello(body: bytes) -> Hello:
    if not body or body[0] == ERROR:
        raise refused(body) if body else Garbled("an empty packet")
    end = body.index(b"\0", 1)
    version, at = body[1:end].decode("latin1"), end + 1
    session, salt = int.from_bytes(body[at : at + 4], "little"), body[at + 4 : at + 12]
    at += 13
    flags = int.from_bytes(body[at : at + 2], "little") | int.from_bytes(body[at + 5 : at + 7], "little") << 16
    rest = max(12, (body[at + 7] if len(body) > at + 7 else 0) - 9)
    at += 18
    salt += body[at : at + rest]
    plugin = body[at + rest + 1 :].partition(b"\0")[0] if flags & PLUGINS else b""
    return Hello(version, session, salt, flags, plugin)


class Handshake:
    """One log-in; `hello` is there once the server has said it."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._secure = bool(login.endpoint.path)
        self._here = login.endpoint.host in LOOPBACK
        self.hello: Hello | None = None

    @property
    def product(self) -> str:
        """What the server says it is, before the log-in. (A proxy may say anything.)"""
        if self.hello is None or not self.hello.version or "MariaDB" in self.hello.version:
            return "MariaDB"
        return f"the server (version {self.hello.version}, not MariaDB, for which holdfast's tables are made)"

    def log_in(self) -> Talk:
        try:
            yield from self._log_in()
        except (IndexError, ValueError) as error:
            raise Garbled(f"the log-in was answered with something else: {error}") from error

    def _log_in(self) -> Talk:
        number, body = yield b""
        hello = self.hello = read_hello(body)
        login = self._login
        flags = FLAGS | WITH_DATABASE
        if login.tls is not None and hello.flags & TLS:
            flags |= TLS
        elif login.tls is not None and login.tls_required:
            raise Refused(2026, "SSL is required but the server doesn't support it")
        first = flags.to_bytes(4, "little") + LONGEST_BYTES.to_bytes(4, "little") + bytes((UTF8MB4_CODE,)) + bytes(23)
        if flags & TLS:
            number += 1
            yield StartEncryption(frame(number, first))
            self._secure = True
        plugin, salt = hello.plugin, hello.salt
        known = plugin in (b"", NATIVE, CACHING, SHA256)
        answer = self._answer(plugin, salt) if known else b""
        number, body = yield frame(number + 1, self._response(first, answer, plugin if known else b""))
        switched = False
        while body[0] != OK:
            if body[0] == END and not switched:
                switched = True
                plugin, _, salt = body[1:].partition(b"\0")
                if plugin in (CLEAR, DIALOG) and not (self._secure or self._here):
                    raise RuntimeError(
                        f"the server asks for the password as it is ({plugin.decode()}), and others can listen; use TLS"
                    )
                if plugin == DIALOG:
                    number, body = yield from self._dialog(number, salt)
                else:
                    number, body = yield frame(number + 1, self._answer(plugin, salt))
            elif body[0] == MORE_CODE and plugin in (CACHING, SHA256):
                number, body = yield from self._prove(plugin, salt, number, body)
            elif body[0] == ERROR:
                raise refused(body)
            else:
                raise Garbled(f"a packet that is no part of a log-in: {body[:40]!r}")

    def _response(self, first: bytes, answer: bytes, plugin: bytes) -> bytes:
        assert self.hello is not None
        login, flags = self._login, self.hello.flags
        data = first + login.user + b"\0"
        data += text_value(answer) if flags & (LONG_ANSWERS | SECURE) else answer + b"\0"
        if flags & WITH_DATABASE:
            data += login.database + b"\0"
        if flags & PLUGINS:
            data += plugin + b"\0"
        if flags & ATTRIBUTES:
            data += text_value(
                b"".join(text_value(each.encode()) for pair in login.attributes.items() for each in pair)
            )
        return data

    def _answer(self, plugin: bytes, salt: bytes) -> bytes:
        """What a method says first."""
        password, scrambles = self._login.password, self._login.scrambles
        if plugin in (b"", NATIVE):
            return scrambles.scramble_native_password(password, salt)
        if plugin == CACHING:
            return scrambles.scramble_caching_sha2(password, salt[:SALT_BYTES])
        if plugin == SHA256:
            return password + b"\0" if self._secure else b"\1" if password else b"\0"
        if plugin == ED25519:
            return scrambles.ed25519_password(password, salt)
        if plugin == CLEAR:
            return password + b"\0"
        raise Refused(
            2059, f"the server asks for a log-in by {plugin.decode('utf-8', 'replace')!r}, which is not known"
        )

    def _prove(self, plugin: bytes, salt: bytes, number: int, body: bytes) -> Generator[bytes, Packet, Packet]:
        """A method of SHA-256 wants more: the password itself, encrypted with the server's key where others listen."""
        password = self._login.password
        if plugin == CACHING:
            if body[1] == FAST_DONE_CODE:
                return (yield b"")
            if body[1] != FULL_CODE:
                raise Garbled(f"a packet that is no part of a log-in: {body[:40]!r}")
            if self._secure:
                return (yield frame(number + 1, password + b"\0"))
            number, body = yield frame(number + 1, b"\2")
            if body[0] != MORE_CODE:
                return Packet(number, body)
        proof = self._login.scrambles.sha2_rsa_encrypt(password, salt[:SALT_BYTES], body[1:]) if password else b""
        return (yield frame(number + 1, proof))

    def _dialog(self, number: int, asked: bytes) -> Generator[bytes, Packet, Packet]:
        """PAM asks questions; the one for the password is answered."""
        while True:
            if asked[1:] != b"Password: ":
                raise Refused(2059, f"the server asks {asked[1:].decode('utf-8', 'replace')!r}, which is not known")
            number, body = yield frame(number + 1, self._login.password + b"\0")
            if body[0] in (OK, ERROR) or asked[0] & 1:
                return Packet(number, body)
            asked = body


class PacketReader:
    """Cuts what comes during the log-in into packets."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> Packet | None:
        buffer = self._buffer
        if len(buffer) < 4 or len(buffer) < (end := 4 + int.from_bytes(buffer[:3], "little")):
            return None
        self._buffer = buffer[end:]
        return Packet(buffer[3], buffer[4:end])

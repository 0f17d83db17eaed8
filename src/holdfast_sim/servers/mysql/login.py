"""The log-in: what a client answers to the handshake, and whether that is the password (`mysql_native_password`)."""

from __future__ import annotations

import hashlib
from random import Random
from typing import NamedTuple

PLUGIN = "mysql_native_password"
CONNECT_WITH_DB, LENGTH_ENCODED, PLUGIN_AUTH, DEPRECATE_EOF = 0x8, 0x200000, 0x80000, 0x1000000
SALT_BYTES = 20


class Response(NamedTuple):
    """A handshake response."""

    user: str
    answer: bytes
    database: str
    plugin: str


def new_salt(chance: Random) -> bytes:
    """Printable, as the server's is."""
    return bytes(chance.randrange(33, 127) for _ in range(SALT_BYTES))


def scrambled(password: str, salt: bytes) -> bytes:
    if not password:
        return b""
    once = hashlib.sha1(password.encode()).digest()
    twice = hashlib.sha1(once).digest()
    mixed = hashlib.sha1(salt + twice).digest()
    return bytes(one ^ other for one, other in zip(once, mixed, strict=True))


def read_response(packet: bytes) -> Response:
    """Raises `ValueError` or `IndexError` if it is none."""
    flags = int.from_bytes(packet[:4], "little")
    if flags & DEPRECATE_EOF:
        raise NotImplementedError("the model writes results in the form with EOF packets")
    at = packet.index(b"\0", 32)
    user = packet[32:at].decode()
    size = packet[at + 1]  # one byte with either flag: an answer has 20 bytes, or none
    at += 2
    answer = packet[at : at + size]
    at += size
    database = plugin = ""
    if flags & CONNECT_WITH_DB:
        end = packet.index(b"\0", at)
        database, at = packet[at:end].decode(), end + 1
    if flags & PLUGIN_AUTH:
        plugin = packet[at : packet.index(b"\0", at)].decode()
    return Response(user, answer, database, plugin)

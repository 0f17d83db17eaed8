"""Who may do what: digests, access control lists, and the passwords of sessions.

1. A digest is not checked against anything: whoever shows one *is* that user. Wrong credentials show as `NO_AUTH` at a
   node whose list names another digest. Only an unknown scheme is refused, with `AUTH_FAILED`.
2. The password of a session is a function of its id, the same on every server: Java's random numbers, seeded with it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from .records import Acl, Code, Refused

READ, WRITE, CREATE, DELETE, ADMIN, ALL = 1, 2, 4, 8, 16, 31
OPEN = (Acl(ALL, "world", "anyone"),)
Identity = tuple[str, str]
_SCHEMES = frozenset({"digest", "ip"})
_SECRET_NUMBER = 0xB3415C00
_MULTIPLIER, _MASK = 0x5DEECE66D, (1 << 48) - 1


def identity_of(scheme: str, secret: bytes) -> Identity | None:
    """Who shows these credentials; None if the scheme is unknown. One of `ip` says nothing that is not known."""
    if scheme == "digest":
        user = secret.split(b":", 1)[0].decode(errors="replace")
        return "digest", f"{user}:{base64.b64encode(hashlib.sha1(secret).digest()).decode()}"
    return ("ip", "127.0.0.1") if scheme == "ip" else None


def check(acl: Sequence[Acl], right: int, identities: Iterable[Identity]) -> None:
    """Raises unless one of the entries gives the right to anyone, or to one of these."""
    if not acl or acl is OPEN:
        return
    known = set(identities)
    for entry in acl:
        if entry.rights & right and (entry[1:] == ("world", "anyone") or entry[1:] in known):
            return
    raise Refused(Code.NO_AUTH)


def complete(acl: Sequence[Acl], identities: Sequence[Identity]) -> tuple[Acl, ...]:
    """The list as it is kept with a node: without doubles, `auth` replaced by who is logged in."""
    if acl == OPEN:
        return OPEN
    found: list[Acl] = []
    for entry in dict.fromkeys(acl):
        if entry[1:] == ("world", "anyone"):
            found.append(entry)
        elif entry.scheme == "auth":
            logged_in = [Acl(entry.rights, *who) for who in identities if who[0] == "digest"]
            if not logged_in:
                raise Refused(Code.INVALID_ACL)
            found += logged_in
        elif entry.scheme not in _SCHEMES or (entry.scheme == "digest" and _parts(entry.who) != 2):
            raise Refused(Code.INVALID_ACL)
        else:
            found.append(entry)
    if not found:
        raise Refused(Code.INVALID_ACL)
    return tuple(found)


def _parts(who: str) -> int:
    """As Java splits: empty parts at the end do not count."""
    return len(who.rstrip(":").split(":"))


def password_of(session: int) -> bytes:
    state = ((session ^ _SECRET_NUMBER) ^ _MULTIPLIER) & _MASK
    found = b""
    for _ in range(4):
        state = (state * _MULTIPLIER + 0xB) & _MASK
        found += (state >> 16).to_bytes(4, "little")
    return found

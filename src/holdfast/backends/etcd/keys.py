"""Where things stand in etcd. All keys of a namespace begin with its name and a slash: for roles, and to look by hand.

    NAMESPACE/line/NAME␀OWNER    a claim: its place is its create revision, its life that of its holder's etcd lease
    NAMESPACE/ghost/NAME␀OWNER   what keeps a name closed after its holder (lock_delay, hold_at_least)
    NAMESPACE/note/OWNER         why the claim is gone, for its owner
    NAMESPACE/ask/OWNER          somebody asks the owner to give way
    NAMESPACE/rate/NAME          a limiter's count

Names have no control characters, so a NUL ends them and no name's range holds another's keys.
"""

from __future__ import annotations

from .rpc import b64, end_of


class Keys:
    """The keys of one namespace, in base64."""

    def __init__(self, namespace: str) -> None:
        self.line = f"{namespace}/line/"
        self.ghost = f"{namespace}/ghost/"
        self._note = f"{namespace}/note/"
        self._ask = f"{namespace}/ask/"
        self._rate = f"{namespace}/rate/"

    def claim(self, name: str, owner: str) -> str:
        return b64(f"{self.line}{name}\0{owner}")

    def claims(self, name: str) -> tuple[str, str]:
        """The range of a name's claims."""
        return b64(f"{self.line}{name}\0"), b64(f"{self.line}{name}\1")

    def shade(self, name: str, owner: str) -> str:
        return b64(f"{self.ghost}{name}\0{owner}")

    def ghosts(self, name: str) -> tuple[str, str]:
        return b64(f"{self.ghost}{name}\0"), b64(f"{self.ghost}{name}\1")

    def note(self, owner: str) -> str:
        return b64(self._note + owner)

    def ask(self, owner: str) -> str:
        return b64(self._ask + owner)

    def rate(self, name: str) -> str:
        return b64(self._rate + name)

    def all_claims(self, prefix: str) -> tuple[str, str]:
        """The range of the claims of all names with this prefix."""
        return b64(self.line + prefix), end_of(self.line + prefix)

    def all_ghosts(self, prefix: str) -> tuple[str, str]:
        return b64(self.ghost + prefix), end_of(self.ghost + prefix)

    def owner_of(self, key: str) -> str:
        """The owner of a claim, a note or an ask, from its plain key."""
        return key.rpartition("\0")[2] if "\0" in key else key.rpartition("/")[2]

"""What is said first on a connection, as bytes: who we are, and that pushes may come on it.

All of it leaves in one write, and only the replies are waited for one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from .resp import Error, Reply, command
from .server import Server

SUBSCRIBED = b"subscribe"
"""The push that is the reply to SUBSCRIBE."""
HELLO = command("HELLO", 3)


def introduction(server: Server, credentials: Sequence[str]) -> list[bytes]:
    """Log in, and choose the database; each is one reply. See `check_introduction`."""
    said: list[Sequence[str | int]] = []
    if credentials:
        said.append(("AUTH", *credentials))
    if server.db:
        said.append(("SELECT", server.db))
    if server.client_name is not None:
        said.append(("CLIENT", "SETNAME", server.client_name))
    return [command(*words) for words in said]


def check_introduction(frame: bytes, reply: Reply) -> None:
    """Raise the server's refusal. A name is not needed: a user that may not set one goes without."""
    if isinstance(reply, Error) and not (reply.code == "NOPERM" and b"SETNAME" in frame):
        raise reply


def says_goodbye(reply: Error) -> bool:
    """The server has said why it wants nobody like us, whatever was asked, and has ended the connection."""
    return reply.code == "DENIED" or "max number of clients" in str(reply)


def subscribe(channel: str) -> bytes:
    return command("SUBSCRIBE", channel)

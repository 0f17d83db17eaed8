"""Threads that wait on links of their own: which link listens for whom."""

from __future__ import annotations

from ...queue_backend import Push
from .link import Link
from .links import Links

MOST_PARKED = 64
"""So many threads wait on links of their own; more share one."""
MOST_PUSHED = 1024


class Parking:
    """The links of one wire that wait for a push."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.parked: dict[str, Link] = {}
        """Links that listen for an owner that waits, or is about to."""
        self.pushed: set[str] = set()
        """Who was granted by a push: most likely others wait, too."""

    def park(self, owner: str, link: Link) -> None:
        """From now on it is this link that listens; an owner that asks again may have another one."""
        if owner in self.parked:
            self.forget(owner)
        self.parked[owner] = link

    def forget(self, owner: str) -> None:
        """This owner waits no longer."""
        if (link := self.parked.pop(owner, None)) is not None:
            self._links.put(link)

    def wait(self, owner: str, link: Link, timeout: float) -> Push | None:
        try:
            token = link.await_push(owner, timeout)
        except BaseException as error:
            self.parked.pop(owner, None)
            self._links.drop(link)
            if isinstance(error, OSError):
                return None  # to look again finds out more
            raise
        if self.parked.pop(owner, None) is not None:  # `forget`, in place
            self._links.put(link)
        if not token:
            return None
        if len(self.pushed) >= MOST_PUSHED:
            self.pushed.clear()  # leases that nobody released, mostly
        self.pushed.add(owner)
        return Push(token)

    def close(self) -> None:
        """Whoever waits looks again, and is told."""
        for link in list(self.parked.values()):
            link.hang_up()

    def abandon(self) -> None:
        """In a forked child: they are the parent's."""
        for link in self.parked.values():
            link.close()

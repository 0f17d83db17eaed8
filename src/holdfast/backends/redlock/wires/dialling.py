"""Blocking connections to nodes: several at once, within one bound.

1. Each node is dialled by a thread of its own, because the name service, TLS and the log-in cannot all be given a bound
   in any other way. Whoever needs connections waits for enough of them, a moment for the others, and `GREETING_TIMEOUT`
   at most: hung nodes cost that once, not once for each.
2. What is connected too late is kept for the next one who needs it.
3. A node that could not be reached is not tried again by anybody for a while (`RETRY_AFTER`), and is `absent`: only who
   looks after nodes tries it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from .... import clock
from ....errors import BackendUnavailable, Misconfigured
from .greeting import Manners, greet
from .link import NodeLink, NotYet
from .node.dialling import Dialler

RETRY_AFTER = 0.5
GREETING_TIMEOUT = 1.0
"""For a new connection, from its first packet to the end of its greeting."""
GRACE = 0.05
"""For how long others are waited for once there are enough."""

Dialled: TypeAlias = NodeLink | Exception


class Attempt:
    """What comes of dialling several nodes, for as long as somebody waits for it."""

    def __init__(self) -> None:
        self._results: SimpleQueue[tuple[int, Dialled]] = SimpleQueue()
        self._mutex = threading.Lock()
        self._over = False

    def deliver(self, node: int, dialled: Dialled) -> bool:
        """False if nobody waits any longer."""
        with self._mutex:
            if not self._over:
                self._results.put((node, dialled))
            return not self._over

    def get(self, timeout: float) -> tuple[int, Dialled]:
        """Raises `Empty` if nothing comes in time."""
        return self._results.get(timeout=max(0.0, timeout))

    def end(self) -> Iterator[tuple[int, Dialled]]:
        """From now on nobody waits; answers with what came in the last moment."""
        with self._mutex:
            self._over = True
        while not self._results.empty():
            yield self._results.get()


class NodeDiallers:
    """Connects to the nodes of one wire."""

    def __init__(self, diallers: tuple[Dialler, ...], manners: Manners) -> None:
        self._diallers = diallers
        self._manners = manners
        self.absent: set[int] = set()
        """Nodes that were not reached when it was last tried."""
        self._closed_until = [0.0] * len(diallers)
        self._why: list[Exception] = [BackendUnavailable("not tried")] * len(diallers)
        self._spare: list[list[NodeLink]] = [[] for _ in diallers]
        self._closed = False

    def dial(self, nodes: Iterable[int], enough: int) -> dict[int, Dialled]:
        """A link to each of these nodes, or why there is none. `enough`: of so many, the others get a moment."""
        got: dict[int, Dialled] = {}
        attempt, under_way, began = Attempt(), set[int](), clock.now()
        try:
            for node in nodes:
                if self._spare[node]:
                    got[node] = self._spare[node].pop()
                elif began < self._closed_until[node]:
                    got[node] = BackendUnavailable(str(self._why[node]))
                else:
                    under_way.add(node)
                    self._begin(node, attempt)
            while under_way:
                left = began + GREETING_TIMEOUT - clock.now()
                if sum(isinstance(each, NodeLink) for each in got.values()) >= enough:
                    left = min(left, GRACE)
                node, got[node] = attempt.get(left)
                under_way.discard(node)
        except Empty:
            for node in under_way:
                self.absent.add(node)
                got[node] = TimeoutError("it does not answer a new connection")
        except BaseException:  # interrupted
            for link in got.values():
                if isinstance(link, NodeLink):
                    link.close()
            raise
        finally:
            for node, late in attempt.end():
                self._keep(node, late)
        return got

    def _begin(self, node: int, attempt: Attempt) -> None:
        try:
            threading.Thread(target=self._dial, args=(node, attempt), name="holdfast-dial", daemon=True).start()
        except RuntimeError:  # no thread can be had: one after the other, then
            self._dial(node, attempt)

    def _dial(self, node: int, attempt: Attempt) -> None:
        dialled: Dialled
        try:
            dialled = self._connect(node)
        except (OSError, Misconfigured) as error:
            self.absent.add(node)
            self._closed_until[node] = clock.now() + RETRY_AFTER
            self._why[node] = dialled = error
        except BaseException as error:  # noqa: BLE001  a bug, raised where it is waited for
            dialled = ConnectionError(repr(error))
        else:
            self.absent.discard(node)
        if not attempt.deliver(node, dialled):
            self._keep(node, dialled)

    def _connect(self, node: int) -> NodeLink:
        end = clock.now() + GREETING_TIMEOUT
        link = NodeLink(self._diallers[node].dial(GREETING_TIMEOUT))
        try:
            greeting = greet(self._manners, os.urandom(8).hex())
            frames = next(greeting)
            while True:
                link.send(b"".join(frames))
                replies = [_patiently(link, end) for _ in frames]
                try:
                    frames = greeting.send(replies)
                except StopIteration:
                    return link
        except BaseException:
            link.close()
            raise

    def _keep(self, node: int, dialled: Dialled) -> None:
        """For the next one who needs it (rule 2)."""
        if isinstance(dialled, NodeLink):
            self._spare[node].append(dialled)
            if self._closed:
                self.close()

    def close(self) -> None:
        """Of what is being made, too, as soon as it is."""
        self._closed = True
        for links in self._spare:
            while links:
                links.pop().close()


def _patiently(link: NodeLink, end: float) -> Any:
    while True:
        try:
            return link.read()
        except NotYet:
            if clock.now() >= end:
                raise TimeoutError(f"it did not answer within {GREETING_TIMEOUT:g} s") from None

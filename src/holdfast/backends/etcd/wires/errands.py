"""What nobody waits for, done by one thread of its own: a holder that was just woken is let in before it.

1. Started with the first errand, and ended with the wire, which waits for what is still to be told.
2. What has gathered meanwhile leaves in one write; whatever does not matter any more by then is left out.
3. Where no thread can be started, nothing is told: all that is told here may be lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from ..rpc import Post, Rpc
from .link import Ear

AT_ONCE = 100


class Errands:
    """Posts to be told, and ears to be closed."""

    def __init__(self, tell: Callable[[Sequence[Rpc]], object]) -> None:
        self._tell = tell
        self._queue: SimpleQueue[Post | Ear | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._over = False

    def put(self, errand: Post | Ear) -> None:
        if self._thread is None and not self._start():
            if errand.__class__ is Ear:
                errand.socket.close()
        else:
            self._queue.put(errand)

    def _start(self) -> bool:
        with self._starting:
            if self._thread is None and not self._over:
                thread = threading.Thread(target=self._run, name="holdfast-errands", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no thread to be had
                    return False
                self._thread = thread
        return self._thread is not None

    def _run(self) -> None:
        ending = False
        while not ending:
            batch = [self._queue.get()]
            try:
                while len(batch) < AT_ONCE:
                    batch.append(self._queue.get_nowait())
            except Empty:
                pass
            ending = None in batch
            rpcs = [rpc for each in batch if isinstance(each, Post) and (rpc := each.make()) is not None]
            if rpcs:
                try:
                    self._tell(rpcs)
                except Exception:  # noqa: BLE001  it may be lost; the thread goes on
                    pass
            for each in batch:
                if isinstance(each, Ear):
                    each.socket.close()

    def end(self, timeout: float) -> None:
        """Nothing more comes; what is there is told first, if it does not take too long."""
        with self._starting:
            thread, self._thread, self._over = self._thread, None, True
        if thread is not None:
            self._queue.put(None)
            thread.join(timeout)

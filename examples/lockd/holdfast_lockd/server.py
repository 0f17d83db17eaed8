"""The server: `python -m holdfast_lockd --port 7777`. It knows nothing of holdfast.

A request is a line of JSON, `{"do": …, "space": …}`, and so is its reply, `{"reply": …}` or `{"error": …}`; there is
one request at a time on a connection. `wait` is answered when its owner has been granted its claim, at the latest after
`timeout`. Everything runs on one event loop, so that a request is atomic. Nothing is kept when the server ends.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Any

from .queue import Entry, Queue

TIDY_EVERY_COUNT = 1000
MAX_LINE_BYTES = 1 << 24


class LockServer:
    """All queues, by namespace and name."""

    def __init__(self) -> None:
        self.cluster = uuid.uuid4().hex[:12]
        self._queues: dict[tuple[str, str], Queue] = {}
        self._due_us: dict[tuple[str, str], int] = {}
        self._entries: weakref.WeakValueDictionary[tuple[str, str], Entry] = weakref.WeakValueDictionary()
        self._waiters: dict[tuple[str, str], asyncio.Future[None]] = {}
        self._served = 0
        self._verbs: dict[str, Callable[[dict[str, Any]], Any]] = {
            "hello": lambda request: self.cluster,
            "take": self._take,
            "renew": self._renew,
            "release": self._release,
            "survey": self._survey,
            "evict": self._evict,
            "allow": self._allow,
        }

    async def serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                try:
                    answer = {"reply": await self._answer(json.loads(line))}
                except (KeyError, TypeError, ValueError) as error:
                    answer = {"error": f"this server does not understand that request: {error!r}"}
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # the client is gone, or speaks another protocol
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any]) -> Any:
        if request["do"] == "wait":
            return await self._wait((request["space"], request["owner"]), request["timeout"])
        self._served += 1
        if self._served % TIDY_EVERY_COUNT == 0:
            self._tidy()
        return self._verbs[request["do"]](request)

    async def _wait(self, key: tuple[str, str], timeout: float) -> int | None:
        entry = self._entries.get(key)
        if entry is not None and not entry.token:
            waiter = self._waiters.setdefault(key, asyncio.get_running_loop().create_future())
            del entry  # whoever waits does not keep it alive
            await asyncio.wait([waiter], timeout=timeout)
            if self._waiters.get(key) is waiter:
                del self._waiters[key]
            entry = self._entries.get(key)
        return entry.token if entry is not None and entry.holds(time.monotonic()) else None

    def _wake(self, space: str, entries: list[Entry]) -> None:
        for entry in entries:
            waiter = self._waiters.pop((space, entry.owner), None)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def _queue(self, space: str, name: str) -> Queue:
        queue = self._queues.setdefault((space, name), Queue())
        queue.sweep(time.monotonic())
        return queue

    def _take(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        space, now = request["space"], time.monotonic()
        asked = [(self._queue(space, claim.pop("name")), claim.pop("capacity"), claim) for claim in request["claims"]]
        others = [queue.capacity if queue.in_use(now) and queue.capacity != size else None for queue, size, _ in asked]
        if any(others):
            return [{"token": 0, "capacity": capacity} for capacity in others]
        known = [queue.find(claim["owner"]) is not None for queue, _, claim in asked]
        mine: list[Entry] = []
        for queue, capacity, claim in asked:
            entry, promoted = queue.enter(Entry(**claim, since=now), capacity, now, _calendar_us())
            self._entries[space, entry.owner] = entry
            self._wake(space, promoted)
            mine.append(entry)
        if not request["queue"] and not all(entry.token for entry in mine):  # all or none
            for (queue, _, _), entry, old in zip(asked, mine, known, strict=True):
                if not (old and entry.token):
                    queue.leave(entry.owner, now)
                    self._wake(space, queue.promote(now, _calendar_us()))
            return [{"token": 0} for _ in mine]
        return [_taken(queue, entry, now) for (queue, _, _), entry in zip(asked, mine, strict=True)]

    def _renew(self, request: dict[str, Any]) -> list[str]:
        now = time.monotonic()
        return [self._queue(request["space"], name).renew(owner, token, now) for name, owner, token in request["holds"]]

    def _release(self, request: dict[str, Any]) -> bool:
        space, owner, now = request["space"], request["owner"], time.monotonic()
        queue = self._queue(space, request["name"])
        entry = queue.find(owner)
        held = queue.leave(owner, now, request["linger"])
        self._entries.pop((space, owner), None)
        self._wake(space, queue.promote(now, _calendar_us()))
        if (waiter := self._waiters.pop((space, owner), None)) is not None and entry is not None:
            waiter.set_result(None)  # its own wait ends, too
        return held

    def _evict(self, request: dict[str, Any]) -> bool:
        now = time.monotonic()
        queue = self._queue(request["space"], request["name"])
        found = queue.evict(request["token"], now)
        self._wake(request["space"], queue.promote(now, _calendar_us()))
        return found

    def _survey(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        now, prefix, views = time.monotonic(), request["prefix"], []
        for space, name in sorted(self._queues):
            if space != request["space"] or not name.startswith(prefix) or (request["exact"] and name != prefix):
                continue
            queue = self._queue(space, name)
            live = [_view(entry, now) for entry in queue.entries if entry.counts(now)]
            if live:
                views.append({"name": name, "capacity": queue.capacity, "claims": live})
        return views

    def _allow(self, request: dict[str, Any]) -> tuple[bool, float]:
        """One number per name, in whole microseconds: when the next request would come at the steady rate."""
        key, now = (request["space"], request["name"]), time.monotonic_ns() // 1000
        interval, reserve = (int(request[what] * 1_000_000) for what in ("interval", "reserve"))
        due_us = max(self._due_us.get(key, 0), now) + interval * request["cost"]
        wait = max(0, due_us - interval * request["burst"] - now)
        if wait <= reserve:
            self._due_us[key] = due_us
        return wait <= reserve, wait / 1_000_000

    def _tidy(self) -> None:
        """Forget what says nothing any more; tokens go on growing with the calendar (rule 3 of `queue`)."""
        now = time.monotonic()
        for key, queue in list(self._queues.items()):
            queue.sweep(now)
            if not queue.entries and queue.mark < _calendar_us():
                del self._queues[key]
        self._due_us = {key: due for key, due in self._due_us.items() if due > now * 1_000_000}


def _calendar_us() -> int:
    return time.time_ns() // 1000


def _taken(queue: Queue, entry: Entry, now: float) -> dict[str, Any]:
    if entry.token:
        return {"token": entry.token}
    again, ahead = queue.look_again(entry, now), queue.ahead(entry, now)
    return {"token": 0, "look_again": again, "ahead": ahead, "mark": queue.mark}


def _view(entry: Entry, now: float) -> dict[str, Any]:
    shown = {name: getattr(entry, name) for name in ("owner", "weight", "host", "pid", "since", "actor", "mode")}
    live = not entry.token or (entry.holds(now) and not entry.departed)
    remaining = max(0.0, entry.expires - now)
    return {**shown, "token": entry.token or None, "remaining": remaining, "live": live, "age": now - entry.since}


async def serve(host: str, port: int, ready: Callable[[int], object] = lambda port: None) -> None:
    """Serve until cancelled; `ready` is told the port."""
    server = await asyncio.start_server(LockServer().serve_connection, host, port, limit=MAX_LINE_BYTES)
    async with server:
        ready(server.sockets[0].getsockname()[1])
        await server.serve_forever()

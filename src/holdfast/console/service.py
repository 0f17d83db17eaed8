"""The parts of one console, and what its pages are made from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from .. import Coordinator
from ..errors import Misconfigured
from ..settings import without_passwords
from . import figures, groups, pictures
from .fences import read_fences
from .health import SlowWatcher
from .pictures import PageOf
from .rate_limits import RateLimits
from .scrape import check_addresses, scrape
from .snapshot import SurveySnapshot
from .watcher import Watcher

SLOW_STOP_S = 2.0


@dataclass(frozen=True, slots=True)
class ConsoleFacts:
    """What does not change: the URL has no password."""

    url: str
    namespace: str
    scheme: str
    promises: tuple[str, ...]
    writable: bool
    version: str


@dataclass(frozen=True, slots=True)
class EngineActions:
    """What changes something at the engine."""

    evict: Callable[[str, int], bool]
    ask: Callable[[str, int], int]


class ConsoleService:
    """Everything but the web: surveys, history, health, and the pictures made of them."""

    def __init__(self, facts: ConsoleFacts, watcher: Watcher, slow: SlowWatcher, actions: EngineActions) -> None:
        self.facts, self.watcher, self.slow, self.actions = facts, watcher, slow, actions
        self.closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        watcher.subscribe(self._tell)
        self.kinds: dict[str, Callable[[SurveySnapshot, PageOf], dict[str, Any]]] = {
            "locks": lambda snapshot, page: pictures.locks(snapshot, watcher, page),
            "lock": lambda snapshot, page: pictures.lock(snapshot, watcher, page, slow.fences),
            "partitions": lambda snapshot, page: groups.partitions(snapshot, watcher, page),
            "elections": lambda snapshot, page: groups.elections(snapshot, watcher, page),
            "limits": lambda snapshot, page: groups.limits(snapshot, watcher, page, slow.rates),
            "metrics": lambda snapshot, page: figures.metrics(snapshot, watcher, slow.scraped, slow.fences),
            "health": lambda snapshot, page: slow.health,
        }

    def start(self) -> None:
        self.watcher.start()
        self.slow.start()

    def stop(self) -> None:
        """Streams end, then nobody surveys."""
        self.closed = True
        self._tell()
        self.watcher.stop()
        self.slow.stop(SLOW_STOP_S)

    def status(self) -> dict[str, Any]:
        """How the watching goes, and of which engine."""
        snapshot = self.watcher.snapshot
        facts = self.facts
        return pictures.status(snapshot, self.watcher) | {
            "engine": facts.url,
            "scheme": facts.scheme,
            "namespace": facts.namespace,
            "promises": list(facts.promises),
            "writable": facts.writable,
            "release": facts.version,
        }

    def picture(self, kind: str, page: PageOf) -> dict[str, Any]:
        """One of `kinds`; raises `Misconfigured` for what is none."""
        make = self.kinds.get(kind)
        if make is None:
            raise Misconfigured(f"of is {kind[:40]!r}; there are: {', '.join(self.kinds)}")
        return make(self.watcher.snapshot, page)

    def message(self, kind: str, page: PageOf) -> tuple[int, str]:
        """A picture with the status, as JSON: made once for all browsers that show the same part."""
        snapshot = self.watcher.snapshot

        def make() -> str:
            return encode({"status": self.status(), "of": kind, "data": self.picture(kind, page)})

        slowly = kind in ("health", "metrics", "limits")  # they change without a survey
        return snapshot.version, make() if slowly else snapshot.cached(("message", kind, page), make)

    async def changed(self) -> None:
        """Wait for the next survey, or for the end."""
        self._loop = asyncio.get_running_loop()
        await self._changed.wait()

    def _tell(self) -> None:
        """In any thread: wake the streams."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def encode(data: object) -> str:
    """As JSON, in one line."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def service_for(
    locks: Coordinator,
    url: str,
    namespace: str,
    prefix: str = "",
    *,
    interval: float = 2.0,
    writable: bool = False,
    metrics: Iterable[str] = (),
    limits: Sequence[str] = (),
    fences: Sequence[str] = (),
) -> ConsoleService:
    """A console for one engine, not started yet. `metrics`, `limits` and `fences` are as the options of the command."""
    from ..doctor import examine
    from ..refusals.fence_view import kind_of

    addresses = check_addresses(metrics)
    for fence in fences:
        kind_of(fence)
    rates = RateLimits(locks, limits)
    shown = without_passwords(url)
    promises = tuple(sorted(promise for promise in locks.promises.KNOWN if promise in locks.promises))
    return ConsoleService(
        ConsoleFacts(shown, namespace, shown.partition("://")[0], promises, writable, version("holdfast")),
        Watcher(lambda: locks.survey(prefix), interval, prefix=prefix),
        SlowWatcher(
            lambda: examine(url, say=lambda _: None).as_data(),
            (lambda: scrape(addresses)) if addresses else None,
            rates.look if limits else None,
            (lambda: read_fences(fences)) if fences else None,
        ),
        EngineActions(locks.evict, locks.ask),
    )

"""The rooms of the package stay apart (DESIGN §4).

1. A module belongs to the first room below whose pattern fits its path under `src/holdfast`; each has one.
2. It imports only its own room and the rooms named; an import inside a function or under TYPE_CHECKING counts
   too, because it is the same dependency.
3. It does not import the standard modules its room does without: flows take time, chance and sockets from a
   driver.
4. Third-party modules: `never`, `lazily` (inside a function, or for types only) or `freely`.
5. `import holdfast` loads neither asyncio, nor sqlite3, nor anything third-party.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import pytest

from tests.import_finder import Import, file_of, find_imports

WORLD = frozenset(
    {"asyncio", "concurrent", "http", "multiprocessing", "os", "random", "secrets", "select", "selectors"}
    | {"signal", "socket", "sqlite3", "ssl", "subprocess", "threading", "time", "uuid"}
)
ASYNCIO = frozenset({"asyncio"})
ANY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Room:
    name: str
    files: str  # patterns; `*` also crosses folders
    may_import: str  # rooms, besides itself; `*` is all, but torture only the command line imports
    without: frozenset[str] = ASYNCIO
    third_party: Literal["never", "lazily", "freely"] = "never"


DATA = "errors model ports core"
FLOWS = "line relational connections ordered-keys client-libraries flows"
ROOMS = (
    # pure: data and flows, which every driver can run, the simulator too
    Room("errors", "errors.py", "", WORLD),
    Room("model", "model.py record.py", "errors", WORLD),
    Room("ports", "ports.py", "errors model core", WORLD),
    Room(
        "event",
        "observe/__init__.py observe/event.py observe/families.py observe/histogram.py observe/log_exception.py "
        "observe/meter.py observe/metric_table.py observe/observer.py observe/stats.py",
        "errors model",
        WORLD,
    ),
    Room("process", "observe/lock_log.py observe/log_limit.py observe/process.py observe/refusals.py", "event"),
    Room("core", "_core/*", "errors model ports event", WORLD),
    Room("recipes", "recipes/*", DATA, WORLD),
    # engines: their flows are pure too; wires, and what runs in this process, touch the world
    Room("clock", "clock.py", ""),
    Room(
        "line",
        "backends/queue_backend.py backends/session_backend.py backends/execute*.py backends/record_*.py",
        DATA,
        WORLD,
    ),
    Room("client-engine", "backends/client_engine.py", f"{DATA} sync aio"),
    Room("connections", "backends/connections/*", DATA, WORLD),
    Room("ordered-keys", "backends/ordered_keys/*", DATA, WORLD),
    Room("relational", "backends/relational/*", f"{DATA} line connections", WORLD),
    Room("wires", "backends/*/*wire*.py", f"{DATA} clock {FLOWS} embedded engines", ANY, "lazily"),
    Room(
        "engines",
        "backends/*__init__.py backends/*/engine.py",
        f"{DATA} clock {FLOWS} embedded wires addresses client-engine",
    ),
    Room(
        "addresses",  # how a connection begins: URLs, certificates, and libpq's socket
        "backends/mysql/address.py backends/postgresql/address.py backends/postgresql/transport.py",
        f"{DATA} {FLOWS}",
        ASYNCIO,
        "lazily",
    ),
    Room("embedded", "backends/memory/* backends/sqlite/*", f"{DATA} clock {FLOWS}"),
    Room(
        "client-libraries",  # what a client takes from somebody else's: URLs, TLS settings, readers of replies
        "backends/redis/address.py backends/redis/server.py backends/redis/reader.py",
        f"{DATA} flows",
        WORLD - {"ssl"},
        "lazily",
    ),
    Room("flows", "backends/*", f"{DATA} line relational connections ordered-keys client-libraries", WORLD),
    # what users import
    Room("settings", "settings.py", f"{DATA} event engines"),
    Room("shared", "base_lease.py registry.py signals.py", f"{DATA} clock event"),
    Room("observe", "observe/*", f"{DATA} event process", ASYNCIO, "lazily"),
    Room("fences", "fenced/*", f"{DATA} process"),
    Room("cas", "cas/*", f"{DATA} fences", ANY),
    Room("sql", "sql/*", f"{DATA} fences cas recipes", ANY, "lazily"),
    Room("sync", "sync/*", f"{DATA} event process clock recipes shared"),
    Room("aio", "aio/*", f"{DATA} event process clock recipes shared settings", ANY),
    Room("log-aio", "log/aio/*", f"{DATA} clock fences sql aio log", ANY),
    Room("log-sync", "log/__init__.py log/sync/*", f"{DATA} clock fences sql sync log"),
    Room("log", "log/*", f"{DATA} recipes fences cas sql", WORLD - {"uuid"}),
    Room("public", "__init__.py", f"{DATA} event shared recipes settings sync aio fences"),
    Room("engine-authors", "flow.py engine.py", "core line connections client-engine", WORLD),
    # tools on top: nothing above imports them
    Room("testing", "testing.py testing/*", "*", ANY, "lazily"),
    Room("dashboard", "dashboard/*", "*", ASYNCIO, "lazily"),
    Room("doctor", "doctor/*", "*", ANY, "lazily"),
    Room("refusals", "refusals/*", "*", ASYNCIO, "lazily"),
    Room("console-web", "console/api.py console/guard.py console/refusal.py console/server.py", "*", ANY, "freely"),
    Room("console", "console/*", "*", ANY, "lazily"),
    Room(
        "torture",
        "torture/*",
        "errors model clock event engines public aio fences cli log log-sync recipes",
        ANY,
        "lazily",
    ),
    Room("cli", "cli/* __main__.py", "*", ANY, "freely"),
)
PACKAGE = Path(__file__).parent.parent / "src" / "holdfast"


def room_of(path: str) -> Room | None:
    fits = (room for room in ROOMS for pattern in room.files.split() if fnmatchcase(path, pattern))
    return next(fits, None)


def complaint(room: Room, found: Import, root: Path) -> str | None:
    top = found.module.partition(".")[0]
    if top == "holdfast":
        target = room_of(file_of(found, root))
        name = target.name if target else "no room"
        anything = room.may_import == "*" and (name != "torture" or room.name == "cli")
        allowed = anything or name in (room.name, *room.may_import.split())
        return None if allowed else f"{found.member} is of {name}, which {room.name} may not import"
    if top in sys.stdlib_module_names:
        return f"{room.name} does without {top}" if top in room.without else None
    if room.third_party == "freely" or (room.third_party == "lazily" and found.lazy):
        return None
    return f"{top} is third-party, which {room.name} imports {room.third_party}"


def complaints(root: Path) -> list[str]:
    """All that is wrong with the package at `root`."""
    wrong = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root).as_posix()
        room = room_of(path)
        if room is None:
            wrong.append(f"{path}: belongs to no room; give it one in tests/test_rooms.py")
            continue
        package = ".".join(["holdfast", *Path(path).parent.parts])
        for found in find_imports(file.read_text(), package):
            why = complaint(room, found, root)
            if why:
                wrong.append(f"{path}:{found.line}: {why}")
    return wrong


def test_no_room_reaches_into_another() -> None:
    assert list(PACKAGE.rglob("*.py"))
    assert complaints(PACKAGE) == []


def test_importing_holdfast_loads_only_what_a_lock_needs() -> None:
    program = "import sys; before = set(sys.modules); import holdfast; print(*set(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "holdfast" in loaded
    assert not loaded & {"asyncio", "sqlite3"}
    assert loaded <= sys.stdlib_module_names | {"holdfast"}


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("errors.py", "from .model import Claim", "model, which errors may not import"),
        ("model.py", "from holdfast._core.flow import Op", "core, which model may not import"),
        ("_core/acquire.py", "from ..sync.driver import Driver", "sync, which core may not import"),
        ("_core/acquire.py", "from holdfast import connect", "public, which core may not import"),
        ("_core/acquire.py", "def f():\n    import time", "core does without time"),
        ("_core/acquire.py", "import os.path", "core does without os"),
        ("_core/acquire.py", "from .. import clock", "clock, which core may not import"),
        (
            "recipes/lock.py",
            "import importlib\nimportlib.import_module('asyncio')",
            "recipes does without asyncio",
        ),
        ("recipes/lock.py", "from ..backends.etcd import backend", "flows, which recipes may not import"),
        ("backends/etcd/backend.py", "from . import wires", "wires, which flows may not import"),
        ("backends/etcd/backend.py", "import socket", "flows does without socket"),
        ("backends/sqlite/store.py", "import asyncio", "embedded does without asyncio"),
        (
            "backends/relational/local_queue.py",
            "from ..etcd import backend",
            "flows, which relational may not import",
        ),
        ("backends/relational/local_queue.py", "import threading", "relational does without threading"),
        ("backends/postgresql/connection.py", "import select", "flows does without select"),
        (
            "backends/relational/table_client.py",
            "def f():\n    import psycopg",
            "psycopg is third-party, which relational imports never",
        ),
        (
            "backends/redis/backend.py",
            "def f():\n    import redis",
            "redis is third-party, which flows imports never",
        ),
        ("backends/redis/wires.py", "import redis", "redis is third-party, which wires imports lazily"),
        (
            "backends/redis/wires.py",
            "try:\n    import redis\nexcept ImportError: ...",
            "redis is third-party",
        ),
        ("fenced/sql.py", "from ..backends import engine_for", "engines, which fences may not import"),
        ("sync/driver.py", "from asyncio import run", "sync does without asyncio"),
        ("aio/driver.py", "from ..sync import driver", "sync, which aio may not import"),
        ("testing.py", "import pytest", "pytest is third-party, which testing imports lazily"),
        ("torture/report.py", "from ..sync import driver", "sync, which torture may not import"),
        ("torture/report.py", "import rich", "rich is third-party, which torture imports lazily"),
        ("attic.py", "", "belongs to no room"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, path: str, source: str, expected: str) -> None:
    plant_all(tmp_path)
    plant(tmp_path, path, source)
    (found,) = complaints(tmp_path)
    assert found.startswith(path)
    assert expected in found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("_core/acquire.py", "from ..errors import NotAcquired\nfrom . import backoff\nimport heapq"),
        ("backends/line.py", "from .._core.flow import Flow"),
        ("backends/redis/wires.py", "import asyncio\ndef f():\n    import redis.asyncio"),
        ("backends/redis/wires.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import redis"),
        ("cli/__init__.py", "import click\nfrom holdfast import connect"),
        ("cli/torture.py", "def torture():\n    from ..torture import history"),
        ("torture/report.py", "from .. import connect\nfrom . import history"),
    ],
)
def test_an_honest_import_is_not(tmp_path: Path, path: str, source: str) -> None:
    plant_all(tmp_path)
    plant(tmp_path, path, source)
    assert complaints(tmp_path) == []


def plant_all(root: Path) -> None:
    """A small package that keeps every rule."""
    for path in (
        *("__init__.py", "errors.py", "model.py", "_core/backoff.py", "_core/flow.py", "clock.py"),
        *("backends/__init__.py", "backends/etcd/backend.py", "backends/etcd/wires.py", "sync/driver.py"),
        "torture/history.py",
    ):
        plant(root, path, "")


def plant(root: Path, path: str, source: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(source)

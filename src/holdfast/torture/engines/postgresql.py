"""PostgreSQL, for the lock table and for session locks; and a standby where a fail-over is wished for.

1. It does not run as root: there it runs as the user that Debian's package made.
2. Nothing is flushed, unless disks are struck: processes die here, machines do not. What was committed survives a
   killed server all the same.
3. The standby streams without being waited for, as PostgreSQL does unless it is told otherwise.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arena import Node, NotHere, Site
from ..arena.environment import environment
from ..arena.loopback import eventually, free_port
from ..arena.node import START_TIMEOUT
from ..arena.site import DidNotStart, is_root
from ..proxy import Network
from .model import Engine, Ground, Wishes, need_module, need_scheme

SETTINGS = {
    "dynamic_shared_memory_type": "mmap",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "150",
    "max_wal_size": "48MB",
    "min_wal_size": "32MB",
    "wal_keep_size": "16MB",
    "hot_standby": "on",
}
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def program(name: str) -> str:
    """A program of PostgreSQL, which Debian keeps off the path."""
    places = (
        [Path(found)] if (found := shutil.which(name)) else sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    )
    if not places:
        raise NotHere(f"{name} is not installed (Debian: postgresql)")
    return str(places[-1])


def execute(host: str, port: int, statement: str) -> list[Any]:
    import psycopg

    with psycopg.connect(f"postgresql://postgres@{host}:{port}/postgres", autocommit=True, connect_timeout=5) as link:
        cursor = link.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def answers(host: str, port: int) -> bool:
    import psycopg

    try:
        execute(host, port, "SELECT 1")
    except psycopg.Error:
        return False
    return True


def new_node(ground: Ground, name: str, pristine: Path) -> Node:
    folder, port, host = ground.folder(name), free_port(), ground.place.host

    def words() -> list[str]:
        said = [program("postgres"), "-D", str(folder / "data"), "-p", str(port), "-k", str(folder)]
        flushes = {"fsync": "on"} if ground.wishes.flushes else {}
        for key, value in {**SETTINGS, **flushes, "listen_addresses": host}.items():
            said += ["-c", f"{key}={value}"]
        return said

    node = Node(
        ground.site, name, folder, port, words, lambda: answers(host, port),
        user=ground.user, place=ground.place, clock=ground.clock(folder), pristine=pristine, farewell=signal.SIGQUIT,
    )  # fmt: skip
    node.wipe()
    return node


def initialised(site: Site, user: str | None) -> Path:
    """A data folder as it is before the first start."""
    folder = site.new_folder("pristine", user)
    words = [program("initdb"), "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N"]
    who: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(
        [*words, "--locale=C.UTF-8"], capture_output=True, text=True, cwd=folder, check=False, env=environment(), **who
    )
    if done.returncode:
        raise DidNotStart(f"initdb: {done.stderr.strip()[-300:]}")
    with (folder / "data" / "pg_hba.conf").open("a") as file:
        file.write("host all all 10.0.0.0/8 trust\nhost replication all 10.0.0.0/8 trust\n")
    return folder / "data"


@dataclass(slots=True)
class Pair:
    """A primary and its standby. Clients reach whichever is primary through the links `client>postgresql`."""

    engine: Engine
    network: Network
    primary: Node
    other: Node
    following: bool = False

    def follow(self) -> None:
        """The other becomes a standby of the primary, from a copy, through a link that can be held."""
        gateway = self.primary.place.gateway
        port = self.network.open("replica", self.primary.name, self.primary.host, self.primary.port, gateway)
        data = self.other.data
        shutil.rmtree(data, ignore_errors=True)
        self.other.run(
            program("pg_basebackup"), "-D", str(data), "-h", gateway, "-p", str(port), "-U", "postgres",
            "-c", "fast", "-X", "stream", "-R",
        )  # fmt: skip
        self.other.start()
        if not eventually(self._in_step, START_TIMEOUT):
            raise RuntimeError(f"{self.other.name} does not follow {self.primary.name}: {self.other.log()}")

    def _in_step(self) -> bool:
        return bool(execute(self.primary.host, self.primary.port, "SELECT 1 FROM pg_stat_replication"))

    def lag(self) -> None:
        if not self.following:
            self.follow()
            self.following = True
        self.network.hold("replica>*")

    def fail_over(self) -> None:
        self.primary.kill()
        execute(self.other.host, self.other.port, "SELECT pg_promote()")
        self.network.lead("*>postgresql", self.other.port)
        self.primary, self.other = self.other, self.primary
        self.engine.nodes[0] = self.primary
        self.disown()

    def disown(self) -> None:
        self.network.heal("replica>*")
        self.other.kill()
        self.following = False


def start(scheme: str, site: Site, wishes: Wishes) -> Engine:
    need_scheme(scheme)
    need_module("psycopg", "postgresql")
    ground = Ground(site, wishes, "postgres" if is_root() else None, 400)
    pristine = initialised(site, ground.user)
    node = new_node(ground, "postgresql-1", pristine)
    node.start()
    network = Network(site)
    session = scheme.endswith("+session")

    def url(client: str) -> str:
        port = network.open(client, "postgresql", engine.nodes[0].host, engine.nodes[0].port)
        return f"{scheme}://postgres@127.0.0.1:{port}/postgres"

    def end_sessions() -> None:
        execute(engine.nodes[0].host, engine.nodes[0].port, END_SESSIONS)

    engine = Engine(
        scheme, site, 0.6 if session else 0.3, url, [node], network, ground.place, ground.disks, ground.cannot,
        sessions=session,
        flushes=wishes.flushes,
        steps_ahead=2.0 if session else 0.0,  # see the ceiling in its schema
        end_sessions=end_sessions,
    )  # fmt: skip
    if wishes.replica:
        engine.replica = Pair(engine, network, node, new_node(ground, "postgresql-2", pristine))
    return engine

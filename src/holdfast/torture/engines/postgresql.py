"""PostgreSQL, for the lock table and for session locks; and a standby for fail-overs.

1. It does not run as root: there it runs as the user that Debian's package made.
2. Nothing is flushed, unless disk faults are injected: processes die here, not machines. What was committed survives a
   killed server all the same.
3. Replication is asynchronous, which is PostgreSQL's default.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..proxy import ProxyNetwork
from ..sandbox import NotAvailable, Sandbox, ServerNode
from ..sandbox.environment import environment
from ..sandbox.loopback import eventually, free_port
from ..sandbox.sandbox import DidNotStart, is_root
from ..sandbox.server import START_TIMEOUT_S
from .model import EngineOptions, EngineSetup, TorturedEngine, need_module, need_scheme

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
        raise NotAvailable(f"{name} is not installed (Debian: postgresql)")
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


def new_node(setup: EngineSetup, name: str, pristine: Path) -> ServerNode:
    folder, port, host = setup.folder(name), free_port(), setup.location.host

    def words() -> list[str]:
        said = [program("postgres"), "-D", str(folder / "data"), "-p", str(port), "-k", str(folder)]
        flushes = {"fsync": "on"} if setup.engine_options.flushes else {}
        for key, value in {**SETTINGS, **flushes, "listen_addresses": host}.items():
            said += ["-c", f"{key}={value}"]
        return said

    node = ServerNode(
        setup.sandbox, name, folder, port, words, lambda: answers(host, port),
        user=setup.user, location=setup.location, clock=setup.clock(folder), pristine=pristine,
        end_signal=signal.SIGQUIT,
    )  # fmt: skip
    node.wipe()
    return node


def initialised(sandbox: Sandbox, user: str | None) -> Path:
    """A data folder as it is before the first start."""
    folder = sandbox.new_folder("pristine", user)
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
class PostgresqlReplica:
    """A primary and its standby. Clients reach whichever is primary through the links `client>postgresql`."""

    engine: TorturedEngine
    network: ProxyNetwork
    primary: ServerNode
    other: ServerNode
    following: bool = False

    def follow(self) -> None:
        """Make the other server a standby of the primary, from a copy, through a link that can be cut."""
        gateway = self.primary.location.gateway
        port = self.network.open("replica", self.primary.name, self.primary.host, self.primary.port, gateway)
        data = self.other.data
        shutil.rmtree(data, ignore_errors=True)
        self.other.run(
            program("pg_basebackup"), "-D", str(data), "-h", gateway, "-p", str(port), "-U", "postgres",
            "-c", "fast", "-X", "stream", "-R",
        )  # fmt: skip
        self.other.start()
        if not eventually(self._in_step, START_TIMEOUT_S):
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


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    need_scheme(scheme)
    need_module("psycopg", "postgresql")
    setup = EngineSetup(sandbox, engine_options, "postgres" if is_root() else None, 400)
    pristine = initialised(sandbox, setup.user)
    node = new_node(setup, "postgresql-1", pristine)
    node.start()
    network = ProxyNetwork(sandbox)
    session = scheme.endswith("+session")

    def url(client: str) -> str:
        port = network.open(client, "postgresql", engine.nodes[0].host, engine.nodes[0].port)
        return f"{scheme}://postgres@127.0.0.1:{port}/postgres"

    def end_sessions() -> None:
        execute(engine.nodes[0].host, engine.nodes[0].port, END_SESSIONS)

    engine = TorturedEngine(
        scheme, sandbox, 0.6 if session else 0.3, url, [node], network, setup.location, setup.disks, setup.cannot,
        sessions=session,
        flushes=engine_options.flushes,
        steps_ahead=2.0 if session else 0.0,  # see the ceiling in its schema
        end_sessions=end_sessions,
    )  # fmt: skip
    if engine_options.replica:
        engine.replica = PostgresqlReplica(engine, network, node, new_node(setup, "postgresql-2", pristine))
    return engine

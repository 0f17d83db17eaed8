"""MariaDB, for the lock table and for session locks. It runs as the user of Debian's package when we are root."""

from __future__ import annotations

import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

from ..proxy import ProxyNetwork
from ..sandbox import NotAvailable, Sandbox, ServerNode
from ..sandbox.environment import environment
from ..sandbox.loopback import free_port
from ..sandbox.sandbox import DidNotStart, is_root
from .model import EngineOptions, EngineSetup, TorturedEngine, need_module, need_program, need_scheme

DATABASE = "torture"


def connect(host: str, port: int) -> Any:
    pymysql: Any = import_module("pymysql")  # it has no types
    return pymysql.connect(host=host, port=port, user="root", password="", connect_timeout=3, autocommit=True)


def execute(host: str, port: int, statement: str) -> Any:
    link = connect(host, port)
    try:
        with link.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()
    finally:
        link.close()


def answers(host: str, port: int) -> bool:
    pymysql: Any = import_module("pymysql")
    try:
        execute(host, port, "SELECT 1")
    except pymysql.err.MySQLError:
        return False
    return True


def initialised(sandbox: Sandbox, user: str | None) -> Path:
    """A data folder with our database, as it is before the first start."""
    program = shutil.which("mariadb-install-db")
    if program is None:
        raise NotAvailable("mariadb-install-db is not installed (Debian: mariadb-server)")
    folder = sandbox.new_folder("pristine", user)
    words = [program, "--no-defaults", f"--datadir={folder / 'data'}", "--auth-root-authentication-method=normal"]
    who: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    words += ["--skip-test-db", f"--tmpdir={folder}"]  # in a common one, two at once remove each other's tables
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False, env=environment(), **who)
    if done.returncode:
        raise DidNotStart(f"mariadb-install-db: {(done.stdout + done.stderr).strip()[-300:]}")
    database = folder / "data" / DATABASE
    database.mkdir()
    if user is not None:
        shutil.chown(database, user, user)
    return folder / "data"


def new_node(setup: EngineSetup, pristine: Path) -> ServerNode:
    program = need_program("mariadbd", "mariadb-server")
    folder, port, host = setup.folder("mysql-1"), free_port(), setup.location.host
    init = folder.parent / "mysql.sql"  # root may come from anywhere: in a namespace, clients are not local
    init.write_text("CREATE USER IF NOT EXISTS root@'%';\nGRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n")
    words = [
        program, "--no-defaults", f"--datadir={folder / 'data'}", f"--port={port}", f"--socket={folder}/socket",
        f"--bind-address={host}", f"--pid-file={folder}/pid", "--skip-log-bin",
        f"--innodb-flush-log-at-trx-commit={1 if setup.engine_options.flushes else 2}",
        "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M", "--skip-name-resolve", "--max-connections=200",
        f"--tmpdir={folder}", f"--init-file={init}",
    ]  # fmt: skip
    node = ServerNode(
        setup.sandbox, "mysql-1", folder, port, lambda: words, lambda: answers(host, port),
        user=setup.user, location=setup.location, clock=setup.clock(folder), pristine=pristine,
    )  # fmt: skip
    node.wipe()
    return node


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    need_scheme(scheme)
    need_module("pymysql", "mysql")
    setup = EngineSetup(sandbox, engine_options, "mysql" if is_root() else None, 320)
    node = new_node(setup, initialised(sandbox, setup.user))
    node.start()
    network = ProxyNetwork(sandbox)
    session = scheme.endswith("+session")

    def url(client: str) -> str:
        return f"{scheme}://root@127.0.0.1:{network.open(client, 'mysql', node.host, node.port)}/{DATABASE}"

    def end_sessions() -> None:
        own = "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND user = 'root'"
        for (number,) in execute(node.host, node.port, own):
            execute(node.host, node.port, f"KILL {number}")

    return TorturedEngine(
        scheme, sandbox, 0.6 if session else 0.3, url, [node], network, setup.location, setup.disks,
        setup.cannot | {"failover": "no replica of MariaDB is set up here; Redis and PostgreSQL show fail-over"},
        sessions=session,
        flushes=engine_options.flushes,
        steps_ahead=2.0 if session else 0.0,  # see the ceiling in its schema
        end_sessions=end_sessions,
    )  # fmt: skip

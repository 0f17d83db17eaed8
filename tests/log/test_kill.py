"""A process that is killed between any two statements of an append leaves the whole append, or nothing; and whoever
does not know retries with the same ids."""

from __future__ import annotations

import json
import subprocess
import sys

from holdfast.log import ANY, EventData, append, read, tail
from tests.log.databases import Database, execute

PROGRAM = """
import json, os, signal, sys
from holdfast.log import ANY, EventData, append
from holdfast.sql.sync import runner
from tests.log.databases import execute, open_connection

engine, address, last = json.loads(sys.argv[1])
run, count = runner._execute, 0

def counted(*args):
    global count
    if count == last:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    return run(*args)

runner._execute = counted
connection = open_connection(engine, *address)
append(connection, "s", [EventData("paid", 1, id="a"), EventData("paid", 2, id="b")], expected=ANY, lease=7)
execute(connection, "INSERT INTO effects VALUES (1)")
if count == last:
    os.kill(os.getpid(), signal.SIGKILL)
connection.commit()
os.kill(os.getpid(), signal.SIGKILL)  # after the commit, before anybody was told
"""


def test_killed_at_every_statement(database: Database) -> None:
    database.execute("CREATE TABLE effects (n integer)")
    begin = database.connect()
    append(begin, "s", EventData("opened", id="first"), expected=ANY)
    begin.commit()
    for last in range(20):
        case = json.dumps([database.engine, database.address, last])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, case], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == -9, done.stderr
        connection = database.connect()
        ids = [event.id for event in read(connection, "s")]
        effects = len(execute(connection, "SELECT n FROM effects"))
        connection.rollback()
        assert (ids, effects) in ((["first"], 0), (["first", "a", "b"], 1))
        if effects:
            break
    assert last > 4, "it was not killed between statements"
    for _ in range(2):
        new = [EventData("paid", 1, id="a"), EventData("paid", 2, id="b")]
        assert append(connection, "s", new, expected=1, lease=8) == 3
        connection.commit()
    assert [event.id for event in tail(connection)] == ["first", "a", "b"]

"""Members of a consumer that stop and die at the worst moments: every effect once; and a log without its fence is found
out. On Redis, which has no transaction, what is counted as an effect is an acknowledgement that was accepted.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.log import ANY, EventData, append
from tests.log.conftest import new_database
from tests.log.databases import ENGINES, Database

EVENTS_COUNT = 24
WAIT_S = 150.0

MEMBER = """
import hashlib, json, os, random, signal, sys
import holdfast
from holdfast.errors import FenceRejected, LeaseLost
from holdfast.log import AlreadyAcknowledged, Consumer, cursors
from holdfast.log.redis import keys, requests
from holdfast.log.sync import runner
from tests.log.databases import execute, open_connection

engine, address, locks_url, seed, fenced = json.loads(sys.argv[1])
chance = random.Random(seed)
if not fenced:  # planted: nobody claims, and a cursor goes where it is told to
    class NoFence:
        def __init__(self, connection): ...
        def claim(self, resource, lease): ...
    runner.Fence = NoFence
    def move(dialect, partition, position):
        yield cursors.statement(dialect, "move", *partition, *position)
    cursors.acknowledge = move
    def planted(name):
        text = keys.program(name).text
        for check in ("if stands and stands > token then", "if not is_before(cursor, position) then"):
            text = text.replace(check, "if false then")
        return keys.LuaProgram(text, hashlib.sha1(text.encode()).hexdigest())
    requests.program = planted

def add_effects(events):
    for event in events:
        if engine == "redis":
            connection.rpush("effects", event.data)
        else:
            execute(connection, f"INSERT INTO effects VALUES ({event.data})")

def fault(stop, kill):
    draw = chance.random()
    if draw < stop:
        os.kill(os.getpid(), signal.SIGSTOP)  # until the test sends SIGCONT, after the lease is over
    elif draw < stop + kill:
        os.kill(os.getpid(), signal.SIGKILL)

connection = open_connection(engine, *address)
locks = holdfast.connect(locks_url)
while True:
    lease = locks.lock("billing", ttl=1).acquire()
    try:
        consumer = Consumer(connection, "billing", lease=lease)
        for _ in range(3):
            events = consumer.poll(2)
            connection.commit()
            if not events:
                sys.exit(0)
            fault(0.3, 0.05)
            if engine != "redis":
                add_effects(events)
            fault(0, 0.05)
            consumer.acknowledge(events[-1].position)
            if engine == "redis":
                add_effects(events)
            fault(0, 0.05)
            connection.commit()
    except (FenceRejected, AlreadyAcknowledged):
        connection.rollback()
        print("refused", flush=True)
    finally:
        lease.release()
"""


def effects(database: Database, folder: Path, seed: int, fenced: bool) -> tuple[list[int], int, int]:
    """What was done, how often members were resumed or replaced, and how often one was refused."""
    if database.engine != "redis":
        database.execute("CREATE TABLE effects (n integer)")
    connection = database.connect()
    for number in range(EVENTS_COUNT):
        append(connection, f"s{number % 5}", EventData("happened", number), expected=ANY)
    connection.commit()
    members: list[subprocess.Popen[str]] = []
    faults, refused, started = 0, 0, 0
    end = time.monotonic() + WAIT_S
    try:
        while time.monotonic() < end:
            for member in [member for member in members if member.poll() is not None]:
                refused += member.communicate()[0].count("refused")
                members.remove(member)
                assert member.returncode in (0, -signal.SIGKILL)
                if member.returncode == 0:
                    end = 0.0  # everything is done; the others are resumed, and find that out
                faults += member.returncode != 0
            while len(members) < 3 and end:
                case = [
                    database.engine,
                    database.address,
                    f"sqlite:///{folder}/locks{seed}.db",
                    seed * 100 + started,
                    fenced,
                ]
                started += 1
                words = [sys.executable, "-c", MEMBER, json.dumps(case)]
                members.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
            time.sleep(1.7)  # a lease of one second is over
            for member in members:
                stopped = Path(f"/proc/{member.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
                faults += stopped
                member.send_signal(signal.SIGCONT)
        assert end == 0.0, "not done in time"
        last = time.monotonic() + 10.0
        for member in members:
            while member.poll() is None and time.monotonic() < last:
                member.send_signal(signal.SIGCONT)
                time.sleep(0.05)
    finally:
        for member in members:
            member.kill()
            refused += member.communicate()[0].count("refused")
    if database.engine == "redis":
        done = [int(n) for n in connection.lrange("effects", 0, -1)]
    else:
        done = [n for (n,) in database.execute("SELECT n FROM effects")]
    return sorted(done), faults, refused


@pytest.mark.parametrize("engine", [*ENGINES, "redis"])
def test_every_effect_is_done_once(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = new_database(engine, request, tmp_path)
    with database.stack:
        done, faults, refused = effects(database, tmp_path, [*ENGINES, "redis"].index(engine) + 1, fenced=True)
    assert done == list(range(EVENTS_COUNT))
    assert faults > 0
    print(engine, "faults", faults, "refused", refused)


@pytest.mark.parametrize("engine", ["postgresql", "redis"])
def test_without_the_fence_effects_are_doubled(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    for seed in range(10, 14):
        database = new_database(engine, request, tmp_path)
        with database.stack:
            done, _, _ = effects(database, tmp_path, seed, fenced=False)
        if done != list(range(EVENTS_COUNT)):
            return
    pytest.fail("nobody noticed")

"""What can go wrong with a simulated PostgreSQL, played without a real one: fail-over, crash, full, errors."""

from __future__ import annotations

from random import Random

import pytest
from psycopg import OperationalError
from psycopg.pq import DiagnosticField, ExecStatus, PollingStatus, TransactionStatus

from holdfast.backends.postgresql.codec import Codec
from holdfast.backends.postgresql.programs import SQL
from holdfast.backends.queue_backend import Take
from holdfast.model import Claim, LockSpec
from holdfast_sim.servers.model import Memory
from holdfast_sim.servers.postgresql.handle import SimulatedConnection
from holdfast_sim.servers.postgresql.queries import CREATING
from holdfast_sim.servers.postgresql.server import PostgreSQLServer
from tests.likeness.postgresql_play import Direct
from tests.likeness.virtual import VirtualTime

CLAIM = Claim(LockSpec("a", ttl=16.0), "o1", "actor")
OTHER = Claim(LockSpec("a", ttl=16.0), "o2", "actor")


@pytest.fixture
def host() -> VirtualTime:
    return VirtualTime(1_000_000.0, Random(1))


def connected(server: PostgreSQLServer) -> SimulatedConnection:
    handle = SimulatedConnection(Direct(server, server.host.chance), "postgres", server.name)
    while (status := handle.connect_poll()) != PollingStatus.OK:
        if status == PollingStatus.FAILED:
            raise OperationalError(handle.get_error_message())
    return handle


def answer(handle: SimulatedConnection) -> bytes | None:
    """The value that was answered, or the SQLSTATE."""
    handle.flush()
    last = None
    while True:
        while handle.is_busy():
            handle.consume_input()
        if (result := handle.get_result()) is None:
            assert last is not None
            return last.error_field(DiagnosticField.SQLSTATE) or (last.get_value(0, 0) if last.ntuples else None)
        last = result


def taken(handle: SimulatedConnection, claim: Claim) -> bytes | None:
    statement, values, _ = Codec("ns", "host", 1).write(Take([claim], True))
    handle.send_query_params(statement.text, values)
    return answer(handle)


@pytest.fixture
def postgresql(host: VirtualTime) -> PostgreSQLServer:
    server = PostgreSQLServer(host, "one")
    handle = connected(server)
    handle.send_query(CREATING)
    assert answer(handle) is None
    handle.finish()
    return server


def test_a_standby_refuses_to_write_until_it_is_promoted(postgresql: PostgreSQLServer, host: VirtualTime) -> None:
    standby = PostgreSQLServer(host, "one")
    standby.follow(postgresql)
    assert taken(connected(postgresql), CLAIM) == b"1000000000000,0,0,0,0,"
    handle = connected(standby)
    assert taken(handle, OTHER) == b"25006"
    standby.promote()
    assert taken(handle, OTHER) == b"1000000000000,0,0,0,0,", "it never heard of the first grant"
    postgresql.disk_full = True
    assert taken(connected(postgresql), CLAIM) == b"53100"


def test_connection_slots_run_out(postgresql: PostgreSQLServer) -> None:
    postgresql.most_sessions = 2
    handles = [connected(postgresql) for _ in range(2)]
    with pytest.raises(OperationalError, match="too many clients already"):
        connected(postgresql)
    handles[0].finish()
    connected(postgresql)


def test_a_crash_ends_sessions_without_a_word_and_forgets_who_waits(postgresql: PostgreSQLServer) -> None:
    handle = connected(postgresql)
    claimed = taken(handle, CLAIM)
    postgresql.stop()
    postgresql.start(Memory.ALL)
    handle.send_query(b"SELECT 1")
    assert not handle.flush()
    handle.consume_input()
    assert handle.is_busy(), "nobody answers"
    assert taken(connected(postgresql), CLAIM) == claimed


def test_what_an_error_skips_in_a_pipeline_is_said_to_be_aborted(postgresql: PostgreSQLServer) -> None:
    handle = connected(postgresql)
    handle.enter_pipeline_mode()
    handle.send_query_prepared(b"unknown", ())
    handle.send_query_params(SQL["session_alive"].text, ())
    handle.pipeline_sync()
    handle.send_query_params(SQL["session_alive"].text, ())
    handle.pipeline_sync()
    handle.flush()
    statuses = []
    while handle.transaction_status == TransactionStatus.ACTIVE:
        while handle.is_busy():
            handle.consume_input()
        if (result := handle.get_result()) is not None:
            statuses.append(result.status)
    error, aborted, sync, rows = (
        ExecStatus.FATAL_ERROR,
        ExecStatus.PIPELINE_ABORTED,
        ExecStatus.PIPELINE_SYNC,
        ExecStatus.TUPLES_OK,
    )
    assert statuses == [error, aborted, sync, rows, sync]

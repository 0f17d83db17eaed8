"""`holdfast schema`: DDL that a database accepts."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.cli.harness import Cli


def test_the_schema_of_the_engine_in_use_can_be_created(cli: Cli) -> None:
    done = cli.run("schema")
    assert done.code == 0
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(done.out)
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    with closing(sqlite3.connect(cli.file)) as database:
        made = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == made


def test_an_engine_can_be_named(cli: Cli) -> None:
    assert cli.run("schema", "sqlite").out == cli.run("schema").out
    assert cli.json("schema", "sqlite")["ddl"] == cli.run("schema").out


def test_the_fence_has_one_too(cli: Cli) -> None:
    done = cli.run("schema", "--fence", "sqlite")
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(done.out)
        assert database.execute("SELECT count(*) FROM holdfast_fence").fetchone() == (0,)


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "postgresql+session"])
def test_the_fence_of_a_server_has_one(cli: Cli, engine: str) -> None:
    """That it is accepted is seen where the servers are: in tests/sql."""
    done = cli.run("schema", "--fence", engine)
    assert "CREATE TABLE IF NOT EXISTS holdfast_fence" in done.out
    assert "CREATE TABLE IF NOT EXISTS holdfast_refusal" in done.out


def test_a_session_lock_has_the_schema_of_its_server(cli: Cli) -> None:
    assert "holdfast_session" in cli.run("schema", "postgresql").out
    assert cli.run("schema", "postgresql+session").out == cli.run("schema", "postgresql").out


def test_memory_has_none_and_says_so(cli: Cli) -> None:
    done = cli.run("schema", "memory")
    assert (done.code, done.out) == (0, "")
    assert done.err == "memory has no schema: there is nothing to create\n"
    assert cli.json("schema", "--url", "memory://") == {"engine": "memory", "fence": False, "ddl": None}


def test_a_variant_of_a_scheme_belongs_to_its_engine(cli: Cli) -> None:
    assert cli.json("schema", "redis+cluster") == {"engine": "redis", "fence": False, "ddl": None}


def test_an_unknown_engine_is_refused(cli: Cli) -> None:
    done = cli.run("schema", "abacus")
    assert done.code == 64
    assert "there is no engine 'abacus'" in done.err


@pytest.mark.parametrize("engine", ["redis", "etcd", "zookeeper"])
def test_a_fence_without_tables_is_not_denied(cli: Cli, engine: str) -> None:
    done = cli.run("schema", "--fence", engine)
    assert done.err == f"the fence of {engine} needs no schema: there is nothing to create\n"
    assert "has no fence" in cli.run("schema", "--fence", "memory").err


def test_the_event_log_has_one_too(cli: Cli) -> None:
    done = cli.run("schema", "--log", "sqlite")
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(done.out)
        assert database.execute("SELECT count(*) FROM holdfast_log").fetchone() == (0,)
    for engine in ("postgresql", "mysql"):
        assert "CREATE TABLE IF NOT EXISTS holdfast_log_cursor" in cli.json("schema", "--log", engine)["ddl"]
    assert cli.run("schema", "--log", "etcd").err == "there is no event log on etcd: there is nothing to create\n"
    assert cli.run("schema", "--log", "--fence", "sqlite").code == 64

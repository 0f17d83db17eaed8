"""What is found out at the beginning: roles, settings, URLs; and what is swept away. Deaths: `test_deaths.py`."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.postgresql.programs import FUNCTIONS_VERSION, schema
from holdfast.errors import BackendUnavailable, HoldfastError, Misconfigured
from tests.postgresql.server import Server


def test_a_role_that_may_not_create_is_told_what_to_do(server: Server, database: str) -> None:
    server.execute("CREATE ROLE clerk LOGIN", database=database)
    url = server.url(database).replace("postgres@", "clerk@")
    with pytest.raises(Misconfigured, match="holdfast schema postgresql"):
        holdfast.connect(url)
    with holdfast.connect(server.url(database)):
        pass  # somebody who may
    with pytest.raises(Misconfigured, match="grant"):
        holdfast.connect(url)
    [tables] = re.findall(
        r"UPDATE, DELETE ON ([\w, \n-]+); GRANT SELECT ON holdfast_meta", schema()
    )  # as its own head says
    tables = tables.replace("-- ", "")
    server.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO clerk; GRANT SELECT ON holdfast_meta TO clerk",
        database=database,
    )
    with holdfast.connect(url) as locks, locks.lock("door"):
        assert locks.limiter("api", "5/s").try_acquire()
    session_url = url.replace("postgresql://", "postgresql+session://")
    with holdfast.connect(session_url) as locks, locks.lock("door") as lease:
        assert locks.survey("door")[0].holders[0].token == lease.token
    server.execute("DROP OWNED BY clerk; DROP ROLE clerk", database=database)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_another_default_isolation_changes_nothing(server: Server, database: str, isolation: str) -> None:
    server.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = '{isolation}'")
    inside = []
    with holdfast.connect(server.url(database)) as locks:

        def work() -> None:
            for _ in range(20):
                with locks.lock("door", timeout=120):
                    inside.append(1)
                    assert len(inside) == 1
                    inside.clear()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_a_read_only_role_is_refused(server: Server, database: str) -> None:
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(Misconfigured, match="read-only"):
        holdfast.connect(server.url(database))


@pytest.mark.parametrize("setting", ["idle_session_timeout", "lock_timeout", "statement_timeout"])
def test_a_session_lock_outlives_the_bounds_of_other_sessions(server: Server, database: str, setting: str) -> None:
    """Who holds says nothing for long, and who waits does not do so for too long."""
    server.execute(f"ALTER DATABASE {database} SET {setting} = 300")
    url = server.url(database).replace("postgresql://", "postgresql+session://")
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        lease = locks.lock("door", ttl=30).acquire()
        tokens: list[int] = []
        thread = threading.Thread(target=lambda: tokens.append(others.lock("door").acquire(timeout=120).token))
        thread.start()
        while not server.execute(
            "SELECT 1 FROM pg_stat_activity WHERE query ~ 'session_wait' AND datname = %s", database
        ):
            pass
        time.sleep(0.6)  # longer than the bound
        assert lease.release()
        thread.join(120)
        assert tokens


def test_promises_follow_the_settings(server: Server, database: str) -> None:
    with holdfast.connect(server.url(database)) as locks:
        assert "fsync" in locks.promises.notes["durable"]
        assert {"fencing", "linearizable", "shared", "counting"} <= locks.promises.kept
    with pytest.raises(Misconfigured, match="durable"):
        holdfast.connect(server.url(database), require={"durable"})


def test_bad_urls_are_refused() -> None:
    with pytest.raises(Misconfigured, match="libpq"):
        holdfast.connect("postgresql://127.0.0.1/db?colour=red")
    with pytest.raises(BackendUnavailable, match="reached"):
        holdfast.connect("postgresql://127.0.0.1:1/db")


def test_what_the_server_will_say_again_is_a_mistake(server: Server, database: str) -> None:
    """Not "try again": a wrong password, database or role; for tasks as well."""
    hba = server.folder / "data" / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text(f"host {database} knocker 127.0.0.1/32 scram-sha-256\n{before}")
    server.execute("CREATE ROLE knocker LOGIN PASSWORD 'right'; SELECT pg_reload_conf()")
    url = server.url(database)
    try:
        for wrong in (
            url.replace("postgres@", "knocker:wrong@"),
            url.replace("postgres@", "knocker@"),
            url.replace("postgres@", "nobody@"),
            url.replace(f"/{database}", "/nowhere"),
        ):
            with pytest.raises(Misconfigured, match="does not let us in") as told:
                holdfast.connect(wrong)
            assert "wrong" not in str(told.value)
            with pytest.raises(Misconfigured, match="does not let us in"):
                asyncio.run(open_and_close(wrong))
    finally:
        hba.write_text(before)
        server.execute("SELECT pg_reload_conf()")
        server.execute("DROP ROLE knocker")


async def open_and_close(url: str) -> None:
    async with holdfast.aio.connect(url):
        pass


@pytest.mark.parametrize("scheme", ["postgres", "postgres+session"])
def test_the_short_scheme_is_the_same(url: str, scheme: str) -> None:
    with holdfast.connect(url.replace("postgresql:", f"{scheme}:")) as locks, locks.lock("door"):
        pass


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:sesame@127.0.0.1:1/db?colour=red",
        "postgresql://127.0.0.1:1/db?user=me&password=sesame&colour=red",
        "postgresql://127.0.0.1:1/db?sslpassword=sesame&colour=red",
        "postgresql://127.0.0.1:1/db?oauth_client_secret=sesame&colour=red",
        "postgresql://me:open/sesame@127.0.0.1:1/db",
        "postgresql://me:open?sesame@127.0.0.1:1/db",
        "postgresql://me:open@sesame@127.0.0.1:1/db",
        "postgresql://me:open%zzsesame@127.0.0.1:1/db",
        "postgresql+session://me:op/en:sesame@127.0.0.1:1/db?colour=red",
    ],
)
def test_no_message_shows_a_secret(url: str) -> None:
    with pytest.raises(HoldfastError) as told:
        holdfast.connect(url, request_timeout=5)
    errors: list[BaseException | None] = [told.value, told.value.__cause__]
    if not told.value.__suppress_context__:
        errors.append(told.value.__context__)
    assert not [error for error in errors if "sesame" in str(error)]


def test_two_roles_never_have_a_lock_table_each(server: Server, database: str) -> None:
    """With `"$user"` in the search path what a name means depends on the role; so a second table is refused."""
    url = server.url(database)
    roles = [f"{name}_{database}" for name in ("alice", "bob")]
    for role in roles:
        server.execute(f"CREATE ROLE {role} LOGIN; CREATE SCHEMA {role} AUTHORIZATION {role}", database=database)
    alice, bob = (url.replace("postgres@", f"{role}@") for role in roles)
    with holdfast.connect(alice) as locks, locks.lock("door"):
        for scheme in ("postgresql", "postgresql+session"):
            with pytest.raises(Misconfigured, match=f"in the schema {roles[0]}.*search_path"):
                holdfast.connect(bob.replace("postgresql:", f"{scheme}:"))
        with pytest.raises(Misconfigured, match=roles[0]):
            holdfast.connect(url)  # somebody without a schema of their own: "public" comes second in the path
        server.execute(
            f"GRANT USAGE ON SCHEMA {roles[0]} TO {roles[1]}; "
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {roles[0]} TO {roles[1]}",
            database=database,
        )
        with holdfast.connect(f"{bob}?options=-csearch_path%3D{roles[0]}") as others:
            assert others.lock("door").try_acquire() is None
    with holdfast.connect(f"{bob}?options=-csearch_path%3D{roles[1]}") as others, others.lock("door"):
        pass  # one's own, on purpose
    with pytest.raises(Misconfigured, match="own in"):
        holdfast.connect(alice)  # now there are two, and it depends on the role which one is meant


def test_the_tables_of_an_older_version_are_made_new_where_they_are(server: Server, database: str) -> None:
    role = f"carol_{database}"
    with holdfast.connect(server.url(database)) as locks:
        token = locks.lock("door").acquire().token
    server.execute(
        "DROP FUNCTION holdfast_tidy(integer); UPDATE holdfast_meta SET value = '1' WHERE key = 'version'; "
        f"CREATE ROLE {role} LOGIN SUPERUSER; CREATE SCHEMA {role} AUTHORIZATION {role}",
        database=database,
    )
    with holdfast.connect(server.url(database).replace("postgres@", f"{role}@")) as locks, locks.lock("door") as lease:
        assert lease.token > token
    found = server.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'holdfast_claim'", database=database)
    assert found == [("public",)]


OLD_QUEUE = """CREATE OR REPLACE FUNCTION holdfast_session_queue(n text, o text, who_ text) RETURNS void
    LANGUAGE sql AS $$
    INSERT INTO holdfast_session_waiter (owner, name, since, backend, who)
        VALUES (o, n, holdfast_now(), pg_backend_pid(), who_)
        ON CONFLICT (owner) DO UPDATE SET backend = excluded.backend $$"""


def test_functions_of_an_older_revision_are_replaced_by_who_owns_them(server: Server, database: str) -> None:
    """Others go on with them: a role that may not replace them is not shut out by a newer holdfast."""
    text = "SELECT prosrc FROM pg_proc WHERE proname = 'holdfast_session_queue'"
    holdfast.connect(server.url(database)).close()
    new = server.execute(text, database=database)
    role = f"dora_{database}"
    server.execute(
        f"{OLD_QUEUE}; DELETE FROM holdfast_meta WHERE key = 'revision'; CREATE ROLE {role} LOGIN; "
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}",
        database=database,
    )
    old = server.execute(text, database=database)
    assert old != new
    url = server.url(database)
    with holdfast.connect(url.replace("postgres@", f"{role}@")) as locks, locks.lock("door"):
        assert server.execute(text, database=database) == old
    with holdfast.connect(url), holdfast.connect(url):
        assert server.execute(text, database=database) == new
    [[made]] = server.execute("SELECT value FROM holdfast_meta WHERE key = 'revision'", database=database)
    assert int(made) == FUNCTIONS_VERSION


def test_the_password_is_not_shown(url: str) -> None:
    with holdfast.connect(url.replace("postgres@", "postgres:secret@")) as locks:
        assert "secret" not in locks.url
        assert "secret" not in repr(locks)

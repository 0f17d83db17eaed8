"""`holdfast.sql.Once`: the record stands and falls with the effect, in the user's own transaction."""

from __future__ import annotations

import pickle
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast.sql
from holdfast.errors import AttemptInProgress, Misconfigured, PayloadMismatch
from holdfast.recipes.once_record import JsonCodec
from holdfast.sql import Attempt, Once
from tests.sql.once_kinds import BALANCE, CHARGE, LIBRARIES, Shop, execute, fetch, new_shop

COUNT = "SELECT count(*) FROM holdfast_once"
KEEP = "24h"


@pytest.fixture(params=LIBRARIES)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return new_shop(request.param, request.getfixturevalue, tmp_path)


@pytest.fixture(params=["sqlite3", "psycopg", "pymysql"])
def plain_shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return new_shop(request.param, request.getfixturevalue, tmp_path)


def pay(connection: Any, key: str = "order-7", payload: object = ..., **options: Any) -> Any:
    """Charge once; the result."""
    with Once(connection, "payments", keep=KEEP, **options).attempt(key, fingerprint=payload) as attempt:
        if not attempt.done:
            execute(connection, CHARGE)
            attempt.complete({"charged": 100, "of": key})
    return attempt.result


def test_the_first_one_does_it_and_the_others_get_its_result(shop: Shop) -> None:
    for _ in range(3):
        with shop.connected() as connection:
            assert pay(connection, payload={"amount": 100}) == {"charged": 100, "of": "order-7"}
            connection.commit()
    with shop.connected() as connection:
        assert pay(connection, "ключ'\"") == {"charged": 100, "of": "ключ'\""}
        assert pay(connection, "ключ'\"") == {"charged": 100, "of": "ключ'\""}  # in the same transaction
        connection.commit()
    assert shop.value(BALANCE) == 800
    assert shop.value(COUNT) == 2


def test_a_rollback_takes_both(shop: Shop) -> None:
    with shop.connected() as connection:
        pay(connection)
        connection.rollback()
    assert shop.value(BALANCE) == 1000
    with shop.connected() as connection:
        pay(connection)
        connection.commit()
    assert shop.value(BALANCE) == 900


def fail(connection: Any, attempt: Attempt, late: bool) -> None:
    with attempt:
        execute(connection, CHARGE)
        if late:
            attempt.complete(1)
        raise ZeroDivisionError


def test_an_error_in_the_block_takes_both_and_leaves_the_transaction_usable(shop: Shop) -> None:
    """Also one that comes after `complete`. What was done before the block stays."""
    with shop.connected() as connection:
        for late in (False, True):
            execute(connection, "UPDATE accounts SET balance = balance + 1 WHERE id = 7")
            before = fetch(connection, BALANCE)
            once = Once(connection, "payments", keep=KEEP)
            with pytest.raises(ZeroDivisionError):
                fail(connection, once.attempt("order-7"), late)
            assert fetch(connection, BALANCE) == before
        pay(connection)
        connection.commit()
    assert shop.value(BALANCE) == 902


def test_a_statement_that_fails_in_the_block_leaves_the_transaction_usable(plain_shop: Shop) -> None:
    with plain_shop.connected() as connection:
        execute(connection, "UPDATE accounts SET balance = balance + 1 WHERE id = 7")
        with pytest.raises(Exception, match="nowhere"), Once(connection, "payments", keep=KEEP).attempt("order-7"):
            execute(connection, "SELECT 1 FROM nowhere")
        assert pay(connection) == {"charged": 100, "of": "order-7"}
        connection.commit()
    assert plain_shop.value(BALANCE) == 901


def test_leaving_without_a_result_is_an_error_unless_it_is_abandoned(plain_shop: Shop) -> None:
    with plain_shop.connected() as connection:
        once = Once(connection, "payments", keep=KEEP)
        with pytest.raises(Misconfigured, match="without complete"), once.attempt("order-7"):
            execute(connection, CHARGE)
        with once.attempt("order-7") as attempt:
            execute(connection, CHARGE)
            attempt.abandon()
        connection.commit()
    assert plain_shop.value(BALANCE) == 1000
    assert plain_shop.dialect == "sqlite" or plain_shop.value(COUNT) == 0


def test_another_payload_is_refused_and_nothing_is_done(shop: Shop) -> None:
    with shop.connected() as connection:
        pay(connection, payload={"amount": 100, "to": "x"})
        connection.commit()
        with pytest.raises(PayloadMismatch) as refused:
            pay(connection, payload={"amount": 200, "to": "x"})
        assert (refused.value.name, refused.value.key) == ("payments", "order-7")
        assert pay(connection, payload={"to": "x", "amount": 100}) == pay(connection)  # none is not compared
        connection.commit()
    assert shop.value(BALANCE) == 900


def test_names_have_keys_of_their_own(plain_shop: Shop) -> None:
    with plain_shop.connected() as connection:
        for name in ("payments", "refunds"):
            with Once(connection, name, keep=KEEP).attempt("order-7") as attempt:
                assert not attempt.done
                attempt.complete(name)
        connection.commit()
    assert plain_shop.value(COUNT) == 2


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_a_second_transaction_waits_for_the_end_of_the_first(shop: Shop, ends: str) -> None:
    """And then finds its result, or does the work itself."""
    told: list[Any] = []
    begun = threading.Event()

    def second() -> None:
        with shop.connected() as other:
            begun.set()
            told.append(pay(other))
            other.commit()

    thread = threading.Thread(target=second)
    with shop.connected() as connection:
        with Once(connection, "payments", keep=KEEP).attempt("order-7") as attempt:
            execute(connection, CHARGE)
            attempt.complete("first")
        thread.start()
        begun.wait(60)
        time.sleep(0.2)  # it is likely to wait by now
        assert not told
        getattr(connection, ends)()
    thread.join(120)
    assert told == ["first"] if ends == "commit" else [{"charged": 100, "of": "order-7"}]
    assert shop.value(BALANCE) == 900


@pytest.mark.parametrize("wait", [0, 0.3])
def test_the_wait_is_bounded_and_the_bound_is_put_back(shop: Shop, wait: float) -> None:
    setting = {
        "sqlite": "PRAGMA busy_timeout",
        "postgresql": "SELECT current_setting('lock_timeout')",
        "mysql": "SELECT CONCAT(@@innodb_lock_wait_timeout, '/', @@max_statement_time)",
    }[shop.dialect]
    with shop.connected() as connection, shop.connected() as other:
        pay(connection)
        before = fetch(other, setting)
        with pytest.raises(AttemptInProgress) as refused:
            pay(other, wait=wait)
        assert refused.value.key == "order-7"
        assert fetch(other, setting) == before
        connection.commit()
        other.rollback()
        pay(other, wait=wait)  # nobody is in the way
        assert fetch(other, setting) == before
        other.commit()
    assert shop.value(BALANCE) == 900


def test_many_at_once_do_it_once(shop: Shop) -> None:
    def work() -> None:
        for number in range(5):
            with shop.connected() as connection:
                pay(connection, f"order-{number}")
                connection.commit()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert shop.value(BALANCE) == 500
    assert shop.value(COUNT) == 5


def test_what_is_over_is_done_anew_and_does_not_pile_up(shop: Shop) -> None:
    with shop.connected() as connection:
        once = Once(connection, "payments", keep=0.001)
        for number in range(60):
            with once.attempt(f"order-{number}") as attempt:
                assert not attempt.done
                attempt.complete()
            connection.commit()
            time.sleep(0.002)
        assert fetch(connection, COUNT) <= 5
        connection.rollback()
        with once.attempt("order-59") as attempt:
            assert not attempt.done
            attempt.complete()
        connection.commit()


def test_the_size_of_a_result_is_bounded_and_a_codec_is_used(plain_shop: Shop) -> None:
    class Pickled:
        encode = staticmethod(pickle.dumps)
        decode = staticmethod(pickle.loads)

    with plain_shop.connected() as connection:
        with pytest.raises(Misconfigured, match="max_bytes"):
            with Once(connection, "payments", keep=KEEP).attempt("large") as attempt:
                attempt.complete("x" * 70_000)
        with pytest.raises(Misconfigured, match="codec="):
            with Once(connection, "payments", keep=KEEP).attempt("large") as attempt:
                attempt.complete({1, 2})
        once = Once(connection, "payments", keep=KEEP, codec=Pickled(), max_bytes=300_000)
        with once.attempt("large") as attempt:
            attempt.complete({b"x" * 200_000})
        connection.commit()
        with once.attempt("large") as attempt:
            assert attempt.result == {b"x" * 200_000}


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED"])
@pytest.mark.parametrize("library", ["psycopg", "pymysql"])
def test_other_isolation_levels(request: pytest.FixtureRequest, tmp_path: Path, library: str, level: str) -> None:
    shop = new_shop(library, request.getfixturevalue, tmp_path)
    words = "SET SESSION CHARACTERISTICS AS TRANSACTION" if library == "psycopg" else "SET SESSION TRANSACTION"

    def work() -> None:
        for number in range(4):
            for _ in range(50):
                with shop.connected() as connection:
                    execute(connection, f"{words} ISOLATION LEVEL {level}")
                    connection.commit()
                    try:
                        pay(connection, f"order-{number}")
                        connection.commit()
                        break
                    except Exception as error:
                        code = getattr(error, "sqlstate", None) or error.args[0]
                        if code not in ("40001", "40P01", 1213, 1020):
                            raise
            else:
                raise AssertionError("never done")

    threads = [threading.Thread(target=work) for _ in range(3)]
    failures: list[BaseException] = []
    threading.excepthook, before = lambda args: failures.append(args.exc_value or RuntimeError()), threading.excepthook
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
    finally:
        threading.excepthook = before
    assert not failures
    assert shop.value(BALANCE) == 600


def end_inside(attempt: Attempt, end: Callable[[], None]) -> None:
    with attempt:
        end()
        attempt.complete()


def test_a_commit_in_the_block_is_told(plain_shop: Shop) -> None:
    with plain_shop.connected() as connection:
        once = Once(connection, "payments", keep=KEEP)
        for key, end in (("order-7", connection.commit), ("order-8", connection.rollback)):
            with pytest.raises(Misconfigured, match="ended in its block"):
                end_inside(once.attempt(key), end)
            connection.rollback()
        with once.attempt("order-7") as attempt:  # the key is not stuck
            assert not attempt.done
            attempt.complete()


def test_two_keys_in_one_transaction_one_inside_the_other(plain_shop: Shop) -> None:
    with plain_shop.connected() as connection:
        once = Once(connection, "payments", keep=KEEP)
        with once.attempt("outer") as outer:
            with pytest.raises(Misconfigured, match="this very transaction"), once.attempt("outer"):
                pass
            with pytest.raises(ZeroDivisionError), once.attempt("lost"):
                raise ZeroDivisionError
            with once.attempt("inner") as inner:
                inner.complete(1)
            outer.complete(2)
        connection.commit()
    assert plain_shop.value(COUNT) == 2


def without_transactions(library: str) -> Callable[[Any], Any]:
    if library == "psycopg":
        return lambda connection: setattr(connection, "autocommit", True)
    return lambda connection: connection.autocommit(True)


@pytest.mark.parametrize("library", ["psycopg", "pymysql"])
def test_autocommit_is_refused(request: pytest.FixtureRequest, tmp_path: Path, library: str) -> None:
    shop = new_shop(library, request.getfixturevalue, tmp_path)
    with shop.connected() as connection:
        pay(connection, "before")
        connection.commit()
        without_transactions(library)(connection)
        for key in ("order-7", "before"):
            with pytest.raises(Misconfigured, match="autocommit"):
                pay(connection, key)
    assert shop.value(COUNT) == 1
    assert shop.value(BALANCE) == 900


@pytest.mark.skipif(not hasattr(sqlite3.Connection, "autocommit"), reason="Python 3.12 has it")
def test_sqlite3_with_the_new_autocommit(tmp_path: Path) -> None:
    shop = new_shop("sqlite3", None, tmp_path)
    connection: Any = sqlite3.connect(shop.url.removeprefix("sqlite:///"), autocommit=True)  # type: ignore[call-overload,unused-ignore]
    with pytest.raises(Misconfigured, match="autocommit"):
        pay(connection)
    execute(connection, "BEGIN")
    pay(connection)
    execute(connection, "COMMIT")
    connection.autocommit = False
    for _ in range(2):
        pay(connection, "order-8")
        connection.commit()
    connection.close()
    assert shop.value(BALANCE) == 800


def test_sqlite3_has_its_transaction_begun(tmp_path: Path) -> None:
    """With IMMEDIATE; a replay leaves none open."""
    shop = new_shop("sqlite3", None, tmp_path)
    connection = sqlite3.connect(shop.url.removeprefix("sqlite:///"), isolation_level=None)
    pay(connection)
    open_after = [connection.in_transaction]
    connection.commit()
    pay(connection)
    assert [*open_after, connection.in_transaction] == [True, False]
    connection.close()
    assert shop.value(BALANCE) == 900


def test_mariadb_is_told_to_make_the_table(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    shop = new_shop("pymysql", request.getfixturevalue, tmp_path)
    with shop.connected() as connection:
        execute(connection, "DROP TABLE holdfast_once")
        with pytest.raises(Misconfigured, match="holdfast schema --once mysql"):
            pay(connection)


BAD: list[dict[str, Any]] = [
    {"name": ""},
    {"name": "a\n"},
    {"name": 7},
    {"keep": 0},
    {"keep": "soon"},
    {"keep": -1},
    {"wait": -1},
    {"wait": "1"},
    {"max_bytes": 0},
    {"max_bytes": True},
    {"max_bytes": 10**9},
    {"codec": 7},
    {"codec": JsonCodec},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_options_are_refused(bad: dict[str, Any]) -> None:
    connection = sqlite3.connect(":memory:")
    options = {"name": "payments", "keep": KEEP, **bad}
    with pytest.raises(Misconfigured):
        Once(connection, options.pop("name"), **options)
    connection.close()


def test_bad_calls_are_refused() -> None:
    connection = sqlite3.connect(":memory:")
    once = Once(connection, "payments", keep=KEEP)
    for key in ("", "a\x00", "x" * 600, 7):
        with pytest.raises(Misconfigured):
            once.attempt(key)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured):
        once.attempt("a", wait=-1)
    with pytest.raises(Misconfigured):
        once.attempt("a", fingerprint=object())
    with pytest.raises(Misconfigured, match="psycopg"):
        Once(object(), "payments", keep=KEEP)
    attempt = once.attempt("a")
    with pytest.raises(Misconfigured, match="has not begun"):
        attempt.complete()
    with pytest.raises(Misconfigured, match="no result"):
        _ = attempt.result
    assert not connection.in_transaction
    with attempt:
        attempt.complete(1)
        with pytest.raises(Misconfigured, match="is done"):
            attempt.complete(2)
    with pytest.raises(Misconfigured, match="before"), attempt:
        pass
    with pytest.raises(Misconfigured, match="pickled"):
        pickle.dumps(once)
    assert holdfast.sql.Once is Once
    connection.close()


def test_an_attempt_within_an_attempt_at_the_same_key_does_nothing_twice(plain_shop: Shop) -> None:
    """By another `Once` of the same name, on the same connection: told, and both effects are undone."""
    with plain_shop.connected() as connection:
        attempt = Once(connection, "payments", keep=KEEP).attempt("order-7").__enter__()
        execute(connection, CHARGE)
        pay(connection)
        with pytest.raises(Misconfigured, match="another attempt at the same key") as told:
            attempt.complete("first")
        attempt.__exit__(told.type, told.value, None)
        connection.commit()
    assert plain_shop.value(BALANCE) == 1000
    with plain_shop.connected() as connection:
        assert pay(connection) == {"charged": 100, "of": "order-7"}
        connection.commit()
    assert plain_shop.value(BALANCE) == 900

"""A claim on SQLite rows is the first statement of the user's own transaction, whatever the connection is like."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import FenceRejected
from holdfast.fenced import SQLiteFence
from tests.fenced.connections import MODES, Connect, as_dict, commit, files

every_mode = pytest.mark.parametrize("mode", MODES)


def pay(db: sqlite3.Connection, amount: int) -> None:
    db.execute("UPDATE orders SET paid = paid + ? WHERE id = 7", (amount,))


def paid(connect: Connect) -> int:
    (amount,) = connect().execute("SELECT paid FROM orders WHERE id = 7").fetchone()
    return int(amount)


@every_mode
def test_what_follows_a_claim_is_in_its_transaction(shop: Connect, mode: str) -> None:
    db = shop(**MODES[mode])
    SQLiteFence(db).claim("orders/7", 1)
    assert db.in_transaction
    pay(db, 100)
    assert paid(shop) == 0
    commit(db)
    assert paid(shop) == 100
    assert SQLiteFence(shop()).mark("orders/7") == 1


def test_the_claim_opens_its_transaction_for_writing_before_all_else(shop: Connect) -> None:
    db = shop()
    statements: list[str] = []
    SQLiteFence(db).claim("orders/7", 1)
    db.commit()
    db.set_trace_callback(statements.append)
    SQLiteFence(db).claim("orders/7", 1)
    assert statements[0] == "BEGIN IMMEDIATE"
    assert statements[1].startswith("INSERT INTO")


@every_mode
def test_from_the_claim_on_nobody_else_can_write(shop: Connect, mode: str) -> None:
    db, other = shop(**MODES[mode]), shop(isolation_level=None)
    SQLiteFence(db).claim("orders/7", 1)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")


def test_so_it_is_when_the_same_holder_claims_again(shop: Connect) -> None:
    """The mark need not change for the claim to take the write lock."""
    with SQLiteFence(shop()).transaction("orders/7", 1):
        pass
    db, other = shop(isolation_level=None), shop(isolation_level=None)
    db.execute("BEGIN DEFERRED")
    SQLiteFence(db).claim("orders/7", 1)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")


@every_mode
def test_an_older_token_is_refused_and_nothing_is_changed(shop: Connect, mode: str, tmp_path: Path) -> None:
    with SQLiteFence(shop()).transaction("orders/7", 34) as newer:
        pay(newer, 100)
    stale = shop(**MODES[mode])
    before = files(tmp_path)
    with pytest.raises(FenceRejected) as refusal:
        with SQLiteFence(stale).transaction("orders/7", 33):
            raise AssertionError("the body was entered")
    assert (refusal.value.resource, refusal.value.token, refusal.value.mark) == ("orders/7", 33, 34)
    assert files(tmp_path) == before
    with SQLiteFence(shop()).transaction("orders/7", 34):
        pass  # the stale connection keeps no lock either


@pytest.mark.parametrize("row_factory", [None, sqlite3.Row, as_dict, lambda *_: 1 / 0])
def test_no_row_factory_of_the_users_gets_in_the_way(shop: Connect, row_factory: Any) -> None:
    db = shop()
    db.row_factory = row_factory
    fence = SQLiteFence(db)
    with fence.transaction("orders/7", 34):
        assert fence.mark("orders/7") == 34
    with pytest.raises(FenceRejected):
        fence.claim("orders/7", 33)
    assert db.row_factory is row_factory


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "pep249"])
def test_a_refused_claim_ends_the_transaction_that_it_began(shop: Connect, mode: str) -> None:
    with SQLiteFence(shop()).transaction("orders/7", 34):
        pass
    stale = shop(**MODES[mode])
    with pytest.raises(FenceRejected):
        SQLiteFence(stale).claim("orders/7", 33)
    assert not stale.in_transaction


@every_mode
def test_a_refused_claim_leaves_the_users_transaction_as_it_was(shop: Connect, mode: str) -> None:
    with SQLiteFence(shop()).transaction("orders/7", 34):
        pass
    db = shop(**MODES[mode])
    if not db.in_transaction:
        db.execute("BEGIN")
    db.execute("INSERT INTO orders VALUES (8, 50)")
    with pytest.raises(FenceRejected):
        SQLiteFence(db).claim("orders/7", 33)
    assert db.in_transaction
    commit(db)
    assert shop().execute("SELECT id, paid FROM orders ORDER BY id").fetchall() == [(7, 0), (8, 50)]
    assert SQLiteFence(shop()).mark("orders/7") == 34


@every_mode
def test_several_resources_can_be_claimed_in_one_transaction(shop: Connect, mode: str) -> None:
    fence = SQLiteFence(shop(**MODES[mode]))
    with fence.transaction("orders/7", 5):
        fence.claim("stock/3", 9)
        fence.claim("orders/7", 5)  # again, by the same holder
    other = SQLiteFence(shop())
    assert (other.mark("orders/7"), other.mark("stock/3"), other.mark("orders/8")) == (5, 9, None)


@every_mode
def test_if_one_of_several_is_refused_all_is_undone(shop: Connect, mode: str) -> None:
    with SQLiteFence(shop()).transaction("stock/3", 9):
        pass
    db = shop(**MODES[mode])

    def sell() -> None:
        with SQLiteFence(db).transaction("orders/7", 5):
            pay(db, 100)
            SQLiteFence(db).claim("stock/3", 8)

    with pytest.raises(FenceRejected, match="stock/3"):
        sell()
    assert paid(shop) == 0
    assert SQLiteFence(shop()).mark("orders/7") is None


@every_mode
def test_a_body_that_raises_is_rolled_back(shop: Connect, mode: str) -> None:
    db = shop(**MODES[mode])

    def body() -> None:
        with SQLiteFence(db).transaction("orders/7", 5):
            pay(db, 100)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        body()
    assert paid(shop) == 0
    assert SQLiteFence(shop()).mark("orders/7") is None
    with SQLiteFence(db).transaction("orders/7", 5):
        pay(db, 100)
    assert paid(shop) == 100


def test_the_largest_token_fits(shop: Connect) -> None:
    with SQLiteFence(shop()).transaction("orders/7", 2**63 - 1):
        pass
    assert SQLiteFence(shop()).mark("orders/7") == 2**63 - 1


def test_resources_differ_by_every_character(shop: Connect) -> None:
    fence = SQLiteFence(shop())
    for token, resource in enumerate(["a", "A", "a ", "ä", "a/b"], start=1):
        with fence.transaction(resource, token):
            assert fence.mark(resource) == token
    assert fence.mark("a") == 1


def test_tables_apart_keep_marks_apart(shop: Connect) -> None:
    with SQLiteFence(shop(), table="fence_a").transaction("orders/7", 9):
        pass
    with SQLiteFence(shop(), table="main.fence_b").transaction("orders/7", 2):
        pass
    assert SQLiteFence(shop(), table="fence_a").mark("orders/7") == 9
    assert SQLiteFence(shop(), table="fence_b").mark("orders/7") == 2

"""The fence's table is there when it is needed, in the database of the rows and nowhere else."""

from __future__ import annotations

import pytest

from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced import SQLiteFence
from holdfast.fenced.sqlite import schema
from tests.fenced.connections import Connect


def tables(connect: Connect) -> set[str]:
    return {name for (name,) in connect().execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_it_is_created_on_first_use(shop: Connect) -> None:
    assert SQLiteFence(shop()).mark("orders/7") is None
    assert tables(shop) == {"orders"}
    with SQLiteFence(shop()).transaction("orders/7", 1):
        pass
    assert tables(shop) == {"orders", "holdfast_fence"}


def test_it_goes_with_a_rollback_and_comes_again(shop: Connect) -> None:
    db = shop()
    fence = SQLiteFence(db)
    for _ in range(2):
        fence.claim("orders/7", 1)
        db.rollback()
        assert tables(shop) == {"orders"}
    fence.claim("orders/7", 1)
    db.commit()
    assert fence.mark("orders/7") == 1


def test_its_schema_can_be_created_beforehand(shop: Connect) -> None:
    db = shop()
    db.executescript(schema())
    db.executescript(schema())
    with SQLiteFence(db).transaction("orders/7", 3):
        pass
    assert db.execute("SELECT * FROM holdfast_fence").fetchall() == [("orders/7", 3)]
    assert 'main."my_marks"' in schema("my_marks")


def test_a_temporary_table_of_that_name_does_not_hide_it(shop: Connect) -> None:
    """A temporary table belongs to one connection, and would let everybody through."""
    with SQLiteFence(shop()).transaction("orders/7", 34):
        pass
    stale = shop(isolation_level=None)
    stale.execute("CREATE TEMP TABLE holdfast_fence (resource TEXT PRIMARY KEY, mark INTEGER)")
    with pytest.raises(FenceRejected):
        SQLiteFence(stale).claim("orders/7", 33)


@pytest.mark.parametrize("table", ["", "a b", 'x"; DROP TABLE orders; --', "a.b.c", "temp.fence", "TEMP.fence", 7])
def test_a_table_that_cannot_serve_is_refused_at_once(shop: Connect, table: str) -> None:
    with pytest.raises(Misconfigured):
        SQLiteFence(shop(), table=table)


def test_a_table_that_is_not_ours_is_named(shop: Connect) -> None:
    db = shop()
    with pytest.raises(Misconfigured, match="its own table"):
        SQLiteFence(db, table="orders").claim("orders/7", 1)
    assert not db.in_transaction


def test_a_mark_in_an_attached_database_guards_that_database(
    shop: Connect, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("other") / "other.db"
    for token in (34, 33):
        db = shop()
        db.execute("ATTACH ? AS other", (str(path),))
        if token == 34:
            SQLiteFence(db, table="other.marks").claim("orders/7", token)
            db.commit()
        else:
            with pytest.raises(FenceRejected):
                SQLiteFence(db, table="other.marks").claim("orders/7", token)
    assert tables(shop) == {"orders"}

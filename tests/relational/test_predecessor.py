"""How the last hold ended, in the tables: what keeps it, and tables of the version before, which have it not."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.backends.mysql import programs as mysql
from holdfast.backends.postgresql import programs as postgresql
from holdfast.backends.relational import table_client
from holdfast.model import Predecessor
from tests.relational.house import House

DAY_US = 24 * 3600 * 1_000_000
COLUMNS = "DROP COLUMN robust, DROP COLUMN note, DROP COLUMN unrecovered"
OLD_TAKE = (
    "holdfast_take(text, text, integer, integer, boolean, bigint, bigint, bigint, boolean, text, text, text, text, "
    "integer)"
)
BEFORE = {
    "postgresql": (
        f"ALTER TABLE holdfast_claim {COLUMNS}",
        f"CREATE FUNCTION {OLD_TAKE} RETURNS bigint[] LANGUAGE sql AS 'SELECT NULL::bigint[]'",
        f"UPDATE holdfast_meta SET value = '{postgresql.VERSION - 1}' WHERE key = 'version'",
    ),
    "mysql": (
        f"ALTER TABLE holdfast_claim {COLUMNS}",
        "ALTER TABLE holdfast_push DROP COLUMN note",
        f"UPDATE holdfast_meta SET value = '{mysql.VERSION - 1}' WHERE word = 'version'",
    ),
}
"""What makes tables those of the version before, near enough."""


def put_right(lease: holdfast.Lease, predecessor: Predecessor) -> None:
    """A recovery that has nothing to do."""


def test_tables_of_the_version_before_are_made_new_and_what_is_held_stays_held(house: House, url: str) -> None:
    with holdfast.connect(url) as before:
        held, free = before.lock("door", ttl=60).acquire(), before.lock("window").acquire()
        free.release()
        for statement in BEFORE[house.scheme]:
            house.execute(url, statement)
        with holdfast.connect(url, require={"predecessor"}) as locks:
            assert locks.lock("door").try_acquire() is None
            first = locks.lock("window").acquire()
            assert first.token > free.token
            assert first.predecessor is None, "this was not kept"
            assert locks.evict("door", held.token)
            with locks.lock("door") as lease:
                assert lease.predecessor == Predecessor(held.token, held.owner, "evicted")
    if house.scheme == "postgresql":
        assert house.execute(url, f"SELECT to_regprocedure('{OLD_TAKE}')") == [(None,)], "nobody leaves without a note"


def test_whoever_takes_a_name_in_turn_with_others_is_told_who_was_there_last(url: str) -> None:
    """Whether a client expects itself or somebody else: what it is told is what was."""
    with holdfast.connect(url) as one, holdfast.connect(url) as two:
        last = None
        for locks in (one, one, one, two, one, two, one, two, two, two, one, one, two):
            lease = locks.lock("door").acquire(timeout=0)
            assert lease.predecessor == last
            last = Predecessor(lease.token, lease.owner, "released")
            assert lease.release()


def test_who_has_let_go_early_and_lingers_was_there_last(url: str) -> None:
    with holdfast.connect(url) as locks:
        lingers = locks.lock("door", hold_at_least=0.05).acquire()
        assert lingers.release()
        with locks.lock("door", timeout=30) as lease:
            assert lease.predecessor == Predecessor(lingers.token, lingers.owner, "released")


@pytest.mark.parametrize("ended", ["expired", "evicted"])
def test_housekeeping_drops_no_name_that_is_unrecovered(
    house: House, url: str, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks for it any more, a day goes by, and it still shows; another one is gone by then."""
    with holdfast.connect(url) as locks:
        left = locks.lock("door", ttl=0.2, renew=False, recover=put_right).acquire()
        if ended == "evicted":
            assert locks.evict("door", left.token)
        while not (views := locks.survey("door")) or views[0].unrecovered is None:
            pass
        with locks.lock("window"):
            pass
        house.execute(url, f"UPDATE holdfast_claim SET mark = mark - {2 * DAY_US}")
        monkeypatch.setattr(table_client, "requests_until_tidy", lambda chance: 1)
        with holdfast.connect(url) as tidy:
            for _ in range(3):
                tidy.lock("other").acquire().release()
        names = house.execute(url, "SELECT name FROM holdfast_claim")
        assert not any("window" in str(name) for (name,) in names)
        [view] = locks.survey("door")
        assert view.unrecovered == Predecessor(left.token, left.owner, ended)
        with locks.lock("door", recover=put_right) as lease:
            assert lease.predecessor == view.unrecovered
        assert not locks.survey("door")


def test_of_two_who_died_together_the_last_to_be_granted_is_told(url: str) -> None:
    with holdfast.connect(url) as locks:
        first = locks.semaphore("pool", permits=3, ttl=0.2, renew=False).acquire()
        second = locks.semaphore("pool", permits=3, ttl=0.2, renew=False).acquire()
        while locks.survey("pool"):
            pass
        with locks.semaphore("pool", permits=3) as lease:
            assert lease.predecessor == Predecessor(second.token, second.owner, "expired")
        assert first.token < second.token

"""What is special about registers on hashes of Redis: which fields are compared, counted, set and deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import cas
from holdfast.errors import Misconfigured


def test_a_hash_notices_fields_that_come_and_go(client: Any) -> None:
    client.hset("h", mapping={"a": 1, "b": 2})
    order = cas.RedisHash(client, "h", cas.INTEGER)
    others: list[Callable[[], object]] = [
        lambda: client.hset("h", "c", 3),
        lambda: client.hdel("h", "b"),
        lambda: client.hset("h", "a", 9),
        lambda: client.delete("h"),
    ]
    for other in others:
        found = order.read()
        other()
        with pytest.raises(cas.VersionConflict):
            order.swap({"a": 0}, found.version)
    with pytest.raises(cas.Missing):
        order.read()


def test_only_the_fields_that_were_read_are_compared(client: Any) -> None:
    client.hset("h", mapping={"paid": 1, "note": "x"})
    order = cas.RedisHash(client, "h", cas.INTEGER, fields=["paid", "owed"])
    found = order.read()
    assert found.value == {"paid": 1}
    client.hset("h", "note", "y")
    newer = order.swap({"paid": 2, "owed": 3}, found.version)
    assert order.read() == newer
    client.hdel("h", "owed")
    with pytest.raises(cas.VersionConflict):
        order.swap({"paid": 9}, newer.version)
    without = order.read()
    client.hset("h", "owed", "")  # there and empty is not the same as not there
    with pytest.raises(cas.VersionConflict):
        order.swap({"paid": 9}, without.version)
    client.hset("h", "owed", 3)
    assert order.update(lambda old: {"owed": None, "paid": old["paid"] + 1}) == {"paid": 3}
    assert client.hgetall("h") == {b"paid": b"3", b"note": b"y"}
    client.hdel("h", "paid")  # the hash is there, without any of the fields
    assert order.read().value == {}
    assert order.update(lambda old: {"paid": 1 + len(old)}) == {"paid": 1}


def test_a_counted_hash_has_versions_that_do_not_repeat(client: Any) -> None:
    order = cas.RedisHash(client, "h", cas.TEXT, version_field="version")
    client.hset("h", "state", "a")  # from before there was a version
    first = order.read()
    assert first == cas.Versioned({"state": "a"}, 0)
    assert order.swap({"state": "b"}, 0).version == 1
    assert order.swap({"state": "a"}, 1).version == 2
    with pytest.raises(cas.VersionConflict):  # a, b, a: the value is the same, the version is not
        order.swap({"state": "c"}, 0)
    assert client.hgetall("h") == {b"state": b"a", b"version": b"2"}
    client.hset("h", "version", 0)
    assert order.swap({"state": "d"}, 0).version == 1
    for nonsense in ("x", "-1", "007"):
        client.hset("h", "version", nonsense)
        with pytest.raises(Misconfigured, match="a count"):
            order.read()


def test_some_fields_of_a_counted_hash(client: Any) -> None:
    client.hset("h", mapping={"paid": 1, "note": "x", "version": 7})
    order = cas.RedisHash(client, "h", cas.INTEGER, fields=["paid"], version_field="version")
    assert order.read() == cas.Versioned({"paid": 1}, 7)
    client.hset("h", "note", "y")  # by somebody who does not count
    assert order.update(lambda old: {"paid": old["paid"] + 1}) == {"paid": 2}
    assert client.hgetall("h") == {b"paid": b"2", b"note": b"y", b"version": b"8"}


def test_names_of_fields_are_text(client: Any) -> None:
    client.hset("h", b"\xff", 1)
    with pytest.raises(Misconfigured, match="fields="):
        cas.RedisHash(client, "h", cas.INTEGER).read()
    assert cas.RedisHash(client, "h", cas.INTEGER, fields=["n"]).update(lambda old: {"n": 1}) == {"n": 1}


def test_a_hash_without_a_field_is_not_created(client: Any) -> None:
    """It would not be there: the next one would create it, too."""
    with pytest.raises(Misconfigured, match="would not be there"):
        cas.RedisHash(client, "h", cas.INTEGER).create({"a": None})
    assert cas.RedisHash(client, "h", cas.INTEGER, version_field="v").create({"a": None}).version == 1
    with pytest.raises(cas.VersionConflict):
        cas.RedisHash(client, "h", cas.INTEGER, version_field="v").create({"a": None})

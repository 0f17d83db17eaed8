"""What stands in the keys of records: `OWNER␀DATA` in a record, `TTL OWNER` in the key beside one that is alive."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass

from ...record import Record
from .rpc import KeyValue, OpResponse, put, unb64


@dataclass(frozen=True, slots=True)
class Alive:
    """The key beside a record that is alive."""

    lease: int
    ttl: float
    owner: str


def put_record(key: str, owner: str, data: bytes, lease: int) -> str:
    value = b2a_base64(owner.encode() + b"\0" + data, newline=False).decode()
    return f'{{"request_put":{{"key":"{key}","value":"{value}","lease":{lease}}}}}'


def put_alive(key: str, alive: Alive) -> str:
    return put(key, f"{alive.ttl!r} {alive.owner}", alive.lease)


def only(response: OpResponse) -> KeyValue | None:
    found = response["response_range"].get("kvs")
    return found[0] if found else None


def split(found: KeyValue) -> tuple[str, bytes]:
    owner, _, data = a2b_base64(found["value"]).partition(b"\0")
    return owner.decode(), data


def alive_of(found: KeyValue) -> Alive:
    ttl, _, owner = unb64(found["value"]).partition(" ")
    return Alive(int(found.get("lease", 0)), float(ttl), owner)


def record_of(key: str, record: OpResponse, alive: OpResponse) -> Record | None:
    found = only(record)
    return None if found is None else shown(key, found, only(alive))


def shown(key: str, found: KeyValue, alive: KeyValue | None) -> Record:
    owner, data = split(found)
    return Record(key, int(found["mod_revision"]), data, owner, 0.0 if alive is None else alive_of(alive).ttl)

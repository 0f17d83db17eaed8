"""Refusals in etcd: some keys per fenced key, whose versions are how often each was put (`fenced.etcd.programs`)."""

from __future__ import annotations

import urllib.error
from base64 import b64decode
from dataclasses import replace
from typing import Any

from ..backends.etcd.address import parse
from ..doctor.checks.etcd import EtcdMember
from ..errors import BackendUnavailable
from ..fenced.etcd.programs import REFUSALS, encode, mark_key
from ..fenced.refusal import FenceRefusal, RefusalRecord

COMPACTED_CODE = 400
PAGE_COUNT = 1000


def read(url: str, request_timeout: float) -> list[RefusalRecord]:
    address = parse(url)
    error: Exception | None = None
    for host, port in address.hosts:
        try:
            return _of_member(EtcdMember(address, host, port, request_timeout))
        except OSError as failure:
            error = failure
    raise BackendUnavailable(f"no member of etcd answers: {error}") from error


def _of_member(member: EtcdMember) -> list[RefusalRecord]:
    found: dict[bytes, list[tuple[int, int, FenceRefusal]]] = {}
    for kv in _all(member):
        key = b64decode(kv["key"]).removeprefix(REFUSALS).rpartition(b"/")[0]
        refusal = FenceRefusal.parse(b64decode(kv["value"]).decode())
        found.setdefault(key, []).append((int(kv["mod_revision"]), int(kv["version"]), refusal))
    return [_record(member, key, sorted(slots, reverse=True, key=lambda slot: slot[0])) for key, slots in found.items()]


def _all(member: EtcdMember) -> list[dict[str, Any]]:
    begin, found = REFUSALS, list[dict[str, Any]]()
    while True:
        end = REFUSALS[:-1] + bytes([REFUSALS[-1] + 1])
        reply = member.ask("kv/range", key=encode(begin), range_end=encode(end), limit=PAGE_COUNT)
        found += (page := reply.get("kvs", []))
        if not reply.get("more"):
            return found
        begin = b64decode(page[-1]["key"]) + b"\0"


def _record(member: EtcdMember, key: bytes, slots: list[tuple[int, int, FenceRefusal]]) -> RefusalRecord:
    last = tuple(replace(refusal, mark=_mark(member, key, revision)) for revision, _, refusal in slots)
    return RefusalRecord(key.decode(errors="backslashreplace"), sum(version for _, version, _ in slots), last)


def _mark(member: EtcdMember, key: bytes, revision: int) -> int | None:
    """The mark that refused; the one that stands now, if etcd has forgotten that revision."""
    try:
        reply = member.ask("kv/range", key=mark_key(key), revision=revision)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != COMPACTED_CODE:
            raise
        reply = member.ask("kv/range", key=mark_key(key))
    kvs = reply.get("kvs")
    return int(b64decode(kvs[0]["value"])) if kvs else None

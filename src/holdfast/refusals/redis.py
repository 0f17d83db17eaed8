"""Refusals in Redis: a hash per fenced key, found by SCAN on every primary, as `holdfast ls` finds locks."""

from __future__ import annotations

from typing import Any

from ..doctor.checks.redis import examinations
from ..fenced.refusal import LAST_COUNT, FenceRefusal, RefusalRecord

PATTERN = "holdfast/refusals/*"
SCAN_COUNT = 1000


def read(url: str, request_timeout: float) -> list[RefusalRecord]:
    with examinations(url, request_timeout) as found:
        return [record for each in found for record in _of_server(each.subject.client)]


def _of_server(client: Any) -> list[RefusalRecord]:
    keys = sorted(set(client.scan_iter(match=PATTERN, count=SCAN_COUNT)))
    records = []
    for at in range(0, len(keys), SCAN_COUNT):
        page = keys[at : at + SCAN_COUNT]
        with client.pipeline(transaction=False) as pipeline:
            for key in page:
                pipeline.hgetall(key)
            records += [_record(key, fields) for key, fields in zip(page, pipeline.execute(), strict=True) if fields]
    return records


def _record(key: bytes, fields: dict[bytes, bytes]) -> RefusalRecord:
    """`holdfast/refusals/{tag}/KEY`: a tag has no brace in it."""
    resource, count = _text(key).partition("}/")[2], int(fields[b"count"])
    lines = (fields.get(b"%d" % (number % LAST_COUNT)) for number in range(count, max(count - LAST_COUNT, 0), -1))
    return RefusalRecord(resource, count, tuple(FenceRefusal.parse(_text(line)) for line in lines if line is not None))


def _text(data: bytes | str) -> str:
    return data if isinstance(data, str) else data.decode(errors="backslashreplace")

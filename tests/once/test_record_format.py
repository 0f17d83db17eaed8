"""What is kept of an attempt is JSON, letter by letter as `json` writes it, and read again as it was."""

from __future__ import annotations

import json
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from holdfast.recipes.once_record import DONE, ENDED, FAILED, RUNNING, AttemptRecord, Origin
from holdfast.record import Record

VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
RECORDS = st.builds(
    AttemptRecord,
    st.sampled_from([RUNNING, DONE, FAILED, ENDED]),
    st.integers(1),
    st.text("0123456789abcdef") | st.text(),
    st.lists(st.tuples(st.text(), VALUES)).map(tuple),
    st.builds(Origin, st.text(), st.integers(1, 2**31), st.floats(0, 1e12)),
    st.binary(),
    st.text(),
)


def by_json(record: AttemptRecord) -> bytes:
    fields = record._asdict() | {"origin": record.origin._asdict(), "result": b64encode(record.result).decode()}
    return json.dumps(fields, separators=(",", ":")).encode()


@given(RECORDS)
def test_a_record_is_written_as_json_writes_it_and_read_as_it_was(record: AttemptRecord) -> None:
    written = record.encode()
    assert written == by_json(record)
    assert AttemptRecord.decode(Record("k", 1, written, "owner", 0.0)) == record

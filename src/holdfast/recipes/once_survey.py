"""What is remembered by a `once`, for those who look after it."""

from __future__ import annotations

from .._core.coordinator_core import CoordinatorCore
from .._core.flow import Flow
from ..errors import Misconfigured
from ..model import check_name
from .once_options import prefix_of
from .once_record import AttemptRecord, AttemptView, view
from .records import records_of


def look(core: CoordinatorCore, name: str, key: str) -> Flow[AttemptView | None]:
    """The attempt of a key as it is now."""
    check_name(key, "key")
    record = yield from records_of(core.backend, name).read_record(prefix_of(name) + key)
    return None if record is None else view(key, record, AttemptRecord.decode(record))


def look_at_all(core: CoordinatorCore, name: str, after: str, limit: int) -> Flow[list[AttemptView]]:
    """The attempts of a once, in the order of their keys."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
        raise Misconfigured(f"limit is a whole number from 1 to 1000, not {limit!r}")
    prefix = prefix_of(name)
    if after:
        check_name(after, "after")
    found = yield from records_of(core.backend, name).list_records(prefix, prefix + after if after else "", limit)
    return [view(record.key[len(prefix) :], record, AttemptRecord.decode(record)) for record in found]


def forget(core: CoordinatorCore, name: str, key: str, token: int | None) -> Flow[bool]:
    """Remove what is remembered (only the attempt with this token, if one is named); False if there is none."""
    records, full = records_of(core.backend, name), prefix_of(name) + check_name(key, "key")
    while True:
        record = yield from records.read_record(full)
        if record is None or token not in (None, record.version):
            return False
        swapped = yield from records.swap_record(full, record.version, None, "", 0.0, 1.0)
        if swapped.done:
            return True

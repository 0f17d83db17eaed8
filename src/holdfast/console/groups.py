"""What consists of several names, or of several holders: partitions, elections, limits. Pages, as in `pictures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..cli.partition_views import ranges, rows
from .pictures import MAX_PAGE_COUNT, PageOf, kind_of, lock_row
from .snapshot import SurveySnapshot
from .watcher import Watcher

MAX_SHARDS_SHOWN_COUNT = 60


def partitions(snapshot: SurveySnapshot, watcher: Watcher, page: PageOf) -> dict[str, Any]:
    """A page of partitions: their members and what each owns, and what nobody owns."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in snapshot.cached("partitions", lambda: list(rows(snapshot.views, watcher.prefix))):
        if not row.partition.startswith(page.prefix):
            continue
        entry = found.setdefault(
            (row.partition, row.shards), {"name": row.partition, "shards": row.shards, "member_count": 0, "members": []}
        )
        entry["member_count"] += row.kind == "member"
        if len(entry["members"]) <= MAX_PAGE_COUNT or row.kind == "unowned":
            shown = ranges(row.owned[:MAX_SHARDS_SHOWN_COUNT])
            entry["members"].append(
                {
                    "kind": row.kind,
                    "id": row.member,
                    "host": "" if row.claim is None else row.claim.host,
                    "pid": None if row.claim is None else row.claim.pid,
                    "age": None if row.claim is None else row.claim.age,
                    "weight": row.weight,
                    "owns": len(row.owned),
                    "which": shown + (" …" if len(row.owned) > MAX_SHARDS_SHOWN_COUNT else ""),
                }
            )
    entries = list(found.values())
    return {
        "total": len(entries),
        "offset": page.offset,
        "partitions": entries[page.offset : page.offset + page.limit],
    }


def elections(snapshot: SurveySnapshot, watcher: Watcher, page: PageOf) -> dict[str, Any]:
    """A page of elections: the leader, for how long, who stands by, and how often the leader was seen to change."""
    found = snapshot.cached("elections", lambda: [view for view in snapshot.views if kind_of(view) == "election"])
    fitting = [view for view in found if view.name.startswith(page.prefix)]
    entries = []
    for view in fitting[page.offset : page.offset + page.limit]:
        holds, _ = watcher.timeline(view.name)
        entries.append(lock_row(view, watcher) | {"leaders_seen": len(holds)})
    return {"total": len(fitting), "offset": page.offset, "elections": entries}


def limits(
    snapshot: SurveySnapshot, watcher: Watcher, page: PageOf, rates: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """A page of semaphores and read-write locks, with what is in use; and the rate limits that are watched."""
    wanted = ("semaphore", "read-write")
    found = snapshot.cached("limits", lambda: [view for view in snapshot.views if kind_of(view) in wanted])
    fitting = [view for view in found if view.name.startswith(page.prefix)]
    shown = fitting[page.offset : page.offset + page.limit]
    return {
        "total": len(fitting),
        "offset": page.offset,
        "limits": [lock_row(view, watcher) for view in shown],
        "rates": [rate for rate in rates if str(rate["name"]).startswith(page.prefix)],
    }

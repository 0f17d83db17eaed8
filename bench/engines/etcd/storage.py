"""What etcd keeps: keys, and every revision of them until it is compacted."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request

from bench.engines.etcd import connect, endpoints
from bench.engines.etcd.floor import ask, frame
from bench.model import Footprint, Storage, Target

CONTENDERS = ()
_METRIC = re.compile(r"^(\w+) (\S+)$", re.MULTILINE)
ALL = {"key": "AA==", "range_end": "AA=="}


def _metrics(target: Target) -> dict[str, int]:
    host, port = endpoints(target)[0]
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=5) as reply:
        return {name: int(float(value)) for name, value in _METRIC.findall(reply.read().decode())}


def look(target: Target) -> Footprint:
    with connect(target) as link:
        keys = int(ask(link, frame("kv/range", ALL | {"count_only": True})).get("count", 0))
    found = _metrics(target)
    return Footprint(
        keys,
        found["etcd_mvcc_db_total_size_in_use_in_bytes"],
        found["etcd_debugging_mvcc_current_revision"] - found["etcd_debugging_mvcc_compact_revision"],
    )


def clean(target: Target, seconds: float) -> None:
    with connect(target) as link:
        revision = ask(link, frame("kv/range", ALL | {"count_only": True}))["header"]["revision"]
    host, port = endpoints(target)[0]
    body = json.dumps({"revision": revision, "physical": True}).encode()
    try:
        urllib.request.urlopen(f"http://{host}:{port}/v3/kv/compaction", body, timeout=seconds).close()
    except urllib.error.HTTPError as error:
        error.close()  # nothing was written since the last compaction


STORAGE = Storage(look, clean, "keys", "revisions", "Left: after a compaction. Stored: in use in the leader's file.")

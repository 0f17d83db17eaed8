"""What ZooKeeper keeps: nodes. The container of a name goes by itself once it is empty, at most so many a minute."""

from __future__ import annotations

import re
import time
from pathlib import Path

from bench.engines.zookeeper import address
from bench.model import Footprint, Storage, Target
from tests.zookeeper.ensemble import Member

CONTENDERS = ()
_FIGURE = re.compile(r"^zk_(\w+)\s+(\d+)", re.MULTILINE)
LOOK_EVERY_S = 0.3
STILL_COUNT = 4
"""So many looks without a change: nothing more will go."""


def look(target: Target) -> Footprint:
    answer = Member(0, Path(), address(target)[1], []).say("mntr")
    found = {name: int(value) for name, value in _FIGURE.findall(answer)}
    return Footprint(found["znode_count"], found["approximate_data_size"], found["ephemerals_count"])


def clean(target: Target, seconds: float) -> None:
    end, last, still = time.monotonic() + seconds, -1, 0
    while time.monotonic() < end and still < STILL_COUNT:
        nodes = look(target).entries
        still = still + 1 if nodes == last else 0
        last = nodes
        time.sleep(LOOK_EVERY_S)


STORAGE = Storage(
    look,
    clean,
    "nodes",
    "ephemeral nodes",
    "Left: when the server removes no more empty containers, or its time for that is over.",
)

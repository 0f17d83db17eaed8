"""The contenders of `zookeeper`."""

from __future__ import annotations

from bench.engines.zookeeper import floor, peer_kazoo, peer_tooz

CONTENDERS = (*floor.CONTENDERS, *peer_kazoo.CONTENDERS, *peer_tooz.CONTENDERS)

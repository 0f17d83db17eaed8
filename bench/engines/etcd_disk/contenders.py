"""The contenders of `etcd`."""

from __future__ import annotations

from bench.engines.etcd import floor, peer_aetcd, peer_etcd3, peer_etcd3gw, peer_tooz

CONTENDERS = (
    *floor.CONTENDERS,
    *peer_aetcd.CONTENDERS,
    *peer_etcd3.CONTENDERS,
    *peer_etcd3gw.CONTENDERS,
    *peer_tooz.CONTENDERS,
)

"""A simulated cluster of etcd 3.4, which speaks the JSON gateway to the byte. Begin with `cluster`."""

from __future__ import annotations

from .cluster import EtcdCluster, Settings
from .member import EtcdMember

__all__ = ["EtcdCluster", "EtcdMember", "Settings"]

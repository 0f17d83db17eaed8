"""A simulated cluster of etcd 3.4, which speaks the JSON gateway to the byte. Begin with `cluster`."""

from __future__ import annotations

from .cluster import ClusterSettings, EtcdCluster
from .member import EtcdMember

__all__ = ["ClusterSettings", "EtcdCluster", "EtcdMember"]

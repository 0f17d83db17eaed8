"""A fence in front of keys in etcd."""

from .fence import AsyncEtcdFence, AsyncFencedKey, EtcdFence, FencedKey
from .gateway import gateway

__all__ = ["AsyncEtcdFence", "AsyncFencedKey", "EtcdFence", "FencedKey", "gateway"]

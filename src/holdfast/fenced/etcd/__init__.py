"""A fence in front of keys in etcd."""

from .async_fence import AsyncEtcdFence, AsyncFencedKey
from .fence import EtcdFence, FencedKey
from .gateway import gateway

__all__ = ["AsyncEtcdFence", "AsyncFencedKey", "EtcdFence", "FencedKey", "gateway"]

"""The fence for keys of a Redis server, through the user's own client of redis-py, blocking or asyncio."""

from .async_fence import AsyncFencedKey, AsyncRedisFence
from .fence import FencedKey, RedisFence

__all__ = ["AsyncFencedKey", "AsyncRedisFence", "FencedKey", "RedisFence"]

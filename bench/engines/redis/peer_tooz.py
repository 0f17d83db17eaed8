"""tooz, Redis driver: redis-py's `Lock` behind its own face."""

from bench.tooz import tooz

CONTENDERS = (tooz("redis", lambda target: target.url),)

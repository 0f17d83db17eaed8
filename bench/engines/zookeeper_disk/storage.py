"""As that of `zookeeper`."""

from bench.engines.zookeeper.storage import CONTENDERS, STORAGE

__all__ = ["CONTENDERS", "STORAGE"]

"""As that of `etcd`."""

from bench.engines.etcd.storage import CONTENDERS, STORAGE

__all__ = ["CONTENDERS", "STORAGE"]

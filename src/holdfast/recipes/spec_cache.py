"""Mutexes that were asked for before: the same question is the same ask again.

`with locks.lock("orders/7"):` makes a lock each time. Engines keep what they have written for an ask by its identity,
so an ask that comes back saves them the writing, and itself the checking.

1. Only what was checked is kept, and an error is never kept: what is wrong is refused each time.
2. Values of different types are different questions, though they be equal: `ttl=True` is not `ttl=1`.
"""

from __future__ import annotations

from typing import Any

from ..model import LockSpec
from .options import Options
from .specs import mutex

KEPT = 1024


class SpecCache:
    """The asks of one coordinator. Safe to use from many threads: each step is one operation on a dict."""

    __slots__ = ("_asks", "_defaults")

    def __init__(self, defaults: Options) -> None:
        self._defaults = defaults
        self._asks: dict[Any, LockSpec] = {}

    def get(self, name: str, options: Options) -> LockSpec:
        key = (name, *options.items(), *map(type, options.values())) if options else name
        try:
            return self._asks[key]
        except (KeyError, TypeError):  # new; or something that is no key, and no option either
            spec = mutex(name, self._defaults | options)
        if len(self._asks) >= KEPT:
            self._asks.clear()
        self._asks[key] = spec
        return spec

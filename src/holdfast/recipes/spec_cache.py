"""A cache of specs: the same name and options give the same `LockSpec` object, also where a call has its own options.

`with locks.lock("orders/7"):` makes a lock each time. Engines cache the encoded request of a spec by its identity, so a
spec that is used again saves the encoding and the checks.

1. Only checked specs are cached; an error never is, so wrong options are refused each time.
2. Equal values of different types are different keys: `ttl=True` is not `ttl=1`.
"""

from __future__ import annotations

from typing import Any

from ..model import LockSpec
from .options import Options
from .specs import changed, mutex

KEPT_COUNT = 1024


class SpecCache:
    """The specs of one coordinator. Safe to use from many threads: each step is one operation on a dict."""

    __slots__ = ("_changed", "_defaults", "_specs")

    def __init__(self, defaults: Options) -> None:
        self._defaults = defaults
        self._specs: dict[Any, LockSpec] = {}
        self._changed: dict[Any, tuple[LockSpec, LockSpec]] = {}
        """By the identity of a spec, which is kept with it."""

    def get(self, name: str, options: Options) -> LockSpec:
        key = (name, *options.items(), *map(type, options.values())) if options else name
        try:
            return self._specs[key]
        except (KeyError, TypeError):  # new; or an unhashable value, which is no valid option either
            spec = mutex(name, self._defaults | options)
        if len(self._specs) >= KEPT_COUNT:
            self._specs.clear()
        self._specs[key] = spec
        return spec

    def changed(self, spec: LockSpec, options: Options) -> LockSpec:
        """The same with other options, as given to one call."""
        key = (id(spec), *options.items(), *map(type, options.values()))
        try:
            before, after = self._changed[key]
            if before is spec:
                return after
        except (KeyError, TypeError):
            pass
        after = changed(spec, options)
        if len(self._changed) >= KEPT_COUNT:
            self._changed.clear()
        self._changed[key] = (spec, after)
        return after

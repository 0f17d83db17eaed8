"""A cache of specs: the same name and options give the same `LockSpec` object, also where a call has its own options.

`with locks.lock("orders/7"):` makes a lock each time. Engines cache the encoded request of a spec by its identity, so a
spec that is used again saves the encoding and the checks. A new name with options that were seen before is a copy of
another spec, and shares what engines have prepared for its options.

1. Only checked specs are cached; an error never is, so wrong options are refused each time.
2. Equal values of different types are different keys: `ttl=True` is not `ttl=1`.
3. A name that was made from a template (`names`) and the same name in plain are different specs: their families differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..model import LockSpec
from .names import family_of_name, with_fields
from .options import Options
from .specs import changed, mutex

NAMES_COUNT = 1024
SETS_COUNT = 64


class SpecCache:
    """The specs of one coordinator. Safe to use from many threads: each step is one operation on a dict."""

    __slots__ = ("_defaults", "_sets")

    def __init__(self, defaults: Options) -> None:
        self._defaults = defaults
        self._sets: dict[Any, tuple[LockSpec, dict[str, LockSpec]]] = {}
        """For each set of options the first spec, and those of all names."""

    def get(self, name: str, options: Options, kind: Callable[..., LockSpec] = mutex, *counts: int) -> LockSpec:
        """`kind`: one of `specs`, which is given the counts, too."""
        family = ""
        if options or name.__class__ is not str:
            name, options = with_fields(name, options)
            family = family_of_name(name)
        key: Any = (*options.items(), *map(type, options.values())) if options else None
        if kind is not mutex:
            key = (kind, *counts, *map(type, counts), key)
        if family:
            key = (family, key)
        try:
            first, specs = self._sets[key]
            return specs.get(name) or _add(specs, first.named(str(name) if family else name))
        except (KeyError, TypeError):  # new; or an unhashable value, which is not valid either
            return self._begin(key, kind(name, self._defaults | options, *counts))

    def changed(self, spec: LockSpec, options: Options) -> LockSpec:
        """The same with other options, as given to one call."""
        key = (spec.option_set, *options.items(), *map(type, options.values()))
        try:
            first, specs = self._sets[key]
            return specs.get(spec.name) or _add(specs, first.named(spec.name))
        except (KeyError, TypeError):
            return self._begin(key, changed(spec, options))

    def _begin(self, key: Any, first: LockSpec) -> LockSpec:
        if len(self._sets) >= SETS_COUNT:
            self._sets.clear()
        self._sets[key] = first, {first.name: first}
        return first


def _add(specs: dict[str, LockSpec], spec: LockSpec) -> LockSpec:
    if len(specs) >= NAMES_COUNT:
        specs.clear()
    specs[spec.name] = spec
    return spec

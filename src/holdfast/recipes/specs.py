"""The specs of recipes that are one claim: weight and capacity of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import Misconfigured
from ..model import SHARED_CAPACITY, LockSpec
from .names import KNOWN, family_of_name
from .options import Options


def mutex(name: str, options: Options, mode: str = "lock") -> LockSpec:
    """One at a time: 1 of 1."""
    return _ask(name, options, mode=mode)


def robust(name: str, options: Options) -> LockSpec:
    """A mutex whose unclean end leaves something to put right."""
    return _ask(name, options, robust=True)


def reader(name: str, options: Options) -> LockSpec:
    """Many readers together: 1 of all."""
    return _ask(name, options, capacity=SHARED_CAPACITY, mode="read")


def writer(name: str, options: Options) -> LockSpec:
    """A writer alone: all of all."""
    return _ask(name, options, weight=SHARED_CAPACITY, capacity=SHARED_CAPACITY, mode="write")


def permit(name: str, options: Options, permits: int, weight: int) -> LockSpec:
    """`weight` of `permits`."""
    return _ask(name, options, weight=weight, capacity=permits, mode="permit")


def changed(spec: LockSpec, options: Options) -> LockSpec:
    """The same with other options, as given to one call."""
    _check(spec.name, options)
    return replace(spec, **options)


def _ask(name: str, options: Options, **kind: Any) -> LockSpec:
    _check(name, options)
    if family := family_of_name(name):
        return LockSpec(str(name), family=family, **kind, **options)
    return LockSpec(name, **kind, **options)


def _check(name: str, options: Options) -> None:
    if not KNOWN.issuperset(options):
        unknown = options.keys() - KNOWN
        raise Misconfigured(
            f"{name!r} was given the unknown option {min(unknown)!r}; there are: "
            + ", ".join(sorted(Options.__annotations__))
        )

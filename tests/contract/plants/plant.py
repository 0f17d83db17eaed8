"""A bug to plant: a mistake that somebody has made, as a patch of our own code, and the promises that must notice.

All are planted into the reference engine and played with tasks, in no time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pytest

from holdfast.testing import EngineUnderTest, memory_engine_under_test

MakeUnderTest = Callable[[], EngineUnderTest | AbstractContextManager[EngineUnderTest]]
Patch = Callable[[pytest.MonkeyPatch], object]
PLANTS: list[Plant] = []


@dataclass(frozen=True, slots=True)
class Plant:
    """`notices` are the promises that must fail."""

    bug: str
    patch: Patch
    notices: tuple[str, ...]
    make_under_test: MakeUnderTest = memory_engine_under_test
    slips: bool = False
    """It may show as any error: bad input that is let through breaks things anywhere."""

    def under_test(self) -> AbstractContextManager[EngineUnderTest]:
        under_test = self.make_under_test()
        return nullcontext(under_test) if isinstance(under_test, EngineUnderTest) else under_test


def plant(
    *notices: str, under_test: MakeUnderTest = memory_engine_under_test, slips: bool = False
) -> Callable[[Patch], None]:
    """Have a bug planted, and these promises played."""

    def register(patch: Patch) -> None:
        PLANTS.append(Plant(patch.__name__, patch, notices, under_test, slips))

    return register

"""Engines whose declaration is not true: they have what they say they lack, or do not refuse what they lack."""

from __future__ import annotations

from functools import partial

import pytest

from holdfast._core.line import Place
from holdfast.aio import coordinator as aio
from holdfast.backends.memory.engine import PROMISES, MemoryEngine
from holdfast.model import Promises
from holdfast.ports import AnyEngine
from holdfast.testing import EngineUnderTest
from tests.contract.plants.plant import plant


def lacking(what: str) -> EngineUnderTest:
    """The reference, which keeps it, declared as an engine that does not."""
    notes = PROMISES.notes | {what: "it is said"}
    declared = Promises(PROMISES.kept - {what}, notes, frozenset({what}) & Promises.USUAL)
    engines: dict[str, AnyEngine] = {}

    def open_memory(url: str, namespace: str, request_timeout: float) -> AnyEngine:
        if namespace not in engines:
            made = MemoryEngine(url, request_timeout)
            made.backend.promises = declared
            engines[namespace] = made
        return engines[namespace]

    return EngineUnderTest("memory://declared", open_memory, own_clock=True, many_processes=False, network=False)


def nothing(patch: pytest.MonkeyPatch) -> None:
    """The declaration itself is the bug."""


for lack, noticed_by in {
    "evict": "nobody_is_evicted",
    "linger": "nothing_lingers",
    "limits": "limiters_are_refused",
    "ttl": "silence_frees_nothing",
}.items():
    plant(f"declared.{noticed_by}", under_test=partial(lacking, lack))(nothing)


@plant("declared.read_write_locks_are_refused", under_test=partial(lacking, "shared"))
def lacking_shared_is_not_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio.Coordinator, "_need", lambda self, promise, name: None)


@plant("declared.semaphores_are_refused", under_test=partial(lacking, "counting"))
def lacking_counting_is_not_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio.Coordinator, "_need", lambda self, promise, name: None)


@plant("declared.once_is_refused", under_test=partial(lacking, "records"))
def lacking_records_is_not_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio.Coordinator, "_need", lambda self, promise, name: None)


@plant("declared.everybody_gets_in_without_an_order", under_test=partial(lacking, "order"))
def without_an_order_all_hold_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Place, "occupies", lambda self, now: False)


@plant("declared.a_circle_ends_with_its_timeouts", under_test=partial(lacking, "deadlock"))
def in_a_circle_all_hold_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Place, "occupies", lambda self, now: False)

"""holdfast's session locks, beside its lock table: the same code, with `mysql+session://`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from bench import holdfast_contenders
from bench.engines.mysql import SESSION
from bench.model import Contender, Target, WorkerLock


def _session(target: Target) -> Target:
    return replace(target, url=target.url.replace("mysql://", "mysql+session://"))


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    with holdfast_contenders.pair_of(holdfast_contenders.kept)(_session(target)) as body:
        yield body


@contextmanager
def new_names(target: Target) -> Iterator[Callable[[], object]]:
    with holdfast_contenders.pair_of(holdfast_contenders.new_names)(_session(target)) as body:
        yield body


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with holdfast_contenders.named_pair(_session(target)) as body:
        yield body


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    with holdfast_contenders.lock_factory(_session(target), name) as worker_lock:
        yield worker_lock


CONTENDERS = (
    Contender(SESSION, "holdfast", lock_factory=lock_factory, pair=pair, named_pair=named_pair, counted=True),
    Contender(f"{SESSION}, new names", "holdfast", pair=new_names),
)

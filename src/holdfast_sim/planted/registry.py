"""All planted bugs by name, and the context manager that plants one and removes it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.errors import Misconfigured

Patch = Callable[[Any, str, Any], None]
Plant = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug that can be planted, and the invariant that must catch it."""

    name: str
    invariant: str
    about: str
    plant: Plant
    world: str = "core"
    """What is simulated: see `seeds.WORLDS`."""


BUGS: dict[str, Bug] = {}


def bug(invariant: str, world: str = "core") -> Callable[[Plant], Plant]:
    def enter(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        BUGS[name] = Bug(name, invariant, (plant.__doc__ or "").strip(), plant, world)
        return plant

    return enter


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Plant a bug for the length of a `with`. None plants nothing."""
    if name is None:
        yield
        return
    if name not in BUGS:
        raise Misconfigured(f"no bug is called {name!r}; there are: {', '.join(BUGS)}")
    with apply_plant(BUGS[name].plant):
        yield


@contextmanager
def apply_plant(plant: Plant) -> Iterator[None]:
    undo: list[tuple[Any, str, Any]] = []

    def patch(owner: Any, attribute: str, value: Any) -> None:
        undo.append((owner, attribute, getattr(owner, attribute)))
        setattr(owner, attribute, value)

    try:
        plant(patch)
        yield
    finally:
        for owner, attribute, value in reversed(undo):
            setattr(owner, attribute, value)

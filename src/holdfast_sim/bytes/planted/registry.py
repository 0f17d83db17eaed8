"""All planted bugs of clients by name, each with its engine and the invariants that may catch it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.errors import Misconfigured

from ...planted.registry import Plant, apply_plant


@dataclass(frozen=True, slots=True)
class ClientBug:
    """A bug that can be planted into one engine's client."""

    name: str
    engine: str
    invariants: tuple[str, ...]
    about: str
    plant: Plant


CLIENT_BUGS: dict[str, ClientBug] = {}


def client_bug(engines: str | tuple[str, ...], *invariants: str) -> Callable[[Plant], Plant]:
    """Of one engine; or of several that share the code, and then it is called `name@engine`."""

    def enter(plant: Plant) -> Plant:
        for engine in [engines] if isinstance(engines, str) else engines:
            name = plant.__name__.replace("_", "-") + ("" if isinstance(engines, str) else f"@{engine}")
            CLIENT_BUGS[name] = ClientBug(name, engine, invariants, (plant.__doc__ or "").strip(), plant)
        return plant

    return enter


@contextmanager
def planted_client(name: str | None) -> Iterator[None]:
    """Plant a bug for the length of a `with`. None plants nothing."""
    if name is None:
        yield
        return
    if name not in CLIENT_BUGS:
        raise Misconfigured(f"no bug of a client is called {name!r}; there are: {', '.join(CLIENT_BUGS)}")
    with apply_plant(CLIENT_BUGS[name].plant):
        yield

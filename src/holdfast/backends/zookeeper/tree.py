"""Where everything of a namespace stands, and how the ground is prepared: see `paths` for the picture."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..._core.flow import Call, Flow
from .ops import EXISTS, NO_NODE, Create, CreateContainer, Failure, List, Prepared
from .paths import step
from .requests import Batch
from .trouble import refused

KNOWN_FOR = 30.0
"""For how long a container counts as being there; the server removes empty ones after a minute or so."""
MOST_KNOWN = 50_000


@dataclass(slots=True)
class Ground:
    """Where a name's line stands: its parent, the request that lists it, and until when it counts as being there."""

    parent: str
    listing: Prepared
    known_until: float = 0.0


@dataclass(frozen=True, slots=True)
class Tree:
    """`root` is the node of the namespace; `names` is what the path of a name begins with.

    A name that was not used lately is taken with the making of its container before it, in the same trip.
    """

    root: str
    acl: bytes
    _grounds: dict[str, Ground] = field(default_factory=dict)

    @classmethod
    def of(cls, chroot: str, namespace: str, acl: bytes) -> Tree:
        return cls(f"{chroot}/{step(namespace)}", acl)

    @property
    def names(self) -> str:
        return self.root + "/"

    def ground(self, name: str) -> Ground:
        """Of a name; remembered, for most names are used again."""
        found = self._grounds.get(name)
        if found is None:
            if len(self._grounds) > MOST_KNOWN:
                self._grounds.clear()
            parent = self.names + step(name)
            found = self._grounds[name] = Ground(parent, Prepared(List(parent)))
        return found

    def plant(self, parent: str, timeout: float) -> Flow[None]:
        """The container of a name, and all above it. Another client may do the same at the same time."""
        for _ in range(2):
            [made] = (yield Call(Batch((CreateContainer(parent, self.acl),)), timeout)) or [None]
            if not isinstance(made, Failure) or made.code == EXISTS:
                return
            if made.code != NO_NODE:
                raise refused(made, f"making {parent}")
            yield from self.found(timeout)

    def found(self, timeout: float, *more: str) -> Flow[None]:
        """The nodes that stay: the root with all above it, and more below it."""
        steps = self.root.split("/")[1:]
        paths = ["/" + "/".join(steps[: depth + 1]) for depth in range(len(steps))]
        paths += [self.names + each for each in more]
        answers = yield Call(Batch(tuple(Create(path, b"", self.acl) for path in paths)), timeout)
        for path, made in zip(paths, answers or (), strict=False):
            if isinstance(made, Failure) and made.code != EXISTS:
                raise refused(made, f"making {path}")

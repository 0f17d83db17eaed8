"""Faults of clients: pauses and kills. Clients inject aimed pauses into themselves (see `clients.worker`)."""

from __future__ import annotations

from ..sandbox.cgroup import why_not as no_cgroup
from .model import FaultContext, FaultKind


def pause_random(context: FaultContext) -> None:
    client = context.chance.choice(context.clients)
    context.begun("pause", f"client:{client.name}")
    client.pause(context.chance.uniform(0.3, 3.0) * context.ttl)


def kill_client(context: FaultContext) -> None:
    client = context.chance.choice(context.clients)
    context.begun("kill-client", f"client:{client.name}")
    client.kill()


def starve_client(context: FaultContext) -> None:
    client = context.chance.choice(context.clients)
    group = context.cpu_quota(client.sandbox)
    with context.during("starve-client", f"client:{client.name}"):
        pid = client.pid
        group.throttle([pid])
        try:
            context.last(0.5, 2.0)
        finally:
            group.restore([pid])


def aimed(context: FaultContext) -> None:
    """Does nothing here: clients inject this into themselves, at their failpoints."""


KINDS = (
    FaultKind("cancel", "an asyncio client cancels its acquisition while it is under way", "client", aimed, weight=0),
    FaultKind(
        "block-loop",
        "code of an asyncio client blocks its event loop, for up to twice the ttl",
        "client",
        aimed,
        weight=0,
    ),
    FaultKind("fork", "a holder forks without Python's hooks, and the child uses its lease", "client", aimed, weight=0),
    FaultKind(
        "pause-aimed", "SIGSTOP of a holder inside its critical section, at a failpoint", "client", aimed, weight=0
    ),
    FaultKind("pause", "SIGSTOP of any client at any moment", "client", pause_random),
    FaultKind("kill-client", "kill -9 of a client, which is started again", "client", kill_client, weight=0.5),
    FaultKind(
        "starve-client",
        "a client gets 2 % of a processor",
        "client",
        starve_client,
        lambda engine: no_cgroup(),
        weight=0.5,
    ),
)

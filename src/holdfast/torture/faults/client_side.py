"""What happens to clients: pauses and death. Aimed pauses are the clients' own (see `clients.worker`)."""

from __future__ import annotations

from ..arena.cgroup import why_not as no_cgroup
from .model import Kind, Stage


def pause_random(stage: Stage) -> None:
    client = stage.chance.choice(stage.clients)
    stage.begun("pause", f"client:{client.name}")
    client.pause(stage.chance.uniform(0.3, 3.0) * stage.ttl)


def kill_client(stage: Stage) -> None:
    client = stage.chance.choice(stage.clients)
    stage.begun("kill-client", f"client:{client.name}")
    client.kill()


def starve_client(stage: Stage) -> None:
    client = stage.chance.choice(stage.clients)
    group = stage.starvation(client.site)
    with stage.during("starve-client", f"client:{client.name}"):
        pid = client.pid
        group.starve([pid])
        try:
            stage.last(0.5, 2.0)
        finally:
            group.feed([pid])


def aimed(stage: Stage) -> None:
    """Nothing to do here: clients do it to themselves, at their failpoints and by their own chance."""


KINDS = (
    Kind("cancel", "an asyncio client cancels its acquisition while it is under way", "client", aimed, weight=0),
    Kind(
        "block-loop",
        "code of an asyncio client blocks its event loop, for up to twice the ttl",
        "client",
        aimed,
        weight=0,
    ),
    Kind("fork", "a holder forks without Python's hooks, and the child uses its lease", "client", aimed, weight=0),
    Kind("pause-aimed", "SIGSTOP of a holder inside its critical section, at a failpoint", "client", aimed, weight=0),
    Kind("pause", "SIGSTOP of any client at any moment", "client", pause_random),
    Kind("kill-client", "kill -9 of a client, which is started again", "client", kill_client, weight=0.5),
    Kind(
        "starve-client",
        "a client gets 2 % of a processor",
        "client",
        starve_client,
        lambda engine: no_cgroup(),
        weight=0.5,
    ),
)

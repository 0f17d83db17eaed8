"""SQLite: no server, so no node and no network; the engine is a file, and its death is the death of its clients."""

from __future__ import annotations

from ..sandbox import Sandbox
from .model import EngineOptions, EngineSetup, TorturedEngine

_NO_SERVER = "the engine is a file: there is no server"
_NO_NETWORK = "the engine is a file: there is no network"


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    setup = EngineSetup(sandbox, engine_options, None, 8)
    folder = setup.folder("sqlite")
    file = folder / "locks.db"

    def forget() -> None:
        for part in folder.glob("locks.db*"):
            if part.is_file():
                part.unlink()

    return TorturedEngine(
        scheme,
        sandbox,
        0.2,
        lambda client: f"sqlite://{file}",
        disks=setup.disks,
        forget=forget,
        recovery_s=2.0,  # a client looks once a second whether its file is still the one under the path
        cannot=setup.cannot
        | dict.fromkeys(("kill-node", "hang-node", "pause-node", "starve-node"), _NO_SERVER)
        | dict.fromkeys(("partition", "delay", "lost-replies", "reset", "silent", "netns"), _NO_NETWORK)
        | dict.fromkeys(("clock-forward", "clock-back"), "its clock is the machine's boot clock, which nobody can set")
        | dict.fromkeys(("slow-fsync", "hung-fsync"), "its clients flush it themselves: there is no server")
        | {"failover": "there is no replica"},
    )

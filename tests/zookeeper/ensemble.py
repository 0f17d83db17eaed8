"""A ZooKeeper ensemble for tests: each member in a folder of its own, on free loopback ports, stopped by its own pid.

`running()` gives three members that have elected a leader, or one alone with `members=1`. A tick is short, so that
sessions of a few hundred milliseconds can be had. Nothing is forced to disk unless `forced` asks for it, or `slow`
does: then each member is forced to a disk that takes 20 to 300 ms for it (see `slow_disk`), and hears of a write that
much later than the others.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

START_TIMEOUT = 90.0
JARS = Path("/usr/share/java")
CLASSES = (
    "zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-handler", "netty-transport", "netty-buffer",
    "netty-common", "netty-codec", "netty-resolver", "netty-transport-native-unix-common",
    "netty-transport-native-epoll", "metrics-core", "snappy-java", "commons-cli",
)  # fmt: skip


@dataclass
class Member:
    """One server. `stop` and `start` are a crash and a new start with the same data."""

    number: int
    folder: Path
    port: int
    words: list[str]
    preload: str = ""
    """A library that is loaded before all others."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        env = {**os.environ, "LD_PRELOAD": self.preload} if self.preload else None
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)

    def wipe(self) -> None:
        """All that it ever wrote is gone; it has to be stopped before."""
        assert self.process is None
        shutil.rmtree(self.folder / "version-2", ignore_errors=True)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            self.process.wait(10)
            self.process = None

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def say(self, word: str) -> str:
        """A four-letter word to it, and the answer; empty if there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as link:
                link.settimeout(1)
                link.sendall(word.encode())
                answer = b""
                while data := link.recv(1 << 16):
                    answer += data
                return answer.decode()
        except OSError:
            return ""

    @property
    def role(self) -> str:
        """leader, follower, standalone; empty while it serves nobody."""
        for line in self.say("srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return ""


@dataclass
class Ensemble:
    """Members that know each other."""

    members: list[Member]

    @property
    def hosts(self) -> str:
        return ",".join(f"127.0.0.1:{member.port}" for member in self.members)

    @property
    def url(self) -> str:
        return f"zookeeper://{self.hosts}"

    @property
    def leader(self) -> Member:
        return next(member for member in self.members if member.role in ("leader", "standalone"))

    def member_at(self, port: int) -> Member:
        return next(member for member in self.members if member.port == port)

    def await_quorum(self, count: int | None = None) -> None:
        """Until so many members (all) serve, one of them as the leader."""
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end:
            roles = [member.role for member in self.members if member.process is not None]
            if sum(map(bool, roles)) >= (count or len(self.members)) and {"leader", "standalone"} & set(roles):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the ensemble did not form: {(self.members[0].folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        for member in self.members:
            member.stop()


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


SLOW_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int late(const char *name, int file) {
    int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, name);
    usleep(20000 + random() % 280000);
    return real(file);
}

int fsync(int file) { return late("fsync", file); }
int fdatasync(int file) { return late("fdatasync", file); }
"""


def slow_disk(folder: Path) -> str:
    """A library to be preloaded, with which it takes 20 to 300 ms to force anything to disk."""
    source, library = folder / "slow_disk.c", folder / "slow_disk.so"
    source.write_text(SLOW_DISK)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=60)
    return str(library)


def prepare(
    folder: Path,
    members: int,
    tick: int = 200,
    forced: bool = False,
    more: str = "",
    options: tuple[str, ...] = (),
    slow: bool = False,
) -> Ensemble:
    """Members that are set up, not yet started. `more` is for their configuration, `options` for their Java."""
    ports = free_ports(members * 3)
    client, peer, vote = ports[:members], ports[members : 2 * members], ports[2 * members :]
    settings = [
        f"tickTime={tick}", "initLimit=40", "syncLimit=10", "maxClientCnxns=0", "maxSessionTimeout=90000",
        "admin.enableServer=false", "4lw.commands.whitelist=*", "clientPortAddress=127.0.0.1",
    ]  # fmt: skip
    if members > 1:
        settings += [f"server.{n + 1}=127.0.0.1:{peer[n]}:{vote[n]}" for n in range(members)]
    preload = slow_disk(folder) if slow else ""
    found = []
    for n in range(members):
        home = folder / str(n + 1)
        home.mkdir(parents=True)
        (home / "myid").write_text(str(n + 1))
        config = home / "zoo.cfg"
        config.write_text("\n".join([*settings, f"dataDir={home}", f"clientPort={client[n]}", more, ""]))
        words = [
            "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1" if members > 1 else "-XX:+UseSerialGC",
            f"-Dzookeeper.forceSync={'yes' if forced or slow else 'no'}",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.extendedTypesEnabled=true",
            "-Dznode.container.checkIntervalMs=500", *options,
            "-cp", ":".join(str(JARS / f"{name}.jar") for name in CLASSES),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config),
        ]  # fmt: skip
        found.append(Member(n + 1, home, client[n], words, preload))
    return Ensemble(found)


@contextmanager
def running(
    members: int = 3,
    tick: int = 200,
    forced: bool = False,
    more: str = "",
    options: tuple[str, ...] = (),
    base: str | None = None,
    slow: bool = False,
) -> Iterator[Ensemble]:
    """An ensemble for as long as the block lasts, its data below `base`."""
    with tempfile.TemporaryDirectory(prefix="hf-zookeeper-", dir=base) as folder:
        ensemble = prepare(Path(folder), members, tick, forced, more, options, slow)
        try:
            for member in ensemble.members:
                member.start()
            ensemble.await_quorum()
            yield ensemble
        finally:
            ensemble.stop()

"""An etcd cluster for tests: members in a folder of their own, on free loopback ports, each stopped by its own pid.

Elections are quick (heartbeat 20 ms, timeout 200 ms), so the shortest lease is 1 s. Nothing waits for a disk
unless asked.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from ssl import SSLContext
from typing import Any

START_TIMEOUT = 40.0
WATCHERS = re.compile(r"^etcd_debugging_mvcc_watcher_total (\d+)", re.MULTILINE)


@dataclass
class Member:
    """One member. `stop` and `start` are a crash (or an orderly end) and a new start with the same data."""

    number: int
    words: list[str]
    port: int
    folder: Path
    scheme: str = "http"
    tls: SSLContext | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.folder / f"log{self.number}").open("ab") as log:
            self.process = subprocess.Popen(self.words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            self.process.wait(10)
            self.process = None

    def pause(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def rpc(self, path: str, timeout: float = 5.0, token: str = "", **body: Any) -> Any:
        """One request of an independent witness: the standard library's own HTTP client."""
        request = urllib.request.Request(f"{self.scheme}://{self.endpoint}{path}", json.dumps(body).encode())
        if token:
            request.add_header("Authorization", token)
        with urllib.request.urlopen(request, timeout=timeout, context=self.tls) as answer:
            return json.load(answer)

    def metrics(self) -> str:
        with urllib.request.urlopen(f"{self.scheme}://{self.endpoint}/metrics", timeout=5, context=self.tls) as answer:
            text: str = answer.read().decode()
            return text


@dataclass
class Cluster:
    """Its members, and how to reach them."""

    folder: Path
    members: list[Member]
    scheme: str = "etcd"
    query: str = ""
    userinfo: str = ""

    @property
    def url(self) -> str:
        return self.url_of(*self.members)

    def url_of(self, *members: Member) -> str:
        hosts = ",".join(member.endpoint for member in members)
        return f"{self.scheme}://{self.userinfo}{hosts}{self.query}"

    def start(self) -> None:
        for member in self.members:
            member.start()
        self.await_quorum()

    def await_quorum(self) -> None:
        await_true(lambda: self._answers() is not None, "a quorum", lambda: self.logs())

    def await_members(self) -> None:
        """All of them, each in touch with the others."""
        for member in self.members:
            await_true(partial(self._answers, member), "a member", self.logs)

    def _answers(self, *of: Member) -> Any:
        for member in of or self.members:
            if member.process is not None:
                try:
                    return member.rpc("/v3/kv/range", timeout=1.0, key="AA==")
                except urllib.error.HTTPError as error:
                    if error.code in (400, 401, 404):  # it answers, and wants a password, or has no gateway
                        return error
                except OSError:
                    pass  # not there yet
        return None

    def leader(self) -> Member:
        """Who says that it leads; a deposed leader whose disk hangs says so, too."""

        def look() -> Member | None:
            for member in self.members:
                if member.process is not None:
                    try:
                        status = member.rpc("/v3/maintenance/status", timeout=1.0)
                    except OSError:
                        continue
                    if status.get("leader") == status["header"]["member_id"]:
                        return member
            return None

        found: Member = await_true(look, "a leader", self.logs)
        return found

    def followers(self) -> list[Member]:
        leader = self.leader()
        return [member for member in self.members if member is not leader]

    def keys(self, prefix: str) -> list[str]:
        """All keys with a prefix, as the witness sees them."""
        data = prefix.encode()
        end = data[:-1] + bytes([data[-1] + 1])
        told = self.members[0].rpc("/v3/kv/range", key=b64(data), range_end=b64(end), keys_only=True)
        return [base64.b64decode(kv["key"]).decode() for kv in told.get("kvs", [])]

    def watchers(self) -> int:
        """Watches that are open at any member."""
        found = [WATCHERS.search(member.metrics()) for member in self.members]
        return sum(int(each[1]) for each in found if each)

    def leases(self) -> list[str]:
        return [each["ID"] for each in self.members[0].rpc("/v3/lease/leases").get("leases", [])]

    def stop(self) -> None:
        for member in self.members:
            member.stop()

    def logs(self) -> str:
        return "\n".join(log.read_text()[-1500:] for log in sorted(self.folder.glob("log*")))


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def await_true(look: Callable[[], Any], what: str, story: Callable[[], str] = str) -> Any:
    end = time.monotonic() + START_TIMEOUT
    while not (found := look()):
        assert time.monotonic() < end, f"waited in vain for {what}: {story()}"
        time.sleep(0.02)
    return found


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def planned(folder: Path, count: int = 3, fsync: bool = False, *more: str, scheme: str = "http") -> Cluster:
    """A cluster, not yet started. `more`: words for every member."""
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(2 * count)
    peers = ",".join(f"m{n}=http://127.0.0.1:{ports[count + n]}" for n in range(count))
    members = []
    for number in range(count):
        client, peer = f"{scheme}://127.0.0.1:{ports[number]}", f"http://127.0.0.1:{ports[count + number]}"
        words = [
            *("etcd", "--name", f"m{number}", "--data-dir", str(folder / f"m{number}")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", peers, "--initial-cluster-token", folder.name),
            *("--heartbeat-interval", "20", "--election-timeout", "200", "--log-level", "error", *more),
        ]
        if not fsync:
            words.append("--unsafe-no-fsync")
        members.append(Member(number, words, ports[number], folder, scheme))
    return Cluster(folder, members)


@contextmanager
def running(count: int = 3, *more: str, fsync: bool = False, under: str | None = None) -> Iterator[Cluster]:
    """A cluster for as long as the block lasts; `under`: the folder in which its own is made."""
    with tempfile.TemporaryDirectory(prefix="hf-etcd-", dir=under) as folder:
        cluster = planned(Path(folder), count, fsync, *more)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()

"""ZooKeeper: limits of a session, who serves, the disk, and who may write.

1. Asked by the four-letter words that the server allows: `srvr`, `conf`, `mntr`. What it does not tell is not looked
   at, and `zookeeper.four-letter-words` says so.
2. A server counts what it forces to disk, and forces each write unless `forceSync` is off. This command has just opened
   a session, which is a write: a count of nothing means that nothing is forced.
3. The ACL is read on a session of its own, which is closed at once; nothing is written to the tree.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property

from ...backends.zookeeper import jute
from ...backends.zookeeper.address import Address, parse
from ...backends.zookeeper.jute import JuteReader
from ..examination import Examination
from ..finding import CheckResult, HealthCheck, check, failed, fine, unknown, warning

WORDS = ("srvr", "conf", "mntr")
OLDEST, SUPPORTED = (3, 5, 3), (3, 7, 0)
LONG_LEAST_MS, SHORT_MOST_MS = 10_000, 30_000
SLOW_MS = 100.0
FEW_CONNECTIONS_COUNT = 20
GET_ACL, CLOSE, AUTH = 6, -11, 100
NO_NODE_CODE = -101
ROOT = "/holdfast"
"""Below the path of the URL: what the usual namespace makes."""
EVERYBODY = ("world", "anyone")
WRITE_FLAGS_CODE = 0b01110
"""The rights to write, to create and to delete."""


class ZooKeeperServer:
    """One server. Words that it refuses answer with nothing."""

    def __init__(self, address: Address, host: str, port: int, request_timeout: float) -> None:
        self.address = address
        self.place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._where = (host, port)
        self._timeout = request_timeout
        self.refused: set[str] = set()

    def connect(self) -> socket.socket:
        link = socket.create_connection(self._where, self._timeout)
        link.settimeout(self._timeout)
        if not self.address.tls:
            return link
        context = ssl.create_default_context(cafile=self.address.ca or None)
        if not self.address.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.address.cert:
            context.load_cert_chain(self.address.cert, self.address.key or None)
        return context.wrap_socket(link, server_hostname=self._where[0])

    def say(self, word: str) -> str:
        with closing(self.connect()) as link:
            link.sendall(word.encode())
            answer = b""
            while data := link.recv(1 << 16):
                answer += data
        text = answer.decode("utf-8", "replace")
        if "not in the whitelist" in text:
            self.refused.add(word)
            return ""
        return text

    @cached_property
    def said(self) -> dict[str, str]:
        """By word."""
        return {word: self.say(word) for word in WORDS}

    @cached_property
    def settings(self) -> dict[str, str]:
        return dict(re.findall(r"^(\w+)=(.*)$", self.said["conf"], re.MULTILINE))

    def figure(self, name: str) -> float | None:
        found = re.search(rf"^{name}\t(\S+)$", self.said["mntr"], re.MULTILINE)
        return None if found is None else float(found[1])

    @property
    def role(self) -> str:
        found = re.search(r"^Mode: (\w+)$", self.said["srvr"], re.MULTILINE)
        return "" if found is None else found[1]

    def acl(self, path: str) -> list[tuple[int, tuple[str, str]]] | None:
        """The rights, and of whom; None if there is no such node."""
        hello = jute.integer(0) + jute.long(0) + jute.integer(10_000) + jute.long(0) + jute.data(bytes(16)) + b"\0"
        with closing(self.connect()) as link:
            self._exchange(link, hello)
            for scheme, secret in self.address.credentials:
                words = jute.integer(-4) + jute.integer(AUTH) + jute.integer(0) + jute.text(scheme) + jute.data(secret)
                self._exchange(link, words)
            reply = self._exchange(link, jute.integer(1) + jute.integer(GET_ACL) + jute.text(path))
            reader = JuteReader(reply)
            _, _, code = reader.integer(), reader.long(), reader.integer()
            found = None if code == NO_NODE_CODE else _rights(reader)
            self._exchange(link, jute.integer(2) + jute.integer(CLOSE))
        return found

    @staticmethod
    def _exchange(link: socket.socket, words: bytes) -> bytes:
        link.sendall(jute.data(words))
        (length,) = struct.unpack("!i", _receive(link, 4))
        return _receive(link, length)


def _rights(reader: JuteReader) -> list[tuple[int, tuple[str, str]]]:
    return [(reader.integer(), (reader.text(), reader.text())) for _ in range(reader.integer())]


def _receive(link: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = link.recv(length - len(data))
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    return data


class ZooKeeperEnsemble:
    """All servers that the URL names."""

    def __init__(self, servers: list[ZooKeeperServer]) -> None:
        self.servers = servers
        self.silent: dict[str, str] = {}
        for server in servers:
            try:
                server.said  # noqa: B018  it is read here, and kept
            except OSError as error:
                self.silent[server.place] = str(error)

    @property
    def answering(self) -> list[ZooKeeperServer]:
        return [server for server in self.servers if server.place not in self.silent]


@check("zookeeper.members")
def members(ensemble: ZooKeeperEnsemble) -> CheckResult:
    serving = [server for server in ensemble.answering if server.role]
    away = [server.place for server in ensemble.servers if server not in serving]
    if not serving:
        return failed(f"no server serves: {', '.join(away)}")
    if away:
        return warning(f"{', '.join(away)} does not serve")
    if serving[0].role == "standalone":
        return warning("the server is alone: when it is away nothing can be locked")
    if len(serving) == 1:
        return warning("the URL names one server of an ensemble: when that one is away nothing can be locked")
    return fine(f"all {len(serving)} servers serve")


@check("zookeeper.acl")
def acl(ensemble: ZooKeeperEnsemble) -> CheckResult:
    for server in ensemble.answering:
        if server.role:
            break
    else:
        return unknown("no server serves")
    chroot = server.address.chroot
    path = next((each for each in (chroot + ROOT, chroot or "/") if server.acl(each) is not None), "/")
    rights = server.acl(path) or []
    if any(perms & WRITE_FLAGS_CODE and who == EVERYBODY for perms, who in rights):
        return warning(f"everybody may write below {path}")
    return fine(f"not everybody may write below {path}")


ENSEMBLE_CHECKS: Sequence[HealthCheck[ZooKeeperEnsemble]] = (members, acl)


@check("zookeeper.four-letter-words")
def four_letter_words(server: ZooKeeperServer) -> CheckResult:
    if server.refused:
        return unknown(f"the server does not answer to {', '.join(sorted(server.refused))}")
    return fine(f"the server answers to {', '.join(WORDS)}")


@check("zookeeper.role")
def role(server: ZooKeeperServer) -> CheckResult | None:
    if "srvr" in server.refused:
        return None
    if not server.role:
        return failed("it does not serve: it has found no majority")
    return warning("it is an observer") if server.role == "observer" else fine(f"it is the {server.role} server")


@check("zookeeper.version")
def version(server: ZooKeeperServer) -> CheckResult | None:
    found = re.search(r"version: ((\d+)\.(\d+)\.(\d+))", server.said["srvr"])
    if found is None:
        return None
    seen, number = f"the version is {found[1]}", tuple(map(int, found.groups()[1:]))
    return failed(seen) if number < OLDEST else warning(seen) if number < SUPPORTED else fine(seen)


@check("zookeeper.session-limits")
def session_limits(server: ZooKeeperServer) -> CheckResult | None:
    if not server.settings:
        return None
    least, most = int(server.settings["minSessionTimeout"]), int(server.settings["maxSessionTimeout"])
    seen = f"sessions last from {least} to {most} ms, with a tick of {server.settings['tickTime']} ms"
    return warning(seen) if least > LONG_LEAST_MS or most < SHORT_MOST_MS else fine(seen)


@check("zookeeper.force-sync")
def force_sync(server: ZooKeeperServer) -> CheckResult | None:
    count = server.figure("zk_cnt_fsynctime")
    if count is None:
        return None
    if not count:
        return warning("nothing was ever forced to disk: forceSync is no")
    slow = server.figure("zk_p99_fsynctime") or 0.0
    seen = f"writes are forced to disk, 1 in 100 in {slow:g} ms or longer"
    return warning(seen) if slow > SLOW_MS else fine(seen)


@check("zookeeper.latency")
def latency(server: ZooKeeperServer) -> CheckResult | None:
    mean, waiting = server.figure("zk_avg_latency"), server.figure("zk_outstanding_requests")
    if mean is None or waiting is None:
        return None
    seen = f"a request takes {mean:g} ms on average, and {waiting:g} wait"
    return warning(seen) if mean > SLOW_MS or waiting > 1000 else fine(seen)


@check("zookeeper.connections")
def connections(server: ZooKeeperServer) -> CheckResult | None:
    if not server.settings:
        return None
    most = int(server.settings["maxClientCnxns"])
    seen = f"maxClientCnxns is {most}" + (" for each client address" if most else ": any number")
    return warning(seen) if 0 < most < FEW_CONNECTIONS_COUNT else fine(seen)


SERVER_CHECKS: Sequence[HealthCheck[ZooKeeperServer]] = (
    *(four_letter_words, role, version, session_limits, force_sync, latency, connections),
)


@contextmanager
def examinations(url: str, request_timeout: float) -> Iterator[list[Examination]]:
    address = parse(url)
    servers = [ZooKeeperServer(address, host, port, request_timeout) for host, port in address.hosts]
    ensemble = ZooKeeperEnsemble(servers)
    alone = len(servers) == 1
    each = [Examination(server, SERVER_CHECKS, "" if alone else server.place) for server in ensemble.answering]
    yield [Examination(ensemble, ENSEMBLE_CHECKS), *each]

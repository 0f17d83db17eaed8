"""Two sides of one play: a connection to the real etcd, and one to the model.

What is made equal before it is compared, and why:
1. The model is given the identity, the term and the revision of the real member.
2. `Date` is left out. What is left of a lease (`TTL` beside `grantedTTL`) is time that has passed. The order of the
   keys of a lease is that of a Go map.
3. A watch that was behind is brought up to date at a moment of etcd's own: so of events it is compared what they are
   and in which order each watch tells of them, and not which of them share a message. In which order the watches of
   one stream tell is that of a Go map. The revision in the header of events is the server's at that moment.
"""

from __future__ import annotations

import json
import re
import socket
import time
from random import Random

from holdfast_sim.servers.etcd import ClusterSettings, EtcdCluster
from tests.etcd.cluster import Member, b64
from tests.likeness.play import RealTime, Recorder

TIMEOUT_S = 20.0
QUICK = ClusterSettings(election_s=0.2, heartbeat_s=0.02)


def replies_in(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole replies, as they stand there, and what is left."""
    found: list[bytes] = []
    while (end := data.find(b"\r\n\r\n")) >= 0:
        end += 4
        if (length := re.search(rb"\r\nContent-Length: (\d+)", data[:end])) is not None:
            end += int(length[1])
        else:
            while end < len(data) and (line := data.find(b"\r\n", end)) >= 0:
                size = int(data[end:line], 16)
                end = line + 2 + size + 2 if size else data.find(b"\r\n\r\n", line) + 4
                if size == 0:
                    break
            else:
                return found, data
        if end > len(data) or end < 4:
            break
        found.append(data[:end])
        data = data[end:]
    return found, data


def levelled(reply: bytes) -> bytes:
    """See rule 2."""
    reply = re.sub(rb"\r\nDate: [^\r]*", b"", reply)
    reply = re.sub(rb'"TTL":"\d\d","grantedTTL"', b'"TTL":"..","grantedTTL"', reply)
    keys = re.search(rb'"keys":\[([^\]]*)\]', reply)
    return reply.replace(keys[1], b",".join(sorted(keys[1].split(b",")))) if keys else reply


class Real:
    """A connection to the real member."""

    def __init__(self, member: Member) -> None:
        self._socket = socket.create_connection(("127.0.0.1", member.port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""

    def ask(self, pieces: list[bytes], count: int) -> list[bytes]:
        for piece in pieces:
            self._socket.sendall(piece)
        found: list[bytes] = []
        while len(found) < count:
            more, self._rest = replies_in(self._rest)
            found += more
            if len(found) < count:
                data = self._socket.recv(1 << 16)
                assert data, f"the real server closed the connection after {found}"
                self._rest += data
        return found

    def heard(self, quiet_s: float) -> bytes:
        """All that comes until nothing has come for so long."""
        self._socket.settimeout(quiet_s)
        try:
            while data := self._socket.recv(1 << 16):
                self._rest += data
        except TimeoutError:
            pass
        return self._rest

    def close(self) -> None:
        self._socket.close()


class Modelled:
    """A connection to the model."""

    def __init__(self, cluster: EtcdCluster, host: RealTime) -> None:
        self._host, self.output = host, Recorder()
        self._session = cluster.members[0].accept(self.output)

    def ask(self, pieces: list[bytes]) -> list[bytes]:
        for piece in pieces:
            self._host.run_due()
            self._session.receive(piece)
        found, rest = replies_in(bytes(self.output.data))
        self.output.data[:] = rest
        return found


def model_of(real: Member, chance: Random) -> tuple[EtcdCluster, RealTime]:
    """See rule 1. What was before is compacted away at both."""
    header = real.rpc("/v3/kv/put", key=b64(b"before"), value="")["header"]
    revision = int(header["revision"])
    real.rpc("/v3/kv/compaction", revision=revision)
    host = RealTime(chance)
    cluster = EtcdCluster([host], QUICK, int(header["cluster_id"]), [int(header["member_id"])])
    member = cluster.members[0]
    member.term = cluster.term_of_leader = int(header["raft_term"])
    member.state.store.revision = member.state.store.compacted = revision
    return cluster, host


def told(stream: bytes) -> dict[str, list[object]]:
    """What each watch of a stream has told: see rule 3. The head stands under the name of none."""
    head, _, rest = stream.partition(b"\r\n\r\n")
    found: dict[str, list[object]] = {"": [levelled(head)]}
    text = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        text, rest = text + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    for line in text.splitlines():
        result = json.loads(line)["result"]
        about = found.setdefault(result.get("watch_id", "0"), [])
        if "events" in result:
            about += result["events"]
        else:
            about.append(line)
    return found


def await_created(link: Real, asked: bytes) -> None:
    """Until the real server has opened all watches: what comes later they are to tell of."""
    count, end = asked.count(b"create_request"), time.monotonic() + TIMEOUT_S
    while link.heard(0.005).count(b'"created":true') < count:
        assert time.monotonic() < end

"""Random requests to etcd, in the bytes that our client sends, and some that it does not.

1. All keys have the prefix of their play, and all leases are its own: plays do not meet in a server that they share.
2. No lease ends within a play: what ends by itself is played by hand.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from random import Random

KEYS_COUNT = 6
LEASES_COUNT = 3
LONG_BYTES = 3000
SAFE_BODY_BYTES = 512
"""What comes later in the body of a stream may be lost: see `holdfast_sim.servers.etcd.http`, rule 4."""


def b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def framed(path: str, body: str, more: str = "", method: str = "POST") -> bytes:
    """As the client writes it."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:2379\r\n{more}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )


TOO_LARGE, FAR_TOO_LARGE = b64("x" * 1_600_000), b64("x" * 2_200_000)


@dataclass
class Asker:
    """One play's requests. `revision`: about where the server is."""

    chance: Random
    prefix: str
    revision: int
    compacts: bool = True
    leases: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leases = [self.chance.getrandbits(60) | 1 for _ in range(LEASES_COUNT)]
        self._odd = [self._malformed, self._refused, self._elsewhere]

    def batch(self) -> list[bytes]:
        """What leaves in one write."""
        return [self.one() for _ in range(self.chance.choice((1, 1, 2, 4)))]

    def one(self) -> bytes:
        if self.chance.random() < 0.12:
            return self.chance.choice(self._odd)()
        kind = self.chance.choice(("take", "put", "delete", "range", "range", "txn", "txn", "lease", "lease", "read"))
        match kind:
            case "take":
                return framed("/v3/kv/txn", self._take())
            case "put":
                return framed("/v3/kv/put", self._put())
            case "delete":
                return framed("/v3/kv/deleterange", self._delete())
            case "range":
                return framed("/v3/kv/range", self._range())
            case "txn":
                return framed("/v3/kv/txn", self._txn(2))
            case "read":
                return framed("/v3/kv/range", f'{{"key":"{b64(self.prefix)}","count_only":true}}')
            case _:
                return self._lease()

    def watch(self) -> bytes:
        """A stream of watches, in twos as the client opens them, or with all that etcd offers."""
        since = self.revision + self.chance.choice((-40, -8, -2, 0, 1, 3))
        past = f',"start_revision":{max(1, since)},"filters":[0]'
        bodies = []
        for _ in range(self.chance.choice((1, 2))):
            where = self._span(self.chance.random() < 0.5)
            bodies += [f'{{"create_request":{{{where}{past}}}}}', f'{{"create_request":{{{where}}}}}']
        if self.chance.random() < 0.3:
            more = (
                f',"prev_kv":true,"start_revision":{max(1, since)},"filters":[{self.chance.choice(("", "1", "0,1"))}]'
            )
            bodies.append(f'{{"create_request":{{{self._span(True)}{more}}}}}')
        if self.chance.random() < 0.2:
            bodies.append('{"create_request":{"key":"Yg==","range_end":"YQ=="}}')
            bodies.append('{"cancel_request":{"watch_id":1}}{"cancel_request":{"watch_id":77}}')
        while sum(map(len, bodies)) > SAFE_BODY_BYTES:
            bodies.pop(self.chance.randrange(len(bodies)))
        return framed("/v3/watch", "".join(bodies), "Grpc-Metadata-hasleader: true\r\n")

    # Parts of requests

    def _key(self) -> str:
        return b64(f"{self.prefix}{self.chance.randrange(KEYS_COUNT)}")

    def _span(self, whole: bool) -> str:
        if not whole:
            return f'"key":"{self._key()}","range_end":""'
        if self.chance.random() < 0.3:
            return f'"key":"{self._key()}","range_end":"{self._key()}"'
        return f'"key":"{b64(self.prefix)}","range_end":"{self._end()}"'

    def _end(self) -> str:
        return b64(self.prefix[:-1] + chr(ord(self.prefix[-1]) + 1))

    def _value(self) -> str:
        size = self.chance.choice((0, 1, 1, 20, 20, LONG_BYTES))
        return b64("".join(self.chance.choice("abc") for _ in range(size)))

    def _any_lease(self) -> int:
        return self.chance.choice((0, 0, *self.leases))

    def _put(self) -> str:
        more = self.chance.choice(("", "", ',"prev_kv":true', ',"ignore_lease":true', ',"ignore_value":true'))
        if "ignore_value" in more:
            return f'{{"key":"{self._key()}"{more}}}'
        lease = "" if "ignore" in more else f',"lease":{self._any_lease()}'
        return f'{{"key":"{self._key()}","value":"{self._value()}"{lease}{more}}}'

    def _delete(self) -> str:
        more = self.chance.choice(("", ',"prev_kv":true'))
        return f"{{{self._span(self.chance.random() < 0.2)}{more}}}"

    def _about(self) -> int:
        return max(1, self.revision + self.chance.randrange(-25, 4))

    def _range(self) -> str:
        options = [
            f'"limit":{self.chance.randrange(4)}',
            f'"sort_order":{self.chance.randrange(3)},"sort_target":{self.chance.choice((0, 2, 3))}',
            f'"max_create_revision":{self._about()}',
            f'"min_mod_revision":"{self._about()}"',
            f'"revision":{self._about()}',
            '"keys_only":true',
            '"count_only":true',
            '"serializable":true',
        ]
        chosen = self.chance.sample(options, self.chance.choice((0, 0, 1, 2, 3)))
        return "{" + ",".join([self._span(self.chance.random() < 0.6), *chosen]) + "}"

    def _compare(self) -> str:
        target = self.chance.choice(
            (
                f'"target":1,"create_revision":{self.chance.choice((0, self._about()))}',
                f'"target":2,"mod_revision":{self._about()}',
                f'"target":"VERSION","version":"{self.chance.randrange(3)}"',
                f'"target":3,"value":"{self._value()}"',
                f'"target":4,"lease":{self._any_lease()}',
            )
        )
        return f'{{{self._span(self.chance.random() < 0.4)},"result":{self.chance.randrange(4)},{target}}}'

    def _op(self, depth: int) -> str:
        kind = self.chance.choice(("put", "delete", "range", "range", "txn" if depth else "put"))
        match kind:
            case "put":
                return f'{{"request_put":{self._put()}}}'
            case "delete":
                return f'{{"request_delete_range":{self._delete()}}}'
            case "range":
                return f'{{"request_range":{self._range()}}}'
            case _:
                return f'{{"request_txn":{self._txn(depth - 1)}}}'

    def _txn(self, depth: int) -> str:
        compare = ",".join(self._compare() for _ in range(self.chance.choice((0, 1, 1, 2))))
        success = ",".join(self._op(depth) for _ in range(self.chance.choice((0, 1, 2, 3))))
        failure = ",".join(self._op(depth) for _ in range(self.chance.choice((0, 0, 1, 2))))
        otherwise = f',"failure":[{failure}]' if failure else ""
        return f'{{"compare":[{compare}],"success":[{success}]{otherwise}}}'

    def _take(self) -> str:
        """Hold if nothing stands in the line, else wait, and show the two youngest: the client's own transaction."""
        line, end, key = b64(self.prefix), self._end(), self._key()
        put = f'{{"request_put":{{"key":"{key}","value":"{self._value()}","lease":{self._any_lease()}}}}}'
        look = (
            f'{{"request_range":{{"key":"{line}","range_end":"{end}","sort_order":2,"sort_target":2,'
            f'"limit":2,"max_create_revision":{self.revision + 5}}}}}'
        )
        absent = f'{{"key":"{line}","range_end":"{end}","target":1,"create_revision":0}}'
        own = f'{{"key":"{key}","target":1,"create_revision":0}}'
        queue = f'{{"request_txn":{{"compare":[{own}],"success":[{put}]}}}}'
        return f'{{"compare":[{absent}],"success":[{put}],"failure":[{queue},{look}]}}'

    def _lease(self) -> bytes:
        lease = self.chance.choice(self.leases)
        match self.chance.choice(("grant", "grant", "keep", "keep", "keys", "left", "revoke")):
            case "grant":
                return framed("/v3/lease/grant", f'{{"ID":{lease},"TTL":{self.chance.randrange(70, 90)}}}')
            case "keep":
                return framed("/v3/lease/keepalive", f'{{"ID":{lease}}}' * self.chance.choice((1, 1, 1, 2)))
            case "keys":
                return framed("/v3/lease/timetolive", f'{{"ID":{lease},"keys":true}}')
            case "left":
                return framed("/v3/lease/timetolive", f'{{"ID":{lease}}}')
            case _:
                return framed("/v3/lease/revoke", f'{{"ID":{lease}}}')

    # What the client does not send

    def _malformed(self) -> bytes:
        path = self.chance.choice(
            ("/v3/kv/range", "/v3/kv/put", "/v3/lease/revoke", "/v3/lease/keepalive", "/v3/kv/txn")
        )
        return framed(path, self.chance.choice(('{"key":', "[]", '{"key":12,"ID":"x"}' if "txn" not in path else "[]")))

    def _refused(self) -> bytes:
        key = self._key()
        puts = f'{{"request_put":{{"key":"{key}"}}}},{{"request_put":{{"key":"{key}"}}}}'
        gets = ",".join([f'{{"request_range":{{"key":"{key}"}}}}'] * 129)
        path, body = self.chance.choice(
            (
                ("/v3/kv/txn", f'{{"success":[{puts}]}}'),
                ("/v3/kv/txn", f'{{"success":[{gets}]}}'),
                ("/v3/kv/txn", '{"success":[{}]}'),
                ("/v3/kv/txn", '{"compare":[{"target":1}]}'),
                ("/v3/kv/put", '{"value":"YQ=="}'),
                ("/v3/kv/put", f'{{"key":"{key}","value":"YQ==","ignore_value":true}}'),
                ("/v3/kv/put", f'{{"key":"{key}","lease":12345}}'),
                ("/v3/kv/put", f'{{"key":"{key}","value":"{TOO_LARGE}"}}'),
                ("/v3/kv/put", f'{{"key":"{key}","value":"{FAR_TOO_LARGE}"}}'),
                ("/v3/kv/range", f'{{"key":"{key}","revision":999999999}}'),
                ("/v3/kv/deleterange", "{}"),
                ("/v3/kv/compaction", f'{{"revision":{self._about()}}}' if self.compacts else '{"revision":999999999}'),
                ("/v3/lease/grant", f'{{"ID":{self.leases[0]},"TTL":9000000001}}'),
                ("/v3/auth/authenticate", '{"name":"somebody","password":"x"}'),
                ("/v3/maintenance/alarm", "{}"),
            )
        )
        return framed(path, body)

    def _elsewhere(self) -> bytes:
        return self.chance.choice((framed("/v3/kv/nothing", "{}"), framed("/v3/kv/range", "{}", method="PUT")))

"""The simulated etcd lets in, and refuses, whom the real one does: users, roles, tokens."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from random import Random

import pytest

from tests.etcd.cluster import Member, running
from tests.likeness.etcd_requests import b64, framed
from tests.likeness.etcd_sides import Modelled, Real, levelled, model_of
from tests.likeness.play import in_pieces, rounds

KEYS = ("mine/a", "mine/b", "mine0", "other")
SPANS = (("mine/", "mine0"), ("mine/a", ""), ("mine/", "mine1"), ("a", "z"), ("mine/b", "mine/c"))
MINE_END = f'"range_end":"{b64("mine0")}"'
PREPARED = (
    ("/v3/auth/authenticate", '{"name":"root","password":"x"}'),
    ("/v3/auth/enable", "{}"),
    ("/v3/auth/user/add", '{"name":"root","password":"root"}'),
    ("/v3/auth/enable", "{}"),
    ("/v3/auth/user/add", '{"name":"root","password":"root"}'),
    ("/v3/auth/user/grant", '{"user":"root","role":"root"}'),
    ("/v3/auth/role/add", '{"name":"locks"}'),
    ("/v3/auth/role/add", '{"name":"locks"}'),
    (
        "/v3/auth/role/grant",
        f'{{"name":"locks","perm":{{"permType":2,"key":"{b64("mine/")}","range_end":"{b64("mine0")}"}}}}',
    ),
    ("/v3/auth/user/add", '{"name":"keeper","password":"secret"}'),
    ("/v3/auth/user/grant", '{"user":"keeper","role":"nothing"}'),
    ("/v3/auth/user/grant", '{"user":"keeper","role":"locks"}'),
    ("/v3/auth/enable", "{}"),
)


@pytest.fixture(scope="module")
def real() -> Iterator[Member]:
    with running(1) as cluster:
        [member] = cluster.members
        yield member


def without_token(reply: bytes) -> bytes:
    """A token is made by chance, and ends with the index of a log that the model does not keep as etcd does."""
    if b'"token"' in reply:
        reply = re.sub(rb"\r\nContent-Length: \d+", b"", re.sub(rb'"token":"[^"]*"', b'"token":""', reply))
    return levelled(reply)


def token_in(reply: bytes) -> str:
    found: str = json.loads(reply.partition(b"\r\n\r\n")[2]).get("token", "")
    return found


class Pair:
    """The same requests to both, each with the tokens of its own."""

    def __init__(self, real: Member, seed: int) -> None:
        self.cluster, host = model_of(real, Random(seed))
        self._link, self._twin = Real(real), Modelled(self.cluster, host)
        self._chance = Random(seed)
        self.tokens: dict[str, tuple[str, str]] = {"": ("", ""), "wrong": ("wrong", "wrong")}

    def ask(self, path: str, body: str, user: str = "") -> tuple[bytes, bytes]:
        asked = []
        for token in self.tokens[user]:
            more = f"Authorization: {token}\r\n" if token else ""
            asked.append(list(in_pieces(framed(path, body, more), self._chance)))
        [expected], [answered] = self._link.ask(asked[0], 1), self._twin.ask(asked[1])
        assert without_token(answered) == without_token(expected), (path, body, user)
        return expected, answered

    def log_in(self, user: str, password: str) -> None:
        expected, answered = self.ask("/v3/auth/authenticate", f'{{"name":"{user}","password":"{password}"}}')
        self.tokens[user] = (token_in(expected), token_in(answered))


def one_request(chance: Random, lease: int) -> tuple[str, str]:
    key = b64(chance.choice(KEYS))
    begin, end = chance.choice(SPANS)
    span = f'"key":"{b64(begin)}","range_end":"{b64encode(end.encode()).decode()}"'
    put = f'{{"request_put":{{"key":"{key}"}}}}'
    return chance.choice(
        (
            ("/v3/kv/range", f"{{{span}}}"),
            ("/v3/kv/put", f'{{"key":"{key}","lease":{chance.choice((0, lease))}}}'),
            ("/v3/kv/deleterange", f'{{{span},"prev_kv":true}}'),
            ("/v3/kv/txn", f'{{"compare":[{{{span},"target":1}}],"success":[{put}]}}'),
            ("/v3/kv/txn", f'{{"success":[{{"request_txn":{{"success":[{put}]}}}}]}}'),
            ("/v3/kv/txn", f'{{"success":[{{"request_range":{{{span}}}}}]}}'),
            ("/v3/kv/txn", "{}"),
            ("/v3/lease/grant", f'{{"ID":{lease},"TTL":80}}'),
            ("/v3/lease/keepalive", f'{{"ID":{lease}}}'),
            ("/v3/lease/timetolive", f'{{"ID":{lease},"keys":true}}'),
            ("/v3/lease/revoke", f'{{"ID":{lease}}}'),
            ("/v3/auth/authenticate", '{"name":"keeper","password":"wrong"}'),
            ("/v3/auth/role/add", '{"name":"more"}'),
        )
    )


def test_who_may_do_what_is_alike(real: Member) -> None:
    pair = Pair(real, 0)
    for path, body in PREPARED:
        pair.ask(path, body)
    pair.log_in("keeper", "secret")
    pair.log_in("root", "root")
    put = f'{{"request_put":{{"key":"{b64("mine/a")}"}}}}'
    pair.ask("/v3/kv/txn", f'{{"compare":[{{"key":"{b64("other")}"}}],"success":[{put}]}}', user="keeper")
    chance = Random(0)
    for _ in range(40 * rounds(2)):
        pair.ask(*one_request(chance, 77), user=chance.choice(("", "wrong", "keeper", "keeper", "keeper", "root")))
    pair.ask("/v3/auth/user/changepw", '{"name":"keeper","password":"other"}', user="root")
    pair.ask("/v3/kv/range", f'{{"key":"{b64("mine/a")}"}}', user="keeper")  # its token is forgotten
    pair.log_in("keeper", "other")
    pair.ask("/v3/kv/range", f'{{"key":"{b64("mine/a")}"}}', user="keeper")
    pair.ask("/v3/auth/disable", "{}", user="keeper")
    pair.ask("/v3/auth/disable", "{}", user="root")
    pair.ask("/v3/kv/range", f'{{"key":"{b64("mine/a")}"}}')
